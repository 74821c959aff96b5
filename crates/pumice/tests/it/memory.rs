//! How much memory the current thread takes: an allocator that counts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

#[global_allocator]
static COUNTING: Counting = Counting;

thread_local! {
    static NOW: Cell<i64> = const { Cell::new(0) };
    static PEAK: Cell<i64> = const { Cell::new(0) };
}

/// Begins to count from here.
pub(crate) fn reset() {
    NOW.set(0);
    PEAK.set(0);
}

/// The most bytes that were held at once since the last [`reset`], apart from those held then.
pub(crate) fn peak() -> u64 {
    PEAK.get().unsigned_abs()
}

struct Counting;

impl Counting {
    /// Counts bytes that an allocation took, if there is one.
    fn made(pointer: *mut u8, bytes: i64) -> *mut u8 {
        if !pointer.is_null() {
            Self::add(bytes);
        }
        pointer
    }

    fn add(bytes: i64) {
        // A thread that ends may free after its counters are gone.
        let now = NOW.try_with(|now| {
            now.set(now.get() + bytes);
            now.get()
        });
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(now.unwrap_or(0))));
    }
}

// SAFETY: every call goes to the system's allocator unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        Self::made(unsafe { System.alloc(layout) }, layout.size() as i64)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        Self::made(unsafe { System.alloc_zeroed(layout) }, layout.size() as i64)
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        Self::add(-(layout.size() as i64));
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        let moved = unsafe { System.realloc(pointer, layout, size) };
        Self::made(moved, size as i64 - layout.size() as i64)
    }
}
