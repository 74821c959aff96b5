//! The operations on the cache: register, read, write, flush, change limits.

use crate::absent::Absent;
use crate::access::{Reading, Writing};
use crate::adaptive::{Adaptive, Surroundings};
use crate::admission::Admission;
use crate::batches::{ByDataset, TOGETHER, keys, reach, take};
use crate::budget::{Budget, Visit, bookkeeping};
use crate::config::{Config, DatasetOptions};
use crate::error::CacheError;
use crate::exclusive::Exclusive;
use crate::executor::Executor;
use crate::handles::{CachedFile, Dataset};
use crate::layout::{Family, Layout, ReadPlan, Unchunked};
use crate::member::{Data, Member};
use crate::observer::Observer;
use crate::order::{Entry, Keys, Kind, Order};
use crate::refused::Refused;
use crate::request::Share;
use crate::shield::shield;
use crate::slot::Table;
use crate::stats::{Reason, Stats};
use crate::sync::{Arc, AtomicBool, AtomicUsize, Mutex, Ordering, yield_now};

/// How often a dataset that is closed looks whether others have let go of it.
const MOST_TURNS: usize = 10_000;

/// A cache of decoded chunks, shared by all datasets registered with it.
///
/// Clones share one cache. All operations may be called from any number of threads; requests of
/// one dataset that overlap and include a write act as if run one after another, in the order in
/// which they were made.
///
/// The crate's documentation shows one at work.
pub struct ChunkCache<F: Family> {
    pub(crate) shared: Arc<Shared<F>>,
}

/// What the clones of a cache share.
pub(crate) struct Shared<F: Family> {
    pub(crate) budget: Budget<F>,
    pub(crate) table: Table<F>,
    pub(crate) absent: Absent<F::Key>,
    pub(crate) admission: Admission,
    pub(crate) adaptive: Mutex<Option<Adaptive>>,
    config: Mutex<Config>,
    members: Mutex<Members<F>>,
    destroyed: AtomicBool,
    pub(crate) writing_early: AtomicBool,
    /// How many threads work ahead of requests.
    pub(crate) ahead: AtomicUsize,
    /// Whether a thread looks after the cache while no request comes.
    pub(crate) watched: AtomicBool,
}

struct Members<F: Family> {
    next: u64,
    open: Vec<Arc<Member<F>>>,
    /// What the datasets did that have been closed.
    closed: Stats,
}

impl<F: Family> Clone for ChunkCache<F> {
    fn clone(&self) -> Self {
        ChunkCache { shared: Arc::clone(&self.shared) }
    }
}

impl<F: Family> std::fmt::Debug for ChunkCache<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChunkCache").field("config", &self.config()).finish_non_exhaustive()
    }
}

impl<F: Family> ChunkCache<F> {
    /// The bytes that the cache takes to keep one chunk, beside the chunk's own. They count for the
    /// limits.
    pub const BOOKKEEPING: u64 = bookkeeping::<F>();

    /// A cache that holds nothing yet.
    pub fn new(config: Config) -> Self {
        let (resident, active) = config.limits();
        let shared = Shared {
            budget: Budget::new(config.policy.build(resident), resident, active),
            table: Table::new(),
            absent: Absent::new(),
            admission: Admission::new(),
            adaptive: Mutex::new(config.adaptive()),
            config: Mutex::new(config),
            members: Mutex::new(Members { next: 0, open: Vec::new(), closed: Stats::default() }),
            destroyed: AtomicBool::new(false),
            writing_early: AtomicBool::new(false),
            ahead: AtomicUsize::new(0),
            watched: AtomicBool::new(false),
        };
        shared.budget.set_curve(shared.config.lock().curve());
        ChunkCache { shared: Arc::new(shared) }
    }

    /// Gives a dataset its place in the cache.
    pub fn register<T: Layout<F>>(&self, layout: Arc<T>, options: DatasetOptions) -> Dataset<F> {
        self.shared.register(self, None, Data::Chunks(layout), options)
    }

    /// Gives a dataset whose data are not in chunks its place in the order of requests. The cache
    /// keeps nothing of it.
    pub fn register_unchunked<T: Unchunked<F>>(
        &self,
        data: Arc<T>,
        options: DatasetOptions,
    ) -> Dataset<F> {
        self.shared.register(self, None, Data::Unchunked(data), options)
    }

    /// Gives a file its place in the cache: datasets registered with it can be flushed together.
    pub fn register_file(&self) -> CachedFile<F> {
        let mut members = self.shared.members.lock();
        members.next += 1;
        CachedFile { cache: self.clone(), id: members.next - 1 }
    }

