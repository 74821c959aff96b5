//! Scattered cells: from a list of them to gaps and back, without toggles.
//!
//! The result is the one that [`plan`](super::plan) would choose for most such sets. Sets for which
//! it would choose another form (a difference along an axis, runs, the complement, a bitmap) are
//! left to it.

use super::Aim;
use super::compact;
use super::plain_length::{Counts, length};
use super::plan::{Kind, SAMPLES, choose};
use super::scan::{self, Scan, Scanned};
use crate::scratch;
use pumice_space::{CellSet, Division};
use pumice_wide::{Work, run_widely};

/// With this many cells in a row, rows are found by comparing cells instead of dividing them.
const SEVERAL: u64 = 4;

/// Cells that are compared at a time.
const BLOCK: usize = 32;

/// The most cells that are read into a list.
pub(super) const MOST_CELLS: usize = 1 << 26;

/// Replaces `out` by the compact form of a set of `runs` runs that is best written cell by cell, and
/// gives the length of its plain form; `None` for other sets.
pub(super) fn encode(
    dims: &[u64],
    set: &CellSet,
    runs: u64,
    aim: Aim,
    out: &mut Vec<u8>,
) -> Option<u64> {
    let small = set.cells() <= u64::from(u32::MAX);
    let scattered = set.len() <= 2 * runs && runs > 1;
    if !small || !scattered || choose(set.cells(), set.len(), runs) != (Kind::Cells, false) {
        return None;
    }
    if let Some(list) = set.as_list() {
        return encode_list(dims, list, runs, aim, out);
    }
    // A little more, as a set may write beyond the end.
    let mut list = scratch::take_numbers(set.len() as usize + 64);
    run_widely(PutList { set, list: &mut list });
    let length = encode_list(dims, &list, runs, aim, out);
    scratch::give_numbers(list);
    length
}

fn encode_list(dims: &[u64], list: &[u32], runs: u64, aim: Aim, out: &mut Vec<u8>) -> Option<u64> {
    if repeats(dims, list) {
        return None;
    }
    let mut gaps = scratch::take_numbers(list.len());
    gaps.clear();
    gaps.reserve(list.len());
    let scanned = match *dims {
        [rows, width] => scan_rows(list, [rows, width], runs, &mut gaps),
        _ => None,
    };
    let length = scanned.or_else(|| plain_length(dims, dims.iter().product(), list, runs));
    if length.is_some() {
        if gaps.is_empty() {
            run_widely(PutGaps { list, gaps: &mut gaps });
        }
        compact::encode_gaps(dims, &gaps, aim, out);
    }
    scratch::give_numbers(gaps);
    length
}

/// [`CellSet::put_list`], compiled for wide registers.
struct PutList<'a> {
    set: &'a CellSet,
    list: &'a mut Vec<u32>,
}

impl Work for PutList<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.set.put_list(self.list);
    }
}

/// Appends the gaps before cells.
struct PutGaps<'a> {
    list: &'a [u32],
    gaps: &'a mut Vec<u32>,
}

impl Work for PutGaps<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.gaps.extend(self.list.first());
        self.gaps.extend(self.list.windows(2).map(|pair| pair[1] - pair[0] - 1));
    }
}

/// As [`plain_length`], of the cells of a matrix, and the gaps before them. `None` if it takes more to know.
fn scan_rows(list: &[u32], [rows, width]: [u64; 2], runs: u64, gaps: &mut Vec<u32>) -> Option<u64> {
    let highest = rows.max(width).checked_sub(1)?;
    // As far as that, it does not matter which coordinate is the highest.
    if rows * width > Division::MOST || highest > u64::from(u16::MAX) {
        return None;
    }
    let rows_of = scan::Rows { list, width: width as u32, division: Division::by(width) };
    let Scanned { touching, continued, irregular } = run_widely(Scan { rows: rows_of, gaps });
    let counts = Counts { blocks: runs + touching - continued, highest };
    irregular.then(|| length(&[rows, width], counts)).flatten()
}

