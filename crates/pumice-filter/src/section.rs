//! The defined cells of a sparse chunk (section 0) through a pipeline.

use crate::{FilterError, Pipeline};
use pumice_space::{CellSet, Dims};

/// A stored section and what the chunk's index records of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedCells {
    /// The section as it is stored.
    pub bytes: Vec<u8>,
    /// Its length before filters, checksum included.
    pub unfiltered: u64,
    /// Which filters were skipped.
    pub mask: u32,
}

impl Pipeline {
    /// Encodes the defined cells of a chunk of shape `dims` as section 0, with its checksum, and
    /// filters it. If the location filter comes first, the plain form is not even made.
    pub fn encode_cells(&self, dims: &[u64], cells: &CellSet) -> Result<EncodedCells, FilterError> {
        let _ = (dims, cells);
        todo!()
    }

    /// Undoes [`encode_cells`](Self::encode_cells): `unfiltered` is the section's length before
    /// filters as the index has it, and a chunk of more than `most_cells` cells is refused.
    pub fn decode_cells(
        &self,
        input: &[u8],
        mask: u32,
        unfiltered: u64,
        most_cells: u64,
    ) -> Result<(Dims, CellSet), FilterError> {
        let _ = (input, mask, unfiltered, most_cells);
        todo!()
    }
}
