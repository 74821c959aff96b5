//! A fractal heap as a living thing: from an object's id to its bytes. Read only.
//!
//! Blocks are read when they are first needed and kept as long as the heap is. A block says itself
//! where in the heap it stands, so that none can appear twice; what filters make of blocks and huge
//! objects is bounded by a budget.

use crate::dataset::pipeline_of;
use crate::medium::Medium;
use crate::metadata::MetadataIo;
use crate::records::for_each_record;
use crate::{Error, Result};
use pumice_bytes::{Budget, DecodeError};
use pumice_filter::Pipeline;
use pumice_format::fractal_heap::{HeapChild, HeapHeader, HeapId, HugeObject};
use pumice_format::{Context, UNDEFINED};
use std::collections::HashMap;
use std::sync::Arc;

const STRUCTURE: &str = "fractal heap";
/// Types of the B-tree of huge objects that are named by a key, without and with filters.
const HUGE_TREES: [u8; 2] = [1, 2];
/// What all objects of a heap may take in memory, beside four times the file's length.
const ALLOWANCE: u64 = 64 << 20;

/// An open heap.
pub(crate) struct FractalHeap {
    medium: Arc<Medium>,
    context: Context,
    header: HeapHeader,
    pipeline: Pipeline,
    /// Direct blocks by their place in the heap.
    direct: HashMap<u64, Vec<u8>>,
    /// Children of indirect blocks, by their place in the heap and their rows: the first child of a
    /// block stands where the block does.
    indirect: HashMap<(u64, u32), Vec<HeapChild>>,
    /// Huge objects by key, once one was asked for.
    huge: Option<HashMap<u64, HugeObject>>,
    budget: Budget,
}

impl FractalHeap {
    /// The heap whose header is at `address`.
    pub(crate) fn open(medium: &Arc<Medium>, address: u64) -> Result<Self> {
        let context = Context::new(medium.sizes());
        let at = context.at(address);
        let mut bytes = medium.read(address, HeapHeader::encoded_length(&context))?;
        let length = HeapHeader::measure(&bytes, &at)?;
        if length > bytes.len() {
            bytes = medium.read(address, length)?;
        }
        let header = HeapHeader::decode(&bytes, &at)?;
        let pipeline = pipeline_of(&header.pipeline)?;
        let budget = Budget::new(medium.volume()?.saturating_mul(4).saturating_add(ALLOWANCE));
        let medium = medium.clone();
        let (direct, indirect) = Default::default();
        Ok(Self { medium, context, header, pipeline, direct, indirect, huge: None, budget })
    }

    /// The bytes of an object.
    pub(crate) fn object(&mut self, id: &[u8]) -> Result<Vec<u8>> {
        match self.header.decode_id(id, &self.context)? {
            HeapId::Tiny(bytes) => Ok(bytes),
            HeapId::Managed { offset, length } => self.managed(offset, length),
            HeapId::Huge(object) => self.huge_object(object),
            HeapId::HugeKey(key) => {
                let object = self.huge_of_key(key)?;
                self.huge_object(object)
            }
        }
    }

    fn managed(&mut self, offset: u64, length: u64) -> Result<Vec<u8>> {
        self.spend(length)?;
        let (block, start) = self.block_of(offset)?;
        let first = usize::try_from(offset - start).unwrap_or(usize::MAX);
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let object = first.checked_add(length).and_then(|end| block.get(first..end));
        let found = block.len();
        object.map(<[u8]>::to_vec).ok_or_else(|| {
            let expected = format!("{length} byte(s) at {first:#x} of a block");
            DecodeError::new(STRUCTURE, self.header.address, expected, found).into()
        })
    }

