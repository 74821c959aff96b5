//! Changing the extent of a dataset.
//!
//! Growing changes no chunk. Shrinking deletes chunks that lie outside as a whole, and erases the
//! outside cells of chunks that the new edge cuts, whether they are in the cache or only stored:
//! cells that come back later must not have old values.

use super::DatasetState;
use crate::layout::{DatasetLayout, Storage, WriteRequest};
use crate::{Error, Result};
use pumice_cache::Exclusive;
use pumice_space::{Dims, Extent, UNLIMITED};
use std::collections::BTreeSet;

impl DatasetState {
    /// Changes the extent to `dims`.
    pub fn resize(&self, dims: &[u64]) -> Result<()> {
        self.medium().require_writable()?;
        self.check_resize(dims)?;
        let _alone = self.gate_exclusively();
        let old = self.dims();
        if old.as_slice() == dims {
            return Ok(());
        }
        let exclusive = self.cache().exclusive(&self.cached);
        let geometry = &self.layout.geometry;
        let keys: BTreeSet<Dims> = match self.layout.table() {
            Some(table) if shrinks(&old, dims) => {
                let stored = table.all()?.into_iter().map(|(key, _)| key);
                stored.chain(exclusive.resident_keys()).collect()
            }
            _ => BTreeSet::new(),
        };
        geometry.set_dims(dims);
        let resized = self.cut(&exclusive, dims, keys);
        if resized.is_err() {
            // Chunks outside may be gone, but header, index and handles agree on the extent.
            geometry.set_dims(&old);
        }
        resized
    }

    /// Brings chunks, index and header in line with the new extent.
    fn cut(
        &self,
        exclusive: &Exclusive<'_, DatasetLayout>,
        dims: &[u64],
        keys: BTreeSet<Dims>,
    ) -> Result<()> {
        let geometry = &self.layout.geometry;
        if let Some(table) = self.layout.table() {
            let mut cut = Vec::new();
            for key in keys {
                match geometry.outside(&key)? {
                    Some(outside) if outside.is_full() => {
                        exclusive.discard(&key);
                        table.remove(&key)?;
                    }
                    Some(cells) => cut.push((key, WriteRequest::Erase { cells })),
                    None => {}
                }
            }
            exclusive.write(cut)?;
            table.index().resize(&counts(dims, geometry.chunk()))?;
        }
        let extent = Extent::with_max(dims, geometry.max_dims())?;
        self.set_extent(&extent)
    }

    fn check_resize(&self, dims: &[u64]) -> Result<()> {
        let geometry = &self.layout.geometry;
        let max = geometry.max_dims();
        if dims.len() != max.len() {
            return Err(Error::Invalid(format!(
                "the dataset has {} dimension(s), but {} were given",
                max.len(),
                dims.len()
            )));
        }
        let too_large = dims.iter().zip(max).any(|(&new, &max)| max != UNLIMITED && new > max);
        if too_large {
            return Err(Error::Invalid(format!("{dims:?} is beyond the maximum of {max:?}")));
        }
        let unfiltered_edges = match &self.layout.storage {
            Storage::Contiguous(_) | Storage::Unreadable(_) => {
                return Err(Error::Invalid("only chunked datasets can change their extent".into()));
            }
            Storage::Dense(dense, _) => dense.dont_filter_partial() && !dense.pipeline().is_empty(),
            Storage::Sparse(sparse, _) => sparse.dont_filter_partial(),
        };
        if unfiltered_edges {
            return Err(Error::Unsupported(
                "resizing a dataset whose partial edge chunks are stored unfiltered".into(),
            ));
        }
        Ok(())
    }
}

fn shrinks(old: &[u64], new: &[u64]) -> bool {
    old.iter().zip(new).any(|(old, new)| new < old)
}

fn counts(dims: &[u64], chunk: &[u64]) -> Vec<u64> {
    dims.iter().zip(chunk).map(|(&length, &chunk)| length.div_ceil(chunk.max(1))).collect()
}
