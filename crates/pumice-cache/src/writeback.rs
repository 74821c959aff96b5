//! Writing dirty chunks back: encoded in parallel, entered in the index at once, written at once.
//!
//! A chunk that is being written back stays in its slot and stays readable; a write may change it
//! as soon as it is encoded. Its version tells afterwards whether what was written is still what
//! is in the slot. A chunk whose encoding, placing or writing failed stays dirty.

use crate::budget::{Reservation, Saving};
use crate::cache::Shared;
use crate::layout::{Encoded, Layout, Placement, Put};
use crate::member::Member;
use crate::shield::shield;
use crate::slot::Slot;
use crate::sync::{Arc, Mutex};

/// A chunk ready to be stored.
struct Ready<L: Layout> {
    slot: Arc<Slot<L>>,
    version: u64,
    encoded: Encoded<L::Tag>,
}

impl<L: Layout> Shared<L> {
    /// Writes back what is given, all of it even if some of it fails; returns the first error.
    pub(crate) fn save(&self, mut saving: Saving<'_, L>) -> Result<(), L::Error> {
        saving.sort();
        let mut result = Ok(());
        while !saving.slots().is_empty() {
            let (mut reservation, count) = self.reserve_encodings(saving.slots());
            let batch = saving.split_front(count);
            result = result.and(self.save_batch(batch.slots(), &mut reservation));
        }
        result
    }

    fn save_batch(
        &self,
        slots: &[Arc<Slot<L>>],
        reservation: &mut Reservation<'_, L>,
    ) -> Result<(), L::Error> {
        let mut result = Ok(());
        let mut ready = Vec::with_capacity(slots.len());
        for outcome in self.encode_all(slots) {
            match outcome {
                Ok(Some(chunk)) => ready.push(chunk),
                Ok(None) => {}
                Err(error) => result = result.and(Err(error)),
            }
        }
        reservation.resize(ready.iter().map(|chunk| chunk.encoded.bytes.len() as u64).sum());
        for same in ready.chunk_by(|a, b| a.slot.member.id == b.slot.member.id) {
            let member = &same[0].slot.member;
            let encoded = same.iter().map(|chunk| (&chunk.slot.key, &chunk.encoded));
            let stored = shield(|| store(member, encoded));
            if stored.is_ok() {
                same.iter().for_each(|chunk| self.mark_saved(chunk));
            }
            result = result.and(stored);
        }
        result
    }

    fn encode_all(&self, slots: &[Arc<Slot<L>>]) -> Vec<Result<Option<Ready<L>>, L::Error>> {
        if let [slot] = slots {
            return vec![encode(slot)];
        }
        let results: Vec<_> = slots.iter().map(|_| Mutex::new(Ok(None))).collect();
        self.executor.run(slots.len(), &|i| *results[i].lock() = encode(&slots[i]));
        results.into_iter().map(Mutex::into_inner).collect()
    }

    fn mark_saved(&self, chunk: &Ready<L>) {
        let body = chunk.slot.read();
        // The body is held: no write can come between the question and the note.
        if body.version == chunk.version {
            self.budget.clean(&chunk.slot);
        }
    }

    /// Writes back a chunk that is in no slot.
    pub(crate) fn save_now(
        &self,
        member: &Member<L>,
        key: &L::Key,
        chunk: &L::Chunk,
    ) -> Result<(), L::Error> {
        let encoded = member.layout.encode(key, chunk)?;
        store(member, [(key, &encoded)].into_iter())
    }

    /// Writes back all dirty chunks of a dataset whose writes are held back.
    pub(crate) fn flush_member(&self, member: &Member<L>, evict: bool) -> Result<(), L::Error> {
        let mut dirty = self.budget.dirty_among(member.table.slots());
        dirty.sort_by(|a, b| a.key.cmp(&b.key));
        let result = self.save(self.budget.begin_saving(dirty));
        if evict {
            member.table.slots().iter().for_each(|slot| self.leave_whole(slot));
        }
        // Requests that ended meanwhile could not let go what was being saved.
        result.and(self.trim())
    }

    /// Drops a chunk of a dataset whose requests are held back, dirty or not.
    pub(crate) fn discard(&self, slot: &Arc<Slot<L>>) {
        let _saving = self.budget.hold_saves(slot);
        self.remove(slot, slot.write(), false);
    }

    /// Deletes a chunk in which a write has left nothing. The write still has its place.
    pub(crate) fn delete(&self, slot: &Arc<Slot<L>>) -> Result<(), L::Error> {
        let _saving = self.budget.hold_saves(slot);
        shield(|| slot.member.layout.delete(&slot.key))?;
        self.remove(slot, slot.write(), false);
        Ok(())
    }
}

fn encode<L: Layout>(slot: &Arc<Slot<L>>) -> Result<Option<Ready<L>>, L::Error> {
    let body = slot.read();
    let Some(chunk) = &body.chunk else { return Ok(None) };
    let encoded = shield(|| slot.member.layout.encode(&slot.key, chunk))?;
    Ok(Some(Ready { slot: Arc::clone(slot), version: body.version, encoded }))
}

/// Places and writes chunks of one dataset.
fn store<'e, L: Layout>(
    member: &Member<L>,
    chunks: impl Iterator<Item = (&'e L::Key, &'e Encoded<L::Tag>)> + Clone,
) -> Result<(), L::Error> {
    let place = |(key, encoded): (&L::Key, &Encoded<L::Tag>)| Placement {
        key: key.clone(),
        len: encoded.bytes.len() as u64,
        tag: encoded.tag.clone(),
        offset: 0,
    };
    let mut placements: Vec<_> = chunks.clone().map(place).collect();
    member.layout.insert(&mut placements)?;
    let put = |((_, encoded), placement): ((_, &'e Encoded<L::Tag>), &Placement<_, _>)| Put {
        offset: placement.offset,
        bytes: &encoded.bytes,
    };
    let mut puts: Vec<_> = chunks.zip(&placements).map(put).collect();
    puts.sort_by_key(|put| put.offset);
    member.layout.put(&puts)?;
    let bytes = puts.iter().map(|put| put.bytes.len() as u64).sum();
    member.counters.write_backs.add(puts.len() as u64);
    member.counters.bytes_written.add(bytes);
    Ok(())
}
