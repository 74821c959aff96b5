"""Property lists: how something is made and used.

A list remembers what was set. What pumice makes use of is in its ``options``, under the names of the native module;
the rest is kept so that it can be asked for.
"""

from typing import Any

import numpy as np

from .._hl import codec, dtypes
from . import h5d
from .h5g import text

FILE_CREATE, FILE_ACCESS, DATASET_CREATE, DATASET_ACCESS, DATASET_XFER = 1, 2, 3, 4, 5
GROUP_CREATE, OBJECT_CREATE, OBJECT_COPY, LINK_CREATE, LINK_ACCESS, GROUP_ACCESS = 6, 7, 8, 9, 10, 11
ATTRIBUTE_CREATE, DATATYPE_CREATE = 12, 13
CRT_ORDER_TRACKED, CRT_ORDER_INDEXED = 1, 2
DEFAULT = None

_FILL_TIMES = {h5d.FILL_TIME_ALLOC: "alloc", h5d.FILL_TIME_NEVER: "never", h5d.FILL_TIME_IFSET: "ifset"}
_FILL_NUMBERS = {name: number for number, name in _FILL_TIMES.items()}
_VERSIONS = ["earliest", "v108", "v110", "v112", "v114", "v200"]


class PropID:
    """A property list. What it does not know by name it remembers: ``set_x(...)`` is what ``get_x()`` returns."""

    # What is asked for before it was set.
    defaults: dict[str, Any] = {}

    def __init__(self):
        self.options = {}
        self._kept = {}

    def __getattr__(self, name):
        if name.startswith("set_"):

            def keep(*values):
                self._kept[name[4:]] = values[0] if len(values) == 1 else values

            return keep
        if name.startswith("get_"):
            known = {**type(self).defaults, **self._kept}
            if name[4:] in known:
                return lambda: known[name[4:]]
        raise AttributeError(name)

    def copy(self):
        """A list like this one."""
        import copy

        return copy.copy(self)

    def close(self):
        """Nothing to do."""

    def equal(self, other):
        """Whether two lists say the same."""
        return self == other

    def __eq__(self, other):
        return type(self) is type(other) and self.options == other.options and self._kept == other._kept

    def __hash__(self):
        return hash(type(self))


class PropOCID(PropID):
    """How objects are made."""

    defaults = {"attr_creation_order": 0, "obj_track_times": True, "attr_phase_change": (8, 6)}

    def set_obj_track_times(self, track):
        """Whether times are kept."""
        self.options["track_times"] = bool(track)
        self._kept["obj_track_times"] = bool(track)

    def set_attr_phase_change(self, max_compact, min_dense):
        """From how many attributes on they are stored outside of the object's header, and down to how many."""
        if not 0 <= min_dense <= max_compact + 1 or max_compact > 65535:
            raise ValueError("Unable to set attribute phase change values (max compact value must be < 65536)")
        self._kept["attr_phase_change"] = (max_compact, min_dense)

    def set_attr_creation_order(self, flags):
        """Whether the order of attributes is kept."""
        self.options["track_order"] = bool(flags & CRT_ORDER_TRACKED)
        self._kept["attr_creation_order"] = flags


class PropGCID(PropOCID):
    """How groups are made."""

    defaults = {**PropOCID.defaults, "link_creation_order": 0, "link_phase_change": (8, 6)}

    def __init__(self, group=None):
        super().__init__()
        if group is not None and any(order is not None for _, order in group.names()):
            self._kept["link_creation_order"] = CRT_ORDER_TRACKED | CRT_ORDER_INDEXED


class PropLCID(PropID):
    """How links are made."""

    defaults = {"create_intermediate_group": False, "char_encoding": 0}


class PropLAID(PropID):
    """How links are followed."""

    defaults = {"nlinks": 16, "elink_prefix": b"", "elink_acc_flags": 0, "elink_fapl": None}

    def get_elink_fapl(self):
        """How files of external links are opened."""
        found = self._kept.get("elink_fapl")
        return PropFAID() if found is None else found


class PropCopyID(PropID):
    """How objects are copied."""

    defaults = {"copy_object": 0}


class PropDXID(PropID):
    """How elements are moved."""


