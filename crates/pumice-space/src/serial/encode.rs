//! Selections to bytes: which form is shortest, and the bytes of each.
//!
//! | form | after type and version (4 bytes each) |
//! |---|---|
//! | all, none | 8 zero bytes |
//! | points 1 | 4 zero bytes, length, rank, count, coordinates; 4 bytes each |
//! | points 2 | width (1 byte), rank (4), count and coordinates of that width |
//! | hyperslab 1 | 4 zero bytes, length, rank, count, corners; 4 bytes each |
//! | hyperslab 2 | flags (1 byte), length (4), rank (4), start, stride, count and block of each dimension, 8 bytes each |
//! | hyperslab 3 | flags, width (1 byte each), rank (4), then as 2, or count and corners, of that width |

use super::extent::all_ones;
use super::{FLAG_REGULAR, TYPE_ALL, TYPE_HYPERSLAB, TYPE_NONE, TYPE_POINTS};
use crate::selection::Kind;
use crate::{Hyperslab, Selection, SpaceError, UNLIMITED};
use pumice_bytes::Writer;

/// The version in which hyperslabs and points are encoded.
///
/// ```
/// use pumice_space::{Selection, serial::{HyperslabVersion, encode_selection_with}};
///
/// let block = Selection::block(&[2], &[5])?;
/// let size = |version| {
///     let mut out = Vec::new();
///     encode_selection_with(&block, &[10], version, &mut out).map(|()| out.len())
/// };
/// assert_eq!(size(HyperslabVersion::Smallest)?, 20);
/// assert_eq!(size(HyperslabVersion::V1)?, 32);
/// # Ok::<(), pumice_space::SpaceError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HyperslabVersion {
    /// The shortest; on a tie, the lower version.
    #[default]
    Smallest,
    /// Version 1: 32-bit corners. Every HDF5 reads it.
    V1,
    /// Version 2: regular hyperslabs only, 64 bits. HDF5 1.10.
    V2,
    /// Version 3: regular or corners, in 16, 32 or 64 bits. HDF5 1.12.
    V3,
}

/// The most blocks that are written out one by one.
const MAX_BLOCKS: u64 = 1 << 28;

/// Writes a selection of an array of shape `dims` in the shortest form.
///
/// Unlimited hyperslabs stay unlimited. Points keep their order.
pub fn encode_selection(
    selection: &Selection,
    dims: &[u64],
    out: &mut Vec<u8>,
) -> Result<(), SpaceError> {
    encode_selection_with(selection, dims, HyperslabVersion::Smallest, out)
}

/// Writes a selection in a form of the caller's choice, or an error if that cannot express it.
pub fn encode_selection_with(
    selection: &Selection,
    dims: &[u64],
    version: HyperslabVersion,
    out: &mut Vec<u8>,
) -> Result<(), SpaceError> {
    crate::extent::same_rank(dims.len(), selection.rank().unwrap_or(dims.len()))?;
    match &selection.0 {
        _ if selection.is_none() => put_marker(TYPE_NONE, out),
        Kind::All | Kind::None => put_marker(TYPE_ALL, out),
        Kind::Product(axes) if axes.is_empty() => put_marker(TYPE_ALL, out),
        Kind::Points(points) => return put_points(points.rank, &points.coords, version, out),
        _ => return encode_blocks(selection, dims, version, out),
    }
    Ok(())
}

/// Writes "all" or "none".
pub(super) fn put_all(out: &mut Vec<u8>) {
    put_marker(TYPE_ALL, out);
}

pub(super) fn put_none(out: &mut Vec<u8>) {
    put_marker(TYPE_NONE, out);
}

fn put_marker(kind: u32, out: &mut Vec<u8>) {
    out.put_u32(kind);
    out.put_u32(1);
    out.put_zeros(8);
}

