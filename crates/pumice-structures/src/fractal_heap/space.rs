//! Free bytes of a heap's direct blocks, and places where blocks were.
//!
//! Ranges of different blocks never touch, because every block begins with a prefix. So ranges are
//! merged without regard to blocks, and a block without objects shows as one range.

use super::blocks::Stored;
use std::collections::{BTreeMap, BTreeSet};

/// The free space of a heap.
#[derive(Default)]
pub(super) struct Space {
    by_offset: BTreeMap<u64, u64>,
    by_length: BTreeSet<(u64, u64)>,
    /// Direct blocks by offset: the length of the prefix, the block's size, and whether it is in a
    /// table.
    blocks: BTreeMap<u64, (u64, u64, bool)>,
    /// Sizes and offsets of missing blocks before the offset of the next new block.
    holes: BTreeSet<(u64, u64)>,
}

impl Space {
    /// Adds a block; some of the sorted `used` ranges lie in it.
    pub(super) fn add_block(
        &mut self,
        block: Stored,
        in_table: bool,
        overhead: u64,
        used: &[(u64, u64)],
    ) {
        let end = block.start.saturating_add(block.size);
        self.blocks.insert(block.start, (overhead, block.size, in_table));
        let mut at = block.start.saturating_add(overhead);
        let first = used.partition_point(|&(offset, _)| offset < at);
        for &(offset, length) in used[first..].iter().take_while(|&&(offset, _)| offset < end) {
            if offset > at {
                self.add(at, offset - at);
            }
            at = at.max(offset.saturating_add(length));
        }
        if end > at {
            self.add(at, end - at);
        }
    }

    /// Adds the offset of a missing block.
    pub(super) fn add_hole(&mut self, block: Stored) {
        self.holes.insert((block.size, block.start));
    }

    /// The offset of a missing block of at least `size` bytes.
    pub(super) fn take_hole(&mut self, size: u64) -> Option<(u64, u64)> {
        let hole = self.holes.range((size, 0)..).next().copied()?;
        self.holes.remove(&hole);
        Some(hole)
    }

    /// Takes the smallest range that fits.
    pub(super) fn take(&mut self, length: u64) -> Option<u64> {
        let (found, offset) = self.by_length.range((length, 0)..).next().copied()?;
        self.drop_range(offset, found);
        if found > length {
            self.add(offset + length, found - length);
        }
        Some(offset)
    }

    /// Gives a range back. `None` if it was not in use; otherwise `Some` of the block that has
    /// become empty, if any.
    pub(super) fn give(&mut self, offset: u64, length: u64) -> Option<Option<u64>> {
        let end = offset.checked_add(length)?;
        let (&start, &(overhead, size, in_table)) = self.blocks.range(..=offset).next_back()?;
        if offset < start + overhead || end > start + size || length == 0 {
            return None;
        }
        let (mut first, mut last) = (offset, end);
        if let Some((&before, &free)) = self.by_offset.range(..end).next_back() {
            if before + free > offset {
                return None;
            }
            if before + free == offset {
                self.drop_range(before, free);
                first = before;
            }
        }
        if let Some(&free) = self.by_offset.get(&end) {
            self.drop_range(end, free);
            last = end + free;
        }
        if in_table && first == start + overhead && last == start + size {
            self.blocks.remove(&start);
            self.holes.insert((size, start));
            return Some(Some(start));
        }
        self.add(first, last - first);
        Some(None)
    }

    /// About how many bytes of memory it takes.
    pub(super) fn footprint(&self) -> usize {
        let (ranges, blocks) = (self.by_offset.len(), self.blocks.len() + self.holes.len());
        64 * ranges + 48 * blocks
    }

    /// Free ranges, by offset and length.
    pub(super) fn ranges(&self) -> impl Iterator<Item = (u64, u64)> {
        self.by_offset.iter().map(|(&offset, &length)| (offset, length))
    }

    /// Notes that the one block that there was now stands in a table.
    pub(super) fn move_into_table(&mut self) {
        for block in self.blocks.values_mut() {
            block.2 = true;
        }
    }

    fn add(&mut self, offset: u64, length: u64) {
        self.by_offset.insert(offset, length);
        self.by_length.insert((length, offset));
    }

    fn drop_range(&mut self, offset: u64, length: u64) {
        self.by_offset.remove(&offset);
        self.by_length.remove(&(length, offset));
    }
}
