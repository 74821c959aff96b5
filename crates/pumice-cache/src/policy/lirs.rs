//! The default: LIRS, bent by what is known of how chunks are used.
//!
//! Chunks are in one of seven places. They leave from them in this order:
//!
//! | place | who is there | who leaves first |
//! |---|---|---|
//! | done | read or written as a whole, or meant for one request, and not known to come back | the youngest |
//! | free | all others | as [`RecencySet`] says |
//! | counted | of datasets that are read in passes | who has fewest reads to come, see [`Passes`] |
//! | ring | read in sequence | the oldest |
//! | foreseen | announced, see [`Policy::expect`] | who is needed latest |
//! | held | changed and known to be written in part, until written back | as [`RecencySet`] says |
//!
//! Who takes too much leaves before the free do: ring chunks beyond an eighth of the capacity,
//! counted ones beyond half, held and foreseen ones together beyond seven eighths. A place of which
//! nothing has been used for a while is idle, and all in it leave early.
//!
//! Whether a complete chunk will be used again cannot be told when it is seen for the first time.
//! One that was, while it was still there or remembered, is *proven*: being complete no longer
//! counts against it. Of the unproven the youngest leaves first, because if they do come back it
//! is in a loop, whose first chunks are the next to be used.

use std::cmp::Reverse;

use super::foresight::{Forecast, Foresight};
use super::memory::{Memory, Trait};
use super::passes::{Passes, Rank};
use super::recency_set::RecencySet;
use super::{Hint, Policy, Usage};
use crate::list::List;

/// Which part of the capacity is kept for chunks read in sequence.
const RING: u64 = 8;
/// Which part of the capacity held and foreseen chunks must leave to others.
const LEAVE: u64 = 8;
/// Which part of the capacity counted chunks may take before others leave for them.
const COUNTED: u64 = 2;

/// How many uses of others, per resident chunk, make a place idle.
const IDLE: u64 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Out,
    Done,
    Ring,
    Counted,
    Free,
    Foreseen,
    Held,
}

const PLACES: usize = Place::Held as usize + 1;

#[derive(Clone, Copy, Debug)]
struct Entry {
    place: Place,
    proven: bool,
    /// How often it was read since it was last complete.
    reads: u16,
    dataset: u64,
    identity: u64,
    weight: u64,
    /// Its place among the counted.
    rank: Rank,
    /// When it is needed next, if it is foreseen.
    next: u64,
}

const NOBODY: Entry = Entry {
    place: Place::Out,
    proven: false,
    reads: 0,
    dataset: 0,
    identity: 0,
    weight: 0,
    rank: (0, Reverse(0)),
    next: 0,
};

/// LIRS that knows complete chunks, chunks being written, scans and announcements.
///
/// ```
/// use pumice_cache::{Lirs, Policy, Usage};
/// let mut policy = Lirs::new(100);
/// let complete = Usage { done: true, ..Usage::default() };
/// for id in 0..3 {
///     policy.admit(id, id.into(), 40, if id == 1 { complete } else { Usage::default() });
/// }
/// policy.coldest(&mut |id| {
///     assert_eq!(id, 1, "what is complete leaves first");
///     false
/// });
/// ```
#[derive(Debug)]
pub struct Lirs {
    /// By the cache's number.
    entries: Vec<Entry>,
    done: List,
    ring: List,
    free: RecencySet,
    held: RecencySet,
    foresight: Option<Box<Foresight>>,
    passes: Passes,
    memory: Memory,
    capacity: u64,
    weights: [u64; PLACES],
    /// When each place was last used, counted in uses.
    used: [u64; PLACES],
    uses: u64,
    residents: u64,
}

impl Lirs {
    /// An empty policy for a cache of `capacity` bytes.
    pub fn new(capacity: u64) -> Self {
        let mut policy = Lirs {
            entries: Vec::new(),
            done: List::new(),
            ring: List::new(),
            free: RecencySet::new(capacity),
            held: RecencySet::new(capacity),
            foresight: None,
            passes: Passes::default(),
            memory: Memory::new(),
            capacity: 0,
            weights: [0; PLACES],
            used: [0; PLACES],
            uses: 0,
            residents: 0,
        };
        policy.set_capacity(capacity);
        policy
    }

