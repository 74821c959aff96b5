//! What a read and a write do to one chunk, wherever the chunk comes from.

use crate::budget::{Need, Visit};
use crate::cache::Shared;
use crate::layout::{
    Direct, Family, Intent, Layout, Outcome, Part, ReadPlan, Stored, Unchunked, WritePlan,
};
use crate::moves::Moves;
use crate::reach::Reach;
use crate::shield::shield;
use crate::slot::{Body, Slot};
use crate::stats::Reason;
use crate::sync::{Arc, RwLockWriteGuard};

/// One chunk's share of a request.
pub(crate) trait Access<F: Family>: Send {
    /// Whether chunks are changed.
    const WRITES: bool;

    /// Whether nobody has asked for the chunk yet.
    const AHEAD: bool = false;

    /// What it needs, and which ways it can take; `stored` if it is known and matters.
    fn plan(&self, layout: &dyn Layout<F>, key: &F::Key, stored: Option<&Stored<F::Tag>>) -> Plan;

    /// Goes past the cache if the layout can, or names what has to move for it.
    fn direct<'r>(
        &'r mut self,
        layout: &dyn Layout<F>,
        key: &F::Key,
        stored: &Stored<F::Tag>,
        moves: &mut Moves<'r>,
    ) -> Result<Option<Direct>, F::Error>;

    /// Handles the stored bytes of a chunk that will not be kept, if the layout can.
    fn stored(
        &mut self,
        _layout: &dyn Layout<F>,
        _key: &F::Key,
        _bytes: &mut Vec<u8>,
        _stored: &Stored<F::Tag>,
    ) -> Result<bool, F::Error> {
        Ok(false)
    }

    /// Handles a chunk that is not stored and need not be created.
    fn absent(&mut self, layout: &dyn Layout<F>, key: &F::Key) -> Result<(), F::Error>;

    /// Handles a chunk that nobody else can see yet.
    fn apply(
        &mut self,
        layout: &dyn Layout<F>,
        key: &F::Key,
        chunk: &mut F::Chunk,
    ) -> Result<Outcome, F::Error>;

    /// Handles a chunk in a slot. `covered`: room for its growth and encoding is reserved.
    fn serve(
        &mut self,
        shared: &Shared<F>,
        slot: &Arc<Slot<F>>,
        plan: &Plan,
        covered: bool,
    ) -> Result<Served, F::Error>;
}

/// One share of a request of a program.
pub(crate) trait Request<F: Family>: Access<F> {
    /// Handles data that are not in chunks, or names what has to move for it.
    fn unchunked<'r>(
        &'r mut self,
        data: &dyn Unchunked<F>,
        key: &F::Key,
        moves: &mut Moves<'r>,
    ) -> Result<Direct, F::Error>;

    /// What it touches of such data; `None`: all.
    fn reach(&self, data: &dyn Unchunked<F>, key: &F::Key) -> Option<Reach>;
}

/// What an access needs of a chunk, and which ways it can take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) part: Part,
    /// What is needed of the chunk as it was.
    pub(crate) intent: Intent,
    share: f32,
    /// The bytes that a chunk may grow by.
    pub(crate) growth: u64,
    /// The bytes that a chunk takes which is made.
    pub(crate) fresh: u64,
    /// Whether a chunk that is stored already may be of use later, and one that is not.
    keep_stored: bool,
    keep_created: bool,
    /// The memory that it takes to go past the cache, if that can be.
    pub(crate) direct: Option<u64>,
    write: bool,
}

impl Plan {
    /// How the chunk is used.
    pub(crate) fn visit(&self) -> Visit {
        Visit { write: self.write, share: self.share, hit: false }
    }

    /// Whether the chunk may be of use later; `created`: it is not stored yet.
    pub(crate) fn keeps(&self, created: bool) -> bool {
        if created { self.keep_created } else { self.keep_stored }
    }

    /// The share of the chunk that is used, if it is known.
    pub(crate) fn share(&self) -> Option<f32> {
        (self.share != 0.0).then_some(self.share)
    }
}

impl From<ReadPlan> for Plan {
    fn from(ReadPlan { part, share, keep, direct }: ReadPlan) -> Self {
        Plan {
            part,
            intent: Intent::UpdateExisting,
            share,
            growth: 0,
            fresh: 0,
            keep_stored: keep,
            keep_created: keep,
            direct,
            write: false,
        }
    }
}

