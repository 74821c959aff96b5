"""Every option of h5dump, h5ls, h5diff, h5stat, h5repack, h5copy, h5import and h5clear, one by one, beside the HDF5 tools that are
installed: the same exit code, the same bytes on standard output and in the files that are made. Left out
are help texts, versions, `-i`, whose numbers differ from run to run, subsets outside of a dataset, which are
errors here, and what newer releases print otherwise than Debian's 1.10.8, which the corpus'
own expectations (test_tools.py) have."""

import os
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile
import unittest

import h5py
import numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORPUS = pathlib.Path(os.environ.get("PUMICE_CORPUS", ROOT.parent / "shared" / "corpora"))
PUMICE = os.environ.get("PUMICE")
REFERENCE = pathlib.Path(os.environ.get("HDF5_TOOLS", "/usr/bin"))
STAGE = CORPUS / "stage"
# Each of these tests takes half a minute or more.
APART = True

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

COPY_FILES = ["tall.h5", "thlink.h5", "tattr.h5", "tnamed_dtype_attr.h5", "tslink.h5", "textlinksrc.h5", "tvlstr.h5",
              "tdatareg.h5", "tfilters.h5", "tbitfields.h5", "tudlink.h5", "tfvalues.h5", "tnullspace.h5",
              "tscalarstring.h5", "t128bit_float.h5", "torderattr.h5", "h5copy_extlinks_src.h5"]
# Release 1.10 ends by a signal where regions are copied with what they lead to. Equal committed datatypes are not
# made one by `allflags` here.
COPY_LEFT_OUT = {"tdatareg.h5": ("ref", "allflags", "--flag=ref"), "torderattr.h5": ("allflags",)}
COPY = """
-d /copy | -d copy | -d /a/b/c | -v -d /copy | -d /copy -f shallow | -d /copy -f soft | -d /copy -f ext | -d /copy -f ref
-d /copy -f noattr | -d /copy -f allflags | -d /copy -f nullmsg | -d /copy -f wrong | -v -d /copy -f soft -f ext
--destination=/copy --flag=ref --verbose | --enable-error-stack -v -d /copy | -v | -p -d /a/b/c | -vp -d /a/b/c
--parents --verbose --destination=/a/b/c
"""

