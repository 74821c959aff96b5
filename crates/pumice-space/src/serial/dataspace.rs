//! Extent and selection in one, as `H5Sencode` writes them: section 0 of a structured chunk.
//!
//! ```text
//! 01 (dataspace), 00 (version), 08 (size of lengths), extent length (4 bytes), extent, selection
//! ```
//! The extent is that of the whole chunk, and coordinates are relative to it.

use super::blocks::FlatTree;
use super::decode::{Parsed, parse, to_selection};
use super::encode::{Form, HyperslabVersion, encode_blocks, put_all, put_none};
use super::extent::{decode_lenient, encode_extent};
use crate::extent::product;
use crate::{CellSet, Dims, Extent, Selection, SpaceError};
use pumice_bytes::{Budget, DecodeError, Reader, Writer};

const MESSAGE_DATASPACE: u8 = 1;
const ENCODE_VERSION: u8 = 0;
const LENGTH_SIZE: usize = 8;

/// Writes extent and selection of a chunk: version 1 extent without maximum, then the shortest
/// selection. Points are written as a set.
///
/// ```
/// use pumice_space::{Selection, serial};
///
/// let mut out = Vec::new();
/// serial::encode_dataspace(&[10], &Selection::all(), &mut out)?;
/// assert_eq!(out.len(), 39);
/// # Ok::<(), pumice_space::SpaceError>(())
/// ```
pub fn encode_dataspace(
    chunk_dims: &[u64],
    selection: &Selection,
    out: &mut Vec<u8>,
) -> Result<(), SpaceError> {
    encode_dataspace_with(chunk_dims, selection, HyperslabVersion::Smallest, out)
}

/// [`encode_dataspace`] with hyperslabs in a form of the caller's choice.
pub fn encode_dataspace_with(
    chunk_dims: &[u64],
    selection: &Selection,
    version: HyperslabVersion,
    out: &mut Vec<u8>,
) -> Result<(), SpaceError> {
    selection.check(chunk_dims)?;
    put_header(chunk_dims, out)?;
    if selection.is_none() {
        put_none(out);
    } else if selection.covers(chunk_dims) {
        put_all(out);
    } else {
        encode_blocks(&selection.clip(chunk_dims)?, chunk_dims, version, out)?;
    }
    Ok(())
}

/// [`encode_dataspace`] straight from a cell set: the same bytes, faster.
///
/// ```
/// use pumice_space::{CellSet, serial};
///
/// let (mut fast, mut plain) = (Vec::new(), Vec::new());
/// let set = CellSet::from_sorted_cells(20, [2, 3, 7, 12, 13])?;
/// serial::encode_cells(&[4, 5], &set, &mut fast)?;
/// serial::encode_dataspace(&[4, 5], &set.to_selection(&[4, 5])?, &mut plain)?;
/// assert_eq!(fast, plain);
/// # Ok::<(), pumice_space::SpaceError>(())
/// ```
pub fn encode_cells(
    chunk_dims: &[u64],
    cells: &CellSet,
    out: &mut Vec<u8>,
) -> Result<(), SpaceError> {
    encode_cells_with(chunk_dims, cells, HyperslabVersion::Smallest, out)
}

/// [`encode_cells`] with hyperslabs in a form of the caller's choice.
pub fn encode_cells_with(
    chunk_dims: &[u64],
    cells: &CellSet,
    version: HyperslabVersion,
    out: &mut Vec<u8>,
) -> Result<(), SpaceError> {
    cells.check_shape(chunk_dims)?;
    put_header(chunk_dims, out)?;
    if cells.is_empty() {
        put_none(out);
        return Ok(());
    }
    if cells.is_full() {
        put_all(out);
        return Ok(());
    }
    let tree = FlatTree::new(cells, chunk_dims);
    let (count, highest) = (tree.block_count(), tree.highest());
    let form = Form::choose(version, chunk_dims.len(), tree.regular(), count, highest)?;
    form.put(chunk_dims.len(), |width, out| tree.put_corners(width, out), out);
    Ok(())
}

fn put_header(chunk_dims: &[u64], out: &mut Vec<u8>) -> Result<(), SpaceError> {
    out.put_u8(MESSAGE_DATASPACE);
    out.put_u8(ENCODE_VERSION);
    out.put_u8(LENGTH_SIZE as u8);
    out.put_u32(8 + (LENGTH_SIZE * chunk_dims.len()) as u32);
    encode_extent(&Extent::simple(chunk_dims)?, 1, LENGTH_SIZE, out)
}

