//! Where bytes live: positional, vectored reads and writes on files and memory.
