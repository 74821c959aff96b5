//! The elements of attributes: stored in the message as bytes, or as references into the global
//! heap; and what the global heap gets back when an attribute is removed.

use super::{Attribute, object_datatype, set};
use crate::file::File;
use crate::object::Object;
use crate::reference::{self, Home, Reference};
use crate::shared::Committed;
use crate::{Error, Result};
use pumice_medium::zeroed;
use pumice_space::Extent;
use pumice_types::{Conversion, Datatype, Heaped, HeapedConversion, ReferenceKind};

/// An attribute that is still to be stored.
#[derive(Clone, Debug)]
pub struct NewAttribute {
    /// Its name.
    pub name: String,
    /// Its shape.
    pub extent: Extent,
    /// Its elements.
    pub values: Values,
    /// The committed datatype that it shares; elements are converted to it.
    pub committed: Option<Committed>,
}

/// The elements of an attribute that is still to be stored.
#[derive(Clone, Debug)]
pub enum Values {
    /// The elements' stored bytes.
    Stored(Datatype, Vec<u8>),
    /// Elements with data of variable length in a heap of their own.
    Heaped(Datatype, Heaped),
    /// References, each with the file that it belongs to; `None` for a null reference.
    References(ReferenceKind, Vec<Option<(Reference, Home)>>),
}

impl NewAttribute {
    /// An attribute whose elements are stored in the message.
    pub fn new(name: impl Into<String>, datatype: Datatype, extent: Extent, data: Vec<u8>) -> Self {
        Self { name: name.into(), extent, values: Values::Stored(datatype, data), committed: None }
    }
}

/// Values with references as the file has them.
fn with_own_references(file: &File, values: Values) -> Result<Values> {
    let Values::Heaped(datatype, heaped) = values else { return Ok(values) };
    let own = file.global_heap().with_own_references(datatype.clone());
    let heaped = match own == datatype {
        true => heaped,
        false => Heaped::from_values(&own, &heaped.values(&datatype)?)?,
    };
    Ok(Values::Heaped(own, heaped))
}

/// Adds an attribute, or replaces the one of that name.
pub fn create(file: &File, object: &Object, new: NewAttribute) -> Result<()> {
    file.medium().require_writable()?;
    let NewAttribute { name, extent, values, committed } = new;
    let committed = committed.map(|committed| committed.address_in(file)).transpose()?;
    let values = match committed {
        Some(address) => of_committed(file, values, address)?,
        None => with_own_references(file, values)?,
    };
    let (datatype, data) = match values {
        Values::Stored(datatype, data) => (datatype, data),
        Values::Heaped(datatype, values) => {
            let attribute = Attribute::new(name, datatype, extent, Vec::new());
            return create_heaped(file, object, Attribute { committed, ..attribute }, &values);
        }
        Values::References(kind, list) => {
            let datatype = reference::datatype(file, kind);
            for (reference, home) in list.iter().flatten() {
                home.check(reference, file)?;
            }
            let list: Vec<_> = list.into_iter().map(|one| one.map(|(found, _)| found)).collect();
            let data = reference::elements(file, &datatype, &list)?;
            (datatype, data)
        }
    };
    let attribute = Attribute { committed, ..Attribute::new(name, datatype, extent, data) };
    create_stored(file, object, attribute).map(drop)
}

/// Creates an attribute whose elements refer to the global heap and are not stored yet.
///
/// The attribute that it replaces stays until the new one is stored. If that made the file longer,
/// the new one is stored once more, in the space of the old one.
fn create_heaped(
    file: &File,
    object: &Object,
    attribute: Attribute,
    values: &Heaped,
) -> Result<()> {
    let heap = file.global_heap();
    if heap.knows_no_room()
        && let Ok(Some(old)) = super::attribute(file, object, &attribute.name)
        && old.datatype.has_varlen()
    {
        // An element that cannot be read has no room.
        let _ = heap.load(&old.datatype, old.data);
    }
    let store = || {
        let mut data = values.elements.clone();
        heap.store(&attribute.datatype, &mut data, &values.heap)?;
        create_stored(file, object, Attribute { data, ..attribute.clone() })
    };
    if store()?
        && let Ok(Some(left)) = heap.leave_new()
    {
        // The attribute is stored already: a failure here only wastes space.
        let _ = store();
        heap.return_to(left);
    }
    Ok(())
}

