//! Attributes: small named arrays kept in an object's header, or in dense storage if they are many or
//! large.
//!
//! Objects with version 1 headers have all attributes in messages. Others have an attribute info
//! message as soon as they have an attribute, as libhdf5 expects it.

mod values;

pub use values::{NewAttribute, Values, create, load};

use crate::dense_storage::{Addresses, DenseStorage, Kind, Stored};
use crate::file::File;
use crate::object::{MAX_MESSAGE, Object, check_length};
use crate::{Error, Result, shared};
use pumice_format::messages::{
    Attribute as Message, AttributeInfo, Shareable, SharedLocation, dataspace, datatype, kind,
};
use pumice_format::object_header::{MESSAGE_DONT_SHARE, MESSAGE_SHARED, RawMessage};
use pumice_format::{Context, UNDEFINED};
use pumice_space::Extent;
use pumice_types::Datatype;
use std::sync::MutexGuard;

/// The creation order that an attribute has if its object tracks none.
const UNTRACKED: u32 = 0xFFFF;

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
    /// The address of the committed datatype that it shares.
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
    let mut attributes = each(file, object)?.into_iter().collect::<Result<Vec<_>>>()?;
    attributes.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(attributes)
}

/// The names of all attributes of an object in the order in which they were made, if it keeps that, otherwise in the
/// order in which they are stored.
pub fn names_in_order(file: &File, object: &Object) -> Result<Vec<String>> {
    let mut attributes = each(file, object)?.into_iter().collect::<Result<Vec<_>>>()?;
    attributes.sort_by_key(|attribute| attribute.creation_order);
    Ok(attributes.into_iter().map(|attribute| attribute.name).collect())
}

/// Every attribute of an object that can be read, and an error for each of the others.
pub(crate) fn each(file: &File, object: &Object) -> Result<Vec<Result<Attribute>>> {
    let mut dense = opened(file, object)?;
    Ok(match &mut *dense {
        Some(dense) => {
            let all = dense.list(file)?.into_iter();
            all.map(|stored| decode_stored(file, stored)).collect()
        }
        None => {
            let messages = object.messages(kind::ATTRIBUTE);
            messages.iter().map(|raw| decode(file, raw)).collect()
        }
    })
}

/// The names of an object's attributes, in order. A damaged value does not hide its name.
pub fn names(file: &File, object: &Object) -> Result<Vec<String>> {
    let mut names = match &mut *opened(file, object)? {
        Some(dense) => {
            let context = Context::new(file.superblock().sizes);
            let all = dense.list(file)?.into_iter();
            all.map(|stored| Ok(Message::decode(&stored.body, &context)?.name))
                .collect::<Result<Vec<_>>>()?
        }
        None => {
            let messages = object.messages(kind::ATTRIBUTE);
            messages.iter().map(|raw| name(file, raw)).collect::<Result<Vec<_>>>()?
        }
    };
    names.sort();
    Ok(names)
}

/// Whether an object has an attribute of a name.
pub fn has(file: &File, object: &Object, name: &str) -> Result<bool> {
    if name.contains(char::REPLACEMENT_CHARACTER) {
        return Ok(names(file, object)?.iter().any(|known| known == name));
    }
    if let Some(dense) = &mut *opened(file, object)? {
        return Ok(dense.find(file, name)?.is_some());
    }
    Ok(position(file, &object.messages(kind::ATTRIBUTE), name)?.is_some())
}

/// The number of an object's attributes.
pub fn count(file: &File, object: &Object) -> Result<u64> {
    Ok(match &*opened(file, object)? {
        Some(dense) => dense.count(),
        None => object.messages(kind::ATTRIBUTE).len() as u64,
    })
}

