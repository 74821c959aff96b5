//! The C interface of Pumice.
//!
//! Not begun: the crate keeps its place in the layers until the functions are written.
