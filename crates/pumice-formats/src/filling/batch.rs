//! Cells on their way into a dataset, a batch at a time.
//!
//! Most files list entries in strict order, row by row or column by column: then no cell repeats,
//! and batches are written as they come. Others are sorted first (`sorter.rs`), so that each chunk
//! is made once, and entries for the same cell meet.

use super::Duplicates;
use super::sorter::{Numbering, Sorter};
use crate::{Arithmetic, Array, BATCH, Cells, Part, Progress, Source, Symmetry};
use anyhow::Result;
use pumice::{Dataset, Points, Selection};
use std::ops::RangeInclusive;
use std::path::Path;

/// Entries that come row by row change one row of chunks after another. These must fit into the chunk
/// cache, or chunks are encoded again and again: rows of chunks with more entries are sorted.
const AT_ONCE: u64 = 8 << 20;

/// Takes cells and writes them.
pub(super) struct Batches<'a> {
    dataset: &'a Dataset,
    symmetry: Symmetry,
    arithmetic: Option<Arithmetic>,
    rule: Duplicates,
    order: Order,
    /// The number of chunks along each axis.
    chunks: Vec<u64>,
    numbering: Numbering,
    sorter: Option<Sorter>,
    /// The path for a temporary file.
    temporary: &'a Path,
    /// The range of cells written so far, by axis.
    bounds: Option<Vec<RangeInclusive<u64>>>,
    /// Entries taken and cells written so far.
    taken: u64,
    written: u64,
    size: usize,
}

impl<'a> Batches<'a> {
    pub(super) fn new(
        dataset: &'a Dataset,
        array: &Array,
        rule: Duplicates,
        temporary: &'a Path,
    ) -> Result<Self> {
        let arithmetic = match array.pattern {
            true => Some(Arithmetic::Presence),
            false => Arithmetic::of(&array.datatype),
        };
        let chunk = dataset.chunk().unwrap_or_else(|| array.shape.clone());
        let sides = array.shape.iter().zip(&chunk);
        Ok(Self {
            dataset,
            symmetry: array.symmetry,
            arithmetic,
            rule,
            order: Order::default(),
            chunks: sides.map(|(length, side)| length.div_ceil((*side).max(1))).collect(),
            numbering: Numbering::new(&array.shape, &chunk)?,
            sorter: None,
            temporary,
            bounds: None,
            taken: 0,
            written: 0,
            size: array.datatype.size().max(1),
        })
    }

    /// The number of entries taken so far.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// Writes a part of the source, and its mirror image if the matrix is symmetric.
    pub(super) fn write(&mut self, part: Part, source: &dyn Source) -> Result<()> {
        match part {
            Part::Block { start, count, values } => {
                let cells = count.iter().product::<u64>();
                let block = match start.is_empty() {
                    true => Selection::all(),
                    false => Selection::block(&start, &count).map_err(pumice::Error::from)?,
                };
                self.dataset.write_bytes(&block, &values)?;
                (self.taken, self.written) = (self.taken + cells, self.written + cells);
                Ok(())
            }
            Part::Cells(cells) => self.write_cells(cells, source),
        }
    }

    fn write_cells(&mut self, mut cells: Cells, source: &dyn Source) -> Result<()> {
        self.taken += cells.len() as u64;
        let array = source.array();
        if !array.dense {
            self.order.note_all(&cells.columns);
        }
        if self.symmetry != Symmetry::General {
            self.mirror(&mut cells, source)?;
        }
        if array.dense || (self.sorter.is_none() && self.is_orderly(array.entries)) {
            self.store(&cells)?;
            self.widen(&cells);
            self.written += cells.len() as u64;
            return Ok(());
        }
        let sorter = || Sorter::new(self.numbering.clone(), self.size, self.temporary);
        self.sorter.get_or_insert_with(sorter).take(&cells)
    }

