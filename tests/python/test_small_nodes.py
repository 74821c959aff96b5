"""Chunk indexes of few records to a node, begun by h5py and changed by Pumice: h5py finds everything.

libhdf5 makes version 2 B-trees with the node size of the layout message, which it never chooses so small
itself: the message is changed before there is a chunk.
"""

import random
import struct
import subprocess

import h5py
import numpy as np

from hdf5_bytes import lookup3
from interop import InteropCase, program

# Kind of index, bytes of a node, percent at which nodes are split and merged.
TREE = struct.Struct("<BIBB")


def sealed_headers(data):
    """Computes the checksums of object headers, which have one block each, anew."""
    at = data.find(b"OHDR")
    while at >= 0:
        flags, place = data[at + 5], at + 6
        place += (16 if flags & 0x20 else 0) + (4 if flags & 0x10 else 0)
        width = 1 << (flags & 3)
        end = place + width + int.from_bytes(data[place : place + width], "little")
        data[end : end + 4] = struct.pack("<I", lookup3(bytes(data[at:end])))
        at = data.find(b"OHDR", end)


class SmallNodes(InteropCase):
    def made(self, name, shape, node_size):
        """A file with a dataset without chunks, whose index will have such nodes."""
        path = self.directory / name
        with h5py.File(path, "w", libver=("v110", "v110")) as file:
            one = (1,) * len(shape)
            file.create_dataset("d", shape, "u1", maxshape=(None,) * len(shape), chunks=one)
        data = bytearray(path.read_bytes())
        usual = TREE.pack(5, 2048, 100, 40)
        self.assertEqual(data.count(usual), 1)
        at = data.find(usual)
        data[at : at + TREE.size] = TREE.pack(5, node_size, 100, 40)
        sealed_headers(data)
        path.write_bytes(data)
        return path

    def node_size(self, path):
        data = path.read_bytes()
        self.assertEqual(data.count(b"BTHD"), 1)
        return int.from_bytes(data[data.find(b"BTHD") + 6 :][:4], "little")

    def sound(self, path):
        command = program("PUMICE", "pumice")
        if command is None:
            self.skipTest("pumice is not built")
        done = subprocess.run([command, "check", path], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def changed(self, path, model, generator, number):
        """Pumice writes two thirds of the chunks in any order, then cuts some off; gives what is left."""
        specification = self.specification(f"{path.stem}-{number}")
        specification.op("resize", path="d", shape=list(model.shape))
        cells = list(np.ndindex(model.shape))
        generator.shuffle(cells)
        for cell in cells[: len(cells) * 2 // 3]:
            model[cell] = generator.randrange(1, 255)
            specification.write_block("d", cell, model[tuple(slice(at, at + 1) for at in cell)])
        self.edit(specification, path)
        with h5py.File(path) as file:
            np.testing.assert_array_equal(file["d"][...], model)
        self.sound(path)
        smaller = [generator.randrange(1, side + 1) for side in model.shape]
        specification = self.specification(f"{path.stem}-{number}-smaller")
        specification.op("resize", path="d", shape=smaller)
        self.edit(specification, path)
        inside = tuple(slice(0, side) for side in smaller)
        with h5py.File(path) as file:
            np.testing.assert_array_equal(file["d"][...], model[inside])
        self.sound(path)
        left = np.zeros_like(model)
        left[inside] = model[inside]
        return left

    def test_nodes_of_two_records_that_libhdf5_began(self):
        # Two records everywhere, and three in a leaf with two above.
        for shape, node_size in (((3, 4, 3, 4), 129), ((12, 12), 97)):
            with self.subTest(shape=shape):
                path = self.made(f"{node_size}.h5", shape, node_size)
                model, generator = np.zeros(shape, "u1"), random.Random(node_size)
                with h5py.File(path, "r+") as file:
                    # The first leaf is split; libhdf5 leaves one without a record.
                    for number in range(4):
                        cell = (0,) * (len(shape) - 1) + (3 - number,)
                        file["d"][cell] = model[cell] = number + 1
                self.assertEqual(self.node_size(path), node_size)
                for number in range(4):
                    model = self.changed(path, model, generator, number)
                    self.assertEqual(self.node_size(path), node_size)

    def test_small_nodes_changed_in_turns(self):
        # Twelve records in a leaf and eight above. Where nodes have three or five, libhdf5 merges two into
        # more than one can hold and writes past its end.
        shape, node_size = (12, 12), 300
        path = self.made("turns.h5", shape, node_size)
        model, generator = np.zeros(shape, "u1"), random.Random(7)
        for number in range(4):
            model = self.changed(path, model, generator, number)
            with h5py.File(path, "r+") as file:
                file["d"].resize(shape)
                np.testing.assert_array_equal(file["d"][...], model)
                for cell in np.ndindex(shape):
                    if generator.random() < 0.4:
                        file["d"][cell] = model[cell] = generator.randrange(1, 255)
            with h5py.File(path, "r+") as file:
                file["d"].resize((12, 9))
                model[:, 9:] = 0
            self.sound(path)
