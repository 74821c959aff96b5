//! The allocator of a medium: settings, questions, and ranges of raw data.

use super::{Medium, pressure};
use crate::Result;
use crate::allocator::{Alignment, FreeRange, PartSpace, Parts, Purpose, Rules};
use crate::metadata::DataKind;
use pumice_bytes::DecodeError;

impl Medium {
    /// Divides the file into parts, with a part for each kind of data. Nothing may have been
    /// allocated yet.
    pub fn divide(&self, parts: &[PartSpace], kinds: [usize; 6]) {
        let mut state = self.state();
        state.allocator = Parts::several(parts, kinds);
        state.allocator.take_early_at_most(pressure::early(self.limit));
        state.committed_ends = state.allocator.ends();
    }

    /// The ends of the parts, and whether the last commit left them so.
    pub fn ends(&self) -> (Vec<u64>, bool) {
        let state = self.state();
        let ends = state.allocator.ends();
        let same = ends == state.committed_ends;
        (ends, same)
    }

    /// The end of the first part, for a superblock that is written outside of a commit.
    pub fn superblock_end(&self) -> u64 {
        let state = self.state();
        match state.committed_ends.as_slice() {
            [first, _, ..] => *first,
            _ => state.allocator.end(),
        }
    }

    /// Aligns larger ranges from now on.
    pub fn align(&self, alignment: Alignment) {
        self.state().allocator.align(alignment, self.base);
    }

    /// Cuts small ranges from blocks of these sizes from now on, for metadata and for raw data.
    pub fn put_aside(&self, metadata: u64, raw: u64) {
        self.state().allocator.put_aside(metadata, raw);
    }

    /// Gives up these blocks with the next commit.
    pub fn release_blocks(&self) {
        self.state().allocator.release();
    }

    /// Applies `rules` from now on, with these free ranges.
    pub fn begin_space(&self, rules: Rules, free: &[FreeRange]) -> Result<()> {
        self.state().allocator.begin(rules, free).map_err(|range| {
            DecodeError::new(
                "free-space section list",
                range.address,
                "sections inside the file that do not overlap",
                format!("one of {} byte(s)", range.length),
            )
            .into()
        })
    }

    /// All free ranges, and where the used part of the file ends.
    pub fn free_ranges(&self) -> (Vec<FreeRange>, u64) {
        let state = self.state();
        (state.allocator.free_ranges(), state.allocator.end())
    }

    /// Whether most of the file is free, and metadata of `length` bytes would be placed before
    /// `address`.
    pub fn is_mostly_free_before(&self, address: u64, length: u64) -> bool {
        let allocator = &self.state().allocator;
        allocator.is_mostly_free(address)
            && allocator
                .next_hole(length, Purpose::Metadata, address)
                .is_some_and(|at| at < address)
    }

    /// Whether a commit would write anything, apart from unstaged changes.
    pub fn has_changed(&self) -> bool {
        let state = self.state();
        !state.images.is_empty() || !state.parking.is_empty() || state.allocator.has_changed()
    }

    /// Bytes that were given back since the last commit and are not free yet.
    pub fn given_back(&self) -> u64 {
        self.state().allocator.waiting_bytes()
    }

    /// Whether raw data of `length` bytes would be placed before `address`.
    pub fn has_raw_hole_before(&self, address: u64, length: u64) -> bool {
        let hole = self.state().allocator.next_hole(length, Purpose::Raw, address);
        hole.is_some_and(|hole| hole < address)
    }

    /// Whether free space has room for raw data of all these sizes, for the largest of them before
    /// `address`.
    pub fn has_raw_holes_before(&self, address: u64, sizes: &mut [u64]) -> bool {
        sizes.sort_unstable();
        let largest = sizes.last().copied().unwrap_or(0);
        self.has_raw_hole_before(address, largest)
            && self.state().allocator.has_room_for(sizes, Purpose::Raw, address)
    }

    /// Announces new raw data of `length` bytes. The part that free space does not hold goes to the
    /// end of the file, where the store can make room for all of it at once.
    pub fn expect(&self, length: u64) {
        let (end, free) = {
            let state = self.state();
            (state.allocator.end(), state.allocator.free_bytes())
        };
        if let Ok(at) = self.absolute(end) {
            self.store.expect(at, length.saturating_sub(free));
        }
    }

    /// The length of all parts together.
    pub fn used(&self) -> u64 {
        self.state().allocator.used()
    }

    /// Free bytes below the ends.
    pub fn free_bytes(&self) -> u64 {
        self.state().allocator.free_bytes()
    }

    /// Whether the range at `address` was taken since the last commit began: nothing committed refers to it.
    pub fn is_fresh(&self, address: u64) -> bool {
        self.state().allocator.is_fresh(address)
    }

    /// Whether the range at `address` was taken since the last commit began, or was taken early, so
    /// that only the next commit may write there.
    pub fn is_new(&self, address: u64) -> bool {
        self.state().allocator.is_new(address)
    }

    /// Whether metadata may lie behind free space because too much waited for a commit.
    pub fn has_refused_early(&self) -> bool {
        self.state().allocator.has_refused_early()
    }

    /// Space for data of a kind that its owner [stages](crate::MetadataIo::stage), unless it is
    /// [fresh](Self::is_fresh).
    pub fn allocate_staged(&self, kind: DataKind, length: u64) -> Result<u64> {
        self.look_for_room(length);
        self.take(|allocator| allocator.allocate_early(length, kind))
    }

    /// Space for data of a kind that nothing refers to, committed metadata included.
    pub fn allocate_free(&self, kind: DataKind, length: u64) -> Result<u64> {
        self.look_for_room(length);
        self.take(|allocator| allocator.allocate(length, kind))
    }
}
