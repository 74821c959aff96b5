//! Cells that come in no order are sorted in a temporary file, chunk after chunk.
//!
//! Each batch is sorted and becomes a run of records; all runs but the last go to a file without a
//! name, which is gone when the program ends, however it ends. In the end the runs are merged, a piece
//! of each in memory at a time. Entries for one cell keep the order in which they came.

use crate::{Cells, nameless};
use anyhow::{Context, Result};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Bytes of all runs that are in memory while they are merged.
const WINDOW: usize = 32 << 20;
/// Bytes of a run that are read at once, at least and at most.
const PIECE: Range<usize> = 4 << 10..1 << 20;

/// Numbers cells so that those of a chunk are consecutive, row by row.
#[derive(Clone, Debug)]
pub(super) struct Numbering {
    /// Length of a chunk and how many there are, by axis.
    axes: Vec<(u64, u64)>,
    chunk_cells: u64,
    /// Whether all numbers have 64 bits.
    narrow: bool,
}

impl Numbering {
    pub(super) fn new(shape: &[u64], chunk: &[u64]) -> Result<Self> {
        let axes = chunk.iter().map(|side| (*side).max(1)).zip(shape);
        let axes: Vec<_> = axes.map(|(side, &length)| (side, length.div_ceil(side))).collect();
        let chunk_cells = axes.iter().try_fold(1u64, |cells, axis| cells.checked_mul(axis.0));
        let cells = axes.iter().flat_map(|&(side, count)| [side, count]);
        let cells = cells.map(u128::from).try_fold(1u128, u128::checked_mul);
        let (Some(chunk_cells), Some(cells)) = (chunk_cells, cells) else {
            anyhow::bail!("{shape:?} has too many cells for entries that come in no order");
        };
        Ok(Self { axes, chunk_cells, narrow: u64::try_from(cells).is_ok() })
    }

    /// The number of a cell.
    pub(super) fn number(&self, place: impl Iterator<Item = u64>) -> u128 {
        let (mut chunk, mut inside) = (0u128, 0u64);
        for (at, (side, count)) in place.zip(&self.axes) {
            chunk = chunk * u128::from(*count) + u128::from(at / side);
            inside = inside * side + at % side;
        }
        chunk * u128::from(self.chunk_cells) + u128::from(inside)
    }

    /// The first cell of the chunk that a number lies in, and its number.
    fn chunk_of(&self, number: u128) -> (Vec<u64>, u128) {
        let mut chunk = number / u128::from(self.chunk_cells);
        let first = chunk * u128::from(self.chunk_cells);
        let mut origin = vec![0; self.axes.len()];
        for (origin, &(side, count)) in origin.iter_mut().zip(&self.axes).rev() {
            *origin = (chunk % u128::from(count)) as u64 * side;
            chunk /= u128::from(count);
        }
        (origin, first)
    }
}

/// The bytes of a cell in a run: number, value, mark.
#[derive(Clone, Copy, Debug)]
struct Spelling {
    number: usize,
    value: usize,
    mark: usize,
}

impl Spelling {
    fn size(self) -> usize {
        self.number + self.value + self.mark
    }

    fn number(self, record: &[u8]) -> u128 {
        let mut bytes = [0; 16];
        bytes[..self.number].copy_from_slice(&record[..self.number]);
        u128::from_le_bytes(bytes)
    }

    fn value(self, record: &[u8]) -> &[u8] {
        &record[self.number..self.number + self.value]
    }

    fn mark(self, record: &[u8]) -> Option<u64> {
        let mark = record.get(self.number + self.value..)?;
        Some(u64::from_le_bytes(mark.try_into().ok()?))
    }
}

/// Takes cells in any order.
pub(super) struct Sorter {
    numbering: Numbering,
    spelling: Spelling,
    /// The path of the temporary file.
    path: PathBuf,
    file: Option<fs::File>,
    /// The runs of the file.
    runs: Vec<Range<u64>>,
    /// The last run.
    last: Vec<u8>,
}

impl Sorter {
    /// A sorter of cells with values of `size` bytes. Its temporary file has the name `path` for a
    /// moment.
    pub(super) fn new(numbering: Numbering, size: usize, path: &Path) -> Self {
        let number = if numbering.narrow { 8 } else { 16 };
        let spelling = Spelling { number, value: size, mark: 0 };
        let (path, runs, last) = (path.to_owned(), Vec::new(), Vec::new());
        Self { numbering, spelling, path, file: None, runs, last }
    }

