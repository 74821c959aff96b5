//! Cells on their way into a dataset, a batch at a time.
//!
//! Most files list entries in strict order, row by row or column by column: then no cell comes twice
//! and batches are written as they are. Otherwise a batch is sorted, its repeated cells are merged,
//! and those that earlier batches may have defined are looked up in the dataset.

use crate::cli::Duplicates;
use crate::formats::{Arithmetic, Array, Cells, Part, Source, Symmetry};
use anyhow::Result;
use pumice::{Dataset, Points, Selection};
use std::ops::RangeInclusive;

/// Takes cells and writes them.
pub(super) struct Batches<'a> {
    dataset: &'a Dataset,
    symmetry: Symmetry,
    arithmetic: Option<Arithmetic>,
    rule: Duplicates,
    order: Order,
    /// What the cells written so far lie between, by axis.
    bounds: Option<Vec<RangeInclusive<u64>>>,
    /// Entries taken and cells written so far.
    taken: u64,
    written: u64,
    size: usize,
}

impl<'a> Batches<'a> {
    pub(super) fn new(dataset: &'a Dataset, array: &Array, rule: Duplicates) -> Self {
        let arithmetic = match array.pattern {
            true => Some(Arithmetic::Presence),
            false => Arithmetic::of(&array.datatype),
        };
        let (symmetry, order) = (array.symmetry, Order::default());
        let size = array.datatype.size().max(1);
        let (taken, written) = (0, 0);
        Self { dataset, symmetry, arithmetic, rule, order, bounds: None, taken, written, size }
    }

    /// How many entries were taken so far.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// How many cells were written so far.
    pub(super) fn written(&self) -> u64 {
        self.written
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
        let dense = source.array().dense;
        if !dense {
            self.order.note_all(&cells.columns);
        }
        if self.symmetry != Symmetry::General {
            self.mirror(&mut cells, source)?;
        }
        if dense || self.order.is_strict(self.symmetry != Symmetry::General) {
            self.store(&cells)?;
            self.widen(&cells);
            self.written += cells.len() as u64;
            return Ok(());
        }
        let cells = self.merged(&cells, source)?;
        for mut part in self.parts(&cells) {
            let defined_before = self.merge_dataset(&mut part, source)?;
            self.store(&part)?;
            self.written += part.len() as u64 - defined_before;
        }
        self.widen(&cells);
        Ok(())
    }

    fn store(&self, cells: &Cells) -> Result<()> {
        let points = Points::columns(cells.columns.iter().map(Vec::as_slice));
        let points = points.map_err(pumice::Error::from)?;
        if cells.len() > 0 {
            self.dataset.write_bytes_at(&points, &cells.values)?;
        }
        Ok(())
    }

    /// Cells in order, divided so that each part lies in one row of chunks: chunks that a request
    /// touches are in memory together, and cells that come in no order touch all.
    fn parts<'c>(&self, cells: &'c Cells) -> impl Iterator<Item = Cells> + use<'c> {
        let side = self.dataset.chunk().and_then(|chunk| chunk.first().copied()).unwrap_or(1);
        let (side, size) = (side.max(1), self.size);
        let rows = cells.columns.first().map_or(&[][..], Vec::as_slice);
        let mut start = 0;
        rows.chunk_by(move |one, other| one / side == other / side).map(move |part| {
            let range = start..start + part.len();
            start = range.end;
            cells.part(range, size)
        })
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

    /// The cells in order, those for the same place merged.
    fn merged(&self, cells: &Cells, source: &dyn Source) -> Result<Cells> {
        let rank = cells.columns.len();
        let compare = |&one: &usize, &other: &usize| {
            let axes = cells.columns.iter();
            axes.map(|axis| axis[one].cmp(&axis[other])).find(|order| order.is_ne())
        };
        let mut order: Vec<usize> = (0..cells.len()).collect();
        // The sort is stable: entries for one cell keep the file's order.
        order.sort_by(|one, other| compare(one, other).unwrap_or(std::cmp::Ordering::Equal));
        let mut merged = Cells::new(rank);
        let mut last: Option<usize> = None;
        for at in order {
            let value = &cells.values[at * self.size..(at + 1) * self.size];
            let mark = cells.marks.get(at).copied();
            match last.filter(|last| compare(last, &at).is_none()) {
                Some(first) => {
                    let start = merged.values.len() - self.size;
                    let place = self.place(cells, at);
                    let first = cells.marks.get(first).copied();
                    self.merge(&mut merged.values[start..], value, place, first, mark, source)?;
                }
                None => {
                    for (to, from) in merged.columns.iter_mut().zip(&cells.columns) {
                        to.push(from[at]);
                    }
                    merged.values.extend_from_slice(value);
                    merged.marks.extend(mark);
                    last = Some(at);
                }
            }
        }
        Ok(merged)
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
        held.sort_unstable_by_key(|(place, _)| *place);
        let mut inside = inside.into_iter();
        let mut values = std::mem::take(&mut cells.values);
        for (place, first) in &held {
            let here =
                |at: &usize| cells.columns.iter().zip(*place).all(|(axis, n)| axis[*at] == *n);
            let Some(at) = inside.find(here) else { break };
            let value = &mut values[at * self.size..(at + 1) * self.size];
            let mut result = first.to_vec();
            let mark = cells.marks.get(at).copied();
            self.merge(&mut result, value, self.place(cells, at), None, mark, source)?;
            value.copy_from_slice(&result);
        }
        cells.values = values;
        Ok(held.len() as u64)
    }

    /// Which cells lie between those that were written before.
    fn inside(&self, cells: &Cells) -> Vec<usize> {
        let Some(bounds) = &self.bounds else { return Vec::new() };
        let within = |&at: &usize| {
            cells.columns.iter().zip(bounds).all(|(axis, range)| range.contains(&axis[at]))
        };
        (0..cells.len()).filter(within).collect()
    }

    /// Takes note of where cells were written.
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

    fn place(&self, cells: &Cells, at: usize) -> Vec<u64> {
        cells.columns.iter().map(|axis| axis[at]).collect()
    }

    /// Makes one value of the first, which is in `held`, and another for the same cell.
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

/// Whether entries came in an order that allows no cell to come twice.
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

    /// Whether no cell has come twice. Mirror images stay apart from the entries if these lie in one
    /// triangle.
    fn is_strict(&self, mirrored: bool) -> bool {
        (self.by_row || self.by_column) && (!mirrored || self.lower || self.upper)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pumice::{Element, File};

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
        let mut batches = Batches::new(&dataset, &source.array.clone(), rule);
        while let Some(part) = source.next_part()? {
            batches.write(part, &source)?;
        }
        let count = batches.written();
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