class PropDAID(PropID):
    """How datasets are used."""

    defaults = {"chunk_cache": (8191, 8 * 1024 * 1024, 0.75), "efile_prefix": b"", "virtual_prefix": b"",
                "virtual_view": 1, "virtual_printf_gap": 0}  # fmt: skip

    def __init__(self, dataset=None):
        super().__init__()
        self.dataset = dataset
        kept = getattr(dataset, "access", None)
        if kept is not None:
            self._kept.update(kept)

    def set_chunk_cache(self, rdcc_nslots, rdcc_nbytes, rdcc_w0):
        """The room for chunks in memory."""
        self._kept["chunk_cache"] = (rdcc_nslots, rdcc_nbytes, rdcc_w0)


class PropFCID(PropGCID):
    """How files are made."""

    defaults = {**PropGCID.defaults, "userblock": 0, "file_space_strategy": (0, False, 1),
                "file_space_page_size": 4096, "sizes": (8, 8), "sym_k": (16, 4), "istore_k": 32}  # fmt: skip

    def __init__(self, file=None):
        super().__init__()
        if file is None:
            return
        _, offset, length, block = file.file_native.facts()
        strategy, persist, threshold, page = file.file_native.space_facts()
        self._kept["userblock"] = block
        self._kept["sizes"] = (offset, length)
        self._kept["file_space_strategy"] = (strategy, persist, threshold)
        self._kept["file_space_page_size"] = page
        if file.options.get("track_order"):
            self._kept["link_creation_order"] = CRT_ORDER_TRACKED | CRT_ORDER_INDEXED

    def set_userblock(self, size):
        """Room for something else before the file."""
        self.options["user_block"] = size
        self._kept["userblock"] = size

    def set_link_creation_order(self, flags):
        """Whether the order of members is kept."""
        self.options["track_order"] = bool(flags & CRT_ORDER_TRACKED)
        self._kept["link_creation_order"] = flags

    def set_file_space_strategy(self, strategy, persist=False, threshold=1):
        """How room is found."""
        self.options.update(space_strategy=strategy, persist=bool(persist), threshold=threshold)
        self._kept["file_space_strategy"] = (strategy, bool(persist), threshold)

    def set_file_space_page_size(self, size):
        """Bytes of a page."""
        self.options["page_size"] = size
        self._kept["file_space_page_size"] = size


class PropFAID(PropID):
    """How files are used."""

    defaults = {"libver_bounds": (0, 5), "cache": (0, 8191, 8 * 1024 * 1024, 0.75), "alignment": (1, 1),
                "fclose_degree": 0, "sieve_buf_size": 65536, "meta_block_size": 2048, "driver": 1,
                "page_buffer_size": (0, 0, 0), "file_locking": (True, True), "evict_on_close": False}  # fmt: skip

    def __init__(self, file=None):
        super().__init__()
        if file is not None:
            self._kept.update(getattr(file, "access", {}))

    def set_libver_bounds(self, low, high):
        """The oldest and the newest form of the file."""
        self.options["oldest"], self.options["newest"] = _VERSIONS[low], _VERSIONS[high]
        self._kept["libver_bounds"] = (low, high)

    def set_fapl_core(self, block_size=65536, backing_store=True):
        """A file in memory."""
        self.options["driver"] = "core"
        self._kept["fapl_core"] = (block_size, backing_store)

    def set_alignment(self, threshold, alignment):
        """Where larger pieces begin."""
        self.options["alignment"] = (threshold, alignment)
        self._kept["alignment"] = (threshold, alignment)

    def set_file_locking(self, use_file_locking, ignore_when_disabled):
        """Whether the file is locked."""
        wanted = "true" if use_file_locking else "false"
        self.options["locking"] = "best-effort" if use_file_locking and ignore_when_disabled else wanted
        self._kept["file_locking"] = (bool(use_file_locking), bool(ignore_when_disabled))

    def set_page_buffer_size(self, buf_size, min_meta_per=0, min_raw_per=0):
        """Room for pages in memory: not used."""
        self._kept["page_buffer_size"] = (buf_size, min_meta_per, min_raw_per)


