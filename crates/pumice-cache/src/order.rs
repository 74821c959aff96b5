//! The order of each dataset's requests: who must wait for whom.
//!
//! A request enters with all its chunks in one step under one lock. There it learns which requests
//! before it are in its way and have not left yet, and it runs when the last of them has left.
//! Requests only ever wait for earlier ones, so they cannot wait in a circle, and those that
//! overlap act as if run one after another in the order in which they entered.
//!
//! | enters    | waits for earlier                       |
//! |-----------|-----------------------------------------|
//! | read      | writes of its chunks, exclusives        |
//! | write     | reads and writes of its chunks, flushes, exclusives |
//! | flush     | writes, exclusives                      |
//! | exclusive | everything                              |
//!
//! A dataset whose layout goes past the cache is one chunk. There a request brings the places that it
//! [reaches](Reach), and is in the way only of those that meet it in one of them; it is compared with all that
//! are inside, which are few.
//!
//! A request of several datasets takes its places in all their orders in one step, under all their
//! locks. So every request still has one moment at which it entered, everywhere at once, and waits
//! only for those that entered before that moment.
//!
//! Two shortcuts keep reads cheap. While no write is inside, a read only leaves its keys behind
//! and they are entered in the map of chunks by the first write that comes. And a read of one
//! resident chunk need not enter at all when [`Order::claimed`] says that no write of the chunk is
//! inside: the chunk's own lock keeps it from seeing half a write of that chunk, and having only
//! one chunk it cannot see one chunk before and another after a write. It must ask while it holds
//! the chunk's lock: if a write has changed the chunk already, then its claim is visible.

use std::hash::{BuildHasher, Hash};

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use smallvec::SmallVec;

use crate::reach::Reach;
use crate::sync::{Arc, AtomicU32, Condvar, Mutex, MutexGuard, Ordering};

/// Claims are counted by hash in so many places; a collision only makes a read take its turn.
const BUCKETS: usize = 64;

/// Room for so many chunks is kept when there is no request.
const IDLE_CAPACITY: usize = 1024;

/// The chunks of a request.
pub(crate) type Keys<K> = SmallVec<[K; 1]>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
    Flush,
    Exclusive,
}

/// The requests of one dataset that are running or waiting.
#[derive(Debug)]
pub(crate) struct Order<K> {
    state: Mutex<State<K>>,
    /// How many writes that are inside have a chunk in this bucket; exclusives count in all.
    claims: [AtomicU32; BUCKETS],
    hasher: FixedState,
}

#[derive(Debug)]
struct State<K> {
    next: u64,
    requests: HashMap<u64, Request<K>, FixedState>,
    /// The requests inside that use a chunk, except for reads that are not indexed.
    chunks: HashMap<K, Uses, FixedState>,
    writes: usize,
    /// The reads and writes inside that say what they reach.
    reaching: usize,
    flushes: SmallVec<[u64; 1]>,
    /// The last exclusive inside: later requests need wait for no earlier one.
    exclusive: Option<u64>,
    closed: bool,
}

#[derive(Debug)]
struct Request<K> {
    kind: Kind,
    keys: Keys<K>,
    /// What it touches of the dataset's one chunk; it is never indexed then. Elsewhere, a dataset that was read pays
    /// for a pointer alone.
    reach: Option<Box<Reach>>,
    indexed: bool,
    /// How many of those in its way are still inside; one may count several times.
    blocked: u32,
    /// None as long as nobody waits: a dataset that was read keeps the room of a few requests.
    waiting: Option<Box<Waiting>>,
}

/// Who waits for a request, and where it waits itself.
#[derive(Debug, Default)]
struct Waiting {
    /// Those it is in the way of, as often as it counts for them.
    followers: Vec<u64>,
    wake: Option<Arc<Condvar>>,
}

/// Who uses a chunk: the last write, and the reads that came after it.
#[derive(Debug, Default)]
struct Uses {
    write: Option<u64>,
    reads: SmallVec<[u64; 2]>,
}

