//! The file as space: a store, the allocator of its ranges, and the metadata blocks that the next
//! commit writes.
//!
//! Addresses here are HDF5's: relative to the base address, which is not zero when a user block
//! stands in front.
//!
//! Commits are in `medium/commit.rs`, the memory limit of changed metadata in `medium/pressure.rs`,
//! elements that wait for a commit in `medium/held.rs`.
//!
//! Invariants:
//! - A staged image begins where the block it replaces begins, so a read finds it by address.
//! - The lock of `state` is held for map look-ups, for changing the file's length and while a
//!   commit replaces blocks. No read takes it, and [`Medium::put`] takes it only for bytes that
//!   wait for a commit.

mod commit;
mod finding;
mod held;
mod images;
mod parked;
mod pressure;
mod space;
mod swmr;

pub use commit::Snapshot;
pub use finding::SearchResult;
pub use held::MOST_HELD;
pub use pressure::METADATA_LIMIT;
pub use swmr::{Swmr, again};

use crate::allocator::{Extent, Parts, Purpose};
use crate::journal::Durability;
use crate::metadata::{DataKind, MetadataIo, USUAL_CHUNK_NODE_RANK};
use crate::zeroed;
use crate::{Error, Result};
use finding::Looking;
use held::Held;
use images::Images;
use parked::{Parked, Parking};
use pumice_bytes::DecodeError;
use pumice_filter::scratch;
use pumice_format::Sizes;
use pumice_store::{Announced, ChangedMeanwhile, ReadOp, Store, WriteOp};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU64, AtomicUsize, Ordering};
use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
};

/// A store with an allocator and staged metadata.
pub struct Medium {
    store: Arc<dyn Store>,
    base: u64,
    sizes: Sizes,
    writable: bool,
    /// The path of the file, if it has one, and the reason if it could not be opened for changing.
    name: OnceLock<String>,
    refusal: OnceLock<String>,
    durability: Durability,
    /// The memory for changed metadata.
    limit: usize,
    /// Bytes of changed metadata that is not staged yet: an upper bound.
    unstaged: AtomicUsize,
    /// The bytes of changes from which on they are staged.
    press_at: AtomicUsize,
    chunk_node_rank: AtomicU16,
    state: Mutex<State>,
    /// All that the next commit writes, and the elements among it: reads look there first.
    images: Arc<Images>,
    held: Arc<Images>,
    /// Blocks that wait for the commit elsewhere in the file.
    parked: Arc<Parked>,
    /// A length that the store had when it was last asked: it may have grown since.
    seen: AtomicU64,
    /// The SWMR mode: a [`Swmr`].
    swmr: AtomicU8,
    /// The cause of a failed sync; nothing is committed from then on.
    unsynced: OnceLock<String>,
    /// Whether unused space may still be searched for.
    looks: AtomicBool,
    /// Held shared while metadata is changed to name other space, exclusively while a commit fixes
    /// its blocks.
    changes: RwLock<()>,
}

struct State {
    allocator: Parts,
    images: Arc<Images>,
    /// Bytes of all images.
    staged: usize,
    /// Which images are elements, and their bytes.
    held: Held,
    /// Images that may be parked, and parked blocks.
    parking: Parking,
    /// The staged bytes from which blocks in new space are written.
    spill_at: usize,
    /// A commit with a complete journal that is not finished.
    pending: Option<commit::Pending>,
    /// The superblock as last read or written here; no other program writes one.
    superblock: Option<Vec<u8>>,
    /// The ends of the file's parts after the last commit.
    committed_ends: Vec<u64>,
    /// The search for unused space, until the first commit.
    looking: Option<Looking>,
}

/// The most bytes that systems take for a file.
const LONGEST: u64 = i64::MAX as u64;

/// The last address that a file can name, the one before the undefined one.
fn last_address(sizes: Sizes) -> u64 {
    let bits = 8 * u32::from(sizes.offset);
    u64::MAX.checked_shr(64 - bits.min(64)).unwrap_or(0).saturating_sub(1)
}

