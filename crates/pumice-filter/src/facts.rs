//! What a filter may want to know of the dataset it is going to serve.

use pumice_types::Datatype;

/// A new dataset, as far as its filters' parameters depend on it (libhdf5: "set local").
///
/// ```
/// use pumice_filter::{DatasetFacts, FilterSpec};
/// use pumice_types::Datatype;
///
/// let datatype = Datatype::f64_le();
/// let facts = DatasetFacts { datatype: &datatype, chunk: &[20, 50], fill: Some(&[0; 8]) };
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
    /// One element in the file's type that unwritten cells have; nothing if that is undefined.
    pub fill: Option<&'a [u8]>,
}

impl DatasetFacts<'_> {
    /// Cells of a chunk; saturates.
    pub fn cells(&self) -> u64 {
        self.chunk.iter().copied().fold(1, u64::saturating_mul)
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
