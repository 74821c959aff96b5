//! Doubly linked lists threaded through an array: the policies' recency orders, datasets' chunks.
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

impl Default for Ends {
    fn default() -> Self {
        Ends::NONE
    }
}

/// Where a list begins and ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    front: u32,
    back: u32,
    len: usize,
}

impl Ends {
    /// The ends of an empty list.
    pub(crate) const NONE: Ends = Ends { front: END, back: END, len: 0 };

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The oldest member.
    pub(crate) fn front(&self) -> Option<u32> {
        (self.front != END).then_some(self.front)
    }

    /// The youngest member.
    pub(crate) fn back(&self) -> Option<u32> {
        (self.back != END).then_some(self.back)
    }
}

/// Links for several lists that have no member in common. The caller knows who is in which.
#[derive(Debug, Default)]
pub(crate) struct Links(Vec<Link>);

impl Links {
    /// Whether `member` is in any of the lists.
    pub(crate) fn contains(&self, member: u32) -> bool {
        self.0.get(member as usize).is_some_and(|link| link.next != OUT)
    }

    /// The member that follows towards the back.
    pub(crate) fn after(&self, member: u32) -> Option<u32> {
        let next = self.0[member as usize].next;
        (next < OUT).then_some(next)
    }

    fn before(&self, member: u32) -> Option<u32> {
        let previous = self.0[member as usize].previous;
        (previous < OUT).then_some(previous)
    }

    /// All members of a list, front to back.
    pub(crate) fn iter(&self, ends: &Ends) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(ends.front(), |&member| self.after(member))
    }

    /// All members of a list, back to front.
    pub(crate) fn iter_back(&self, ends: &Ends) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(ends.back(), |&member| self.before(member))
    }

    /// Makes `member`, which is in this list or in none, its youngest.
    pub(crate) fn push_back(&mut self, ends: &mut Ends, member: u32) {
        if ends.back == member {
            return;
        }
        self.remove(ends, member);
        let index = member as usize;
        if index >= self.0.len() {
            self.0.resize(index + 1, Link { previous: OUT, next: OUT });
        }
        self.0[index] = Link { previous: ends.back, next: END };
        match ends.back {
            END => ends.front = member,
            back => self.0[back as usize].next = member,
        }
        ends.back = member;
        ends.len += 1;
    }

    /// Makes `member`, which is in no list, the oldest of this one.
    pub(crate) fn push_front(&mut self, ends: &mut Ends, member: u32) {
        let Some(front) = ends.front() else { return self.push_back(ends, member) };
        let index = member as usize;
        if index >= self.0.len() {
            self.0.resize(index + 1, Link { previous: OUT, next: OUT });
        }
        self.0[index] = Link { previous: END, next: front };
        self.0[front as usize].previous = member;
        ends.front = member;
        ends.len += 1;
    }

    /// Takes `member` out of this list; `false`: it was in none.
    pub(crate) fn remove(&mut self, ends: &mut Ends, member: u32) -> bool {
        if !self.contains(member) {
            return false;
        }
        let Link { previous, next } = self.0[member as usize];
        match previous {
            END => ends.front = next,
            _ => self.0[previous as usize].next = next,
        }
        match next {
            END => ends.back = previous,
            _ => self.0[next as usize].previous = previous,
        }
        self.0[member as usize] = Link { previous: OUT, next: OUT };
        ends.len -= 1;
        true
    }
}

/// An ordered set of small integers.
#[derive(Debug, Default)]
pub(crate) struct List {
    links: Links,
    ends: Ends,
}

impl List {
    pub(crate) fn new() -> Self {
        List { links: Links::default(), ends: Ends::NONE }
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.ends.len
    }

    pub(crate) fn contains(&self, member: u32) -> bool {
        self.links.contains(member)
    }

    /// The oldest member.
    pub(crate) fn front(&self) -> Option<u32> {
        self.ends.front()
    }

    /// All members, front to back.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.links.iter(&self.ends)
    }

    /// All members, back to front.
    pub(crate) fn iter_back(&self) -> impl Iterator<Item = u32> + '_ {
        self.links.iter_back(&self.ends)
    }

    /// Makes `member` the youngest, whether it was a member or not.
    pub(crate) fn push_back(&mut self, member: u32) {
        self.links.push_back(&mut self.ends, member);
    }

    /// Takes `member` out; `false`: it was not in.
    pub(crate) fn remove(&mut self, member: u32) -> bool {
        self.links.remove(&mut self.ends, member)
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
