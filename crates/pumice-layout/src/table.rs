//! Which chunks of a dataset are stored, and where: the chunk index and the space behind it.
//!
//! A chunk whose stored size can vary (filters, sparse) is written to fresh space each time, and
//! its old space is given back: committed metadata never names bytes that are being replaced. A
//! dense chunk without filters keeps its place, and so does a sparse one of which only values change
//! that are stored as they are.
//!
//! Where elements refer to what is elsewhere in the file, such bytes wait for the next commit, which brings
//! what they refer to ([`ChunkTable::put`]). If too many wait, chunks are written to fresh space after all,
//! unless their places follow from their coordinates: then they are overwritten at once.
//!
//! Storing takes two steps: [`reserve`](ChunkTable::reserve) finds room, and
//! [`enter`](ChunkTable::enter) lets the index name it once the bytes are written. So the index never
//! names space that has not been written.

mod moving;
pub(crate) mod stored;
mod storing;

pub use storing::{NewChunk, Room};

use super::NOWHERE;
use super::blocks::Blocks;
use super::geometry::Geometry;
use super::listing::{Kept, Listing};
use super::pages::TOGETHER;
use pumice_bytes::DecodeError;
use pumice_format::index::ChunkRecord;
use pumice_medium::Medium;
use pumice_medium::Result;
use pumice_medium::{DataKind, MetadataIo};
use pumice_space::{ChunkGrid, Dims};
use pumice_store::{ReadOp, WriteOp};
use pumice_structures::index::{ChunkIndex, IndexKind};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLockReadGuard};

/// The stored chunks of a dataset.
pub struct ChunkTable {
    medium: Arc<Medium>,
    geometry: Arc<Geometry>,
    index: Mutex<ChunkIndex>,
    /// Whether chunks can be added and taken away.
    changeable: bool,
    /// Whether a chunk that is stored keeps its place when it is written again.
    in_place: bool,
    /// Whether elements refer to what is elsewhere in the file.
    refers: bool,
    /// Room that has been found and is not yet named by the index, by address.
    reserved: Mutex<Option<Box<Reserved>>>,
    /// Chunks that were written elsewhere because committed metadata named their places.
    displaced: Mutex<BTreeSet<Dims>>,
    /// The chunks by number, for whoever asks for one after another.
    listing: Kept,
}

/// Chunks by the address of their room. Most open datasets are read only, and have no such list.
type Reserved = BTreeMap<u64, (Dims, ChunkRecord)>;

/// So many displaced chunks are remembered at most.
const MOST_DISPLACED: usize = 1 << 16;

impl ChunkTable {
    /// A table over an index.
    pub fn new(
        medium: Arc<Medium>,
        geometry: Arc<Geometry>,
        index: ChunkIndex,
        in_place: bool,
    ) -> Self {
        let (reserved, displaced, listing) = Default::default();
        let changeable = index.check_changeable().is_ok();
        let index = Mutex::new(index);
        let refers = false;
        Self { medium, geometry, index, changeable, in_place, refers, reserved, displaced, listing }
    }

    /// Says whether elements of the chunks refer to bytes elsewhere in the file, such as strings.
    pub fn referring(self, refers: bool) -> Self {
        Self { refers, ..self }
    }

    /// Fails if chunks can be neither added nor taken away: changes are refused before the cache takes them.
    pub fn check_changeable(&self) -> Result<()> {
        if self.medium.writes_swmr() && self.unchanged().kind() == IndexKind::BTree1 {
            // Its nodes have no checksums.
            self.medium.refuse_in_swmr(
                "no chunk can be written of a dataset in the form of HDF5 1.8 and older (version 1 B-tree)",
            )?;
        }
        if self.changeable { Ok(()) } else { self.unchanged().check_changeable() }
    }

    /// Names the chunks that another table names, as another program has it.
    pub fn follow(&self, other: &Self) {
        std::mem::swap(&mut *self.index(), &mut *other.index());
    }

    /// Whether elements refer to what is elsewhere in the file.
    pub fn refers(&self) -> bool {
        self.refers
    }

