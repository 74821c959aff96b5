//! The Python package `pumice`.
//!
//! Not begun: the crate keeps its place in the layers until the package is written.
