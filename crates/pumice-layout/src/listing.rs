//! The stored chunks of a dataset by number. The list is kept from one question to the next, and only a part of it is
//! in memory: who asks for one chunk after another by number does not have them all listed each time.

use super::pages::{Pages, Place};
use super::table::ChunkTable;
use pumice_format::index::ChunkRecord;
use pumice_medium::Result;
use pumice_space::{ChunkGrid, Dims, Selection};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Stored chunks inside an extent, in row-major order, of which some are in memory at a time.
pub struct Listing {
    grid: ChunkGrid,
    walk: Mutex<Walk>,
}

/// The way through the stored chunks that a selection touches.
struct Walk {
    selection: Selection,
    pages: Pages,
    /// The number of touched chunks before each page that was reached, and its place.
    starts: Vec<(usize, Place)>,
    /// The page in `some`, by its place in `starts`.
    page: usize,
    /// The touched chunks of the page.
    some: Vec<(Dims, ChunkRecord)>,
}

impl Listing {
    /// Of the chunks of `table` those that lie inside the grid.
    pub fn new(table: &ChunkTable, grid: ChunkGrid) -> Result<Self> {
        let walk = Walk {
            selection: Selection::all(),
            pages: Pages::new(table, grid.clone())?,
            starts: Vec::new(),
            page: 0,
            some: Vec::new(),
        };
        Ok(Self { grid, walk: Mutex::new(walk) })
    }

    /// Whether it is of this extent.
    pub fn is_of(&self, extent: &[u64]) -> bool {
        self.grid.dims() == extent
    }

    /// The chunk with number `index` among those that a selection touches, if there are so many.
    pub fn nth(
        &self,
        table: &ChunkTable,
        selection: &Selection,
        index: usize,
    ) -> Result<Option<(Dims, ChunkRecord)>> {
        let mut walk = self.walk.lock().unwrap_or_else(PoisonError::into_inner);
        selection.check(self.grid.dims())?;
        if !walk.selection.is(selection) {
            walk.begin(selection);
        }
        walk.nth(table, &self.grid, index).inspect_err(|_| walk.begin(selection))
    }
}

impl Walk {
    /// Starts again, with another selection.
    fn begin(&mut self, selection: &Selection) {
        self.selection = selection.clone();
        if let Some((_, first)) = self.starts.first() {
            self.pages.go_to(first);
        }
        (self.starts, self.some, self.page) = Default::default();
    }

    fn nth(
        &mut self,
        table: &ChunkTable,
        grid: &ChunkGrid,
        index: usize,
    ) -> Result<Option<(Dims, ChunkRecord)>> {
        if self.has(index) {
            return Ok(self.some.get(index - self.first()).cloned());
        }
        // The last known page that begins with this number or before it; from there on, as far as necessary.
        let page = self.starts.partition_point(|(first, _)| *first <= index).saturating_sub(1);
        let mut next = self.starts.len().min(self.page + 1);
        if let Some((_, place)) = self.starts.get(page).filter(|_| page != self.page) {
            self.pages.go_to(place);
            next = page;
        }
        while self.read_page(table, grid, next)? && !self.has(index) {
            next += 1;
        }
        if !self.has(index) {
            return Ok(None);
        }
        Ok(self.some.get(index - self.first()).cloned())
    }

    /// The number of touched chunks before the page in memory.
    fn first(&self) -> usize {
        self.starts.get(self.page).map_or(0, |(first, _)| *first)
    }

    /// Whether a chunk is on the page in memory.
    fn has(&self, index: usize) -> bool {
        index >= self.first() && index - self.first() < self.some.len()
    }

    /// Reads the next page, which has this number. Returns whether there is one. If it cannot be read, it stays the next.
    fn read_page(&mut self, table: &ChunkTable, grid: &ChunkGrid, page: usize) -> Result<bool> {
        let place = self.pages.place();
        let read = self.touched(table, grid);
        let Some(some) = read.inspect_err(|_| self.pages.go_to(&place))? else { return Ok(false) };
        if page == self.starts.len() {
            let before = self.starts.last().map_or(0, |(first, _)| *first) + self.some.len();
            self.starts.push((before, place));
        }
        (self.some, self.page) = (some, page);
        Ok(true)
    }

    /// The touched chunks of the next page.
    fn touched(
        &mut self,
        table: &ChunkTable,
        grid: &ChunkGrid,
    ) -> Result<Option<Vec<(Dims, ChunkRecord)>>> {
        let Some(mut keys) = self.pages.next(table)? else { return Ok(None) };
        if !self.selection.is_all() {
            let touched = self.selection.cut(grid, &keys)?;
            keys = touched.into_iter().map(|(at, _)| keys[at].clone()).collect();
        }
        let found = keys.iter().cloned().zip(table.lookup(&keys)?);
        Ok(Some(found.filter_map(|(key, record)| Some((key, record?))).collect()))
    }
}

/// A listing that is kept until the index changes.
#[derive(Default)]
pub(super) struct Kept(Mutex<State>);

#[derive(Default)]
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
