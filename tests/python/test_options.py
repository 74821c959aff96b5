"""Every option of h5dump, h5ls, h5diff, h5stat, h5repack and h5clear, one by one, beside the HDF5 tools that are
installed: the same exit code, the same bytes on standard output and in the files that are made. Left out
are help texts, versions, `-i`, whose numbers differ from run to run, subsets outside of a dataset, which are
errors here, and what newer releases print otherwise than Debian's 1.10.8, which the corpus'
own expectations (test_tools.py) have."""

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
REFERENCE = pathlib.Path(os.environ.get("HDF5_TOOLS", "/usr/bin"))
STAGE = CORPUS / "stage"

DUMP_FILES = ["tall.h5", "tattr.h5", "thlink.h5", "tvms.h5"]
DUMP = """
-H | -n | -n 1 | --contents | --contents=1 | -A | -A 0 | --onlyattr | -p | -pH | -H -p -A 0 | --properties
-B | -BH | --superblock | --boot-block | -r | --string | -y | --noindex | -e | --escape | -R | --region
-m %.3f | --format=%g | -m %e -w 30 | -w 60 | -w 40 | -w 30 | -w 20 | -w 0 | --width=50
-q creation_order | -q creation_order -z descending | -q name -z descending | -z ascending | -q none | -z none
--enable-error-stack | -E | -E 2 | --enable-error-stack=1 | -C | --no-compact-subset
-g / | -g /g1 | -g /g1/g1.1 | -g /nope | -d /nope | -a /nope | -t /nope | -l /nope
-d /g1/g1.1/dset1.1.1 | -d /g1/g1.1/dset1.1.1[1,1;2,2;2,2;] | -d /g1/g1.1/dset1.1.1 -s 1,1 -c 2,2
-d /g1/g1.1/dset1.1.1 -s 1 | -d /g1/g1.1/dset1.1.1 -s 1 -c 2,3 | -d /g1/g1.1/dset1.1.1[2;;;]
-d /g1/g1.1/dset1.1.1 -s 0,0 -S 4,4 -c 2,2 -k 2,3 | -d /g1/g1.1/dset1.1.1 -p | -d /g1/g1.1/dset1.1.1 -r
--dataset=/g2/dset2.1 --start=2 --stride=3 --count=2 --block=2 | -d /g2/dset2.1 -d /g2/dset2.2
-d /g2/dset2.1 -s 1,2,3 | -s 0 | -c 1 | -S 1 | -k 1
-d /g1/g1.1/dset1.1.1 -M 0,2 | -d /g1/g1.1/dset1.1.1 -M 0,2,1,3 | -M 0,2 | -d /g1/g1.1/dset1.1.1 -M 64,2
-a /attr1 | -a attr1 | -a /g1/g1.1/dset1.1.1/attr1 | --attribute=/attr2 | -t /type1 | -l /slink1 | -l /g1/g1.2/extlink
-N / | -N /g2 | -N dset1 | -N attr1 | -N slink1 | --any_path=/g1/g1.2/extlink | -N /nope
-v | --vds-view-first-missing | -G 2 | --vds-gap-size=2 | -f sec2 | -f family | -f split | -f nothing
-x | -x -H | -x -A | -u | -u -H | -X : | -X : -x | -X x: -x | --xml-ns=y: -x | -D http://x.y -x | -D http://x.y -u
-X : -D http://x.y -x | -D http://x.y | -x -d /x | -x -B | -x -r | -x -i | -u -X :
-o OUT | -o OUT -A | -o | -O | -O OUT | -O OUT -o OUT2 | -o OUT -y | -o OUT -y -d /g2/dset2.1 | -b | -b LE
-o OUT -b -d /g2/dset2.1 | -o OUT -b NATIVE -d /g2/dset2.1 | -o OUT -b MEMORY -d /g2/dset2.1
-o OUT -b FILE -d /g2/dset2.1 | -b LE -o OUT -d /g2/dset2.1 | -o OUT -b BE -d /g2/dset2.1
-o OUT -b BE -d /g1/g1.1/dset1.1.1 -s 1,1 -c 2,2 | -O OUT2 -o OUT -b LE -d /g2/dset2.2 | -b NO -o OUT
"""
LIST_FILES = ["tall.h5", "thlink.h5", "textlinksrc.h5", "tstr.h5"]
LIST = """
 | -a | --address | -av | -d | --data | -e | --errors | -f | --full -r | -g | --group | -gv | -l | -ld | --label -d | -r
--recursive | -S | --simple | -v | --verbose | -vS | -rv | -rvd | -rvS | -va | -w40 -d | -w 30 -rd | --width=60 -d
-x | -E -r | -Er | --external | --follow-symlinks -r | --no-dangling-links --follow-symlinks -r
--follow-symlinks -rv | --vfd=sec2 | --vfd=family | --vfd=nothing | --enable-error-stack | --enable-error-stack -r
"""
DIFF_PAIRS = [("h5diff_basic1.h5", "h5diff_basic2.h5"), ("h5diff_attr1.h5", "h5diff_attr2.h5"),
              ("non_comparables1.h5", "non_comparables2.h5"), ("h5diff_exclude2-1.h5", "h5diff_exclude2-2.h5")]
