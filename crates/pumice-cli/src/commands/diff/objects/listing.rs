//! What is in a file: objects and links, with their paths.

use anyhow::{Result, bail};
use pumice::{File, Group, MemberKind, Node};
use std::collections::HashSet;

/// What stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Group,
    Dataset,
    Datatype,
    SoftLink,
    OtherLink,
}

impl Type {
    /// As HDF5 names it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Type::Group => "H5G_GROUP",
            Type::Dataset => "H5G_DATASET",
            Type::Datatype => "H5G_TYPE",
            Type::SoftLink => "H5G_LINK",
            Type::OtherLink => "H5G_UDLINK",
        }
    }

    /// As people name it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Type::Group => "group",
            Type::Dataset => "dataset",
            Type::Datatype => "datatype",
            Type::SoftLink => "link",
            Type::OtherLink => "external link",
        }
    }

    pub(super) fn is_link(self) -> bool {
        matches!(self, Type::SoftLink | Type::OtherLink)
    }

    pub(super) fn of(node: &Node) -> Self {
        match node {
            Node::Group(_) => Type::Group,
            Node::Dataset(_) => Type::Dataset,
            Node::Datatype(_) => Type::Datatype,
        }
    }
}

/// An object or link that was found, with the address of an object in the file itself.
pub(super) struct Found {
    pub(super) path: String,
    pub(super) kind: Type,
    pub(super) address: Option<u64>,
}

/// Lists what is in a file.
pub(super) struct Listing<'a> {
    file: &'a File,
    follow: bool,
    pub(super) found: Vec<Found>,
    /// Groups that were entered.
    entered: HashSet<u64>,
    /// Links that were followed.
    followed: HashSet<String>,
    /// Whether a link leads nowhere.
    pub(super) dangling: bool,
}

impl<'a> Listing<'a> {
    /// Everything below a group, and itself; with what links lead to if they are to be followed.
    pub(super) fn of(file: &'a File, path: &str, follow: bool) -> Result<Self> {
        let group = if path == "/" { Group::clone(file) } else { file.group(path)? };
        let address = Some(group.address());
        let mut listing = Self {
            file,
            follow,
            found: vec![Found { path: path.to_owned(), kind: Type::Group, address }],
            entered: HashSet::from([group.address()]),
            followed: HashSet::new(),
            dangling: false,
        };
        listing.members(&group, path.trim_end_matches('/'), false, 0)?;
        Ok(listing)
    }

    /// Lists the members of a group that is found at `path`. `foreign`: it is in another file.
    fn members(&mut self, group: &Group, path: &str, foreign: bool, depth: usize) -> Result<()> {
        if depth > 1024 {
            bail!("groups nested deeper than 1024");
        }
        for member in group.members()? {
            let path = format!("{path}/{}", member.name);
            let Some(kind) = kind_of(&member.kind) else { continue };
            if kind.is_link() {
                self.link(&path, kind, &member.kind, foreign, depth)?;
                continue;
            }
            let node = group.node(&member.name)?;
            let address = (!foreign).then(|| node.address());
            self.found.push(Found { path: path.clone(), kind, address });
            if let Node::Group(inner) = node
                && (foreign || self.entered.insert(inner.address()))
            {
                self.members(&inner, &path, foreign, depth + 1)?;
            }
        }
        Ok(())
    }

    fn link(
        &mut self,
        path: &str,
        kind: Type,
        link: &MemberKind,
        foreign: bool,
        depth: usize,
    ) -> Result<()> {
        if !self.follow {
            self.found.push(Found { path: path.to_owned(), kind, address: None });
            return Ok(());
        }
        let Ok(node) = self.file.node(path) else {
            self.dangling = true;
            self.found.push(Found { path: path.to_owned(), kind, address: None });
            return Ok(());
        };
        if !self.followed.insert(format!("{link:?}")) {
            return Ok(());
        }
        let foreign = foreign || kind == Type::OtherLink;
        let address = (!foreign).then(|| node.address());
        self.found.push(Found { path: path.to_owned(), kind: Type::of(&node), address });
        if let Node::Group(inner) = node
            && (foreign || self.entered.insert(inner.address()))
        {
            self.members(&inner, path, foreign, depth + 1)?;
        }
        Ok(())
    }
}

/// What a link leads to, links not followed.
pub(super) fn kind_of(kind: &MemberKind) -> Option<Type> {
    match kind {
        MemberKind::Group => Some(Type::Group),
        MemberKind::Dataset => Some(Type::Dataset),
        MemberKind::Datatype => Some(Type::Datatype),
        MemberKind::SoftLink(_) => Some(Type::SoftLink),
        MemberKind::ExternalLink(..) | MemberKind::UserDefinedLink(_) => Some(Type::OtherLink),
        _ => None,
    }
}
