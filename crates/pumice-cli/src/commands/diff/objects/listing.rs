//! The contents of a file: objects and links, in the order of a walk.
//!
//! Paths are front-coded: an entry stores only its difference from the one before. In files of many
//! levels all paths together are far longer than the file; a [`Cursor`] builds them one after
//! another.

use anyhow::Result;
use pumice::{File, Group, MemberKind, Node};
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

/// The kind of member at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Group,
    Dataset,
    Datatype,
    SoftLink,
    OtherLink,
}

impl Type {
    /// HDF5's name of the type.
    pub(super) fn name(self) -> &'static str {
        match self {
            Type::Group => "H5G_GROUP",
            Type::Dataset => "H5G_DATASET",
            Type::Datatype => "H5G_TYPE",
            Type::SoftLink => "H5G_LINK",
            Type::OtherLink => "H5G_UDLINK",
        }
    }

    /// The common name of the type.
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

/// An object among all files: the number of its file, and its address there.
pub(super) type Identity = (usize, u64);

/// Which of the two files an object is in. h5diff compares objects of other files, behind external
/// links, each time it meets them.
pub(super) struct Files {
    numbers: HashMap<PathBuf, usize>,
    /// The files that are compared.
    sides: [usize; 2],
}

impl Files {
    /// The identities for two files; `same` says that they are one.
    pub(super) fn new(files: [&File; 2], same: bool) -> Self {
        let mut numbers = HashMap::new();
        for (side, file) in files.iter().enumerate() {
            if let Some(path) = file.file_path().and_then(|path| path.canonicalize().ok()) {
                numbers.entry(path).or_insert(side);
            }
        }
        Self { numbers, sides: [0, usize::from(!same)] }
    }

    /// The identity of a node of one side. `elsewhere`: an external link led to it.
    pub(super) fn identity(&self, side: usize, node: &Node, elsewhere: bool) -> Option<Identity> {
        if !elsewhere {
            return Some((self.sides[side], node.address()));
        }
        let file = node.file().ok()?;
        let path = file.file_path()?.canonicalize().ok()?;
        Some((*self.numbers.get(&path)?, node.address()))
    }
}

/// An object or link that was found.
pub(super) struct Found {
    /// The number of bytes that the path shares with the one before it.
    keep: usize,
    /// The rest of the path.
    tail: Box<str>,
    pub(super) kind: Type,
    /// The link, if the entry is a link that is not followed.
    pub(super) link: Option<MemberKind>,
    pub(super) identity: Option<Identity>,
    /// The group that it is a member of; `None` for the group that was listed.
    parent: Option<usize>,
}

/// A group and everything below it.
pub(super) struct Listing {
    /// The common beginning of paths; empty for the root group.
    pub(super) root: String,
    pub(super) found: Vec<Found>,
    groups: Vec<Group>,
    /// Whether a link leads nowhere.
    pub(super) dangling: bool,
    /// Unreadable members, with the reason.
    pub(super) unreadable: Vec<String>,
}

impl Listing {
    /// Everything below a group, and the group itself; with the targets of links if they are to be
    /// followed.
    pub(super) fn of(
        file: &File,
        path: &str,
        side: usize,
        follow: bool,
        files: &Files,
    ) -> Result<Self> {
        let root = path.trim_end_matches('/').to_owned();
        let group = if root.is_empty() { Group::clone(file) } else { file.group(path)? };
        let node = Node::Group(group.clone());
        let identity = files.identity(side, &node, false);
        let tail = if root.is_empty() { "/" } else { "" };
        let found = Found {
            keep: 0,
            tail: tail.into(),
            kind: Type::Group,
            link: None,
            identity,
            parent: None,
        };
        let found = vec![found];
        let listing =
            Self { root, found, groups: Vec::new(), dangling: false, unreadable: Vec::new() };
        let mut walk = Walk { listing, files, side, follow, followed: HashSet::new() };
        walk.run(group);
        Ok(walk.listing)
    }

    /// Opens the object of an entry; links are followed.
    pub(super) fn open(&self, found: &Found) -> pumice::Result<Node> {
        match found.parent {
            Some(parent) => self.groups[parent].node(&found.tail[1..]),
            None => Ok(Node::Group(self.groups[0].clone())),
        }
    }