/// Reads extent and selection; the selection lies inside the extent.
///
/// The maximum of the extent, which may be anything, is dropped.
///
/// ```
/// use pumice_bytes::Reader;
/// use pumice_space::{Selection, serial};
///
/// let mut bytes = Vec::new();
/// serial::encode_dataspace(&[10], &Selection::block(&[2], &[5])?, &mut bytes)?;
/// let (extent, selection) = serial::decode_dataspace(&mut Reader::new("section 0", 0, &bytes))?;
/// assert_eq!(extent.dims(), [10]);
/// assert_eq!(selection.count(&[10]), 5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn decode_dataspace(reader: &mut Reader<'_>) -> Result<(Extent, Selection), DecodeError> {
    let extent = decode_header(reader)?;
    let rank = extent.rank();
    let parsed = parse(reader, rank)?;
    let selection = inside(to_selection(parsed, rank, reader)?, extent.dims(), reader)?;
    Ok((extent, selection))
}

/// Reads extent and selection straight into a cell set, with the shape of the chunk.
///
/// Memory is taken from `budget`: at most a few bytes per run or an eighth of a byte per cell,
/// whichever is less.
///
/// ```
/// use pumice_bytes::{Budget, Reader};
/// use pumice_space::{CellSet, serial};
///
/// let mut bytes = Vec::new();
/// let set = CellSet::from_sorted_cells(20, [2, 3, 7])?;
/// serial::encode_cells(&[4, 5], &set, &mut bytes)?;
/// let mut reader = Reader::new("section 0", 0, &bytes);
/// let (dims, back) = serial::decode_cells(&mut reader, &mut Budget::new(1 << 20))?;
/// assert_eq!((dims.as_slice(), back), ([4, 5].as_slice(), set));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn decode_cells(
    reader: &mut Reader<'_>,
    budget: &mut Budget,
) -> Result<(Dims, CellSet), DecodeError> {
    let extent = decode_header(reader)?;
    let dims: Dims = extent.dims().into();
    let Some(cells) = extent.cells().filter(|_| !extent.is_null()) else {
        return Err(reader.error("a chunk of less than 2^64 cells", format!("{dims:?}")));
    };
    let (structure, address) = (reader.structure(), reader.address());
    let mut spend = |runs: u64| budget.spend(CellSet::most_bytes(cells, runs), structure, address);
    let selection = match parse(reader, dims.len())? {
        Parsed::All => return Ok((dims, CellSet::full(cells))),
        Parsed::None => return Ok((dims, CellSet::empty(cells))),
        Parsed::Blocks(boxes) => {
            let Some(runs) = boxes.run_count(&dims) else {
                return Err(reader.error(format!("blocks inside {dims:?}"), "others"));
            };
            if runs <= cells {
                spend(runs)?;
                let set = boxes.to_cells(&dims, cells, runs);
                return Ok((dims, set.map_err(|error| reader.error("cells", error))?));
            }
            // More runs than cells: blocks overlap. Their union is found without going by cells.
            to_selection(Parsed::Blocks(boxes), dims.len(), reader)?
        }
        parsed => inside(to_selection(parsed, dims.len(), reader)?, &dims, reader)?,
    };
    spend(run_estimate(&selection, &dims))?;
    let set = CellSet::from_selection(&selection, &dims);
    Ok((dims, set.map_err(|error| reader.error("cells", error))?))
}

/// An upper bound of the runs of a selection.
fn run_estimate(selection: &Selection, dims: &[u64]) -> u64 {
    let count = selection.count(dims);
    if selection.regular().is_none() {
        return count;
    }
    // Each row has at most as many runs as there are stretches along the last dimension.
    let shape = selection.shape(dims);
    let rows = product(shape.split_last().map_or(&[], |(_, rows)| rows)).unwrap_or(u64::MAX);
    let stretches = selection.regular().and_then(|axes| axes.last().map(|axis| axis.count));
    rows.saturating_mul(stretches.unwrap_or(count)).min(count)
}

fn inside(
    selection: Selection,
    dims: &[u64],
    reader: &Reader<'_>,
) -> Result<Selection, DecodeError> {
    let checked = selection.check(dims).and_then(|()| match selection.is_unlimited() {
        true => selection.clip(dims),
        false => Ok(selection),
    });
    checked.map_err(|error| reader.error("a selection inside the extent", error))
}

fn decode_header(reader: &mut Reader<'_>) -> Result<Extent, DecodeError> {
    let message = reader.u8()?;
    if message != MESSAGE_DATASPACE {
        return Err(reader.error("dataspace message (1)", message));
    }
    let version = reader.u8()?;
    if version != ENCODE_VERSION {
        return Err(reader.unknown("dataspace encoding version 0", 0u8, version));
    }
    let length_size = usize::from(reader.u8()?);
    let length = reader.u32()?;
    let length = reader.count(u64::from(length), 1)?;
    let (structure, address) = (reader.structure(), reader.address());
    let mut part = Reader::new(structure, address, reader.take(length)?);
    Ok(decode_lenient(&mut part, length_size)?.0)
}