/// Creates an attribute whose elements are stored already. Says whether it replaced another one.
fn create_stored(file: &File, object: &Object, attribute: Attribute) -> Result<bool> {
    file.check_datatype(&attribute.datatype)?;
    let (name, datatype) = (attribute.name.clone(), attribute.datatype.clone());
    let data = attribute.data.clone();
    set(file, object, attribute).inspect_err(|error| {
        // The attribute may have been stored all the same, and needs its objects. A further failure
        // only wastes space.
        let stored = super::attribute(file, object, &name);
        let refers = stored.map(|found| found.is_some_and(|found| found.data == data));
        if !matches!(error, Error::Io { .. }) && !refers.unwrap_or(true) {
            let _ = discard(file, &datatype, data);
        }
    })
}

/// Elements in the type of a committed datatype.
fn of_committed(file: &File, values: Values, address: u64) -> Result<Values> {
    let object = file.object(address)?;
    let wanted = object_datatype(file, &object)?;
    Ok(match values {
        Values::Stored(datatype, data) if datatype != wanted => {
            let conversion = Conversion::new(&datatype, &wanted)?;
            let count = data.len() / datatype.size().max(1);
            let mut converted = zeroed(count.saturating_mul(wanted.size()))?;
            conversion.convert(&data, &mut converted)?;
            Values::Stored(wanted, converted)
        }
        Values::Stored(..) => values,
        Values::Heaped(ref datatype, _) if *datatype == wanted => values,
        Values::Heaped(datatype, values) => {
            let values = HeapedConversion::writing(&datatype, &wanted)?.convert(&values)?;
            match wanted.has_varlen() {
                true => Values::Heaped(wanted, values),
                false => Values::Stored(wanted, values.elements),
            }
        }
        Values::References(..) => {
            let what =
                format!("an attribute of a committed {wanted} with elements of another type");
            return Err(Error::TypeMismatch(what));
        }
    })
}

/// The elements of an attribute that was read before, with what they refer to. If the attribute was
/// replaced meanwhile, gives the elements of the one that has its name now.
pub fn load(file: &File, object: &Object, known: &Attribute) -> Result<Heaped> {
    let (datatype, data) = (&known.datatype, known.data.clone());
    if !datatype.has_varlen() {
        return Ok(Heaped { elements: data, heap: Vec::new() });
    }
    // Taken before the attribute is looked up, so that its objects stay.
    let _reading = file.global_heap().reading();
    let data = if file.writable() { current(file, object, known)? } else { data };
    file.global_heap().load(datatype, data)
}

/// The elements of the attribute that has the name, type and shape of a known one.
fn current(file: &File, object: &Object, known: &Attribute) -> Result<Vec<u8>> {
    let name = &known.name;
    let found = if object.is_deleted() { None } else { super::attribute(file, object, name)? };
    let Some(found) = found else {
        let what = "was deleted or renamed since it was opened";
        return Err(Error::NotFound(format!("attribute \"{name}\" {what}")));
    };
    if (&found.datatype, &found.extent) != (&known.datatype, &known.extent) {
        let what =
            "was replaced by one of another type or shape since it was opened: open it again";
        return Err(Error::Invalid(format!("attribute \"{name}\" {what}")));
    }
    Ok(found.data)
}

/// Gives back the global heap objects of an attribute that was removed.
pub(super) fn let_go(file: &File, gone: Attribute) -> Result<()> {
    discard(file, &gone.datatype, gone.data)?;
    match gone.committed {
        Some(address) => crate::delete::release(file, address),
        None => Ok(()),
    }
}

fn discard(file: &File, datatype: &Datatype, data: Vec<u8>) -> Result<()> {
    if !datatype.has_varlen() {
        return Ok(());
    }
    match file.global_heap().discard(datatype, data) {
        // Objects that cannot be found in a damaged file cannot be given back.
        Err(Error::Io { action, source }) => Err(Error::Io { action, source }),
        _ => Ok(()),
    }
}
