//! The number of chunks that an index can address. An extensible array numbers chunks with 32 bits,
//! as in libhdf5, while the extent may be larger. A write beyond that is refused before it reaches
//! the cache, which could not store it later. So is any change of a dataset whose index cannot be
//! changed.

use super::DatasetState;
use crate::{Error, Result};
use pumice_format::messages::{ChunkIndexInfo, Layout};
use pumice_space::{Dims, Points, Selection, UNLIMITED};

/// The numbers of chunks that an index has.
struct Reach {
    bits: u8,
    chunk: Dims,
    /// For each axis, how much the number of a chunk grows with one step.
    strides: Dims,
}

impl Reach {
    /// Fails if the chunk of a cell has no number.
    fn check(&self, cell: &[u64]) -> Result<()> {
        let axes = cell.iter().zip(&self.chunk).zip(&self.strides);
        let number = axes.fold(0u64, |number, ((&at, &side), &stride)| {
            number.saturating_add((at / side.max(1)).saturating_mul(stride))
        });
        if number >> self.bits == 0 {
            return Ok(());
        }
        Err(Error::Invalid(format!(
            "cell {cell:?} is in chunk number {number}, and the dataset's index has 2^{} chunks; make it with \
             chunks larger than {:?}",
            self.bits,
            self.chunk.as_slice()
        )))
    }
}

impl DatasetState {
    /// Fails if the index cannot be changed.
    pub(super) fn check_index(&self) -> Result<()> {
        if self.medium.writes_swmr() && self.uses_global_heap() {
            self.medium.refuse_in_swmr("no value of variable length can be written")?;
        }
        self.layout.table().map_or(Ok(()), |table| table.check_changeable())
    }

    /// Fails if a selected cell is in a chunk that the index cannot address.
    pub(super) fn check_reach(&self, selection: &Selection, dims: &Dims) -> Result<()> {
        self.check_index()?;
        let Some(reach) = self.short_reach(dims) else { return Ok(()) };
        if let Some((rank, points)) = selection.as_points() {
            return points.chunks_exact(rank.max(1)).try_for_each(|cell| reach.check(cell));
        }
        selection.bounds(dims).map_or(Ok(()), |(_, last)| reach.check(&last))
    }

    /// Fails if a point is in a chunk that the index cannot address.
    pub(super) fn check_reach_of_points(&self, points: &Points<'_>, dims: &Dims) -> Result<()> {
        self.check_index()?;
        let Some(reach) = self.short_reach(dims) else { return Ok(()) };
        points.to_list().chunks_exact(points.rank().max(1)).try_for_each(|cell| reach.check(cell))
    }

    /// The reach of the index, unless that is the whole extent, as mostly.
    fn short_reach(&self, dims: &Dims) -> Option<Reach> {
        let (Layout::Chunked { index, .. } | Layout::Structured { index, .. }) = &self.message
        else {
            return None;
        };
        let ChunkIndexInfo::ExtensibleArray { max_bits: bits, .. } = *index else { return None };
        let (chunk, max) = (self.layout.geometry.chunk(), self.layout.geometry.max_dims());
        let (mut strides, mut stride) = (Dims::from_elem(1, dims.len()), 1u64);
        for axis in (0..dims.len()).rev().filter(|&axis| max[axis] != UNLIMITED) {
            strides[axis] = stride;
            stride = stride.saturating_mul(max[axis].div_ceil(chunk[axis].max(1)));
        }
        let unlimited = max.iter().position(|&most| most == UNLIMITED)?;
        strides[unlimited] = stride;
        let reach = Reach { bits: bits.min(63), chunk: Dims::from_slice(chunk), strides };
        let last: Dims = dims.iter().map(|&length| length.saturating_sub(1)).collect();
        reach.check(&last).is_err().then_some(reach)
    }
}
