"""h5py's own tests with pumice in h5py's place.

The tests come from the wheel of h5py. Prints how many passed, failed and were skipped, and compares the failures with
the list in ``h5py_failures.txt``: a test that fails and is not in the list, and one that is in the list and passes, are
reported and make the exit code 1.

    python h5py_suite.py             run and compare
    python h5py_suite.py --write     run and write the list, keeping the reasons that are there
    python h5py_suite.py -- ARGS     run pytest with arguments of one's own
"""

import importlib.util
import os
import signal
import sys
import tempfile
from pathlib import Path

import pytest

LIST = Path(__file__).with_name("h5py_failures.txt")
SECONDS = 60


def tests_folder():
    """Where the tests of h5py are, without importing h5py."""
    spec = importlib.util.find_spec("h5py")
    return Path(spec.submodule_search_locations[0]) / "tests"


class Results:
    """A plugin of pytest: counts, and stops a test that takes too long."""

    def __init__(self):
        self.outcomes = {}
        self.reasons = {}

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item):
        def late(signum, frame):
            raise TimeoutError(f"the test took more than {SECONDS} s")

        signal.signal(signal.SIGALRM, late)
        signal.alarm(SECONDS)
        yield
        signal.alarm(0)

    def pytest_runtest_logreport(self, report):
        name = report.nodeid.split("tests/", 1)[-1]
        worst = self.outcomes.get(name, "passed")
        if report.failed or report.skipped and worst != "failed":
            self.outcomes[name] = report.outcome
        else:
            self.outcomes.setdefault(name, "passed")
        if report.failed and report.longrepr is not None:
            text = str(getattr(report.longrepr, "reprcrash", report.longrepr))
            self.reasons[name] = text.split("\n")[0].split(": ", 2)[-1][:110]

    def pytest_collectreport(self, report):
        if report.failed:
            self.outcomes[report.nodeid] = "failed"
            self.reasons[report.nodeid] = str(report.longrepr).strip().split("\n")[-1][:110]

    def names(self, outcome):
        """The tests with an outcome."""
        return sorted(name for name, found in self.outcomes.items() if found == outcome)


def install(folder):
    """Puts pumice in h5py's place, with h5py's tests below it."""
    from pumice import compat

    compat.install()
    spec = importlib.util.spec_from_file_location(
        "h5py.tests", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules["h5py.tests"] = module
    sys.modules["h5py"].tests = module
    spec.loader.exec_module(module)


def expected():
    """The list of known failures: name to reason."""
    known = {}
    if LIST.exists():
        for line in LIST.read_text().splitlines():
            if line and not line.startswith("#"):
                name, _, reason = line.partition("  ")
                known[name] = reason.strip()
    return known


def write(failed, reasons, known):
    lines = ["# Tests of h5py that fail with pumice in its place, each with the reason. Written by h5py_suite.py --write.", ""]
    lines += [f"{name}  {known.get(name) or reasons.get(name, '')}" for name in failed]
    LIST.write_text("\n".join(lines) + "\n")


def main(arguments):
    folder = tests_folder()
    install(folder)
    results = Results()
    own = arguments[arguments.index("--") + 1 :] if "--" in arguments else []
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        options = ["-q", "-p", "no:cacheprovider", "--tb=no", "-W", "ignore", "--no-header", "--no-summary"]
        chosen = own or [str(folder), *options]
        pytest.main(chosen, plugins=[results])
        os.chdir("/")
    failed = results.names("failed")
    passed, skipped = len(results.names("passed")), len(results.names("skipped"))
    print(f"h5py's tests: {passed} passed, {len(failed)} failed, {skipped} skipped")
    if own:
        return 0
    known = expected()
    if "--write" in arguments:
        write(failed, results.reasons, known)
        return 0
    new = [name for name in failed if name not in known]
    mended = [name for name in known if results.outcomes.get(name) == "passed"]
    for name in new:
        print(f"fails, and is not in the list: {name}: {results.reasons.get(name, '')}")
    for name in mended:
        print(f"is in the list, and passes: {name}")
    return 1 if new or mended else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
