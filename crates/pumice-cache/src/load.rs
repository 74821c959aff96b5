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
use crate::layout::{Fetch, Layout, Outcome, Part, Stored};
use crate::member::Member;
use crate::request::{Retry, Round, Step, Task};
use crate::slot::{Claim, Found, Slot};
use crate::sync::Arc;

/// So many bytes can be had; for more, lack of memory is an error and not the end.
const SURE: usize = 64 << 20;

/// A chunk that this request brings.
struct Claimed<L: Layout, A> {
    claim: Claim<L>,
    task: Task<L, A>,
    bytes: Vec<u8>,
}

impl<L: Layout> Shared<L> {
    /// Handles the chunks of a group, for which there is room.
    pub(crate) fn handle<A: Access<L>>(
        &self,
        member: &Arc<Member<L>>,
        tasks: Vec<Task<L, A>>,
        room: &mut Reservation<'_, L>,
        round: &Round<L, A>,
    ) -> Result<(), L::Error> {
        let mut claimed = Vec::with_capacity(tasks.len());
        for mut task in tasks {
            if let Step::Absent = task.step {
                task.item.access.absent(&member.layout, &task.item.key)?;
                continue;
            }
            let Some(mut one) = self.claim(member, task, round)? else { continue };
            // Those that always go direct have tried it before.
            let direct = one.task.transient && !member.goes_direct();
            let item = &mut one.task.item;
            if direct && item.access.direct(&member.layout, &item.key)? {
                member.counters.direct.add(1);
                continue;
            }
            claimed.push(one);
        }
        fetch(member, &mut claimed)?;
        for one in claimed {
            self.bring(member, one, room)?;
        }
        Ok(())
    }

    /// The right to bring the chunk; `None`: it is served already, or somebody else brings it.
    fn claim<A: Access<L>>(
        &self,
        member: &Arc<Member<L>>,
        mut task: Task<L, A>,
        round: &Round<L, A>,
    ) -> Result<Option<Claimed<L, A>>, L::Error> {
        loop {
            let slot = match member.table.claim(member, task.item.hash, &task.item.key) {
                Found::Claimed(claim) if !matches!(task.step, Step::Resident) => {
                    return Ok(Some(Claimed { claim, task, bytes: Vec::new() }));
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
            match task.item.access.serve(self, &slot, true)? {
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
    fn clear(&self, slot: &Arc<Slot<L>>) {
        let gone = slot.read().chunk.is_none();
        if gone {
            slot.member.table.remove(slot);
        } else {
            // Lost the race to another who clears it, or who has put all of the chunk there: then
            // the next look at the table tells.
            self.leave_whole(slot);
        }
    }

    /// Decodes or creates a chunk, handles it and puts it into its slot.
    fn bring<A: Access<L>>(
        &self,
        member: &Arc<Member<L>>,
        claimed: Claimed<L, A>,
        room: &mut Reservation<'_, L>,
    ) -> Result<(), L::Error> {
        let Claimed { claim, mut task, bytes } = claimed;
        let (layout, key) = (&*member.layout, &task.item.key);
        let mut chunk = match &task.step {
            Step::Load(stored) => {
                decode(member, key, bytes, stored, task.item.access.part(layout))?
            }
            Step::Create { fill } => layout.new_chunk(key, *fill)?,
            Step::Resident | Step::Absent => return Ok(()),
        };
        let outcome = task.item.access.apply(layout, key, &mut chunk)?;
        if task.transient {
            let visit = task.item.access.visit(layout, key);
            self.budget.pass(claim.slot(), member.measure(&chunk).allocated, visit);
        }
        match (A::WRITES, outcome) {
            (true, Outcome::Delete) => layout.delete(key),
            (true, Outcome::Keep) if task.transient => self.save_now(member, key, &chunk),
            (false, _) if task.transient => Ok(()),
            _ => {
                let visit = task.item.access.visit(layout, key);
                self.publish(claim, chunk, task.estimate, visit, room);
                Ok(())
            }
        }
    }

    fn publish(
        &self,
        claim: Claim<L>,
        chunk: L::Chunk,
        estimate: u64,
        visit: Visit,
        room: &mut Reservation<'_, L>,
    ) {
        let slot = claim.slot();
        let footprint = slot.member.measure(&chunk);
        let values = slot.member.layout.has_values(&chunk);
        let mut body = slot.write();
        body.chunk = Some(chunk);
        body.values = values;
        body.version += u64::from(visit.write);
        self.budget.admit(room, estimate, slot, footprint, visit);
        drop(body);
        claim.settle();
    }
}

/// Reads the stored bytes of all chunks that have any.
fn fetch<L: Layout, A: Access<L>>(
    member: &Member<L>,
    claimed: &mut [Claimed<L, A>],
) -> Result<(), L::Error> {
    let mut reads = Vec::with_capacity(claimed.len());
    for Claimed { task, bytes, .. } in claimed {
        let Step::Load(stored) = &task.step else { continue };
        let len = match task.item.access.part(&member.layout) {
            Part::All => stored.len,
            Part::Defined => stored.head,
        };
        *bytes = zeroed(len)?;
        reads.push(Fetch { offset: stored.offset, buffer: bytes });
    }
    if reads.is_empty() {
        return Ok(());
    }
    member.layout.fetch(&mut reads)?;
    member.counters.loads.add(reads.len() as u64);
    member.counters.bytes_fetched.add(reads.iter().map(|read| read.buffer.len() as u64).sum());
    Ok(())
}

fn zeroed(len: u64) -> Result<Vec<u8>, CacheError> {
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

fn decode<L: Layout>(
    member: &Member<L>,
    key: &L::Key,
    bytes: Vec<u8>,
    stored: &Stored<L::Tag>,
    part: Part,
) -> Result<L::Chunk, L::Error> {
    let start = Instant::now();
    let chunk = member.layout.decode(key, bytes, stored, part);
    member.counters.decode_nanoseconds.add(start.elapsed().as_nanos() as u64);
    chunk
}
