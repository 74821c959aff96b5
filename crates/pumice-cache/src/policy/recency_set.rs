//! Low inter-reference recency set (LIRS; Jiang and Zhang, 2002), with weights.
//!
//! What counts is not how long ago a chunk was used but how many others were used between its last
//! two uses. Chunks for which that number is low are *hot* and fill nearly the whole cache; all
//! others pass through a small queue. A loop that is longer than the cache thus keeps most of what
//! fits, and a scan passes without a trace.
//!
//! - The stack orders by last use the hot chunks, the *cold* ones used since the oldest hot one,
//!   and *ghosts*: chunks that have left. Its oldest member is hot (nothing older can tell
//!   anything). A cold chunk or a ghost that is used while on the stack becomes hot.
//! - The queue holds the resident cold chunks; they leave in its order.
//! - The hot chunks weigh at most 99 parts in a hundred of the room there is for resident ones.
//! - Ghosts together weigh (by the weight they had) at most [`GHOSTS`] times the capacity: long
//!   memory is what makes LIRS win on array traces. A ghost takes about [`GHOST_BYTES`] of memory,
//!   so their number is limited too, to what fits in 1/32 of the capacity: chunks smaller than
//!   about 30 KiB are remembered for less long.
//! - Uses that follow each other closely count as one: batches that read a chunk piece by piece
//!   say nothing about whether it will come back.

use hashbrown::HashTable;

use crate::list::{Ends, Links, List};

/// How many times the capacity ghosts may have weighed.
const GHOSTS: u64 = 16;
/// About the memory of one ghost: a node, two pairs of links and a place in the table.
const GHOST_BYTES: u64 = 56;
/// Ghosts that are kept however small the cache is.
const FEWEST_GHOSTS: usize = 1024;

/// Uses with at most so many changes from chunk to chunk between them count as one.
const CLOSE: u32 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Hot,
    Cold,
    Ghost,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    state: State,
    /// The cache's number; of no meaning for a ghost.
    id: u32,
    /// When it was last used, by [`RecencySet::clock`].
    used: u32,
    identity: u64,
    weight: u64,
}

/// The hot set, the queue and the memory of what has left.
#[derive(Debug)]
pub(super) struct RecencySet {
    nodes: Vec<Node>,
    free: Vec<u32>,
    /// Node by the cache's number.
    residents: Vec<u32>,
    /// Node by identity. Should two ghosts share an identity, the older one is forgotten.
    ghosts: HashTable<u32>,
    /// All hot nodes, and the cold nodes and ghosts younger than the oldest of them.
    stack: List,
    /// The links of `queue` and `left`.
    links: Links,
    /// All cold nodes.
    queue: Ends,
    /// All ghosts, by when they left.
    left: Ends,
    /// The node used last, and how often that has changed.
    last: u32,
    clock: u32,
    capacity: u64,
    /// What of the capacity there is for resident chunks.
    room: u64,
    hot_weight: u64,
    ghost_weight: u64,
}

impl RecencySet {
    /// An empty policy for a cache of `capacity` bytes.
    pub(super) fn new(capacity: u64) -> Self {
        RecencySet {
            nodes: Vec::new(),
            free: Vec::new(),
            residents: Vec::new(),
            ghosts: HashTable::new(),
            stack: List::new(),
            links: Links::default(),
            queue: Ends::NONE,
            left: Ends::NONE,
            last: u32::MAX,
            clock: 0,
            capacity,
            room: capacity,
            hot_weight: 0,
            ghost_weight: 0,
        }
    }

    fn hot_capacity(&self) -> u64 {
        self.room - self.room.div_ceil(100)
    }

    fn node(&self, index: u32) -> &Node {
        &self.nodes[index as usize]
    }

    fn node_mut(&mut self, index: u32) -> &mut Node {
        &mut self.nodes[index as usize]
    }

    fn resident(&self, id: u32) -> Option<u32> {
        self.residents.get(id as usize).copied().filter(|&index| index != u32::MAX)
    }

    fn ghost(&self, identity: u64) -> Option<u32> {
        let same = |&index: &u32| self.nodes[index as usize].identity == identity;
        self.ghosts.find(hash(identity), same).copied()
    }

    /// Notes a use, and tells how many changes from chunk to chunk ago the last one was.
    fn tick(&mut self, index: u32) -> u32 {
        if self.last != index {
            self.last = index;
            self.clock = self.clock.wrapping_add(1);
        }
        let now = self.clock;
        let before = std::mem::replace(&mut self.node_mut(index).used, now);
        self.clock.wrapping_sub(before)
    }

    fn new_node(&mut self, node: Node) -> u32 {
        if let Some(index) = self.free.pop() {
            self.nodes[index as usize] = node;
            return index;
        }
        self.nodes.push(node);
        (self.nodes.len() - 1) as u32
    }

