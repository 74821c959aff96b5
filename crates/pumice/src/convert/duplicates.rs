//! What becomes of a cell that is named more than once.

use crate::Dataset;
use pumice_engine::{Error, Result};
use pumice_space::{Points, Selection};
use pumice_types::{Conversion, Datatype, Element};
use std::cmp::Ordering;

/// What becomes of a cell that is named more than once, or is defined already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Duplicates {
    /// The last value counts.
    #[default]
    Last,
    /// The first value counts; what is defined already stays.
    First,
    /// The sum of all values, and of what is defined already. A sum that the given or the dataset's
    /// type cannot hold is an error.
    Sum,
    /// It is an error.
    Error,
}

/// An element that can be added.
pub trait Number: Element {
    /// The sum, unless the type cannot hold it.
    fn plus(self, other: Self) -> Option<Self>;
}

macro_rules! integers {
    ($($name:ident)+) => {$(
        impl Number for $name {
            fn plus(self, other: Self) -> Option<Self> {
                self.checked_add(other)
            }
        }
    )+};
}

macro_rules! floats {
    ($($name:ident)+) => {$(
        impl Number for $name {
            fn plus(self, other: Self) -> Option<Self> {
                Some(self + other)
            }
        }
    )+};
}

integers! { i8 i16 i32 i64 u8 u16 u32 u64 }
floats! { f32 f64 }

impl Dataset {
    /// Writes points of which some may repeat or be defined already.
    pub(super) fn write_by_rule<T: Number>(
        &self,
        points: &Points<'_>,
        values: &[T],
        rule: Duplicates,
    ) -> Result<()> {
        if rule == Duplicates::Last {
            return self.write_at(points, values);
        }
        if points.len() != values.len() {
            let what = format!("{} value(s) for {} point(s)", values.len(), points.len());
            return self.at(Err(Error::Invalid(what)));
        }
        let rank = points.rank();
        let (mut coordinates, mut values) =
            self.at(unite(rank, &points.to_list(), values, rule))?;
        self.settle(rank, &mut coordinates, &mut values, rule)?;
        if rule == Duplicates::Sum {
            self.at(self.require_room(rank, &coordinates, &values))?;
        }
        let points = self.at(Points::list(rank, &coordinates).map_err(Error::from))?;
        self.write_at(&points, &values)
    }

    /// Refuses sums of integers that the dataset's own integers cannot hold.
    fn require_room<T: Number>(
        &self,
        rank: usize,
        coordinates: &[u64],
        values: &[T],
    ) -> Result<()> {
        let (given, own) = (T::datatype(), self.datatype());
        let integers = matches!((&given, own), (Datatype::Integer(_), Datatype::Integer(_)));
        if given == *own || !integers {
            return Ok(());
        }
        let mut elements: Vec<u8> = self.buffer(values.len() * own.size())?;
        let mut back: Vec<T> = self.buffer(values.len())?;
        Conversion::new(&given, own)?.convert(bytemuck::cast_slice(values), &mut elements)?;
        Conversion::new(own, &given)?.convert(&elements, bytemuck::cast_slice_mut(&mut back))?;
        let same =
            |cell: &usize| bytemuck::bytes_of(&values[*cell]) == bytemuck::bytes_of(&back[*cell]);
        match (0..values.len()).find(|cell| !same(cell)) {
            Some(cell) => Err(too_large(&coordinates[cell * rank..(cell + 1) * rank])),
            None => Ok(()),
        }
    }

    /// Brings cells that are defined already into account. Points ascend and do not repeat.
    fn settle<T: Number>(
        &self,
        rank: usize,
        coordinates: &mut Vec<u64>,
        values: &mut Vec<T>,
        rule: Duplicates,
    ) -> Result<()> {
        let asked = self.at(Selection::points(rank, coordinates.clone()).map_err(Error::from))?;
        if self.count_defined(&asked)? == 0 {
            return Ok(());
        }
        let mut known = self.read_defined::<T>(&asked)?;
        sort(rank, &mut known.coordinates, &mut known.values);
        let mut held = known.iter().peekable();
        let mut kept = 0;
        for cell in 0..values.len() {
            let point = cell * rank..(cell + 1) * rank;
            while held.next_if(|(other, _)| *other < &coordinates[point.clone()]).is_some() {}
            let old = held.next_if(|(other, _)| *other == &coordinates[point.clone()]);
            match (old, rule) {
                (Some((at, _)), Duplicates::Error) => {
                    return self.at(Err(Error::Invalid(format!("{at:?} is defined already"))));
                }
                (Some(_), Duplicates::First) => continue,
                (Some((at, &old)), _) => values[cell] = self.at(sum(at, old, values[cell]))?,
                (None, _) => {}
            }
            coordinates.copy_within(point, kept * rank);
            values[kept] = values[cell];
            kept += 1;
        }
        coordinates.truncate(kept * rank);
        values.truncate(kept);
        Ok(())
    }
}

fn sum<T: Number>(at: &[u64], one: T, other: T) -> Result<T> {
    one.plus(other).ok_or_else(|| too_large(at))
}

fn too_large(at: &[u64]) -> Error {
    Error::Invalid(format!("the sum at {at:?} is too large"))
}

/// Makes one cell of those that are named more than once; the result is in row-major order.
fn unite<T: Number>(
    rank: usize,
    coordinates: &[u64],
    values: &[T],
    rule: Duplicates,
) -> Result<(Vec<u64>, Vec<T>)> {
    let order = row_major(rank, coordinates);
    let (mut points, mut united) = (Vec::with_capacity(coordinates.len()), Vec::new());
    for cell in order {
        let point = &coordinates[cell * rank..(cell + 1) * rank];
        let again = !united.is_empty() && points[points.len() - rank..] == *point;
        match (united.last_mut(), rule) {
            (Some(last), Duplicates::Sum) if again => *last = sum(point, *last, values[cell])?,
            (Some(_), Duplicates::First) if again => {}
            (Some(last), Duplicates::Last) if again => *last = values[cell],
            (Some(_), Duplicates::Error) if again => {
                return Err(Error::Invalid(format!("{point:?} is named more than once")));
            }
            _ => {
                points.extend_from_slice(point);
                united.push(values[cell]);
            }
        }
    }
    Ok((points, united))
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
