//! The space of a file of several parts, each with an end and kinds of data of its own: an
//! [`Allocator`] for each part.
//!
//! The kind of data chooses the part for an allocation; the address chooses it for everything else.

use super::{Alignment, Allocator, FreeRange, Purpose, Rules};
use pumice_format::driver_info::DataKind;

/// A part of the address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartSpace {
    /// Its first address.
    pub start: u64,
    /// The end of its used part.
    pub end: u64,
    /// The address where the next part begins.
    pub limit: u64,
}

#[derive(Debug)]
struct Part {
    start: u64,
    limit: u64,
    allocator: Allocator,
}

impl Part {
    fn extent(&self) -> Extent {
        Extent { start: self.start, end: self.allocator.end() }
    }

    /// The address of a range that was taken just now, if the part has that; else it is given back, and the part
    /// ends where it did.
    fn within(&mut self, address: u64, length: u64, purpose: Purpose, before: u64) -> Option<u64> {
        if self.allocator.end() <= self.limit {
            return Some(address);
        }
        self.allocator.withdraw(address, length, purpose, before);
        None
    }
}

/// The used part of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Its first address.
    pub start: u64,
    /// The end of its used part.
    pub end: u64,
}

/// The allocators of all parts; mostly there is one.
#[derive(Debug)]
pub struct Parts {
    /// In order of addresses.
    parts: Vec<Part>,
    /// The part for each kind of data.
    kinds: [usize; 6],
}

impl Parts {
    /// One part, whose used part ends at `end`, and that may grow up to `limit`.
    pub fn one(end: u64, limit: u64) -> Self {
        let part = Part { start: 0, limit, allocator: Allocator::new(end) };
        Self { parts: vec![part], kinds: [0; 6] }
    }

    /// Parts in order of addresses, and the part for each kind of data.
    pub fn several(parts: &[PartSpace], kinds: [usize; 6]) -> Self {
        let part = |part: &PartSpace| Part {
            start: part.start,
            limit: part.limit,
            allocator: Allocator::new(part.end),
        };
        Self { parts: parts.iter().map(part).collect(), kinds }
    }

    /// The number of parts.
    pub fn count(&self) -> usize {
        self.parts.len()
    }

    fn place(&self, address: u64) -> usize {
        match self.parts.len() {
            1 => 0,
            _ => self.parts.partition_point(|part| part.start <= address).saturating_sub(1),
        }
    }

    /// The allocator of the part that has an address.
    fn at(&self, address: u64) -> &Allocator {
        &self.parts[self.place(address)].allocator
    }

    fn at_mut(&mut self, address: u64) -> &mut Allocator {
        let place = self.place(address);
        &mut self.parts[place].allocator
    }

