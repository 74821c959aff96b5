//! The shared chunk cache: knows chunks, budgets, policies and threads; knows nothing of HDF5.

#![forbid(unsafe_code)]

mod access;
mod budget;
mod cache;
mod config;
mod error;
mod evict;
mod exclusive;
mod executor;
mod layout;
mod load;
mod member;
mod order;
mod policy;
mod request;
mod shield;
mod slot;
mod stats;
mod sync;
mod writeback;

pub use cache::{ChunkCache, Dataset};
pub use config::{Config, DatasetOptions, PolicyKind};
pub use error::CacheError;
pub use exclusive::Exclusive;
pub use executor::{Executor, Inline, Rayon};
pub use layout::{
    Encoded, Fetch, Footprint, Intent, Layout, Lookups, Outcome, Part, Placement, Put, Stored,
};
pub use policy::{Lirs, Lru, Policy};
pub use stats::Stats;
