//! The course of a request that has its turn: resident chunks first, then the others, as many at a
//! time as the budget allows.
//!
//! All chunks that are not resident are looked up at once, dataset by dataset, and sorted by where
//! they are stored: chunks of several datasets in one file become neighbours. They are divided into
//! groups of neighbours, each of which is fetched in one call, and the groups
//! are put in a line from which the executor's threads take them: reading, decoding and scattering
//! of different chunks overlap, and no thread waits for another until the line is empty.
//!
//! Whatever would make a task wait is left to the calling thread: room that must be written free,
//! chunks that another request is loading, chunks to delete.

use std::collections::VecDeque;

use smallvec::SmallVec;

use crate::absent::Name;
use crate::access::{Access, Plan, Request, Served};
use crate::admission::Admitted;
use crate::budget::Reservation;
use crate::cache::Shared;
use crate::executor::Executor;
use crate::layout::{Family, Layout, Unchunked};
use crate::member::{Data, Member};
use crate::moves::{Moves, pass_unchunked};
use crate::plan::{Group, announce};
use crate::shield::shield;
use crate::slot::{Fetched, Slot};
use crate::sync::{Arc, AtomicBool, Mutex, Ordering};

/// Below this, copying is quicker than telling another thread to.
const WORTH_SHARING: u64 = 1 << 20;

/// One chunk's share of a request, as it comes; or one of data that are not in chunks.
pub(crate) struct Share<'m, F: Family, A> {
    pub(crate) member: &'m Arc<Member<F>>,
    pub(crate) key: F::Key,
    pub(crate) hash: u64,
    pub(crate) access: A,
}

impl<'m, F: Family, A> Share<'m, F, A> {
    pub(crate) fn new(member: &'m Arc<Member<F>>, key: F::Key, access: A) -> Self {
        Share { member, hash: member.hash(&key), key, access }
    }
}

/// One chunk's share of a request that has its turn.
pub(crate) struct Item<'m, F: Family, A> {
    pub(crate) member: &'m Arc<Member<F>>,
    pub(crate) layout: &'m Arc<dyn Layout<F>>,
    pub(crate) key: F::Key,
    pub(crate) hash: u64,
    pub(crate) access: A,
    /// What the access needs.
    pub(crate) plan: Plan,
    /// Whether the chunk was found resident without room to be changed.
    pub(crate) crowded: bool,
    /// Whether the layout has refused to handle it past the cache.
    pub(crate) refused: bool,
    /// What another request has fetched of it and not come to decode.
    pub(crate) fetched: Option<Fetched>,
}

impl<'m, F: Family, A: Access<F>> Item<'m, F, A> {
    pub(crate) fn new(share: Share<'m, F, A>, layout: &'m Arc<dyn Layout<F>>) -> Self {
        let Share { member, key, hash, access } = share;
        let plan = access.plan(&**layout, &key, None);
        let (crowded, refused, fetched) = (false, false, None);
        Item { member, layout, hash, key, access, plan, crowded, refused, fetched }
    }
}

impl<F: Family, A> Item<'_, F, A> {
    pub(crate) fn name(&self) -> Name<'_, F::Key> {
        self.member.name(self.hash, &self.key)
    }
}

/// A chunk to be looked for once more.
pub(crate) struct Retry<'m, F: Family, A> {
    pub(crate) item: Item<'m, F, A>,
    /// Where another request is loading it; `None` if it has left.
    pub(crate) slot: Option<Arc<Slot<F>>>,
}

/// What the tasks of a request leave behind for the calling thread.
pub(crate) struct Round<'m, F: Family, A> {
    pub(crate) retry: Mutex<Vec<Retry<'m, F, A>>>,
    /// Chunks in which nothing is left.
    pub(crate) emptied: Mutex<Vec<Arc<Slot<F>>>>,
    pub(crate) executor: Arc<dyn Executor>,
    error: Mutex<Option<F::Error>>,
    failed: AtomicBool,
}

impl<'m, F: Family, A> Round<'m, F, A> {
    pub(crate) fn new(executor: Arc<dyn Executor>) -> Self {
        Round {
            executor,
            retry: Mutex::new(Vec::new()),
            emptied: Mutex::new(Vec::new()),
            error: Mutex::new(None),
            failed: AtomicBool::new(false),
        }
    }