impl From<WritePlan> for Plan {
    fn from(plan: WritePlan) -> Self {
        let WritePlan { intent, share, growth, fresh, keep, direct } = plan;
        Plan {
            part: Part::All,
            intent,
            share,
            growth,
            fresh,
            keep_stored: true,
            keep_created: keep,
            direct,
            write: true,
        }
    }
}

/// What came of an access to a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Served {
    Done,
    /// Done, and the chunk shall be deleted.
    Emptied,
    /// The slot does not hold what is needed.
    Missed,
    /// The chunk is here, but there is no room for it to grow or to be encoded later.
    Crowded,
}

/// A share of a read.
pub(crate) struct Reading<'a, F: Family>(pub(crate) F::Read<'a>);

/// A share of a write.
pub(crate) struct Writing<'a, F: Family>(pub(crate) F::Write<'a>);

impl<F: Family> Access<F> for Reading<'_, F> {
    const WRITES: bool = false;

    fn plan(&self, layout: &dyn Layout<F>, key: &F::Key, stored: Option<&Stored<F::Tag>>) -> Plan {
        layout.plan_read(key, stored, &self.0).into()
    }

    fn direct<'r>(
        &'r mut self,
        layout: &dyn Layout<F>,
        key: &F::Key,
        stored: &Stored<F::Tag>,
        moves: &mut Moves<'r>,
    ) -> Result<Option<Direct>, F::Error> {
        layout.direct_read(key, stored, &mut self.0, &mut moves.reads)
    }

    fn stored(
        &mut self,
        layout: &dyn Layout<F>,
        key: &F::Key,
        bytes: &mut Vec<u8>,
        stored: &Stored<F::Tag>,
    ) -> Result<bool, F::Error> {
        layout.scatter_stored(key, bytes, stored, &mut self.0)
    }

    fn absent(&mut self, layout: &dyn Layout<F>, key: &F::Key) -> Result<(), F::Error> {
        layout.scatter(key, None, &mut self.0)
    }

    fn apply(
        &mut self,
        layout: &dyn Layout<F>,
        key: &F::Key,
        chunk: &mut F::Chunk,
    ) -> Result<Outcome, F::Error> {
        layout.scatter(key, Some(chunk), &mut self.0)?;
        Ok(Outcome::Keep)
    }

    fn serve(
        &mut self,
        shared: &Shared<F>,
        slot: &Arc<Slot<F>>,
        plan: &Plan,
        _covered: bool,
    ) -> Result<Served, F::Error> {
        let body = slot.read();
        let Some(chunk) = body.chunk_with(plan.part) else { return Ok(Served::Missed) };
        slot.layout.scatter(&slot.key, Some(chunk), &mut self.0)?;
        drop(body);
        shared.budget.touch(Arc::clone(slot), plan.visit());
        Ok(Served::Done)
    }
}

impl<F: Family> Request<F> for Reading<'_, F> {
    fn unchunked<'r>(
        &'r mut self,
        data: &dyn Unchunked<F>,
        key: &F::Key,
        moves: &mut Moves<'r>,
    ) -> Result<Direct, F::Error> {
        data.read(key, &mut self.0, &mut moves.reads)
    }

    fn reach(&self, data: &dyn Unchunked<F>, key: &F::Key) -> Option<Reach> {
        data.read_reach(key, &self.0)
    }
}

impl<F: Family> Request<F> for Writing<'_, F> {
    fn unchunked<'r>(
        &'r mut self,
        data: &dyn Unchunked<F>,
        key: &F::Key,
        moves: &mut Moves<'r>,
    ) -> Result<Direct, F::Error> {
        data.write(key, &mut self.0, &mut moves.writes)
    }

    fn reach(&self, data: &dyn Unchunked<F>, key: &F::Key) -> Option<Reach> {
        data.write_reach(key, &self.0)
    }
}

/// A load ahead of a read.
pub(crate) struct Ahead;

impl<F: Family> Access<F> for Ahead {
    const WRITES: bool = false;
    const AHEAD: bool = true;

    fn plan(&self, _: &dyn Layout<F>, _: &F::Key, _: Option<&Stored<F::Tag>>) -> Plan {
        ReadPlan::default().into()
    }

