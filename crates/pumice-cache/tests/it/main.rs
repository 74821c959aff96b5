//! The tests of the cache on real threads; `shuttle.rs` has the model check.
//!
//! One program, linked once: a new file of tests is a module here.

#![cfg(not(shuttle))]

mod adaptive;
mod ahead;
#[path = "../support/beside.rs"]
mod beside;
mod caching;
mod failing;
mod operations;
mod order;
mod policies;
mod stress;
#[path = "../support/toy.rs"]
mod toy;
