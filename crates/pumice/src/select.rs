//! Selections from ranges, steps, lists and masks.

use pumice_engine::{Error, Result};
use pumice_space::{Dims, Selection};
use std::iter::StepBy;
use std::ops::{Bound, Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo};

/// Cells along one axis of a selection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AxisCells {
    /// One index, whose axis an array leaves out.
    Index(u64),
    /// A number of indices, from the first one on, at equal distances.
    Steps {
        /// The first index.
        start: u64,
        /// The distance from one to the next; at least 1.
        step: u64,
        /// The number of indices.
        count: u64,
    },
    /// Stretches, by their first and last index; they ascend and do not overlap.
    Spans(Vec<(u64, u64)>),
}

impl AxisCells {
    /// The number of indices.
    fn count(&self) -> u64 {
        match self {
            Self::Index(_) => 1,
            Self::Steps { count, .. } => *count,
            Self::Spans(spans) => spans.iter().map(|(first, last)| last - first + 1).sum(),
        }
    }

    /// The selected indices as ranges.
    fn spans(&self) -> Vec<(u64, u64)> {
        match self {
            &Self::Index(index) => vec![(index, index)],
            Self::Steps { count: 0, .. } => Vec::new(),
            &Self::Steps { start, step: 1, count } => vec![(start, start + count - 1)],
            &Self::Steps { start, step, count } => {
                (0..count).map(|at| (start + at * step, start + at * step)).collect()
            }
            Self::Spans(spans) => spans.clone(),
        }
    }
}

/// One axis of a selection: `..`, `a..b`, `a..`, `..b`, `a..=b`, a single index, `(a..b).step_by(n)`, an ascending
/// list of indices (`&[1, 5, 7]`, a `Vec`), or a mask (`&[true, false]`, a `Vec<bool>`) as long as the axis.
pub trait AxisRange {
    /// Its cells on an axis of `length`.
    fn pick(&self, length: u64) -> Result<AxisCells>;
}

/// Anything that selects cells of a dataset.
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
///
/// // Every other row; some columns; a mask of the rows.
/// assert_eq!(((0..4).step_by(2), ..).select(&shape)?.count(&shape), 12);
/// assert_eq!((.., &[0, 3, 5]).select(&shape)?.count(&shape), 12);
/// assert_eq!((vec![true, false, false, true], 1..).select(&shape)?.count(&shape), 10);
/// # Ok::<(), pumice::Error>(())
/// ```
pub trait Select {
    /// The selection in a dataset of shape `dims`.
    fn select(&self, dims: &[u64]) -> Result<Selection>;

    /// The shape of an array that takes the cells, which [`select`](Self::select) has given: without the axes of
    /// single indices; of one axis for points and sets that are no products.
    ///
    /// ```
    /// use pumice::Select;
    ///
    /// let cells = (3, .., &[0, 2]).select(&[4, 5, 6])?;
    /// assert_eq!((3, .., &[0, 2]).shape(&[4, 5, 6], &cells)?, [5, 2]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    fn shape(&self, dims: &[u64], cells: &Selection) -> Result<Vec<u64>> {
        Ok(cells.shape(dims).to_vec())
    }
}

impl Select for Selection {
    fn select(&self, _dims: &[u64]) -> Result<Selection> {
        Ok(self.clone())
    }
}

macro_rules! forwarded {
    ($($pointer:ty),+) => {$(
        impl<S: Select + ?Sized> Select for $pointer {
            fn select(&self, dims: &[u64]) -> Result<Selection> {
                (**self).select(dims)
            }

            fn shape(&self, dims: &[u64], cells: &Selection) -> Result<Vec<u64>> {
                (**self).shape(dims, cells)
            }
        }
    )+};
}

forwarded! { &S, Box<S> }

impl Select for RangeFull {
    fn select(&self, _dims: &[u64]) -> Result<Selection> {
        Ok(Selection::all())
    }
}

/// Both methods, from the axes.
macro_rules! by_axes {
    ($self:ident, $axes:expr) => {
        fn select(&$self, dims: &[u64]) -> Result<Selection> {
            selection(&picked(dims, $axes)?)
        }

        fn shape(&$self, dims: &[u64], _: &Selection) -> Result<Vec<u64>> {
            let kept = picked(dims, $axes)?;
            let kept = kept.iter().filter(|axis| !matches!(axis, AxisCells::Index(_)));
            Ok(kept.map(AxisCells::count).collect())
        }
    };
}

/// Alone, a range or an index is that of a dataset of one dimension.
macro_rules! lone_axes {
    ($($axis:ty),+) => {$(
        impl Select for $axis {
            by_axes! { self, &[self] }
        }
    )+};
}

