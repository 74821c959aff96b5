//! Points that ascend along the slowest axis, with their values, put in order of their chunks.
//!
//! The usual way to write a sparse array: its rows come in order, so a *band* of chunks side by side
//! is a range of points. Each band is one task; it reads coordinates and values once, in order, and
//! appends them to the lists of its chunks, which become part of the chunks as they are.

use super::plan::Run;
use super::scan::HandOut;
use super::{Column, Form, Points};
use crate::{ChunkGrid, Dims, SpaceError};
use std::ops::Range;
use std::sync::Mutex;

/// The most chunks of a band.
const MOST_CHUNKS: u64 = 1 << 16;

/// The most points: their cells and values are all in memory at once.
const MOST_POINTS: usize = 1 << 26;

/// Room for fewer points than this is not reserved.
const FEW: usize = 64;

/// The points of one chunk with their values; made by [`Points::in_bands`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PointBand {
    /// The chunk's coordinates in the grid.
    pub chunk: Dims,
    /// The cell in the chunk of each point, in the order of the points.
    pub cells: Vec<u32>,
    /// The value of each.
    pub values: Vec<u8>,
}

impl Points<'_> {
    /// Splits points and their values, `element` bytes each, by chunk; `None` if the points do not
    /// ascend along the slowest axis, are too many, or chunks are too large. Tasks are run by `run`.
    ///
    /// ```
    /// use pumice_space::{ChunkGrid, Points};
    ///
    /// let grid = ChunkGrid::new(&[4, 6], &[2, 3])?;
    /// let points = Points::columns([&[0u32, 1, 1, 3][..], &[1, 0, 4, 5]])?;
    /// let run = |count: usize, task: &(dyn Fn(usize) + Sync)| (0..count).for_each(task);
    /// let parts = points.in_bands(b"abcd", 1, &grid, &run)?.unwrap();
    /// assert_eq!(parts[0].cells, [1, 3]);
    /// assert_eq!(parts[1].values, b"c");
    /// assert_eq!(parts[2].chunk.as_slice(), [1, 1]);
    /// # Ok::<(), pumice_space::SpaceError>(())
    /// ```
    pub fn in_bands(
        &self,
        values: &[u8],
        element: usize,
        grid: &ChunkGrid,
        run: Run<'_>,
    ) -> Result<Option<Vec<PointBand>>, SpaceError> {
        self.check_rank(grid.dims())?;
        let counts = grid.counts();
        let in_band = crate::extent::product(&counts[1..]).filter(|&count| count <= MOST_CHUNKS);
        let chunks = grid.chunk_count().filter(|&count| count <= u64::from(u32::MAX));
        let few = counts.first().is_some_and(|&count| count <= MOST_CHUNKS);
        let small = grid.cells_per_chunk() <= u64::from(u32::MAX) && self.len() <= MOST_POINTS;
        let (Some(in_band), Some(_), true) = (in_band, chunks, small && few) else {
            return Ok(None);
        };
        let Some(ranges) = self.bands(grid.chunk()[0], counts[0]) else { return Ok(None) };
        let bands: Vec<Mutex<Result<Vec<PointBand>, SpaceError>>> =
            ranges.iter().map(|_| Mutex::new(Ok(Vec::new()))).collect();
        run(ranges.len(), &|task| {
            let (band, range) = ranges[task].clone();
            let first = band * in_band;
            let part = self.band(range, first..first + in_band, values, element, grid);
            if let Ok(mut place) = bands[task].lock() {
                *place = part;
            }
        });
        let mut all = Vec::new();
        for band in bands {
            all.extend(band.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())?);
        }
        Ok(Some(all))
    }

    /// The bands that have points, and which; `None` if points do not ascend along the slowest axis.
    fn bands(&self, side: u64, count: u64) -> Option<Vec<(u64, Range<usize>)>> {
        let begin: Box<dyn Fn(u64) -> usize> = match &self.0 {
            Form::Compressed { axis: 0, pointers, .. } => Box::new(|row| {
                let row = usize::try_from(row).unwrap_or(usize::MAX);
                pointers.at(row.min(pointers.len() - 1)).unwrap_or(0) as usize
            }),
            Form::Columns(columns) => match columns.first()? {
                Column::U32(rows) if rows.is_sorted() => {
                    Box::new(|row| rows.partition_point(|&at| u64::from(at) < row))
                }
                Column::U64(rows) if rows.is_sorted() => {
                    Box::new(|row| rows.partition_point(|&at| at < row))
                }
                _ => return None,
            },
            _ => return None,
        };
        // Rows beyond the array, if there are any, go to the last band, which refuses them.
        let end = |band: u64| match band + 1 < count {
            true => begin(side.saturating_mul(band + 1)),
            false => self.len(),
        };
        let mut bands = Vec::new();
        let (mut start, mut band) = (0, 0);
        while start < self.len() && band < count {
            let range = start..end(band);
            start = range.end;
            if !range.is_empty() {
                bands.push((band, range));
            }
            band += 1;
        }
        Some(bands)
    }

    /// The chunks with these numbers and the points of a band.
    fn band(
        &self,
        range: Range<usize>,
        chunks: Range<u64>,
        values: &[u8],
        element: usize,
        grid: &ChunkGrid,
    ) -> Result<Vec<PointBand>, SpaceError> {
        let first = chunks.start;
        let count = (chunks.end - first) as usize;
        // If they are spread evenly, a little more than each gets.
        let room = range.len() / count.max(1);
        let room = if room < FEW { 0 } else { room + room / 8 };
        let (mut parts, mut bases) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for chunk in chunks {
            let chunk = grid.chunk_at(chunk).unwrap_or_default();
            let origin = grid.origin(&chunk);
            let sides = origin.iter().zip(grid.chunk());
            bases.push(
                sides.fold(0u64, |base, (at, side)| base.wrapping_mul(*side).wrapping_add(*at)),
            );
            let (cells, values) = (Vec::with_capacity(room), Vec::with_capacity(room * element));
            parts.push(PointBand { chunk, cells, values });
        }
        let (bases, each) = (&bases, &mut parts);
        HandOut { range, grid, values, element, first, bases, parts: each }.of(self)?;
        parts.retain(|part| !part.cells.is_empty());
        Ok(parts)
    }
}
