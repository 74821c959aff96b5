//! The location filter: which cells of a sparse chunk are defined, as gaps and run lengths.
//!
//! Its plain side is section 0 of a structured chunk: the H5Sencode form of the chunk's extent and
//! selection with the checksum at its end. Its encoded side is described byte by byte in
//! `docs/format/location-filter.md`.

use crate::{Filter, FilterError};
use pumice_space::{CellSet, Dims};

/// The filter's id, in the range that HDF5 leaves to private use.
pub const ID: u16 = 302;

/// The filter's name in files and errors.
pub const NAME: &str = "pumice-location";

/// Encodes the set of defined cells of a chunk of shape `dims`: the bytes that the filter makes of
/// the section's plain form, without making the plain form. Returns the length of the plain form,
/// checksum included.
pub fn encode_cells(dims: &[u64], cells: &CellSet, out: &mut Vec<u8>) -> Result<u64, FilterError> {
    let _ = (dims, cells, out);
    todo!()
}

/// Decodes the filter's output straight into a set of cells. `None` if the plain form was carried
/// verbatim: then [`Filter::decode`] gives it. A chunk of more than `most_cells` cells is refused.
pub fn decode_cells(input: &[u8], most_cells: u64) -> Result<Option<(Dims, CellSet)>, FilterError> {
    let _ = (input, most_cells);
    todo!()
}

pub(crate) struct Location;

impl Filter for Location {
    fn id(&self) -> u16 {
        ID
    }

    fn name(&self) -> &'static str {
        NAME
    }

    fn encode(
        &self,
        _parameters: &[u32],
        _input: &[u8],
        _out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        todo!()
    }

    fn decode(
        &self,
        _parameters: &[u32],
        _input: &[u8],
        _limit: usize,
        _out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        todo!()
    }

    fn encoded_bound(&self, len: usize) -> usize {
        len.saturating_add(1)
    }

    fn must_shrink(&self) -> bool {
        true
    }
}
