//! Uses of resident chunks: each thread notes them for itself, and the policy is told of many at
//! once.
//!
//! A hit must not write where other threads' hits write. So it only leaves a note in a stripe that
//! hardly any other thread uses. Full stripes are emptied by their threads when the books are free;
//! who is about to choose, count or admit chunks empties all stripes first, so that the policy knows
//! all uses before the next choice, and a single thread's in their order.
//!
//! Lock order: a stripe, then, if it can be had without waiting, the books.

use super::{Budget, State, Visit};
use crate::layout::Family;
use crate::slot::Slot;
use crate::sync::{Arc, AtomicU32, Mutex, MutexGuard, Ordering, thread_number};

/// Threads that have a stripe for themselves.
const STRIPES: usize = 16;
/// So many notes are told at once; when the books are in use, after so many more it is tried again,
/// and so many are waited for.
const BATCH: usize = 1024;
const AGAIN: usize = 64;
const MOST: usize = 4096;
/// Hits alone have the size looked at after so many times as many uses as misses have: it is hardly
/// wrong, and who looks makes others wait.
const LEISURE: u64 = 8;

/// A use that the policy has not been told of.
struct Touch<F: Family> {
    slot: Arc<Slot<F>>,
    visit: Visit,
    /// Whether it was loaded ahead, and this was its first use.
    awaited: bool,
}

/// What the books say after many uses were entered: a hit that asked for it itself would wait for
/// other threads' hits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    /// Whether more is resident than may be.
    pub(crate) excess: bool,
    /// Whether the size is to be looked at, though all are hits.
    pub(crate) due: bool,
}

/// Aligned so that two threads' notes do not share a pair of cache lines, which are fetched together.
#[repr(align(128))]
struct Stripe<F: Family>(Mutex<Vec<Touch<F>>>);

pub(super) struct Touches<F: Family> {
    stripes: [Stripe<F>; STRIPES],
    pending: Pending,
}

/// A bit for each stripe that may have notes. Read at every hit, but written once for many.
#[repr(align(128))]
struct Pending(AtomicU32);

impl<F: Family> Touches<F> {
    pub(super) fn new() -> Self {
        let stripes = std::array::from_fn(|_| Stripe(Mutex::new(Vec::new())));
        Touches { stripes, pending: Pending(AtomicU32::new(0)) }
    }
}

impl<F: Family> Budget<F> {
    /// Notes a use of a resident chunk. If the policy has been told of it, with many others: what
    /// the books say then.
    pub(crate) fn touch(&self, slot: Arc<Slot<F>>, visit: Visit) -> Option<Told> {
        let awaited = slot.take_ahead();
        let stripe = thread_number() % STRIPES;
        let mut notes = self.touches.stripes[stripe].0.lock();
        notes.push(Touch { slot, visit, awaited });
        let count = notes.len();
        if count >= BATCH && count.is_multiple_of(AGAIN) {
            let state = match count < MOST {
                true => self.state.try_lock(),
                false => None,
            };
            if state.is_some() || count >= MOST {
                let batch = std::mem::replace(&mut *notes, Vec::with_capacity(BATCH));
                drop(notes);
                return Some(self.tell(state, batch));
            }
        }
        drop(notes);
        let Pending(pending) = &self.touches.pending;
        if pending.load(Ordering::Acquire) & (1 << stripe) == 0 {
            pending.fetch_or(1 << stripe, Ordering::AcqRel);
        }
        None
    }

    /// Tells the policy of all uses so far.
    pub(crate) fn settle(&self) {
        let Touches { stripes, pending: Pending(pending) } = &self.touches;
        if pending.load(Ordering::Acquire) == 0 {
            return;
        }
        // Who leaves a note after its stripe was emptied sees the bit gone, and sets it again.
        let marked = pending.swap(0, Ordering::AcqRel);
        let marked = stripes.iter().enumerate().filter(|(stripe, _)| marked >> stripe & 1 == 1);
        for (_, Stripe(notes)) in marked {
            let batch = std::mem::take(&mut *notes.lock());
            if !batch.is_empty() {
                self.tell(None, batch);
            }
        }
    }

    /// The books, after all uses so far were entered.
    pub(super) fn lock_settled(&self) -> MutexGuard<'_, State<F>> {
        self.settle();
        self.state.lock()
    }

    fn tell(&self, state: Option<MutexGuard<'_, State<F>>>, batch: Vec<Touch<F>>) -> Told {
        let mut state = state.unwrap_or_else(|| self.state.lock());
        for Touch { slot, visit, awaited } in &batch {
            state.touch(slot, *visit, *awaited, &self.watch);
        }
        for same in batch.chunk_by(|a, b| Arc::ptr_eq(&a.slot.member, &b.slot.member)) {
            let hits = same.iter().filter(|touch| touch.visit.hit).count();
            same[0].slot.member.counters.hits.add(hits as u64);
        }
        let told = Told { excess: state.excess() > 0, due: state.due(LEISURE) };
        // Chunks that have left meanwhile may take their dataset with them: not under the lock.
        drop(state);
        told
    }
}
