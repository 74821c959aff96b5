//! The tests of the codecs.
//!
//! One program, linked once: a new file of tests is a module here.

mod corpus;
mod oracle;
mod reserved;
mod totality;