/// The attribute of a name.
pub fn attribute(file: &File, object: &Object, name: &str) -> Result<Option<Attribute>> {
    if name.contains(char::REPLACEMENT_CHARACTER) {
        // A name that is not UTF-8 is known here in its displayed form.
        return Ok(attributes(file, object)?.into_iter().find(|attribute| attribute.name == name));
    }
    if let Some(dense) = &mut *opened(file, object)? {
        let found = dense.find(file, name)?;
        return found.map(|stored| decode_stored(file, stored)).transpose();
    }
    let messages = object.messages(kind::ATTRIBUTE);
    match position(file, &messages, name)? {
        Some(place) => decode(file, &messages[place]).map(Some),
        None => Ok(None),
    }
}

fn decode_stored(file: &File, stored: Stored) -> Result<Attribute> {
    let creation_order = Some(stored.creation_order).filter(|&order| order != UNTRACKED);
    // Shared ones are here already.
    let raw = RawMessage::new(kind::ATTRIBUTE, stored.flags & !MESSAGE_SHARED, stored.body);
    Ok(Attribute { creation_order, ..decode(file, &raw)? })
}

/// Adds an attribute to a new object. The caller notes that the attribute uses a committed
/// datatype.
pub(crate) fn store(file: &File, object: &Object, attribute: Attribute) -> Result<()> {
    let name = attribute.name.clone();
    let body = encode(file, attribute)?;
    let _change = file.medium().change();
    set_during(file, object, &name, body).map(drop)
}

/// Adds an attribute, or replaces the one of that name, and says which of both.
pub fn set(file: &File, object: &Object, attribute: Attribute) -> Result<bool> {
    let (name, committed) = (attribute.name.clone(), attribute.committed);
    let data = match attribute.datatype.has_varlen() {
        true => attribute.data.clone(),
        false => Vec::new(),
    };
    let body = encode(file, attribute)?;
    // Counted before the old one is released: it may be the same datatype.
    if let Some(address) = committed {
        file.object(address)?.add_link()?;
    }
    let change = file.medium().change();
    let replaced = set_during(file, object, &name, body);
    drop(change);
    match (replaced, committed) {
        (Ok(None), _) => Ok(false),
        (Ok(Some(mut old)), _) => {
            if old.data == data {
                // The references are the same, so their objects are still needed.
                old.data.clear();
            }
            values::let_go(file, old).map(|()| true)
        }
        (Err(error), None) => Err(error),
        (Err(error), Some(new)) => {
            crate::delete::release(file, new)?;
            Err(error)
        }
    }
}

fn encode(file: &File, attribute: Attribute) -> Result<Vec<u8>> {
    let Attribute { name, datatype, extent, data, committed, .. } = attribute;
    if name.is_empty() {
        // libhdf5 could not list any attribute of the object.
        return Err(Error::Invalid("an attribute without a name".into()));
    }
    let size = extent.cells().and_then(|cells| cells.checked_mul(datatype.size() as u64));
    if size != Some(data.len() as u64) {
        let what = format!("{} byte(s) for {extent:?} of {datatype}", data.len());
        return Err(Error::Invalid(what));
    }
    let mut message = Message::new(&name, datatype, extent, data);
    if let Some(address) = committed {
        message.datatype = Shareable::Shared(SharedLocation::Object { address });
    }
    let mut body = Vec::new();
    message.encode_for(file.era(), file.superblock().sizes, &mut body)?;
    Ok(body)
}

