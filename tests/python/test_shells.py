"""What people meet in a shell: completion, manual pages, colour, progress, errors and exit codes.

The shells themselves run the scripts that `pumice completions` prints; what depends on a terminal runs
in one (a pty)."""

import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import h5py
import numpy as np

from interop import ROOT, program

MATRIX = ROOT / "data" / "debian-dependencies.mtx.gz"
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Shells(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pumice = program("PUMICE", "pumice")
        if cls.pumice is None:
            raise unittest.SkipTest("the pumice command is not built")
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.at = pathlib.Path(cls.folder.name)
        (cls.at / "bin").mkdir()
        (cls.at / "bin" / "pumice").symlink_to(cls.pumice)
        with h5py.File(cls.at / "x.h5", "w") as file:
            file["runs/first"], file["runs/second"] = np.arange(5.0), np.arange(4)
        subprocess.run([cls.pumice, "import", MATRIX, cls.at / "m.h5"], check=True, stdout=subprocess.DEVNULL)

    def environment(self, **more):
        path = f"{self.at / 'bin'}:{os.environ['PATH']}"
        keep = {name: text for name, text in os.environ.items() if name != "NO_COLOR"}
        return {**keep, "PATH": path, "HOME": str(self.at), "TERM": "xterm-256color", **more}

    def run_quietly(self, *words, code=0):
        done = subprocess.run([self.pumice, *map(str, words)], cwd=self.at, capture_output=True, text=True,
                              env=self.environment())
        self.assertEqual(done.returncode, code, f"{words}: {done.stderr}")
        return done

    def script(self, shell):
        path = self.at / f"completions.{shell}"
        path.write_text(self.run_quietly("completions", shell).stdout)
        return path

    # What is typed, and what must be offered or become of it.
    OFFERED = [
        ("pumice imp", ["import"]),
        ("pumice import x --duplicates s", ["sum"]),
        ("pumice import --dup", ["--duplicates"]),
        ("pumice spy x.h5 ru", ["runs/"]),
        ("pumice spy x.h5 /runs/f", ["/runs/first"]),
        ("pumice dump x.h5 -d runs/", ["runs/first", "runs/second"]),
    ]

    def test_bash_completes(self):
        script = self.script("bash")
        for line, wanted in self.OFFERED:
            with self.subTest(line):
                ask = (f"source {script}; COMP_WORDS=({line}{' ' if line.endswith(' ') else ''}); "
                       "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); compopt() { :; }; _pumice; "
                       'printf "%s\\n" "${COMPREPLY[@]}"')
                done = subprocess.run(["bash", "--norc", "-c", ask], cwd=self.at, env=self.environment(),
                                      capture_output=True, text=True)
                self.assertEqual((done.stdout.split(), done.stderr), (wanted, ""))

    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_fish_completes(self):
        script = self.script("fish")
        def offered(line):
            done = subprocess.run(["fish", "--no-config", "-c", f"source {script}; complete -C '{line}'"],
                                  cwd=self.at, env=self.environment(), capture_output=True, text=True)
            self.assertEqual(done.stderr, "")
            return [text.split("\t")[0] for text in done.stdout.splitlines()]
        for line, wanted in self.OFFERED:
            with self.subTest(line):
                self.assertEqual(offered(line), wanted)
        first = offered("pumice ")
        self.assertIn("repack", first)
        self.assertNotIn("x.h5", first, "commands, not files")
        self.assertIn("x.h5", offered("pumice ls "), "files where a file is meant")

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh_completes(self):
        script = self.script("zsh")
        start = ("PS1=; autoload -U compinit; compinit -u -D; "
                 "show() { zle -I; print -r -- TYPED=\"$BUFFER\"=; }; zle -N show; "
                 f"bindkey '^T' show; source {script}; print REA''DY\r")
        for line, wanted in self.OFFERED:
            if len(wanted) > 1:
                continue
            with self.subTest(line):
                with Terminal(["zsh", "-f", "-i"], self.at, self.environment()) as terminal:
                    terminal.send(start)
                    terminal.read_until("READY\r")
                    terminal.send(line + "\t\x14")
                    told = terminal.read_until("=\r\n", after="\nTYPED=")
                typed = told.partition("\nTYPED=")[2].split("=")[0]
                self.assertEqual(typed.split()[-1], wanted[0])

    @unittest.skipUnless(shutil.which("man"), "man is not installed")
    def test_manual_pages_render_without_warnings(self):
        pages = self.run_quietly("man", "pages").stdout.split()
        commands = re.findall(r"^  ([a-z-]+) ", self.run_quietly("--help").stdout, re.MULTILINE)
        names = {pathlib.Path(page).stem for page in pages}
        self.assertEqual(names, {"pumice"} | {f"pumice-{name}" for name in commands if name not in ("help", "pumice")})
        for page in pages:
            with self.subTest(page):
                done = subprocess.run(["man", "--warnings", "-l", page], cwd=self.at, capture_output=True,
                                      text=True, env=self.environment(MANPAGER="cat", MAN_KEEP_FORMATTING=""))
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                for heading in ("NAME", "SYNOPSIS", "DESCRIPTION"):
                    self.assertIn(heading, done.stdout)

    def in_terminal(self, *words, **more):
        with Terminal([str(self.pumice), *map(str, words)], self.at, self.environment(**more)) as terminal:
            return terminal.read_all(), terminal.status()

    def test_colour_is_for_terminals_that_want_it(self):
        for words in (("ls", "m.h5"), ("spy", "m.h5")):
            with self.subTest(words):
                told, code = self.in_terminal(*words)
                self.assertEqual(code, 0)
                self.assertRegex(told, COLOUR)
                self.assertNotRegex(self.in_terminal(*words, NO_COLOR="1")[0], COLOUR)
                self.assertNotRegex(self.run_quietly(*words).stdout, COLOUR)

    def test_progress_is_for_terminals(self):
        rng, count = np.random.default_rng(1), 3_000_000
        np.savez(self.at / "long.npz", row=rng.integers(0, 90_000, count), col=rng.integers(0, 90_000, count),
                 data=rng.random(count), shape=np.array([90_000, 90_000]), format=np.array(b"coo"))
        told, code = self.in_terminal("import", "-f", "long.npz", "long.h5")
        self.assertEqual(code, 0)
        self.assertRegex(told, r"\d %  [\d,]+ of [\d,]+ entries, [\d,]+/s, \w+ left")
        done = self.run_quietly("import", "-f", "long.npz", "long.h5")
        self.assertEqual(done.stderr, "")
        self.assertEqual(done.stdout.count("\n"), 1)

    def test_errors_are_one_line_with_the_place_and_advice(self):
        cases = [
            (("ls", "missing.h5"), 1, "missing.h5"),
            (("read", "x.h5", "runs/third"), 1, "runs/third"),
            (("spy", "x.h5/runs"), 1, "runs"),
            (("import", MATRIX, "x.h5"), 1, "--force"),
            (("import", "x.h5", "y.h5"), 1, "--from"),
            (("export", "x.h5", "y.unknown"), 1, "--to"),
            (("check", "missing.h5"), 2, "missing.h5"),
            (("cache", "replay", "missing.trace"), 1, "missing.trace"),
            (("bench", "missing.h5"), 1, "missing.h5"),
            (("recover", "missing.h5"), 1, "missing.h5"),
            (("frobnicate",), 2, "`pumice --help`"),
            (("spy",), 2, "`pumice spy --help`"),
            (("spy", "x.h5", "--width", "0"), 2, "`pumice spy --help`"),
        ]
        for words, code, part in cases:
            with self.subTest(words):
                done = self.run_quietly(*words, code=code)
                self.assertEqual((done.stderr.count("\n"), done.stdout), (1, ""), done.stderr)
                self.assertIn(part, done.stderr)
                if "missing" in part or "third" in part:
                    self.assertRegex(done.stderr, r"; (is the name right\?|`pumice ls -r`)")

    def test_readers_that_go_are_no_error(self):
        for words in (("dump", "m.h5"), ("ls", "-r", "m.h5"), ("--help",), ("spy", "m.h5"), ("import", "--help")):
            with self.subTest(words):
                read, write = os.pipe()
                os.close(read)
                done = subprocess.run([self.pumice, *words], cwd=self.at, stdout=write, stderr=subprocess.PIPE)
                os.close(write)
                self.assertEqual((done.stderr, done.returncode), (b"", 0))


class Terminal:
    """A program in a terminal of its own."""

    def __init__(self, words, folder, environment):
        self.told, self.code = "", None
        self.child, self.side = pty.fork()
        if self.child == 0:
            os.chdir(folder)
            os.execvpe(words[0], words, environment)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.code is None:
            os.kill(self.child, signal.SIGKILL)
            os.waitpid(self.child, 0)
        os.close(self.side)

    def send(self, text):
        os.write(self.side, text.encode())

    def piece(self, until):
        """Some of what is told; empty at the end."""
        ready, _, _ = select.select([self.side], [], [], max(0, until - time.monotonic()))
        if not ready:
            raise TimeoutError(self.told)
        try:
            piece = os.read(self.side, 65536).decode(errors="replace")
        except OSError:  # Linux says so where nobody is left
            piece = ""
        self.told += piece
        return piece

    def read_until(self, text, after=None, seconds=30):
        """Waits for a text, behind another if one is given."""
        until = time.monotonic() + seconds
        there = lambda: text in (self.told.partition(after)[2] if after else self.told)
        while not there():
            if not self.piece(until):
                raise EOFError(self.told)
        return self.told

    def read_all(self, seconds=120):
        until = time.monotonic() + seconds
        while self.piece(until):
            pass
        return self.told

    def status(self):
        if self.code is None:
            self.code = os.waitstatus_to_exitcode(os.waitpid(self.child, 0)[1])
        return self.code


if __name__ == "__main__":
    unittest.main()
