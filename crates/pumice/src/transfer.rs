//! How elements get between file and memory, besides which ones.

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
    /// Elements one after another, as they are, checksums verified.
    pub fn new() -> Self {
        Self::default()
    }

    /// Computes every element by an expression such as `(5.0/9)*(x-32)`: after a read, before a
    /// write; see [`Transform`](crate::types::Transform) for the rules.
    pub fn transform(mut self, expression: &str) -> Result<Self> {
        let transform: Transform = expression.parse()?;
        self.0.transform = (!transform.is_noop()).then_some(transform);
        Ok(self)
    }

    /// Places elements at the selected cells of a buffer of `shape`, or takes them from there, in
    /// row-major order. Other elements of the buffer stay as they are.
    pub fn memory(mut self, places: Selection, shape: impl Into<Vec<u64>>) -> Self {
        self.0.memory = Some((places, shape.into()));
        self
    }

    /// Whether checksums (Fletcher-32) of dense chunks are compared, as they are by default. Data
    /// that were read without stay out of the chunk cache.
    pub fn verify(mut self, verify: bool) -> Self {
        self.0.unverified = !verify;
        self
    }
}
