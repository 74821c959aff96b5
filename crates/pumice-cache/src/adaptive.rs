//! The cache's size, chosen by what more or less memory would gain or cost.
//!
//! [`Curve`] measures, while the cache is used, how many accesses would be hits at any other size.
//! From time to time [`Adaptive::review`] compares that with the hits there were:
//!
//! - **Grow** to the size at which the hits gained pay best: a doubling must gain at least two
//!   accesses in a hundred. A loop that does not fit shows as a cliff in the curve, and the cache
//!   grows to just beyond it, or not at all.
//! - **Shrink** by a quarter, if twice in succession the curve says that less than half an access
//!   in a hundred would be lost; not below the size it started with, since a scan that gains
//!   nothing from memory says little about what comes after it.
//! - **Flash**: one request for more than three quarters of the cache makes it grow at once, so
//!   that a quarter is left to others, unless that is more than the maximum.
//! - **Idle**: for each half minute without a request the cache is halved: by a thread that looks at
//!   the clock, or, in a cache without threads, at the next request.
//! - **Pressure**: memory is asked for at each review, and by that thread. If the process has used nine tenths of what
//!   its control group or the machine allows, the cache gives back what is above eight tenths; and
//!   it never grows into the last two tenths.
//!
//! Always between the minimum and the maximum. The curve is that of least recently used, which is
//! what can be computed for all sizes at once; the policy in force should do no worse.

mod apply;
mod curve;
mod shares;
mod surroundings;
mod watch;

pub(crate) use curve::Curve;
pub use curve::CurvePoint;
pub use surroundings::{Memory, Surroundings, System};

use std::sync::Arc;
use std::time::Duration;

/// How the resident limit is chosen.
///
/// ```
/// use pumice_cache::{Config, Sizing};
/// let config = Config::default();
/// assert!(matches!(config.sizing_in_force(), Sizing::Adaptive { .. }));
/// assert_eq!(config.resident_limit(1 << 20).sizing_in_force(), Sizing::Fixed);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizing {
    /// The limit is as told, and nothing is measured.
    Off,
    /// The limit is as told; the miss-ratio curve is measured for the statistics.
    Fixed,
    /// The limit moves between these two. The limit as told is where it starts; it becomes less only
    /// when the cache is idle or memory is short.
    Adaptive {
        /// It is never less.
        minimum: u64,
        /// It is never more.
        maximum: u64,
    },
}

/// Accesses that a review needs at least.
const FEWEST: u64 = 512;
/// What a doubling must gain, as a part of all accesses.
const PRICE: f64 = 0.02;
/// What shrinking may lose.
const LOSS: f64 = 0.005;
/// How many times in succession it must seem right to shrink.
const PATIENCE: u8 = 2;
/// Without a request for so long, the cache is halved.
const IDLE: Duration = Duration::from_secs(30);

/// The choice of a size.
#[derive(Debug)]
pub(crate) struct Adaptive {
    surroundings: Arc<dyn Surroundings>,
    minimum: u64,
    /// The size as told, below which the curve is no reason to shrink.
    usual: u64,
    maximum: u64,
    /// When the last request came or ended.
    last: Duration,
    /// How many uses of chunks there had been when the watcher last looked.
    uses: u64,
    /// Reviews in succession that wanted to shrink.
    patience: u8,
}

impl Adaptive {
    pub(crate) fn new(
        (minimum, usual, maximum): (u64, u64, u64),
        surroundings: Arc<dyn Surroundings>,
    ) -> Self {
        let (last, maximum) = (surroundings.now(), maximum.max(minimum));
        let usual = usual.clamp(minimum, maximum);
        Adaptive { surroundings, minimum, usual, maximum, last, uses: 0, patience: 0 }
    }

    fn clamp(&self, size: u64) -> u64 {
        size.clamp(self.minimum, self.maximum)
    }