/// Stores an attribute's message. Gives the attribute that it replaces.
fn set_during(
    file: &File,
    object: &Object,
    name: &str,
    body: Vec<u8>,
) -> Result<Option<Attribute>> {
    file.medium().require_writable()?;
    let mut dense = opened(file, object)?;
    let messages = object.messages(kind::ATTRIBUTE);
    let place = if dense.is_some() { None } else { position(file, &messages, name)? };
    let mut replaced = None;
    if let Some(place) = place {
        replaced = Some(decode(file, &messages[place])?);
        if body.len() <= MAX_MESSAGE {
            replace_message(object, place, body)?;
            return Ok(replaced);
        }
    }
    if object.version() == 1 {
        check_length(kind::ATTRIBUTE, &body)?;
        object.push(RawMessage::new(kind::ATTRIBUTE, 0, body))?;
        return Ok(None);
    }
    let mut info = info(object)?;
    let (max_compact, _) = object.attribute_phase_change();
    let full = messages.len() >= usize::from(max_compact);
    if dense.is_none() && (full || body.len() > MAX_MESSAGE) {
        *dense = Some(make_dense(file, object, &messages, &mut info)?);
    }
    let Some(dense) = &mut *dense else {
        let creation_order = next_order(&mut info)?;
        object.push(RawMessage { creation_order, ..RawMessage::new(kind::ATTRIBUTE, 0, body) })?;
        set_info(file, object, &info)?;
        return Ok(replaced);
    };
    renew(file, dense, &mut info)?;
    let old = dense.remove(file, name, order_of)?;
    let creation_order = match &old {
        Some(old) => old.creation_order,
        None => next_order(&mut info)?.map_or(UNTRACKED, u32::from),
    };
    if let Some(old) = old {
        replaced = Some(decode_stored(file, old)?);
    }
    let stored = Stored { body, flags: 0, creation_order };
    dense.insert(file, name, u64::from(creation_order), &stored)?;
    object.mark()?;
    set_info(file, object, &info)?;
    Ok(replaced)
}

/// Replaces the body of the attribute message number `place`.
fn replace_message(object: &Object, place: usize, body: Vec<u8>) -> Result<()> {
    object.change(|messages| {
        let mut all = messages.iter_mut().filter(|message| message.kind == kind::ATTRIBUTE);
        if let Some(message) = all.nth(place) {
            message.flags &= !MESSAGE_SHARED;
            message.body = body;
        }
    })
}

/// The place in the order of creation that the next attribute gets, if that is tracked.
fn next_order(info: &mut AttributeInfo) -> Result<Option<u16>> {
    let Some(next) = info.max_creation_order else { return Ok(None) };
    let after = next.checked_add(1).ok_or_else(|| {
        Error::Unsupported("more than 65535 attributes in the order of creation".into())
    })?;
    info.max_creation_order = Some(after);
    Ok(Some(next))
}

/// Moves attributes from messages to dense storage.
fn make_dense(
    file: &File,
    object: &Object,
    messages: &[RawMessage],
    info: &mut AttributeInfo,
) -> Result<Box<DenseStorage>> {
    let mut all = Vec::new();
    for raw in messages {
        let creation_order = match info.max_creation_order {
            Some(_) => raw.creation_order.map_or(0, u32::from),
            None => UNTRACKED,
        };
        let here = shared::here(file, raw.clone())?;
        all.push(Stored { body: here.body, flags: 0, creation_order });
    }
    let dense = filled(file, &all, info)?;
    object.change(|messages| messages.retain(|message| message.kind != kind::ATTRIBUTE))?;
    Ok(dense)
}

/// Makes new dense storage that holds these attributes.
fn filled(file: &File, all: &[Stored], info: &mut AttributeInfo) -> Result<Box<DenseStorage>> {
    let by_order = info.order_index_address.is_some();
    let mut dense = Box::new(DenseStorage::create(file, Kind::Attributes, by_order)?);
    let context = Context::new(file.superblock().sizes);
    for stored in all {
        let name = Message::decode(&stored.body, &context)?.name;
        dense.insert(file, &name, u64::from(stored.creation_order), stored)?;
    }
    let addresses = dense.addresses(file)?;
    info.heap_address = addresses.heap;
    info.name_index_address = addresses.names;
    info.order_index_address = info.order_index_address.map(|_| addresses.orders);
    Ok(dense)
}

/// Moves attributes out of dense storage that cannot be changed in place.
fn renew(file: &File, dense: &mut Box<DenseStorage>, info: &mut AttributeInfo) -> Result<()> {
    if dense.is_changeable() {
        return Ok(());
    }
    let mut all = dense.list(file)?;
    all.iter_mut().for_each(|stored| stored.flags &= !MESSAGE_SHARED);
    let old = std::mem::replace(dense, filled(file, &all, info)?);
    old.delete(&**file.medium())
}

fn order_of(stored: &Stored) -> Result<u64> {
    Ok(u64::from(stored.creation_order))
}

