//! Counters of what the cache did: per dataset, and summed for the cache.

use std::fmt::{self, Display, Formatter};
use std::ops::AddAssign;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// What happened so far.
///
/// A part of a request counts as one hit or one miss. Counters are read one by one while others
/// work: they need not fit together to the unit.
///
/// ```
/// let stats = pumice_cache::Stats::default();
/// assert_eq!(stats.hit_ratio(), 0.0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Chunk requests served from memory.
    pub hits: u64,
    /// Chunk requests that had to look further.
    pub misses: u64,
    /// Chunks read from storage.
    pub loads: u64,
    /// Requests that went past the cache.
    pub direct: u64,
    /// Chunks that left to make room.
    pub evictions: u64,
    /// Chunks that left because their dataset had more than its maximum.
    pub evictions_over_maximum: u64,
    /// Chunks that left because a flush said so.
    pub evictions_on_flush: u64,
    /// Chunks that left because their dataset was closed.
    pub evictions_on_close: u64,
    /// Chunks that left because they ceased to be what they were: erased, cut off or changed by a
    /// new extent, or replaced in their stored form.
    pub discarded: u64,
    /// Chunks encoded and written.
    pub write_backs: u64,
    /// Stored bytes read, past the cache or not.
    pub bytes_fetched: u64,
    /// Stored bytes written, past the cache or not.
    pub bytes_written: u64,
    /// Nanoseconds spent in decoding, over all threads.
    pub decode_nanoseconds: u64,
    /// Chunks that are known not to be stored and were not looked up again.
    pub known_absent: u64,
    /// Chunks that were loaded ahead of the read that wanted them.
    pub prefetched: u64,
    /// Those of them that were used.
    pub prefetch_useful: u64,
    /// Those of them that left before they were used.
    pub prefetch_wasted: u64,
    /// Chunks written back by an idle thread before they had to be.
    pub written_early: u64,
    /// Chunks encoded by an idle thread before they had to be, and kept both ways.
    pub encoded_early: u64,
    /// Those encodings that were written when the chunk was.
    pub early_used: u64,
    /// Those that a later change of the chunk made useless.
    pub early_dropped: u64,
    /// Chunks that have changes that are not written back now.
    pub dirty: u64,
    /// Chunks of requests that are running or waiting now, once for each of these. Reads of one
    /// chunk that is in memory are done too soon to be seen here.
    pub pinned: u64,
    /// Bytes that chunks take now, with what was encoded of them early.
    pub resident: u64,
    /// Bytes that the cache takes beside, to keep those chunks: they count for the limits as well.
    /// Zero for one dataset.
    pub bookkeeping: u64,
    /// Bytes that running requests hold now: chunks being loaded and encoded. Zero for one dataset.
    pub in_flight: u64,
    /// The most bytes ever held at once: chunks, loads and encodings. Zero for one dataset, since
    /// the limits are the cache's.
    pub peak: u64,
}

impl Stats {
    /// Hits per request, from 0 to 1.
    pub fn hit_ratio(&self) -> f64 {
        match self.hits + self.misses {
            0 => 0.0,
            all => self.hits as f64 / all as f64,
        }
    }
}

/// Four lines for people: requests, traffic, chunks that left, memory.
///
/// ```
/// let mut stats = pumice_cache::Stats::default();
/// (stats.hits, stats.misses, stats.loads) = (3, 1, 1);
/// (stats.bytes_fetched, stats.resident) = (70_000, 262_144);
/// let lines: Vec<String> = stats.to_string().lines().map(String::from).collect();
/// assert_eq!(lines[0], "requests  3 hits, 1 misses (75.0 %), 0 past the cache, 0 known to be absent");
/// assert_eq!(lines[1], "traffic   1 chunks loaded (70000 bytes), 0 written (0 bytes), 0.000 s of decoding");
/// assert_eq!(lines[2], "left      0 to make room, 0 over a maximum, 0 with a flush, 0 with a file, 0 discarded");
/// assert_eq!(lines[3], "memory    262144 bytes of chunks, 0 of bookkeeping, 0 in flight, at most 0; 0 chunks changed");
/// ```
impl Display for Stats {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let Self { hits, misses, direct, known_absent, .. } = self;
        let share = 100.0 * self.hit_ratio();
        writeln!(
            formatter,
            "requests  {hits} hits, {misses} misses ({share:.1} %), {direct} past the cache, {known_absent} known to be absent"
        )?;
        let Self { loads, bytes_fetched, write_backs, bytes_written, .. } = self;
        let seconds = self.decode_nanoseconds as f64 / 1e9;
        writeln!(
            formatter,
            "traffic   {loads} chunks loaded ({bytes_fetched} bytes), {write_backs} written ({bytes_written} bytes), \
             {seconds:.3} s of decoding"
        )?;
        let Self { evictions, evictions_over_maximum, evictions_on_flush, .. } = self;
        let Self { evictions_on_close, discarded, .. } = self;
        writeln!(
            formatter,
            "left      {evictions} to make room, {evictions_over_maximum} over a maximum, {evictions_on_flush} with a \
             flush, {evictions_on_close} with a file, {discarded} discarded"
        )?;
        let Self { resident, bookkeeping, in_flight, peak, dirty, .. } = self;
        write!(
            formatter,
            "memory    {resident} bytes of chunks, {bookkeeping} of bookkeeping, {in_flight} in flight, at most {peak}; \
             {dirty} chunks changed"
        )
    }
}

