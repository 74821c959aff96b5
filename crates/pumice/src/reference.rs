//! Following references: to objects, to regions of datasets, to attributes.

use crate::file::Owner;
use crate::{Attribute, Dataset, Group, Node, Select, Selection};
use pumice_engine::reference::{self, Reference as Stored, Target};
use pumice_engine::{Error, Result};
use pumice_types::Datatype;
use std::sync::Arc;

/// A reference as a file has it: to an object, to elements of a dataset or to an attribute.
///
/// Which file it leads to is known only where it was read: follow it with the group or file there
/// ([`Group::dereference`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference(Stored);

impl Reference {
    /// The address of the object's header.
    pub fn address(&self) -> u64 {
        self.0.address
    }

    /// The file that it leads to, if it is not the one that it is in.
    pub fn file(&self) -> Option<&str> {
        self.0.file.as_deref()
    }

    /// Whether it means elements of a dataset.
    pub fn is_region(&self) -> bool {
        matches!(self.0.target, Target::Region { .. })
    }

    /// The name of the attribute that it means, if it means one.
    pub fn attribute(&self) -> Option<&str> {
        match &self.0.target {
            Target::Attribute(name) => Some(name),
            _ => None,
        }
    }
}

impl Group {
    /// The references in elements of a reference type of this file, such as those of
    /// [`Value::Reference`](crate::Value::Reference); `None` for those that lead nowhere.
    pub fn references(
        &self,
        datatype: &Datatype,
        elements: &[u8],
    ) -> Result<Vec<Option<Reference>>> {
        let found = reference::references(self.engine(), datatype, elements)?;
        Ok(found.into_iter().map(|found| found.map(Reference)).collect())
    }

    /// The object that a reference of this file leads to. Its path is not known: see
    /// [`path_of`](Self::path_of).
    pub fn dereference(&self, reference: &Reference) -> Result<Node> {
        let owner = match reference.file() {
            Some(name) => Arc::new(Owner(reference::other_file(self.engine(), name)?)),
            None => self.owner().clone(),
        };
        let address = reference.address();
        let path = format!("<object at {address:#x}>");
        let object = owner.0.object(address).map_err(|error| error.at(&path))?;
        crate::group::open(owner, object, path)
    }

    /// The dataset and the elements of it that a reference of this file leads to; all of them if it
    /// means the dataset as a whole.
    pub fn dereference_region(&self, reference: &Reference) -> Result<(Dataset, Selection)> {
        let Node::Dataset(dataset) = self.dereference(reference)? else {
            return Err(Error::Invalid("a reference to something that is no dataset".into()));
        };
        let selection = reference::selection(&reference.0, dataset.shape().len())?;
        Ok((dataset, selection))
    }

    /// The attribute that a reference of this file leads to.
    pub fn dereference_attribute(&self, reference: &Reference) -> Result<Attribute> {
        let name = reference.attribute();
        let name = name.ok_or_else(|| Error::Invalid("a reference to no attribute".into()))?;
        match self.dereference(reference)? {
            Node::Group(group) => group.attribute(name),
            Node::Dataset(dataset) => dataset.attribute(name),
            Node::Datatype(datatype) => datatype.attribute(name),
        }
    }
}

impl Dataset {
    /// Its elements, if they are references.
    pub fn read_references(&self, selection: impl Select) -> Result<Vec<Option<Reference>>> {
        let bytes = self.read_bytes(selection)?;
        let found = reference::references(&self.owner().0, self.datatype(), &bytes);
        let found = found.map_err(|error| error.at(self.path()))?;
        Ok(found.into_iter().map(|found| found.map(Reference)).collect())
    }
}

impl Attribute {
    /// Its elements, if they are references.
    pub fn read_references(&self) -> Result<Vec<Option<Reference>>> {
        let found = reference::references(&self.owner().0, self.datatype(), self.bytes())?;
        Ok(found.into_iter().map(|found| found.map(Reference)).collect())
    }
}