lone_axes! {
    u64, Range<u64>, RangeFrom<u64>, RangeTo<u64>, RangeInclusive<u64>, StepBy<Range<u64>>,
    StepBy<RangeInclusive<u64>>, StepBy<RangeFrom<u64>>
}

impl<A: AxisRange, const N: usize> Select for [A; N] {
    by_axes! { self, &each(self) }
}

impl<A: AxisRange> Select for [A] {
    by_axes! { self, &each(self) }
}

fn each<A: AxisRange>(axes: &[A]) -> Vec<&dyn AxisRange> {
    axes.iter().map(|axis| axis as &dyn AxisRange).collect()
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

/// A mask of all cells of a dataset, in row-major order; selects those where it is true.
///
/// ```
/// use pumice::{File, Mask};
///
/// let file = File::in_memory()?;
/// let dataset = file.new_dataset::<i32>().shape([2, 3]).create("d")?;
/// dataset.write(.., &[1, -2, 3, -4, -5, 6])?;
/// let negative: Vec<bool> = dataset.read::<i32>(..)?.iter().map(|&value| value < 0).collect();
/// assert_eq!(dataset.read::<i32>(Mask(&negative))?, [-2, -4, -5]);
/// dataset.write_scalar(Mask(&negative), 0)?;
/// assert_eq!(dataset.read::<i32>(..)?, [1, 0, 3, 0, 0, 6]);
/// # Ok::<(), pumice::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Mask<'a>(pub &'a [bool]);

impl Select for Mask<'_> {
    fn select(&self, dims: &[u64]) -> Result<Selection> {
        let cells = dims.iter().fold(1u64, |cells, &axis| cells.saturating_mul(axis));
        if cells != self.0.len() as u64 {
            return Err(mask_length(self.0.len(), cells));
        }
        if dims.is_empty() {
            return Ok(if self.0 == [true] { Selection::all() } else { Selection::none() });
        }
        let width = dims.last().map_or(1, |&axis| axis.max(1)) as usize;
        let mut rows = Vec::new();
        for (row, cells) in self.0.chunks(width).enumerate() {
            for (first, last) in runs(cells) {
                let mut place = row as u64;
                let mut start: Vec<u64> = vec![first; dims.len()];
                for axis in (0..dims.len() - 1).rev() {
                    start[axis] = place % dims[axis];
                    place /= dims[axis];
                }
                let mut count = vec![1; dims.len()];
                count[dims.len() - 1] = last - first + 1;
                rows.push(Selection::block(&start, &count)?);
            }
        }
        Ok(Selection::union_of(dims.len(), rows, dims)?)
    }
}

/// Stretches of `true`, by their first and last index.
fn runs(mask: &[bool]) -> Vec<(u64, u64)> {
    let mut at = 0u64;
    let mut found = Vec::new();
    for run in mask.chunk_by(|one, next| one == next) {
        let end = at + run.len() as u64;
        if run[0] {
            found.push((at, end - 1));
        }
        at = end;
    }
    found
}

fn mask_length(given: usize, wanted: u64) -> Error {
    Error::RankMismatch(format!("a mask of {given} truth value(s) for {wanted} cell(s)"))
}

macro_rules! tuples {
    ($(($($axis:ident . $number:tt),+))+) => {$(
        impl<$($axis: AxisRange),+> Select for ($($axis,)+) {
            by_axes! { self, &[$(&self.$number),+] }
        }
    )+};
}

tuples! {
    (A.0)
    (A.0, B.1)
    (A.0, B.1, C.2)
    (A.0, B.1, C.2, D.3)
    (A.0, B.1, C.2, D.3, E.4)
    (A.0, B.1, C.2, D.3, E.4, F.5)
}

/// The cells of each axis.
fn picked(dims: &[u64], axes: &[&dyn AxisRange]) -> Result<Vec<AxisCells>> {
    if axes.len() != dims.len() {
        let (given, rank) = (axes.len(), dims.len());
        let what = format!("{given} range(s) for a dataset of {rank} dimension(s)");
        return Err(Error::RankMismatch(what));
    }
    axes.iter().zip(dims).map(|(axis, &length)| axis.pick(length)).collect()
}

