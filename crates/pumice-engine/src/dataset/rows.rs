//! Compressed rows on their way to a sparse dataset: split by chunk and encoded in one pass.
//!
//! A band of chunks side by side is one task. It reads its rows once, in order; gaps are packed as they
//! come, and values are appended to those of their chunk. A chunk that is new takes both as they are.

use super::DatasetState;
use crate::layout::{Source, Storage};
use pumice_filter::location::{RowCells, RowEncoder};
use pumice_filter::{Work, run_widely};
use pumice_space::{ChunkGrid, Dims, Points, RowGrid, TakeRows};
use std::ops::Range;
use std::sync::OnceLock;

/// Bytes of values that are copied as a block.
const BLOCK: usize = 64;

/// The most chunks side by side: each has some memory of its own while rows come.
const MOST_CHUNKS: u64 = 1 << 12;

/// Runs numbered tasks on some threads.
type Run<'r> = &'r dyn Fn(usize, &(dyn Fn(usize) + Sync));

/// The cells of a chunk and their values, in the memory's type.
pub(super) struct Encoded {
    pub(super) chunk: Dims,
    pub(super) cells: RowCells,
    pub(super) values: Vec<u8>,
}

impl DatasetState {
    /// The chunks of compressed rows, made by tasks that `run` runs; `None` if points are no such rows, have
    /// many neighbours in them, or chunks would not take them.
    pub(super) fn encode_rows(
        &self,
        points: &Points<'_>,
        grid: &ChunkGrid,
        source: &Source<'_>,
        run: Run<'_>,
    ) -> Option<Vec<Encoded>> {
        match &self.layout.storage {
            Storage::Sparse(sparse, _) if sparse.takes_rows() => {}
            _ => return None,
        }
        let rows = RowGrid::new(points, grid)?;
        if grid.counts()[1] > MOST_CHUNKS || !rows.is_scattered() {
            return None;
        }
        let bands: Vec<OnceLock<_>> = (0..rows.bands()).map(|_| OnceLock::new()).collect();
        run(bands.len(), &|band| {
            let encoded = run_widely(Band { rows: &rows, number: band, grid, source });
            let _ = bands[band].set(encoded);
        });
        let bands = bands.into_iter().map(|band| band.into_inner().flatten());
        Some(bands.collect::<Option<Vec<_>>>()?.into_iter().flatten().collect())
    }
}

/// A chunk whose rows are coming.
struct Growing {
    encoder: RowEncoder,
    values: Vec<u8>,
}

/// The rows of chunks side by side.
struct Band<'a> {
    rows: &'a RowGrid<'a>,
    number: usize,
    grid: &'a ChunkGrid,
    source: &'a Source<'a>,
}

impl Work for Band<'_> {
    type Output = Option<Vec<Encoded>>;

    #[inline(always)]
    fn run(self) -> Self::Output {
        encode_band(self.rows, self.number, self.grid, self.source)
    }
}

#[inline(always)]
fn encode_band(
    rows: &RowGrid<'_>,
    band: usize,
    grid: &ChunkGrid,
    source: &Source<'_>,
) -> Option<Vec<Encoded>> {
    let (&[height, side], &[_, across]) = (grid.chunk(), &*grid.counts()) else { return None };
    let element = source.element_size();
    // If they are spread evenly, a little more than each gets.
    let room = rows.count(band) / usize::try_from(across).ok()?.max(1);
    let room = room + room / 8;
    let mut chunks = Vec::new();
    for chunk in 0..across {
        let first = u32::try_from(chunk.checked_mul(side)?).ok()?;
        let encoder = RowEncoder::new([height, side], first, room)?;
        chunks.push(Growing { encoder, values: Vec::with_capacity(room * element + BLOCK) });
    }
    let (columns, bytes) = (rows.columns(), source.bytes());
    let whole = rows.split(band, Pieces { columns, bytes, element, chunks: &mut chunks });
    let filled = chunks.into_iter().enumerate().filter(|(_, chunk)| !chunk.values.is_empty());
    let encoded = filled.map(|(number, Growing { encoder, values })| {
        let chunk = Dims::from_slice(&[band as u64, number as u64]);
        Encoded { chunk, cells: encoder.finish(), values }
    });
    whole.then(|| encoded.collect())
}

/// The chunks that pieces of rows go to.
struct Pieces<'a> {
    columns: &'a [u32],
    bytes: &'a [u8],
    element: usize,
    chunks: &'a mut [Growing],
}

impl TakeRows for Pieces<'_> {
    #[inline(always)]
    fn take(&mut self, chunk: usize, row: u32, range: Range<usize>) {
        let Growing { encoder, values } = &mut self.chunks[chunk];
        let (from, to) = (range.start * self.element, range.end * self.element);
        encoder.row(row, self.columns, range);
        // Few values are copied as a block, of which the rest is cut off again.
        let len = values.len() + (to - from);
        match self.bytes.get(from..).and_then(|bytes| bytes.first_chunk::<BLOCK>()) {
            Some(block) if to - from <= BLOCK => {
                values.extend_from_slice(block);
                values.truncate(len);
            }
            _ => values.extend_from_slice(self.bytes.get(from..to).unwrap_or_default()),
        }
    }
}
