//! The file as space: a store, the allocator of its ranges, staged metadata, the journal and the commit.
//!
//! | module | what is there |
//! |---|---|
//! | `medium.rs`, `medium/` | [`Medium`]: reads, writes, staged blocks, the commit |
//! | [`allocator`] | which ranges of a file are free |
//! | [`journal`] | what a commit is about to replace, behind the end of the file |
//! | `metadata.rs` | [`MetadataIo`]: metadata blocks as structures see them |
//! | `memory.rs` | memory of a size that a file dictates |
//! | `error.rs` | [`Error`]: whatever can go wrong with an open file, for all crates above this one |
//!
//! The crate knows addresses and bytes. What the bytes mean is known to the crates above.

pub mod allocator;
mod error;
pub mod journal;
mod medium;
mod memory;
mod metadata;

pub use error::{Error, ErrorKind, Result};
pub use medium::{METADATA_LIMIT, MOST_HELD, Medium, SearchResult, Snapshot, Swmr, again};
pub use memory::{reserved, zeroed};
pub use metadata::{DataKind, MetadataIo, OfIndex, USUAL_CHUNK_NODE_RANK};
