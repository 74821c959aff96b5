//! A few spare buffers per thread, so that a chunk in the middle of a pipeline costs no allocation.
//!
//! A buffer keeps its length when it is given back: those bytes are initialised, so a filter that
//! needs a slice to write into need not clear them again. Their content has no meaning.
//!
//! A thread keeps at most [`MOST_BUFFERS`] and [`MOST_BYTES`]. This does not replace a memory
//! budget; it only avoids fresh pages.

use crate::FilterError;
use std::cell::RefCell;

/// The most buffers of each kind (bytes, numbers) that a thread keeps.
pub const MOST_BUFFERS: usize = 16;

/// The most bytes that a thread keeps in each kind of buffer.
pub const MOST_BYTES: usize = 32 << 20;

thread_local! {
    static BYTES: RefCell<Spare<u8>> = const { RefCell::new(Spare(Vec::new())) };
    static HALVES: RefCell<Spare<u16>> = const { RefCell::new(Spare(Vec::new())) };
    static NUMBERS: RefCell<Spare<u32>> = const { RefCell::new(Spare(Vec::new())) };
    static WORDS: RefCell<Spare<u64>> = const { RefCell::new(Spare(Vec::new())) };
}

/// A buffer with room for about `bytes` bytes: a spare one of a fitting size, or an empty one.
///
/// ```
/// pumice_filter::scratch::give(vec![7; 1000]);
/// let buffer = pumice_filter::scratch::take(900);
/// assert_eq!(buffer.len(), 1000, "what it contains is to be overwritten");
/// ```
pub fn take(bytes: usize) -> Vec<u8> {
    BYTES.with_borrow_mut(|spare| spare.take(bytes))
}

/// A buffer of `len` bytes without meaningful content, or an error if there is no memory for it. A
/// fresh one has some room to spare, so that the next may be a little longer.
///
/// ```
/// assert_eq!(pumice_filter::scratch::take_sized(1000)?.len(), 1000);
/// assert!(pumice_filter::scratch::take_sized(1 << 60).is_err());
/// # Ok::<(), pumice_filter::FilterError>(())
/// ```
pub fn take_sized(len: usize) -> Result<Vec<u8>, FilterError> {
    let mut buffer = take(len);
    if buffer.capacity() < len {
        buffer = zeroed("buffer", len.saturating_add(len / 4))?;
    }
    buffer.resize(len, 0);
    Ok(buffer)
}

/// Gives a buffer back to the thread's spares, or frees it if there are enough.
///
/// ```
/// pumice_filter::scratch::give(Vec::with_capacity(4096));
/// ```
pub fn give(buffer: Vec<u8>) {
    BYTES.with_borrow_mut(|spare| spare.give(buffer));
}

/// Makes room for `more` items at the end of a list, or fails: the number follows from the input,
/// so there may be no memory for them.
pub(crate) fn reserve<T>(
    filter: &'static str,
    list: &mut Vec<T>,
    more: usize,
) -> Result<(), FilterError> {
    list.try_reserve(more).map_err(|_| no_memory::<T>(filter, list.len().saturating_add(more)))
}

/// [`reserve`] in an empty list.
pub(crate) fn room<T>(
    filter: &'static str,
    list: &mut Vec<T>,
    items: usize,
) -> Result<(), FilterError> {
    list.clear();
    reserve(filter, list, items)
}

/// Replaces a buffer by a copy of `bytes`.
pub(crate) fn copy(
    filter: &'static str,
    bytes: &[u8],
    buffer: &mut Vec<u8>,
) -> Result<(), FilterError> {
    room(filter, buffer, bytes.len())?;
    buffer.extend_from_slice(bytes);
    Ok(())
}

/// Extends a filter's output to a length that its input states, for which there may be no memory.
pub(crate) fn grow(
    filter: &'static str,
    buffer: &mut Vec<u8>,
    len: usize,
) -> Result<(), FilterError> {
    let more = len.saturating_sub(buffer.len());
    buffer.try_reserve_exact(more).map_err(|_| no_memory::<u8>(filter, len))?;
    buffer.resize(len, 0);
    Ok(())
}