class PropDCID(PropOCID):
    """How datasets are made."""

    def __init__(self, dataset=None):
        super().__init__()
        self.dataset = dataset
        self.fill = None
        if dataset is None:
            return
        ds = dataset.ds
        if ds.chunk is not None:
            self.options["chunk"] = list(ds.chunk)
        self.options["filters"] = [(number, optional, values) for number, _, optional, values in ds.filters]
        self.names = {number: name for number, name, _, _ in ds.filters}
        self.options["track_times"] = dataset.native.modified is not None
        self._kept["obj_track_times"] = self.options["track_times"]
        self.options["fill_time"] = ds.creation()[1]

    # -- layout

    def set_chunk(self, chunksize):
        """The shape of chunks."""
        chunks = [int(side) for side in chunksize]
        if any(side <= 0 for side in chunks):
            raise ValueError("All chunk dimensions must be positive")
        self.options["chunk"] = chunks

    def get_chunk(self):
        """The shape of chunks."""
        return tuple(self.options["chunk"])

    def set_layout(self, layout):
        """How elements are stored."""
        self._kept["layout"] = layout
        self.options["compact"] = layout == h5d.COMPACT

    def get_layout(self):
        """How elements are stored."""
        if self.dataset is not None:
            layouts = {"compact": h5d.COMPACT, "contiguous": h5d.CONTIGUOUS, "external": h5d.CONTIGUOUS}
            layout = self.dataset.ds.layout
            return h5d.VIRTUAL if layout == "virtual" else layouts.get(layout, h5d.CHUNKED)
        if "parts" in self.options:
            return h5d.VIRTUAL
        if "chunk" in self.options:
            return h5d.CHUNKED
        return self._kept.get("layout", h5d.CONTIGUOUS)

    # -- fill value

    def set_fill_value(self, value):
        """What cells hold that nobody has written."""
        value = np.asarray(value)
        if not dtypes.is_plain(value.dtype):
            raise NotImplementedError("Fill values of strings of any length: use create_dataset")
        self.fill = value
        self.options["fill"] = (dtypes.datatype_of(value.dtype), value.tobytes())

    def get_fill_value(self, value):
        """What cells hold that nobody has written: into an array."""
        if self.dataset is None:
            value[...] = 0 if self.fill is None else self.fill
            return
        found = self.dataset.ds.fill()
        if found is None:
            value[...] = np.zeros((), value.dtype)
            return
        elements, heap = found
        datatype = self.dataset.ds.datatype
        value[...] = codec.decode_all(datatype, elements, heap, value.dtype, (), self.dataset.owner.group)

    def fill_value_defined(self):
        """Whether there is a fill value."""
        if self.dataset is None:
            return h5d.FILL_VALUE_DEFAULT if self.fill is None else h5d.FILL_VALUE_USER_DEFINED
        kinds = {"undefined": h5d.FILL_VALUE_UNDEFINED, "default": h5d.FILL_VALUE_DEFAULT}
        return kinds.get(self.dataset.ds.creation()[0], h5d.FILL_VALUE_USER_DEFINED)

    def set_fill_time(self, fill_time):
        """When the fill value is written."""
        self.options["fill_time"] = _FILL_TIMES[fill_time]

    def get_fill_time(self):
        """When the fill value is written."""
        return _FILL_NUMBERS[self.options.get("fill_time", "ifset")]

    def set_alloc_time(self, alloc_time):
        """When room is found."""
        names = {h5d.ALLOC_TIME_EARLY: "early", h5d.ALLOC_TIME_LATE: "late", h5d.ALLOC_TIME_INCR: "incremental"}
        if alloc_time in names:
            self.options["allocation"] = names[alloc_time]

    def get_alloc_time(self):
        """When room is found."""
        numbers = {"early": h5d.ALLOC_TIME_EARLY, "late": h5d.ALLOC_TIME_LATE, "incremental": h5d.ALLOC_TIME_INCR}
        name = self.options.get("allocation") if self.dataset is None else self.dataset.ds.creation()[2]
        return numbers.get(name, h5d.ALLOC_TIME_DEFAULT)

    # -- filters

    def _filters(self):
        return self.options.setdefault("filters", [])

    def set_filter(self, filter_code, flags=0, values=()):
        """One more filter."""
        self._filters().append((filter_code, bool(flags & 1), [int(value) & 0xFFFFFFFF for value in values or ()]))

    def set_deflate(self, level=5):
        """Compression with gzip."""
        self._filters().append((1, True, [level]))

    def set_shuffle(self):
        """Bytes of equal weight together."""
        self._filters().append((2, True, []))

    def set_fletcher32(self):
        """A checksum."""
        self._filters().append((3, False, []))

    def set_szip(self, options, pixels):
        """Compression with szip."""
        self._filters().append((4, True, [options | 1 | 128, pixels]))

    def set_scaleoffset(self, scale_type, scale_factor):
        """Numbers as their distance from the smallest."""
        self._filters().append((6, True, [scale_type, scale_factor]))

    def get_nfilters(self):
        """How many filters there are."""
        return len(self._filters())

    def get_filter(self, index):
        """A filter by its place: number, flags, parameters, name."""
        number, optional, values = self._filters()[index]
        name = getattr(self, "names", {}).get(number) or filter_name(number)
        return number, int(optional), tuple(values), name.encode()

    def get_filter_by_id(self, filter_code):
        """A filter by its number: flags, parameters, name; None if it is not there."""
        for at, (number, _, _) in enumerate(self._filters()):
            if number == filter_code:
                return self.get_filter(at)[1:]
        return None

    def all_filters_avail(self):
        """Whether every filter is there."""
        from .h5z import filter_avail

        return all(filter_avail(number) for number, _, _ in self._filters())

    def remove_filter(self, filter_code):
        """One filter less."""
        self.options["filters"] = [one for one in self._filters() if one[0] != filter_code]

    # -- other files

    def set_external(self, name, offset=0, size=None):
        """One more file with elements."""
        size = None if size is None or size == 2**64 - 1 else size
        self.options.setdefault("external", []).append((text(name), offset, size))

    def _external(self):
        if self.dataset is not None and self.dataset.ds.layout == "external":
            return [(name.encode(), offset, size) for name, offset, size in self.dataset.ds.external()]
        return [(name.encode(), offset, 2**64 - 1 if size is None else size)
                for name, offset, size in self.options.get("external", ())]  # fmt: skip

    def get_external_count(self):
        """How many files have elements."""
        return len(self._external())

    def get_external(self, idx=0):
        """A file with elements."""
        return self._external()[idx]

    def set_virtual(self, vspace, src_filename, src_dsetname, src_space):
        """One more part of a virtual dataset."""
        part = (vspace.selection, text(src_filename), text(src_dsetname), src_space.selection)
        self.options.setdefault("parts", []).append(part)
        self._kept.setdefault("virtual_spaces", []).append(src_space)

    def _parts(self):
        return self.dataset.ds.parts() if self.dataset is not None else self.options.get("parts", [])

    def get_virtual_count(self):
        """How many parts a virtual dataset has."""
        return len(self._parts())

    def get_virtual_dsetname(self, index=0):
        """The dataset of a part."""
        return self._parts()[index][2]

    def get_virtual_filename(self, index=0):
        """The file of a part."""
        return self._parts()[index][1]

    def get_virtual_vspace(self, index=0):
        """The cells of a part."""
        from .h5s import SpaceID

        shape = self.dataset.shape if self.dataset is not None else None
        return SpaceID(shape, selection=self._parts()[index][0])

    def get_virtual_srcspace(self, index=0):
        """The cells of a part, where they come from."""
        from .h5s import UNLIMITED, SpaceID

        if self.dataset is None:
            return self._kept["virtual_spaces"][index]
        cells = self._parts()[index][3]
        regular = cells.regular()
        if regular is None:
            return SpaceID(self.dataset.shape, selection=cells)
        sides = []
        for start, stride, count, block in zip(*regular):
            endless = count == UNLIMITED or block == UNLIMITED
            sides.append(start + (1 if endless else stride * (count - 1) + block))
        return SpaceID(tuple(sides), selection=cells)


_NAMES = {1: "deflate", 2: "shuffle", 3: "fletcher32", 4: "szip", 5: "nbit", 6: "scaleoffset", 32000: "lzf",
          307: "bzip2", 32001: "blosc", 32004: "lz4", 32008: "bitshuffle", 32013: "zfp", 32015: "zstd",
          32026: "blosc2"}  # fmt: skip


def filter_name(number):
    """The name of a filter."""
    return _NAMES.get(number, "")


_CLASSES = {
    FILE_CREATE: PropFCID, FILE_ACCESS: PropFAID, DATASET_CREATE: PropDCID, DATASET_ACCESS: PropDAID,
    DATASET_XFER: PropDXID, GROUP_CREATE: PropGCID, OBJECT_CREATE: PropOCID, OBJECT_COPY: PropCopyID,
    LINK_CREATE: PropLCID, LINK_ACCESS: PropLAID, ATTRIBUTE_CREATE: PropID, DATATYPE_CREATE: PropOCID,
    GROUP_ACCESS: PropID,
}  # fmt: skip


def create(cls):
    """An empty property list."""
    return _CLASSES[cls]()