/// A request's place; it leaves when dropped.
#[derive(Debug)]
pub(crate) struct Place<'o, K: Clone + Eq + Hash> {
    order: &'o Order<K>,
    id: u64,
}

/// What takes a place in one of several orders.
pub(crate) struct Entry<'o, K> {
    pub(crate) order: &'o Order<K>,
    pub(crate) kind: Kind,
    pub(crate) keys: Keys<K>,
    pub(crate) reach: Option<Reach>,
}

impl<'o, K> Entry<'o, K> {
    /// One that names no chunks.
    pub(crate) fn of(order: &'o Order<K>, kind: Kind) -> Self {
        Entry { order, kind, keys: Keys::new(), reach: None }
    }
}

impl<K: Clone + Eq + Hash> Order<K> {
    /// Hashes as `hasher` does.
    pub(crate) fn new(hasher: FixedState) -> Self {
        let state = State {
            next: 0,
            requests: HashMap::default(),
            chunks: HashMap::with_hasher(hasher.clone()),
            writes: 0,
            reaching: 0,
            flushes: SmallVec::new(),
            exclusive: None,
            closed: false,
        };
        Order {
            state: Mutex::new(state),
            claims: std::array::from_fn(|_| AtomicU32::new(0)),
            hasher,
        }
    }

    /// Whether a write of a chunk with this hash may be inside.
    pub(crate) fn claimed(&self, hash: u64) -> bool {
        self.claims[bucket(hash)].load(Ordering::Acquire) != 0
    }

    /// The chunks of all requests inside, once for each.
    pub(crate) fn pinned(&self) -> u64 {
        self.state.lock().requests.values().map(|request| request.keys.len() as u64).sum()
    }

    /// Takes a place and waits until everything in the way has left.
    pub(crate) fn enter(&self, kind: Kind, keys: Keys<K>) -> Place<'_, K> {
        self.enter_reaching(kind, keys, None)
    }

    /// As [`enter`](Self::enter), of a request that says what it reaches.
    pub(crate) fn enter_reaching(
        &self,
        kind: Kind,
        keys: Keys<K>,
        reach: Option<Reach>,
    ) -> Place<'_, K> {
        let mut state = self.state.lock();
        // Made before waiting: a panic must not leave the request inside for ever.
        let place = self.take_place(&mut state, kind, keys, reach);
        Self::wait(state, place.id);
        place
    }

    /// Takes a place for a read unless it would have to wait, or the dataset is closed.
    pub(crate) fn try_enter(&self, keys: Keys<K>) -> Option<Place<'_, K>> {
        let mut state = self.state.lock();
        let written = |key| state.chunks.get(key).is_some_and(|uses| uses.write.is_some());
        let kept_out = state.closed || state.exclusive.is_some() || state.reaching > 0;
        if kept_out || keys.iter().any(written) {
            return None;
        }
        Some(self.take_place(&mut state, Kind::Read, keys, None))
    }

    /// Refuses those who need not have a place from now on.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
    }

    /// Takes a place in each of several orders in one step, then waits in all of them.
    ///
    /// They are to be named once each, and by all callers in the same sequence. All of them are
    /// locked at once, so of two such requests one is the earlier wherever they meet.
    pub(crate) fn enter_all<'o>(entries: Vec<Entry<'o, K>>) -> Vec<Place<'o, K>> {
        let mut states: Vec<_> = entries.iter().map(|entry| entry.order.state.lock()).collect();
        let taken = entries.into_iter().zip(&mut states);
        let take = |(entry, state): (Entry<'o, K>, &mut MutexGuard<'o, State<K>>)| {
            entry.order.take_place(state, entry.kind, entry.keys, entry.reach)
        };
        let places: Vec<_> = taken.map(take).collect();
        drop(states);
        places.iter().for_each(|place| Self::wait(place.order.state.lock(), place.id));
        places
    }

    fn take_place<'o>(
        &'o self,
        state: &mut State<K>,
        kind: Kind,
        keys: Keys<K>,
        reach: Option<Reach>,
    ) -> Place<'o, K> {
        let id = state.next;
        state.next += 1;
        self.claim(kind, &keys);
        let (indexed, blocked, waiting) = (false, 0, None);
        let reach = reach.map(Box::new);
        state.enter(id, Request { kind, keys, reach, indexed, blocked, waiting });
        Place { order: self, id }
    }

    fn wait(mut state: MutexGuard<'_, State<K>>, id: u64) {
        let Some(request) = state.requests.get_mut(&id).filter(|r| r.blocked > 0) else { return };
        let wake = Arc::new(Condvar::new());
        request.waiting().wake = Some(Arc::clone(&wake));
        while state.requests.get(&id).is_some_and(|request| request.blocked > 0) {
            state = wake.wait(state);
        }
    }

    fn claim(&self, kind: Kind, keys: &[K]) {
        self.for_each_claim(kind, keys, |claims| {
            claims.fetch_add(1, Ordering::AcqRel);
        });
    }

    fn for_each_claim(&self, kind: Kind, keys: &[K], change: impl Fn(&AtomicU32)) {
        match kind {
            Kind::Read | Kind::Flush => {}
            Kind::Write => {
                let buckets = keys.iter().map(|key| bucket(self.hasher.hash_one(key)));
                buckets.for_each(|bucket| change(&self.claims[bucket]));
            }
            Kind::Exclusive => self.claims.iter().for_each(change),
        }
    }

    fn leave(&self, id: u64) {
        let mut state = self.state.lock();
        let Some(request) = state.requests.remove(&id) else { return };
        state.leave(id, &request);
        self.for_each_claim(request.kind, &request.keys, |claims| {
            claims.fetch_sub(1, Ordering::AcqRel);
        });
    }
}

