//! The miss-ratio curve: how many accesses would miss, at any size of the cache.
//!
//! For each access the bytes of all chunks used since the last use of this one are counted, its
//! own included (the *stack distance*, Mattson and others, 1970): a least recently used cache of
//! that size or more would have had it. A tree of sums over the times of last use makes that
//! logarithmic. Distances are counted in classes, eight to a doubling, and older ones count half
//! after each review.
//!
//! Up to [`MOST`] chunks are followed exactly; of more, a part that is chosen by identity stands for
//! all (Waldspurger and others, 2015), so that memory and time stay small.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::shares::Shares;

/// Chunks followed at most.
const MOST: usize = 1024;
/// How many times as many times as chunks the tree has place for, and for how many at least: the
/// smaller it is, the more of it is in the processor's cache.
const TIMES: usize = 4;
const LEAST: usize = 256;
/// Classes to a doubling, as a power of two.
const FINE: u32 = 3;
/// Distances below this are one class.
const SHORTEST: u32 = 12;
/// Distances from this on are one class.
const LONGEST: u32 = 46;
const CLASSES: usize = ((LONGEST - SHORTEST) << FINE) as usize + 1;

/// A point of the miss-ratio curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoint {
    /// A size of the cache.
    pub bytes: u64,
    /// The part of accesses that would miss at this size, from 0 to 1.
    pub miss_ratio: f64,
}

#[derive(Clone, Copy, Debug)]
struct Followed {
    time: u32,
    weight: u64,
}

/// Follows accesses.
#[derive(Debug)]
pub(crate) struct Curve {
    most: usize,
    chunks: HashMap<u64, Followed, FixedState>,
    /// Weights by time of last use, as a tree of sums (Fenwick, 1994).
    sums: Vec<u64>,
    total: u64,
    now: u32,
    /// The last one used: to use it again is to use what is nearest.
    last: u64,
    /// Identities whose upper half is not above this are followed.
    threshold: u32,
    /// For how many chunks, and accesses, each one that is followed stands.
    scale: f64,
    /// How many distances there were of each class.
    distances: Vec<f64>,
    /// Accesses to chunks not seen before.
    unseen: f64,
    accesses: u64,
    misses: u64,
    /// Accesses and misses that count, older ones less.
    counted: (f64, f64),
    shares: Shares,
}

impl Curve {
    pub(crate) fn new() -> Self {
        Curve::following(MOST)
    }

    /// A curve that follows so many chunks.
    fn following(most: usize) -> Self {
        Curve {
            most,
            chunks: HashMap::default(),
            sums: Vec::new(),
            total: 0,
            now: 0,
            last: 0,
            threshold: u32::MAX,
            scale: 1.0,
            distances: Vec::new(),
            unseen: 0.0,
            accesses: 0,
            misses: 0,
            counted: (0.0, 0.0),
            shares: Shares::default(),
        }
    }

    /// Notes an access to a dataset's chunk of this weight, and whether it was a hit.
    pub(crate) fn access(&mut self, dataset: u64, identity: u64, weight: u64, hit: bool) {
        self.accesses += 1;
        self.shares.note_access(dataset);
        self.misses += u64::from(!hit);
        if (spread(identity) >> 32) as u32 > self.threshold {
            return;
        }
        if self.sums.is_empty() {
            self.sums = vec![0; LEAST + 1];
            self.distances = vec![0.0; CLASSES];
        }
        if identity == self.last && hit {
            self.distances[0] += self.scale;
            self.shares.note_distance(dataset, 0, self.scale);
            return;
        }
        self.last = identity;
        if self.now as usize + 1 == self.sums.len() {
            self.renumber();
        }
        let time = self.now;
        self.now += 1;
        match self.chunks.insert(identity, Followed { time, weight }) {
            None => {
                self.unseen += self.scale;
                self.shares.note_unseen(dataset, self.scale);
            }
            Some(before) => {
                let newer = self.total - self.sum(before.time);
                self.note_distance(dataset, newer + weight);
                self.add(before.time, before.weight.wrapping_neg());
                self.total -= before.weight;
            }
        }
        self.add(time, weight);
        self.total += weight;
        if self.chunks.len() > self.most {
            self.follow_fewer();
        }
    }

    fn note_distance(&mut self, dataset: u64, distance: u64) {
        let class = class_of((distance as f64 * self.scale) as u64);
        self.distances[class] += self.scale;
        self.shares.note_distance(dataset, class.div_ceil(1 << FINE), self.scale);
    }

    /// The weights at `time` and before.
    fn sum(&self, time: u32) -> u64 {
        let (mut at, mut sum) = (time as usize + 1, 0_u64);
        while at > 0 {
            sum = sum.wrapping_add(self.sums[at]);
            at &= at - 1;
        }
        sum
    }

