//! The bytes of a file's structures, counted as h5stat does.

use crate::attribute::required;
use crate::file::File;
use crate::object::Object;
use crate::{Error, Result, shared};
use pumice_bytes::DecodeError;
use pumice_format::btree1::GroupNode;
use pumice_format::fractal_heap::HeapHeader;
use pumice_format::index::tree::{TreeHeader, TreeLevels, TreeNode};
use pumice_format::local_heap::LocalHeap;
use pumice_format::messages::{
    AttributeInfo, ExternalFile, ExternalFiles, LinkInfo, SymbolTable, datatype, kind,
};
use pumice_format::symbol_table_node::SymbolTableNode;
use pumice_format::{Context, Sizes, UNDEFINED};
use pumice_medium::Medium;
use pumice_medium::MetadataIo;
use pumice_structures::fractal_heap::read_header;
use pumice_types::{Datatype, Member};
use std::collections::HashSet;
use std::sync::Arc;

/// Sections of one manager of free space, at most.
const MAX_SECTIONS: u64 = 1 << 24;

/// Bytes of one object's structures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectSpace {
    /// The object header, all blocks.
    pub header: u64,
    /// Bytes that no message uses.
    pub header_unused: u64,
    /// The index of a group's members or of a dataset's chunks.
    pub index: u64,
    /// Names or links of a group, names of a dataset's external files.
    pub heap: u64,
    /// The indexes of densely stored attributes.
    pub attribute_index: u64,
    /// Densely stored attributes.
    pub attribute_heap: u64,
}

/// Bytes of structures that belong to the file as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSpace {
    /// The superblock.
    pub superblock: u64,
    /// The object header behind it.
    pub extension: u64,
    /// The table of shared messages.
    pub shared_table: u64,
    /// The indexes of shared messages.
    pub shared_index: u64,
    /// Shared messages.
    pub shared_heap: u64,
    /// The managers of free space, if they are in the file.
    pub free_managers: u64,
    /// The lengths of the free sections in the free-space managers.
    pub free: Vec<u64>,
    /// Bytes of the file, its user block not counted.
    pub length: u64,
}

/// Measures a group, a dataset or a committed datatype, without the chunk index of a dataset.
pub fn object(file: &File, object: &Object) -> Result<ObjectSpace> {
    let medium = file.medium();
    let (header, header_unused) = object.space();
    let mut space = ObjectSpace { header, header_unused, ..ObjectSpace::default() };
    if let Some(raw) = object.message(kind::SYMBOL_TABLE) {
        let table = SymbolTable::decode(&raw.body, &object.context(&raw))?;
        space.index = group_tree(file, table.btree_address)?;
        space.heap = local_heap(medium, table.heap_address)?;
    } else if let Some(raw) = object.message(kind::LINK_INFO) {
        let info = LinkInfo::decode(&raw.body, &object.context(&raw))?;
        let by_order = tree(medium, info.order_index_address.unwrap_or(UNDEFINED))?;
        space.index = tree(medium, info.name_index_address)?.saturating_add(by_order);
        space.heap = fractal_heap(medium, info.heap_address)?;
    }
    if let Some(raw) = object.message(kind::EXTERNAL_FILES) {
        let raw = shared::here(file, raw)?;
        let files = ExternalFiles::decode(&raw.body, &shared::context(file, &raw))?;
        space.heap = space.heap.saturating_add(local_heap(medium, files.heap_address)?);
    }
    if let Some(raw) = object.message(kind::ATTRIBUTE_INFO) {
        let info = AttributeInfo::decode(&raw.body, &object.context(&raw))?;
        let by_order = tree(medium, info.order_index_address.unwrap_or(UNDEFINED))?;
        space.attribute_index = tree(medium, info.name_index_address)?.saturating_add(by_order);
        space.attribute_heap = fractal_heap(medium, info.heap_address)?;
    }
    Ok(space)
}

