"""Files."""

from __future__ import annotations

import os
import weakref

from .. import _pumice
from .h5g import GroupID
from .h5i import FILE

ACC_RDONLY, ACC_RDWR, ACC_TRUNC, ACC_EXCL, ACC_CREAT = 0, 1, 2, 4, 16
ACC_SWMR_WRITE, ACC_SWMR_READ = 32, 64
OBJ_FILE, OBJ_DATASET, OBJ_GROUP, OBJ_DATATYPE, OBJ_ATTR, OBJ_ALL, OBJ_LOCAL = 1, 2, 4, 8, 16, 31, 32
SCOPE_LOCAL, SCOPE_GLOBAL = 0, 1
UNLIMITED = 2**64 - 1
CLOSE_WEAK, CLOSE_SEMI, CLOSE_STRONG, CLOSE_DEFAULT = 1, 2, 3, 0
LIBVER_EARLIEST, LIBVER_V18, LIBVER_V110, LIBVER_V112, LIBVER_V114, LIBVER_V200 = 0, 1, 2, 3, 4, 5
LIBVER_LATEST = LIBVER_V200
FILE_IMAGE_OPEN_RW = 1
FSPACE_STRATEGY_FSM_AGGR, FSPACE_STRATEGY_PAGE, FSPACE_STRATEGY_AGGR, FSPACE_STRATEGY_NONE = 0, 1, 2, 3

# Files that are open, as long as somebody has them.
_open: weakref.WeakValueDictionary[int, FileID] = weakref.WeakValueDictionary()


def stamp_of(path):
    """What changes when the file at a path is changed or replaced; None if there is no such file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size, found.st_ino, found.st_ctime_ns)


class FileID(GroupID):
    """A handle of a file, which is also that of its root group."""

    kind = FILE
    libver: tuple[str, str]

    def __init__(self, file, name, driver="sec2", options=None, intent=None):
        self.file_native = file
        self.name_given = name
        self.driver = driver
        self.options = options or {}
        self.path = file.path
        self.stream = None
        self.backing = None
        self._intent = ACC_RDWR if intent is None and file.is_writable else (intent or ACC_RDONLY)
        self.stamp = None if self.path is None or self._intent & ACC_RDWR else stamp_of(self.path)
        self.group = file.root()
        self.native = self.group.object()
        self.owner = self
        _open[id(self)] = self

    @classmethod
    def of(cls, file):
        """The handle of a file that an external link has led to."""
        path = file.path
        return cls(file, os.fsencode(path) if path else b"")

    @property
    def valid(self):
        return self.file_native.is_open

    def __bool__(self):
        return self.file_native.is_open

    @property
    def name(self):
        return b"/" if not self.native.is_open else self.native.path.encode("utf-8", "surrogateescape")

    def close(self):
        """Writes everything and lets go of the file."""
        _open.pop(id(self), None)
        if self.backing is not None and self.file_native.is_open and self._intent & ACC_RDWR:
            image = self.file_native.image()
            with open_plain(self.backing, "wb") as file:
                file.write(image.tobytes())
        self.file_native.close()

    def _close_after_failure(self):
        self.file_native.close()

    def __eq__(self, other):
        if self is other:
            return True
        if not isinstance(other, GroupID):
            return NotImplemented
        if not (self.valid and other.valid):
            return False
        if self.path is None or other.native.file_path is None:
            return isinstance(other, FileID) and self.file_native is other.file_native or self._same_root(other)
        return self._where() == other._where()

    def _same_root(self, other):
        return other.owner is self.owner and self.native.address == other.native.address

    def __hash__(self):
        if not self.valid:
            raise TypeError("Files that are closed have no hash")
        return hash(self._where())

    def reopen(self):
        """Another handle of the file."""
        return FileID(_pumice.open_file(self.path, "r+" if self._intent & ACC_RDWR else "r", {}), self.name_given)

    def flush(self, scope=SCOPE_LOCAL):
        """Writes everything."""
        self.file_native.flush()

    def get_name(self):
        """The name that it was opened by, as bytes."""
        return self.name_given

    def get_intent(self):
        """Whether it can be changed."""
        return self._intent

    def get_filesize(self):
        """How many bytes it has."""
        if self.path is not None:
            return os.path.getsize(self.path)
        return len(self.file_native.image())

    def get_file_image(self):
        """Its bytes."""
        if self.path is None:
            return self.file_native.image().tobytes()
        self.flush()
        with open_plain(self.path, "rb") as file:
            return file.read()

    def get_create_plist(self):
        """How it was made."""
        from .h5p import PropFCID

        return PropFCID(self)

    def get_access_plist(self):
        """How it is used."""
        from .h5p import PropFAID

        return PropFAID(self)

    def get_freespace(self):
        """How much room there is for more: not known."""
        return 0

    def get_vfd_handle(self, fapl=None):
        """The descriptor of the file: there is none to be had."""
        raise NotImplementedError("Files of pumice give no descriptor away; flush and open the path")

    def start_swmr_write(self):
        """Lets readers open the file while it is written."""
        self.file_native.start_swmr_write()
        self._intent |= ACC_SWMR_WRITE

    def get_mdc_size(self):
        """The size of libhdf5's metadata cache, which is not there: four times nothing."""
        return (0, 0, 0, 0)

    def reset_mdc_hit_rate_stats(self):
        """Nothing to forget."""

    def get_mdc_hit_rate(self):
        """A share of hits: not counted."""
        return 0.0


