//! Handling a group of chunks that are not resident: claim, fetch, decode, apply, admit.
//!
//! A chunk is handled before others can see it: it is scattered from, or gathered into, and only
//! then put into its slot. So it cannot leave before it has served the request that brought it,
//! however small the cache is.

use std::time::Instant;

use crate::access::{Access, Served};
use crate::budget::{Reservation, Visit};
use crate::cache::Shared;
use crate::error::CacheError;
use crate::layout::{Encoded, Family, Fetch, Layout, Outcome, Part, StoreId};
use crate::member::Member;
use crate::moves::{Moves, pass};
use crate::plan::{Step, Task, Way};
use crate::request::{Item, Retry, Round};
use crate::slot::{Claim, Fetched, Found, Slot};
use crate::stats::Reason;
use crate::sync::Arc;
use crate::writeback::{Loose, store};

/// So many bytes can be had; for more, lack of memory is an error and not the end.
const SURE: usize = 64 << 20;

/// A chunk that this request brings.
struct Claimed<'m, 't, F: Family, A> {
    claim: Claim<'t, F>,
    task: Task<'m, F, A>,
    bytes: Vec<u8>,
    /// Whether these are the stored bytes already.
    fetched: bool,
}

/// A chunk that does not stay, as it will be stored. Until then nobody else may look for it.
struct Leaving<'m, 't, F: Family> {
    member: &'m Arc<Member<F>>,
    layout: &'m dyn Layout<F>,
    key: F::Key,
    encoded: Encoded<F::Tag>,
    _claim: Claim<'t, F>,
}

impl<F: Family> Leaving<'_, '_, F> {
    fn loose(&self) -> Loose<'_, F> {
        let Encoded { tag, .. } = &self.encoded;
        Loose { key: &self.key, pieces: self.encoded.pieces(), tag: tag.clone() }
    }
}

