//! The place of a new link: a group, and a name in it.
//!
//! A path may lead through external links, so the group may be in another file than the start of
//! the path. The place creates its object in the group's own file: an address of one file means
//! nothing in another.

use crate::file::Owner;
use crate::{Group, ObjectPath};
use pumice_engine::file::File as Engine;
use pumice_engine::object::Object;
use pumice_engine::{Error, Result, delete, group};
use pumice_format::messages::{Link, LinkTarget};
use std::sync::Arc;

/// A name in a group, for something that is to come.
pub(crate) struct Destination<'a> {
    group: Group,
    name: &'a str,
    /// The path of the new object.
    pub(crate) path: ObjectPath,
}

impl<'a> Destination<'a> {
    /// A name in a group whose file is ready for a change.
    pub(crate) fn new(group: Group, name: &'a str) -> Result<Self> {
        group.changing()?;
        let path = group.child_path(name);
        Ok(Self { group, name, path })
    }

    /// The owner that keeps the place's file open.
    pub(crate) fn owner(&self) -> &Arc<Owner> {
        self.group.owner()
    }

    /// Makes an object in the file of this place and gives it its name, or gives its space back if that
    /// cannot be.
    pub(crate) fn fill<T>(
        &self,
        make: impl FnOnce(&Engine) -> Result<T>,
        object: impl Fn(&T) -> &Arc<Object>,
    ) -> Result<T> {
        let filled = || -> Result<T> {
            let file = self.group.engine();
            file.medium().require_writable()?;
            if group::link(file, self.group.object(), self.name)?.is_some() {
                return Err(Error::Exists("exists already".into()));
            }
            let made = make(file)?;
            let new = object(&made);
            group::insert_object(file, self.group.object(), self.name, new).inspect_err(|_| {
                // The first error says more than one about this.
                let _ = delete::release(file, new.address());
            })?;
            Ok(made)
        };
        filled().map_err(|error| error.at(&self.path))
    }

    /// Creates another hard link to an object of the same file.
    pub(crate) fn link(&self, owner: &Arc<Owner>, object: &Object) -> Result<()> {
        let linked = || -> Result<()> {
            if !self.is_in(owner) {
                let what =
                    "a hard link cannot lead to another file; make an external link or a copy";
                return Err(Error::Invalid(what.into()));
            }
            object.add_link()?;
            let file = self.group.engine();
            let made = group::insert_object(file, self.group.object(), self.name, object);
            if made.is_err() {
                object.remove_link()?;
            }
            made
        };
        linked().map_err(|error| error.at(&self.path))
    }

    /// Makes a link that is no hard one.
    pub(crate) fn link_to(&self, target: LinkTarget) -> Result<()> {
        let link = Link::new(self.name, target);
        let made = group::insert(self.group.engine(), self.group.object(), link);
        made.map_err(|error| error.at(&self.path))
    }

    /// Moves a link from a group of the same file here.
    pub(crate) fn take(&self, from: &Group, name: &str) -> Result<()> {
        if !self.is_in(from.owner()) {
            return Err(Error::Invalid("links do not move between files".into()));
        }
        let to = (self.group.object().as_ref(), self.name);
        group::rename(self.group.engine(), (from.object(), name), to)
    }

    /// Whether the place is in this file.
    pub(crate) fn is_in(&self, owner: &Arc<Owner>) -> bool {
        std::ptr::eq(&*owner.0, self.group.engine())
    }
}