    /// Makes `index`, which is on no list but perhaps the stack, the youngest hot node.
    fn heat(&mut self, index: u32) {
        self.node_mut(index).state = State::Hot;
        self.hot_weight += self.node(index).weight;
        self.stack.push_back(index);
        self.cool_excess();
    }

    /// Whether a chunk of this weight can be hot at all.
    fn can_be_hot(&self, weight: u64) -> bool {
        weight <= self.hot_capacity()
    }

    /// Cools the oldest hot nodes until the rest fit.
    fn cool_excess(&mut self) {
        self.prune();
        while self.hot_weight > self.hot_capacity() {
            let Some(oldest) = self.stack.front() else { return };
            self.cool(oldest);
            self.prune();
        }
    }

    fn cool(&mut self, index: u32) {
        self.stack.remove(index);
        self.node_mut(index).state = State::Cold;
        self.hot_weight -= self.node(index).weight;
        self.links.push_back(&mut self.queue, index);
    }

    /// Takes from the stack what is older than the oldest hot node.
    fn prune(&mut self) {
        while let Some(oldest) = self.stack.front() {
            match self.node(oldest).state {
                State::Hot => return,
                State::Cold => drop(self.stack.remove(oldest)),
                State::Ghost => self.forget(oldest),
            }
        }
    }

    /// Removes a ghost.
    fn forget(&mut self, index: u32) {
        let Node { identity, weight, .. } = *self.node(index);
        if let Ok(entry) = self.ghosts.find_entry(hash(identity), |&other| other == index) {
            entry.remove();
        }
        self.ghost_weight -= weight;
        self.links.remove(&mut self.left, index);
        self.stack.remove(index);
        self.free.push(index);
    }

    /// Turns a node that is only on the stack into a ghost.
    fn remember(&mut self, index: u32) {
        let node = self.node_mut(index);
        node.state = State::Ghost;
        let Node { identity, weight, .. } = *node;
        self.ghost_weight = self.ghost_weight.saturating_add(weight);
        self.links.push_back(&mut self.left, index);
        if let Some(older) = self.ghost(identity) {
            self.forget(older);
        }
        let nodes = &self.nodes;
        let rehash = |&node: &u32| hash(nodes[node as usize].identity);
        self.ghosts.insert_unique(hash(identity), index, rehash);
        self.limit_ghosts();
    }

    fn limit_ghosts(&mut self) {
        let most = ((self.capacity / 32 / GHOST_BYTES) as usize).max(FEWEST_GHOSTS);
        let heaviest = self.capacity.saturating_mul(GHOSTS);
        while self.left.len() > most || self.ghost_weight > heaviest {
            let Some(oldest) = self.left.front() else { return };
            self.forget(oldest);
        }
    }

    /// Takes a resident node from the queue or the hot weight; what is left is its stack place.
    fn retire(&mut self, id: u32) -> Option<u32> {
        let index = self.resident(id)?;
        self.residents[id as usize] = u32::MAX;
        match self.node(index).state {
            State::Hot => self.hot_weight -= self.node(index).weight,
            _ => drop(self.links.remove(&mut self.queue, index)),
        }
        Some(index)
    }
}

/// What [`Policy`](super::Policy) asks for.
impl RecencySet {
    pub(super) fn admit(&mut self, id: u32, identity: u64, weight: u64) {
        let known = self.ghost(identity);
        if let Some(ghost) = known {
            self.forget(ghost);
        }
        let index = self.new_node(Node { state: State::Cold, id, used: 0, identity, weight });
        self.tick(index);
        if self.residents.len() <= id as usize {
            self.residents.resize(id as usize + 1, u32::MAX);
        }
        self.residents[id as usize] = index;
        let room = self.can_be_hot(self.hot_weight.saturating_add(weight));
        if room || known.is_some() && self.can_be_hot(weight) {
            return self.heat(index);
        }
        self.stack.push_back(index);
        self.links.push_back(&mut self.queue, index);
        self.prune();
    }

    pub(super) fn touch(&mut self, id: u32) {
        let Some(index) = self.resident(id) else { return };
        let close = self.tick(index) <= CLOSE;
        match self.node(index).state {
            State::Hot => {
                self.stack.push_back(index);
                self.prune();
            }
            _ if !close
                && self.stack.contains(index)
                && self.can_be_hot(self.node(index).weight) =>
            {
                self.links.remove(&mut self.queue, index);
                self.heat(index);
            }
            _ => {
                self.stack.push_back(index);
                self.links.push_back(&mut self.queue, index);
                self.prune();
            }
        }
    }

