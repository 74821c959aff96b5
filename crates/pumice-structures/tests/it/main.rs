//! The tests of structures.
//!
//! One program, linked once: a new file of tests is a module here.

mod index;
mod index_btree1;
mod index_damage;
mod index_tree;
mod memory;
