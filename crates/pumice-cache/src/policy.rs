//! Which chunk leaves first: the [`Policy`] trait, one file for each policy, one suite for all.
//!
//! A policy sees numbers only: small integers that name the resident chunks, 64-bit identities by
//! which it may remember chunks that have left, and weights in bytes. It does not decide when to
//! evict, and never refuses a chunk: the cache does both.

mod datasets;
mod foresight;
mod guarded;
mod lirs;
mod lru;
mod memory;
mod passes;
mod random;
mod recency_set;
mod timeline;
mod tiny_lfu;
mod two_stage;
mod weighted_lru;

pub(crate) use guarded::Guarded;
pub use lirs::Lirs;
pub use lru::Lru;
pub use random::Random;
pub use tiny_lfu::TinyLfu;
pub use two_stage::TwoStage;
pub use weighted_lru::WeightedLru;

/// How a dataset's chunks are going to be used, as far as the program tells.
///
/// What is loaded ahead of reads follows the hint under every policy. Which chunks leave first does so under
/// [`Lirs`] alone; a policy of one's own is told ([`Usage::hint`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Hint {
    /// Nothing is known.
    #[default]
    Normal,
    /// In the order of storage, more or less: what is passed will not be wanted soon. The next chunks are loaded
    /// ahead from the first read on.
    Sequential,
    /// In no order: what comes next cannot be foretold, and nothing is loaded ahead.
    Random,
    /// Each chunk for one request, and then no more.
    Once,
}

/// HDF5's `rdcc_w0`: the part of a dataset's chunks, from the one used longest ago on, among which complete
/// ones leave before others. From 0, none, to 1, all; 0.75 unless said otherwise, as in HDF5.
///
/// ```
/// use pumice_cache::Weight;
/// assert_eq!(Weight::default(), Weight::new(0.75));
/// assert_eq!((Weight::new(7.0).value(), Weight::new(f64::NAN).value()), (1.0, 0.0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Weight(u32);

impl Weight {
    /// A weight; what is less than 0 or no number counts as 0, what is more than 1 as 1.
    pub fn new(weight: f64) -> Self {
        let weight = if weight.is_nan() { 0.0 } else { weight.clamp(0.0, 1.0) as f32 };
        Weight(weight.to_bits())
    }

    /// From 0 to 1.
    pub fn value(self) -> f64 {
        f32::from_bits(self.0).into()
    }

    /// Whether it counts at all that a chunk is complete.
    pub(crate) fn counts(self) -> bool {
        self.value() > 0.0
    }

    pub(crate) fn bits(self) -> u32 {
        self.0
    }

    pub(crate) fn from_bits(bits: u32) -> Self {
        Weight(bits)
    }
}

impl Default for Weight {
    fn default() -> Self {
        Weight::new(0.75)
    }
}

/// One use of a chunk, as a [`Policy`] is told of it.
///
/// ```
/// use pumice_cache::{Hint, Usage};
/// let usage = Usage { write: true, ..Usage::of(7) };
/// assert!(!usage.done && usage.hint == Hint::Normal);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The dataset to which the chunk belongs.
    pub dataset: u64,
    /// Whether the chunk is changed, and so is dirty until [`Policy::clean`].
    pub write: bool,
    /// Whether with this use all of the chunk has been read, or all of it written, since it came
    /// or since that was last so.
    pub done: bool,
    /// Whether the chunk is changed and, as far as is known, a part of it is still to be written: to
    /// let it go would mean to load it again.
    pub partial: bool,
    /// What the program tells.
    pub hint: Hint,
    /// How much it counts that the chunk is complete: HDF5's `rdcc_w0` of its dataset.
    pub weight: Weight,
}

impl Usage {
    /// A read of a part of a chunk of this dataset.
    pub fn of(dataset: u64) -> Self {
        Usage { dataset, ..Usage::default() }
    }
}

/// Ranks resident chunks by how little they will be missed.
///
/// A policy of one's own is given to a cache by [`Config::own_policy`](crate::Config::own_policy). Whatever it
/// does, limits hold: it is believed about resident chunks alone, what it does not name leaves last, and if it panics
/// it is not asked again. It is called while the cache's books are locked, and must not use the cache.
///
/// The cache names each resident chunk by a number that is free again after [`evict`] or
/// [`remove`]; numbers stay small, so that a policy may keep them in arrays.
///
/// [`evict`]: Policy::evict
/// [`remove`]: Policy::remove
///
/// ```
/// use pumice_cache::{Lru, Policy, Usage};
/// let mut policy = Lru::new();
/// policy.admit(0, 100, 1, Usage::default());
/// policy.admit(1, 101, 1, Usage::default());
/// policy.touch(0, Usage::default());
/// let mut order = Vec::new();
/// policy.coldest(&mut |id| {
///     order.push(id);
///     true
/// });
/// assert_eq!(order, [1, 0]);
/// ```
pub trait Policy: Send {
    /// A chunk becomes resident under the number `id`; `identity` is the same each time it does.
    fn admit(&mut self, id: u32, identity: u64, weight: u64, usage: Usage);

    /// A resident chunk is used.
    fn touch(&mut self, id: u32, usage: Usage);

    /// A resident chunk that was written to has been written back.
    fn clean(&mut self, _id: u32) {}

    /// A resident chunk changes its weight.
    fn reweigh(&mut self, id: u32, weight: u64);

    /// A resident chunk leaves to make room, and may come back.
    fn evict(&mut self, id: u32);

    /// A resident chunk ceases to exist.
    fn remove(&mut self, id: u32);

    /// Names resident chunks, the one to leave first first, until `visit` answers `false`.
    fn coldest(&self, visit: &mut dyn FnMut(u32) -> bool);

    /// The bytes that resident chunks may weigh in all.
    fn set_capacity(&mut self, capacity: u64);

    /// A chunk that is not resident is about to be read as a whole by a request for more than the
    /// cache can keep. Whether it had better not be admitted; if so, the policy may remember it.
    fn lets_pass(&mut self, _identity: u64) -> bool {
        false
    }

    /// These chunks of a dataset will be used, in this order. Whatever was announced of the dataset
    /// before holds no longer.
    fn expect(&mut self, _dataset: u64, _identities: &[u64]) {}
}
