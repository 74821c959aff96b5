//! Space in the file: which ranges are taken, which are free, and which the next commit frees.
//!
//! Invariants:
//! - Free ranges are disjoint, never adjacent (they are merged) and lie below the end of the file.
//! - Space that committed metadata may refer to is never handed out: [`Allocator::free`] puts it
//!   aside, [`Allocator::begin_commit`] notes what the commit will free, and
//!   [`Allocator::finish_commit`] frees it. Space that is given back in between waits for the next
//!   commit. Space taken since the last commit began is free again at once.
//! - The exception is [`Allocator::allocate_early`]: its callers write nothing there before a
//!   commit, which replaces the old bytes together with all references to them (`early.rs`).
//! - In paged files, a range smaller than a page lies within one page, with others of its purpose
//!   (metadata or raw data), and a larger range begins with a page.
//! - Where there are blocks ([`Allocator::put_aside`]), small ranges are cut from them, and free
//!   ranges serve the purpose that they had.
//!
//! A range that lies outside the file or is free already cannot be given back: two structures of
//! the file claim the same space. The range is left alone and remembered, and the next commit fails
//! ([`Allocator::damage`]).

mod blocks;
mod early;
mod free_set;
mod parts;

use blocks::{Blocks, Cut};
use early::Early;
use free_set::FreeSet;
pub use parts::{Extent, PartSpace, Parts};
use std::collections::BTreeMap;

/// The purpose of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Headers, indexes, heaps of messages.
    Metadata,
    /// Elements, and the global heap.
    Raw,
}

/// The rules that keep ranges of a file apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rules {
    /// No rules.
    #[default]
    Plain,
    /// Free ranges keep their purpose, because libhdf5 looks for them by it.
    ByPurpose,
    /// Pages of this many bytes.
    Paged(u64),
}

/// The alignment of larger ranges: libhdf5's `H5Pset_alignment`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alignment {
    /// The length from which on ranges are aligned.
    pub threshold: u64,
    /// The number whose multiples are valid addresses.
    pub bytes: u64,
}

/// A free range, and its purpose: `None` where whole pages are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreeRange {
    /// The address of the range.
    pub address: u64,
    /// Its bytes.
    pub length: u64,
    /// The purpose that it had.
    pub purpose: Option<Purpose>,
}

/// Number of the set of free pages.
const PAGES: usize = 2;

/// Pages of a hole that small ranges do not cut.
const LONG_HOLE: u64 = 16;

/// Hands out and takes back ranges of the file.
#[derive(Debug)]
pub struct Allocator {
    end: u64,
    rules: Rules,
    /// The alignment, and the bytes of the file before the address 0. Pages have their own.
    alignment: Option<(Alignment, u64)>,
    blocks: Option<Blocks>,
    /// Free ranges: for metadata (or anything), for raw data, of pages.
    free: [FreeSet; 3],
    /// Taken since the last commit began: address to length. Neighbours are one range, so that millions of chunks
    /// that follow one another take no more memory than one.
    fresh: BTreeMap<u64, u64>,
    /// Ranges handed out early since the last commit: the next commit replaces the old bytes there.
    early: Early,
    /// Ranges given back that committed metadata may still refer to. These sets are by purpose
    /// whatever the rules, so that a replacement finds a range of its size.
    waiting: [FreeSet; 3],
    /// The bytes of these ranges.
    waiting_bytes: u64,
    /// Ranges that the commit under way frees.
    committing: [FreeSet; 3],
    /// The first range that could not be given back.
    damage: Option<(u64, u64)>,
}

impl Allocator {
    /// An allocator for a file whose used part ends at `end`.
    pub fn new(end: u64) -> Self {
        let (free, fresh, waiting, committing) = Default::default();
        let (rules, alignment, blocks, damage) = Default::default();
        let (early, waiting_bytes) = Default::default();
        Self {
            end,
            rules,
            alignment,
            blocks,
            free,
            fresh,
            early,
            waiting,
            waiting_bytes,
            committing,
            damage,
        }
    }

