//! Committed datatypes: datatypes with a name of their own, which datasets and attributes share.

use crate::file::Owner;
use crate::{Attribute, AttributeValue, DatasetBuilder, Group, ObjectPath};
use pumice_engine::attribute::NewAttribute;
use pumice_engine::file::File as Engine;
use pumice_engine::object::Object;
use pumice_engine::shared::Committed;
use pumice_engine::{Result, attribute, copy};
use pumice_format::messages::{datatype, kind};
use pumice_format::object_header::{MESSAGE_CONSTANT, RawMessage};
use pumice_types::Datatype;
use std::sync::Arc;

impl Group {
    /// Commits a datatype: stores it under a name of its own.
    ///
    /// ```
    /// use pumice::{H5Type, File};
    ///
    /// let file = File::in_memory()?;
    /// file.commit_datatype("types/count", &u16::datatype())?;
    /// assert_eq!(file.committed_datatype("types/count")?.datatype(), &u16::datatype());
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn commit_datatype(&self, path: &str, datatype: &Datatype) -> Result<CommittedDatatype> {
        let place = self.destination(path)?;
        let make = |file: &Engine| {
            let mut body = Vec::new();
            // Addresses may have another width where a link leads to.
            let datatype = match place.is_in(self.owner()) {
                true => datatype.clone(),
                false => copy::sized(datatype, file)?,
            };
            datatype::encode_for(file.era(), &datatype, &mut body)?;
            file.check_datatype(&datatype)?;
            let message = RawMessage::new(kind::DATATYPE, MESSAGE_CONSTANT, body);
            file.create_object(vec![message], false)
        };
        let object = place.fill(make, |object| object)?;
        CommittedDatatype::new(place.owner().clone(), object, place.path)
    }

    /// Begins a dataset that shares a committed datatype of this file.
    ///
    /// ```
    /// use pumice::{H5Type, File};
    ///
    /// let file = File::in_memory()?;
    /// let celsius = file.commit_datatype("celsius", &f32::datatype())?;
    /// let dataset = file.new_dataset_of_committed(&celsius).shape([3]).create("outside")?;
    /// dataset.write(.., &[21.5f32, 3.0, -7.25])?;
    /// assert_eq!(dataset.committed_datatype(), Some(celsius.address()));
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn new_dataset_of_committed(&self, datatype: &CommittedDatatype) -> DatasetBuilder {
        self.new_dataset_of(datatype.datatype.clone()).committed(datatype.place())
    }
}

/// A value of an attribute that shares a committed datatype: see [`CommittedDatatype::value`].
#[derive(Clone, Debug)]
pub struct CommittedValue<V> {
    value: V,
    committed: Committed,
}

impl<V: AttributeValue> AttributeValue for CommittedValue<V> {
    fn attribute(&self, name: &str) -> Result<NewAttribute> {
        let value = self.value.attribute(name)?;
        Ok(NewAttribute { committed: Some(self.committed.clone()), ..value })
    }
}

/// A datatype with a name.
#[derive(Clone)]
pub struct CommittedDatatype {
    object: Arc<Object>,
    path: ObjectPath,
    datatype: Datatype,
    /// Last, so that the file is closed after everything else is dropped.
    owner: Arc<Owner>,
}

impl CommittedDatatype {
    pub(crate) fn owner(&self) -> &Arc<Owner> {
        &self.owner
    }

    pub(crate) fn new(owner: Arc<Owner>, object: Arc<Object>, path: ObjectPath) -> Result<Self> {
        let datatype = attribute::object_datatype(&owner.0, &object);
        let datatype = datatype.map_err(|error| error.at(&path))?;
        Ok(Self { owner, object, path, datatype })
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.owner.0
    }

    /// The file, ready for a change. To be called before the change begins.
    fn changing(&self) -> Result<&Engine> {
        self.owner.begin_object_change().map_err(|error| error.at(&self.path))?;
        Ok(self.engine())
    }

