"""Objects."""

from .h5g import text
from .h5i import wrap

TYPE_GROUP, TYPE_DATASET, TYPE_NAMED_DATATYPE = 0, 1, 2
COPY_SHALLOW_HIERARCHY_FLAG, COPY_EXPAND_SOFT_LINK_FLAG = 1, 2
COPY_EXPAND_EXT_LINK_FLAG, COPY_EXPAND_REFERENCE_FLAG = 4, 8
COPY_WITHOUT_ATTR_FLAG, COPY_PRESERVE_NULL_FLAG = 16, 32


class ObjInfo:
    """What get_info tells of an object."""

    def __init__(self, native):
        self.type = {"group": TYPE_GROUP, "dataset": TYPE_DATASET, "datatype": TYPE_NAMED_DATATYPE}[native.kind]
        self.addr = native.address
        self.rc = native.link_count
        self.fileno = hash(native.file_path)
        self.mtime = native.modified or 0


def open(loc, name, lapl=None):
    """The object at a path."""
    return wrap(loc.group.open(text(name)), loc)


def get_info(loc, name=None, index=None, obj_name=".", lapl=None):
    """Facts of an object."""
    if name is not None:
        return ObjInfo(loc.group.open(text(name)))
    if index is not None:
        names = loc.group.open(text(obj_name)).as_group().names()
        return ObjInfo(loc.group.open(names[index][0]))
    return ObjInfo(loc.native)


def exists_by_name(loc, name, lapl=None):
    """Whether a path leads to an object."""
    return loc.group.leads(text(name))


def link(obj, loc, name, lcpl=None, lapl=None):
    """Gives an object a name."""
    loc.group.link_object(text(name), obj.native)


def copy(src_loc, src_name, dst_loc, dst_name, copypl=None, lcpl=None):
    """Copies an object."""
    flags = 0 if copypl is None else copypl.get_copy_object()
    chosen = tuple(bool(flags & flag) for flag in (1, 2, 4, 8, 16))
    src_loc.group.copy(text(src_name), dst_loc.group, text(dst_name), chosen)


def visit(loc, func, *, idx_type=0, order=0, obj_name=".", lapl=None, info=False):
    """Calls a function with the path of every object below until it returns something."""
    start = loc.group.open(text(obj_name))
    result = func(b".", ObjInfo(start)) if info else func(b".")
    if result is not None or start.kind != "group":
        return result
    return walk(start, lambda path, native: _told(func, path, native, info))


def _told(func, path, native, info):
    encoded = path.encode("utf-8", "surrogateescape")
    return func(encoded, ObjInfo(native)) if info else func(encoded)


def walk(start, visit):
    """Visits every object below one, each once, in the order of names."""
    seen = {start.address}
    stack = [_level(start, "")]
    while stack:
        group, before, names = stack[-1]
        name = next(names, None)
        if name is None:
            stack.pop()
            continue
        link = group.link(name)
        if link is None or link[0] != "hard":
            continue
        found = group.open(name)
        address = found.address
        if address in seen:
            continue
        seen.add(address)
        result = visit(before + name, found)
        if result is not None:
            return result
        if found.kind == "group":
            stack.append(_level(found, before + name + "/"))
    return None


def _level(native, before):
    group = native.as_group()
    return group, before, iter(sorted_names(group))


def sorted_names(group):
    """The names of a group, in order."""
    return sorted((name for name, _ in group.names()), key=lambda name: name.encode("utf-8", "surrogateescape"))


def ordered_names(group):
    """The names of a group: by creation where it tracks that, otherwise in order."""
    names = group.names()
    if names and all(order is not None for _, order in names):
        names.sort(key=lambda name: name[1])
        return [name for name, _ in names]
    return sorted_names(group)
