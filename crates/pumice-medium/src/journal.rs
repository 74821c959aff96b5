//! The journal of a commit: all blocks that it will overwrite, complete at the end of the file
//! before the first of them is overwritten.
//!
//! ```text
//! where the file ends              and behind all of that
//! bytes of block 0                 0  "PumiceJ1"
//! bytes of block 1                 8  how many blocks
//! ...                              16 where the journal begins
//! for each block:                  24 length of the file without it
//!   where it goes, 8 bytes         32 checksum of the list of blocks and of the fields above
//!   its length, 8 bytes            36 zeros
//!   its checksum, 4 bytes
//! ```
//!
//! Addresses are absolute. In a file of several parts, such as a split file, they may be in any
//! part, and the journal is at the end of the first. The last 40 bytes of a file tell whether it
//! ends with a journal. An incomplete journal was never applied and is ignored; a complete one is
//! applied when the file is opened for editing, and read through when it is opened for reading.
//! Programs that do not know journals take one for bytes behind the end of the file, and drop it
//! when they change the file.

use pumice_bytes::{Reader, Writer as _, lookup3};
use pumice_store::{ReadOp, Renewal, Store, WriteOp};
use std::io;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

const SIGNATURE: &[u8; 8] = b"PumiceJ1";
const TRAILER: u64 = 40;
const ENTRY: u64 = 20;

/// The most bytes of blocks that a reader of a journal keeps in memory. The blocks of a longer one
/// are read from the file when they are needed.
const MOST_KEPT: u64 = 8 << 20;

/// Bytes of a block that are copied at a time.
const PIECE: u64 = 1 << 20;

/// The events that a commit survives.
///
/// ```
/// assert_eq!(pumice_medium::journal::Durability::default(), pumice_medium::journal::Durability::Process);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// None: a program that ends within a commit leaves a file with a mixture of old and new
    /// metadata.
    None,
    /// The end of the program at any instruction.
    #[default]
    Process,
    /// The loss of power too: every step of a commit waits for the device.
    Power,
}

/// Writes the journal of `blocks`, absolute places and bytes, where a store of `length` bytes ends.
/// Returns its bytes.
pub fn write(store: &dyn Store, length: u64, blocks: &[(u64, &[u8])]) -> io::Result<u64> {
    let mut writing = Writing::new(store, length);
    writing.finish(blocks)?;
    Ok(writing.at - length)
}

/// A journal that is being written, where a store of `length` bytes ends.
pub struct Writing<'s> {
    store: &'s dyn Store,
    length: u64,
    /// The offset of the next block.
    at: u64,
    list: Vec<u8>,
    count: u64,
}

impl<'s> Writing<'s> {
    /// An empty journal behind the first `length` bytes of a store.
    pub fn new(store: &'s dyn Store, length: u64) -> Self {
        Self { store, length, at: length, list: Vec::new(), count: 0 }
    }

    /// The end of the journal.
    pub fn end(&self) -> u64 {
        self.at
    }

    /// Writes blocks, absolute places and bytes.
    pub fn add(&mut self, blocks: &[(u64, &[u8])]) -> io::Result<()> {
        let ops = self.note(blocks);
        self.store.write_vectored(&ops)
    }

    /// Writes the last blocks and the trailer, which makes the journal complete.
    pub fn finish(&mut self, blocks: &[(u64, &[u8])]) -> io::Result<()> {
        let mut ops = self.note(blocks);
        let mut end = std::mem::take(&mut self.list);
        end.put_bytes(SIGNATURE);
        end.put_u64(self.count);
        end.put_u64(self.length);
        end.put_u64(self.length);
        end.put_checksum(0);
        end.put_u32(0);
        ops.push(WriteOp { offset: self.at, bytes: &end });
        self.store.write_vectored(&ops)?;
        self.at += end.len() as u64;
        Ok(())
    }

