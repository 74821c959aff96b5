//! Work ahead of requests, on threads that are idle: chunks that will be read are loaded, chunks that
//! will have to be written are written or, if they may still be changed, encoded.
//!
//! Nothing here is ever waited for by a request except in its turn: loading ahead takes a read's
//! place in the order, and only if it need not wait for it; it takes room only if it need not wait
//! or write for it. What fails is forgotten: the request that needs the chunk will see for itself.
//! Without idle threads there is no work ahead, except for what [`ChunkCache::prefetch`] asks for.

use std::collections::VecDeque;

use smallvec::SmallVec;

use crate::access::Ahead;
use crate::batches::TOGETHER;
use crate::budget::{Cold, Reservation, Saving};
use crate::cache::{ChunkCache, Shared};
use crate::handles::Dataset;
use crate::layout::{Family, Layout};
use crate::member::Member;
use crate::order::Keys;
use crate::plan::{Way, announce};
use crate::policy::Hint;
use crate::request::{Item, Round, Share};
use crate::shield::shield;
use crate::sync::{Arc, Ordering};

/// Chunks to have ready for each thread.
const PER_THREAD: usize = 4;
/// A request of more chunks than this is large enough to keep all threads busy by itself.
const SMALL: usize = 16;
/// The part of the resident limit that may be loaded ahead for one dataset, and the parts beyond
/// which dirty chunks are written early and down to which: one in so many bytes.
const AHEAD: u64 = 8;
const DIRTY: u64 = 2;
const WRITTEN: u64 = 4;
/// So many of the chunks that [will be read](ChunkCache::will_read) are remembered.
pub const MOST_EXPECTED: usize = 1 << 16;
/// Chunks written early in one go.
const BATCH: usize = 16;

/// What a dataset's requests tell of the next ones.
pub(crate) struct Course<K> {
    /// The first chunks of the last requests.
    recent: SmallVec<[K; 2]>,
    /// What the program said it will read.
    expected: VecDeque<K>,
}

impl<K> Default for Course<K> {
    fn default() -> Self {
        Course { recent: SmallVec::new(), expected: VecDeque::new() }
    }
}

impl<K: Clone + Eq> Course<K> {
    /// Which chunks will be read after `now`, at most `count`.
    fn next<F: Family<Key = K>>(
        &mut self,
        layout: &dyn Layout<F>,
        hint: Hint,
        now: &[K],
        count: usize,
    ) -> Vec<K> {
        if let Some(last) = now.last()
            && let Some(at) = self.expected.iter().take(4 * count).position(|key| key == last)
        {
            self.expected.drain(..=at);
        }
        if !self.expected.is_empty() {
            return self.expected.iter().take(count).cloned().collect();
        }
        let Some(first) = now.first() else { return Vec::new() };
        let next = match (hint, &*self.recent) {
            (Hint::Random, _) => return Vec::new(),
            // Again the same chunk: that says nothing.
            (_, [.., last]) if last == first => return Vec::new(),
            (Hint::Sequential, _) => layout.successors(&[], now, count),
            (_, [_, _]) => layout.successors(&self.recent, now, count),
            _ => Vec::new(),
        };
        if self.recent.len() == 2 {
            self.recent.remove(0);
        }
        self.recent.push(first.clone());
        next
    }
}

impl<F: Family> ChunkCache<F> {
    /// Loads chunks that will be read soon. Says whether that has begun: it is not waited for, and
    /// without an idle thread nothing happens; a cache without threads loads them at once. Of a dataset
    /// that goes past the cache, nothing is ever loaded.
    ///
    /// They take room that is free, and others leave for them until what was loaded ahead and not
    /// used yet takes a quarter of the cache; then the rest is not loaded. No more than 8,192 are asked for at a time.
    ///
    /// ```
    /// # use pumice_cache::*;
    /// # fn example<F: Family<Key = u64>>(cache: &ChunkCache<F>, dataset: &Dataset<F>) {
    /// cache.prefetch(dataset, 10..20);
    /// # }
    /// ```
    pub fn prefetch(&self, dataset: &Dataset<F>, keys: impl IntoIterator<Item = F::Key>) -> bool {
        let Ok(member) = self.member(dataset) else { return false };
        if member.kept_layout().is_none() {
            return false;
        }
        let keys: Keys<F::Key> = keys.into_iter().take(TOGETHER).collect();
        if self.shared.works_ahead() {
            return self.load_ahead(member, keys);
        }
        self.shared.load_ahead(member, keys);
        true
    }

