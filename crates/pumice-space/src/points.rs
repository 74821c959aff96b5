//! Cells named one by one, as applications hold them: columns of coordinates, compressed rows or
//! columns, lists.
//!
//! [`Points`] borrows the application's coordinates and copies nothing. [`PointPlan`] splits them
//! by chunk: *stretches* of neighbouring points in one chunk are found in one pass, on all threads,
//! and sorted by chunk. A stretch takes eight bytes however long it is, so rows in order, the usual
//! case, cost little more than reading the coordinates once.

mod bands;
mod plan;
mod rows;
mod scan;

pub use bands::PointBand;
pub use plan::{PointPart, PointPlan};
pub use rows::{RowGrid, TakeRows};

use crate::extent::{check_rank, same_rank};
use crate::{Dims, SpaceError};

/// The coordinates of many points along one axis, or the positions where rows begin.
///
/// ```
/// use pumice_space::Column;
///
/// let column = Column::from(&[3u32, 1, 4][..]);
/// assert_eq!((column.len(), column.at(2)), (3, Some(4)));
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Column<'a> {
    /// 32 bits each.
    U32(&'a [u32]),
    /// 64 bits each.
    U64(&'a [u64]),
}

impl Column<'_> {
    /// The number of numbers.
    pub fn len(&self) -> usize {
        match self {
            Self::U32(numbers) => numbers.len(),
            Self::U64(numbers) => numbers.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One of the numbers.
    pub fn at(&self, index: usize) -> Option<u64> {
        match self {
            Self::U32(numbers) => numbers.get(index).map(|&number| u64::from(number)),
            Self::U64(numbers) => numbers.get(index).copied(),
        }
    }
}

impl<'a> From<&'a [u32]> for Column<'a> {
    fn from(numbers: &'a [u32]) -> Self {
        Self::U32(numbers)
    }
}

impl<'a> From<&'a [u64]> for Column<'a> {
    fn from(numbers: &'a [u64]) -> Self {
        Self::U64(numbers)
    }
}

impl<'a> From<&'a Vec<u32>> for Column<'a> {
    fn from(numbers: &'a Vec<u32>) -> Self {
        Self::U32(numbers)
    }
}

impl<'a> From<&'a Vec<u64>> for Column<'a> {
    fn from(numbers: &'a Vec<u64>) -> Self {
        Self::U64(numbers)
    }
}

/// Cells of an array, named one by one in any order; a cell may be named more than once.
///
/// ```
/// use pumice_space::Points;
///
/// let (rows, columns) = ([0u32, 0, 2], [1u32, 4, 3]);
/// let points = Points::columns([&rows[..], &columns[..]])?;
/// assert_eq!((points.len(), points.rank()), (3, 2));
///
/// // The same cells as compressed rows: row `r` has the indices from `pointers[r]` on.
/// let same = Points::compressed_rows(&[0u64, 2, 2, 3][..], &columns[..])?;
/// assert_eq!(same.len(), 3);
/// # Ok::<(), pumice_space::SpaceError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Points<'a>(Form<'a>);

