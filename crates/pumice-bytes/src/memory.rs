//! Whether there is memory for what bytes ask for.
//!
//! Most lists of Rust end the program where there is none. Whoever is about to make one whose length comes from a
//! file or a caller asks first. Another thread may take the memory in between: a list that can fail is better
//! where it is as simple.

/// Fewer bytes than this are not asked for: nothing is far enough from its limit to be saved by it.
const LEAST: u64 = 1 << 20;

/// What is asked for beside, so that something is left for small things.
const BESIDE: usize = 4 << 20;

/// Whether the allocator has so many bytes in one piece, and some more. None of them is touched, so asking costs little.
///
/// ```
/// assert!(pumice_bytes::memory::is_there(4 << 20));
/// assert!(!pumice_bytes::memory::is_there(u64::MAX));
/// ```
pub fn is_there(bytes: u64) -> bool {
    if bytes < LEAST {
        return true;
    }
    let Ok(bytes) = usize::try_from(bytes) else { return false };
    let mut list = Vec::<u8>::new();
    let there = list.try_reserve_exact(bytes.saturating_add(BESIDE)).is_ok();
    // Memory that nobody uses would not be asked for at all.
    std::hint::black_box(&mut list);
    there
}
