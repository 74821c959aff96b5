//! What the bytes mean: one module per on-disk structure, no input or output, no state, no panics.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

pub mod index;
mod sizes;

pub use pumice_bytes::{DecodeError, UNDEFINED};
pub use sizes::Sizes;
