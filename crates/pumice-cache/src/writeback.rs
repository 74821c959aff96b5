//! Writing dirty chunks back: encoded in parallel, group by group; each group is placed dataset by
//! dataset, written at once for all datasets of a store, then entered in the index.
//!
//! A chunk that is being written back stays in its slot and stays readable; a write may change it
//! as soon as it is encoded. Its version tells afterwards whether what was written is still what
//! is in the slot. A chunk whose encoding, placing or writing failed stays dirty.
//!
//! A chunk can be encoded before it has to be written: its encoding is then kept with it, counts for the
//! limits, and is dropped by the next change of the chunk, or when it has been written.

use crate::budget::{Reservation, Saving};
use crate::cache::Shared;
use crate::layout::{ChunkStore, Encoded, Family, Placement, Put};
use crate::member::Member;
use crate::order::{Entry, Kind, Order};
use crate::refused::{Refused, Saved};
use crate::shield::shield;
use crate::slot::{Body, Slot};
use crate::stats::Reason;
use crate::sync::{Arc, Mutex};

/// Groups for each thread: one is stored while others are encoded.
const GROUPS: usize = 8;

/// A chunk ready to be stored.
struct Ready<F: Family> {
    slot: Arc<Slot<F>>,
    version: u64,
    encoded: Arc<Encoded<F::Tag>>,
}

impl<F: Family> Shared<F> {
    /// Writes back what is given, all of it even if some of it fails.
    pub(crate) fn save(&self, saving: Saving<'_, F>) -> Saved<F> {
        self.save_in_batches(saving, |_| ())
    }

    /// Writes back what is given, as many at a time as there is room for, and tells `done` of each
    /// batch: if it lets them go, there is room for more in the next.
    pub(crate) fn save_in_batches(
        &self,
        mut saving: Saving<'_, F>,
        done: impl Fn(&[Arc<Slot<F>>]),
    ) -> Saved<F> {
        saving.sort();
        let mut saved = Saved::all();
        while !saving.slots().is_empty() {
            let (room, count) = self.reserve_encodings(saving.slots());
            let batch = saving.split_front(count);
            saved.then(self.save_batch(batch.slots()));
            let slots = batch.slots().to_vec();
            drop((batch, room));
            done(&slots);
        }
        saved
    }

    /// Encodes and stores chunks for whose encodings there is room: a group of them is stored while
    /// other threads encode the next, and groups are stored in their order.
    fn save_batch(&self, slots: &[Arc<Slot<F>>]) -> Saved<F> {
        let executor = self.executor();
        let size = match executor.threads() {
            // Nobody to share with: as few calls as there can be.
            1 => slots.len(),
            threads => slots.len().div_ceil(threads * GROUPS),
        };
        let groups: Vec<_> = slots.chunks(size.max(1)).collect();
        let encoded: Vec<_> = groups.iter().map(|_| Mutex::new(None)).collect();
        // The next group to be stored, and what became of those before.
        let stored = Mutex::new((0, Saved::all()));
        let store = |(next, saved): &mut (usize, Saved<F>)| {
            while let Some(group) = encoded.get(*next).and_then(|group| group.lock().take()) {
                saved.then(self.store_group(group));
                *next += 1;
            }
        };
        executor.run(groups.len(), &|number| {
            let encode = |slot| (slot, encode(slot));
            let group: Vec<_> = groups[number].iter().map(encode).collect();
            *encoded[number].lock() = Some(group);
            // Who cannot store now leaves it to who does, or to the end.
            if let Some(mut state) = stored.try_lock() {
                store(&mut state);
            }
        });
        let mut state = stored.into_inner();
        store(&mut state);
        state.1
    }

    /// Stores chunks that have been encoded, all that could be.
    fn store_group(&self, group: Vec<(&Arc<Slot<F>>, EncodedChunk<F>)>) -> Saved<F> {
        let mut saved = Saved::all();
        let mut ready = Vec::with_capacity(group.len());
        for (slot, outcome) in group {
            match outcome {
                Ok(Some(chunk)) => ready.push(chunk),
                Ok(None) => {}
                Err(error) => saved.refuse(slot, error),
            }
        }
        for same in
            ready.chunk_by(|a, b| a.slot.layout.chunks().id() == b.slot.layout.chunks().id())
        {
            saved.store(same[0].slot.layout.chunks().id(), self.store_all(same));
        }
        saved
    }

    /// Places chunks of datasets in one store and writes them all at once.
    fn store_all(&self, chunks: &[Ready<F>]) -> Result<(), F::Error> {
        let mut result = Ok(());
        let mut placed = Vec::new();
        for same in chunks.chunk_by(|a, b| a.slot.member.id == b.slot.member.id) {
            let slot = &same[0].slot;
            let loose = same.iter().map(Ready::loose).collect();
            match shield(|| Placed::new(&slot.member, slot.layout.chunks(), loose)) {
                Ok(one) => placed.push((same, one)),
                Err(error) => result = result.and(Err(error)),
            }
        }
        match (write(placed.iter().map(|(_, one)| one)), &*placed) {
            (written, [one]) => result.and(self.finish(one, written)),
            (Ok(()), all) => {
                all.iter().fold(result, |so_far, one| so_far.and(self.finish(one, Ok(()))))
            }
            // Each by itself, so that none suffers for another.
            (Err(_), all) => all.iter().fold(result, |so_far, one| {
                let written = write([&one.1]);
                so_far.and(self.finish(one, written))
            }),
        }
    }

