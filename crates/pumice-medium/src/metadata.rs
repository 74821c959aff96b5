//! Metadata blocks as the rest of the engine sees them: read, allocate, free, stage.
//!
//! Committed metadata does not change between commits: a changed block is *staged*, and one commit
//! writes all staged blocks. A read of a staged block gives the staged bytes.

use crate::Result;
use pumice_format::Sizes;
pub use pumice_format::driver_info::DataKind;

/// libhdf5's default.
pub const USUAL_CHUNK_NODE_RANK: u16 = 32;

/// Reads, allocates and stages metadata blocks.
pub trait MetadataIo: Send + Sync {
    /// The widths of addresses and lengths in this file.
    fn sizes(&self) -> Sizes;

    /// Half the children that a node of a version 1 B-tree of chunks has room for.
    fn chunk_node_rank(&self) -> u16 {
        USUAL_CHUNK_NODE_RANK
    }

    /// The `length` bytes at `address`: the staged image if there is one, otherwise the file's
    /// bytes.
    fn read(&self, address: u64, length: usize) -> Result<Vec<u8>>;

    /// Space for a header of `length` bytes.
    fn allocate(&self, length: u64) -> Result<u64>;

    /// Space for `length` bytes of metadata or heaps of a kind, which files of several parts keep apart.
    fn allocate_for(&self, kind: DataKind, length: u64) -> Result<u64> {
        let _ = kind;
        self.allocate(length)
    }

    /// Space for `length` bytes of raw data, which pages keep apart from metadata.
    fn allocate_raw(&self, length: u64) -> Result<u64> {
        self.allocate(length)
    }

    /// Gives space back. The committed file may still refer to it, so it is reused after the next
    /// commit, or at once if it was taken since the last one.
    fn free(&self, address: u64, length: u64);

    /// Gives space of raw data back.
    fn free_raw(&self, address: u64, length: u64) {
        self.free(address, length);
    }

    /// Another place for a changed block of `length` bytes, if it must not be replaced where it is.
    fn place_anew(&self, address: u64, length: u64) -> Result<Option<u64>> {
        let _ = (address, length);
        Ok(None)
    }

    /// Sets the bytes that the next commit writes at `address`. Blocks are always staged whole, at
    /// the address from which they are read.
    fn stage(&self, address: u64, bytes: Vec<u8>);

    /// Stages a block of a chunk index, which need not stay in memory until the commit.
    fn stage_index(&self, address: u64, bytes: Vec<u8>) {
        self.stage(address, bytes);
    }
}

/// Stages blocks as blocks of a chunk index.
pub struct OfIndex<'a>(pub &'a dyn MetadataIo);

impl MetadataIo for OfIndex<'_> {
    fn sizes(&self) -> Sizes {
        self.0.sizes()
    }

    fn chunk_node_rank(&self) -> u16 {
        self.0.chunk_node_rank()
    }

    fn read(&self, address: u64, length: usize) -> Result<Vec<u8>> {
        self.0.read(address, length)
    }

    fn allocate(&self, length: u64) -> Result<u64> {
        self.0.allocate(length)
    }

    fn allocate_for(&self, kind: DataKind, length: u64) -> Result<u64> {
        self.0.allocate_for(kind, length)
    }

    fn allocate_raw(&self, length: u64) -> Result<u64> {
        self.0.allocate_raw(length)
    }

    fn free(&self, address: u64, length: u64) {
        self.0.free(address, length);
    }

    fn free_raw(&self, address: u64, length: u64) {
        self.0.free_raw(address, length);
    }

    fn place_anew(&self, address: u64, length: u64) -> Result<Option<u64>> {
        self.0.place_anew(address, length)
    }

    fn stage(&self, address: u64, bytes: Vec<u8>) {
        self.0.stage_index(address, bytes);
    }
}
