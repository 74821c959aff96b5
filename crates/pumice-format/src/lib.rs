//! What the bytes mean: one module per on-disk structure, no input or output, no state, no panics.
