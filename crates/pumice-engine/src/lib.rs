//! A file as a living thing: objects, links, attributes, datasets, and the commit of all that changed.
//!
//! | module | what lives there |
//! |---|---|
//! | [`file`](mod@file), [`open_files`], [`version`] | an open file and its commit, the files of a process, the releases that are to read a file |
//! | [`object`], [`group`], [`attribute`], [`dataset`] | object headers and what they make |
//! | [`reference`](mod@reference) | what references lead to |
//! | [`copy`](mod@copy) | copying objects within and between files |
//! | [`measure`], [`survey`] | how large structures are, and where |
//! | [`delete`] | what happens when the last link to an object goes |
//! | `dense_storage.rs`, `group/old.rs` | many links and attributes of newer formats; links of older formats |
//! | `extension.rs`, [`share`], [`shared`] | what files keep beside their objects |
//! | `file_space.rs` | free space as libhdf5's managers store it |
//! | `members.rs`, [`onion`], `outside.rs` | files that are one file together; other files that a file names |
//!
//! Below it are `pumice-medium` (the file as space), `pumice-structures` (indexes, trees, heaps) and `pumice-layout`
//! (how raw data is stored). The crate `pumice` is the interface that programs use; this one has none of its comforts.

pub mod attribute;
pub mod copy;
pub mod dataset;
pub mod delete;
mod dense_storage;
mod extension;
pub mod file;
mod file_space;
pub mod group;
pub mod measure;
mod members;
pub mod object;
pub mod onion;
pub mod open_files;
mod outside;
pub mod reference;
pub mod share;
pub mod shared;
pub mod survey;
pub mod version;

pub use pumice_medium::{Error, ErrorKind, Result};