    /// What held and foreseen chunks may weigh before others leave for them.
    fn most_kept(&self) -> u64 {
        self.capacity - self.capacity / LEAVE
    }

    fn weight(&self, place: Place) -> u64 {
        self.weights[place as usize]
    }

    fn idle(&self, place: Place) -> bool {
        self.uses - self.used[place as usize] > IDLE * (self.residents + 16)
    }

    /// Names the chunks of a place, the one to leave first first.
    fn order(&self, place: Place, visit: &mut dyn FnMut(u32) -> bool) {
        let _ = match place {
            Place::Out => true,
            Place::Done => self.done.iter_back().all(visit),
            Place::Ring => self.ring.iter().all(visit),
            Place::Counted => self.passes.coldest().all(visit),
            Place::Free => return self.free.coldest(visit),
            Place::Held => return self.held.coldest(visit),
            Place::Foreseen => {
                self.foresight.iter().flat_map(|foresight| foresight.latest_first()).all(visit)
            }
        };
    }

    fn entry(&self, id: u32) -> Option<&Entry> {
        self.entries.get(id as usize).filter(|entry| entry.place != Place::Out)
    }

    /// Where a chunk belongs after a use.
    fn place_for(&mut self, id: u32, usage: Usage) -> Place {
        let entry = &mut self.entries[id as usize];
        if let Some(foresight) = &mut self.foresight {
            match foresight.use_up(entry.dataset, entry.identity) {
                Forecast::Next(next) => {
                    if entry.place == Place::Foreseen {
                        foresight.forget(entry.next, id);
                    }
                    entry.next = next;
                    foresight.remember(next, id);
                    return Place::Foreseen;
                }
                Forecast::Never => {
                    self.forget_what_is_over();
                    return Place::Done;
                }
                Forecast::Unknown => {}
            }
        }
        if usage.hint == Hint::Once {
            return Place::Done;
        }
        match self.count(id, usage) {
            Some(_) if usage.done => return Place::Done,
            Some(left) => return self.place_counted(id, left),
            None => {}
        }
        let entry = &self.entries[id as usize];
        match usage {
            // However it is read, a part of it is still to be written.
            Usage { write: false, .. } if entry.place == Place::Held => Place::Held,
            Usage { done: true, .. } if !entry.proven => Place::Done,
            Usage { hint: Hint::Sequential, .. } => Place::Ring,
            Usage { done: true, .. } => Place::Free,
            Usage { partial: true, .. } => Place::Held,
            _ => Place::Free,
        }
    }

    /// How many reads of a chunk are to come, if that is known.
    fn count(&mut self, id: u32, usage: Usage) -> Option<u16> {
        let entry = &mut self.entries[id as usize];
        if usage.write || entry.place == Place::Held {
            return None;
        }
        entry.reads = entry.reads.saturating_add(1);
        let left = self.passes.note(entry.dataset, entry.reads, usage.done);
        if usage.done {
            entry.reads = 0;
        }
        left
    }

    fn place_counted(&mut self, id: u32, left: u16) -> Place {
        let rank = self.passes.rank(left);
        let entry = &mut self.entries[id as usize];
        if entry.place == Place::Counted {
            self.passes.remove(entry.rank, id);
        }
        entry.rank = rank;
        self.passes.insert(rank, id);
        Place::Counted
    }

    /// Without anything announced, all is as if nothing ever had been.
    fn forget_what_is_over(&mut self) {
        if self.foresight.as_ref().is_some_and(|foresight| foresight.is_over()) {
            self.foresight = None;
        }
    }

    /// Puts a chunk where it belongs after a use.
    fn settle(&mut self, id: u32, usage: Usage) {
        let before = self.entries[id as usize].place;
        let place = self.place_for(id, usage);
        self.uses += 1;
        self.used[place as usize] = self.uses;
        if place == before {
            return self.refresh(id, place);
        }
        self.leave(id, Exit::Moved);
        self.enter(id, place);
    }

