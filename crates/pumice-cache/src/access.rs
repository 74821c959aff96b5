//! What a read and a write do to one chunk, wherever the chunk comes from.

use crate::budget::{Need, Visit};
use crate::cache::Shared;
use crate::layout::{Direct, Intent, Layout, Outcome, Part, Stored};
use crate::moves::Moves;
use crate::reach::Reach;
use crate::shield::shield;
use crate::slot::{Body, Slot};
use crate::stats::Reason;
use crate::sync::{Arc, RwLockWriteGuard};

/// One chunk's share of a request.
pub(crate) trait Access<L: Layout>: Send {
    /// Whether chunks are changed.
    const WRITES: bool;

    /// Whether nobody has asked for the chunk yet.
    const AHEAD: bool = false;

    /// How much of the chunk is needed.
    fn part(&self, layout: &L) -> Part;

    /// What is needed of the chunk as it was.
    fn intent(&self, layout: &L, key: &L::Key) -> Intent;

    /// The bytes the chunk may grow by.
    fn growth(&self, layout: &L, key: &L::Key, fresh: bool) -> u64;

    /// How the chunk is used.
    fn visit(&self, layout: &L, key: &L::Key) -> Visit;

    /// Whether the chunk may be of use later; `created`: it is not stored yet.
    fn worth_keeping(&self, layout: &L, key: &L::Key, created: bool) -> bool;

    /// Whether a chunk that is stored so can be handled past the cache.
    fn can_go_direct(&self, layout: &L, key: &L::Key, stored: &Stored<L::Tag>) -> bool;

    /// The memory that it takes to handle such a chunk past the cache.
    fn direct_bytes(&self, _layout: &L, _key: &L::Key, _stored: &Stored<L::Tag>) -> u64 {
        0
    }

    /// Goes past the cache if the layout can, or names what has to move for it.
    fn direct<'r>(
        &'r mut self,
        layout: &L,
        key: &L::Key,
        stored: Option<&Stored<L::Tag>>,
        moves: &mut Moves<'r>,
    ) -> Result<Direct, L::Error>;

    /// What it touches of the chunk of a layout that goes past the cache; `None`: all of it.
    fn reach(&self, _layout: &L, _key: &L::Key) -> Option<Reach> {
        None
    }

    /// Handles the stored bytes of a chunk that will not be kept, if the layout can.
    fn stored(
        &mut self,
        _layout: &L,
        _key: &L::Key,
        _bytes: &[u8],
        _stored: &Stored<L::Tag>,
    ) -> Result<bool, L::Error> {
        Ok(false)
    }

    /// Handles a chunk that is not stored and need not be created.
    fn absent(&mut self, layout: &L, key: &L::Key) -> Result<(), L::Error>;

    /// Handles a chunk that nobody else can see yet.
    fn apply(
        &mut self,
        layout: &L,
        key: &L::Key,
        chunk: &mut L::Chunk,
    ) -> Result<Outcome, L::Error>;

    /// Handles a chunk in a slot. `covered`: room for its growth and encoding is reserved.
    fn serve(
        &mut self,
        shared: &Shared<L>,
        slot: &Arc<Slot<L>>,
        covered: bool,
    ) -> Result<Served, L::Error>;
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
pub(crate) struct Reading<'a, L: Layout>(pub(crate) L::Read<'a>);

/// A share of a write.
pub(crate) struct Writing<'a, L: Layout>(pub(crate) L::Write<'a>);

