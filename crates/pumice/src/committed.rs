//! Committed datatypes: datatypes with a name of their own, which datasets and attributes share.

use crate::Attribute;
use crate::file::Owner;
use pumice_engine::object::Object;
use pumice_engine::{Result, attribute};
use pumice_types::Datatype;
use std::sync::Arc;

/// A datatype with a name.
#[derive(Clone)]
pub struct CommittedDatatype {
    owner: Arc<Owner>,
    object: Arc<Object>,
    path: String,
    datatype: Datatype,
}

impl CommittedDatatype {
    pub(crate) fn new(owner: Arc<Owner>, object: Arc<Object>, path: String) -> Result<Self> {
        let datatype = attribute::object_datatype(&owner.0, &object);
        let datatype = datatype.map_err(|error| error.at(&path))?;
        Ok(Self { owner, object, path, datatype })
    }

    /// Its path in the file.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The address of its object header: two handles with equal addresses are the same datatype.
    pub fn address(&self) -> u64 {
        self.object.address()
    }

    /// How many hard links lead to it.
    pub fn link_count(&self) -> u32 {
        self.object.link_count()
    }

    /// When it was last changed, in seconds since 1970, if it keeps that.
    pub fn modified(&self) -> Option<u32> {
        self.object.modified()
    }

    /// The datatype.
    pub fn datatype(&self) -> &Datatype {
        &self.datatype
    }

    /// Its attributes, in order of their names.
    pub fn attributes(&self) -> Result<Vec<Attribute>> {
        Attribute::all(&self.owner, &self.object, &self.path)
    }

    /// The attribute of a name.
    pub fn attribute(&self, name: &str) -> Result<Attribute> {
        Attribute::find(&self.owner, &self.object, &self.path, name)
    }
}
