//! Ranks that are threads write one file together.

mod ends;
mod identical;
mod model;
mod support;
mod together;
