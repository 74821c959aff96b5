//! Making a file: its superblock, how room is found in it, and its root group.

use super::{Cache, File, with_options};
use crate::file_space::FileSpace;
use crate::group::{self, GroupSpec};
use crate::members::{self, multi};
use crate::object::Object;
use crate::version::{CreateOptions, LibraryVersion};
use crate::{Result, share};
use pumice_format::messages::{FileSpaceInfo, Message, SymbolTable};
use pumice_format::object_header::{
    MESSAGE_CONSTANT, MESSAGE_DONT_SHARE, ObjectHeader, PhaseChange,
};
use pumice_format::superblock::Superblock;
use pumice_format::symbol_table_node::{Scratch, SymbolTableEntry};
use pumice_format::{Sizes, UNDEFINED};
use pumice_medium::Medium;
use pumice_store::{MemoryStore, Store};
use std::sync::Arc;

impl File {
    /// Makes an empty HDF5 file in an empty store.
    pub fn create(
        store: Arc<dyn Store>,
        cache: Cache,
        options: &CreateOptions,
    ) -> Result<Arc<Self>> {
        let starts = store.starts();
        let file = Self::prepare(store, &starts, cache, options)?;
        file.commit()?;
        Ok(file)
    }

    /// Fails if a file cannot be created with these options. Does everything but write.
    pub(crate) fn check_creation(cache: &Cache, options: &CreateOptions) -> Result<()> {
        let members = options.by_kind.map(|kind| kind.members().members).unwrap_or_default();
        let mut starts: Vec<u64> = members.iter().map(|member| member.start).collect();
        starts.sort_unstable();
        let store = Arc::new(MemoryStore::default());
        Self::prepare(store, &starts, cache.clone(), options).map(drop)
    }

    /// Prepares an empty HDF5 file in a store whose parts begin at `starts`; its first commit
    /// writes it.
    fn prepare(
        store: Arc<dyn Store>,
        starts: &[u64],
        cache: Cache,
        options: &CreateOptions,
    ) -> Result<Arc<Self>> {
        options.check()?;
        let CreateOptions { library_version, user_block, root: spec, space, .. } = *options;
        let low = library_version.unwrap_or_default();
        let unknown =
            SymbolTableEntry { name_offset: 0, header_address: 0, scratch: Scratch::None };
        let space = FileSpaceInfo::from(space);
        // Settings of file space need an extension, which older superblocks do not have.
        let usual = space == FileSpaceInfo::default() && options.shared_messages == [0; 5];
        let mut superblock = match low.superblock() {
            0 if usual => {
                // The first version has no place for the rank of chunk indexes.
                let version = u8::from(options.chunk_rank.is_some());
                Superblock { version, ..Superblock::new_old(unknown, 0) }
            }
            version => Superblock { version: version.max(2), ..Superblock::new(0, 0) },
        };
        superblock.base_address = user_block;
        if let Some((offset, length)) = options.widths {
            superblock.sizes = Sizes { offset, length };
        }
        let (length, sizes) = (superblock.encoded_length() as u64, superblock.sizes);
        let medium = Medium::new(store, user_block, length, sizes, true);
        if let Some(kind) = options.by_kind {
            multi::check_space(&space)?;
            let mut new = kind.members();
            new.members.iter_mut().take(1).for_each(|first| first.used = user_block + length);
            multi::divide(&medium, starts, &new)?;
        }
        let medium = Arc::new(with_options(medium, options));
        let mut space = FileSpace::create(&medium, space, length, new_header(low))?;
        let header = new_header(low);
        let driver = members::begin(&medium, &mut superblock, &mut space, header, options)?;
        if let Some((metadata, raw)) = options.blocks() {
            medium.put_aside(metadata, raw);
        }
        let least = &options.shared_messages;
        let mut extension = share::begin(&medium, &mut space, new_header(low), least)?;
        (extension.driver, extension.driver_place) = driver;
        let ranks = extension.set_ranks(&mut superblock, options.group_ranks, options.chunk_rank);
        if let Some(ranks) = ranks {
            let flags = MESSAGE_CONSTANT | MESSAGE_DONT_SHARE;
            let message = Message::BTreeK(ranks).to_raw(sizes, flags)?;
            space.extend(&medium, new_header(low), message)?;
        }
        medium.set_chunk_node_rank(extension.chunk_rank(&superblock));
        superblock.extension_address = space.extension_address().unwrap_or(UNDEFINED);
        let old = low == LibraryVersion::Earliest && spec == GroupSpec::default();
        let root = match old {
            true => {
                let ranks = extension.group_ranks(&superblock);
                Self::create_old_root(&medium, &mut superblock, ranks)?
            }
            false => Self::create_root(&medium, &mut superblock, &spec)?,
        };
        let file = Self::new(medium, superblock, extension, space, cache, options);
        file.objects().list.insert(root.address(), Arc::new(root));
        Ok(file)
    }

    /// Makes the root group and tells the superblock.
    fn create_root(
        medium: &Arc<Medium>,
        superblock: &mut Superblock,
        spec: &GroupSpec,
    ) -> Result<Object> {
        let mut header = attribute_header(spec.track_attribute_order, spec.attribute_phase_change);
        header.messages = group::new_messages(spec, superblock.sizes);
        let root = Object::create(medium, header)?;
        superblock.root_address = root.address();
        if let Some(old) = &mut superblock.old {
            old.root.header_address = root.address();
        }
        Ok(root)
    }

    /// Creates a root group with a symbol table, with nodes of these ranks.
    fn create_old_root(
        medium: &Arc<Medium>,
        superblock: &mut Superblock,
        ranks: (u16, u16),
    ) -> Result<Object> {
        let messages = vec![group::no_symbol_table(medium)];
        let header = ObjectHeader { messages, ..new_header(LibraryVersion::Earliest) };
        let root = Object::create_sized(medium, header, 0)?;
        let table = group::add_symbol_table(&root, medium, ranks)?;
        superblock.root_address = root.address();
        if let Some(old) = &mut superblock.old {
            let SymbolTable { btree_address, heap_address } = table;
            old.root.scratch = Scratch::Group { btree_address, heap_address };
            old.root.header_address = root.address();
        }
        Ok(root)
    }
}

/// A header that keeps the order of attributes, or says when they move to dense storage.
pub(super) fn attribute_header(
    track_attribute_order: bool,
    phase_change: Option<(u16, u16)>,
) -> ObjectHeader {
    let phase_change = phase_change
        .map(|(max_compact, min_dense)| PhaseChange { max_compact, min_dense })
        // Defaults are not stored.
        .filter(|&PhaseChange { max_compact, min_dense }| (max_compact, min_dense) != (8, 6));
    ObjectHeader { track_attribute_order, phase_change, ..ObjectHeader::new() }
}

/// The header of an object that this release can read.
pub(super) fn new_header(low: LibraryVersion) -> ObjectHeader {
    match low {
        LibraryVersion::Earliest => {
            ObjectHeader { version: 1, reference_count: Some(1), ..Default::default() }
        }
        _ => ObjectHeader::new(),
    }
}
