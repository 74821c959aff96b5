//! The on-disk structures of HDF5: one module for each; no input or output, no state, no panics.
//!
//! | module | structures |
//! |---|---|
//! | [`superblock`] | the first structure of a file |
//! | [`object_header`] | lists of messages, versions 1 and 2, with their continuations |
//! | [`messages`] | what the messages say: shape, datatype, layout, filters, links, attributes |
//! | [`structured`] | decisions about structured chunks, one constant each |
//! | [`index`] | chunk indexes and the records in them |
//! | [`global_heap`], [`heap_set`] | collections of objects, for variable-length data |
//! | [`btree1`], [`symbol_table_node`], [`local_heap`] | old-style groups, read only |
//! | [`shared_message_table`], [`cache_image`] | what a superblock extension leads to, read only |
//! | [`driver_info`] | of which files a family, split or multi file consists |
//! | [`reference`](mod@reference) | references to objects, regions and attributes, read only |
//! | [`virtual_mapping`] | which datasets have the elements of a virtual one, read only |
//! | [`fractal_heap`], [`dense`] | links and attributes of objects that have many, read only |
//!
//! Every decoder is total: any bytes give a structure or a [`DecodeError`] that names structure,
//! address, expectation and finding. Counts are checked against the bytes before anything is
//! allocated for them. Encoders refuse what the format cannot express ([`FormatError`]).
//!
//! ```
//! use pumice_format::messages::{Layout, Message};
//! use pumice_format::object_header::ObjectHeader;
//! use pumice_format::{Context, Sizes};
//!
//! // A header with one message, and back.
//! let layout = Layout::Contiguous { address: 0x1000, size: Some(80) };
//! let mut header = ObjectHeader::new();
//! header.messages.push(Message::Layout(layout.clone()).to_raw(Sizes::default(), 0)?);
//! let mut bytes = Vec::new();
//! header.encode(0, &mut bytes)?;
//!
//! let context = Context::new(Sizes::default());
//! let header = ObjectHeader::decode(&bytes, &context)?;
//! let message = Message::from_raw(&header.messages[0], &context)?;
//! assert_eq!(message, Message::Layout(layout));
//! # Ok::<(), pumice_format::FormatError>(())
//! ```

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

pub mod btree1;
pub mod cache_image;
mod context;
pub mod dense;
pub mod driver_info;
mod error;
pub mod fractal_heap;
pub mod free_space;
pub mod global_heap;
pub mod heap_set;
pub mod index;
pub mod local_heap;
pub mod messages;
pub mod object_header;
pub mod reference;
pub mod shared_message_table;
mod sizes;
pub mod structured;
pub mod superblock;
pub mod symbol_table_node;
mod text;
pub mod virtual_mapping;

pub use context::Context;
pub use error::FormatError;
pub use pumice_bytes::{DecodeError, UNDEFINED};
pub use sizes::Sizes;
