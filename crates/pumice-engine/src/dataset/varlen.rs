//! Reading elements with variable-length parts: the elements, then what they refer to.

use super::DatasetState;
use crate::buffer::Output;
use crate::{Error, Result};
use pumice_space::Selection;
use pumice_types::Heaped;

impl DatasetState {
    /// Reads the selected cells with everything that they refer to, in the file's type and in
    /// row-major order of the selection (points: in their order).
    pub fn read_heaped(&self, selection: &Selection) -> Result<Heaped> {
        let dims = self.dims();
        selection.check(&dims)?;
        let count = if self.null { 0 } else { selection.count(&dims) };
        let size = usize::try_from(count).ok().and_then(|n| n.checked_mul(self.datatype.size()));
        let mut elements = Vec::new();
        let reserved = size.filter(|&size| elements.try_reserve_exact(size).is_ok());
        let size =
            reserved.ok_or_else(|| Error::Invalid(format!("no memory for {count} cells")))?;
        elements.resize(size, 0);
        self.read(selection, &self.datatype, Output::zeroed(&mut elements))?;
        if !self.datatype.has_varlen() {
            return Ok(Heaped { elements, heap: Vec::new() });
        }
        self.heap.load(&self.datatype, elements)
    }
}