    /// Serves a read.
    ///
    /// Each chunk should occur once. On an error, some parts may have been served.
    pub fn read<'a>(
        &self,
        dataset: &Dataset<F>,
        parts: impl IntoIterator<Item = (F::Key, F::Read<'a>)>,
    ) -> Result<(), F::Error> {
        let member = self.member(dataset)?;
        let mut parts = parts.into_iter();
        let Some((key, mut request)) = parts.next() else { return Ok(()) };
        let hash = member.hash(&key);
        let second = parts.next();
        if second.is_none()
            && let Some((result, ahead)) =
                self.shared.read_resident(member, hash, &key, &mut request)
        {
            if ahead && self.follows(member, 1) {
                self.follow(member, std::slice::from_ref(&key));
            }
            return result;
        }
        let all = std::iter::once((key, request)).chain(second).chain(parts);
        let mut all = all.map(|(key, request)| Share::new(member, key, Reading(request)));
        let (items, more) = take(&mut all);
        if let Some(more) = more {
            let all = items.into_iter().chain([more]).chain(all);
            let served = self.shared.serve_all(Kind::Flush, &[member], all);
            self.watch();
            return served;
        }
        let keys = keys(&items);
        let small = if self.follows(member, keys.len()) { keys.clone() } else { Keys::new() };
        let place = member.order.enter_reaching(Kind::Read, keys, reach(&items));
        // One chunk leaves threads idle, which can load the next ones meanwhile.
        if let [_] = &*small {
            self.follow(member, &small);
        }
        let served = self.shared.run(items);
        drop(place);
        if small.len() > 1 {
            self.follow(member, &small);
        }
        self.watch();
        served
    }

