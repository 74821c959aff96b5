//! Chunk index structures: the record of one chunk, and the blocks that hold many of them.
//!
//! | module | structures |
//! |---|---|
//! | [`record`] | what an index stores for one chunk, in all four kinds |
//! | [`block`] | pages of entries and their bitmap, shared by both arrays |
//! | [`fixed_array`] | FAHD, FADB: one entry for every chunk of a limited extent |
//! | [`extensible_array`] | EAHD and the arithmetic of its blocks: one unlimited axis |
//! | [`extensible_block`] | EAIB, EASB, EADB |
//! | [`tree`] | BTHD, BTIN, BTLF: several unlimited axes |
//!
//! The single-chunk index stands in the layout message itself; [`RecordFormat::encode_body`] and
//! [`RecordFormat::decode_body`] are its fields. The implicit index has no structure at all.

pub mod block;
pub mod extensible_array;
pub mod extensible_block;
pub mod fixed_array;
pub mod record;
pub mod tree;

pub use record::{ChunkRecord, Coord, RecordFormat, RecordKind, SectionRecord, size_width};
