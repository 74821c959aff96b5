//! Transfers of any shape: both sides run by run, cut at chunk borders, sorted by chunk.
//!
//! Costs n log n in the number of pieces, which are kept in one list that all parts share. Points that
//! a sparse dataset takes one by one have a plan of their own, [`PointPlan`](crate::PointPlan).

use super::Segment;
use crate::extent::product;
use crate::selection::spans::{Span, Tree};
use crate::selection::{Kind, Runs, Selection};
use crate::{CellSet, ChunkGrid, CoordinateWalker, Dims, Run, SpaceError};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// A transfer that is worked out in full before its first part is given.
#[derive(Clone, Debug)]
pub(super) struct ListedPlan {
    grid: ChunkGrid,
    segments: Arc<Vec<Segment>>,
    /// Number of the chunk, and its range of segments.
    parts: std::vec::IntoIter<(u64, Range<usize>)>,
    /// The chunks by their numbers, if the grid has more than can be numbered.
    chunks: Option<Vec<Dims>>,
    ascending: bool,
}

/// The part of one chunk.
#[derive(Clone, Debug)]
pub(super) struct ListedPart {
    segments: Arc<Vec<Segment>>,
    range: Range<usize>,
    chunk_dims: Dims,
    /// Cells of the chunk that lie inside the array.
    pub(super) inside: u64,
    pub(super) ascending: bool,
    cells: OnceLock<Selection>,
}

impl ListedPlan {
    pub(super) fn empty(grid: &ChunkGrid) -> Self {
        let (grid, segments) = (grid.clone(), Arc::default());
        Self { grid, segments, parts: Vec::new().into_iter(), chunks: None, ascending: true }
    }

    /// Both selections lie inside their shapes and have equally many cells.
    pub(super) fn new(
        file: &Selection,
        grid: &ChunkGrid,
        memory: &Selection,
        memory_dims: &[u64],
    ) -> Result<Self, SpaceError> {
        product(memory_dims).ok_or(SpaceError::Overflow("cells of an array"))?;
        let mut pieces = Pieces::new(grid, memory.runs(memory_dims));
        match &file.0 {
            Kind::Points(points) => {
                points.coords.chunks_exact(points.rank).for_each(|point| pieces.add_row(point, 1));
            }
            // Cells have no numbers either.
            _ if product(grid.dims()).is_none() => {
                if let Some(tree) = file.to_tree(grid.dims())? {
                    for_each_row(&tree, &mut Dims::new(), &mut |at, len| pieces.add_row(at, len));
                }
            }
            _ => {
                let mut walker = CoordinateWalker::new(grid.dims());
                for run in file.runs(grid.dims()) {
                    walker.for_each_row(run, |coord, len| pieces.add_row(coord, len));
                }
            }
        }
        let ascending = !matches!(file.0, Kind::Points(_));
        let chunks = pieces.renumber();
        let (segments, parts) = pieces.sorted();
        let (grid, segments, parts) = (grid.clone(), Arc::new(segments), parts.into_iter());
        Ok(Self { grid, segments, parts, chunks, ascending })
    }

    pub(super) fn chunk_count(&self) -> u64 {
        self.parts.len() as u64
    }

    pub(super) fn next(&mut self) -> Option<(Dims, ListedPart)> {
        let (number, range) = self.parts.next()?;
        let chunk = match &self.chunks {
            Some(chunks) => chunks.get(number as usize)?.clone(),
            None => self.grid.chunk_at(number)?,
        };
        let part = ListedPart {
            segments: self.segments.clone(),
            range,
            chunk_dims: self.grid.chunk().into(),
            inside: self.grid.clipped(&chunk).iter().product(),
            ascending: self.ascending,
            cells: OnceLock::new(),
        };
        Some((chunk, part))
    }
}

impl ListedPart {
    pub(super) fn segments(&self) -> &[Segment] {
        &self.segments[self.range.clone()]
    }

    pub(super) fn cells(&self) -> &Selection {
        self.cells.get_or_init(|| {
            let cells = self.chunk_dims.iter().product();
            let mut collector = CellSet::collect_runs(cells, self.range.len() as u64);
            for segment in self.segments() {
                collector.add(Run { start: segment.cell, len: segment.len });
            }
            // Fails only for shapes of another number of cells.
            let selection = collector.finish().to_selection(&self.chunk_dims);
            selection.unwrap_or_else(|_| Selection::none())
        })
    }

    pub(super) fn is_whole(&self) -> bool {
        let count: u64 = self.segments().iter().map(|segment| segment.len).sum();
        if count < self.inside || self.ascending {
            return count == self.inside;
        }
        self.cells().count(&self.chunk_dims) == self.inside
    }
}

/// Calls `visit` with the first cell of every stretch of neighbours along the last dimension, and its length.
/// `before` are the coordinates of slower dimensions.
fn for_each_row(tree: &Tree, before: &mut Dims, visit: &mut impl FnMut(&[u64], u64)) {
    for Span { low, high, down } in &tree.spans {
        let Some(down) = down else {
            before.push(*low);
            visit(before, high - low + 1);
            before.pop();
            continue;
        };
        for at in *low..=*high {
            before.push(at);
            for_each_row(down, before, visit);
            before.pop();
        }
    }
}

