//! A chunk's place in memory, and the table in which the places of all datasets are found.
//!
//! A slot is made when a chunk begins to be loaded or created, and is in the table from then until
//! the chunk leaves. It is used by whoever holds an `Arc` of it, in the table or not:
//!
//! - *loading*: one request holds the [`Claim`]; others wait for the outcome. While that request is
//!   busy with another chunk first, the slot is *parked*: who would have to wait takes the claim away,
//!   with what has been fetched, and decodes the chunk itself. So a slow chunk holds up no other.
//! - *ready*: the body holds a chunk. Readers hold the body's lock for reading while they scatter;
//!   gathering and leaving take it for writing.
//! - *gone*: neither. Whoever finds a slot gone looks in the table again.
//!
//! Lock order: body, then budget. The table's and the slot's own lock are never held together with
//! another.

use hashbrown::HashTable;

use crate::layout::{Encoded, Family, Layout, Part};
use crate::member::Member;
use crate::request::Item;
use crate::sync::{
    Arc, AtomicBool, AtomicU32, Condvar, Mutex, MutexGuard, Ordering, RwLock, RwLockReadGuard,
    RwLockWriteGuard,
};

/// The table's parts, each with its own lock. So many that threads that use different chunks seldom
/// meet; they are the cache's, so that an open dataset costs nothing for them.
#[cfg(not(shuttle))]
const SHARDS: usize = 512;
#[cfg(shuttle)]
const SHARDS: usize = 2;

/// The number of a slot that the budget does not know.
pub(crate) const NOT_RESIDENT: u32 = u32::MAX;

/// A place for one chunk.
///
/// Aligned so that what is written at each use, the lock and the count of its users, shares no pair of cache
/// lines, which are fetched together, with another slot.
#[repr(align(128))]
pub(crate) struct Slot<F: Family> {
    pub(crate) member: Arc<Member<F>>,
    /// The member's.
    pub(crate) layout: Arc<dyn Layout<F>>,
    pub(crate) key: F::Key,
    pub(crate) hash: u64,
    /// The budget's number of this slot; changes only under the budget's lock.
    pub(crate) id: AtomicU32,
    /// Whether it was loaded ahead and nobody has used it yet.
    ahead: AtomicBool,
    body: RwLock<Body<F>>,
    loading: Mutex<Progress>,
    loaded: Condvar,
}

/// Stored bytes of a chunk that nobody has decoded yet.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub(crate) bytes: Vec<u8>,
    /// What of the chunk they are.
    pub(crate) part: Part,
}

/// How far the loading of a chunk is, and how many wait for it: to wake nobody is a call, too.
#[derive(Debug)]
struct Progress {
    loading: Loading,
    waiting: u32,
}

/// How far the loading of a chunk is.
#[derive(Debug)]
enum Loading {
    Busy,
    /// Claimed by a request that is busy with another chunk.
    Parked(Fetched),
    /// Ready or gone.
    Over,
}

impl Loading {
    /// Goes on with what is parked.
    fn resume(&mut self) -> Option<Fetched> {
        match std::mem::replace(self, Loading::Busy) {
            Loading::Parked(fetched) => Some(fetched),
            other => {
                *self = other;
                None
            }
        }
    }
}

/// What the slot's lock guards.
pub(crate) struct Body<F: Family> {
    pub(crate) chunk: Option<F::Chunk>,
    /// What of the chunk is there.
    pub(crate) part: Part,
    /// Counts the changes to the chunk.
    pub(crate) version: u64,
    /// The chunk as it is, encoded before it has to be.
    pub(crate) early: Option<Arc<Encoded<F::Tag>>>,
}

impl<F: Family> Body<F> {
    /// The chunk, if it is here and holds `part`.
    pub(crate) fn chunk_with(&self, part: Part) -> Option<&F::Chunk> {
        self.chunk.as_ref().filter(|_| self.part >= part)
    }
}

impl<F: Family> Slot<F> {
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Body<F>> {
        self.body.read()
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, Body<F>> {
        self.body.write()
    }

    fn is(&self, member: &Member<F>, hash: u64, key: &F::Key) -> bool {
        self.hash == hash && std::ptr::eq(&*self.member, member) && self.key == *key
    }

    pub(crate) fn id(&self) -> u32 {
        self.id.load(Ordering::Relaxed)
    }

    pub(crate) fn set_ahead(&self) {
        self.member.counters.rare().prefetched.add(1);
        self.ahead.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_ahead(&self) -> bool {
        self.ahead.load(Ordering::Relaxed)
    }

    /// Whether it was loaded ahead and this is its first use.
    pub(crate) fn take_ahead(&self) -> bool {
        let first = self.is_ahead() && self.ahead.swap(false, Ordering::Relaxed);
        if first {
            self.member.counters.rare().prefetch_useful.add(1);
        }
        first
    }

    /// Counts a chunk that leaves without having been used.
    pub(crate) fn count_wasted(&self) {
        if self.ahead.swap(false, Ordering::Relaxed) {
            self.member.counters.rare().prefetch_wasted.add(1);
        }
    }

    fn set(&self, loading: Loading) {
        let mut progress = self.loading.lock();
        progress.loading = loading;
        self.wake(progress);
    }

    fn wake(&self, progress: MutexGuard<'_, Progress>) {
        let waiting = progress.waiting > 0;
        drop(progress);
        if waiting {
            self.loaded.notify_all();
        }
    }
}

/// The right and the duty to load a chunk into a slot.
///
/// Dropped without [`settle`](Claim::settle), the slot is gone and those who wait try themselves.
pub(crate) struct Claim<'t, F: Family> {
    table: &'t Table<F>,
    slot: Option<Arc<Slot<F>>>,
}

impl<F: Family> Claim<'_, F> {
    pub(crate) fn slot(&self) -> &Arc<Slot<F>> {
        self.slot.as_ref().expect("a claim has its slot until it is settled")
    }

