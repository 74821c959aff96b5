//! The shared chunk cache: knows chunks, budgets, policies and threads; knows nothing of HDF5.
//!
//! Datasets of any number of files are registered with one [`ChunkCache`]. Each brings a
//! [`Layout`] that knows how its chunks are found, read, decoded, changed, encoded and stored, or is
//! [`Unchunked`]. All
//! reads and writes go through the cache, chunk by chunk; it decides what stays in memory, what is
//! written back when, and on which threads.
//!
//! What it promises:
//!
//! - **Order.** Requests of a dataset that overlap and include a write act as if run one after
//!   another, in the order in which they were made. Overlap is judged by chunk, or by
//!   [`Reach`] where data are not in chunks. Nobody sees half of a write. [`ChunkCache::exclusive`] holds back a dataset's requests while its shape changes.
//! - **Budget.** Between requests, chunks take at most the resident limit; while requests run, all
//!   that is held takes at most the active limit, but for one chunk that alone is larger. Layouts
//!   help with estimates; where those are too low, the limits are exceeded by the difference until
//!   the true size is known. Loading ahead is a request of its own: its chunks count like others,
//!   and a limit that holds between requests holds once it has ended, too.
//! - **Write-back.** Changed chunks are written when they must leave, at a flush or at the close. A
//!   chunk that cannot be written stays, and its dataset's flush or close tells; other requests go
//!   on as long as room can be made otherwise.
//! - **Failure.** A layout that fails or panics fails its request and nothing else.
//!
//! What it does not do: it does not order writes to the file across chunks, does not survive a
//! crash.
//!
//! # Example
//!
//! A layout whose chunks are four bytes, stored in a map:
//!
//! ```
//! use std::collections::BTreeMap;
//! use std::sync::{Arc, Mutex};
//!
//! use pumice_cache::*;
//!
//! #[derive(Default)]
//! struct Quads {
//!     index: Mutex<BTreeMap<u64, u64>>,
//!     disk: Mutex<Vec<u8>>,
//! }
//!
//! impl Family for Quads {
//!     type Key = u64;
//!     type Chunk = [u8; 4];
//!     type Tag = ();
//!     type Read<'a> = &'a mut [u8; 4];
//!     type Write<'a> = (usize, u8);
//!     type Error = CacheError;
//! }
//!
//! impl ByteStore<Quads> for Quads {
//!     fn fetch(&self, reads: &mut [Fetch<'_>]) -> Result<(), CacheError> {
//!         let disk = self.disk.lock().unwrap();
//!         for read in reads {
//!             read.buffer.copy_from_slice(&disk[read.offset as usize..][..4]);
//!         }
//!         Ok(())
//!     }
//!     fn put(&self, writes: &[Put<'_>]) -> Result<(), CacheError> {
//!         let mut disk = self.disk.lock().unwrap();
//!         for write in writes {
//!             disk[write.offset as usize..][..4].copy_from_slice(write.bytes);
//!         }
//!         Ok(())
//!     }
//! }
//!
//! impl ChunkStore<Quads> for Quads {
//!     fn lookup(&self, keys: &[u64]) -> Result<Lookups<()>, CacheError> {
//!         let index = self.index.lock().unwrap();
//!         Ok(keys.iter().map(|key| Some(Stored::new(*index.get(key)?, 4, ()))).collect())
//!     }
//!     fn insert(&self, placements: &mut [Placement<u64, ()>]) -> Result<(), CacheError> {
//!         let (mut index, mut disk) = (self.index.lock().unwrap(), self.disk.lock().unwrap());
//!         for placement in placements {
//!             placement.offset = disk.len() as u64;
//!             index.insert(placement.key, placement.offset);
//!             disk.extend([0; 4]);
//!         }
//!         Ok(())
//!     }
//!     fn delete(&self, key: &u64) -> Result<(), CacheError> {
//!         self.index.lock().unwrap().remove(key);
//!         Ok(())
//!     }
//! }
//!
//! impl Layout<Quads> for Quads {
//!     fn chunks(&self) -> &dyn ChunkStore<Quads> {
//!         self
//!     }
//!     fn decode(
//!         &self, _: &u64, bytes: Vec<u8>, _: &Stored<()>, _: Part,
//!     ) -> Result<[u8; 4], CacheError> {
//!         Ok(bytes.try_into().expect("four bytes were fetched"))
//!     }
//!     fn new_chunk(&self, _: &u64, _fill: bool) -> Result<[u8; 4], CacheError> {
//!         Ok([0; 4])
//!     }
//!     fn encode(&self, _: &u64, chunk: &[u8; 4]) -> Result<Encoded<()>, CacheError> {
//!         Ok(Encoded::new(chunk.to_vec(), ()))
//!     }
//!     fn scatter(
//!         &self, _: &u64, chunk: Option<&[u8; 4]>, out: &mut &mut [u8; 4],
//!     ) -> Result<(), CacheError> {
//!         **out = *chunk.unwrap_or(&[0; 4]);
//!         Ok(())
//!     }
//!     fn gather(
//!         &self, _: &u64, chunk: &mut [u8; 4], (cell, value): &mut (usize, u8),
//!     ) -> Result<Outcome, CacheError> {
//!         chunk[*cell] = *value;
//!         Ok(Outcome::Keep)
//!     }
//! }
//!
//! let quads = Arc::new(Quads::default());
//! let cache = ChunkCache::new(Config::default());
//! let dataset = cache.register(Arc::clone(&quads), DatasetOptions::default());
//!
//! cache.write(&dataset, [(7, (0, 1)), (8, (3, 2))])?;
//! let (mut seven, mut nine) = ([0; 4], [9; 4]);
//! cache.read(&dataset, [(7, &mut seven), (9, &mut nine)])?;
//! assert_eq!((seven, nine), ([1, 0, 0, 0], [0; 4]));
//! assert!(quads.disk.lock().unwrap().is_empty(), "not written yet");
//!
//! dataset.close()?;
//! assert_eq!(*quads.disk.lock().unwrap(), [1, 0, 0, 0, 0, 0, 0, 2]);
//! # Ok::<(), CacheError>(())
//! ```
//!
//! # How it is made
//!
//! `order` says who waits for whom, `slot` holds a chunk, `budget` keeps the books and asks the
//! `policy`. `request` runs a request in its turn: `load` brings chunks, `access` reads and changes
//! them, `evict` makes room and `writeback` saves what is dirty. `sync` lets a model checker stand in
//! for the system's locks; `tests/shuttle.rs` has the models.

