"""Random operations done by h5py and by pumice: equal answers, equal errors, and files that the other reads."""

import random

import h5py
import numpy as np
import pytest

import pumice

DTYPES = ["<i4", ">i2", "u1", "<f8", ">f4", "S4", "?", "<c16", "struct", "text"]
NAMES = ["a", "b", "g/a", "g/b", "g/h/c", "d"]
STRUCT = np.dtype([("a", "<i4"), ("b", "<f8"), ("c", "S2")])


def dtype_of(library, name):
    if name == "struct":
        return STRUCT
    return library.string_dtype() if name == "text" else np.dtype(name)


def some(rng, name, shape):
    """Values of a dtype."""
    count = int(np.prod(shape))
    numbers = [rng.randrange(100) for _ in range(count)]
    if name == "struct":
        return np.array([(n, n / 2, str(n).encode()) for n in numbers], STRUCT).reshape(shape)
    if name == "text":
        return np.array(["é" * (n % 7) for n in numbers], dtype=object).reshape(shape)
    if name.endswith("S4"):
        return np.array([str(n).encode() for n in numbers], "S4").reshape(shape)
    return np.array(numbers).astype(name).reshape(shape)


def index(rng, shape):
    """An index of some kind; now and then one that is wrong."""
    if not shape:
        return rng.choice([(), Ellipsis, 0, slice(None)])
    if rng.random() < 0.1:
        mask = np.array([rng.random() < 0.4 for _ in range(int(np.prod(shape)))], bool)
        return mask.reshape(shape)
    items, listed = [], False
    for side in shape[: rng.randint(0, len(shape))]:
        kind = rng.choice(["int", "slice", "slice", "step", "list", "mask", "all"])
        if kind == "int":
            items.append(rng.randint(-side - 1, side))
        elif kind == "slice":
            items.append(slice(rng.choice([None, rng.randint(-side - 2, side + 2)]), rng.randint(-side - 2, side + 2)))
        elif kind == "step":
            items.append(slice(rng.randint(0, side), None, rng.randint(1, 4)))
        elif kind == "all" or listed:
            items.append(slice(None))
        elif kind == "list":
            listed = True
            picked = sorted(rng.sample(range(side), rng.randint(0, side))) if side else []
            if rng.random() < 0.1:
                picked = picked[::-1]
            items.append(picked)
        else:
            listed = True
            items.append(np.array([rng.random() < 0.5 for _ in range(side)], bool))
    if not listed and rng.random() < 0.3:
        items.insert(rng.randint(0, len(items)), Ellipsis)
    return tuple(items) if len(items) != 1 or rng.random() < 0.5 else items[0]


def plain(value):
    """A value as something that can be compared."""
    if isinstance(value, np.ndarray):
        if value.dtype.names:
            return [str(value.dtype), value.shape, value.tolist()]
        return [value.dtype.kind, value.dtype.itemsize if value.dtype.kind != "O" else 0, value.shape, value.tolist()]
    if isinstance(value, np.generic):
        return [value.dtype.kind, value.tolist()]
    return repr(value)


def answer(act):
    """What an operation returns, or the class of its error."""
    try:
        return plain(act())
    except Exception as error:  # noqa: BLE001
        for kind in (KeyError, IndexError, ValueError, TypeError, OSError, RuntimeError):
            if isinstance(error, kind):
                return kind.__name__
        raise


