//! Rewrites chunks for a new extent. A chunk is taken from memory or read; chunks are changed on
//! all threads and written together to space that nothing refers to, a few megabytes at a time,
//! which the cache's budget counts.

use super::{Changes, Fate};
use crate::dataset::DatasetState;
use crate::{Error, Result};
use pumice_cache::{Encoded, Exclusive, Layout, Outcome, Part};
use pumice_format::index::ChunkRecord;
use pumice_layout::{Chunk, ChunkTable, DatasetLayout, Recoder, WriteRequest};
use pumice_space::{Dims, Selection};
use pumice_store::WriteOp;
use std::sync::{Mutex, PoisonError};

/// Bytes of chunks that are changed at a time.
const BATCH: u64 = 8 << 20;

/// A chunk that must change.
pub(super) struct Affected {
    pub(super) key: Dims,
    pub(super) fate: Fate,
    /// About the memory that it takes to change it.
    pub(super) bytes: u64,
}

/// The form of a chunk before the change.
enum Image {
    Chunk(Chunk),
    Stored(Vec<u8>, ChunkRecord),
}

/// The form of a chunk after the change.
enum Form {
    /// The one that it has.
    Old,
    New(Encoded<ChunkRecord>),
    /// The chunk is empty.
    None,
}

/// A changed chunk.
struct Changed {
    form: Form,
    /// Elements that go and refer to the global heap.
    dropped: Vec<u8>,
}

/// The parameters of rewriting a dataset's chunks for another extent.
pub(super) struct Rewriting<'a> {
    dataset: &'a DatasetState,
    pub(super) table: &'a ChunkTable,
    pub(super) exclusive: &'a Exclusive<'a, DatasetLayout>,
    pub(super) dims: &'a [u64],
    recoder: Recoder,
}

impl<'a> Rewriting<'a> {
    pub(super) fn new(
        dataset: &'a DatasetState,
        table: &'a ChunkTable,
        exclusive: &'a Exclusive<'a, DatasetLayout>,
        dims: &'a [u64],
    ) -> Result<Self> {
        let recoder = Recoder::new(&dataset.layout, dims)?;
        Ok(Rewriting { dataset, table, exclusive, dims, recoder })
    }

    /// Writes the new form of all chunks; nothing refers to it yet.
    pub(super) fn run(&self, affected: Vec<Affected>, changes: &mut Changes) -> Result<()> {
        let mut batch = Vec::new();
        let mut bytes = 0_u64;
        for chunk in affected {
            // Of a chunk that is deleted, only its references matter.
            if matches!(chunk.fate, Fate::Gone) && !self.dataset.uses_global_heap() {
                changes.gone.push(chunk.key);
                continue;
            }
            if !batch.is_empty() && bytes.saturating_add(chunk.bytes) > BATCH {
                self.rewrite(std::mem::take(&mut batch), bytes, changes)?;
                bytes = 0;
            }
            bytes = bytes.saturating_add(chunk.bytes);
            batch.push(chunk);
        }
        self.rewrite(batch, bytes, changes)
    }

