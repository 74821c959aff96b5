//! Copying objects with everything below them, within a file and between files.

use crate::Group;
use pumice_engine::file::File as Engine;
use pumice_engine::{Result, copy};

/// Options of [`Group::copy_object`]: libhdf5's object copy properties.
///
/// ```
/// use pumice::{CopyOptions, File};
///
/// let (from, to) = (File::in_memory()?, File::in_memory()?);
/// let runs = from.create_group("runs")?;
/// runs.new_dataset::<i32>().shape([3]).create("first")?.write(.., &[1, 2, 3])?;
/// runs.create_soft_link("latest", "first")?;
///
/// let options = CopyOptions::new().expand_soft_links(true);
/// from.copy_object("runs", &to, "archive/2026", &options)?;
/// assert_eq!(to.dataset("archive/2026/latest")?.read::<i32>(..)?, [1, 2, 3]);
/// assert_eq!(to.dataset("archive/2026/first")?.link_count(), 2, "one dataset with two names");
/// # Ok::<(), pumice::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyOptions {
    inner: copy::CopyOptions,
}

impl CopyOptions {
    /// Everything below an object, links as links, and all attributes.
    pub fn new() -> Self {
        Self::default()
    }

    pub(crate) fn engine(&self) -> &copy::CopyOptions {
        &self.inner
    }

    /// Copies of a group only itself and its members; member groups stay empty.
    pub fn shallow(mut self, shallow: bool) -> Self {
        self.inner.shallow = shallow;
        self
    }

    /// Copies the targets of soft links instead of the links. A dangling link stays a link.
    pub fn expand_soft_links(mut self, expand: bool) -> Self {
        self.inner.expand_soft_links = expand;
        self
    }

    /// Copies the targets of external links instead of the links. A dangling link stays a link.
    pub fn expand_external_links(mut self, expand: bool) -> Self {
        self.inner.expand_external_links = expand;
        self
    }

    /// Copies the objects of references as well, when copying to another file, and lets the
    /// references lead to the copies; an object without another name is linked in the root group.
    /// Without this, references to objects become null in another file.
    pub fn expand_references(mut self, expand: bool) -> Self {
        self.inner.expand_references = expand;
        self
    }

    /// Leaves out attributes.
    pub fn without_attributes(mut self, without: bool) -> Self {
        self.inner.without_attributes = without;
        self
    }

    /// Leaves out objects that are newer than this program, with links and references to them.
    /// Without this, one such object is an error ([`Error::is_newer`](crate::Error::is_newer)), and
    /// nothing is copied.
    pub fn leave_newer(mut self, leave: bool) -> Self {
        self.inner.leave_newer = leave;
        self
    }

    /// Uses committed datatypes that the other file has already instead of copying them.
    pub fn merge_committed_datatypes(mut self, merge: bool) -> Self {
        self.inner.merge_committed_datatypes = merge;
        self
    }
}

impl Group {
    /// Copies the object at `path`, with everything below it, to `new_path` of the group `to`, which
    /// may be in another file. Groups on the way are made.
    ///
    /// An object with several links is copied once, and linked as often. Stored chunks are copied
    /// as they are, not decoded.
    ///
    /// ```
    /// use pumice::{CopyOptions, File};
    ///
    /// let file = File::in_memory()?;
    /// file.create_group("a/b")?;
    /// file.copy_object("a", &file, "c", &CopyOptions::new())?;
    /// assert!(file.contains("c/b"));
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn copy_object(
        &self,
        path: &str,
        to: &Group,
        new_path: &str,
        options: &CopyOptions,
    ) -> Result<()> {
        let (owner, object) = self.resolve(path)?;
        let place = to.destination(new_path)?;
        let copied = |file: &Engine| {
            let copy = copy::copy(&owner.0, &object, file, &options.inner)?;
            file.object(copy)
        };
        place.fill(copied, |copy| copy).map(drop)
    }
}
