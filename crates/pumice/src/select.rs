//! From ranges to selections.

use pumice_engine::{Error, Result};
use pumice_space::{Dims, Selection};
use std::ops::{Bound, Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo};

/// One axis of a selection: `..`, `a..b`, `a..`, `..b`, `a..=b`, or a single index.
pub trait AxisRange {
    /// The first index and how many, on an axis of `length`.
    fn resolve(&self, length: u64) -> Result<(u64, u64)>;
}

/// Whatever names cells of a dataset.
///
/// ```
/// use pumice::{Select, Selection};
///
/// let shape = [4, 6];
/// assert_eq!((1..3, ..).select(&shape)?.count(&shape), 12);
/// assert_eq!((.., 5).select(&shape)?.count(&shape), 4);
/// assert_eq!([0..2, 4..6].select(&shape)?.count(&shape), 4);
/// assert_eq!((..).select(&shape)?.count(&shape), 24);
/// assert_eq!((2..).select(&[7])?.count(&[7]), 5);
/// assert_eq!(Selection::point(&[1, 1])?.select(&shape)?.count(&shape), 1);
/// assert_eq!(vec![[1, 1], [3, 0]].select(&shape)?.count(&shape), 2);
/// # Ok::<(), pumice::Error>(())
/// ```
pub trait Select {
    /// The selection in a dataset of shape `dims`.
    fn select(&self, dims: &[u64]) -> Result<Selection>;
}

impl Select for Selection {
    fn select(&self, _dims: &[u64]) -> Result<Selection> {
        Ok(self.clone())
    }
}

impl<S: Select + ?Sized> Select for &S {
    fn select(&self, dims: &[u64]) -> Result<Selection> {
        (**self).select(dims)
    }
}

impl<S: Select + ?Sized> Select for Box<S> {
    fn select(&self, dims: &[u64]) -> Result<Selection> {
        (**self).select(dims)
    }
}

impl Select for RangeFull {
    fn select(&self, _dims: &[u64]) -> Result<Selection> {
        Ok(Selection::all())
    }
}

/// Alone, a range or an index is that of a dataset of one dimension.
macro_rules! lone_axes {
    ($($axis:ty),+) => {$(
        impl Select for $axis {
            fn select(&self, dims: &[u64]) -> Result<Selection> {
                block(dims, &[self])
            }
        }
    )+};
}

lone_axes! { u64, Range<u64>, RangeFrom<u64>, RangeTo<u64>, RangeInclusive<u64> }

impl<A: AxisRange, const N: usize> Select for [A; N] {
    fn select(&self, dims: &[u64]) -> Result<Selection> {
        let axes: Vec<&dyn AxisRange> = self.iter().map(|axis| axis as &dyn AxisRange).collect();
        block(dims, &axes)
    }
}

impl<A: AxisRange> Select for [A] {
    fn select(&self, dims: &[u64]) -> Result<Selection> {
        let axes: Vec<&dyn AxisRange> = self.iter().map(|axis| axis as &dyn AxisRange).collect();
        block(dims, &axes)
    }
}

/// A list of coordinates: points, in their order.
impl<const N: usize> Select for [[u64; N]] {
    fn select(&self, _dims: &[u64]) -> Result<Selection> {
        Ok(Selection::points(N, self.as_flattened().to_vec())?)
    }
}

impl<const N: usize> Select for Vec<[u64; N]> {
    fn select(&self, dims: &[u64]) -> Result<Selection> {
        self.as_slice().select(dims)
    }
}

macro_rules! tuples {
    ($(($($axis:ident . $number:tt),+))+) => {$(
        impl<$($axis: AxisRange),+> Select for ($($axis,)+) {
            fn select(&self, dims: &[u64]) -> Result<Selection> {
                block(dims, &[$(&self.$number),+])
            }
        }
    )+};
}

tuples! {
    (A.0)
    (A.0, B.1)
    (A.0, B.1, C.2)
    (A.0, B.1, C.2, D.3)
    (A.0, B.1, C.2, D.3, E.4)
}

fn block(dims: &[u64], axes: &[&dyn AxisRange]) -> Result<Selection> {
    if axes.len() != dims.len() {
        return Err(Error::Invalid(format!(
            "{} range(s) for a dataset of {} dimension(s)",
            axes.len(),
            dims.len()
        )));
    }
    let (mut start, mut count) = (Dims::new(), Dims::new());
    for (axis, &length) in axes.iter().zip(dims) {
        let (first, cells) = axis.resolve(length)?;
        start.push(first);
        count.push(cells);
    }
    if count.contains(&0) {
        return Ok(Selection::none());
    }
    Ok(Selection::block(&start, &count)?)
}

impl AxisRange for u64 {
    fn resolve(&self, length: u64) -> Result<(u64, u64)> {
        if *self >= length {
            return Err(Error::Invalid(format!("index {self} on an axis of {length}")));
        }
        Ok((*self, 1))
    }
}

macro_rules! ranges {
    ($($range:ty),+) => {$(
        impl AxisRange for $range {
            fn resolve(&self, length: u64) -> Result<(u64, u64)> {
                between(self, length)
            }
        }
    )+};
}

ranges! { RangeFull, Range<u64>, RangeFrom<u64>, RangeTo<u64>, RangeInclusive<u64> }

fn between(range: &impl RangeBounds<u64>, length: u64) -> Result<(u64, u64)> {
    let start = match range.start_bound() {
        Bound::Included(&start) => start,
        Bound::Excluded(&before) => before.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(&last) => last.saturating_add(1),
        Bound::Excluded(&end) => end,
        Bound::Unbounded => length,
    };
    if end > length {
        return Err(Error::Invalid(format!("index {} on an axis of {length}", end - 1)));
    }
    Ok((start, end.saturating_sub(start)))
}