#[derive(Clone, Debug)]
enum Form<'a> {
    /// `rank` numbers for each point.
    List { rank: usize, coords: &'a [u64] },
    /// One column per axis, equally long.
    Columns(Vec<Column<'a>>),
    /// Rank two: points that share a coordinate of `axis` follow each other.
    Compressed { axis: usize, pointers: Column<'a>, indices: Column<'a> },
}

impl<'a> Points<'a> {
    /// Coordinates one after another, `rank` numbers for each point.
    pub fn list(rank: usize, coords: &'a [u64]) -> Result<Self, SpaceError> {
        check_rank(rank)?;
        if rank == 0 || !coords.len().is_multiple_of(rank) {
            let reason = "coordinates that do not make up whole points";
            return Err(SpaceError::InvalidShape { axis: 0, reason });
        }
        Ok(Self(Form::List { rank, coords }))
    }

    /// One column of coordinates for each axis, slowest axis first.
    pub fn columns<C: Into<Column<'a>>>(
        columns: impl IntoIterator<Item = C>,
    ) -> Result<Self, SpaceError> {
        let columns: Vec<Column<'a>> = columns.into_iter().map(Into::into).collect();
        check_rank(columns.len())?;
        let Some(first) = columns.first() else {
            return Err(SpaceError::InvalidShape { axis: 0, reason: "points without coordinates" });
        };
        let length = first.len();
        if let Some(axis) = columns.iter().position(|column| column.len() != length) {
            let reason = "columns of coordinates of different length";
            return Err(SpaceError::InvalidShape { axis, reason });
        }
        Ok(Self(Form::Columns(columns)))
    }

    /// The cells of compressed sparse rows (CSR): those of row `r` are in the columns `indices` from
    /// position `pointers[r]` up to `pointers[r + 1]`.
    pub fn compressed_rows(
        pointers: impl Into<Column<'a>>,
        indices: impl Into<Column<'a>>,
    ) -> Result<Self, SpaceError> {
        Self::compressed(0, pointers.into(), indices.into())
    }

    /// The cells of compressed sparse columns (CSC): [`compressed_rows`](Self::compressed_rows)
    /// with rows and columns exchanged.
    pub fn compressed_columns(
        pointers: impl Into<Column<'a>>,
        indices: impl Into<Column<'a>>,
    ) -> Result<Self, SpaceError> {
        Self::compressed(1, pointers.into(), indices.into())
    }

    fn compressed(
        axis: usize,
        pointers: Column<'a>,
        indices: Column<'a>,
    ) -> Result<Self, SpaceError> {
        let ascending = match pointers {
            Column::U32(all) => all.is_sorted(),
            Column::U64(all) => all.is_sorted(),
        };
        let last = pointers.len().checked_sub(1).and_then(|last| pointers.at(last));
        if !ascending || pointers.at(0) != Some(0) || last != Some(indices.len() as u64) {
            let reason = "pointers that do not ascend from 0 to the number of indices";
            return Err(SpaceError::InvalidShape { axis, reason });
        }
        Ok(Self(Form::Compressed { axis, pointers, indices }))
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        match &self.0 {
            Form::List { rank, .. } => *rank,
            Form::Columns(columns) => columns.len(),
            Form::Compressed { .. } => 2,
        }
    }

    /// The number of points, repeated ones counted each time.
    pub fn len(&self) -> usize {
        match &self.0 {
            Form::List { rank, coords } => coords.len() / rank,
            Form::Columns(columns) => columns.first().map_or(0, Column::len),
            Form::Compressed { indices, .. } => indices.len(),
        }
    }

    /// Whether there is no point.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All coordinates one after another, point by point.
    ///
    /// ```
    /// use pumice_space::Points;
    ///
    /// let points = Points::compressed_columns(&[0u32, 1, 3][..], &[5u32, 0, 7][..])?;
    /// assert_eq!(points.to_list(), [5, 0, 0, 1, 7, 1]);
    /// # Ok::<(), pumice_space::SpaceError>(())
    /// ```
    pub fn to_list(&self) -> Vec<u64> {
        match &self.0 {
            Form::List { coords, .. } => coords.to_vec(),
            Form::Columns(columns) => {
                let points = 0..self.len();
                points.flat_map(|i| columns.iter().filter_map(move |column| column.at(i))).collect()
            }
            Form::Compressed { axis, pointers, indices } => {
                let mut list = Vec::with_capacity(2 * indices.len());
                for line in 0..pointers.len().saturating_sub(1) {
                    let bounds = (pointers.at(line), pointers.at(line + 1));
                    let (Some(from), Some(to)) = bounds else { continue };
                    for index in (from..to).filter_map(|at| indices.at(at as usize)) {
                        let line = line as u64;
                        list.extend(if *axis == 0 { [line, index] } else { [index, line] });
                    }
                }
                list
            }
        }
    }

    /// Checks the rank against that of an array.
    fn check_rank(&self, dims: &[u64]) -> Result<(), SpaceError> {
        same_rank(dims.len(), self.rank())?;
        match &self.0 {
            Form::Compressed { axis, pointers, .. } => {
                let lines = pointers.len() as u64 - 1;
                if lines > dims[*axis] {
                    let coord: Dims = dims.iter().map(|_| lines - 1).collect();
                    return Err(outside(&coord, dims));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

fn outside(coord: &[u64], dims: &[u64]) -> SpaceError {
    let axis = coord.iter().zip(dims).position(|(at, size)| at >= size).unwrap_or(0);
    SpaceError::OutOfBounds {
        axis,
        coordinate: coord.get(axis).copied().unwrap_or(0),
        size: dims.get(axis).copied().unwrap_or(0),
    }
}
