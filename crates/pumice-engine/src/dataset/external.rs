//! Elements in external files: contiguous data in a store that joins parts of those files.

use crate::file::File;
use crate::layout::{Contiguous, Geometry, Place, Storage};
use crate::medium::Medium;
use crate::metadata::MetadataIo;
use crate::shared::context;
use crate::{Result, outside};
use pumice_format::messages::ExternalFiles;
use pumice_format::object_header::RawMessage;
use pumice_store::{Gaps, JoinedStore, Part};
use std::sync::Arc;

/// The storage of a dataset with an external files message.
pub(super) fn storage(file: &File, geometry: &Arc<Geometry>, raw: &RawMessage) -> Result<Storage> {
    let message = ExternalFiles::decode(&raw.body, &context(file, raw))?;
    let names = crate::local_heap::LocalHeap::open(file.medium(), message.heap_address)?;
    let sizes = file.medium().sizes();
    let unlimited = u64::MAX >> (64 - 8 * u32::from(sizes.length.clamp(1, 8)));
    let (mut start, mut parts) = (0u64, Vec::new());
    for slot in &message.slots {
        let length = match slot.size {
            size if size >= unlimited => u64::MAX - start,
            size => size,
        };
        let path = outside::data_path(file, &names.text(slot.name_offset)?);
        parts.push(Part { start, length, path, offset: slot.offset });
        start = start.saturating_add(length);
    }
    let store = Arc::new(JoinedStore::new(parts, Gaps::Zeros));
    let medium = Arc::new(Medium::new(store, 0, start, sizes, false));
    Ok(Storage::External(Contiguous::new(geometry.clone(), medium, Place::File(Some(0)))))
}
