//! A dataset in blocks that fit into memory, for whatever streams through it.

use crate::{Dataset, Select};
use pumice_engine::{Error, Result};
use pumice_space::Selection;
use pumice_types::Element;

/// About how many cells a block may bring into memory.
pub(crate) const BLOCK_CELLS: u64 = 1 << 20;

/// A block of cells: where it begins and how many there are along each axis.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) start: Vec<u64>,
    pub(crate) count: Vec<u64>,
}

impl Block {
    pub(crate) fn selection(&self) -> Result<Selection> {
        Ok(Selection::block(&self.start, &self.count)?)
    }

    pub(crate) fn cells(&self) -> u64 {
        self.count.iter().fold(1, |cells, &axis| cells.saturating_mul(axis))
    }

    /// Both halves along the slowest axis that can be cut.
    pub(crate) fn halves(&self) -> Option<[Self; 2]> {
        let axis = self.count.iter().position(|&count| count > 1)?;
        let (mut first, mut second) = (self.clone(), self.clone());
        first.count[axis] /= 2;
        second.count[axis] -= first.count[axis];
        second.start[axis] += first.count[axis];
        Some([first, second])
    }
}

impl Dataset {
    /// Writes one value to all selected cells.
    ///
    /// ```
    /// let file = pumice::File::in_memory()?;
    /// let dataset = file.new_dataset::<i32>().shape([3, 4]).create("d")?;
    /// dataset.write_scalar((1.., ..2), 7)?;
    /// assert_eq!(dataset.read::<i32>(..)?, [0, 0, 0, 0, 7, 7, 0, 0, 7, 7, 0, 0]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn write_scalar<T: Element>(&self, selection: impl Select, value: T) -> Result<()> {
        let (selection, shape) = (self.selection(selection)?, self.shape());
        self.at(selection.check(&shape).map_err(Error::from))?;
        let whole = selection.count(&shape);
        if whole <= BLOCK_CELLS || selection.as_points().is_some() {
            return self.write(&selection, &vec![value; whole as usize]);
        }
        let Some((first, last)) = selection.bounds(&shape) else { return Ok(()) };
        let count = first.iter().zip(&last).map(|(first, last)| last - first + 1).collect();
        let values = vec![value; BLOCK_CELLS as usize];
        let mut blocks = vec![Block { start: first.to_vec(), count }];
        while let Some(block) = blocks.pop() {
            let cells = selection.and(&block.selection()?, &shape)?;
            let count = cells.count(&shape);
            match block.halves() {
                _ if count == 0 => {}
                Some(halves) if count > BLOCK_CELLS => blocks.extend(halves),
                _ => self.write(&cells, &values[..count as usize])?,
            }
        }
        Ok(())
    }

    /// Visits blocks that cover every cell that may be defined, each with at most `limit` defined
    /// cells unless it is a single cell. Chunks are visited one after another, in row-major order.
    pub(crate) fn for_each_block(
        &self,
        limit: u64,
        mut visit: impl FnMut(&Block) -> Result<()>,
    ) -> Result<()> {
        let shape = self.shape();
        if shape.contains(&0) {
            return Ok(());
        }
        match self.chunk() {
            Some(chunk) if self.is_sparse() => {
                for (offset, _) in self.at(self.state.chunk_records())? {
                    self.visit_parts(clip(&offset, &chunk, &shape), limit, &mut visit)?;
                }
                Ok(())
            }
            Some(chunk) => {
                let mut offset = vec![0; shape.len()];
                loop {
                    self.visit_parts(clip(&offset, &chunk, &shape), limit, &mut visit)?;
                    if !advance(&mut offset, &chunk, &shape) {
                        return Ok(());
                    }
                }
            }
            None => {
                let whole = Block { start: vec![0; shape.len()], count: shape };
                self.visit_parts(whole, limit, &mut visit)
            }
        }
    }

    fn visit_parts(
        &self,
        block: Block,
        limit: u64,
        visit: &mut impl FnMut(&Block) -> Result<()>,
    ) -> Result<()> {
        let mut waiting = vec![block];
        while let Some(block) = waiting.pop() {
            let small = block.cells() <= limit
                || (self.is_sparse() && self.count_defined(block.selection()?)? <= limit);
            match block.halves() {
                Some([first, second]) if !small => waiting.extend([second, first]),
                _ => visit(&block)?,
            }
        }
        Ok(())
    }
}

pub(crate) fn clip(offset: &[u64], chunk: &[u64], shape: &[u64]) -> Block {
    let axes = offset.iter().zip(chunk).zip(shape);
    let count = axes.map(|((&at, &side), &end)| side.min(end.saturating_sub(at))).collect();
    Block { start: offset.to_vec(), count }
}

/// Goes to the next chunk in row-major order; `false` after the last.
pub(crate) fn advance(offset: &mut [u64], chunk: &[u64], shape: &[u64]) -> bool {
    for axis in (0..offset.len()).rev() {
        match offset[axis].checked_add(chunk[axis]).filter(|&next| next < shape[axis]) {
            Some(next) => {
                offset[axis] = next;
                return true;
            }
            None => offset[axis] = 0,
        }
    }
    false
}
