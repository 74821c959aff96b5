//! The length of a set's plain form, computed without making it.
//!
//! A chunk's index records the length of every section before filters, so the length is needed even
//! where the plain form is not. Pumice writes a set that is not a regular hyperslab as its blocks:
//! neighbouring slices across an axis that select the same cells make one block, the slowest axis first,
//! as in HDF5's span trees. Counting them takes one pass over the set.
//!
//! This knows the forms that [`serial`](pumice_space::serial) chooses from. If the choice is
//! uncertain, it says so, and the plain form has to be made.

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
    let strides = (1..=dims.len()).map(|axis| dims[axis..].iter().product()).collect();
    let steps = 4 * runs.len() + 64;
    let mut counter = Counter { strides, irregular: false, highest: 0, steps };
    let blocks = counter.blocks(Slice { runs, base: 0, end: cells }, 0);
    if !counter.irregular || counter.steps == 0 {
        return None;
    }
    length(dims, Counts { blocks, highest: counter.highest })
}

/// The counts on which the length of a list of blocks depends.
pub(super) struct Counts {
    pub(super) blocks: u64,
    /// The highest coordinate.
    pub(super) highest: u64,
}

/// The length of the plain form of a set that is no regular hyperslab.
pub(super) fn length(dims: &[u64], Counts { blocks, highest }: Counts) -> Option<u64> {
    if blocks > MOST_BLOCKS {
        return None;
    }
    let rank = dims.len() as u64;
    let frame = FRAME + 8 * rank;
    let corners = 2 * rank * blocks;
    let width = match blocks.max(highest) {
        0..=0xFFFF => 2,
        0x1_0000..=0xFFFF_FFFF => 4,
        _ => 8,
    };
    let third = 14 + width * (1 + corners);
    let small = u64::from(u32::MAX);
    let fits = highest <= small && 8 + 4 * corners <= small;
    let first = if fits { 24 + 4 * corners } else { u64::MAX };
    Some(frame + first.min(third))
}

/// The part of a set from cell `base` up to `end`: the runs that reach into it.
#[derive(Clone, Copy)]
struct Slice<'a> {
    runs: &'a [[u64; 2]],
    base: u64,
    end: u64,
}

impl Slice<'_> {
    /// The runs cut to the slice and counted from its beginning.
    fn pieces(self) -> impl Iterator<Item = [u64; 2]> + Clone {
        let Self { runs, base, end } = self;
        runs.iter().map(move |[start, stop]| [start.max(&base) - base, stop.min(&end) - base])
    }

    fn same(self, other: Self) -> bool {
        self.runs.len() == other.runs.len() && self.pieces().eq(other.pieces())
    }
}

/// Counts the blocks of a set.
struct Counter {
    /// The cells of one slice across each axis; 1 for the last.
    strides: Vec<u64>,
    /// Whether the set is known not to be a regular hyperslab.
    irregular: bool,
    /// The highest coordinate.
    highest: u64,
    /// The slices that may still be visited: runs over many whole rows would take too long.
    steps: usize,
}

impl Counter {
    /// The blocks of a slice that is divided further across `axis`.
    fn blocks(&mut self, whole: Slice<'_>, axis: usize) -> u64 {
        if axis + 1 == self.strides.len() {
            return self.row(whole);
        }
        let stride = self.strides[axis];
        let rows = axis + 2 == self.strides.len();
        let mut blocks = 0;
        let mut before: Option<Slice<'_>> = None;
        let mut rest = whole.runs;
        while let Some(&[first, _]) = rest.first()
            && self.steps > 0
        {
            self.steps -= 1;
            let next = before.map_or(whole.base, |slice| slice.end);
            // A division takes longer than all the rest here, and slices are seldom left out.
            let base =
                if first < next + stride { next } else { first - (first - whole.base) % stride };
            if base >= whole.end {
                break;
            }
            let end = base + stride;
            // A row has few runs; a larger slice may have many.
            let here = match rows {
                true => rest.iter().take_while(|run| run[0] < end).count(),
                false => rest.partition_point(|run| run[0] < end),
            };
            let now = Slice { runs: &rest[..here], base, end };
            let same = before.is_some_and(|before| before.same(now));
            self.irregular |= before.is_some() && !same;
            if !same || base != next {
                blocks += self.blocks(now, axis + 1);
            }
            let reaches_on = rest[here - 1][1] > end;
            rest = &rest[here - usize::from(reaches_on)..];
            before = Some(now);
        }
        if let Some(last) = before {
            self.highest = self.highest.max((last.base - whole.base) / stride);
        }
        blocks
    }

    fn row(&mut self, row: Slice<'_>) -> u64 {
        if let Some([_, end]) = row.runs.last() {
            self.highest = self.highest.max(end.min(&row.end) - 1 - row.base);
        }
        if !self.irregular {
            let pairs = row.pieces().zip(row.pieces().skip(1));
            let shape = |(a, b): ([u64; 2], [u64; 2])| (a[1] - a[0], b[1] - b[0], b[0] - a[0]);
            let mut shapes = pairs.map(shape);
            let first = shapes.clone().next();
            let length = first.map_or(0, |(length, ..)| length);
            self.irregular = shapes.any(|it| Some(it) != first || it.1 != length);
        }
        row.runs.len() as u64
    }
}
