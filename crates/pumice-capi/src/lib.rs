//! The C interface of Pumice.
