//! Guides: how things are done, with examples.

#[doc = include_str!("../../../docs/guide/sparse.md")]
pub mod sparse {}