    /// Serves reads of several datasets as one request: it has one place in the order of them all,
    /// and chunks of datasets in one store are fetched together.
    ///
    /// ```
    /// # use pumice_cache::*;
    /// # fn example<'a, F: Family<Key = u64>>(
    /// #     cache: &ChunkCache<F>, one: &Dataset<F>, two: &Dataset<F>, a: F::Read<'a>, b: F::Read<'a>,
    /// # ) -> Result<(), F::Error> {
    /// cache.read_many([(one, [(0, a)]), (two, [(0, b)])])
    /// # }
    /// ```
    pub fn read_many<'a, 'd, P>(
        &self,
        requests: impl IntoIterator<Item = (&'d Dataset<F>, P)>,
    ) -> Result<(), F::Error>
    where
        P: IntoIterator<Item = (F::Key, F::Read<'a>)>,
    {
        let requests = self.sorted(requests)?;
        let served = self.shared.serve(Kind::Read, requests, Reading);
        self.watch();
        served
    }

    /// Applies a write.
    ///
    /// Each chunk should occur once: of several writes to one chunk in one request, any may be the
    /// last. On an error some chunks may have been changed; a chunk whose own change failed is as
    /// it was, or, if it had changes that are not written back yet, changed in part.
    ///
    /// An error may also come from another chunk of the dataset, or of the same store if that fails, that had to
    /// be written back to make room. That chunk stays in memory, changed; later requests and flushes will try
    /// again. What cannot be written of other datasets is no error here: if it leaves no room, what is written is
    /// stored at once.
    pub fn write<'a>(
        &self,
        dataset: &Dataset<F>,
        parts: impl IntoIterator<Item = (F::Key, F::Write<'a>)>,
    ) -> Result<(), F::Error> {
        let member = self.member(dataset)?;
        let served = self.shared.serve(Kind::Write, vec![(member, parts)], Writing);
        self.after_write();
        served
    }

    /// As [`write`](Self::write), and stores what it changes before it returns.
    ///
    /// ```
    /// # use pumice_cache::*;
    /// # fn example<F: Family<Key = u64>>(cache: &ChunkCache<F>, dataset: &Dataset<F>, part: F::Write<'_>) -> Result<(), F::Error> {
    /// cache.write_through(dataset, [(0, part)])
    /// # }
    /// ```
    pub fn write_through<'a>(
        &self,
        dataset: &Dataset<F>,
        parts: impl IntoIterator<Item = (F::Key, F::Write<'a>)>,
    ) -> Result<(), F::Error> {
        let member = self.member(dataset)?;
        let item = |(key, request)| Share::new(member, key, Writing(request));
        let mut all = parts.into_iter().map(item);
        let (items, more) = take(&mut all);
        let place = match more {
            None => member.order.enter(Kind::Write, keys(&items)),
            Some(_) => member.order.enter(Kind::Exclusive, Keys::new()),
        };
        let mut stored = self.write_and_save(member, items);
        let mut rest = more.into_iter().chain(all);
        while stored.is_ok() {
            let some: Vec<_> = rest.by_ref().take(TOGETHER).collect();
            if some.is_empty() {
                break;
            }
            stored = self.write_and_save(member, some);
        }
        drop(place);
        self.after_write();
        stored
    }

    /// Applies some of a write's parts, and stores what they change.
    fn write_and_save<'d>(
        &self,
        member: &'d Arc<Member<F>>,
        items: Vec<Share<'d, F, Writing<'_, F>>>,
    ) -> Result<(), F::Error> {
        let names: Vec<_> = items.iter().map(|item| (item.hash, item.key.clone())).collect();
        let served = self.shared.run(items);
        // Also after a failure: what is changed is stored.
        served.and(self.shared.save_named(member, &names))
    }

    /// Applies writes to several datasets as one request: nobody sees some of them and not the
    /// others.
    pub fn write_many<'a, 'd, P>(
        &self,
        requests: impl IntoIterator<Item = (&'d Dataset<F>, P)>,
    ) -> Result<(), F::Error>
    where
        P: IntoIterator<Item = (F::Key, F::Write<'a>)>,
    {
        let requests = self.sorted(requests)?;
        let served = self.shared.serve(Kind::Write, requests, Writing);
        self.after_write();
        served
    }

    /// What a write leaves to be done beside.
    pub(crate) fn after_write(&self) {
        self.write_early();
        self.watch();
    }

    /// The parts of a request by dataset, datasets in their order.
    fn sorted<'d, P>(
        &self,
        requests: impl IntoIterator<Item = (&'d Dataset<F>, P)>,
    ) -> Result<ByDataset<'d, F, P>, CacheError> {
        let requests = requests.into_iter();
        let mut requests = requests
            .map(|(dataset, parts)| Ok((self.member(dataset)?, parts)))
            .collect::<Result<Vec<_>, CacheError>>()?;
        requests.sort_by_key(|(member, _)| member.id);
        Ok(requests)
    }

    /// Writes back what the dataset's writes have changed; with `evict`, the dataset's chunks also
    /// leave the cache.
    ///
    /// Waits for the writes made before and holds back those made later; reads go on. If a chunk
    /// cannot be written it stays in memory, and the error is returned after the others are.
    pub fn flush(&self, dataset: &Dataset<F>, evict: bool) -> Result<(), F::Error> {
        self.shared.flush(std::slice::from_ref(self.member(dataset)?), evict)
    }

    /// As [`flush`](Self::flush), and tells apart what went wrong: an error is one of the store, and what could
    /// not be encoded is named.
    pub fn flush_apart(&self, dataset: &Dataset<F>) -> Result<Option<Refused<F>>, F::Error> {
        let refused = self.shared.flush_apart(std::slice::from_ref(self.member(dataset)?))?;
        Ok(refused.into_iter().next())
    }

    /// The dataset's chunks that have changes that are not written back.
    ///
    /// Waits for the writes made before. What is changed later may be written back at any time.
    pub fn changed_keys(&self, dataset: &Dataset<F>) -> Result<Vec<F::Key>, F::Error> {
        let member = self.member(dataset)?;
        let _place = member.order.enter(Kind::Flush, Keys::new());
        let changed = self.shared.budget.dirty_among(self.shared.budget.slots(member));
        Ok(changed.iter().map(|slot| slot.key.clone()).collect())
    }

    /// Writes back what the writes to a file's datasets have changed, as far as possible; returns
    /// the first error. With `evict`, their chunks also leave the cache.
    ///
    /// The datasets are flushed together: their chunks are written in the order in which they lie in
    /// the file.
    pub fn flush_file(&self, file: &CachedFile<F>, evict: bool) -> Result<(), F::Error> {
        let mut members = self.shared.open_members()?;
        members.retain(|member| member.file == Some(file.id));
        self.shared.flush(&members, evict)
    }

    /// As [`flush_file`](Self::flush_file), and tells apart what went wrong: an error is one of the store, and
    /// what could not be encoded is named dataset by dataset. All else is written then.
    pub fn flush_file_apart(&self, file: &CachedFile<F>) -> Result<Vec<Refused<F>>, F::Error> {
        let mut members = self.shared.open_members()?;
        members.retain(|member| member.file == Some(file.id));
        self.shared.flush_apart(&members)
    }

    /// Writes back what any dataset's writes have changed, as far as possible; returns the first
    /// error. With `evict`, all chunks also leave the cache.
    pub fn flush_all(&self, evict: bool) -> Result<(), F::Error> {
        self.shared.flush(&self.shared.open_members()?, evict)
    }

    /// Empties the cache for good: later requests are refused.
    ///
    /// Does not write anything back. If any dataset has changes that are not written back, it is
    /// left as it is and the error tells which: flush or close the dataset, then try again.
    pub fn destroy(&self) -> Result<(), F::Error> {
        let members = self.shared.open_members()?;
        let entries = members.iter().map(|member| Entry::of(&member.order, Kind::Exclusive));
        let _places = Order::enter_all(entries.collect());
        for member in &members {
            let dirty = self.shared.budget.dirty_among(self.shared.budget.slots(member));
            if !dirty.is_empty() {
                let bytes = self.shared.budget.footprint_of(&dirty);
                return Err(CacheError::Dirty { chunks: dirty.len(), bytes }.into());
            }
        }
        self.shared.destroyed.store(true, Ordering::Relaxed);
        let slots = members.iter().flat_map(|member| self.shared.budget.slots(member));
        slots.for_each(|slot| self.shared.discard(&slot, Reason::Close));
        Ok(())
    }

    /// Waits for the dataset's requests and holds back later ones until the guard is dropped.
    ///
    /// For changes of the dataset's shape: the layout may be changed as long as the guard lives.
    /// Other datasets' requests go on, and may write back this one's chunks.
    pub fn exclusive<'c>(&'c self, dataset: &'c Dataset<F>) -> Exclusive<'c, F> {
        Exclusive::new(&dataset.cache.shared, &dataset.member)
    }

    /// What all datasets did so far, closed ones included.
    pub fn stats(&self) -> Stats {
        self.shared.budget.settle();
        let members = self.shared.members.lock();
        let mut stats = members.closed;
        members.open.iter().for_each(|member| stats += member.stats());
        self.shared.budget.complete(&mut stats);
        stats
    }

    /// What one dataset did so far.
    pub fn dataset_stats(&self, dataset: &Dataset<F>) -> Stats {
        self.shared.budget.settle();
        dataset.member.stats()
    }

    /// Lets `observer` see, from now on, which chunks are used and how; `None`: nobody. Gives back the
    /// one that has seen it so far.
    pub fn observe(&self, observer: Option<Box<dyn Observer>>) -> Option<Box<dyn Observer>> {
        self.shared.budget.settle();
        self.shared.budget.watch.replace(observer)
    }

    /// The settings in force.
    pub fn config(&self) -> Config {
        let (resident, active) = self.shared.budget.limits();
        let mut config = self.shared.config.lock().clone();
        (config.resident_limit, config.active_limit) = (resident, active);
        config
    }

    /// Changes the settings while the cache is in use. Chunks beyond a new resident limit leave at
    /// once; a new policy begins with the order in which the old one would have let chunks go.
    ///
    /// ```
    /// # use pumice_cache::*;
    /// # fn example<F: Family>(cache: &ChunkCache<F>) -> Result<(), F::Error> {
    /// cache.configure(cache.config().policy(PolicyKind::Lru).resident_limit(16 << 20))
    /// # }
    /// ```
    pub fn configure(&self, config: Config) -> Result<(), F::Error> {
        let (resident, active) = config.limits();
        // Held until the limits are set: what is being chosen meanwhile must not replace them.
        let mut adaptive = self.shared.adaptive.lock();
        let before = std::mem::replace(&mut *self.shared.config.lock(), config.clone());
        let (in_force, _) = self.shared.budget.limits();
        self.shared.budget.set_limits(resident, active);
        if before.sizing != config.sizing {
            self.shared.budget.set_curve(config.curve());
        }
        if before.sizing != config.sizing || resident != in_force {
            *adaptive = config.adaptive();
        }
        drop(adaptive);
        if before.policy != config.policy {
            self.shared.budget.set_policy(config.policy.build(resident));
        }
        self.shared.limit_absent(resident);
        self.shared.trim(true)
    }

    /// Whether it is a clone of another.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Who decodes and encodes; also at the service of a request that is being prepared.
    pub fn executor(&self) -> Arc<dyn Executor> {
        self.shared.executor()
    }

    /// Changes the limits. Chunks beyond the new resident limit leave at once.
    pub fn set_limits(&self, resident: u64, active: u64) -> Result<(), F::Error> {
        self.configure(self.config().resident_limit(resident).active_limit(active))
    }

    pub(crate) fn member<'d>(
        &self,
        dataset: &'d Dataset<F>,
    ) -> Result<&'d Arc<Member<F>>, CacheError> {
        if !Arc::ptr_eq(&self.shared, &dataset.cache.shared) {
            return Err(CacheError::ForeignDataset);
        }
        self.shared.check()?;
        Ok(&dataset.member)
    }
}