/// The share of samples that is checked before all are.
const FEW: usize = 4;

/// Whether cells often have another one a stride further, so that a difference may be shorter.
fn repeats(dims: &[u64], list: &[u32]) -> bool {
    let step = (list.len() / SAMPLES).max(1);
    let sampled = list.iter().step_by(step).take(SAMPLES);
    (0..dims.len().saturating_sub(1)).filter(|axis| dims[*axis] > 1).any(|axis| {
        let stride: u64 = dims[axis + 1..].iter().product();
        let further = |cell: &&u32| {
            let there = u32::try_from(u64::from(**cell) + stride);
            there.is_ok_and(|there| list.binary_search(&there).is_ok())
        };
        // Looking for a cell takes long, and most sets have next to none: then a few samples say enough.
        let few = sampled.clone().step_by(FEW);
        9 * few.clone().filter(further).count() >= few.len()
            && 3 * sampled.clone().filter(further).count() >= sampled.len()
    })
}

/// As [`plain_length`](super::plain_length::plain_length), from cells that form `runs` runs.
fn plain_length(dims: &[u64], cells: u64, list: &[u32], runs: u64) -> Option<u64> {
    let strides: Vec<u64> = (1..=dims.len()).map(|axis| dims[axis..].iter().product()).collect();
    let mut counter = Counter { strides, irregular: false, highest: 0 };
    let blocks = match *dims {
        // As many cells as rows at least: then looking at all rows is no waste.
        [rows, width] if cells <= Division::MOST && rows <= list.len() as u64 => {
            counter.blocks_of_rows(list, rows, width, runs)
        }
        _ => counter.blocks(list, 0, cells, 0),
    };
    let Counter { irregular, highest, .. } = counter;
    irregular.then(|| length(dims, Counts { blocks, highest })).flatten()
}

/// Counts the blocks of scattered cells.
struct Counter {
    /// The cells of one slice across each axis; 1 for the last.
    strides: Vec<u64>,
    /// Whether the set is known not to be a regular hyperslab.
    irregular: bool,
    /// The highest coordinate.
    highest: u64,
}

impl Counter {
    /// The blocks of the slice from `base` to `end` that has these cells and is divided further
    /// across `axis`.
    fn blocks(&mut self, list: &[u32], base: u64, end: u64, axis: usize) -> u64 {
        if axis + 1 == self.strides.len() {
            return self.row(list, base);
        }
        let stride = self.strides[axis];
        let rows = axis + 2 == self.strides.len();
        let (mut blocks, mut rest, mut next) = (0, list, base);
        let mut before: Option<(&[u32], u64)> = None;
        while let Some(&first) = rest.first().filter(|first| u64::from(**first) < end) {
            let first = u64::from(first);
            // A division takes longer than all the rest here, and slices are seldom left out.
            let start = if first < next + stride { next } else { first - (first - base) % stride };
            let stop = start + stride;
            // A row has few cells; a larger slice may have many.
            let here = match rows {
                true => rest.iter().take_while(|cell| u64::from(**cell) < stop).count(),
                false => rest.partition_point(|cell| u64::from(*cell) < stop),
            };
            let (now, later) = rest.split_at(here);
            let same = before.is_some_and(|(list, from)| same(list, now, start - from));
            self.irregular |= before.is_some() && !same;
            if !same || start != next {
                blocks += self.blocks(now, start, stop, axis + 1);
            }
            (rest, next, before) = (later, stop, Some((now, start)));
        }
        if let Some((_, start)) = before {
            self.highest = self.highest.max((start - base) / stride);
        }
        blocks
    }

