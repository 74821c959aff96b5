//! The course of a request that has its turn: resident chunks first, then the others, as many at a
//! time as the budget allows.
//!
//! All chunks that are not resident are looked up at once, dataset by dataset, and sorted by where
//! they are stored: chunks of several datasets in one file become neighbours. They are divided into
//! groups of neighbours, each of which is fetched in one call, and the groups
//! are put in a line from which the executor's threads take them: reading, decoding and scattering
//! of different chunks overlap, and no thread waits for another until the line is empty.
//!
//! What a look-up says stays true: the chunk was not resident then, so nothing of it was left to be
//! written back, and as the request has its turn nobody else changes it. A chunk that is resident
//! but has no room to be changed is therefore not looked up: it may be stored elsewhere at any
//! moment. Should it have left when there is room, it is looked for once more.
//!
//! Whatever would make a task wait is left to the calling thread: room that must be written free,
//! chunks that another request is loading, chunks to delete.

use std::collections::VecDeque;

use smallvec::SmallVec;

use crate::absent::{Name, PART};
use crate::access::{Access, Served};
use crate::admission::Admitted;
use crate::budget::{Need, Reservation, bookkeeping, encoding_size};
use crate::cache::Shared;
use crate::error::CacheError;
use crate::executor::Executor;
use crate::layout::{Intent, Layout, Lookups, Part, StoreId, Stored};
use crate::load::HOLE;
use crate::member::Member;
use crate::shield::shield;
use crate::slot::Slot;
use crate::sync::{Arc, AtomicBool, Mutex, Ordering};

/// Keys looked up in one call.
const LOOKUP: usize = 4096;
/// Chunks and bytes that make a group; more would leave other threads idle for long.
const GROUP_CHUNKS: usize = 256;
const GROUP_BYTES: u64 = 4 << 20;
/// More than any chunk can take. What a damaged file says may be larger; sums of these stay numbers.
const LARGEST: u64 = 1 << 48;
/// Below this, copying is quicker than telling another thread to.
const WORTH_SHARING: u64 = 1 << 20;

/// One chunk's share of a request.
pub(crate) struct Item<'m, L: Layout, A> {
    pub(crate) member: &'m Arc<Member<L>>,
    pub(crate) key: L::Key,
    pub(crate) hash: u64,
    pub(crate) access: A,
    /// Whether the chunk was found resident without room to be changed.
    crowded: bool,
}

impl<'m, L: Layout, A> Item<'m, L, A> {
    pub(crate) fn new(member: &'m Arc<Member<L>>, key: L::Key, access: A) -> Self {
        Item { member, hash: member.hash(&key), key, access, crowded: false }
    }

    fn name(&self) -> Name<'_, L::Key> {
        self.member.name(self.hash, &self.key)
    }
}

/// How a chunk that is not resident comes to be.
pub(crate) enum Step<T> {
    Load(Stored<T>),
    Create {
        fill: bool,
    },
    /// It is resident, and waits for room to be changed.
    Resident,
    /// Not at all.
    Absent,
}

/// A chunk to be handled.
pub(crate) struct Task<'m, L: Layout, A> {
    pub(crate) item: Item<'m, L, A>,
    pub(crate) step: Step<L::Tag>,
    /// The memory it is expected to take.
    pub(crate) estimate: u64,
    /// The memory its encoding is expected to take later, if it is to be changed.
    pub(crate) encoding: u64,
    /// Whether the chunk leaves as soon as it is handled.
    pub(crate) transient: bool,
}

impl<L: Layout, A> Task<'_, L, A> {
    /// The store, the beginning and the end of what is to be loaded.
    fn extent(&self) -> Option<(StoreId, u64, u64)> {
        let Step::Load(stored) = &self.step else { return None };
        let end = stored.offset.saturating_add(stored.len);
        Some((self.item.member.layout.store(), stored.offset, end))
    }
}

