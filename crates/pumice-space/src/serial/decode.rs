//! Bytes to selections, all versions.

use super::extent::all_ones;
use super::{FLAG_REGULAR, TYPE_ALL, TYPE_HYPERSLAB, TYPE_NONE, TYPE_POINTS};
use crate::selection::axis::Axis;
use crate::selection::build::{Boxes, union_of_boxes};
use crate::selection::{Axes, Kind};
use crate::{HyperslabAxis, Selection, UNLIMITED};
use pumice_bytes::{DecodeError, Reader, memory};

/// A selection as it was written, before it is made into anything.
pub(super) enum Parsed {
    All,
    None,
    Points(Vec<u64>),
    Regular(Axes),
    /// Corners; they may overlap, in any order.
    Blocks(Boxes),
}

/// Reads a selection of `rank` dimensions, any version.
///
/// Blocks that overlap count once. An unlimited hyperslab stays unlimited. The selection may reach
/// beyond an extent: that is the caller's to check.
///
/// ```
/// use pumice_bytes::Reader;
/// use pumice_space::{Selection, serial};
///
/// let slab = Selection::hyperslab(&[1, 0], &[3, 9], &[4, 1], &[2, 5])?;
/// let mut bytes = Vec::new();
/// serial::encode_selection(&slab, &[20, 20], &mut bytes)?;
/// let back = serial::decode_selection(&mut Reader::new("selection", 0, &bytes), 2)?;
/// assert!(back.same_cells(&slab, &[20, 20])?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn decode_selection(reader: &mut Reader<'_>, rank: usize) -> Result<Selection, DecodeError> {
    let parsed = parse(reader, rank)?;
    to_selection(parsed, rank, reader)
}

pub(super) fn to_selection(
    parsed: Parsed,
    rank: usize,
    reader: &Reader<'_>,
) -> Result<Selection, DecodeError> {
    match parsed {
        Parsed::All => Ok(Selection::all()),
        Parsed::None => Ok(Selection::none()),
        Parsed::Regular(axes) => Ok(Selection(Kind::Product(axes))),
        Parsed::Points(coords) => {
            let points = Selection::points(rank, coords);
            points.map_err(|error| reader.error("points", error))
        }
        Parsed::Blocks(boxes) => {
            // Disjoint blocks in any sensible order stay far below this.
            let limit = (1 << 16) + 64 * (rank * boxes.len()) as u64;
            let tree = union_of_boxes(&boxes, Vec::new(), limit);
            let tree =
                tree.map_err(|error| reader.error("blocks that form a simple set", error))?;
            Ok(Selection::from_tree(rank, tree))
        }
    }
}

/// Reads a selection without combining its blocks. Allocates a small multiple of the bytes that it
/// reads.
pub(super) fn parse(reader: &mut Reader<'_>, rank: usize) -> Result<Parsed, DecodeError> {
    let kind = reader.u32()?;
    let version = reader.u32()?;
    match (kind, version) {
        (TYPE_NONE, 1) => reader.skip(8).map(|()| Parsed::None),
        (TYPE_ALL, 1) => reader.skip(8).map(|()| Parsed::All),
        (TYPE_POINTS, 1) => {
            reader.skip(8)?;
            parse_points(reader, rank, 4)
        }
        (TYPE_POINTS, 2) => {
            let width = parse_width(reader)?;
            parse_points(reader, rank, width)
        }
        (TYPE_HYPERSLAB, 1) => {
            reader.skip(8)?;
            check_rank(reader, rank)?;
            parse_blocks(reader, rank, 4)
        }
        (TYPE_HYPERSLAB, 2) => {
            if parse_flags(reader)? != FLAG_REGULAR {
                return Err(reader.error("a regular hyperslab", "blocks"));
            }
            reader.skip(4)?;
            check_rank(reader, rank)?;
            parse_regular(reader, rank, 8)
        }
        (TYPE_HYPERSLAB, 3) => {
            let flags = parse_flags(reader)?;
            let width = parse_width(reader)?;
            check_rank(reader, rank)?;
            if flags == FLAG_REGULAR {
                return parse_regular(reader, rank, width);
            }
            parse_blocks(reader, rank, width)
        }
        (TYPE_NONE | TYPE_POINTS | TYPE_HYPERSLAB | TYPE_ALL, _) => {
            let newest = match kind {
                TYPE_HYPERSLAB => 3u32,
                TYPE_POINTS => 2,
                _ => 1,
            };
            Err(reader.unknown(format!("selection version 1 to {newest}"), newest, version))
        }
        _ => Err(reader.unknown("selection type 0 to 3", 3u8, kind)),
    }
}

