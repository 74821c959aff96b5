//! Tests of reading from web servers: what is asked for, and what happens when it does not come.

mod corpus;
mod disk;
mod faults;
mod requests;
mod server;
