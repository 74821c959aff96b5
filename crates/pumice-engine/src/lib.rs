//! A file as a living thing: metadata staging and commit, space allocator, objects, chunk indexes,
//! and the layouts that plug into the cache.
//!
//! | module | what lives there |
//! |---|---|
//! | [`file`](mod@file), [`version`] | an open file and its commit, the releases that are to read it |
//! | [`medium`], [`allocator`], [`metadata`] | the file as space, and staged metadata |
//! | [`object`], [`group`], [`attribute`], [`dataset`] | object headers and what they make |
//! | [`global_heap`], [`reference`](mod@reference) | where variable-length data lies; what references lead to |
//! | [`copy`](mod@copy) | copying objects within and between files |
//! | [`measure`], [`survey`] | how large structures are, and where |
//! | [`delete`] | what happens when the last link to an object goes |
//! | `dense`, `fractal_heap`, `btree2` | many links and attributes of newer formats |
//! | `group/old`, `local_heap` | links of older formats |
//! | `extension`, `shared` | what files keep beside their objects |
//! | `members`, [`onion`], `outside` | files that are one file together; other files that a file names |
//! | [`index`] | chunk indexes |
//! | [`layout`] | contiguous, dense and sparse storage as the chunk cache sees them |
//! | [`buffer`] | the caller's memory, filled by many threads |
//!
//! The crate `pumice` is the interface that programs use; this one has none of its comforts.

pub mod allocator;
pub mod attribute;
mod btree2;
pub mod buffer;
pub mod copy;
pub mod dataset;
pub mod delete;
mod dense;
mod error;
mod extension;
pub mod file;
mod file_space;
mod fractal_heap;
pub mod global_heap;
pub mod group;
pub mod index;
pub mod journal;
pub mod layout;
mod local_heap;
pub mod measure;
pub mod medium;
mod members;
pub mod metadata;
pub mod object;
pub mod onion;
pub mod open_files;
mod outside;
pub mod reference;
pub mod share;
pub mod shared;
pub mod survey;
pub mod version;

pub use error::{Error, ErrorKind, Result};
