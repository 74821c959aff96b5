//! Compressed lines block by block.
//!
//! A sparse matrix may have many more chunks than are stored, and as many rows of chunks in which none is. The stored
//! ones are listed, of very many some at a time, and the blocks go from one to the next.

use super::{Compressed, Lines};
use crate::Dataset;
use crate::blocks::{BLOCK_CELLS, Block};
use pumice_engine::Result;
use pumice_space::Dims;
use pumice_types::Element;

/// So many chunks of a matrix are listed at a time.
const LISTED: usize = 1 << 18;

/// A band of more chunks is read as any part of a dataset, without a list of its chunks.
const OF_A_BAND: usize = 1 << 16;

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
    /// The chunks of the next bands, if it is known which ones have cells.
    bands: Option<Bands>,
    element: std::marker::PhantomData<fn() -> T>,
}

/// Chunks that may have cells, from one band on.
#[derive(Debug, Default)]
struct Bands {
    /// The band of each, and its place in the band, in order.
    listed: Vec<[u64; 2]>,
    /// The first band that is not listed.
    end: u64,
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
        let bands = dataset.is_sparse().then(Bands::default);
        Ok(Self { dataset, lines, shape, next: 0, step, bands, element: Default::default() })
    }

    /// The next block of `left` lines. Filled ones are of one band.
    fn part(&mut self, left: u64) -> Result<Part> {
        let Some(bands) = &mut self.bands else { return Ok(Part::Filled(left.min(self.step))) };
        let band = self.next / self.step;
        if band >= bands.end {
            bands.list(&self.dataset, self.lines, band)?;
        }
        let first = bands.listed.partition_point(|chunk| chunk[0] < band);
        let filled = bands.listed.get(first).map_or(bands.end, |chunk| chunk[0]);
        Ok(match filled == band {
            true => Part::Filled(left.min(self.step - self.next % self.step)),
            false => Part::Empty(left.min(filled.saturating_mul(self.step) - self.next)),
        })
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
        let chunks = self.bands.as_ref().and_then(|bands| bands.chunks(self.lines, band));
        self.dataset.in_one_extent(|shape| {
            let cells = block.within(shape)?;
            let (state, dataset) = (&self.dataset.state, &self.dataset);
            let defined = || match &chunks {
                Some(chunks) => {
                    let found = state.defined_in(chunks, &cells)?;
                    Ok(found.iter().map(|part| part.cells.len()).sum())
                }
                None => dataset.count_defined(&cells),
            };
            if count > 1 && defined()? > BLOCK_CELLS {
                return Ok(None);
            }
            let found = match &chunks {
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

impl Bands {
    /// Lists chunks from a band on, those of as many bands as may be listed.
    fn list(&mut self, dataset: &Dataset, lines: Lines, from: u64) -> Result<()> {
        (self.listed, self.end) = (Vec::new(), u64::MAX);
        let axis = lines.axis();
        dataset.at(dataset.state.for_each_in_use(|chunk| {
            if chunk[axis] >= from && chunk[axis] < self.end {
                self.listed.push([chunk[axis], chunk[1 - axis]]);
                if self.listed.len() >= 2 * LISTED {
                    self.shorten();
                }
            }
        }))?;
        self.shorten();
        self.listed.sort_unstable();
        Ok(())
    }

    /// Leaves out the last bands if there are too many chunks.
    fn shorten(&mut self) {
        if self.listed.len() <= LISTED {
            return;
        }
        self.listed.sort_unstable();
        let (first, last) = (self.listed[0][0], self.listed[LISTED][0]);
        if first == last {
            // One band of which it is enough to know that it is too long.
            self.end = first + 1;
            self.listed.truncate(LISTED);
        } else {
            self.end = last;
            self.listed.truncate(self.listed.partition_point(|chunk| chunk[0] < last));
        }
    }

    /// The chunks of a band in row-major order, if it has few.
    fn chunks(&self, lines: Lines, band: u64) -> Option<Vec<Dims>> {
        let begin = self.listed.partition_point(|chunk| chunk[0] < band);
        let length = self.listed[begin..].partition_point(|chunk| chunk[0] == band);
        let of_band = &self.listed[begin..begin + length];
        (length <= OF_A_BAND).then(|| of_band.iter().map(|chunk| key(lines, chunk)).collect())
    }
}

fn key(lines: Lines, &[band, beside]: &[u64; 2]) -> Dims {
    match lines.axis() {
        0 => Dims::from_slice(&[band, beside]),
        _ => Dims::from_slice(&[beside, band]),
    }
}

impl<T: Element> Iterator for CompressedBlocks<T> {
    type Item = Result<Compressed<T>>;

    fn next(&mut self) -> Option<Self::Item> {
        let left = self.shape[self.lines.axis()].saturating_sub(self.next);
        if left == 0 {
            return None;
        }
        let block = match self.part(left.min(BLOCK_CELLS)) {
            Ok(Part::Empty(count)) => self.empty(count),
            Ok(Part::Filled(count)) => self.read_at_most(count),
            Err(error) => Err(error),
        };
        self.next = match &block {
            Ok(block) => self.next + block.line_count(),
            Err(_) => u64::MAX,
        };
        Some(block)
    }
}
