//! The tests of datatypes and conversions.
//!
//! One program, linked once: a new file of tests is a module here.

mod conversion;
mod ddl;
mod model;
mod number_properties;
mod numbers;
mod transform;