/// Pieces of a transfer under construction, in the order of the transfer.
struct Pieces<'a> {
    grid: &'a ChunkGrid,
    counts: Dims,
    /// The chunks that were met, by order of meeting, if the grid has too many to number.
    met: Option<BTreeMap<Dims, u64>>,
    memory: Runs<'a>,
    /// The rest of the current memory run.
    rest: Run,
    list: Vec<(u64, Segment)>,
}

impl<'a> Pieces<'a> {
    fn new(grid: &'a ChunkGrid, memory: Runs<'a>) -> Self {
        let rest = Run { start: 0, len: 0 };
        let met = grid.chunk_count().is_none().then(BTreeMap::new);
        Self { grid, counts: grid.counts(), met, memory, rest, list: Vec::new() }
    }

    /// Adds `len` cells from `coord` on, along the last dimension.
    fn add_row(&mut self, coord: &[u64], len: u64) {
        let (Some((&first, slower)), Some(&width)) = (coord.split_last(), self.grid.chunk().last())
        else {
            return self.add(0, 0, len);
        };
        let (mut chunk, mut cell) = (0, 0);
        for ((&at, &size), &count) in slower.iter().zip(self.grid.chunk()).zip(&self.counts) {
            // Means nothing if chunks have no numbers.
            chunk = count.wrapping_mul(chunk).wrapping_add(at / size);
            cell = cell * size + at % size;
        }
        let row = self.counts.last().copied().unwrap_or(1).wrapping_mul(chunk);
        let (mut at, mut left) = (first, len);
        while left > 0 {
            let within = at % width;
            let here = left.min(width - within);
            let number = match &mut self.met {
                None => row + at / width,
                Some(met) => {
                    let axes = slower.iter().chain([&at]).zip(self.grid.chunk());
                    let next = met.len() as u64;
                    *met.entry(axes.map(|(at, size)| at / size).collect()).or_insert(next)
                }
            };
            self.add(number, cell * width + within, here);
            at += here;
            left -= here;
        }
    }

    /// Adds `len` neighbouring cells of one chunk, cut where memory jumps.
    fn add(&mut self, chunk: u64, mut cell: u64, mut len: u64) {
        while len > 0 {
            if self.rest.len == 0 {
                let Some(run) = self.memory.next() else { return };
                self.rest = run;
            }
            let here = len.min(self.rest.len);
            self.list.push((chunk, Segment { cell, memory: self.rest.start, len: here }));
            self.rest.start += here;
            self.rest.len -= here;
            cell += here;
            len -= here;
        }
    }

    /// Numbers the chunks that were met in row-major order, and returns them.
    fn renumber(&mut self) -> Option<Vec<Dims>> {
        let met = self.met.take()?;
        let mut numbers = vec![0; met.len()];
        for (number, before) in met.values().enumerate() {
            numbers[*before as usize] = number as u64;
        }
        self.list.iter_mut().for_each(|piece| piece.0 = numbers[piece.0 as usize]);
        self.counts = Dims::from_slice(&[met.len() as u64]);
        Some(met.into_keys().collect())
    }

    /// Sorts by chunk, keeping the order within each.
    fn sort(&mut self) {
        if self.list.is_sorted_by_key(|piece| piece.0) {
            return;
        }
        let chunks = self.counts.iter().product::<u64>();
        if chunks > 2 * self.list.len() as u64 {
            return self.list.sort_by_key(|piece| piece.0);
        }
        // Few chunks: count the pieces of each, then put every piece in its place.
        let mut places = vec![0usize; chunks as usize];
        self.list.iter().for_each(|piece| places[piece.0 as usize] += 1);
        let mut sum = 0;
        for place in &mut places {
            sum += std::mem::replace(place, sum);
        }
        let mut sorted = self.list.clone();
        for &piece in &self.list {
            let place = &mut places[piece.0 as usize];
            sorted[*place] = piece;
            *place += 1;
        }
        self.list = sorted;
    }

    /// Segments by chunk, in the order of the transfer within each, neighbours joined.
    fn sorted(mut self) -> (Vec<Segment>, Vec<(u64, Range<usize>)>) {
        self.sort();
        let mut segments: Vec<Segment> = Vec::with_capacity(self.list.len());
        let mut parts: Vec<(u64, Range<usize>)> = Vec::new();
        for (chunk, segment) in self.list {
            match parts.last_mut() {
                Some(part) if part.0 == chunk => {
                    let joined = segments.last_mut().filter(|last| {
                        last.cell + last.len == segment.cell
                            && last.memory + last.len == segment.memory
                    });
                    if let Some(last) = joined {
                        last.len += segment.len;
                        continue;
                    }
                    part.1.end += 1;
                }
                _ => parts.push((chunk, segments.len()..segments.len() + 1)),
            }
            segments.push(segment);
        }
        (segments, parts)
    }
}