    /// Tells those who wait that the body holds the chunk.
    pub(crate) fn settle(mut self) {
        if let Some(slot) = self.slot.take() {
            slot.set(Loading::Over);
        }
    }

    /// Lets others take it away, and what was fetched with it, until it is taken up again.
    pub(crate) fn park(&self, fetched: Fetched) {
        self.slot().set(Loading::Parked(fetched));
    }

    /// Takes it up again. `None`: another request has taken it away, it is that one's matter now.
    pub(crate) fn resume(&mut self) -> Option<Fetched> {
        let fetched = self.slot().loading.lock().loading.resume();
        if fetched.is_none() {
            self.slot = None;
        }
        fetched
    }
}

impl<F: Family> Drop for Claim<'_, F> {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take() {
            self.table.remove(&slot);
            slot.set(Loading::Over);
        }
    }
}

/// What a request finds for a chunk it wants to load.
pub(crate) enum Found<'t, F: Family> {
    /// Nobody had it: the request loads it.
    Claimed(Claim<'t, F>),
    /// Another request is loading it.
    Loading(Arc<Slot<F>>),
    /// It is here, or was a moment ago.
    Ready(Arc<Slot<F>>),
}

/// All slots, by dataset and key.
pub(crate) struct Table<F: Family> {
    shards: Box<[Shard<F>]>,
}

/// Aligned so that two shards' locks do not share a cache line, nor a pair that is fetched together.
#[repr(align(128))]
struct Shard<F: Family>(Mutex<HashTable<Arc<Slot<F>>>>);

impl<F: Family> Table<F> {
    pub(crate) fn new() -> Self {
        Table { shards: (0..SHARDS).map(|_| Shard(Mutex::new(HashTable::new()))).collect() }
    }

    fn shard(&self, hash: u64) -> &Mutex<HashTable<Arc<Slot<F>>>> {
        &self.shards[(hash >> 40) as usize % SHARDS].0
    }

    pub(crate) fn find(&self, member: &Member<F>, hash: u64, key: &F::Key) -> Option<Arc<Slot<F>>> {
        let shard = self.shard(hash).lock();
        shard.find(hash, |slot| slot.is(member, hash, key)).cloned()
    }

    /// The slot of a chunk, or a claim to a new one.
    pub(crate) fn claim<A>(&self, item: &Item<'_, F, A>) -> Found<'_, F> {
        let Item { member, layout, hash, key, .. } = item;
        let hash = *hash;
        let slot = {
            let mut shard = self.shard(hash).lock();
            match shard.find(hash, |slot| slot.is(member, hash, key)) {
                Some(slot) => Arc::clone(slot),
                None => {
                    let slot = Arc::new(new_slot(member, layout, hash, key));
                    shard.insert_unique(hash, Arc::clone(&slot), |slot| slot.hash);
                    return Found::Claimed(Claim { table: self, slot: Some(slot) });
                }
            }
        };
        let over = matches!(slot.loading.lock().loading, Loading::Over);
        if over { Found::Ready(slot) } else { Found::Loading(slot) }
    }

    /// Waits until a slot is ready or gone; makes it so if nobody is at it, and returns what was
    /// fetched for it.
    pub(crate) fn wait(&self, slot: &Arc<Slot<F>>) -> Option<Fetched> {
        let mut progress = slot.loading.lock();
        progress.waiting += 1;
        while matches!(progress.loading, Loading::Busy) {
            progress = slot.loaded.wait(progress);
        }
        progress.waiting -= 1;
        let fetched = progress.loading.resume();
        progress.loading = Loading::Over;
        if fetched.is_some() {
            drop(progress);
            self.remove(slot);
            slot.wake(slot.loading.lock());
        }
        fetched
    }

    /// Takes this very slot out, if it is in.
    pub(crate) fn remove(&self, slot: &Arc<Slot<F>>) {
        let mut shard = self.shard(slot.hash).lock();
        if let Ok(entry) = shard.find_entry(slot.hash, |other| Arc::ptr_eq(other, slot)) {
            entry.remove();
        }
    }
}

fn new_slot<F: Family>(
    member: &Arc<Member<F>>,
    layout: &Arc<dyn Layout<F>>,
    hash: u64,
    key: &F::Key,
) -> Slot<F> {
    Slot {
        member: Arc::clone(member),
        layout: Arc::clone(layout),
        key: key.clone(),
        hash,
        id: AtomicU32::new(NOT_RESIDENT),
        ahead: AtomicBool::new(false),
        body: RwLock::new(Body { chunk: None, part: Part::Defined, version: 0, early: None }),
        loading: Mutex::new(Progress { loading: Loading::Busy, waiting: 0 }),
        loaded: Condvar::new(),
    }
}