    fn place(&self) -> Committed {
        Committed::new(self.engine(), self.object.address())
    }

    pub(crate) fn object(&self) -> &Arc<Object> {
        &self.object
    }

    /// A value for an attribute that shares this datatype, converted to it. The attribute's object
    /// must be in the same file.
    ///
    /// ```
    /// use pumice::{H5Type, File};
    ///
    /// let file = File::in_memory()?;
    /// let celsius = file.commit_datatype("celsius", &f32::datatype())?;
    /// file.set_attribute("boiling", celsius.value(100))?;
    /// let boiling = file.attribute("boiling")?;
    /// assert_eq!(boiling.committed_datatype(), Some(celsius.address()));
    /// assert_eq!(boiling.read::<f32>()?, [100.0]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn value<V: AttributeValue>(&self, value: V) -> CommittedValue<V> {
        CommittedValue { value, committed: self.place() }
    }

    /// Its path in the file.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The path of the datatype as a value to keep: it shares its memory with the paths of its groups.
    pub fn object_path(&self) -> &ObjectPath {
        &self.path
    }

    /// The address of its object header: two handles with equal addresses are the same datatype.
    pub fn address(&self) -> u64 {
        self.object.address()
    }

    /// The number of hard links to it.
    pub fn link_count(&self) -> u32 {
        self.object.link_count()
    }

    /// The time of its last change in seconds since 1970, if it keeps that.
    pub fn modified(&self) -> Option<u32> {
        self.object.modified()
    }

    /// The datatype.
    pub fn datatype(&self) -> &Datatype {
        &self.datatype
    }

    /// Whether it has an attribute with this name.
    pub fn has_attribute(&self, name: &str) -> Result<bool> {
        let has = attribute::has(self.engine(), &self.object, name);
        has.map_err(|error| error.at(&self.path))
    }

    /// The names of its attributes, in order.
    pub fn attribute_names(&self) -> Result<Vec<String>> {
        let names = attribute::names(self.engine(), &self.object);
        names.map_err(|error| error.at(&self.path))
    }

    /// Its attributes, in order of their names.
    pub fn attributes(&self) -> Result<Vec<Attribute>> {
        Attribute::all(&self.owner, &self.object, &self.path)
    }

    /// Adds or replaces an attribute.
    pub fn set_attribute(&self, name: &str, value: impl AttributeValue) -> Result<()> {
        let set = crate::attribute::set(self.changing()?, &self.object, name, &value);
        set.map_err(|error| error.at(&self.path))
    }

    /// The comment that was given to the datatype.
    pub fn comment(&self) -> Option<String> {
        crate::dataset::creation::comment(&self.object)
    }

    /// Sets the datatype's comment, or removes it.
    pub fn set_comment(&self, text: Option<&str>) -> Result<()> {
        self.changing()?;
        let set = crate::dataset::creation::set_comment(&self.object, text);
        set.map_err(|error| error.at(&self.path))
    }

    /// Renames an attribute.
    ///
    /// ```
    /// use pumice::{H5Type, File};
    ///
    /// let file = File::in_memory()?;
    /// let celsius = file.commit_datatype("celsius", &f32::datatype())?;
    /// celsius.set_attribute("unit", "K")?;
    /// celsius.rename_attribute("unit", "difference in")?;
    /// assert_eq!(celsius.attribute("difference in")?.read_string()?, "K");
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn rename_attribute(&self, name: &str, new_name: &str) -> Result<()> {
        let renamed = attribute::rename(self.changing()?, &self.object, name, new_name);
        renamed.map_err(|error| error.at(&self.path))
    }

    /// Removes an attribute.
    pub fn remove_attribute(&self, name: &str) -> Result<()> {
        let removed = attribute::remove(self.changing()?, &self.object, name);
        removed.map_err(|error| error.at(&self.path))
    }

    /// The attribute of a name.
    pub fn attribute(&self, name: &str) -> Result<Attribute> {
        Attribute::find(&self.owner, &self.object, &self.path, name)
    }
}
