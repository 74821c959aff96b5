"""Files."""

import io
import os
import sys
import uuid
import weakref

from .. import _pumice
from ..low import h5, h5f
from .base import HLObject
from .compat import filename_encode
from .group import Group

_LIBVERS = {"earliest": 0, "v108": 1, "v110": 2, "v112": 3, "v114": 4, "v200": 5, "latest": 5}
_LIBVER_NAMES = ["earliest", "v108", "v110", "v112", "v114", "v200"]
_STRATEGIES = {"fsm": 0, "page": 1, "aggregate": 2, "none": 3}

swmr_support = True
ros3 = False
direct_vfd = False
mpi = False
hdf5_version = (2, 0, 0)

# Drivers of one's own: a function that sets up a property list.
_drivers = dict.fromkeys(("sec2", "stdio", "core", "family", "fileobj"), lambda plist, **options: None)


def register_driver(name, set_fapl):
    """A driver of one's own under a name: a function that is given a property list of file access."""
    _drivers[name] = set_fapl


def unregister_driver(name):
    """Forgets a driver."""
    del _drivers[name]


def registered_drivers():
    """The names of the drivers."""
    return frozenset(_drivers)


def _libver(libver):
    if libver is None:
        return None
    if isinstance(libver, str):
        low, high = libver, "latest"
    else:
        low, high = libver
    if low not in _LIBVERS or high not in _LIBVERS:
        raise ValueError(f"libver must be of {', '.join(_LIBVERS)}, not {libver!r}")
    return _LIBVER_NAMES[_LIBVERS[low]], _LIBVER_NAMES[_LIBVERS[high]]


def _locking(locking):
    names = {True: "true", False: "false", "true": "true", "false": "false", "best-effort": "best-effort"}
    if locking not in names:
        raise ValueError(f"Unsupported locking value: {locking}")
    return names[locking]


def _file_options(mode, libver, userblock_size, swmr, track_order, fs_strategy, fs_persist, fs_threshold,
                  fs_page_size, locking, alignment_threshold, alignment_interval, meta_block_size, cache, exists):  # fmt: skip
    options = {}
    bounds = _libver(libver)
    if bounds is not None:
        options["oldest"], options["newest"] = bounds
    if userblock_size:
        if mode in ("r", "r+"):
            raise ValueError("User block may only be specified when creating a file")
        size = int(userblock_size)
        if size < 512 or size & (size - 1):
            raise ValueError("User block must be at least 512 bytes and a power of 2")
        options["user_block"] = size
    if track_order:
        options["track_order"] = True
    if fs_strategy is not None:
        if mode in ("r", "r+") or mode == "a" and exists:
            raise ValueError("Unable to set file space strategy of an existing file")
        if fs_strategy not in _STRATEGIES:
            raise ValueError("Invalid file space strategy type")
        options.update(space_strategy=_STRATEGIES[fs_strategy], persist=bool(fs_persist), threshold=fs_threshold)
        if fs_page_size is not None:
            options["page_size"] = fs_page_size
    if locking is not None:
        options["locking"] = _locking(locking)
    if alignment_threshold != 1 or alignment_interval != 1:
        options["alignment"] = (alignment_threshold, alignment_interval)
    if meta_block_size is not None:
        options["metadata_block"] = meta_block_size
    if swmr and mode == "r":
        options["swmr"] = True
    if cache is not None:
        options["context"] = cache.native
    return options


def _is_there(name):
    return isinstance(name, (str, bytes, os.PathLike)) and os.path.exists(name)


