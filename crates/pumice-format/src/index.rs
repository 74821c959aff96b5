//! Chunk index structures.
