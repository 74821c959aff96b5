"""References to objects and to regions of datasets."""

OBJECT = 0
DATASET_REGION = 1


class Reference:
    """A reference to an object; false if it leads nowhere.

    Follow it with the file that it was read from: ``file[reference]``.
    """

    typecode = OBJECT
    __slots__ = ("native",)

    def __init__(self, native=None):
        if isinstance(native, Reference):
            native = native.native
        self.native = native

    def __bool__(self):
        return self.native is not None

    def __eq__(self, other):
        if not isinstance(other, Reference):
            return NotImplemented
        return self.typecode == other.typecode and self.native == other.native

    def __hash__(self):
        return hash((self.typecode, self.native))

    def __repr__(self):
        state = "" if self else " (null)"
        return f"<HDF5 object reference{state}>"


class RegionReference(Reference):
    """A reference to cells of a dataset; false if it leads nowhere."""

    typecode = DATASET_REGION
    __slots__ = ()

    def __repr__(self):
        state = "" if self else " (null)"
        return f"<HDF5 dataset region reference{state}>"


def _group(location):
    return location.group


def create(location, name, kind=OBJECT, space=None):
    """A reference to the object at a path of a group or file, or to cells of the dataset there."""
    if isinstance(name, bytes):
        name = name.decode("utf-8", "surrogateescape")
    if name == "." and not hasattr(location, "links"):
        name = location.name.decode("utf-8", "surrogateescape")
    if kind == DATASET_REGION:
        if space is None:
            raise ValueError("A region reference needs a dataspace with the cells")
        return RegionReference(_group(location).region(name, space.selection))
    return Reference(_group(location).reference(name))


def dereference(reference, location):
    """The object that a reference leads to; nothing if it leads nowhere."""
    from .h5i import wrap

    if not reference:
        return None
    return wrap(location.dereference(reference.native), location)


def get_region(reference, location):
    """The dataspace of a dataset with the cells that a reference means."""
    from .h5s import SpaceID

    if not reference:
        return None
    selection, shape = location.group.dereference_region(reference.native)
    return SpaceID(tuple(shape), selection=selection)


def get_name(reference, location):
    """The path of the object that a reference leads to, as bytes."""
    if not reference:
        return None
    path = location.group.path_of(reference.native.address)
    return None if path is None else path.encode("utf-8", "surrogateescape")


def get_obj_type(reference, location):
    """The kind of object that a reference leads to."""
    from . import h5g

    kinds = {"group": h5g.GROUP, "dataset": h5g.DATASET, "datatype": h5g.TYPE}
    return kinds[location.dereference(reference.native).kind]