    /// Lists blocks, and says how they are written.
    fn note<'b>(&mut self, blocks: &[(u64, &'b [u8])]) -> Vec<WriteOp<'b>> {
        let mut ops = Vec::with_capacity(blocks.len() + 1);
        for (place, bytes) in blocks {
            self.list.put_u64(*place);
            self.list.put_u64(bytes.len() as u64);
            self.list.put_u32(lookup3(bytes));
            ops.push(WriteOp { offset: self.at, bytes });
            self.at += bytes.len() as u64;
        }
        self.count += blocks.len() as u64;
        ops
    }
}

/// Zeroed memory of a length that a file states, or an error.
fn zeroed(length: u64) -> io::Result<Vec<u8>> {
    let length = usize::try_from(length).map_err(|_| io::ErrorKind::OutOfMemory)?;
    crate::zeroed(length).map_err(|_| io::ErrorKind::OutOfMemory.into())
}

/// A complete journal that was found in a store.
pub struct Journal {
    /// In order of the places where they go.
    blocks: Vec<Block>,
    /// The offset of the first block's bytes.
    start: u64,
    /// The bytes of all blocks, unless they are many.
    kept: Option<Vec<u8>>,
    /// Bytes of the store without it, and with it.
    length: u64,
    total: u64,
}

/// The address of a block, and the place of its bytes.
struct Block {
    offset: u64,
    length: u64,
    at: u64,
}

impl Journal {
    /// The journal at the end of a store, if it has a complete one.
    pub fn find(store: &dyn Store) -> io::Result<Option<Self>> {
        let total = store.len()?;
        let Some(trailer_at) = total.checked_sub(TRAILER) else { return Ok(None) };
        let mut trailer = [0; TRAILER as usize];
        store.read_at(trailer_at, &mut trailer)?;
        let Some(rest) = trailer.strip_prefix(SIGNATURE) else { return Ok(None) };
        let mut fields = Reader::new("journal", trailer_at, rest);
        let (Ok(count), Ok(start), Ok(length)) = (fields.u64(), fields.u64(), fields.u64()) else {
            return Ok(None);
        };
        let list_length = count.checked_mul(ENTRY).filter(|&length| length <= trailer_at);
        let Some(list_at) = list_length.map(|length| trailer_at - length) else { return Ok(None) };
        let mut list = zeroed(trailer_at - list_at + 36)?;
        store.read_at(list_at, &mut list)?;
        let mut whole = Reader::new("journal", list_at, &list);
        if whole.skip(list.len() - 4).and_then(|()| whole.checksum()).is_err() || length > start {
            return Ok(None);
        }
        let Some(blocks) = blocks(store, &list, count, start..list_at)? else { return Ok(None) };
        drop(list);
        let kept = match list_at.saturating_sub(start) {
            // Others may cut it while it is read.
            bytes if bytes > MOST_KEPT && !store.is_unlocked() => None,
            bytes => {
                let mut kept = zeroed(bytes)?;
                store.read_at(start, &mut kept)?;
                Some(kept)
            }
        };
        Ok(Some(Self { blocks, start, kept, length, total }))
    }

    /// Reads bytes of blocks, from a place in the store on.
    fn read(&self, store: &dyn Store, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        let from = usize::try_from(at - self.start).unwrap_or(usize::MAX);
        match self.kept.as_ref().and_then(|kept| kept.get(from..)?.get(..buffer.len())) {
            Some(kept) => {
                buffer.copy_from_slice(kept);
                Ok(())
            }
            None => store.read_at(at, buffer),
        }
    }

    /// Finishes the commit that it belongs to.
    pub fn apply(&self, store: &dyn Store) -> io::Result<()> {
        let longest = self.blocks.iter().map(|block| block.length).max().unwrap_or(0);
        let mut piece = zeroed(longest.min(PIECE))?;
        for block in &self.blocks {
            let mut done = 0;
            while done < block.length {
                let bytes = &mut piece[..(block.length - done).min(PIECE) as usize];
                self.read(store, block.at + done, bytes)?;
                store.write_at(block.offset + done, bytes)?;
                done += bytes.len() as u64;
            }
        }
        store.set_len(self.length)
    }

    /// A view of the store with the commit finished, for reading.
    pub fn seen_through(self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        Arc::new(Replayed { store, journal: RwLock::new(Some(self)) })
    }
}