class File(Group):
    """A file of HDF5.

    ``name`` is a path, or an object of Python that reads, writes and seeks. Modes are ``r`` (the default), ``r+``, ``w``,
    ``w-`` or ``x``, and ``a``.
    """

    _in_memory_file_counter = 0

    def __new__(cls, name=None, mode="r", *args, comm=None, **kwds):
        """A file; one that ranks write together if there is a communicator, such as one of mpi4py."""
        if comm is None or mode == "r":
            return super().__new__(cls)
        return _collective(name, mode, comm, *args, **kwds)

    def __init__(self, name, mode="r", driver=None, libver=None, userblock_size=None, swmr=False,
                 rdcc_nslots=None, rdcc_nbytes=None, rdcc_w0=None, track_order=None,
                 fs_strategy=None, fs_persist=False, fs_threshold=1, fs_page_size=None,
                 page_buf_size=None, min_meta_keep=0, min_raw_keep=0, locking=None,
                 alignment_threshold=1, alignment_interval=1, meta_block_size=None, *,
                 track_times=False, cache=None, comm=None, time_limit=600, **kwds):  # fmt: skip
        if comm is not None:
            # Each rank reads by itself.
            driver = None
        if isinstance(name, h5f.FileID):
            HLObject.__init__(self, name)
            return
        if isinstance(name, HLObject):
            HLObject.__init__(self, name.file.id)
            return
        if mode not in ("r", "r+", "w", "w-", "x", "a"):
            raise ValueError("Invalid mode; must be one of r, r+, w, w-, x, a")
        if hasattr(name, "read") and hasattr(name, "seek"):
            if driver not in (None, "fileobj"):
                raise ValueError("Driver must be 'fileobj' for file-like object if specified.")
            driver = "fileobj"
        if driver is not None and driver not in _drivers:
            raise ValueError(f"Unknown driver type {driver!r}")
        if swmr and mode != "r" and libver is None:
            swmr = False
        if track_order is None:
            track_order = h5.get_config().track_order
        if page_buf_size is not None and fs_strategy != "page" and mode in ("w", "w-", "x"):
            raise OSError("Unable to use a page buffer: the file's space is not in pages (fs_strategy='page')")
        options = _file_options(mode, libver, userblock_size, swmr, track_order, fs_strategy, fs_persist,
                                fs_threshold, fs_page_size, locking, alignment_threshold, alignment_interval,
                                meta_block_size, cache, _is_there(name))  # fmt: skip
        fid = _opened(name, mode, driver, options, kwds)
        fid.access = _access(rdcc_nslots, rdcc_nbytes, rdcc_w0, libver, locking, alignment_threshold,
                             alignment_interval, page_buf_size, min_meta_keep, min_raw_keep)  # fmt: skip
        fid.libver = _libver(libver) or ("earliest", "v200")
        fid.meta_block_size = 2048 if meta_block_size is None else meta_block_size
        fid.swmr_read = bool(swmr and mode == "r")
        HLObject.__init__(self, fid)
        if userblock_size and fid.file_native.facts()[3] != int(userblock_size):
            self.close()
            raise ValueError(f"Requested userblock size ({userblock_size}) does not match that of existing file")

    @classmethod
    def in_memory(cls, file_image=None, block_size=64 * 1024, **kwargs):
        """A file in memory, which may begin with the bytes of another; ``file.id.get_file_image()`` gives them back."""
        if file_image:
            if kwargs:
                raise TypeError(f"kwargs are not allowed with file_image: {set(kwargs)}")
            mode, image = "r+", bytes(file_image)
        else:
            mode, image = "w", None
        name = f"pumice_in_memory_{cls._in_memory_file_counter}"
        File._in_memory_file_counter += 1
        options = {}
        if kwargs.get("track_order") or "track_order" not in kwargs and h5.get_config().track_order:
            options["track_order"] = True
        if kwargs.get("libver") is not None:
            options["oldest"], options["newest"] = _libver(kwargs["libver"])
        if kwargs.get("cache") is not None:
            options["context"] = kwargs["cache"].native
        unknown = set(kwargs) - {"track_order", "libver", "cache", "track_times", "rdcc_nbytes", "rdcc_nslots"}
        if unknown:
            raise TypeError(f"in_memory() takes no {', '.join(sorted(unknown))}")
        native = _pumice.open_memory(image, mode, options)
        fid = h5f.FileID(native, name.encode(), "core", options, h5f.ACC_RDWR)
        fid.libver = _libver(kwargs.get("libver")) or ("earliest", "v200")
        return cls(fid)

    @property
    def attrs(self):
        """The attributes of the root group."""
        from .attrs import AttributeManager

        return AttributeManager(self["/"])

    @property
    def filename(self):
        """The name that it was opened by."""
        name = self.id.name_given
        return name.decode("utf-8", "surrogateescape") if isinstance(name, bytes) else name

    @property
    def driver(self):
        """How its bytes are reached."""
        return self.id.driver

    @property
    def mode(self):
        """``r`` or ``r+``."""
        if not self.id:
            raise ValueError("Not a file or file object (the file is closed)")
        return "r+" if self.id.get_intent() & h5f.ACC_RDWR else "r"

    @property
    def libver(self):
        """The oldest and the newest form that it may have."""
        return getattr(self.id, "libver", ("earliest", "v200"))

    @property
    def userblock_size(self):
        """Bytes before the file that are somebody else's."""
        return self.id.file_native.facts()[3]

    @property
    def meta_block_size(self):
        """How much room is taken for metadata at once."""
        return getattr(self.id, "meta_block_size", 2048)

    @property
    def swmr_mode(self):
        """Whether it is written beside readers, or read beside a writer; can be switched on."""
        return getattr(self.id, "swmr_read", False) or bool(self.id.get_intent() & h5f.ACC_SWMR_WRITE)

    @swmr_mode.setter
    def swmr_mode(self, value):
        if not value:
            raise ValueError("It is not possible to forcibly switch SWMR mode off.")
        self.id.start_swmr_write()

    def close(self):
        """Writes everything and closes the file, and everything that was opened through it."""
        if self.id.valid:
            self.id.close()

    def flush(self):
        """Writes everything."""
        self.id.flush()

    @property
    def file(self):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *args):
        if self.id:
            self.close()

    def __repr__(self):
        if not self.id:
            return "<Closed HDF5 file>"
        filename = os.path.basename(self.filename)
        return f'<HDF5 file "{filename}" (mode {self.mode})>'


