//! Links of a group: hard, soft and external ones, moving and removing them.

use crate::group::split;
use crate::{Group, Node};
use pumice_engine::group::{self, GroupSpec};
use pumice_engine::{Error, Result, delete};
use pumice_format::messages::LinkTarget;

/// The properties of a new group.
///
/// ```
/// use pumice::{File, GroupOptions};
///
/// let file = File::in_memory()?;
/// let runs = file.create_group_with("runs", &GroupOptions::new().track_order(true))?;
/// runs.create_group("second")?;
/// runs.create_group("first")?;
/// let orders: Vec<_> = runs.members()?.iter().map(|member| member.creation_order).collect();
/// assert_eq!(orders, [Some(1), Some(0)], "members are listed by name");
/// # Ok::<(), pumice::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupOptions {
    pub(crate) spec: GroupSpec,
}

impl GroupOptions {
    /// A group like most.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps the order in which links are made, and finds them by it.
    pub fn track_order(mut self, track: bool) -> Self {
        (self.spec.track_order, self.spec.index_order) = (track, track);
        self
    }

    /// Keeps the order in which attributes are made.
    pub fn track_attribute_order(mut self, track: bool) -> Self {
        self.spec.track_attribute_order = track;
        self
    }

    /// More links than `max_compact` (8 unless set) are kept in a heap of their own, fewer than
    /// `min_dense` (6) in the group's header.
    pub fn phase_change(mut self, max_compact: u16, min_dense: u16) -> Self {
        self.spec.phase_change = Some((max_compact, min_dense.min(max_compact)));
        self
    }

    /// More attributes than `max_compact` (8 unless set) are kept in a heap of their own, fewer than
    /// `min_dense` (6) in the group's header: libhdf5's `H5Pset_attr_phase_change`.
    ///
    /// ```
    /// use pumice::{File, GroupOptions};
    ///
    /// let file = File::in_memory()?;
    /// let group = file.create_group_with("g", &GroupOptions::new().attribute_phase_change(1, 0))?;
    /// group.set_attribute("one", 1)?;
    /// assert_eq!(group.space()?.attribute_heap, 0);
    /// group.set_attribute("two", 2)?;
    /// file.flush()?;
    /// assert!(group.space()?.attribute_heap > 0);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn attribute_phase_change(mut self, max_compact: u16, min_dense: u16) -> Self {
        self.spec.attribute_phase_change = Some((max_compact, min_dense.min(max_compact)));
        self
    }
}

impl Group {
    /// Makes another hard link, at `path`, to the object at `target`.
    ///
    /// ```
    /// let file = pumice::File::in_memory()?;
    /// file.create_group("a")?;
    /// file.create_hard_link("b", "a")?;
    /// assert_eq!(file.group("a")?.address(), file.group("b")?.address());
    /// assert_eq!(file.group("a")?.link_count(), 2);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn create_hard_link(&self, path: &str, target: &str) -> Result<()> {
        let (owner, object) = self.resolve(target)?;
        self.destination(path)?.link(&owner, &object)
    }

    /// Creates a soft link at `path`: a path that need not lead anywhere. A relative target is
    /// looked up from the link's own group.
    ///
    /// ```
    /// let file = pumice::File::in_memory()?;
    /// file.create_soft_link("latest", "/runs/7")?;
    /// assert!(!file.contains("latest"));
    /// file.create_group("runs/7")?;
    /// assert!(file.contains("latest"));
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn create_soft_link(&self, path: &str, target: &str) -> Result<()> {
        self.destination(path)?.link_to(LinkTarget::Soft { path: target.into() })
    }

    /// Makes an external link at `path`: a path in another file, which need not exist.
    pub fn create_external_link(&self, path: &str, file: &str, target: &str) -> Result<()> {
        self.destination(path)?
            .link_to(LinkTarget::External { file: file.into(), path: target.into() })
    }

    /// Moves the link at `path` to another path in the same file. Groups on the way are created. A
    /// soft or external link at the end of the path is moved itself, not followed.
    ///
    /// ```
    /// let file = pumice::File::in_memory()?;
    /// file.create_group("new/run")?;
    /// file.rename("new/run", "done/run1")?;
    /// assert!(file.contains("done/run1") && !file.contains("new/run"));
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn rename(&self, path: &str, new_path: &str) -> Result<()> {
        let full = self.child_path(path);
        let at = |error: Error| error.at(&full);
        let (folders, name) = split(path);
        let from = self.folder(folders)?;
        if group::link(from.engine(), from.object(), name).map_err(at)?.is_none() {
            return Err(Error::NotFound(format!("no link \"{name}\"")).at(&full));
        }
        self.destination(new_path)?.take(&from, name).map_err(at)
    }

    /// Removes a name. An object that had only this name is deleted, with everything that only it
    /// led to, and its space is reused. As with libhdf5, one that is open can still be used, and goes
    /// when its last handle does.
    ///
    /// ```
    /// let file = pumice::File::in_memory()?;
    /// let data = file.new_dataset::<i32>().shape([3]).create("data")?;
    /// file.unlink("data")?;
    /// data.write(.., &[1, 2, 3])?;
    /// assert_eq!(data.read::<i32>(..)?, [1, 2, 3]);
    /// assert!(!file.contains("data"));
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn unlink(&self, path: &str) -> Result<()> {
        let full = self.child_path(path);
        let at = |error: Error| error.at(&full);
        let (folders, name) = split(path);
        let parent = self.folder(folders)?;
        parent.changing()?.medium().require_writable().map_err(at)?;
        delete::unlink(parent.engine(), parent.object(), name).map_err(at)
    }

    /// The number of members.
    ///
    /// ```
    /// let file = pumice::File::in_memory()?;
    /// file.create_group("a")?;
    /// assert_eq!(file.member_count()?, 1);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn member_count(&self) -> Result<u64> {
        let count = group::count(self.engine(), self.object());
        count.map_err(|error| error.at(self.path()))
    }

    fn folder(&self, folders: &str) -> Result<Group> {
        match self.node(if folders.is_empty() { "." } else { folders })? {
            Node::Group(group) => Ok(group),
            _ => Err(Error::WrongKind("not a group".into()).at(&self.child_path(folders))),
        }
    }
}
