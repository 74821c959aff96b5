//! A set of cells as one bit each, with a count before every 512 cells.
//!
//! Invariants: bits beyond the chunk are zero; `ranks[i]` counts the bits before word `8 i`.
//! Only chunks of up to 2^32 - 1 cells are kept this way.

use crate::Run;

const WORDS_PER_RANK: usize = 8;

/// Cells of a word that are listed without a decision.
const AT_ONCE: usize = 8;

/// Bits with a rank index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bitmap {
    words: Box<[u64]>,
    ranks: Box<[u32]>,
}

impl Bitmap {
    /// Bytes that a bitmap of `cells` takes.
    pub(super) fn bytes(cells: u64) -> u64 {
        let words = cells.div_ceil(64);
        words * 8 + words.div_ceil(WORDS_PER_RANK as u64) * 4
    }

    pub(super) fn new(words: Vec<u64>) -> Self {
        let mut before = 0;
        let ranks = words.chunks(WORDS_PER_RANK).map(|block| {
            let rank = before;
            before += block.iter().map(|word| word.count_ones()).sum::<u32>();
            rank
        });
        let ranks = ranks.collect();
        Self { words: words.into_boxed_slice(), ranks }
    }

    pub(super) fn words(&self) -> &[u64] {
        &self.words
    }

    pub(super) fn heap_bytes(&self) -> usize {
        std::mem::size_of_val(&*self.words) + std::mem::size_of_val(&*self.ranks)
    }

    pub(super) fn contains(&self, cell: u64) -> bool {
        let word = self.words.get((cell / 64) as usize);
        word.is_some_and(|word| word >> (cell % 64) & 1 == 1)
    }

    /// The number of set bits between `from` and `end`, which lie in few words.
    #[inline(always)]
    pub(super) fn count_between(&self, from: u64, end: u64) -> usize {
        let (first, last) = ((from / 64) as usize, (end.max(1) - 1) as usize / 64);
        let Some(words) = self.words.get(first..=last) else { return 0 };
        let counts = words.iter().zip(first..);
        counts.map(|(&word, index)| cut(word, index, from, end).count_ones() as usize).sum()
    }

    /// The number of set bits before `cell`, which is at most the number of cells.
    #[inline(always)]
    pub(super) fn rank(&self, cell: u64) -> u64 {
        let word = (cell / 64) as usize;
        let block = word / WORDS_PER_RANK;
        let Some(&before) = self.ranks.get(block) else {
            return self.len();
        };
        let whole = self.words[block * WORDS_PER_RANK..word].iter();
        let in_words: u32 = whole.map(|word| word.count_ones()).sum();
        let last = self.words.get(word).copied().unwrap_or(0) & low_bits(cell % 64);
        u64::from(before + in_words + last.count_ones())
    }

    fn len(&self) -> u64 {
        let block = self.ranks.len().saturating_sub(1);
        let tail = self.words.iter().skip(block * WORDS_PER_RANK);
        let in_tail: u32 = tail.map(|word| word.count_ones()).sum();
        u64::from(self.ranks.last().copied().unwrap_or(0) + in_tail)
    }

    /// The cell that owns the value at `position`, which is in range.
    pub(super) fn select(&self, position: u64) -> Option<u64> {
        let block = self.ranks.partition_point(|&rank| u64::from(rank) <= position);
        let block = block.checked_sub(1)?;
        let mut left = position - u64::from(self.ranks[block]);
        for (index, &word) in self.words.iter().enumerate().skip(block * WORDS_PER_RANK) {
            let ones = u64::from(word.count_ones());
            if left < ones {
                let mut rest = word;
                (0..left).for_each(|_| rest &= rest - 1);
                return Some(index as u64 * 64 + u64::from(rest.trailing_zeros()));
            }
            left -= ones;
        }
        None
    }

    /// The first run that begins at or after `from`, cut at `end`.
    pub(super) fn next_run(&self, from: u64, end: u64) -> Option<Run> {
        if from >= end {
            return None;
        }
        let start = self.next_bit(from, end, 0)?;
        let stop = self.next_bit(start, end, u64::MAX).unwrap_or(end);
        Some(Run { start, len: stop - start })
    }

    /// The first bit at or after `from` that differs from those of `flip`.
    fn next_bit(&self, from: u64, end: u64, flip: u64) -> Option<u64> {
        let mut index = (from / 64) as usize;
        let mut word = (self.words.get(index)? ^ flip) & !low_bits(from % 64);
        while word == 0 {
            index += 1;
            if index as u64 * 64 >= end {
                return None;
            }
            word = self.words.get(index)? ^ flip;
        }
        let bit = index as u64 * 64 + u64::from(word.trailing_zeros());
        (bit < end).then_some(bit)
    }

    /// Replaces the contents of a list by the cells whose bits are set.
    #[inline(always)]
    pub(super) fn put_cells(&self, list: &mut Vec<u32>) {
        let count = self.len() as usize;
        // A word may write beyond its cells; the next word overwrites the excess, or it is cut off.
        if list.len() < count + AT_ONCE {
            list.resize(count + AT_ONCE, 0);
        }
        let (mut at, mut base) = (0, 0u32);
        for &word in &*self.words {
            put_word(word, base, at, list);
            at += word.count_ones() as usize;
            base = base.wrapping_add(64);
        }
        list.truncate(count);
    }