/// A view of a store that others may change, with its last commit finished if it has a journal.
pub fn seen_through_any(store: Arc<dyn Store>) -> io::Result<Arc<dyn Store>> {
    let journal = RwLock::new(Journal::find(&*store)?);
    Ok(Arc::new(Replayed { store, journal }))
}

/// The blocks of a list, if all are as it says. One at a time is in memory.
fn blocks(
    store: &dyn Store,
    list: &[u8],
    count: u64,
    place: std::ops::Range<u64>,
) -> io::Result<Option<Vec<Block>>> {
    let mut entries = Reader::new("journal", place.end, list);
    let total = store.len()?;
    let (mut at, mut blocks) = (place.start, Vec::new());
    // As long as the list, which is in memory.
    blocks.try_reserve_exact(count as usize).map_err(|_| io::ErrorKind::OutOfMemory)?;
    for _ in 0..count {
        let (Ok(offset), Ok(length), Ok(checksum)) = (entries.u64(), entries.u64(), entries.u32())
        else {
            return Ok(None);
        };
        let fits = at.checked_add(length).is_some_and(|end| end <= place.end);
        let before = offset.checked_add(length).is_some_and(|end| end <= place.start);
        // Or in another part of the file, with an end of its own.
        let elsewhere = || Ok::<_, io::Error>(offset > total && store.room(offset)? >= length);
        if !fits || !(before || elsewhere()?) {
            return Ok(None);
        }
        let mut bytes = zeroed(length)?;
        store.read_at(at, &mut bytes)?;
        if lookup3(&bytes) != checksum {
            return Ok(None);
        }
        blocks.push(Block { offset, length, at });
        at += length;
    }
    blocks.sort_unstable_by_key(|block| (block.offset, block.at));
    Ok(Some(blocks))
}

/// A store read through a journal.
struct Replayed {
    store: Arc<dyn Store>,
    journal: RwLock<Option<Journal>>,
}

impl Journal {
    /// Whether an address is behind the journal, in another part of the store.
    fn is_before(&self, offset: u64) -> bool {
        offset > self.total
    }

    /// Replaces bytes that were read by those of the journal's blocks.
    fn patch(&self, store: &dyn Store, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let (blocks, end) = (&self.blocks, offset + buffer.len() as u64);
        // Blocks are disjoint: of those that begin before, only the last can reach into it.
        let first = blocks.partition_point(|block| block.offset <= offset).saturating_sub(1);
        for block in blocks[first..].iter().take_while(|block| block.offset < end) {
            let from = block.offset.max(offset);
            let to = (block.offset + block.length).min(end);
            if from < to {
                let part = &mut buffer[(from - offset) as usize..(to - offset) as usize];
                self.read(store, block.at + (from - block.offset), part)?;
            }
        }
        Ok(())
    }
}