impl<L: Layout> Access<L> for Reading<'_, L> {
    const WRITES: bool = false;

    fn part(&self, layout: &L) -> Part {
        layout.part(&self.0)
    }

    fn intent(&self, _layout: &L, _key: &L::Key) -> Intent {
        Intent::UpdateExisting
    }

    fn growth(&self, _layout: &L, _key: &L::Key, _fresh: bool) -> u64 {
        0
    }

    fn visit(&self, layout: &L, key: &L::Key) -> Visit {
        Visit { write: false, share: layout.read_share(key, &self.0), hit: false }
    }

    fn worth_keeping(&self, layout: &L, key: &L::Key, _created: bool) -> bool {
        layout.worth_keeping(key, &self.0)
    }

    fn can_go_direct(&self, layout: &L, key: &L::Key, stored: &Stored<L::Tag>) -> bool {
        layout.can_read_direct(key, stored, &self.0)
    }

    fn direct_bytes(&self, layout: &L, key: &L::Key, stored: &Stored<L::Tag>) -> u64 {
        layout.direct_read_bytes(key, stored, &self.0)
    }

    fn direct<'r>(
        &'r mut self,
        layout: &L,
        key: &L::Key,
        stored: Option<&Stored<L::Tag>>,
        moves: &mut Moves<'r>,
    ) -> Result<Direct, L::Error> {
        layout.direct_read(key, stored, &mut self.0, &mut moves.reads)
    }

    fn reach(&self, layout: &L, key: &L::Key) -> Option<Reach> {
        layout.read_reach(key, &self.0)
    }

    fn stored(
        &mut self,
        layout: &L,
        key: &L::Key,
        bytes: &[u8],
        stored: &Stored<L::Tag>,
    ) -> Result<bool, L::Error> {
        layout.scatter_stored(key, bytes, stored, &mut self.0)
    }

    fn absent(&mut self, layout: &L, key: &L::Key) -> Result<(), L::Error> {
        layout.scatter_absent(key, &mut self.0)
    }

    fn apply(
        &mut self,
        layout: &L,
        key: &L::Key,
        chunk: &mut L::Chunk,
    ) -> Result<Outcome, L::Error> {
        layout.scatter(key, chunk, &mut self.0)?;
        Ok(Outcome::Keep)
    }

    fn serve(
        &mut self,
        shared: &Shared<L>,
        slot: &Arc<Slot<L>>,
        _covered: bool,
    ) -> Result<Served, L::Error> {
        let layout = &*slot.member.layout;
        let body = slot.read();
        let Some(chunk) = body.chunk_with(layout.part(&self.0)) else { return Ok(Served::Missed) };
        layout.scatter(&slot.key, chunk, &mut self.0)?;
        drop(body);
        shared.budget.touch(Arc::clone(slot), self.visit(layout, &slot.key));
        Ok(Served::Done)
    }
}

/// A load ahead of a read.
pub(crate) struct Ahead;

impl<L: Layout> Access<L> for Ahead {
    const WRITES: bool = false;
    const AHEAD: bool = true;

    fn part(&self, _: &L) -> Part {
        Part::All
    }

    fn intent(&self, _: &L, _: &L::Key) -> Intent {
        Intent::UpdateExisting
    }

    fn growth(&self, _: &L, _: &L::Key, _: bool) -> u64 {
        0
    }

    fn worth_keeping(&self, _: &L, _: &L::Key, _: bool) -> bool {
        true
    }

    fn visit(&self, _: &L, _: &L::Key) -> Visit {
        Visit { write: false, share: 0.0, hit: false }
    }

    fn can_go_direct(&self, _: &L, _: &L::Key, _: &Stored<L::Tag>) -> bool {
        false
    }

    fn direct<'r>(
        &'r mut self,
        _: &L,
        _: &L::Key,
        _: Option<&Stored<L::Tag>>,
        _: &mut Moves<'r>,
    ) -> Result<Direct, L::Error> {
        Ok(Direct::Impossible)
    }

    fn absent(&mut self, _: &L, _: &L::Key) -> Result<(), L::Error> {
        Ok(())
    }

    fn apply(&mut self, _: &L, _: &L::Key, _: &mut L::Chunk) -> Result<Outcome, L::Error> {
        Ok(Outcome::Keep)
    }

    fn serve(&mut self, _: &Shared<L>, slot: &Arc<Slot<L>>, _: bool) -> Result<Served, L::Error> {
        let here = slot.read().chunk_with(Part::All).is_some();
        Ok(if here { Served::Done } else { Served::Missed })
    }
}