    fn refresh(&mut self, id: u32, place: Place) {
        match place {
            Place::Out | Place::Foreseen | Place::Counted => {}
            Place::Done => self.done.push_back(id),
            Place::Ring => self.ring.push_back(id),
            Place::Free => self.free.touch(id),
            Place::Held => self.held.touch(id),
        }
    }

    fn enter(&mut self, id: u32, place: Place) {
        let entry = &mut self.entries[id as usize];
        entry.place = place;
        let Entry { identity, weight, .. } = *entry;
        self.weights[place as usize] += weight;
        self.residents += 1;
        match place {
            Place::Out | Place::Counted | Place::Foreseen => {}
            Place::Done => self.done.push_back(id),
            Place::Ring => self.ring.push_back(id),
            Place::Free => self.free.admit(id, identity, weight),
            Place::Held => self.held.admit(id, identity, weight),
        }
        self.balance();
    }

    /// Takes a chunk from its place.
    fn leave(&mut self, id: u32, exit: Exit) {
        let entry = &mut self.entries[id as usize];
        let place = std::mem::replace(&mut entry.place, Place::Out);
        if place == Place::Out {
            return;
        }
        let Entry { identity, weight, next, reads, rank, .. } = *entry;
        if exit == Exit::Evicted && (reads > 0 || place == Place::Done) {
            self.memory.remember(identity, Trait { complete: place == Place::Done, reads });
        }
        self.weights[place as usize] -= weight;
        self.residents -= 1;
        match place {
            Place::Out => {}
            Place::Done => drop(self.done.remove(id)),
            Place::Ring => drop(self.ring.remove(id)),
            Place::Counted => self.passes.remove(rank, id),
            Place::Foreseen => self.foresight.iter_mut().for_each(|f| f.forget(next, id)),
            Place::Free if exit == Exit::Evicted => self.free.evict(id),
            Place::Free => self.free.remove(id),
            Place::Held if exit == Exit::Evicted => self.held.evict(id),
            Place::Held => self.held.remove(id),
        }
        self.balance();
    }

    /// Tells free and held chunks how much room the others leave them.
    fn balance(&mut self) {
        let ring = self.weight(Place::Ring).min(self.capacity / RING);
        let counted = self.weight(Place::Counted).min(self.capacity / COUNTED);
        let kept = (self.weight(Place::Held) + self.weight(Place::Foreseen)).min(self.most_kept());
        self.free.set_room(self.capacity.saturating_sub(kept + ring + counted));
        let others = self.weight(Place::Free) + ring + counted;
        self.held.set_room(self.capacity - others.min(self.capacity / LEAVE));
    }
}

/// Why a chunk leaves its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    Moved,
    Evicted,
}

impl Policy for Lirs {
    fn admit(&mut self, id: u32, identity: u64, weight: u64, usage: Usage) {
        if self.entries.len() <= id as usize {
            self.entries.resize(id as usize + 1, NOBODY);
        }
        let known = self.memory.recall(identity);
        self.entries[id as usize] = Entry {
            proven: known.is_some_and(|known| known.complete),
            reads: known.map_or(0, |known| known.reads),
            dataset: usage.dataset,
            identity,
            weight,
            ..NOBODY
        };
        self.settle(id, usage);
    }

    fn touch(&mut self, id: u32, usage: Usage) {
        let Some(entry) = self.entry(id) else { return };
        let returned = entry.place == Place::Done;
        self.entries[id as usize].proven |= returned;
        self.settle(id, usage);
    }

    fn clean(&mut self, id: u32) {
        if self.entry(id).is_some_and(|entry| entry.place == Place::Held) {
            self.leave(id, Exit::Moved);
            self.enter(id, Place::Free);
        }
    }

    fn reweigh(&mut self, id: u32, weight: u64) {
        let Some(&Entry { place, weight: before, .. }) = self.entry(id) else { return };
        self.entries[id as usize].weight = weight;
        let sum = &mut self.weights[place as usize];
        *sum = *sum - before + weight;
        match place {
            Place::Free => self.free.reweigh(id, weight),
            Place::Held => self.held.reweigh(id, weight),
            _ => {}
        }
        self.balance();
    }