impl<F: Family> Shared<F> {
    /// Who runs tasks at the moment.
    pub(crate) fn executor(&self) -> Arc<dyn Executor> {
        Arc::clone(&self.config.lock().executor)
    }

    /// How many threads may work ahead of requests at once.
    pub(crate) fn background(&self) -> usize {
        self.config.lock().background
    }

    pub(crate) fn surroundings(&self) -> Arc<dyn Surroundings> {
        Arc::clone(&self.config.lock().surroundings)
    }

    fn check(&self) -> Result<(), CacheError> {
        if self.destroyed.load(Ordering::Relaxed) { Err(CacheError::Destroyed) } else { Ok(()) }
    }

    pub(crate) fn register(
        &self,
        cache: &ChunkCache<F>,
        file: Option<u64>,
        data: Data<F>,
        options: DatasetOptions,
    ) -> Dataset<F> {
        let mut members = self.members.lock();
        let member = Arc::new(Member::new(members.next, file, data, options));
        members.next += 1;
        members.open.push(Arc::clone(&member));
        Dataset { cache: cache.clone(), member, open: true }
    }

    /// All datasets, in their order.
    fn open_members(&self) -> Result<Vec<Arc<Member<F>>>, CacheError> {
        self.check()?;
        Ok(self.members.lock().open.clone())
    }

