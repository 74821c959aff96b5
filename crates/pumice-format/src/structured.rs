//! Decisions where descriptions and older writers of structured chunks disagree: one named constant
//! each, so that a change of mind is a change of one line.
//!
//! The version bytes of chunk index blocks are those of
//! [`RecordKind::header_version`](crate::index::RecordKind::header_version).

/// Bit of the structured chunk type: cells may be undefined. Readers go by the number of sections.
pub const SPARSE: u16 = 0x0001;
/// Bit of the structured chunk type: elements have variable-length parts.
pub const VARIABLE_LENGTH: u16 = 0x0002;

/// The version of layout messages that describe structured chunks (with class 4; class 2 of the
/// same version is HDF5 2.0's dense chunks).
pub const LAYOUT_VERSION: u8 = 5;
/// The version of the properties in such a message.
pub const LAYOUT_PROPERTY_VERSION: u8 = 0;
/// Bytes of a section offset in chunk records, as the message declares them.
pub const SECTION_OFFSET_SIZE: u8 = 8;
/// The largest number of sections: selection, fixed-size data, variable-length data.
pub const MAX_SECTIONS: u8 = crate::index::record::MAX_SECTIONS;

/// The version of message 0x0019, which is written.
pub const PIPELINE_VERSION: u8 = 1;
/// The version of message 0x000B with the same bytes, which is accepted.
pub const PIPELINE_VERSION_IN_FILTER_MESSAGE: u8 = 3;
