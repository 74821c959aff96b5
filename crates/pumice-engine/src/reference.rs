//! References in elements: what they say, with what the global heap has of them.

use crate::file::File;
use crate::metadata::MetadataIo;
use crate::{Error, Result, outside};
use pumice_bytes::Reader;
use pumice_format::Context;
use pumice_format::reference::Stored;
pub use pumice_format::reference::{Reference, Target};
use pumice_space::{Selection, serial};
use pumice_types::Datatype;
use std::sync::Arc;

/// The references in `elements` of a reference type; `None` for those that lead nowhere.
pub fn references(
    file: &File,
    datatype: &Datatype,
    elements: &[u8],
) -> Result<Vec<Option<Reference>>> {
    let Datatype::Reference(reference) = datatype else {
        return Err(Error::Invalid(format!("{} elements, not references", datatype.class_name())));
    };
    let context = Context::new(file.medium().sizes());
    let decode = |element: &[u8]| match Stored::decode(reference.kind, element, &context)? {
        Stored::Null => Ok(None),
        Stored::Whole(found) => Ok(Some(found)),
        Stored::InHeap { head, id } => {
            let bytes = file.global_heap().object(id)?;
            Ok(Some(Reference::decode_heaped(head, &bytes, &context)?))
        }
    };
    elements.chunks_exact(datatype.size().max(1)).map(decode).collect()
}

/// The elements of a dataset of `rank` axes that a reference means.
pub fn selection(reference: &Reference, rank: usize) -> Result<Selection> {
    let Target::Region(bytes) = &reference.target else { return Ok(Selection::all()) };
    let mut reader = Reader::new("region reference", reference.address, bytes);
    Ok(serial::decode_selection(&mut reader, rank)?)
}

/// The other file that a reference names.
pub fn other_file(file: &File, name: &str) -> Result<Arc<File>> {
    outside::open(file, name, outside::LINK_FOLDERS)
}
