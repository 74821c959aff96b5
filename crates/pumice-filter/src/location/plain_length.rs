//! How long the plain form of a set is, without making it.
//!
//! A chunk's index records the length of every section before filters, so the length is needed even
//! where the plain form is not. Pumice writes a set that is not a regular hyperslab as its blocks:
//! neighbouring slices across an axis that select the same cells make one block, the slowest axis first,
//! as in HDF5's span trees. Counting them takes one pass over the set.
//!
//! This knows the forms that [`serial`](pumice_space::serial) chooses from. Where it is not certain
//! which of them it would be, it says so, and the plain form has to be made.

use crate::scratch;

/// Bytes of a plain form around the selection: prefix, extent without its sizes, checksum.
const FRAME: u64 = 7 + 8 + 4;

/// The most blocks that are written one by one.
const MOST_BLOCKS: u64 = 1 << 28;

/// The length of the plain form of a set of `runs` (first cell, cell after the last) in a chunk of
/// shape `dims`, or `None` if only making it will tell.
pub(super) fn plain_length(dims: &[u64], cells: u64, runs: &[[u64; 2]]) -> Option<u64> {
    let rank = dims.len() as u64;
    let frame = FRAME + 8 * rank;
    if runs.is_empty() || *runs == [[0, cells]] {
        return Some(frame + 16);
    }
    let words = split(dims[dims.len() - 1], runs)?;
    let strides = (1..=dims.len()).map(|axis| dims[axis..].iter().product()).collect();
    let mut counter = Counter { strides, irregular: false, highest: 0 };
    let blocks = counter.blocks(words.as_chunks::<2>().0, 0, 0);
    scratch::give_words(words);
    if !counter.irregular || blocks > MOST_BLOCKS {
        return None;
    }
    let corners = 2 * rank * blocks;
    let width = match blocks.max(counter.highest) {
        0..=0xFFFF => 2,
        0x1_0000..=0xFFFF_FFFF => 4,
        _ => 8,
    };
    let third = 14 + width * (1 + corners);
    let small = u64::from(u32::MAX);
    let fits = counter.highest <= small && 8 + 4 * corners <= small;
    let first = if fits { 24 + 4 * corners } else { u64::MAX };
    Some(frame + first.min(third))
}

/// The runs cut at the ends of rows of `row` cells, flat; `None` if that makes many more of them.
fn split(row: u64, runs: &[[u64; 2]]) -> Option<Vec<u64>> {
    let most = 4 * runs.len() + 128;
    let mut pieces = scratch::take_words(2 * runs.len() + 128);
    pieces.clear();
    let mut row_end = row;
    for &[mut start, end] in runs {
        if start >= row_end {
            // A division takes longer than everything else here, and rows are seldom left out.
            row_end += row;
            if start >= row_end {
                row_end = start - start % row + row;
            }
        }
        while end > row_end {
            pieces.extend_from_slice(&[start, row_end]);
            (start, row_end) = (row_end, row_end + row);
            if pieces.len() > most {
                scratch::give_words(pieces);
                return None;
            }
        }
        pieces.extend_from_slice(&[start, end]);
    }
    Some(pieces)
}

/// Counts the blocks of a set that is cut into pieces of rows.
struct Counter {
    /// The cells of one slice across each axis; 1 for the last.
    strides: Vec<u64>,
    /// Whether the set is known not to be a regular hyperslab.
    irregular: bool,
    /// The highest coordinate.
    highest: u64,
}

impl Counter {
    /// The blocks of what begins at cell `base` and is divided into slices across `axis`.
    fn blocks(&mut self, pieces: &[[u64; 2]], base: u64, axis: usize) -> u64 {
        if axis + 1 == self.strides.len() {
            return self.row(pieces, base);
        }
        let stride = self.strides[axis];
        let rows = axis + 2 == self.strides.len();
        let mut blocks = 0;
        let mut before: Option<(&[[u64; 2]], u64)> = None;
        let mut rest = pieces;
        while let Some(&[first, _]) = rest.first() {
            let expected = before.map_or(base, |(_, slice)| slice + stride);
            let slice = match first < expected + stride {
                true => expected,
                false => first - (first - base) % stride,
            };
            let inside = |piece: &[u64; 2]| piece[0] < slice + stride;
            // A row has few pieces; a larger slice may have many.
            let here = match rows {
                true => rest.iter().take_while(|piece| inside(piece)).count(),
                false => rest.partition_point(inside),
            };
            let (now, later) = rest.split_at(here);
            let same = before.is_some_and(|(pieces, from)| same(pieces, from, now, slice));
            self.irregular |= before.is_some() && !same;
            if !same || slice != expected {
                blocks += self.blocks(now, slice, axis + 1);
            }
            (before, rest) = (Some((now, slice)), later);
        }
        if let Some((_, slice)) = before {
            self.highest = self.highest.max((slice - base) / stride);
        }
        blocks
    }

    fn row(&mut self, pieces: &[[u64; 2]], base: u64) -> u64 {
        if let Some([_, end]) = pieces.last() {
            self.highest = self.highest.max(end - 1 - base);
        }
        if !self.irregular {
            let uneven = |pair: &[[u64; 2]]| pair[0][1] - pair[0][0] != pair[1][1] - pair[1][0];
            let stride = |pair: &[[u64; 2]]| pair[1][0] - pair[0][0];
            let mut pairs = pieces.windows(2);
            let first = pairs.clone().next().map(stride);
            self.irregular = pairs.any(|pair| uneven(pair) || Some(stride(pair)) != first);
        }
        pieces.len() as u64
    }
}

/// Whether two slices, beginning at `a_base` and `b_base`, select the same.
fn same(a: &[[u64; 2]], a_base: u64, b: &[[u64; 2]], b_base: u64) -> bool {
    let from = |base: u64| move |piece: &[u64; 2]| [piece[0] - base, piece[1] - base];
    a.len() == b.len() && a.iter().map(from(a_base)).eq(b.iter().map(from(b_base)))
}