impl Medium {
    /// A medium over `store`, whose HDF5 part begins at `base` and is used up to `end` (relative).
    pub fn new(store: Arc<dyn Store>, base: u64, end: u64, sizes: Sizes, writable: bool) -> Self {
        let images = Arc::<Images>::default();
        let (staged, pending, superblock) = Default::default();
        let held = Held::default();
        let held_list = held.list();
        let parking = Parking::default();
        let parked = parking.list.clone();
        let longest = if end <= LONGEST { LONGEST } else { u64::MAX };
        let most = last_address(sizes).min(longest).saturating_sub(base);
        let (limit, mut allocator) = (METADATA_LIMIT, Parts::one(end, most));
        allocator.take_early_at_most(pressure::early(limit));
        let state = State {
            allocator,
            images: images.clone(),
            staged,
            held,
            parking,
            spill_at: limit,
            pending,
            superblock,
            committed_ends: vec![end],
            looking: None,
        };
        Self {
            store,
            base,
            sizes,
            writable,
            name: OnceLock::new(),
            refusal: OnceLock::new(),
            durability: Durability::default(),
            limit,
            unstaged: AtomicUsize::new(0),
            press_at: AtomicUsize::new(limit),
            chunk_node_rank: AtomicU16::new(USUAL_CHUNK_NODE_RANK),
            state: Mutex::new(state),
            images,
            held: held_list,
            parked,
            seen: AtomicU64::new(0),
            swmr: AtomicU8::new(Swmr::Off as u8),
            unsynced: OnceLock::new(),
            looks: AtomicBool::new(false),
            changes: RwLock::new(()),
        }
    }

    /// The medium with commits that survive `durability`.
    pub fn with_durability(self, durability: Durability) -> Self {
        Self { durability, ..self }
    }

    /// Copies raw data within the file.
    pub fn copy(&self, from: u64, to: u64, length: u64) -> Result<()> {
        const PIECE: u64 = 4 << 20;
        let mut buffer = scratch::take_sized(length.min(PIECE) as usize)?;
        let mut done = 0;
        while done < length {
            let piece = &mut buffer[..(length - done).min(PIECE) as usize];
            self.fetch(&mut [ReadOp { offset: from + done, buffer: piece }])?;
            self.put(&mut [WriteOp { offset: to + done, bytes: piece }])?;
            done += piece.len() as u64;
        }
        scratch::give(buffer);
        Ok(())
    }

    /// Bytes of the blocks that wait for the next commit.
    pub fn staged_bytes(&self) -> usize {
        self.state().staged
    }

    /// Sets the rank of version 1 B-tree nodes of chunks.
    pub fn set_chunk_node_rank(&self, rank: u16) {
        self.chunk_node_rank.store(rank, Ordering::Relaxed);
    }

    /// The base address: the length of the user block.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Whether changes are allowed.
    pub fn writable(&self) -> bool {
        self.writable
    }

    /// Whether changes are allowed.
    pub fn is_writable(&self) -> bool {
        self.writable
    }

    /// Fails unless changes are allowed.
    pub fn require_writable(&self) -> Result<()> {
        if self.writable {
            return Ok(());
        }
        let name = self.name.get().map_or("the file", String::as_str);
        Err(Error::ReadOnly(match self.refusal.get() {
            Some(why) => format!("{name} can only be read: {why}"),
            None => format!("{name} is open for reading only; open it for editing"),
        }))
    }

    /// Sets the file's name for messages.
    pub fn note_name(&self, path: &Path) {
        let _ = self.name.set(path.display().to_string());
    }

    /// Sets the reason why the file is open for reading only.
    pub fn note_refusal(&self, why: String) {
        let _ = self.refusal.set(why);
    }

    /// The upper bound of addresses: the end of the file or of allocated space, relative to the
    /// base.
    pub fn length(&self) -> Result<u64> {
        let total = self.store_length()?;
        Ok(total.saturating_sub(self.base).max(self.state().allocator.end()))
    }

    /// Lets blocks that the file keeps elsewhere be read at their own addresses. Only for files
    /// open for reading: a commit would write them.
    pub fn overlay(&self, blocks: impl Iterator<Item = (u64, Vec<u8>)>) {
        let state = self.state();
        blocks
            .for_each(|(address, bytes)| _ = state.images.replace(address, Some(Arc::new(bytes))));
    }

    /// The block that the next commit writes at `address`, if there is one.
    pub fn staged(&self, address: u64) -> Option<Vec<u8>> {
        self.images.get(address).map(|image| image.to_vec())
    }

    /// Whether the next commit, or one under way, writes a block at `address`.
    pub fn is_staged(&self, address: u64) -> bool {
        self.images.contains(address) || self.parked.get(address).is_some()
    }

