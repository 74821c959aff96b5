//! Facts about a dataset for its filters.

use crate::FilterError;
use pumice_types::Datatype;

/// A new dataset, as far as its filters' parameters depend on it (libhdf5: "set local").
///
/// ```
/// use pumice_filter::{DatasetFacts, FilterSpec};
/// use pumice_types::Datatype;
///
/// let datatype = Datatype::f64_le();
/// let chunk = [20, 50];
/// let facts = DatasetFacts {
///     datatype: &datatype, chunk: &chunk, fill: None, sparse: false, length_width: 8,
/// };
/// let lzf = FilterSpec::lzf().for_dataset(&facts)?;
/// assert_eq!(lzf.parameters[2], 20 * 50 * 8, "lzf stores the chunk's bytes");
/// # Ok::<(), pumice_filter::FilterError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct DatasetFacts<'a> {
    /// The type of its elements in the file.
    pub datatype: &'a Datatype,
    /// The shape of a chunk.
    pub chunk: &'a [u64],
    /// The fill value as one element of the file's type; `None` if it is undefined.
    pub fill: Option<&'a [u8]>,
    /// Whether chunks hold only some of their cells, so that the number of elements varies.
    pub sparse: bool,
    /// Bytes of a length in the file.
    pub length_width: u8,
}

impl DatasetFacts<'_> {
    /// Cells of a chunk; saturates.
    pub fn cells(&self) -> u64 {
        self.chunk.iter().copied().fold(1, u64::saturating_mul)
    }

    /// The number of elements that the filter always gets, 0 if it varies; `None` if a parameter
    /// cannot hold it.
    pub(crate) fn count(&self) -> Option<u32> {
        if self.sparse { Some(0) } else { u32::try_from(self.cells()).ok() }
    }

    /// Bytes of a chunk, as far as a parameter can hold them.
    pub(crate) fn chunk_bytes(&self) -> u32 {
        let bytes = self.cells().saturating_mul(self.datatype.size() as u64);
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }

    /// Bytes of an element, as far as a parameter can hold them.
    pub(crate) fn element_size(&self) -> u32 {
        u32::try_from(self.datatype.size()).unwrap_or(u32::MAX)
    }
}

/// Appends the number of elements, for a decoder whose parameters do not have it.
pub(crate) fn put_count(out: &mut Vec<u8>, count: usize) {
    out.extend_from_slice(&(count as u64).to_le_bytes());
}

/// Takes the number of elements off the end of `input`.
pub(crate) fn take_count<'a>(
    filter: &'static str,
    input: &'a [u8],
) -> Result<(&'a [u8], usize), FilterError> {
    let Some((rest, count)) = input.split_last_chunk::<8>() else {
        return Err(FilterError::corrupt(filter, "a number of elements", input.len()));
    };
    let count = u64::from_le_bytes(*count);
    match usize::try_from(count) {
        Ok(count) => Ok((rest, count)),
        Err(_) => Err(FilterError::corrupt(filter, "fewer elements", count)),
    }
}