fn parse_flags(reader: &mut Reader<'_>) -> Result<u8, DecodeError> {
    let flags = reader.u8()?;
    if flags & !FLAG_REGULAR != 0 {
        return Err(reader.error("hyperslab flags 0 or 1", flags));
    }
    Ok(flags)
}

fn parse_width(reader: &mut Reader<'_>) -> Result<usize, DecodeError> {
    match reader.u8()? {
        width @ (2 | 4 | 8) => Ok(usize::from(width)),
        other => Err(reader.error("numbers of 2, 4 or 8 bytes", other)),
    }
}

fn check_rank(reader: &mut Reader<'_>, rank: usize) -> Result<(), DecodeError> {
    let found = reader.u32()?;
    if rank == 0 || usize::try_from(found) != Ok(rank) {
        return Err(reader.error(format!("a selection of rank {rank}"), found));
    }
    Ok(())
}

fn parse_points(reader: &mut Reader<'_>, rank: usize, width: usize) -> Result<Parsed, DecodeError> {
    check_rank(reader, rank)?;
    let count = reader.uint(width)?;
    let count = reader.count(count, rank * width)?;
    ask(reader, count * rank)?;
    let coords: Result<Vec<u64>, _> = (0..count * rank).map(|_| reader.uint(width)).collect();
    let coords = coords?;
    if coords.contains(&UNLIMITED) {
        return Err(reader.error("coordinates with an end", UNLIMITED));
    }
    Ok(Parsed::Points(coords))
}

/// Fails if there is no memory for this many numbers, in a list that may grow.
fn ask(reader: &Reader<'_>, numbers: usize) -> Result<(), DecodeError> {
    if memory::is_there((numbers as u64).saturating_mul(16)) {
        return Ok(());
    }
    Err(reader.error("a selection that there is memory for", format!("{numbers} numbers")))
}

fn parse_regular(
    reader: &mut Reader<'_>,
    rank: usize,
    width: usize,
) -> Result<Parsed, DecodeError> {
    let unlimited = |value| if value == all_ones(width) { UNLIMITED } else { value };
    let mut axes = Axes::new();
    for axis in 0..rank {
        let (start, stride) = (reader.uint(width)?, reader.uint(width)?);
        let (count, block) = (unlimited(reader.uint(width)?), unlimited(reader.uint(width)?));
        let parameters = HyperslabAxis { start, stride, count, block };
        let axis = Axis::new(parameters, axis);
        axes.push(axis.map_err(|error| reader.error("a hyperslab", error))?);
    }
    Ok(Parsed::Regular(axes))
}

fn parse_blocks(reader: &mut Reader<'_>, rank: usize, width: usize) -> Result<Parsed, DecodeError> {
    let count = reader.uint(width)?;
    let count = reader.count(count, 2 * rank * width)?;
    ask(reader, count * 2 * rank)?;
    let mut boxes = Boxes::new(rank);
    boxes.reserve(count);
    let bytes = reader.take(count * 2 * rank * width)?;
    let ascending = match width {
        2 => boxes.extend_from(bytes, |at| u64::from(u16::from_le_bytes(at))),
        4 => boxes.extend_from(bytes, |at| u64::from(u32::from_le_bytes(at))),
        _ => boxes.extend_from(bytes, u64::from_le_bytes),
    };
    if !ascending {
        return Err(reader.error("blocks that begin before they end", "the reverse"));
    }
    Ok(Parsed::Blocks(boxes))
}
