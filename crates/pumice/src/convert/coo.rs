//! Coordinate lists of any rank (COO).

use super::duplicates::{Duplicates, sort};
use crate::blocks::{BLOCK_CELLS, Block};
use crate::dataset::steady::bounded;
use crate::{Dataset, Defined};
use pumice_engine::{Error, Result};
use pumice_space::{Points, Selection};
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
    /// The value of each cell.
    pub values: Vec<T>,
}

impl<T: Copy> Coo<T> {
    /// The number of cells.
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
                let what = format!(
                    "an array of shape {:?} does not fit a dataset of shape {:?}",
                    block.shape,
                    self.shape()
                );
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
    ///
    /// The blocks are those of the present shape and chunks. If the dataset is resized meanwhile,
    /// removed cells are left out, and new ones do not appear.
    pub fn coo_blocks<T: Element>(&self) -> Result<CooBlocks<T>> {
        let (shape, mut blocks) = (self.shape(), VecDeque::new());
        self.for_each_part_of(
            &shape,
            &Selection::all(),
            u64::MAX,
            self.is_sparse(),
            |block, _| {
                blocks.push_back(block.clone());
                Ok(())
            },
        )?;
        Ok(CooBlocks { dataset: self.clone(), shape, blocks, element: std::marker::PhantomData })
    }

    /// All defined cells in row-major order.
    pub fn read_coo<T: Element>(&self) -> Result<Coo<T>> {
        self.in_one_extent(|shape| {
            let found = self.read_defined::<T>(&bounded(&Selection::all(), shape)?)?;
            Ok(Coo::of(shape.to_vec(), found))
        })
    }
}

/// The defined cells of a dataset in blocks; see [`Dataset::coo_blocks`].
#[derive(Debug)]
pub struct CooBlocks<T> {
    dataset: Dataset,
    /// The shape of the dataset at the beginning.
    shape: Vec<u64>,
    /// The blocks that are left, next first.
    blocks: VecDeque<Block>,
    element: std::marker::PhantomData<fn() -> T>,
}

impl<T: Element> CooBlocks<T> {
    fn read(&mut self, block: &Block) -> Result<Option<Coo<T>>> {
        let small = block.cells() <= BLOCK_CELLS;
        let found = self.dataset.in_one_extent(|shape| {
            let cells = block.within(shape)?;
            let large = !small && self.dataset.count_defined(&cells)? > BLOCK_CELLS;
            match block.halves().filter(|_| large) {
                Some(halves) => Ok(Err(halves)),
                None => Ok(Ok(self.dataset.read_defined::<T>(&cells)?)),
            }
        })?;
        match found {
            Ok(found) => {
                Ok(Some(Coo::of(self.shape.clone(), found)).filter(|block| !block.is_empty()))
            }
            Err([first, second]) => {
                self.blocks.push_front(second);
                self.blocks.push_front(first);
                Ok(None)
            }
        }
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
