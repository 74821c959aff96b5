//! References in elements: decoding them, with their parts in the global heap.
//!
//! Global heap objects of references are never given back: libhdf5 copies such references within a
//! file as bytes, so several may share one object, and nothing counts them.

use crate::file::File;
use crate::{Error, Result, outside};
use pumice_bytes::Reader;
use pumice_format::Context;
use pumice_format::reference::{Encoded, Stored};
pub use pumice_format::reference::{Reference, Target};
use pumice_medium::MetadataIo;
use pumice_space::serial::HyperslabVersion;
use pumice_space::{Selection, serial};
use pumice_types::{self as types, Datatype, ReferenceKind};
use std::sync::{Arc, Weak};

/// The file of the object that a reference names.
#[derive(Clone, Debug)]
pub struct Home(Weak<File>);

impl Home {
    /// References to objects of a file.
    pub fn of(file: &File) -> Self {
        Self(file.weak())
    }

    /// Fails for a reference to an object of another file, where the address means something else.
    /// A file that was closed and opened again counts as the same.
    pub fn check(&self, reference: &Reference, file: &File) -> Result<()> {
        let open = self.0.strong_count() > 0;
        if reference.file.is_some() || !open || std::ptr::eq(self.0.as_ptr(), file) {
            return Ok(());
        }
        Err(Error::Invalid(
            "the reference is to an object of another file, where its address means something else"
                .into(),
        ))
    }
}

/// The references in elements of a reference type; `None` for null ones.
pub fn references(
    file: &File,
    datatype: &Datatype,
    elements: &[u8],
) -> Result<Vec<Option<Reference>>> {
    let Datatype::Reference(reference) = datatype else {
        return Err(Error::TypeMismatch(format!(
            "{} elements, not references",
            datatype.class_name()
        )));
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

/// Makes `element`, of a reference type of this file, a reference; with `None`, one that leads
/// nowhere.
pub fn store(
    file: &File,
    datatype: &types::Reference,
    reference: Option<&Reference>,
    element: &mut [u8],
) -> Result<()> {
    element.fill(0);
    let Some(reference) = reference else { return Ok(()) };
    let bytes = match reference.encode(datatype.kind, file.medium().sizes())? {
        Encoded::Whole(bytes) => bytes,
        Encoded::InHeap { mut head, object } => {
            head.extend(file.global_heap().insert(&object)?);
            head
        }
    };
    match element.get_mut(..bytes.len()) {
        Some(place) => place.copy_from_slice(&bytes),
        None => {
            let what = format!("references of {} byte(s), not {}", bytes.len(), element.len());
            return Err(Error::Invalid(what));
        }
    }
    Ok(())
}

/// The type of references of a kind in a file.
pub fn datatype(file: &File, kind: ReferenceKind) -> Datatype {
    let offset = u32::from(file.medium().sizes().offset);
    let size = match kind {
        ReferenceKind::Object => offset,
        ReferenceKind::Region => offset + 4,
        // Type, flags, size, and an id in the global heap.
        _ => offset + 10,
    };
    Datatype::Reference(types::Reference { size, kind })
}

/// Elements of a reference type of this file; `None` leads nowhere.
pub fn elements(
    file: &File,
    datatype: &Datatype,
    references: &[Option<Reference>],
) -> Result<Vec<u8>> {
    let Datatype::Reference(class) = datatype else {
        return Err(Error::TypeMismatch(format!(
            "{} elements, not references",
            datatype.class_name()
        )));
    };
    let size = datatype.size().max(1);
    let mut elements = vec![0; size * references.len()];
    for (element, reference) in elements.chunks_exact_mut(size).zip(references) {
        store(file, class, reference.as_ref(), element)?;
    }
    Ok(elements)
}

/// A reference to selected elements of a dataset. Every libhdf5 reads its encoding, unless the
/// dataset is too large for older ones.
pub fn region(selection: &Selection, dims: &[u64]) -> Result<Target> {
    selection.check(dims)?;
    let encode = |version| -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        serial::encode_selection_with(selection, dims, version, &mut bytes)?;
        Ok(bytes)
    };
    let bytes = encode(HyperslabVersion::V1).or_else(|_| encode(HyperslabVersion::Smallest))?;
    Ok(Target::Region { rank: dims.len() as u32, selection: bytes })
}

/// The elements of a dataset of `rank` axes that a reference means.
pub fn selection(reference: &Reference, rank: usize) -> Result<Selection> {
    let Target::Region { selection: bytes, .. } = &reference.target else {
        return Ok(Selection::all());
    };
    let mut reader = Reader::new("region reference", reference.address, bytes);
    Ok(serial::decode_selection(&mut reader, rank)?)
}

/// The other file that a reference names.
pub fn other_file(file: &File, name: &str) -> Result<Arc<File>> {
    outside::open(file, name, outside::LINK_FOLDERS)
}
