//! Compressed rows of blocks (SciPy's BSR): every cell of a stored block is an entry, also if it is zero,
//! as SciPy has it.

use super::array_stream::{Numbers, Stream};
use super::compressed::{CompressedSource, Parts};
use super::{Array, BATCH, Cells, Part, Source};
use anyhow::{Context, Result, ensure};
use pumice::Datatype;

/// Blocks on their way in.
pub(crate) struct BlockSource {
    array: Array,
    /// Rows and columns of a block.
    block: [u64; 2],
    /// The matrix of blocks, each of which is one long element.
    blocks: CompressedSource,
}

impl BlockSource {
    /// A matrix of `shape`, whose `values` are blocks of `block` cells, one behind the other.
    pub(crate) fn new(
        shape: Vec<u64>,
        block: [u64; 2],
        pointers: Numbers,
        indices: Numbers,
        values: Box<dyn Stream>,
    ) -> Result<Self> {
        let cells = block[0].checked_mul(block[1]).filter(|&cells| cells > 0);
        let cells = cells.with_context(|| format!("blocks of {block:?} cells"))?;
        ensure!(
            shape[0].is_multiple_of(block[0]) && shape[1].is_multiple_of(block[1]),
            "a matrix of {shape:?} is not made of blocks of {block:?}"
        );
        let array = Array::sparse(shape.clone(), values.datatype().clone(), values.len());
        let grid = vec![shape[0] / block[0], shape[1] / block[1]];
        let values = Grouped { cells, inner: values };
        let outer = Array::sparse(grid, values.datatype().clone(), values.len());
        let parts = Parts { pointers, indices, values: Box::new(values), lines: None, axis: 0 };
        let batch = usize::try_from(BATCH as u64 / cells).unwrap_or(1).max(1);
        Ok(Self { array, block, blocks: CompressedSource::new(outer, parts)?.in_batches(batch) })
    }
}

impl Source for BlockSource {
    fn array(&self) -> &Array {
        &self.array
    }

    fn next_part(&mut self) -> Result<Option<Part>> {
        let Some(Part::Cells(blocks)) = self.blocks.next_part()? else { return Ok(None) };
        let [height, width] = self.block;
        let mut columns = vec![Vec::new(), Vec::new()];
        for (row, column) in blocks.columns[0].iter().zip(&blocks.columns[1]) {
            for line in row * height..(row + 1) * height {
                columns[0].extend(std::iter::repeat_n(line, width as usize));
                columns[1].extend(column * width..(column + 1) * width);
            }
        }
        Ok(Some(Part::Cells(Cells { columns, values: blocks.values, marks: Vec::new() })))
    }
}

/// Elements, some of which are one.
struct Grouped {
    cells: u64,
    inner: Box<dyn Stream>,
}

impl Stream for Grouped {
    fn datatype(&self) -> &Datatype {
        self.inner.datatype()
    }

    fn len(&self) -> u64 {
        self.inner.len() / self.cells
    }

    fn read(&mut self, count: u64) -> Result<Vec<u8>> {
        self.inner.read(count.checked_mul(self.cells).context("too many blocks")?)
    }
}
