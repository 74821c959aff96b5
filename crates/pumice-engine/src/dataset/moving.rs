//! Strings and sequences in the global heap that were overwritten, moved to where the old ones were.
//!
//! Strings that overwrite committed ones are stored elsewhere until the commit. When a file that
//! does not remember free space is closed, the space of the old ones would be lost. So the file
//! moves the new strings there: it copies collections that hold nothing else and lets the cells
//! refer to the copies, writes other strings once more, and is cut. Only overwritten blocks of
//! cells are remembered, in a short list.

use super::DatasetState;
use crate::{Error, Result};
use pumice_layout::Storage;
use pumice_layout::buffer::Output;
use pumice_space::{Dims, Selection};
use pumice_structures::global_heap::{Copies, MovePlan, Placed};
use pumice_types::{VarLen, heaped};
use std::sync::PoisonError;

/// The most blocks that are remembered.
const MOST_BLOCKS: usize = 64;

/// Cells that are looked at together, bytes of strings that are moved together, and cells of a block that
/// is moved: a length is kept for each.
const MOST_ELEMENTS: u64 = 1 << 16;
const MOST_BYTES: u64 = 8 << 20;
const MOST_KNOWN: u64 = 1 << 24;

/// Blocks of cells that were overwritten since the file was opened.
#[derive(Default)]
pub(super) struct Overwritten {
    /// First cell and shape of each.
    blocks: Vec<(Dims, Dims)>,
    /// Whether other cells, or more blocks, were overwritten.
    unknown: bool,
}

impl Overwritten {
    fn add(&mut self, start: Dims, count: Dims) {
        if self.blocks.iter().any(|block| contains(block, &start, &count)) {
            return;
        }
        if self.blocks.last_mut().is_some_and(|block| extend(block, &start, &count)) {
            return;
        }
        match self.blocks.len() < MOST_BLOCKS {
            true => self.blocks.push((start, count)),
            false => self.unknown = true,
        }
    }
}

/// Whether a block has all cells of another.
fn contains(block: &(Dims, Dims), start: &[u64], count: &[u64]) -> bool {
    let inner = start.iter().zip(count).map(|(&start, &count)| (start, start + count));
    let outer = block.0.iter().zip(&block.1).map(|(&start, &count)| (start, start + count));
    inner.zip(outer).all(|(inner, outer)| outer.0 <= inner.0 && inner.1 <= outer.1)
}

/// Extends a block by another that follows it along one axis.
fn extend(block: &mut (Dims, Dims), start: &[u64], count: &[u64]) -> bool {
    let same = |axis: &usize| block.0[*axis] == start[*axis] && block.1[*axis] == count[*axis];
    let mut others = (0..start.len()).filter(|axis| !same(axis));
    let (Some(axis), None) = (others.next(), others.next()) else { return false };
    let follows = block.0[axis] + block.1[axis] == start[axis];
    if follows {
        block.1[axis] += count[axis];
    }
    follows
}

impl DatasetState {
    /// Remembers that committed strings or sequences in these cells were overwritten.
    pub(super) fn note_overwritten(&self, selection: &Selection, dims: &Dims) {
        let mut place = self.overwritten.lock().unwrap_or_else(PoisonError::into_inner);
        let overwritten = place.get_or_insert_default();
        match selection.as_block(dims) {
            Some((start, count)) => overwritten.add(start, count),
            None => overwritten.unknown = true,
        }
    }

    /// Forgets the remembered blocks, as a resize may have removed cells and brought them back.
    pub(super) fn forget_overwritten(&self) {
        let mut place = self.overwritten.lock().unwrap_or_else(PoisonError::into_inner);
        place.get_or_insert_default().unknown = true;
    }

    /// Writes the remembered strings and sequences once more, if all of them fit into space before
    /// their own. Sets `moved` if any were moved. All else is committed.
    pub(crate) fn move_overwritten(&self, moved: &mut bool) -> Result<()> {
        let overwritten = self.overwritten.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(overwritten) = overwritten else { return Ok(()) };
        // Strings that cannot be moved stay, and the file keeps its length.
        if overwritten.unknown || !self.waits_with_references() {
            return Ok(());
        }
        for (start, count) in overwritten.blocks {
            self.move_block(&start, &count, moved)?;
        }
        Ok(())
    }