    /// Whether cells can be written as they come: none has repeated, and neighbours in the file are
    /// in few chunks.
    fn is_orderly(&self, entries: u64) -> bool {
        let mirrored = self.symmetry != Symmetry::General;
        let Some(axis) = self.order.slowest(self.chunks.len(), mirrored) else { return false };
        let lines = self.chunks.get(axis).copied().unwrap_or(1);
        let entries = entries.max(self.taken).saturating_mul(1 + u64::from(mirrored));
        entries / lines.max(1) <= AT_ONCE
    }

    /// Writes the sorted cells. Returns how many cells were written in all.
    pub(super) fn finish(&mut self, source: &dyn Source, progress: &dyn Progress) -> Result<u64> {
        let Some(sorter) = self.sorter.take() else { return Ok(self.written) };
        progress.expect(self.taken);
        let mut merge = sorter.merge()?;
        let rank = self.chunks.len();
        let mut cells = Sorted::new(rank);
        // The last cell's number and where its first entry stands.
        let mut last: Option<(u128, Option<u64>)> = None;
        while let Some(number) = merge.next()? {
            let (value, mark) = merge.entry();
            let again = last.filter(|last| last.0 == number);
            if let Some((_, first)) = again.filter(|_| cells.repeated.len() < BATCH) {
                match self.bounds.is_some() {
                    // Defined cells come first: `put` adds one after another.
                    true => cells.repeat(value, mark),
                    false => {
                        let (start, place) = (cells.cells.values.len() - self.size, cells.place());
                        let held = &mut cells.cells.values[start..];
                        self.merge(held, value, place, first, mark, source)?;
                    }
                }
                continue;
            }
            // Chunks that are written whole need no second look.
            let room = if merge.is_in_chunk(number) { BATCH } else { BATCH / 2 };
            if cells.len() >= room {
                if again.is_some() {
                    // The cell is looked up when its further entries are written.
                    self.widen(&cells.cells);
                }
                progress.add(cells.len() as u64);
                self.put(std::mem::replace(&mut cells, Sorted::new(rank)), source)?;
            }
            cells.push(value, mark);
            merge.place(number, &mut cells.cells.columns);
            last = Some((number, mark));
        }
        self.put(cells, source)?;
        Ok(self.written)
    }

    /// Writes cells in order of their numbers.
    fn put(&mut self, sorted: Sorted, source: &dyn Source) -> Result<()> {
        let Sorted { mut cells, repeated } = sorted;
        let defined_before = self.merge_dataset(&mut cells, source)?;
        let mut values = std::mem::take(&mut cells.values);
        for (at, value, mark) in repeated {
            let held = &mut values[at * self.size..(at + 1) * self.size];
            let first = cells.marks.get(at).copied();
            self.merge(held, &value, cells.place(at), first, mark, source)?;
        }
        cells.values = values;
        self.store(&cells)?;
        self.written += cells.len() as u64 - defined_before;
        Ok(())
    }

    fn store(&self, cells: &Cells) -> Result<()> {
        let points = Points::columns(cells.columns.iter().map(Vec::as_slice));
        let points = points.map_err(pumice::Error::from)?;
        if !cells.is_empty() {
            self.dataset.write_bytes_at(&points, &cells.values)?;
        }
        Ok(())
    }

    /// Adds the mirror images of cells.
    fn mirror(&self, cells: &mut Cells, source: &dyn Source) -> Result<()> {
        let mut values = std::mem::take(&mut cells.values);
        for at in 0..cells.len() {
            let (row, column) = (cells.columns[0][at], cells.columns[1][at]);
            let mark = cells.marks.get(at).copied();
            if row == column {
                let skew = self.symmetry == Symmetry::SkewSymmetric;
                let value = &values[at * self.size..(at + 1) * self.size];
                if skew && (mark.is_some() || value.iter().any(|&byte| byte != 0)) {
                    let what = "expected no entry on the diagonal of a skew-symmetric matrix";
                    return Err(source.blame(mark.unwrap_or(0), what.into()));
                }
                continue;
            }
            let start = values.len();
            values.extend_from_within(at * self.size..(at + 1) * self.size);
            let value = &mut values[start..];
            let done = match (self.symmetry, self.arithmetic) {
                (Symmetry::SkewSymmetric, Some(arithmetic)) => arithmetic.negate(value),
                (Symmetry::SkewSymmetric, None) => false,
                (Symmetry::Hermitian, Some(arithmetic)) => {
                    arithmetic.conjugate(value);
                    true
                }
                _ => true,
            };
            if !done {
                let what = "expected a value that can be negated";
                return Err(source.blame(mark.unwrap_or(0), what.into()));
            }
            cells.columns[0].push(column);
            cells.columns[1].push(row);
            cells.marks.extend(mark);
        }
        cells.values = values;
        Ok(())
    }

