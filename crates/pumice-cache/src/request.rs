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
use crate::access::{Access, Plan, Served};
use crate::admission::Admitted;
use crate::budget::Reservation;
use crate::cache::Shared;
use crate::executor::Executor;
use crate::layout::Layout;
use crate::member::Member;
use crate::moves::{Moves, pass};
use crate::plan::Group;
use crate::shield::shield;
use crate::slot::{Fetched, Slot};
use crate::sync::{Arc, AtomicBool, Mutex, Ordering};

/// Below this, copying is quicker than telling another thread to.
const WORTH_SHARING: u64 = 1 << 20;

/// One chunk's share of a request.
pub(crate) struct Item<'m, L: Layout, A> {
    pub(crate) member: &'m Arc<Member<L>>,
    pub(crate) key: L::Key,
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

impl<'m, L: Layout, A: Access<L>> Item<'m, L, A> {
    pub(crate) fn new(member: &'m Arc<Member<L>>, key: L::Key, access: A) -> Self {
        let hash = member.hash(&key);
        let plan = access.plan(&member.layout, &key, None);
        Item { member, hash, key, access, plan, crowded: false, refused: false, fetched: None }
    }

    pub(crate) fn name(&self) -> Name<'_, L::Key> {
        self.member.name(self.hash, &self.key)
    }
}

/// A chunk to be looked for once more.
pub(crate) struct Retry<'m, L: Layout, A> {
    pub(crate) item: Item<'m, L, A>,
    /// Where another request is loading it; `None` if it has left.
    pub(crate) slot: Option<Arc<Slot<L>>>,
}

/// What the tasks of a request leave behind for the calling thread.
pub(crate) struct Round<'m, L: Layout, A> {
    pub(crate) retry: Mutex<Vec<Retry<'m, L, A>>>,
    /// Chunks in which nothing is left.
    pub(crate) emptied: Mutex<Vec<Arc<Slot<L>>>>,
    pub(crate) executor: Arc<dyn Executor>,
    error: Mutex<Option<L::Error>>,
    failed: AtomicBool,
}

impl<'m, L: Layout, A> Round<'m, L, A> {
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
    fn attempt(&self, step: impl FnOnce() -> Result<(), L::Error>) {
        if self.failed() {
            return;
        }
        if let Err(error) = shield(step) {
            self.failed.store(true, Ordering::Relaxed);
            self.error.lock().get_or_insert(error);
        }
    }

    fn result(&self) -> Result<(), L::Error> {
        self.error.lock().take().map_or(Ok(()), Err)
    }
}

impl<L: Layout> Shared<L> {
    /// Serves a request that has its turn; chunks of one dataset stand together.
    pub(crate) fn run<'m, A: Access<L>>(&self, items: Vec<Item<'m, L, A>>) -> Result<(), L::Error> {
        self.run_on(self.executor(), items)
    }

    /// As [`run`](Self::run), with the help of these threads.
    pub(crate) fn run_on<'m, A: Access<L>>(
        &self,
        executor: Arc<dyn Executor>,
        items: Vec<Item<'m, L, A>>,
    ) -> Result<(), L::Error> {
        let members = tally(&items);
        let through = if A::WRITES { through(&items) } else { Vec::new() };
        let served = self.run_rounds(executor, items, &members);
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

    fn run_rounds<'m, A: Access<L>>(
        &self,
        executor: Arc<dyn Executor>,
        mut items: Vec<Item<'m, L, A>>,
        asked: &Tally<'m, L>,
    ) -> Result<(), L::Error> {
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

    fn run_round<'m, A: Access<L>>(
        &self,
        items: Vec<Item<'m, L, A>>,
        round: &Round<'m, L, A>,
        asked: Option<&Tally<'m, L>>,
    ) -> Result<(), L::Error> {
        let missed = self.serve_resident(items, round);
        round.result()?;
        if let Some(asked) = asked {
            count_hits(asked, &tally(&missed));
            if !missed.is_empty() {
                self.arrive(expected_bytes(asked));
            }
        }
        let missed = pass_by(missed, round);
        round.result()?;
        if missed.is_empty() {
            return Ok(());
        }
        let mut tasks = shield(|| self.plan(missed))?;
        self.let_pass(&mut tasks);
        let groups = self.group(tasks, round);
        let _admitted = self.admit_large(&groups, round);
        self.work_off(groups, round)
    }

    /// A request of many groups waits until it can run without disturbing others like it.
    fn admit_large<'m, A>(
        &self,
        groups: &VecDeque<Group<'m, L, A>>,
        round: &Round<'m, L, A>,
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
    fn serve_resident<'m, A: Access<L>>(
        &self,
        items: Vec<Item<'m, L, A>>,
        round: &Round<'m, L, A>,
    ) -> Vec<Item<'m, L, A>> {
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
    fn work_off<'m, A: Access<L>>(
        &self,
        groups: VecDeque<Group<'m, L, A>>,
        round: &Round<'m, L, A>,
    ) -> Result<(), L::Error> {
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
    fn work<'m, A: Access<L>>(
        &self,
        line: &Mutex<VecDeque<Group<'m, L, A>>>,
        granted: Option<(Reservation<'_, L>, Group<'m, L, A>)>,
        round: &Round<'m, L, A>,
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

/// Serves requests of layouts that keep nothing in the cache, and returns the others.
fn pass_by<'m, L: Layout, A: Access<L>>(
    items: Vec<Item<'m, L, A>>,
    round: &Round<'m, L, A>,
) -> Vec<Item<'m, L, A>> {
    let passes = |item: &Item<'m, L, A>| !item.refused && item.member.layout.bypass();
    if !runs(&items).any(|same| passes(&same[0])) {
        return items;
    }
    let (mut passing, mut rest): (Vec<_>, Vec<_>) = items.into_iter().partition(passes);
    passing.sort_by_key(|item| (item.member.layout.store(), item.member.id));
    for same in passing.chunk_by_mut(|a, b| a.member.layout.store() == b.member.layout.store()) {
        round.attempt(|| pass_together(same, &*round.executor));
    }
    rest.extend(passing.into_iter().filter(|item| item.refused));
    rest
}

