"""Links."""

from .h5g import text
from .h5o import sorted_names

TYPE_HARD, TYPE_SOFT, TYPE_EXTERNAL = 0, 1, 64
SAME_LOC = 0


class LinkInfo:
    """What get_info tells of a link."""

    def __init__(self, type, cset, corder):
        self.type = type
        self.cset = cset
        self.corder_valid = corder is not None
        self.corder = corder or 0
        self.u = 0


class LinkProxy:
    """The links of a group."""

    def __init__(self, group):
        self._id = group
        self._group = group.group

    def create_soft(self, new_name, target, lcpl=None, lapl=None):
        """Makes a link to a path."""
        self._group.link_soft(text(new_name), text(target))

    def create_hard(self, new_name, cur_loc, cur_name, lcpl=None, lapl=None):
        """Makes another name of an object."""
        self._group.link_object(text(new_name), cur_loc.group.open(text(cur_name)))

    def create_external(self, link_name, file_name, obj_name, lcpl=None, lapl=None):
        """Makes a link to a path of another file."""
        self._group.link_external(text(link_name), text(file_name), text(obj_name))

    def _find(self, name):
        found = self._group.link(text(name))
        if found is None:
            raise KeyError(f"Unable to get link info (component not found: {text(name)})")
        return found

    def exists(self, name, lapl=None):
        """Whether there is a link of a name."""
        return self._group.link(text(name)) is not None

    def get_val(self, name, lapl=None):
        """What a soft or external link leads to."""
        kind, path, file = self._find(name)
        encoded = [part.encode("utf-8", "surrogateescape") for part in (file, path) if part is not None]
        if kind == "soft":
            return encoded[0]
        if kind == "external":
            return tuple(encoded)
        raise ValueError("A hard link leads to no name")

    def get_info(self, name, lapl=None):
        """Facts of a link."""
        kinds = {"hard": TYPE_HARD, "soft": TYPE_SOFT, "external": TYPE_EXTERNAL}
        orders = dict(self._group.names()) if "/" not in text(name) else {}
        return LinkInfo(kinds.get(self._find(name)[0], 65), 1, orders.get(text(name)))

    def move(self, src_name, dst_loc, dst_name, lcpl=None, lapl=None):
        """Gives a link another name."""
        self._group.rename(text(src_name), text(dst_name))

    def visit(self, func, *, idx_type=0, order=0, obj_name=".", lapl=None, info=False):
        """Calls a function with every link below until it returns something."""
        start = self._group.open(text(obj_name))
        if start.kind != "group":
            return None

        def told(path, group, name):
            encoded = path.encode("utf-8", "surrogateescape")
            return func(encoded, _link_info(group, name)) if info else func(encoded)

        return walk_links(start, told)

    def iterate(self, func, *, idx_type=0, order=0, obj_name=".", startidx=0, lapl=None, info=False):
        """Calls a function with every link of a group until it returns something."""
        group = self._group.open(text(obj_name)).as_group()
        for name, _ in group.names()[startidx:]:
            encoded = name.encode("utf-8", "surrogateescape")
            result = func(encoded, _link_info(group, name)) if info else func(encoded)
            if result is not None:
                return result
        return None


def _link_info(group, name):
    kinds = {"hard": TYPE_HARD, "soft": TYPE_SOFT, "external": TYPE_EXTERNAL}
    return LinkInfo(kinds.get(group.link(name)[0], 65), 1, None)


def walk_links(start, func):
    """Calls a function with the path, the group and the name of every link below until it returns something."""
    seen = {start.address}
    stack = [(start.as_group(), "", iter(sorted_names(start.as_group())))]
    while stack:
        group, before, names = stack[-1]
        name = next(names, None)
        if name is None:
            stack.pop()
            continue
        result = func(before + name, group, name)
        if result is not None:
            return result
        link = group.link(name)
        if link is None or link[0] != "hard":
            continue
        below = group.open(name)
        if below.kind == "group" and below.address not in seen:
            seen.add(below.address)
            stack.append((below.as_group(), before + name + "/", iter(sorted_names(below.as_group()))))
    return None
