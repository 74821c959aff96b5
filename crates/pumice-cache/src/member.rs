//! What the cache keeps for each registered dataset.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

use crate::config::DatasetOptions;
use crate::layout::{Footprint, Layout, Part};
use crate::order::Order;
use crate::slot::Table;
use crate::stats::Counters;
use crate::sync::{Arc, AtomicBool, AtomicU64, Ordering, RwLock};

/// A registered dataset.
///
/// Slots refer to their member and the member's table refers to them: closing the dataset empties
/// the table and so breaks the circle.
pub(crate) struct Member<L: Layout> {
    pub(crate) id: u64,
    pub(crate) layout: Arc<L>,
    /// The file it was registered with, if with one.
    pub(crate) file: Option<u64>,
    options: RwLock<DatasetOptions>,
    pub(crate) table: Table<L>,
    pub(crate) order: Order<L::Key>,
    pub(crate) counters: Counters,
    hasher: FixedState,
    /// The largest chunk so far: the estimate for chunks of which nothing is known.
    largest: AtomicU64,
    /// Whether anybody has asked for defined cells alone, so that it pays to keep them.
    asked_for_defined: AtomicBool,
}

impl<L: Layout> Member<L> {
    pub(crate) fn new(id: u64, file: Option<u64>, layout: Arc<L>, options: DatasetOptions) -> Self {
        let hasher = FixedState::with_seed(id.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Member {
            id,
            layout,
            file,
            options: RwLock::new(options),
            table: Table::new(),
            order: Order::new(hasher.clone()),
            counters: Counters::default(),
            hasher,
            largest: AtomicU64::new(0),
            asked_for_defined: AtomicBool::new(false),
        }
    }

    pub(crate) fn options(&self) -> DatasetOptions {
        *self.options.read()
    }

    pub(crate) fn set_options(&self, options: DatasetOptions) {
        *self.options.write() = options;
    }

    /// Differs between datasets too, so that it can stand for the chunk in the policy's memory.
    pub(crate) fn hash(&self, key: &L::Key) -> u64 {
        self.hasher.hash_one(key)
    }

    /// The chunk's size, which is remembered for estimates.
    pub(crate) fn measure(&self, chunk: &L::Chunk) -> Footprint {
        let footprint = self.layout.footprint(chunk);
        if footprint.allocated > self.largest.load(Ordering::Relaxed) {
            self.largest.fetch_max(footprint.allocated, Ordering::Relaxed);
        }
        footprint
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
        self.options().direct || self.layout.bypass()
    }
}
