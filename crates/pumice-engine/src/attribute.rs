//! Attributes: small named arrays kept in an object's header.
//!
//! Attributes in dense storage (a fractal heap), which libhdf5 uses above eight attributes in files
//! of its latest format, are read only.

use crate::file::File;
use crate::fractal_heap::FractalHeap;
use crate::object::{Object, check_length};
use crate::records::for_each_record;
use crate::{Error, Result, shared};
use pumice_format::dense::{ATTRIBUTES_BY_NAME, AttributeRecord};
use pumice_format::messages::{
    Attribute as Message, AttributeInfo, Shareable, SharedLocation, dataspace, datatype, kind,
};
use pumice_format::object_header::{MESSAGE_SHARED, RawMessage};
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
    /// Where the committed datatype is that it shares.
    pub committed: Option<u64>,
    /// Its place in the order of creation, if the object tracks that.
    pub creation_order: Option<u32>,
}

impl Attribute {
    /// An attribute that is still to be stored.
    pub fn new(name: impl Into<String>, datatype: Datatype, extent: Extent, data: Vec<u8>) -> Self {
        let name = name.into();
        Self { name, datatype, extent, data, committed: None, creation_order: None }
    }
}

/// All attributes of an object, in order of their names.
pub fn attributes(file: &File, object: &Object) -> Result<Vec<Attribute>> {
    if let Some(info) = dense_info(object)? {
        return dense(file, &info);
    }
    let messages = object.messages(kind::ATTRIBUTE);
    let mut attributes =
        messages.iter().map(|message| decode(file, message)).collect::<Result<Vec<Attribute>>>()?;
    attributes.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(attributes)
}

/// Attributes in dense storage: messages in a fractal heap of the object's own, or in that of the
/// file's shared messages.
fn dense(file: &File, info: &AttributeInfo) -> Result<Vec<Attribute>> {
    let mut heap = FractalHeap::open(file.medium(), info.heap_address)?;
    let mut attributes = Vec::new();
    let types = [ATTRIBUTES_BY_NAME];
    for_each_record(&**file.medium(), info.name_index_address, &types, &mut |record| {
        let record = AttributeRecord::decode(record)?;
        let raw = match record.flags & MESSAGE_SHARED {
            0 => RawMessage::new(kind::ATTRIBUTE, 0, heap.object(&record.id)?),
            _ => {
                let location = SharedLocation::Heap { id: record.id };
                shared::message(file, kind::ATTRIBUTE, &location)?
            }
        };
        let creation_order = Some(record.creation_order);
        attributes.push(Attribute { creation_order, ..decode(file, &raw)? });
        Ok(())
    })?;
    attributes.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(attributes)
}

/// The attribute of a name.
pub fn attribute(file: &File, object: &Object, name: &str) -> Result<Option<Attribute>> {
    Ok(attributes(file, object)?.into_iter().find(|attribute| attribute.name == name))
}

/// Adds an attribute, or replaces the one of that name.
pub fn set(file: &File, object: &Object, attribute: Attribute) -> Result<()> {
    let Attribute { name, datatype, extent, data, .. } = attribute;
    let mut body = Vec::new();
    Message::new(&name, datatype, extent, data).encode(file.superblock().sizes, &mut body)?;
    check_length(&body)?;
    require_compact(object)?;
    // Reports attributes that cannot be read, and so not be told apart.
    self::attribute(file, object, &name)?;
    let context = object.context(&RawMessage::default());
    object.change(|messages| match position(messages, &context, &name) {
        Some(place) => messages[place].body = body,
        None => messages.push(RawMessage::new(kind::ATTRIBUTE, 0, body)),
    })
}

/// Removes an attribute.
pub fn remove(file: &File, object: &Object, name: &str) -> Result<()> {
    require_compact(object)?;
    let missing = || Error::NotFound(format!("no attribute \"{name}\""));
    attribute(file, object, name)?.ok_or_else(missing)?;
    let context = object.context(&RawMessage::default());
    let removed = object.change(|messages| {
        position(messages, &context, name).map(|place| messages.remove(place))
    })?;
    removed.map(drop).ok_or_else(missing)
}

/// Fails if attributes are stored where they cannot be changed.
fn require_compact(object: &Object) -> Result<()> {
    match dense_info(object)? {
        Some(_) => Err(Error::Unsupported("changing attributes in dense storage".into())),
        None => Ok(()),
    }
}

/// Where an object's attributes are, if they are in dense storage.
fn dense_info(object: &Object) -> Result<Option<AttributeInfo>> {
    let Some(message) = object.message(kind::ATTRIBUTE_INFO) else { return Ok(None) };
    let info = AttributeInfo::decode(&message.body, &object.context(&message))?;
    Ok(Some(info).filter(|info| info.heap_address != UNDEFINED))
}

/// Where the attribute of a name stands among all messages.
fn position(messages: &[RawMessage], context: &Context, name: &str) -> Option<usize> {
    messages.iter().position(|message| {
        message.kind == kind::ATTRIBUTE
            && Message::decode(&message.body, context).is_ok_and(|found| found.name == name)
    })
}

fn decode(file: &File, raw: &RawMessage) -> Result<Attribute> {
    let creation_order = raw.creation_order.map(u32::from);
    let raw = shared::here(file, raw.clone())?;
    let message = Message::decode(&raw.body, &shared::context(file, &raw))?;
    let committed = match &message.datatype {
        Shareable::Shared(SharedLocation::Object { address }) => Some(*address),
        _ => None,
    };
    let datatype = match message.datatype {
        Shareable::Here(datatype) => datatype,
        Shareable::Shared(location) => {
            let raw = shared::message(file, kind::DATATYPE, &location)?;
            datatype::decode(&raw.body, &shared::context(file, &raw))?
        }
    };
    let extent = match message.dataspace {
        Shareable::Here(extent) => extent,
        Shareable::Shared(location) => {
            let raw = shared::message(file, kind::DATASPACE, &location)?;
            dataspace::decode(&raw.body, &shared::context(file, &raw))?
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
    Ok(Attribute { name: message.name, datatype, extent, data, committed, creation_order })
}

/// Where the committed datatype is that an object shares, if it does.
pub fn committed_datatype(file: &File, object: &Object) -> Option<u64> {
    let raw = object.message(kind::DATATYPE).filter(RawMessage::is_shared)?;
    match SharedLocation::decode(&raw.body, &shared::context(file, &raw)) {
        Ok(SharedLocation::Object { address }) => Some(address),
        _ => None,
    }
}

/// The datatype of an object, which may be that of a committed datatype elsewhere.
pub fn object_datatype(file: &File, object: &Object) -> Result<Datatype> {
    let message = shared::here(file, required(object, kind::DATATYPE, "datatype")?)?;
    Ok(datatype::decode(&message.body, &shared::context(file, &message))?)
}

/// A message that an object must have.
pub(crate) fn required(object: &Object, kind: u16, what: &str) -> Result<RawMessage> {
    object.message(kind).ok_or_else(|| {
        Error::Invalid(format!("the object at {:#x} has no {what} message", object.address()))
    })
}