/// Chunks that one thread handles together.
pub(crate) struct Group<'m, L: Layout, A> {
    pub(crate) tasks: Vec<Task<'m, L, A>>,
    estimate: u64,
    encoding: u64,
    /// Where the last chunk to be loaded ends.
    end: Option<(StoreId, u64)>,
}

impl<'m, L: Layout, A> Group<'m, L, A> {
    fn of(task: Task<'m, L, A>) -> Self {
        let end = task.extent().map(|(store, _, end)| (store, end));
        Group { estimate: task.estimate, encoding: task.encoding, tasks: vec![task], end }
    }

    fn push(&mut self, task: Task<'m, L, A>) {
        let added = task.estimate.saturating_add(self.hole_before(&task));
        self.estimate = self.estimate.saturating_add(added);
        self.encoding = self.encoding.max(task.encoding);
        self.end = task.extent().map(|(store, _, end)| (store, end));
        self.tasks.push(task);
    }

    /// The bytes that will be read through to reach the next chunk.
    fn hole_before(&self, task: &Task<'m, L, A>) -> u64 {
        match (self.end, task.extent()) {
            (Some((before, end)), Some((store, start, _))) if before == store => {
                start.checked_sub(end).filter(|hole| *hole <= HOLE).unwrap_or(0)
            }
            _ => 0,
        }
    }

    pub(crate) fn need(&self) -> Need {
        Need::Load { bytes: self.estimate, encoding: self.encoding }
    }

    fn takes(&self, task: &Task<'m, L, A>, count: usize, bytes: u64) -> bool {
        let added = task.estimate.saturating_add(self.hole_before(task));
        self.tasks.len() < count && self.estimate.saturating_add(added) <= bytes
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
        let members = tally(&items);
        let served = self.run_rounds(items, &members);
        self.review();
        // Also after a failure: what was loaded until then must not stay over the limit. What cannot
        // be written back stays; its own dataset's flush tells.
        let _ = self.trim(false);
        members.iter().for_each(|(member, _)| self.trim_member(member));
        served
    }