fn put_points(
    rank: usize,
    coords: &[u64],
    version: HyperslabVersion,
    out: &mut Vec<u8>,
) -> Result<(), SpaceError> {
    let count = (coords.len() / rank) as u64;
    let highest = coords.iter().copied().max().unwrap_or(0);
    out.put_u32(TYPE_POINTS);
    if version != HyperslabVersion::V1 {
        // Never longer than version 1, which has 4 bytes a coordinate and a longer header.
        let width = width_for(count.max(highest));
        out.put_u32(2);
        out.put_u8(width as u8);
        out.put_u32(rank as u32);
        out.put_uint(count, width);
        coords.iter().for_each(|&at| out.put_uint(at, width));
        return Ok(());
    }
    let length = u32::try_from(8 + 4 * coords.len() as u64);
    let (Ok(length), true) = (length, highest <= u64::from(u32::MAX)) else {
        return Err(SpaceError::Inexpressible("a list of points"));
    };
    out.put_u32(1);
    out.put_u32(0);
    out.put_u32(length);
    out.put_u32(rank as u32);
    out.put_u32(count as u32);
    coords.iter().for_each(|&at| out.put_u32(at as u32));
    Ok(())
}

/// Writes a selection that is neither all, none nor empty as a hyperslab; points as a set.
pub(super) fn encode_blocks(
    selection: &Selection,
    dims: &[u64],
    version: HyperslabVersion,
    out: &mut Vec<u8>,
) -> Result<(), SpaceError> {
    if let Kind::Product(axes) = &selection.0 {
        let regular = selection.regular();
        let count = axes.iter().fold(1u64, |sum, axis| sum.saturating_mul(axis.span_count()));
        let highest = axes.iter().map(|axis| axis.last).max().unwrap_or(0);
        let form = Form::choose(version, axes.len(), regular, count, highest)?;
        let walk = |visit: &mut dyn FnMut(&[u64], &[u64])| selection.for_each_block(dims, visit);
        form.put(axes.len(), |width, out| put_corners(width, walk, out), out);
        return Ok(());
    }
    let tree = selection.to_tree(dims)?.ok_or(SpaceError::Inexpressible("an empty selection"))?;
    let rank = dims.len();
    // A tree that turns out to be a regular hyperslab is written as one.
    let product = Selection::from_tree(rank, Some(tree.clone()));
    if matches!(product.0, Kind::Product(_)) {
        return encode_blocks(&product, dims, version, out);
    }
    let highest = tree.bounds(rank).1.into_iter().max().unwrap_or(0);
    let form = Form::choose(version, rank, None, tree.block_count(), highest)?;
    let walk = |mut visit: &mut dyn FnMut(&[u64], &[u64])| tree.for_each_block(rank, &mut visit);
    form.put(rank, |width, out| put_corners(width, walk, out), out);
    Ok(())
}

/// A way to write a hyperslab, with its parameters.
pub(super) enum Form {
    Corners1 { count: u32, length: u32 },
    Regular2(Hyperslab),
    Regular3(Hyperslab, usize),
    Corners3 { count: u64, width: usize },
}

impl Form {
    /// The shortest form of `version` for `count` blocks with coordinates up to `highest`.
    pub(super) fn choose(
        version: HyperslabVersion,
        rank: usize,
        regular: Option<Hyperslab>,
        count: u64,
        highest: u64,
    ) -> Result<Self, SpaceError> {
        let allowed = |wanted| version == HyperslabVersion::Smallest || version == wanted;
        let corners = rank as u64 * 2;
        let mut forms: Vec<(u64, Self)> = Vec::new();
        let narrow = u64::from(u32::MAX);
        if allowed(HyperslabVersion::V1) && highest <= narrow && count <= MAX_BLOCKS {
            let length = u32::try_from(8 + 4 * corners * count);
            let form = length.map(|length| Self::Corners1 { count: count as u32, length });
            forms.extend(form.map(|form| (24 + 4 * corners * count, form)));
        }
        if let Some(regular) = regular {
            if allowed(HyperslabVersion::V2) {
                forms.push((17 + 16 * corners, Self::Regular2(regular.clone())));
            }
            if allowed(HyperslabVersion::V3) {
                let width = regular_width(&regular);
                let size = 14 + 2 * corners * width as u64;
                forms.push((size, Self::Regular3(regular, width)));
            }
        }
        if allowed(HyperslabVersion::V3) && highest < UNLIMITED && count <= MAX_BLOCKS {
            let width = width_for(count.max(highest));
            let size = 14 + width as u64 * (1 + corners * count);
            forms.push((size, Self::Corners3 { count, width }));
        }
        if forms.is_empty() && count > MAX_BLOCKS {
            return Err(SpaceError::TooComplex { limit: MAX_BLOCKS });
        }
        let shortest = forms.into_iter().min_by_key(|form| form.0);
        shortest.map(|form| form.1).ok_or(SpaceError::Inexpressible("a hyperslab"))
    }