    /// Goes through the paths.
    pub(super) fn cursor(&self) -> Cursor<'_> {
        Cursor { listing: self, next: 0, path: self.root.clone() }
    }
}

/// Puts together the paths of a listing, one after another.
pub(super) struct Cursor<'a> {
    listing: &'a Listing,
    next: usize,
    path: String,
}

impl<'a> Cursor<'a> {
    /// Goes on to an entry that was not reached yet, or stays; answers how many bytes of the path behind the
    /// listing's own have remained on the way.
    pub(super) fn go(&mut self, index: usize) -> usize {
        let mut least = self.path.len();
        while self.next <= index
            && let Some(found) = self.listing.found.get(self.next)
        {
            let keep = self.listing.root.len() + found.keep;
            self.path.truncate(keep);
            self.path.push_str(&found.tail);
            least = least.min(keep);
            self.next += 1;
        }
        least - self.listing.root.len()
    }

    /// The whole path.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// The path behind that of the listing.
    pub(super) fn relative(&self) -> &str {
        &self.path[self.listing.root.len()..]
    }
}

struct Walk<'a> {
    listing: Listing,
    files: &'a Files,
    side: usize,
    follow: bool,
    /// Links that were followed.
    followed: HashSet<String>,
}

struct Level {
    group: usize,
    members: std::vec::IntoIter<pumice::Member>,
    /// Bytes of its path.
    length: usize,
    /// Whether an external link led here.
    elsewhere: bool,
    /// Addresses of groups that were entered since a link was followed, in the level where that happened: up to
    /// the next link, all are in one file.
    entered: HashSet<u64>,
    /// The number of the level.
    start: usize,
}

impl Walk<'_> {
    fn run(&mut self, group: Group) {
        let start = group.address();
        let mut stack = vec![self.level(group, 0, false, 0)];
        stack[0].entered.insert(start);
        while let Some(level) = stack.last_mut() {
            let Some(member) = level.members.next() else {
                stack.pop();
                continue;
            };
            let (parent, length, elsewhere) = (level.group, level.length, level.elsewhere);
            let start = level.start;
            if let MemberKind::Unreadable(reason) = &member.kind {
                let path = self.listing.groups[parent].object_path().child(&member.name);
                self.listing.unreadable.push(format!("{path}: {reason}"));
            }
            let Some(kind) = kind_of(&member.kind) else { continue };
            let tail = format!("/{}", member.name);
            let length = (length, length + tail.len());
            let mut found = Found {
                keep: length.0,
                tail: tail.into(),
                kind,
                link: None,
                identity: None,
                parent: Some(parent),
            };
            if kind.is_link() && !self.follow {
                found.link = Some(member.kind);
                self.listing.found.push(found);
                continue;
            }
            let node = match self.listing.groups[parent].node(&member.name) {
                Ok(node) => node,
                Err(_) if kind.is_link() => {
                    self.listing.dangling = true;
                    found.link = Some(member.kind);
                    self.listing.found.push(found);
                    continue;
                }
                Err(error) => {
                    self.listing.unreadable.push(error.to_string());
                    continue;
                }
            };
            if kind.is_link() && !self.followed.insert(format!("{:?}", member.kind)) {
                continue;
            }
            let elsewhere = elsewhere || kind == Type::OtherLink;
            found.identity = self.files.identity(self.side, &node, elsewhere);
            found.kind = Type::of(&node);
            self.listing.found.push(found);
            let Node::Group(inner) = node else { continue };
            // The target of a link is listed even if it was before.
            let (start, address) =
                (if kind.is_link() { stack.len() } else { start }, inner.address());
            if !kind.is_link() && !stack[start].entered.insert(address) {
                continue;
            }
            let mut level = self.level(inner, length.1, elsewhere, start);
            if kind.is_link() {
                level.entered.insert(address);
            }
            stack.push(level);
        }
    }

    fn level(&mut self, group: Group, length: usize, elsewhere: bool, start: usize) -> Level {
        let members = group.members().unwrap_or_else(|error| {
            self.listing.unreadable.push(error.to_string());
            Vec::new()
        });
        self.listing.groups.push(group);
        let (group, members) = (self.listing.groups.len() - 1, members.into_iter());
        Level { group, members, length, elsewhere, entered: HashSet::new(), start }
    }
}

/// The kind of a member, links not followed.
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