    fn failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Runs a step of a task, unless one has failed; keeps the first error.
    fn attempt(&self, step: impl FnOnce() -> Result<(), F::Error>) {
        if self.failed() {
            return;
        }
        if let Err(error) = shield(step) {
            self.failed.store(true, Ordering::Relaxed);
            self.error.lock().get_or_insert(error);
        }
    }

    fn result(&self) -> Result<(), F::Error> {
        self.error.lock().take().map_or(Ok(()), Err)
    }
}

impl<F: Family> Shared<F> {
    /// Serves a request that has its turn; chunks of one dataset stand together.
    pub(crate) fn run<'m, A: Request<F>>(
        &self,
        shares: Vec<Share<'m, F, A>>,
    ) -> Result<(), F::Error> {
        self.run_on(self.executor(), shares)
    }

    /// As [`run`](Self::run), with the help of these threads.
    pub(crate) fn run_on<'m, A: Request<F>>(
        &self,
        executor: Arc<dyn Executor>,
        shares: Vec<Share<'m, F, A>>,
    ) -> Result<(), F::Error> {
        let (items, unchunked) = divided(shares);
        let members = tally(&items);
        let through = if A::WRITES { through(&items) } else { Vec::new() };
        if items.is_empty() {
            // Nothing of it is kept, but it ends a rest of the cache.
            self.arrive(0);
        }
        let passed = serve_unchunked(unchunked, &*executor);
        let served = match passed.is_ok() && !items.is_empty() {
            true => self.run_rounds(executor, items, &members),
            false => passed,
        };
        let stored = through.iter().map(|(member, names)| self.save_named(member, names));
        let served = served.and(stored.fold(Ok(()), Result::and));
        self.review();
        // Also after a failure: what was loaded until then must not stay over the limit. What cannot
        // be written back stays; its own dataset's flush tells.
        let _ = self.trim(false);
        members.iter().for_each(|(member, _)| self.trim_member(member));
        self.depart();
        served
    }

    fn run_rounds<'m, A: Access<F>>(
        &self,
        executor: Arc<dyn Executor>,
        mut items: Vec<Item<'m, F, A>>,
        asked: &Tally<'m, F>,
    ) -> Result<(), F::Error> {
        // Counted in the first round only.
        let mut asked = Some(asked);
        loop {
            let round = Round::new(Arc::clone(&executor));
            let outcome = self.run_round(items, &round, asked.take());
            for slot in std::mem::take(&mut *round.emptied.lock()) {
                self.delete(&slot)?;
            }
            outcome?;
            let mut retry = round.retry.into_inner();
            let Some(first_in_line) = retry.first_mut() else { return Ok(()) };
            if let Some(slot) = &first_in_line.slot {
                first_in_line.item.fetched = self.table.wait(slot);
            }
            items = retry.into_iter().map(|retry| retry.item).collect();
        }
    }

    fn run_round<'m, A: Access<F>>(
        &self,
        items: Vec<Item<'m, F, A>>,
        round: &Round<'m, F, A>,
        asked: Option<&Tally<'m, F>>,
    ) -> Result<(), F::Error> {
        let missed = self.serve_resident(items, round);
        round.result()?;
        if let Some(asked) = asked {
            count_hits(asked, &tally(&missed));
            if !missed.is_empty() {
                self.arrive(expected_bytes(asked));
            }
        }
        if missed.is_empty() {
            return Ok(());
        }
        let mut tasks = shield(|| self.plan(missed))?;
        self.let_pass(&mut tasks);
        let groups = self.group(tasks, round);
        let _admitted = self.admit_large(&groups, round);
        let _announced = announce(&groups);
        self.work_off(groups, round)
    }

    /// A request of many groups waits until it can run without disturbing others like it.
    fn admit_large<'m, A>(
        &self,
        groups: &VecDeque<Group<'m, F, A>>,
        round: &Round<'m, F, A>,
    ) -> Option<Admitted<'_>> {
        if groups.len() == 1 {
            return None;
        }
        // What all threads have in flight at once at most.
        let most = 2 * round.executor.threads();
        let bytes =
            groups.iter().take(most).map(|group| group.estimate).fold(0, u64::saturating_add);
        let (resident_limit, active_limit) = self.budget.limits();
        Some(self.admission.enter(bytes, active_limit - resident_limit))
    }

    /// Serves what is in memory and returns the rest.
    fn serve_resident<'m, A: Access<F>>(
        &self,
        items: Vec<Item<'m, F, A>>,
        round: &Round<'m, F, A>,
    ) -> Vec<Item<'m, F, A>> {
        let bytes = items.iter().map(bytes_used).fold(0, u64::saturating_add);
        filter(items, bytes >= WORTH_SHARING, round, |item| {
            item.crowded = false;
            let found = self.table.find(item.member, item.hash, &item.key);
            let Some(slot) = found else { return Ok(false) };
            let served = item.access.serve(self, &slot, &item.plan, false)?;
            item.crowded = served == Served::Crowded;
            if served == Served::Emptied {
                round.emptied.lock().push(slot);
            }
            Ok(matches!(served, Served::Done | Served::Emptied))
        })
    }

    /// Handles groups on all threads, until the line is empty or something fails.
    fn work_off<'m, A: Access<F>>(
        &self,
        groups: VecDeque<Group<'m, F, A>>,
        round: &Round<'m, F, A>,
    ) -> Result<(), F::Error> {
        let line = Mutex::new(groups);
        let mut granted = None;
        loop {
            let workers = line.lock().len().min(round.executor.threads()).max(1);
            let grant = Mutex::new(granted.take());
            let work = |_| {
                let granted = grant.lock().take();
                self.work(&line, granted, round);
            };
            match workers {
                1 => work(0),
                _ => round.executor.run(workers, &work),
            }
            round.result()?;
            // Bound before the match: the line must not stay locked while room is made.
            let next = line.lock().pop_front();
            match next {
                Some(mut group) => {
                    let (room, stays) = self.reserve(group.need(), &group.concern())?;
                    if !stays {
                        group.pass();
                    }
                    granted = Some((room, group));
                }
                None => return Ok(()),
            }
        }
    }

    /// Takes groups from the line as long as there is room for them.
    fn work<'m, A: Access<F>>(
        &self,
        line: &Mutex<VecDeque<Group<'m, F, A>>>,
        granted: Option<(Reservation<'_, F>, Group<'m, F, A>)>,
        round: &Round<'m, F, A>,
    ) {
        if let Some((mut room, group)) = granted {
            round.attempt(|| self.handle(group.tasks, &mut room, round));
        }
        while !round.failed() {
            let Some(group) = line.lock().pop_front() else { return };
            let Some(mut room) = self.try_room(group.need()) else {
                line.lock().push_front(group);
                return;
            };
            round.attempt(|| self.handle(group.tasks, &mut room, round));
        }
    }
}