impl AddAssign for Stats {
    fn add_assign(&mut self, other: Stats) {
        self.hits += other.hits;
        self.misses += other.misses;
        self.loads += other.loads;
        self.direct += other.direct;
        self.evictions += other.evictions;
        self.write_backs += other.write_backs;
        self.bytes_fetched += other.bytes_fetched;
        self.bytes_written += other.bytes_written;
        self.decode_nanoseconds += other.decode_nanoseconds;
        self.evictions_over_maximum += other.evictions_over_maximum;
        self.evictions_on_flush += other.evictions_on_flush;
        self.evictions_on_close += other.evictions_on_close;
        self.discarded += other.discarded;
        self.known_absent += other.known_absent;
        self.prefetched += other.prefetched;
        self.prefetch_useful += other.prefetch_useful;
        self.prefetch_wasted += other.prefetch_wasted;
        self.written_early += other.written_early;
        self.encoded_early += other.encoded_early;
        self.early_used += other.early_used;
        self.early_dropped += other.early_dropped;
        self.dirty += other.dirty;
        self.pinned += other.pinned;
        self.resident += other.resident;
        self.peak = self.peak.max(other.peak);
    }
}

/// One dataset's counters, counted without ordering.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) hits: Counter,
    pub(crate) misses: Counter,
    pub(crate) loads: Counter,
    pub(crate) direct: Counter,
    pub(crate) evictions: Counter,
    pub(crate) write_backs: Counter,
    pub(crate) bytes_fetched: Counter,
    pub(crate) bytes_written: Counter,
    pub(crate) decode_nanoseconds: Counter,
    pub(crate) known_absent: Counter,
    pub(crate) dirty: Counter,
    pub(crate) resident: Counter,
    /// Made when first counted: many datasets may be open of which little is to be told.
    rare: OnceLock<Box<Rare>>,
}

/// Counters that most datasets never need.
#[derive(Debug, Default)]
pub(crate) struct Rare {
    pub(crate) evictions_over_maximum: Counter,
    pub(crate) evictions_on_flush: Counter,
    pub(crate) evictions_on_close: Counter,
    pub(crate) discarded: Counter,
    pub(crate) prefetched: Counter,
    pub(crate) prefetch_useful: Counter,
    pub(crate) prefetch_wasted: Counter,
    pub(crate) written_early: Counter,
    pub(crate) encoded_early: Counter,
    pub(crate) early_used: Counter,
    pub(crate) early_dropped: Counter,
}

/// Why a chunk leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Room,
    Maximum,
    Flush,
    Close,
    /// It is no longer what it was.
    Discard,
}

impl Reason {
    /// Whether the chunk may come back as it was.
    pub(crate) fn evicts(self) -> bool {
        matches!(self, Reason::Room | Reason::Maximum | Reason::Flush)
    }
}

impl Counters {
    pub(crate) fn rare(&self) -> &Rare {
        self.rare.get_or_init(Box::default)
    }

    pub(crate) fn read(&self) -> Stats {
        let rare = |counter: fn(&Rare) -> &Counter| {
            self.rare.get().map_or(0, |rare| counter(rare).value())
        };
        Stats {
            hits: self.hits.value(),
            misses: self.misses.value(),
            loads: self.loads.value(),
            direct: self.direct.value(),
            evictions: self.evictions.value(),
            write_backs: self.write_backs.value(),
            bytes_fetched: self.bytes_fetched.value(),
            bytes_written: self.bytes_written.value(),
            decode_nanoseconds: self.decode_nanoseconds.value(),
            evictions_over_maximum: rare(|rare| &rare.evictions_over_maximum),
            evictions_on_flush: rare(|rare| &rare.evictions_on_flush),
            evictions_on_close: rare(|rare| &rare.evictions_on_close),
            discarded: rare(|rare| &rare.discarded),
            known_absent: self.known_absent.value(),
            prefetched: rare(|rare| &rare.prefetched),
            prefetch_useful: rare(|rare| &rare.prefetch_useful),
            prefetch_wasted: rare(|rare| &rare.prefetch_wasted),
            written_early: rare(|rare| &rare.written_early),
            encoded_early: rare(|rare| &rare.encoded_early),
            early_used: rare(|rare| &rare.early_used),
            early_dropped: rare(|rare| &rare.early_dropped),
            dirty: self.dirty.value(),
            resident: self.resident.value(),
            ..Stats::default()
        }
    }

    pub(crate) fn count_eviction(&self, reason: Reason) {
        let counter = match reason {
            Reason::Room => &self.evictions,
            Reason::Maximum => &self.rare().evictions_over_maximum,
            Reason::Flush => &self.rare().evictions_on_flush,
            Reason::Close => &self.rare().evictions_on_close,
            Reason::Discard => &self.rare().discarded,
        };
        counter.add(1);
    }
}

/// A relaxed counter.
#[derive(Debug)]
pub(crate) struct Counter(AtomicU64);

impl Default for Counter {
    fn default() -> Self {
        Counter(AtomicU64::new(0))
    }
}

impl Counter {
    pub(crate) fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    pub(crate) fn subtract(&self, amount: u64) {
        self.0.fetch_sub(amount, Ordering::Relaxed);
    }

    pub(crate) fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