impl<K: Clone + Eq + Hash> Drop for Place<'_, K> {
    fn drop(&mut self) {
        self.order.leave(self.id);
    }
}

impl<K: Clone + Eq + Hash> State<K> {
    fn enter(&mut self, id: u64, mut request: Request<K>) {
        if let Some(exclusive) = self.exclusive {
            self.put_in_way(exclusive, id, &mut request);
        }
        let reaches = request.reach.is_some() || self.reaching > 0;
        match request.kind {
            Kind::Read | Kind::Write if reaches => self.enter_reaching(id, &mut request),
            Kind::Read if self.writes == 0 => {}
            Kind::Read => self.index_read(id, &mut request),
            Kind::Write => self.enter_write(id, &mut request),
            Kind::Flush => {
                self.put_all_in_way(id, &mut request, |other| other.kind == Kind::Write);
                self.flushes.push(id);
            }
            Kind::Exclusive => {
                self.put_all_in_way(id, &mut request, |_| true);
                self.exclusive = Some(id);
            }
        }
        self.requests.insert(id, request);
    }

    /// Makes `id` wait for `earlier`, unless that has left or is the same request.
    fn put_in_way(&mut self, earlier: u64, id: u64, request: &mut Request<K>) {
        if let Some(earlier) = self.requests.get_mut(&earlier) {
            earlier.waiting().followers.push(id);
            request.blocked += 1;
        }
    }

    fn put_all_in_way(
        &mut self,
        id: u64,
        request: &mut Request<K>,
        which: impl Fn(&Request<K>) -> bool,
    ) {
        for earlier in self.requests.values_mut().filter(|other| which(other)) {
            earlier.waiting().followers.push(id);
            request.blocked += 1;
        }
    }

    /// Makes a read or a write wait for all that it meets.
    fn enter_reaching(&mut self, id: u64, request: &mut Request<K>) {
        let kind = request.kind;
        match request.reach.take() {
            Some(reach) => {
                // Reads are in no other's way.
                if kind == Kind::Write || self.writes > 0 {
                    self.put_all_in_way(id, request, |other| other.meets(kind, Some(&reach)));
                }
                self.reaching += 1;
                self.writes += usize::from(kind == Kind::Write);
                request.reach = Some(reach);
            }
            // It does not say what it reaches.
            None => {
                self.put_all_in_way(id, request, |other| {
                    other.reach.is_some() && other.meets(kind, None)
                });
                match kind {
                    Kind::Write => self.enter_write(id, request),
                    _ => self.index_read(id, request),
                }
            }
        }
    }