/// The shares of chunks, and those of data that are not in chunks.
fn divided<'m, F: Family, A: Access<F>>(shares: Vec<Share<'m, F, A>>) -> Divided<'m, F, A> {
    let (mut items, mut unchunked) = (Vec::with_capacity(shares.len()), Vec::new());
    for share in shares {
        match &share.member.data {
            Data::Chunks(layout) => items.push(Item::new(share, layout)),
            Data::Unchunked(data) => unchunked.push((share, &**data)),
        }
    }
    (items, unchunked)
}

/// Shares of chunks, and of data that are not in chunks.
type Divided<'m, F, A> = (Vec<Item<'m, F, A>>, Vec<Passing<'m, F, A>>);

/// A share of a request of data that are not in chunks, and those data.
type Passing<'m, F, A> = (Share<'m, F, A>, &'m dyn Unchunked<F>);

/// Serves requests of data that are not in chunks, store by store.
fn serve_unchunked<F: Family, A: Request<F>>(
    mut shares: Vec<Passing<'_, F, A>>,
    executor: &dyn Executor,
) -> Result<(), F::Error> {
    shares.iter().for_each(|(share, _)| share.member.counters.misses.add(1));
    shares.sort_by_key(|(share, data)| (data.id(), share.member.id));
    for same in shares.chunk_by_mut(|(_, a), (_, b)| a.id() == b.id()) {
        shield(|| pass_together(same, executor))?;
    }
    Ok(())
}

