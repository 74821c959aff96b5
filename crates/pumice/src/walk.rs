//! Walking through a file: every object once.

use crate::{Group, Member, MemberKind, Node};
use pumice_engine::Result;
use std::collections::HashSet;
use std::ops::ControlFlow;

/// The order in which the members of a group are visited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WalkOrder {
    /// By name.
    #[default]
    Name,
    /// By creation, in groups that track it; by name in others.
    Creation,
}

impl Group {
    /// Visits this group and every object below it that hard links lead to, each once and by the
    /// first path to it; a group comes before its members. Soft and external links are not
    /// followed. An object that cannot be read is visited as an error and hides no other.
    ///
    /// ```
    /// use pumice::{File, WalkOrder};
    /// use std::ops::ControlFlow;
    ///
    /// let file = File::in_memory()?;
    /// file.create_group("a/b")?;
    /// file.new_dataset::<i32>().shape([3]).create("a/x")?;
    /// let mut paths = Vec::new();
    /// let _ = file.walk(WalkOrder::Name, |path, _| {
    ///     paths.push(path.to_string());
    ///     ControlFlow::<()>::Continue(())
    /// });
    /// assert_eq!(paths, ["/", "/a", "/a/b", "/a/x"]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn walk<B>(
        &self,
        order: WalkOrder,
        mut visit: impl FnMut(&str, Result<Node>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let mut seen = HashSet::from([self.address()]);
        // The path of the visited object.
        let mut path = self.path().to_owned();
        visit(&path, Ok(Node::Group(self.clone())))?;
        // Groups on the way to where we are, each with the members that are left. Not recursive: a
        // file may be deeper than a thread's stack.
        let mut way = vec![(self.clone(), path.len(), ordered(self, &path, order, &mut visit)?)];
        while let Some((group, length, left)) = way.last_mut() {
            let Some(member) = left.next() else {
                way.pop();
                continue;
            };
            if !is_hard(&member.kind) {
                continue;
            }
            path.truncate(*length);
            if !path.ends_with('/') {
                path.push('/');
            }
            path.push_str(&member.name);
            let node = group.node(&member.name);
            if node.as_ref().is_ok_and(|node| !seen.insert(node.address())) {
                continue;
            }
            let next = match &node {
                Ok(Node::Group(group)) => Some(group.clone()),
                _ => None,
            };
            visit(&path, node)?;
            if let Some(group) = next {
                let members = ordered(&group, &path, order, &mut visit)?;
                way.push((group, path.len(), members));
            }
        }
        ControlFlow::Continue(())
    }

    /// The first path to the object at `address`, in the order of names; `None` if none leads there
    /// from this group.
    ///
    /// ```
    /// let file = pumice::File::in_memory()?;
    /// let group = file.create_group("a/b")?;
    /// assert_eq!(file.path_of(group.address()).as_deref(), Some("/a/b"));
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn path_of(&self, address: u64) -> Option<String> {
        let found = self.walk(WalkOrder::Name, |path, node| match node {
            Ok(node) if node.address() == address => ControlFlow::Break(path.to_string()),
            _ => ControlFlow::Continue(()),
        });
        found.break_value()
    }
}

fn is_hard(kind: &MemberKind) -> bool {
    use MemberKind::{Dataset, Datatype, Group, Other, Unreadable};
    matches!(kind, Group | Dataset | Datatype | Other | Unreadable(_))
}

/// A group's members; that they cannot be read is an error of the group.
fn ordered<B>(
    group: &Group,
    path: &str,
    order: WalkOrder,
    visit: &mut impl FnMut(&str, Result<Node>) -> ControlFlow<B>,
) -> ControlFlow<B, std::vec::IntoIter<Member>> {
    let mut members = match group.members() {
        Ok(members) => members,
        Err(error) => {
            visit(path, Err(error))?;
            Vec::new()
        }
    };
    if order == WalkOrder::Creation {
        members.sort_by_key(|member| member.creation_order);
    }
    ControlFlow::Continue(members.into_iter())
}
