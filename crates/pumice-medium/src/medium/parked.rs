//! Blocks of chunk indexes that wait for a commit, but not in memory: an index of millions of chunks that one call
//! changes would not fit there. They are written to new space, from where the commit takes them.
//!
//! Only blocks of chunk indexes are parked. Whoever reads one has the lock of its index, or asks
//! under that lock whether the block may have been replaced (`ChunkIndex::trims` of
//! `pumice-structures`).
//!
//! Invariants:
//! - An image in memory is newer than a parked form of the same block.
//! - The place from which a commit under way takes a block is neither written to nor handed out
//!   before the commit is done.

use super::images::Image;
use super::{Medium, State};
use crate::Result;
use crate::metadata::DataKind;
use crate::zeroed;
use pumice_store::{ReadOp, WriteOp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Bytes of parked blocks that are in memory at a time.
pub(super) const TOGETHER: usize = 4 << 20;

/// The range where a block waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ParkedRange {
    pub(super) at: u64,
    pub(super) length: usize,
    /// Whether a commit takes it.
    fixed: bool,
}

/// Parked blocks by address, for readers who do not take the medium's lock.
#[derive(Default)]
pub(super) struct Parked {
    places: RwLock<BTreeMap<u64, ParkedRange>>,
    count: AtomicUsize,
}

/// Which blocks may be parked, and which places are unused.
#[derive(Default)]
pub(super) struct Parking {
    pub(super) list: Arc<Parked>,
    /// Images that are blocks of chunk indexes.
    pub(super) allowed: BTreeSet<u64>,
    /// Bytes of parked blocks.
    pub(super) bytes: usize,
    /// Places that the next commit frees.
    left: Vec<ParkedRange>,
}

impl Parked {
    /// The range of the parked block for `address`.
    pub(super) fn get(&self, address: u64) -> Option<ParkedRange> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.places.read().unwrap_or_else(PoisonError::into_inner).get(&address).copied()
    }

    fn change<T>(&self, change: impl FnOnce(&mut BTreeMap<u64, ParkedRange>) -> T) -> T {
        let mut places = self.places.write().unwrap_or_else(PoisonError::into_inner);
        let changed = change(&mut places);
        self.count.store(places.len(), Ordering::Release);
        changed
    }

    fn starts(&self, address: u64, length: u64) -> Vec<u64> {
        if self.count.load(Ordering::Acquire) == 0 {
            return Vec::new();
        }
        let places = self.places.read().unwrap_or_else(PoisonError::into_inner);
        let range = address..address.saturating_add(length);
        places.range(range).map(|(&start, _)| start).collect()
    }
}

impl Parking {
    /// Whether nothing is parked.
    pub(super) fn is_empty(&self) -> bool {
        self.list.count.load(Ordering::Acquire) == 0
    }

    /// Forgets the block at `address`.
    pub(super) fn remove(&mut self, address: u64) {
        self.allowed.remove(&address);
        if self.is_empty() {
            return;
        }
        if let Some(place) = self.list.change(|places| places.remove(&address)) {
            self.bytes = self.bytes.saturating_sub(place.length);
            if !place.fixed {
                self.left.push(place);
            }
        }
    }

    /// Forgets the block at `address` if it is parked there.
    pub(super) fn remove_same(&mut self, address: u64, place: ParkedRange) {
        if self.list.get(address) == Some(place) {
            self.remove(address);
        }
    }

    /// Forgets blocks that begin in a range.
    pub(super) fn remove_within(&mut self, address: u64, length: u64) {
        for start in self.list.starts(address, length) {
            self.remove(start);
        }
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.list.change(BTreeMap::clear);
        (self.allowed, self.bytes, self.left) = Default::default();
    }

    /// All parked blocks, for a commit, except for those that `newer` says are in memory. Also
    /// returns the places that the commit frees.
    pub(super) fn fix(
        &mut self,
        newer: impl Fn(u64) -> bool,
    ) -> (Vec<(u64, ParkedRange)>, Vec<ParkedRange>) {
        let mut freed = std::mem::take(&mut self.left);
        let mut taken = Vec::new();
        self.list.change(|places| {
            for (&address, place) in places.iter_mut() {
                if !std::mem::replace(&mut place.fixed, true) {
                    freed.push(*place);
                }
                if !newer(address) {
                    taken.push((address, *place));
                }
            }
        });
        (taken, freed)
    }
}

impl Medium {
    /// Writes blocks of chunk indexes that replace others to new space, and drops them from memory.
    pub(super) fn park(&self, state: &mut State) {
        let all = state.images.all();
        let mut parked = Vec::new();
        for (&address, image) in all.iter().filter(|(at, _)| state.parking.allowed.contains(at)) {
            let same = |place: &ParkedRange| !place.fixed && place.length == image.len();
            let at = match state.parking.list.get(address).filter(same) {
                Some(place) => Some(place.at),
                None => state.allocator.allocate(image.len() as u64, DataKind::Header),
            };
            // Where addresses run out, the commit will say so.
            let Some(at) = at else { break };
            parked.push((address, ParkedRange { at, length: image.len(), fixed: false }, image));
        }
        let op = |(_, place, image): &(u64, ParkedRange, &Image)| (place.at, Image::clone(image));
        let images: Vec<_> = parked.iter().map(op).collect();
        let mut ops: Vec<_> =
            images.iter().map(|(offset, bytes)| WriteOp { offset: *offset, bytes }).collect();
        let written = self.put_stored(&mut ops).is_ok();
        for (address, place, _) in parked {
            if !written {
                state.parking.give_up(address, place);
                continue;
            }
            state.parking.put(address, place);
            if let Some(image) = state.images.replace(address, None) {
                state.staged -= image.len().min(state.staged);
            }
        }
    }

    /// Up to `length` bytes of a block that is parked.
    pub(super) fn read_parked(&self, place: ParkedRange, length: usize) -> Result<Vec<u8>> {
        let mut bytes = zeroed(length.min(place.length))?;
        self.fetch_stored(&mut [ReadOp { offset: place.at, buffer: &mut bytes }])?;
        Ok(bytes)
    }

    /// Calls `act` with parked blocks, some at a time: the address of each, and its bytes.
    pub(super) fn for_each_parked(
        &self,
        parked: &[(u64, ParkedRange)],
        mut act: impl FnMut(&[(u64, Vec<u8>)]) -> Result<()>,
    ) -> Result<()> {
        let (mut some, mut bytes) = (Vec::new(), 0);
        for &(address, place) in parked {
            some.push((address, self.read_parked(place, place.length)?));
            bytes += place.length;
            if bytes >= TOGETHER {
                act(&some)?;
                (bytes, some) = (0, Vec::new());
            }
        }
        if some.is_empty() { Ok(()) } else { act(&some) }
    }
}

impl Parking {
    /// Adds a parked block.
    fn put(&mut self, address: u64, place: ParkedRange) {
        self.bytes += place.length;
        if let Some(old) = self.list.change(|places| places.insert(address, place)) {
            self.bytes = self.bytes.saturating_sub(old.length);
            if !old.fixed && old.at != place.at {
                self.left.push(old);
            }
        }
    }

    /// Notes that a place is not needed any more.
    fn give_up(&mut self, address: u64, place: ParkedRange) {
        if self.list.get(address).is_none_or(|known| known.at != place.at) {
            self.left.push(place);
        }
    }
}
