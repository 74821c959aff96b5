//! The tests of filters; `plugins.rs` and `hdf5plugin.rs` change the environment and stay apart.
//!
//! One program, linked once: a new file of tests is a module here.

mod filters;
mod heap;
mod location;
mod many_runs;
#[cfg(target_os = "linux")]
mod memory;
mod pipeline;
mod read_only;
mod vectors;
mod visited_cells;