    /// Applies `rules` from now on, with these free ranges.
    ///
    /// Fails with the first range that overlaps another or lies outside the file.
    pub fn begin(&mut self, rules: Rules, free: &[FreeRange]) -> Result<(), FreeRange> {
        self.rules = rules;
        for range in free {
            let set = match (rules, range.purpose) {
                (Rules::Plain, _) => 0,
                (Rules::Paged(_), None) => PAGES,
                (_, Some(Purpose::Raw)) => 1,
                (_, _) => 0,
            };
            let end = range.address.checked_add(range.length).filter(|&end| end <= self.end);
            let Some(end) = end.filter(|_| range.length > 0) else {
                return Err(*range);
            };
            if self.overlaps(range.address, end) {
                return Err(*range);
            }
            self.add_free(range.address, range.length, set);
        }
        Ok(())
    }

    /// Aligns ranges from now on, in a file with `base` bytes before the address 0.
    pub fn align(&mut self, alignment: Alignment, base: u64) {
        self.alignment =
            (alignment.bytes > 1).then_some((alignment, base % alignment.bytes.max(1)));
    }

    /// Cuts small ranges from blocks of these sizes until [`release`](Self::release). The first
    /// block of metadata includes all that is taken so far. Paged files have no such blocks.
    pub fn put_aside(&mut self, metadata: u64, raw: u64) {
        if matches!(self.rules, Rules::Paged(_)) {
            return;
        }
        self.rules = Rules::ByPurpose;
        let mut blocks = Blocks::new(metadata, raw);
        self.end = blocks.begin(self.end);
        self.blocks = Some(blocks);
    }

    /// Gives up the blocks: the rest of them is free with the next commit.
    pub fn release(&mut self) {
        for (set, (address, length)) in self.blocks.take().iter_mut().flat_map(Blocks::release) {
            self.wait(address, length, set);
        }
    }

    /// Adds a range that becomes free with the next commit.
    fn wait(&mut self, address: u64, length: u64, set: usize) {
        add_to(&mut self.waiting, self.rules, address, length, set);
        self.early.give_back(set, length, address);
        self.waiting_bytes += length;
    }

    /// Bytes that were given back since the last commit and are not free yet.
    pub fn waiting_bytes(&self) -> u64 {
        self.waiting_bytes
    }

    /// The end of the used part of the file.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Free bytes below the end.
    pub fn free_bytes(&self) -> u64 {
        self.free.iter().map(FreeSet::bytes).sum()
    }

    /// All free ranges.
    pub fn free_ranges(&self) -> Vec<FreeRange> {
        let purposes = [Some(Purpose::Metadata), Some(Purpose::Raw), None];
        let sets = self.free.iter().zip(purposes);
        sets.flat_map(|(set, purpose)| {
            set.ranges().map(move |(address, length)| FreeRange { address, length, purpose })
        })
        .collect()
    }

    /// Whether anything was taken or given back since the last commit.
    pub fn has_changed(&self) -> bool {
        let given_back = self.waiting.iter().chain(&self.committing);
        !(self.fresh.is_empty() && self.early.taken.is_empty())
            || given_back.map(FreeSet::len).sum::<usize>() > 0
    }

    /// About the memory, in bytes, for remembering ranges that were taken and given back since the
    /// last commit.
    pub fn footprint(&self) -> usize {
        const TAKEN: usize = 2 * size_of::<(u64, u64)>();
        const GIVEN_BACK: usize = 4 * size_of::<(u64, u64)>();
        let given_back = self.waiting.iter().chain(&self.committing).map(FreeSet::len);
        (self.fresh.len() + self.early.len()) * TAKEN + given_back.sum::<usize>() * GIVEN_BACK
    }

    /// The first range, address and length, that could not be given back.
    pub fn damage(&self) -> Option<(u64, u64)> {
        self.damage
    }

    /// Whether the range at `address` was taken since the last commit began, so that nothing
    /// committed refers to it.
    pub fn is_fresh(&self, address: u64) -> bool {
        let before = self.fresh.range(..=address).next_back();
        before.is_some_and(|(&start, &length)| address - start < length)
    }

    /// Adds a range to the fresh ones.
    fn note_fresh(&mut self, mut address: u64, mut length: u64) {
        if length == 0 {
            return;
        }
        let end = address.saturating_add(length);
        if let Some(next) = self.fresh.remove(&end) {
            length = length.saturating_add(next);
        }
        let before = self.fresh.range(..address).next_back().map(|(&at, &length)| (at, length));
        if let Some((start, before)) = before.filter(|(start, before)| start + before == address) {
            (address, length) = (start, before.saturating_add(length));
        }
        self.fresh.insert(address, length);
    }

