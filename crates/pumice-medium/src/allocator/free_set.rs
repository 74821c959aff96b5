//! Free ranges that do not touch each other, found by place and by size.
//!
//! Of very many ranges the smallest are forgotten. Their space is not used again in this opening;
//! no harm is done.

use std::collections::{BTreeMap, BTreeSet};

/// The most ranges that are remembered, in about 64 bytes each.
const MOST: usize = 1 << 17;

/// Disjoint ranges; neighbours are merged, unless a page boundary between them keeps them apart.
#[derive(Clone, Debug, Default)]
pub(super) struct FreeSet {
    by_address: BTreeMap<u64, u64>,
    by_length: BTreeSet<(u64, u64)>,
}

impl FreeSet {
    /// Bytes of all ranges.
    pub(super) fn bytes(&self) -> u64 {
        self.by_address.values().sum()
    }

    /// The number of ranges.
    pub(super) fn len(&self) -> usize {
        self.by_address.len()
    }

    /// All ranges in order.
    pub(super) fn ranges(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.by_address.iter().map(|(&address, &length)| (address, length))
    }

    /// Whether any free range shares a byte with this one.
    pub(super) fn overlaps(&self, address: u64, end: u64) -> bool {
        let before = self.by_address.range(..end).next_back();
        before.is_some_and(|(&start, &length)| start + length > address)
    }

    /// Length and address of the smallest range of at least this length.
    pub(super) fn smallest(&self, length: u64) -> Option<(u64, u64)> {
        self.by_length.range((length, 0)..).next().copied()
    }

    /// Whether a range of at least this length ends before `end`.
    pub(super) fn fits_before(&self, length: u64, end: u64) -> bool {
        self.by_length.range((length, 0)..).any(|(found, address)| address + found != end)
    }

    /// Takes `length` bytes from the smallest range that has them.
    pub(super) fn take(&mut self, length: u64) -> Option<u64> {
        let (found, address) = self.by_length.range((length, 0)..).next().copied()?;
        self.remove(address, found);
        if found > length {
            self.add(address + length, found - length);
        }
        Some(address)
    }

    /// Takes this very range out, if all of it is there.
    pub(super) fn carve(&mut self, address: u64, length: u64) -> bool {
        let before = self.by_address.range(..=address).next_back().map(|(&at, &found)| (at, found));
        let Some((start, found)) = before else { return false };
        let (end, upto) = (start + found, address.saturating_add(length));
        if upto > end {
            return false;
        }
        self.remove(start, found);
        if start < address {
            self.add(start, address - start);
        }
        if upto < end {
            self.add(upto, end - upto);
        }
        true
    }

    /// Takes `length` bytes from an address on that is a multiple of `page` together with `phase`.
    pub(super) fn take_aligned(&mut self, length: u64, page: u64, phase: u64) -> Option<u64> {
        let fits = |&(found, address): &(u64, u64)| {
            let start = address.checked_add(phase)?.checked_next_multiple_of(page)? - phase;
            (start.checked_add(length)? <= address + found).then_some((found, address, start))
        };
        let (found, address, start) = self.by_length.range((length, 0)..).find_map(fits)?;
        self.remove(address, found);
        if start > address {
            self.add(address, start - address);
        }
        if address + found > start + length {
            self.add(start + length, address + found - start - length);
        }
        Some(start)
    }

    /// Adds a range that overlaps none, and gives the range that it became part of. Ranges of
    /// different pages stay apart if there are pages.
    pub(super) fn merge(&mut self, address: u64, length: u64, page: Option<u64>) -> (u64, u64) {
        let together = |left: u64, right: u64| page.is_none_or(|page| left / page == right / page);
        let (mut start, mut total) = (address, length);
        let before = self.by_address.range(..address).next_back().map(|(&a, &l)| (a, l));
        if let Some((previous, free)) = before
            && previous + free == address
            && together(previous, address)
        {
            self.remove(previous, free);
            (start, total) = (previous, total + free);
        }
        let end = address + length;
        if let Some(&free) = self.by_address.get(&end)
            && together(address, end)
        {
            self.remove(end, free);
            total += free;
        }
        self.add(start, total);
        (start, total)
    }

    /// Takes the range that ends at `end` out, if there is one.
    pub(super) fn take_tail(&mut self, end: u64) -> Option<(u64, u64)> {
        let (&address, &length) = self.by_address.last_key_value()?;
        if address + length != end {
            return None;
        }
        self.remove(address, length);
        Some((address, length))
    }

    pub(super) fn add(&mut self, address: u64, length: u64) {
        self.by_address.insert(address, length);
        self.by_length.insert((length, address));
        if self.by_length.len() > MOST
            && let Some(&(length, address)) = self.by_length.first()
        {
            // The lowest of the smallest: free ranges near the end let the file be cut.
            self.remove(address, length);
        }
    }

    pub(super) fn remove(&mut self, address: u64, length: u64) {
        self.by_address.remove(&address);
        self.by_length.remove(&(length, address));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_very_many_ranges_the_largest_are_remembered() {
        let mut set = FreeSet::default();
        let most = MOST as u64;
        (0..2 * most).for_each(|number| _ = set.merge(number * 16, 8 + number % 2, None));
        assert_eq!(set.len(), MOST);
        assert_eq!(set.bytes(), 9 * most, "those of nine bytes");
        assert_eq!(set.take_tail(most * 32 - 7), Some((most * 32 - 16, 9)));
        // Ranges that become free later find their place among them.
        assert_eq!(set.merge(7, 9, None), (7, 18));
        assert!(set.overlaps(7, 25) && !set.overlaps(0, 7));
    }
}