impl<F: Family> Shared<F> {
    /// Handles the chunks of a group, for which there is room.
    pub(crate) fn handle<'m, A: Access<F>>(
        &self,
        tasks: Vec<Task<'m, F, A>>,
        room: &mut Reservation<'_, F>,
        round: &Round<'m, F, A>,
    ) -> Result<(), F::Error> {
        let mut claimed = Vec::with_capacity(tasks.len());
        for mut task in tasks {
            if let Step::Absent = task.step {
                task.item.access.absent(&**task.item.layout, &task.item.key)?;
                continue;
            }
            claimed.extend(self.claim(task, round)?);
        }
        fetch(&mut claimed)?;
        let mut claimed = without_passed(claimed, round);
        for one in claimed.iter_mut().skip(1) {
            let (bytes, part) = (std::mem::take(&mut one.bytes), one.part());
            one.claim.park(Fetched { bytes, part });
        }
        let mut leaving = Vec::new();
        let mut brought = Ok(());
        for (number, mut one) in claimed.into_iter().enumerate() {
            if number > 0 {
                let Some(fetched) = one.claim.resume() else {
                    // Somebody did not want to wait for the ones before it.
                    round.retry.lock().push(Retry { item: one.task.item, slot: None });
                    continue;
                };
                one.bytes = fetched.bytes;
            }
            brought = self.bring(one, room, &mut leaving);
            if brought.is_err() {
                break;
            }
        }
        // All at once, as each call to the system costs time of its own.
        brought.and(store_leaving(leaving))
    }

    /// The right to bring the chunk; `None`: it is served already, or somebody else brings it.
    fn claim<'m, 't, A: Access<F>>(
        &'t self,
        mut task: Task<'m, F, A>,
        round: &Round<'m, F, A>,
    ) -> Result<Option<Claimed<'m, 't, F, A>>, F::Error> {
        loop {
            let slot = match self.table.claim(&task.item) {
                Found::Claimed(claim) if !matches!(task.step, Step::Resident) => {
                    return Ok(Some(Claimed::new(claim, task)));
                }
                Found::Claimed(_) => {
                    // It has left meanwhile, and nobody has looked up where to.
                    round.retry.lock().push(Retry { item: task.item, slot: None });
                    return Ok(None);
                }
                Found::Loading(slot) => {
                    round.retry.lock().push(Retry { item: task.item, slot: Some(slot) });
                    return Ok(None);
                }
                Found::Ready(slot) => slot,
            };
            match task.item.access.serve(self, &slot, &task.item.plan, true)? {
                Served::Done => return Ok(None),
                Served::Emptied => {
                    round.emptied.lock().push(slot);
                    return Ok(None);
                }
                Served::Missed | Served::Crowded => self.clear(&slot),
            }
        }
    }

    /// Takes a slot from the table that is gone, or that holds less than is needed.
    fn clear(&self, slot: &Arc<Slot<F>>) {
        let gone = slot.read().chunk.is_none();
        if gone {
            self.table.remove(slot);
        } else {
            // Lost the race to another who clears it, or who has put all of the chunk there: then
            // the next look at the table tells.
            self.leave_whole(slot, Reason::Room);
        }
    }

    /// Decodes or creates a chunk, handles it and puts it into its slot, or among those that are to be stored
    /// and leave.
    fn bring<'m, 't, A: Access<F>>(
        &self,
        claimed: Claimed<'m, 't, F, A>,
        room: &mut Reservation<'_, F>,
        leaving: &mut Vec<Leaving<'m, 't, F>>,
    ) -> Result<(), F::Error> {
        let Claimed { claim, mut task, mut bytes, .. } = claimed;
        let (member, plan, passes) = (task.item.member, task.item.plan, task.way == Way::Pass);
        let (layout, key) = (&**task.item.layout, &task.item.key);
        if let Step::Load(stored) = &task.step
            && passes
            && timed(member, || task.item.access.stored(layout, key, &mut bytes, stored))?
        {
            self.budget.pass(claim.slot(), stored.decoded, plan.visit());
            return Ok(());
        }
        let mut chunk = match &task.step {
            Step::Load(stored) => timed(member, || layout.decode(key, bytes, stored, plan.part))?,
            Step::Create { fill, .. } => layout.new_chunk(key, *fill)?,
            Step::Resident | Step::Absent => return Ok(()),
        };
        let outcome = task.item.access.apply(layout, key, &mut chunk)?;
        if passes {
            self.budget.pass(claim.slot(), member.measure(&chunk).allocated, plan.visit());
        }
        // What the write has not changed is as it is stored, if it is.
        let changed =
            A::WRITES && !(outcome == Outcome::Unchanged && matches!(task.step, Step::Load(_)));
        match (A::WRITES, outcome) {
            (true, Outcome::Delete) => layout.chunks().delete(key),
            (_, Outcome::Keep | Outcome::Unchanged) if passes => {
                let encoded = changed.then(|| layout.encode(key, &chunk)).transpose();
                drop(chunk);
                let left = |encoded| {
                    let Item { layout, key, .. } = task.item;
                    Leaving { member, layout: &**layout, key, encoded, _claim: claim }
                };
                leaving.extend(encoded?.map(left));
                Ok(())
            }
            _ => {
                let visit = Visit { write: changed, ..plan.visit() };
                if A::AHEAD {
                    claim.slot().set_ahead();
                }
                self.publish(claim, chunk, task.estimate, visit, room);
                Ok(())
            }
        }
    }

    fn publish(
        &self,
        claim: Claim<'_, F>,
        chunk: F::Chunk,
        estimate: u64,
        visit: Visit,
        room: &mut Reservation<'_, F>,
    ) {
        let slot = claim.slot();
        let footprint = slot.member.measure(&chunk);
        let mut body = slot.write();
        body.chunk = Some(chunk);
        body.part = footprint.part;
        body.version += u64::from(visit.write);
        self.budget.admit(room, estimate, slot, footprint, visit);
        drop(body);
        claim.settle();
    }
}

/// Stores chunks that do not stay.
fn store_leaving<F: Family>(leaving: Vec<Leaving<'_, '_, F>>) -> Result<(), F::Error> {
    let same = |a: &Leaving<'_, '_, F>, b: &Leaving<'_, '_, F>| Arc::ptr_eq(a.member, b.member);
    let mut result = Ok(());
    for same in leaving.chunk_by(same) {
        let chunks = same.iter().map(Leaving::loose).collect();
        result = result.and(store(same[0].member, same[0].layout.chunks(), chunks));
    }
    result
}

