//! Space in the file: what is taken, what is free, what becomes free with the next commit.
//!
//! Invariants:
//! - Free ranges are disjoint, never adjacent (they are merged) and lie below the end of the file.
//! - Space that committed metadata may refer to is never handed out: [`Allocator::free`] puts it
//!   aside, [`Allocator::begin_commit`] notes what the commit will make free, and
//!   [`Allocator::finish_commit`] frees it. What is given back in between waits for the next commit.
//!   Space taken since the last commit began has no such reader and is free again at once.
//! - Where the file keeps pages, what is smaller than a page lies in one page, with its like
//!   (metadata or raw data), and anything larger begins with a page.
//!
//! A range that cannot be given back, because it lies outside the file or is free already, shows
//! that two structures of the file claim the same space. It is left alone, and remembered: the next
//! commit refuses ([`Allocator::damage`]).

mod free_set;

use free_set::FreeSet;
use std::collections::{BTreeMap, HashMap};

/// What a range is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Headers, indexes, heaps of messages.
    Metadata,
    /// Elements, and the global heap.
    Raw,
}

/// How the ranges of a file are kept apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rules {
    /// Not at all.
    #[default]
    Plain,
    /// Free ranges remember what they were for, because libhdf5 looks for them by that.
    ByPurpose,
    /// By pages of this many bytes.
    Paged(u64),
}

/// Where larger ranges begin: libhdf5's `H5Pset_alignment`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alignment {
    /// From how many bytes on ranges are aligned.
    pub threshold: u64,
    /// What addresses of theirs are multiples of.
    pub bytes: u64,
}

/// A free range, and what it is for: `None` where whole pages are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreeRange {
    /// Where it begins.
    pub address: u64,
    /// Its bytes.
    pub length: u64,
    /// What it was for.
    pub purpose: Option<Purpose>,
}

/// Number of the set of free pages.
const PAGES: usize = 2;

/// Hands out and takes back ranges of the file.
#[derive(Debug)]
pub struct Allocator {
    end: u64,
    rules: Rules,
    /// With the bytes of the file before the address 0. Pages have their own.
    alignment: Option<(Alignment, u64)>,
    /// Free ranges: for metadata (or anything), for raw data, of pages.
    free: [FreeSet; 3],
    /// Taken since the last commit began: address to length.
    fresh: HashMap<u64, u64>,
    /// Given back, but committed metadata may still refer to it: by address, length and set.
    waiting: BTreeMap<u64, (u64, usize)>,
    /// What the commit under way makes free.
    committing: BTreeMap<u64, (u64, usize)>,
    /// The first range that could not be given back.
    damage: Option<(u64, u64)>,
}

impl Allocator {
    /// An allocator for a file whose used part ends at `end`.
    pub fn new(end: u64) -> Self {
        let (free, fresh, waiting, committing) = Default::default();
        let (rules, alignment, damage) = Default::default();
        Self { end, rules, alignment, free, fresh, waiting, committing, damage }
    }

    /// Keeps ranges apart by `rules` from now on, with these ranges free.
    ///
    /// Ranges that overlap or lie outside the file are an answer: the first of them.
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