    fn run_rounds<'m, A: Access<L>>(
        &self,
        mut items: Vec<Item<'m, L, A>>,
        asked: &Tally<'m, L>,
    ) -> Result<(), L::Error> {
        let executor = self.executor();
        // Counted in the first round only.
        let mut asked = Some(asked);
        loop {
            let round = Round::new(Arc::clone(&executor));
            let outcome = self.run_round(items, &round, asked.take());
            for slot in std::mem::take(&mut *round.emptied.lock()) {
                self.delete(&slot)?;
            }
            outcome?;
            let retry = round.retry.into_inner();
            let Some(first_in_line) = retry.first() else { return Ok(()) };
            if let Some(slot) = &first_in_line.slot {
                slot.wait();
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
        let missed = self.go_direct(missed, round);
        round.result()?;
        if missed.is_empty() {
            return Ok(());
        }
        let tasks = shield(|| self.plan(missed))?;
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
            let served = item.access.serve(self, &slot, false)?;
            item.crowded = served == Served::Crowded;
            if served == Served::Emptied {
                round.emptied.lock().push(slot);
            }
            Ok(matches!(served, Served::Done | Served::Emptied))
        })
    }

    /// Lets those go direct that shall, and returns the rest.
    fn go_direct<'m, A: Access<L>>(
        &self,
        items: Vec<Item<'m, L, A>>,
        round: &Round<'m, L, A>,
    ) -> Vec<Item<'m, L, A>> {
        if !runs(&items).any(|same| same[0].member.goes_direct()) {
            return items;
        }
        filter(items, true, round, |item| {
            let member = item.member;
            if !member.goes_direct() {
                return Ok(false);
            }
            // What is here must not be changed behind its back, be it only its defined cells.
            if A::WRITES && self.table.find(member, item.hash, &item.key).is_some() {
                return Ok(false);
            }
            if A::WRITES {
                self.forget_absent(member, item.hash, &item.key);
            }
            let done = item.access.direct(&member.layout, &item.key)?;
            member.counters.direct.add(u64::from(done));
            Ok(done)
        })
    }

    /// Finds out how each chunk comes to be, and what memory that takes.
    pub(crate) fn plan<'m, A: Access<L>>(
        &self,
        items: Vec<Item<'m, L, A>>,
    ) -> Result<Vec<Task<'m, L, A>>, L::Error> {
        let intent = |item: &Item<'m, L, A>| item.access.intent(&item.member.layout, &item.key);
        let intents: Vec<_> = items.iter().map(intent).collect();
        let unknown = |item: &Item<'m, L, A>, intent| !item.crowded && intent != Intent::Replace;
        let (resident_limit, _) = self.budget.limits();
        let mut stored = Vec::with_capacity(items.len());
        let mut rest = &intents[..];
        for same in runs(&items) {
            let (these, others) = rest.split_at(same.len());
            rest = others;
            let wanted = same.iter().zip(these).filter(|(item, intent)| unknown(item, **intent));
            let wanted: Vec<_> = wanted.map(|(item, _)| item).collect();
            stored.extend(self.find(&wanted, resident_limit)?);
        }
        let mut stored = stored.into_iter();
        let mut tasks = Vec::with_capacity(items.len());
        for (item, intent) in items.into_iter().zip(intents) {
            if intent == Intent::Replace {
                self.forget_absent(item.member, item.hash, &item.key);
            }
            let found = if unknown(&item, intent) { stored.next().flatten() } else { None };
            let step = match (found, intent) {
                _ if item.crowded => Step::Resident,
                (Some(stored), _) => Step::Load(stored),
                (None, Intent::Update) => Step::Create { fill: true },
                (None, Intent::Replace) => Step::Create { fill: false },
                (None, Intent::UpdateExisting) => Step::Absent,
            };
            tasks.push(estimate(item, step, resident_limit));
        }
        Ok(tasks)
    }

    /// Where chunks of one dataset are stored; those that are known not to be are not looked up.
    fn find<'m, A: Access<L>>(
        &self,
        items: &[&Item<'m, L, A>],
        resident_limit: u64,
    ) -> Result<Lookups<L::Tag>, L::Error> {
        let Some(first) = items.first() else { return Ok(Vec::new()) };
        let member = first.member;
        let absent: Vec<bool> = {
            let known = self.absent.lock();
            let any = !known.is_empty();
            items.iter().map(|item| any && known.contains(&item.name())).collect()
        };
        let unknown = items.iter().zip(&absent).filter(|(_, absent)| !**absent);
        let keys: Vec<_> = unknown.map(|(item, _)| item.key.clone()).collect();
        member.counters.known_absent.add((items.len() - keys.len()) as u64);
        let mut found = look_up(&*member.layout, &keys)?.into_iter();
        let answer = |absent: &bool| if *absent { None } else { found.next().flatten() };
        let found: Vec<_> = absent.iter().map(answer).collect();
        // Writes make chunks, or leave them as they are; either way they must not be known absent.
        let news = absent
            .iter()
            .zip(&found)
            .any(|(absent, stored)| *absent == A::WRITES && stored.is_none());
        if news {
            self.note_absent(items, &found, resident_limit / PART);
        }
        Ok(found)
    }

    /// Notes those that a read has not found, and forgets those that a write is about to make.
    fn note_absent<'m, A: Access<L>>(
        &self,
        items: &[&Item<'m, L, A>],
        found: &[Option<Stored<L::Tag>>],
        most: u64,
    ) {
        let mut known = self.absent.lock();
        let before = known.bytes();
        for (item, _) in items.iter().zip(found).filter(|(_, stored)| stored.is_none()) {
            match A::WRITES {
                true => known.remove(&item.name()),
                false => known.insert(&item.name(), most),
            }
        }
        self.budget.set_aside(known.bytes(), before);
    }

    /// Divides chunks into groups of neighbours.
    pub(crate) fn group<'m, A>(
        &self,
        mut tasks: Vec<Task<'m, L, A>>,
        round: &Round<'m, L, A>,
    ) -> VecDeque<Group<'m, L, A>> {
        // Chunks to be created keep their order, behind those to be loaded.
        tasks.sort_by_key(|task| match &task.step {
            Step::Load(stored) => Some((task.item.member.layout.store(), stored.offset)),
            _ => None,
        });
        let created = tasks.iter().take_while(|task| !matches!(task.step, Step::Load(_))).count();
        tasks.rotate_left(created);
        let threads = round.executor.threads();
        // What is between the limits is for chunks in flight: two groups a thread.
        let (resident_limit, active_limit) = self.budget.limits();
        let bytes = GROUP_BYTES.min((active_limit - resident_limit) / (2 * threads as u64));
        let count = match threads {
            // Nobody to share with: as few calls as there can be.
            1 => GROUP_CHUNKS,
            _ => tasks.len().div_ceil(4 * threads).min(GROUP_CHUNKS),
        };
        let mut groups: VecDeque<Group<'m, L, A>> = VecDeque::new();
        for task in tasks {
            match groups.back_mut() {
                Some(last) if last.takes(&task, count, bytes) => {
                    last.push(task);
                }
                _ => groups.push_back(Group::of(task)),
            }
        }
        groups
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
                Some(group) => granted = Some((self.reserve(group.need())?, group)),
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