/// Removes an attribute.
pub fn remove(file: &File, object: &Object, name: &str) -> Result<()> {
    let change = file.medium().change();
    let removed = remove_during(file, object, name)?;
    drop(change);
    values::let_go(file, removed)
}

fn remove_during(file: &File, object: &Object, name: &str) -> Result<Attribute> {
    let missing = || Error::NotFound(format!("no attribute \"{name}\""));
    file.medium().require_writable()?;
    let mut storage = opened(file, object)?;
    let Some(dense) = &mut *storage else {
        let messages = object.messages(kind::ATTRIBUTE);
        let place = position(file, &messages, name)?.ok_or_else(missing)?;
        let removed = decode(file, &messages[place])?;
        let last = messages.len() == 1;
        object.change(|messages| {
            let all = messages.iter().enumerate();
            let mut all = all.filter(|(_, message)| message.kind == kind::ATTRIBUTE);
            if let Some((place, _)) = all.nth(place) {
                messages.remove(place);
            }
            if last {
                // As libhdf5 expects it.
                messages.retain(|message| message.kind != kind::ATTRIBUTE_INFO);
            }
        })?;
        return Ok(removed);
    };
    let mut info = info(object)?;
    renew(file, dense, &mut info)?;
    let removed = dense.remove(file, name, order_of)?.ok_or_else(missing)?;
    object.mark()?;
    make_compact(file, object, &mut storage, &mut info)?;
    match storage.is_none() && object.messages(kind::ATTRIBUTE).is_empty() {
        true => object.change(|all| all.retain(|message| message.kind != kind::ATTRIBUTE_INFO))?,
        false => set_info(file, object, &info)?,
    }
    decode_stored(file, removed)
}

/// Moves attributes back into messages if they are few.
fn make_compact(
    file: &File,
    object: &Object,
    storage: &mut Option<Box<DenseStorage>>,
    info: &mut AttributeInfo,
) -> Result<()> {
    let Some(dense) = storage else { return Ok(()) };
    let (_, min_dense) = object.attribute_phase_change();
    if dense.count() >= u64::from(min_dense) && dense.count() > 0 {
        return Ok(());
    }
    let mut all = dense.list(file)?;
    if all.iter().any(|stored| stored.body.len() > MAX_MESSAGE) {
        return Ok(());
    }
    all.sort_by_key(|stored| stored.creation_order);
    object.change(|messages| {
        messages.extend(all.into_iter().map(|stored| RawMessage {
            creation_order: info.max_creation_order.map(|_| stored.creation_order as u16),
            ..RawMessage::new(kind::ATTRIBUTE, 0, stored.body)
        }));
    })?;
    info.heap_address = UNDEFINED;
    info.name_index_address = UNDEFINED;
    info.order_index_address = info.order_index_address.map(|_| UNDEFINED);
    match storage.take() {
        Some(dense) => dense.delete(&**file.medium()),
        None => Ok(()),
    }
}

/// Renames an attribute.
pub fn rename(file: &File, object: &Object, name: &str, new_name: &str) -> Result<()> {
    if attribute(file, object, new_name)?.is_some() {
        return Err(Error::Exists(format!("attribute \"{new_name}\" exists already")));
    }
    let missing = || Error::NotFound(format!("no attribute \"{name}\""));
    let old = attribute(file, object, name)?.ok_or_else(missing)?;
    let body = encode(file, Attribute { name: new_name.into(), ..old })?;
    let _change = file.medium().change();
    let mut storage = opened(file, object)?;
    let mut info = info(object)?;
    let dense = match &mut *storage {
        Some(dense) => dense,
        compact => {
            let messages = object.messages(kind::ATTRIBUTE);
            let place = position(file, &messages, name)?.ok_or_else(missing)?;
            if body.len() <= MAX_MESSAGE || object.version() == 1 {
                check_length(kind::ATTRIBUTE, &body)?;
                return replace_message(object, place, body);
            }
            // With a longer name, or no longer shared, it does not fit a header.
            compact.insert(make_dense(file, object, &messages, &mut info)?)
        }
    };
    renew(file, dense, &mut info)?;
    let removed = dense.remove(file, name, order_of)?.ok_or_else(missing)?;
    let creation_order = removed.creation_order;
    let stored = Stored { body, flags: 0, creation_order };
    dense.insert(file, new_name, u64::from(creation_order), &stored)?;
    object.mark()?;
    set_info(file, object, &info)
}