    fn add(&mut self, time: u32, weight: u64) {
        let mut at = time as usize + 1;
        while at < self.sums.len() {
            self.sums[at] = self.sums[at].wrapping_add(weight);
            at += at & at.wrapping_neg();
        }
    }

    /// Gives the chunks the first times, in their order.
    fn renumber(&mut self) {
        let mut order: Vec<_> = self.chunks.iter().map(|(key, one)| (one.time, *key)).collect();
        order.sort_unstable();
        self.sums.clear();
        self.sums.resize((TIMES * order.len()).max(LEAST) + 1, 0);
        self.total = 0;
        self.now = 0;
        for (_, key) in order {
            let Some(followed) = self.chunks.get_mut(&key) else { continue };
            followed.time = self.now;
            let weight = followed.weight;
            self.add(self.now, weight);
            self.total += weight;
            self.now += 1;
        }
    }

    /// Follows half as many identities from now on.
    fn follow_fewer(&mut self) {
        self.threshold /= 2;
        self.scale *= 2.0;
        let threshold = self.threshold;
        self.chunks.retain(|key, _| (spread(*key) >> 32) as u32 <= threshold);
        self.renumber();
    }

    /// How many accesses there were since the last review.
    pub(crate) fn accesses(&self) -> u64 {
        self.accesses
    }

    /// The part of accesses that did miss.
    pub(crate) fn actual_misses(&self) -> f64 {
        let (accesses, misses) = self.counted;
        ratio(misses + self.misses as f64, accesses + self.accesses as f64)
    }

    /// Lets older accesses count half.
    pub(crate) fn age(&mut self) {
        self.distances.iter_mut().for_each(|count| *count /= 2.0);
        self.unseen /= 2.0;
        self.shares.age();
        let (accesses, misses) = self.counted;
        self.counted =
            ((accesses + self.accesses as f64) / 2.0, (misses + self.misses as f64) / 2.0);
        (self.accesses, self.misses) = (0, 0);
    }

    /// How many accesses there were, and how many of them the followed ones do not stand for, or
    /// stand for twice: chunks that are used much, and therefore again soon, are to blame.
    fn all(&self) -> (f64, f64) {
        let all = self.counted.0 + self.accesses as f64;
        (all, all - self.unseen - self.distances.iter().sum::<f64>())
    }

    /// The part of accesses that would miss in a cache of this size.
    pub(crate) fn miss_ratio(&self, bytes: u64) -> f64 {
        let (all, amiss) = self.all();
        let fit = class_of(bytes.saturating_add(1));
        let hits: f64 = self.distances.iter().take(fit).sum();
        if all == 0.0 { 1.0 } else { ratio(all - hits - amiss, all) }
    }

    /// A dataset's part in the curve.
    pub(crate) fn points_of(&self, dataset: u64) -> Vec<CurvePoint> {
        self.shares.points(dataset, |octave| upper_end(octave << FINE))
    }

    /// Forgets a dataset's part in the curve.
    pub(crate) fn forget(&mut self, dataset: u64) {
        self.shares.forget(dataset);
    }

    /// The curve, at the sizes where it falls.
    pub(crate) fn points(&self) -> Vec<CurvePoint> {
        let (all, amiss) = self.all();
        let mut left = all - amiss;
        let mut points = Vec::new();
        for (class, &count) in self.distances.iter().enumerate() {
            if count > 0.0 {
                left -= count;
                let bytes = upper_end(class);
                points.push(CurvePoint { bytes, miss_ratio: ratio(left, all) });
            }
        }
        points
    }
}

pub(super) fn ratio(part: f64, all: f64) -> f64 {
    if all > 0.0 { (part / all).clamp(0.0, 1.0) } else { 0.0 }
}

