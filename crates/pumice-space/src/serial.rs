//! Extents and selections as HDF5 writes them.
//!
//! | what | HDF5's name | written | read |
//! |---|---|---|---|
//! | [`encode_extent`] | dataspace message | version 1 or 2 | 1 and 2 |
//! | [`encode_selection`] | serialised selection | the shortest form | points 1 and 2; hyperslab 1, 2 and 3, regular or not; all; none |
//! | [`encode_dataspace`], [`encode_cells`] | `H5Sencode`: extent and selection, section 0 of a structured chunk | extent version 1 without maximum, shortest selection | any of the above, any maximum |
//!
//! A set that is not a regular hyperslab is written as blocks, in the order of its span tree: rows
//! (planes, ...) that touch and select the same cells are one range, and each stretch of the last
//! dimension below that range is one block. A set therefore has one list of blocks, and
//! [`encode_cells`] and [`encode_dataspace`] write the same bytes for the same cells.
//!
//! Decoders take no more memory than the input, or a budget, justifies. Blocks may overlap; cells
//! outside the extent are refused.

mod blocks;
mod dataspace;
mod decode;
mod encode;
mod extent;

pub use dataspace::{
    decode_cells, decode_dataspace, encode_cells, encode_cells_with, encode_dataspace,
    encode_dataspace_with,
};
pub use decode::decode_selection;
pub use encode::{HyperslabVersion, encode_selection, encode_selection_with};
pub use extent::{decode_extent, encode_extent};

const TYPE_NONE: u32 = 0;
const TYPE_POINTS: u32 = 1;
const TYPE_HYPERSLAB: u32 = 2;
const TYPE_ALL: u32 = 3;

/// Flag of hyperslab versions 2 and 3: start, stride, count and block instead of corners.
const FLAG_REGULAR: u8 = 1;
