//! Elements that wait for a commit. They refer to something that only the commit brings (the global
//! heap, new objects) and would overwrite committed ones in place. A program that ends before the
//! commit must leave the old elements, which refer to existing objects. Elements in space that was
//! taken early wait as well: committed metadata still refers to the old bytes
//! (`allocator/early.rs`).
//!
//! They are staged images like those of metadata, journalled and written to their places with all
//! others. But they are read in pieces of any size: [`Medium::fetch`] lays them over the bytes of
//! the file.
//!
//! Reads find them among [`Images`] of their own.
//!
//! Invariants:
//! - Held images do not overlap. Each begins where the elements of a chunk or of a contiguous
//!   dataset begin, and is dropped when their space is given back.
//! - A reader keeps writers of the same bytes away, as the cache does for every chunk. So a read
//!   that asks for images first and then reads the file sees the last write: an image that a commit
//!   writes to its place meanwhile has the same bytes there.
//! - Elements are held, or written to new space, as a change ([`Medium::change`]): the objects that
//!   they refer to came before, and are in the same commit.

use super::images::{Image, Images};
use super::{Medium, State};
use crate::Result;
use crate::zeroed;
use pumice_bytes::DecodeError;
use pumice_store::{ReadOp, WriteOp};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The most bytes of elements that are held in memory: in one piece of a contiguous dataset, or in all
/// chunks together.
pub const MOST_HELD: u64 = 64 << 20;

/// The most images of elements that are held: each takes memory beside its bytes.
const MOST_IMAGES: usize = 1 << 17;

/// Which images are elements, for callers who have the lock.
pub(super) struct Held {
    list: Arc<Images>,
    /// Images of all elements of a dataset.
    whole: BTreeSet<u64>,
    /// Bytes of the other images.
    bytes: u64,
    /// The most that may be held.
    most: u64,
}

impl Default for Held {
    fn default() -> Self {
        Self { list: Arc::default(), whole: BTreeSet::new(), bytes: 0, most: MOST_HELD }
    }
}

impl Held {
    /// The list for callers without the lock.
    pub(super) fn list(&self) -> Arc<Images> {
        self.list.clone()
    }

    fn replace(&mut self, address: u64, image: Option<Image>) {
        let new = image.as_ref().map_or(0, |image| image.len() as u64);
        let old = self.list.replace(address, image).map_or(0, |image| image.len() as u64);
        let old = if self.whole.remove(&address) { 0 } else { old };
        self.bytes = (self.bytes + new).saturating_sub(old);
    }

    /// Lets an image of a whole dataset not count among those of chunks.
    fn count_apart(&mut self, address: u64, length: u64) {
        if self.whole.insert(address) {
            self.bytes = self.bytes.saturating_sub(length);
        }
    }

    /// Notes that there is no image at `address` any more.
    pub(super) fn remove(&mut self, address: u64) {
        if !self.list.is_empty() {
            self.replace(address, None);
        }
    }

    /// Whether one more image, or so many more bytes at `address`, would exceed the limit.
    fn is_full(&self, address: u64, length: u64) -> bool {
        let full = self.list.count() >= MOST_IMAGES;
        (full || self.bytes.saturating_add(length) > self.most) && !self.list.contains(address)
    }
}

/// A held image that a read has bytes of.
pub(super) struct Piece {
    /// In the store.
    start: u64,
    bytes: Image,
}

impl Piece {
    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    /// Copies the bytes of a read into its buffer; its offset is the store's.
    fn copy_to(&self, ReadOp { offset, buffer }: &mut ReadOp<'_>) {
        let (from, upto) = (self.start.max(*offset), self.end().min(*offset + buffer.len() as u64));
        if from < upto {
            let there = (from - *offset) as usize..(upto - *offset) as usize;
            let here = (from - self.start) as usize..(upto - self.start) as usize;
            buffer[there].copy_from_slice(&self.bytes[here]);
        }
    }
}

