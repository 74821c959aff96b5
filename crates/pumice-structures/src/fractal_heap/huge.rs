//! Objects too large for a block: anywhere in the file, found by a key in a version 2 B-tree.

use super::{FractalHeap, STRUCTURE, to_usize};
use crate::btree2::{SMALL_NODES, Tree};
use pumice_bytes::DecodeError;
use pumice_format::fractal_heap::{HeapHeader, HugeObject};
use pumice_format::{Context, UNDEFINED};
use pumice_medium::MetadataIo;
use pumice_medium::{Error, Result};
use std::cmp::Ordering;
use std::ops::ControlFlow;

/// Types of the B-tree, without and with filters.
const PLAIN: u8 = 1;
const FILTERED: u8 = 2;
/// The record type for huge objects whose ids are their addresses.
const PLAIN_BY_ADDRESS: u8 = 3;
const FILTERED_BY_ADDRESS: u8 = 4;
const ALL: [u8; 4] = [PLAIN, FILTERED, PLAIN_BY_ADDRESS, FILTERED_BY_ADDRESS];

impl FractalHeap {
    pub(super) fn huge_of_key(&mut self, key: u64) -> Result<HugeObject> {
        let header = self.header.clone();
        let (medium, context) = (self.medium.clone(), self.context);
        let tree = self.huge_tree()?;
        let found = match tree {
            Some(tree) => tree.lookup(&*medium, by_key(&header, &context, key))?,
            None => None,
        };
        match found {
            Some(record) => Ok(header.decode_huge_record(&record, &context)?.1),
            None => Err(self.damaged("a huge object of this key", key)),
        }
    }

    pub(super) fn huge_object(&mut self, object: HugeObject) -> Result<Vec<u8>> {
        let bytes = self.medium.read(object.address, to_usize(object.length))?;
        let Some((mask, size)) = object.filtered else { return Ok(bytes) };
        // The limit of an object header bounds the output of filters.
        if size > self.medium.volume()?.saturating_mul(64).saturating_add(64 << 20) {
            let expected = "a huge object of a size that the file justifies";
            return Err(DecodeError::new(STRUCTURE, object.address, expected, size).into());
        }
        Ok(self.pipeline.decode(bytes, mask, to_usize(size))?)
    }

    pub(super) fn insert_huge(&mut self, object: &[u8]) -> Result<Vec<u8>> {
        if self.header.last_huge_key >= self.header.max_huge_key() {
            return Err(Error::Unsupported("more huge objects than a heap has keys for".into()));
        }
        let (medium, context) = (self.medium.clone(), self.context);
        let direct = self.header.has_direct_huge_ids(&context);
        if self.huge_tree()?.is_none() {
            let (offset, length) = (context.offset_width(), context.length_width());
            let (kind, size) = match direct {
                true => (PLAIN_BY_ADDRESS, offset + length),
                false => (PLAIN, offset + 2 * length),
            };
            let mut tree = Tree::create(kind, 0, SMALL_NODES, size, context.sizes.offset)?;
            self.header.huge_index_address = tree.place(&*medium)?;
            self.huge = Some(tree);
        }
        let length = object.len() as u64;
        let address = medium.allocate_raw(length)?;
        let huge = HugeObject { address, length, filtered: None };
        let next = self.header.last_huge_key.checked_add(1);
        let full = || {
            Error::Invalid(
                "the heap has used all ids for huge objects; pumice repack makes a new one".into(),
            )
        };
        let key = if direct { address } else { next.ok_or_else(full)? };
        let own = Some(key).filter(|_| !direct);
        let record = HeapHeader::encode_huge_record(&huge, own, &context);
        let header = self.header.clone();
        if let Some(tree) = &mut self.huge {
            tree.insert(&*medium, by_key(&header, &context, key), &record)?;
        }
        medium.stage(address, object.to_vec());
        self.header.objects[1] += 1;
        self.header.object_bytes[0] += length;
        if direct {
            return Ok(self.header.direct_huge_id(&huge, &context));
        }
        self.header.last_huge_key = key;
        Ok(self.header.huge_id(key))
    }

    /// Removes a huge object and updates the heap's counts.
    pub(super) fn remove_huge(&mut self, key: u64) -> Result<()> {
        let (medium, context, header) = (self.medium.clone(), self.context, self.header.clone());
        let removed = match self.huge_tree()? {
            Some(tree) => tree.remove(&*medium, by_key(&header, &context, key))?,
            None => None,
        };
        let Some(record) = removed else {
            return Err(self.damaged("a huge object of this key", key));
        };
        let (_, object) = header.decode_huge_record(&record, &context)?;
        medium.free_raw(object.address, object.length);
        let total = &mut self.header.object_bytes[0];
        *total = total.saturating_sub(object.length);
        if self.huge.as_ref().is_some_and(|tree| tree.count() == 0) {
            self.delete_huge(&*medium)?;
            self.header.huge_index_address = UNDEFINED;
            self.header.last_huge_key = 0;
            self.header.keys_wrapped = false;
        }
        Ok(())
    }

    /// Gives back the space of all huge objects and their index.
    pub(super) fn delete_huge(&mut self, io: &dyn MetadataIo) -> Result<()> {
        let (medium, context) = (self.medium.clone(), self.context);
        let mut tree = match (self.huge.take(), self.header.huge_index_address) {
            (Some(tree), _) => tree,
            (None, UNDEFINED) => return Ok(()),
            (None, address) => Tree::open(address, &ALL, &*medium)?,
        };
        let mut objects = Vec::new();
        // Records of all types begin with address and length.
        let _ = tree.for_each(&*medium, &mut |record| {
            let mut reader = context.reader("record of a huge object", record);
            let address = reader.offset(context.offset_width())?;
            objects.push((address, reader.uint(context.length_width())?));
            Ok(ControlFlow::Continue(()))
        })?;
        for (address, length) in objects {
            io.free_raw(address, length);
        }
        tree.delete(io)
    }

    /// The B-tree of huge objects, if there is one.
    fn huge_tree(&mut self) -> Result<Option<&mut Tree>> {
        let address = self.header.huge_index_address;
        if self.huge.is_none() && address != UNDEFINED {
            self.huge = Some(Tree::open(address, &ALL, &*self.medium)?);
        }
        Ok(self.huge.as_mut())
    }
}

fn by_key<'a>(
    header: &'a HeapHeader,
    context: &'a Context,
    key: u64,
) -> impl FnMut(&[u8]) -> Result<Ordering> + 'a {
    move |record| Ok(header.decode_huge_record(record, context)?.0.cmp(&key))
}
