//! The operations on the cache: register, read, write, flush, change limits.

use crate::access::{Reading, Writing};
use crate::budget::{Budget, Visit};
use crate::config::{Config, DatasetOptions};
use crate::error::CacheError;
use crate::exclusive::Exclusive;
use crate::executor::Executor;
use crate::layout::Layout;
use crate::member::Member;
use crate::order::{Keys, Kind};
use crate::request::Item;
use crate::shield::shield;
use crate::stats::Stats;
use crate::sync::{Arc, Mutex};
use crate::trace::TraceError;

/// A cache of decoded chunks, shared by all datasets registered with it.
///
/// Clones share one cache. All operations may be called from any number of threads; requests of
/// one dataset that overlap and include a write act as if run one after another, in the order in
/// which they were made.
///
/// The crate's documentation shows one at work.
pub struct ChunkCache<L: Layout> {
    pub(crate) shared: Arc<Shared<L>>,
}

/// What the clones of a cache share.
pub(crate) struct Shared<L: Layout> {
    pub(crate) budget: Budget<L>,
    pub(crate) executor: Arc<dyn Executor>,
    config: Config,
    members: Mutex<Members<L>>,
}

struct Members<L: Layout> {
    next: u64,
    open: Vec<Arc<Member<L>>>,
    /// What the datasets did that have been closed.
    closed: Stats,
}

impl<L: Layout> Clone for ChunkCache<L> {
    fn clone(&self) -> Self {
        ChunkCache { shared: Arc::clone(&self.shared) }
    }
}

impl<L: Layout> std::fmt::Debug for ChunkCache<L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChunkCache").field("config", &self.config()).finish_non_exhaustive()
    }
}

impl<L: Layout> ChunkCache<L> {
    /// A cache that holds nothing yet.
    pub fn new(config: Config) -> Self {
        let (resident, active) = config.limits();
        let shared = Shared {
            budget: Budget::new(config.policy.build(resident), resident, active),
            executor: Arc::clone(&config.executor),
            config,
            members: Mutex::new(Members { next: 0, open: Vec::new(), closed: Stats::default() }),
        };
        ChunkCache { shared: Arc::new(shared) }
    }

    /// Gives a dataset its place in the cache.
    pub fn register(&self, layout: Arc<L>, options: DatasetOptions) -> Dataset<L> {
        let mut members = self.shared.members.lock();
        let member = Arc::new(Member::new(members.next, layout, options));
        members.next += 1;
        members.open.push(Arc::clone(&member));
        Dataset { cache: self.clone(), member, open: true }
    }

    /// Serves a read.
    ///
    /// Each chunk should occur once. On an error, some parts may have been served.
    pub fn read<'a>(
        &self,
        dataset: &Dataset<L>,
        parts: impl IntoIterator<Item = (L::Key, L::Read<'a>)>,
    ) -> Result<(), L::Error> {
        let member = self.member(dataset)?;
        let mut parts = parts.into_iter();
        let Some((key, mut request)) = parts.next() else { return Ok(()) };
        let hash = member.hash(&key);
        let second = parts.next();
        if second.is_none()
            && let Some(result) = self.shared.read_resident(member, hash, &key, &mut request)
        {
            return result;
        }
        let item = |(key, request)| Item::new(member, key, Reading(request));
        let all = std::iter::once((key, request)).chain(second).chain(parts);
        let items: Vec<_> = all.map(item).collect();
        let _place = member.order.enter(Kind::Read, keys(&items));
        self.shared.run(member, items)
    }

    /// Applies a write.
    ///
    /// Each chunk should occur once: of several writes to one chunk in one request, any may be the
    /// last. On an error some chunks may have been changed; a chunk whose own change failed is as
    /// it was, or, if it had changes that are not written back yet, changed in part.
    ///
    /// An error may also come from another chunk, that had to be written back to make room. That
    /// chunk stays in memory, changed; later requests and flushes will try again.
    pub fn write<'a>(
        &self,
        dataset: &Dataset<L>,
        parts: impl IntoIterator<Item = (L::Key, L::Write<'a>)>,
    ) -> Result<(), L::Error> {
        let member = self.member(dataset)?;
        let items = writes(member, parts);
        if items.is_empty() {
            return Ok(());
        }
        let _place = member.order.enter(Kind::Write, keys(&items));
        self.shared.run(member, items)
    }

    /// Writes back what the dataset's writes have changed; with `evict`, the dataset's chunks also
    /// leave the cache.
    ///
    /// Waits for the writes made before and holds back those made later; reads go on. If a chunk
    /// cannot be written it stays in memory, and the error is returned after the others are.
    pub fn flush(&self, dataset: &Dataset<L>, evict: bool) -> Result<(), L::Error> {
        self.shared.flush(self.member(dataset)?, evict)
    }

    /// Writes back what any dataset's writes have changed, as far as possible; returns the first
    /// error.
    pub fn flush_all(&self) -> Result<(), L::Error> {
        let open = self.shared.members.lock().open.clone();
        let mut result = Ok(());
        for member in open {
            result = result.and(self.shared.flush(&member, false));
        }
        result
    }

    /// Waits for the dataset's requests and holds back later ones until the guard is dropped.
    ///
    /// For changes of the dataset's shape: the layout may be changed as long as the guard lives.
    /// Other datasets' requests go on, and may write back this one's chunks.
    pub fn exclusive<'c>(&'c self, dataset: &'c Dataset<L>) -> Exclusive<'c, L> {
        Exclusive::new(&dataset.cache.shared, &dataset.member)
    }

