"""Thousands of random operations by Pumice on one file, beside a model in memory; h5py compares the
file with the model at intervals, and goes on with it now and then."""

import copy
import os
import random
import shutil
import subprocess

import h5py
import numpy as np
from h5py import h5o

from interop import InteropCase
from varlen import pack_all, to_json

FEW_ROUNDS = 5
ROUNDS = int(os.environ.get("PUMICE_RANDOM_ROUNDS", "20"))
STEPS = 120
TEXT = {"vlen": "string"}
LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Object:
    """A group or a dataset; names that share one are hard links to it."""

    def __init__(self, array=None, maxshape=None, fill=0):
        self.attributes, self.members = {}, {}
        self.array, self.maxshape, self.fill = array, maxshape, fill

    def is_group(self):
        return self.array is None

    def is_text(self):
        return self.array is not None and self.array.dtype.kind == "O"


def sizes(draw, limit):
    return tuple(draw.randrange(1, limit) for _ in range(draw.randrange(1, 4)))


def text(draw):
    return "".join(draw.choices(LETTERS, k=draw.choice([0, 1, 5, 30, 400])))


class Model:
    """Draws operations, carries them out on the model and writes them down."""

    def __init__(self, draw):
        self.draw, self.root, self.counter = draw, Object(), 0

    def name(self, what):
        self.counter += 1
        return f"{what}{self.counter}"

    def group(self):
        """A random group and its path."""
        found, path = self.root, ""
        while self.draw.random() < 0.7:
            inner = [
                n for n, what in found.members.items() if isinstance(what, Object) and what.is_group()
            ]
            if not inner:
                break
            chosen = self.draw.choice(inner)
            found, path = found.members[chosen], f"{path}/{chosen}"
        return found, path

    def any(self, wanted):
        """A random object of those that are wanted, and its path."""
        for _ in range(20):
            group, path = self.group()
            found = [
                (what, f"{path}/{name}")
                for name, what in group.members.items()
                if isinstance(what, Object) and wanted(what)
            ]
            if found:
                return self.draw.choice(found)
        return None

    def step(self, spec):
        choices = {
            self.make_group: 12,
            self.make_dataset: 14,
            self.write: 18,
            self.resize: 8,
            self.set_attribute: 16,
            self.remove_attribute: 6,
            self.rename_attribute: 3,
            self.hard_link: 5,
            self.soft_link: 4,
            self.rename: 5,
            self.unlink: 9,
            self.copy: 5,
            self.reopen: 1,
            self.flush: 2,
        }
        self.draw.choices(list(choices), list(choices.values()))[0](spec)

    def make_group(self, spec):
        group, path = self.group()
        name = self.name("g")
        spec.group(f"{path}/{name}")
        group.members[name] = Object()

    def make_dataset(self, spec):
        group, path = self.group()
        name, shape = self.name("d"), sizes(self.draw, 20)
        kind = self.draw.choice(["contiguous", "compact", "chunked", "filtered", "text", "texts"])
        options, maxshape = {}, None
        if kind in ("chunked", "filtered", "texts"):
            maxshape = tuple(self.draw.choice([None, n + 15]) for n in shape)
            options = {"chunks": [self.draw.randrange(1, 9) for _ in shape], "maxshape": maxshape}
        if kind == "filtered":
            options["filters"] = [{"id": 2, "parameters": [4]}, {"id": 1, "parameters": [2]}]
        if kind == "compact":
            options["compact"] = True
        if kind.startswith("text"):
            spec.op("dense", path=f"{path}/{name}", dtype=TEXT, shape=list(shape), **options)
            array, fill = np.full(shape, "", object), ""
        else:
            dtype = self.draw.choice(["<i4", "<f8", ">u2"])
            fill = self.draw.choice([0, 7])
            spec.create("dense", f"{path}/{name}", dtype, shape, fill=fill or None, **options)
            array = np.full(shape, fill, dtype)
        group.members[name] = Object(array, maxshape, fill)

    def write(self, spec):
        found = self.any(lambda what: not what.is_group() and what.array.size)
        if found is None:
            return
        item, path = found
        start = [self.draw.randrange(n) for n in item.array.shape]
        count = [self.draw.randrange(1, n - s + 1) for n, s in zip(item.array.shape, start)]
        place = tuple(slice(s, s + c) for s, c in zip(start, count))
        cells = int(np.prod(count))
        if item.is_text():
            values = [text(self.draw) for _ in range(cells)]
            item.array[place] = np.array(values + [None], object)[:-1].reshape(count)
            data = spec.store(np.frombuffer(pack_all(TEXT, values), "u1"))
            spec.op("write", path=path, start=start, count=count, data=data)
            return
        values = np.array([self.draw.randrange(1000) for _ in range(cells)], item.array.dtype)
        item.array[place] = values.reshape(count)
        spec.write_block(path, start, item.array[place])

    def resize(self, spec):
        found = self.any(lambda what: what.maxshape is not None)
        if found is None:
            return
        item, path = found
        shape = [
            self.draw.randrange(0 if self.draw.random() < 0.1 else 1, min(n or 40, 40) + 1)
            for n in item.maxshape
        ]
        spec.op("resize", path=path, shape=shape)
        new = np.full(shape, item.fill, item.array.dtype)
        both = tuple(slice(0, min(a, b)) for a, b in zip(shape, item.array.shape))
        new[both] = item.array[both]
        item.array = new

    def set_attribute(self, spec):
        found = self.any(lambda what: True)
        if found is None:
            return
        item, path = found
        name = f"a{self.draw.randrange(14)}"
        if self.draw.random() < 0.5:
            value = text(self.draw)
            data = spec.store(np.frombuffer(pack_all(TEXT, [value]), "u1"))
            spec.op("attribute", path=path, name=name, dtype=TEXT, shape=[], data=data)
        else:
            value = list(range(self.draw.choice([1, 5, 300])))
            spec.attribute(path, name, np.array(value, "<i8"))
        item.attributes[name] = value

    def remove_attribute(self, spec):
        found = self.any(lambda what: what.attributes)
        if found:
            item, path = found
            name = self.draw.choice(list(item.attributes))
            spec.op("remove_attribute", path=path, name=name)
            del item.attributes[name]

    def rename_attribute(self, spec):
        found = self.any(lambda what: what.attributes)
        if found:
            item, path = found
            name, new = self.draw.choice(list(item.attributes)), self.name("renamed")
            spec.op("rename_attribute", path=path, name=name, to=new)
            item.attributes[new] = item.attributes.pop(name)

    def hard_link(self, spec):
        found = self.any(lambda what: not what.is_group())
        if found:
            group, path = self.group()
            name = self.name("h")
            spec.op("hard", path=f"{path}/{name}", target=found[1])
            group.members[name] = found[0]

    def soft_link(self, spec):
        group, path = self.group()
        name, target = self.name("s"), "/" + text(self.draw)[:50]
        spec.op("soft", path=f"{path}/{name}", target=target)
        group.members[name] = target

    def victim(self):
        group, path = self.group()
        if not group.members:
            return None
        name = self.draw.choice(list(group.members))
        return group, name, f"{path}/{name}"

    def rename(self, spec):
        chosen = self.victim()
        if chosen is None:
            return
        group, name, path = chosen
        to, folder = self.group()
        if f"{folder}/".startswith(f"{path}/"):
            return
        new = self.name("m")
        spec.op("rename", path=path, to=f"{folder}/{new}")
        to.members[new] = group.members.pop(name)

    def unlink(self, spec):
        chosen = self.victim()
        if chosen and (self.draw.random() < 0.3 or not self.is_full(chosen)):
            group, name, path = chosen
            spec.op("unlink", path=path)
            del group.members[name]

    def is_full(self, chosen):
        what = chosen[0].members[chosen[1]]
        return isinstance(what, Object) and len(what.members) > 3

    def copy(self, spec):
        found = self.any(lambda what: len(what.members) < 12)
        if found:
            group, path = self.group()
            name = self.name("c")
            spec.op("copy", path=found[1], to=f"{path}/{name}")
            group.members[name] = copy.deepcopy(found[0])

    def reopen(self, spec):
        spec.op("reopen", path="/")

    def flush(self, spec):
        spec.op("flush", path="/")


