//! Compressed rows (CSR) and columns (CSC) of matrices.

mod blocks;
pub(crate) mod window;

pub use self::blocks::CompressedBlocks;

use super::duplicates::Duplicates;
use crate::dataset::steady::bounded;
use crate::{Dataset, Defined};
use pumice_engine::{Error, Result};
use pumice_medium::zeroed;
use pumice_space::{Dims, Points, Selection};
use pumice_types::Element;
use std::borrow::Borrow;

/// A matrix of up to this many rows and columns is read as a window.
const WINDOW: u64 = 1 << 24;

/// The compressed lines of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lines {
    /// Rows: CSR.
    Rows,
    /// Columns: CSC.
    Columns,
}

impl Lines {
    /// The axis that counts the lines.
    fn axis(self) -> usize {
        match self {
            Self::Rows => 0,
            Self::Columns => 1,
        }
    }
}

/// Consecutive lines of a sparse matrix. The cells of line `first + n` have the indices and values
/// from position `pointers[n]` up to `pointers[n + 1]`.
///
/// ```
/// use pumice::{Compressed, Duplicates, File, Lines};
///
/// let file = File::in_memory()?;
/// let matrix = file.new_dataset::<f32>().shape([4, 5]).sparse().create("matrix")?;
/// let rows = Compressed {
///     lines: Lines::Rows,
///     first: 1,
///     pointers: vec![0, 2, 2, 3],
///     indices: vec![4, 0, 3],
///     values: vec![1.5f32, 0.0, 2.5],
/// };
/// matrix.write_compressed([&rows], Duplicates::Error)?;
///
/// let columns = matrix.read_compressed::<f32>(Lines::Columns)?;
/// assert_eq!(columns.pointers, [0, 1, 1, 1, 2, 3]);
/// assert_eq!(columns.indices, [1, 3, 1], "rows");
/// assert_eq!(columns.values, [0.0, 2.5, 1.5]);
/// # Ok::<(), pumice::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Compressed<T> {
    /// Rows or columns.
    pub lines: Lines,
    /// The first line.
    pub first: u64,
    /// The position of each line's first cell, and the end of the last line.
    pub pointers: Vec<u64>,
    /// The place of each cell in its line.
    pub indices: Vec<u64>,
    /// The value of each cell.
    pub values: Vec<T>,
}

impl<T> Compressed<T> {
    /// No lines yet: memory to read into.
    ///
    /// ```
    /// use pumice::{Compressed, Lines};
    ///
    /// assert_eq!(Compressed::<f32>::new(Lines::Rows).line_count(), 0);
    /// ```
    pub fn new(lines: Lines) -> Self {
        let (pointers, indices, values) = (Vec::new(), Vec::new(), Vec::new());
        Self { lines, first: 0, pointers, indices, values }
    }

    /// The number of cells.
    pub fn len(&self) -> u64 {
        self.values.len() as u64
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The number of lines.
    pub fn line_count(&self) -> u64 {
        self.pointers.len().saturating_sub(1) as u64
    }

    /// The line of each cell.
    fn line_numbers(&self) -> Vec<u64> {
        let mut numbers = Vec::with_capacity(self.indices.len());
        for (line, bounds) in self.pointers.windows(2).enumerate() {
            let count = bounds[1].saturating_sub(bounds[0]) as usize;
            numbers.resize(numbers.len() + count, self.first.saturating_add(line as u64));
        }
        numbers
    }
}

impl<T: Element> Compressed<T> {
    /// Sorts defined cells by line, and by index within a line.
    fn of(lines: Lines, first: u64, count: u64, found: &Defined<T>) -> Result<Self> {
        let (line_axis, index_axis) = (lines.axis(), 1 - lines.axis());
        let mut pointers: Vec<u64> = zeroed(count as usize + 1)?;
        if found.is_empty() {
            // Untouched memory costs nothing, and there may be many such lines.
            return Ok(Self { lines, first, pointers, indices: Vec::new(), values: Vec::new() });
        }
        let cells = || found.coordinates.chunks_exact(2).zip(&found.values);
        for (point, _) in cells() {
            pointers[(point[line_axis] - first) as usize + 1] += 1;
        }
        for line in 0..count as usize {
            pointers[line + 1] += pointers[line];
        }
        let mut next: Vec<u64> = zeroed(pointers.len())?;
        next.copy_from_slice(&pointers);
        let mut indices = vec![0; found.values.len()];
        let mut values = found.values.clone();
        for (point, &value) in cells() {
            let place = &mut next[(point[line_axis] - first) as usize];
            indices[*place as usize] = point[index_axis];
            values[*place as usize] = value;
            *place += 1;
        }
        let mut compressed = Self { lines, first, pointers, indices, values };
        compressed.sort_lines();
        Ok(compressed)
    }