    /// What all datasets did so far, closed ones included.
    pub fn stats(&self) -> Stats {
        let members = self.shared.members.lock();
        let mut stats = members.closed;
        members.open.iter().for_each(|member| stats += member.counters.read());
        stats.peak = self.shared.budget.peak();
        stats
    }

    /// What one dataset did so far.
    pub fn dataset_stats(&self, dataset: &Dataset<L>) -> Stats {
        dataset.member.counters.read()
    }

    /// Records, from now on, which chunks are used and how.
    ///
    /// A trace that is being recorded ends first, and its error is returned. See
    /// [`trace`](crate::trace) for what is recorded and [`simulate`](crate::simulate) for what it
    /// is good for.
    pub fn start_trace(&self, to: impl std::io::Write + Send + 'static) -> Result<(), TraceError> {
        self.shared.budget.recorder.start(Box::new(to))
    }

    /// Ends the recording, if there is one; returns the first error that it met.
    pub fn stop_trace(&self) -> Result<(), TraceError> {
        self.shared.budget.recorder.stop()
    }

    /// The settings in force.
    pub fn config(&self) -> Config {
        let (resident, active) = self.shared.budget.limits();
        self.shared.config.clone().resident_limit(resident).active_limit(active)
    }

    /// Who decodes and encodes; also at the service of a request that is being prepared.
    pub fn executor(&self) -> &Arc<dyn Executor> {
        &self.shared.executor
    }

    /// Changes the limits. Chunks beyond the new resident limit leave at once.
    pub fn set_limits(&self, resident: u64, active: u64) -> Result<(), L::Error> {
        self.shared.budget.set_limits(resident, active);
        self.shared.trim()
    }

    fn member<'d>(&self, dataset: &'d Dataset<L>) -> Result<&'d Arc<Member<L>>, CacheError> {
        match Arc::ptr_eq(&self.shared, &dataset.cache.shared) {
            true => Ok(&dataset.member),
            false => Err(CacheError::ForeignDataset),
        }
    }
}

impl<L: Layout> Shared<L> {
    /// Serves a read of one chunk without a place in the order, if the chunk is in memory and no
    /// write of it is waiting or running.
    fn read_resident(
        &self,
        member: &Member<L>,
        hash: u64,
        key: &L::Key,
        request: &mut L::Read<'_>,
    ) -> Option<Result<(), L::Error>> {
        let slot = member.table.find(hash, key)?;
        let body = slot.read();
        if member.order.claimed(hash) {
            return None;
        }
        let chunk = body.chunk_with(member.layout.part(request))?;
        let result = shield(|| member.layout.scatter(key, chunk, request));
        drop(body);
        let share = member.layout.read_share(key, request);
        self.budget.touch_or_skip(&slot, Visit { write: false, share });
        member.counters.hits.add(1);
        Some(result)
    }

    fn flush(&self, member: &Member<L>, evict: bool) -> Result<(), L::Error> {
        let _place = member.order.enter(Kind::Flush, Keys::new());
        self.flush_member(member, evict)
    }

    fn close(&self, member: &Arc<Member<L>>) -> Result<(), L::Error> {
        let place = member.order.enter(Kind::Exclusive, Keys::new());
        let result = self.flush_member(member, false);
        member.table.slots().iter().for_each(|slot| self.discard(slot));
        drop(place);
        let mut members = self.members.lock();
        members.open.retain(|other| !Arc::ptr_eq(other, member));
        members.closed += member.counters.read();
        result
    }
}

pub(crate) fn writes<'a, L: Layout>(
    member: &Member<L>,
    parts: impl IntoIterator<Item = (L::Key, L::Write<'a>)>,
) -> Vec<Item<L, Writing<'a, L>>> {
    let item = |(key, request)| Item::new(member, key, Writing(request));
    parts.into_iter().map(item).collect()
}

fn keys<L: Layout, A>(items: &[Item<L, A>]) -> Keys<L::Key> {
    items.iter().map(|item| item.key.clone()).collect()
}

/// A dataset's place in a cache.
///
/// Dropping it closes the dataset; [`close`](Dataset::close) does the same and tells of errors.
pub struct Dataset<L: Layout> {
    cache: ChunkCache<L>,
    member: Arc<Member<L>>,
    open: bool,
}

impl<L: Layout> Dataset<L> {
    /// The cache it is registered with.
    pub fn cache(&self) -> &ChunkCache<L> {
        &self.cache
    }

    /// Its layout.
    pub fn layout(&self) -> &Arc<L> {
        &self.member.layout
    }

    /// Writes back what was changed and gives the place up.
    ///
    /// The place is given up in any case: on an error, changes that could not be written are lost.
    /// To be able to try again, [`flush`](ChunkCache::flush) first.
    pub fn close(mut self) -> Result<(), L::Error> {
        self.open = false;
        self.cache.shared.close(&self.member)
    }
}

impl<L: Layout> Drop for Dataset<L> {
    fn drop(&mut self) {
        if self.open {
            let _ = self.cache.shared.close(&self.member);
        }
    }
}

impl<L: Layout> std::fmt::Debug for Dataset<L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Member { id, options, .. } = &*self.member;
        f.debug_struct("Dataset").field("id", id).field("options", options).finish_non_exhaustive()
    }
}