/// About the bytes that an access moves, should the chunk be resident.
fn bytes_used<L: Layout, A: Access<L>>(item: &Item<'_, L, A>) -> u64 {
    let largest = item.member.largest();
    match item.access.visit(&item.member.layout, &item.key).share {
        0.0 => largest,
        share => (largest as f64 * f64::from(share)) as u64,
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

/// Asks the layout where chunks are.
pub(crate) fn look_up<L: Layout>(layout: &L, keys: &[L::Key]) -> Result<Lookups<L::Tag>, L::Error> {
    let mut all = Vec::with_capacity(keys.len());
    for some in keys.chunks(LOOKUP) {
        let found = layout.lookup(some)?;
        if found.len() != some.len() {
            return Err(CacheError::Lookup { expected: some.len(), found: found.len() }.into());
        }
        all.extend(found);
    }
    Ok(all)
}

fn estimate<'m, L: Layout, A: Access<L>>(
    item: Item<'m, L, A>,
    step: Step<L::Tag>,
    resident_limit: u64,
) -> Task<'m, L, A> {
    let member = item.member;
    let (layout, key) = (&*member.layout, &item.key);
    let (transit, stays) = match &step {
        Step::Load(stored) if item.access.part(layout) == Part::Defined => {
            member.note(Part::Defined);
            (stored.head, stored.decoded.min(stored.head.saturating_mul(4)))
        }
        Step::Load(stored) => {
            let growth = item.access.growth(layout, key, false);
            (stored.len, stored.decoded.max(1).saturating_add(growth))
        }
        Step::Create { .. } => match item.access.growth(layout, key, true) {
            0 => (0, member.largest()),
            growth => (0, growth),
        },
        Step::Resident => {
            let estimate = item.access.growth(layout, key, false);
            let encoding = encoding_size(member.largest().saturating_add(estimate)).min(LARGEST);
            let estimate = estimate.min(LARGEST);
            return Task { item, step, estimate, encoding, transient: false };
        }
        Step::Absent => return Task { item, step, estimate: 0, encoding: 0, transient: false },
    };
    let stays = stays.saturating_add(bookkeeping::<L>());
    let transient =
        stays > resident_limit || member.goes_direct() || !item.access.worth_keeping(layout, key);
    let encoding = if A::WRITES { encoding_size(stays) } else { 0 };
    // A chunk that does not stay is encoded at once.
    let (now, later) = if transient { (encoding, 0) } else { (0, encoding) };
    let estimate = transit.saturating_add(stays).saturating_add(now).min(LARGEST);
    Task { item, step, estimate, encoding: later.min(LARGEST), transient }
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
