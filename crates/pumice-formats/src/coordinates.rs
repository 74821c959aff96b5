//! Coordinate lists (COO) of any rank.

use super::array_stream::{Numbers, Stream};
use super::{Array, BATCH, Cells, Part, Source};
use anyhow::{Result, bail, ensure};

/// Coordinates and values on their way in.
pub(crate) struct CoordinateSource {
    array: Array,
    columns: Vec<Numbers>,
    values: Box<dyn Stream>,
    read: u64,
}

impl CoordinateSource {
    /// One column for each axis.
    pub(crate) fn new(
        array: Array,
        columns: Vec<Numbers>,
        values: Box<dyn Stream>,
    ) -> Result<Self> {
        for column in &columns {
            let (expected, found) = (values.len(), column.len());
            let what = column.what();
            ensure!(found == expected, "{what}: expected {expected} numbers, found {found}");
        }
        Ok(Self { array, columns, values, read: 0 })
    }
}

impl Source for CoordinateSource {
    fn array(&self) -> &Array {
        &self.array
    }

    fn next_part(&mut self) -> Result<Option<Part>> {
        let count = (self.values.len() - self.read).min(BATCH as u64);
        if count == 0 {
            return Ok(None);
        }
        let mut columns = Vec::with_capacity(self.columns.len());
        for (column, &length) in self.columns.iter_mut().zip(&self.array.shape) {
            let numbers = column.read(count)?;
            if let Some(at) = numbers.iter().position(|&number| number >= length) {
                let (what, place) = (column.what(), self.read + at as u64);
                let found = numbers[at];
                bail!("{what}: entry {place}: expected an index below {length}, found {found}");
            }
            columns.push(numbers);
        }
        self.read += count;
        let values = self.values.read(count)?;
        Ok(Some(Part::Cells(Cells { columns, values, marks: Vec::new() })))
    }
}
