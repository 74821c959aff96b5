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
SUITES = ["h5dump", "h5ls", "h5diff", "h5stat", "h5repack", "h5copy", "h5import"]
# The share of all checks that must pass, and of each suite's. Checks of help texts count as failures:
# ours are our own, and some suites are mostly about them.
LEAST_OF_ALL = 0.96
LEAST = {"h5dump": 0.99, "h5ls": 0.97, "h5diff": 0.90, "h5stat": 0.94, "h5repack": 0.97, "h5copy": 0.86,
         "h5import": 1.0}
# Reference tools, which judge what ours made.
REFERENCE = pathlib.Path(os.environ.get("HDF5_TOOLS", "/usr/bin"))
# What a tool may take, in seconds.
PATIENCE = 10
WORKERS = os.cpu_count() or 2
# Reference outputs for real files, by kind.
REFERENCES = {"dump": "h5dump_full.txt", "dump_pBH": "h5dump_pBH.txt", "ls_r": "h5ls_r.txt",
              "ls_rv": "h5ls_rv.txt", "stat": "h5stat.txt"}


# A filter plugin like that of the HDF5 library's tests: number 300, three more to each byte.
PLUGIN = """
#include <stddef.h>
typedef struct {
    int version, id;
    unsigned encoder, decoder;
    const char *name;
    void *can_apply, *set_local;
    size_t (*filter)(unsigned, size_t, const unsigned *, size_t, size_t *, void **);
} class2;
static size_t run(unsigned flags, size_t count, const unsigned *values, size_t bytes,
                  size_t *size, void **buffer) {
    unsigned char *at = *buffer, more = flags & 0x100 ? 253 : 3;
    (void)count; (void)values;
    for (size_t i = 0; i < *size; i++) at[i] += more;
    return bytes;
}
static const class2 info = {1, 300, 1, 1, "dynlibud", 0, 0, run};
int H5PLget_plugin_type(void) { return 0; }
const void *H5PLget_plugin_info(void) { return &info; }
"""


def plugins(folder):
    """A folder `plugins` with the plugin; empty without a C compiler."""
    place = pathlib.Path(folder) / "plugins"
    place.mkdir()
    source = pathlib.Path(folder) / "plugin.c"
    source.write_text(PLUGIN)
    if shutil.which("cc"):
        subprocess.run(["cc", "-shared", "-fPIC", "-o", place / "libplugin.so", source], check=True)
    return place.parent


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
    """The checks that docs/tools.md lists, and the reasons."""
    text = (ROOT / "docs" / "tools.md").read_text()
    return dict(re.findall(r"^\| `([^`]+)` \| ([^|]*) \|", text, re.MULTILINE))


def comparable(text):
    """A dump whose references differ from run to run: h5dump prints a number that is a place in its
    memory, and breaks lines by its length."""
    masked, count = re.subn(rb'(DATASET|GROUP|DATATYPE) \d+ "', rb'\1 "', text)
    if count == 0:
        return text
    return re.sub(rb"^ *\([\d,]+\): ", b"", masked, flags=re.MULTILINE).split()


def sorted_steps(entries):
    """Entries behind those that they need."""
    by_name = {entry["id"]: entry for entry in entries}
    done, order = set(), []

    def visit(entry):
        if entry["id"] in done:
            return
        done.add(entry["id"])
        for name in entry["needs"]:
            if name in by_name:
                visit(by_name[name])
        order.append(entry)

    for entry in entries:
        visit(entry)
    return order


class Check:
    """One check: a command, its expected output, error and exit code."""

    def __init__(self, entry, tools, stage):
        self.entry = entry
        self.tools = tools
        self.stage = stage

    def program(self):
        """The tool: ours, or a reference tool where it judges what ours made."""
        name = self.entry["tool"]
        foreign = name != self.entry["suite"] and self.entry["passes_debian_1_10_8"]
        if foreign and (REFERENCE / name).exists():
            return REFERENCE / name
        return self.tools / name

    def wrong(self):
        """Why the check fails, or nothing."""
        entry = self.entry
        place = lambda text: text.replace("{STAGE}", str(self.stage)).replace(
            "{BUILD}", str(self.stage.parent))
        command = [self.program(), *map(place, entry["args"])]
        environment = dict(os.environ, TZ="UTC")
        for name, value in entry["env"].items():
            environment[name] = place(value)
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
        return self.wrong_text(run)

    def wrong_text(self, run):
        entry = self.entry
        out = run.stdout.decode("utf8", "surrogateescape")
        error = run.stderr.decode("utf8", "replace")
        masks = entry["masks"]
        if "test_append" in masks:
            out += f"{masks['test_append']} {run.returncode}\n"
        if "test_filter" in masks:
            replacement = masks.get("test_filter_replace", "").replace("\\", "\\\\")
            out = re.sub(masks["test_filter"], replacement, out)
        if entry["save_stdout_as"]:
            saved = self.stage / entry["cwd"] / entry["save_stdout_as"]
            saved.write_text(out, errors="surrogateescape")
        if "stderr_contains" in entry["check"]:
            wanted = entry["expected_stderr_contains"]
            if wanted not in error and not (not error and wanted in out):
                return f"standard error lacks {wanted!r}"
        if entry["check"] == "stdout_contains":
            wanted = entry["expected_stdout_contains"]
            if wanted not in out and not re.search(wanted, out):
                return f"standard output lacks {wanted!r}"
        if "stdout_equals" in entry["check"] and entry["expected_file"]:
            reference = self.stage / entry["expected_file"]
            if not reference.exists():
                return None
            reference = reference.read_bytes()
            if lines(reference.decode("utf8", "surrogateescape")) != lines(out):
                return "standard output differs"
        return None


