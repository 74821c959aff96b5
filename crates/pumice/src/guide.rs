//! Guides: how things are done, with examples.

#[doc = include_str!("../guide/sparse.md")]
pub mod sparse {}