    /// Merges cells, in order and without repetitions, with those that are defined already. Returns
    /// how many these are.
    fn merge_dataset(&self, cells: &mut Cells, source: &dyn Source) -> Result<u64> {
        let inside = self.inside(cells);
        if inside.is_empty() {
            return Ok(0);
        }
        let rank = cells.columns.len();
        let mut asked = Vec::with_capacity(inside.len() * rank);
        for &at in &inside {
            asked.extend(cells.columns.iter().map(|axis| axis[at]));
        }
        let asked = Selection::points(rank, asked).map_err(pumice::Error::from)?;
        if self.dataset.count_defined(&asked)? == 0 {
            return Ok(0);
        }
        let known = self.dataset.read_defined_bytes(&asked)?;
        let places = known.coordinates.chunks_exact(rank);
        let mut held: Vec<_> = places.zip(known.values.chunks_exact(self.size)).collect();
        held.sort_unstable_by_key(|(place, _)| self.numbering.number(place.iter().copied()));
        let mut inside = inside.into_iter();
        let mut values = std::mem::take(&mut cells.values);
        for (place, first) in &held {
            let here =
                |at: &usize| cells.columns.iter().zip(*place).all(|(axis, n)| axis[*at] == *n);
            let Some(at) = inside.find(here) else { break };
            let value = &mut values[at * self.size..(at + 1) * self.size];
            let mut result = first.to_vec();
            let mark = cells.marks.get(at).copied();
            self.merge(&mut result, value, place.to_vec(), None, mark, source)?;
            value.copy_from_slice(&result);
        }
        cells.values = values;
        Ok(held.len() as u64)
    }

    /// The cells in the range of those that were written before.
    fn inside(&self, cells: &Cells) -> Vec<usize> {
        let Some(bounds) = &self.bounds else { return Vec::new() };
        let within = |&at: &usize| {
            cells.columns.iter().zip(bounds).all(|(axis, range)| range.contains(&axis[at]))
        };
        (0..cells.len()).filter(within).collect()
    }

    /// Notes where cells were written.
    fn widen(&mut self, cells: &Cells) {
        let ranges =
            cells.columns.iter().filter_map(|axis| Some(*axis.iter().min()?..=*axis.iter().max()?));
        let ranges: Vec<_> = ranges.collect();
        match &mut self.bounds {
            _ if ranges.len() < cells.columns.len() => {}
            None => self.bounds = Some(ranges),
            Some(bounds) => {
                for (bound, range) in bounds.iter_mut().zip(ranges) {
                    let (start, end) =
                        (bound.start().min(range.start()), bound.end().max(range.end()));
                    *bound = *start..=*end;
                }
            }
        }
    }

    /// Combines the value in `held` with another for the same cell.
    fn merge(
        &self,
        held: &mut [u8],
        other: &[u8],
        place: Vec<u64>,
        first_mark: Option<u64>,
        mark: Option<u64>,
        source: &dyn Source,
    ) -> Result<()> {
        let named = || match (place.as_slice(), mark) {
            // Matrix Market counts from 1.
            ([row, column], Some(_))
                if source.array().notes.iter().any(|note| note.0 == "source_field") =>
            {
                format!("row {}, column {}", row + 1, column + 1)
            }
            (place, _) => format!("cell {place:?}"),
        };
        let blame = |message: String| Err(source.blame(mark.unwrap_or(0), message));
        match self.rule {
            Duplicates::First => Ok(()),
            Duplicates::Last => {
                held.copy_from_slice(other);
                Ok(())
            }
            Duplicates::Sum => {
                match self.arithmetic.map(|arithmetic| arithmetic.add(held, other)) {
                    Some(true) => Ok(()),
                    Some(false) => blame(format!("the entries of {} add up to too much", named())),
                    None => blame(format!(
                        "{} has several entries of a type that cannot be added; --duplicates first or last chooses one",
                        named()
                    )),
                }
            }
            Duplicates::Error => {
                let whence = match (first_mark, mark) {
                    (Some(line), _) => format!(" on line {line}"),
                    (None, Some(_)) => " before".to_owned(),
                    (None, None) => String::new(),
                };
                blame(format!("{} has an entry{whence} already", named()))
            }
        }
    }
}

