//! Header messages: one module per message, and [`Message`] over all of them.
//!
//! | kind | message | decode | encode |
//! |---|---|---|---|
//! | 0x0001 | [`dataspace`] | 1, 2 | 1, 2 |
//! | 0x0002 | [`LinkInfo`] | 0 | 0 |
//! | 0x0003 | [`datatype`] | 1 to 5 | 1 to 5 |
//! | 0x0004 | [`FillValue`] (old) | yes | yes |
//! | 0x0005 | [`FillValue`] | 1 to 3 | 2, 3 |
//! | 0x0006 | [`Link`] | 1 | 1 |
//! | 0x0007 | [`ExternalFiles`] | 1 | 1 |
//! | 0x0008 | [`Layout`] | 1 to 5 | 3, 4, 5 |
//! | 0x000A | [`GroupInfo`] | 0 | 0 |
//! | 0x000B | [`Pipeline`]; version 3 is [`StructuredPipeline`] | 1 to 3 | 1, 2 |
//! | 0x000C | [`Attribute`] | 1 to 3 | 1 to 3 |
//! | 0x000D | comment | yes | yes |
//! | 0x0010 | [`Continuation`] | yes | yes |
//! | 0x0011 | [`SymbolTable`] | yes | yes |
//! | 0x0012 | modification time | 1 | 1 |
//! | 0x0013 | [`BTreeK`] | 0 | yes |
//! | 0x0015 | [`AttributeInfo`] | 0 | 0 |
//! | 0x0016 | reference count | 0 | 0 |
//! | 0x0017 | [`FileSpaceInfo`] | 0, 1 | 1 |
//! | 0x0019 | [`StructuredPipeline`] | 1 | 1 |
//!
//! The older of two versions is written in files of the oldest format ([`Era`]). All others stay raw. Version 1 object headers pad bodies to multiples of 8, and some writers
//! declare more bytes than they use: bytes after the last field are ignored everywhere.

mod attribute;
mod attribute_info;
mod btree_k;
pub mod dataspace;
pub mod datatype;
mod dense_info;
mod external_files;
mod file_space_info;
mod fill_value;
mod group_info;
mod layout;
mod link;
mod link_info;
mod pipeline;
mod shared;
mod small;
mod structured_pipeline;
mod symbol_table;

pub use crate::structured::{SPARSE, VARIABLE_LENGTH};
pub use attribute::Attribute;
pub use attribute_info::AttributeInfo;
pub use btree_k::BTreeK;
pub use external_files::{ExternalFile, ExternalFiles};
pub use file_space_info::{FileSpaceInfo, FileSpaceStrategy};
pub use fill_value::{AllocationTime, Fill, FillTime, FillValue};
pub use group_info::GroupInfo;
pub use layout::{ChunkIndexInfo, Layout, SingleChunk};
pub use link::{Link, LinkTarget};
pub use link_info::LinkInfo;
pub use pipeline::{FilterDescription, Pipeline};
pub use shared::{Shareable, SharedLocation};
pub use structured_pipeline::{SectionPipeline, StructuredPipeline};
pub use symbol_table::SymbolTable;

use crate::object_header::{Continuation, MESSAGE_SHARED, MESSAGE_WAS_UNKNOWN, RawMessage};
use crate::{Context, DecodeError, FormatError, Sizes};
use pumice_space::Extent;
use pumice_types::Datatype;

/// The versions of messages to write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Era {
    /// The versions that every release of libhdf5 reads, where they can express the message.
    Old,
    /// The versions of 1.8.
    #[default]
    New,
}

