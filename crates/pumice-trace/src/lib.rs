//! Traces of a chunk cache, and the simulator that replays them against any policy and size.
//!
//! | module | what is there |
//! |---|---|
//! | [`trace`] | which chunks were used, in which order and how: in memory, in bytes, recorded from a cache |
//! | [`simulate`] | what a policy, the optimum or HDF5's private caches make of a trace |
//!
//! The policies are those of [`pumice_cache`]; the cache itself knows nothing of this crate.

pub mod simulate;
pub mod trace;