open_plain = open


def _options(fapl, fcpl=None):
    options = {} if fapl is None else dict(fapl.options)
    if fcpl is not None:
        options.update(fcpl.options)
    options.pop("driver", None)
    return options


def open(name, flags=ACC_RDWR, fapl=None):
    """Opens the file at a path."""
    mode = "r+" if flags & ACC_RDWR else "r"
    options = _options(fapl)
    if flags & ACC_SWMR_READ or flags & ACC_SWMR_WRITE:
        options["swmr"] = True
    image = None if fapl is None else fapl._kept.get("file_image")
    if image is not None:
        return FileID(_pumice.open_memory(bytes(image), mode, options), os.fsencode(name), "core", options, flags)
    native = _pumice.open_file(os.fsdecode(name), mode, options)
    return FileID(native, os.fsencode(name), options=options, intent=flags)


def create(name, flags=ACC_TRUNC, fcpl=None, fapl=None):
    """Makes a file at a path."""
    mode = "x" if flags & ACC_EXCL else "w"
    options = _options(fapl, fcpl)
    if fapl is not None and fapl.options.get("driver") == "core":
        native = _pumice.open_memory(None, "w", options)
        return FileID(native, os.fsencode(name), "core", options, ACC_RDWR)
    native = _pumice.open_file(os.fsdecode(name), mode, options)
    return FileID(native, os.fsencode(name), options=options, intent=ACC_RDWR)


def open_file_image(image, flags=0):
    """Opens bytes as a file in memory."""
    mode = "r+" if flags & FILE_IMAGE_OPEN_RW else "r"
    native = _pumice.open_memory(bytes(image), mode, {})
    return FileID(native, b"image", "core", {}, ACC_RDWR if flags & FILE_IMAGE_OPEN_RW else ACC_RDONLY)


def is_hdf5(name):
    """Whether a file of that name is there and is one of HDF5."""
    from .._hl.base import is_hdf5 as found

    return found(os.fsdecode(name))


def flush(obj, scope=SCOPE_LOCAL):
    """Writes everything of the file of an object."""
    obj.owner.flush()


def get_name(obj):
    """The name that a file was opened by, as bytes."""
    return obj.owner.name_given


def get_obj_ids(where=OBJ_ALL, types=OBJ_ALL):
    """The handles of open files."""
    return [one for one in list(_open.values()) if one.valid and types & OBJ_FILE]


def get_obj_count(where=OBJ_ALL, types=OBJ_ALL):
    """How many files are open; handles of other objects are not counted."""
    return len(get_obj_ids(where, types))


def _after_fork():
    """In the child: files that can only be read are opened again; others stay with the parent."""
    for fid in list(_open.values()):
        again = fid.path is not None and fid.driver in ("sec2", "stdio", "family") and not fid._intent & ACC_RDWR
        kept = {"locking", "swmr", "family", "context"}
        options = {key: value for key, value in fid.options.items() if key in kept}
        try:
            fid.file_native.after_fork(str(fid.path) if again else None, options)
        except (OSError, ValueError):
            pass  # The file is gone: its objects say that they are closed.
        if not again:
            _open.pop(id(fid), None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
