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
//! - The hot chunks weigh at most 99 parts in a hundred of the capacity.
//! - Ghosts together weigh (by the weight they had) at most [`GHOSTS`] times the capacity: long
//!   memory is what makes LIRS win on array traces. A ghost takes about [`GHOST_BYTES`] of memory,
//!   so their number is limited too, to what fits in 1/32 of the capacity: chunks smaller than
//!   about 40 KiB are remembered for less long.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::list::List;
use super::{Policy, Usage};

/// How many times the capacity ghosts may have weighed.
const GHOSTS: u64 = 16;
/// About the memory of one ghost: a node, three pairs of links and a place in the map.
const GHOST_BYTES: u64 = 80;
/// Ghosts that are kept however small the cache is.
const FEWEST_GHOSTS: usize = 1024;

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
    identity: u64,
    weight: u64,
}

/// The hot set, the queue and the memory of what has left.
///
/// ```
/// use pumice_cache::{Lirs, Policy, Usage};
/// let mut policy = Lirs::new(100);
/// for id in 0..3 {
///     policy.admit(id, id.into(), 40, Usage::default());
/// }
/// policy.coldest(&mut |id| {
///     assert_eq!(id, 2, "the third did not fit among the hot ones");
///     false
/// });
/// ```
#[derive(Debug)]
pub struct Lirs {
    nodes: Vec<Node>,
    free: Vec<u32>,
    /// Node by the cache's number.
    residents: Vec<u32>,
    /// Node by identity. Should two ghosts share an identity, the older one is forgotten.
    ghosts: HashMap<u64, u32, FixedState>,
    /// All hot nodes, and the cold nodes and ghosts younger than the oldest of them.
    stack: List,
    /// All cold nodes.
    queue: List,
    /// All ghosts, by when they left.
    left: List,
    capacity: u64,
    hot_weight: u64,
    ghost_weight: u64,
}

impl Lirs {
    /// An empty policy for a cache of `capacity` bytes.
    pub fn new(capacity: u64) -> Self {
        Lirs {
            nodes: Vec::new(),
            free: Vec::new(),
            residents: Vec::new(),
            ghosts: HashMap::default(),
            stack: List::new(),
            queue: List::new(),
            left: List::new(),
            capacity,
            hot_weight: 0,
            ghost_weight: 0,
        }
    }

    fn hot_capacity(&self) -> u64 {
        self.capacity - self.capacity.div_ceil(100)
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
        self.queue.push_back(index);
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
        if self.ghosts.get(&identity) == Some(&index) {
            self.ghosts.remove(&identity);
        }
        self.ghost_weight -= weight;
        self.left.remove(index);
        self.stack.remove(index);
        self.free.push(index);
    }

    /// Turns a node that is only on the stack into a ghost.
    fn remember(&mut self, index: u32) {
        let node = self.node_mut(index);
        node.state = State::Ghost;
        let Node { identity, weight, .. } = *node;
        self.ghost_weight = self.ghost_weight.saturating_add(weight);
        self.left.push_back(index);
        if let Some(older) = self.ghosts.insert(identity, index) {
            self.forget(older);
        }
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
            _ => drop(self.queue.remove(index)),
        }
        Some(index)
    }
}

impl Policy for Lirs {
    fn admit(&mut self, id: u32, identity: u64, weight: u64, _usage: Usage) {
        let known = self.ghosts.get(&identity).copied();
        if let Some(ghost) = known {
            self.forget(ghost);
        }
        let index = self.new_node(Node { state: State::Cold, id, identity, weight });
        if self.residents.len() <= id as usize {
            self.residents.resize(id as usize + 1, u32::MAX);
        }
        self.residents[id as usize] = index;
        let room = self.can_be_hot(self.hot_weight.saturating_add(weight));
        if room || known.is_some() && self.can_be_hot(weight) {
            return self.heat(index);
        }
        self.stack.push_back(index);
        self.queue.push_back(index);
        self.prune();
    }

