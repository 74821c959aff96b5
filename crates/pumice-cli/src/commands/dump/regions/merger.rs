//! Runs of cells put together to blocks, over all axes.
//!
//! A run is split into boxes that are whole behind one axis. Each axis has a list of boxes that its
//! next index may continue; boxes that it does not continue go to the axis before. The cost follows
//! runs and axes, not cells.

use crate::cells;
use std::collections::BTreeMap;
use std::ops::Range;

/// The most blocks that wait at once; beyond that, blocks that could still grow do not.
const MAX_WAITING: usize = 1 << 17;

/// A block by its first and last cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) first: Vec<u64>,
    pub(super) last: Vec<u64>,
}

/// First and last index on each axis behind one.
type Sides = Vec<[u64; 2]>;

/// Boxes that may go on along an axis.
#[derive(Default)]
struct Level {
    /// The coordinates of the boxes on the axes before.
    prefix: Vec<u64>,
    open: BTreeMap<Sides, Range<u64>>,
    /// The index up to which boxes were looked through.
    at: u64,
}

/// Puts runs, which come in row-major order, together.
pub(super) struct Merger {
    shape: Vec<u64>,
    /// The last run, which the next may continue.
    run: Range<u64>,
    levels: Vec<Level>,
    done: Vec<Block>,
}

impl Merger {
    /// A merger for an array of this shape.
    pub(super) fn new(shape: &[u64]) -> Self {
        let levels = shape.iter().map(|_| Level::default()).collect();
        Self { shape: shape.to_vec(), run: 0..0, levels, done: Vec::new() }
    }

    /// Adds cells by their numbers in row-major order.
    pub(super) fn push(&mut self, run: Range<u64>) {
        if run.start == self.run.end {
            self.run.end = run.end;
            return;
        }
        self.settle();
        self.run = run;
    }

    /// Whether many blocks are ready.
    pub(super) fn is_full(&self) -> bool {
        self.done.len() >= MAX_WAITING
    }

    /// No more runs follow.
    pub(super) fn finish(&mut self) {
        self.settle();
        self.run = 0..0;
        (0..self.levels.len()).rev().for_each(|axis| self.close(axis));
    }

    /// Takes the blocks and the points that are complete, each in row-major order of first cells.
    pub(super) fn take(&mut self) -> (Vec<Block>, Vec<Vec<u64>>) {
        let mut done = std::mem::take(&mut self.done);
        done.sort_by(|one, other| one.first.cmp(&other.first));
        let (points, blocks): (Vec<_>, Vec<_>) =
            done.into_iter().partition(|block| block.first == block.last);
        (blocks, points.into_iter().map(|block| block.first).collect())
    }

    /// Takes the last run apart: from each cell on, the largest box that is whole behind its axis.
    fn settle(&mut self) {
        let Range { mut start, end } = self.run.clone();
        let mut place = Vec::new();
        while start < end {
            cells::coordinates(start, &self.shape, &mut place);
            let (mut axis, mut cells) = (self.shape.len() - 1, 1);
            while axis > 0 && place[axis] == 0 {
                match self.shape[axis].checked_mul(cells) {
                    Some(more) if more <= end - start => (axis, cells) = (axis - 1, more),
                    _ => break,
                }
            }
            let first = place[axis];
            let count = ((end - start) / cells).min(self.shape[axis] - first);
            let whole = self.shape[axis + 1..].iter().map(|&side| [0, side - 1]).collect();
            (axis + 1..self.levels.len()).rev().for_each(|deeper| self.close(deeper));
            self.feed(axis, &place[..axis], first..first + count, whole);
            start += count * cells;
        }
    }

    /// Adds a box behind all others with the same prefix.
    fn feed(&mut self, axis: usize, prefix: &[u64], range: Range<u64>, sides: Sides) {
        if self.levels[axis].prefix != prefix {
            self.close(axis);
            self.levels[axis].prefix = prefix.to_vec();
        }
        let level = &mut self.levels[axis];
        if range.start > level.at {
            level.at = range.start;
            let ended = level.open.extract_if(.., |_, open| open.end < range.start).collect();
            self.promote(axis, ended);
        }
        let level = &mut self.levels[axis];
        match level.open.get_mut(&sides) {
            Some(open) => open.end = range.end,
            None => drop(level.open.insert(sides, range)),
        }
        if level.open.len() > MAX_WAITING {
            let prefix = level.prefix.clone();
            let open = std::mem::take(&mut level.open);
            self.done.extend(open.into_iter().map(|open| block(&prefix, open)));
        }
    }

