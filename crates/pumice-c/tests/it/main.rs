//! The C interface as C programs see it: the header, the examples, an installation.

mod agreement;
mod examples;
mod installation;
mod support;
