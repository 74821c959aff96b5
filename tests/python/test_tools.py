"""The HDF5 tools' own expectations: pumice under their names, on their inputs, must print what they
print. docs/tools.md lists where it does not, and why; a check that fails and is not listed there
fails the test. Also: the tools end properly on every damaged file."""

import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORPUS = pathlib.Path(os.environ.get("PUMICE_CORPUS", ROOT.parent / "shared" / "corpora"))
PUMICE = os.environ.get("PUMICE")
SUITES = ["h5dump", "h5ls", "h5diff", "h5stat"]
# What a tool may take, in seconds.
PATIENCE = 10
WORKERS = os.cpu_count() or 2


def links(folder):
    """A folder with the tools' names."""
    place = pathlib.Path(folder) / "tools"
    place.mkdir()
    program = pathlib.Path(PUMICE).resolve()
    subprocess.run([program, "install-links", place], check=True, stdout=subprocess.DEVNULL)
    return place


def lines(text):
    """Lines without the empty ones, of which the tools' own tests take no notice."""
    return [line.rstrip("\r") for line in text.split("\n") if line.strip()]


def deviations():
    """The checks that docs/tools.md lists."""
    text = (ROOT / "docs" / "tools.md").read_text()
    return set(re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE))


class Check:
    """One check: a command, its expected output, error and exit code."""

    def __init__(self, entry, tools, stage):
        self.entry = entry
        self.tools = tools
        self.stage = stage

    def wrong(self):
        """Why the check fails, or nothing."""
        entry = self.entry
        command = [self.tools / entry["tool"], *entry["args"]]
        environment = dict(os.environ, TZ="UTC")
        for name, value in entry["env"].items():
            environment[name] = value.replace("{STAGE}", str(self.stage))
        try:
            run = subprocess.run(
                command,
                cwd=self.stage / entry["cwd"],
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=6 * PATIENCE,
            )
        except subprocess.TimeoutExpired:
            return "does not end"
        expected = entry["expected_exit"]
        if run.returncode < 0:
            return f"ends by signal {-run.returncode}"
        if expected == "nonzero" and run.returncode == 0:
            return "exit code 0"
        if isinstance(expected, int) and run.returncode != expected:
            return f"exit code {run.returncode}, not {expected}"
        out = run.stdout.decode("utf8", "surrogateescape")
        error = run.stderr.decode("utf8", "replace")
        masks = entry["masks"]
        if "test_append" in masks:
            out += f"{masks['test_append']} {run.returncode}\n"
        if "test_filter" in masks:
            replacement = masks.get("test_filter_replace", "").replace("\\", "\\\\")
            out = re.sub(masks["test_filter"], replacement, out)
        if "stderr_contains" in entry["check"]:
            wanted = entry["expected_stderr_contains"]
            if wanted not in error and not (not error and wanted in out):
                return f"standard error lacks {wanted!r}"
        if "stdout_equals" in entry["check"] and entry["expected_file"]:
            reference = (self.stage / entry["expected_file"]).read_bytes()
            if lines(reference.decode("utf8", "surrogateescape")) != lines(out):
                return "standard output differs"
        return None


@unittest.skipUnless(PUMICE, "PUMICE names no program")
class Tools(unittest.TestCase):
    @unittest.skipUnless((CORPUS / "expected.jsonl").exists(), f"no {CORPUS}/expected.jsonl")
    def test_expected_outputs(self):
        entries = map(json.loads, (CORPUS / "expected.jsonl").read_text().splitlines())
        entries = [e for e in entries if e["suite"] in SUITES and e["tool"] == e["suite"]]
        with tempfile.TemporaryDirectory() as folder:
            stage = pathlib.Path(folder) / "stage"
            for suite in SUITES:
                shutil.copytree(CORPUS / "stage" / suite, stage / suite)
            tools = links(folder)
            checks = [Check(entry, tools, stage) for entry in entries]
            with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
                reasons = list(pool.map(Check.wrong, checks))
        failed = {e["id"]: why for e, why in zip(entries, reasons) if why}
        counts = collections.Counter((e["tool"], e["id"] in failed) for e in entries)
        for tool in SUITES:
            print(f"{tool}: {counts[tool, False]} passed, {counts[tool, True]} failed")
        listed = deviations()
        unlisted = {name: why for name, why in failed.items() if name not in listed}
        self.assertEqual(unlisted, {}, "checks that docs/tools.md does not list")
        known = {entry["id"] for entry in entries}
        mended = sorted(name for name in listed & known if name not in failed)
        self.assertEqual(mended, [], "docs/tools.md lists checks that pass")

    @unittest.skipUnless((CORPUS / "bad").exists(), f"no {CORPUS}/bad")
    def test_damaged_files(self):
        files = sorted(path for path in (CORPUS / "bad").iterdir() if path.is_file())
        commands = [["h5dump"], ["h5dump", "-x"], ["h5ls", "-rv"], ["h5stat"], ["h5diff", "-v"]]

        def wrong(job):
            command, path = job
            words = [tools / command[0], *command[1:], path]
            if command[0] == "h5diff":
                words.append(path)
            try:
                run = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True,
                                     timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                return f"{' '.join(command)} {path.name}: does not end"
            if run.returncode in (0, 1, 2) and b"panicked" not in run.stderr:
                return None
            return f"{' '.join(command)} {path.name}: exit code {run.returncode}"

        with tempfile.TemporaryDirectory() as folder:
            tools = links(folder)
            jobs = [(command, path) for path in files for command in commands]
            with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
                problems = [problem for problem in pool.map(wrong, jobs) if problem]
        self.assertEqual(problems, [])
