//! Compressed rows and columns, also of matrices most of whose lines are empty (CSR, CSC, DCSR,
//! DCSC).

use super::array_stream::{Numbers, Stream};
use super::{Array, BATCH, Cells, Part, Source};
use anyhow::{Result, ensure};

/// Pointers that are read at once.
const POINTERS: u64 = 1 << 16;

/// The arrays of compressed lines.
pub(crate) struct Parts {
    /// The position of each line's first cell, and the end of the last line.
    pub(crate) pointers: Numbers,
    pub(crate) indices: Numbers,
    pub(crate) values: Box<dyn Stream>,
    /// The numbers of the stored lines, if these are not all.
    pub(crate) lines: Option<Numbers>,
    /// The axis that counts lines: 0 for rows.
    pub(crate) axis: usize,
}

/// Compressed lines on their way in.
pub(crate) struct CompressedSource {
    array: Array,
    parts: Parts,
    /// Pointers that were read ahead, and the lines they belong to; next last.
    ahead: Vec<(u64, u64)>,
    /// The number of lines read.
    lines_read: u64,
    /// The line that is being read, where it ends, and how many cells were read in all.
    line: u64,
    line_end: u64,
    position: u64,
    /// The number of cells in a batch.
    batch: usize,
}

impl CompressedSource {
    pub(crate) fn new(array: Array, mut parts: Parts) -> Result<Self> {
        let lines = match &parts.lines {
            Some(lines) => lines.len(),
            None => array.shape[parts.axis],
        };
        let (pointers, what) = (parts.pointers.len(), parts.pointers.what());
        ensure!(
            Some(pointers) == lines.checked_add(1),
            "{what}: expected {lines} + 1 pointers, found {pointers}"
        );
        let (indices, values) = (parts.indices.len(), parts.values.len());
        let what = parts.indices.what();
        ensure!(indices == values, "{what}: expected {values} indices, found {indices}");
        let first = parts.pointers.read(1)?[0];
        ensure!(first == 0, "{}: expected 0 first, found {first}", parts.pointers.what());
        let (ahead, line, line_end) = (Vec::new(), 0, 0);
        let (lines_read, position) = (0, 0);
        Ok(Self { array, parts, ahead, lines_read, line, line_end, position, batch: BATCH })
    }

    /// Returns this many cells at once.
    pub(crate) fn in_batches(mut self, batch: usize) -> Self {
        self.batch = batch;
        self
    }

    /// Goes on to the next line; `false` behind the last.
    fn next_line(&mut self) -> Result<bool> {
        if self.ahead.is_empty() {
            let left = self.parts.pointers.len() - 1 - self.lines_read;
            let count = left.min(POINTERS);
            if count == 0 {
                return Ok(false);
            }
            let ends = self.parts.pointers.read(count)?;
            let lines = match &mut self.parts.lines {
                Some(lines) => lines.read(count)?,
                None => (self.lines_read..self.lines_read + count).collect(),
            };
            self.ahead = ends.into_iter().zip(lines).rev().collect();
            self.lines_read += count;
        }
        let Some((end, line)) = self.ahead.pop() else { return Ok(false) };
        let (what, entries) = (self.parts.pointers.what(), self.parts.values.len());
        ensure!(
            (self.line_end..=entries).contains(&end),
            "{what}: the pointer behind line {line} is {end}, expected {} to {entries}",
            self.line_end
        );
        let lines = self.array.shape[self.parts.axis];
        ensure!(line < lines, "expected a line below {lines}, found {line}");
        (self.line, self.line_end) = (line, end);
        Ok(true)
    }

    /// Indices inside the matrix, or an error that names the first one outside.
    fn read_indices(&mut self, count: u64) -> Result<Vec<u64>> {
        let indices = self.parts.indices.read(count)?;
        let end = self.array.shape[1 - self.parts.axis];
        if let Some(at) = indices.iter().position(|&index| index >= end) {
            let (place, index) = (self.position - count + at as u64, indices[at]);
            let what = self.parts.indices.what();
            anyhow::bail!("{what}: entry {place}: expected an index below {end}, found {index}");
        }
        Ok(indices)
    }
}

impl Source for CompressedSource {
    fn array(&self) -> &Array {
        &self.array
    }

    fn next_part(&mut self) -> Result<Option<Part>> {
        let mut lines = Vec::new();
        while lines.len() < self.batch {
            if self.position == self.line_end && !self.next_line()? {
                let (end, entries) = (self.position, self.parts.values.len());
                let what = self.parts.pointers.what();
                ensure!(
                    end == entries,
                    "{what}: the last is {end}, but there are {entries} values"
                );
                break;
            }
            let count = (self.line_end - self.position).min((self.batch - lines.len()) as u64);
            lines.resize(lines.len() + count as usize, self.line);
            self.position += count;
        }
        if lines.is_empty() {
            return Ok(None);
        }
        let count = lines.len() as u64;
        let indices = self.read_indices(count)?;
        let values = self.parts.values.read(count)?;
        let columns = match self.parts.axis {
            0 => vec![lines, indices],
            _ => vec![indices, lines],
        };
        Ok(Some(Part::Cells(Cells { columns, values, marks: Vec::new() })))
    }
}