/// Serves requests of one store past the cache: what is only to be moved, all at once.
fn pass_together<F: Family, A: Request<F>>(
    shares: &mut [Passing<'_, F, A>],
    executor: &dyn Executor,
) -> Result<(), F::Error> {
    let Some(&(_, data)) = shares.first() else { return Ok(()) };
    // Two writes of one dataset may touch the same bytes between their cells.
    let same = |two: &[Passing<'_, F, A>]| Arc::ptr_eq(two[0].0.member, two[1].0.member);
    let again = A::WRITES && shares.windows(2).any(same);
    let size = if again { shares.len() } else { shares.len().div_ceil(executor.threads()) };
    let parts: Vec<_> =
        shares.chunks_mut(size).map(|shares| Mutex::new((shares, Moves::new(), Ok(())))).collect();
    executor.run(parts.len(), &|i| {
        // Each part has its own thread: the lock is for the compiler.
        let (shares, moves, result) = &mut *parts[i].lock();
        let mut shares = std::mem::take(shares).iter_mut();
        *result =
            shield(|| shares.try_for_each(|(share, data)| pass_unchunked(share, *data, moves)));
    });
    let mut all = Moves::new();
    for part in parts {
        let (_, moves, result) = part.into_inner();
        result?;
        all.append(moves);
    }
    all.carry_out_shared(data, executor)
}

/// Handles each item, on several threads if `share`, and returns those not done, in their order.
fn filter<'m, F: Family, A: Access<F>>(
    mut items: Vec<Item<'m, F, A>>,
    share: bool,
    round: &Round<'m, F, A>,
    handle: impl Fn(&mut Item<'m, F, A>) -> Result<bool, F::Error> + Sync,
) -> Vec<Item<'m, F, A>> {
    let left = |item: &mut Item<'m, F, A>| {
        let mut done = false;
        round.attempt(|| handle(item).map(|answer| done = answer));
        !done
    };
    let threads = round.executor.threads();
    if !share || items.len() == 1 || threads == 1 {
        items.retain_mut(left);
        return items;
    }
    let shares = divide(items, threads * 4);
    round.executor.run(shares.len(), &|i| {
        // Each share has its own thread: the lock is for the compiler.
        shares[i].lock().retain_mut(left);
    });
    shares.into_iter().flat_map(Mutex::into_inner).collect()
}

/// How many chunks of each dataset.
type Tally<'m, F> = SmallVec<[(&'m Arc<Member<F>>, u64); 1]>;

/// Chunks of one dataset that stand together.
pub(crate) fn runs<'i, 'm, F: Family, A>(
    items: &'i [Item<'m, F, A>],
) -> impl Iterator<Item = &'i [Item<'m, F, A>]> {
    items.chunk_by(|a, b| Arc::ptr_eq(a.member, b.member))
}

fn tally<'m, F: Family, A>(items: &[Item<'m, F, A>]) -> Tally<'m, F> {
    runs(items).map(|same| (same[0].member, same.len() as u64)).collect()
}

/// The chunks that are to be stored before the request ends, as their datasets want it.
fn through<'m, F: Family, A>(items: &[Item<'m, F, A>]) -> Vec<Through<'m, F>> {
    let wanted = runs(items).filter(|same| same[0].member.options().write_through);
    let name = |item: &Item<'m, F, A>| (item.hash, item.key.clone());
    wanted.map(|same| (same[0].member, same.iter().map(name).collect())).collect()
}

/// Chunks of a dataset, by hash and key.
type Through<'m, F> = (&'m Arc<Member<F>>, Vec<(u64, <F as Family>::Key)>);

/// About the bytes that an access moves, should the chunk be resident.
fn bytes_used<F: Family, A>(item: &Item<'_, F, A>) -> u64 {
    let largest = item.member.largest();
    match item.plan.share() {
        None => largest,
        Some(share) => (largest as f64 * f64::from(share)) as u64,
    }
}

/// About the memory that chunks will take, by what is known of their datasets.
fn expected_bytes<F: Family>(asked: &Tally<'_, F>) -> u64 {
    let kept = asked.iter().filter(|(member, _)| !member.goes_direct());
    kept.map(|(member, chunks)| member.largest().saturating_mul(*chunks))
        .fold(0, u64::saturating_add)
}

/// Counts what was found and what was not. Those who missed are in the order of those who asked.
fn count_hits<F: Family>(asked: &Tally<'_, F>, missed: &Tally<'_, F>) {
    let mut missed = missed.iter().peekable();
    for (member, count) in asked {
        let next = missed.next_if(|(other, _)| Arc::ptr_eq(other, member));
        let misses = next.map_or(0, |(_, misses)| *misses);
        member.counters.misses.add(misses);
        member.counters.hits.add(count - misses);
    }
}

fn divide<T>(items: Vec<T>, most: usize) -> Vec<Mutex<Vec<T>>> {
    let size = items.len().div_ceil(most).max(1);
    let mut rest = items.into_iter();
    let mut shares = Vec::with_capacity(most);
    loop {
        let share: Vec<_> = rest.by_ref().take(size).collect();
        if share.is_empty() {
            return shares;
        }
        shares.push(Mutex::new(share));
    }
}