class RandomOperations(InteropCase):
    def compare(self, item, wanted, path, known):
        address = h5o.get_info(item.id).addr
        self.assertIs(known.setdefault(address, wanted), wanted, f"{path} is another object")
        found = {name: np.asarray(item.attrs[name]).tolist() for name in item.attrs}
        self.assertEqual(found, wanted.attributes, path)
        if not wanted.is_group():
            values = item.asstr()[()] if wanted.is_text() else item[()]
            self.assertEqual(item.shape, wanted.array.shape, path)
            self.assertEqual(values.tolist(), wanted.array.tolist(), path)
            return
        self.assertEqual(set(item), set(wanted.members), path)
        for name, what in wanted.members.items():
            if isinstance(what, Object):
                self.compare(item[name], what, f"{path}/{name}", known)
            else:
                self.assertEqual(item.get(name, getlink=True).path, what)

    def check(self, path, model):
        known = {}
        with h5py.File(path, "r") as file:
            self.compare(file, model.root, "", known)

    def by_h5py(self, path, model, number):
        """A few changes by h5py in between."""
        with h5py.File(path, "r+") as file:
            file.create_group(f"by h5py {number}").attrs["a1"] = "text of h5py"
            made = Object()
            made.attributes["a1"] = "text of h5py"
            model.root.members[f"by h5py {number}"] = made

    def run_rounds(self, libver, rounds=ROUNDS, tools=True, **options):
        name = "-".join(map(str, [libver, *options.values()]))
        path = self.directory / f"{name}.h5"
        h5py.File(path, "w", libver=(libver, "latest"), **options).close()
        model = Model(random.Random(f"operations {name}"))
        for number in range(rounds):
            spec = self.specification(f"{name}-{number}")
            for _ in range(STEPS):
                model.step(spec)
            self.edit(spec, path)
            self.check(path, model)
            if number % 4 == 3:
                self.by_h5py(path, model, number)
        for command in (["h5dump", path], ["h5stat", path], ["h5repack", path, f"{path}.packed"]):
            if tools and shutil.which(command[0]):
                done = subprocess.run(command, capture_output=True, timeout=120, check=False)
                self.assertEqual(done.returncode, 0, f"{command}: {done.stderr[-500:]}")

    def test_in_a_file_of_the_oldest_format(self):
        self.run_rounds("earliest")

    def test_in_a_file_of_the_format_of_1_10(self):
        self.run_rounds("v110")

    def test_in_files_of_other_formats_and_strategies(self):
        for libver in ("v108", "v200"):
            with self.subTest(libver):
                # Tools of 1.10 do not read what 2.0 makes.
                self.run_rounds(libver, FEW_ROUNDS, tools=libver != "v200")
        for strategy in ("fsm", "page", "aggregate", "none"):
            for persist in (False, True) if strategy in ("fsm", "page") else (False,):
                with self.subTest(strategy=strategy, persist=persist):
                    self.run_rounds("v110", FEW_ROUNDS, fs_strategy=strategy, fs_persist=persist)