DIFF = """
 | -r | --report | -v | -v1 | -v2 | -v3 | --verbose=2 | -q | --quiet | -n 2 -v | --count=3 -v | -n 1 -r | -d 0.5 -v
--delta=2 -v | -d x | -p 0.1 -v | --relative=0.2 -v | --use-system-epsilon -v | -e | -c | --compare | -c -v | -N -v
--nan -v | -l -v | --follow-symlinks -v | -x | --no-dangling-links --follow-symlinks -v | -E /g1 -v
--exclude-path /group1 -v | --exclude-path=/dset -v | -A /g1 -v | --exclude-attribute /g1 -v | -S | -S -v
--enable-error-stack | -rn 3 | -d 0.01 -r | -q -v
"""
STAT = """
 | -f | -F | -g | -G | -d | -D | -T | -A | -s | -S | -E | -m 5 -d | -l 8 -g | -a 3 -A | -dg | -fg | -dT -A
--filemetadata | --groupmetadata | --dsetmetadata | --dtypemetadata | --attribute | --freespace | --summary
--links=4 -g | --dims=2 -d | --numattrs=2 -A | --enable-error-stack | -m 0 | -l 0 | -a 0 | -d -m 20 -T
"""

# Files that h5repack makes are compared as h5dump shows them.
REPACK_FILES = ["h5repack_attr.h5", "h5repack_fill.h5", "h5repack_named_dtypes.h5", "h5repack_hlink.h5"]
REPACK = """
 | -f GZIP=1 | -f SHUF | -f FLET | -f NONE | -l COMPA | -l CONTI | -l CHUNK=2x2 | -l CHUNK=10 | -L | -j 0 | -j 1 -k 2
-c 8 -d 4 | -s 8 | --ssize=8 | --ssize=8:dtype | -s 16:attr | -m 500 -f GZIP=3 | -M 4096 | -M 0 | -t 1 -a 512 | -q creation_order
-z descending | -q name -z descending | -S FSM_AGGR -P 1 | -S PAGE -G 512 | -S AGGR | -S NONE | -T 5
-v | -v -l CONTI | -v -l CHUNK=2x2 | -v -f NONE | -v -L | -v -l COMPA | -v -f nothing:GZIP=1
-f GZIP=99 | -f GZIP | -f FOO | -l FOO | -l CHUNK | -m x | -S x | -q x | -z x | -j 3 -k 1 | -a 0
"""
CLEAR = "-s | -m | -s -m | --filesize | --increment | --increment=0 | --increment=512 | --increment=0 -s | --filesize -s"


def options(table):
    return [line.split() for row in table.strip("\n").splitlines() for line in row.split("|")]


