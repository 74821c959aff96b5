//! Planning what a request does with chunks that are not resident: how each comes to be, what
//! memory that takes, and which of them are handled together.
//!
//! What a look-up says stays true: the chunk was not resident then, so nothing of it was left to be
//! written back, and as the request has its turn nobody else changes it. A chunk that is resident
//! but has no room to be changed is therefore not looked up: it may be stored elsewhere at any
//! moment. Should it have left when there is room, it is looked for once more.

use std::collections::VecDeque;
use std::ops::Range;

use crate::absent::PART;
use crate::access::Access;
use crate::budget::{Concern, Need, bookkeeping, encoding_size};
use crate::cache::Shared;
use crate::error::CacheError;
use crate::layout::{Announced, ChunkStore, Family, Intent, Lookups, Part, StoreId, Stored};
use crate::moves::HOLE;
use crate::request::{Item, Round, runs};

/// Keys looked up in one call.
const LOOKUP: usize = 4096;
/// Chunks and bytes that make a group; more would leave other threads idle for long.
const GROUP_CHUNKS: usize = 256;
const GROUP_BYTES: u64 = 4 << 20;
/// A chunk that is far comes whole if it is no larger, even if a part of it would do.
const SMALL: u64 = 256 << 10;
/// More than any chunk can take. What a damaged file says may be larger; sums of these stay numbers.
const LARGEST: u64 = 1 << 48;
/// How a chunk that is not resident comes to be.
pub(crate) enum Step<T> {
    Load(Stored<T>),
    /// `stored`: what is there already and will not be loaded, where that is known.
    Create {
        fill: bool,
        stored: Option<Stored<T>>,
    },
    /// It is resident, and waits for room to be changed.
    Resident,
    /// Not at all.
    Absent,
}

impl<T> Step<T> {
    /// Where the chunk is stored, as far as that was looked up.
    pub(crate) fn stored(&self) -> Option<&Stored<T>> {
        match self {
            Step::Load(stored) => Some(stored),
            Step::Create { stored, .. } => stored.as_ref(),
            Step::Resident | Step::Absent => None,
        }
    }
}

/// A chunk to be handled.
pub(crate) struct Task<'m, F: Family, A> {
    pub(crate) item: Item<'m, F, A>,
    pub(crate) step: Step<F::Tag>,
    /// The memory it is expected to take while it is handled, and when it stays.
    pub(crate) estimate: u64,
    pub(crate) stays: u64,
    /// The memory its encoding is expected to take later, if it is to be changed.
    pub(crate) encoding: u64,
    pub(crate) way: Way,
}

/// What becomes of a chunk that is not resident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// It comes into memory and stays there.
    Stay,
    /// It leaves as soon as it is handled; what is changed is stored at once.
    Pass,
    /// It is handled where it is stored, without ever being in memory.
    Direct,
}

impl<'m, F: Family, A> Task<'m, F, A> {
    /// A task that takes no memory.
    fn new(item: Item<'m, F, A>, step: Step<F::Tag>) -> Self {
        Task { item, step, estimate: 0, stays: 0, encoding: 0, way: Way::Stay }
    }

    /// What is to be loaded of the chunk.
    fn needed(&self) -> Option<Range<u64>> {
        let Step::Load(stored) = &self.step else { return None };
        let length = if self.item.plan.part == Part::Defined { stored.head } else { stored.len };
        Some(stored.offset..stored.offset.saturating_add(length))
    }

    /// The store, the beginning and the end of what is to be loaded.
    fn extent(&self) -> Option<(StoreId, u64, u64)> {
        let Step::Load(stored) = &self.step else { return None };
        let end = stored.offset.saturating_add(stored.len);
        Some((self.item.layout.chunks().id(), stored.offset, end))
    }
}

/// Chunks that one thread handles together.
pub(crate) struct Group<'m, F: Family, A> {
    pub(crate) tasks: Vec<Task<'m, F, A>>,
    pub(crate) estimate: u64,
    encoding: u64,
    /// Where the last chunk to be loaded ends.
    end: Option<(StoreId, u64)>,
}

impl<F: Family, A: Access<F>> Group<'_, F, A> {
    /// What it changes.
    pub(crate) fn concern(&self) -> Concern {
        let mut concern = Concern::none();
        if A::WRITES {
            self.tasks.iter().for_each(|task| concern.add(task.item.member));
        }
        concern
    }
}

