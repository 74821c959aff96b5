//! Chunk index structures: the record of one chunk, and the blocks that hold many of them.
//!
//! | module | structures |
//! |---|---|
//! | [`record`] | what an index stores for one chunk, in all four kinds |
//!
//! The single-chunk index stands in the layout message itself; [`RecordFormat::encode_body`] and
//! [`RecordFormat::decode_body`] are its fields.

pub mod record;

pub use record::{ChunkRecord, Coord, RecordFormat, RecordKind, SectionRecord, size_width};