    /// Notes what is stored, or gives up the room for it.
    fn finish(
        &self,
        (chunks, placed): &(&[Ready<F>], Placed<'_, F>),
        written: Result<(), F::Error>,
    ) -> Result<(), F::Error> {
        placed.settle(written)?;
        chunks.iter().for_each(|chunk| self.mark_saved(chunk));
        Ok(())
    }

    fn mark_saved(&self, chunk: &Ready<F>) {
        let body = chunk.slot.read();
        // The body is held: no write can come between the question and the note.
        if body.version == chunk.version {
            self.budget.clean(&chunk.slot);
        }
        let early = body.early.is_some();
        drop(body);
        // Whoever saves a chunk is alone in that, and so nobody has encoded it anew.
        if early && self.forget_early(&chunk.slot, &mut chunk.slot.write()) {
            chunk.slot.member.counters.rare().early_used.add(1);
        }
    }

    /// Encodes a chunk that others must not save, for whose encoding there is room, and keeps the
    /// encoding with it, unless it is changed meanwhile or there is no room to keep that. Tells whether
    /// it is kept.
    pub(crate) fn keep_encoded(
        &self,
        slot: &Arc<Slot<F>>,
        room: &mut Reservation<'_, F>,
    ) -> Result<bool, F::Error> {
        let body = slot.read();
        let Some(chunk) = &body.chunk else { return Ok(false) };
        let mut encoded = shield(|| slot.layout.encode(&slot.key, chunk))?;
        let version = body.version;
        drop(body);
        // What it shares with the chunk is counted there. Something is counted always: who counts nothing has not
        // been encoded.
        let own = Arc::get_mut(&mut encoded.bytes);
        let size = own.map_or(1, |bytes| {
            bytes.shrink_to_fit();
            bytes.capacity().max(1) as u64
        });
        let mut body = slot.write();
        let kept = body.version == version && self.budget.keep_encoding(room, slot, size);
        if kept {
            body.early = Some(Arc::new(encoded));
        }
        Ok(kept)
    }

    /// Drops what was encoded early of a chunk that is about to be changed.
    pub(crate) fn drop_early(&self, slot: &Slot<F>, body: &mut Body<F>) {
        if self.forget_early(slot, body) {
            slot.member.counters.rare().early_dropped.add(1);
        }
    }

    /// Lets go of what was encoded early of a chunk; tells whether there was anything.
    fn forget_early(&self, slot: &Slot<F>, body: &mut Body<F>) -> bool {
        let early = body.early.take().is_some();
        if early {
            self.budget.drop_encoding(slot);
        }
        early
    }

    /// Writes back all dirty chunks of datasets whose writes are held back.
    pub(crate) fn flush_members(
        &self,
        members: &[Arc<Member<F>>],
        evict: bool,
    ) -> Result<(), F::Error> {
        self.save_members(members, evict).result()
    }

    /// The same, of datasets that are in their order; tells which chunks cannot be encoded.
    pub(crate) fn flush_apart(
        &self,
        members: &[Arc<Member<F>>],
    ) -> Result<Vec<Refused<F>>, F::Error> {
        let entries = members.iter().map(|member| Entry::of(&member.order, Kind::Flush));
        let _places = Order::enter_all(entries.collect());
        self.save_members(members, false).apart()
    }

    /// Writes back those of a dataset's chunks that are dirty.
    pub(crate) fn save_named(
        &self,
        member: &Member<F>,
        names: &[(u64, F::Key)],
    ) -> Result<(), F::Error> {
        let find = |(hash, key): &(u64, F::Key)| self.table.find(member, *hash, key);
        let mut dirty = self.budget.dirty_among(names.iter().filter_map(find).collect());
        dirty.sort_by(|a, b| a.key.cmp(&b.key));
        dirty.dedup_by(|a, b| a.key == b.key);
        self.save(self.budget.begin_saving(dirty)).result()
    }

    fn save_members(&self, members: &[Arc<Member<F>>], evict: bool) -> Saved<F> {
        let slots = members.iter().flat_map(|member| self.budget.slots(member)).collect();
        let mut dirty = self.budget.dirty_among(slots);
        dirty.sort_by(|a, b| (a.member.id, &a.key).cmp(&(b.member.id, &b.key)));
        let saved = self.save(self.budget.begin_saving(dirty));
        if evict {
            for slot in members.iter().flat_map(|member| self.budget.slots(member)) {
                // Who has just written it early may still have it in hand; now clean, it is taken by none.
                drop(self.budget.hold_saves(&slot));
                self.leave_whole(&slot, Reason::Flush);
            }
        }
        // Requests that ended meanwhile could not let go what was being saved. What cannot be
        // written now is another's, who will learn of it.
        let _ = self.trim(false);
        saved
    }

    /// Drops a chunk of a dataset whose requests are held back, dirty or not.
    pub(crate) fn discard(&self, slot: &Arc<Slot<F>>, reason: Reason) {
        let _saving = self.budget.hold_saves(slot);
        self.remove(slot, slot.write(), reason);
    }

    /// Deletes a chunk in which a write has left nothing. The write still has its place.
    pub(crate) fn delete(&self, slot: &Arc<Slot<F>>) -> Result<(), F::Error> {
        let _saving = self.budget.hold_saves(slot);
        shield(|| slot.layout.chunks().delete(&slot.key))?;
        self.remove(slot, slot.write(), Reason::Discard);
        Ok(())
    }
}

/// A chunk that has been encoded, if it is still there.
type EncodedChunk<F> = Result<Option<Ready<F>>, <F as Family>::Error>;

fn encode<F: Family>(slot: &Arc<Slot<F>>) -> EncodedChunk<F> {
    let body = slot.read();
    let Some(chunk) = &body.chunk else { return Ok(None) };
    let encoded = match &body.early {
        Some(early) => Arc::clone(early),
        None => Arc::new(shield(|| slot.layout.encode(&slot.key, chunk))?),
    };
    Ok(Some(Ready { slot: Arc::clone(slot), version: body.version, encoded }))
}

impl<F: Family> Ready<F> {
    fn loose(&self) -> Loose<'_, F> {
        let (pieces, tag) = (self.encoded.pieces(), self.encoded.tag.clone());
        Loose { key: &self.slot.key, pieces, tag }
    }
}