    fn touch(&mut self, id: u32, _usage: Usage) {
        let Some(index) = self.resident(id) else { return };
        match self.node(index).state {
            State::Hot => {
                self.stack.push_back(index);
                self.prune();
            }
            _ if self.stack.contains(index) && self.can_be_hot(self.node(index).weight) => {
                self.queue.remove(index);
                self.heat(index);
            }
            _ => {
                self.stack.push_back(index);
                self.queue.push_back(index);
                self.prune();
            }
        }
    }

    fn reweigh(&mut self, id: u32, weight: u64) {
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

    fn evict(&mut self, id: u32) {
        let Some(index) = self.retire(id) else { return };
        if self.stack.contains(index) {
            self.remember(index);
        } else {
            self.free.push(index);
        }
        self.prune();
    }

    fn remove(&mut self, id: u32) {
        let Some(index) = self.retire(id) else { return };
        self.stack.remove(index);
        self.free.push(index);
        self.prune();
    }

    fn coldest(&self, visit: &mut dyn FnMut(u32) -> bool) {
        let hot = self.stack.iter().filter(|&index| self.node(index).state == State::Hot);
        for index in self.queue.iter().chain(hot) {
            if !visit(self.node(index).id) {
                return;
            }
        }
    }

    fn set_capacity(&mut self, capacity: u64) {
        self.capacity = capacity;
        self.cool_excess();
        self.limit_ghosts();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coldest(policy: &Lirs) -> Vec<u32> {
        let mut order = Vec::new();
        policy.coldest(&mut |id| {
            order.push(id);
            true
        });
        order
    }

    #[test]
    fn a_ghost_that_returns_is_hot() {
        let mut policy = Lirs::new(300);
        for id in 0..4 {
            policy.admit(id, id.into(), 100, Usage::default());
        }
        assert_eq!(coldest(&policy), [2, 3, 0, 1]);
        policy.evict(2);
        policy.admit(2, 2, 100, Usage::default());
        assert_eq!(coldest(&policy), [3, 0, 1, 2]);
    }

    #[test]
    fn a_chunk_larger_than_the_hot_set_does_not_push_it_out() {
        let mut policy = Lirs::new(300);
        policy.admit(0, 0, 100, Usage::default());
        policy.admit(1, 1, 100, Usage::default());
        for _ in 0..2 {
            policy.admit(2, 2, 299, Usage::default());
            policy.touch(2, Usage::default());
            assert_eq!(coldest(&policy), [2, 0, 1]);
            policy.evict(2);
        }
        policy.reweigh(0, 299);
        assert_eq!(coldest(&policy), [0, 1]);
    }

    #[test]
    fn ghosts_are_limited_and_their_memory_is_used_again() {
        let mut policy = Lirs::new(100);
        policy.admit(0, 0, 90, Usage::default());
        for identity in 1..10_000 {
            policy.admit(1, identity, 20, Usage::default());
            policy.evict(1);
        }
        assert!(policy.ghost_weight <= 1600);
        assert_eq!(policy.ghosts.len(), policy.left.len());
        assert!(policy.nodes.len() < 100);
    }

    #[test]
    fn the_stack_ends_with_a_hot_chunk_whatever_happens() {
        let mut policy = Lirs::new(1000);
        let mut seed = 1_u64;
        let mut resident = [false; 40];
        for _ in 0..20_000 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let id = (seed >> 33) as u32 % 40;
            let action = (seed >> 20) % 6;
            match (resident[id as usize], action) {
                (false, _) => policy.admit(id, id as u64 % 30, seed >> 40 & 0x7f, Usage::default()),
                (true, 0) => policy.evict(id),
                (true, 1) => policy.remove(id),
                (true, 2) => policy.reweigh(id, seed >> 41 & 0x7f),
                (true, 3) => policy.set_capacity(seed >> 41 & 0xfff),
                (true, _) => policy.touch(id, Usage::default()),
            }
            resident[id as usize] = !resident[id as usize] || action > 1;
            check(&policy, &resident);
        }
    }

    fn check(policy: &Lirs, resident: &[bool]) {
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
