//! Pumice for C: files, arrays, sparse cells and attributes, without libhdf5.
//!
//! `include/pumice.h` is what programs see, and `docs/c.md` tells how to install and use it. This crate has the
//! functions of that header, a file for each of its parts, and nothing else that is public: Rust programs use the crate
//! `pumice`. A test compares the header with the functions.
//!
//! Rules that hold for all functions:
//!
//! - Errors and panics become a status and a message of the thread (`fault.rs`): no panic crosses the border.
//! - Handles are boxes that the program gives back once. A null pointer is an error, or nothing to give back.
//! - `unsafe` is what a C function cannot do without: pointers that the header describes. Each function says what it
//!   needs of them under "Safety", and `memory.rs` is where they are followed.

mod attribute;
mod cells;
mod csr;
mod dataset;
mod fault;
mod file;
mod memory;
mod names;
mod number;
mod window;
