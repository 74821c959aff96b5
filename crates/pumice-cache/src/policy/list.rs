//! Doubly linked lists threaded through an array: the policies' recency orders.
//!
//! A list stores no values: its members are small integers, and the links of integer `i` sit at
//! position `i`. All operations take constant time. An integer is a member at most once.

/// Stands for the end of the list.
const END: u32 = u32::MAX;
/// Stands for "not a member".
const OUT: u32 = u32::MAX - 1;

#[derive(Clone, Copy, Debug)]
struct Link {
    /// Towards the front.
    previous: u32,
    /// Towards the back.
    next: u32,
}

/// An ordered set of small integers.
#[derive(Debug)]
pub(super) struct List {
    links: Vec<Link>,
    front: u32,
    back: u32,
    len: usize,
}

impl List {
    pub(super) fn new() -> Self {
        List { links: Vec::new(), front: END, back: END, len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn contains(&self, member: u32) -> bool {
        self.links.get(member as usize).is_some_and(|link| link.next != OUT)
    }

    /// The oldest member.
    pub(super) fn front(&self) -> Option<u32> {
        (self.front != END).then_some(self.front)
    }

    /// The member after `member`, towards the back.
    pub(super) fn after(&self, member: u32) -> Option<u32> {
        let next = self.links[member as usize].next;
        (next < OUT).then_some(next)
    }

    /// All members, front to back.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(self.front(), |&member| self.after(member))
    }

    /// Makes `member` the youngest, whether it was a member or not.
    pub(super) fn push_back(&mut self, member: u32) {
        if self.back == member {
            return;
        }
        self.remove(member);
        let index = member as usize;
        if index >= self.links.len() {
            self.links.resize(index + 1, Link { previous: OUT, next: OUT });
        }
        self.links[index] = Link { previous: self.back, next: END };
        match self.back {
            END => self.front = member,
            back => self.links[back as usize].next = member,
        }
        self.back = member;
        self.len += 1;
    }

    /// Takes `member` out; `false`: it was not in.
    pub(super) fn remove(&mut self, member: u32) -> bool {
        if !self.contains(member) {
            return false;
        }
        let Link { previous, next } = self.links[member as usize];
        match previous {
            END => self.front = next,
            _ => self.links[previous as usize].next = next,
        }
        match next {
            END => self.back = previous,
            _ => self.links[next as usize].previous = previous,
        }
        self.links[member as usize] = Link { previous: OUT, next: OUT };
        self.len -= 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_keeps_the_order_of_pushes_through_removals() {
        let mut list = List::new();
        for member in [3, 1, 4, 5, 9] {
            list.push_back(member);
        }
        assert!(list.remove(4) && !list.remove(4) && !list.remove(700));
        list.push_back(3);
        list.push_back(3);
        assert_eq!(list.iter().collect::<Vec<_>>(), [1, 5, 9, 3]);
        assert_eq!((list.len(), list.front()), (4, Some(1)));
        for member in [3, 1, 9, 5] {
            assert!(list.remove(member));
        }
        assert_eq!((list.len(), list.front()), (0, None));
    }
}
