//! Walking through a file: objects are passed to a [`Visitor`] in order of their names, depth
//! first. An object with several names is visited once; its other names are reported as such, which
//! also ends circles. Unreadable objects are reported and do not end the walk.

use anyhow::Result;
use pumice::{CommittedDatatype, Dataset, Error, Group, Member, MemberKind, Node, ObjectPath};
use std::collections::HashMap;

/// The kind of an object with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Group,
    Dataset,
    Datatype,
}

/// Receives the objects of a walk. Paths are absolute.
pub(crate) trait Visitor {
    /// A group; its members follow if the answer is true.
    fn enter_group(&mut self, path: &str, group: &Group) -> Result<bool>;

    /// All members of an entered group have been visited.
    fn leave_group(&mut self, _path: &str) -> Result<()> {
        Ok(())
    }

    /// A dataset.
    fn dataset(&mut self, path: &str, dataset: &Dataset) -> Result<()>;

    /// A committed datatype.
    fn datatype(&mut self, _path: &str, _datatype: &CommittedDatatype) -> Result<()> {
        Ok(())
    }

    /// A name that leads to a link or to an object of no known kind.
    fn other(&mut self, _path: &str, _kind: &MemberKind) -> Result<()> {
        Ok(())
    }

    /// Another name of an object that was visited as `first`.
    fn again(&mut self, _path: &str, _kind: Kind, _first: &str) -> Result<()> {
        Ok(())
    }

    /// Something that could not be read.
    fn failed(&mut self, path: &str, error: Error) -> Result<()>;
}

/// The order in which members are visited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Order {
    /// Visits members by creation, in groups that track it, instead of by name.
    pub(crate) by_creation: bool,
    /// The last one first.
    pub(crate) descending: bool,
}

/// Visits an object, and everything below it if it is a group.
pub(crate) fn walk_node(node: &Node, visitor: &mut dyn Visitor) -> Result<()> {
    match node {
        Node::Group(group) => walk(group, visitor),
        Node::Dataset(dataset) => visitor.dataset(dataset.path(), dataset),
        Node::Datatype(datatype) => visitor.datatype(datatype.path(), datatype),
    }
}

/// Visits `group` and everything below it, by name.
pub(crate) fn walk(group: &Group, visitor: &mut dyn Visitor) -> Result<()> {
    walk_in_order(group, Order::default(), visitor)
}

/// Visits `group` and everything below it.
pub(crate) fn walk_in_order(group: &Group, order: Order, visitor: &mut dyn Visitor) -> Result<()> {
    walk_at(group, group.path(), order, visitor)
}

/// Visits `group`, which is found at `path`, and everything below it.
pub(crate) fn walk_at(
    group: &Group,
    path: &str,
    order: Order,
    visitor: &mut dyn Visitor,
) -> Result<()> {
    let start = ObjectPath::from(path.to_owned());
    let (seen, path) = (HashMap::from([(group.address(), start.clone())]), path.to_owned());
    let mut walk = Walk { seen, stack: Vec::new(), path, order, visitor };
    walk.enter(group.clone(), start)?;
    while let Some(level) = walk.stack.last_mut() {
        walk.path.truncate(level.length);
        if let Some(member) = level.members.next() {
            let (group, path) = (level.group.clone(), level.path.child(&member.name));
            if !walk.path.ends_with('/') {
                walk.path.push('/');
            }
            walk.path.push_str(&member.name);
            walk.member(&group, &member, path)?;
        } else {
            walk.visitor.leave_group(&walk.path)?;
            walk.stack.pop();
        }
    }
    Ok(())
}

/// The last name of a path.
pub(crate) fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

struct Level {
    group: Group,
    path: ObjectPath,
    /// Bytes of that path.
    length: usize,
    members: std::vec::IntoIter<Member>,
}

struct Walk<'a> {
    /// The address of each visited object and the path it was visited by.
    seen: HashMap<u64, ObjectPath>,
    stack: Vec<Level>,
    /// The path of the visited object. Together, the paths of all groups on the way may be far
    /// longer than the file.
    path: String,
    order: Order,
    visitor: &'a mut dyn Visitor,
}

