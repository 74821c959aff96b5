//! Bytes to bytes: filters and pipelines, found by HDF5 filter id.
//!
//! A filter turns the bytes of a chunk (or of one section of a structured chunk) into other bytes
//! and back. A [`Pipeline`] runs several in a row, as the filter pipeline message of a dataset lists
//! them, and keeps the filter mask that says which were skipped.
//!
//! | id | filter | what it does |
//! |---|---|---|
//! | 1 | [deflate](FilterSpec::deflate) | zlib streams, through libdeflate |
//! | 2 | [shuffle](FilterSpec::shuffle) | groups the bytes of equal significance |
//! | 3 | [fletcher32](FilterSpec::fletcher32) | appends a checksum |
//! | 4 | [szip](FilterSpec::szip) | Rice coding of samples, with or without prediction |
//! | 5 | [nbit](FilterSpec::nbit) | only the significant bits of numbers |
//! | 6 | [scaleoffset](FilterSpec::scale_offset) | numbers as distances from the smallest, in few bits |
//! | 304 | [references] | references into a structured chunk's heap, as counts |
//! | 303 | [heap] | the objects of a structured chunk's heap, as lengths and bytes |
//! | 302 | [location] | which cells of a sparse chunk are defined, as gaps and lengths |
//! | 307 | [bzip2](FilterSpec::bzip2) | bzip2 streams |
//! | 32000 | [lzf](FilterSpec::lzf) | h5py's fast compressor |
//! | 32001 | [blosc](FilterSpec::blosc) | shuffled blocks through one of six codecs |
//! | 32004 | [lz4](FilterSpec::lz4) | LZ4 blocks |
//! | 32008 | [bitshuffle](FilterSpec::bitshuffle) | groups the bits of equal significance; LZ4 or Zstandard |
//! | 32013 | zfp | numbers in blocks, with or without loss, read only |
//! | 32015 | [zstd](FilterSpec::zstd) | Zstandard frames |
//! | 32026 | blosc2 | frames of shuffled blocks, read only |
//!
//! With the feature `plugins`, other filters are looked for among the shared libraries of
//! `HDF5_PLUGIN_PATH`, as libhdf5 does.
//!
//! ```
//! use pumice_filter::{FilterSpec, Pipeline};
//!
//! let pipeline = Pipeline::new(vec![FilterSpec::shuffle(4), FilterSpec::deflate(6)])?;
//! let values: Vec<u8> = (0..1000u32).flat_map(u32::to_le_bytes).collect();
//!
//! let (stored, mask) = pipeline.encode(values.clone())?;
//! assert!(stored.len() < values.len() / 2);
//! assert_eq!(mask, 0, "no filter was skipped");
//! assert_eq!(pipeline.decode(stored, mask, values.len())?, values);
//! # Ok::<(), pumice_filter::FilterError>(())
//! ```
//!
//! Decoding never produces more than the `limit` the caller gives, whatever the bytes say.

// Allowed for plugins, which are C, for wide registers, in the files named `wide.rs`, and for stores past the
// caches, in `stream.rs`.
#![deny(unsafe_code)]

mod bits;
mod bitshuffle;
mod blosc;
mod blosc2;
mod bzip2;
mod deflate;
mod error;
mod facts;
mod filter;
mod fletcher32;
pub mod heap;
mod heap_section;
pub mod location;
mod lz4;
mod lzf;
mod matches;
mod nbit;
mod pipeline;
mod planes;
#[cfg(feature = "plugins")]
mod plugins;
mod read_only;
pub mod references;
mod registry;
mod scaleoffset;
pub mod scratch;
mod section;
mod shuffle;
mod spec;
mod stream;
mod szip;
mod zfp;
mod zstandard;

pub use error::FilterError;
pub use facts::DatasetFacts;
pub use filter::Filter;
pub use heap_section::{EncodedHeap, HeapSection};
pub use pipeline::{MAX_FILTERS, Pipeline};
pub use registry::{find, register, registered_name};
pub use section::EncodedCells;
pub use spec::{BitshuffleCodec, BloscCodec, BloscShuffle, FilterSpec, Scaling, SzipCoding};
pub use stream::{stream_copy, stream_fence};
