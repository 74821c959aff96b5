//! The tests of the engine.
//!
//! One program, linked once: a new file of tests is a module here.

mod commit;
mod index;
mod index_btree1;
mod index_damage;
mod index_tree;
mod memory;
mod outside;
mod written_together;