    fn rewrite(&self, batch: Vec<Affected>, bytes: u64, changes: &mut Changes) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        let _room = self.exclusive.room(bytes)?;
        let images = self.images(&batch)?;
        let changed = self.change_all(&batch, images)?;
        let mut kept = Vec::with_capacity(batch.len());
        for (Affected { key, .. }, changed) in batch.into_iter().zip(changed) {
            changes.dropped.extend(changed.dropped);
            match changed.form {
                Form::Old => {}
                Form::New(encoded) => kept.push((key, encoded)),
                Form::None => changes.gone.push(key),
            }
        }
        self.write(kept, changes)
    }

    /// The chunks before the change. Chunks that are not in memory now stay out of it and stay
    /// where they are.
    fn images(&self, batch: &[Affected]) -> Result<Vec<Option<Image>>> {
        let resident = |chunk: &Affected| self.exclusive.peek(&chunk.key, Chunk::clone);
        let mut images: Vec<_> =
            batch.iter().map(|chunk| resident(chunk).map(Image::Chunk)).collect();
        let absent = |at: &usize| images[*at].is_none();
        let missing: Vec<usize> = (0..batch.len()).filter(absent).collect();
        let keys: Vec<_> = missing.iter().map(|&at| batch[at].key.clone()).collect();
        let found = missing.into_iter().zip(self.table.lookup(&keys)?);
        let mut found: Vec<_> = found.filter_map(|(at, record)| Some((at, record?))).collect();
        found.sort_by_key(|(_, record)| record.address);
        let bytes = self.table.read_each(found.iter().map(|(_, record)| record))?;
        for ((at, record), bytes) in found.into_iter().zip(bytes) {
            images[at] = Some(Image::Stored(bytes, record));
        }
        Ok(images)
    }

    /// Changes chunks on all threads.
    fn change_all(&self, batch: &[Affected], images: Vec<Option<Image>>) -> Result<Vec<Changed>> {
        let work: Vec<_> = images.into_iter().map(|image| Mutex::new((image, None))).collect();
        self.dataset.cache().executor().run(work.len(), &|at| {
            // Each chunk has its own thread: the lock is for the compiler.
            let mut one = work[at].lock().unwrap_or_else(PoisonError::into_inner);
            let image = one.0.take();
            one.1 = Some(self.change(&batch[at], image));
        });
        let mut changed = Vec::with_capacity(work.len());
        for one in work {
            let (_, outcome) = one.into_inner().unwrap_or_else(PoisonError::into_inner);
            let lost = || Error::Internal("a chunk was not changed".into());
            changed.push(outcome.unwrap_or_else(|| Err(lost()))?);
        }
        Ok(changed)
    }

    fn change(&self, affected: &Affected, image: Option<Image>) -> Result<Changed> {
        let (key, layout) = (&affected.key, &self.dataset.layout);
        let mut chunk = match image {
            Some(Image::Chunk(chunk)) => chunk,
            Some(Image::Stored(bytes, record)) => {
                let announced = layout.announced_cells(&record);
                let chunk = layout.decode(key, bytes, &layout.stored(record), Part::All)?;
                // Decoding drops cells beyond the extent.
                if matches!(affected.fate, Fate::Masked)
                    && layout.defined_cells(&chunk) == announced
                {
                    return Ok(Changed { form: Form::Old, dropped: Vec::new() });
                }
                chunk
            }
            None => return Ok(Changed { form: Form::None, dropped: Vec::new() }),
        };
        let dropped = self.dropped(key, &chunk)?;
        let form = match &affected.fate {
            Fate::Gone => Form::None,
            Fate::Cut(cells) if self.erase(key, &mut chunk, cells.clone())? => Form::None,
            Fate::Masked if layout.defined_cells(&chunk) == Some(0) => Form::None,
            Fate::Cut(_) | Fate::Recoded | Fate::Masked | Fate::Same => {
                Form::New(self.recoder.encode(key, &chunk)?)
            }
        };
        Ok(Changed { form, dropped })
    }

    /// Removes cells from a chunk; returns whether the chunk is empty.
    fn erase(&self, key: &Dims, chunk: &mut Chunk, cells: Selection) -> Result<bool> {
        let mut erase = WriteRequest::Erase { cells };
        let outcome = self.dataset.layout.gather(key, chunk, &mut erase)?;
        Ok(outcome == Outcome::Delete)
    }

    /// The elements of a chunk that refer to the global heap and lie outside of the new extent.
    fn dropped(&self, key: &Dims, chunk: &Chunk) -> Result<Vec<u8>> {
        let mut dropped = Vec::new();
        let geometry = &self.dataset.layout.geometry;
        let Chunk::Dense(cells) = chunk else { return Ok(dropped) };
        if !self.dataset.uses_global_heap() {
            return Ok(dropped);
        }
        let Some(outside) = geometry.outside_of(key, self.dims)? else { return Ok(dropped) };
        let size = geometry.element_size();
        for run in outside.runs(geometry.chunk()) {
            let start = run.start as usize * size;
            let end = start + run.len as usize * size;
            dropped.extend_from_slice(cells.get(start..end).unwrap_or_default());
        }
        Ok(dropped)
    }

    /// Writes chunks to space that the index does not name yet.
    fn write(
        &self,
        chunks: Vec<(Dims, Encoded<ChunkRecord>)>,
        changes: &mut Changes,
    ) -> Result<()> {
        let mut writes = Vec::with_capacity(chunks.len());
        for (key, encoded) in &chunks {
            let pieces = encoded.pieces();
            let record = ChunkRecord { size: encoded.size(), ..encoded.tag.clone() };
            let mut offset = self.table.reserve_elsewhere(key, record)?;
            changes.rewritten.push((key.clone(), offset));
            for bytes in pieces.into_iter().filter(|piece| !piece.is_empty()) {
                writes.push(WriteOp { offset, bytes });
                offset += bytes.len() as u64;
            }
        }
        writes.sort_by_key(|write| write.offset);
        self.table.put(&mut writes)
    }
}