    /// Whether overwritten references wait for the commit, however many there are.
    fn waits_with_references(&self) -> bool {
        match &self.layout.storage {
            Storage::Contiguous(contiguous) => contiguous.can_hold(),
            _ => self.layout.table().is_some_and(|table| !table.is_fixed()),
        }
    }

    /// Moves the strings of a block in pieces of bounded memory.
    fn move_block(&self, start: &[u64], count: &[u64], moved: &mut bool) -> Result<()> {
        let _one_at_a_time = self.replacing();
        let (dims, _reading) = (self.dims(), self.heap.reading());
        let Some(pieces) = Pieces::new(start, count, MOST_ELEMENTS) else { return Ok(()) };
        let mut found = Found::default();
        for piece in pieces {
            self.find(&piece?, &dims, &mut found)?;
        }
        if found.nested {
            return Ok(());
        }
        found.objects.sort_unstable();
        let copies = self.heap.copy_collections(&found.objects)?;
        if !copies.is_empty() {
            *moved = true;
            for piece in Pieces::new(start, count, MOST_ELEMENTS).into_iter().flatten() {
                self.refer_to_copies(&piece?, &dims, &copies)?;
            }
            self.heap.leave_copied(&copies);
            found.objects.retain(|object| !copies.contains(object.address));
        }
        if found.objects.is_empty() {
            return Ok(());
        }
        let Some(plan) = self.heap.plan_move(&found.objects)? else { return Ok(()) };
        let bytes: usize = found.objects.iter().map(|object| object.length).sum();
        let each = (bytes / found.objects.len()).max(self.datatype.size()) as u64;
        let pieces = Pieces::new(start, count, (MOST_BYTES / each).clamp(1, MOST_ELEMENTS));
        for piece in pieces.into_iter().flatten() {
            self.move_piece(&piece?, &dims, plan, moved)?;
        }
        Ok(())
    }

    /// Makes cells refer to copies of collections.
    fn refer_to_copies(&self, block: &Selection, dims: &Dims, copies: &Copies) -> Result<()> {
        let mut elements = self.buffer(block.count(dims))?;
        self.read(block, &self.datatype, Output::zeroed(&mut elements))?;
        let mut any = false;
        let mut refer = |_: &VarLen, reference: &mut [u8]| -> Result<()> {
            any |= self.heap.refer_to_copy(copies, reference)?;
            Ok(())
        };
        heaped::for_each_reference(&self.datatype, &mut elements, &mut refer)?;
        if any { self.write(block, &self.datatype, &elements) } else { Ok(()) }
    }

    fn move_piece(
        &self,
        block: &Selection,
        dims: &Dims,
        plan: MovePlan,
        moved: &mut bool,
    ) -> Result<()> {
        let mut elements = self.buffer(block.count(dims))?;
        self.read(block, &self.datatype, Output::zeroed(&mut elements))?;
        let Some(cells) = self.cells_to_move(block, dims, &mut elements, plan)? else {
            return Ok(());
        };
        // All is committed: elements that cannot be read stay.
        let Ok(values) = self.follow(elements) else { return Ok(()) };
        self.heap.begin_moving(plan)?;
        *moved = true;
        self.replace_references(&cells, dims, &values.elements, &values.heap)
    }

    /// The cells of a block whose objects are to be moved. `elements` keeps only these.
    fn cells_to_move(
        &self,
        block: &Selection,
        dims: &Dims,
        elements: &mut Vec<u8>,
        plan: MovePlan,
    ) -> Result<Option<Selection>> {
        let (size, mut numbers) = (self.datatype.size(), Vec::new());
        for (number, element) in elements.chunks_exact_mut(size).enumerate() {
            let mut moves = false;
            let mut look = |varlen: &VarLen, reference: &mut [u8]| -> Result<()> {
                let place = self.heap.place(varlen, reference)?;
                moves |= place.is_some_and(|object| object.address >= plan.from);
                Ok(())
            };
            heaped::for_each_reference(&self.datatype, element, &mut look)?;
            if moves {
                numbers.push(number);
            }
        }
        if numbers.len() * size == elements.len() {
            return Ok(Some(block.clone()));
        }
        let (Some((start, count)), false) = (block.as_block(dims), numbers.is_empty()) else {
            return Ok(None);
        };
        let mut points = Vec::with_capacity(numbers.len() * start.len());
        for (to, &from) in numbers.iter().enumerate() {
            elements.copy_within(from * size..(from + 1) * size, to * size);
            let (mut rest, first) = (from as u64, points.len());
            points.extend_from_slice(&start);
            for (axis, side) in count.iter().enumerate().rev() {
                points[first + axis] += rest % side;
                rest /= side;
            }
        }
        elements.truncate(numbers.len() * size);
        Ok(Some(Selection::points(start.len(), points)?))
    }

