//! The tests of selections and cell sets.
//!
//! One program, linked once: a new file of tests is a module here.

mod cell_set;
mod cost;
mod model;
mod plan;
mod points;
mod selection;
mod serial;