/// Spreads identities over all bits, so that a part of them can stand for all.
fn spread(identity: u64) -> u64 {
    (identity ^ identity >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// The class of distances up to and including `bytes`.
fn class_of(bytes: u64) -> usize {
    let bytes = bytes.saturating_sub(1);
    let top = 63 - bytes.max(1).leading_zeros();
    if top < SHORTEST {
        return 0;
    }
    if top >= LONGEST {
        return CLASSES - 1;
    }
    let fine = bytes >> (top - FINE) & ((1 << FINE) - 1);
    1 + (((top - SHORTEST) << FINE) as usize + fine as usize).min(CLASSES - 2)
}

/// The largest distance of a class.
fn upper_end(class: usize) -> u64 {
    let Some(above) = class.checked_sub(1) else { return 1 << SHORTEST };
    let (octave, fine) = (above as u32 >> FINE, above as u64 & ((1 << FINE) - 1));
    ((1 << FINE) + fine + 1) << (octave + SHORTEST - FINE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hits of a least recently used cache, by keeping a list.
    fn lru_hits(trace: &[(u64, u64)], capacity: u64) -> u64 {
        hits_of(trace, capacity, |_| true)
    }

    /// The same, counted for some chunks only.
    fn hits_of(trace: &[(u64, u64)], capacity: u64, counts: impl Fn(u64) -> bool) -> u64 {
        let mut list: Vec<(u64, u64)> = Vec::new();
        let mut hits = 0;
        for &(chunk, weight) in trace {
            let place = list.iter().position(|&(other, _)| other == chunk);
            let newer: u64 = place.map_or(u64::MAX, |at| list[at + 1..].iter().map(|c| c.1).sum());
            hits += u64::from(counts(chunk) && newer.saturating_add(weight) <= capacity);
            if let Some(at) = place {
                list.remove(at);
            }
            list.push((chunk, weight));
        }
        hits
    }

    fn trace(chunks: u64, accesses: usize) -> Vec<(u64, u64)> {
        let mut seed = 5_u64;
        let mut next = || {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) as f64 / (1_u64 << 31) as f64
        };
        let pick = |x: f64| (x * x * chunks as f64) as u64;
        (0..accesses)
            .map(|_| pick(next()))
            .map(|chunk| (chunk, 10_000 + chunk % 7 * 3000))
            .collect()
    }

    #[test]
    fn a_datasets_part_is_that_of_its_own_accesses() {
        let trace = trace(300, 50_000);
        let mut curve = Curve::new();
        for &(chunk, weight) in &trace {
            curve.access(chunk % 2, spread(chunk), weight, false);
        }
        for dataset in 0..2 {
            let points = curve.points_of(dataset);
            let own = trace.iter().filter(|(chunk, _)| chunk % 2 == dataset).count() as f64;
            for point in &points {
                let hits = hits_of(&trace, point.bytes, |chunk| chunk % 2 == dataset);
                let expected = 1.0 - hits as f64 / own;
                assert!((point.miss_ratio - expected).abs() < 1e-3, "{point:?}: {expected}");
            }
            assert!(points.len() > 3, "{points:?}");
        }
        curve.forget(0);
        assert!(curve.points_of(0).is_empty() && !curve.points_of(1).is_empty());
    }

    fn curve_of(trace: &[(u64, u64)]) -> Curve {
        let mut curve = Curve::new();
        trace.iter().for_each(|&(chunk, weight)| curve.access(0, spread(chunk), weight, false));
        curve
    }

    #[test]
    fn every_class_ends_where_the_next_begins() {
        for class in 0..CLASSES - 1 {
            let end = upper_end(class);
            assert_eq!((class_of(end), class_of(end + 1)), (class, class + 1), "{end}");
        }
        assert_eq!((class_of(0), class_of(u64::MAX)), (0, CLASSES - 1));
    }

    #[test]
    fn the_curve_is_that_of_a_least_recently_used_cache() {
        // So many accesses that times are renumbered.
        let trace = trace(300, 50_000);
        let curve = curve_of(&trace);
        for point in curve.points() {
            let expected = 1.0 - lru_hits(&trace, point.bytes) as f64 / trace.len() as f64;
            assert!((point.miss_ratio - expected).abs() < 1e-9, "{point:?}: {expected}");
            assert_eq!(curve.miss_ratio(point.bytes), point.miss_ratio);
        }
        assert!(curve.points().len() > 20);
        assert_eq!(curve.actual_misses(), 1.0);
    }

    #[test]
    fn a_part_of_many_chunks_stands_for_all() {
        let trace = trace(20_000, 100_000);
        let (mut part, mut all) = (Curve::following(2000), Curve::following(1 << 17));
        for &(chunk, weight) in &trace {
            part.access(0, spread(chunk), weight, false);
            all.access(0, spread(chunk), weight, false);
        }
        assert!(part.threshold < u32::MAX / 4 && part.chunks.len() <= 2000);
        assert_eq!(all.threshold, u32::MAX);
        for bytes in [1 << 25, 1 << 26, 1 << 27, 1 << 28] {
            let (estimate, exact) = (part.miss_ratio(bytes), all.miss_ratio(bytes));
            assert!((estimate - exact).abs() < 0.03, "{bytes}: {estimate}, {exact}");
        }
    }

    #[test]
    fn older_accesses_count_less() {
        let mut curve = Curve::new();
        (0..100).for_each(|chunk| curve.access(0, spread(chunk), 1 << 20, false));
        curve.age();
        assert_eq!((curve.accesses(), curve.actual_misses()), (0, 1.0));
        for _ in 0..10 {
            (0..10).for_each(|chunk| curve.access(0, spread(chunk), 1 << 20, true));
            curve.age();
        }
        assert!(curve.actual_misses() < 0.05 && curve.miss_ratio(16 << 20) < 0.05);
    }
}
