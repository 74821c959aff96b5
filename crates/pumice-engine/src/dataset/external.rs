//! Elements in external files: contiguous data in a store that joins parts of those files.

use crate::file::File;
use crate::measure::ExternalPiece;
use crate::shared::context;
use crate::{Error, Result, outside};
use pumice_format::messages::{ExternalFile, ExternalFiles, kind};
use pumice_format::object_header::RawMessage;
use pumice_layout::{Contiguous, Geometry, Storage};
use pumice_medium::Medium;
use pumice_medium::MetadataIo;
use pumice_space::Extent;
use pumice_store::{Gaps, JoinedStore, Part};
use pumice_structures::local_heap::LocalHeap;
use pumice_types::Datatype;
use std::sync::Arc;

/// The message that names the files of a new dataset, and their names in a heap.
pub(super) fn message(
    file: &File,
    files: &[ExternalPiece],
    extent: &Extent,
    datatype: &Datatype,
) -> Result<RawMessage> {
    // All that it may have one day.
    let most = extent.max_dims().iter().try_fold(1u64, |cells, &side| cells.checked_mul(side));
    let needed = most.and_then(|cells| cells.checked_mul(datatype.size() as u64));
    let (last, others) = match files.split_last() {
        Some(split) => split,
        None => return Err(Error::Invalid("external data need at least one file".into())),
    };
    if others.iter().any(|piece| piece.size == u64::MAX) {
        let what = "only the last external file can have any number of bytes";
        return Err(Error::Invalid(what.into()));
    }
    let room = files.iter().map(|piece| piece.size).fold(0, u64::saturating_add);
    if last.size != u64::MAX && needed.is_none_or(|needed| needed > room) {
        let needed = needed.map_or("more than 2^64".into(), |bytes| bytes.to_string());
        return Err(Error::Invalid(format!(
            "external files of {room} bytes for a dataset that may have {needed}: name more, or leave the size of the \
             last open with `None`"
        )));
    }
    let medium = &**file.medium();
    let mut names = LocalHeap::create(medium)?;
    let mut slots = Vec::with_capacity(files.len());
    for piece in files {
        let name_offset = names.insert(&piece.name)?;
        slots.push(ExternalFile { name_offset, offset: piece.offset, size: piece.size });
    }
    names.commit(medium)?;
    let mut body = Vec::new();
    let heap_address = names.address();
    ExternalFiles { heap_address, slots }.encode(medium.sizes(), &mut body)?;
    Ok(RawMessage::new(kind::EXTERNAL_FILES, 0, body))
}

/// The storage of a dataset with an external files message.
pub(super) fn storage(file: &File, geometry: &Arc<Geometry>, raw: &RawMessage) -> Result<Storage> {
    let message = ExternalFiles::decode(&raw.body, &context(file, raw))?;
    let names = LocalHeap::open(file.medium(), message.heap_address)?;
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
    let used = file.medium().beside(store.clone());
    let medium = Arc::new(Medium::new(used, 0, start, sizes, file.writable()));
    let contiguous = Contiguous::external(geometry.clone(), medium, store);
    Ok(Storage::External(Arc::new(contiguous)))
}
