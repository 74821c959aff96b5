//! Strings and sequences in the global heap that were overwritten, moved to where the old ones were.
//!
//! What overwrites committed strings has to go elsewhere until a commit. When the file is closed, and free
//! space is not remembered, the room of the old ones would be lost: the new ones are written once more, which
//! puts them there, and the file is cut where they were. Only what was overwritten as blocks of cells is
//! known, and only as many blocks as a short list holds.

use super::DatasetState;
use crate::Result;
use crate::buffer::Output;
use pumice_space::{Dims, Selection};
use pumice_types::{VarLen, heaped};
use std::sync::PoisonError;

/// So many blocks are known at most.
const MOST_BLOCKS: usize = 64;

/// Blocks of cells that were overwritten since the file was opened.
#[derive(Default)]
pub(super) struct Overwritten {
    /// First cell and shape of each.
    blocks: Vec<(Dims, Dims)>,
    /// Whether there were others, or more.
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

/// Lets a block grow by another that follows it along one axis.
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
    /// Takes note that committed strings or sequences in these cells were overwritten.
    pub(super) fn note_overwritten(&self, selection: &Selection, dims: &Dims) {
        let mut overwritten = self.overwritten.lock().unwrap_or_else(PoisonError::into_inner);
        match selection.as_block(dims) {
            Some((start, count)) => overwritten.add(start, count),
            None => overwritten.unknown = true,
        }
    }

    /// Writes such strings and sequences once more, if all of them get room before where they are. `moved`
    /// says whether any of the file were. All else is committed.
    pub(crate) fn move_overwritten(&self, moved: &mut bool) -> Result<()> {
        let overwritten =
            std::mem::take(&mut *self.overwritten.lock().unwrap_or_else(PoisonError::into_inner));
        // What cannot be moved stays behind what is moved, and the file as long as it is.
        if overwritten.unknown {
            return Ok(());
        }
        for (start, count) in overwritten.blocks {
            self.move_block(&Selection::block(&start, &count)?, moved)?;
        }
        Ok(())
    }

    fn move_block(&self, block: &Selection, moved: &mut bool) -> Result<()> {
        let _one_at_a_time = self.replacing();
        let dims = self.dims();
        if block.check(&dims).is_err() {
            // The dataset has shrunk.
            return Ok(());
        }
        let _reading = self.heap.reading();
        let mut elements = self.buffer(block.count(&dims))?;
        self.read(block, &self.datatype, Output::zeroed(&mut elements))?;
        if !self.fits_before(&mut elements)? {
            return Ok(());
        }
        // All is committed where it is: what cannot be read stays there.
        let Ok(values) = self.follow(elements) else { return Ok(()) };
        if !*moved {
            // What has room is where the file is to be cut.
            self.heap.begin_anew()?;
            *moved = true;
        }
        self.replace_references(block, &dims, &values.elements, &values.heap)
    }

    /// Whether what elements refer to, all of it, would get room before the last of it.
    fn fits_before(&self, elements: &mut [u8]) -> Result<bool> {
        let (mut lengths, mut last, mut nested) = (Vec::new(), 0, false);
        let mut add = |varlen: &VarLen, reference: &mut [u8]| -> Result<()> {
            if let Some((address, length)) = self.heap.place(varlen, reference)? {
                last = last.max(address);
                lengths.push(length);
            }
            nested |= varlen.base.has_varlen();
            Ok(())
        };
        heaped::for_each_reference(&self.datatype, elements, &mut add)?;
        Ok(!nested && self.heap.fits_before(last, lengths.into_iter()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