/// Copies the bytes of reads into their buffers; offsets are the store's. Pieces ascend and do not
/// overlap.
pub(super) fn lay_over(pieces: &[Piece], ops: &mut [ReadOp<'_>]) {
    if pieces.is_empty() {
        return;
    }
    for op in ops {
        let first = pieces.partition_point(|piece| piece.end() <= op.offset);
        let end = op.offset + op.buffer.len() as u64;
        let overlapping = pieces[first..].iter().take_while(|piece| piece.start < end);
        overlapping.for_each(|piece| piece.copy_to(op));
    }
}

impl Medium {
    /// Writes elements that refer to something: in place if nothing committed is there, otherwise
    /// with the next commit. Not to be called during a [change](Self::change).
    ///
    /// A caller who asks [`cannot_hold`](Self::cannot_hold) for each of many elements before any is
    /// written may exceed the limit. Only where addresses are `fixed`, so that there is no choice,
    /// elements beyond the limit are written in place at once.
    pub fn put_or_hold(&self, ops: &mut [WriteOp<'_>], fixed: bool) -> Result<()> {
        self.require_writable()?;
        let _change = self.change();
        let mut at_once = Vec::new();
        {
            let mut state = self.state();
            for WriteOp { offset, bytes } in ops {
                let (offset, bytes) = (*offset, *bytes);
                if state.held.list.has_all(offset, bytes.len() as u64) {
                    state.write_held(offset, bytes);
                    continue;
                }
                let new = state.allocator.is_fresh(offset);
                match new || fixed && state.held.is_full(offset, bytes.len() as u64) {
                    true => at_once.push(WriteOp { offset, bytes }),
                    false => {
                        state.check_apart(offset, bytes.len() as u64)?;
                        state.hold(offset, bytes.to_vec());
                    }
                }
            }
        }
        if at_once.is_empty() { Ok(()) } else { self.put_stored(&mut at_once) }
    }

    /// Holds all elements of a contiguous dataset, before some of them are changed: they wait for
    /// the next commit, and what is [put](Self::put) there changes them. To be called during a
    /// [change](Self::change) and while nobody else writes there.
    pub fn hold_all(&self, address: u64, length: u64) -> Result<()> {
        if self.state().keep_holding(address, length) {
            return Ok(());
        }
        self.state().check_apart(address, length)?;
        let mut elements = zeroed(length as usize)?;
        self.fetch(&mut [ReadOp { offset: address, buffer: &mut elements }])?;
        let mut state = self.state();
        state.hold(address, elements);
        state.held.count_apart(address, length);
        Ok(())
    }

    /// Whether elements that replace those at `address` would have to be held and exceed the limit.
    pub fn cannot_hold(&self, address: u64, length: u64) -> bool {
        let state = self.state();
        state.held.is_full(address, length) && !state.allocator.is_fresh(address)
    }

    /// Limits the bytes that are held.
    pub fn hold_at_most(&self, bytes: u64) {
        self.state().held.most = bytes;
    }

    /// Writes bytes into held images. Returns all others; `None` if none was held.
    pub(super) fn put_into_held<'b>(&self, ops: &[WriteOp<'b>]) -> Option<Vec<WriteOp<'b>>> {
        let has = |op: &WriteOp<'_>| !self.held.within(op.offset, op.bytes.len() as u64).is_empty();
        // A commit keeps the lock while it writes: only who has to waits for it.
        if self.held.is_empty() || !ops.iter().any(has) {
            return None;
        }
        let mut state = self.state();
        Some(ops.iter().flat_map(|op| state.write_held(op.offset, op.bytes)).collect())
    }

    /// Answers a read from one image that has all its bytes. Returns whether there is one.
    pub(super) fn read_held(&self, ops: &mut [ReadOp<'_>]) -> bool {
        let ([op], false) = (ops, self.held.is_empty()) else { return false };
        let found = self.held.within(op.offset, op.buffer.len() as u64);
        let [(start, image)] = found.as_slice() else { return false };
        let from = op.offset.checked_sub(*start).map(|from| from as usize);
        let bytes = from.and_then(|from| image.get(from..)?.get(..op.buffer.len()));
        bytes.inspect(|bytes| op.buffer.copy_from_slice(bytes)).is_some()
    }

    /// Images that reads have bytes of, in their order.
    pub(super) fn held_among(&self, ops: &[ReadOp<'_>]) -> Vec<Piece> {
        if self.held.is_empty() {
            return Vec::new();
        }
        let mut found: Vec<Piece> = Vec::new();
        for op in ops {
            for (address, bytes) in self.held.within(op.offset, op.buffer.len() as u64) {
                if let Ok(start) = self.absolute(address) {
                    found.push(Piece { start, bytes });
                }
            }
        }
        found.sort_unstable_by_key(|piece| piece.start);
        found.dedup_by_key(|piece| piece.start);
        found
    }
}

impl State {
    pub(super) fn hold(&mut self, address: u64, bytes: Vec<u8>) {
        let image = Arc::new(bytes);
        let old = self.images.replace(address, Some(image.clone())).map_or(0, |old| old.len());
        self.staged = (self.staged + image.len()).saturating_sub(old);
        self.held.replace(address, Some(image));
    }

    /// Fails for elements that share bytes with held ones: only a damaged file has such.
    fn check_apart(&self, address: u64, length: u64) -> Result<()> {
        let held = self.held.list.within(address, length);
        match held.iter().find(|(start, _)| *start != address) {
            Some((start, image)) => {
                let expected = format!("bytes of one object alone, {length} of them");
                let found = format!("{} of another from {start} on", image.len());
                Err(DecodeError::new("elements", address, expected, found).into())
            }
            None => Ok(()),
        }
    }

    /// Whether an image of this address and length is held. It then stays, whatever commit is under
    /// way.
    fn keep_holding(&mut self, address: u64, length: u64) -> bool {
        let holds = self.held.list.get(address).is_some_and(|image| image.len() as u64 >= length);
        if holds {
            // One that a commit writes is replaced by another.
            self.images.change(&self.held.list, address, |_| ());
        }
        holds
    }

    /// Writes bytes into held images, and returns those for which there are none.
    fn write_held<'b>(&mut self, address: u64, bytes: &'b [u8]) -> Vec<WriteOp<'b>> {
        let piece =
            |from: u64, upto: u64| &bytes[(from - address) as usize..(upto - address) as usize];
        let (mut at, end) = (address, address + bytes.len() as u64);
        let mut rest = Vec::new();
        for (start, image) in self.held.list.within(address, bytes.len() as u64).into_iter().rev() {
            let (from, upto) = (start.max(at), (start + image.len() as u64).min(end));
            drop(image);
            if at < from {
                rest.push(WriteOp { offset: at, bytes: piece(at, from) });
            }
            let here = (from - start) as usize..(upto - start) as usize;
            self.images.change(&self.held.list, start, |image| {
                image[here].copy_from_slice(piece(from, upto));
            });
            at = upto;
        }
        if at < end {
            rest.push(WriteOp { offset: at, bytes: piece(at, end) });
        }
        rest
    }

    /// Forgets elements that were held for space that is given back.
    pub(super) fn drop_held(&mut self, address: u64, length: u64) {
        if self.held.list.is_empty() {
            return;
        }
        let gone = self.held.list.within(address, length);
        gone.into_iter().for_each(|(address, _)| self.drop_image(address));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::MetadataIo;
    use pumice_format::Sizes;
    use pumice_store::{MemoryStore, Store};

    fn medium() -> (Arc<MemoryStore>, Medium) {
        let store = Arc::new(MemoryStore::new((0..100).collect()));
        (store.clone(), Medium::new(store, 10, 90, Sizes::default(), true))
    }

    fn read(medium: &Medium, offset: u64, length: usize) -> Vec<u8> {
        let mut buffer = vec![0; length];
        medium.fetch(&mut [ReadOp { offset, buffer: &mut buffer }]).unwrap();
        buffer
    }

    #[test]
    fn held_bytes_are_seen_by_every_read_and_are_in_the_file_with_a_commit() {
        let (store, medium) = medium();
        let ops = [(20, &[200u8; 5][..]), (30, &[201; 3])];
        let mut ops = ops.map(|(offset, bytes)| WriteOp { offset, bytes });
        medium.put_or_hold(&mut ops, false).unwrap();
        let stored = |offset: u64| {
            let mut byte = [0];
            store.read_at(offset, &mut byte).unwrap();
            byte[0]
        };
        assert_eq!((stored(30), stored(40)), (30, 40), "the file has the old ones");
        assert_eq!(read(&medium, 18, 4), [28, 29, 200, 200]);
        assert_eq!(read(&medium, 22, 10), [200, 200, 200, 35, 36, 37, 38, 39, 201, 201]);
        assert_eq!(read(&medium, 21, 2), [200; 2]);
        assert_eq!(medium.waiting_bytes(), 8);
        let snapshot = medium.begin_commit().unwrap().unwrap();
        medium.commit(snapshot, |_, _| Ok(vec![10; 4])).unwrap();
        assert_eq!((stored(30), stored(40)), (200, 201));
        assert_eq!(medium.waiting_bytes(), 0);
        assert_eq!(medium.held.count(), 0);
    }

    /// A store that lets another thread read the file before each of its writes is done.
    struct Slow {
        inner: Arc<MemoryStore>,
        medium: std::sync::Weak<Medium>,
        /// The bytes that were read, `None` where the read had to wait for the write.
        read: std::sync::Mutex<Vec<Option<Vec<u8>>>>,
    }

    impl Store for Slow {
        fn len(&self) -> std::io::Result<u64> {
            self.inner.len()
        }

        fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<()> {
            self.inner.read_at(offset, buffer)
        }

        fn write_at(&self, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
            let Some(medium) = self.medium.upgrade() else { return Ok(()) };
            let (sender, receiver) = std::sync::mpsc::channel();
            std::thread::spawn(move || {
                let elements = read(&medium, 18, 10);
                sender.send([elements, medium.read(50, 4).unwrap()].concat())
            });
            // As long as it takes who does not wait, however busy the machine is.
            let found = receiver.recv_timeout(std::time::Duration::from_secs(20)).ok();
            self.read.lock().unwrap().push(found);
            self.inner.write_at(offset, bytes)
        }

        fn set_len(&self, len: u64) -> std::io::Result<()> {
            self.inner.set_len(len)
        }

        fn sync(&self) -> std::io::Result<()> {
            self.inner.sync()
        }
    }

    #[test]
    fn reads_do_not_wait_for_a_commit_that_writes_and_see_what_it_will_have_written() {
        let (inner, _) = medium();
        let mut slow = None;
        let medium = Arc::new_cyclic(|medium| {
            let store = Slow { inner, medium: medium.clone(), read: Default::default() };
            let store = Arc::new(store);
            slow = Some(store.clone());
            Medium::new(store, 10, 90, Sizes::default(), true)
        });
        medium.put_or_hold(&mut [WriteOp { offset: 20, bytes: &[200; 5] }], false).unwrap();
        medium.stage(50, vec![99; 4]);
        let snapshot = medium.begin_commit().unwrap().unwrap();
        medium.commit(snapshot, |_, _| Ok(vec![10; 4])).unwrap();
        let seen = slow.unwrap().read.lock().unwrap().clone();
        assert!(seen.len() > 3, "the journal, the elements, the superblock");
        let elements = vec![28, 29, 200, 200, 200, 200, 200, 35, 36, 37];
        let expected = [elements.clone(), vec![99; 4]].concat();
        assert!(seen.iter().all(|found| found.as_ref() == Some(&expected)), "{seen:?}");
        assert_eq!((read(&medium, 18, 10), medium.held.count()), (elements, 0));
        assert_eq!((medium.read(50, 4).unwrap(), medium.images.count()), (vec![99; 4], 0));
    }

    #[test]
    fn held_bytes_that_are_replaced_and_given_back_are_counted() {
        let (_, medium) = medium();
        medium.hold_at_most(10);
        for bytes in [[1; 8], [2; 8]] {
            medium.put_or_hold(&mut [WriteOp { offset: 20, bytes: &bytes }], false).unwrap();
        }
        assert_eq!((medium.waiting_bytes(), medium.held.count()), (8, 1));
        assert!(medium.cannot_hold(40, 3) && !medium.cannot_hold(40, 2));
        assert!(!medium.cannot_hold(20, 8), "in place of those that are there");
        medium.free_raw(20, 8);
        assert_eq!(medium.held.count(), 0);
        assert!(!medium.cannot_hold(40, 10));
    }

    #[test]
    fn the_file_is_not_asked_for_what_is_held() {
        let (store, medium) = medium();
        medium.put_or_hold(&mut [WriteOp { offset: 20, bytes: &[1, 2, 3, 4, 5] }], false).unwrap();
        store.set_len(31).unwrap();
        for (offset, expected) in [(20, &[1, 2, 3, 4, 5][..]), (21, &[2, 3]), (24, &[5])] {
            assert_eq!(read(&medium, offset, expected.len()), expected);
        }
        for (offset, length) in [(19, 3), (23, 3), (25, 1)] {
            let mut buffer = vec![0; length];
            let mut ops = [ReadOp { offset, buffer: &mut buffer }];
            assert!(medium.fetch(&mut ops).is_err(), "{offset}");
        }
    }

    #[test]
    fn all_elements_of_a_piece_wait_for_a_commit_that_begins_after_the_change() {
        let (store, medium) = medium();
        medium.hold_at_most(4);
        let stored = || {
            let mut bytes = [0; 8];
            store.read_at(30, &mut bytes).unwrap();
            bytes
        };
        let write = |offset, bytes: &[u8]| medium.put(&mut [WriteOp { offset, bytes }]).unwrap();
        medium.hold_all(20, 8).unwrap();
        write(22, &[1; 3]);
        assert!(!medium.cannot_hold(40, 4), "they do not count among those of chunks");
        assert_eq!(stored(), [30, 31, 32, 33, 34, 35, 36, 37]);
        let first = medium.begin_commit().unwrap().unwrap();
        medium.hold_all(20, 8).unwrap();
        medium.commit(first, |_, _| Ok(vec![10; 4])).unwrap();
        assert_eq!(stored(), [30, 31, 1, 1, 1, 35, 36, 37]);
        // The first commit has ended since, and these wait for the next all the same.
        write(20, &[2; 4]);
        assert_eq!(stored(), [30, 31, 1, 1, 1, 35, 36, 37]);
        assert_eq!(read(&medium, 20, 8), [2, 2, 2, 2, 1, 35, 36, 37]);
        let second = medium.begin_commit().unwrap().unwrap();
        medium.commit(second, |_, _| Ok(vec![10; 4])).unwrap();
        assert_eq!(stored(), [2, 2, 2, 2, 1, 35, 36, 37]);
        assert_eq!((medium.waiting_bytes(), medium.held.count()), (0, 0));
        assert!(medium.cannot_hold(40, 5) && !medium.cannot_hold(40, 4));
    }

    #[test]
    fn what_is_written_to_held_bytes_is_read_at_once_and_is_not_in_a_commit_that_began_before() {
        let (store, medium) = medium();
        medium.free_raw(20, 8);
        assert_eq!(medium.allocate_raw(8).unwrap(), 20, "what waits for a commit");
        assert_eq!(read(&medium, 18, 12), [28, 29, 0, 0, 0, 0, 0, 0, 0, 0, 38, 39]);
        let write = |offset, bytes: &[u8]| medium.put(&mut [WriteOp { offset, bytes }]).unwrap();
        write(22, &[1; 3]);
        assert_eq!(read(&medium, 20, 8), [0, 0, 1, 1, 1, 0, 0, 0]);
        let snapshot = medium.begin_commit().unwrap().unwrap();
        // Bytes on both sides are nobody's: these go to the file.
        write(18, &[2; 12]);
        assert_eq!(read(&medium, 17, 14), [27, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 40]);
        medium.commit(snapshot, |_, _| Ok(vec![10; 4])).unwrap();
        let mut stored = [9; 12];
        store.read_at(28, &mut stored).unwrap();
        assert_eq!(stored, [2, 2, 0, 0, 1, 1, 1, 0, 0, 0, 2, 2], "as it began");
        assert_eq!(read(&medium, 18, 12), [2; 12]);
        assert_eq!((medium.waiting_bytes(), medium.held.count()), (8, 1));
        let snapshot = medium.begin_commit().unwrap().unwrap();
        medium.commit(snapshot, |_, _| Ok(vec![10; 4])).unwrap();
        store.read_at(28, &mut stored).unwrap();
        assert_eq!((stored, medium.held.count()), ([2; 12], 0));
    }

    #[test]
    fn new_space_is_written_at_once_and_space_given_back_holds_nothing() {
        let (store, medium) = medium();
        let new = medium.allocate_raw(16).unwrap();
        let bytes = [7; 4];
        medium.put_or_hold(&mut [WriteOp { offset: new + 8, bytes: &bytes }], false).unwrap();
        assert_eq!(store.len().unwrap(), 10 + new + 12);
        let mut ops = [20, 24].map(|offset| WriteOp { offset, bytes: &bytes });
        medium.put_or_hold(&mut ops, false).unwrap();
        medium.free_raw(16, 8);
        assert_eq!(read(&medium, 20, 8), [30, 31, 32, 33, 7, 7, 7, 7]);
        medium.free_raw(24, 4);
        assert_eq!(read(&medium, 20, 8), [30, 31, 32, 33, 34, 35, 36, 37]);
    }

    #[test]
    fn elements_that_share_bytes_with_others_are_refused() {
        let (_, medium) = medium();
        let mut ops = [WriteOp { offset: 24, bytes: &[200; 4] }];
        medium.put_or_hold(&mut ops, false).unwrap();
        for (address, length) in [(20, 30), (25, 10), (20, 5)] {
            let error = medium.hold_all(address, length).unwrap_err().to_string();
            assert!(error.contains("4 of another from 24 on"), "{error}");
        }
        let mut ops = [WriteOp { offset: 20, bytes: &[7; 30] }];
        assert!(medium.put_or_hold(&mut ops, false).is_err());
        assert_eq!(read(&medium, 22, 8), [32, 33, 200, 200, 200, 200, 38, 39]);
        medium.hold_all(24, 10).unwrap();
    }
}
