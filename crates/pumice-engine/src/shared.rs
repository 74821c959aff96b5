//! Messages that are stored outside the object header that uses them: in a committed datatype, or
//! in a fractal heap shared by all objects.

use crate::file::File;
use crate::{Error, Result};
use pumice_format::messages::SharedLocation;
use pumice_format::object_header::RawMessage;
use pumice_format::{Context, UNDEFINED};
use pumice_medium::MetadataIo;
use std::sync::{PoisonError, Weak};

/// The message itself, wherever it stands.
pub(crate) fn here(file: &File, raw: RawMessage) -> Result<RawMessage> {
    if !raw.is_shared() {
        return Ok(raw);
    }
    let location = SharedLocation::decode(&raw.body, &context(file, &raw))?;
    message(file, raw.kind, &location)
}

/// The decoding context of a message.
pub(crate) fn context(file: &File, raw: &RawMessage) -> Context {
    Context::new(file.medium().sizes()).at(raw.address)
}

/// The message of a kind at a place.
pub(crate) fn message(file: &File, kind: u16, location: &SharedLocation) -> Result<RawMessage> {
    match location {
        SharedLocation::Object { address } => {
            let object = file.object(*address)?;
            let message = crate::attribute::required(&object, kind, "shared")?;
            if message.is_shared() {
                // The shared message is in its own header; one that points further could lead in a
                // circle.
                return Err(Error::Damaged("a shared message that is itself shared".into()));
            }
            Ok(message)
        }
        SharedLocation::Heap { id } => {
            let table = &file.extension().shared_messages;
            let index = table.iter().find(|index| index.keeps(kind));
            let Some(index) = index.filter(|index| index.heap_address != UNDEFINED) else {
                let what = format!("a shared message of kind {kind:#06x}, but no heap for it");
                return Err(Error::Damaged(what));
            };
            let heap = file.shared_heap(index.heap_address)?;
            let body = heap.lock().unwrap_or_else(PoisonError::into_inner).object(id)?;
            Ok(RawMessage { address: index.heap_address, ..RawMessage::new(kind, 0, body) })
        }
    }
}

/// A committed datatype that something new shares.
#[derive(Clone, Debug)]
pub struct Committed {
    file: Weak<File>,
    pub(crate) address: u64,
}

impl Committed {
    /// The committed datatype at `address`.
    pub fn new(file: &File, address: u64) -> Self {
        Self { file: file.weak(), address }
    }

    /// Its address in `file`, which must be its own.
    pub(crate) fn address_in(&self, file: &File) -> Result<u64> {
        match std::ptr::eq(self.file.as_ptr(), file) {
            true => Ok(self.address),
            false => Err(Error::Invalid(
                "a committed datatype of another file cannot be used; copy it to this file first"
                    .into(),
            )),
        }
    }
}