    pub(super) fn reweigh(&mut self, id: u32, weight: u64) {
        let Some(index) = self.resident(id) else { return };
        let before = std::mem::replace(&mut self.node_mut(index).weight, weight);
        if self.node(index).state != State::Hot {
            return;
        }
        self.hot_weight = self.hot_weight - before + weight;
        if !self.can_be_hot(weight) {
            self.cool(index);
        }
        self.cool_excess();
    }

    pub(super) fn evict(&mut self, id: u32) {
        let Some(index) = self.retire(id) else { return };
        if self.stack.contains(index) {
            self.remember(index);
        } else {
            self.free.push(index);
        }
        self.prune();
    }

    pub(super) fn remove(&mut self, id: u32) {
        let Some(index) = self.retire(id) else { return };
        self.stack.remove(index);
        self.free.push(index);
        self.prune();
    }

    pub(super) fn coldest(&self, visit: &mut dyn FnMut(u32) -> bool) {
        let hot = self.stack.iter().filter(|&index| self.node(index).state == State::Hot);
        for index in self.links.iter(&self.queue).chain(hot) {
            if !visit(self.node(index).id) {
                return;
            }
        }
    }

    pub(super) fn set_capacity(&mut self, capacity: u64) {
        self.capacity = capacity;
        self.set_room(capacity);
        self.limit_ghosts();
    }

    /// Of the capacity, this much is for the chunks ranked here.
    pub(super) fn set_room(&mut self, room: u64) {
        self.room = room;
        self.cool_excess();
    }
}

/// Spreads identities, which need not be random, over all bits.
fn hash(identity: u64) -> u64 {
    identity.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn coldest(policy: &RecencySet) -> Vec<u32> {
        let mut order = Vec::new();
        policy.coldest(&mut |id| {
            order.push(id);
            true
        });
        order
    }

    #[test]
    fn a_ghost_that_returns_is_hot() {
        let mut policy = RecencySet::new(300);
        for id in 0..4 {
            policy.admit(id, id.into(), 100);
        }
        assert_eq!(coldest(&policy), [2, 3, 0, 1]);
        policy.evict(2);
        policy.admit(2, 2, 100);
        assert_eq!(coldest(&policy), [3, 0, 1, 2]);
    }

    #[test]
    fn a_chunk_larger_than_the_hot_set_does_not_push_it_out() {
        let mut policy = RecencySet::new(300);
        policy.admit(0, 0, 100);
        policy.admit(1, 1, 100);
        for _ in 0..2 {
            policy.admit(2, 2, 299);
            policy.touch(2);
            assert_eq!(coldest(&policy), [2, 0, 1]);
            policy.evict(2);
        }
        policy.reweigh(0, 299);
        assert_eq!(coldest(&policy), [0, 1]);
    }

    #[test]
    fn ghosts_are_limited_and_their_memory_is_used_again() {
        let mut policy = RecencySet::new(100);
        policy.admit(0, 0, 90);
        for identity in 1..10_000 {
            policy.admit(1, identity, 20);
            policy.evict(1);
        }
        assert!(policy.ghost_weight <= 1600);
        assert_eq!(policy.ghosts.len(), policy.left.len());
        assert!(policy.nodes.len() < 100);
    }

    #[test]
    fn the_stack_ends_with_a_hot_chunk_whatever_happens() {
        let mut policy = RecencySet::new(1000);
        let mut seed = 1_u64;
        let mut resident = [false; 40];
        for _ in 0..20_000 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let id = (seed >> 33) as u32 % 40;
            let action = (seed >> 20) % 6;
            match (resident[id as usize], action) {
                (false, _) => policy.admit(id, id as u64 % 30, seed >> 40 & 0x7f),
                (true, 0) => policy.evict(id),
                (true, 1) => policy.remove(id),
                (true, 2) => policy.reweigh(id, seed >> 41 & 0x7f),
                (true, 3) => policy.set_capacity(seed >> 41 & 0xfff),
                (true, _) => policy.touch(id),
            }
            resident[id as usize] = !resident[id as usize] || action > 1;
            check(&policy, &resident);
        }
    }

    fn check(policy: &RecencySet, resident: &[bool]) {
        assert!(policy.stack.front().is_none_or(|i| policy.node(i).state == State::Hot));
        let mut order = coldest(policy);
        order.sort_unstable();
        let expected = (0..).zip(resident).filter(|(_, r)| **r).map(|(i, _)| i);
        assert!(order.iter().copied().eq(expected));
        let weigh = |state| {
            let stack = policy.stack.iter().map(|i| policy.node(i));
            stack.filter(|n| n.state == state).map(|n| n.weight).sum::<u64>()
        };
        assert_eq!(weigh(State::Hot), policy.hot_weight);
        assert_eq!(weigh(State::Ghost), policy.ghost_weight);
    }
}
