//! One dimension of a product selection: blocks of equal length at equal distance, cut to a window.
//!
//! A hyperslab dimension (start, stride, count, block) that is cut by a chunk may begin and end in
//! the middle of a block. [`Axis`] keeps such a cut pattern in five numbers, so that a hyperslab
//! inside a box is again a product of axes, found by arithmetic alone.
//!
//! Invariants of an axis that is not empty: `first` and `last` are selected; cell `x` between them
//! is selected exactly if `(x - first + phase) % stride < block`; `phase < block <= stride`; a
//! single stretch of cells has `phase` 0 and `stride == block ==` its length. `last` is
//! [`UNLIMITED`] for a pattern without end, which must be cut before it is counted.

use super::HyperslabAxis;
use crate::{SpaceError, UNLIMITED};

/// A periodic pattern of cells along one dimension, cut to a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Axis {
    pub(crate) first: u64,
    pub(crate) last: u64,
    phase: u64,
    stride: u64,
    block: u64,
}

impl Axis {
    pub(crate) const EMPTY: Self = Self { first: 1, last: 0, phase: 0, stride: 1, block: 1 };

    /// The cells from `first` to `last`, both included; empty if they are the wrong way round.
    pub(crate) fn span(first: u64, last: u64) -> Self {
        if first > last {
            return Self::EMPTY;
        }
        if last == UNLIMITED {
            return Self { first, last, phase: 0, stride: UNLIMITED, block: UNLIMITED };
        }
        let len = last - first + 1;
        Self { first, last, phase: 0, stride: len, block: len }
    }

    /// The axis with HDF5's parameters.
    pub(crate) fn new(parameters: HyperslabAxis, axis: usize) -> Result<Self, SpaceError> {
        let HyperslabAxis { start, stride, count, block } = parameters;
        let invalid = |reason| Err(SpaceError::InvalidHyperslab { axis, reason });
        if count == 0 || block == 0 {
            return Ok(Self::EMPTY);
        }
        if start == UNLIMITED {
            return invalid("start beyond 64 bits");
        }
        if block == UNLIMITED {
            if count > 1 {
                return invalid("several unlimited blocks");
            }
            return Ok(Self::span(start, UNLIMITED));
        }
        if count > 1 && stride < block {
            return invalid("blocks overlap: stride below block");
        }
        if count == UNLIMITED {
            // Blocks that touch stay blocks: numbered sources of virtual datasets have one each.
            return Ok(Self { first: start, last: UNLIMITED, phase: 0, stride, block });
        }
        let reach = (count - 1).checked_mul(if count > 1 { stride } else { 0 });
        let last = reach.and_then(|reach| reach.checked_add(block - 1)?.checked_add(start));
        match last {
            None | Some(UNLIMITED) => invalid("end beyond 64 bits"),
            Some(last) if count == 1 || stride == block => Ok(Self::span(start, last)),
            Some(last) => Ok(Self { first: start, last, phase: 0, stride, block }),
        }
    }

    /// HDF5's parameters, unless a block is cut.
    pub(crate) fn parameters(&self) -> Option<HyperslabAxis> {
        if self.is_empty() {
            return Some(HyperslabAxis { start: 0, stride: 1, count: 0, block: 1 });
        }
        let Self { first: start, last, phase, stride, block } = *self;
        if last == UNLIMITED {
            let count = if block == UNLIMITED { 1 } else { UNLIMITED };
            return (phase == 0).then_some(HyperslabAxis { start, stride, count, block });
        }
        let whole = phase == 0 && (last - start) % stride == block - 1;
        whole.then_some(HyperslabAxis { start, stride, count: (last - start) / stride + 1, block })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first > self.last
    }

    pub(crate) fn is_unlimited(&self) -> bool {
        self.last == UNLIMITED
    }

    /// Whether it is one stretch of cells without gaps.
    pub(crate) fn is_contiguous(&self) -> bool {
        self.stride == self.block
    }

    /// The distance between neighbours, if it is the same everywhere.
    pub(crate) fn uniform_step(&self) -> Option<u64> {
        match self.block {
            _ if self.is_contiguous() => Some(1),
            1 => Some(self.stride),
            _ => None,
        }
    }

    /// Number of selected cells, or the largest number there is.
    pub(crate) fn count(&self) -> u64 {
        if self.is_empty() { 0 } else { self.index_of(self.last).saturating_add(1) }
    }

    /// Number of stretches without gaps, or the largest number there is.
    pub(crate) fn span_count(&self) -> u64 {
        if self.is_empty() { 0 } else { (self.offset(self.last) / self.stride).saturating_add(1) }
    }

    pub(crate) fn contains(&self, x: u64) -> bool {
        (self.first..=self.last).contains(&x) && self.offset(x) % self.stride < self.block
    }

