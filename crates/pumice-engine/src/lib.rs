//! A file as a living thing: metadata staging and commit, space allocator, objects, chunk indexes,
//! and the layouts that plug into the cache.

pub mod allocator;
mod error;
pub mod index;
pub mod medium;
pub mod metadata;

pub use error::{Error, Result};
