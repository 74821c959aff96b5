//! Bytes to bytes: filters and pipelines, found by HDF5 filter id.