    /// The bytes of the file in all its parts: the measure for sizes that the file states.
    pub fn volume(&self) -> Result<u64> {
        let stored = self.store.volume().map_err(|source| self.failed("find the size", source))?;
        Ok(stored.saturating_sub(self.base).max(self.state().allocator.used()))
    }

    /// The number of bytes from `address` on without a gap.
    pub fn room(&self, address: u64) -> Result<u64> {
        let length = self.length()?;
        if address < length {
            return Ok(length - address);
        }
        let Ok(at) = self.absolute(address) else { return Ok(0) };
        let stored = self.store.room(at).map_err(|source| self.failed("find the size", source))?;
        Ok(stored.max(self.state().allocator.extent_at(address).end.saturating_sub(address)))
    }

    /// Whether there are `length` bytes at `address`. Mostly known without asking the store.
    pub fn reaches(&self, address: u64, length: u64) -> Result<bool> {
        let Some(end) = address.checked_add(length) else { return Ok(false) };
        let seen = self.seen.load(Ordering::Relaxed);
        if self.absolute(end).is_ok_and(|end| end <= seen) {
            return Ok(true);
        }
        // Stored bytes exist; for the rest, the allocator must be asked, which may wait for a
        // commit.
        let stored = self.store_length()?;
        if self.absolute(end).is_ok_and(|end| end <= stored) {
            return Ok(true);
        }
        Ok(length <= self.room(address)?)
    }

    /// Sets a known length of the store, so that it need not be asked.
    pub fn note_length(&self, length: u64) {
        self.seen.store(length, Ordering::Relaxed);
    }

    /// Another store that the file refers to, wrapped as this file's store asks for.
    pub fn beside(&self, other: Arc<dyn Store>) -> Arc<dyn Store> {
        self.store.beside(other)
    }

    /// Tells the store its end, as an absolute address.
    pub fn settle(&self, end: u64) -> Result<()> {
        self.store.settle(end).map_err(|source| self.failed("find the end", source))?;
        match self.store.member_size() {
            Some(_) => self.store_length().map(drop),
            None => Ok(()),
        }
    }

    /// Whether the file is a family of files.
    pub fn is_family(&self) -> bool {
        self.store.member_size().is_some()
    }

    fn store_length(&self) -> Result<u64> {
        let length =
            self.store.len().map_err(|source| self.failed("find the file's size", source))?;
        self.seen.store(length, Ordering::Relaxed);
        Ok(length)
    }

    fn set_store_length(&self, length: u64, action: &str) -> Result<()> {
        // Before the file is cut, so that no reader relies on bytes that go.
        self.seen.fetch_min(length, Ordering::Relaxed);
        self.store.set_len(length).map_err(|source| self.failed(action, source))
    }

    /// Space for `length` bytes of data that can be read at once. Also returns how many of them,
    /// from the start on, may be old bytes; the others are zero.
    pub fn allocate_zeroed(&self, length: u64) -> Result<(u64, u64)> {
        let address = self.allocate_raw(length)?;
        // Under the lock, as in a commit: the file must not be cut meanwhile.
        let state = self.state();
        let extended = || {
            let start = self.absolute(address)?;
            // Asked only now: no earlier owner of the range has written beyond the end. Elements that
            // wait for a commit have no bytes in the file yet.
            let part = state.allocator.extent_at(address);
            let written = match self.held.contains(address) {
                true => 0,
                false => self.stored_end(part.start)?.saturating_sub(start).min(length),
            };
            self.reserve(part)?;
            Ok(written)
        };
        let extended = extended();
        drop(state);
        match extended {
            Ok(written) => Ok((address, written)),
            Err(error) => {
                self.free_raw(address, length);
                Err(error)
            }
        }
    }

    /// Up to `length` bytes of a metadata block: fewer if the staged image or the file ends before.
    pub fn read_up_to(&self, address: u64, length: usize) -> Result<Vec<u8>> {
        if let Some(image) = self.images.get(address) {
            return Ok(image[..length.min(image.len())].to_vec());
        }
        if let Some(place) = self.parked.get(address) {
            return self.read_parked(place, length);
        }
        let at = self.absolute(address)?;
        let wanted = at.checked_add(length as u64);
        let seen = self.seen.load(Ordering::Relaxed);
        let total = if wanted.is_some_and(|end| end <= seen) { seen } else { self.store_length()? };
        let mut room = total.saturating_sub(at);
        if room == 0 {
            room = self.store.room(at).map_err(|source| self.failed("find the size", source))?;
        }
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        if room == 0 {
            return Err(DecodeError::new(
                "metadata block",
                address,
                format!("an address inside the file of {total} byte(s)"),
                format_args!("{at:#x}"),
            )
            .into());
        }
        let mut bytes = zeroed(length.min(room))?;
        self.fetch(&mut [ReadOp { offset: address, buffer: &mut bytes }])?;
        Ok(bytes)
    }

