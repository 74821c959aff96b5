"""Datasets for other libraries: Arrow, notebooks. Each library is looked for when it is asked for."""

import base64
import html
import struct
import zlib

import numpy as np

from . import selections

# -- Arrow ---------------------------------------------------------------------------------------------


def to_arrow(dataset, args=()):
    """Cells for Arrow: a table of coordinates and values of a sparse dataset, a table of structures, an array of others.

    Strings and numbers are handed over without a copy.
    """
    import pyarrow

    if dataset.is_sparse:
        cells = dataset.sparse.cells(args)
        columns = {f"axis{at}": pyarrow.array(column) for at, column in enumerate(cells.coordinates)}
        values = cells.values
        if values.dtype.kind in "OS":
            values = pyarrow.array([bytes(one) for one in values], pyarrow.large_binary()).cast(pyarrow.large_string())
            return pyarrow.table({**columns, "value": values})
        return pyarrow.table({**columns, "value": _arrow_column(values)})
    datatype = dataset._file_type
    if datatype.class_number == 9 and datatype.tree[0] == "vlen-string":
        if len(dataset.shape) != 1:
            raise ValueError("Arrow has arrays of one dimension")
        offsets, text = dataset._ds.read_packed_strings(selections.select(dataset.shape, args, dataset=dataset).native)
        buffers = [None, pyarrow.py_buffer(offsets.view(np.int64)), pyarrow.py_buffer(text)]
        found = pyarrow.Array.from_buffers(pyarrow.large_string(), len(offsets) - 1, buffers)
        found.validate(full=True)
        return found
    found = np.asarray(dataset[args])
    if found.ndim != 1:
        raise ValueError("Arrow has arrays of one dimension; index the dataset, or flatten what you read")
    if found.dtype.names is not None:
        return pyarrow.table({name: _arrow_column(found[name]) for name in found.dtype.names})
    return _arrow_column(found)


def _arrow_column(values):
    """Numbers for Arrow, which has none in another order of bytes."""
    import pyarrow

    if values.dtype.kind in "iufbM":
        values = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("="))
    return pyarrow.array(values)


# -- notebooks -----------------------------------------------------------------------------------------


def spy(dataset, size=256):
    """A picture of the defined cells of a matrix, as an array of grey values: darker where more are defined."""
    if dataset.ndim != 2:
        raise ValueError(f"A picture is one of a matrix, not of an array of rank {dataset.ndim}")
    rows, columns = (max(1, side) for side in dataset.shape)
    height, width = min(size, rows), min(size, columns)
    counts = np.zeros((height, width))
    step = max(1, -(-rows // 64))
    for begin in range(0, rows, step):
        found = dataset.sparse.cells(np.s_[begin : begin + step])
        if not len(found.values):
            continue
        down = (found.coordinates[0] + begin) * height // rows
        counts += np.bincount(down * width + found.coordinates[1] * width // columns,
                              minlength=height * width).reshape(height, width)  # fmt: skip
    most = counts.max()
    shade = np.where(counts > 0, 0.25 + 0.75 * np.sqrt(counts / most if most else counts), 0)
    return (255 * (1 - shade)).astype(np.uint8)


def png(picture):
    """Grey values as the bytes of a PNG."""
    height, width = picture.shape

    def part(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = np.zeros((height, width + 1), np.uint8)
    rows[:, 1:] = picture
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    packed = zlib.compress(rows.tobytes(), 9)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", header) + part(b"IDAT", packed) + part(b"IEND", b"")


def dataset_html(dataset):
    """A dataset in a notebook: facts, and a picture where it is a sparse matrix."""
    if not dataset:
        return html.escape(repr(dataset))
    facts = [("shape", dataset.shape), ("dtype", dataset.dtype), ("chunks", dataset.chunks)]
    if dataset.filter_ids:
        facts.append(("filters", ", ".join(dataset.filter_names)))
    picture = ""
    if dataset.is_sparse:
        count = dataset.nnz
        facts += [("defined cells", f"{count:,}"), ("density", f"{dataset.density:.3%}")]
        if dataset.ndim == 2 and 0 < count <= 50_000_000:
            image = base64.b64encode(png(spy(dataset))).decode()
            picture = (f'<td rowspan="{len(facts)}"><img style="image-rendering: pixelated; border: 1px solid #888" '
                       f'src="data:image/png;base64,{image}"/></td>')  # fmt: skip
    rows = "".join(
        f"<tr><th>{html.escape(name)}</th><td>{html.escape(str(value))}</td>{picture if at == 0 else ''}</tr>"
        for at, (name, value) in enumerate(facts)
    )
    return f"<b>{html.escape(str(dataset.name))}</b><table>{rows}</table>"


def group_html(group):
    """A group in a notebook: its members."""
    if not group:
        return html.escape(repr(group))
    rows = []
    for at, name in enumerate(group):
        if at == 100:
            rows.append(f"<tr><td colspan=3>and {len(group) - 100} more</td></tr>")
            break
        found = group.get(name)
        shape, dtype = getattr(found, "shape", ""), getattr(found, "dtype", "")
        what = type(found).__name__.lower() if found is not None else "leads nowhere"
        rows.append(f"<tr><td>{html.escape(name)}</td><td>{what}</td><td>{html.escape(f'{shape} {dtype}')}</td></tr>")
    return f"<b>{html.escape(str(group.name))}</b><table>{''.join(rows)}</table>"
