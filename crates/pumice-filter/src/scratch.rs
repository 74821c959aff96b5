//! A few spare buffers per thread, so that a chunk in the middle of a pipeline costs no allocation.
//!
//! A buffer keeps the length it had when it was given back: those bytes are initialised, so a filter
//! that needs a slice to write into need not clear them again. Their content means nothing.
//!
//! What a thread keeps is bounded by [`MOST_BUFFERS`] and [`MOST_BYTES`]; it does not replace a
//! memory budget, it only avoids fresh pages.

use std::cell::RefCell;

/// How many buffers a thread keeps.
pub const MOST_BUFFERS: usize = 4;

/// How many bytes a thread keeps in all.
pub const MOST_BYTES: usize = 32 << 20;

thread_local! {
    static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// A buffer with room for about `bytes` bytes: a spare one of a fitting size, or an empty one.
///
/// ```
/// pumice_filter::scratch::give(vec![7; 1000]);
/// let buffer = pumice_filter::scratch::take(900);
/// assert_eq!(buffer.len(), 1000, "what it contains is to be overwritten");
/// ```
pub fn take(bytes: usize) -> Vec<u8> {
    SPARE.with_borrow_mut(|spare| {
        // The smallest that is large enough, but not one that would mostly be wasted.
        let most = bytes.saturating_mul(2).saturating_add(4096);
        let fits = |buffer: &Vec<u8>| (bytes..=most).contains(&buffer.capacity());
        let best =
            (0..spare.len()).filter(|&at| fits(&spare[at])).min_by_key(|&at| spare[at].capacity());
        best.map(|at| spare.swap_remove(at)).unwrap_or_default()
    })
}

/// Gives a buffer back to the thread's spares, or frees it if there are enough.
///
/// ```
/// pumice_filter::scratch::give(Vec::with_capacity(4096));
/// ```
pub fn give(buffer: Vec<u8>) {
    if buffer.capacity() == 0 || buffer.capacity() > MOST_BYTES {
        return;
    }
    SPARE.with_borrow_mut(|spare| {
        spare.push(buffer);
        // The oldest go first.
        while spare.len() > MOST_BUFFERS || held(spare) > MOST_BYTES {
            spare.remove(0);
        }
    });
}

fn held(spare: &[Vec<u8>]) -> usize {
    spare.iter().map(Vec::capacity).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_few_buffers_and_few_bytes() {
        for _ in 0..10 {
            give(Vec::with_capacity(9 << 20));
        }
        SPARE.with_borrow(|spare| {
            assert!(spare.len() <= MOST_BUFFERS);
            assert!(held(spare) <= MOST_BYTES);
        });
        give(Vec::with_capacity(MOST_BYTES + 1));
        SPARE.with_borrow(|spare| assert!(held(spare) <= MOST_BYTES));
    }

    #[test]
    fn a_small_request_does_not_take_a_large_buffer() {
        give(Vec::with_capacity(1 << 20));
        assert!(take(100).capacity() < 1 << 20);
        assert!(take(1 << 19).capacity() >= 1 << 19);
    }
}