/// Reads the stored bytes of all chunks that have any, and moves those that go past the cache, store
/// by store.
fn fetch<F: Family, A: Access<F>>(claimed: &mut [Claimed<'_, '_, F, A>]) -> Result<(), F::Error> {
    let same = |a: &Claimed<'_, '_, F, A>, b: &Claimed<'_, '_, F, A>| a.store() == b.store();
    for same in claimed.chunk_by_mut(same) {
        let Some(first) = same.first() else { continue };
        let (layout, mut moves) = (first.task.item.layout, Moves::new());
        same.iter_mut().try_for_each(|one| one.begin(&mut moves))?;
        moves.carry_out(layout.chunks())?;
    }
    Ok(())
}

/// Lets go of chunks whose requests are served without them. What was refused to go past the cache is
/// planned once more, as there is no room for it here.
fn without_passed<'m, 't, F: Family, A: Access<F>>(
    claimed: Vec<Claimed<'m, 't, F, A>>,
    round: &Round<'m, F, A>,
) -> Vec<Claimed<'m, 't, F, A>> {
    let direct = |one: &Claimed<'m, 't, F, A>| one.task.way == Way::Direct;
    if !claimed.iter().any(direct) {
        return claimed;
    }
    let (passed, staying): (Vec<_>, Vec<_>) = claimed.into_iter().partition(direct);
    let items = passed.into_iter().map(|one| one.task.item);
    let refused = items.filter(|item| item.refused).map(|item| Retry { item, slot: None });
    round.retry.lock().extend(refused);
    staying
}

impl<'m, 't, F: Family, A: Access<F>> Claimed<'m, 't, F, A> {
    fn new(claim: Claim<'t, F>, mut task: Task<'m, F, A>) -> Self {
        let fetched = task.item.fetched.take();
        let mut claimed = Claimed { claim, task, bytes: Vec::new(), fetched: false };
        // Whoever fetched it may have needed less, or have meant to create it.
        let needed = claimed.extent().map(|(_, len)| len);
        if let Some(fetched) = fetched
            && fetched.part == claimed.part()
            && needed == Some(fetched.bytes.len() as u64)
        {
            (claimed.bytes, claimed.fetched) = (fetched.bytes, true);
        }
        claimed
    }

    /// Names the bytes that have to be read, or to be moved, for the chunk.
    fn begin<'r>(&'r mut self, moves: &mut Moves<'r>) -> Result<(), F::Error> {
        let needed = self.extent().filter(|_| !self.fetched);
        let Claimed { task, bytes, .. } = self;
        let member = task.item.member;
        if let (Way::Direct, Some(stored)) = (task.way, task.step.stored()) {
            return pass(&mut task.item, stored, moves);
        }
        let Some((offset, len)) = needed else { return Ok(()) };
        *bytes = buffer(&**task.item.layout, len)?;
        moves.reads.push(Fetch { offset, buffer: bytes });
        member.counters.loads.add(1);
        member.counters.bytes_fetched.add(len);
        Ok(())
    }

    fn part(&self) -> Part {
        self.task.item.plan.part
    }

    fn store(&self) -> StoreId {
        self.task.item.layout.chunks().id()
    }

    /// Where the bytes are that are needed, if the chunk is stored.
    fn extent(&self) -> Option<(u64, u64)> {
        let Step::Load(stored) = &self.task.step else { return None };
        Some(match self.part() {
            Part::All => (stored.offset, stored.len),
            Part::Defined => (stored.offset, stored.head),
        })
    }
}

fn buffer<F: Family>(layout: &dyn Layout<F>, len: u64) -> Result<Vec<u8>, F::Error> {
    let spare = usize::try_from(len).ok().and_then(|len| layout.spare(len));
    match spare.filter(|spare| spare.len() as u64 == len) {
        Some(spare) => Ok(spare),
        None => Ok(zeroed(len)?),
    }
}

pub(crate) fn zeroed(len: u64) -> Result<Vec<u8>, CacheError> {
    let none = CacheError::OutOfMemory { bytes: len };
    let Ok(len) = usize::try_from(len) else { return Err(none) };
    if len <= SURE {
        // The system has zeroed pages ready: quicker than filling them.
        return Ok(vec![0; len]);
    }
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len).map_err(|_| none)?;
    bytes.resize(len, 0);
    Ok(bytes)
}

/// Does something that counts as decoding.
fn timed<F: Family, T>(member: &Member<F>, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let done = work();
    member.counters.decode_nanoseconds.add(start.elapsed().as_nanos() as u64);
    done
}
