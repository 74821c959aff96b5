//! Blocks of a chunk index, brought without holding the index.
//!
//! An index reads a block when it first needs it. Through [`Blocks`] it gets only those that have
//! been brought before; it then gives up, and whoever asked brings the block, with the index free for
//! others, and asks again. An index is as it was after a look-up that failed. What was brought is
//! current: a block that an index does not have in memory was not changed by it either.

use pumice_format::Sizes;
use pumice_medium::Medium;
use pumice_medium::{DataKind, MetadataIo};
use pumice_medium::{Error, Result};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A block's address and length.
type Place = (u64, usize);

/// What an index may read at the moment.
pub(super) struct Blocks<'m> {
    medium: &'m Medium,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The block that the index gave up for.
    missing: Option<Place>,
    /// All that the look-up under way has needed: one that begins again needs them again.
    brought: Vec<(Place, Vec<u8>)>,
}

impl<'m> Blocks<'m> {
    pub(super) fn new(medium: &'m Medium) -> Self {
        Self { medium, state: Mutex::default() }
    }

    /// Whether the index gave up for want of a block.
    pub(super) fn is_waiting(&self) -> bool {
        self.state().missing.is_some()
    }

    /// Forgets what a look-up needed that has come to its end.
    pub(super) fn clear(&self) {
        self.state().brought.clear();
    }

    /// Reads the block that the index gave up for, if there is one.
    pub(super) fn bring(&self) -> Result<()> {
        let Some(place) = self.state().missing.take() else { return Ok(()) };
        let bytes = self.medium.read(place.0, place.1)?;
        self.state().brought.push((place, bytes));
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MetadataIo for Blocks<'_> {
    fn sizes(&self) -> Sizes {
        self.medium.sizes()
    }

    fn chunk_node_rank(&self) -> u16 {
        self.medium.chunk_node_rank()
    }

    fn read(&self, address: u64, length: usize) -> Result<Vec<u8>> {
        let mut state = self.state();
        match state.brought.iter().find(|(place, _)| *place == (address, length)) {
            Some((_, bytes)) => Ok(bytes.clone()),
            None => {
                state.missing = Some((address, length));
                Err(Error::Internal("a block of the index that is yet to be read".into()))
            }
        }
    }

    fn allocate(&self, length: u64) -> Result<u64> {
        self.medium.allocate(length)
    }

    fn allocate_for(&self, kind: DataKind, length: u64) -> Result<u64> {
        self.medium.allocate_for(kind, length)
    }

    fn allocate_raw(&self, length: u64) -> Result<u64> {
        self.medium.allocate_raw(length)
    }

    fn free(&self, address: u64, length: u64) {
        self.medium.free(address, length);
    }

    fn free_raw(&self, address: u64, length: u64) {
        self.medium.free_raw(address, length);
    }

    fn place_anew(&self, address: u64, length: u64) -> Result<Option<u64>> {
        self.medium.place_anew(address, length)
    }

    fn stage(&self, address: u64, bytes: Vec<u8>) {
        self.medium.stage(address, bytes);
    }

    fn stage_index(&self, address: u64, bytes: Vec<u8>) {
        self.medium.stage_index(address, bytes);
    }
}
