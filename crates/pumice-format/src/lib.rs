//! What the bytes mean: one module per on-disk structure, no input or output, no state, no panics.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]

mod context;
mod error;
pub mod index;
pub mod messages;
mod sizes;

pub use context::Context;
pub use error::FormatError;
pub use pumice_bytes::{DecodeError, UNDEFINED};
pub use sizes::Sizes;