    /// Writes to room that was [reserved](Self::reserve), new or where a chunk is.
    pub fn put(&self, ops: &mut [WriteOp<'_>]) -> Result<()> {
        if !self.refers {
            return self.medium.put(ops);
        }
        let fixed = self.is_fixed();
        self.medium.put_or_hold(ops, fixed)
    }

    /// Whether the places of chunks follow from their coordinates.
    pub fn is_fixed(&self) -> bool {
        self.unchanged().kind() == IndexKind::Implicit
    }

    /// Whether a chunk that is stored keeps its place when it is written again.
    pub fn is_in_place(&self) -> bool {
        self.in_place
    }

    /// Where chunks are stored.
    pub fn medium(&self) -> &Arc<Medium> {
        &self.medium
    }

    /// Exclusive access to the index, which may be changed.
    pub fn index(&self) -> MutexGuard<'_, ChunkIndex> {
        let index = self.unchanged();
        self.listing.forget(true);
        index
    }

    /// Exclusive access to the index, which names the same chunks afterwards.
    fn unchanged(&self) -> MutexGuard<'_, ChunkIndex> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets blocks of the index if they take more memory than they may; those that changed once they are staged.
    /// What fails here fails again, and is told, when the file is committed.
    fn relieve(&self, index: &mut ChunkIndex) {
        let most = self.medium.index_limit();
        if index.memory() <= most {
            return;
        }
        index.trim();
        if index.memory() > most / 2
            && self.medium.is_writable()
            && index.commit(&*self.medium).is_ok()
        {
            index.trim();
        }
    }

    /// The records of many chunks.
    ///
    /// Blocks of the index that are not in memory are read while nobody is kept from the index.
    pub fn lookup(&self, keys: &[Dims]) -> Result<Vec<Option<ChunkRecord>>> {
        self.medium.steady(|| self.lookup_once(keys))
    }

    fn lookup_once(&self, keys: &[Dims]) -> Result<Vec<Option<ChunkRecord>>> {
        let mut found = Vec::with_capacity(keys.len());
        let blocks = Blocks::new(&self.medium);
        let mut trims = None;
        while found.len() < keys.len() {
            let mut index = self.unchanged();
            // What was brought before blocks were forgotten may be older than what is staged.
            if trims.is_some_and(|trims| trims != index.trims()) {
                blocks.clear();
            }
            for key in &keys[found.len()..] {
                match index.lookup(&blocks, key) {
                    Ok(record) => {
                        blocks.clear();
                        found.push(record);
                        self.relieve(&mut index);
                    }
                    Err(_) if blocks.is_waiting() => break,
                    Err(error) => return Err(error),
                }
            }
            trims = Some(index.trims());
            drop(index);
            blocks.bring()?;
        }
        for record in found.iter().flatten() {
            self.check(record)?;
        }
        Ok(found)
    }

    /// The stored bytes of a chunk.
    pub fn read(&self, record: &ChunkRecord) -> Result<Vec<u8>> {
        self.check(record)?;
        let mut bytes = super::dense::zeros(record.size)?;
        self.medium.fetch(&mut [ReadOp { offset: record.address, buffer: &mut bytes }])?;
        Ok(bytes)
    }