    /// Serves a read of one chunk without a place in the order, if the chunk is in memory and no
    /// write of it is waiting or running.
    fn read_resident(
        &self,
        member: &Member<F>,
        hash: u64,
        key: &F::Key,
        request: &mut F::Read<'_>,
    ) -> Option<(Result<(), F::Error>, bool)> {
        let slot = self.table.find(member, hash, key)?;
        let body = slot.read();
        if member.order.claimed(hash) {
            return None;
        }
        let ReadPlan { part, share, .. } = slot.layout.plan_read(key, None, request);
        let chunk = body.chunk_with(part)?;
        let result = shield(|| slot.layout.scatter(key, Some(chunk), request));
        drop(body);
        let ahead = slot.is_ahead();
        if let Some(told) = self.budget.touch(slot, Visit { write: false, share, hit: true }) {
            // Who has only hits may have rested, too, and others may need the memory.
            let resized = self.arrive(0);
            if told.due {
                self.review();
            }
            if resized || told.due || told.excess {
                let _ = self.trim(false);
            }
        }
        Some((result, ahead))
    }

    /// Flushes datasets, which are in their order.
    fn flush(&self, members: &[Arc<Member<F>>], evict: bool) -> Result<(), F::Error> {
        let entries = members.iter().map(|member| Entry::of(&member.order, Kind::Flush));
        let _places = Order::enter_all(entries.collect());
        self.flush_members(members, evict)
    }

    pub(crate) fn close(&self, member: &Arc<Member<F>>) -> Result<(), F::Error> {
        let place = member.order.enter(Kind::Exclusive, Keys::new());
        let result = self.flush_members(std::slice::from_ref(member), false);
        member.order.close();
        self.budget.slots(member).iter().for_each(|slot| self.discard(slot, Reason::Close));
        if member.course.lock().is_some() {
            self.budget.expect(member.id, &[]);
        }
        drop(place);
        // Notes of its uses refer to the dataset, too.
        self.budget.settle();
        self.budget.with_curve(|curve| curve.forget(member.id));
        await_release(member);
        let mut members = self.members.lock();
        members.open.retain(|other| !Arc::ptr_eq(other, member));
        members.closed += member.counters.read();
        result
    }
}

/// Waits until nobody but its owner and the list of members has a hand on a dataset that is closed,
/// so that its file can be opened again at once. Other threads may just be letting go of notes of its
/// uses, or of work ahead that has ended. That takes no time; but a thread that, letting go, closes
/// another dataset might wait for this one in turn: so the wait has an end.
fn await_release<F: Family>(member: &Arc<Member<F>>) {
    for _ in 0..MOST_TURNS {
        if Arc::strong_count(member) <= 2 {
            return;
        }
        yield_now();
    }
}

pub(crate) fn writes<'m, 'a, F: Family>(
    member: &'m Arc<Member<F>>,
    parts: impl IntoIterator<Item = (F::Key, F::Write<'a>)>,
) -> Vec<Share<'m, F, Writing<'a, F>>> {
    let item = |(key, request)| Share::new(member, key, Writing(request));
    parts.into_iter().map(item).collect()
}