/// Cells that are ready to be written.
struct Sorted {
    cells: Cells,
    /// Further entries for cells, in the order in which they came.
    repeated: Vec<(usize, Vec<u8>, Option<u64>)>,
}

impl Sorted {
    fn new(rank: usize) -> Self {
        Self { cells: Cells::new(rank), repeated: Vec::new() }
    }

    fn len(&self) -> usize {
        self.cells.len() + self.repeated.len()
    }

    /// Another cell; its coordinates come next.
    fn push(&mut self, value: &[u8], mark: Option<u64>) {
        self.cells.values.extend_from_slice(value);
        self.cells.marks.extend(mark);
    }

    /// Another entry for the last cell.
    fn repeat(&mut self, value: &[u8], mark: Option<u64>) {
        self.repeated.push((self.cells.len() - 1, value.to_vec(), mark));
    }

    fn place(&self) -> Vec<u64> {
        self.cells.place(self.cells.len() - 1)
    }
}

/// Whether entries came in an order in which no cell repeats.
#[derive(Debug)]
struct Order {
    last: Option<Vec<u64>>,
    by_row: bool,
    by_column: bool,
    lower: bool,
    upper: bool,
}

impl Default for Order {
    fn default() -> Self {
        Self { last: None, by_row: true, by_column: true, lower: true, upper: true }
    }
}

impl Order {
    fn note_all(&mut self, columns: &[Vec<u64>]) {
        match columns {
            // The common case, without an allocation for each cell.
            [rows, columns] => {
                let mut last = self.last.as_ref().map(|last| (last[0], last[1]));
                for (&row, &column) in rows.iter().zip(columns) {
                    if let Some((last_row, last_column)) = last {
                        self.by_row &= (last_row, last_column) < (row, column);
                        self.by_column &= (last_column, last_row) < (column, row);
                    }
                    self.lower &= row >= column;
                    self.upper &= row <= column;
                    last = Some((row, column));
                }
                self.last = last.map(|(row, column)| vec![row, column]);
            }
            columns => {
                for at in 0..columns.first().map_or(0, Vec::len) {
                    let place: Vec<u64> = columns.iter().map(|axis| axis[at]).collect();
                    if let Some(last) = &self.last {
                        self.by_row &= *last < place;
                        self.by_column &= last.iter().rev().lt(place.iter().rev());
                    }
                    self.last = Some(place);
                }
            }
        }
    }