    /// Takes cells; all have marks, or none.
    pub(super) fn take(&mut self, cells: &Cells) -> Result<()> {
        self.spill().with_context(|| format!("write a temporary file {}", self.path.display()))?;
        self.spelling.mark = if cells.marks.is_empty() { 0 } else { 8 };
        let number = |at: usize| self.numbering.number(cells.columns.iter().map(|axis| axis[at]));
        // The place in the batch makes the order of equal cells that of the file.
        let run = match self.numbering.narrow {
            true => {
                let keys = (0..cells.len()).map(|at| (number(at) as u64, at as u32));
                self.spelt(sorted(keys), cells, |key| key.to_le_bytes())
            }
            false => {
                let keys = (0..cells.len()).map(|at| (number(at), at as u32));
                self.spelt(sorted(keys), cells, |key| key.to_le_bytes())
            }
        };
        self.last = run;
        Ok(())
    }

    fn spelt<K: Copy, const N: usize>(
        &self,
        keys: Vec<(K, u32)>,
        cells: &Cells,
        bytes: impl Fn(K) -> [u8; N],
    ) -> Vec<u8> {
        let size = self.spelling.value;
        let mut run = Vec::with_capacity(keys.len() * self.spelling.size());
        for (key, at) in keys {
            let at = at as usize;
            run.extend_from_slice(&bytes(key));
            run.extend_from_slice(&cells.values[at * size..(at + 1) * size]);
            if let Some(mark) = cells.marks.get(at) {
                run.extend_from_slice(&mark.to_le_bytes());
            }
        }
        run
    }

    /// Moves the last run to the file.
    fn spill(&mut self) -> std::io::Result<()> {
        if self.last.is_empty() {
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(nameless(&self.path)?),
        };
        file.write_all(&self.last)?;
        let start = self.runs.last().map_or(0, |run| run.end);
        self.runs.push(start..start + self.last.len() as u64);
        self.last = Vec::new();
        Ok(())
    }

    /// All cells in order.
    pub(super) fn merge(self) -> Result<Merge> {
        let Self { numbering, spelling, path, file, runs, last } = self;
        let size = spelling.size();
        let piece = (WINDOW / (runs.len() + 1)).clamp(PIECE.start, PIECE.end) / size * size;
        let ahead = runs.into_iter().map(|ahead| Cursor { ahead, ..Cursor::default() });
        let mut cursors: Vec<_> = ahead.collect();
        cursors.push(Cursor { piece: last, ..Cursor::default() });
        let (piece, chunk) = (piece.max(size), (Vec::new(), 0));
        let queue = BinaryHeap::with_capacity(cursors.len());
        let mut merge =
            Merge { numbering, spelling, path, file, piece, cursors, queue, current: false, chunk };
        for at in 0..merge.cursors.len() {
            if let Some(number) = merge.advance(at)? {
                merge.queue.push(Reverse((number, at)));
            }
        }
        Ok(merge)
    }
}

fn sorted<K: Ord>(keys: impl Iterator<Item = (K, u32)>) -> Vec<(K, u32)> {
    let mut keys: Vec<_> = keys.collect();
    keys.sort_unstable();
    keys
}

/// The progress of merging a run.
#[derive(Debug, Default)]
struct Cursor {
    /// A piece of the run, and where its next record is.
    piece: Vec<u8>,
    position: usize,
    /// The unread part of the run.
    ahead: Range<u64>,
}

/// Runs that become one.
pub(super) struct Merge {
    numbering: Numbering,
    spelling: Spelling,
    path: PathBuf,
    file: Option<fs::File>,
    /// Bytes that are read at once.
    piece: usize,
    cursors: Vec<Cursor>,
    /// The number of the next record of each run; runs in the order in which they came.
    queue: BinaryHeap<Reverse<(u128, usize)>>,
    /// Whether the record at the head of the queue was returned.
    current: bool,
    /// The chunk of the last place: its first cell and that cell's number.
    chunk: (Vec<u64>, u128),
}

impl Merge {
    /// The number of the next entry's cell. Entries for one cell follow each other, in the order in
    /// which they came.
    pub(super) fn next(&mut self) -> Result<Option<u128>> {
        if let Some(&Reverse((_, at))) = self.queue.peek().filter(|_| self.current) {
            self.cursors[at].position += self.spelling.size();
            let next = self.advance(at)?;
            if let Some(mut head) = self.queue.peek_mut() {
                match next {
                    Some(number) => head.0.0 = number,
                    None => drop(PeekMut::pop(head)),
                }
            }
        }
        self.current = true;
        Ok(self.queue.peek().map(|head| head.0.0))
    }

