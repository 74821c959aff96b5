//! Compressed lines block by block.
//!
//! A sparse matrix may have many more chunks than are stored, and as many rows of chunks in which none is: the stored
//! ones are listed once, and the blocks go from one to the next.

use super::{Compressed, Lines};
use crate::Dataset;
use crate::blocks::{BLOCK_CELLS, Block};
use pumice_engine::Result;
use pumice_space::Dims;
use pumice_types::Element;
use std::collections::BTreeMap;

/// Blocks of compressed lines; see [`Dataset::compressed_blocks`].
#[derive(Debug)]
pub struct CompressedBlocks<T> {
    dataset: Dataset,
    lines: Lines,
    /// The shape of the matrix at the beginning.
    shape: Vec<u64>,
    next: u64,
    /// The number of lines of a chunk, which are a band.
    step: u64,
    /// The chunks of every band that has any, if it is known which ones have cells.
    bands: Option<BTreeMap<u64, Vec<Dims>>>,
    element: std::marker::PhantomData<fn() -> T>,
}

/// The next block.
enum Part {
    /// A number of lines without stored chunks.
    Empty(u64),
    /// A number of lines to read; fewer if they have too many cells.
    Filled(u64),
}

impl<T: Element> CompressedBlocks<T> {
    pub(super) fn new(dataset: Dataset, lines: Lines) -> Result<Self> {
        let step = dataset.chunk().map_or(BLOCK_CELLS, |chunk| chunk[lines.axis()]).max(1);
        let shape = dataset.shape();
        let bands = match dataset.is_sparse() {
            true => Some(bands(&dataset, lines)?),
            false => None,
        };
        Ok(Self { dataset, lines, shape, next: 0, step, bands, element: Default::default() })
    }

    /// The next block of `left` lines. Filled ones are of one band.
    fn part(&self, left: u64) -> Part {
        let Some(bands) = &self.bands else { return Part::Filled(left.min(self.step)) };
        let band = self.next / self.step;
        match bands.range(band..).next() {
            Some((&filled, _)) if filled == band => {
                Part::Filled(left.min(self.step - self.next % self.step))
            }
            Some((&filled, _)) => Part::Empty(left.min(filled * self.step - self.next)),
            None => Part::Empty(left),
        }
    }

    fn empty(&self, count: u64) -> Result<Compressed<T>> {
        let nothing = crate::Defined { rank: 2, coordinates: Vec::new(), values: Vec::new() };
        Compressed::of(self.lines, self.next, count, &nothing)
    }

    /// Reads `count` lines; `None` if they have too many cells.
    fn read(&self, count: u64) -> Result<Option<Compressed<T>>> {
        let axis = self.lines.axis();
        let mut block = Block { start: vec![0, 0], count: self.shape.clone() };
        (block.start[axis], block.count[axis]) = (self.next, count);
        let band = self.next / self.step;
        let chunks = self.bands.as_ref().and_then(|bands| bands.get(&band));
        self.dataset.in_one_extent(|shape| {
            let cells = block.within(shape)?;
            let (state, dataset) = (&self.dataset.state, &self.dataset);
            let defined = || match chunks {
                Some(chunks) => {
                    let found = state.defined_in(chunks, &cells)?;
                    Ok(found.iter().map(|part| part.cells.len()).sum())
                }
                None => dataset.count_defined(&cells),
            };
            if count > 1 && defined()? > BLOCK_CELLS {
                return Ok(None);
            }
            let found = match chunks {
                Some(chunks) => {
                    let wanted = T::datatype();
                    dataset.converted(&state.read_defined_in(chunks, &cells, &wanted)?)?
                }
                None => dataset.read_defined::<T>(&cells)?,
            };
            Compressed::of(self.lines, self.next, count, &found).map(Some)
        })
    }

    fn read_at_most(&self, mut count: u64) -> Result<Compressed<T>> {
        loop {
            match self.read(count)? {
                Some(block) => return Ok(block),
                None => count /= 2,
            }
        }
    }
}

/// The chunks that may have cells, by the band that they are in; in row-major order in each.
fn bands(dataset: &Dataset, lines: Lines) -> Result<BTreeMap<u64, Vec<Dims>>> {
    let mut bands: BTreeMap<u64, Vec<Dims>> = BTreeMap::new();
    for chunk in dataset.at(dataset.state.chunks_in_use())? {
        bands.entry(chunk[lines.axis()]).or_default().push(chunk);
    }
    Ok(bands)
}

impl<T: Element> Iterator for CompressedBlocks<T> {
    type Item = Result<Compressed<T>>;

    fn next(&mut self) -> Option<Self::Item> {
        let left = self.shape[self.lines.axis()].saturating_sub(self.next);
        if left == 0 {
            return None;
        }
        let block = match self.part(left.min(BLOCK_CELLS)) {
            Part::Empty(count) => self.empty(count),
            Part::Filled(count) => self.read_at_most(count),
        };
        self.next = match &block {
            Ok(block) => self.next + block.line_count(),
            Err(_) => u64::MAX,
        };
        Some(block)
    }
}
