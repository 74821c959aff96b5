//! The shape of an array: HDF5's dataspace extent (null, scalar or simple with optional maximum).
//!
//! Invariants: rank is at most 32; a maximum has the rank of the sizes and is nowhere below them.

use crate::{Dims, MAX_RANK, SpaceError};

/// The shape of an array, and how far it may grow.
///
/// ```
/// use pumice_space::{Extent, UNLIMITED};
///
/// let extent = Extent::with_max(&[10, 20], &[UNLIMITED, 20])?;
/// assert_eq!(extent.rank(), 2);
/// assert_eq!(extent.cells(), Some(200));
/// # Ok::<(), pumice_space::SpaceError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Extent {
    /// No cells at all.
    Null,
    /// One cell without coordinates.
    Scalar,
    /// An array.
    Simple {
        /// Sizes, slowest dimension first.
        dims: Dims,
        /// The sizes it may grow to; `None` means that it is fixed.
        max: Option<Dims>,
    },
}

impl Extent {
    /// An array of fixed size. Rank zero gives a scalar.
    pub fn simple(dims: &[u64]) -> Result<Self, SpaceError> {
        check_rank(dims.len())?;
        if dims.is_empty() {
            return Ok(Self::Scalar);
        }
        Ok(Self::Simple { dims: dims.into(), max: None })
    }

    /// An array that may grow up to `max` ([`UNLIMITED`](crate::UNLIMITED) where there is no bound).
    pub fn with_max(dims: &[u64], max: &[u64]) -> Result<Self, SpaceError> {
        check_rank(dims.len())?;
        same_rank(dims.len(), max.len())?;
        if let Some(axis) = dims.iter().zip(max).position(|(size, max)| size > max) {
            return Err(SpaceError::InvalidShape { axis, reason: "maximum below the size" });
        }
        if dims.is_empty() {
            return Ok(Self::Scalar);
        }
        Ok(Self::Simple { dims: dims.into(), max: Some(max.into()) })
    }

    /// Number of dimensions; zero for null and scalar.
    pub fn rank(&self) -> usize {
        self.dims().len()
    }

    /// Sizes, slowest dimension first; empty for null and scalar.
    pub fn dims(&self) -> &[u64] {
        match self {
            Self::Simple { dims, .. } => dims,
            _ => &[],
        }
    }

    /// The sizes it may grow to: `max`, or the sizes themselves where no maximum is set.
    pub fn max_dims(&self) -> &[u64] {
        match self {
            Self::Simple { max: Some(max), .. } => max,
            _ => self.dims(),
        }
    }

    /// Number of cells, or `None` beyond 64 bits.
    pub fn cells(&self) -> Option<u64> {
        match self {
            Self::Null => Some(0),
            _ => product(self.dims()),
        }
    }

    /// Whether it is [`Extent::Null`].
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }
}

/// The product of sizes, or `None` beyond 64 bits. A zero anywhere wins over any overflow.
pub(crate) fn product(dims: &[u64]) -> Option<u64> {
    if dims.contains(&0) {
        return Some(0);
    }
    dims.iter().try_fold(1u64, |cells, &size| cells.checked_mul(size))
}

pub(crate) fn check_rank(rank: usize) -> Result<(), SpaceError> {
    if rank > MAX_RANK { Err(SpaceError::RankTooLarge(rank)) } else { Ok(()) }
}

pub(crate) fn same_rank(expected: usize, found: usize) -> Result<(), SpaceError> {
    if expected == found { Ok(()) } else { Err(SpaceError::RankMismatch { expected, found }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UNLIMITED;

    #[test]
    fn maximum_sizes_are_not_below_the_sizes() {
        assert!(Extent::with_max(&[3], &[2]).is_err());
        assert!(Extent::with_max(&[3], &[3, 3]).is_err());
        assert_eq!(Extent::with_max(&[3], &[UNLIMITED]).unwrap().max_dims(), [UNLIMITED]);
        assert_eq!(Extent::simple(&[3]).unwrap().max_dims(), [3]);
    }

    #[test]
    fn cells_are_counted_without_overflow() {
        assert_eq!(Extent::Null.cells(), Some(0));
        assert_eq!(Extent::Scalar.cells(), Some(1));
        assert_eq!(Extent::simple(&[]).unwrap(), Extent::Scalar);
        assert_eq!(Extent::simple(&[1 << 40, 1 << 40]).unwrap().cells(), None);
        assert_eq!(Extent::simple(&[1 << 40, 1 << 40, 0]).unwrap().cells(), Some(0));
        assert!(Extent::simple(&[1; 33]).is_err());
    }
}
