//! Never published: what the tests of more than one crate need.
//!
//! The binaries beside it are the Rust side of the interoperability tests (`pumice-interop`) and
//! the table of replacement policies (`cache-traces`).

pub mod faults;
pub mod traces;