// Allowed in `executor/call.rs` alone.
#![deny(unsafe_code)]

mod absent;
mod access;
mod adaptive;
mod admission;
mod ahead;
mod batches;
mod budget;
mod cache;
mod config;
mod error;
mod evict;
mod exchange;
mod exclusive;
mod executor;
mod handles;
mod layout;
mod list;
mod load;
mod member;
mod moves;
mod observer;
mod order;
#[cfg(all(target_os = "linux", not(shuttle)))]
mod perches;
#[cfg(any(not(target_os = "linux"), shuttle))]
#[path = "perches/elsewhere.rs"]
mod perches;
// Statics that are never freed, behind one pointer.
#[allow(unsafe_code)]
mod per_process;
mod plan;
mod policy;
mod reach;
mod refused;
mod request;
mod shield;
mod slot;
mod stats;
mod stored;
mod sync;
mod writeback;

pub use adaptive::{CurvePoint, Memory, Sizing, Surroundings, System};
pub use ahead::MOST_EXPECTED;
pub use cache::ChunkCache;
pub use config::{Config, DatasetOptions, PolicyKind};
pub use error::CacheError;
pub use exclusive::{Exclusive, Held, ReadInParts, Room, WriteInParts};
pub use executor::{Executor, Inline, Pool};
pub use handles::{CachedFile, Dataset};
pub use layout::{
    Announced, ByteStore, ChunkMemory, ChunkStore, Direct, Encoded, Family, Fetch, Footprint,
    Intent, Layout, Lookups, Outcome, Part, Placement, Put, ReadPlan, StoreId, Stored, Trim,
    Unchunked, WritePlan,
};
pub use observer::Observer;
pub use per_process::PerProcess;
pub use policy::{Hint, Lirs, Lru, Policy, Random, TinyLfu, TwoStage, Usage, Weight, WeightedLru};
pub use reach::Reach;
pub use refused::Refused;
pub use stats::Stats;
pub use stored::StoredChunk;
