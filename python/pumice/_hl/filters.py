"""Compression: h5py's names and hdf5plugin's objects."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..low import h5z
from .selections import product

DEFAULT_GZIP = 4
DEFAULT_SZIP = ("nn", 8)
_COMPRESSION = ("gzip", "szip", "lzf")
# Chunks are guessed between these sizes in bytes.
CHUNK_BASE, CHUNK_MIN, CHUNK_MAX = 16 * 1024, 8 * 1024, 1024 * 1024

decode = ("gzip", "szip", "lzf", "shuffle", "fletcher32", "scaleoffset")
encode = decode


class FilterRefBase(Mapping):
    """A filter: its number and its options. Behaves like the keywords of create_dataset."""

    filter_id = None
    filter_options = ()

    @property
    def _kwargs(self):
        return {"compression": self.filter_id, "compression_opts": self.filter_options}

    def __hash__(self):
        return hash((self.filter_id, self.filter_options))

    def __eq__(self, other):
        return (
            isinstance(other, FilterRefBase)
            and self.filter_id == other.filter_id
            and self.filter_options == other.filter_options
        )

    def __len__(self):
        return len(self._kwargs)

    def __iter__(self):
        return iter(self._kwargs)

    def __getitem__(self, item):
        return self._kwargs[item]


class Gzip(FilterRefBase):
    """Compression with gzip."""

    filter_id = h5z.FILTER_DEFLATE

    def __init__(self, level=DEFAULT_GZIP):
        self.filter_options = (level,)


def check_shape(shape, maxshape, chunks):
    """Complains of chunks that do not suit a shape."""
    if isinstance(chunks, tuple):
        if len(chunks) != len(shape):
            raise ValueError("Chunk shape must have one entry for each dimension of the dataset")
        most = shape if maxshape is None else maxshape
        large = [size is not None and chunk > max(size, side) for chunk, size, side in zip(chunks, most, shape)]
        if any(large):
            raise ValueError(
                "Chunk shape must not be greater than data shape in any dimension. "
                f"{chunks} is not compatible with {shape}"
            )


def guess_chunk(shape, maxshape, typesize):
    """Chunks for a shape: between 8 KiB and 1 MiB, halved axis by axis."""
    sides = np.array([side if side else 1024 for side in shape], dtype="=f8")
    if not np.all(np.isfinite(sides)):
        raise ValueError("Can't allow non-finite shape")
    whole = product(sides) * typesize
    target = min(max(CHUNK_BASE * 2 ** np.log10(max(whole, 1) / (1024.0 * 1024)), CHUNK_MIN), CHUNK_MAX)
    at = 0
    while True:
        size = product(sides) * typesize
        near = size < target or abs(size - target) / target < 0.5
        if near and size < CHUNK_MAX or product(sides) == 1:
            return tuple(int(side) for side in sides)
        sides[at % len(sides)] = np.ceil(sides[at % len(sides)] / 2.0)
        at += 1


def _compression(compression, options, dtype):
    """The filter of a compression, and its parameters."""
    if compression in ("gzip", h5z.FILTER_DEFLATE):
        level = DEFAULT_GZIP if options is None else options
        if compression == h5z.FILTER_DEFLATE and options is None:
            raise IndexError("Filter 1 needs a level in compression_opts")
        if isinstance(level, (tuple, list)):
            level = level[0]
        if not isinstance(level, (int, np.integer)) or level not in range(10):
            raise ValueError(f"GZIP setting must be an integer from 0-9, not {options!r}")
        return (h5z.FILTER_DEFLATE, True, [int(level)])
    if compression == "lzf" or compression == h5z.FILTER_LZF:
        if options is not None and not (compression == h5z.FILTER_LZF):
            raise ValueError("LZF compression filter accepts no options")
        return (h5z.FILTER_LZF, True, [])
    if compression == "szip":
        coding, block = _szip(options)
        masks = {"ec": h5z.SZIP_EC_OPTION_MASK, "nn": h5z.SZIP_NN_OPTION_MASK}
        return (h5z.FILTER_SZIP, True, [masks[coding] | 1 | 128, block])
    return None


def _szip(options):
    if options is None:
        return DEFAULT_SZIP
    message = "SZIP options must be a 2-tuple ('ec'|'nn', even integer 0-32)"
    try:
        coding, block = options
    except TypeError:
        raise TypeError(message) from None
    if coding not in ("ec", "nn") or not (0 < block <= 32 and block % 2 == 0):
        raise ValueError(message)
    return coding, block


def _named(compression, options):
    """The name of a compression and its options, where the name is a number or a level."""
    if isinstance(compression, FilterRefBase):
        return compression.filter_id, compression.filter_options
    if compression is True:
        return "gzip", options
    from . import dataset

    levels = dataset._LEGACY_GZIP_COMPRESSION_VALS
    if isinstance(compression, (int, np.integer)) and compression in levels and not isinstance(compression, bool):
        if options is not None:
            raise TypeError("Conflict in compression options")
        return "gzip", compression
    return compression, options


def _scale(scaleoffset, dtype):
    if scaleoffset is None or scaleoffset is False:
        return None
    if dtype.kind not in "iuf":
        raise TypeError("scale/offset filter only supported for integer and floating-point types")
    if scaleoffset is not True and scaleoffset < 0:
        raise ValueError("scale factor must be >= 0")
    if dtype.kind == "f":
        if scaleoffset is True:
            raise ValueError(
                "integer scaleoffset must be provided for floating point types"
            )
        return (h5z.FILTER_SCALEOFFSET, False, [h5z.SO_FLOAT_DSCALE, int(scaleoffset)])
    bits = 0 if scaleoffset is True else int(scaleoffset)
    return (h5z.FILTER_SCALEOFFSET, False, [h5z.SO_INT, bits])


def fill(options, shape, dtype, chunks, compression, compression_opts, shuffle, fletcher32, maxshape, scaleoffset,
         external, allow_unknown_filter):  # fmt: skip
    """Puts chunks and filters into the options of a new dataset, as h5py chooses them."""
    shapetype = "Empty" if shape is None else "Scalar" if shape == () else "Array"
    given = (chunks, compression, compression_opts, shuffle, fletcher32, maxshape, scaleoffset)
    if shapetype != "Array":
        if any(one for one in given):
            raise TypeError(f"{shapetype} datasets don't support chunk/filter options")
        return
    check_shape(shape, maxshape, chunks)
    if isinstance(chunks, tuple) and any(isinstance(side, bool) for side in chunks):
        raise TypeError("Chunk shape must be given as integers")
    compression, compression_opts = _named(compression, compression_opts)
    if compression is None and compression_opts is not None:
        raise TypeError("Compression method must be specified")
    if compression is not None and compression is not False:
        if compression not in _COMPRESSION and not isinstance(compression, (int, np.integer)):
            raise ValueError(f'Compression filter "{compression}" is unavailable')
    else:
        compression = None
    scale = _scale(scaleoffset, dtype)
    if scale is not None and fletcher32 and dtype.kind == "f":
        raise ValueError("fletcher32 cannot be used with potentially lossy scale/offset filter")
    if external and (chunks or compression or shuffle or fletcher32 or scale):
        raise ValueError("External datasets have no chunks and no filters")
    filtered = bool(compression or shuffle or fletcher32 or scale or maxshape is not None and not external)
    if chunks is False and filtered:
        raise ValueError("Chunked format required for given storage options")
    if chunks is True or chunks is None and filtered:
        chunks = guess_chunk(shape, maxshape, max(dtype.itemsize, 1))
    if not chunks:
        return
    options["chunk"] = [int(side) for side in chunks]
    filters: list[Any] = []
    if shuffle and scale is None:
        filters.append((h5z.FILTER_SHUFFLE, True, []))
    known = _compression(compression, compression_opts, dtype) if compression is not None else None
    if scale is not None:
        filters.append(scale)
    if known is not None:
        filters.append(known)
    elif compression is not None:
        if not 0 <= int(compression) <= h5z.FILTER_MAX:
            raise ValueError(f"Invalid filter number: {compression}")
        if not allow_unknown_filter and not h5z.filter_avail(int(compression)):
            raise ValueError(f"Unknown compression filter number: {compression}")
        values = () if compression_opts is None else compression_opts
        filters.append((int(compression), bool(allow_unknown_filter), [int(value) & 0xFFFFFFFF for value in values]))
    if fletcher32:
        filters.append((h5z.FILTER_FLETCHER32, False, []))
    options["filters"] = filters


# The number of the location filter.
LOCATION = 302


def of_locations(compression):
    """The filters of the locations of a sparse dataset: the location filter, alone (``True``), with a compression behind
    it, or none at all (``False``)."""
    if compression is False:
        return []
    filters: list[Any] = [(LOCATION, True, [])]
    if compression is not True:
        given: dict[str, Any] = {}
        fill(given, (1,), np.dtype("u1"), (1,), compression, None, None, None, None, None, None, False)
        filters += given["filters"]
    return filters


def get_filters(plist):
    """Names of filters and their parameters."""
    names = {1: "gzip", 2: "shuffle", 3: "fletcher32", 4: "szip", 6: "scaleoffset", 32000: "lzf"}
    found = {}
    for at in range(plist.get_nfilters()):
        code, _, values, _ = plist.get_filter(at)
        if code == h5z.FILTER_DEFLATE:
            values = values[0] if values else None
        elif code == h5z.FILTER_SZIP:
            coding = "ec" if values[0] & h5z.SZIP_EC_OPTION_MASK else "nn"
            values = (coding, values[1])
        elif code == h5z.FILTER_LZF or values == ():
            values = None
        found[names.get(code, str(code))] = values
    return found