    fn index_read(&mut self, id: u64, request: &mut Request<K>) {
        let keys = std::mem::take(&mut request.keys);
        for key in &keys {
            let uses = self.chunks.entry_ref(key).or_default();
            uses.reads.push(id);
            if let Some(write) = uses.write {
                self.put_in_way(write, id, request);
            }
        }
        request.keys = keys;
        request.indexed = true;
    }

    fn enter_write(&mut self, id: u64, request: &mut Request<K>) {
        self.index_all_reads();
        self.writes += 1;
        for flush in self.flushes.clone() {
            self.put_in_way(flush, id, request);
        }
        let keys = std::mem::take(&mut request.keys);
        for key in &keys {
            let uses = self.chunks.entry_ref(key).or_default();
            let reads = std::mem::take(&mut uses.reads);
            // Reads after the last write wait for it themselves.
            let last = if reads.is_empty() { uses.write } else { None };
            uses.write = Some(id);
            for earlier in reads.into_iter().chain(last) {
                self.put_in_way(earlier, id, request);
            }
        }
        request.keys = keys;
        request.indexed = true;
    }

    /// Enters the reads that have only left their keys; none of them waits for a write.
    fn index_all_reads(&mut self) {
        let State { requests, chunks, .. } = self;
        let late = |read: &Request<K>| !read.indexed && read.reach.is_none();
        let late = requests.iter_mut().filter(|(_, read)| read.kind == Kind::Read && late(read));
        for (&id, read) in late {
            read.indexed = true;
            for key in &read.keys {
                chunks.entry_ref(key).or_default().reads.push(id);
            }
        }
    }

    fn leave(&mut self, id: u64, request: &Request<K>) {
        match request.kind {
            Kind::Read => {}
            Kind::Write => self.writes -= 1,
            Kind::Flush => self.flushes.retain(|flush| *flush != id),
            Kind::Exclusive => self.exclusive = self.exclusive.filter(|last| *last != id),
        }
        self.reaching -= usize::from(request.reach.is_some());
        if request.indexed {
            request.keys.iter().for_each(|key| self.forget_use(key, id));
        }
        if self.chunks.is_empty() && self.chunks.capacity() > IDLE_CAPACITY {
            self.chunks.shrink_to(IDLE_CAPACITY);
        }
        for follower in request.waiting.iter().flat_map(|waiting| &waiting.followers) {
            let Some(follower) = self.requests.get_mut(follower) else { continue };
            follower.blocked -= 1;
            let wake = follower.waiting.as_ref().and_then(|waiting| waiting.wake.as_ref());
            if let (0, Some(wake)) = (follower.blocked, wake) {
                wake.notify_all();
            }
        }
    }

    fn forget_use(&mut self, key: &K, id: u64) {
        let Some(uses) = self.chunks.get_mut(key) else { return };
        uses.write = uses.write.filter(|write| *write != id);
        uses.reads.retain(|read| *read != id);
        if uses.write.is_none() && uses.reads.is_empty() {
            self.chunks.remove(key);
        }
    }
}

impl<K> Request<K> {
    fn waiting(&mut self) -> &mut Waiting {
        self.waiting.get_or_insert_default()
    }

    /// Whether a later read or write of some places has to wait for this one; `None`: of all.
    fn meets(&self, later: Kind, reach: Option<&Reach>) -> bool {
        match (self.kind, later) {
            (Kind::Read, Kind::Read) | (Kind::Flush, Kind::Read) => false,
            (Kind::Flush, _) => true,
            // The last of them is in everybody's way as it is.
            (Kind::Exclusive, _) => false,
            (kind, _) => match (self.reach.as_deref(), reach) {
                (Some(own), Some(other)) if kind == later => own.collides(other),
                (Some(own), Some(other)) => own.meets(other),
                _ => true,
            },
        }
    }
}

fn bucket(hash: u64) -> usize {
    (hash >> 32) as usize % BUCKETS
}
