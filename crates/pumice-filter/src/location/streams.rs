//! The body of a compact form as runs, in ascending order, without a list of them.
//!
//! Each stream is an iterator that ends early on an error, which [`Stream::finish`] returns. Runs
//! ascend without overlap, but may lie beyond the chunk; the collector of the runs checks that.

use super::numbers::{BLOCK, Numbers};
use crate::FilterError;
use pumice_space::Run;

/// Runs from a body that may be damaged.
pub(super) trait Stream: Iterator<Item = Run> {
    /// Fails if an error ended the stream.
    fn finish(self) -> Result<(), FilterError>;
}

/// Cells that are the given gaps apart; touching ones are separate runs.
pub(super) struct Cells<'a> {
    gaps: Buffered<'a>,
    next: u64,
}

impl<'a> Cells<'a> {
    pub(super) fn new(gaps: Numbers<'a>) -> Self {
        Self { gaps: Buffered::new(gaps), next: 0 }
    }
}

impl Iterator for Cells<'_> {
    type Item = Run;

    #[inline]
    fn next(&mut self) -> Option<Run> {
        let start = self.next + self.gaps.next()?;
        self.next = start + 1;
        Some(Run { start, len: 1 })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.gaps.size_hint()
    }
}

impl Stream for Cells<'_> {
    fn finish(self) -> Result<(), FilterError> {
        self.gaps.finish()
    }
}

/// Runs of the given lengths that are the given gaps apart.
pub(super) struct Runs<'a> {
    gaps: Buffered<'a>,
    lengths: Buffered<'a>,
    next: u64,
}

impl<'a> Runs<'a> {
    pub(super) fn new(gaps: Numbers<'a>, lengths: Numbers<'a>) -> Self {
        Self { gaps: Buffered::new(gaps), lengths: Buffered::new(lengths), next: 0 }
    }
}

impl Iterator for Runs<'_> {
    type Item = Run;

    #[inline]
    fn next(&mut self) -> Option<Run> {
        let start = self.next + self.gaps.next()?;
        let len = self.lengths.next()? + 1;
        self.next = start + len + 1;
        Some(Run { start, len })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.gaps.size_hint()
    }
}

impl Stream for Runs<'_> {
    fn finish(self) -> Result<(), FilterError> {
        self.gaps.finish().and(self.lengths.finish())
    }
}

/// Stretches of ones in a bitmap, lowest bit of the first byte first.
pub(super) struct Bits<'a> {
    rest: &'a [u8],
    /// The rest of the current word.
    word: u64,
    /// The cell of the word's first bit.
    base: u64,
    /// The cell of the first bit of `rest`.
    next: u64,
}

impl<'a> Bits<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, word: 0, base: 0, next: 0 }
    }

    /// Moves on to the next eight bytes; `false` if there are none.
    fn load(&mut self) -> bool {
        if self.rest.is_empty() {
            return false;
        }
        let (now, later) = self.rest.split_at(self.rest.len().min(8));
        let mut bytes = [0; 8];
        bytes[..now.len()].copy_from_slice(now);
        (self.word, self.rest) = (u64::from_le_bytes(bytes), later);
        (self.base, self.next) = (self.next, self.next + 64);
        true
    }
}

impl Iterator for Bits<'_> {
    type Item = Run;

    #[inline]
    fn next(&mut self) -> Option<Run> {
        while self.word == 0 {
            if !self.load() {
                return None;
            }
        }
        let first = self.word.trailing_zeros();
        let start = self.base + u64::from(first);
        let len = (!(self.word >> first)).trailing_zeros();
        self.word &= u64::MAX.checked_shl(first + len).unwrap_or(0);
        Some(Run { start, len: u64::from(len) })
    }
}

impl Stream for Bits<'_> {
    fn finish(self) -> Result<(), FilterError> {
        Ok(())
    }
}

/// Numbers one at a time.
struct Buffered<'a> {
    numbers: Numbers<'a>,
    block: [u64; BLOCK],
    at: usize,
    len: usize,
    error: Option<FilterError>,
}

impl<'a> Buffered<'a> {
    fn new(numbers: Numbers<'a>) -> Self {
        Self { numbers, block: [0; BLOCK], at: 0, len: 0, error: None }
    }

    #[inline]
    fn next(&mut self) -> Option<u64> {
        if self.at == self.len {
            self.load()?;
        }
        let value = self.block.get(self.at).copied();
        self.at += 1;
        value
    }

    /// The number of values left, unless one of them is damaged.
    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.len - self.at + self.numbers.left();
        (left, Some(left))
    }

    /// Reads the next block; `None` if there is none.
    fn load(&mut self) -> Option<()> {
        match self.numbers.block(&mut self.block) {
            Ok(values) => {
                (self.at, self.len) = (0, values.len());
                (self.len > 0).then_some(())
            }
            Err(error) => {
                (self.at, self.len) = (0, 0);
                self.error.get_or_insert(error);
                None
            }
        }
    }

    fn finish(self) -> Result<(), FilterError> {
        self.error.map_or(Ok(()), Err)
    }
}