impl<L: Layout> Access<L> for Writing<'_, L> {
    const WRITES: bool = true;

    fn part(&self, _layout: &L) -> Part {
        Part::All
    }

    fn intent(&self, layout: &L, key: &L::Key) -> Intent {
        layout.intent(key, &self.0)
    }

    fn growth(&self, layout: &L, key: &L::Key, fresh: bool) -> u64 {
        layout.growth(key, &self.0, fresh)
    }

    fn visit(&self, layout: &L, key: &L::Key) -> Visit {
        Visit { write: true, share: layout.write_share(key, &self.0), hit: false }
    }

    fn worth_keeping(&self, layout: &L, key: &L::Key, created: bool) -> bool {
        !(created && layout.passes(key, &self.0))
    }

    fn can_go_direct(&self, layout: &L, key: &L::Key, stored: &Stored<L::Tag>) -> bool {
        layout.can_write_direct(key, stored, &self.0)
    }

    fn direct_bytes(&self, layout: &L, key: &L::Key, stored: &Stored<L::Tag>) -> u64 {
        layout.direct_write_bytes(key, stored, &self.0)
    }

    fn direct<'r>(
        &'r mut self,
        layout: &L,
        key: &L::Key,
        stored: Option<&Stored<L::Tag>>,
        moves: &mut Moves<'r>,
    ) -> Result<Direct, L::Error> {
        layout.direct_write(key, stored, &mut self.0, &mut moves.writes)
    }

    fn reach(&self, layout: &L, key: &L::Key) -> Option<Reach> {
        layout.write_reach(key, &self.0)
    }

    fn absent(&mut self, _layout: &L, _key: &L::Key) -> Result<(), L::Error> {
        Ok(())
    }

    fn apply(
        &mut self,
        layout: &L,
        key: &L::Key,
        chunk: &mut L::Chunk,
    ) -> Result<Outcome, L::Error> {
        layout.gather(key, chunk, &mut self.0)
    }

    fn serve(
        &mut self,
        shared: &Shared<L>,
        slot: &Arc<Slot<L>>,
        covered: bool,
    ) -> Result<Served, L::Error> {
        let growth = if covered { 0 } else { self.growth(&slot.member.layout, &slot.key, false) };
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
        shared.budget.touch(Arc::clone(slot), self.visit(&slot.member.layout, &slot.key));
        Ok(match outcome {
            // A resident chunk may have been changed before.
            Outcome::Keep | Outcome::Unchanged => Served::Done,
            Outcome::Delete => Served::Emptied,
        })
    }
}

impl<L: Layout> Writing<'_, L> {
    /// Changes a resident chunk. Should that fail, a clean chunk leaves, so that what is stored
    /// counts again; a dirty one stays with whatever was changed, for the rest of it is needed.
    fn gather(
        &mut self,
        shared: &Shared<L>,
        slot: &Arc<Slot<L>>,
        mut body: RwLockWriteGuard<'_, Body<L>>,
        was_dirty: bool,
    ) -> Result<Outcome, L::Error> {
        let member = &slot.member;
        // Before the chunk is changed: it may share memory with its encoding.
        shared.drop_early(slot, &mut body);
        let Body { chunk: Some(chunk), values, version, .. } = &mut *body else {
            return Ok(Outcome::Keep);
        };
        let result = shield(|| {
            let outcome = member.layout.gather(&slot.key, chunk, &mut self.0)?;
            *values = member.layout.has_values(chunk);
            Ok((outcome, member.measure(chunk)))
        });
        *version += 1;
        match result {
            Ok((outcome, footprint)) => {
                shared.budget.charge(slot, footprint, true);
                Ok(outcome)
            }
            Err(error) if was_dirty => {
                if let Ok(footprint) = shield::<_, L::Error>(|| Ok(member.measure(chunk))) {
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
