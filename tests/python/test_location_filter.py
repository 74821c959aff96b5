"""The location filter: the page's examples, every choice of a writer, damage, and Pumice."""

import collections
import math
import unittest

import numpy as np

from canonical_space import edges_of, plain_form
from hdf5_bytes import LOCATION, FormatError, sealed
from interop import InteropCase
from location_builder import Choice, compact_form, location_encode, stream, varint
from location_filter import (
    BITMAP,
    BYTES,
    CELLS,
    CONSTANT,
    PACKED,
    RUNS,
    VERBATIM,
    decode_cells,
    location_decode,
)
from sparse_cases import random_values
from structured_decoder import decode, undo
from structured_space import decode_dataspace

PLAIN = bytes.fromhex(
    "01000810000000 0101000000000000 0a00000000000000 02000000 03000000 00 02 01000000"
    "0200 0200 0300 0700 0700 d3502c89"
)
COMPACT = bytes.fromhex("01 01 01 0a 00 03 01 00 01 8c 22231163")
RECTANGLE = bytes.fromhex("01 02 02 64 64 01 02 01 0b 01 05 ee 7f 1c 00 27 e9f7d80e")


def regular(shape, pattern):
    """Truth values of a regular hyperslab, (start, stride, count, block) per axis."""
    defined = np.ones(shape, bool)
    for axis, (start, stride, count, block) in enumerate(pattern):
        places = (start + stride * np.arange(count)[:, None] + np.arange(block)).reshape(-1)
        inside = np.isin(np.arange(shape[axis]), places)
        defined &= inside.reshape([-1 if a == axis else 1 for a in range(len(shape))])
    return defined


def boxes(rng, shape, count, most):
    defined = np.zeros(shape, bool)
    for _ in range(count):
        start = [int(rng.integers(n)) for n in shape]
        defined[tuple(slice(s, s + int(rng.integers(1, most + 1))) for s in start)] = True
    return defined


