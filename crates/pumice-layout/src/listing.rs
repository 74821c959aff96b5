//! The stored chunks of a dataset as a list, which can be kept from one question to the next: who asks for one
//! chunk after another by number does not have them all listed each time.

use pumice_format::index::ChunkRecord;
use pumice_medium::Result;
use pumice_space::{ChunkGrid, Dims, Selection};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Stored chunks inside an extent, in row-major order.
#[derive(Debug)]
pub struct Listing {
    extent: Dims,
    /// The coordinates of each in the grid.
    pub keys: Vec<Dims>,
    /// The record of each.
    pub records: Vec<ChunkRecord>,
    /// The numbers of those that the selection touches that was asked for last.
    touched: Mutex<Option<(Selection, Arc<Vec<usize>>)>>,
}

impl Listing {
    /// Of `chunks` in any order, those that lie inside the grid.
    pub fn new(grid: &ChunkGrid, mut chunks: Vec<(Dims, ChunkRecord)>) -> Self {
        // Where all chunks have a place from the start, those that the extent may yet reach have one, too.
        chunks.retain(|(key, _)| grid.contains_chunk(key));
        chunks.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        let (keys, records) = chunks.into_iter().unzip();
        Self { extent: Dims::from_slice(grid.dims()), keys, records, touched: Mutex::default() }
    }

    /// Whether it is of this extent.
    pub fn is_of(&self, extent: &[u64]) -> bool {
        self.extent.as_slice() == extent
    }

    /// The numbers of the chunks that a selection touches.
    pub fn touched(&self, selection: &Selection, grid: &ChunkGrid) -> Result<Arc<Vec<usize>>> {
        let mut touched = self.touched.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, found)) = touched.as_ref().filter(|(known, _)| known.is(selection)) {
            return Ok(Arc::clone(found));
        }
        selection.check(grid.dims())?;
        let found = selection.cut(grid, &self.keys)?.into_iter().map(|(number, _)| number);
        let found: Arc<Vec<usize>> = Arc::new(found.collect());
        *touched = Some((selection.clone(), Arc::clone(&found)));
        Ok(found)
    }
}

/// A listing that is kept until the index changes.
#[derive(Debug, Default)]
pub(super) struct Kept(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// How often the index may have changed.
    changes: u64,
    listing: Option<Arc<Listing>>,
}

impl Kept {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets the listing; the index is about to change, if `changes`.
    pub(super) fn forget(&self, changes: bool) {
        let mut state = self.state();
        state.changes += u64::from(changes);
        state.listing = None;
    }

    /// How often the index may have changed.
    pub(super) fn changes(&self) -> u64 {
        self.state().changes
    }

    pub(super) fn get(&self) -> Option<Arc<Listing>> {
        self.state().listing.clone()
    }

    /// Keeps a listing, if the index has not changed since there were so many changes.
    pub(super) fn put(&self, changes: u64, listing: &Arc<Listing>) {
        let mut state = self.state();
        if state.changes == changes {
            state.listing = Some(Arc::clone(listing));
        }
    }
}