/// Brings a buffer that was taken to a length; its content is to be overwritten.
pub(crate) fn size(
    filter: &'static str,
    buffer: &mut Vec<u8>,
    len: usize,
) -> Result<(), FilterError> {
    if buffer.capacity() < len {
        // Old buffers make room first.
        *buffer = Vec::new();
        *buffer = zeroed(filter, len)?;
    }
    buffer.resize(len, 0);
    Ok(())
}

/// A list of zeros. The system has zeroed pages ready: quicker than filling them.
pub(crate) fn zeroed<T: bytemuck::Zeroable>(
    filter: &'static str,
    items: usize,
) -> Result<Vec<T>, FilterError> {
    // A number of bytes that no address reaches is refused here, too.
    bytemuck::try_zeroed_vec(items).map_err(|()| no_memory::<T>(filter, items))
}

fn no_memory<T>(filter: &'static str, items: usize) -> FilterError {
    FilterError::Memory { filter, bytes: items.saturating_mul(size_of::<T>()) }
}

/// [`take`] for lists of numbers.
pub(crate) fn take_words(words: usize) -> Vec<u64> {
    WORDS.with_borrow_mut(|spare| spare.take(words))
}

/// [`give`] for lists of numbers.
pub(crate) fn give_words(buffer: Vec<u64>) {
    WORDS.with_borrow_mut(|spare| spare.give(buffer));
}

/// [`take`] for lists of 16-bit numbers.
pub(crate) fn take_halves(numbers: usize) -> Vec<u16> {
    HALVES.with_borrow_mut(|spare| spare.take(numbers))
}

/// [`give`] for lists of 16-bit numbers.
pub(crate) fn give_halves(buffer: Vec<u16>) {
    HALVES.with_borrow_mut(|spare| spare.give(buffer));
}

/// [`take`] for lists of 32-bit numbers.
pub(crate) fn take_numbers(numbers: usize) -> Vec<u32> {
    NUMBERS.with_borrow_mut(|spare| spare.take(numbers))
}

/// [`give`] for lists of 32-bit numbers.
pub(crate) fn give_numbers(buffer: Vec<u32>) {
    NUMBERS.with_borrow_mut(|spare| spare.give(buffer));
}

/// The spare buffers of one kind, oldest first.
struct Spare<T>(Vec<Vec<T>>);

impl<T> Spare<T> {
    fn take(&mut self, room: usize) -> Vec<T> {
        // The smallest that is large enough, but not one that would mostly be wasted.
        let most = room.saturating_mul(2).saturating_add(4096);
        let fits = |buffer: &Vec<T>| (room..=most).contains(&buffer.capacity());
        let best = (0..self.0.len())
            .filter(|&at| fits(&self.0[at]))
            .min_by_key(|&at| self.0[at].capacity());
        best.map(|at| self.0.swap_remove(at)).unwrap_or_default()
    }

    fn give(&mut self, buffer: Vec<T>) {
        if buffer.capacity() == 0 || buffer.capacity() * size_of::<T>() > MOST_BYTES {
            return;
        }
        self.0.push(buffer);
        while self.0.len() > MOST_BUFFERS || self.held() > MOST_BYTES {
            self.0.remove(0);
        }
    }

    /// Bytes of all spare buffers.
    fn held(&self) -> usize {
        self.0.iter().map(|buffer| buffer.capacity() * size_of::<T>()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_few_buffers_and_few_bytes() {
        for _ in 0..10 {
            give(Vec::with_capacity(9 << 20));
        }
        BYTES.with_borrow(|spare| {
            assert!(spare.0.len() <= MOST_BUFFERS);
            assert!(spare.held() <= MOST_BYTES);
        });
        give(Vec::with_capacity(MOST_BYTES + 1));
        BYTES.with_borrow(|spare| assert!(spare.held() <= MOST_BYTES));
    }

    #[test]
    fn a_small_request_does_not_take_a_large_buffer() {
        give(Vec::with_capacity(1 << 20));
        assert!(take(100).capacity() < 1 << 20);
        assert!(take(1 << 19).capacity() >= 1 << 19);
    }
}
