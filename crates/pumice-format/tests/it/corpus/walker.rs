//! A small walker over a whole file in memory: from the superblock through object headers, links
//! and version 1 B-trees to everything that this crate decodes. Noticing circles is its business.
//!
//! A file with a metadata cache image keeps metadata there and not at its address: errors in such
//! files are counted as not supported.

use pumice_format::btree1::{ChunkNode, GroupNode};
use pumice_format::local_heap::LocalHeap;
use pumice_format::messages::{ChunkIndexInfo, Layout, LinkTarget, Message, SharedLocation, kind};
use pumice_format::object_header::ObjectHeader;
use pumice_format::superblock::Superblock;
use pumice_format::symbol_table_node::SymbolTableNode;
use pumice_format::{Context, DecodeError, UNDEFINED};
use std::collections::{BTreeMap, BTreeSet};

/// The result of a walk.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) objects: usize,
    pub(crate) messages: BTreeMap<u16, usize>,
    pub(crate) errors: Vec<DecodeError>,
    /// Structures that no decoder reads yet, and how often they were met.
    pub(crate) skipped: BTreeMap<&'static str, usize>,
}

/// Walks all of `file`.
pub(crate) fn walk(file: &[u8]) -> Report {
    let mut walker = Walker::new(file);
    if let Err(error) = walker.open() {
        walker.report.errors.push(error);
    }
    while let Some(address) = walker.queue.pop() {
        if !walker.seen.insert(address) {
            continue;
        }
        if let Err(error) = walker.object(address) {
            walker.report.errors.push(error);
        }
    }
    let mut report = std::mem::take(&mut walker.report);
    if walker.cache_image && !report.errors.is_empty() {
        let count = std::mem::take(&mut report.errors).len();
        report.skipped.insert("metadata cache image", count);
    }
    report
}

struct Walker<'a> {
    file: &'a [u8],
    base: u64,
    extension: u64,
    cache_image: bool,
    context: Context,
    queue: Vec<u64>,
    seen: BTreeSet<u64>,
    report: Report,
}

impl<'a> Walker<'a> {
    fn new(file: &'a [u8]) -> Self {
        Self {
            file,
            base: 0,
            extension: UNDEFINED,
            cache_image: false,
            context: Context::default(),
            queue: Vec::new(),
            seen: BTreeSet::new(),
            report: Report::default(),
        }
    }