    /// No box goes on along this axis.
    fn close(&mut self, axis: usize) {
        let level = &mut self.levels[axis];
        level.at = 0;
        let open = std::mem::take(&mut level.open);
        self.promote(axis, open.into_iter().collect());
    }

    /// Hands boxes that are complete along an axis to the axis before.
    fn promote(&mut self, axis: usize, boxes: Vec<(Sides, Range<u64>)>) {
        let prefix = self.levels[axis].prefix.clone();
        let Some((&index, before)) = prefix.split_last() else {
            self.done.extend(boxes.into_iter().map(|open| block(&prefix, open)));
            return;
        };
        for (mut sides, range) in boxes {
            sides.insert(0, [range.start, range.end - 1]);
            self.feed(axis - 1, before, index..index + 1, sides);
        }
    }
}

fn block(prefix: &[u64], (sides, range): (Sides, Range<u64>)) -> Block {
    let corner = |index: u64, end: usize| {
        let rest = sides.iter().map(|side| side[end]);
        prefix.iter().copied().chain([index]).chain(rest).collect()
    };
    Block { first: corner(range.start, 0), last: corner(range.end - 1, 1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::iter::once;

    fn merged(runs: impl IntoIterator<Item = Range<u64>>, shape: &[u64]) -> Vec<String> {
        let mut merger = Merger::new(shape);
        runs.into_iter().for_each(|run| merger.push(run));
        merger.finish();
        let (blocks, points) = merger.take();
        let blocks = blocks.iter().map(|block| format!("{:?}-{:?}", block.first, block.last));
        blocks.chain(points.iter().map(|point| format!("{point:?}"))).collect()
    }

    #[test]
    fn equal_runs_of_neighbouring_rows_are_one_block() {
        let rows = [22..28, 32..38, 42..48, 59..60, 60..63, 111..112, 128..129];
        // The cell at the end of a row and the run at the beginning of the next are apart.
        let expected = ["[2, 2]-[4, 7]", "[6, 0]-[6, 2]", "[5, 9]", "[11, 1]", "[12, 8]"];
        assert_eq!(merged(rows, &[13, 10]), expected);
    }

    #[test]
    fn blocks_grow_over_all_axes() {
        // Cells 1..3 of rows 1..3 of planes 0..4 of an array of 4 x 4 x 5.
        let rows = (0..4).flat_map(|plane| (1..3).map(move |row| (plane * 4 + row) * 5));
        assert_eq!(merged(rows.map(|at| at + 1..at + 3), &[4, 4, 5]), ["[0, 1, 1]-[3, 2, 2]"]);
        assert_eq!(merged(once(0..80), &[4, 4, 5]), ["[0, 0, 0]-[3, 3, 4]"]);
        let vast = [1 << 40, 1, 1 << 20];
        assert_eq!(merged(once(0..1 << 60), &vast), ["[0, 0, 0]-[1099511627775, 0, 1048575]"]);
        assert_eq!(merged(once(3..7), &[9]), ["[3]-[6]"]);
        let ends = ["[0, 0, 3]-[0, 0, 4]", "[0, 1, 0]-[0, 3, 4]", "[1, 0, 0]-[1, 0, 1]"];
        assert_eq!(merged(once(3..22), &[4, 4, 5]), ends);
    }

    proptest! {
        #[test]
        fn blocks_cover_the_cells_once(
            shape in prop::collection::vec(1u64..5, 1..5),
            bits in prop::collection::vec(any::<bool>(), 256)
        ) {
            let count = shape.iter().product::<u64>();
            let cells: Vec<u64> = (0..count).filter(|&cell| bits[cell as usize]).collect();
            let mut merger = Merger::new(&shape);
            cells.iter().for_each(|&cell| merger.push(cell..cell + 1));
            merger.finish();
            let (blocks, points) = merger.take();
            let points = points.into_iter().map(|point| Block { first: point.clone(), last: point });
            let mut covered = Vec::new();
            for block in blocks.into_iter().chain(points) {
                let inside = |cell: &u64| {
                    let mut place = Vec::new();
                    cells::coordinates(*cell, &shape, &mut place);
                    let sides = block.first.iter().zip(&block.last);
                    place.iter().zip(sides).all(|(at, (first, last))| (first..=last).contains(&at))
                };
                covered.extend((0..count).filter(inside));
            }
            covered.sort_unstable();
            prop_assert_eq!(covered, cells);
        }
    }
}