/// Measures the structures that belong to no object.
pub fn file(file: &File) -> Result<FileSpace> {
    let medium = file.medium();
    let superblock = file.superblock();
    let width = u64::from(superblock.sizes.offset);
    let mut space = FileSpace {
        superblock: match superblock.version {
            0 => 24 + 4 * width + 2 * width + 24,
            1 => 28 + 4 * width + 2 * width + 24,
            _ => 16 + 4 * width,
        },
        extension: 0,
        shared_table: 0,
        shared_index: 0,
        shared_heap: 0,
        free_managers: 0,
        free: Vec::new(),
        length: medium.length()?,
    };
    if superblock.extension_address == UNDEFINED {
        return Ok(space);
    }
    let extension = Object::load(medium, superblock.extension_address)?;
    space.extension = extension.space().0;
    let indexes = &file.extension().shared_messages;
    if !indexes.is_empty() {
        space.shared_table = 8 + indexes.len() as u64 * (14 + 2 * width);
    }
    for index in indexes {
        let list = shared_index(medium, index.index_address, index.list_length)?;
        space.shared_index = space.shared_index.saturating_add(list);
        let heap = fractal_heap(medium, index.heap_address)?;
        space.shared_heap = space.shared_heap.saturating_add(heap);
    }
    for address in file.file_space().managers {
        if is_address(address, medium.sizes()) {
            free_manager(medium, address, &mut space)?;
        }
    }
    Ok(space)
}

/// Whether a field of the file's width holds an address.
fn is_address(value: u64, sizes: Sizes) -> bool {
    if value == UNDEFINED {
        return false;
    }
    let undefined = match sizes.offset {
        8.. => u64::MAX,
        width => (1 << (8 * width)) - 1,
    };
    value != undefined
}

/// The header and the sections of a manager of free space.
fn free_manager(medium: &Arc<Medium>, address: u64, space: &mut FileSpace) -> Result<()> {
    let manager = manager(medium, address)?;
    space.free_managers = space.free_managers.saturating_add(manager.size);
    if manager.sections == 0 || !is_address(manager.list, medium.sizes()) {
        return Ok(());
    }
    let length = usize::try_from(manager.used).unwrap_or(usize::MAX);
    let bytes = medium.read(manager.list, length)?;
    let context = Context::new(medium.sizes()).at(manager.list);
    let mut reader = context.reader("free space sections", &bytes);
    reader.signature(b"FSSE")?;
    reader.u8()?;
    reader.uint(context.offset_width())?;
    let wide = |limit: u64| limit.checked_ilog2().unwrap_or(0) as usize / 8 + 1;
    let (count_width, size_width) = (wide(manager.sections), wide(manager.largest));
    let offset_width = usize::from(manager.bits).div_ceil(8);
    let mut found = 0;
    while found < manager.sections {
        let count = reader.uint(count_width)?;
        let size = reader.uint(size_width)?;
        found = found.saturating_add(count.max(1));
        if found > manager.sections || found > MAX_SECTIONS {
            let expected = format!("{} section(s)", manager.sections);
            return Err(
                DecodeError::new("free space sections", manager.list, expected, found).into()
            );
        }
        for _ in 0..count {
            reader.skip(offset_width + 1)?;
            space.free.push(size);
        }
    }
    Ok(())
}

struct Manager {
    /// Header and allocated list.
    size: u64,
    sections: u64,
    largest: u64,
    bits: u16,
    list: u64,
    used: u64,
}

fn manager(medium: &Arc<Medium>, address: u64) -> Result<Manager> {
    let context = Context::new(medium.sizes()).at(address);
    let (offset, length) = (context.offset_width(), context.length_width());
    let size = 6 + 4 * length + 8 + length + offset + 2 * length + 4;
    let bytes = medium.read(address, size)?;
    let mut reader = context.reader("free space manager", &bytes);
    reader.signature(b"FSHD")?;
    reader.skip(2 + 2 * length)?;
    let sections = reader.uint(length)?;
    reader.skip(length + 6)?;
    let bits = reader.u16()?;
    let largest = reader.uint(length)?;
    let list = reader.uint(offset)?;
    let used = reader.uint(length)?;
    let allocated = reader.uint(length)?;
    let size = (size as u64).saturating_add(allocated);
    Ok(Manager { size, sections, largest, bits, list, used })
}

