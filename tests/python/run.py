"""Runs the tests beside it; the last line is "N passed, N failed, N skipped".

    run.py                 all modules, on as many processes as there are processors
    run.py NAME ...        these modules, classes or tests, in this process
    run.py -v NAME ...     and name each test

Each module is a program of its own, so that what one leaves in libhdf5's memory does not meet the next. Of a module
with ``APART = True``, which takes long, each test is one.
"""

import collections
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
LAST = re.compile(r"(\d+) passed, (\d+) failed, (\d+) skipped\n\Z")


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


def run_here(names, verbosity):
    """Runs tests in this process; returns the exit code."""
    suite = unittest.TestLoader().loadTestsFromNames(names)
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


def units():
    """What the processes are given, the long ones first."""
    whole = []
    for path in sorted(HERE.glob("test_*.py"), key=lambda path: -path.stat().st_size):
        text = path.read_text()
        if not re.search(r"^APART = True$", text, re.M):
            whole.append(path.stem)
            continue
        owner = None
        for line in text.splitlines():
            if begun := re.match(r"class (\w+)", line):
                owner = begun[1]
            elif test := re.match(r"    def (test_\w+)", line):
                yield f"{path.stem}.{owner}.{test[1]}"
    yield from whole


def run_apart(unit):
    """Runs tests in a process of their own; returns the exit code and what it printed."""
    command = [sys.executable, __file__, unit]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    return done.returncode, done.stdout


def run_all():
    """Runs all tests; returns the exit code."""
    totals, worst = [0, 0, 0], 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
        names = list(units())
        for unit, (code, printed) in zip(names, threads.map(run_apart, names)):
            last = LAST.search(printed)
            counts = [int(number) for number in last.groups()] if last else [0, 1, 0]
            totals = [total + count for total, count in zip(totals, counts)]
            worst = max(worst, abs(code))
            print(f"{unit}: {counts[0]} passed, {counts[1]} failed, {counts[2]} skipped", flush=True)
            shown = printed if code else "".join(re.findall(r"^skipped .*\n|^.*: \d+ s\n", printed, re.M))
            print(shown, end="", flush=True)
    print("{} passed, {} failed, {} skipped".format(*totals))
    return min(worst, 1)


def main():
    names = [a for a in sys.argv[1:] if not a.startswith("-")]
    sys.path.insert(0, str(HERE))
    return run_here(names, 2 if "-v" in sys.argv else 1) if names else run_all()


if __name__ == "__main__":
    sys.exit(main())
