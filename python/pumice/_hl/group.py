"""Groups: names and what they lead to."""

import posixpath
from collections.abc import Mapping

import numpy as np

from ..low import h5, h5d, h5g, h5i, h5o, h5r, h5t
from ..low.h5l import walk_links
from . import base, dtypes
from .base import HLObject, MutableMappingHDF5
from .datatype import Datatype
from .making import access_of


class HardLink:
    """A link that is a name of an object."""


class SoftLink:
    """A link to a path of the same file."""

    def __init__(self, path):
        self._path = str(path)

    @property
    def path(self):
        """The path."""
        return self._path

    def __repr__(self):
        return f'<SoftLink to "{self.path}">'


class ExternalLink:
    """A link to a path of another file."""

    def __init__(self, filename, path):
        from .compat import filename_decode, filename_encode

        self._filename = filename_decode(filename_encode(filename))
        self._path = path

    @property
    def path(self):
        """The path."""
        return self._path

    @property
    def filename(self):
        """The file."""
        return self._filename

    def __repr__(self):
        return f'<ExternalLink to "{self.path}" in file "{self.filename}"'


def _text(name):
    if isinstance(name, bytes):
        return name.decode("utf-8", "surrogateescape")
    if not isinstance(name, str):
        raise TypeError(f"Accessing a group is done with bytes or str, not {type(name)}")
    return name


def wrapped(oid):
    """An object of a file as the class of its kind."""
    from .dataset import Dataset

    kind = h5i.get_type(oid)
    if kind in (h5i.GROUP, h5i.FILE):
        return Group(oid)
    if kind == h5i.DATASET:
        return Dataset(oid)
    return Datatype(oid)