/// An encoded chunk that is to be stored: its bytes, and what the layout needs to know besides.
pub(crate) struct Loose<'c, F: Family> {
    pub(crate) key: &'c F::Key,
    pub(crate) pieces: [&'c [u8]; 2],
    pub(crate) tag: F::Tag,
}

/// Chunks of one dataset for which there is room in the store.
struct Placed<'c, F: Family> {
    member: &'c Member<F>,
    store: &'c dyn ChunkStore<F>,
    pieces: Vec<[&'c [u8]; 2]>,
    placements: Vec<Placement<F::Key, F::Tag>>,
}

impl<'c, F: Family> Placed<'c, F> {
    /// Finds room.
    fn new(
        member: &'c Member<F>,
        store: &'c dyn ChunkStore<F>,
        chunks: Vec<Loose<'c, F>>,
    ) -> Result<Self, F::Error> {
        let pieces = chunks.iter().map(|chunk| chunk.pieces).collect();
        let mut placements: Vec<_> = chunks.into_iter().map(placement).collect();
        store.insert(&mut placements)?;
        Ok(Placed { member, store, pieces, placements })
    }

    /// Names what is stored in the index, or gives up the room for it.
    fn settle(&self, written: Result<(), F::Error>) -> Result<(), F::Error> {
        let Placed { member, store, placements, .. } = self;
        let settled = shield(|| store.settle(placements, written.is_ok()));
        written.and(settled)?;
        member.counters.write_backs.add(placements.len() as u64);
        member.counters.bytes_written.add(placements.iter().map(Placement::written).sum());
        Ok(())
    }
}

fn placement<F: Family>(Loose { key, pieces, tag }: Loose<'_, F>) -> Placement<F::Key, F::Tag> {
    let len = pieces.map(|piece| piece.len() as u64).iter().sum();
    let head = pieces[0].len() as u64;
    Placement { key: key.clone(), len, tag, head, offset: 0, kept: false }
}

/// How to write what is to be stored: all that is not there already.
fn puts<'b, K, T>(
    &Placement { offset, kept, .. }: &Placement<K, T>,
    [bytes, rest]: [&'b [u8]; 2],
) -> impl Iterator<Item = Put<'b>> + use<'b, K, T> {
    let more = Put { offset: offset + bytes.len() as u64, bytes: rest };
    let bytes = if kept { &[] } else { bytes };
    [Put { offset, bytes }, more].into_iter().filter(|put| !put.bytes.is_empty())
}

/// Writes chunks of datasets in one store, in the order in which they lie there.
fn write<'p, F: Family>(
    placed: impl IntoIterator<Item = &'p Placed<'p, F>>,
) -> Result<(), F::Error> {
    let (mut all, mut store) = (Vec::new(), None);
    for one in placed {
        store.get_or_insert(one.store);
        let pairs = one.placements.iter().zip(&one.pieces);
        all.extend(pairs.flat_map(|(placement, pieces)| puts(placement, *pieces)));
    }
    let Some(store) = store else { return Ok(()) };
    all.sort_by_key(|put| put.offset);
    shield(|| store.put(&all))
}

/// Places and writes chunks of a dataset that are in no slot.
pub(crate) fn store<F: Family>(
    member: &Member<F>,
    store: &dyn ChunkStore<F>,
    chunks: Vec<Loose<'_, F>>,
) -> Result<(), F::Error> {
    let placed = Placed::new(member, store, chunks)?;
    let written = write([&placed]);
    placed.settle(written)
}
