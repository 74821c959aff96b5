//! The Python package pumice.