fn selection(axes: &[AxisCells]) -> Result<Selection> {
    if axes.iter().any(|axis| axis.count() == 0) {
        return Ok(Selection::none());
    }
    let regular = |axis: &AxisCells| match *axis {
        AxisCells::Index(index) => Some([index, 1, 1]),
        AxisCells::Steps { start, step, count } => Some([start, step, count]),
        AxisCells::Spans(_) => None,
    };
    let Some(regular) = axes.iter().map(regular).collect::<Option<Vec<_>>>() else {
        let spans: Vec<_> = axes.iter().map(AxisCells::spans).collect();
        return Ok(Selection::product(&spans)?);
    };
    let part = |which: usize| regular.iter().map(|axis| axis[which]).collect::<Dims>();
    let (start, stride, count) = (part(0), part(1), part(2));
    match stride.iter().all(|&step| step == 1) {
        true => Ok(Selection::block(&start, &count)?),
        false => Ok(Selection::hyperslab(&start, &stride, &count, &vec![1; axes.len()])?),
    }
}

fn outside(index: u64, length: u64) -> Error {
    Error::OutOfBounds(format!("index {index} on an axis of {length}"))
}

impl AxisRange for u64 {
    fn pick(&self, length: u64) -> Result<AxisCells> {
        match *self < length {
            true => Ok(AxisCells::Index(*self)),
            false => Err(outside(*self, length)),
        }
    }
}

macro_rules! ranges {
    ($($range:ty),+) => {$(
        impl AxisRange for $range {
            fn pick(&self, length: u64) -> Result<AxisCells> {
                between(self, length)
            }
        }
    )+};
}

ranges! { RangeFull, Range<u64>, RangeFrom<u64>, RangeTo<u64>, RangeInclusive<u64> }

fn between(range: &impl RangeBounds<u64>, length: u64) -> Result<AxisCells> {
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
        return Err(outside(end - 1, length));
    }
    Ok(AxisCells::Steps { start, step: 1, count: end.saturating_sub(start) })
}

/// The first index and the distance to the next, which is all that an iterator by steps tells; how many there are
/// is known from its length.
macro_rules! stepped {
    ($($range:ty),+) => {$(
        impl AxisRange for StepBy<$range> {
            fn pick(&self, length: u64) -> Result<AxisCells> {
                let mut indices = self.clone();
                let (first, second) = (indices.next(), indices.next());
                let Some(start) = first else {
                    return Ok(AxisCells::Steps { start: 0, step: 1, count: 0 });
                };
                let step = second.map_or(1, |second| second - start);
                steps(start, step, self.size_hint().1.map(|count| count as u64), length)
            }
        }
    )+};
}

stepped! { Range<u64>, RangeInclusive<u64>, RangeFrom<u64> }

fn steps(start: u64, step: u64, count: Option<u64>, length: u64) -> Result<AxisCells> {
    let Some(count) = count else {
        // Without an end: as far as the axis goes.
        let count = length.saturating_sub(start).div_ceil(step);
        return Ok(AxisCells::Steps { start, step, count });
    };
    let last = (count - 1).saturating_mul(step).saturating_add(start);
    match last < length {
        true => Ok(AxisCells::Steps { start, step, count }),
        false => Err(outside(last, length)),
    }
}

/// A list of indices, which ascend.
impl AxisRange for [u64] {
    fn pick(&self, length: u64) -> Result<AxisCells> {
        if let Some(&index) = self.iter().find(|&&index| index >= length) {
            return Err(outside(index, length));
        }
        if !self.is_sorted_by(|one, next| one < next) {
            let what = "a list of indices that do not ascend, or repeat: sort them, or read points";
            return Err(Error::Invalid(what.into()));
        }
        let runs = self.chunk_by(|one, next| one + 1 == *next);
        let spans = runs.map(|run| (run[0], run[run.len() - 1]));
        Ok(AxisCells::Spans(spans.collect()))
    }
}

/// A mask of an axis.
impl AxisRange for [bool] {
    fn pick(&self, length: u64) -> Result<AxisCells> {
        match self.len() as u64 == length {
            true => Ok(AxisCells::Spans(runs(self))),
            false => Err(mask_length(self.len(), length)),
        }
    }
}

macro_rules! lists {
    ($($item:ty),+) => {$(
        impl AxisRange for &[$item] {
            fn pick(&self, length: u64) -> Result<AxisCells> {
                (**self).pick(length)
            }
        }

        impl<const N: usize> AxisRange for &[$item; N] {
            fn pick(&self, length: u64) -> Result<AxisCells> {
                self.as_slice().pick(length)
            }
        }

        impl AxisRange for Vec<$item> {
            fn pick(&self, length: u64) -> Result<AxisCells> {
                self.as_slice().pick(length)
            }
        }

        impl AxisRange for &Vec<$item> {
            fn pick(&self, length: u64) -> Result<AxisCells> {
                self.as_slice().pick(length)
            }
        }
    )+};
}

lists! { u64, bool }