    /// The smallest free range that fits, else new space at the end; `None` if addresses run out.
    pub fn allocate(&mut self, length: u64, purpose: Purpose) -> Option<u64> {
        let set = self.set(length, purpose);
        let aligned = self.alignment.filter(|(alignment, _)| length >= alignment.threshold);
        let address = match self.rules {
            Rules::Plain | Rules::ByPurpose if let Some((alignment, phase)) = aligned => {
                self.allocate_aligned(length, set, alignment.bytes, phase)?
            }
            Rules::Plain => match self.free[0].take(length) {
                Some(address) => address,
                None => self.extend(length)?,
            },
            Rules::ByPurpose if self.blocks.is_some() => match self.free[set].take(length) {
                Some(address) => address,
                None => self.cut_block(length, set)?,
            },
            Rules::ByPurpose => {
                let found = self.free[set].take(length);
                match found.or_else(|| self.free[1 - set].take(length)) {
                    Some(address) => address,
                    None => self.extend(length)?,
                }
            }
            Rules::Paged(page) if set == PAGES => self.allocate_pages(length, page)?,
            Rules::Paged(page) => match self.free[set].take(length) {
                Some(address) => address,
                None => {
                    let address = self.allocate_page(page)?;
                    self.free[set].add(address + length, page - length);
                    address
                }
            },
        };
        self.note_fresh(address, length);
        Some(address)
    }

    /// Whether a range of this length is free, or will be with the next commit.
    pub fn has_room(&self, length: u64) -> bool {
        self.free.iter().chain(&self.waiting).any(|set| set.smallest(length).is_some())
    }

    /// Adds ranges that nothing refers to, though nobody gave them back. Ranges that overlap known
    /// ones are left out.
    pub fn discover(&mut self, ranges: &[(u64, u64)]) {
        for &(address, length) in ranges {
            let end = address.checked_add(length).filter(|&end| length > 0 && end <= self.end);
            let Some(end) = end.filter(|&end| !self.overlaps(address, end)) else { continue };
            let fresh = self.fresh.range(..end).next_back();
            let fresh = fresh.is_some_and(|(start, length)| start + length > address);
            if !fresh && self.early.taken.range(address..end).next().is_none() {
                self.add_free(address, length, 0);
            }
        }
    }

    /// The address of the smallest free range of at least this length.
    pub fn next_hole(&self, length: u64, purpose: Purpose) -> Option<u64> {
        self.free[self.set(length, purpose)].smallest(length).map(|(_, address)| address)
    }

    /// Whether free space has room for ranges of these ascending lengths together, without regard
    /// to alignment, blocks or pages.
    pub fn has_room_for(&self, lengths: &[u64], purpose: Purpose) -> bool {
        let whole = |length: &u64| match self.rules {
            Rules::Paged(page) => (*length >= page).then(|| length.next_multiple_of(page)),
            _ => Some(*length),
        };
        let (Some(&first), None) = (lengths.first(), &self.blocks) else { return false };
        let wanted: Option<Vec<u64>> = lengths.iter().map(whole).collect();
        let Some(wanted) = wanted.filter(|_| self.alignment.is_none()) else { return false };
        let mut free = self.free[self.set(first, purpose)].clone();
        wanted.iter().rev().all(|&length| free.take(length).is_some())
    }

    /// A range from a block, or a new one at the end.
    fn cut_block(&mut self, length: u64, set: usize) -> Option<u64> {
        let Some(blocks) = &mut self.blocks else { return self.extend(length) };
        let needed = match blocks.cut(set, length, &mut self.end)? {
            Cut::Taken(address) => return Some(address),
            Cut::Needs(step) => step,
            Cut::Apart => length,
        };
        if let Some((address, left)) = blocks.give_way(set, self.end) {
            self.free[1 - set].merge(address, left, None);
        }
        let address = self.extend(needed)?;
        if needed == length {
            return Some(address);
        }
        let blocks = self.blocks.as_mut()?;
        if let Some((address, left)) = blocks.add(set, address) {
            self.free[set].merge(address, left, None);
        }
        match blocks.cut(set, length, &mut self.end)? {
            Cut::Taken(address) => Some(address),
            Cut::Needs(_) | Cut::Apart => None,
        }
    }

    /// New space for metadata at the end, so that no free range gets smaller; within a page where
    /// there are pages.
    pub fn allocate_at_end(&mut self, length: u64) -> Option<u64> {
        let address = match self.rules {
            Rules::Paged(page) => self.allocate_last_page(length, page)?,
            _ => self.extend(length)?,
        };
        self.note_fresh(address, length);
        Some(address)
    }

