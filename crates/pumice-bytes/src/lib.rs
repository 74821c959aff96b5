//! Fields in and out of bytes: a bounds-checked [`Reader`], a [`Writer`], the decoding [`Budget`],
//! HDF5's metadata checksum ([`lookup3()`]), and a copy for short parts of lists ([`append_some()`]).
//!
//! Every decoder of Pumice uses these pieces, so no decoder can read past its input, allocate from
//! an unchecked count, or report an error without its place:
//!
//! ```
//! use pumice_bytes::{Reader, Writer};
//!
//! let mut out = Vec::new();
//! out.put_bytes(b"DEMO");
//! out.put_uint(70_000, 3);
//!
//! let mut reader = Reader::new("demo block", 0x800, &out);
//! reader.signature(b"DEMO")?;
//! assert_eq!(reader.uint(3)?, 70_000);
//!
//! let error = reader.u8().unwrap_err();
//! assert_eq!(error.to_string(), "demo block at 0x807: expected 1 more byte(s), found 0");
//! # Ok::<(), pumice_bytes::DecodeError>(())
//! ```

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic))]

mod append;
mod budget;
mod error;
mod lookup3;
pub mod memory;
mod reader;
mod writer;

pub use append::append_some;
pub use budget::Budget;
pub use error::DecodeError;
pub use lookup3::{Begun, Lookup3, lookup3, lookup3_each};
pub use reader::Reader;
pub use writer::Writer;

/// The address that HDF5 stores for "undefined": all bits set, at any width.
pub const UNDEFINED: u64 = u64::MAX;