    /// The stored bytes of chunks, which stand in the order of their addresses.
    pub fn read_each<'r>(
        &self,
        records: impl IntoIterator<Item = &'r ChunkRecord>,
    ) -> Result<Vec<Vec<u8>>> {
        let (mut all, mut places) = (Vec::new(), Vec::new());
        for record in records {
            self.check(record)?;
            all.push(super::dense::zeros(record.size)?);
            places.push(record.address);
        }
        let pairs = places.into_iter().zip(&mut all);
        let mut ops: Vec<_> =
            pairs.map(|(offset, buffer)| ReadOp { offset, buffer: &mut *buffer }).collect();
        self.medium.fetch(&mut ops)?;
        Ok(all)
    }

    /// Stores chunks of another table as they are.
    pub fn adopt(&self, from: &ChunkTable, chunks: &[(Dims, ChunkRecord)]) -> Result<()> {
        let bytes = from.read_all(chunks)?;
        let mut rest = bytes.as_slice();
        let mut copies = Vec::with_capacity(chunks.len());
        for (key, record) in chunks {
            let (bytes, later) = rest.split_at(record.size as usize);
            copies.push(NewChunk::copy(key, record, bytes));
            rest = later;
        }
        self.enter_all(&self.place(&copies, Room::Usual)?)
    }

    /// The stored bytes of chunks, one after another.
    fn read_all(&self, chunks: &[(Dims, ChunkRecord)]) -> Result<Vec<u8>> {
        let mut total = 0u64;
        for (_, record) in chunks {
            self.check(record)?;
            total = total.saturating_add(record.size);
        }
        let mut bytes = super::dense::zeros(total)?;
        let mut rest = bytes.as_mut_slice();
        let mut ops = Vec::with_capacity(chunks.len());
        for (_, record) in chunks {
            let (buffer, later) = rest.split_at_mut(record.size as usize);
            ops.push(ReadOp { offset: record.address, buffer });
            rest = later;
        }
        self.medium.fetch(&mut ops)?;
        Ok(bytes)
    }

    /// Refuses a record that does not lie inside the file.
    fn check(&self, record: &ChunkRecord) -> Result<()> {
        if self.medium.reaches(record.address, record.size)? {
            return Ok(());
        }
        let expected = format!("a chunk that ends before {:#x}", self.medium.length()?);
        let found = format!("{} byte(s)", record.size);
        Err(DecodeError::new("chunk", record.address, expected, found).into())
    }

    /// Finds room for a chunk of `record.size` bytes. Its address is to be given to
    /// [`enter`](Self::enter) or [`cancel`](Self::cancel). A record that the index names keeps its place.
    pub fn reserve(&self, key: &Dims, record: ChunkRecord) -> Result<u64> {
        self.reserve_in(key, record, Room::Usual)
    }

    fn reserve_in(&self, key: &Dims, record: ChunkRecord, room: Room) -> Result<u64> {
        if !self.in_place && record.address == NOWHERE {
            return self.reserve_new(key, record, room);
        }
        let mut index = self.unchanged();
        let (old, fixed) = (index.lookup(&*self.medium, key)?, index.kind() == IndexKind::Implicit);
        self.relieve(&mut index);
        drop(index);
        let same = |old: &ChunkRecord| self.in_place && old.size == record.size || *old == record;
        match old.filter(same) {
            Some(old) if fixed || !self.refers => Ok(old.address),
            Some(old) if !self.medium.cannot_hold(old.address, old.size) => Ok(old.address),
            _ => self.reserve_new(key, record, room),
        }
    }

    /// Whether [`reserve`](Self::reserve) has found new room at `address`, which nothing refers to yet.
    pub fn is_reserved(&self, address: u64) -> bool {
        self.reserved().as_ref().is_some_and(|reserved| reserved.contains_key(&address))
    }

    fn reserve_new(&self, key: &Dims, mut record: ChunkRecord, room: Room) -> Result<u64> {
        // What is overwritten leaves holes one by one, of other sizes than they are filled with: these are left
        // until all of them are there, and chunks are moved there when the file is closed.
        let replaces = {
            let mut index = self.unchanged();
            let found = index.lookup(&*self.medium, key)?.is_some();
            self.relieve(&mut index);
            found
        };
        let address = match replaces || room == Room::Free {
            true => self.medium.allocate_free(DataKind::Raw, record.size)?,
            false => self.medium.allocate_raw(record.size)?,
        };
        record.address = address;
        self.reserved().get_or_insert_default().insert(address, (key.clone(), record));
        Ok(address)
    }

    /// Lets the index name a chunk whose bytes are written, and gives its old space back. A chunk
    /// that kept its place is there already.
    pub fn enter(&self, address: u64) -> Result<()> {
        self.enter_during(&self.medium.change(), address)
    }

    /// [`enter`](Self::enter) as a part of a larger change.
    pub fn enter_during(&self, change: &RwLockReadGuard<'_, ()>, address: u64) -> Result<()> {
        let Some((key, record)) = self.take_placed(address) else { return Ok(()) };
        self.enter_placed(change, key, record)
    }

    /// Forgets the chunk whose room is at `address`, if the index does not name it: it is the caller's to
    /// [enter](Self::enter_placed) or to [give back](Self::cancel_placed).
    pub fn take_placed(&self, address: u64) -> Option<(Dims, ChunkRecord)> {
        self.reserved().as_mut()?.remove(&address)
    }

    /// [`enter_during`](Self::enter_during) for a chunk that was taken.
    pub fn enter_placed(
        &self,
        _change: &RwLockReadGuard<'_, ()>,
        key: Dims,
        record: ChunkRecord,
    ) -> Result<()> {
        let mut index = self.index();
        let (address, size) = (record.address, record.size);
        let entered = index.lookup(&*self.medium, &key).and_then(|old| {
            index.insert(&*self.medium, &key, record)?;
            Ok(old)
        });
        self.relieve(&mut index);
        drop(index);
        match entered {
            // Only now: as long as the index names the old place, it must not become free.
            Ok(Some(old)) => {
                if !self.medium.is_fresh(old.address) {
                    self.note_displaced(key);
                }
                self.medium.free_raw(old.address, old.size);
            }
            Ok(None) => {}
            Err(error) => {
                self.medium.free_raw(address, size);
                return Err(error);
            }
        }
        Ok(())
    }

    fn note_displaced(&self, key: Dims) {
        let mut displaced = self.displaced();
        if displaced.len() < MOST_DISPLACED {
            displaced.insert(key);
        }
    }

    fn displaced(&self) -> MutexGuard<'_, BTreeSet<Dims>> {
        self.displaced.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives back room that will not be used.
    pub fn cancel(&self, address: u64) {
        if let Some((_, record)) = self.take_placed(address) {
            self.cancel_placed(&record);
        }
    }

    /// Gives back the room of a chunk that was taken.
    pub fn cancel_placed(&self, record: &ChunkRecord) {
        self.medium.free_raw(record.address, record.size);
    }

    fn reserved(&self) -> MutexGuard<'_, Option<Box<Reserved>>> {
        self.reserved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes a chunk, if it is stored, and gives its space back.
    pub fn remove(&self, key: &Dims) -> Result<()> {
        self.remove_during(&self.medium.change(), key)
    }

    /// [`remove`](Self::remove) as a part of a larger change.
    pub fn remove_during(&self, _change: &RwLockReadGuard<'_, ()>, key: &Dims) -> Result<()> {
        let removed = {
            let mut index = self.index();
            let removed = index.remove(&*self.medium, key)?;
            self.relieve(&mut index);
            removed
        };
        if let Some(record) = removed {
            self.medium.free_raw(record.address, record.size);
        }
        Ok(())
    }

    /// All stored chunks, in the index's order.
    pub fn all(&self) -> Result<Vec<(Dims, ChunkRecord)>> {
        let mut all = Vec::new();
        self.for_each(|some| {
            all.extend(some);
            Ok(())
        })?;
        Ok(all)
    }

    /// Calls `visit` with all stored chunks in the index's order, some at a time. The index is free meanwhile: what is
    /// changed behind those that were visited is seen.
    pub fn for_each(
        &self,
        mut visit: impl FnMut(Vec<(Dims, ChunkRecord)>) -> Result<()>,
    ) -> Result<()> {
        let mut after: Option<Dims> = None;
        loop {
            let some = self.some_after(after.as_ref())?;
            let (count, last) = (some.len(), some.last().map(|(key, _)| key.clone()));
            if count > 0 {
                visit(some)?;
            }
            if count < TOGETHER {
                return Ok(());
            }
            after = last;
        }
    }

    /// Whether the index has chunks in row-major order.
    pub fn is_in_order(&self) -> bool {
        let index = self.unchanged();
        let first = index.shape().maximum().first();
        index.kind() != IndexKind::ExtensibleArray || first.is_none_or(Option::is_none)
    }

    /// The next stored chunks behind `after`, or the first, as far as they are inside the grid; `None` behind the
    /// last. Moves `after` on.
    pub fn next_inside(
        &self,
        after: &mut Option<Option<Dims>>,
        grid: &ChunkGrid,
    ) -> Result<Option<Vec<Dims>>> {
        let Some(last) = after.take() else { return Ok(None) };
        let some = self.some_after(last.as_ref())?;
        if some.len() == TOGETHER {
            *after = Some(some.last().map(|(key, _)| key.clone()));
        }
        let keys = some.into_iter().map(|(key, _)| key).filter(|key| grid.contains_chunk(key));
        Ok(Some(keys.collect()))
    }

    /// The first stored chunks behind one, in the index's order.
    fn some_after(&self, after: Option<&Dims>) -> Result<Vec<(Dims, ChunkRecord)>> {
        self.medium.steady(|| self.some_after_once(after))
    }

    fn some_after_once(&self, after: Option<&Dims>) -> Result<Vec<(Dims, ChunkRecord)>> {
        let (mut some, mut index) = (Vec::new(), self.unchanged());
        let after = after.map(Dims::as_slice);
        index.for_each_after(&*self.medium, after, &mut |coord, record| {
            some.push((Dims::from_slice(coord), record.clone()));
            let more = some.len() < TOGETHER;
            Ok(if more { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        self.relieve(&mut index);
        Ok(some)
    }

    /// The stored chunks inside the grid by number, kept until the index changes or the list is
    /// [let go](Self::let_listing_go).
    pub fn list_and_keep(&self, grid: ChunkGrid) -> Result<Arc<Listing>> {
        let changes = self.listing.changes();
        let listing = Arc::new(Listing::new(self, grid)?);
        self.listing.put(changes, &listing);
        Ok(listing)
    }

    /// The listing that is kept, if one is.
    pub fn kept_listing(&self) -> Option<Arc<Listing>> {
        self.listing.get()
    }

    /// Lets go of the listing that is kept.
    pub fn let_listing_go(&self) {
        self.listing.forget(false);
    }

    /// Gives back all chunks and the index.
    pub fn free(&self) -> Result<()> {
        // Where chunks have no space of their own, the index gives it back.
        if self.is_fixed() {
            let _change = self.medium.change();
            return self.index().delete(&*self.medium);
        }
        // An index that cannot be read is left as it is.
        self.for_each(|_| Ok(()))?;
        let _change = self.medium.change();
        self.for_each(|some| {
            some.iter().for_each(|(_, record)| self.medium.free_raw(record.address, record.size));
            Ok(())
        })?;
        self.index().delete(&*self.medium)
    }
}

#[cfg(test)]
impl ChunkTable {
    /// A table of no chunks, in memory.
    pub(crate) fn empty(geometry: Arc<Geometry>, kind: IndexKind) -> Self {
        use pumice_format::Sizes;
        use pumice_format::index::RecordFormat;
        let store = Arc::new(pumice_store::MemoryStore::new(vec![0; 100]));
        let medium = Arc::new(Medium::new(store, 0, 100, Sizes::default(), true));
        let format = RecordFormat::plain(Sizes::default(), geometry.chunk_bytes());
        let (dims, chunk) = (geometry.dims(), geometry.chunk());
        let shape = pumice_structures::index::IndexShape::new(&dims, &dims, chunk).unwrap();
        let mut index = ChunkIndex::create(kind, format, shape).unwrap();
        index.allocate(&*medium).unwrap();
        ChunkTable::new(medium, geometry, index, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(kind: IndexKind) -> ChunkTable {
        let geometry = Geometry::new(&[40], &[40], &[8], vec![0]).unwrap();
        ChunkTable::empty(Arc::new(geometry), kind).referring(true)
    }

    fn reserve(table: &ChunkTable, number: u64) -> u64 {
        table.reserve(&Dims::from_slice(&[number]), ChunkRecord::dense(NOWHERE, 8)).unwrap()
    }

    fn write(table: &ChunkTable, byte: u8) -> u64 {
        write_chunk(table, 2, byte)
    }

    fn write_chunk(table: &ChunkTable, number: u64, byte: u8) -> u64 {
        let (key, bytes) = (Dims::from_slice(&[number]), [byte; 8]);
        let offset = reserve(table, number);
        table.put(&mut [WriteOp { offset, bytes: &bytes }]).unwrap();
        table.enter(offset).unwrap();
        assert_eq!(table.read(&table.lookup(&[key]).unwrap()[0].clone().unwrap()).unwrap(), bytes);
        offset
    }

    fn commit(table: &ChunkTable) {
        let snapshot = table.medium().begin_commit().unwrap().unwrap();
        table.medium().commit(snapshot, |_, _| Ok(vec![0; 8])).unwrap();
    }

    #[test]
    fn committed_chunks_that_refer_to_something_are_held_in_their_place_as_far_as_may_be() {
        for kind in [IndexKind::FixedArray, IndexKind::BTree1, IndexKind::Implicit] {
            let table = table(kind);
            let place = write(&table, 1);
            assert_eq!(write(&table, 2), place);
            assert_eq!(table.medium().staged_bytes(), 0, "new chunks are written at once");
            commit(&table);
            assert_eq!(write(&table, 3), place);
            assert_eq!(table.medium().staged_bytes(), 8, "committed ones wait");
            commit(&table);
            table.medium().hold_at_most(7);
            let elsewhere = write(&table, 4) != place;
            assert_eq!(elsewhere, kind != IndexKind::Implicit, "there is no other place for some");
            assert_eq!(table.medium().staged_bytes(), 0);
        }
    }

    #[test]
    fn committed_chunks_that_were_told_to_stay_are_never_overwritten_at_once() {
        let table = table(IndexKind::FixedArray);
        let places = [0, 1].map(|number| write_chunk(&table, number, 1));
        commit(&table);
        table.medium().hold_at_most(8);
        // Both are told before the first is written, as chunks that are written together are.
        let told = [0, 1].map(|number| reserve(&table, number));
        assert_eq!(told, places);
        let mut ops = told.map(|offset| WriteOp { offset, bytes: &[2; 8] });
        table.put(&mut ops).unwrap();
        assert_eq!(table.medium().staged_bytes(), 16);
    }
}