    /// The direct block that holds `offset`, and where in the heap it begins.
    fn block_of(&mut self, offset: u64) -> Result<(&[u8], u64)> {
        let header = &self.header;
        if header.root_address == UNDEFINED {
            return Err(self.damaged("a root block", "none"));
        }
        if header.root_rows == 0 {
            let root = HeapChild { address: header.root_address, filtered: header.root_filtered };
            let size = header.starting_size;
            return self.direct_block(root, 0, size).map(|block| (block, 0));
        }
        let mut table = (header.root_address, 0u64, u32::from(header.root_rows));
        loop {
            let (address, start, rows) = table;
            let found = self.header.find(offset - start);
            let Some((row, column, first)) = found.filter(|&(row, ..)| row < rows) else {
                return Err(self.damaged("an offset inside the heap", format!("{offset:#x}")));
            };
            let place = row as usize * usize::from(self.header.width) + column as usize;
            let child = self.children(address, start, rows)?.get(place).copied();
            let Some(child) = child.filter(|child| child.address != UNDEFINED) else {
                return Err(self.damaged("an offset in a block", format!("{offset:#x}")));
            };
            let start = start.saturating_add(first);
            if self.header.is_direct(row) {
                let size = self.header.block_size(row).unwrap_or(u64::MAX);
                return self.direct_block(child, start, size).map(|block| (block, start));
            }
            // A table has fewer rows than the one it stands in: this ends.
            let below = self.header.rows_below(row);
            let Some(below) = below.filter(|&below| below > 0 && below < rows) else {
                return Err(self.damaged("rows below a block", row));
            };
            table = (child.address, start, below);
        }
    }

    fn children(&mut self, address: u64, start: u64, rows: u32) -> Result<&[HeapChild]> {
        let key = (start, rows);
        if !self.indirect.contains_key(&key) {
            let length = self.header.indirect_length(rows, &self.context);
            let bytes = self.medium.read(address, length)?;
            let context = self.context.at(address);
            let children = self.header.decode_indirect(&bytes, start, rows, &context)?;
            self.indirect.insert(key, children);
        }
        Ok(self.indirect.get(&key).map(Vec::as_slice).unwrap_or_default())
    }

    fn direct_block(&mut self, child: HeapChild, start: u64, size: u64) -> Result<&[u8]> {
        if !self.direct.contains_key(&start) {
            let stored = child.filtered.map_or(size, |(stored, _)| stored);
            let mut bytes = self.medium.read(child.address, to_usize(stored))?;
            if let Some((_, mask)) = child.filtered {
                self.spend(size)?;
                bytes = self.pipeline.decode(bytes, mask, to_usize(size))?;
            }
            self.header.check_direct(&bytes, start, &self.context.at(child.address))?;
            self.direct.insert(start, bytes);
        }
        Ok(self.direct.get(&start).map(Vec::as_slice).unwrap_or_default())
    }

    fn huge_of_key(&mut self, key: u64) -> Result<HugeObject> {
        if self.huge.is_none() {
            let mut huge = HashMap::new();
            let (header, context) = (&self.header, &self.context);
            if header.huge_index_address != UNDEFINED {
                let address = header.huge_index_address;
                for_each_record(&*self.medium, address, &HUGE_TREES, &mut |record| {
                    let (key, object) = header.decode_huge_record(record, context)?;
                    huge.insert(key, object);
                    Ok(())
                })?;
            }
            self.huge = Some(huge);
        }
        let found = self.huge.as_ref().and_then(|huge| huge.get(&key)).copied();
        found.ok_or_else(|| self.damaged("a huge object of this key", key))
    }

    fn huge_object(&mut self, object: HugeObject) -> Result<Vec<u8>> {
        self.spend(object.filtered.map_or(object.length, |(_, size)| size))?;
        let bytes = self.medium.read(object.address, to_usize(object.length))?;
        match object.filtered {
            Some((mask, size)) => Ok(self.pipeline.decode(bytes, mask, to_usize(size))?),
            None => Ok(bytes),
        }
    }

    fn spend(&mut self, bytes: u64) -> Result<()> {
        Ok(self.budget.spend(bytes, STRUCTURE, self.header.address)?)
    }

    fn damaged(&self, expected: &'static str, found: impl std::fmt::Display) -> Error {
        DecodeError::new(STRUCTURE, self.header.address, expected, found).into()
    }
}

fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
