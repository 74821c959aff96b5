"""`pumice check` and `check --repair`, judged by h5py: what it calls sound can be read, and a repaired file
has everything that h5py still reads from the damaged one."""

import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import h5py
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORPUS = pathlib.Path(os.environ.get("PUMICE_CORPUS", ROOT.parent / "shared" / "corpora"))
PUMICE = os.environ.get("PUMICE")
# What a command may take, in seconds.
PATIENCE = 10
# Every so many files of the corpus.
STEP = 7
# Larger arrays are not compared, nor more objects of a file.
LARGEST, MOST = 50_000_000, 2000
FAILED = "cannot be read"


def plain(file, value):
    """Values without addresses: references by the paths that they lead to."""
    if isinstance(value, (h5py.Reference, h5py.RegionReference)):
        try:
            name = h5py.h5r.get_name(value, file.id) if value else b"null"
            region = isinstance(value, h5py.RegionReference) and value
            return name, h5py.h5r.get_region(value, file.id).get_select_npoints() if region else 0
        except (RuntimeError, ValueError, KeyError):
            return "leads nowhere"
    if isinstance(value, np.ndarray):
        return [plain(file, item) for item in (value.ravel() if value.dtype.kind == "O" else value.tolist())]
    if isinstance(value, (list, tuple)):
        return [plain(file, item) for item in value]
    return repr(value)


def digest(file, value):
    value = np.asarray(value)
    data = repr(plain(file, value)).encode() if value.dtype.hasobject else value.tobytes()
    return hashlib.sha1(repr((str(value.dtype), value.shape)).encode() + data).hexdigest()


class Reading:
    """Everything that h5py reads of a file, by path."""

    def __init__(self, path):
        self.found = {}
        try:
            self.file = h5py.File(path, "r")
        except OSError:
            self.found["the file"] = FAILED
            return
        with self.file:
            self.group(self.file["/"], "", ())

    def tried(self, path, read):
        try:
            self.found[path] = read()
        except (OSError, RuntimeError, TypeError, ValueError, KeyError, UnicodeError, NotImplementedError):
            self.found[path] = FAILED

    def attributes(self, owner, path):
        try:
            names = list(owner.attrs)
        except (OSError, RuntimeError, KeyError):
            self.found[path + "@"] = FAILED
            return
        for name in names:
            self.tried(f"{path}@{name}", lambda: self.value(owner.attrs[name]))

    def value(self, value):
        return "nothing" if isinstance(value, h5py.Empty) else digest(self.file, value)

    def elements(self, dataset):
        if dataset.shape is None or dataset.size * dataset.dtype.itemsize > LARGEST:
            return "not compared"
        return digest(self.file, dataset[()])

    def group(self, group, path, above):
        self.attributes(group, path or "/")
        self.found[path + "/"] = "a group"
        above += (h5py.h5o.get_info(group.id).addr,)
        try:
            names = list(group)
        except (OSError, RuntimeError, KeyError):
            self.found[path + "/"] = FAILED
            return
        for name in names:
            if len(self.found) < MOST:
                self.member(group, name, f"{path}/{name}", above)

    def member(self, group, name, path, above):
        try:
            link = group.get(name, getlink=True)
            if isinstance(link, (h5py.SoftLink, h5py.ExternalLink)):
                self.found[path] = repr(link.path)
                return
            member = group[name]
        except (OSError, RuntimeError, KeyError, TypeError, ValueError):
            self.found[path] = FAILED
            return
        if isinstance(member, h5py.Group):
            known = h5py.h5o.get_info(member.id).addr in above or len(above) > 20
            self.found[path] = "a circle"
            if not known:
                self.group(member, path, above)
        elif isinstance(member, h5py.Dataset):
            self.tried(path, lambda: self.elements(member))
            self.attributes(member, path)
        else:
            self.found[path] = "a datatype"
            self.attributes(member, path)


