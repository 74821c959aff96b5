//! The superblock extension: an object header with what a file says of itself beyond its
//! superblock.

use crate::medium::Medium;
use crate::metadata::MetadataIo;
use crate::object::Object;
use crate::{Error, Result};
use pumice_format::cache_image::{self, CacheImageInfo};
use pumice_format::messages::{BTreeK, kind};
use pumice_format::shared_message_table::{SharedMessageIndex, SharedMessageTableInfo};
use pumice_format::superblock::Superblock;
use pumice_format::{Context, UNDEFINED};
use std::sync::Arc;

/// What libhdf5 uses where a file does not say.
const DEFAULT_LEAF_K: u16 = 4;
const DEFAULT_INTERNAL_K: u16 = 16;

/// What a superblock extension says.
#[derive(Debug, Default)]
pub(crate) struct Extension {
    /// Ranks of version 1 B-trees.
    ranks: Option<BTreeK>,
    /// Where messages are kept that objects share.
    pub(crate) shared_messages: Vec<SharedMessageIndex>,
}

impl Extension {
    /// Reads the extension of a file, if it has one. Blocks of a cache image become readable at
    /// their own addresses.
    pub(crate) fn load(medium: &Arc<Medium>, superblock: &Superblock) -> Result<Self> {
        if superblock.extension_address == UNDEFINED {
            return Ok(Self::default());
        }
        let object = Object::load(medium, superblock.extension_address)?;
        let mut extension = Self::default();
        if let Some(raw) = object.message(kind::CACHE_IMAGE) {
            load_image(medium, CacheImageInfo::decode(&raw.body, &object.context(&raw))?)?;
        }
        if let Some(raw) = object.message(kind::BTREE_K) {
            extension.ranks = Some(BTreeK::decode(&raw.body, &object.context(&raw))?);
        }
        if let Some(raw) = object.message(kind::SHARED_MESSAGE_TABLE) {
            let info = SharedMessageTableInfo::decode(&raw.body, &object.context(&raw))?;
            let context = Context::new(medium.sizes()).at(info.address);
            let bytes = medium.read(info.address, info.table_length(&context))?;
            extension.shared_messages =
                SharedMessageIndex::decode_table(&bytes, info.indexes, &context)?;
        }
        Ok(extension)
    }

    /// The ranks of symbol table nodes and of a group's B-tree nodes.
    pub(crate) fn group_ranks(&self, superblock: &Superblock) -> (u16, u16) {
        match (&superblock.old, &self.ranks) {
            (Some(old), _) => (old.group_leaf_k, old.group_internal_k),
            (None, Some(ranks)) => (ranks.group_leaf_k, ranks.group_internal_k),
            (None, None) => (DEFAULT_LEAF_K, DEFAULT_INTERNAL_K),
        }
    }
}

fn load_image(medium: &Arc<Medium>, info: CacheImageInfo) -> Result<()> {
    if info.address == UNDEFINED {
        return Ok(());
    }
    if medium.writable() {
        return Err(Error::Unsupported("editing a file with a metadata cache image".into()));
    }
    let length = usize::try_from(info.length).unwrap_or(usize::MAX);
    let bytes = medium.read(info.address, length)?;
    let blocks = cache_image::decode(&bytes, &Context::new(medium.sizes()).at(info.address))?;
    medium.overlay(blocks.into_iter().map(|block| (block.address, block.bytes)));
    Ok(())
}