    /// The value of the entry that `next` found, and where it stands in the file.
    pub(super) fn entry(&self) -> (&[u8], Option<u64>) {
        let Some(&Reverse((_, at))) = self.queue.peek() else { return (&[], None) };
        let cursor = &self.cursors[at];
        let record = &cursor.piece[cursor.position..cursor.position + self.spelling.size()];
        (self.spelling.value(record), self.spelling.mark(record))
    }

    /// The number of the next record of a run, which is read if it is not in memory.
    fn advance(&mut self, at: usize) -> Result<Option<u128>> {
        let cursor = &mut self.cursors[at];
        if cursor.position == cursor.piece.len() {
            let count = (cursor.ahead.end - cursor.ahead.start).min(self.piece as u64);
            let Some(file) = self.file.as_mut().filter(|_| count > 0) else {
                cursor.piece = Vec::new();
                cursor.position = 0;
                return Ok(None);
            };
            cursor.piece.resize(count as usize, 0);
            file.seek(SeekFrom::Start(cursor.ahead.start))
                .and_then(|_| file.read_exact(&mut cursor.piece))
                .with_context(|| format!("read the temporary file {}", self.path.display()))?;
            (cursor.position, cursor.ahead.start) = (0, cursor.ahead.start + count);
        }
        Ok(Some(self.spelling.number(&cursor.piece[cursor.position..])))
    }

    /// Whether a number is in the chunk of the last cell.
    pub(super) fn is_in_chunk(&self, number: u128) -> bool {
        let (origin, first) = &self.chunk;
        !origin.is_empty() && number - first < u128::from(self.numbering.chunk_cells)
    }

    /// Appends the coordinates of a number, which is not below the last.
    pub(super) fn place(&mut self, number: u128, columns: &mut [Vec<u64>]) {
        if !self.is_in_chunk(number) {
            self.chunk = self.numbering.chunk_of(number);
        }
        let (origin, first) = &self.chunk;
        let mut inside = (number - first) as u64;
        let axes = self.numbering.axes.iter().zip(origin).zip(columns);
        for ((&(side, _), origin), column) in axes.rev() {
            column.push(origin + inside % side);
            inside /= side;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cells of a list of places and values.
    fn cells(list: &[(Vec<u64>, u32)]) -> Cells {
        let rank = list.first().map_or(0, |cell| cell.0.len());
        Cells {
            columns: (0..rank).map(|axis| list.iter().map(|cell| cell.0[axis]).collect()).collect(),
            values: list.iter().flat_map(|cell| cell.1.to_le_bytes()).collect(),
            marks: list.iter().map(|cell| u64::from(cell.1)).collect(),
        }
    }

    #[test]
    fn cells_come_chunk_by_chunk_and_equal_ones_in_their_old_order() {
        let folder = tempfile::tempdir().unwrap();
        // The second shape has more cells than 64 bits can count.
        for (shape, chunk) in [(vec![9, 7, 5], vec![4, 3, 5]), (vec![1 << 50; 2], vec![1 << 20; 2])]
        {
            let numbering = Numbering::new(&shape, &chunk).unwrap();
            assert_eq!(numbering.narrow, shape.len() == 3);
            let mut seed = 7u64;
            let mut number = |below: u64| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (seed >> 11) % below
            };
            let list: Vec<(Vec<u64>, u32)> = (0..2000)
                .map(|at| (shape.iter().map(|&side| number(side) / 3 * 3).collect(), at))
                .collect();
            let mut sorter = Sorter::new(numbering, 4, &folder.path().join("sorted"));
            for batch in list.chunks(170) {
                sorter.take(&cells(batch)).unwrap();
            }
            assert_eq!(folder.path().read_dir().unwrap().count(), 0, "the file has no name");
            let mut expected = list;
            expected.sort_by_cached_key(|(place, _)| {
                let chunks: Vec<u64> =
                    place.iter().zip(&chunk).map(|(at, side)| at / side).collect();
                (chunks, place.clone())
            });
            let mut merge = sorter.merge().unwrap();
            for (place, value) in expected {
                let number = merge.next().unwrap().unwrap();
                assert_eq!(merge.entry(), (&value.to_le_bytes()[..], Some(value.into())));
                let mut columns = vec![Vec::new(); place.len()];
                merge.place(number, &mut columns);
                assert_eq!(columns.concat(), place);
            }
            assert_eq!(merge.next().unwrap(), None);
        }
    }

    #[test]
    fn shapes_beyond_counting_are_refused() {
        assert!(Numbering::new(&[u64::MAX; 3], &[1; 3]).is_err());
    }
}
