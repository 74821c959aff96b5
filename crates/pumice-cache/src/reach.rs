//! What a request touches of a chunk that the cache never holds: who has to wait for whom there.

use std::ops::Range;

use smallvec::SmallVec;

/// Ranges that ascend and do not touch.
type Ranges = SmallVec<[Range<u64>; 1]>;

/// So many ranges are told apart; of more, neighbours are taken together.
const MOST: usize = 1024;

/// Which places of a chunk a request touches, whatever a layout counts: cells, or bytes.
///
/// Requests of [data that are not in chunks](crate::Unchunked) that meet in no place need not wait for
/// each other. Where there are very many ranges, a reach is
/// larger than what it was made of, never smaller.
///
/// ```
/// use pumice_cache::Reach;
///
/// let rows = Reach::of([0..10, 20..30]);
/// assert!(rows.meets(&Reach::of([29..31])));
/// assert!(!rows.meets(&Reach::of([10..20])));
/// assert!(Reach::of([7..9, 0..8]).meets(&Reach::of([8..9])), "in any order");
/// assert!(!Reach::of([]).meets(&rows), "nothing meets nothing");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    ranges: Ranges,
    /// The first and the last place along each axis, if there are too many ranges to tell them apart.
    bounds: SmallVec<[(u64, u64); 4]>,
    coarse: bool,
    /// Of a write: what it puts back as it was, together with what it changes.
    rewritten: Option<Ranges>,
}

impl Reach {
    /// These places, in any order.
    pub fn of(ranges: impl IntoIterator<Item = Range<u64>>) -> Self {
        let mut found = Ranges::new();
        let mut ascending = true;
        for range in ranges.into_iter().filter(|range| range.start < range.end) {
            match found.last_mut() {
                Some(last) if ascending && last.end == range.start => last.end = range.end,
                Some(last) => {
                    ascending &= last.end < range.start;
                    found.push(range);
                }
                None => found.push(range),
            }
        }
        if !ascending {
            found.sort_unstable_by_key(|range| range.start);
            found = joined(&found, 0);
        }
        let coarse = found.len() > MOST;
        while found.len() > MOST {
            found = found.chunks(2).map(|pair| pair[0].start..pair[pair.len() - 1].end).collect();
        }
        Reach { ranges: found, coarse, ..Self::default() }
    }

    /// Whether ranges were taken together, so that [bounds](Self::within) may tell more.
    ///
    /// ```
    /// use pumice_cache::Reach;
    /// assert!(!Reach::of([0..10, 20..30]).is_coarse());
    /// assert!(Reach::of((0..100_000).map(|row| 100 * row..100 * row + 5)).is_coarse());
    /// ```
    pub fn is_coarse(&self) -> bool {
        self.coarse
    }

    /// Adds the box that the places lie in: a first and a last place along each axis. Two boxes that are apart
    /// along one axis do not meet.
    ///
    /// ```
    /// use pumice_cache::Reach;
    /// let column = |at: u64| {
    ///     let cells = (0..100_000).map(|row| 100 * row + at..100 * row + at + 5);
    ///     Reach::of(cells).within([(0, 99_999), (at, at + 4)])
    /// };
    /// assert!(column(3).meets(&column(7)) && !column(3).meets(&column(8)));
    /// ```
    pub fn within(mut self, bounds: impl IntoIterator<Item = (u64, u64)>) -> Self {
        self.bounds = bounds.into_iter().collect();
        self
    }

    /// Adds the gaps that a write reads and writes back: those of at most `gap` between its places. No other write
    /// may change them meanwhile.
    ///
    /// ```
    /// use pumice_cache::Reach;
    /// let (even, odd) = (Reach::of([0..1, 2..3]), Reach::of([1..2, 3..4]));
    /// assert!(!even.meets(&odd));
    /// assert!(even.clone().rewriting(1).collides(&odd), "two writes");
    /// assert!(!even.rewriting(1).meets(&odd), "a write and a read");
    /// ```
    pub fn rewriting(mut self, gap: u64) -> Self {
        self.rewritten = Some(joined(&self.ranges, gap));
        self
    }

    /// Whether a request meets another in some place.
    pub fn meets(&self, other: &Reach) -> bool {
        let apart = |(one, other): (&(u64, u64), &(u64, u64))| one.1 < other.0 || other.1 < one.0;
        !self.bounds.iter().zip(&other.bounds).any(apart) && overlap(&self.ranges, &other.ranges)
    }

    /// Whether a write would change what another writes, or puts back as it was.
    pub fn collides(&self, other: &Reach) -> bool {
        if self.rewritten.is_none() && other.rewritten.is_none() {
            return self.meets(other);
        }
        overlap(self.written(), other.written())
    }

    /// Takes in what another request touches.
    pub(crate) fn join(self, other: Reach) -> Self {
        let all = |one: &Ranges, other: &Ranges| Self::of(one.iter().chain(other).cloned());
        let rewrites = self.rewritten.is_some() || other.rewritten.is_some();
        let rewritten = rewrites.then(|| {
            let (one, other) = (self.written(), other.written());
            Self::of(one.iter().chain(other).cloned()).ranges
        });
        let both = self.bounds.iter().zip(&other.bounds);
        let bounds = both.map(|(one, other)| (one.0.min(other.0), one.1.max(other.1))).collect();
        let coarse = self.coarse || other.coarse;
        Reach { bounds, coarse, rewritten, ..all(&self.ranges, &other.ranges) }
    }

    fn written(&self) -> &[Range<u64>] {
        self.rewritten.as_ref().unwrap_or(&self.ranges)
    }
}

/// Takes ranges together that are no more than `gap` apart. They ascend by their beginnings.
fn joined(ranges: &[Range<u64>], gap: u64) -> Ranges {
    let mut found = Ranges::new();
    for range in ranges {
        match found.last_mut() {
            Some(last) if range.start <= last.end.saturating_add(gap) => {
                last.end = last.end.max(range.end);
            }
            _ => found.push(range.clone()),
        }
    }
    found
}

/// Whether ranges of one list meet some of the other.
fn overlap(mut one: &[Range<u64>], mut other: &[Range<u64>]) -> bool {
    while let ([a, behind_a @ ..], [b, behind_b @ ..]) = (one, other) {
        match () {
            () if a.end <= b.start => one = behind_a,
            () if b.end <= a.start => other = behind_b,
            () => return true,
        }
    }
    false
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use std::iter::once;

    #[test]
    fn many_ranges_become_few_that_hold_them_all() {
        let places = |step: u64| (0..5000).map(move |at| step * at..step * at + 1);
        let reach = Reach::of(places(10));
        assert!(reach.is_coarse() && reach.ranges.len() <= MOST);
        assert!(places(10).all(|place| reach.meets(&Reach::of([place]))));
        let backwards: Vec<_> = places(10).collect();
        assert_eq!(Reach::of(backwards.into_iter().rev()), reach);
    }

    #[test]
    fn requests_that_are_joined_reach_as_far_as_each() {
        let (one, other) = (Reach::of([0..4, 10..12]), Reach::of(once(3..6)).rewriting(9));
        let both = one.clone().join(other.clone());
        assert_eq!(both.ranges.as_slice(), [0..6, 10..12]);
        assert_eq!(both.rewritten.as_deref(), Some([0..6, 10..12].as_slice()));
        let boxes = one.within([(0, 3)]).join(Reach::of(once(90..91)).within([(7, 8)]));
        assert_eq!(boxes.bounds.as_slice(), [(0, 8)]);
        assert!(other.join(boxes).bounds.is_empty(), "one of them has no box");
    }
}