    /// A request comes. What the size should be, if time has passed without one, or if it needs
    /// much.
    fn arrive(&mut self, size: u64, needed: u64) -> u64 {
        let now = self.surroundings.now();
        let pause = now.saturating_sub(std::mem::replace(&mut self.last, now));
        let halvings = (pause.as_secs() / IDLE.as_secs()).min(63) as u32;
        let rested = self.clamp(size >> halvings);
        let wanted = needed.saturating_add(needed / 3);
        if wanted <= rested || wanted > self.maximum {
            return rested;
        }
        self.clamp(afford(size, wanted, self.surroundings.memory()))
    }

    /// No request comes. What the size should be by the time that has passed since the last one, of
    /// which a half minute is used up, and by the memory there is.
    ///
    /// `uses`: how many uses of chunks there have been; hits of one chunk are not announced as requests.
    /// `busy`: whether a request is running.
    fn rest(&mut self, size: u64, uses: u64, busy: bool) -> u64 {
        let memory = self.surroundings.memory().filter(Memory::tight);
        let size = size.saturating_sub(memory.map_or(0, |memory| memory.excess()));
        let now = self.surroundings.now();
        if std::mem::replace(&mut self.uses, uses) != uses || busy {
            self.last = now;
        }
        if now.saturating_sub(self.last) < IDLE {
            return self.clamp(size);
        }
        self.last += IDLE;
        self.clamp(size / 2)
    }

    /// Whether so many accesses are enough for a review of a cache of so many chunks.
    pub(crate) fn due(accesses: u64, chunks: u64) -> bool {
        accesses >= FEWEST.max(4 * chunks)
    }

    /// What the size should be, by the curve and the memory there is.
    fn review(&mut self, size: u64, curve: &Curve, memory: Option<Memory>) -> u64 {
        if let Some(memory) = memory.filter(Memory::tight) {
            self.patience = 0;
            return self.clamp(size.saturating_sub(memory.excess()));
        }
        let grown = self.grow(size, curve);
        if grown > size {
            self.patience = 0;
            return self.clamp(afford(size, grown, memory));
        }
        if !self.may_shrink(size, curve) {
            self.patience = 0;
            return self.clamp(size);
        }
        self.patience += 1;
        if self.patience < PATIENCE {
            return self.clamp(size);
        }
        self.clamp(size - size / 4)
    }

    /// The size at which hits gained, less their price, are most.
    fn grow(&self, size: u64, curve: &Curve) -> u64 {
        let (mut best, mut most) = (size, 0.0);
        for point in curve.points() {
            if point.bytes <= size || point.bytes > self.maximum {
                continue;
            }
            let price = PRICE * (point.bytes as f64 / size.max(1) as f64).log2().max(0.5);
            let gain = curve.actual_misses() - point.miss_ratio - price;
            if gain > most {
                (best, most) = (point.bytes, gain);
            }
        }
        best
    }

    /// Whether three quarters of the size would do nearly as well.
    fn may_shrink(&self, size: u64, curve: &Curve) -> bool {
        let less = size - size / 4;
        less >= self.usual && curve.miss_ratio(less) <= curve.actual_misses() + LOSS
    }
}