    /// Sorts lines that chunks were not visited in the order of.
    fn sort_lines(&mut self) {
        for bounds in self.pointers.windows(2) {
            let line = bounds[0] as usize..bounds[1] as usize;
            if self.indices[line.clone()].is_sorted() {
                continue;
            }
            let (indices, values) = (&self.indices[line.clone()], &self.values[line.clone()]);
            let mut cells: Vec<_> = indices.iter().copied().zip(values.iter().copied()).collect();
            cells.sort_by_key(|cell| cell.0);
            for (place, (index, value)) in line.zip(cells) {
                (self.indices[place], self.values[place]) = (index, value);
            }
        }
    }
}

impl Dataset {
    /// Defines the cells of any number of blocks of compressed lines, one after another: each may be
    /// made when it is asked for, so that never more than one need be in memory.
    pub fn write_compressed<T: Element, B: Borrow<Compressed<T>>>(
        &self,
        blocks: impl IntoIterator<Item = B>,
        duplicates: Duplicates,
    ) -> Result<()> {
        self.require_matrix()?;
        blocks.into_iter().try_for_each(|block| self.write_lines(block.borrow(), duplicates))
    }

    fn write_lines<T: Element>(&self, block: &Compressed<T>, duplicates: Duplicates) -> Result<()> {
        let (first, lines) = (block.first, self.shape()[block.lines.axis()]);
        let end = first.saturating_add(block.line_count());
        if end > lines {
            let what = format!("lines {first}..{end} are outside of a matrix of {lines} line(s)");
            return self.at(Err(Error::Invalid(what)));
        }
        let (pointers, indices) = (block.pointers.as_slice(), block.indices.as_slice());
        // Checks that pointers ascend and fit the indices.
        let points = match block.lines {
            Lines::Rows => Points::compressed_rows(pointers, indices),
            Lines::Columns => Points::compressed_columns(pointers, indices),
        };
        let points = self.at(points.map_err(Error::from))?;
        if block.first == 0 {
            return self.write_by_rule(&points, &block.values, duplicates);
        }
        let lines = block.line_numbers();
        let points = match block.lines {
            Lines::Rows => Points::columns([lines.as_slice(), indices]),
            Lines::Columns => Points::columns([indices, lines.as_slice()]),
        };
        let points = self.at(points.map_err(Error::from))?;
        self.write_by_rule(&points, &block.values, duplicates)
    }

    /// The defined cells of a matrix as compressed lines, in blocks of consecutive lines that
    /// together are the whole matrix. A block has at most about a million cells, or one line.
    ///
    /// Of a sparse matrix, only stored chunks are visited: lines without stored chunks are a block
    /// of up to a million lines, of which only the pointers are made. Every line has a pointer,
    /// also if it is empty: read a matrix of far more lines than memory has room for by
    /// [`coo_blocks`](Self::coo_blocks).
    ///
    /// The blocks are those of the present shape and chunks. If the matrix is resized meanwhile,
    /// removed lines and cells are empty, and new ones do not appear.
    pub fn compressed_blocks<T: Element>(&self, lines: Lines) -> Result<CompressedBlocks<T>> {
        self.require_matrix()?;
        CompressedBlocks::new(self.clone(), lines)
    }

    /// The defined cells of a matrix as compressed lines.
    pub fn read_compressed<T: Element>(&self, lines: Lines) -> Result<Compressed<T>> {
        Ok(self.compressed(lines)?.1)
    }

    /// Reads compressed lines, and the shape that the matrix had.
    pub(super) fn compressed<T: Element>(&self, lines: Lines) -> Result<(Dims, Compressed<T>)> {
        self.require_matrix()?;
        self.in_one_extent(|shape| {
            let count = shape[lines.axis()];
            if count >= isize::MAX as u64 / 8 {
                return Err(Error::NoMemory(format!("no memory for {count} pointers")));
            }
            let all = bounded(&Selection::all(), shape)?;
            let compressed = match shape.iter().all(|size| *size <= WINDOW) {
                true => self.read_compressed_of(&all, lines)?,
                // Unwritten lines cost nothing if they are not listed one by one.
                false => Compressed::of(lines, 0, count, &self.read_defined::<T>(&all)?)?,
            };
            Ok((shape.clone(), compressed))
        })
    }

    pub(crate) fn require_matrix(&self) -> Result<()> {
        match self.shape().len() {
            2 => Ok(()),
            rank => self.at(Err(Error::RankMismatch(format!(
                "compressed lines are those of a matrix, not of an array of rank {rank}"
            )))),
        }
    }
}