    /// The number of selected cells before the selected cell `x`.
    pub(crate) fn index_of(&self, x: u64) -> u64 {
        if self.is_contiguous() {
            // Without a division: nearly all axes are so.
            return x - self.first;
        }
        let offset = self.offset(x);
        offset / self.stride * self.block + (offset % self.stride).min(self.block) - self.phase
    }

    /// The part between `low` and `high`, both included.
    pub(crate) fn cut(&self, low: u64, high: u64) -> Self {
        let (low, high) = (low.max(self.first), high.min(self.last));
        if low > high {
            return Self::EMPTY;
        }
        if self.is_contiguous() {
            return Self::span(low, high);
        }
        let past = self.offset(low) % self.stride;
        let (first, phase) = match past < self.block {
            true => (Some(low), past),
            false => (low.checked_add(self.stride - past), 0),
        };
        let past = self.offset(high) % self.stride;
        // A pattern without end keeps its open end; else `high` moves back to a selected cell.
        let open = high == UNLIMITED;
        let last = if past < self.block || open { high } else { high - (past - self.block + 1) };
        let Some(first) = first.filter(|&first| first <= last) else { return Self::EMPTY };
        Self { first, last, phase, ..*self }.tightened()
    }

    /// Forgets a block length that no longer fits between the ends, so that numbers stay small.
    fn tightened(self) -> Self {
        if self.is_unlimited() {
            return self;
        }
        match self.span_count() {
            1 => Self::span(self.first, self.last),
            2 => {
                let head = self.block - self.phase;
                let second = self.first + (self.stride - self.phase);
                let block = head.max(self.last - second + 1);
                let phase = block - head;
                Self { phase, block, stride: second - self.first + phase, ..self }
            }
            _ => self,
        }
    }

    /// The cells in both patterns, if arithmetic can give them as such a pattern.
    pub(crate) fn intersect(&self, other: &Self) -> Option<Self> {
        if self.is_empty() || other.is_empty() {
            return Some(Self::EMPTY);
        }
        if other.is_contiguous() {
            return Some(self.cut(other.first, other.last));
        }
        if self.is_contiguous() {
            return Some(other.cut(self.first, self.last));
        }
        if self.block == 1 && other.block == 1 {
            return Some(self.meet_single(other));
        }
        let equal = self.stride == other.stride && self.block == other.block;
        let (low, high) = if self.first <= other.first { (self, other) } else { (other, self) };
        let aligned = equal && low.offset(high.first) % low.stride == high.phase;
        aligned.then(|| low.cut(high.first, high.last))
    }

    /// The common cells of two patterns of single cells: the Chinese remainder theorem.
    fn meet_single(&self, other: &Self) -> Self {
        let (m, n) = (u128::from(self.stride), u128::from(other.stride));
        let low = self.first.max(other.first);
        let high = self.last.min(other.last);
        let a = u128::from(self.first) % m;
        let b = u128::from(other.first) % n;
        let divisor = greatest_common_divisor(m, n);
        if a % divisor != b % divisor {
            return Self::EMPTY;
        }
        // x = a + m k with m k = b - a (mod n); all factors stay below 2^64, products below 2^128.
        let n_reduced = n / divisor;
        let distance = (b + n - a % n) % n / divisor;
        let k = distance * inverse(m / divisor % n_reduced, n_reduced) % n_reduced;
        let period = m * n_reduced;
        let root = a + m * k;
        let first = if u128::from(low) > root {
            root + (u128::from(low) - root).div_ceil(period) * period
        } else {
            root
        };
        if first > u128::from(high) {
            return Self::EMPTY;
        }
        let first = first as u64;
        let Ok(stride) = u64::try_from(period) else { return Self::span(first, first) };
        Self { first, last: UNLIMITED, phase: 0, stride, block: 1 }.cut(first, high)
    }

    /// Moved by `offset`, if it stays inside 64 bits.
    pub(crate) fn translate(&self, offset: i64) -> Option<Self> {
        if self.is_empty() {
            return Some(*self);
        }
        let first = self.first.checked_add_signed(offset)?;
        let last = if self.is_unlimited() {
            UNLIMITED
        } else {
            self.last.checked_add_signed(offset).filter(|&last| last != UNLIMITED)?
        };
        Some(Self { first, last, ..*self })
    }

    /// Moved towards zero by `origin`, which is at most `first`; the pattern is not unlimited.
    pub(crate) fn relative_to(&self, origin: u64) -> Self {
        if self.is_empty() {
            return *self;
        }
        Self { first: self.first - origin, last: self.last - origin, ..*self }
    }

    /// Every cell replaced by `inner` cells: this axis and a full faster one become one.
    /// The result must fit 64 bits.
    pub(crate) fn scaled(&self, inner: u64) -> Self {
        if self.is_empty() {
            return *self;
        }
        let Self { first, last, phase, stride, block } = *self;
        Self {
            first: first * inner,
            last: last * inner + (inner - 1),
            phase: phase * inner,
            stride: stride.saturating_mul(inner),
            block: block * inner,
        }
    }