/// Gives back the space of all attributes of an object that is deleted. Returns the committed
/// datatypes that they shared.
pub(crate) fn delete_all(file: &File, object: &Object) -> Result<Vec<u64>> {
    // Objects that cannot be read stay in the file.
    let Ok(mut all) = attributes(file, object) else { return Ok(Vec::new()) };
    let change = file.medium().change();
    if let Some(dense) = object.dense_attributes().take() {
        dense.delete(&**file.medium())?;
    }
    drop(change);
    let committed = all.iter_mut().filter_map(|attribute| attribute.committed.take()).collect();
    all.into_iter().try_for_each(|attribute| values::let_go(file, attribute))?;
    Ok(committed)
}

/// The dense storage of an object's attributes, if that is where they are.
fn opened<'a>(
    file: &File,
    object: &'a Object,
) -> Result<MutexGuard<'a, Option<Box<DenseStorage>>>> {
    object.require_in(file)?;
    let mut dense = object.dense_attributes();
    if dense.is_none() && object.has(kind::ATTRIBUTE_INFO) {
        let info = info(object)?;
        if info.heap_address != UNDEFINED {
            let addresses = Addresses {
                heap: info.heap_address,
                names: info.name_index_address,
                orders: info.order_index_address.unwrap_or(UNDEFINED),
            };
            *dense = Some(Box::new(DenseStorage::open(file, Kind::Attributes, addresses)?));
        }
    }
    Ok(dense)
}

/// An object's attribute info; libhdf5's default if it has no such message.
pub(crate) fn info(object: &Object) -> Result<AttributeInfo> {
    if let Some(message) = object.message(kind::ATTRIBUTE_INFO) {
        return Ok(AttributeInfo::decode(&message.body, &object.context(&message))?);
    }
    let (track, index) = object.attribute_order();
    // Files that we wrote earlier have attributes without this message.
    let orders = object.messages(kind::ATTRIBUTE);
    let orders = orders.iter().filter_map(|message| message.creation_order);
    Ok(AttributeInfo {
        max_creation_order: track.then(|| orders.max().map_or(0, |last| last.saturating_add(1))),
        order_index_address: index.then_some(UNDEFINED),
        ..AttributeInfo::default()
    })
}

fn set_info(file: &File, object: &Object, info: &AttributeInfo) -> Result<()> {
    let mut body = Vec::new();
    info.encode(file.superblock().sizes, &mut body);
    object.set(kind::ATTRIBUTE_INFO, MESSAGE_DONT_SHARE, body)
}

/// The position of the attribute message with a name. A message that cannot be read is an error,
/// because it may have that name.
fn position(file: &File, messages: &[RawMessage], name: &str) -> Result<Option<usize>> {
    for (place, raw) in messages.iter().enumerate() {
        if self::name(file, raw)? == name {
            return Ok(Some(place));
        }
    }
    Ok(None)
}

fn name(file: &File, raw: &RawMessage) -> Result<String> {
    let raw = shared::here(file, raw.clone())?;
    Ok(Message::decode(&raw.body, &shared::context(file, &raw))?.name)
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
            return Err(Error::Damaged(format!(
                "attribute \"{}\" has {} byte(s) for {extent:?} of {} byte(s) each",
                message.name,
                data.len(),
                datatype.size()
            )));
        }
    }
    Ok(Attribute { name: message.name, datatype, extent, data, committed, creation_order })
}

/// The address of the committed datatype that an object shares, if it does.
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
        Error::Damaged(format!("the object at {:#x} has no {what} message", object.address()))
    })
}