impl Walk<'_> {
    fn enter(&mut self, group: Group, path: ObjectPath) -> Result<()> {
        if !self.visitor.enter_group(&self.path, &group)? {
            return Ok(());
        }
        let members = match group.members() {
            Ok(members) => self.sorted(members),
            Err(error) => {
                self.visitor.failed(&self.path, error.at(&self.path))?;
                Vec::new()
            }
        };
        let (length, members) = (self.path.len(), members.into_iter());
        self.stack.push(Level { group, path, length, members });
        Ok(())
    }

    fn sorted(&self, mut members: Vec<Member>) -> Vec<Member> {
        if self.order.by_creation && members.iter().all(|member| member.creation_order.is_some()) {
            members.sort_by_key(|member| member.creation_order);
        }
        if self.order.descending {
            members.reverse();
        }
        members
    }

    fn member(&mut self, group: &Group, member: &Member, path: ObjectPath) -> Result<()> {
        match &member.kind {
            MemberKind::Group => match group.group(&member.name) {
                Ok(child) => match self.first_path(child.address(), &path) {
                    Some(first) => self.visitor.again(&self.path, Kind::Group, &first),
                    None => self.enter(child, path),
                },
                Err(error) => self.visitor.failed(&self.path, error),
            },
            MemberKind::Dataset => match group.dataset(&member.name) {
                Ok(child) => match self.first_path(child.address(), &path) {
                    Some(first) => self.visitor.again(&self.path, Kind::Dataset, &first),
                    None => self.visitor.dataset(&self.path, &child),
                },
                Err(error) => self.visitor.failed(&self.path, error),
            },
            MemberKind::Datatype => match group.committed_datatype(&member.name) {
                Ok(child) => match self.first_path(child.address(), &path) {
                    Some(first) => self.visitor.again(&self.path, Kind::Datatype, &first),
                    None => self.visitor.datatype(&self.path, &child),
                },
                Err(error) => self.visitor.failed(&self.path, error),
            },
            MemberKind::Unreadable(reason) => {
                // The error itself says more than its words.
                let error = match group.node(&member.name) {
                    Err(error) => error,
                    Ok(_) => Error::Invalid(reason.clone()),
                };
                self.visitor.failed(&self.path, error.at(&self.path))
            }
            kind => self.visitor.other(&self.path, kind),
        }
    }

    /// The path an object was seen by before; otherwise notes the present one.
    fn first_path(&mut self, address: u64, path: &ObjectPath) -> Option<String> {
        if let Some(first) = self.seen.get(&address) {
            return Some(first.to_string());
        }
        self.seen.insert(address, path.clone());
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pumice::File;

    /// Notes everything that happens.
    #[derive(Default)]
    struct Diary(Vec<String>);

    impl Visitor for Diary {
        fn enter_group(&mut self, path: &str, _group: &Group) -> Result<bool> {
            self.0.push(format!("enter {path}"));
            Ok(!path.ends_with("closed"))
        }

        fn leave_group(&mut self, path: &str) -> Result<()> {
            self.0.push(format!("leave {path}"));
            Ok(())
        }

        fn dataset(&mut self, path: &str, _dataset: &Dataset) -> Result<()> {
            self.0.push(format!("dataset {path}"));
            Ok(())
        }

        fn failed(&mut self, path: &str, error: Error) -> Result<()> {
            panic!("{path}: {error}");
        }
    }

    #[test]
    fn objects_come_depth_first_in_order_of_their_names() {
        let file = File::in_memory().unwrap();
        file.create_group("b/closed/hidden").unwrap();
        file.new_dataset::<u8>().create("b/x").unwrap();
        file.new_dataset::<u8>().create("a").unwrap();
        let mut diary = Diary::default();
        walk(&file, &mut diary).unwrap();
        assert_eq!(
            diary.0,
            [
                "enter /",
                "dataset /a",
                "enter /b",
                "enter /b/closed",
                "dataset /b/x",
                "leave /b",
                "leave /"
            ]
        );
    }
}