impl<'m, F: Family, A> Group<'m, F, A> {
    fn of(task: Task<'m, F, A>) -> Self {
        let end = task.extent().map(|(store, _, end)| (store, end));
        Group { estimate: task.estimate, encoding: task.encoding, tasks: vec![task], end }
    }

    fn push(&mut self, task: Task<'m, F, A>) {
        let added = task.estimate.saturating_add(self.hole_before(&task));
        self.estimate = self.estimate.saturating_add(added);
        self.encoding = self.encoding.max(task.encoding);
        self.end = task.extent().map(|(store, _, end)| (store, end));
        self.tasks.push(task);
    }

    /// The bytes that will be read through to reach the next chunk.
    fn hole_before(&self, task: &Task<'m, F, A>) -> u64 {
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

    /// Lets its chunks leave as soon as they are handled: what is changed is stored at once.
    pub(crate) fn pass(&mut self) {
        let staying = self.tasks.iter_mut().filter(|task| task.way == Way::Stay);
        staying.for_each(|task| task.way = Way::Pass);
    }

    fn takes(&self, task: &Task<'m, F, A>, count: usize, bytes: u64) -> bool {
        let added = task.estimate.saturating_add(self.hole_before(task));
        self.tasks.len() < count && self.estimate.saturating_add(added) <= bytes
    }
}

impl<F: Family> Shared<F> {
    /// Finds out how each chunk comes to be, and what memory that takes.
    pub(crate) fn plan<'m, A: Access<F>>(
        &self,
        items: Vec<Item<'m, F, A>>,
    ) -> Result<Vec<Task<'m, F, A>>, F::Error> {
        // What shall be overwritten where it is must be found first.
        let unknown = |item: &Item<'m, F, A>| {
            !item.crowded && (item.plan.intent != Intent::Replace || item.member.goes_direct())
        };
        let (resident_limit, _) = self.budget.limits();
        let mut stored = Vec::with_capacity(items.len());
        for same in runs(&items) {
            let wanted: Vec<_> = same.iter().filter(|item| unknown(item)).collect();
            stored.extend(self.find(&wanted, resident_limit)?);
        }
        let mut stored = stored.into_iter();
        let mut tasks = Vec::with_capacity(items.len());
        for item in items {
            if item.plan.intent == Intent::Replace {
                self.forget_absent(item.member, item.hash, &item.key);
            }
            let found = if unknown(&item) { stored.next().flatten() } else { None };
            let step = match (found, item.plan.intent) {
                _ if item.crowded => Step::Resident,
                (stored, Intent::Replace) => Step::Create { fill: false, stored },
                (Some(stored), _) => Step::Load(stored),
                (None, Intent::Update) => Step::Create { fill: true, stored: None },
                (None, Intent::UpdateExisting) => Step::Absent,
            };
            tasks.push(estimate(item, step, resident_limit));
        }
        Ok(tasks)
    }

    /// Of a read that brings more than the cache can keep, those chunks are not kept of which nothing
    /// is left to read and which are not known to come back: others need not leave for them, and one
    /// takes the memory of the other.
    pub(crate) fn let_pass<'m, A: Access<F>>(&self, tasks: &mut [Task<'m, F, A>]) {
        let (resident_limit, _) = self.budget.limits();
        let staying = tasks.iter().filter(|task| task.way == Way::Stay).map(|task| task.stays);
        if A::WRITES || staying.fold(0, u64::saturating_add) <= resident_limit {
            return;
        }
        let whole = |task: &&mut Task<'m, F, A>| {
            matches!(task.step, Step::Load(_))
                && task.way == Way::Stay
                && !task.item.member.keeps_defined()
                && task.item.plan.visit().whole()
        };
        self.budget.let_pass(tasks.iter_mut().filter(whole));
    }

    /// Where chunks of one dataset are stored; those that are known not to be are not looked up.
    fn find<'m, A: Access<F>>(
        &self,
        items: &[&Item<'m, F, A>],
        resident_limit: u64,
    ) -> Result<Lookups<F::Tag>, F::Error> {
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
        let mut found = look_up(first.layout.chunks(), &keys)?.into_iter();
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
    fn note_absent<'m, A: Access<F>>(
        &self,
        items: &[&Item<'m, F, A>],
        found: &[Option<Stored<F::Tag>>],
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
        mut tasks: Vec<Task<'m, F, A>>,
        round: &Round<'m, F, A>,
    ) -> VecDeque<Group<'m, F, A>> {
        // Chunks to be created keep their order, behind those to be loaded.
        tasks.sort_by_key(|task| match &task.step {
            Step::Load(stored) => Some((task.item.layout.chunks().id(), stored.offset)),
            _ => None,
        });
        let created = tasks.iter().take_while(|task| !matches!(task.step, Step::Load(_))).count();
        tasks.rotate_left(created);
        let threads = round.executor.threads();
        // What is between the limits is for chunks in flight: two groups a thread.
        let (resident_limit, active_limit) = self.budget.limits();
        let bytes = GROUP_BYTES.min((active_limit - resident_limit) / (2 * threads as u64));
        // Parts of chunks that are far are not announced: the more of them go in one call, the better.
        let parts =
            |task: &Task<'m, F, A>| task.way == Way::Direct && task.item.layout.chunks().is_far();
        let count = match threads {
            // Nobody to share with: as few calls as there can be.
            1 => GROUP_CHUNKS,
            _ if tasks.iter().any(parts) => GROUP_CHUNKS,
            _ => tasks.len().div_ceil(4 * threads).min(GROUP_CHUNKS),
        };
        let mut groups: VecDeque<Group<'m, F, A>> = VecDeque::new();
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
}

