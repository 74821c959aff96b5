//! What the bytes mean: one module per on-disk structure, no input or output, no state, no panics.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

pub mod btree1;
mod context;
mod error;
pub mod index;
pub mod local_heap;
pub mod messages;
pub mod object_header;
mod sizes;
pub mod superblock;
pub mod symbol_table_node;

pub use context::Context;
pub use error::FormatError;
pub use pumice_bytes::{DecodeError, UNDEFINED};
pub use sizes::Sizes;
