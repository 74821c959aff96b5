//! Prefetching, and announcing reads: the cache loads chunks ahead or keeps them longer.
//!
//! Only chunks that the cache keeps can be loaded ahead. Contiguous, compact and external data go
//! past the cache; a virtual dataset passes the request to its sources.

use super::DatasetState;
use crate::{Error, Result};
use pumice_cache::MOST_EXPECTED;
use pumice_layout::Storage;
use pumice_space::{Dims, Selection};

impl DatasetState {
    /// Announces which cells will be read, in this order. Returns `false` if that is of no use,
    /// because the chunks are never kept.
    pub fn will_read(&self, selections: &[Selection]) -> Result<bool> {
        if let Some(sources) = &self.sources {
            return sources.will_read(&self.layout.geometry, selections);
        }
        let _no_resize = self.gate();
        let mut chunks = Vec::new();
        for selection in selections {
            self.kept_chunks(selection, &mut chunks)?;
        }
        Ok(self.cache().will_read(&self.cached, chunks))
    }

    /// Begins to load the chunks of the selected cells; returns whether anything was begun.
    pub fn prefetch(&self, selection: &Selection) -> Result<bool> {
        if let Some(sources) = &self.sources {
            return sources.prefetch(&self.layout.geometry, selection);
        }
        let _no_resize = self.gate();
        let mut chunks = Vec::new();
        self.kept_chunks(selection, &mut chunks)?;
        Ok(!chunks.is_empty() && self.cache().prefetch(&self.cached, chunks))
    }

    /// Adds the chunks of the selected cells that the cache may keep, at most as many as it would
    /// remember. Of a vast selection, adds the stored ones.
    fn kept_chunks(&self, selection: &Selection, chunks: &mut Vec<Dims>) -> Result<()> {
        let dims = self.dims();
        selection.check(&dims)?;
        if let Storage::Unreadable(reason) = &self.layout.storage {
            return Err(Error::Unsupported(reason.clone()));
        }
        if self.layout.table().is_none() {
            return Ok(());
        }
        let grid = self.grid(&dims)?;
        let mut touched = self.touched(selection, &grid)?;
        while chunks.len() < MOST_EXPECTED
            && let Some(some) = touched.next()?
        {
            chunks.extend(some.into_iter().map(|(chunk, _)| chunk));
        }
        Ok(())
    }
}
