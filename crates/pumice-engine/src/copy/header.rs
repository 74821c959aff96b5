//! The header of a copy: messages as stored, except for addresses.

use super::Copier;
use crate::attribute::object_datatype;
use crate::dataset::{DatasetState, lacks_unlimited, named, refitted};
use crate::file::File;
use crate::group::{self, Links};
use crate::object::Object;
use crate::shared::{context, here};
use crate::{Result, attribute};
use pumice_format::messages::{
    ChunkIndexInfo, Era, ExternalFiles, Fill, FillValue, Layout, LinkInfo, Message, SharedLocation,
    SingleChunk, datatype, kind,
};
use pumice_format::object_header::{MESSAGE_SHARED, RawMessage};
use pumice_format::virtual_mapping;
use pumice_format::{Sizes, UNDEFINED};
use pumice_medium::MetadataIo;
use pumice_structures::local_heap::LocalHeap;
use std::sync::Arc;

impl Copier<'_> {
    /// Makes the header of a copy. Elements, links and attributes come later.
    pub(super) fn create(
        &mut self,
        file: &Arc<File>,
        from: &Arc<Object>,
        depth: usize,
    ) -> Result<u64> {
        let mut header = from.empty_header();
        let (mut symbol_table, mut later) = (None, Vec::new());
        for raw in from.all_messages() {
            let copy = match raw.kind {
                kind::SYMBOL_TABLE => {
                    let target = self.target;
                    let ranks = target.extension().group_ranks(target.superblock());
                    let (links, message) = group::new_symbol_table(target.medium(), ranks)?;
                    symbol_table = Some(links);
                    Some(message)
                }
                _ => self.message(file, from, &raw, depth)?,
            };
            match copy {
                Some(copy) => {
                    let creation_order = raw.creation_order;
                    header.messages.push(RawMessage { creation_order, ..copy });
                }
                None => later.push(raw),
            }
        }
        let spare = header.messages_length(&self.later(from, later)?);
        let object = self.target.create_sized(header, spare)?;
        if let Some(links) = symbol_table {
            *object.links() = Links::Old(Box::new(links));
            object.mark()?;
        }
        Ok(object.address())
    }

    /// The messages that come one by one later: attributes and links. The header has room for them
    /// and no more.
    fn later(&self, from: &Object, mut all: Vec<RawMessage>) -> Result<Vec<RawMessage>> {
        let attributes = !self.options.without_attributes;
        all.retain(|raw| match raw.kind {
            kind::ATTRIBUTE | kind::ATTRIBUTE_INFO => attributes,
            other => other == kind::LINK,
        });
        let has_some = all.iter().any(|raw| raw.kind != kind::LINK);
        all.retain(|raw| raw.kind != kind::ATTRIBUTE_INFO);
        if from.version() > 1 && has_some {
            let mut body = Vec::new();
            attribute::info(from)?.encode(self.target.superblock().sizes, &mut body);
            all.push(RawMessage::new(kind::ATTRIBUTE_INFO, 0, body));
        }
        Ok(all)
    }

    /// The copy of a message, if it is to have one.
    fn message(
        &mut self,
        file: &Arc<File>,
        from: &Arc<Object>,
        raw: &RawMessage,
        depth: usize,
    ) -> Result<Option<RawMessage>> {
        Ok(match raw.kind {
            kind::NIL
            | kind::REFERENCE_COUNT
            | kind::ATTRIBUTE
            | kind::ATTRIBUTE_INFO
            | kind::LINK => None,
            kind::LINK_INFO => Some(self.link_info(from, raw)?),
            kind::DATATYPE => Some(self.datatype(file, raw, depth)?),
            kind::LAYOUT => Some(self.layout(file, from, raw)?),
            kind::PIPELINE | kind::STRUCTURED_PIPELINE => Some(self.pipeline(file, from, raw)?),
            kind::EXTERNAL_FILES => Some(self.external_files(file, raw)?),
            kind::FILL_VALUE | kind::FILL_VALUE_OLD => self.fill_value(file, from, raw)?,
            _ => Some(self.as_it_is(file, raw)?),
        })
    }

    /// The message itself, wherever it stands, in the target's widths.
    pub(super) fn as_it_is(&self, file: &File, raw: &RawMessage) -> Result<RawMessage> {
        let flags = raw.flags & !MESSAGE_SHARED;
        let found = here(file, raw.clone())?;
        let sizes = self.target.superblock().sizes;
        if raw.kind == kind::DATATYPE {
            let stored = datatype::decode(&found.body, &context(file, &found))?;
            if self.resizes(file, &stored) {
                let mut body = Vec::new();
                let sized = self.sized(file, &stored)?;
                datatype::encode_for(self.target.era(), &sized, &mut body)?;
                return Ok(RawMessage::new(raw.kind, flags, body));
            }
        }
        if raw.kind == kind::DATASPACE && file.superblock().sizes != sizes {
            let message = Message::from_raw(&found, &context(file, &found))?;
            return Ok(message.to_raw(sizes, flags)?);
        }
        Ok(RawMessage::new(raw.kind, flags, found.body))
    }

    fn link_info(&self, from: &Object, raw: &RawMessage) -> Result<RawMessage> {
        let info = LinkInfo::decode(&raw.body, &from.context(raw))?;
        let info = LinkInfo {
            max_creation_order: info.max_creation_order.map(|_| 0),
            order_index_address: info.order_index_address.map(|_| UNDEFINED),
            ..LinkInfo::default()
        };
        let mut body = Vec::new();
        info.encode(self.target.superblock().sizes, &mut body);
        Ok(RawMessage::new(kind::LINK_INFO, raw.flags, body))
    }

    /// A datatype, or where the copy of the committed one is that stands for it.
    pub(super) fn datatype(
        &mut self,
        file: &Arc<File>,
        raw: &RawMessage,
        depth: usize,
    ) -> Result<RawMessage> {
        if raw.is_shared()
            && let SharedLocation::Object { address } =
                SharedLocation::decode(&raw.body, &context(file, raw))?
        {
            let copy = self.copy_of(file, address, depth)?;
            self.count_link(copy)?;
            let location = SharedLocation::Object { address: copy };
            let message = Message::Shared { kind: kind::DATATYPE, location };
            return Ok(message.to_raw(self.target.superblock().sizes, raw.flags)?);
        }
        self.as_it_is(file, raw)
    }

    fn fill_value(
        &mut self,
        file: &Arc<File>,
        from: &Object,
        raw: &RawMessage,
    ) -> Result<Option<RawMessage>> {
        let datatype = attribute::object_datatype(file, from)?;
        if !datatype.has_references() {
            return self.as_it_is(file, raw).map(Some);
        }
        let found = here(file, raw.clone())?;
        let message = match raw.kind {
            // It is the other one that counts if there are both.
            kind::FILL_VALUE_OLD if from.has(kind::FILL_VALUE) => return Ok(None),
            kind::FILL_VALUE_OLD => FillValue::decode_old(&found.body, &context(file, &found))?,
            _ => FillValue::decode(&found.body, &context(file, &found))?,
        };
        let value = match message.value {
            Fill::Value(value) if value.len() == datatype.size() => {
                Fill::Value(self.moved_fill(file, &datatype, value)?)
            }
            other => other,
        };
        let mut body = Vec::new();
        let old = found.body.first().is_some_and(|&version| version < 3);
        let era = if old { Era::Old } else { Era::New };
        FillValue { value, ..message }.encode_for(era, &mut body)?;
        Ok(Some(RawMessage::new(kind::FILL_VALUE, raw.flags & !MESSAGE_SHARED, body)))
    }

    /// A layout message without an address of data.
    fn layout(
        &mut self,
        file: &Arc<File>,
        from: &Arc<Object>,
        raw: &RawMessage,
    ) -> Result<RawMessage> {
        let open = || DatasetState::open(file, from);
        let dataset = file.dataset(from.address(), open)?;
        let changes = self.changes(file, &dataset);
        let old_size = dataset.datatype().size().max(1) as u64;
        let new_size = self.sized(file, dataset.datatype())?.size() as u64;
        let resized = |bytes: u64| (bytes / old_size).saturating_mul(new_size);
        let unset = |index| unset(index, self.target.superblock().sizes);
        let message = match dataset.description()? {
            // Bytes that stay must not be taken for references that are no longer needed.
            Layout::Compact { data } if changes => {
                Layout::Compact { data: vec![0; resized(data.len() as u64) as usize] }
            }
            Layout::Compact { data } => Layout::Compact { data },
            Layout::Contiguous { size, .. } => {
                Layout::Contiguous { address: UNDEFINED, size: size.map(resized) }
            }
            Layout::Virtual { heap_address, heap_index } => {
                self.mapping(file, &dataset, heap_address, heap_index)?
            }
            Layout::Chunked {
                version, chunk, element_size, index, dont_filter_partial, ..
            } => Layout::Chunked {
                version: version.max(3),
                chunk,
                element_size: resized(element_size),
                index: unset(index),
                address: UNDEFINED,
                dont_filter_partial,
            },
            Layout::Structured {
                kind,
                chunk,
                element_size,
                sections,
                metadata_sections,
                index,
                dont_filter_partial,
                ..
            } => Layout::Structured {
                kind,
                chunk,
                element_size: resized(element_size),
                sections,
                metadata_sections,
                index: unset(index),
                address: UNDEFINED,
                dont_filter_partial,
            },
        };
        let mut body = Vec::new();
        message.encode(self.target.superblock().sizes, &mut body)?;
        let flags = raw.flags & !MESSAGE_SHARED;
        Ok(RawMessage::new(kind::LAYOUT, flags, body))
    }

    /// The filter pipeline. Filters whose parameters describe the datatype get the parameters for
    /// the copy's datatype.
    fn pipeline(&self, file: &Arc<File>, from: &Object, raw: &RawMessage) -> Result<RawMessage> {
        if from.has(kind::DATATYPE) {
            let stored = object_datatype(file, from)?;
            if (self.resizes(file, &stored) || self.recounts(file, &stored))
                && let Some(message) =
                    refitted(file, from, &self.sized(file, &stored)?, self.target)?
            {
                return Ok(message);
            }
        }
        let copy = self.as_it_is(file, raw)?;
        Ok(named(file, from, &copy, self.target)?.unwrap_or(copy))
    }

    /// The mapping of a virtual dataset, in the target's heap.
    fn mapping(
        &self,
        file: &File,
        dataset: &DatasetState,
        address: u64,
        index: u32,
    ) -> Result<Layout> {
        if address == UNDEFINED {
            return Ok(Layout::Virtual { heap_address: address, heap_index: index });
        }
        let mut bytes = file.global_heap().object_at(address, index)?;
        let sizes = self.target.superblock().sizes;
        if let Some(parts) = dataset.sources()
            && file.superblock().sizes.length != sizes.length
        {
            bytes.clear();
            virtual_mapping::encode(parts.mappings(), &dataset.dims(), sizes, &mut bytes)?;
        }
        let (heap_address, heap_index) = self.target.global_heap().add(&bytes)?;
        Ok(Layout::Virtual { heap_address, heap_index })
    }

    /// The list of external files, with a heap of names in the target.
    fn external_files(&self, file: &File, raw: &RawMessage) -> Result<RawMessage> {
        let mut message = ExternalFiles::decode(&raw.body, &context(file, raw))?;
        let names = LocalHeap::open(file.medium(), message.heap_address)?;
        let medium = &**self.target.medium();
        let mut heap = LocalHeap::create(medium)?;
        for slot in &mut message.slots {
            slot.name_offset = heap.insert(&names.text(slot.name_offset)?)?;
        }
        heap.commit(medium)?;
        message.heap_address = heap.address();
        let mut body = Vec::new();
        message.encode(medium.sizes(), &mut body)?;
        Ok(RawMessage::new(kind::EXTERNAL_FILES, raw.flags, body))
    }
}

/// An empty index of the same kind, or of a kind that libhdf5 can open in a file of these widths.
fn unset(index: ChunkIndexInfo, sizes: Sizes) -> ChunkIndexInfo {
    match index {
        ChunkIndexInfo::ExtensibleArray { .. } if lacks_unlimited(sizes) => {
            ChunkIndexInfo::btree2()
        }
        ChunkIndexInfo::Single(single) => {
            let sections = single.sections.len() as u8;
            ChunkIndexInfo::Single(SingleChunk::unset(sections, single.filtered))
        }
        other => other,
    }
}