def _collective(name, mode, comm, driver=None, libver=None, userblock_size=None, *, track_order=None, fs_strategy=None,
                fs_persist=False, fs_threshold=1, fs_page_size=None, locking=None, alignment_threshold=1,
                alignment_interval=1, meta_block_size=None, cache=None, time_limit=600, info=None):  # fmt: skip
    """A file that ranks write together."""
    from .collective import CollectiveFile

    if driver not in (None, "mpio"):
        raise ValueError(f"Ranks share a file on a file system, not one of driver {driver!r}")
    options = _file_options(mode, libver, userblock_size, False, track_order, fs_strategy, fs_persist, fs_threshold,
                            fs_page_size, locking, alignment_threshold, alignment_interval, meta_block_size, cache,
                            False)  # fmt: skip
    return CollectiveFile(name, mode, comm, time_limit, options)


def _access(nslots, nbytes, w0, libver, locking, threshold, interval, page, meta, raw):
    bounds = _libver(libver) or ("earliest", "v200")
    kept = {
        "cache": (0, nslots or 8191, nbytes or 8 * 1024 * 1024, 0.75 if w0 is None else w0),
        "libver_bounds": tuple(_LIBVER_NAMES.index(one) for one in bounds),
        "alignment": (threshold, interval),
    }
    if page is not None:
        kept["page_buffer_size"] = (int(page), int(meta), int(raw))
    if locking is not None:
        kind = _locking(locking)
        kept["file_locking"] = (kind != "false", kind == "best-effort")
    return kept


def _opened(name, mode, driver, options, kwds):
    if driver == "fileobj":
        return _opened_stream(name, mode, options)
    if driver == "core":
        return _opened_core(name, mode, options, kwds)
    if driver == "family":
        options["family"] = kwds.pop("memb_size", 2**31 - 1)
    if driver not in (None, "sec2", "stdio", "family"):
        _drivers[driver](_fapl(), **kwds)
    elif kwds:
        raise TypeError(f"'{next(iter(kwds))}' is an invalid keyword argument for this driver")
    path = filename_encode(name)
    try:
        native = _pumice.open_file(os.fsdecode(path), mode, options)
    except KeyError as error:
        raise OSError(f"Unable to open file ({error})") from None
    except ValueError as error:
        if options.get("user_block") and "user" in str(error):
            raise
        raise OSError(f"Unable to open file ({error})") from None
    intent = h5f.ACC_RDONLY if mode == "r" else h5f.ACC_RDWR
    return h5f.FileID(native, path, driver or "sec2", options, intent)


def _fapl():
    from ..low.h5p import PropFAID

    return PropFAID()


def _opened_core(name, mode, options, kwds):
    backing = kwds.pop("backing_store", True)
    kwds.pop("block_size", None)
    path = filename_encode(name)
    place = os.fsdecode(path)
    image = None
    if mode in ("r", "r+") or mode == "a" and os.path.exists(place):
        with open(place, "rb") as file:
            image = file.read()
    elif mode in ("w-", "x") and os.path.exists(place):
        raise FileExistsError(17, f"Unable to create file (it exists: {place})")
    native = _pumice.open_memory(image, {"x": "w", "w-": "w"}.get(mode, mode), options)
    fid = h5f.FileID(native, path, "core", options, h5f.ACC_RDONLY if mode == "r" else h5f.ACC_RDWR)
    if backing and mode != "r":
        fid.backing = place
    return fid


def _opened_stream(name, mode, options):
    if mode in ("w", "w-", "x") and hasattr(name, "truncate"):
        name.seek(0)
        name.truncate(0)
    native = _pumice.open_stream(name, mode, options)
    fid = h5f.FileID(native, repr(name).encode("ASCII"), "fileobj", options,
                     h5f.ACC_RDONLY if mode == "r" else h5f.ACC_RDWR)  # fmt: skip
    fid.stream = name
    return fid


def make_fapl(driver=None, libver=None, rdcc_nslots=None, rdcc_nbytes=None, rdcc_w0=None, locking=None,
              page_buf_size=None, min_meta_keep=0, min_raw_keep=0, alignment_threshold=1, alignment_interval=1,
              meta_block_size=None, **kwds):  # fmt: skip
    """A property list of file access."""
    fapl = _fapl()
    bounds = _libver(libver)
    if bounds is not None:
        fapl.set_libver_bounds(*(_LIBVER_NAMES.index(one) for one in bounds))
    return fapl


__all__ = ["File", "io", "sys", "uuid", "weakref", "register_driver", "registered_drivers", "unregister_driver"]
