//! The tests of the engine.
//!
//! One program, linked once: a new file of tests is a module here.

mod commit;
mod outside;
mod written_together;
