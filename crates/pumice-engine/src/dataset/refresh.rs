//! Reading a dataset again that another program may have changed: its extent, where its elements are, its
//! attributes. Chunks in memory are let go of.

use super::{DatasetState, describe};
use crate::file::File;
use crate::object::Object;
use crate::{Error, Result};
use pumice_layout::{DatasetLayout, Storage};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl DatasetState {
    /// Reads the dataset's metadata again, as HDF5's `H5Drefresh`. Waits for reads that are under
    /// way. Does nothing in a file that is open for editing.
    pub fn refresh(&self, file: &File) -> Result<()> {
        if self.medium.writable() {
            return Ok(());
        }
        if let Some(sources) = &self.sources {
            sources.refresh()?;
        }
        self.holds.wait();
        let _alone = self.gate_exclusively();
        let address = self.object.address();
        // The header first: elements are written before the header that refers to them.
        let (object, layout) = self.medium.steady(|| {
            let object = Arc::new(Object::load(&self.medium, address)?);
            let description = describe::read(file, &object)?;
            match description.datatype == self.datatype {
                true => Ok((object, description.layout)),
                false => Err(another()),
            }
        })?;
        self.check_same(&layout)?;
        let exclusive = self.cache().exclusive(&self.cached);
        for key in exclusive.resident_keys() {
            exclusive.discard(&key);
        }
        self.layout.geometry.set_dims(&layout.geometry.dims());
        match (&self.layout.storage, layout.storage) {
            (Storage::Contiguous(old), Storage::Contiguous(new)) => old.set_place(new.place()),
            (
                Storage::Dense(_, old) | Storage::Sparse(_, old) | Storage::VariableLength(_, old),
                Storage::Dense(_, new) | Storage::Sparse(_, new) | Storage::VariableLength(_, new),
            ) => old.follow(new),
            _ => {}
        }
        self.object.follow(&object);
        // After the extent: a request with the old extent and the old count finds another count.
        self.resizes.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Waits for reads that are under way.
    pub(crate) fn wait_for_reads(&self) {
        drop(self.gate_exclusively());
    }

    /// Fails if a layout is that of another dataset.
    fn check_same(&self, layout: &DatasetLayout) -> Result<()> {
        let (old, new) = (&self.layout.geometry, &layout.geometry);
        let kind = std::mem::discriminant(&self.layout.storage);
        let same = kind == std::mem::discriminant(&layout.storage)
            && old.max_dims() == new.max_dims()
            && (old.chunk() == new.chunk() || matches!(layout.storage, Storage::Virtual));
        if same { Ok(()) } else { Err(another()) }
    }
}

fn another() -> Error {
    Error::Changed("another dataset has come in the place of this one".into())
}