/// The numbers of header messages.
pub mod kind {
    /// A filler.
    pub const NIL: u16 = 0x0000;
    /// The extent of a dataset.
    pub const DATASPACE: u16 = 0x0001;
    /// Where a new-style group keeps its links.
    pub const LINK_INFO: u16 = 0x0002;
    /// The type of a dataset's elements, or a committed datatype.
    pub const DATATYPE: u16 = 0x0003;
    /// The fill value in files of HDF5 before 1.6.
    pub const FILL_VALUE_OLD: u16 = 0x0004;
    /// The fill value.
    pub const FILL_VALUE: u16 = 0x0005;
    /// A link of a new-style group.
    pub const LINK: u16 = 0x0006;
    /// The external files of a dataset.
    pub const EXTERNAL_FILES: u16 = 0x0007;
    /// How a dataset keeps its elements.
    pub const LAYOUT: u16 = 0x0008;
    /// Limits and estimates of a new-style group.
    pub const GROUP_INFO: u16 = 0x000A;
    /// The filters of a dataset.
    pub const PIPELINE: u16 = 0x000B;
    /// An attribute.
    pub const ATTRIBUTE: u16 = 0x000C;
    /// A comment on an object.
    pub const COMMENT: u16 = 0x000D;
    /// The modification time in files of HDF5 before 1.6.1, as text.
    pub const MODIFICATION_TIME_OLD: u16 = 0x000E;
    /// Where the file keeps its shared messages, in the superblock extension.
    pub const SHARED_MESSAGE_TABLE: u16 = 0x000F;
    /// The continuation of the header.
    pub const CONTINUATION: u16 = crate::object_header::CONTINUATION;
    /// Where an old-style group keeps its links.
    pub const SYMBOL_TABLE: u16 = 0x0011;
    /// The modification time.
    pub const MODIFICATION_TIME: u16 = 0x0012;
    /// Ranks of B-trees, in the superblock extension.
    pub const BTREE_K: u16 = 0x0013;
    /// The file driver's own data, in the superblock extension.
    pub const DRIVER_INFO: u16 = 0x0014;
    /// Where an object keeps its attributes.
    pub const ATTRIBUTE_INFO: u16 = 0x0015;
    /// The number of hard links to an object.
    pub const REFERENCE_COUNT: u16 = 0x0016;
    /// Where the file keeps its free space, in the superblock extension.
    pub const FILE_SPACE_INFO: u16 = 0x0017;
    /// Where the file keeps an image of libhdf5's metadata cache, in the superblock extension.
    pub const CACHE_IMAGE: u16 = 0x0018;
    /// The filters of structured chunks.
    pub const STRUCTURED_PIPELINE: u16 = 0x0019;

    /// Whether messages of this kind have a meaning here.
    ///
    /// ```
    /// use pumice_format::messages::kind;
    /// assert!(kind::is_known(kind::LINK) && !kind::is_known(0x0009) && !kind::is_known(0x001A));
    /// ```
    pub fn is_known(kind: u16) -> bool {
        kind <= STRUCTURED_PIPELINE && kind != 0x0009
    }
}

/// A header message.
///
/// ```
/// use pumice_format::messages::{Message, kind};
/// use pumice_format::{Context, Sizes};
///
/// let message = Message::ReferenceCount(2);
/// let raw = message.to_raw(Sizes::default(), 0)?;
/// assert_eq!(raw.kind, kind::REFERENCE_COUNT);
/// assert_eq!(Message::from_raw(&raw, &Context::default())?, message);
/// # Ok::<(), pumice_format::FormatError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Message {
    /// The extent of a dataset.
    Dataspace(Extent),
    /// Where a new-style group keeps its links.
    LinkInfo(LinkInfo),
    /// The type of a dataset's elements, or a committed datatype.
    Datatype(Datatype),
    /// The fill value, as message 0x0004.
    FillValueOld(FillValue),
    /// The fill value, as message 0x0005; it wins over the older one.
    FillValue(FillValue),
    /// A link of a new-style group.
    Link(Link),
    /// The external files of a dataset.
    ExternalFiles(ExternalFiles),
    /// How a dataset keeps its elements.
    Layout(Layout),
    /// Limits and estimates of a new-style group.
    GroupInfo(GroupInfo),
    /// The filters of dense chunks.
    Pipeline(Pipeline),
    /// The filters of structured chunks, as message 0x0019 or 0x000B version 3.
    StructuredPipeline(StructuredPipeline),
    /// An attribute.
    Attribute(Attribute),
    /// A comment.
    Comment(String),
    /// The continuation of the header.
    Continuation(Continuation),
    /// Where an old-style group keeps its links.
    SymbolTable(SymbolTable),
    /// When the object was changed, in seconds since 1970.
    ModificationTime(u32),
    /// Ranks of B-trees.
    BTreeK(BTreeK),
    /// How room is found in the file.
    FileSpaceInfo(FileSpaceInfo),
    /// Where an object keeps its attributes.
    AttributeInfo(AttributeInfo),
    /// The number of hard links to an object.
    ReferenceCount(u32),
    /// A message that is stored elsewhere.
    Shared {
        /// Its kind.
        kind: u16,
        /// The place of the message.
        location: SharedLocation,
    },
    /// A message that has no decoder.
    Raw {
        /// Its kind.
        kind: u16,
        /// Its body.
        body: Vec<u8>,
    },
}

