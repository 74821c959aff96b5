//! Entries on their way into a dataset, a batch at a time.
//!
//! Most files list entries in strict order, row by row or column by column: then no cell comes twice
//! and batches are written as they are. Otherwise a batch is sorted, its repeated cells are merged,
//! and those that earlier batches defined are looked up in the dataset.

use super::is_mirrored;
use crate::cli::Duplicates;
use crate::matrix_market::{Entry, Format, Header, Parser, Scalar, Symmetry, SyntaxError};
use anyhow::Result;
use pumice::{Dataset, Selection};
use std::io::BufRead;

/// How many cells a batch has: about 100 MB while it is written.
const BATCH: usize = 1 << 20;

/// Collects entries and writes them.
pub(super) struct Batches<'a, S> {
    dataset: &'a Dataset,
    header: Header,
    duplicates: Duplicates,
    order: Order,
    batch: Vec<Entry<S>>,
    /// Cells written so far.
    written: u64,
    capacity: usize,
}

impl<'a, S: Scalar> Batches<'a, S> {
    pub(super) fn new(dataset: &'a Dataset, header: &Header, duplicates: Duplicates) -> Self {
        let (order, batch) = (Order::default(), Vec::new());
        Self { dataset, header: *header, duplicates, order, batch, written: 0, capacity: BATCH }
    }

    /// Adds an entry, and its mirror image if the matrix is symmetric.
    pub(super) fn add<R: BufRead>(&mut self, entry: Entry<S>, parser: &Parser<R>) -> Result<()> {
        self.order.note(entry.row, entry.column);
        let mirrored = match (entry.row == entry.column, self.header.symmetry) {
            (_, Symmetry::General) | (true, Symmetry::Symmetric | Symmetry::Hermitian) => None,
            (false, Symmetry::Symmetric) => Some(entry.value),
            (false, Symmetry::Hermitian) => Some(entry.value.conjugated()),
            (true, Symmetry::SkewSymmetric) => {
                let message = "expected no entry on the diagonal of a skew-symmetric matrix";
                return Err(parser.error_at(entry.line, message).into());
            }
            (false, Symmetry::SkewSymmetric) => Some(entry.value.negated().ok_or_else(|| {
                parser.error_at(entry.line, "expected a value that can be negated")
            })?),
        };
        self.batch.push(entry);
        if let Some(value) = mirrored {
            let Entry { row, column, line, .. } = entry;
            self.batch.push(Entry { row: column, column: row, value, line });
        }
        if self.batch.len() >= self.capacity { self.write(parser) } else { Ok(()) }
    }

    /// Writes what is left; returns how many cells were written in all.
    pub(super) fn finish<R: BufRead>(mut self, parser: &Parser<R>) -> Result<u64> {
        self.write(parser)?;
        Ok(self.written)
    }

    fn write<R: BufRead>(&mut self, parser: &Parser<R>) -> Result<()> {
        let unique = self.header.format == Format::Array
            || self.order.is_strict(is_mirrored(self.header.symmetry));
        let mut defined_before = 0;
        if !unique {
            self.merge_batch(parser)?;
            if self.written > 0 {
                defined_before = self.merge_dataset(parser)?;
            }
        }
        let mut coordinates = Vec::with_capacity(self.batch.len() * 2);
        let mut bytes = Vec::with_capacity(self.batch.len() * S::datatype().size());
        for entry in &self.batch {
            coordinates.extend([entry.row, entry.column]);
            entry.value.append(&mut bytes);
        }
        if !coordinates.is_empty() {
            self.dataset.write_bytes(points(coordinates)?, &bytes)?;
        }
        self.written += self.batch.len() as u64 - defined_before;
        self.batch.clear();
        Ok(())
    }

    /// Sorts the batch and merges entries for the same cell.
    fn merge_batch<R: BufRead>(&mut self, parser: &Parser<R>) -> Result<()> {
        // The sort is stable: entries for one cell keep the file's order.
        self.batch.sort_by_key(|entry| (entry.row, entry.column));
        let mut kept = 0usize;
        for index in 0..self.batch.len() {
            let entry = self.batch[index];
            let last = kept.checked_sub(1).map(|last| self.batch[last]);
            match last.filter(|last| (last.row, last.column) == (entry.row, entry.column)) {
                Some(first) => {
                    let line = Some(first.line);
                    let value = merge(self.duplicates, first.value, line, entry, parser)?;
                    self.batch[kept - 1].value = value;
                }
                None => {
                    self.batch[kept] = entry;
                    kept += 1;
                }
            }
        }
        self.batch.truncate(kept);
        Ok(())
    }

    /// Merges the batch, sorted and without repetitions, with cells that are defined already.
    /// Returns how many these are.
    fn merge_dataset<R: BufRead>(&mut self, parser: &Parser<R>) -> Result<u64> {
        let shape = [self.header.rows, self.header.columns];
        let cells = self.batch.iter().flat_map(|entry| [entry.row, entry.column]).collect();
        let defined = self.dataset.defined(points(cells)?)?;
        let count = defined.count(&shape);
        if count == 0 {
            return Ok(0);
        }
        let bytes = self.dataset.read_bytes(&defined)?;
        let mut values = bytes.chunks_exact(S::datatype().size());
        let mut entries = self.batch.iter_mut();
        for linear in defined.runs(&shape).flat_map(|run| run.start..run.start + run.len) {
            let place = (linear / shape[1], linear % shape[1]);
            let entry = entries.find(|entry| (entry.row, entry.column) == place);
            if let (Some(entry), Some(value)) = (entry, values.next()) {
                let first = S::from_bytes(value);
                entry.value = merge(self.duplicates, first, None, *entry, parser)?;
            }
        }
        Ok(count)
    }
}

