//! Attributes: small named arrays kept in an object's header.
//!
//! Attributes in dense storage (fractal heaps), which libhdf5 uses above eight attributes in files
//! of its latest format, are not read yet.

use crate::file::File;
use crate::object::{Object, check_length};
use crate::{Error, Result};
use pumice_format::messages::{
    Attribute as Message, AttributeInfo, Shareable, SharedLocation, dataspace, datatype, kind,
};
use pumice_format::object_header::RawMessage;
use pumice_format::{Context, UNDEFINED};
use pumice_space::Extent;
use pumice_types::Datatype;

/// An attribute with everything that describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// The type of its elements.
    pub datatype: Datatype,
    /// Its shape.
    pub extent: Extent,
    /// Its elements, in that type.
    pub data: Vec<u8>,
}

/// All attributes of an object, in order of their names.
pub fn attributes(file: &File, object: &Object) -> Result<Vec<Attribute>> {
    if let Some(message) = object.message(kind::ATTRIBUTE_INFO) {
        let info = AttributeInfo::decode(&message.body, &object.context(&message))?;
        if info.heap_address != UNDEFINED {
            return Err(Error::Unsupported("attributes in dense storage (a fractal heap)".into()));
        }
    }
    let messages = object.messages(kind::ATTRIBUTE);
    let mut attributes = messages
        .iter()
        .map(|message| decode(file, object, message))
        .collect::<Result<Vec<Attribute>>>()?;
    attributes.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(attributes)
}

/// The attribute of a name.
pub fn attribute(file: &File, object: &Object, name: &str) -> Result<Option<Attribute>> {
    Ok(attributes(file, object)?.into_iter().find(|attribute| attribute.name == name))
}

/// Adds an attribute, or replaces the one of that name.
pub fn set(file: &File, object: &Object, attribute: Attribute) -> Result<()> {
    let Attribute { name, datatype, extent, data } = attribute;
    let mut body = Vec::new();
    Message::new(&name, datatype, extent, data).encode(file.superblock().sizes, &mut body)?;
    check_length(&body)?;
    // Reports attributes that are stored where they cannot be changed.
    self::attribute(file, object, &name)?;
    let context = object.context(&RawMessage::default());
    object.change(|messages| match position(messages, &context, &name) {
        Some(place) => messages[place].body = body,
        None => messages.push(RawMessage::new(kind::ATTRIBUTE, 0, body)),
    })
}

/// Removes an attribute.
pub fn remove(file: &File, object: &Object, name: &str) -> Result<()> {
    let missing = || Error::NotFound(format!("no attribute \"{name}\""));
    attribute(file, object, name)?.ok_or_else(missing)?;
    let context = object.context(&RawMessage::default());
    let removed = object.change(|messages| {
        position(messages, &context, name).map(|place| messages.remove(place))
    })?;
    removed.map(drop).ok_or_else(missing)
}

/// Where the attribute of a name stands among all messages.
fn position(messages: &[RawMessage], context: &Context, name: &str) -> Option<usize> {
    messages.iter().position(|message| {
        message.kind == kind::ATTRIBUTE
            && Message::decode(&message.body, context).is_ok_and(|found| found.name == name)
    })
}

fn decode(file: &File, object: &Object, raw: &RawMessage) -> Result<Attribute> {
    if raw.is_shared() {
        return Err(Error::Unsupported("attributes shared between objects".into()));
    }
    let message = Message::decode(&raw.body, &object.context(raw))?;
    let datatype = match message.datatype {
        Shareable::Here(datatype) => datatype,
        Shareable::Shared(location) => shared_datatype(file, &location)?,
    };
    let extent = match message.dataspace {
        Shareable::Here(extent) => extent,
        Shareable::Shared(location) => {
            let target = shared_object(file, &location)?;
            let message = required(&target, kind::DATASPACE, "dataspace")?;
            dataspace::decode(&message.body, &target.context(&message))?
        }
    };
    let size = extent.cells().and_then(|cells| cells.checked_mul(datatype.size() as u64));
    let mut data = message.data;
    match size.and_then(|size| usize::try_from(size).ok()) {
        Some(size) if size <= data.len() => data.truncate(size),
        _ => {
            return Err(Error::Invalid(format!(
                "attribute \"{}\" has {} byte(s) for {extent:?} of {} byte(s) each",
                message.name,
                data.len(),
                datatype.size()
            )));
        }
    }
    Ok(Attribute { name: message.name, datatype, extent, data })
}

/// The datatype of an object, which may be that of a committed datatype elsewhere.
pub(crate) fn object_datatype(file: &File, object: &Object) -> Result<Datatype> {
    let message = required(object, kind::DATATYPE, "datatype")?;
    let context = object.context(&message);
    if message.is_shared() {
        return shared_datatype(file, &SharedLocation::decode(&message.body, &context)?);
    }
    Ok(datatype::decode(&message.body, &context)?)
}

fn shared_datatype(file: &File, location: &SharedLocation) -> Result<Datatype> {
    let target = shared_object(file, location)?;
    let message = required(&target, kind::DATATYPE, "datatype")?;
    if message.is_shared() {
        // A committed datatype holds its own; one that points further could run in a circle.
        return Err(Error::Invalid("a committed datatype that is itself shared".into()));
    }
    Ok(datatype::decode(&message.body, &target.context(&message))?)
}

fn shared_object(file: &File, location: &SharedLocation) -> Result<std::sync::Arc<Object>> {
    match location {
        SharedLocation::Object { address } => file.object(*address),
        SharedLocation::Heap { .. } => {
            Err(Error::Unsupported("messages in the shared message heap".into()))
        }
    }
}

/// A message that an object must have.
pub(crate) fn required(object: &Object, kind: u16, what: &str) -> Result<RawMessage> {
    object.message(kind).ok_or_else(|| {
        Error::Invalid(format!("the object at {:#x} has no {what} message", object.address()))
    })
}
