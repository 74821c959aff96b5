//! The search for space that nothing in the committed file refers to. It has a view of its own: no
//! object, cache or lock of the open file takes part.

use super::{Cache, File};
use crate::extension::Extension;
use crate::file_space::FileSpace;
use crate::version::CreateOptions;
use crate::{Result, survey};
use pumice_cache::Config;
use pumice_format::superblock::Superblock;
use pumice_medium::{Medium, SearchResult};
use pumice_store::{ReadOp, Store};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The memory for chunks meanwhile.
const CACHE: u64 = 4 << 20;

/// The fewest bytes that a read counts for.
const LEAST_READ: u64 = 256;

/// Searches for unused space below `end` in a store whose HDF5 part begins at `base`. Reads at most
/// `allowed` bytes.
pub(super) fn look(
    store: &Arc<dyn Store>,
    base: u64,
    end: u64,
    superblock: &Superblock,
    allowed: u64,
) -> SearchResult {
    let metered = Arc::new(Metered { store: store.clone(), left: AtomicU64::new(allowed) });
    let view = view(metered.clone(), base, end, superblock);
    match view.and_then(|file| survey::unused(&file, end)) {
        Ok(ranges) => SearchResult::Unused(ranges),
        Err(_) if metered.left.load(Ordering::Relaxed) == 0 => SearchResult::TooMuch,
        Err(_) => SearchResult::Nothing,
    }
}

/// The committed file, open for reading.
fn view(store: Arc<dyn Store>, base: u64, end: u64, superblock: &Superblock) -> Result<Arc<File>> {
    let cache = Cache::new(Config::default().resident_limit(CACHE).active_limit(2 * CACHE));
    let medium = Arc::new(Medium::new(store, base, end, superblock.sizes, false));
    let extension = Extension::load(&medium, superblock)?;
    medium.set_chunk_node_rank(extension.chunk_rank(superblock));
    let space = FileSpace::open(&medium, None, None)?;
    Ok(File::new(medium, superblock.clone(), extension, space, cache, &CreateOptions::default()))
}

/// A store of which a limited number of bytes can be read.
struct Metered {
    store: Arc<dyn Store>,
    left: AtomicU64,
}

impl Metered {
    fn count(&self, bytes: usize) -> io::Result<()> {
        let bytes = (bytes as u64).max(LEAST_READ);
        let left = self.left.load(Ordering::Relaxed).saturating_sub(bytes);
        self.left.store(left, Ordering::Relaxed);
        if left > 0 { Ok(()) } else { Err(io::ErrorKind::QuotaExceeded.into()) }
    }
}

impl Store for Metered {
    fn len(&self) -> io::Result<u64> {
        self.store.len()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.count(buffer.len())?;
        self.store.read_at(offset, buffer)
    }

    fn read_vectored(&self, ops: &mut [ReadOp<'_>]) -> io::Result<()> {
        ops.iter().try_for_each(|op| self.count(op.buffer.len()))?;
        self.store.read_vectored(ops)
    }

    fn write_at(&self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}