    /// Reads raw data, as it will be with the next commit.
    pub fn fetch(&self, ops: &mut [ReadOp<'_>]) -> Result<()> {
        if self.read_held(ops) {
            return Ok(());
        }
        let held = self.held_among(ops);
        self.fetch_stored(ops)?;
        held::lay_over(&held, ops);
        Ok(())
    }

    /// Whether reads take so long that it is worth to [announce](Self::announce) them.
    pub fn is_far(&self) -> bool {
        self.store.is_far()
    }

    /// Announces reads of raw data, until what is returned is dropped.
    pub fn announce(&self, ranges: &[Range<u64>]) -> Announced {
        let place = |address: u64| self.absolute(address).ok();
        let absolute = |range: &Range<u64>| Some(place(range.start)?..place(range.end)?);
        self.store.announce(&ranges.iter().filter_map(absolute).collect::<Vec<_>>())
    }

    /// Reads raw data as the file has it.
    fn fetch_stored(&self, ops: &mut [ReadOp<'_>]) -> Result<()> {
        for op in ops.iter_mut() {
            op.offset = self.absolute(op.offset)?;
        }
        self.store.read_vectored(ops).map_err(|source| self.failed("read", source))
    }

    /// Writes raw data to the file, or into elements that wait for a commit.
    pub fn put(&self, ops: &mut [WriteOp<'_>]) -> Result<()> {
        match self.put_into_held(ops) {
            Some(mut rest) => self.put_stored(&mut rest),
            None => self.put_stored(ops),
        }
    }

    /// Writes to the file.
    fn put_stored(&self, ops: &mut [WriteOp<'_>]) -> Result<()> {
        self.require_writable()?;
        for op in ops.iter_mut() {
            op.offset = self.absolute(op.offset)?;
        }
        self.store.write_vectored(ops).map_err(|source| self.failed("write", source))
    }

    /// To be held while metadata is changed to name other space and the old space is given back,
    /// so that a commit sees both or neither. Not to be taken twice by one thread.
    pub fn change(&self) -> RwLockReadGuard<'_, ()> {
        self.changes.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds back changes: between this and [`begin_commit`](Self::begin_commit), all metadata is
    /// staged.
    pub fn hold_changes(&self) -> RwLockWriteGuard<'_, ()> {
        self.changes.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn give_back(&self, address: u64, length: u64, purpose: Purpose) {
        // Where nothing was taken, something else may begin.
        if length == 0 {
            return;
        }
        let mut state = self.state();
        // Parts of the range may be staged at addresses of their own.
        for start in state.images.starts(address, length) {
            state.drop_image(start);
        }
        state.parking.remove_within(address, length);
        state.drop_held(address, length);
        if self.writes_swmr() && !state.allocator.is_fresh(address) {
            // A reader may still be on its way there.
            return;
        }
        state.allocator.free(address, length, purpose);
    }

    /// New space for metadata at the end of the file, as far as pages allow.
    pub fn allocate_at_end(&self, length: u64) -> Result<u64> {
        self.take(|allocator| allocator.allocate_at_end(length))
    }

    fn take(&self, from: impl FnOnce(&mut Parts) -> Option<u64>) -> Result<u64> {
        self.take_from(|state| from(&mut state.allocator))
    }

    fn take_from(&self, from: impl FnOnce(&mut State) -> Option<u64>) -> Result<u64> {
        self.require_writable()?;
        let mut state = self.state();
        // Space at the end may be where the journal is.
        self.finish_pending(&mut state)?;
        from(&mut state).ok_or_else(|| self.full())
    }

    /// The end of the store in the part that begins at `start`, as an absolute address.
    fn stored_end(&self, start: u64) -> Result<u64> {
        if start == 0 {
            return self.store_length();
        }
        let at = self.absolute(start)?;
        let room = self.store.room(at).map_err(|source| self.failed("find the size", source))?;
        Ok(at.saturating_add(room))
    }

    /// Makes the store reach to the end of the allocated space of a part, which may have unwritten ranges.
    fn reserve(&self, Extent { start, end }: Extent) -> Result<()> {
        let wanted = self.absolute(end)?;
        if self.stored_end(start)? < wanted {
            self.set_store_length(wanted, "extend the file")?;
        }
        Ok(())
    }

    /// The error of a file that cannot grow.
    fn full(&self) -> Error {
        let width = self.sizes.offset;
        if width >= 8 {
            return Error::NoSpace(
                "the file would have more than 2^63 bytes, the most that systems take: store less in one piece, in \
                 chunks or sparse"
                    .into(),
            );
        }
        Error::NoSpace(format!(
            "the file is full: its addresses have {width} byte(s); what it has so far can be copied to a new \
             file, whose have eight, by `pumice repack`"
        ))
    }

    fn absolute(&self, address: u64) -> Result<u64> {
        self.base.checked_add(address).ok_or_else(|| {
            DecodeError::new("file", address, "an address below 2^64", "one beyond").into()
        })
    }

    fn failed(&self, action: &str, source: std::io::Error) -> Error {
        if ChangedMeanwhile::is_cause(&source) {
            return Error::Changed(source.to_string());
        }
        Error::Io { action: action.into(), source }
    }

    // Nothing under the lock panics half-way through a change: poisoning carries no meaning.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MetadataIo for Medium {
    fn sizes(&self) -> Sizes {
        self.sizes
    }

    fn chunk_node_rank(&self) -> u16 {
        self.chunk_node_rank.load(Ordering::Relaxed)
    }

    fn read(&self, address: u64, length: usize) -> Result<Vec<u8>> {
        let bytes = self.read_up_to(address, length)?;
        if bytes.len() == length {
            return Ok(bytes);
        }
        let found = format!("{} before the end", bytes.len());
        Err(DecodeError::new("metadata block", address, format!("{length} byte(s)"), found).into())
    }

    fn allocate(&self, length: u64) -> Result<u64> {
        self.allocate_for(DataKind::Header, length)
    }

    fn allocate_for(&self, kind: DataKind, length: u64) -> Result<u64> {
        self.look_for_room(length);
        if !matches!(kind, DataKind::Raw | DataKind::GlobalHeap) {
            self.note_change(length as usize);
            // All that is put there is staged.
            return self.take(|allocator| allocator.allocate_early(length, kind));
        }
        self.take_from(|state| {
            let address = state.allocator.allocate_early(length, kind)?;
            if length > 0 && !state.allocator.is_fresh(address) {
                state.hold(address, vec![0; length as usize]);
            }
            Some(address)
        })
    }

    fn allocate_raw(&self, length: u64) -> Result<u64> {
        self.allocate_for(DataKind::Raw, length)
    }

    fn free(&self, address: u64, length: u64) {
        self.give_back(address, length, Purpose::Metadata);
    }

    fn free_raw(&self, address: u64, length: u64) {
        self.give_back(address, length, Purpose::Raw);
    }

    fn place_anew(&self, address: u64, length: u64) -> Result<Option<u64>> {
        if !self.writes_swmr() || self.is_fresh(address) {
            return Ok(None);
        }
        let place = self.allocate_for(DataKind::Tree, length)?;
        self.free(address, length);
        Ok(Some(place))
    }

    fn stage_index(&self, address: u64, bytes: Vec<u8>) {
        // Blocks that wait elsewhere are written without regard to their order.
        if !self.writes_swmr() {
            self.state().parking.allowed.insert(address);
        }
        self.stage(address, bytes);
    }

    fn stage(&self, address: u64, mut bytes: Vec<u8>) {
        // Its memory counts, and it may wait for long.
        bytes.shrink_to_fit();
        let mut state = self.state();
        let length = bytes.len();
        let old = state.images.replace(address, Some(Arc::new(bytes)));
        state.held.remove(address);
        state.staged = (state.staged + length).saturating_sub(old.map_or(0, |old| old.len()));
        if state.staged > state.spill_at {
            self.spill(&mut state);
        }
    }
}

impl State {
    fn drop_image(&mut self, address: u64) {
        self.held.remove(address);
        self.parking.remove(address);
        if let Some(image) = self.images.replace(address, None) {
            self.staged -= image.len().min(self.staged);
        }
    }
}

#[cfg(test)]
mod tests;
