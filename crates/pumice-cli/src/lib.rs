//! The pumice command.