impl Message {
    /// Decodes the body of a message; `context` is at the body's address.
    pub fn decode(
        kind: u16,
        flags: u8,
        body: &[u8],
        context: &Context,
    ) -> Result<Self, DecodeError> {
        if flags & MESSAGE_SHARED != 0 {
            let location = SharedLocation::decode(body, context)?;
            return Ok(Self::Shared { kind, location });
        }
        Ok(match kind {
            kind::DATASPACE => Self::Dataspace(dataspace::decode(body, context)?),
            kind::LINK_INFO => Self::LinkInfo(LinkInfo::decode(body, context)?),
            kind::DATATYPE => Self::Datatype(datatype::decode(body, context)?),
            kind::FILL_VALUE_OLD => Self::FillValueOld(FillValue::decode_old(body, context)?),
            kind::FILL_VALUE => Self::FillValue(FillValue::decode(body, context)?),
            kind::LINK => Self::Link(Link::decode(body, context)?),
            kind::EXTERNAL_FILES => Self::ExternalFiles(ExternalFiles::decode(body, context)?),
            kind::LAYOUT => Self::Layout(Layout::decode(body, context)?),
            kind::GROUP_INFO => Self::GroupInfo(GroupInfo::decode(body, context)?),
            kind::PIPELINE => decode_pipeline(body, context)?,
            kind::STRUCTURED_PIPELINE => {
                Self::StructuredPipeline(StructuredPipeline::decode(body, context)?)
            }
            kind::ATTRIBUTE => Self::Attribute(Attribute::decode(body, context)?),
            kind::COMMENT => Self::Comment(small::decode_comment(body)),
            kind::CONTINUATION => Self::Continuation(Continuation::decode(body, context)?),
            kind::SYMBOL_TABLE => Self::SymbolTable(SymbolTable::decode(body, context)?),
            kind::MODIFICATION_TIME => Self::ModificationTime(small::decode_time(body, context)?),
            kind::BTREE_K => Self::BTreeK(BTreeK::decode(body, context)?),
            // Not as another writer left it that did not know it: libhdf5 ignores it then.
            kind::FILE_SPACE_INFO if flags & MESSAGE_WAS_UNKNOWN == 0 => {
                Self::FileSpaceInfo(FileSpaceInfo::decode(body, context)?)
            }
            kind::ATTRIBUTE_INFO => Self::AttributeInfo(AttributeInfo::decode(body, context)?),
            kind::REFERENCE_COUNT => Self::ReferenceCount(small::decode_count(body, context)?),
            kind => Self::Raw { kind, body: body.to_vec() },
        })
    }

    /// Decodes a message of an object header.
    pub fn from_raw(raw: &RawMessage, context: &Context) -> Result<Self, DecodeError> {
        Self::decode(raw.kind, raw.flags, &raw.body, &context.at(raw.address))
    }

