//! Asking the allocator whether there is memory for a large list.
//!
//! Most lists of Rust end the program if there is none. A caller who is about to make one of a
//! length that a file or a user states asks first. Another thread may take the memory in between,
//! so a fallible allocation is better where it is as simple.

/// Fewer bytes are not asked for, since asking would prevent nothing.
const LEAST: u64 = 1 << 20;

/// Bytes that are asked for in addition, so that something is left for small allocations.
const BESIDE: usize = 4 << 20;

/// Whether the allocator has this many bytes in one piece, and some more. None of them is touched,
/// so asking costs little.
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
