//! Elements that wait for a commit: those that refer to what only the commit brings (the global heap,
//! new objects), and that would overwrite committed ones in place. A program that ends before the commit
//! must leave the old ones, which refer to what there is.
//!
//! They are images like those of metadata, journalled and put in their places with all others. Unlike
//! those, they are read in pieces of any size: [`Medium::fetch`] lays them over what the file has.
//!
//! Invariants:
//! - Held images do not overlap one another: each begins where the elements of a chunk begin, as long as
//!   these have their place, and goes when the place is given back.
//! - Whoever reads bytes keeps writes of them away, as the cache does for every chunk. So a read that asks
//!   for images first, and reads the file then, sees what was written last: an image that a commit puts in
//!   its place meanwhile is the same there.
//! - Elements are held, or written to space that is still new, as a change ([`Medium::change`]): what they
//!   refer to came before, and is in the commit that they are in.

use super::{Medium, State};
use crate::Result;
use pumice_store::{ReadOp, WriteOp};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The most bytes of elements that are held in memory: in one piece of a contiguous dataset, or in all
/// chunks together.
pub(crate) const MOST_HELD: u64 = 64 << 20;

/// Which images are elements.
pub(super) struct Held {
    /// Address and length.
    ranges: BTreeMap<u64, usize>,
    bytes: u64,
    /// The most that may be held.
    most: u64,
    /// How many ranges there are: mostly none, and then reads need not ask for the lock.
    count: Arc<AtomicUsize>,
}

impl Default for Held {
    fn default() -> Self {
        let (ranges, bytes, count) = Default::default();
        Self { ranges, bytes, most: MOST_HELD, count }
    }
}

impl Held {
    /// How many there are, for those who do not have the lock.
    pub(super) fn count(&self) -> Arc<AtomicUsize> {
        self.count.clone()
    }

    fn add(&mut self, address: u64, length: usize) {
        self.ranges.insert(address, length);
        self.bytes += length as u64;
        self.count.store(self.ranges.len(), Ordering::Release);
    }

    /// Takes note that there is no image at `address` any more.
    pub(super) fn remove(&mut self, address: u64) {
        if let Some(length) = self.ranges.remove(&address) {
            self.bytes -= length as u64;
            self.count.store(self.ranges.len(), Ordering::Release);
        }
    }

    /// Addresses of those that have a byte of a range, the last one first.
    fn within(&self, address: u64, length: u64) -> impl Iterator<Item = u64> + '_ {
        let before = self.ranges.range(..address.saturating_add(length)).rev();
        let overlapping = before.take_while(move |&(&at, &held)| at + held as u64 > address);
        overlapping.map(|(&at, _)| at)
    }

    /// Whether so many more bytes at `address` are too many.
    fn is_full(&self, address: u64, length: u64) -> bool {
        !self.ranges.contains_key(&address) && self.bytes.saturating_add(length) > self.most
    }
}

/// A held image that a read has bytes of.
pub(super) struct Piece {
    /// In the store.
    start: u64,
    bytes: Arc<Vec<u8>>,
}

impl Piece {
    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    /// Puts what a read has asked for in its buffer; its offset is that of the store.
    fn copy_to(&self, ReadOp { offset, buffer }: &mut ReadOp<'_>) {
        let (from, upto) = (self.start.max(*offset), self.end().min(*offset + buffer.len() as u64));
        if from < upto {
            let there = (from - *offset) as usize..(upto - *offset) as usize;
            let here = (from - self.start) as usize..(upto - self.start) as usize;
            buffer[there].copy_from_slice(&self.bytes[here]);
        }
    }
}

/// Puts what reads have asked for in their buffers; their offsets are those of the store. Pieces ascend and do
/// not overlap.
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
    /// Writes elements that refer to something: to their places if nothing committed is there, else with
    /// the next commit. Not to be called during a [change](Self::change).
    ///
    /// Who asks [`cannot_hold`](Self::cannot_hold) for each of many before any is written here is told that
    /// all can be: then more are held than may be. Only where places are `fixed`, so that there is no
    /// choice, what is too much goes to its place at once.
    pub(crate) fn put_or_hold(&self, ops: &mut [WriteOp<'_>], fixed: bool) -> Result<()> {
        self.require_writable()?;
        let _change = self.change();
        let mut at_once = Vec::new();
        {
            let mut state = self.state();
            for WriteOp { offset, bytes } in ops {
                let (offset, bytes) = (*offset, *bytes);
                let new = state.allocator.is_in_fresh(offset);
                match new || fixed && state.held.is_full(offset, bytes.len() as u64) {
                    true => at_once.push(WriteOp { offset, bytes }),
                    false => state.hold(offset, bytes),
                }
            }
        }
        if at_once.is_empty() { Ok(()) } else { self.put(&mut at_once) }
    }

    /// Whether elements that replace those at `address` would have to be held, but are too many for that.
    pub(crate) fn cannot_hold(&self, address: u64, length: u64) -> bool {
        let state = self.state();
        state.held.is_full(address, length) && !state.allocator.is_in_fresh(address)
    }

    /// Lets no more than so many bytes be held.
    #[cfg(test)]
    pub(crate) fn hold_at_most(&self, bytes: u64) {
        self.state().held.most = bytes;
    }

    /// Images that reads have bytes of, in their order.
    pub(super) fn held_among(&self, ops: &[ReadOp<'_>]) -> Vec<Piece> {
        if self.held.load(Ordering::Acquire) == 0 {
            return Vec::new();
        }
        let state = self.state();
        let mut found: Vec<u64> = Vec::new();
        for op in ops {
            found.extend(state.held.within(op.offset, op.buffer.len() as u64));
        }
        found.sort_unstable();
        found.dedup();
        let piece = |address: u64| {
            let (bytes, start) = (state.images.get(&address)?, self.absolute(address).ok()?);
            Some(Piece { start, bytes: bytes.clone() })
        };
        found.into_iter().filter_map(piece).collect()
    }
}

impl State {
    fn hold(&mut self, address: u64, bytes: &[u8]) {
        self.drop_image(address);
        self.staged += bytes.len();
        self.images.insert(address, Arc::new(bytes.to_vec()));
        self.held.add(address, bytes.len());
    }

    /// Forgets elements that were held for space that is given back.
    pub(super) fn drop_held(&mut self, address: u64, length: u64) {
        let gone: Vec<u64> = self.held.within(address, length).collect();
        gone.into_iter().for_each(|address| self.drop_image(address));
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
        medium.commit(snapshot, |_, _| vec![10; 4]).unwrap();
        assert_eq!((stored(30), stored(40)), (200, 201));
        assert_eq!(medium.waiting_bytes(), 0);
        assert_eq!(medium.held.load(Ordering::Relaxed), 0);
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
}
