//! What the cache keeps for each registered dataset.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

use foldhash::fast::FixedState;

use crate::absent::Name;
use crate::ahead::Course;
use crate::config::DatasetOptions;
use crate::layout::{ChunkMemory, Family, Footprint, Layout, Part, StoreId, Unchunked};
use crate::list::Ends;
use crate::order::Order;
use crate::policy::{Hint, Usage, Weight};
use crate::stats::{Counters, Stats};
use crate::sync::{Arc, Mutex};

/// A registered dataset. Its slots refer to it; the budget knows which they are.
pub(crate) struct Member<F: Family> {
    pub(crate) id: u64,
    pub(crate) data: Data<F>,
    /// The file it was registered with, if with one.
    pub(crate) file: Option<u64>,
    options: Options,
    /// Its resident chunks; changes only under the budget's lock.
    pub(crate) residents: Mutex<Ends>,
    pub(crate) order: Order<F::Key>,
    pub(crate) counters: Counters,
    /// Where its reads are going, once anybody could follow.
    pub(crate) course: Mutex<Option<Box<Course<F::Key>>>>,
    hasher: FixedState,
    /// The largest chunk so far: the estimate for chunks of which nothing is known.
    largest: AtomicU64,
    /// Changes whenever what is known to be absent may no longer be.
    pub(crate) shape: AtomicU64,
    /// Whether anybody has asked for defined cells alone, so that it pays to keep them.
    asked_for_defined: AtomicBool,
}

/// Where a dataset's elements are.
pub(crate) enum Data<F: Family> {
    Chunks(Arc<dyn Layout<F>>),
    Unchunked(Arc<dyn Unchunked<F>>),
}

impl<F: Family> Member<F> {
    pub(crate) fn new(id: u64, file: Option<u64>, data: Data<F>, options: DatasetOptions) -> Self {
        let hasher = FixedState::with_seed(id.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Member {
            id,
            data,
            file,
            options: Options::new(options),
            residents: Mutex::new(Ends::NONE),
            order: Order::new(hasher.clone()),
            counters: Counters::default(),
            course: Mutex::new(None),
            hasher,
            largest: AtomicU64::new(0),
            shape: AtomicU64::new(0),
            asked_for_defined: AtomicBool::new(false),
        }
    }

    pub(crate) fn options(&self) -> DatasetOptions {
        self.options.load()
    }

    pub(crate) fn set_options(&self, options: DatasetOptions) {
        self.options.store(options);
    }

    /// What is known of any use of its chunks.
    pub(crate) fn usage(&self) -> Usage {
        let DatasetOptions { hint, preemption: weight, .. } = self.options();
        Usage { hint, weight, ..Usage::of(self.id) }
    }

    /// What a chunk is called among those that are not stored.
    pub(crate) fn name<'k>(&self, hash: u64, key: &'k F::Key) -> Name<'k, F::Key> {
        Name { hash, dataset: self.id, shape: self.shape.load(Ordering::Relaxed), key }
    }

    /// Differs between datasets too, so that it can stand for the chunk in the policy's memory.
    pub(crate) fn hash(&self, key: &F::Key) -> u64 {
        self.hasher.hash_one(key)
    }

    /// The chunk's size, which is remembered for estimates.
    pub(crate) fn measure(&self, chunk: &F::Chunk) -> Footprint {
        let footprint = chunk.footprint();
        if footprint.allocated > self.largest.load(Ordering::Relaxed) {
            self.largest.fetch_max(footprint.allocated, Ordering::Relaxed);
        }
        footprint
    }

    /// Counts a request that went past the cache.
    pub(crate) fn count_passed(&self, write: bool, bytes: u64) {
        self.counters.direct.add(1);
        if write { &self.counters.bytes_written } else { &self.counters.bytes_fetched }.add(bytes);
    }

    /// What it did so far.
    pub(crate) fn stats(&self) -> Stats {
        Stats { pinned: self.order.pinned(), ..self.counters.read() }
    }

    pub(crate) fn largest(&self) -> u64 {
        self.largest.load(Ordering::Relaxed)
    }

    pub(crate) fn note(&self, part: Part) {
        if part == Part::Defined {
            self.asked_for_defined.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn keeps_defined(&self) -> bool {
        self.asked_for_defined.load(Ordering::Relaxed)
    }

    /// Whether requests go past the cache where they can.
    pub(crate) fn goes_direct(&self) -> bool {
        self.options().direct
    }

    /// What its chunks are, if it has chunks.
    pub(crate) fn layout(&self) -> Option<&Arc<dyn Layout<F>>> {
        match &self.data {
            Data::Chunks(layout) => Some(layout),
            Data::Unchunked(_) => None,
        }
    }

    /// What its chunks are, if they are kept in the cache.
    pub(crate) fn kept_layout(&self) -> Option<&Arc<dyn Layout<F>>> {
        self.layout().filter(|_| !self.goes_direct())
    }

    /// Where its bytes are.
    pub(crate) fn store(&self) -> StoreId {
        match &self.data {
            Data::Chunks(layout) => layout.chunks().id(),
            Data::Unchunked(data) => data.id(),
        }
    }
}

/// A dataset's options, read at every use of a chunk. Each is changed by itself.
struct Options {
    minimum: AtomicU64,
    maximum: AtomicU64,
    direct: AtomicBool,
    write_through: AtomicBool,
    hint: AtomicU8,
    preemption: AtomicU32,
}

impl Options {
    fn new(options: DatasetOptions) -> Self {
        let DatasetOptions { minimum, maximum, direct, write_through, hint, preemption } = options;
        Options {
            minimum: AtomicU64::new(minimum),
            maximum: AtomicU64::new(maximum),
            direct: AtomicBool::new(direct),
            write_through: AtomicBool::new(write_through),
            hint: AtomicU8::new(hint as u8),
            preemption: AtomicU32::new(preemption.bits()),
        }
    }

    fn load(&self) -> DatasetOptions {
        let hints = [Hint::Normal, Hint::Sequential, Hint::Random, Hint::Once];
        let hint = self.hint.load(Ordering::Relaxed);
        DatasetOptions {
            minimum: self.minimum.load(Ordering::Relaxed),
            maximum: self.maximum.load(Ordering::Relaxed),
            direct: self.direct.load(Ordering::Relaxed),
            write_through: self.write_through.load(Ordering::Relaxed),
            hint: hints.into_iter().find(|known| *known as u8 == hint).unwrap_or_default(),
            preemption: Weight::from_bits(self.preemption.load(Ordering::Relaxed)),
        }
    }

    fn store(&self, options: DatasetOptions) {
        let DatasetOptions { minimum, maximum, direct, write_through, hint, preemption } = options;
        self.minimum.store(minimum, Ordering::Relaxed);
        self.maximum.store(maximum, Ordering::Relaxed);
        self.direct.store(direct, Ordering::Relaxed);
        self.write_through.store(write_through, Ordering::Relaxed);
        self.hint.store(hint as u8, Ordering::Relaxed);
        self.preemption.store(preemption.bits(), Ordering::Relaxed);
    }
}
