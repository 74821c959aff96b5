//! The tests of traces and of the simulator; they record from a cache with the toy layout of the cache's own tests.
//!
//! One program, linked once: a new file of tests is a module here.

mod policies;
mod recording;
#[path = "../../../pumice-cache/tests/support/toy.rs"]
mod toy;