def without_files():
    """Beginnings of checks whose files the corpus does not have."""
    steps = map(json.loads, (CORPUS / "expected_all_steps.jsonl").read_text().splitlines())
    copies = [step for step in steps if (step.get("op") or "").startswith("copy")]
    place = lambda step: pathlib.Path(step["args"][0].replace("{STAGE}", str(CORPUS / "stage")))
    missing = [step["id"] for step in copies if step["suite"] == "h5repack"
               and not place(step).exists()]
    return tuple(name.removesuffix("_CPY") + "_" for name in missing)


def expected_files():
    """What a step's output is compared with, where another step made it."""
    steps = map(json.loads, (CORPUS / "expected_all_steps.jsonl").read_text().splitlines())
    return {step["id"]: step["expected_path"] for step in steps if step.get("expected_path")}


@unittest.skipUnless(PUMICE, "PUMICE names no program")
class Tools(unittest.TestCase):
    @unittest.skipUnless((CORPUS / "expected.jsonl").exists(), f"no {CORPUS}/expected.jsonl")
    def test_expected_outputs(self):
        entries = map(json.loads, (CORPUS / "expected.jsonl").read_text().splitlines())
        entries = [e for e in entries if e["suite"] in SUITES]
        lacking = without_files()
        some = len(entries)
        entries = [e for e in entries if not (e["id"] + "_").startswith(lacking)]
        print(f"{some - len(entries)} checks need files that are not here")
        made = expected_files()
        for entry in entries:
            entry["expected_file"] = entry["expected_file"] or made.get(entry["id"])
        with tempfile.TemporaryDirectory() as folder:
            stage = pathlib.Path(folder) / "stage"
            for suite in SUITES:
                shutil.copytree(CORPUS / "stage" / suite, stage / suite)
            tools = links(folder)
            plugins(folder)

            def run(suite):
                """Steps of a suite go one after another: they use each other's files."""
                steps = sorted_steps([e for e in entries if e["suite"] == suite])
                return [(step, Check(step, tools, stage).wrong()) for step in steps]

            with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
                done = [pair for pairs in pool.map(run, SUITES) for pair in pairs]
        entries = [entry for entry, _ in done]
        reasons = [why for _, why in done]
        failed = {e["id"]: why for e, why in zip(entries, reasons) if why}
        listed = deviations()
        counts = collections.Counter((e["suite"], e["id"] in failed) for e in entries)
        for suite in SUITES:
            passed, all_of = counts[suite, False], counts[suite, False] + counts[suite, True]
            print(f"{suite}: {passed} of {all_of} passed")
            self.assertGreaterEqual(passed, LEAST[suite] * all_of, suite)
        print(f"all: {len(entries) - len(failed)} of {len(entries)} passed")
        self.assertGreaterEqual(len(entries) - len(failed), LEAST_OF_ALL * len(entries))
        unlisted = {name: why for name, why in failed.items() if name not in listed}
        self.assertEqual(unlisted, {}, "checks that docs/tools.md does not list")
        known = {entry["id"] for entry in entries}
        mended = sorted(name for name in listed.keys() & known if name not in failed)
        self.assertEqual(mended, [], "docs/tools.md lists checks that pass")

    @unittest.skipUnless((CORPUS / "bad").exists(), f"no {CORPUS}/bad")
    def test_damaged_files(self):
        files = sorted(path for path in (CORPUS / "bad").rglob("*") if path.is_file())
        self.assertGreater(len(files), 50)
        commands = [["h5dump"], ["h5dump", "-x"], ["h5ls", "-rv"], ["h5stat"], ["h5diff", "-v"],
                    ["h5repack"], ["h5repack", "-f", "GZIP=1"], ["h5copy"], ["h5import"]]

        def wrong(job):
            command, path = job
            words = [tools / command[0], *command[1:], path]
            made = pathlib.Path(folder) / f"{path.name}.{len(command)}.{command[0]}"
            if command[0] == "h5diff":
                words.append(path)
            elif command[0] == "h5repack":
                words.append(made)
            elif command[0] == "h5copy":
                words[-1:] = ["-i", path, "-o", made, "-s", "/", "-d", "/copy"]
            elif command[0] == "h5import":
                words += ["-c", path, "-o", made]
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

    @unittest.skipUnless((CORPUS / "real_ref").exists(), f"no {CORPUS}/real_ref")
    def test_real_files(self):
        commands = {"dump": ["h5dump"], "dump_pBH": ["h5dump", "-pBH"], "ls_r": ["h5ls", "-r"],
                    "ls_rv": ["h5ls", "-rv"], "stat": ["h5stat"]}

        def wrong(job):
            kind, reference = job
            path = CORPUS / "real" / reference.parent.name
            words = [tools / commands[kind][0], *commands[kind][1:], path.name]
            run = subprocess.run(words, cwd=path.parent, env=dict(os.environ, TZ="UTC"),
                                 stdin=subprocess.DEVNULL, capture_output=True)
            found, expected = run.stdout, reference.read_bytes()
            return found != expected and comparable(found) != comparable(expected)

        with tempfile.TemporaryDirectory() as folder:
            tools = links(folder)
            jobs = [(kind, path) for kind in commands
                    for path in sorted((CORPUS / "real_ref").glob(f"*/{REFERENCES[kind]}"))]
            with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
                found = list(zip(jobs, pool.map(wrong, jobs)))
        for kind in commands:
            here = [(path.parent.name, bad) for (own, path), bad in found if own == kind]
            equal = sum(not bad for _, bad in here)
            print(f"{kind}: {equal} of {len(here)} equal")
            self.assertGreaterEqual(equal, 0.95 * len(here), [name for name, bad in here if bad])
