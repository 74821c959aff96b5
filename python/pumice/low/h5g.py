"""Groups."""

from .h5i import GROUP as _GROUP
from .h5i import ObjectID, wrap

UNKNOWN, LINK, GROUP, DATASET, TYPE = -1, 3, 0, 1, 2


def text(name):
    """A name as str."""
    return name.decode("utf-8", "surrogateescape") if isinstance(name, bytes) else name


class GroupID(ObjectID):
    """A handle of a group."""

    kind = _GROUP

    def __init__(self, native, owner):
        super().__init__(native, owner)
        self.group = native.as_group()

    @property
    def links(self):
        """The links of the group."""
        from .h5l import LinkProxy

        return LinkProxy(self)

    def __contains__(self, name):
        return self.group.link(text(name)) is not None

    def __len__(self):
        return self.group.count()

    def __iter__(self):
        return iter([name.encode("utf-8", "surrogateescape") for name, _ in self.group.names()])

    def get_num_objs(self):
        """How many members it has."""
        return self.group.count()

    def unlink(self, name):
        """Takes a link away."""
        self.group.unlink(text(name))

    def get_create_plist(self):
        """How it was made."""
        from .h5p import PropGCID

        return PropGCID(self.group)

    def get_comment(self, name):
        """The comment of the object at a path, as bytes."""
        found = self.group.open(text(name))
        comment = found.as_group().comment if found.kind == "group" else None
        return (comment or "").encode("utf-8", "surrogateescape")


def open(loc, name):
    """The group at a path."""
    found = wrap(loc.group.open(text(name)), loc)
    if not isinstance(found, GroupID):
        raise ValueError("Not a group")
    return found


def create(loc, name, lcpl=None, gcpl=None):
    """Makes a group."""
    track = bool(gcpl is not None and gcpl.get_link_creation_order())
    if name is None:
        return wrap(unnamed(loc, lambda path: loc.group.create_group(path, track)), loc)
    return wrap(loc.group.create_group(text(name), track), loc)


_count = 0


def unnamed(loc, make):
    """An object that no link leads to: it goes with its handle unless it is linked."""
    global _count
    while True:
        _count += 1
        path = f"/.pumice-unnamed-{_count}"
        if loc.group.link(path) is None:
            break
    made = make(path)
    loc.group.unlink(path)
    return made


class GroupStat:
    """What get_objinfo tells."""

    def __init__(self, fileno, objno, nlink, type, mtime, linklen):
        self.fileno, self.objno, self.nlink = fileno, objno, nlink
        self.type, self.mtime, self.linklen = type, mtime, linklen


def get_objinfo(loc, name=".", follow_link=True):
    """Facts of an object."""
    import os

    kinds = {"group": GROUP, "dataset": DATASET, "datatype": TYPE}
    name = text(name)
    if not follow_link:
        found = loc.group.link(name)
        if found is not None and found[0] == "soft":
            return GroupStat((0, 0), (0, 0), 0, LINK, 0, len(found[1]) + 1)
    native = loc.group.open(name) if isinstance(loc, GroupID) else loc.native
    path = native.file_path
    fileno = (0, 0)
    if path is not None:
        found = os.stat(path)
        fileno = (found.st_dev & 0xFFFFFFFF, found.st_ino & 0xFFFFFFFF)
    address = native.address
    objno = (address & 0xFFFFFFFF, address >> 32)
    return GroupStat(fileno, objno, native.link_count, kinds[native.kind], native.modified or 0, 0)


def iterate(loc, func, startidx=0, obj_name="."):
    """Calls a function with the name of each member until it returns something."""
    group = loc.group.open(text(obj_name)).as_group()
    for name, _ in group.names()[startidx:]:
        result = func(name.encode("utf-8", "surrogateescape"))
        if result is not None:
            return result
    return None