class Group(MutableMappingHDF5, HLObject):
    """A group of a file: a mapping from names to groups, datasets and datatypes."""

    def __init__(self, bind):
        if not isinstance(bind, h5g.GroupID):
            raise ValueError(f"{bind} is not a GroupID")
        HLObject.__init__(self, bind)

    @property
    def _group(self):
        return self.id.group

    # -- making

    def create_group(self, name, track_order=None, *, track_times=False):
        """Makes a group, and those on the way to it."""
        if track_order is None:
            track_order = h5.get_config().track_order
        if name is None:
            made = h5g.unnamed(self.id, lambda path: self._group.create_group(path, bool(track_order)))
            return Group(h5i.wrap(made, self.id))
        try:
            made = self._group.create_group(_text(name), bool(track_order))
        except (OSError, KeyError) as error:
            raise base.translated(error, ValueError, "Unable to create group") from None
        return Group(h5i.wrap(made, self.id))

    def create_dataset(self, name, shape=None, dtype=None, data=None, **kwds):
        """Makes a dataset; see the guide for its options."""
        from . import dataset

        if "track_order" not in kwds:
            kwds["track_order"] = h5.get_config().track_order
        if "efile_prefix" in kwds:
            kwds["efile_prefix"] = kwds["efile_prefix"]
        try:
            made = dataset.make_new_dset(self, shape, dtype, data, name, **kwds)
        except (KeyError, _read_only()) as error:
            raise base.translated(error, ValueError, "Unable to create dataset") from None
        return made

    def create_virtual_dataset(self, name, layout, fillvalue=None):
        """Makes a virtual dataset from a layout."""
        from .dataset import Dataset, fill_option

        options = {"shape": list(layout.shape), "parts": layout.parts(self.file.filename)}
        if layout.maxshape is not None:
            options["max_shape"] = [None if side is None else int(side) for side in layout.maxshape]
        datatype = dtypes.datatype_of(np.dtype(layout.dtype), dtypes.sizes_of(self._group))
        if fillvalue is not None:
            fill_option(options, fillvalue, np.dtype(layout.dtype), datatype, self._group)
        made = self._group.create_dataset(_text(name), datatype, options)
        return Dataset(h5i.wrap(made, self.id))

    def build_virtual_dataset(self, name, shape, dtype, maxshape=None, fillvalue=None):
        """Makes a virtual dataset from the layout that is filled within a with statement."""
        from contextlib import contextmanager

        from .vds import VirtualLayout

        @contextmanager
        def building():
            layout = VirtualLayout(shape, dtype, maxshape, self.file.filename)
            yield layout
            self.create_virtual_dataset(name, layout, fillvalue)

        return building()

    def require_dataset(self, name, shape, dtype, exact=False, **kwds):
        """The dataset of a name, which is made if it is not there; complains if it is another."""
        from .dataset import Dataset

        if name not in self:
            return self.create_dataset(name, shape=shape, dtype=dtype, **kwds)
        if isinstance(shape, (int, np.integer)):
            shape = (int(shape),)
        found = self[name]
        if not isinstance(found, Dataset):
            raise TypeError(f"Incompatible object ({found.__class__.__name__}) already exists")
        if tuple(shape) != found.shape:
            if kwds.get("maxshape") is None or tuple(kwds["maxshape"]) != found.maxshape:
                raise TypeError(f"Shapes do not match (existing {found.shape} vs new {shape})")
        if exact:
            if np.dtype(dtype) != found.dtype:
                raise TypeError(f"Datatypes do not exactly match (existing {found.dtype} vs new {dtype})")
        elif not np.can_cast(np.dtype(dtype), found.dtype):
            raise TypeError(f"Datatypes cannot be safely cast (existing {found.dtype} vs new {dtype})")
        found.id.access = access_of(self, **kwds)
        return found

    def create_dataset_like(self, name, other, **kwupdate):
        """Makes a dataset with the shape, type and storage of another."""
        for key in ("shape", "dtype", "chunks", "compression", "compression_opts", "scaleoffset", "shuffle",
                    "fletcher32", "fillvalue"):  # fmt: skip
            kwupdate.setdefault(key, getattr(other, key))
        kwupdate.setdefault("track_times", other.id.native.modified is not None)
        kwupdate.setdefault("fill_time", other.id.ds.creation()[1])
        if other.maxshape != other.shape or other.chunks is not None and other.shape is not None:
            if other.maxshape != other.shape:
                kwupdate.setdefault("maxshape", other.maxshape)
        return self.create_dataset(name, **kwupdate)

    def require_group(self, name):
        """The group of a name, which is made if it is not there."""
        if name not in self:
            return self.create_group(name)
        found = self[name]
        if not isinstance(found, Group):
            raise TypeError(f"Incompatible object ({found.__class__.__name__}) already exists")
        return found

    # -- the mapping

    def __getitem__(self, name):
        if isinstance(name, h5r.Reference):
            found = h5r.dereference(name, self.id)
            if found is None:
                raise ValueError("Invalid HDF5 object reference")
            return wrapped(found)
        if not isinstance(name, (str, bytes)):
            raise TypeError(f"Accessing a group is done with bytes or str, not {type(name)}")
        return wrapped(self._open(name))

    def _open(self, name):
        self._check_open()
        name = _text(name)
        try:
            return h5i.wrap(self._group.open(name or "."), self.id)
        except (KeyError, IndexError):
            raise KeyError(f"Unable to synchronously open object (object '{name}' doesn't exist)") from None
        except FileNotFoundError as error:
            raise KeyError(f"Unable to synchronously open object ({error})") from None

    def _check_open(self):
        if not self.id:
            raise ValueError("Invalid location identifier (the group or its file is closed)")

    def _has_link(self, name):
        self._check_open()
        return isinstance(name, (str, bytes)) and self._group.link(_text(name)) is not None

    def _through(self, name, mode, swmr, locking):
        """The object at a path through an external link, whose file is opened in a way of its own."""
        import os

        from .files import File

        main = self.file
        if main.id.get_intent() & 32 and (mode is not None or swmr is not None):
            raise ValueError("Files behind links cannot be opened in another way while this one is written beside readers")
        if main.mode == "r" and mode not in (None, "r"):
            raise ValueError("A file that is read leads to no file that is changed")
        mode = main.mode if mode is None else mode
        swmr = main.swmr_mode if swmr is None else swmr
        parts = _text(name).strip("/").split("/")
        group = main._group if _text(name).startswith("/") else self._group
        for at in range(1, len(parts) + 1):
            link = group.link("/".join(parts[:at]))
            if link is not None and link[0] == "external":
                path = os.path.join(os.path.dirname(os.path.abspath(main.filename)), link[2])
                found = File(path, mode, swmr=swmr and mode == "r", locking=locking)
                return found[posixpath.join(link[1], *parts[at:])]
        return self[name]

    def get(self, name, default=None, getclass=False, getlink=False, *, elink_mode=None, elink_swmr=None,
            elink_locking=None):  # fmt: skip
        """What a name leads to, or its class, its link, or the class of its link.

        ``elink_mode``, ``elink_swmr`` and ``elink_locking`` say how files behind external links are opened.
        """
        if elink_mode is not None or elink_swmr is not None or elink_locking is not None:
            if not getlink:
                try:
                    found = self._through(name, elink_mode, elink_swmr, elink_locking)
                except KeyError:
                    return default
                return type(found) if getclass else found
        if not (getclass or getlink):
            try:
                return self[name]
            except KeyError:
                return default
        if name not in self:
            if not getlink or self._group.link(_text(name)) is None:
                return default
        if getclass and not getlink:
            return type(self[name])
        kind, path, file = self._group.link(_text(name))
        if kind == "soft":
            return SoftLink if getclass else SoftLink(path)
        if kind == "external":
            return ExternalLink if getclass else ExternalLink(file, path)
        if kind == "hard":
            return HardLink if getclass else HardLink()
        raise TypeError("Unknown link type")

    def __setitem__(self, name, obj):
        name = _text(name)
        try:
            self._set(name, obj)
        except (OSError, KeyError) as error:
            raise base.translated(error, OSError, "Unable to create link") from None
        except ValueError as error:
            linked = isinstance(obj, (HLObject, SoftLink, ExternalLink))
            raise base.translated(error, OSError if linked else ValueError, "Unable to create link") from None

    def _set(self, name, obj):
        if isinstance(obj, HLObject):
            self._group.link_object(name, obj.id.native)
        elif isinstance(obj, SoftLink):
            self._group.link_soft(name, obj.path)
        elif isinstance(obj, ExternalLink):
            self._group.link_external(name, obj.filename, _text(obj.path))
        elif isinstance(obj, np.dtype):
            datatype = dtypes.datatype_of(obj, dtypes.sizes_of(self._group))
            self._group.commit(name, datatype)
        else:
            self.create_dataset(name, data=obj)

    def __delitem__(self, name):
        try:
            self._group.unlink(_text(name))
        except OSError as error:
            raise base.translated(error, KeyError, "Couldn't delete link") from None
        except ValueError as error:
            raise base.translated(error, KeyError, "Couldn't delete link") from None

    def _names(self):
        self._check_open()
        return h5o.ordered_names(self._group)

    def __len__(self):
        self._check_open()
        return self._group.count()

    def __iter__(self):
        return iter(self._names())

    def __reversed__(self):
        return reversed(self._names())

    def __contains__(self, name):
        if isinstance(name, h5r.Reference):
            try:
                return bool(name) and h5r.dereference(name, self.id) is not None
            except (KeyError, ValueError, OSError):
                return False
        if not self.id:
            return False
        name = _text(name)
        if name.strip("/.") == "":
            return name != "" and self._group.leads(name)
        try:
            # A link that leads nowhere is a member, too.
            found = self._group.link(name)
        except (KeyError, OSError, ValueError):
            return False
        return found is not None and (name[-1] != "/" or self._group.leads(name.rstrip("/")))

    # -- copying, moving, visiting

    def move(self, source, dest):
        """Gives a link another name."""
        if source == dest:
            return
        try:
            self._group.rename(_text(source), _text(dest))
        except KeyError as error:
            raise base.translated(error, ValueError, "Unable to move link") from None

    def copy(self, source, dest, name=None, shallow=False, expand_soft=False, expand_external=False,
             expand_refs=False, without_attrs=False):  # fmt: skip
        """Copies an object, to a path of this group, or to a group of this or another file."""
        flags = (bool(shallow), bool(expand_soft), bool(expand_external), bool(expand_refs), bool(without_attrs))
        if isinstance(source, HLObject):
            from_group, from_path = source.id.owner.group, source.name
        else:
            from_group, from_path = self._group, _text(source)
        if isinstance(dest, Group):
            to_group = dest._group
            if name is not None:
                to_path = _text(name)
            else:
                to_path = posixpath.basename(from_group.open(from_path).path)
        elif isinstance(dest, HLObject):
            raise TypeError("Destination must be path or Group object")
        else:
            to_group, to_path = self._group, _text(dest)
        try:
            from_group.copy(from_path, to_group, to_path, flags)
        except (KeyError, ValueError) as error:
            raise base.translated(error, RuntimeError, "Unable to copy object") from None

    def visit(self, func):
        """Calls a function with the path of every object below, each once, until it returns something."""
        return h5o.walk(self.id.native, lambda path, _: func(path))

    def visititems(self, func):
        """Calls a function with path and object of everything below, each once, until it returns something."""
        return h5o.walk(self.id.native, lambda path, native: func(path, wrapped(h5i.wrap(native, self.id))))

    def visit_links(self, func):
        """Calls a function with the path of every link below until it returns something."""
        return walk_links(self.id.native, lambda path, group, name: func(path))

    def visititems_links(self, func):
        """Calls a function with path and link of every link below until it returns something."""
        return walk_links(self.id.native, lambda path, group, name: func(path, self.get(path, getlink=True)))

    def _repr_html_(self):
        from .interop import group_html

        return group_html(self)

    def __repr__(self):
        if not self:
            return "<Closed HDF5 group>"
        named = f'"{self.name}"' if self.name is not None else "(anonymous)"
        return f"<HDF5 group {named} ({len(self)} members)>"


def _read_only():
    from .. import _pumice

    return _pumice.ReadOnlyError


__all__ = ["ExternalLink", "Group", "HardLink", "Mapping", "SoftLink", "h5d", "h5t"]
