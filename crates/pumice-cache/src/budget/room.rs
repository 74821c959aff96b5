//! Taking room, and waiting for it.

use super::stuck::{Concern, Whose};
use super::{Budget, Reservation, State, encoding_size};
use crate::layout::Family;
use crate::slot::Slot;
use crate::sync::Arc;

/// So many bytes of chunks are encoded at a time, if they are chunks enough for all threads: more would
/// neither keep these busier nor make the writes longer by much.
const ENCODED: u64 = 8 << 20;

/// What room is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// To bring chunks in; if one of them may become dirty, its encoding must have room besides.
    Load { bytes: u64, encoding: u64 },
    /// To write chunks back.
    Encode { bytes: u64 },
}

impl Need {
    pub(crate) fn bytes(self) -> u64 {
        match self {
            Need::Load { bytes, .. } | Need::Encode { bytes } => bytes,
        }
    }
}

/// What one is told who has found nothing that could leave.
pub(crate) enum LastResort<'b, F: Family> {
    /// There was nobody to wait for: room over the limit.
    Granted(Reservation<'b, F>),
    /// There is room for the moment only: chunks of other datasets that could not be written back fill the cache, and
    /// the chunk must not stay.
    Passing(Reservation<'b, F>),
    /// Something has changed: it is worth trying again.
    Changed,
    /// There is nobody to wait for, and what is left are chunks that could not be written back and concern
    /// the one who asks.
    Stuck,
}

impl<F: Family> Budget<F> {
    /// A mark to be given to [`force_or_wait`](Self::force_or_wait).
    pub(crate) fn changes(&self) -> u64 {
        self.state.lock().changes
    }

    /// Takes room if there is.
    pub(crate) fn try_reserve(&self, need: Need) -> Option<Reservation<'_, F>> {
        let mut state = self.state.lock();
        state.fits(need).then(|| self.take(&mut state, need))
    }

    pub(super) fn take(&self, state: &mut State<F>, need: Need) -> Reservation<'_, F> {
        state.take(need);
        Reservation { budget: self, bytes: need.bytes() }
    }

    /// For one who has found nothing that could leave: takes room over the limit if nobody works,
    /// otherwise waits until something has changed since `seen`.
    ///
    /// Evictions and saves count as work, except for who must encode: they may be waiting for room to
    /// encode themselves.
    pub(crate) fn force_or_wait(
        &self,
        need: Need,
        seen: u64,
        concern: &Concern,
    ) -> LastResort<'_, F> {
        let loads = matches!(need, Need::Load { .. });
        let mut state = self.state.lock();
        loop {
            if state.changes != seen {
                return LastResort::Changed;
            }
            if state.operations == 0 && !(loads && state.evictions > 0) {
                break;
            }
            state = self.wait(state);
        }
        match state.stuck(concern).filter(|_| loads) {
            Some(Whose::Own) => LastResort::Stuck,
            Some(Whose::Others) => LastResort::Passing(self.take(&mut state, need)),
            None => LastResort::Granted(self.take(&mut state, need)),
        }
    }

    /// Takes room for the encodings of as many of `slots` as there is room for, if it is any: of no more
    /// than `enough`, once they take much.
    pub(crate) fn try_encodings(
        &self,
        slots: &[Arc<Slot<F>>],
        enough: usize,
    ) -> Option<(Reservation<'_, F>, usize)> {
        let mut state = self.state.lock();
        let (mut bytes, mut count) = (0_u64, 0);
        for slot in slots {
            let size = state.get(slot).map_or(0, |resident| encoding_size(resident.footprint.used));
            let full = count >= enough && bytes + size > ENCODED;
            if full || !state.fits(Need::Encode { bytes: bytes + size }) {
                break;
            }
            bytes += size;
            count += 1;
        }
        (count > 0).then(|| (self.take(&mut state, Need::Encode { bytes }), count))
    }

    /// How many bytes the encoding of a chunk is expected to take.
    pub(crate) fn encoding_size(&self, slot: &Slot<F>) -> u64 {
        let mut state = self.state.lock();
        state.get(slot).map_or(0, |resident| encoding_size(resident.footprint.used))
    }

    /// How many resident bytes must leave for the need to be met, beyond those that are leaving.
    pub(crate) fn shortage(&self, need: Need) -> u64 {
        let state = self.state.lock();
        state.beyond(need, state.doomed)
    }

    /// How many resident bytes there are beyond the resident limit and those that are leaving.
    pub(crate) fn excess(&self) -> u64 {
        self.state.lock().excess()
    }

    /// Whether there were enough uses to look at the size.
    pub(crate) fn due(&self) -> bool {
        self.state.lock().due(1)
    }
}