    /// One that is known to come back, or is announced, is kept.
    fn lets_pass(&mut self, identity: u64) -> bool {
        let announced = self.foresight.as_ref().is_some_and(|f| f.next(identity).is_some());
        if announced || self.memory.knows(identity) {
            return false;
        }
        self.memory.remember(identity, Trait { complete: true, reads: 0 });
        true
    }

    fn evict(&mut self, id: u32) {
        if self.entry(id).is_some() {
            self.leave(id, Exit::Evicted);
        }
    }

    fn remove(&mut self, id: u32) {
        if self.entry(id).is_some() {
            self.leave(id, Exit::Moved);
        }
    }

    fn coldest(&self, visit: &mut dyn FnMut(u32) -> bool) {
        let mut walk = Walk { policy: self, visit, counts: [0; PLACES], going: true };
        walk.all(Place::Done);
        let most_kept = self.most_kept().saturating_sub(self.weight(Place::Held));
        for (place, share) in [
            (Place::Ring, self.capacity / RING),
            (Place::Foreseen, most_kept),
            (Place::Held, self.most_kept()),
            (Place::Counted, self.capacity / COUNTED),
            (Place::Free, self.capacity),
        ] {
            walk.beyond(place, if self.idle(place) { 0 } else { share });
        }
        for place in [Place::Free, Place::Counted, Place::Ring, Place::Foreseen, Place::Held] {
            walk.all(place);
        }
    }

    fn set_capacity(&mut self, capacity: u64) {
        self.capacity = capacity;
        self.free.set_capacity(capacity);
        self.held.set_capacity(capacity);
        self.memory.set_capacity(capacity);
        self.balance();
    }

    fn expect(&mut self, dataset: u64, identities: &[u64]) {
        if identities.is_empty() && self.foresight.is_none() {
            return;
        }
        self.foresight.get_or_insert_default().expect(dataset, identities);
        for id in 0..self.entries.len() as u32 {
            let Entry { place, identity, dataset: of, .. } = self.entries[id as usize];
            // One of another dataset is foreseen here only if identities collide.
            if place == Place::Out || (of != dataset && place != Place::Foreseen) {
                continue;
            }
            let next = self.foresight.as_ref().and_then(|foresight| foresight.next(identity));
            if place != Place::Foreseen && next.is_none() {
                continue;
            }
            self.leave(id, Exit::Moved);
            let Some(next) = next else {
                self.enter(id, Place::Free);
                continue;
            };
            self.entries[id as usize].next = next;
            self.foresight.iter_mut().for_each(|foresight| foresight.remember(next, id));
            self.enter(id, Place::Foreseen);
        }
        self.forget_what_is_over();
    }
}

/// Names chunks, place by place, none twice.
struct Walk<'a> {
    policy: &'a Lirs,
    visit: &'a mut dyn FnMut(u32) -> bool,
    /// How many of each place have been named.
    counts: [usize; PLACES],
    going: bool,
}

impl Walk<'_> {
    /// Names the chunks of a place until the rest weigh no more than `share`.
    fn beyond(&mut self, place: Place, share: u64) {
        let mut left = self.policy.weight(place);
        if left <= share || !self.going {
            return;
        }
        let Walk { policy, visit, counts, going } = self;
        policy.order(place, &mut |id| {
            left -= policy.entries[id as usize].weight.min(left);
            counts[place as usize] += 1;
            *going = visit(id);
            *going && left > share
        });
    }

    /// Names the chunks of a place that have not been named.
    fn all(&mut self, place: Place) {
        let mut skip = self.counts[place as usize];
        if !self.going {
            return;
        }
        let Walk { policy, visit, going, .. } = self;
        policy.order(place, &mut |id| {
            if skip > 0 {
                skip -= 1;
                return true;
            }
            *going = visit(id);
            *going
        });
    }
}