    /// As [`blocks`](Self::blocks) for a matrix: from the runs, which are blocks unless they go on in
    /// another row or their row is like the one before it.
    fn blocks_of_rows(&mut self, list: &[u32], rows: u64, width: u64, runs: u64) -> u64 {
        let firsts = first_of_rows(list, rows, width);
        let mut blocks = runs;
        let mut before: Option<(&[u32], u64)> = None;
        for (row, bounds) in firsts.windows(2).enumerate() {
            let (start, end) = (bounds[0] as usize, bounds[1] as usize);
            let now = &list[start..end];
            let (Some(first), Some(last)) = (now.first(), now.last()) else { continue };
            let base = row as u64 * width;
            blocks += u64::from(start > 0 && list[start - 1] + 1 == *first);
            let same = before.is_some_and(|(list, from)| same(list, now, base - from));
            self.irregular |= before.is_some() && !same;
            if same && before.is_some_and(|(_, from)| from + width == base) {
                blocks -= self.row(now, base);
            } else if !self.irregular {
                self.row(now, base);
            }
            self.highest = self.highest.max(u64::from(*last) - base).max(row as u64);
            before = Some((now, base));
        }
        scratch::give_numbers(firsts);
        blocks
    }

    fn row(&mut self, list: &[u32], base: u64) -> u64 {
        if let Some(last) = list.last() {
            self.highest = self.highest.max(u64::from(*last) - base);
        }
        let steps = list.windows(2).map(|pair| pair[1] - pair[0]);
        if !self.irregular {
            let first = steps.clone().next().unwrap_or(0);
            // Cells that touch may be blocks of a regular pattern.
            let apart = steps.clone().all(|step| step > 1);
            self.irregular = apart && steps.clone().any(|step| step != first);
        }
        1 + steps.map(|step| u64::from(step > 1)).sum::<u64>()
    }
}

/// The index of the first cell of each row in the list, and the end of the last row.
fn first_of_rows(list: &[u32], rows: u64, width: u64) -> Vec<u32> {
    let mut firsts = scratch::take_numbers(rows as usize + 1);
    firsts.clear();
    firsts.resize(rows as usize + 1, u32::MAX);
    if list.len() as u64 >= rows.saturating_mul(SEVERAL) {
        run_widely(Rows { list, width, firsts: &mut firsts });
        return firsts;
    }
    let division = Division::by(width);
    // The first one of a row comes last, and stays.
    for (at, &cell) in list.iter().enumerate().rev() {
        firsts[division.of(cell).0 as usize] = at as u32;
    }
    let mut next = list.len() as u32;
    for first in firsts.iter_mut().rev() {
        // Rows without cells end where they begin.
        *first = next.min(*first);
        next = *first;
    }
    firsts
}

/// Finds where rows begin that have several cells each.
struct Rows<'a> {
    list: &'a [u32],
    width: u64,
    firsts: &'a mut [u32],
}

impl Work for Rows<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { list, width, firsts } = self;
        let (mut at, mut stop) = (0, 0u64);
        for first in firsts {
            *first = at as u32;
            stop = stop.saturating_add(width);
            at += count_below(list, at, u32::try_from(stop).unwrap_or(u32::MAX));
        }
    }
}

/// The number of cells from `start` on that are below a limit; there are fewer than 2^32 of them.
#[inline(always)]
fn count_below(list: &[u32], start: usize, limit: u32) -> usize {
    let mut at = start;
    while let Some(block) = list.get(at..).and_then(|rest| rest.first_chunk::<BLOCK>()) {
        // All are compared, as that needs no decisions.
        let here = block.iter().map(|&cell| u32::from(cell < limit)).sum::<u32>() as usize;
        at += here;
        if here < BLOCK {
            return at - start;
        }
    }
    let rest = list.get(at..).unwrap_or_default();
    at - start + rest.iter().take_while(|cell| **cell < limit).count()
}

/// Whether the second list equals the first, moved by `by`.
fn same(a: &[u32], b: &[u32], by: u64) -> bool {
    let moved = |(a, b): (&u32, &u32)| u64::from(*a) + by == u64::from(*b);
    a.len() == b.len() && a.iter().zip(b).all(moved)
}