    /// Puts the `count` cells between `from` and `end` into a list, from `place` on. The list may
    /// get longer; entries behind these cells have no meaning.
    #[inline(always)]
    pub(super) fn list_between(
        &self,
        from: u64,
        end: u64,
        place: usize,
        count: usize,
        list: &mut Vec<u32>,
    ) {
        if count == 0 {
            return;
        }
        let needed = place + count + AT_ONCE;
        if list.len() < needed {
            // All that there is memory for, so that many runs need few steps.
            list.resize(needed.max(list.capacity()), 0);
        }
        let (first, last) = ((from / 64) as usize, ((end - 1) / 64) as usize);
        let mut at = place;
        for (index, &word) in (first..).zip(&self.words[first..=last]) {
            let word = cut(word, index, from, end);
            put_word(word, index as u32 * 64, at, list);
            at += word.count_ones() as usize;
        }
    }

    /// Visits the runs between `from` and `end`, cut there.
    pub(super) fn for_each_run(&self, from: u64, end: u64, visit: impl FnMut(Run)) {
        for_each_run(&self.words, from, end, visit);
    }
}

/// The bits of a word, given by its number, that lie between two cells.
#[inline(always)]
fn cut(word: u64, index: usize, from: u64, end: u64) -> u64 {
    let base = index as u64 * 64;
    let low = from.saturating_sub(base).min(64);
    let high = end.saturating_sub(base).min(64);
    // Shifts by 64 are none.
    let above = u64::MAX.checked_shl(low as u32).unwrap_or(0);
    let below = !u64::MAX.checked_shl(high as u32).unwrap_or(0);
    word & above & below
}

/// Puts the bits of a word, the first of which is cell `base`, into a list from `place` on. Up to [`AT_ONCE`] places
/// behind them are overwritten.
#[inline(always)]
fn put_word(mut word: u64, base: u32, mut place: usize, list: &mut [u32]) {
    // Of scattered cells, a word mostly has no more than that: so there is no decision for each.
    loop {
        if let Some(to) = list.get_mut(place..).and_then(|to| to.first_chunk_mut::<AT_ONCE>()) {
            for cell in to {
                *cell = base.wrapping_add(word.trailing_zeros());
                word &= word.wrapping_sub(1);
            }
        }
        if word == 0 {
            break;
        }
        place += AT_ONCE;
    }
}

/// Visits the runs of set bits between `from` and `end`, word by word.
pub(super) fn for_each_run(words: &[u64], from: u64, end: u64, mut visit: impl FnMut(Run)) {
    let end = end.min(words.len() as u64 * 64);
    if from >= end {
        return;
    }
    let (first, last) = ((from / 64) as usize, ((end - 1) / 64) as usize);
    let mut open: Option<u64> = None;
    for (index, &word) in words.iter().enumerate().take(last + 1).skip(first) {
        let base = index as u64 * 64;
        let mut word = word;
        if index == first {
            word &= !low_bits(from % 64);
        }
        if index == last && !end.is_multiple_of(64) {
            word &= low_bits(end % 64);
        }
        if let Some(start) = open {
            let ones = word.trailing_ones();
            if ones == 64 {
                continue;
            }
            visit(Run { start, len: base + u64::from(ones) - start });
            open = None;
            word &= !low_bits(u64::from(ones));
        }
        while word != 0 {
            let zeros = word.trailing_zeros();
            let ones = (word >> zeros).trailing_ones();
            let start = base + u64::from(zeros);
            if zeros + ones == 64 {
                open = Some(start);
                break;
            }
            visit(Run { start, len: u64::from(ones) });
            // Adding the run's lowest bit carries through it and clears it.
            word &= word.wrapping_add(1 << zeros);
        }
    }
    if let Some(start) = open {
        visit(Run { start, len: end - start });
    }
}

/// The number of runs of set bits.
pub(super) fn count_runs(words: &[u64]) -> u64 {
    let mut previous = 0;
    let mut runs = 0u64;
    for &word in words {
        // A run begins at each bit whose lower neighbour is not set.
        runs += u64::from((word & !(word << 1 | previous)).count_ones());
        previous = word >> 63;
    }
    runs
}

/// Sets the bits of `run`, which lies inside.
pub(super) fn set_run(words: &mut [u64], run: Run) {
    if run.len == 0 {
        return;
    }
    let last_cell = run.start + (run.len - 1);
    let (first, last) = ((run.start / 64) as usize, (last_cell / 64) as usize);
    let from = !low_bits(run.start % 64);
    let to = low_bits(last_cell % 64) | 1 << (last_cell % 64);
    if first == last {
        words[first] |= from & to;
        return;
    }
    words[first] |= from;
    words[first + 1..last].fill(u64::MAX);
    words[last] |= to;
}

/// A word with the lowest `count` bits set; `count` is below 64.
fn low_bits(count: u64) -> u64 {
    (1 << count) - 1
}
