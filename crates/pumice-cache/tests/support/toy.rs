//! A toy layout for the tests: chunks of bytes, some of them defined, on a disk in memory.
//!
//! A chunk of `n` cells is stored as `n` bytes that say which cells are defined, then `n` values,
//! disguised, so that nobody takes stored bytes for decoded ones, unless the toy names extents: then
//! values move straight between the disk and the caller. Every callback first calls the
//! toy's hook, which may count, wait, fail or panic.

#![allow(dead_code, unreachable_pub)]

mod bench;
mod living;

pub use bench::Bench;
pub use living::{Alive, Living};

use std::collections::BTreeMap;
use std::sync::Arc;

#[cfg(shuttle)]
use shuttle::sync::{Mutex, MutexGuard};
use std::sync::PoisonError;
#[cfg(not(shuttle))]
use std::sync::{Mutex, MutexGuard};

use pumice_cache::*;

/// What the cache needs to keep a chunk.
pub const BOOK: u64 = ChunkCache::<Toy>::BOOKKEEPING;

/// What the fill value is.
pub const FILL: u8 = 0xff;

/// What disguises stored values.
const DISGUISE: u8 = 0x55;

/// What says of as many cells that they are defined.
const DEFINED: [u8; 256] = [1; 256];

/// Called with the callback's name and the chunk concerned, if there is one.
pub type Hook = dyn Fn(&'static str, Option<u64>) -> Result<(), ToyError> + Send + Sync;

/// Counts an encoding among what lives in memory; what is stored has none.
pub type Mark = Option<Arc<Alive>>;

/// Called with what is fetched.
pub type FetchHook = dyn Fn(&[Fetch<'_>]) + Send;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToyError {
    Cache(CacheError),
    Told(&'static str),
}

impl From<CacheError> for ToyError {
    fn from(error: CacheError) -> Self {
        ToyError::Cache(error)
    }
}

/// Bytes, and where in them each chunk of each toy is.
#[derive(Default)]
pub struct Disk {
    bytes: Vec<u8>,
    index: BTreeMap<(u64, u64), (u64, u64)>,
    toys: u64,
}

pub struct Toy {
    pub cells: usize,
    /// Its number on the disk.
    pub id: u64,
    pub disk: Arc<Mutex<Disk>>,
    pub hook: std::sync::Mutex<Arc<Hook>>,
    /// Called with what is fetched.
    pub fetch_hook: std::sync::Mutex<Option<Box<FetchHook>>>,
    /// Whether its data are not in chunks.
    pub unchunked: bool,
    pub direct: bool,
    /// Whether direct requests name the extents that have to move.
    pub extents: bool,
    /// Whether requests that go past the cache say which cells they touch.
    pub reaches: bool,
    pub can_drop_values: bool,
    pub living: Arc<Living>,
    /// Extra bytes that a chunk allocates until it is condensed.
    pub slack: u64,
    /// What a write claims that it may add to a chunk that exists.
    pub growth: u64,
    /// Whether nobody knows which part of a chunk a write is, as with sparse chunks.
    pub open: bool,
    /// The most bytes that a write makes a chunk allocate beyond what it uses; how many it does
    /// depends on what is written.
    pub swell: u64,
}

pub struct Chunk {
    mask: Vec<u8>,
    values: Option<Vec<u8>>,
    slack: u64,
    can_drop_values: bool,
    living: Arc<Living>,
    /// Counts the chunk among those that live in the cache.
    alive: Option<Alive>,
}

pub enum Read<'a> {
    Values { start: usize, out: &'a mut [u8] },
    Defined(&'a mut Vec<usize>),
}

pub enum Write<'a> {
    Put { start: usize, data: &'a [u8] },
    Erase { start: usize, len: usize },
}

impl Toy {
    pub fn new(cells: usize) -> Self {
        Toy::on(Arc::new(Mutex::new(Disk::default())), cells)
    }

    /// A toy that shares another's disk.
    pub fn beside(other: &Toy) -> Self {
        let living = Arc::clone(&other.living);
        Toy {
            living,
            swell: other.swell,
            open: other.open,
            ..Toy::on(Arc::clone(&other.disk), other.cells)
        }
    }

    fn on(disk: Arc<Mutex<Disk>>, cells: usize) -> Self {
        let id = {
            let mut disk = disk.lock().unwrap_or_else(PoisonError::into_inner);
            disk.toys += 1;
            disk.toys
        };
        Toy {
            cells,
            id,
            disk,
            hook: std::sync::Mutex::new(Arc::new(|_, _| Ok(()))),
            fetch_hook: std::sync::Mutex::new(None),
            unchunked: false,
            direct: false,
            extents: false,
            reaches: false,
            can_drop_values: true,
            living: Arc::default(),
            slack: 0,
            growth: 0,
            open: false,
            swell: 0,
        }
    }

    /// The memory of a decoded chunk, and also its stored size.
    pub fn chunk_bytes(&self) -> u64 {
        2 * self.cells as u64
    }

    pub fn set_hook(
        &self,
        hook: impl Fn(&'static str, Option<u64>) -> Result<(), ToyError> + Send + Sync + 'static,
    ) {
        *self.hook.lock().unwrap() = Arc::new(hook);
    }

    pub fn set_fetch_hook(&self, hook: impl Fn(&[Fetch<'_>]) + Send + 'static) {
        *self.fetch_hook.lock().unwrap() = Some(Box::new(hook));
    }

    pub fn clear_hook(&self) {
        self.set_hook(|_, _| Ok(()));
    }

    /// Not poisoned by a panic: a model's threads share one true thread and its panics.
    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn call(&self, name: &'static str, key: Option<u64>) -> Result<(), ToyError> {
        let hook = Arc::clone(&self.hook.lock().unwrap());
        hook(name, key)
    }

    /// Stores chunks with every cell defined and holding `value(chunk, cell)`.
    pub fn store(&self, chunks: impl IntoIterator<Item = u64>, value: impl Fn(u64, usize) -> u8) {
        for key in chunks {
            let values = (0..self.cells).map(|cell| value(key, cell)).collect();
            let chunk = self.chunk(vec![1; self.cells], Some(values), 0);
            let bytes = encode(&chunk, self.disguise());
            let mut disk = self.disk();
            let offset = disk.place((self.id, key), bytes.len() as u64) as usize;
            disk.bytes[offset..offset + bytes.len()].copy_from_slice(&bytes);
        }
    }

    /// What is stored: a value for each defined cell.
    pub fn stored(&self, key: u64) -> Option<Vec<Option<u8>>> {
        let disk = self.disk();
        let &(offset, len) = disk.index.get(&(self.id, key))?;
        let bytes = disk.bytes[offset as usize..][..len as usize].to_vec();
        let chunk = self.undisguise(bytes, Part::All);
        let values = chunk.values.unwrap();
        Some(chunk.mask.iter().zip(values).map(|(m, v)| (*m == 1).then_some(v)).collect())
    }

    /// A chunk from its stored bytes.
    fn undisguise(&self, mut bytes: Vec<u8>, part: Part) -> Chunk {
        match part {
            Part::Defined => {
                assert_eq!(bytes.len(), self.cells, "the head is all that is fetched");
                self.chunk(bytes, None, 0)
            }
            Part::All => {
                let values = bytes.split_off(self.cells).into_iter();
                let values = values.map(|v| v ^ self.disguise()).collect();
                self.chunk(bytes, Some(values), 0)
            }
        }
    }

    fn disguise(&self) -> u8 {
        if self.extents { 0 } else { DISGUISE }
    }

    /// Cells of a chunk as they are stored.
    pub fn image(&self, values: &[u8]) -> Vec<u8> {
        let chunk = self.chunk(vec![1; values.len()], Some(values.to_vec()), 0);
        encode(&chunk, self.disguise())
    }

    /// A chunk that does not count as living.
    fn chunk(&self, mask: Vec<u8>, values: Option<Vec<u8>>, slack: u64) -> Chunk {
        let (can_drop_values, living) = (self.can_drop_values, Arc::clone(&self.living));
        Chunk { mask, values, slack, can_drop_values, living, alive: None }
    }

    pub fn stored_keys(&self) -> Vec<u64> {
        let disk = self.disk();
        disk.index.keys().filter(|(toy, _)| *toy == self.id).map(|(_, key)| *key).collect()
    }
}

fn reach(start: usize, len: usize) -> Reach {
    Reach::of(std::iter::once(start as u64..(start + len) as u64))
}

impl Disk {
    fn place(&mut self, key: (u64, u64), len: u64) -> u64 {
        let offset = self.bytes.len() as u64;
        self.bytes.resize((offset + len) as usize, 0xee);
        self.index.insert(key, (offset, len));
        offset
    }
}

/// Cells that are not defined are stored with the fill value: who reads values alone finds it.
fn encode(chunk: &Chunk, disguise: u8) -> Vec<u8> {
    let values = chunk.values.as_ref().expect("only chunks with values are encoded");
    let values = chunk.mask.iter().zip(values).map(|(m, v)| if *m == 1 { *v } else { FILL });
    chunk.mask.iter().copied().chain(values.map(|v| v ^ disguise)).collect()
}

impl Chunk {
    /// Counts it among the living once more, as its size may have changed.
    fn count_again(&mut self) {
        self.alive = None;
        self.alive = Alive::new(&self.living, self.footprint().allocated);
    }

    fn scatter(&self, read: &mut Read<'_>) {
        match read {
            Read::Defined(out) => out.extend((0..self.mask.len()).filter(|&i| self.mask[i] == 1)),
            Read::Values { start, out } => {
                let values = self.values.as_ref().expect("values were asked for");
                for (i, byte) in out.iter_mut().enumerate() {
                    *byte = if self.mask[*start + i] == 1 { values[*start + i] } else { FILL };
                }
            }
        }
    }

    fn gather(&mut self, write: &Write<'_>) -> Outcome {
        match *write {
            Write::Put { start, data } => {
                self.mask[start..start + data.len()].fill(1);
                let values = self.values.as_mut().expect("writes have all of the chunk");
                values[start..start + data.len()].copy_from_slice(data);
                Outcome::Keep
            }
            Write::Erase { start, len } => {
                self.mask[start..start + len].fill(0);
                if self.mask.contains(&1) { Outcome::Keep } else { Outcome::Delete }
            }
        }
    }
}

impl Family for Toy {
    type Key = u64;
    type Chunk = Chunk;
    type Tag = Mark;
    type Read<'a> = Read<'a>;
    type Write<'a> = Write<'a>;
    type Error = ToyError;
}

impl ByteStore<Toy> for Toy {
    fn id(&self) -> StoreId {
        StoreId::of(&*self.disk)
    }

    fn fetch(&self, reads: &mut [Fetch<'_>]) -> Result<(), ToyError> {
        self.call("fetch", None)?;
        assert!(reads.iter().all(|read| !read.buffer.is_empty()));
        if let Some(hook) = &*self.fetch_hook.lock().unwrap() {
            hook(reads);
        }
        assert!(reads.windows(2).all(|pair| pair[0].offset <= pair[1].offset));
        let disk = self.disk();
        for read in reads {
            let from = read.offset as usize;
            read.buffer.copy_from_slice(&disk.bytes[from..from + read.buffer.len()]);
        }
        Ok(())
    }

    fn put(&self, writes: &[Put<'_>]) -> Result<(), ToyError> {
        self.call("put", None)?;
        assert!(writes.windows(2).all(|pair| pair[0].offset < pair[1].offset));
        let mut disk = self.disk();
        for write in writes {
            let to = write.offset as usize;
            disk.bytes[to..to + write.bytes.len()].copy_from_slice(write.bytes);
        }
        Ok(())
    }
}

impl ChunkStore<Toy> for Toy {
    fn lookup(&self, keys: &[u64]) -> Result<Lookups<Mark>, ToyError> {
        self.call("lookup", keys.first().copied())?;
        let disk = self.disk();
        let find = |key: &u64| {
            let &(offset, len) = disk.index.get(&(self.id, *key))?;
            Some(Stored::new(offset, len, None).head(self.cells as u64))
        };
        Ok(keys.iter().map(find).collect())
    }

    fn insert(&self, placements: &mut [Placement<u64, Mark>]) -> Result<(), ToyError> {
        self.call("insert", None)?;
        let mut disk = self.disk();
        for placement in placements {
            placement.offset = disk.place((self.id, placement.key), placement.len);
        }
        Ok(())
    }

    fn settle(&self, _: &[Placement<u64, Mark>], written: bool) -> Result<(), ToyError> {
        self.call(if written { "settle" } else { "give_up" }, None)
    }

    fn delete(&self, key: &u64) -> Result<(), ToyError> {
        self.call("delete", Some(*key))?;
        self.disk().index.remove(&(self.id, *key));
        Ok(())
    }
}

impl ChunkMemory for Chunk {
    fn footprint(&self) -> Footprint {
        let used = (self.mask.len() + self.values.as_ref().map_or(0, Vec::len)) as u64;
        let part = if self.values.is_some() { Part::All } else { Part::Defined };
        Footprint { used, allocated: used + self.slack, part }
    }

    fn trim(&mut self, what: Trim) {
        match what {
            Trim::Slack => self.slack = 0,
            Trim::Values if self.can_drop_values => self.values = None,
            Trim::Values => {}
        }
        self.count_again();
    }
}

impl Layout<Toy> for Toy {
    fn chunks(&self) -> &dyn ChunkStore<Toy> {
        self
    }

    fn decode(
        &self,
        key: &u64,
        bytes: Vec<u8>,
        _stored: &Stored<Mark>,
        part: Part,
    ) -> Result<Chunk, ToyError> {
        self.call("decode", Some(*key))?;
        let mut chunk = self.undisguise(bytes, part);
        chunk.slack = self.slack;
        chunk.count_again();
        Ok(chunk)
    }

    fn new_chunk(&self, key: &u64, fill: bool) -> Result<Chunk, ToyError> {
        self.call("new_chunk", Some(*key))?;
        // Without fill, junk: whoever asked for it said that it overwrites everything.
        let mask = vec![u8::from(!fill); self.cells];
        let mut chunk = self.chunk(mask, Some(vec![0xdd; self.cells]), self.slack);
        chunk.count_again();
        Ok(chunk)
    }

    fn encode(&self, key: &u64, chunk: &Chunk) -> Result<Encoded<Mark>, ToyError> {
        self.call("encode", Some(*key))?;
        let bytes = encode(chunk, self.disguise());
        let mark = Alive::new(&self.living, bytes.len() as u64).map(Arc::new);
        Ok(Encoded::new(bytes, mark))
    }

    fn scatter(
        &self,
        key: &u64,
        chunk: Option<&Chunk>,
        read: &mut Read<'_>,
    ) -> Result<(), ToyError> {
        self.call(if chunk.is_some() { "scatter" } else { "scatter_absent" }, Some(*key))?;
        match (chunk, read) {
            (Some(chunk), read) => chunk.scatter(read),
            (None, Read::Values { out, .. }) => out.fill(FILL),
            (None, Read::Defined(_)) => {}
        }
        Ok(())
    }

    fn gather(
        &self,
        key: &u64,
        chunk: &mut Chunk,
        write: &mut Write<'_>,
    ) -> Result<Outcome, ToyError> {
        self.call("gather", Some(*key))?;
        let outcome = chunk.gather(write);
        if self.swell > 0 {
            let bytes: u64 =
                chunk.mask.iter().chain(chunk.values.iter().flatten()).map(|&b| u64::from(b)).sum();
            chunk.slack = bytes * 31 % (self.swell + 1);
            chunk.count_again();
        }
        self.call("gathered", Some(*key))?;
        Ok(outcome)
    }

    fn plan_read(&self, _: &u64, _: Option<&Stored<Mark>>, read: &Read<'_>) -> ReadPlan {
        let (part, share) = match read {
            Read::Values { out, .. } => (Part::All, out.len() as f32 / self.cells as f32),
            Read::Defined(_) => (Part::Defined, 0.0),
        };
        ReadPlan { part, share, keep: true, direct: self.direct.then_some(0) }
    }

    fn plan_write(&self, _: &u64, _: Option<&Stored<Mark>>, write: &Write<'_>) -> WritePlan {
        let intent = match write {
            Write::Put { data, .. } if data.len() == self.cells => Intent::Replace,
            Write::Put { .. } => Intent::Update,
            Write::Erase { .. } => Intent::UpdateExisting,
        };
        let share = match write {
            Write::Put { data, .. } if !self.open => data.len() as f32 / self.cells as f32,
            Write::Put { .. } | Write::Erase { .. } => 0.0,
        };
        WritePlan {
            intent,
            share,
            growth: self.growth.max(self.swell),
            fresh: self.chunk_bytes() + self.slack.max(self.swell),
            keep: true,
            direct: self.direct.then_some(0),
        }
    }

    fn direct_read<'r>(
        &self,
        key: &u64,
        _: &Stored<Mark>,
        read: &'r mut Read<'_>,
        extents: &mut Vec<Fetch<'r>>,
    ) -> Result<Option<Direct>, ToyError> {
        match self.direct {
            true => self.move_in(key, read, extents).map(Some),
            false => Ok(None),
        }
    }

    fn direct_write<'r>(
        &self,
        key: &u64,
        _: &Stored<Mark>,
        write: &'r mut Write<'_>,
        extents: &mut Vec<Put<'r>>,
    ) -> Result<Option<Direct>, ToyError> {
        match self.direct {
            true => self.move_out(key, write, extents).map(Some),
            false => Ok(None),
        }
    }

    fn successors(&self, recent: &[u64], now: &[u64], count: usize) -> Vec<u64> {
        let stride = match recent {
            [] => now.len() as u64,
            [.., first, second] => {
                let stride = second.wrapping_sub(*first);
                if now[0].wrapping_sub(*second) != stride {
                    return Vec::new();
                }
                stride
            }
            _ => return Vec::new(),
        };
        let steps = 1..=(count / now.len()) as u64;
        let all = steps.flat_map(|step| {
            now.iter().map(move |key| key.wrapping_add(stride.wrapping_mul(step)))
        });
        all.filter(|key| *key < 1 << 40).collect()
    }
}

impl Unchunked<Toy> for Toy {
    fn read<'r>(
        &self,
        key: &u64,
        read: &'r mut Read<'_>,
        extents: &mut Vec<Fetch<'r>>,
    ) -> Result<Direct, ToyError> {
        self.move_in(key, read, extents)
    }

    fn write<'r>(
        &self,
        key: &u64,
        write: &'r mut Write<'_>,
        extents: &mut Vec<Put<'r>>,
    ) -> Result<Direct, ToyError> {
        self.move_out(key, write, extents)
    }

    fn read_reach(&self, _: &u64, read: &Read<'_>) -> Option<Reach> {
        self.reaches.then(|| match read {
            Read::Values { start, out } => reach(*start, out.len()),
            Read::Defined(_) => reach(0, self.cells),
        })
    }

    fn write_reach(&self, _: &u64, write: &Write<'_>) -> Option<Reach> {
        self.reaches.then(|| match *write {
            Write::Put { start, data } => reach(start, data.len()),
            Write::Erase { start, len } => reach(start, len),
        })
    }
}

/// Reads and writes past the cache.
impl Toy {
    fn move_in<'r>(
        &self,
        key: &u64,
        read: &'r mut Read<'_>,
        extents: &mut Vec<Fetch<'r>>,
    ) -> Result<Direct, ToyError> {
        self.call("direct_read", Some(*key))?;
        let place = self.disk().index.get(&(self.id, *key)).map(|&(offset, _)| offset);
        let stored = self.stored(*key).unwrap_or_else(|| vec![None; self.cells]);
        match (read, place.filter(|_| self.extents)) {
            (Read::Values { start, out }, Some(offset)) => {
                let offset = offset + (self.cells + *start) as u64;
                extents.push(Fetch { offset, buffer: out });
                return Ok(Direct::Extents);
            }
            (Read::Values { start, out }, None) => {
                let values = stored[*start..].iter().map(|value| value.unwrap_or(FILL));
                out.iter_mut().zip(values).for_each(|(out, value)| *out = value);
            }
            (Read::Defined(out), _) => {
                out.extend((0..self.cells).filter(|&i| stored[i].is_some()));
            }
        }
        Ok(Direct::Done { bytes: self.chunk_bytes() })
    }

    fn move_out<'r>(
        &self,
        key: &u64,
        write: &'r mut Write<'_>,
        extents: &mut Vec<Put<'r>>,
    ) -> Result<Direct, ToyError> {
        self.call("direct_write", Some(*key))?;
        let mut disk = self.disk();
        let size = self.chunk_bytes();
        let here = (self.id, *key);
        if !disk.index.contains_key(&here) {
            let offset = disk.place(here, size) as usize;
            disk.bytes[offset..offset + self.cells].fill(0);
            disk.bytes[offset + self.cells..offset + size as usize].fill(FILL ^ self.disguise());
        }
        let offset = disk.index[&here].0 as usize;
        if let (true, Write::Put { start, data }) = (self.extents, &*write) {
            let offset = (offset + start) as u64;
            extents.push(Put { offset, bytes: &DEFINED[..data.len()] });
            extents.push(Put { offset: offset + self.cells as u64, bytes: data });
            return Ok(Direct::Extents);
        }
        let stored = &mut disk.bytes[offset..offset + size as usize];
        let mut chunk = self.undisguise(stored.to_vec(), Part::All);
        chunk.gather(write);
        stored.copy_from_slice(&encode(&chunk, self.disguise()));
        Ok(Direct::Done { bytes: size })
    }
}

/// Cells of a chunk as a toy in disguise stores them.
pub fn image(values: &[u8]) -> Vec<u8> {
    Toy::new(values.len()).image(values)
}
