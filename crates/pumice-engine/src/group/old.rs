//! Links of old-style groups: a version 1 B-tree of symbol table nodes, names in a local heap.

use crate::file::File;
use crate::metadata::MetadataIo;
use crate::{Error, Result};
use pumice_bytes::{Budget, DecodeError};
use pumice_format::Context;
use pumice_format::btree1::GroupNode;
use pumice_format::local_heap::LocalHeap;
use pumice_format::messages::{Link, LinkTarget, SymbolTable};
use pumice_format::symbol_table_node::{Scratch, SymbolTableEntry, SymbolTableNode};
use std::collections::HashSet;

/// The largest data segment of a local heap that is read.
const MAX_HEAP: u64 = 256 << 20;

/// The strings of a local heap.
pub(crate) struct HeapText {
    segment: Vec<u8>,
    address: u64,
}

impl HeapText {
    /// The heap at `address`.
    pub(crate) fn open(file: &File, address: u64) -> Result<Self> {
        let medium = file.medium();
        let context = Context::new(medium.sizes()).at(address);
        let length = LocalHeap::encoded_length(&context);
        let heap = LocalHeap::decode(&medium.read(address, length)?, &context)?;
        if heap.data_size > MAX_HEAP {
            let expected = format!("at most {MAX_HEAP} byte(s)");
            return Err(DecodeError::new("local heap", address, expected, heap.data_size).into());
        }
        let segment = medium.read(heap.data_address, heap.data_size as usize)?;
        Ok(Self { segment, address: heap.data_address })
    }

    /// The string at an offset.
    pub(crate) fn text(&self, offset: u64) -> Result<String> {
        let bytes = LocalHeap::string(&self.segment, offset, self.address)?;
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }
}

/// All links of the group behind `table`.
pub(super) fn links(file: &File, table: &SymbolTable) -> Result<Vec<Link>> {
    let context = Context::new(file.medium().sizes());
    let names = HeapText::open(file, table.heap_address)?;
    let text = |offset| names.text(offset);
    let mut links = Vec::new();
    // Many entries may name one long string, which would take more memory than the file has bytes.
    let mut budget = Budget::new((names.segment.len() as u64).saturating_mul(4).max(1 << 20));
    for entry in entries(file, &context, table.btree_address)? {
        let target = match entry.scratch {
            Scratch::SoftLink { value_offset } => {
                LinkTarget::Soft { path: text(u64::from(value_offset))? }
            }
            _ => LinkTarget::Hard { address: entry.header_address },
        };
        let name = text(entry.name_offset)?;
        budget.spend(name.len() as u64, "local heap", table.heap_address)?;
        links.push(Link::new(name, target));
    }
    Ok(links)
}

/// All entries below a B-tree node, in order.
fn entries(file: &File, context: &Context, root: u64) -> Result<Vec<SymbolTableEntry>> {
    let (leaf_k, internal_k) = file.extension().group_ranks(file.superblock());
    let node_length = GroupNode::encoded_length(context, internal_k);
    let leaf_length = SymbolTableNode::encoded_length(context, leaf_k);
    let mut entries = Vec::new();
    let mut visited = HashSet::new();
    // Depth first, left to right; `None` as level marks a symbol table node.
    let mut pending = vec![(root, None)];
    while let Some((address, expected)) = pending.pop() {
        if !visited.insert(address) {
            let found = "one that is met again";
            return Err(DecodeError::new("B-tree of a group", address, "a new node", found).into());
        }
        if expected == Some(-1) {
            let bytes = file.medium().read_up_to(address, leaf_length)?;
            entries.extend(SymbolTableNode::decode(&bytes, &context.at(address))?.entries);
            continue;
        }
        let bytes = file.medium().read_up_to(address, node_length)?;
        let node = GroupNode::decode(&bytes, &context.at(address))?;
        let level = i32::from(node.level);
        if expected.is_some_and(|expected| expected != level) {
            let wrong = DecodeError::new(
                "B-tree of a group",
                address,
                format!("level {}", expected.unwrap_or_default()),
                level,
            );
            return Err(Error::from(wrong));
        }
        pending.extend(node.children.iter().rev().map(|&child| (child, Some(level - 1))));
    }
    Ok(entries)
}
