//! A selection cut by many chunks.
//!
//! Intersecting a selection with chunk after chunk would look at every row as often as there are
//! chunks side by side. Here rows and chunks are walked side by side, and the one that has more
//! between two meetings is skipped in growing steps: the cost is n log n in the result.

use super::Selection;
use super::algebra::passed;
use super::operate::Operand;
use super::spans::{Span, Tree, push_span};
use crate::extent::same_rank;
use crate::{ChunkGrid, Dims, SpaceError};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

impl Selection {
    /// The selected cells in each of `chunks`, which are different and ascend in row-major order:
    /// the number of each chunk with any, and the cells, in coordinates of the array. Cells outside
    /// of it are left out.
    ///
    /// ```
    /// use pumice_space::{ChunkGrid, Dims, Selection};
    ///
    /// let grid = ChunkGrid::new(&[100], &[10])?;
    /// let chunks = [0, 3, 9].map(|chunk| Dims::from_slice(&[chunk]));
    /// let points = Selection::points(1, vec![95, 31, 32, 7, 50])?;
    /// let found = points.cut(&grid, &chunks)?;
    /// let counts: Vec<_> = found.iter().map(|(chunk, cells)| (*chunk, cells.count(&[100]))).collect();
    /// assert_eq!(counts, [(0, 1), (1, 2), (2, 1)]);
    /// # Ok::<(), pumice_space::SpaceError>(())
    /// ```
    pub fn cut(
        &self,
        grid: &ChunkGrid,
        chunks: &[Dims],
    ) -> Result<Vec<(usize, Selection)>, SpaceError> {
        let (dims, rank) = (grid.dims(), grid.rank());
        chunks.iter().try_for_each(|chunk| same_rank(chunk.len(), rank))?;
        let Operand::Tree(tree) = Operand::of(self, dims)? else {
            return self.cut_product(grid, chunks);
        };
        let mut cut = Cut { grid, chunks, known: HashMap::new() };
        let found = cut.nodes(&tree, 0, 0..chunks.len());
        Ok(found.into_iter().map(|(at, tree)| (at, Self::from_tree(rank, Some(tree)))).collect())
    }

    /// Cuts a product of axes, which has one description for all chunks.
    fn cut_product(
        &self,
        grid: &ChunkGrid,
        chunks: &[Dims],
    ) -> Result<Vec<(usize, Selection)>, SpaceError> {
        let mut found = Vec::new();
        for (at, chunk) in chunks.iter().enumerate().filter(|(_, chunk)| grid.contains_chunk(chunk))
        {
            let inside = Self::block(&grid.origin(chunk), &grid.clipped(chunk))?;
            let cells = self.and(&inside, grid.dims())?;
            if cells.count(grid.dims()) > 0 {
                found.push((at, cells));
            }
        }
        Ok(found)
    }
}

/// Chunks, by number, and the selection in each.
type Found = Vec<(usize, Arc<Tree>)>;

struct Cut<'a> {
    grid: &'a ChunkGrid,
    chunks: &'a [Dims],
    /// Results for nodes that several spans share, by the first of the chunks. The nodes live as
    /// long as the tree.
    known: HashMap<(*const Tree, usize), Found>,
}

impl Cut<'_> {
    /// The selection of a node of dimension `axis` in chunks that are equal in all dimensions
    /// before it.
    fn nodes(&mut self, tree: &Arc<Tree>, axis: usize, range: Range<usize>) -> Found {
        let shared = Arc::strong_count(tree) > 1;
        let key = (Arc::as_ptr(tree), range.start);
        if let Some(found) = shared.then(|| self.known.get(&key)).flatten() {
            return found.clone();
        }
        let found = self.spans(&tree.spans, axis, range);
        if shared {
            self.known.insert(key, found.clone());
        }
        found
    }

    fn spans(&mut self, mut spans: &[Span], axis: usize, range: Range<usize>) -> Found {
        let (chunks, side, size) = (self.chunks, self.grid.chunk()[axis], self.grid.dims()[axis]);
        let inside = |chunk: &Dims| chunk[axis] < size.div_ceil(side);
        let mut at = range.start;
        let end = at + passed(&chunks[range], inside);
        let mut found = Vec::new();
        while let (Some(span), true) = (spans.first(), at < end) {
            let here = chunks[at][axis];
            let (low, high) = (here * side, (here * side).saturating_add(side).min(size) - 1);
            if span.high < low {
                spans = &spans[passed(spans, |span| span.high < low)..];
                continue;
            }
            if span.low > high {
                // The last chunk may have a rest outside the array.
                let wanted = (span.low / side).max(here + 1);
                at += passed(&chunks[at..end], |chunk| chunk[axis] < wanted);
                continue;
            }
            let next = at + passed(&chunks[at..end], |chunk| chunk[axis] <= here);
            let reaching = passed(spans, |span| span.low <= high);
            self.meet(&spans[..reaching], (low, high), axis, at..next, &mut found);
            // The last one may go on in the next chunk.
            spans = &spans[reaching - 1..];
            at = next;
        }
        found
    }

    /// The selection of spans that reach into a stretch, in the chunks there.
    fn meet(
        &mut self,
        spans: &[Span],
        (low, high): (u64, u64),
        axis: usize,
        range: Range<usize>,
        found: &mut Found,
    ) {
        let mut made: Vec<(usize, Span)> = Vec::with_capacity(spans.len());
        for span in spans {
            let (low, high) = (span.low.max(low), span.high.min(high));
            match &span.down {
                // In the last dimension, where there is one chunk.
                None => made.push((range.start, Span { low, high, down: None })),
                Some(down) => {
                    let below = self.nodes(down, axis + 1, range.clone()).into_iter();
                    made.extend(below.map(|(at, down)| (at, Span { low, high, down: Some(down) })));
                }
            }
        }
        // Stable: the spans of a chunk ascend, and keep doing so.
        made.sort_by_key(|(chunk, _)| *chunk);
        for same in made.chunk_by(|one, other| one.0 == other.0) {
            let mut spans = Vec::with_capacity(same.len());
            same.iter().for_each(|(_, span)| push_span(&mut spans, span.clone()));
            found.extend(Tree::of(spans).map(|tree| (same[0].0, tree)));
        }
    }
}
