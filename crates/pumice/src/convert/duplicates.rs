//! The rules for cells that are named more than once.

use crate::Dataset;
use pumice_engine::{Error, Result};
use pumice_space::{Points, Selection};
use pumice_types::Element;
use std::cmp::Ordering;

/// The rule for a cell that is named more than once, or is defined already.
///
/// All rules but `Last` look at defined cells first. Several threads may write to one dataset by
/// any of these rules: for them, each block of cells is looked at and written in one step, so that
/// no sum is lost and no cell is taken for undefined twice. Plain writes, erasures and `Last` do
/// not wait for that; their changes to the same cells between look and write may be overwritten. A
/// virtual dataset and its sources are several datasets here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Duplicates {
    /// The last value counts.
    #[default]
    Last,
    /// The first value counts; a defined cell keeps its value.
    First,
    /// The sum of all values, and of the value of a defined cell, of integers or floating-point
    /// numbers. Sums are exact in a dataset of integers; one that its type cannot hold is an error.
    /// In a dataset of floating-point numbers they are computed in 64 bits and rounded once.
    Sum,
    /// Such a cell is an error.
    Error,
}

impl Dataset {
    /// Writes one value to each of the points. The rule decides about points that repeat or are
    /// defined already.
    ///
    /// ```
    /// use pumice::{Duplicates, File, Points};
    ///
    /// let file = File::in_memory()?;
    /// let counts = file.new_dataset::<u32>().shape([3, 5]).sparse().create("counts")?;
    /// let points = Points::list(2, &[0, 4, 2, 1, 0, 4])?;
    /// counts.write_by_rule(&points, &[1u32, 1, 1], Duplicates::Sum)?;
    /// counts.write_by_rule(&points, &[1u32, 1, 1], Duplicates::Sum)?;
    /// assert_eq!(counts.read_defined::<u32>(..)?.values, [4, 2]);
    /// assert!(counts.write_by_rule(&points, &[1u32, 1, 1], Duplicates::Error).is_err());
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn write_by_rule<T: Element>(
        &self,
        points: &Points<'_>,
        values: &[T],
        rule: Duplicates,
    ) -> Result<()> {
        if rule == Duplicates::Last {
            return self.write_at(points, values);
        }
        if points.len() != values.len() {
            let what = format!("there are {} value(s) for {} point(s)", values.len(), points.len());
            return self.at(Err(Error::Invalid(what)));
        }
        let rank = points.rank();
        let coordinates = points.to_list();
        if rule == Duplicates::Sum {
            return self.write_sums(rank, &coordinates, values);
        }
        let mut cells =
            self.at(Cells::unite(rank, &coordinates, values, |at, _, _| match rule {
                Duplicates::Error => Err(Error::Invalid(format!("{at:?} is named more than once"))),
                _ => Ok(()),
            }))?;
        let _alone = self.state().deciding();
        let mut taken = vec![false; cells.values.len()];
        self.visit_defined::<T>(&cells, |cell, at, _| {
            taken[cell] = true;
            match rule {
                Duplicates::Error => Err(Error::Invalid(format!("{at:?} is defined already"))),
                _ => Ok(()),
            }
        })?;
        cells.remove(&taken);
        self.write_united(&cells)
    }

    pub(super) fn write_united<T: Element>(&self, cells: &Cells<T>) -> Result<()> {
        let points = Points::list(cells.rank, &cells.coordinates).map_err(Error::from);
        self.write_at(&self.at(points)?, &cells.values)
    }

    /// Passes on the cells that are defined already: their positions, coordinates and values.
    pub(super) fn visit_defined<T: Element>(
        &self,
        cells: &Cells<impl Copy>,
        mut visit: impl FnMut(usize, &[u64], T) -> Result<()>,
    ) -> Result<()> {
        let rank = cells.rank;
        let asked = Selection::points(rank, cells.coordinates.clone()).map_err(Error::from);
        let asked = self.at(asked)?;
        if self.count_defined(&asked)? == 0 {
            return Ok(());
        }
        let mut known = self.read_defined::<T>(&asked)?;
        sort(rank, &mut known.coordinates, &mut known.values);
        let mut held = known.iter().peekable();
        for (cell, point) in cells.coordinates.chunks_exact(rank.max(1)).enumerate() {
            while held.next_if(|(other, _)| *other < point).is_some() {}
            if let Some((at, &old)) = held.next_if(|(other, _)| *other == point) {
                self.at(visit(cell, at, old))?;
            }
        }
        Ok(())
    }
}

/// Cells of which none is named twice, in row-major order.
pub(super) struct Cells<V> {
    pub(super) rank: usize,
    pub(super) coordinates: Vec<u64>,
    pub(super) values: Vec<V>,
}

impl<V: Copy> Cells<V> {
    /// Unites cells that are named more than once: `again` brings a further value into account.
    pub(super) fn unite(
        rank: usize,
        coordinates: &[u64],
        values: &[V],
        mut again: impl FnMut(&[u64], &mut V, V) -> Result<()>,
    ) -> Result<Self> {
        let (mut points, mut united) = (Vec::with_capacity(coordinates.len()), Vec::new());
        for cell in row_major(rank, coordinates) {
            let point = &coordinates[cell * rank..(cell + 1) * rank];
            match united.last_mut() {
                Some(last) if points[points.len() - rank..] == *point => {
                    again(point, last, values[cell])?;
                }
                _ => {
                    points.extend_from_slice(point);
                    united.push(values[cell]);
                }
            }
        }
        Ok(Self { rank, coordinates: points, values: united })
    }

    /// Removes the marked cells.
    fn remove(&mut self, marked: &[bool]) {
        let mut kept = 0;
        for cell in (0..marked.len()).filter(|&cell| !marked[cell]) {
            self.coordinates
                .copy_within(cell * self.rank..(cell + 1) * self.rank, kept * self.rank);
            self.values[kept] = self.values[cell];
            kept += 1;
        }
        self.coordinates.truncate(kept * self.rank);
        self.values.truncate(kept);
    }
}

/// The numbers of the points in row-major order; equal ones stay in their order.
fn row_major(rank: usize, coordinates: &[u64]) -> Vec<usize> {
    let point = |cell: usize| &coordinates[cell * rank..(cell + 1) * rank];
    let mut order: Vec<usize> = (0..coordinates.len() / rank.max(1)).collect();
    if !order.is_sorted_by(|&a, &b| point(a).cmp(point(b)) != Ordering::Greater) {
        order.sort_by(|&a, &b| point(a).cmp(point(b)));
    }
    order
}

/// Puts points and their values into row-major order.
pub(super) fn sort<T: Copy>(rank: usize, coordinates: &mut Vec<u64>, values: &mut Vec<T>) {
    let order = row_major(rank, coordinates);
    if order.iter().enumerate().all(|(place, &cell)| place == cell) {
        return;
    }
    let point = |&cell: &usize| &coordinates[cell * rank..(cell + 1) * rank];
    let sorted: Vec<u64> = order.iter().flat_map(point).copied().collect();
    *values = order.iter().map(|&cell| values[cell]).collect();
    *coordinates = sorted;
}
