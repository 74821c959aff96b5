//! What will be read: chunks that are loaded ahead, or kept rather than others.
//!
//! Only what the cache keeps can be loaded ahead. Contiguous, compact and external data go past it; those of a virtual
//! dataset are its sources'.

use super::DatasetState;
use crate::layout::Storage;
use crate::{Error, Result};
use pumice_space::{Dims, Selection};

impl DatasetState {
    /// Says which cells will be read, in this order. Answers whether that is of any use: not if what is read is
    /// never kept.
    pub fn will_read(&self, selections: &[Selection]) -> Result<bool> {
        if let Storage::Virtual(sources) = &self.layout.storage {
            return sources.will_read(&self.layout.geometry, selections);
        }
        let _no_resize = self.gate();
        let dims = self.dims();
        let mut chunks = Vec::new();
        for selection in selections {
            chunks.extend(self.kept_chunks(selection, &dims)?);
        }
        Ok(self.cache().will_read(&self.cached, chunks))
    }

    /// Loads the chunks of the selected cells; says whether that has begun.
    pub fn prefetch(&self, selection: &Selection) -> Result<bool> {
        if let Storage::Virtual(sources) = &self.layout.storage {
            return sources.prefetch(&self.layout.geometry, selection);
        }
        let _no_resize = self.gate();
        let chunks = self.kept_chunks(selection, &self.dims())?;
        Ok(!chunks.is_empty() && self.cache().prefetch(&self.cached, chunks))
    }

    /// The chunks of the selected cells that the cache may get; of a vast selection, those that are stored.
    fn kept_chunks(&self, selection: &Selection, dims: &Dims) -> Result<Vec<Dims>> {
        selection.check(dims)?;
        if let Storage::Unreadable(reason) = &self.layout.storage {
            return Err(Error::Unsupported(reason.clone()));
        }
        if self.layout.table().is_none() {
            return Ok(Vec::new());
        }
        Ok(self.touched(selection, dims)?.into_iter().map(|(chunk, _)| chunk).collect())
    }
}
