//! A file as a living thing: metadata staging and commit, space allocator, objects, chunk indexes,
//! and the layouts that plug into the cache.

mod error;
pub mod index;
pub mod metadata;

pub use error::{Error, Result};
