//! Coordinate lists of any rank (COO).

use super::duplicates::{Duplicates, sort};
use crate::blocks::{BLOCK_CELLS, Block};
use crate::{Dataset, Defined};
use pumice_engine::{Error, Result};
use pumice_space::Points;
use pumice_types::Element;
use std::borrow::Borrow;
use std::collections::VecDeque;

/// A sparse array of any rank: one column of coordinates per axis, and the values.
///
/// ```
/// use pumice::{Coo, Duplicates, File};
///
/// let file = File::in_memory()?;
/// let cube = file.new_dataset::<f64>().shape([9, 9, 9]).sparse().create("cube")?;
/// let columns = vec![vec![0, 8, 0], vec![1, 8, 1], vec![2, 8, 2]];
/// let coo = Coo { shape: vec![9, 9, 9], columns, values: vec![1.5, 0.0, 2.0] };
/// cube.write_coo([&coo], Duplicates::Sum)?;
///
/// let back = cube.read_coo::<f64>()?;
/// assert_eq!(back.columns, [[0, 8], [1, 8], [2, 8]]);
/// assert_eq!(back.values, [3.5, 0.0], "the zero is defined");
/// # Ok::<(), pumice::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Coo<T> {
    /// The shape of the array.
    pub shape: Vec<u64>,
    /// Coordinates along each axis, equally many.
    pub columns: Vec<Vec<u64>>,
    /// One value for each.
    pub values: Vec<T>,
}

impl<T: Copy> Coo<T> {
    /// How many cells there are.
    pub fn len(&self) -> u64 {
        self.values.len() as u64
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    fn of(shape: Vec<u64>, mut found: Defined<T>) -> Self {
        sort(found.rank, &mut found.coordinates, &mut found.values);
        let axis = |axis| found.coordinates.iter().skip(axis).step_by(found.rank).copied();
        let columns = (0..found.rank).map(|at| axis(at).collect()).collect();
        Self { shape, columns, values: found.values }
    }
}

impl Dataset {
    /// Defines the cells of any number of coordinate lists, one after another: each may be made when
    /// it is asked for, so that never more than one need be in memory.
    pub fn write_coo<T: Element, B: Borrow<Coo<T>>>(
        &self,
        blocks: impl IntoIterator<Item = B>,
        duplicates: Duplicates,
    ) -> Result<()> {
        for block in blocks {
            let block = block.borrow();
            if block.shape != self.shape() {
                let what = format!("an array of {:?} for {:?}", block.shape, self.shape());
                return self.at(Err(Error::Invalid(what)));
            }
            let points = Points::columns(block.columns.iter().map(Vec::as_slice));
            let points = self.at(points.map_err(Error::from))?;
            self.write_by_rule(&points, &block.values, duplicates)?;
        }
        Ok(())
    }

    /// All defined cells, chunk by chunk and in row-major order within a block. A block has at most
    /// about a million cells.
    pub fn coo_blocks<T: Element>(&self) -> Result<CooBlocks<T>> {
        let mut blocks = VecDeque::new();
        self.for_each_block(u64::MAX, |block| {
            blocks.push_back(block.clone());
            Ok(())
        })?;
        Ok(CooBlocks { dataset: self.clone(), blocks, element: std::marker::PhantomData })
    }

    /// All defined cells in row-major order.
    pub fn read_coo<T: Element>(&self) -> Result<Coo<T>> {
        Ok(Coo::of(self.shape(), self.read_defined::<T>(..)?))
    }
}

/// The defined cells of a dataset in blocks; see [`Dataset::coo_blocks`].
pub struct CooBlocks<T> {
    dataset: Dataset,
    /// What is still to be read, next first.
    blocks: VecDeque<Block>,
    element: std::marker::PhantomData<fn() -> T>,
}

impl<T: Element> CooBlocks<T> {
    fn read(&mut self, block: &Block) -> Result<Option<Coo<T>>> {
        let cells = self.dataset.at(block.selection())?;
        let small = block.cells() <= BLOCK_CELLS;
        if !small
            && self.dataset.count_defined(&cells)? > BLOCK_CELLS
            && let Some([first, second]) = block.halves()
        {
            self.blocks.push_front(second);
            self.blocks.push_front(first);
            return Ok(None);
        }
        let found = self.dataset.read_defined::<T>(&cells)?;
        Ok(Some(Coo::of(self.dataset.shape(), found)).filter(|block| !block.is_empty()))
    }
}

impl<T: Element> Iterator for CooBlocks<T> {
    type Item = Result<Coo<T>>;

    fn next(&mut self) -> Option<Self::Item> {
        while let Some(block) = self.blocks.pop_front() {
            match self.read(&block) {
                Ok(None) => {}
                Ok(Some(found)) => return Some(Ok(found)),
                Err(error) => {
                    self.blocks.clear();
                    return Some(Err(error));
                }
            }
        }
        None
    }
}