    fn direct<'r>(
        &'r mut self,
        _: &dyn Layout<F>,
        _: &F::Key,
        _: &Stored<F::Tag>,
        _: &mut Moves<'r>,
    ) -> Result<Option<Direct>, F::Error> {
        Ok(None)
    }

    fn absent(&mut self, _: &dyn Layout<F>, _: &F::Key) -> Result<(), F::Error> {
        Ok(())
    }

    fn apply(
        &mut self,
        _: &dyn Layout<F>,
        _: &F::Key,
        _: &mut F::Chunk,
    ) -> Result<Outcome, F::Error> {
        Ok(Outcome::Keep)
    }

    fn serve(
        &mut self,
        _: &Shared<F>,
        slot: &Arc<Slot<F>>,
        _: &Plan,
        _: bool,
    ) -> Result<Served, F::Error> {
        let here = slot.read().chunk_with(Part::All).is_some();
        Ok(if here { Served::Done } else { Served::Missed })
    }
}

impl<F: Family> Access<F> for Writing<'_, F> {
    const WRITES: bool = true;

    fn plan(&self, layout: &dyn Layout<F>, key: &F::Key, stored: Option<&Stored<F::Tag>>) -> Plan {
        layout.plan_write(key, stored, &self.0).into()
    }

    fn direct<'r>(
        &'r mut self,
        layout: &dyn Layout<F>,
        key: &F::Key,
        stored: &Stored<F::Tag>,
        moves: &mut Moves<'r>,
    ) -> Result<Option<Direct>, F::Error> {
        layout.direct_write(key, stored, &mut self.0, &mut moves.writes)
    }

    fn absent(&mut self, _layout: &dyn Layout<F>, _key: &F::Key) -> Result<(), F::Error> {
        Ok(())
    }

    fn apply(
        &mut self,
        layout: &dyn Layout<F>,
        key: &F::Key,
        chunk: &mut F::Chunk,
    ) -> Result<Outcome, F::Error> {
        layout.gather(key, chunk, &mut self.0)
    }

    fn serve(
        &mut self,
        shared: &Shared<F>,
        slot: &Arc<Slot<F>>,
        plan: &Plan,
        covered: bool,
    ) -> Result<Served, F::Error> {
        let growth = if covered { 0 } else { plan.growth };
        let _room = match growth {
            0 => None,
            _ => match shared.try_room(Need::Load { bytes: growth, encoding: 0 }) {
                None => return Ok(Served::Crowded),
                room => room,
            },
        };
        let body = slot.write();
        if body.chunk_with(Part::All).is_none() {
            return Ok(Served::Missed);
        }
        let Some(was_dirty) = shared.budget.begin_change(slot, covered) else {
            return Ok(Served::Crowded);
        };
        let outcome = self.gather(shared, slot, body, was_dirty)?;
        shared.budget.touch(Arc::clone(slot), plan.visit());
        Ok(match outcome {
            // A resident chunk may have been changed before.
            Outcome::Keep | Outcome::Unchanged => Served::Done,
            Outcome::Delete => Served::Emptied,
        })
    }
}

impl<F: Family> Writing<'_, F> {
    /// Changes a resident chunk. Should that fail, a clean chunk leaves, so that what is stored
    /// counts again; a dirty one stays with whatever was changed, for the rest of it is needed.
    fn gather(
        &mut self,
        shared: &Shared<F>,
        slot: &Arc<Slot<F>>,
        mut body: RwLockWriteGuard<'_, Body<F>>,
        was_dirty: bool,
    ) -> Result<Outcome, F::Error> {
        let member = &slot.member;
        // Before the chunk is changed: it may share memory with its encoding.
        shared.drop_early(slot, &mut body);
        let Body { chunk: Some(chunk), part, version, .. } = &mut *body else {
            return Ok(Outcome::Keep);
        };
        let result = shield(|| {
            let outcome = slot.layout.gather(&slot.key, chunk, &mut self.0)?;
            let footprint = member.measure(chunk);
            *part = footprint.part;
            Ok((outcome, footprint))
        });
        *version += 1;
        match result {
            Ok((outcome, footprint)) => {
                shared.budget.charge(slot, footprint, true);
                Ok(outcome)
            }
            Err(error) if was_dirty => {
                if let Ok(footprint) = shield::<_, F::Error>(|| Ok(member.measure(chunk))) {
                    shared.budget.charge(slot, footprint, true);
                }
                Err(error)
            }
            Err(error) => {
                shared.remove(slot, body, Reason::Discard);
                Err(error)
            }
        }
    }
}