    /// The stretches without gaps, ascending, both ends included.
    pub(crate) fn spans(&self) -> AxisSpans {
        AxisSpans { axis: *self, low: (!self.is_empty()).then_some(self.first) }
    }

    fn offset(&self, x: u64) -> u64 {
        (x - self.first).saturating_add(self.phase)
    }
}

/// Made by [`Axis::spans`].
#[derive(Clone, Debug)]
pub(crate) struct AxisSpans {
    axis: Axis,
    low: Option<u64>,
}

impl Iterator for AxisSpans {
    type Item = (u64, u64);

    fn next(&mut self) -> Option<(u64, u64)> {
        let low = self.low?;
        let axis = &self.axis;
        let phase = if low == axis.first { axis.phase } else { 0 };
        let high = low.saturating_add(axis.block - phase - 1).min(axis.last);
        let next = low.checked_add(axis.stride - phase);
        self.low = next.filter(|&next| next <= axis.last);
        Some((low, high))
    }
}

fn greatest_common_divisor(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The inverse of `a` modulo `n`, which have no common divisor (extended Euclid).
fn inverse(a: u128, n: u128) -> u128 {
    let (mut old, mut new) = ((a as i128, 1i128), (n as i128, 0i128));
    while new.0 != 0 {
        let quotient = old.0 / new.0;
        (old, new) = (new, (old.0 - quotient * new.0, old.1 - quotient * new.1));
    }
    old.1.rem_euclid(n as i128) as u128
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(start: u64, stride: u64, count: u64, block: u64) -> Axis {
        Axis::new(HyperslabAxis { start, stride, count, block }, 0).unwrap()
    }

    fn cells(axis: &Axis) -> Vec<u64> {
        axis.spans().flat_map(|(low, high)| low..=high).collect()
    }

    fn patterns() -> impl Iterator<Item = Axis> {
        (0..4).flat_map(|start| {
            (1..6).flat_map(move |stride| {
                (0..5).flat_map(move |count| {
                    (0..=stride).map(move |block| axis(start, stride, count, block))
                })
            })
        })
    }

    #[test]
    fn cutting_keeps_exactly_the_cells_inside() {
        for pattern in patterns() {
            for (low, high) in (0..20).flat_map(|low| (low..20).map(move |high| (low, high))) {
                let cut = pattern.cut(low, high);
                let expected: Vec<u64> =
                    cells(&pattern).into_iter().filter(|x| (low..=high).contains(x)).collect();
                assert_eq!(cells(&cut), expected, "{pattern:?} {low}..={high}");
                assert_eq!(cut.count(), expected.len() as u64);
                assert_eq!(cut.span_count(), cut.spans().count() as u64);
                let again = cut.cut(low + 1, high.saturating_sub(1));
                let inner: Vec<u64> =
                    expected.iter().copied().filter(|x| (low + 1..high).contains(x)).collect();
                assert_eq!(cells(&again), inner);
                for (index, x) in expected.into_iter().enumerate() {
                    assert!(cut.contains(x));
                    assert_eq!(cut.index_of(x), index as u64);
                }
            }
        }
    }

    #[test]
    fn intersections_by_arithmetic_are_right() {
        let all: Vec<Axis> = patterns().collect();
        for a in all.iter().step_by(3) {
            for b in all.iter().step_by(2) {
                let Some(both) = a.intersect(b) else { continue };
                let in_b = cells(b);
                let expected: Vec<u64> =
                    cells(a).into_iter().filter(|x| in_b.contains(x)).collect();
                assert_eq!(cells(&both), expected, "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn parameters_round_trip() {
        for pattern in patterns().filter(|pattern| !pattern.is_empty()) {
            let parameters = pattern.parameters().unwrap();
            assert_eq!(Axis::new(parameters, 0).unwrap(), pattern);
        }
    }

    #[test]
    fn extreme_numbers_do_not_overflow() {
        let huge = axis(u64::MAX - 3, 1, 1, 2);
        assert_eq!(huge.last, u64::MAX - 2);
        assert_eq!(huge.cut(0, u64::MAX), huge);
        let sparse = axis(1, u64::MAX / 2, 2, 1);
        assert_eq!(cells(&sparse.cut(2, u64::MAX)), [u64::MAX / 2 + 1]);
        let parameters = HyperslabAxis { start: 2, stride: 3, count: u64::MAX, block: 2 };
        let endless = Axis::new(parameters, 0).unwrap();
        assert_eq!(cells(&endless.cut(3, 9)), [3, 5, 6, 8, 9]);
        for bad in [(u64::MAX, 1, 1, 1), (0, 2, u64::MAX - 1, 2), (5, 1, 1, u64::MAX - 4)] {
            let (start, stride, count, block) = bad;
            assert!(Axis::new(HyperslabAxis { start, stride, count, block }, 0).is_err());
        }
        let a = axis(0, u64::MAX - 1, 1, 1);
        assert_eq!(a.intersect(&axis(0, 7, 9, 1)).unwrap().count(), 1);
    }
}
