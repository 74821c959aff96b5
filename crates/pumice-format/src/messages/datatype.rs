//! The datatype message (0x0003).
//!
//! ```text
//! version << 4 | class | 24 bits of class flags | size u32 | properties of the class
//! ```
//!
//! All classes of versions 1 to 5 are decoded. Encoding picks the lowest version that every
//! reader of version 2 object headers knows: 1 for simple types, 3 for compound, enumeration and
//! array, 4 for the references of HDF5 1.12, 5 for complex numbers; a type is never of a lower
//! version than its parts.
//!
//! Nesting deeper than 32 is refused, as is every datatype that contradicts itself.

mod decode;
mod encode;

pub use decode::decode;
pub use encode::{encode, encode_for, version};

const STRUCTURE: &str = "datatype message";

const INTEGER: u8 = 0;
const FLOAT: u8 = 1;
const TIME: u8 = 2;
const STRING: u8 = 3;
const BITFIELD: u8 = 4;
const OPAQUE: u8 = 5;
const COMPOUND: u8 = 6;
const REFERENCE: u8 = 7;
const ENUM: u8 = 8;
const VARLEN: u8 = 9;
const ARRAY: u8 = 10;
const COMPLEX: u8 = 11;

/// Class flag of numbers: big-endian.
const BIG_ENDIAN: u32 = 0x01;
/// Class flag of numbers: the bits below the number are 1.
const LOW_PADDING: u32 = 0x02;
/// Class flag of numbers: the bits above the number are 1.
const HIGH_PADDING: u32 = 0x04;
/// Class flag of integers: two's complement.
const SIGNED: u32 = 0x08;
/// Class flag of floats: the bits inside the number that no part uses are 1.
const INTERNAL_PADDING: u32 = 0x08;
/// Class flag of floats, with [`BIG_ENDIAN`]: VAX byte order.
const VAX: u32 = 0x40;
/// Class flag of complex numbers: both parts are of one type.
const HOMOGENEOUS: u32 = 0x01;

/// Bytes of a member offset in a compound of `size` bytes, from version 3 on.
fn member_offset_width(size: u32) -> usize {
    (size.max(1).ilog2() / 8 + 1) as usize
}

#[cfg(test)]
mod tests;