/// Serves requests of one store past the cache: what is only to be moved, all at once.
fn pass_together<L: Layout, A: Access<L>>(
    items: &mut [Item<'_, L, A>],
    executor: &dyn Executor,
) -> Result<(), L::Error> {
    let Some(first) = items.first() else { return Ok(()) };
    let layout = &*first.member.layout;
    // Two writes of one dataset may touch the same bytes between their cells.
    let again = A::WRITES && items.windows(2).any(|two| Arc::ptr_eq(two[0].member, two[1].member));
    let size = if again { items.len() } else { items.len().div_ceil(executor.threads()) };
    let shares: Vec<_> =
        items.chunks_mut(size).map(|items| Mutex::new((items, Moves::new(), Ok(())))).collect();
    executor.run(shares.len(), &|i| {
        // Each share has its own thread: the lock is for the compiler.
        let (items, moves, result) = &mut *shares[i].lock();
        let mut items = std::mem::take(items).iter_mut();
        *result = shield(|| items.try_for_each(|item| pass(item, None, moves).map(drop)));
    });
    let mut all = Moves::new();
    for share in shares {
        let (_, moves, result) = share.into_inner();
        result?;
        all.append(moves);
    }
    all.carry_out_shared(layout, executor)
}

/// Handles each item, on several threads if `share`, and returns those not done, in their order.
fn filter<'m, L: Layout, A: Access<L>>(
    mut items: Vec<Item<'m, L, A>>,
    share: bool,
    round: &Round<'m, L, A>,
    handle: impl Fn(&mut Item<'m, L, A>) -> Result<bool, L::Error> + Sync,
) -> Vec<Item<'m, L, A>> {
    let left = |item: &mut Item<'m, L, A>| {
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
type Tally<'m, L> = SmallVec<[(&'m Arc<Member<L>>, u64); 1]>;

/// Chunks of one dataset that stand together.
pub(crate) fn runs<'i, 'm, L: Layout, A>(
    items: &'i [Item<'m, L, A>],
) -> impl Iterator<Item = &'i [Item<'m, L, A>]> {
    items.chunk_by(|a, b| Arc::ptr_eq(a.member, b.member))
}

fn tally<'m, L: Layout, A>(items: &[Item<'m, L, A>]) -> Tally<'m, L> {
    runs(items).map(|same| (same[0].member, same.len() as u64)).collect()
}

/// The chunks that are to be stored before the request ends, as their datasets want it.
fn through<'m, L: Layout, A>(items: &[Item<'m, L, A>]) -> Vec<Through<'m, L>> {
    let wanted = runs(items).filter(|same| same[0].member.options().write_through);
    let name = |item: &Item<'m, L, A>| (item.hash, item.key.clone());
    wanted.map(|same| (same[0].member, same.iter().map(name).collect())).collect()
}

/// Chunks of a dataset, by hash and key.
type Through<'m, L> = (&'m Arc<Member<L>>, Vec<(u64, <L as Layout>::Key)>);

/// About the bytes that an access moves, should the chunk be resident.
fn bytes_used<L: Layout, A>(item: &Item<'_, L, A>) -> u64 {
    let largest = item.member.largest();
    match item.plan.share() {
        None => largest,
        Some(share) => (largest as f64 * f64::from(share)) as u64,
    }
}

/// About the memory that chunks will take, by what is known of their datasets.
fn expected_bytes<L: Layout>(asked: &Tally<'_, L>) -> u64 {
    let kept = asked.iter().filter(|(member, _)| !member.goes_direct());
    kept.map(|(member, chunks)| member.largest().saturating_mul(*chunks))
        .fold(0, u64::saturating_add)
}

/// Counts what was found and what was not. Those who missed are in the order of those who asked.
fn count_hits<L: Layout>(asked: &Tally<'_, L>, missed: &Tally<'_, L>) {
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
