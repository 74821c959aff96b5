//! The properties of a file as a whole.

use crate::File;
use pumice_engine::Result;
pub use pumice_format::messages::{FileSpaceInfo, FileSpaceStrategy};

/// The numbers in a file's superblock and its extension.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileInfo {
    /// Version of the superblock, 0 to 3.
    pub superblock_version: u8,
    /// Bytes of an address.
    pub offset_size: u8,
    /// Bytes of a length.
    pub length_size: u8,
    /// Half the number of children of a node of an old-style group.
    pub group_internal_k: u16,
    /// Half the number of entries of a symbol table node.
    pub group_leaf_k: u16,
    /// Half the number of children of a node of a version 1 chunk index.
    pub chunk_internal_k: u16,
    /// Bytes before the superblock that are the user's.
    pub user_block_size: u64,
    /// The file-space settings.
    pub file_space: FileSpaceInfo,
}

impl File {
    /// The properties of the file as a whole.
    ///
    /// ```
    /// let file = pumice::File::in_memory()?;
    /// assert_eq!(file.info()?.offset_size, 8);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn info(&self) -> Result<FileInfo> {
        let superblock = self.engine().superblock();
        let [group_leaf_k, group_internal_k, chunk_internal_k] = self.engine().ranks();
        Ok(FileInfo {
            superblock_version: superblock.version,
            offset_size: superblock.sizes.offset,
            length_size: superblock.sizes.length,
            group_internal_k,
            group_leaf_k,
            chunk_internal_k,
            user_block_size: superblock.base_address,
            file_space: self.engine().file_space(),
        })
    }
}