    /// Says which chunks will be read next, in their order: the policy keeps them rather than
    /// others, and idle threads load them a little ahead of the reads. Replaces what was said before.
    /// Says whether that is of any use: not if the dataset goes past the cache. Of more than [`MOST_EXPECTED`] chunks
    /// the first are remembered.
    pub fn will_read(&self, dataset: &Dataset<F>, keys: impl IntoIterator<Item = F::Key>) -> bool {
        let Ok(member) = self.member(dataset) else { return false };
        if member.kept_layout().is_none() {
            return false;
        }
        let keys: VecDeque<_> = keys.into_iter().take(MOST_EXPECTED).collect();
        let identities: Vec<_> = keys.iter().map(|key| member.hash(key)).collect();
        self.shared.budget.expect(member.id, &identities);
        member.course.lock().get_or_insert_default().expected = keys;
        if self.follows(member, 0) {
            self.follow(member, &[]);
        }
        true
    }

    /// Whether a read of so many chunks leaves room for work ahead.
    pub(crate) fn follows(&self, member: &Member<F>, chunks: usize) -> bool {
        let random = member.options().hint == Hint::Random;
        let kept = member.kept_layout().is_some();
        chunks <= SMALL && !random && kept && self.shared.works_ahead()
    }

    /// Loads ahead what a read of `now`, which is followed, lets expect.
    pub(crate) fn follow(&self, member: &Arc<Member<F>>, now: &[F::Key]) {
        let Some(layout) = member.kept_layout() else { return };
        let hint = member.options().hint;
        let threads = self.shared.executor().threads();
        let (resident_limit, _) = self.shared.budget.limits();
        let room = resident_limit / AHEAD / member.largest().max(1);
        let count = (PER_THREAD * threads).min(usize::try_from(room).unwrap_or(usize::MAX));
        let next = shield::<_, F::Error>(|| {
            let mut course = member.course.lock();
            Ok(course.get_or_insert_default().next(&**layout, hint, now, count))
        });
        let Ok(mut next) = next else { return };
        let all = next.len();
        next.retain(|key| self.shared.table.find(member, member.hash(key), key).is_none());
        // Many at a time: half of what shall be ready may be used up first.
        if !next.is_empty() && next.len() * 2 >= all {
            self.load_ahead(member, next.into_iter().collect());
        }
    }

    fn load_ahead(&self, member: &Arc<Member<F>>, keys: Keys<F::Key>) -> bool {
        let (shared, member) = (Arc::clone(&self.shared), Arc::clone(member));
        self.shared.spawn_ahead(move || shared.load_ahead(&member, keys))
    }

    /// Lets an idle thread write or encode chunks that will have to be written, if there are many of them.
    pub(crate) fn write_early(&self) {
        if !self.shared.budget.many_dirty(DIRTY) || !self.shared.works_ahead() {
            return;
        }
        if self.shared.writing_early.swap(true, Ordering::AcqRel) {
            return;
        }
        let shared = Arc::clone(&self.shared);
        let begun = self.shared.spawn_ahead(move || {
            shared.write_early();
            shared.writing_early.store(false, Ordering::Release);
        });
        if !begun {
            self.shared.writing_early.store(false, Ordering::Release);
        }
    }
}

/// A thread that works ahead of requests, until dropped.
struct Working<F: Family>(Arc<Shared<F>>);

impl<F: Family> Drop for Working<F> {
    fn drop(&mut self) {
        self.0.ahead.fetch_sub(1, Ordering::AcqRel);
    }
}

