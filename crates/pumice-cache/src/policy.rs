//! Which chunk leaves first: the [`Policy`] trait, one file for each policy, one suite for all.
//!
//! A policy sees numbers only: small integers that name the resident chunks, 64-bit identities by
//! which it may remember chunks that have left, and weights in bytes. It does not decide when to
//! evict, and never refuses a chunk: the cache does both.

mod lirs;
mod list;
mod lru;

pub use lirs::Lirs;
pub use lru::Lru;

/// Ranks resident chunks by how little they will be missed.
///
/// The cache names each resident chunk by a number that is free again after [`evict`] or
/// [`remove`]; numbers stay small, so that a policy may keep them in arrays.
///
/// [`evict`]: Policy::evict
/// [`remove`]: Policy::remove
///
/// ```
/// use pumice_cache::{Lru, Policy};
/// let mut policy = Lru::new();
/// policy.admit(0, 100, 1);
/// policy.admit(1, 101, 1);
/// policy.touch(0);
/// let mut order = Vec::new();
/// policy.coldest(&mut |id| {
///     order.push(id);
///     true
/// });
/// assert_eq!(order, [1, 0]);
/// ```
pub trait Policy: Send {
    /// A chunk becomes resident under the number `id`; `identity` is the same each time it does.
    fn admit(&mut self, id: u32, identity: u64, weight: u64);

    /// A resident chunk is used.
    fn touch(&mut self, id: u32);

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
}