/// Asks where chunks are.
pub(crate) fn look_up<F: Family>(
    chunks: &dyn ChunkStore<F>,
    keys: &[F::Key],
) -> Result<Lookups<F::Tag>, F::Error> {
    let mut all = Vec::with_capacity(keys.len());
    for some in keys.chunks(LOOKUP) {
        let found = chunks.lookup(some)?;
        if found.len() != some.len() {
            return Err(CacheError::Lookup { expected: some.len(), found: found.len() }.into());
        }
        all.extend(found);
    }
    Ok(all)
}

/// Tells stores that are far what will be read of them, in the order of the groups.
pub(crate) fn announce<F: Family, A>(groups: &VecDeque<Group<'_, F, A>>) -> Vec<Announced> {
    let mut announced = Vec::new();
    let tasks = groups.iter().flat_map(|group| &group.tasks);
    let mut far = tasks
        .filter(|task| task.item.layout.chunks().is_far())
        .filter_map(|task| {
            let range = task.needed()?;
            let whole = task.item.plan.visit().whole() || range.end - range.start <= SMALL;
            (whole || task.way != Way::Direct).then(|| (task.item.layout.chunks(), range))
        })
        .peekable();
    while let Some((store, first)) = far.next() {
        let mut ranges = vec![first];
        while let Some((_, range)) = far.next_if(|(other, _)| other.id() == store.id()) {
            ranges.push(range);
        }
        announced.push(store.announce(&ranges));
    }
    announced
}

fn estimate<'m, F: Family, A: Access<F>>(
    item: Item<'m, F, A>,
    step: Step<F::Tag>,
    resident_limit: u64,
) -> Task<'m, F, A> {
    let (member, plan) = (item.member, item.plan);
    let (transit, stays) = match &step {
        Step::Load(stored) if plan.part == Part::Defined => {
            member.note(Part::Defined);
            (stored.head, stored.decoded.min(stored.head.saturating_mul(4)))
        }
        Step::Load(stored) => (stored.len, stored.decoded.max(1).saturating_add(plan.growth)),
        Step::Create { .. } if plan.fresh == 0 => (0, member.largest()),
        Step::Create { .. } => (0, plan.fresh),
        Step::Resident => {
            let encoding = encoding_size(member.largest().saturating_add(plan.growth)).min(LARGEST);
            let estimate = plan.growth.min(LARGEST);
            return Task { estimate, encoding, ..Task::new(item, step) };
        }
        Step::Absent => return Task::new(item, step),
    };
    let stays = stays.saturating_add(bookkeeping::<F>());
    let created = matches!(step, Step::Create { .. });
    let transient = stays > resident_limit || member.goes_direct() || !plan.keeps(created);
    if transient
        && !item.refused
        && let Some(stored) = step.stored()
        && let Some(memory) = item.access.plan(&**item.layout, &item.key, Some(stored)).direct
    {
        return Task { estimate: memory.min(LARGEST), way: Way::Direct, ..Task::new(item, step) };
    }
    let encoding = if A::WRITES { encoding_size(stays) } else { 0 };
    // A chunk that does not stay is encoded at once.
    let (way, now, later) =
        if transient { (Way::Pass, encoding, 0) } else { (Way::Stay, 0, encoding) };
    let estimate = transit.saturating_add(stays).saturating_add(now).min(LARGEST);
    let encoding = later.min(LARGEST);
    Task { item, step, estimate, stays, encoding, way }
}