    fn all(&self) -> impl Iterator<Item = &Allocator> {
        self.parts.iter().map(|part| &part.allocator)
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Allocator> {
        self.parts.iter_mut().map(|part| &mut part.allocator)
    }

    fn sum(&self, of: impl Fn(&Allocator) -> u64) -> u64 {
        self.all().map(of).fold(0, u64::saturating_add)
    }

    /// Aligns ranges from now on, in a file with `base` bytes before the address 0: in the files that
    /// the parts are.
    pub fn align(&mut self, alignment: Alignment, base: u64) {
        let step = alignment.bytes.max(1);
        for part in &mut self.parts {
            let phase = if part.start == 0 { base % step } else { step - part.start % step };
            part.allocator.align(alignment, phase);
        }
    }

    /// As [`Allocator::put_aside`]; several parts do without, as with libhdf5.
    pub fn put_aside(&mut self, metadata: u64, raw: u64) {
        if let [part] = self.parts.as_mut_slice() {
            part.allocator.put_aside(metadata, raw);
        }
    }

    /// As [`Allocator::release`].
    pub fn release(&mut self) {
        self.all_mut().for_each(Allocator::release);
    }

    /// As [`Allocator::begin`], with each range in the part that has its address.
    pub fn begin(&mut self, rules: Rules, free: &[FreeRange]) -> Result<(), FreeRange> {
        for place in 0..self.parts.len() {
            let here = free.iter().filter(|range| self.place(range.address) == place);
            let here: Vec<FreeRange> = here.copied().collect();
            self.parts[place].allocator.begin(rules, &here)?;
        }
        Ok(())
    }

    /// All free ranges.
    pub fn free_ranges(&self) -> Vec<FreeRange> {
        self.all().flat_map(Allocator::free_ranges).collect()
    }

    /// The end of the first part's used range.
    pub fn end(&self) -> u64 {
        self.parts.first().map_or(0, |part| part.allocator.end())
    }

    /// The used part of the one that has an address.
    pub fn extent_at(&self, address: u64) -> Extent {
        self.parts[self.place(address)].extent()
    }

    /// The used parts of all.
    pub fn extents(&self) -> Vec<Extent> {
        self.parts.iter().map(Part::extent).collect()
    }

    /// Whether addresses can name the ends of all parts. A commit must not go beyond that.
    pub fn fit(&self) -> bool {
        self.parts.iter().all(|part| part.allocator.end() <= part.limit)
    }

    /// The ends of all used parts.
    pub fn ends(&self) -> Vec<u64> {
        self.all().map(Allocator::end).collect()
    }

    /// Bytes below the ends of all parts.
    pub fn used(&self) -> u64 {
        self.parts.iter().map(|part| part.allocator.end() - part.start).sum()
    }

    /// As [`Allocator::free_bytes`].
    pub fn free_bytes(&self) -> u64 {
        self.sum(Allocator::free_bytes)
    }

    /// Whether most of the part that contains an address is free.
    pub fn is_mostly_free(&self, address: u64) -> bool {
        let part = &self.parts[self.place(address)];
        part.allocator.free_bytes() > (part.allocator.end() - part.start) / 2
    }

    /// As [`Allocator::waiting_bytes`].
    pub fn waiting_bytes(&self) -> u64 {
        self.sum(Allocator::waiting_bytes)
    }

    /// As [`Allocator::has_changed`].
    pub fn has_changed(&self) -> bool {
        self.all().any(Allocator::has_changed)
    }

    /// As [`Allocator::footprint`].
    pub fn footprint(&self) -> usize {
        self.all().map(Allocator::footprint).sum()
    }

    /// As [`Allocator::damage`].
    pub fn damage(&self) -> Option<(u64, u64)> {
        self.all().find_map(Allocator::damage)
    }

    /// As [`Allocator::is_fresh`].
    pub fn is_fresh(&self, address: u64) -> bool {
        self.at(address).is_fresh(address)
    }

    /// As [`Allocator::allocate`], in the part for data of this kind.
    pub fn allocate(&mut self, length: u64, kind: DataKind) -> Option<u64> {
        let part = self.parts.get_mut(self.kinds[kind as usize])?;
        let before = part.allocator.end();
        let address = part.allocator.allocate(length, purpose(kind))?;
        part.within(address, length, purpose(kind), before)
    }

    /// As [`Allocator::allocate_early`], in the part for data of this kind.
    pub fn allocate_early(&mut self, length: u64, kind: DataKind) -> Option<u64> {
        let part = self.parts.get_mut(self.kinds[kind as usize])?;
        let before = part.allocator.end();
        let address = part.allocator.allocate_early(length, purpose(kind))?;
        part.within(address, length, purpose(kind), before)
    }

    /// As [`Allocator::take_early_at_most`], of all parts together.
    pub fn take_early_at_most(&mut self, bytes: u64) {
        let each = bytes / self.parts.len().max(1) as u64;
        self.all_mut().for_each(|allocator| allocator.take_early_at_most(each));
    }

    /// As [`Allocator::has_refused_early`].
    pub fn has_refused_early(&self) -> bool {
        self.all().any(Allocator::has_refused_early)
    }

    /// As [`Allocator::is_new`].
    pub fn is_new(&self, address: u64) -> bool {
        self.at(address).is_new(address)
    }

    /// As [`Allocator::allocate_at_end`].
    pub fn allocate_at_end(&mut self, length: u64) -> Option<u64> {
        let part = self.parts.get_mut(self.kinds[DataKind::Header as usize])?;
        let before = part.allocator.end();
        let address = part.allocator.allocate_at_end(length)?;
        part.within(address, length, Purpose::Metadata, before)
    }

    /// As [`Allocator::has_room`], in any part.
    pub fn has_room(&self, length: u64) -> bool {
        self.all().any(|allocator| allocator.has_room(length))
    }

    /// As [`Allocator::discover`], where there is one part.
    pub fn discover(&mut self, ranges: &[(u64, u64)]) {
        if let [part] = self.parts.as_mut_slice() {
            part.allocator.discover(ranges);
        }
    }

    /// As [`Allocator::next_hole`], in the part that has an address.
    pub fn next_hole(&self, length: u64, purpose: Purpose, address: u64) -> Option<u64> {
        self.at(address).next_hole(length, purpose)
    }

    /// As [`Allocator::has_room_for`], in the part that has an address.
    pub fn has_room_for(&self, lengths: &[u64], purpose: Purpose, address: u64) -> bool {
        self.at(address).has_room_for(lengths, purpose)
    }

    /// As [`Allocator::free`].
    pub fn free(&mut self, address: u64, length: u64, purpose: Purpose) {
        self.at_mut(address).free(address, length, purpose);
    }

    /// As [`Allocator::overlaps`].
    pub fn overlaps(&self, address: u64, end: u64) -> bool {
        self.at(address).overlaps(address, end)
    }

    /// As [`Allocator::begin_commit`].
    pub fn begin_commit(&mut self) {
        self.all_mut().for_each(Allocator::begin_commit);
    }

    /// Forgets all that is known of space but where the used parts end.
    pub fn forget(&mut self, ends: &[u64]) {
        for (part, &end) in self.parts.iter_mut().zip(ends) {
            part.allocator = Allocator::new(end);
        }
    }

    /// As [`Allocator::free_with_commit`].
    pub fn free_with_commit(&mut self, address: u64, length: u64) {
        self.at_mut(address).free_with_commit(address, length);
    }

    /// As [`Allocator::finish_commit`]. Returns the new ends.
    pub fn finish_commit(&mut self) -> Vec<u64> {
        self.all_mut().map(Allocator::finish_commit).collect()
    }
}

/// The purpose of a kind of data, in a file of one part.
fn purpose(kind: DataKind) -> Purpose {
    match kind {
        DataKind::Raw | DataKind::GlobalHeap => Purpose::Raw,
        _ => Purpose::Metadata,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAR: u64 = i64::MAX as u64;

    fn split() -> Parts {
        let metadata = PartSpace { start: 0, end: 100, limit: FAR };
        let raw = PartSpace { start: FAR, end: FAR + 10, limit: u64::MAX };
        Parts::several(&[metadata, raw], [0, 0, 1, 1, 0, 0])
    }

    #[test]
    fn each_kind_has_its_part_and_each_part_its_end() {
        let mut parts = split();
        assert_eq!(parts.allocate(50, DataKind::Header), Some(100));
        assert_eq!(parts.allocate(1000, DataKind::Raw), Some(FAR + 10));
        assert_eq!(parts.allocate(7, DataKind::GlobalHeap), Some(FAR + 1010));
        assert_eq!(parts.allocate(8, DataKind::Tree), Some(150));
        assert_eq!(parts.ends(), [158, FAR + 1017]);
        assert_eq!(parts.used(), 158 + 1017);
        parts.begin_commit();
        parts.free(FAR + 10, 1000, Purpose::Raw);
        parts.free(150, 8, Purpose::Metadata);
        assert_eq!(parts.finish_commit(), [158, FAR + 1017], "not of this commit");
        parts.begin_commit();
        assert_eq!(parts.finish_commit(), [150, FAR + 1017]);
        assert_eq!(parts.free_bytes(), 1000);
        assert_eq!(parts.allocate(900, DataKind::Header), Some(150), "raw data's room is not its");
        assert_eq!(parts.allocate(900, DataKind::Raw), Some(FAR + 10));
    }

    #[test]
    fn what_waits_for_a_commit_is_taken_early_in_its_part_and_within_bounds() {
        let mut parts = split();
        parts.take_early_at_most(40);
        parts.free(10, 30, Purpose::Metadata);
        assert_eq!(parts.allocate_early(10, DataKind::Raw), Some(FAR + 10), "not of another part");
        assert_eq!(parts.allocate_early(15, DataKind::Tree), Some(10));
        assert!(parts.is_new(10) && !parts.is_fresh(10));
        assert_eq!(parts.allocate_early(15, DataKind::Tree), Some(100), "more than half of that");
        assert!(parts.has_refused_early());
        parts.forget(&[100, FAR + 10]);
        assert_eq!(parts.ends(), [100, FAR + 10]);
        assert!(!parts.has_changed());
    }

    #[test]
    fn a_part_ends_where_the_next_begins() {
        let mut parts = split();
        assert_eq!(parts.allocate(FAR, DataKind::Header), None);
        assert_eq!(split().allocate(u64::MAX, DataKind::Raw), None);
    }

    #[test]
    fn ranges_are_aligned_in_the_file_that_has_them() {
        let mut parts = split();
        parts.align(Alignment { threshold: 0, bytes: 64 }, 0);
        assert_eq!(parts.allocate(5, DataKind::Header), Some(128));
        assert_eq!(parts.allocate(5, DataKind::Raw), Some(FAR + 64));
    }

    #[test]
    fn a_part_that_is_full_is_as_it_was_before() {
        for rules in [Rules::Plain, Rules::ByPurpose, Rules::Paged(512)] {
            let mut parts = Parts::one(1024, 4096);
            parts.begin(rules, &[]).unwrap();
            let first = parts.allocate(700, DataKind::Raw).unwrap();
            let (end, free) = (parts.end(), parts.free_ranges());
            assert_eq!(parts.allocate(4000, DataKind::Raw), None, "{rules:?}");
            assert_eq!((parts.end(), parts.free_ranges()), (end, free), "{rules:?}");
            assert!(parts.fit() && parts.is_fresh(first));
            // Ranges that fit are still taken.
            parts.allocate(1000, DataKind::Header).unwrap();
        }
    }
}