    /// Where the used part of the file ends.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// How many bytes below the end could be handed out now.
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
        !(self.fresh.is_empty() && self.waiting.is_empty() && self.committing.is_empty())
    }

    /// About how many bytes of memory it takes to remember what was taken and given back since the
    /// last commit.
    pub fn footprint(&self) -> usize {
        const TAKEN: usize = 2 * size_of::<(u64, u64)>();
        const GIVEN_BACK: usize = 2 * size_of::<(u64, (u64, usize))>();
        self.fresh.len() * TAKEN + (self.waiting.len() + self.committing.len()) * GIVEN_BACK
    }

    /// The first range, address and length, that could not be given back.
    pub fn damage(&self) -> Option<(u64, u64)> {
        self.damage
    }

    /// Whether the block at `address` was taken since the last commit began, so that nothing
    /// committed refers to it.
    pub fn is_fresh(&self, address: u64) -> bool {
        self.fresh.contains_key(&address)
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
                    let address = self.allocate_pages(page, page)?;
                    self.free[set].add(address + length, page - length);
                    address
                }
            },
        };
        self.fresh.insert(address, length);
        Some(address)
    }

    /// New space for metadata at the end, so that no free range gets smaller; within a page where
    /// there are pages.
    pub fn allocate_at_end(&mut self, length: u64) -> Option<u64> {
        let address = match self.rules {
            Rules::Paged(page) => self.allocate_last_page(length, page)?,
            _ => self.extend(length)?,
        };
        self.fresh.insert(address, length);
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

    /// Which set ranges of this length and purpose belong to.
    fn set(&self, length: u64, purpose: Purpose) -> usize {
        match (self.rules, purpose) {
            (Rules::Plain, _) => 0,
            (Rules::Paged(page), _) if length >= page => PAGES,
            (_, Purpose::Metadata) => 0,
            (_, Purpose::Raw) => 1,
        }
    }

    /// A range whose address and `phase` are a multiple of `bytes` together.
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
        // What is left of a tail that reaches farther than the range.
        let used = start + length;
        if self.end > used {
            self.free[set].merge(used, self.end - used, None);
        }
        Some(start)
    }

    fn allocate_pages(&mut self, length: u64, page: u64) -> Option<u64> {
        if let Some(address) = self.free[PAGES].take_aligned(length, page, 0) {
            return Some(address);
        }
        self.extend_pages(length, page)
    }

    fn extend_pages(&mut self, length: u64, page: u64) -> Option<u64> {
        // A free tail of whole pages grows; what others left beyond the last page is not used.
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
        if self.fresh.get(&address) == Some(&length) {
            self.fresh.remove(&address);
            self.add_free(address, length, set);
            return;
        }
        let end = address.checked_add(length).filter(|&end| end <= self.end);
        match end.filter(|&end| !self.overlaps(address, end)) {
            Some(_) => drop(self.waiting.insert(address, (length, set))),
            None => drop(self.damage.get_or_insert((address, length))),
        }
    }

    /// Whether a byte of a range is free already, or will be.
    fn overlaps(&self, address: u64, end: u64) -> bool {
        let given_back = |ranges: &BTreeMap<u64, (u64, usize)>| {
            let before = ranges.range(..end).next_back();
            before.is_some_and(|(&start, &(length, _))| start + length > address)
        };
        self.free.iter().any(|set| set.overlaps(address, end))
            || given_back(&self.waiting)
            || given_back(&self.committing)
    }

    /// The metadata that a commit is about to write is fixed: what has been given back so far is
    /// free once it is written, what has been taken so far belongs to it.
    pub fn begin_commit(&mut self) {
        self.fresh.clear();
        self.committing.append(&mut self.waiting);
    }

    /// The commit has replaced all metadata. Returns the new end of the file, which is lower than
    /// before if its last ranges are free. (After a failed commit this is not called; what it
    /// would have freed is freed by the next one.)
    pub fn finish_commit(&mut self) -> u64 {
        for (address, (length, set)) in std::mem::take(&mut self.committing) {
            self.add_free(address, length, set);
        }
        self.cut_tail();
        self.end
    }

    /// Lowers the end as far as what is before it is free, by whole pages where there are pages.
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
        let Rules::Paged(page) = self.rules else {
            self.free[set].merge(address, length, None);
            return;
        };
        if set == PAGES {
            self.free[PAGES].merge(address, length, None);
            return;
        }
        // What others wrote may lie across pages.
        let (mut at, end) = (address, address + length);
        while at < end {
            let next = (at / page + 1).saturating_mul(page).min(end);
            let (start, total) = self.free[set].merge(at, next - at, Some(page));
            if total == page {
                self.free[set].remove(start, total);
                self.free[PAGES].merge(start, total, None);
            }
            at = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn commit(allocator: &mut Allocator) -> u64 {
        allocator.begin_commit();
        allocator.finish_commit()
    }

    #[test]
    fn what_is_given_back_during_a_commit_waits_for_the_next() {
        let mut allocator = Allocator::new(0);
        let a = allocator.allocate(10, Purpose::Metadata).unwrap();
        allocator.allocate(10, Purpose::Metadata).unwrap();
        allocator.begin_commit();
        allocator.free(a, 10, Purpose::Metadata);
        allocator.finish_commit();
        assert_eq!(allocator.free_bytes(), 0);
        commit(&mut allocator);
        assert_eq!(allocator.free_bytes(), 10);
    }

    #[test]
    fn committed_space_is_reused_only_after_a_commit() {
        let mut allocator = Allocator::new(100);
        let old = allocator.allocate(50, Purpose::Metadata).unwrap();
        allocator.allocate(10, Purpose::Metadata).unwrap();
        commit(&mut allocator);
        allocator.free(old, 50, Purpose::Metadata);
        assert_eq!(
            allocator.allocate(50, Purpose::Metadata),
            Some(160),
            "the old place is still referred to"
        );
        commit(&mut allocator);
        assert_eq!(allocator.allocate(50, Purpose::Metadata), Some(old));
    }

    #[test]
    fn space_taken_since_the_commit_is_reused_at_once() {
        let mut allocator = Allocator::new(0);
        let first = allocator.allocate(64, Purpose::Metadata).unwrap();
        allocator.allocate(1, Purpose::Metadata).unwrap();
        allocator.free(first, 64, Purpose::Metadata);
        assert_eq!(allocator.allocate(64, Purpose::Metadata), Some(first));
    }

    #[test]
    fn a_free_tail_gives_the_file_back() {
        let mut allocator = Allocator::new(0);
        let keep = allocator.allocate(10, Purpose::Metadata).unwrap();
        let a = allocator.allocate(20, Purpose::Metadata).unwrap();
        let b = allocator.allocate(30, Purpose::Metadata).unwrap();
        commit(&mut allocator);
        allocator.free(a, 20, Purpose::Metadata);
        allocator.free(b, 30, Purpose::Metadata);
        assert_eq!(commit(&mut allocator), keep + 10);
    }

    #[test]
    fn a_range_given_back_twice_is_handed_out_once() {
        let mut allocator = Allocator::new(100);
        allocator.free(10, 20, Purpose::Metadata);
        allocator.free(10, 20, Purpose::Metadata);
        allocator.free(15, 30, Purpose::Metadata);
        allocator.free(90, 50, Purpose::Metadata);
        assert_eq!(allocator.damage(), Some((10, 20)));
        commit(&mut allocator);
        assert_eq!(allocator.free_bytes(), 20);
    }

    #[test]
    fn no_byte_is_ever_handed_out_twice() {
        let mut allocator = Allocator::new(0);
        let mut held: BTreeMap<u64, u64> = BTreeMap::new();
        let mut random = 1u64;
        for step in 0..20_000u64 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let draw = random >> 33;
            if draw % 3 < 2 || held.is_empty() {
                let length = draw % 97 + 1;
                let address = allocator.allocate(length, Purpose::Metadata).unwrap();
                let previous = held.range(..address + length).next_back();
                assert!(previous.is_none_or(|(&a, &l)| a + l <= address), "step {step}");
                assert!(address + length <= allocator.end());
                held.insert(address, length);
            } else {
                let nth = draw as usize % held.len();
                let (&address, &length) = held.iter().nth(nth).unwrap();
                held.remove(&address);
                allocator.free(address, length, Purpose::Metadata);
            }
            if draw.is_multiple_of(50) {
                commit(&mut allocator);
            }
        }
        let used: u64 = held.values().sum();
        commit(&mut allocator);
        assert_eq!(used + allocator.free_bytes(), allocator.end());
    }

    const PAGE: u64 = 512;

    #[test]
    fn larger_ranges_are_aligned_and_the_room_before_them_is_used() {
        let mut allocator = Allocator::new(100);
        allocator.align(Alignment { threshold: 64, bytes: 4096 }, 512);
        let mut taken = Vec::new();
        for (length, purpose) in
            [(64, Purpose::Raw), (10, Purpose::Metadata), (5000, Purpose::Raw), (64, Purpose::Raw)]
        {
            let address = allocator.allocate(length, purpose).unwrap();
            assert!(length < 64 || (address + 512).is_multiple_of(4096), "{address}");
            taken.push((address, length));
        }
        assert_eq!(taken[1].0, 100, "small ranges fill the gap");
        taken.sort_unstable();
        assert!(taken.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "{taken:?}");
        let used: u64 = taken.iter().map(|range| range.1).sum();
        assert_eq!(allocator.free_bytes() + used + 100, allocator.end());
    }

    /// A file of one page with a superblock, and pages from then on.
    fn paged() -> Allocator {
        let mut allocator = Allocator::new(PAGE);
        let purpose = Some(Purpose::Metadata);
        let rest = FreeRange { address: 48, length: PAGE - 48, purpose };
        allocator.begin(Rules::Paged(PAGE), &[rest]).unwrap();
        allocator
    }

    #[test]
    fn pages_hold_one_kind_of_small_ranges_and_large_ranges_begin_with_a_page() {
        let mut allocator = paged();
        let mut held: BTreeMap<u64, (u64, Purpose)> = BTreeMap::new();
        let mut random = 3u64;
        for step in 0..20_000u64 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let draw = random >> 33;
            let purpose = if draw & 1 == 0 { Purpose::Metadata } else { Purpose::Raw };
            if draw % 5 < 3 || held.is_empty() {
                let length = if draw.is_multiple_of(7) { draw % 3000 + 1 } else { draw % 200 + 1 };
                let address = allocator.allocate(length, purpose).unwrap();
                if length < PAGE {
                    assert_eq!(address / PAGE, (address + length - 1) / PAGE, "step {step}");
                } else {
                    assert_eq!(address % PAGE, 0, "step {step}");
                }
                let previous = held.range(..address + length).next_back();
                assert!(previous.is_none_or(|(&a, &(l, _))| a + l <= address), "step {step}");
                held.insert(address, (length, purpose));
            } else {
                let nth = draw as usize % held.len();
                let (&address, &(length, purpose)) = held.iter().nth(nth).unwrap();
                held.remove(&address);
                allocator.free(address, length, purpose);
            }
            assert_eq!(allocator.end() % PAGE, 0);
            if draw.is_multiple_of(50) {
                commit(&mut allocator);
                let mut kinds: BTreeMap<u64, Purpose> = BTreeMap::new();
                for (&address, &(length, purpose)) in &held {
                    if length < PAGE {
                        let kind = *kinds.entry(address / PAGE).or_insert(purpose);
                        assert_eq!(kind, purpose, "step {step}");
                    }
                }
            }
        }
        for (address, (length, purpose)) in std::mem::take(&mut held) {
            allocator.free(address, length, purpose);
        }
        assert_eq!(allocator.damage(), None);
        assert_eq!(commit(&mut allocator), PAGE, "all pages are given back but the first");
        assert_eq!(allocator.free_bytes(), PAGE - 48);
    }

    #[test]
    fn free_ranges_that_cannot_be_true_are_refused() {
        let range = |address, length| FreeRange { address, length, purpose: None };
        for bad in [range(90, 20), range(10, 0), range(u64::MAX, 2)] {
            assert_eq!(Allocator::new(100).begin(Rules::Plain, &[bad]), Err(bad));
        }
        let twice = [range(10, 20), range(29, 5)];
        assert_eq!(Allocator::new(100).begin(Rules::Plain, &twice), Err(twice[1]));
    }

    #[test]
    fn raw_data_uses_free_raw_space_first() {
        let mut allocator = Allocator::new(1000);
        let free = |address, purpose| FreeRange { address, length: 100, purpose: Some(purpose) };
        let ranges = [free(100, Purpose::Metadata), free(500, Purpose::Raw)];
        allocator.begin(Rules::ByPurpose, &ranges).unwrap();
        assert_eq!(allocator.allocate(100, Purpose::Raw), Some(500));
        assert_eq!(allocator.allocate(100, Purpose::Raw), Some(100));
        assert_eq!(allocator.allocate(100, Purpose::Raw), Some(1000));
    }
}
