//! Links of a group, without following them.

use crate::group::split;
use crate::{Group, Node};
use pumice_engine::{Result, group};
pub use pumice_format::messages::LinkTarget;

impl Group {
    /// The names of its members, each with its place in the order of creation if the group tracks that. No object is
    /// opened.
    ///
    /// ```
    /// let file = pumice::File::in_memory()?;
    /// file.create_group("b")?;
    /// file.create_soft_link("a", "nowhere")?;
    /// let names: Vec<String> = file.link_names()?.into_iter().map(|(name, _)| name).collect();
    /// assert_eq!(names, ["a", "b"]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn link_names(&self) -> Result<Vec<(String, Option<u64>)>> {
        let links = group::links(self.engine(), self.object()).map_err(|e| e.at(self.path()))?;
        Ok(links.into_iter().map(|link| (link.name, link.creation_order)).collect())
    }

    /// The link at `path`, which is not followed; links on the way to it are.
    ///
    /// ```
    /// use pumice::{File, LinkTarget};
    ///
    /// let file = File::in_memory()?;
    /// file.create_soft_link("a/b", "nowhere")?;
    /// assert_eq!(file.link("a/b")?, Some(LinkTarget::Soft { path: "nowhere".into() }));
    /// assert_eq!(file.link("a/c")?, None);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn link(&self, path: &str) -> Result<Option<LinkTarget>> {
        let (folders, name) = split(path);
        let parent = self.group(if folders.is_empty() { "." } else { folders })?;
        let found = group::link(parent.engine(), parent.object(), name);
        Ok(found.map_err(|error| error.at(&self.child_path(path)))?.map(|link| link.target))
    }

    /// Makes a hard link at `path` to an object of this file.
    ///
    /// ```
    /// let file = pumice::File::in_memory()?;
    /// let node = pumice::Node::Group(file.create_group("a")?);
    /// file.link_node("b", &node)?;
    /// assert_eq!(file.group("b")?.address(), node.address());
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn link_node(&self, path: &str, node: &Node) -> Result<()> {
        let (owner, object) = match node {
            Node::Group(group) => (group.owner(), group.object().clone()),
            Node::Dataset(dataset) => (dataset.owner(), dataset.state().object().clone()),
            Node::Datatype(datatype) => (datatype.owner(), datatype.object().clone()),
        };
        self.destination(path)?.link(owner, &object)
    }
}