# What HDF5's own tool heeds of a configuration; deviations are in docs/tools.md.
IMPORT_TYPES = [("int.txt", "TEXTIN"), ("uint.txt", "TEXTUIN"), ("real.txt", "TEXTFP"), ("real.txt", "TEXTFPE"), ("int.txt", "NONE")]
IMPORT_OUTPUT = """
 | OUTPUT-CLASS IN | OUTPUT-CLASS UIN | OUTPUT-CLASS FP | OUTPUT-CLASS STR | OUTPUT-CLASS NO | OUTPUT-SIZE 16 | OUTPUT-SIZE 7
OUTPUT-CLASS IN,OUTPUT-SIZE 8 | OUTPUT-CLASS UIN,OUTPUT-SIZE 64 | OUTPUT-CLASS FP,OUTPUT-SIZE 64
OUTPUT-ARCHITECTURE NATIVE | OUTPUT-ARCHITECTURE STD | OUTPUT-ARCHITECTURE IEEE | OUTPUT-ARCHITECTURE NO
OUTPUT-ARCHITECTURE STD,OUTPUT-BYTE-ORDER LE | OUTPUT-ARCHITECTURE STD,OUTPUT-BYTE-ORDER BE | OUTPUT-BYTE-ORDER BE
OUTPUT-ARCHITECTURE STD,OUTPUT-BYTE-ORDER NO | CHUNKED-DIMENSION-SIZES 2 2 | CHUNKED-DIMENSION-SIZES 4 5
CHUNKED-DIMENSION-SIZES 2 2,COMPRESSION-TYPE GZIP,COMPRESSION-PARAM 7 | COMPRESSION-TYPE GZIP | COMPRESSION-PARAM 3
CHUNKED-DIMENSION-SIZES 2 2,COMPRESSION-TYPE SZIP | CHUNKED-DIMENSION-SIZES 2 2,COMPRESSION-TYPE GZIP,COMPRESSION-PARAM 10
CHUNKED-DIMENSION-SIZES 2 | CHUNKED-DIMENSION-SIZES 0 2 | CHUNKED-DIMENSION-SIZES 2 2,MAXIMUM-DIMENSIONS 6 -1
MAXIMUM-DIMENSIONS 6 6 | CHUNKED-DIMENSION-SIZES 2 2,MAXIMUM-DIMENSIONS 2 2 | EXTERNAL-STORAGE ext.bin
EXTERNAL-STORAGE ext.bin,CHUNKED-DIMENSION-SIZES 2 2 | UNKNOWN 3 | RANK 3 | DIMENSION-SIZES 2 2
"""
IMPORT_WORDS = """
-d 3,4 | -d 3,4 -p /x/y | -dims 3,4 | -d 3,4 -t TEXTIN | -d 3,4 -type TEXTFP | -d 3,4 -t TEXTIN -s 16 | -d 20 -t TEXTIN
-d 3,4 -t TEXTIN -size 64 | -d 12 -t TEXTIN | -d 3,4 -t WRONG | -d 3,4 -s 33 -t TEXTIN | -t TEXTIN |  | -p x | -d 3,4 -z | -c
-d 3,4 -path q -type TEXTFP -size 32 | -c words.conf | -config words.conf | -c absent.conf
"""


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

    def test_h5ls_addresses_of_chunks(self):
        place = self.place("h5ls", [])
        for bounds, block in (("earliest", 0), ("v110", 0), ("v110", 512)):
            with h5py.File(place / "chunks.h5", "w", libver=bounds, userblock_size=block) as file:
                values = numpy.arange(30).reshape(5, 6)
                kinds = (("one", (5, 6), None), ("fixed", (2, 3), None), ("rows", (2, 3), (None, 6)),
                         ("both", (2, 3), (None, None)))
                for name, chunk, shape in kinds:
                    file.create_dataset(name, data=values, chunks=chunk, maxshape=shape)
                    file.create_dataset(f"{name}_gz", data=values, chunks=chunk, maxshape=shape, compression="gzip")
                file.create_dataset("partly", (50, 6), "i4", chunks=(2, 3))[10:14] = 1
                file.create_dataset("contiguous", data=values)
                file.create_dataset("unwritten", (5,), "f8")
            self.compare("h5ls", place, ["-av", "chunks.h5"])
        with h5py.File(place / "type.h5", "w") as file:
            file["type"] = numpy.dtype("i2")
            h5py.h5o.set_comment(file["type"].id, b"of short numbers")
        # Releases differ in the line of the type.
        for folder in (REFERENCE, self.at / "links"):
            listed = subprocess.run([folder / "h5ls", "-v", place / "type.h5"], capture_output=True, timeout=60).stdout
            self.assertIn(b'    Comment:   "of short numbers"\n', listed)
        for name in ("filters", "layout", "layout2", "layout3", "layouto", "ext", "f32le_ex", "hlink", "attr", "fill"):
            for path in (STAGE / "h5repack").rglob(f"h5repack_{name}.h5"):
                shutil.copy(path, place / path.name)
                self.compare("h5ls", place, ["-arv", path.name])

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

    def test_h5stat_of_other_files(self):
        # A header of version 1 and maps of virtual datasets are measured otherwise.
        left_out = {"tstr.h5", "vds-eiger.h5"}
        found = sorted([*(STAGE / "h5dump").rglob("*.h5"), *(STAGE / "h5repack").rglob("*.h5")])
        place = self.at / "all"
        place.mkdir()
        for path in found:
            if path.name not in left_out and path.stat().st_size < 2 << 20:
                shutil.copy(path, place / path.name)
        for path in sorted(place.iterdir()):
            for words in [[], ["-g", "-l", "20"], ["-fFgGdDTAsS"]]:
                self.compare("h5stat", place, [*words, path.name])

    def both(self, tool, words, place):
        """What HDF5's tool and ours do, and what is then in out.h5."""
        told = []
        for path in [REFERENCE / tool, self.at / "links" / tool]:
            for name in ["out.h5", "ext.bin"]:
                (place / name).unlink(missing_ok=True)
            done = subprocess.run([path, *words], cwd=place, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
            made = self.described(place / "out.h5") if done.returncode == 0 else ""
            # Objects that references lead to are named after their addresses.
            made = re.sub(r"~obj_pointed_by_\d+", "~", made)
            told.append((done.returncode, b"" if b"sage" in done.stdout else done.stdout, made))
        with self.subTest(" ".join([tool, *words])):
            self.assertEqual(told[1], told[0])

    def objects(self, path):
        """Some objects of a file, and one that is not there; those that lead somewhere."""
        listed = subprocess.run([REFERENCE / "h5ls", "-r", path], capture_output=True, text=True, errors="replace").stdout
        found = [re.split(r"\s+(?=Group|Dataset|Soft|Type|External|UD)", line) for line in listed.splitlines()]
        named = [one for one in found if len(one) == 2]
        links = {name for name, what in named if "Link" in what or "link" in what}
        return [name for name, _ in named][:6] + ["/nope"], links

    def test_h5copy(self):
        place = self.at / "copy"
        place.mkdir()
        for name in COPY_FILES:
            shutil.copy(sorted(STAGE.rglob(name))[0], place / name)
        for name in COPY_FILES:
            sources, links = self.objects(place / name)
            for source in sources:
                for words in options(COPY):
                    left_out = any(word in COPY_LEFT_OUT.get(name, ()) for word in words)
                    # Release 1.10 makes no groups on the way to a link.
                    if left_out or (source in links and "/a/b/c" in " ".join(words)):
                        continue
                    self.both("h5copy", [*words, "-i", name, "-o", "out.h5", "-s", source], place)

    def test_h5import(self):
        place = self.at / "import"
        place.mkdir()
        (place / "int.txt").write_text("1 2 3 4\n5 6 7 8\n9 -10 11 12\n")
        (place / "uint.txt").write_text("1 2 3 4\n5 6 7 8\n9 10 11 12\n")
        (place / "real.txt").write_text("1.5 2 3.25e1 4\n5 6 -7e-2 8\n9 10 11 12.125\n")
        (place / "text.txt").write_text("".join(f"line {number}\n" for number in range(12)))
        sources = [(name, kind, size) for name, kind in IMPORT_TYPES for size in [8, 16, 32, 64, 24]]
        for kind, letters, sizes in [("IN", "bhiq", [8, 16, 32, 64]), ("UIN", "BHIQ", [8, 16, 32, 64]), ("FP", "fd", [32, 64])]:
            for letter, size in zip(letters, sizes):
                name = f"{kind}{size}.bin"
                (place / name).write_bytes(struct.pack(f"=12{letter}", *range(12)))
                sources.append((name, kind, size))
        for name, kind, size in sources:
            for row in IMPORT_OUTPUT.strip("\n").splitlines():
                for extra in row.split("|"):
                    lines = [f"INPUT-CLASS {kind}", f"INPUT-SIZE {size}", "RANK 2", "DIMENSION-SIZES 3 4", "PATH /a/b"]
                    (place / "c.conf").write_text("\n".join([*lines, *extra.strip().split(",")]) + "\n")
                    with self.subTest(f"{kind} {size} {extra}"):
                        self.both("h5import", [name, "-c", "c.conf", "-o", "out.h5"], place)
        (place / "c.conf").write_text("INPUT-CLASS STR\nRANK 1\nDIMENSION-SIZES 12\nPATH s\n")
        self.both("h5import", ["text.txt", "-c", "c.conf", "-o", "out.h5"], place)
        (place / "words.conf").write_text("INPUT-CLASS TEXTIN\nINPUT-SIZE 32\nRANK 2\nDIMENSION-SIZES 3 4\nPATH w\n")
        for words in options(IMPORT_WORDS):
            for end in [["-o", "out.h5"], ["-outfile", "out.h5"], []]:
                self.both("h5import", ["int.txt", *words, *end], place)

    def described(self, path, *options):
        """What Debian's h5dump shows of a file, without places and sizes."""
        words = [REFERENCE / "h5dump", "-p", *options, path]
        done = subprocess.run(words, capture_output=True, text=True, errors="replace")
        text = re.sub(r'HDF5 "[^"]*"', "", done.stdout)
        return re.sub(r"(OFFSET|DATASET|GROUP|#|SIZE) ?\d+( \([\d.]+:1 COMPRESSION\))?", r"\1", text)

    def test_h5repack(self):
        found = {path.name for path in (STAGE / "h5repack").rglob("*.h5")}
        place = self.place("h5repack", [name for name in REPACK_FILES if name in found])
        tried = [(path.name, options(REPACK)) for path in sorted(place.iterdir())]
        # No dataset of strings can have a checksum.
        self.place("h5dump", ["tvlstr.h5"])
        shutil.copy(self.at / "h5dump" / "tvlstr.h5", place)
        tried.append(("tvlstr.h5", options("-f FLET | -v -f FLET | -f FLET -l CHUNK=2")))
        for name, table in tried:
            for words in table:
                told = []
                for tool in [REFERENCE / "h5repack", self.at / "links" / "h5repack"]:
                    new = place / "new.h5"
                    new.unlink(missing_ok=True)
                    done = subprocess.run([tool, *words, name, "new.h5"], cwd=place, capture_output=True, timeout=60)
                    made = self.described(new, "-B") if done.returncode == 0 else ""
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
                    made = self.described(self.at / "c.h5", "-B")
                    told.append((done.returncode, out, size.stdout, made, b"warning" in done.stderr))
                with self.subTest(" ".join(["h5clear", *words, name])):
                    self.assertEqual(told[1], told[0])


if __name__ == "__main__":
    unittest.main()
