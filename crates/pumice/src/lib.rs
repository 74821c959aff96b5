//! HDF5, native in Rust, with sparse storage and one shared chunk cache.
