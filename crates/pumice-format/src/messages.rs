//! Header messages: one module per message.

mod layout;

pub use layout::{
    ChunkIndexInfo, Layout, SPARSE, STRUCTURED_PROPERTY_VERSION, STRUCTURED_VERSION, SingleChunk, VARIABLE_LENGTH,
};
