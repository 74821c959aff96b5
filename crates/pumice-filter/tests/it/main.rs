//! The tests of filters; `plugins.rs` changes the environment and stays apart.
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
