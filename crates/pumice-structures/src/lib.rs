//! Structures of a file that change while it is open: chunk indexes, B-trees and heaps.
//!
//! | module | what is there |
//! |---|---|
//! | [`index`] | where the chunks of a dataset are: one module for each index of HDF5 |
//! | [`btree2`] | version 2 B-trees: records of chunks, links, attributes and huge objects |
//! | [`fractal_heap`] | links and attributes of groups and objects with many of them |
//! | [`local_heap`] | names of links in groups of the old format |
//! | [`global_heap`] | values of variable length |
//! | `filters.rs` | filters between their messages and pipelines that run |
//!
//! The crate `pumice-format` decodes and encodes their blocks. A structure reads blocks from a
//! [`Medium`](pumice_medium::Medium), changes them in memory and stages them for the next commit.

pub mod btree2;
mod filters;
pub mod fractal_heap;
pub mod global_heap;
pub mod index;
pub mod local_heap;

pub use filters::{pipeline_of, spec_of};