@unittest.skipUnless(PUMICE and STAGE.is_dir(), "no command or no corpus")
@unittest.skipUnless((REFERENCE / "h5dump").exists(), "no HDF5 tools")
class Options(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.at = pathlib.Path(folder.name)
        (self.at / "links").mkdir()
        subprocess.run([PUMICE, "install-links", self.at / "links"], check=True, capture_output=True)

    def place(self, suite, names):
        """A folder with these files of a suite."""
        place = self.at / suite
        place.mkdir(exist_ok=True)
        for name in names:
            found = sorted((STAGE / suite).rglob(name))
            self.assertTrue(found, name)
            shutil.copy(found[0], place / name)
        return place

    def run_tool(self, tool, words, place, before):
        """Exit code, output, and the files that were made or changed."""
        done = subprocess.run([tool, *words], cwd=place, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
        made = {}
        for path in place.iterdir():
            if path.name not in before:
                made[path.name] = path.read_bytes()
                path.unlink()
        return done.returncode, done.stdout, made, done.stderr

    def compare(self, tool, place, words):
        before = {path.name for path in place.iterdir()}
        theirs = self.run_tool(REFERENCE / tool, words, place, before)
        # Wrong usage: the help that follows is our own.
        usage = theirs[1].lower().startswith(b"usage")
        ours = self.run_tool(self.at / "links" / tool, words, place, before)
        with self.subTest(" ".join([tool, *words])):
            self.assertEqual(ours[0], theirs[0], (ours[3], theirs[3]))
            if not usage:
                self.assertEqual(ours[1], theirs[1])
                self.assertEqual(ours[2], theirs[2])

    def test_h5dump(self):
        place = self.place("h5dump", DUMP_FILES)
        for words in options(DUMP):
            for name in DUMP_FILES:
                self.compare("h5dump", place, [*words, name])

    def test_h5ls(self):
        place = self.place("h5ls", LIST_FILES)
        for words in options(LIST):
            for name in LIST_FILES:
                self.compare("h5ls", place, [*words, name])

    def test_h5diff(self):
        place = self.place("h5diff", {name for pair in DIFF_PAIRS for name in pair})
        for words in options(DIFF):
            for pair in DIFF_PAIRS:
                self.compare("h5diff", place, [*words, *pair])

    def test_h5stat(self):
        names = [path.name for path in sorted((STAGE / "h5stat").rglob("*.h5"))]
        place = self.place("h5stat", names)
        for words in options(STAT):
            for name in names:
                self.compare("h5stat", place, [*words, name])

    def described(self, path):
        """What Debian's h5dump shows of a file, without places and sizes."""
        done = subprocess.run([REFERENCE / "h5dump", "-p", "-B", path], capture_output=True, text=True, errors="replace")
        text = re.sub(r'HDF5 "[^"]*"', "", done.stdout)
        return re.sub(r"(OFFSET|DATASET|GROUP|#|SIZE) ?\d+( \([\d.]+:1 COMPRESSION\))?", r"\1", text)

    def test_h5repack(self):
        found = {path.name for path in (STAGE / "h5repack").rglob("*.h5")}
        place = self.place("h5repack", [name for name in REPACK_FILES if name in found])
        for name in sorted(path.name for path in place.iterdir()):
            for words in options(REPACK):
                told = []
                for tool in [REFERENCE / "h5repack", self.at / "links" / "h5repack"]:
                    new = place / "new.h5"
                    new.unlink(missing_ok=True)
                    done = subprocess.run([tool, *words, name, "new.h5"], cwd=place, capture_output=True, timeout=60)
                    made = self.described(new) if done.returncode == 0 else ""
                    told.append((done.returncode, b"" if b"sage" in done.stdout else done.stdout, made))
                with self.subTest(" ".join(["h5repack", *words, name])):
                    self.assertEqual(told[1], told[0])

    def test_h5clear(self):
        names = [path.name for path in sorted((STAGE / "misc").rglob("*.h5"))]
        place = self.place("misc", names)
        # Members of split and multi files are no files by themselves, as those of families are none.
        # HDF5's tool makes a file of one without bytes.
        for path in sorted([*(STAGE / "h5dump").rglob("tsplit_file-*.h5"), *(STAGE / "h5dump").rglob("tmulti-*.h5")]):
            if path.stat().st_size > 0:
                shutil.copy(path, place / path.name)
                names.append(path.name)
        for words in options(CLEAR):
            for name in names:
                told = []
                for tool in [REFERENCE / "h5clear", self.at / "links" / "h5clear"]:
                    shutil.copy(place / name, self.at / "c.h5")
                    (self.at / "c.h5").chmod(0o644)
                    done = subprocess.run([tool, *words, "c.h5"], cwd=self.at, capture_output=True, timeout=60)
                    size = subprocess.run([REFERENCE / "h5clear", "--filesize", "c.h5"], cwd=self.at, capture_output=True)
                    out = b"" if b"sage" in done.stdout else done.stdout
                    made = self.described(self.at / "c.h5")
                    told.append((done.returncode, out, size.stdout, made, b"warning" in done.stderr))
                with self.subTest(" ".join(["h5clear", *words, name])):
                    self.assertEqual(told[1], told[0])


if __name__ == "__main__":
    unittest.main()