/// A list of shared messages, or a B-tree of them.
fn shared_index(medium: &Arc<Medium>, address: u64, list_length: Option<u64>) -> Result<u64> {
    match list_length {
        _ if address == UNDEFINED => Ok(0),
        Some(length) => Ok(length),
        None => tree(medium, address),
    }
}

/// A version 2 B-tree.
fn tree(medium: &Arc<Medium>, address: u64) -> Result<u64> {
    if address == UNDEFINED {
        return Ok(0);
    }
    let sizes = medium.sizes();
    let length = TreeHeader::size(sizes);
    let header = TreeHeader::decode(&medium.read(address, length)?, address, sizes)?;
    if header.root.address == UNDEFINED {
        return Ok(length as u64);
    }
    let (parameters, record_size) = (header.parameters, header.record_size);
    let levels = TreeLevels::new(parameters, record_size, header.depth, sizes.offset, address)?;
    let (mut nodes, mut visited) = (0u64, HashSet::new());
    let mut pending = vec![(header.root, usize::from(header.depth))];
    while let Some((pointer, depth)) = pending.pop() {
        if !visited.insert(pointer.address) {
            return Err(met_again("version 2 B-tree", pointer.address));
        }
        nodes += 1;
        // Leaves have nothing below them.
        if depth == 0 {
            continue;
        }
        let bytes = medium.read(pointer.address, parameters.node_size as usize)?;
        let node = TreeNode::decode(&bytes, &levels, depth, header.tree_type, pointer)?;
        pending.extend(node.children.iter().map(|child| (*child, depth - 1)));
    }
    Ok(u64::from(parameters.node_size).saturating_mul(nodes).saturating_add(length as u64))
}

/// The B-tree and the symbol table nodes of an old group.
fn group_tree(file: &File, root: u64) -> Result<u64> {
    let context = Context::new(file.medium().sizes());
    let [leaf_k, internal_k, _] = file.ranks();
    let node_length = GroupNode::encoded_length(&context, internal_k);
    let leaf_length = SymbolTableNode::encoded_length(&context, leaf_k);
    let (mut size, mut visited) = (0u64, HashSet::new());
    let mut pending = vec![root];
    while let Some(address) = pending.pop() {
        if !visited.insert(address) {
            return Err(met_again("B-tree of a group", address));
        }
        let bytes = file.medium().read_up_to(address, node_length)?;
        let node = GroupNode::decode(&bytes, &context.at(address))?;
        size += node_length as u64;
        match node.level {
            0 => size += node.children.len() as u64 * leaf_length as u64,
            _ => pending.extend(&node.children),
        }
    }
    Ok(size)
}

fn met_again(structure: &'static str, address: u64) -> Error {
    DecodeError::new(structure, address, "a new node", "one that is met again").into()
}

fn local_heap(medium: &Arc<Medium>, address: u64) -> Result<u64> {
    if address == UNDEFINED {
        return Ok(0);
    }
    let context = Context::new(medium.sizes()).at(address);
    let length = LocalHeap::encoded_length(&context);
    let heap = LocalHeap::decode(&medium.read(address, length)?, &context)?;
    Ok(LocalHeap::space(&context).saturating_add(heap.data_size))
}

fn fractal_heap(medium: &Arc<Medium>, address: u64) -> Result<u64> {
    if address == UNDEFINED {
        return Ok(0);
    }
    let (header, bytes) = read_header(medium, address)?;
    let context = Context::new(medium.sizes());
    let mut reader = context.at(address).reader("fractal heap", &bytes);
    let (offset, width) = (context.offset_width(), context.length_width());
    reader.skip(14 + width + offset + width)?;
    let free_space = reader.uint(offset)?;
    reader.skip(width)?;
    let managed = reader.uint(width)?;
    reader.skip(2 * width)?;
    let huge = reader.uint(width)?;
    let mut size = (bytes.len() as u64).saturating_add(managed).saturating_add(huge);
    size = size.saturating_add(tree(medium, header.huge_index_address)?);
    if is_address(free_space, medium.sizes()) {
        size = size.saturating_add(manager(medium, free_space)?.size);
    }
    if header.root_rows > 0 && header.root_address != UNDEFINED {
        let rows = u32::from(header.root_rows);
        let indirect = indirect_blocks(medium, &header, (header.root_address, 0, rows))?;
        size = size.saturating_add(indirect);
    }
    Ok(size)
}