class Pair:
    """Two files, on which the same is done."""

    def __init__(self, seed, folder):
        self.rng = random.Random(seed)
        self.paths = [folder / "h5py.h5", folder / "pumice.h5"]
        self.libraries = [h5py, pumice]
        self.files = [library.File(path, "w") for library, path in zip(self.libraries, self.paths)]
        self.log = []
        for file in self.files:
            # Of paths that cannot be made, h5py leaves the groups on the way to them.
            file.create_group("g/h")

    def both(self, what, act):
        """The answers must be equal."""
        self.log.append(what)
        theirs, ours = (answer(lambda: act(library, file)) for library, file in zip(self.libraries, self.files))
        assert ours == theirs, f"{what}\nh5py:   {theirs}\npumice: {ours}\nbefore: {self.log[-8:]}"

    def name(self):
        return self.rng.choice(NAMES)

    def dataset(self):
        names = [name for name in NAMES if hasattr(self.files[0].get(name), "dtype")]
        return self.rng.choice(names) if names else None

    def kind(self, name):
        """Which of the dtypes a dataset has."""
        dtype = self.files[0][name].dtype
        if dtype.names:
            return "struct"
        return "text" if dtype.kind == "O" else dtype.str if dtype.kind != "b" else "?"

    # -- operations

    def create(self):
        rng, name = self.rng, self.name()
        kind = rng.choice(DTYPES)
        shape = tuple(rng.randint(0, 7) for _ in range(rng.randint(0, 3)))
        options = {}
        if shape and rng.random() < 0.6:
            if rng.random() < 0.5:
                options["maxshape"] = tuple(rng.choice([None, side + 3]) for side in shape)
            if rng.random() < 0.5:
                options["chunks"] = tuple(rng.randint(1, max(1, side)) for side in shape)
            if rng.random() < 0.5:
                options["compression"] = rng.choice(["gzip", "lzf", 3])
            options["shuffle"] = rng.random() < 0.5
            options["fletcher32"] = kind != "text" and rng.random() < 0.3
        if kind in ("<i4", "<f8", "u1") and rng.random() < 0.4:
            options["fillvalue"] = 7
        data = some(rng, kind, shape) if rng.random() < 0.6 else None

        def act(library, file):
            dtype = dtype_of(library, kind)
            made = file.create_dataset(name, shape, dtype, data=data, **options)
            return np.array([made.chunks is not None, made.compression or "", str(made.maxshape)])

        self.both(f"create {name} {kind} {shape} {options}", act)

    def read(self):
        name = self.dataset()
        if name is None:
            return
        where = index(self.rng, self.files[0][name].shape)
        self.both(f"read {name} {where!r}", lambda library, file: file[name][where])

    def write(self):
        name = self.dataset()
        if name is None:
            return
        dset = self.files[0][name]
        where = index(self.rng, dset.shape)
        kind = self.kind(name)
        try:
            found = dset[where]
            shape = np.shape(found)
        except Exception:  # noqa: BLE001
            shape = (2,)
        items = where if isinstance(where, tuple) else (where,)
        listed = any(isinstance(item, (list, np.ndarray)) for item in items)
        if self.rng.random() < 0.2 and not listed:
            shape = shape[1:]
        elif self.rng.random() < 0.1:
            shape = (*shape, 2)
        value = some(self.rng, kind, shape)
        if shape == () and kind != "struct":
            value = value[()]
        self.both(f"write {name} {where!r} {shape}", lambda library, file: file[name].__setitem__(where, value))

    def resize(self):
        name = self.dataset()
        if name is None or not self.files[0][name].shape:
            return
        size = tuple(self.rng.randint(0, 9) for _ in self.files[0][name].shape)
        most = self.files[0][name].maxshape
        if any(limit is not None and side > limit for side, limit in zip(size, most)):
            return
        self.both(f"resize {name} {size}", lambda library, file: file[name].resize(size))

    def attribute(self):
        name = self.dataset() or "/"
        kind = self.rng.choice(DTYPES)
        key = self.rng.choice("pqr")
        if self.rng.random() < 0.2:
            self.both(f"del attribute {name} {key}", lambda library, file: file[name].attrs.__delitem__(key))
            return
        value = some(self.rng, kind, self.rng.choice([(), (3,), (2, 2)]))
        value = value[()] if kind == "text" and value.shape == () else value

        def act(library, file):
            dtype = dtype_of(library, kind) if kind == "text" else None
            file[name].attrs.create(key, value, dtype=dtype)
            return file[name].attrs[key]

        self.both(f"attribute {name} {key} {kind}", act)

    def link(self):
        name, target = self.name(), self.name()
        kind = self.rng.choice(["soft", "hard", "move", "copy", "group"])

        def act(library, file):
            if kind == "soft":
                file[name] = library.SoftLink("/" + target)
            elif kind == "hard":
                file[name] = file[target]
            elif kind == "move":
                file.move(target, name)
            elif kind == "copy":
                file.copy(target, name)
            else:
                file.require_group(name)

        self.both(f"{kind} {name} {target}", act)

    def delete(self):
        name = self.name()
        self.both(f"delete {name}", lambda library, file: file.__delitem__(name))

    def look(self):
        self.both("keys", lambda library, file: np.array(sorted(file)))
        found = []
        self.both("visit", lambda library, file: [found.append(0), file.visit(lambda path: None)] and None)

    def step(self):
        act = self.rng.choice([self.create] * 4 + [self.read] * 6 + [self.write] * 6 + [self.resize, self.attribute,
                              self.attribute, self.link, self.delete, self.look])  # fmt: skip
        act()


def tree(file):
    """Everything in a file."""
    found = {}

    def put(path, thing):
        attributes = {key: plain(np.asarray(value)) for key, value in thing.attrs.items()}
        data = plain(np.asarray(thing[()])) if hasattr(thing, "dtype") else None
        found[path] = (data, attributes)

    put("/", file)
    file.visititems(put)
    return found


@pytest.mark.parametrize("seed", range(40))
def test_h5py_and_pumice_agree(tmp_path, seed):
    pair = Pair(seed, tmp_path)
    for _ in range(75):
        pair.step()
    for file in pair.files:
        file.close()
    found = []
    for path in pair.paths:
        for library in (h5py, pumice):
            with library.File(path, "r") as file:
                found.append(tree(file))
    assert found[0] == found[1] == found[2] == found[3]
