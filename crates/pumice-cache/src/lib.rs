//! The shared chunk cache: knows chunks, budgets, policies and threads; knows nothing of HDF5.

#![forbid(unsafe_code)]

mod cache;
mod config;
mod error;
mod executor;
mod layout;
mod policy;
mod stats;
mod sync;

pub use cache::{ChunkCache, Dataset, Exclusive};
pub use config::{Config, DatasetOptions, PolicyKind};
pub use error::CacheError;
pub use executor::{Executor, Inline, Rayon};
pub use layout::{
    Encoded, Fetch, Footprint, Intent, Layout, Outcome, Part, Placement, Put, Stored,
};
pub use policy::{Lirs, Lru, Policy};
pub use stats::Stats;