/// A table of blocks and the tables below it.
fn indirect_blocks(
    medium: &Arc<Medium>,
    header: &HeapHeader,
    (address, start, rows): (u64, u64, u32),
) -> Result<u64> {
    let context = Context::new(medium.sizes());
    let length = header.indirect_length(rows, &context);
    let bytes = medium.read(address, length)?;
    let children = header.decode_indirect(&bytes, start, rows, &context.at(address))?;
    let mut size = length as u64;
    let mut place = start;
    for (index, child) in children.iter().enumerate() {
        let row = (index / usize::from(header.width).max(1)) as u32;
        let here = place;
        place = place.saturating_add(header.block_size(row).unwrap_or(0));
        if header.is_direct(row) || child.address == UNDEFINED {
            continue;
        }
        // A table has fewer rows than the one it stands in: this ends.
        let below = header.rows_below(row).filter(|&below| below > 0 && below < rows);
        let Some(below) = below else {
            return Err(Error::Damaged(format!("row {row} of a fractal heap's table")));
        };
        let inner = indirect_blocks(medium, header, (child.address, here, below))?;
        size = size.saturating_add(inner);
    }
    Ok(size)
}

/// Bytes of the description of a dataset's datatype, in the version that it is stored in.
pub fn description(file: &File, object: &Object) -> Result<u64> {
    let message = required(object, kind::DATATYPE, "datatype")?;
    let message = shared::here(file, message)?;
    let datatype = datatype::decode(&message.body, &shared::context(file, &message))?;
    let version = message.body.first().map_or(3, |first| first >> 4);
    let mut bytes = Vec::new();
    datatype::encode(&datatype, &mut bytes)?;
    Ok(bytes.len() as u64 + more_than_version_3(&datatype, version))
}

/// The additional bytes of versions 1 and 2: names are padded, offsets have four bytes, and members
/// of compounds and arrays have dimensions and permutations.
fn more_than_version_3(datatype: &Datatype, version: u8) -> u64 {
    if version >= 3 {
        return 0;
    }
    let padding = |name: &str| (name.len() as u64 + 1).next_multiple_of(8) - name.len() as u64 - 1;
    match datatype {
        Datatype::Compound(compound) => {
            let width = u64::from((compound.size.max(1).ilog2() / 8) + 1);
            let dimensions = if version == 1 { 28 } else { 0 };
            let more = |member: &Member| {
                let below = more_than_version_3(&member.datatype, version);
                padding(&member.name) + 4 - width + dimensions + below
            };
            compound.members.iter().map(more).sum()
        }
        Datatype::Enum(enumeration) => enumeration.names.iter().map(|name| padding(name)).sum(),
        Datatype::Array(array) => {
            3 + 4 * array.dims.len() as u64 + more_than_version_3(&array.base, version)
        }
        Datatype::VarLen(varlen) => more_than_version_3(&varlen.base, version),
        _ => 0,
    }
}

/// A piece of a file that holds elements of a dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalPiece {
    /// The file's name.
    pub name: String,
    /// The offset of the piece in it.
    pub offset: u64,
    /// Bytes of the piece.
    pub size: u64,
}

/// The files outside that hold a dataset's elements.
pub fn external_pieces(file: &File, object: &Object) -> Result<Vec<ExternalPiece>> {
    let Some(raw) = object.message(kind::EXTERNAL_FILES) else { return Ok(Vec::new()) };
    let raw = shared::here(file, raw)?;
    let files = ExternalFiles::decode(&raw.body, &shared::context(file, &raw))?;
    let names = pumice_structures::local_heap::LocalHeap::open(file.medium(), files.heap_address)?;
    let piece = |slot: &ExternalFile| {
        let name = names.text(slot.name_offset)?;
        Ok(ExternalPiece { name, offset: slot.offset, size: slot.size })
    };
    files.slots.iter().map(piece).collect()
}