    /// Finds the objects that elements refer to.
    fn find(&self, block: &Selection, dims: &Dims, found: &mut Found) -> Result<()> {
        let mut elements = self.buffer(block.count(dims))?;
        self.read(block, &self.datatype, Output::zeroed(&mut elements))?;
        let mut add = |varlen: &VarLen, reference: &mut [u8]| -> Result<()> {
            found.objects.extend(self.heap.place(varlen, reference)?);
            found.nested |= varlen.base.has_varlen();
            Ok(())
        };
        heaped::for_each_reference(&self.datatype, &mut elements, &mut add)
    }
}

/// The objects that elements refer to.
#[derive(Default)]
struct Found {
    objects: Vec<Placed>,
    /// Whether an object refers to further objects.
    nested: bool,
}

/// A block of cells in pieces along its first axis.
struct Pieces {
    start: Dims,
    count: Dims,
    /// Indices of the first axis in a piece, and how many are left.
    step: u64,
    left: u64,
}

impl Pieces {
    /// Pieces of about `cells` cells; `None` if the block has too many to remember each of them.
    fn new(start: &[u64], count: &[u64], cells: u64) -> Option<Self> {
        let all = count.iter().try_fold(1, |all: u64, &axis| all.checked_mul(axis))?;
        let left = count.first().copied().unwrap_or(1);
        let step = (cells / (all / left.max(1)).max(1)).max(1);
        let pieces = Self { start: start.into(), count: count.into(), step, left };
        (0 < all && all <= MOST_KNOWN).then_some(pieces)
    }
}

impl Iterator for Pieces {
    type Item = Result<Selection>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step.min(self.left);
        if step == 0 {
            return None;
        }
        self.left -= step;
        if let Some(count) = self.count.first_mut() {
            *count = step;
        }
        let piece = Selection::block(&self.start, &self.count).map_err(Error::from);
        if let Some(start) = self.start.first_mut() {
            *start += step;
        }
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_have_every_cell_of_a_block_once() {
        for (count, cells) in [(vec![10, 7], 20), (vec![10, 7], 1), (vec![3], 100), (vec![], 1)] {
            let (start, dims) = (vec![2; count.len()], vec![20; count.len()]);
            let whole = Selection::block(&start, &count).unwrap();
            let pieces: Vec<_> =
                Pieces::new(&start, &count, cells).unwrap().map(Result::unwrap).collect();
            let sum: u64 = pieces.iter().map(|piece| piece.count(&dims)).sum();
            assert_eq!(sum, whole.count(&dims));
            let both =
                pieces.iter().fold(Selection::none(), |all, piece| all.or(piece, &dims).unwrap());
            assert_eq!(both.and(&whole, &dims).unwrap().count(&dims), sum);
            assert!(pieces.iter().all(|piece| piece.count(&dims) <= cells.max(7)));
        }
        assert!(Pieces::new(&[0], &[MOST_KNOWN + 1], 10).is_none());
        assert!(Pieces::new(&[0], &[0], 10).is_none());
    }

    #[test]
    fn blocks_that_follow_one_another_are_one() {
        let mut known = Overwritten::default();
        let dims = |values: &[u64]| Dims::from_slice(values);
        for row in 0..100 {
            known.add(dims(&[row, 3]), dims(&[1, 5]));
        }
        known.add(dims(&[20, 4]), dims(&[10, 2]));
        assert_eq!(known.blocks, [(dims(&[0, 3]), dims(&[100, 5]))]);
        known.add(dims(&[100, 3]), dims(&[1, 4]));
        assert_eq!(known.blocks.len(), 2);
        for row in 0..MOST_BLOCKS as u64 {
            known.add(dims(&[1000 + 2 * row, 0]), dims(&[1, 1]));
        }
        assert!(known.unknown);
    }
}
