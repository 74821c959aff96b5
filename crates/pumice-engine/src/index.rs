//! Chunk indexes: from a chunk's coordinates to its place in the file.