class Reader:
    """Reads files in a process of its own: libhdf5 does not survive all of them."""

    def __init__(self):
        self.process = None

    def __call__(self, path):
        """Everything that h5py reads; None if it does not survive it."""
        if self.process is None:
            self.process = subprocess.Popen([sys.executable, __file__, "--serve"], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.process.stdin.write(f"{path}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            self.close()
            return None
        return json.loads(line)

    def close(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()
            self.process.stdout.close()
            self.process = None


@unittest.skipUnless(PUMICE, "PUMICE is not set")
class Check(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.at = pathlib.Path(folder.name)
        self.read = Reader()
        self.addCleanup(self.read.close)

    def run_pumice(self, *words):
        return subprocess.run([PUMICE, *map(str, words)], capture_output=True, text=True, timeout=PATIENCE,
                              errors="replace")

    def repaired(self, path):
        """The exit code of a check, and what h5py reads of the repaired file."""
        new = self.at / "repaired.h5"
        new.unlink(missing_ok=True)
        done = self.run_pumice("check", "--repair", new, path)
        self.assertIn(done.returncode, (0, 1, 2), done.stderr)
        self.assertEqual(new.exists(), done.returncode != 2, done.stderr)
        return done.returncode, self.read(new) if new.exists() else {}

    def compare(self, path):
        given = self.read(path)
        code, found = self.repaired(path)
        if given is None or found is None:
            return code
        lost = {place for place, what in given.items() if what != FAILED and found.get(place) != what}
        self.assertEqual(lost, set() if code != 2 else lost)
        if code == 2:
            self.assertEqual(given, {"the file": FAILED})
        return code

    def make(self, path, **options):
        with h5py.File(path, "w", **options) as file:
            file.attrs["kind"], file.attrs["numbers"] = "a run", np.arange(5)
            file["type"] = np.dtype([("a", "<i4"), ("b", ">f8", 3)])
            runs = file.create_group("runs", track_order=True)
            runs.attrs["who"] = "nobody"
            for name in ("z", "bad", "a"):
                data = runs.create_dataset(name, data=np.arange(400), chunks=(100,), fletcher32=True)
                data.attrs["unit"] = "mm"
            runs.create_dataset("typed", (4,), dtype=file["type"])
            file["again"], file["bad too"] = runs["a"], runs["bad"]
            file["soft"], file["outside"] = h5py.SoftLink("/runs/z"), h5py.ExternalLink("other.h5", "/x")
            file["texts"] = ["one", "zwei", ""]
            refs = file.create_dataset("refs", (3,), dtype=h5py.ref_dtype)
            refs[0], refs[1] = runs["a"].ref, runs["z"].ref
            file["regions"] = np.array([runs["a"].regionref[10:20]], dtype=h5py.regionref_dtype)
            file.attrs["first"] = runs["a"].ref
            return runs["bad"].id.get_chunk_info(2).byte_offset

    def test_a_sound_file_is_copied_whole(self):
        for options in ({"libver": "earliest"}, {"libver": "latest"}, {"track_order": True}):
            path = self.at / "in.h5"
            self.make(path, userblock_size=512, **options)
            path.write_bytes(b"a user block".ljust(512, b"\0") + path.read_bytes()[512:])
            self.assertEqual(self.compare(path), 0)
            self.assertTrue((self.at / "repaired.h5").read_bytes().startswith(b"a user block"))
            with h5py.File(self.at / "repaired.h5") as file:
                self.assertEqual(list(file["runs"]), ["z", "bad", "a", "typed"], "the order of creation")
                self.assertEqual(file["again"], file["runs/a"], "one object with two names")
                self.assertTrue(file["runs/typed"].id.get_type().committed())

    def test_only_the_damaged_dataset_stays_behind(self):
        path = self.at / "in.h5"
        place = self.make(path)
        data = bytearray(path.read_bytes())
        data[place + 7] ^= 1
        path.write_bytes(data)
        given = self.read(path)
        self.assertEqual([place for place, what in given.items() if what == FAILED], ["/bad too", "/runs/bad"])
        code, found = self.repaired(path)
        self.assertEqual(code, 1)
        kept = {place: what for place, what in given.items() if not place.startswith(("/bad too", "/runs/bad"))}
        self.assertEqual(found, kept)
        told = self.run_pumice("check", "--repair", self.at / "repaired.h5", "--force", path).stdout
        self.assertIn("left behind: /bad too", told)

    def test_objects_share_messages_if_asked(self):
        """libhdf5 reads, edits and deletes what shares messages, and counts them."""
        kind = np.dtype([("first", "<i4"), ("second", ">f8", (3,)), ("third", "S20")])
        path, new = self.at / "in.h5", self.at / "out.h5"
        for libver in ("earliest", "latest"):
            with h5py.File(path, "w", libver=libver) as file:
                for number in range(60):
                    data = file.create_dataset(f"g{number % 7}/d{number}", (number // 20 + 1, 5), dtype=kind,
                                               chunks=(1, 5), compression="gzip", fillvalue=np.zeros((), kind))
                    data.attrs["unit"], data.attrs["number"] = np.bytes_("a rather long unit of measure"), number
                    data[...] = number
            for sizes in (("-s", "1"), ("-s", "20:dtype"), ("-s", "1:attr", "-s", "30:pline"), ("-s", "100000")):
                with self.subTest(libver=libver, sizes=sizes):
                    new.unlink(missing_ok=True)
                    done = self.run_pumice("repack", *sizes, path, new)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    given, found = self.read(path), self.read(new)
                    self.assertEqual(found, given)
                    told = self.run_pumice("check", new)
                    self.assertEqual(told.returncode, 0, told.stdout)
                    stat = self.run_pumice("stat", "-F", new).stdout.split("Shared Messages")[1].split("Free-space")[0]
                    shares = sizes != ("-s", "100000")
                    self.assertEqual("Heap: 0\n" not in stat, shares, stat)
                    with h5py.File(new, "r+") as file:
                        self.assertEqual(file.id.get_create_plist().get_sizes(), (8, 8))
                        del file["g1/d1"], file["g2"], file["g3/d3"].attrs["unit"]
                        file.create_dataset("another", (4, 5), dtype=kind, data=np.zeros((4, 5), kind))
                        file["another"].attrs["unit"] = np.bytes_("a rather long unit of measure")
                    again = self.read(new)
                    self.assertNotIn(FAILED, again.values())
                    self.assertEqual({place: what for place, what in given.items() if place in again and place != "/"},
                                     {place: what for place, what in again.items() if place in given and place != "/"})

    def test_files_of_others(self):
        """Nothing that h5py reads is lost."""
        files = sorted(path for path in (CORPUS / "files").glob("*") if path.stat().st_size < 20_000_000)
        if not files:
            self.skipTest("no corpus")
        codes = set()
        for path in files[::STEP]:
            with self.subTest(path.name):
                codes.add(self.compare(path))
        self.assertGreaterEqual(codes, {0, 1})

    def test_damaged_files_of_others(self):
        """Every command ends in time with a code that it may have, and h5py opens what was repaired."""
        files = sorted(path for path in (CORPUS / "bad").rglob("*") if path.is_file())
        if not files:
            self.skipTest("no corpus")
        codes = set()
        for path in files:
            with self.subTest(path.name):
                code, found = self.repaired(path)
                self.assertNotIn("the file", found or {})
                codes.add(code)
                copy = self.at / "copy.h5"
                copy.write_bytes(path.read_bytes())
                self.assertIn(self.run_pumice("recover", copy).returncode, (0, 1))
        self.assertEqual(codes, {0, 1, 2})


def serve():
    for line in sys.stdin:
        print(json.dumps(Reading(line.rstrip("\n")).found), flush=True)


if __name__ == "__main__":
    serve() if "--serve" in sys.argv else unittest.main()
