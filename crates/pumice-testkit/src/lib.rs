//! Tools for tests of several crates; never published.
//!
//! The binaries beside it are the Rust side of the interoperability tests (`pumice-interop`), the
//! table of replacement policies (`cache-traces`), and everything in a file with hashes instead of
//! values (`manifest`).

pub mod damage;
pub mod faults;
pub mod manifest;
pub mod moments;
pub mod parts;
pub mod recording;
pub mod traces;
