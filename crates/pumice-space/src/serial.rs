//! Extents and selections as HDF5 writes them.
use crate::{CellSet, Dims, Extent, Selection, SpaceError};
use pumice_bytes::{Budget, DecodeError, Reader};

/// Which hyperslab encoding to write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HyperslabVersion {
    /// The shortest; the lower version on a tie.
    #[default]
    Smallest,
    /// Version 1: 32-bit corner pairs.
    V1,
    /// Version 2: regular, 64 bits.
    V2,
    /// Version 3: regular or corner pairs, 16, 32 or 64 bits.
    V3,
}

/// Writes a dataspace message of `version` 1 or 2 with sizes of `length_size` bytes.
pub fn encode_extent(
    _extent: &Extent,
    _version: u8,
    _length_size: usize,
    _out: &mut Vec<u8>,
) -> Result<(), SpaceError> {
    todo!()
}

/// Reads a dataspace message of version 1 or 2.
pub fn decode_extent(_reader: &mut Reader<'_>, _length_size: usize) -> Result<Extent, DecodeError> {
    todo!()
}

/// Writes a selection of an array of shape `dims` in the shortest form.
pub fn encode_selection(
    _selection: &Selection,
    _dims: &[u64],
    _out: &mut Vec<u8>,
) -> Result<(), SpaceError> {
    todo!()
}

/// Writes a selection in a form of the caller's choice.
pub fn encode_selection_with(
    _selection: &Selection,
    _dims: &[u64],
    _version: HyperslabVersion,
    _out: &mut Vec<u8>,
) -> Result<(), SpaceError> {
    todo!()
}

/// Reads a selection of `rank` dimensions, any version.
pub fn decode_selection(_reader: &mut Reader<'_>, _rank: usize) -> Result<Selection, DecodeError> {
    todo!()
}

/// Writes extent and selection as section 0 of a structured chunk has them.
pub fn encode_dataspace(
    _chunk_dims: &[u64],
    _selection: &Selection,
    _out: &mut Vec<u8>,
) -> Result<(), SpaceError> {
    todo!()
}

/// [`encode_dataspace`] in a form of the caller's choice.
pub fn encode_dataspace_with(
    _chunk_dims: &[u64],
    _selection: &Selection,
    _version: HyperslabVersion,
    _out: &mut Vec<u8>,
) -> Result<(), SpaceError> {
    todo!()
}

/// Reads extent and selection of a section 0; the selection lies inside the extent.
pub fn decode_dataspace(_reader: &mut Reader<'_>) -> Result<(Extent, Selection), DecodeError> {
    todo!()
}

/// [`encode_dataspace`] straight from a cell set: the same bytes, without building a selection.
pub fn encode_cells(
    _chunk_dims: &[u64],
    _cells: &CellSet,
    _out: &mut Vec<u8>,
) -> Result<(), SpaceError> {
    todo!()
}

/// [`encode_cells`] in a form of the caller's choice.
pub fn encode_cells_with(
    _chunk_dims: &[u64],
    _cells: &CellSet,
    _version: HyperslabVersion,
    _out: &mut Vec<u8>,
) -> Result<(), SpaceError> {
    todo!()
}

/// Reads a section 0 straight into a cell set; what it allocates is taken from `budget`.
pub fn decode_cells(
    _reader: &mut Reader<'_>,
    _budget: &mut Budget,
) -> Result<(Dims, CellSet), DecodeError> {
    todo!()
}
