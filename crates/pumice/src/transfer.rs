//! Options for moving elements between file and memory.

use pumice_engine::Result;
use pumice_engine::dataset::TransferOptions;
use pumice_space::Selection;
use pumice_types::Transform;

/// Options of one read or write: HDF5's dataset transfer properties.
///
/// ```
/// use pumice::{File, Selection, Transfer};
///
/// let file = File::in_memory()?;
/// let dataset = file.new_dataset::<i16>().shape([4]).create("fahrenheit")?;
/// dataset.write(.., &[32i16, 212, 50, -40])?;
///
/// // Arithmetic on every element, in the type it has in memory.
/// let celsius = Transfer::new().transform("(5.0/9)*(x-32)")?;
/// assert_eq!(dataset.read_with::<f64>(.., &celsius)?, [0.0, 100.0, 10.0, -40.0]);
///
/// // Into every other place of a buffer.
/// let places = Selection::hyperslab(&[0], &[2], &[4], &[1])?;
/// let mut buffer = [7i32; 8];
/// dataset.read_into_with(.., &mut buffer, &Transfer::new().memory(places, [8]))?;
/// assert_eq!(buffer, [32, 7, 212, 7, 50, 7, -40, 7]);
/// # Ok::<(), pumice::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Transfer(pub(crate) TransferOptions);

impl Transfer {
    /// Elements one after another, without a transform, checksums verified.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether elements are transferred without a transform, one after another.
    pub(crate) fn is_simple(&self) -> bool {
        self.0.transform.is_none() && self.0.memory.is_none()
    }

    /// Computes every element by an expression such as `(5.0/9)*(x-32)`: after a read, before a
    /// write; see [`Transform`](crate::types::Transform) for the rules.
    pub fn transform(mut self, expression: &str) -> Result<Self> {
        let transform: Transform = expression.parse()?;
        self.0.transform = (!transform.is_noop()).then_some(transform);
        Ok(self)
    }

    /// Places elements at the selected cells of a buffer of `shape`, or takes them from there, in
    /// row-major order. Other elements of the buffer keep their values.
    pub fn memory(mut self, places: Selection, shape: impl Into<Vec<u64>>) -> Self {
        self.0.memory = Some((places, shape.into()));
        self
    }

    /// Sets whether the checksums of filters (Fletcher-32) are compared, as they are by default:
    /// HDF5's `H5Pset_edc_check`. It concerns dense chunks and the values of sparse chunks. Data
    /// that are read without it stay out of the chunk cache.
    ///
    /// Structured chunks also have checksums of their own, as all metadata of a file: behind the
    /// locations of a sparse chunk, and behind each section of variable-length data. These are
    /// always compared: if one does not match, it is unknown which cells the values belong to, or
    /// which text to which cell.
    ///
    /// ```
    /// use pumice::{File, Transfer};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("damaged.h5");
    /// let file = File::create(&path)?;
    /// let builder = file.new_dataset::<u16>().shape([9]).sparse().no_filters().fletcher32();
    /// builder.create("d")?.write(4..6, &[0xABCD_u16, 0x1234])?;
    /// file.close()?;
    ///
    /// // A bit of a value falls over.
    /// let mut bytes = std::fs::read(&path).unwrap();
    /// let at = bytes.windows(2).position(|two| two == [0xCD, 0xAB]).unwrap();
    /// bytes[at] ^= 1;
    ///
    /// let damaged = File::options().open_bytes(bytes)?.dataset("d")?;
    /// assert!(damaged.read::<u16>(..).is_err());
    /// let found = damaged.read_with::<u16>(.., &Transfer::new().verify(false))?;
    /// assert_eq!(found[4..6], [0xABCC, 0x1234]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn verify(mut self, verify: bool) -> Self {
        self.0.unverified = !verify;
        self
    }

    /// Sets whether values are stored before the call returns. Chunks stay in memory, as far as
    /// there is room. Other programs find them after the next flush of the file. For all writes of
    /// a dataset: [`CacheOptions::write_through`](crate::CacheOptions::write_through).
    ///
    /// ```
    /// use pumice::{File, Transfer};
    ///
    /// let file = File::in_memory()?;
    /// let dataset = file.new_dataset::<u16>().shape([8]).chunk([4]).create("d")?;
    /// dataset.write_with(.., &[7u16; 8], &Transfer::new().write_through(true))?;
    /// assert_eq!(dataset.cache_stats().write_backs, 2);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn write_through(mut self, write_through: bool) -> Self {
        self.0.write_through = write_through;
        self
    }

    /// Sets how many bytes of elements are converted at a time through a buffer: HDF5's
    /// `H5Pset_buffer`. 1 MiB unless set; one element at least. Elements of chunks need no buffer:
    /// they are converted on their way between chunk and memory.
    ///
    /// ```
    /// use pumice::{File, Transfer};
    ///
    /// let file = File::in_memory()?;
    /// let dataset = file.new_dataset::<i16>().shape([1000]).create("d")?;
    /// dataset.write_with(.., &[7i64; 1000], &Transfer::new().buffer(64))?;
    /// assert_eq!(dataset.read_with::<f32>(.., &Transfer::new().buffer(100))?, [7.0; 1000]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn buffer(mut self, bytes: u64) -> Self {
        self.0.piece = Some(bytes);
        self
    }
}