    /// From `address` to the end of the file.
    fn tail(&self, address: u64) -> Result<&'a [u8], DecodeError> {
        let at = address.checked_add(self.base).and_then(|at| usize::try_from(at).ok());
        at.and_then(|at| self.file.get(at..)).ok_or_else(|| {
            DecodeError::new("file", address, "an address inside the file", self.file.len())
        })
    }

    /// `length` bytes at `address`.
    fn bytes(&self, address: u64, length: u64) -> Result<&'a [u8], DecodeError> {
        let tail = self.tail(address)?;
        let found = usize::try_from(length).ok().and_then(|length| tail.get(..length));
        found
            .ok_or_else(|| DecodeError::new("file", address, format!("{length} bytes"), tail.len()))
    }

    fn open(&mut self) -> Result<(), DecodeError> {
        let length = self.file.len() as u64;
        let found = Superblock::candidates(length)
            .find(|&at| Superblock::is_signature(&self.file[at as usize..]));
        self.base = found.unwrap_or(0);
        let superblock = Superblock::decode(self.tail(0)?, self.base)?;
        self.context = Context::new(superblock.sizes);
        self.queue.push(superblock.root_address);
        self.extension = superblock.extension_address;
        if self.extension != UNDEFINED {
            self.queue.push(self.extension);
        }
        Ok(())
    }

    fn object(&mut self, address: u64) -> Result<(), DecodeError> {
        let tail = self.tail(address)?;
        let length = ObjectHeader::measure(tail, address)?;
        let context = self.context.at(address);
        let mut header = ObjectHeader::decode(self.bytes(address, length)?, &context)?;
        assert_eq!(header.length, length, "measure and decode agree");
        let mut blocks = BTreeSet::new();
        loop {
            let known = header.continuations(&context)?;
            let Some(next) = known.into_iter().find(|next| blocks.insert(next.address)) else {
                break;
            };
            let bytes = self.bytes(next.address, next.length)?;
            header.decode_continuation(bytes, &self.context.at(next.address))?;
        }
        self.report.objects += 1;
        for raw in &header.messages {
            *self.report.messages.entry(raw.kind).or_default() += 1;
            self.cache_image |= raw.kind == kind::CACHE_IMAGE && address == self.extension;
            match Message::from_raw(raw, &context) {
                Ok(message) => self.message(message, &header),
                Err(error) => self.report.errors.push(error),
            }
        }
        Ok(())
    }

    fn message(&mut self, message: Message, header: &ObjectHeader) {
        check_round_trip(&message, &self.context);
        match message {
            Message::Link(link) => match link.target {
                LinkTarget::Hard { address } => self.queue.push(address),
                LinkTarget::Soft { .. } | LinkTarget::External { .. } => {}
                LinkTarget::UserDefined { .. } => self.skip("user-defined link"),
            },
            Message::LinkInfo(info) if info.heap_address != UNDEFINED => self.skip("dense links"),
            Message::AttributeInfo(info) if info.heap_address != UNDEFINED => {
                self.skip("dense attributes");
            }
            Message::Shared { location: SharedLocation::Object { address }, .. } => {
                self.queue.push(address);
            }
            Message::Shared { .. } => self.skip("shared message heap"),
            Message::SymbolTable(table) => {
                let result = self.old_group(table.btree_address, table.heap_address);
                self.report.errors.extend(result.err());
            }
            Message::Layout(layout) => {
                let result = self.layout(&layout, header);
                self.report.errors.extend(result.err());
            }
            Message::Raw { kind, .. } => {
                let raw = [
                    kind::MODIFICATION_TIME_OLD,
                    kind::SHARED_MESSAGE_TABLE,
                    kind::DRIVER_INFO,
                    kind::FILE_SPACE_INFO,
                    kind::CACHE_IMAGE,
                ];
                if !raw.contains(&kind) {
                    self.skip("unknown message");
                }
            }
            _ => {}
        }
    }

    fn skip(&mut self, structure: &'static str) {
        *self.report.skipped.entry(structure).or_default() += 1;
    }

    fn old_group(&mut self, tree: u64, heap: u64) -> Result<(), DecodeError> {
        let heap = LocalHeap::decode(self.tail(heap)?, &self.context.at(heap))?;
        let segment = self.bytes(heap.data_address, heap.data_size)?;
        let mut nodes = vec![tree];
        let mut seen = BTreeSet::new();
        while let Some(address) = nodes.pop() {
            if !seen.insert(address) {
                continue;
            }
            let node = GroupNode::decode(self.tail(address)?, &self.context.at(address))?;
            if node.level > 0 {
                nodes.extend(node.children);
                continue;
            }
            for child in node.children {
                let node = SymbolTableNode::decode(self.tail(child)?, &self.context.at(child))?;
                for entry in node.entries {
                    LocalHeap::string(segment, entry.name_offset, heap.data_address)?;
                    if !entry.is_soft_link() {
                        self.queue.push(entry.header_address);
                    }
                }
            }
        }
        Ok(())
    }

    fn layout(&mut self, layout: &Layout, header: &ObjectHeader) -> Result<(), DecodeError> {
        let Layout::Chunked { chunk, index: ChunkIndexInfo::BTree1, address, .. } = layout else {
            return Ok(());
        };
        assert!(header.version <= 2);
        let mut nodes = if *address == UNDEFINED { Vec::new() } else { vec![*address] };
        let mut seen = BTreeSet::new();
        while let Some(address) = nodes.pop() {
            if !seen.insert(address) {
                continue;
            }
            let tail = self.tail(address)?;
            let node = ChunkNode::decode(tail, &self.context.at(address), chunk.len())?;
            if node.level > 0 {
                nodes.extend(node.children);
            }
        }
        Ok(())
    }
}

/// Encodes a decoded structure, and checks that the encoding means the same.
fn check_round_trip(message: &Message, context: &Context) {
    let Ok(raw) = message.to_raw(context.sizes, 0) else { return };
    let back = Message::from_raw(&raw, context);
    match (message, back) {
        // Written in a later version.
        (Message::Layout(Layout::Chunked { version: 1 | 2, .. }), Ok(_)) => {}
        (Message::Pipeline(_), Ok(Message::Pipeline(_))) => {}
        // Not decoded because of a flag, which is not part of it.
        (Message::Raw { kind: kind::FILE_SPACE_INFO, .. }, _) => {}
        (message, Ok(back)) => assert_eq!(&back, message),
        (message, Err(error)) => panic!("{message:?} does not come back: {error}"),
    }
}