impl Replayed {
    fn journal(&self) -> RwLockReadGuard<'_, Option<Journal>> {
        self.journal.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for Replayed {
    fn len(&self) -> io::Result<u64> {
        let length = self.store.len()?;
        Ok(self.journal().as_ref().map_or(length, |journal| journal.length))
    }

    fn room(&self, offset: u64) -> io::Result<u64> {
        match &*self.journal() {
            Some(journal) if !journal.is_before(offset) => {
                Ok(journal.length.saturating_sub(offset))
            }
            _ => self.store.room(offset),
        }
    }

    fn volume(&self) -> io::Result<u64> {
        let volume = self.store.volume()?;
        let journal = self.journal();
        let own = journal.as_ref().map_or(0, |journal| journal.total - journal.length);
        Ok(volume.saturating_sub(own))
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let journal = self.journal();
        let end = offset.saturating_add(buffer.len() as u64);
        let beyond = |journal: &Journal| end > journal.length && !journal.is_before(offset);
        if journal.as_ref().is_some_and(beyond) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.store.read_at(offset, buffer)?;
        if let Some(journal) = &*journal {
            journal.patch(&*self.store, offset, buffer)?;
        }
        Ok(())
    }

    fn read_vectored(&self, ops: &mut [ReadOp<'_>]) -> io::Result<()> {
        let journal = self.journal();
        self.store.read_vectored(ops)?;
        if let Some(journal) = &*journal {
            ops.iter_mut().try_for_each(|op| journal.patch(&*self.store, op.offset, op.buffer))?;
        }
        Ok(())
    }

    fn write_at(&self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn is_unlocked(&self) -> bool {
        self.store.is_unlocked()
    }

    fn renew(&self, step: Renewal) -> io::Result<()> {
        self.store.renew(step)?;
        if step == Renewal::Look && self.is_unlocked() {
            let found = Journal::find(&*self.store)?;
            *self.journal.write().unwrap_or_else(PoisonError::into_inner) = found;
        }
        Ok(())
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pumice_store::MemoryStore;

    fn written() -> (Arc<MemoryStore>, u64) {
        let store = Arc::new(MemoryStore::new((0..100).collect()));
        let blocks: [(u64, &[u8]); 3] = [(4, b"four"), (8, b"eight"), (90, b"ninety")];
        let length = write(&*store, 100, &blocks).unwrap();
        (store, length)
    }

    fn expected() -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..100).collect();
        bytes[4..8].copy_from_slice(b"four");
        bytes[8..13].copy_from_slice(b"eight");
        bytes[90..96].copy_from_slice(b"ninety");
        bytes
    }

    #[test]
    fn a_complete_journal_is_applied_or_read_through() {
        let (store, length) = written();
        assert_eq!(store.len().unwrap(), 100 + length);
        let seen = Journal::find(&*store).unwrap().unwrap().seen_through(store.clone());
        assert_eq!(seen.len().unwrap(), 100);
        for start in 0..100 {
            for end in start..=100 {
                let mut part = vec![0; end - start];
                seen.read_at(start as u64, &mut part).unwrap();
                assert_eq!(part, expected()[start..end]);
            }
        }
        assert!(seen.read_at(99, &mut [0; 2]).is_err());
        Journal::find(&*store).unwrap().unwrap().apply(&*store).unwrap();
        assert_eq!(store.to_vec(), expected());
        assert!(Journal::find(&*store).unwrap().is_none());
    }

    #[test]
    fn a_long_journal_is_read_from_where_it_is() {
        let block = |number: u64| vec![number as u8 + 1; 3 << 20];
        let length = 5 * (3 << 20);
        let store = Arc::new(MemoryStore::new(vec![0; length]));
        let bytes: Vec<Vec<u8>> = [3, 1, 4].map(block).into();
        let blocks: Vec<(u64, &[u8])> =
            [3, 1, 4].iter().zip(&bytes).map(|(n, bytes)| (n * (3 << 20), &bytes[..])).collect();
        write(&*store, length as u64, &blocks).unwrap();
        let expected = [vec![0; 3 << 20], block(1), vec![0; 3 << 20], block(3), block(4)].concat();
        let journal = Journal::find(&*store).unwrap().unwrap();
        assert!(journal.kept.is_none());
        let seen = journal.seen_through(store.clone());
        for (start, end) in [(0, length), (3 << 20, 4 << 20), ((3 << 20) - 1, (6 << 20) + 1)] {
            let mut part = vec![9; end - start];
            seen.read_at(start as u64, &mut part).unwrap();
            assert!(part == expected[start..end], "{start}..{end}");
        }
        Journal::find(&*store).unwrap().unwrap().apply(&*store).unwrap();
        assert!(store.to_vec() == expected);
    }

    #[test]
    fn a_journal_that_is_cut_or_changed_anywhere_is_none() {
        let (store, length) = written();
        let bytes = store.to_vec();
        for cut in 1..=length as usize {
            let part = MemoryStore::new(bytes[..bytes.len() - cut].to_vec());
            assert!(Journal::find(&part).unwrap().is_none(), "{cut} bytes missing");
        }
        // The last four bytes say nothing.
        for place in 100..bytes.len() - 4 {
            let mut changed = bytes.clone();
            changed[place] ^= 0x10;
            let found = Journal::find(&MemoryStore::new(changed)).unwrap();
            assert!(found.is_none(), "byte {place}");
        }
    }
}
