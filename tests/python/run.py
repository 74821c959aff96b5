"""Runs the tests beside it; the last line is "N passed, N failed, N skipped"."""

import collections
import pathlib
import sys
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent


class Result(unittest.TextTestResult):
    """Remembers how long each test took."""

    def startTest(self, test):
        self.began = time.perf_counter()
        super().startTest(test)

    def stopTest(self, test):
        super().stopTest(test)
        took = time.perf_counter() - self.began
        if took > 10:
            self.stream.writeln(f"{test}: {took:.0f} s")


def own(test):
    """The test that a subtest belongs to."""
    return getattr(test, "test_case", test).id()


def main():
    names = [a for a in sys.argv[1:] if not a.startswith("-")]
    sys.path.insert(0, str(HERE))
    loader = unittest.TestLoader()
    suite = loader.loadTestsFromNames(names) if names else loader.discover(str(HERE))
    verbosity = 2 if "-v" in sys.argv else 1
    runner = unittest.TextTestRunner(sys.stdout, verbosity=verbosity, resultclass=Result)
    result = runner.run(suite)
    failed = {own(test) for test, _ in result.failures + result.errors}
    # A test with some subtests skipped has still passed in the others.
    skipped = {own(test) for test, _ in result.skipped if not hasattr(test, "test_case")} - failed
    for reason, count in collections.Counter(reason for _, reason in result.skipped).items():
        print(f"skipped ({count}): {reason}")
    passed = result.testsRun - len(failed) - len(skipped)
    print(f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 0 if result.wasSuccessful() and result.testsRun else 1


if __name__ == "__main__":
    sys.exit(main())
