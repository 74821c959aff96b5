#!/usr/bin/env python3
"""Make debian-dependencies.mtx.gz: who depends on whom in Debian.

Rows and columns are the packages of one Debian release (component main, one
architecture), ordered by section and then by name, so that a section is a
square on the diagonal. Entry (i, j) says how strongly package i asks for
package j:

    4  Pre-Depends      3  Depends      2  Recommends      1  Suggests

A pair that is named in several fields keeps the strongest. Each alternative of
"a | b" counts; names that are not packages of the index themselves (virtual
packages, other architectures' packages) are left out.

The output depends on the input alone: the same Packages file gives the same
bytes on every machine with the same zlib.

    make_debian_dependencies.py [PACKAGES[.xz|.gz]] [-o OUT.mtx.gz]

Without an argument the index is downloaded from Debian's mirror.
"""

import argparse
import gzip
import hashlib
import io
import lzma
import pathlib
import re
import urllib.request

INDEX = "http://deb.debian.org/debian/dists/bookworm/main/binary-amd64/Packages.xz"
STRENGTH = {"Pre-Depends": 4, "Depends": 3, "Recommends": 2, "Suggests": 1}
NAME = re.compile(r"[a-z0-9][a-z0-9+.-]+")


def load(source):
    """The text of a Packages index, from a path or from the mirror."""
    if source is None:
        with urllib.request.urlopen(INDEX) as answer:
            raw = answer.read()
    else:
        raw = pathlib.Path(source).read_bytes()
    if raw[:6] == b"\xfd7zXZ\x00":
        raw = lzma.decompress(raw)
    elif raw[:2] == b"\x1f\x8b":
        raw = gzip.decompress(raw)
    return raw


def stanzas(text):
    """Every package of the index as a dictionary of the fields we need."""
    wanted = {"Package", "Section"} | set(STRENGTH)
    for block in text.split("\n\n"):
        fields, last = {}, None
        for line in block.splitlines():
            if line.startswith((" ", "\t")):
                if last:
                    fields[last] += line
                continue
            key, _, value = line.partition(":")
            last = key if key in wanted else None
            if last:
                fields[last] = value.strip()
        if "Package" in fields:
            yield fields


def named(relation):
    """The package names in a relation field, alternatives included."""
    for alternative in re.split(r"[,|]", relation):
        found = NAME.match(alternative.strip())
        if found:
            yield found.group()


def graph(packages):
    """Ordered package list and {(row, column): strength}, both zero-based."""
    order = sorted({(p.get("Section", ""), p["Package"]) for p in packages})
    place = {name: i for i, (_, name) in enumerate(order)}
    entries = {}
    for package in packages:
        row = place[package["Package"]]
        for field, strength in STRENGTH.items():
            for name in named(package.get(field, "")):
                column = place.get(name)
                if column is None:
                    continue
                key = (row, column)
                entries[key] = max(entries.get(key, 0), strength)
    return order, entries


def sections(order):
    """(section, first package number, packages) in order, one-based."""
    first = {}
    for i, (section, _) in enumerate(order):
        first.setdefault(section, [i + 1, 0])[1] += 1
    return [(s, *v) for s, v in first.items()]


def matrix_market(order, entries, digest):
    """The file's text, entries in row-major order."""
    out = io.StringIO()
    out.write("%%MatrixMarket matrix coordinate integer general\n")
    out.write("% Dependencies between the packages of Debian 12 (bookworm), main, amd64.\n")
    out.write("% 4 Pre-Depends, 3 Depends, 2 Recommends, 1 Suggests. Licence: CC0-1.0.\n")
    out.write(f"% From the package index with SHA-256 {digest}.\n")
    out.write("% Packages are ordered by section, then by name. Sections:\n")
    for section, start, count in sections(order):
        out.write(f"%   {start:6} {count:6} {section}\n")
    out.write(f"{len(order)} {len(order)} {len(entries)}\n")
    for (row, column), strength in sorted(entries.items()):
        out.write(f"{row + 1} {column + 1} {strength}\n")
    return out.getvalue()


def main():
    here = pathlib.Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("packages", nargs="?", help="a Packages index of Debian")
    parser.add_argument("-o", "--output", default=here / "debian-dependencies.mtx.gz")
    arguments = parser.parse_args()
    raw = load(arguments.packages)
    order, entries = graph(list(stanzas(raw.decode("utf-8"))))
    text = matrix_market(order, entries, hashlib.sha256(raw).hexdigest())
    with open(arguments.output, "wb") as file:
        with gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
            packed.write(text.encode("ascii"))
    print(f"{arguments.output}: {len(order)} packages, {len(entries)} relations")


if __name__ == "__main__":
    main()
