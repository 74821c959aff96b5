//! The shape of an index: the chunks that a dataset can have, and their slots in an array.
//!
//! Slots run row-major over the chunk counts of the maximum extent. An unlimited axis counts as the
//! slowest, wherever it stands, so that growing along it never moves a slot.

use pumice_format::index::Coord;
use pumice_medium::{Error, Result};
use smallvec::SmallVec;

/// The kinds of chunk index, with the numbers of layout messages from version 4 on.
///
/// ```
/// assert_eq!(pumice_structures::index::IndexKind::FixedArray as u8, 3);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum IndexKind {
    /// Records in order, before version 4 of the layout message.
    BTree1 = 0,
    /// One chunk, described by the layout message.
    Single = 1,
    /// All chunks, one after another.
    Implicit = 2,
    /// An entry for every chunk of a limited extent.
    FixedArray = 3,
    /// Entries along one unlimited axis.
    ExtensibleArray = 4,
    /// Records in order, for several unlimited axes.
    BTree2 = 5,
}

/// The kind of index for these dimensions, in cells.
pub(super) fn choose(current: &[u64], maximum: &[u64], chunk: &[u64]) -> IndexKind {
    let unlimited = maximum.iter().filter(|&&dim| dim == u64::MAX).count();
    match unlimited {
        0 if current == maximum && current == chunk => IndexKind::Single,
        0 => IndexKind::FixedArray,
        1 => IndexKind::ExtensibleArray,
        _ => IndexKind::BTree2,
    }
}

/// The number of chunks along each axis, now and at most.
///
/// ```
/// use pumice_structures::index::IndexShape;
/// let shape = IndexShape::new(&[95, 40], &[u64::MAX, 45], &[10, 10])?;
/// assert_eq!(shape.current(), [10, 4]);
/// assert_eq!(shape.maximum(), [None, Some(5)]);
/// # Ok::<(), pumice_medium::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexShape {
    current: Coord,
    maximum: SmallVec<[Option<u64>; 4]>,
    chunk: Coord,
}

impl IndexShape {
    /// The shape of a dataset of these dimensions, in cells; `u64::MAX` is unlimited.
    pub fn new(current: &[u64], maximum: &[u64], chunk: &[u64]) -> Result<Self> {
        if current.len() != chunk.len() || maximum.len() != chunk.len() || chunk.contains(&0) {
            return Err(Error::Damaged(format!(
                "chunks of {chunk:?} for an extent of {current:?}, at most {maximum:?}"
            )));
        }
        let count = |(&dim, &chunk): (&u64, &u64)| dim.div_ceil(chunk);
        let limit = |(&dim, &chunk): (&u64, &u64)| (dim != u64::MAX).then(|| dim.div_ceil(chunk));
        Ok(Self {
            current: current.iter().zip(chunk).map(count).collect(),
            maximum: maximum.iter().zip(chunk).map(limit).collect(),
            chunk: Coord::from_slice(chunk),
        })
    }

    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.maximum.len()
    }

    /// Chunks along each axis of the present extent.
    pub fn current(&self) -> &[u64] {
        &self.current
    }

    /// Chunks along each axis of the maximum extent; `None` is unlimited.
    pub fn maximum(&self) -> &[Option<u64>] {
        &self.maximum
    }

    /// Cells along each axis of a chunk.
    pub fn chunk(&self) -> &[u64] {
        &self.chunk
    }

    pub(super) fn resize(&mut self, current: &[u64]) {
        self.current = Coord::from_slice(current);
    }
}

/// Maps coordinates to slots and back.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    /// Axes, slowest first: the unlimited one, if any, then the others in their order.
    order: SmallVec<[usize; 4]>,
    /// For each axis, the slots of one step.
    strides: Coord,
    maximum: SmallVec<[Option<u64>; 4]>,
    /// The number of slots; `None` with an unlimited axis.
    count: Option<u64>,
}