    /// Writes the hyperslab; `corners` writes its blocks in numbers of the given width.
    pub(super) fn put(
        self,
        rank: usize,
        corners: impl FnOnce(usize, &mut Vec<u8>),
        out: &mut Vec<u8>,
    ) {
        out.put_u32(TYPE_HYPERSLAB);
        match self {
            Self::Corners1 { count, length } => {
                out.put_u32(1);
                out.put_u32(0);
                out.put_u32(length);
                out.put_u32(rank as u32);
                out.put_u32(count);
                corners(4, out);
            }
            Self::Regular2(axes) => {
                out.put_u32(2);
                out.put_u8(FLAG_REGULAR);
                out.put_u32(4 + 32 * rank as u32);
                out.put_u32(rank as u32);
                put_axes(&axes, 8, out);
            }
            Self::Regular3(axes, width) => {
                out.put_u32(3);
                out.put_u8(FLAG_REGULAR);
                out.put_u8(width as u8);
                out.put_u32(rank as u32);
                put_axes(&axes, width, out);
            }
            Self::Corners3 { count, width } => {
                out.put_u32(3);
                out.put_u8(0);
                out.put_u8(width as u8);
                out.put_u32(rank as u32);
                out.put_uint(count, width);
                corners(width, out);
            }
        }
    }
}

fn put_axes(axes: &Hyperslab, width: usize, out: &mut Vec<u8>) {
    for axis in axes {
        // The low bytes of "unlimited" are all ones at any width.
        for value in [axis.start, axis.stride, axis.count, axis.block] {
            out.put_uint(value, width);
        }
    }
}

fn put_corners(width: usize, walk: impl FnOnce(&mut dyn FnMut(&[u64], &[u64])), out: &mut Vec<u8>) {
    match width {
        2 => walk(&mut |low, high| put_block(low, high, |at| (at as u16).to_le_bytes(), out)),
        4 => walk(&mut |low, high| put_block(low, high, |at| (at as u32).to_le_bytes(), out)),
        _ => walk(&mut |low, high| put_block(low, high, |at| at.to_le_bytes(), out)),
    }
}

#[inline]
fn put_block<const N: usize>(
    low: &[u64],
    high: &[u64],
    bytes: impl Fn(u64) -> [u8; N],
    out: &mut Vec<u8>,
) {
    for &at in low.iter().chain(high) {
        out.extend_from_slice(&bytes(at));
    }
}

/// The smallest of 2, 4 and 8 bytes that holds `value`.
fn width_for(value: u64) -> usize {
    [2, 4].into_iter().find(|&width| value <= all_ones(width)).unwrap_or(8)
}

/// The width of regular version 3: no count or block may look like "unlimited".
fn regular_width(axes: &Hyperslab) -> usize {
    let highest = axes.iter().flat_map(|axis| {
        let sizes = [axis.count, axis.block].map(|size| size.wrapping_add(1));
        // A single unlimited block has an unlimited stride, which any width can stand for.
        let stride = if axis.block == UNLIMITED { 0 } else { axis.stride };
        [sizes[0], sizes[1], axis.start, stride]
    });
    width_for(highest.max().unwrap_or(0))
}