/// How far the cache may grow for eight tenths of the memory to suffice.
fn afford(size: u64, wanted: u64, memory: Option<Memory>) -> u64 {
    let Some(memory) = memory else { return wanted };
    wanted.min(size.saturating_add(memory.room()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    const MIB: u64 = 1 << 20;

    /// A clock that stands still and memory that does not change, until told.
    #[derive(Debug, Default)]
    struct Still(Mutex<(Duration, Option<Memory>)>);

    impl Surroundings for Still {
        fn now(&self) -> Duration {
            self.0.lock().unwrap().0
        }

        fn memory(&self) -> Option<Memory> {
            self.0.lock().unwrap().1
        }
    }

    fn adaptive() -> (Adaptive, Arc<Still>) {
        let still = Arc::new(Still::default());
        (Adaptive::new((16 * MIB, 64 * MIB, 1024 * MIB), Arc::clone(&still) as _), still)
    }

    fn with_memory(used: u64) -> Adaptive {
        let (adaptive, still) = adaptive();
        still.0.lock().unwrap().1 = Some(Memory { used: used * MIB, limit: 1000 * MIB });
        adaptive
    }

    fn review(adaptive: &mut Adaptive, size: u64, curve: &Curve) -> u64 {
        let memory = adaptive.surroundings.memory();
        adaptive.review(size, curve, memory)
    }

    /// A loop over `chunks` of 1 MiB, of which a cache holds `cached` for ever.
    fn looped(chunks: u64, cached: u64) -> Curve {
        let mut curve = Curve::new();
        for round in 0..20 {
            for chunk in 0..chunks {
                curve.access(0, chunk.wrapping_mul(7919), MIB, round > 0 && chunk < cached);
            }
        }
        curve
    }

    #[test]
    fn it_grows_just_beyond_a_loop_that_does_not_fit_and_then_stays() {
        let (mut adaptive, _) = adaptive();
        let grown = review(&mut adaptive, 64 * MIB, &looped(100, 60));
        assert!((100 * MIB..116 * MIB).contains(&grown), "{}", grown / MIB);
        for _ in 0..5 {
            assert_eq!(review(&mut adaptive, grown, &looped(100, 100)), grown);
        }
    }

    #[test]
    fn it_does_not_grow_for_a_loop_beyond_the_maximum() {
        assert_eq!(review(&mut adaptive().0, 64 * MIB, &looped(2000, 60)), 64 * MIB);
    }

    #[test]
    fn it_shrinks_slowly_to_what_is_used_but_not_below_its_usual_size() {
        let (mut adaptive, _) = adaptive();
        let (mut size, curve) = (512 * MIB, looped(100, 100));
        assert_eq!(review(&mut adaptive, size, &curve), size, "not at the first review");
        for _ in 0..20 {
            size = review(&mut adaptive, size, &curve);
        }
        assert!((100 * MIB..150 * MIB).contains(&size), "{}", size / MIB);
        let tiny = looped(2, 2);
        (0..40).for_each(|_| size = review(&mut adaptive, size, &tiny));
        assert!((64 * MIB..86 * MIB).contains(&size), "{}", size / MIB);
        assert_eq!(
            review(&mut adaptive, 20 * MIB, &tiny),
            20 * MIB,
            "nor does it grow for nothing"
        );
    }

    #[test]
    fn it_halves_for_each_half_minute_of_rest() {
        let (mut adaptive, still) = adaptive();
        let mut arrive = |size, seconds| {
            still.0.lock().unwrap().0 = Duration::from_secs(seconds);
            adaptive.arrive(size, 0)
        };
        assert_eq!(arrive(256 * MIB, 29), 256 * MIB);
        assert_eq!(arrive(256 * MIB, 60), 128 * MIB);
        assert_eq!(arrive(256 * MIB, 1000), 16 * MIB);
        assert_eq!(arrive(16 * MIB, 1001), 16 * MIB);
    }

    #[test]
    fn one_large_request_makes_it_grow_at_once_as_far_as_memory_allows() {
        let (mut adaptive, _) = adaptive();
        assert_eq!(adaptive.arrive(64 * MIB, 48 * MIB), 64 * MIB);
        assert_eq!(adaptive.arrive(64 * MIB, 96 * MIB), 128 * MIB);
        assert_eq!(adaptive.arrive(128 * MIB, 96 * MIB), 128 * MIB, "and not once more");
        assert_eq!(adaptive.arrive(64 * MIB, 5000 * MIB), 64 * MIB, "it would not fit");
        assert_eq!(with_memory(750).arrive(64 * MIB, 96 * MIB), 114 * MIB);
    }

    #[test]
    fn it_gives_back_when_memory_is_nearly_used_up() {
        let loop_of_100 = looped(100, 60);
        assert_eq!(review(&mut with_memory(950), 512 * MIB, &loop_of_100), 362 * MIB);
        assert_eq!(review(&mut with_memory(1000), 100 * MIB, &loop_of_100), 16 * MIB);
        assert_eq!(review(&mut with_memory(780), 64 * MIB, &loop_of_100), 84 * MIB);
    }

    #[test]
    fn few_accesses_are_no_reason() {
        assert!(!Adaptive::due(511, 1) && Adaptive::due(512, 1) && !Adaptive::due(512, 1000));
    }
}