def sets(rng, shape):
    """{name: truth values} of sets with all kinds of structure."""
    rank = len(shape)
    for density in (0.0005, 0.01, 0.1, 0.5, 0.9, 0.99):
        yield f"random {density}", rng.random(shape) < density
    yield "all", np.ones(shape, bool)
    yield "one hole", np.arange(math.prod(shape)).reshape(shape) != math.prod(shape) // 3
    yield "one box", regular(shape, [(n // 5, 1, 1, max(1, n // 3)) for n in shape])
    yield "few boxes", boxes(rng, shape, 3, max(shape) // 4)
    yield "many boxes", boxes(rng, shape, 60, 5)
    yield "all but boxes", ~boxes(rng, shape, 8, 6)
    yield "grid", regular(shape, [(1, 3, (n - 1) // 3, 2) for n in shape])
    columns = [(0, 1, 1, n) for n in shape[:-1]] + [(2, 7, shape[-1] // 7, 3)]
    yield "columns", regular(shape, columns)
    strips = [(1, 4, (n - 1) // 4, 1) for n in shape[:1]] + [(3, 1, 1, 5)] * (rank - 1)
    yield "strips", regular(shape, strips)
    place = np.indices(shape)
    yield "diagonals", np.isin(place.sum(axis=0) % 37, (3, 4, 20))
    yield "rows of any length", place[-1] < rng.integers(0, shape[-1], (*shape[:-1], 1))
    yield "across rows", np.arange(math.prod(shape)).reshape(shape) % 97 > 60


def width_sets():
    """Sets whose largest number is the last to fit into 2 bytes, or the first not to."""
    for size in (65_534, 65_535):
        yield f"block {size}", regular((12, 65_540), [(0, 2, 6, 1), (0, 1, 1, size)])
        yield f"count {size}", regular((131_072,), [(0, 2, size, 1)])
    for size in (65_535, 65_536):
        yield f"start {size}", regular((65_545,), [(size, 2, 4, 1)])
        yield f"stride {size}", regular((6, 65_540), [(0, 2, 3, 1), (1, size, 2, 1)])
        yield f"coordinate {size}", np.isin(np.arange(65_540), (3, 9, 10, size))
        blocks = np.arange(2 * size + 2) % 2 == 0
        blocks[1] = True
        yield f"blocks {size - 1}", blocks


class Forms(unittest.TestCase):
    def test_examples_are_the_documented_bytes(self):
        defined = np.isin(np.arange(10), (2, 3, 7))
        self.assertEqual(plain_form([10], edges_of(defined)), PLAIN)
        self.assertEqual(location_decode(COMPACT, len(PLAIN)), PLAIN)
        self.assertEqual(compact_form(defined, Choice(kind=1)), COMPACT)
        box = np.zeros((100, 100), bool)
        box[20:50, 30:70] = True
        dims, edges = decode_cells(RECTANGLE)
        self.assertEqual(dims, [100, 100])
        np.testing.assert_array_equal(edges, edges_of(box))
        self.assertEqual(location_decode(RECTANGLE, 100), plain_form(dims, edges_of(box)))
        self.assertEqual(compact_form(box, Choice(kind=2, axes=1)), RECTANGLE)

    def test_verbatim_is_restored(self):
        for data in (b"", b"anything", PLAIN):
            self.assertEqual(location_decode(b"\0" + data, len(data)), data)

    def test_every_choice_of_a_writer_is_undone(self):
        rng = np.random.default_rng(41)
        for shape in ((700,), (19, 23), (6, 7, 11), (3, 1, 5, 8)):
            combinations = 3 * 2 * 3 << (len(shape) - 1)
            for name, defined in sets(rng, shape):
                wanted = edges_of(defined)
                for number in range(combinations):
                    choice = Choice.of(number, len(shape))
                    dims, edges = decode_cells(compact_form(defined, choice))
                    self.assertEqual(dims, list(shape))
                    np.testing.assert_array_equal(edges, wanted, f"{name} {shape} {choice}")

    def test_canonical_form_holds_the_cells_and_is_the_smallest(self):
        rng = np.random.default_rng(42)
        for shape in ((600,), (37, 29), (9, 11, 13), (5, 1, 7, 8)):
            for name, defined in sets(rng, shape):
                plain = plain_form(list(shape), edges_of(defined))
                extent, selection = decode_dataspace(plain[:-4], name)
                self.assertEqual(extent.dims, list(shape))
                np.testing.assert_array_equal(selection.cells, np.flatnonzero(defined))
                self.assertTrue(selection.smallest, name)

    def test_large_numbers_of_every_form_are_read(self):
        cells = 1 << 48
        for number in (254, 255, 256, 65_790, 1 << 24, cells - 2):
            for form in (CONSTANT, PACKED, BYTES):
                body = stream([number], form)
                image = sealed(bytes([1, 1, 1]) + varint(cells) + b"\0\1" + body)
                np.testing.assert_array_equal(decode_cells(image)[1], [number, number + 1])


class Damage(unittest.TestCase):
    def refused(self, image, message):
        with self.assertRaises(FormatError, msg=image.hex(" ")) as caught:
            location_decode(image, 1000)
        self.assertIn(message, str(caught.exception))

    def test_every_flipped_bit_is_noticed(self):
        for image in (COMPACT, RECTANGLE):
            for bit in range(8, 8 * len(image)):
                damaged = bytearray(image)
                damaged[bit // 8] ^= 1 << bit % 8
                self.refused(bytes(damaged), "checksum")

    def test_every_broken_rule_is_noticed(self):
        for text, message in (
            ("01 03 01 0a 00 03 01 00 01 8c", "kind"),
            ("01 09 01 0a 00 03 01 00 01 8c", "kind"),
            ("01 01 00 00 03 01 00 01 8c", "rank"),
            ("01 01 21" + "01" * 33 + "00 01 00 00", "rank"),
            ("01 01 01 00 00 00 00 00", "dimensions"),
            ("01 01 02 8080808008 8080808008 00 00 00 00", "cells"),
            ("01 01 01 0a 01 03 01 00 01 8c", "axes"),
            ("01 01 02 0a 0a 02 03 01 00 01 8c", "axes"),
            ("01 01 01 8a00 00 03 01 00 01 8c", "zero byte"),
            ("01 01 01 8080808080808080808001 00 00 00 00", "63 bits"),
            ("01 01 01 0a 00 0b 00 00", "11 cells or runs"),
            ("01 01 01 0a 00 03 01 00 01 8c 00", "after the body"),
            ("01 01 01 0a 00 03 01 00 01", "bytes wanted"),
            ("01 01 01 0a 00 03 03 00 01 8c", "stream form"),
            ("01 01 01 0a 00 01 01 31 01 01 00000000000000", "k 49"),
            ("01 01 01 0a 00 01 01 30 01 02 000000000000", "above 2^48"),
            ("01 01 01 0a 00 03 01 00 01 0c", "ones"),
            ("01 01 01 0a 00 03 01 00 01 9c", "ones"),
            ("01 01 01 0a 00 03 01 00 81 8c", "bytes wanted"),
            ("01 01 01 0a 00 01 01 02 01 01 05", "beyond the last number"),
            ("01 01 01 0a 00 0a 00 01", "outside the chunk"),
            ("01 01 01 0a 00 01 00 8080808080808001", "number"),
            ("01 01 01 0a 00 01 02 0b 00", "in a chunk of 10"),
            ("01 01 01 0a 00 01 02 0a 00", "outside the chunk"),
            ("01 01 01 0a 00 01 02 05 01", "large width"),
            ("01 01 01 0a 00 01 02 ff 00", "large width"),
            ("01 01 01 0a 00 01 02 ff 07 00000000000000", "large width"),
            ("01 02 01 0a 00 02 00 04 00 01", "beyond the chunk"),
            ("01 02 01 0a 00 01 00 05 00 05", "beyond the chunk"),
            ("01 00 01 0a 00 01 04", "beyond the last cell"),
            ("01 00 01 0a 00 01", "bytes wanted"),
            ("01 02 01 808080c001 00 81808002 00 00 00 00", "4194305 runs"),
        ):
            with self.subTest(text):
                self.refused(sealed(bytes.fromhex(text)), message)
        self.refused(b"", "no mode")
        self.refused(b"\x02" + PLAIN, "mode 2")
        self.refused(b"\x01\x01", "checksum")

    def test_a_form_that_should_be_verbatim_is_noticed(self):
        defined = np.arange(800) % 2 == 0
        wasteful = compact_form(defined, Choice(kind=2, form=BYTES))
        self.refused(wasteful, "bytes became")
        encoded = location_encode(plain_form([800], edges_of(defined)), Choice(2, form=BYTES))
        self.assertEqual(encoded[0], VERBATIM)


class SectionsOfPumice(InteropCase):
    """The same cells with and without the filter: section 0 must come out the same."""

    TWINS = {"plain": [], "filtered": [(LOCATION, [])]}

    @staticmethod
    def place(number):
        """The group of a set: the decoder wants few links in each."""
        return f"/{number // 8}/{number}"

    def write_twins(self, name, named_sets):
        """One chunk per dataset, all sets of one shape in a file."""
        spec = self.specification(name)
        rng = np.random.default_rng(43)
        for number, defined in enumerate(named_sets.values()):
            cells = np.argwhere(defined).astype(np.uint64)
            values = random_values(rng, len(cells), "u1")
            if number % 8 == 0:
                spec.group(f"/{number // 8}")
            spec.group(self.place(number))
            for twin, chain in self.TWINS.items():
                path = f"{self.place(number)}/{twin}"
                filters = [[{"id": i, "parameters": p} for i, p in chain], []]
                options = {"chunks": defined.shape, "filters": filters}
                spec.create("sparse", path, "u1", defined.shape, **options)
                spec.write_points(path, cells, values)
        return self.write(spec, f"{name}.h5")

    def section(self, image, dataset, met):
        """Section 0 of the only chunk; counts what the filter wrote."""
        (record,) = dataset.chunks.values()
        data = image[record.address : record.address + record.offsets[1]]
        chain = dataset.filters.get(0, [])
        mask = record.masks[0] if chain else 0
        if chain:
            encoded = undo(chain, mask | 1, data, len(data) + 10_000_000, "section 0")
            met["skipped" if mask & 1 else tuple(encoded[: 1 + encoded[0]])] += 1
            data = undo(chain, mask, data, record.unfiltered[0], "section 0")
        return data

    def test_section_0_is_restored_byte_for_byte(self):
        rng, met = np.random.default_rng(44), collections.Counter()
        for shape in ((5000,), (90, 110), (24, 30, 36), (9, 8, 1, 50), "widths"):
            named_sets = dict(sets(rng, shape) if shape != "widths" else width_sets())
            named_sets = {name: defined for name, defined in named_sets.items() if defined.any()}
            path = self.write_twins(f"shape{shape}", named_sets)
            image, found = path.read_bytes(), decode(path)
            for number, (name, defined) in enumerate(named_sets.items()):
                with self.subTest(name, shape=shape):
                    wanted = self.section(image, found[f"{self.place(number)}/plain"], met)
                    self.assertEqual(wanted, plain_form(list(defined.shape), edges_of(defined)))
                    restored = self.section(image, found[f"{self.place(number)}/filtered"], met)
                    self.assertEqual(restored, wanted)
        kinds = {key[1] & 3 for key in met if key != "skipped"}
        self.assertEqual(kinds, {BITMAP, CELLS, RUNS}, f"kinds met: {met}")
