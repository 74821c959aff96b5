//! Elements: the HDF5 datatype model, its DDL names and the conversion kernels.
//!
//! A [`Datatype`] says everything that an HDF5 datatype message says, as plain data. [`H5Type`]
//! ties types of Rust to their datatypes, [`ddl`] writes a datatype as h5dump does, and
//! [`Conversion`] turns packed elements of one datatype into packed elements of another.
//!
//! This crate reads no files and knows no encoding: the datatype message's bytes are
//! `pumice-format`'s.
//!
//! ```
//! use pumice_types::{Conversion, Datatype};
//!
//! let conversion = Conversion::new(&Datatype::i16_be(), &Datatype::f32_le())?;
//! let mut target = [0u8; 8];
//! conversion.convert(&[0, 1, 0xFF, 0xFE], &mut target)?;
//! assert_eq!(target[..4], 1f32.to_le_bytes());
//! assert_eq!(target[4..], (-2f32).to_le_bytes());
//! # Ok::<(), pumice_types::TypeError>(())
//! ```
#![deny(unsafe_code)]

mod conversion;
pub mod ddl;
mod element;
mod error;
mod h5type;
pub mod heaped;
mod heaped_conversion;
mod model;
mod strings;
mod transform;
mod value;

pub use conversion::Conversion;
pub use element::{Element, FixedText};
pub use error::TypeError;
pub use h5type::{H5Type, Heap, OrNull, from_elements, plain, to_elements};
pub use heaped::Heaped;
pub use heaped_conversion::{HeapedConversion, Links};
pub use model::{
    Array, BitPadding, Bitfield, ByteOrder, CharacterSet, Complex, Compound, Datatype, Enumeration,
    FixedString, Float, Integer, MantissaNormalization, Member, Opaque, Reference, ReferenceKind,
    StringPadding, Time, VarLen, VarLenKind,
};
pub use strings::{Sequences, Strings, append_references, references};
pub use transform::Transform;
pub use value::{Value, trimmed};