/// The value of a cell that has a value and gets another.
fn merge<S: Scalar, R: BufRead>(
    duplicates: Duplicates,
    first: S,
    first_line: Option<u64>,
    entry: Entry<S>,
    parser: &Parser<R>,
) -> Result<S, SyntaxError> {
    let (row, column) = (entry.row + 1, entry.column + 1);
    match duplicates {
        Duplicates::First => Ok(first),
        Duplicates::Last => Ok(entry.value),
        Duplicates::Sum => first.sum(entry.value).ok_or_else(|| {
            let message = format!("the entries of row {row}, column {column} add up to too much");
            parser.error_at(entry.line, message)
        }),
        Duplicates::Error => {
            let whence = first_line.map_or("before".to_owned(), |line| format!("on line {line}"));
            let message = format!("row {row}, column {column} has an entry {whence} already");
            Err(parser.error_at(entry.line, message))
        }
    }
}

fn points(coordinates: Vec<u64>) -> Result<Selection> {
    Ok(Selection::points(2, coordinates).map_err(pumice::Error::from)?)
}

/// Whether entries came in an order that allows no cell to come twice.
#[derive(Debug)]
struct Order {
    last: Option<(u64, u64)>,
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
    fn note(&mut self, row: u64, column: u64) {
        if let Some((last_row, last_column)) = self.last {
            self.by_row &= (last_row, last_column) < (row, column);
            self.by_column &= (last_column, last_row) < (column, row);
        }
        self.lower &= row >= column;
        self.upper &= row <= column;
        self.last = Some((row, column));
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
    use crate::matrix_market::Field;
    use pumice::File;

    type Cell = (u64, u64, i64);

    /// Imports integer entries in batches of `capacity`; all cells and values, and the count.
    fn import(
        body: &[Cell],
        symmetry: &str,
        duplicates: Duplicates,
        capacity: usize,
    ) -> Result<(Vec<Cell>, u64)> {
        let mut text = format!("%%MatrixMarket matrix coordinate integer {symmetry}\n");
        text += &format!("4 4 {}\n", body.len());
        for (row, column, value) in body {
            text += &format!("{row} {column} {value}\n");
        }
        let mut parser = Parser::open(text.as_bytes(), "m").unwrap();
        assert_eq!(parser.header().field, Field::Integer);
        let file = File::in_memory().unwrap();
        let builder = file.new_dataset::<i64>().shape([4, 4]).chunk([2, 2]).sparse();
        let dataset = builder.create("m").unwrap();
        let mut batches = Batches::<i64>::new(&dataset, &parser.header(), duplicates);
        batches.capacity = capacity;
        while let Some(entry) = parser.next_entry()? {
            batches.add(entry, &parser)?;
        }
        let count = batches.finish(&parser)?;
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
            for (duplicates, first, second) in
                [(Duplicates::Sum, 115, 8), (Duplicates::First, 5, 7), (Duplicates::Last, 100, 1)]
            {
                let (cells, count) = import(&body, "general", duplicates, capacity).unwrap();
                assert_eq!(cells, [(0, 0, first), (1, 2, second), (3, 3, 0)], "{capacity}");
                assert_eq!(count, 3);
            }
            let error = import(&body, "general", Duplicates::Error, capacity).unwrap_err();
            assert!(error.to_string().starts_with("m:5: row 1, column 1 has an entry"), "{error}");
        }
    }

    #[test]
    fn symmetric_entries_are_mirrored() {
        let body = [(2, 1, 3), (3, 3, 4), (4, 1, -5)];
        for capacity in 1..5 {
            let (cells, count) = import(&body, "symmetric", Duplicates::Error, capacity).unwrap();
            assert_eq!(cells, [(0, 1, 3), (0, 3, -5), (1, 0, 3), (2, 2, 4), (3, 0, -5)]);
            assert_eq!(count, 5);
        }
        let (cells, _) = import(&body[..1], "skew-symmetric", Duplicates::Sum, 1).unwrap();
        assert_eq!(cells, [(0, 1, -3), (1, 0, 3)]);
        assert!(import(&body, "skew-symmetric", Duplicates::Sum, 1).is_err());
    }

    #[test]
    fn both_triangles_of_a_symmetric_matrix_are_duplicates() {
        let body = [(2, 1, 3), (1, 2, 4)];
        let (cells, count) = import(&body, "symmetric", Duplicates::Sum, 9).unwrap();
        assert_eq!((cells, count), (vec![(0, 1, 7), (1, 0, 7)], 2));
        assert!(import(&body, "symmetric", Duplicates::Error, 9).is_err());
    }

    #[test]
    fn sums_that_overflow_are_refused() {
        let body = [(1, 1, i64::MAX), (1, 1, 1)];
        assert!(import(&body, "general", Duplicates::Sum, 9).is_err());
    }
}
