//! The superblock extension: an object header with settings of the file that its superblock has no
//! field for.

use crate::Result;
use crate::object::Object;
use pumice_format::cache_image::{self, CacheImageInfo};
use pumice_format::driver_info::{BLOCK_PREFIX, DriverInfo};
use pumice_format::messages::{BTreeK, FileSpaceInfo, Message, kind};
use pumice_format::shared_message_table::{SharedMessageIndex, SharedMessageTableInfo};
use pumice_format::superblock::Superblock;
use pumice_format::{Context, UNDEFINED};
use pumice_medium::Medium;
use pumice_medium::MetadataIo;
use std::sync::Arc;

/// libhdf5's default of the B-tree rank.
const DEFAULT_LEAF_K: u16 = 4;
const DEFAULT_INTERNAL_K: u16 = 16;
const DEFAULT_CHUNK_K: u16 = 32;

/// The settings in a superblock extension.
#[derive(Debug, Default)]
pub(crate) struct Extension {
    /// Ranks of version 1 B-trees.
    ranks: Option<BTreeK>,
    /// The file-space settings, if the file has some.
    pub(crate) file_space: Option<FileSpaceInfo>,
    /// The members of a split, multi or family file.
    pub(crate) driver: Option<DriverInfo>,
    /// The address and length of an older superblock's driver information.
    pub(crate) driver_place: Option<(u64, u64)>,
    /// The indexes of shared messages.
    pub(crate) shared_messages: Vec<SharedMessageIndex>,
    /// The address of the shared message table.
    pub(crate) shared_table: Option<SharedMessageTableInfo>,
}

impl Extension {
    /// Reads the extension of a file, if it has one. Blocks of a cache image become readable at
    /// their own addresses.
    pub(crate) fn load(medium: &Arc<Medium>, superblock: &Superblock) -> Result<Self> {
        let (driver, driver_place) = driver_block(medium, superblock)?.unzip();
        let mut extension = Self { driver, driver_place, ..Self::default() };
        if superblock.extension_address == UNDEFINED {
            return Ok(extension);
        }
        let object = Object::load(medium, superblock.extension_address)?;
        if let Some(raw) = object.message(kind::DRIVER_INFO) {
            let info = DriverInfo::decode_message(&raw.body, &object.context(&raw))?;
            extension.driver = Some(info);
        }
        if let Some(raw) = object.message(kind::CACHE_IMAGE) {
            let info = CacheImageInfo::decode(&raw.body, &object.context(&raw))?;
            load_image(medium, &object, info)?;
        }
        if let Some(raw) = object.message(kind::BTREE_K) {
            extension.ranks = Some(BTreeK::decode(&raw.body, &object.context(&raw))?);
        }
        if let Some(raw) = object.message(kind::FILE_SPACE_INFO)
            && let Message::FileSpaceInfo(info) = Message::from_raw(&raw, &object.context(&raw))?
        {
            extension.file_space = Some(info);
        }
        if let Some(raw) = object.message(kind::SHARED_MESSAGE_TABLE) {
            let info = SharedMessageTableInfo::decode(&raw.body, &object.context(&raw))?;
            let context = Context::new(medium.sizes()).at(info.address);
            let bytes = medium.read(info.address, info.table_length(&context))?;
            extension.shared_messages =
                SharedMessageIndex::decode_table(&bytes, info.indexes, &context)?;
            extension.shared_table = Some(info);
        }
        Ok(extension)
    }

    /// Stores unusual B-tree ranks of a new file: in its older superblock, or in a message of the
    /// extension.
    pub(crate) fn set_ranks(
        &mut self,
        superblock: &mut Superblock,
        groups: Option<(u16, u16)>,
        chunk: Option<u16>,
    ) -> Option<BTreeK> {
        let (group_leaf_k, group_internal_k) =
            groups.unwrap_or((DEFAULT_LEAF_K, DEFAULT_INTERNAL_K));
        let chunk_internal_k = chunk.unwrap_or(DEFAULT_CHUNK_K);
        if let Some(old) = &mut superblock.old {
            (old.group_leaf_k, old.group_internal_k) = (group_leaf_k, group_internal_k);
            old.chunk_internal_k = chunk_internal_k;
            return None;
        }
        let usual = (DEFAULT_LEAF_K, DEFAULT_INTERNAL_K, DEFAULT_CHUNK_K);
        let ranks = BTreeK { chunk_internal_k, group_internal_k, group_leaf_k };
        self.ranks = ((group_leaf_k, group_internal_k, chunk_internal_k) != usual).then_some(ranks);
        self.ranks
    }

    /// The ranks of symbol table nodes and of a group's B-tree nodes.
    pub(crate) fn group_ranks(&self, superblock: &Superblock) -> (u16, u16) {
        match (&superblock.old, &self.ranks) {
            (Some(old), _) => (old.group_leaf_k, old.group_internal_k),
            (None, Some(ranks)) => (ranks.group_leaf_k, ranks.group_internal_k),
            (None, None) => (DEFAULT_LEAF_K, DEFAULT_INTERNAL_K),
        }
    }

    /// The rank of nodes of version 1 chunk indexes.
    pub(crate) fn chunk_rank(&self, superblock: &Superblock) -> u16 {
        let old = superblock.old.as_ref().map(|old| old.chunk_internal_k);
        let new = self.ranks.map(|ranks| ranks.chunk_internal_k);
        old.or(new).unwrap_or(DEFAULT_CHUNK_K)
    }
}

/// The driver information block of an older superblock.
fn driver_block(
    medium: &Arc<Medium>,
    superblock: &Superblock,
) -> Result<Option<(DriverInfo, (u64, u64))>> {
    let address = superblock.old.as_ref().map_or(UNDEFINED, |old| old.driver_address);
    if address == UNDEFINED {
        return Ok(None);
    }
    let context = Context::new(medium.sizes()).at(address);
    let prefix = medium.read(address, BLOCK_PREFIX)?;
    let bytes = medium.read(address, DriverInfo::block_length(&prefix, &context)?)?;
    Ok(Some((DriverInfo::decode_block(&bytes, &context)?, (address, bytes.len() as u64))))
}

/// Blocks of a cache image are read at their own addresses. In a file that is edited, the first
/// commit writes them there, and the image goes: as with libhdf5.
fn load_image(medium: &Arc<Medium>, extension: &Object, info: CacheImageInfo) -> Result<()> {
    if info.address == UNDEFINED {
        return Ok(());
    }
    let length = usize::try_from(info.length).unwrap_or(usize::MAX);
    let bytes = medium.read(info.address, length)?;
    let blocks = cache_image::decode(&bytes, &Context::new(medium.sizes()).at(info.address))?;
    let blocks = blocks.into_iter().map(|block| (block.address, block.bytes));
    if !medium.writable() {
        medium.overlay(blocks);
        return Ok(());
    }
    blocks.for_each(|(address, bytes)| medium.stage(address, bytes));
    medium.free(info.address, info.length);
    extension.change(|messages| messages.retain(|message| message.kind != kind::CACHE_IMAGE))?;
    extension.stage()
}