    /// The slowest axis, if no cell has repeated. Mirror images are apart from the entries if these
    /// lie in one triangle.
    fn slowest(&self, rank: usize, mirrored: bool) -> Option<usize> {
        let apart = !mirrored || self.lower || self.upper;
        let axis = if self.by_row { 0 } else { rank.saturating_sub(1) };
        (apart && (self.by_row || self.by_column)).then_some(axis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pumice::{File, H5Type};

    type Cell = (u64, u64, i64);

    /// Entries in batches of a given size.
    struct Entries {
        array: Array,
        parts: std::vec::IntoIter<Cells>,
    }

    impl Source for Entries {
        fn array(&self) -> &Array {
            &self.array
        }

        fn next_part(&mut self) -> Result<Option<Part>> {
            Ok(self.parts.next().map(Part::Cells))
        }

        fn blame(&self, mark: u64, message: String) -> anyhow::Error {
            anyhow::anyhow!("{mark}: {message}")
        }
    }

    /// Imports entries in batches of `capacity`; all cells and values, and the count.
    fn import(
        body: &[Cell],
        symmetry: Symmetry,
        rule: Duplicates,
        capacity: usize,
    ) -> Result<(Vec<Cell>, u64)> {
        let mut array = Array::sparse(vec![4, 4], i64::datatype(), body.len() as u64);
        array.symmetry = symmetry;
        let parts = body.chunks(capacity).enumerate().map(|(number, part)| Cells {
            columns: vec![
                part.iter().map(|cell| cell.0 - 1).collect(),
                part.iter().map(|cell| cell.1 - 1).collect(),
            ],
            values: part.iter().flat_map(|cell| cell.2.to_ne_bytes()).collect(),
            marks: (0..part.len() as u64).map(|at| (number * capacity) as u64 + at + 1).collect(),
        });
        let parts = parts.collect::<Vec<_>>().into_iter();
        let mut source = Entries { array, parts };
        let file = File::in_memory().unwrap();
        let builder = file.new_dataset::<i64>().shape([4, 4]).chunk([2, 2]).sparse();
        let dataset = builder.create("m").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let temporary = folder.path().join("sorted");
        let mut batches = Batches::new(&dataset, &source.array.clone(), rule, &temporary)?;
        while let Some(part) = source.next_part()? {
            batches.write(part, &source)?;
        }
        let count = batches.finish(&source, &crate::Unwatched)?;
        assert_eq!(folder.path().read_dir().unwrap().count(), 0, "nothing is left");
        let defined = dataset.read_defined::<i64>(..)?;
        let mut cells: Vec<_> =
            defined.iter().map(|(place, &value)| (place[0], place[1], value)).collect();
        cells.sort_unstable();
        Ok((cells, count))
    }

    #[test]
    fn duplicates_are_treated_alike_within_and_across_batches() {
        let body = [(1, 1, 5), (2, 3, 7), (1, 1, 10), (4, 4, 0), (1, 1, 100), (2, 3, 1)];
        for capacity in 1..8 {
            for (rule, first, second) in
                [(Duplicates::Sum, 115, 8), (Duplicates::First, 5, 7), (Duplicates::Last, 100, 1)]
            {
                let (cells, count) = import(&body, Symmetry::General, rule, capacity).unwrap();
                assert_eq!(cells, [(0, 0, first), (1, 2, second), (3, 3, 0)], "{capacity}");
                assert_eq!(count, 3);
            }
            let error = import(&body, Symmetry::General, Duplicates::Error, capacity).unwrap_err();
            assert!(error.to_string().starts_with("3: cell [0, 0] has an entry"), "{error}");
        }
    }

    #[test]
    fn symmetric_entries_are_mirrored() {
        let body = [(2, 1, 3), (3, 3, 4), (4, 1, -5)];
        for capacity in 1..5 {
            let (cells, count) =
                import(&body, Symmetry::Symmetric, Duplicates::Error, capacity).unwrap();
            assert_eq!(cells, [(0, 1, 3), (0, 3, -5), (1, 0, 3), (2, 2, 4), (3, 0, -5)]);
            assert_eq!(count, 5);
        }
        let (cells, _) = import(&body[..1], Symmetry::SkewSymmetric, Duplicates::Sum, 1).unwrap();
        assert_eq!(cells, [(0, 1, -3), (1, 0, 3)]);
        assert!(import(&body, Symmetry::SkewSymmetric, Duplicates::Sum, 1).is_err());
    }

    #[test]
    fn both_triangles_of_a_symmetric_matrix_are_duplicates() {
        let body = [(2, 1, 3), (1, 2, 4)];
        let (cells, count) = import(&body, Symmetry::Symmetric, Duplicates::Sum, 9).unwrap();
        assert_eq!((cells, count), (vec![(0, 1, 7), (1, 0, 7)], 2));
        assert!(import(&body, Symmetry::Symmetric, Duplicates::Error, 9).is_err());
    }

    #[test]
    fn sums_that_overflow_are_refused() {
        let body = [(1, 1, i64::MAX), (1, 1, 1)];
        assert!(import(&body, Symmetry::General, Duplicates::Sum, 9).is_err());
    }
}
