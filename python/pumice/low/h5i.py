"""Handles: what they are, and how they become one of the classes of this package."""

BADID, FILE, GROUP, DATATYPE, DATASPACE, DATASET, ATTR = -1, 1, 2, 3, 4, 5, 6


class ObjectID:
    """A handle of an object of a file."""

    kind = BADID

    def __init__(self, native, owner=None):
        self.native = native
        # The handle of the file that it was opened through.
        self.owner = owner

    @property
    def valid(self):
        """Whether the object is open."""
        return self.native.is_open

    def __bool__(self):
        return self.native.is_open

    @property
    def id(self):
        """A number for the object."""
        return self.native.address if self.valid else 0

    def close(self):
        """Lets go of the object."""
        self.native.close()

    _close = close

    def _where(self):
        return (self.native.file_path, self.native.address)

    def __eq__(self, other):
        if not isinstance(other, ObjectID):
            return NotImplemented
        if self is other:
            return True
        return self.valid and other.valid and self._where() == other._where()

    def __hash__(self):
        if not self.valid:
            raise TypeError("Objects that are closed have no hash")
        return hash(self._where())

    def dereference(self, reference):
        """The object that a reference of the file leads to."""
        return self.owner.group.dereference(reference)

    @property
    def name(self):
        """The path, as bytes; None if nothing leads there."""
        path = self.native.path
        other = self.native.file_path
        if other is not None and other != self.owner.path:
            # An external link has led to another file.
            path = self.native.file().root().path_of(self.native.address)
        elif path.startswith(("<", "/.pumice-unnamed-")):
            path = self.owner.group.path_of(self.native.address)
        return None if path is None else path.encode("utf-8", "surrogateescape")


def wrap(native, owner):
    """The handle of an object, as the class of its kind."""
    from .h5d import DatasetID
    from .h5g import GroupID
    from .h5t import committed

    owner = owner.owner if not hasattr(owner, "file_native") else owner
    kind = native.kind
    if kind == "group":
        return GroupID(native, owner)
    if kind == "dataset":
        return DatasetID(native, owner)
    return committed(native, owner)


def get_type(identifier):
    """The kind of a handle."""
    return getattr(identifier, "kind", BADID)


def get_name(identifier):
    """The path of an object, as bytes."""
    return identifier.name


def get_file_id(identifier):
    """The handle of the file of an object."""
    return identifier.owner


def is_valid(identifier):
    """Whether a handle is open."""
    return bool(identifier)


def get_ref(identifier):
    """How many handles like this one there are: no more than this one is counted."""
    return 1 if identifier else 0