    /// Space in a page of metadata, or in new pages at the end: holes that data left stay whole.
    fn allocate_last_page(&mut self, length: u64, page: u64) -> Option<u64> {
        if length >= page {
            return self.extend_pages(length, page);
        }
        if let Some(address) = self.free[0].take(length) {
            return Some(address);
        }
        let address = self.extend_pages(page, page)?;
        self.free[0].add(address + length, page - length);
        Some(address)
    }

    /// The set for ranges of this length and purpose.
    fn set(&self, length: u64, purpose: Purpose) -> usize {
        match (self.rules, purpose) {
            (Rules::Plain, _) => 0,
            (Rules::Paged(page), _) if length >= page => PAGES,
            (_, Purpose::Metadata) => 0,
            (_, Purpose::Raw) => 1,
        }
    }

    /// A range whose address plus `phase` is a multiple of `bytes`.
    fn allocate_aligned(&mut self, length: u64, set: usize, bytes: u64, phase: u64) -> Option<u64> {
        if let Some(address) = self.free[set].take_aligned(length, bytes, phase) {
            return Some(address);
        }
        let mut end = self.end;
        let tail = self.free[set].take_tail(end);
        if let Some((address, _)) = tail {
            end = address;
        }
        let start = end.checked_add(phase)?.checked_next_multiple_of(bytes)? - phase;
        self.end = start.checked_add(length)?.max(self.end);
        if start > end {
            self.free[set].merge(end, start - end, None);
        }
        // The rest of a tail that reaches farther than the range.
        let used = start + length;
        if self.end > used {
            self.free[set].merge(used, self.end - used, None);
        }
        Some(start)
    }

    /// A page for small ranges. A long hole stays whole for large ranges, unless most of the file
    /// is free.
    fn allocate_page(&mut self, page: u64) -> Option<u64> {
        let hole = self.free[PAGES].smallest(page).map_or(0, |(length, _)| length);
        let mostly_free = self.free[PAGES].bytes() > self.end / 4 * 3;
        match hole < LONG_HOLE.saturating_mul(page) || mostly_free {
            true => self.allocate_pages(page, page),
            false => self.extend_pages(page, page),
        }
    }

    fn allocate_pages(&mut self, length: u64, page: u64) -> Option<u64> {
        if let Some(address) = self.free[PAGES].take_aligned(length, page, 0) {
            return Some(address);
        }
        self.extend_pages(length, page)
    }

    fn extend_pages(&mut self, length: u64, page: u64) -> Option<u64> {
        // A free tail of whole pages grows; bytes of other writers beyond the last page are not
        // used.
        let mut address = self.end.checked_next_multiple_of(page)?;
        if let Some((tail, free)) = self.free[PAGES].take_tail(self.end) {
            let start = tail.next_multiple_of(page);
            if start < tail + free {
                address = start;
            }
            if address.min(tail + free) > tail {
                self.free[PAGES].add(tail, address.min(tail + free) - tail);
            }
        }
        let used = address.checked_add(length)?;
        self.end = used.checked_next_multiple_of(page)?;
        if self.end > used {
            self.free[PAGES].merge(used, self.end - used, None);
        }
        Some(address)
    }

    /// New space at the end, together with a free range that touches it.
    fn extend(&mut self, length: u64) -> Option<u64> {
        let mut address = self.end;
        let end = address.checked_add(length)?;
        for set in &mut self.free[..PAGES] {
            if let Some((tail, _)) = set.take_tail(address) {
                address = tail;
                self.end = tail.checked_add(length)?;
                return Some(address);
            }
        }
        self.end = end;
        Some(address)
    }

    /// Gives back a range that [`allocate`](Self::allocate) returned or that the file already had.
    pub fn free(&mut self, address: u64, length: u64, purpose: Purpose) {
        if length == 0 {
            return;
        }
        let set = self.set(length, purpose);
        let end = address.checked_add(length).filter(|&end| end <= self.end);
        if let Some(upto) = end
            && self.cut_fresh(address, upto)
        {
            self.add_free(address, length, set);
            return;
        }
        self.early.remove(address, length);
        match end.filter(|&end| !self.overlaps(address, end)) {
            Some(_) => self.wait(address, length, self.early_set(length, purpose)),
            None => drop(self.damage.get_or_insert((address, length))),
        }
    }