    /// The number of the message.
    pub fn kind(&self) -> u16 {
        match self {
            Self::Dataspace(_) => kind::DATASPACE,
            Self::LinkInfo(_) => kind::LINK_INFO,
            Self::Datatype(_) => kind::DATATYPE,
            Self::FillValueOld(_) => kind::FILL_VALUE_OLD,
            Self::FillValue(_) => kind::FILL_VALUE,
            Self::Link(_) => kind::LINK,
            Self::ExternalFiles(_) => kind::EXTERNAL_FILES,
            Self::Layout(_) => kind::LAYOUT,
            Self::GroupInfo(_) => kind::GROUP_INFO,
            Self::Pipeline(_) => kind::PIPELINE,
            Self::StructuredPipeline(_) => kind::STRUCTURED_PIPELINE,
            Self::Attribute(_) => kind::ATTRIBUTE,
            Self::Comment(_) => kind::COMMENT,
            Self::Continuation(_) => kind::CONTINUATION,
            Self::SymbolTable(_) => kind::SYMBOL_TABLE,
            Self::ModificationTime(_) => kind::MODIFICATION_TIME,
            Self::BTreeK(_) => kind::BTREE_K,
            Self::FileSpaceInfo(_) => kind::FILE_SPACE_INFO,
            Self::AttributeInfo(_) => kind::ATTRIBUTE_INFO,
            Self::ReferenceCount(_) => kind::REFERENCE_COUNT,
            Self::Shared { kind, .. } | Self::Raw { kind, .. } => *kind,
        }
    }

    /// Appends the body of the message.
    pub fn encode(&self, sizes: Sizes, out: &mut Vec<u8>) -> Result<(), FormatError> {
        match self {
            Self::Dataspace(extent) => dataspace::encode(extent, sizes, out)?,
            Self::LinkInfo(info) => info.encode(sizes, out),
            Self::Datatype(datatype) => datatype::encode(datatype, out)?,
            Self::FillValue(fill) => fill.encode(out)?,
            Self::Link(link) => link.encode(sizes, out)?,
            Self::Layout(layout) => layout.encode(sizes, out)?,
            Self::GroupInfo(info) => info.encode(out),
            Self::Pipeline(pipeline) => pipeline.encode(out)?,
            Self::StructuredPipeline(pipeline) => pipeline.encode(out)?,
            Self::Attribute(attribute) => attribute.encode(sizes, out)?,
            Self::Comment(text) => small::encode_comment(text, out)?,
            Self::Continuation(continuation) => continuation.encode(sizes, out),
            Self::SymbolTable(table) => table.encode(sizes, out),
            Self::ModificationTime(seconds) => small::encode_time(*seconds, out),
            Self::AttributeInfo(info) => info.encode(sizes, out),
            Self::ReferenceCount(count) => small::encode_count(*count, out),
            Self::Shared { location, .. } => location.encode(sizes, out),
            Self::Raw { body, .. } => out.extend_from_slice(body),
            Self::ExternalFiles(files) => files.encode(sizes, out)?,
            Self::FileSpaceInfo(info) => info.encode(sizes, out),
            Self::BTreeK(ranks) => ranks.encode(out),
            Self::FillValueOld(_) => {
                let what = format!("a message of kind {:#06x}", self.kind());
                return Err(FormatError::unencodable("object header", what));
            }
        }
        Ok(())
    }

    /// The message as an object header has it. The flag for shared messages is set by itself.
    pub fn to_raw(&self, sizes: Sizes, flags: u8) -> Result<RawMessage, FormatError> {
        let mut body = Vec::new();
        self.encode(sizes, &mut body)?;
        let shared = matches!(self, Self::Shared { .. });
        let flags = flags & !MESSAGE_SHARED | if shared { MESSAGE_SHARED } else { 0 };
        Ok(RawMessage::new(self.kind(), flags, body))
    }
}

fn decode_pipeline(body: &[u8], context: &Context) -> Result<Message, DecodeError> {
    if body.first() == Some(&crate::structured::PIPELINE_VERSION_IN_FILTER_MESSAGE)
        && let Ok(pipeline) = StructuredPipeline::decode_in_pipeline(body, context)
        && pipeline.sections.iter().all(|section| !section.filters.is_empty())
    {
        return Ok(Message::StructuredPipeline(pipeline));
    }
    // As dense datasets have it, which only the layout says for certain: hardly anything is both.
    Pipeline::decode(body, context).map(Message::Pipeline)
}

#[cfg(test)]
mod tests;
