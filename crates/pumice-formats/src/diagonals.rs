//! Diagonals (SciPy's DIA). They are stored whole, with zeros where the matrix has nothing, so only
//! cells that are not zero are entries, as in SciPy.

use super::array_stream::Stream;
use super::{Array, BATCH, Cells, Part, Source};
use anyhow::{Result, ensure};

/// Diagonals on their way in.
pub(crate) struct DiagonalSource {
    array: Array,
    /// The offset of each diagonal from the main one, to the right.
    offsets: Vec<i64>,
    /// Cells that are stored of each.
    length: u64,
    values: Box<dyn Stream>,
    read: u64,
}

impl DiagonalSource {
    pub(crate) fn new(
        shape: Vec<u64>,
        offsets: Vec<i64>,
        length: u64,
        values: Box<dyn Stream>,
    ) -> Result<Self> {
        let (expected, found) = (offsets.len() as u64, values.len());
        ensure!(
            expected.checked_mul(length) == Some(found),
            "expected {expected} diagonals of {length} cells, found {found} values"
        );
        let array = Array::sparse(shape, values.datatype().clone(), found);
        Ok(Self { array, offsets, length, values, read: 0 })
    }

    /// The place of a stored value; `None` outside of the matrix.
    fn place(&self, number: u64) -> Option<(u64, u64)> {
        let offset = self.offsets[(number / self.length) as usize];
        let column = number % self.length;
        let row = column.checked_add_signed(offset.checked_neg()?)?;
        (row < self.array.shape[0] && column < self.array.shape[1]).then_some((row, column))
    }
}

impl Source for DiagonalSource {
    fn array(&self) -> &Array {
        &self.array
    }

    fn next_part(&mut self) -> Result<Option<Part>> {
        let count = (self.values.len() - self.read).min(BATCH as u64);
        if count == 0 {
            return Ok(None);
        }
        let bytes = self.values.read(count)?;
        let mut cells = Cells::new(2);
        let elements = bytes.chunks_exact(self.array.datatype.size().max(1));
        for (number, element) in (self.read..).zip(elements) {
            if element.iter().all(|&byte| byte == 0) {
                continue;
            }
            if let Some((row, column)) = self.place(number) {
                cells.columns[0].push(row);
                cells.columns[1].push(column);
                cells.values.extend_from_slice(element);
            }
        }
        self.read += count;
        Ok(Some(Part::Cells(cells)))
    }
}