impl<F: Family> Shared<F> {
    /// Whether there is work ahead of requests at all.
    pub(crate) fn works_ahead(&self) -> bool {
        self.background() > 0 && self.executor().threads() > 1
    }

    /// Lets an idle thread work ahead, unless enough of them do. Tells whether it has begun.
    fn spawn_ahead(self: &Arc<Self>, task: impl FnOnce() + Send + 'static) -> bool {
        let most = self.background();
        let more = |working: usize| (working < most).then_some(working + 1);
        if self.ahead.fetch_update(Ordering::AcqRel, Ordering::Relaxed, more).is_err() {
            return false;
        }
        // Dropped with the task if no thread takes it.
        let working = Working(Arc::clone(self));
        self.executor().spawn(Box::new(move || {
            let _working = working;
            task();
        }))
    }

    /// Loads what can be loaded without waiting.
    fn load_ahead(&self, member: &Arc<Member<F>>, keys: Keys<F::Key>) {
        let (Some(layout), Some(_place)) =
            (member.kept_layout(), member.order.try_enter(keys.clone()))
        else {
            return;
        };
        let items = keys.into_iter();
        let items = items.map(|key| Item::new(Share::new(member, key, Ahead), layout));
        let missing =
            |item: &Item<'_, F, Ahead>| self.table.find(member, item.hash, &item.key).is_none();
        let items: Vec<_> = items.filter(missing).collect();
        let round = Round::new(self.executor());
        let loaded = shield(|| {
            let mut tasks = self.plan(items)?;
            tasks.retain(|task| task.way == Way::Stay);
            let room = self.budget.room_ahead();
            let ends = tasks.iter().scan(0_u64, |end, task| {
                *end = end.saturating_add(task.stays);
                Some(*end)
            });
            // As many as there is room for, those first that are needed first.
            let count = ends.take_while(|end| *end <= room).count();
            tasks.truncate(count);
            let groups = self.group(tasks, &round);
            let _announced = announce(&groups);
            for group in groups {
                let Some(mut room) = self.try_room(group.need()) else { break };
                self.handle(group.tasks, &mut room, &round)?;
            }
            Ok(())
        });
        // The request that needs the chunk will meet the error itself.
        drop::<Result<(), F::Error>>(loaded);
        let _ = self.trim(false);
        self.trim_member(member);
    }

    /// Writes the coldest dirty chunks that have been written as a whole, until few are left: nobody is
    /// expected to change them again, and clean they can leave at once. Of others, sparse ones, it cannot
    /// be known whether they are complete: the coldest are only encoded, or written if the cache is full.
    fn write_early(&self) {
        while let Some(cold) = self.budget.cold_dirty(WRITTEN, BATCH) {
            if !self.save_early(cold) {
                return;
            }
        }
        while let Some(cold) = self.budget.cold_open(WRITTEN) {
            let done = match cold {
                Cold::Leaving(cold) => self.save_early(cold),
                Cold::Staying(cold, room) => self.encode_early(cold, room),
            };
            if !done {
                return;
            }
        }
    }

    /// Writes chunks, and tells whether that went well.
    fn save_early(&self, cold: Saving<'_, F>) -> bool {
        let slots = cold.slots().to_vec();
        let members = slots.iter().map(|slot| &slot.member.counters);
        members.for_each(|counters| counters.rare().written_early.add(1));
        let saved = self.save(cold);
        self.budget.mark_stuck(&slots, &saved);
        saved.result().is_ok()
    }

    /// Encodes chunks and keeps their encodings with them; tells whether all are kept. What fails is met
    /// again by who has to write the chunk.
    fn encode_early(&self, cold: Saving<'_, F>, mut room: Reservation<'_, F>) -> bool {
        cold.slots().iter().all(|slot| {
            let kept = matches!(self.keep_encoded(slot, &mut room), Ok(true));
            slot.member.counters.rare().encoded_early.add(u64::from(kept));
            kept
        })
    }
}