impl Slots {
    /// The slots of a shape with at most one unlimited axis.
    pub(super) fn new(shape: &IndexShape) -> Result<Self> {
        let maximum = shape.maximum.clone();
        let (first, rest): (SmallVec<[usize; 4]>, SmallVec<[usize; 4]>) =
            (0..maximum.len()).partition(|&axis| maximum[axis].is_none());
        if first.len() > 1 {
            return Err(Error::Damaged("an array index with several unlimited axes".into()));
        }
        let mut strides: Coord = smallvec::smallvec![1; maximum.len()];
        let mut stride = 1u64;
        for &axis in rest.iter().rev() {
            strides[axis] = stride;
            let next = stride.checked_mul(maximum[axis].unwrap_or(1));
            stride = next
                .ok_or_else(|| Error::Invalid(format!("an array index of {maximum:?} chunks")))?;
        }
        let count = first.is_empty().then_some(stride);
        if let Some(&axis) = first.first() {
            strides[axis] = stride;
        }
        let order = first.into_iter().chain(rest).collect();
        Ok(Self { order, strides, maximum, count })
    }

    /// The number of slots; `None` with an unlimited axis.
    pub(super) fn count(&self) -> Option<u64> {
        self.count
    }

    /// The slot of a chunk; `None` outside of the maximum extent.
    pub(super) fn slot(&self, coord: &[u64]) -> Option<u64> {
        let mut slot = 0u64;
        for ((&index, limit), &stride) in coord.iter().zip(&self.maximum).zip(&self.strides) {
            if limit.is_some_and(|limit| index >= limit) {
                return None;
            }
            slot = slot.checked_add(index.checked_mul(stride)?)?;
        }
        Some(slot)
    }

    /// The first slot behind that of a chunk, or of all; behind all if the chunk has none.
    pub(super) fn behind(&self, chunk: Option<&[u64]>) -> u64 {
        chunk.map_or(0, |chunk| self.slot(chunk).map_or(u64::MAX, |slot| slot.saturating_add(1)))
    }

    /// The slot of a chunk that is to be stored.
    pub(super) fn slot_to_set(&self, coord: &[u64]) -> Result<u64> {
        self.slot(coord).ok_or_else(|| outside(coord))
    }

    /// The chunk of a slot; `None` if there is none.
    pub(super) fn coord(&self, mut slot: u64) -> Option<Coord> {
        let mut coord: Coord = smallvec::smallvec![0; self.order.len()];
        for &axis in &self.order {
            coord[axis] = slot.checked_div(self.strides[axis])?;
            if self.maximum[axis].is_some_and(|limit| coord[axis] >= limit) {
                return None;
            }
            slot %= self.strides[axis];
        }
        Some(coord)
    }
}

/// The error for a chunk outside of the maximum extent.
pub(super) fn outside(coord: &[u64]) -> Error {
    Error::OutOfBounds(format!("chunk {coord:?} is outside of the maximum extent"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_follows_from_the_unlimited_axes() {
        let no = u64::MAX;
        assert_eq!(choose(&[10, 4], &[10, 4], &[10, 4]), IndexKind::Single);
        assert_eq!(choose(&[10, 4], &[11, 4], &[10, 4]), IndexKind::FixedArray);
        assert_eq!(choose(&[10, 4], &[10, 4], &[5, 4]), IndexKind::FixedArray);
        assert_eq!(choose(&[10, 4], &[10, no], &[10, 4]), IndexKind::ExtensibleArray);
        assert_eq!(choose(&[10, 4], &[no, no], &[10, 4]), IndexKind::BTree2);
    }

    #[test]
    fn an_unlimited_axis_is_the_slowest_wherever_it_stands() {
        let shape = IndexShape::new(&[8, 8, 6], &[8, u64::MAX, 6], &[2, 2, 2]).unwrap();
        let slots = Slots::new(&shape).unwrap();
        assert_eq!(slots.slot(&[3, 0, 2]), Some(11));
        assert_eq!(slots.slot(&[0, 1, 0]), Some(12));
        assert_eq!(slots.slot(&[4, 0, 0]), None);
        for slot in 0..100 {
            assert_eq!(slots.slot(&slots.coord(slot).unwrap()), Some(slot));
        }
    }

    #[test]
    fn impossible_shapes_are_refused() {
        assert!(IndexShape::new(&[1], &[1], &[0]).is_err());
        assert!(IndexShape::new(&[1, 2], &[1], &[1]).is_err());
        let shape = IndexShape::new(&[1, 1], &[1 << 40, 1 << 40], &[1, 1]).unwrap();
        assert!(Slots::new(&shape).is_err());
        let empty = IndexShape::new(&[0, 0], &[u64::MAX, 0], &[1, 1]).unwrap();
        let slots = Slots::new(&empty).unwrap();
        assert_eq!((slots.slot(&[0, 0]), slots.coord(0)), (None, None));
    }
}