    /// Takes a part out of a range that was taken since the last commit began; `false` if it is none of one.
    fn cut_fresh(&mut self, address: u64, upto: u64) -> bool {
        let before = self.fresh.range(..=address).next_back().map(|(&at, &length)| (at, length));
        let Some((start, length)) = before else { return false };
        let end = start + length;
        if upto > end {
            return false;
        }
        self.fresh.remove(&start);
        if start < address {
            self.fresh.insert(start, address - start);
        }
        if upto < end {
            self.fresh.insert(upto, end - upto);
        }
        true
    }

    /// Gives back a range that was taken just now, when the file ended at `end`. The file ends
    /// there again if nothing lies behind.
    pub fn withdraw(&mut self, address: u64, length: u64, purpose: Purpose, end: u64) {
        self.free(address, length, purpose);
        while self.end > end {
            let tail = self.free.iter_mut().find_map(|set| {
                let (start, _) = set.take_tail(self.end)?;
                if start < end {
                    set.add(start, end - start);
                }
                Some(start.max(end))
            });
            match tail {
                Some(start) => self.end = start,
                None => break,
            }
        }
    }

    /// Whether any byte of a range is free, or will be.
    pub fn overlaps(&self, address: u64, end: u64) -> bool {
        let mut sets = self.free.iter().chain(&self.waiting).chain(&self.committing);
        sets.any(|set| set.overlaps(address, end))
            || self.blocks.as_ref().is_some_and(|blocks| blocks.overlaps(address, end))
    }

    /// Fixes the contents of a commit: ranges given back so far are freed by it, ranges taken so
    /// far belong to it.
    pub fn begin_commit(&mut self) {
        self.fresh.clear();
        self.early.clear();
        for (set, waiting) in std::mem::take(&mut self.waiting).iter().enumerate() {
            for (address, length) in waiting.ranges() {
                add_to(&mut self.committing, self.rules, address, length, set);
            }
        }
        self.waiting_bytes = 0;
    }

    /// Frees a range of metadata with the commit under way.
    pub fn free_with_commit(&mut self, address: u64, length: u64) {
        let set = self.set(length, Purpose::Metadata);
        add_to(&mut self.committing, self.rules, address, length, set);
    }

    /// Ends a successful commit. Returns the new end of the file, which is lower than before if its
    /// last ranges are free. After a failed commit this is not called; the next one frees its
    /// ranges.
    pub fn finish_commit(&mut self) -> u64 {
        for (set, freed) in std::mem::take(&mut self.committing).iter().enumerate() {
            let set = if self.rules == Rules::Plain { 0 } else { set };
            freed.ranges().for_each(|(address, length)| self.add_free(address, length, set));
        }
        self.cut_tail();
        self.end
    }

    /// Lowers the end over free ranges, by whole pages in paged files.
    fn cut_tail(&mut self) {
        if let Rules::Paged(page) = self.rules {
            let Some((address, _)) = self.free[PAGES].take_tail(self.end) else { return };
            let end = address.next_multiple_of(page).min(self.end);
            if end > address {
                self.free[PAGES].add(address, end - address);
            }
            self.end = end;
            return;
        }
        while let Some((address, _)) =
            self.free[..PAGES].iter_mut().find_map(|set| set.take_tail(self.end))
        {
            self.end = address;
        }
    }

    /// Adds a range to the free ones and merges it with its neighbours.
    fn add_free(&mut self, address: u64, length: u64, set: usize) {
        add_to(&mut self.free, self.rules, address, length, set);
    }
}

/// Adds a range to one of the sets and merges it with its neighbours. A range that fills a page moves to the set of pages.
fn add_to(sets: &mut [FreeSet; 3], rules: Rules, address: u64, length: u64, set: usize) {
    let Rules::Paged(page) = rules else {
        sets[set].merge(address, length, None);
        return;
    };
    if set == PAGES {
        sets[PAGES].merge(address, length, None);
        return;
    }
    // Ranges of other writers may lie across pages.
    let (mut at, end) = (address, address + length);
    while at < end {
        let next = (at / page + 1).saturating_mul(page).min(end);
        let (start, total) = sets[set].merge(at, next - at, Some(page));
        if total == page {
            sets[set].remove(start, total);
            sets[PAGES].merge(start, total, None);
        }
        at = next;
    }
}

#[cfg(test)]
mod tests;
