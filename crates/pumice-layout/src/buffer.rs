//! The caller's memory, filled by several worker threads at once.
//!
//! All `unsafe` code of the engine is here and where these functions are called. The reason: a read is
//! split by chunk, and chunks are decoded and placed on all threads at the same time. The places of
//! different chunks interleave in the buffer (every chunk of a two-dimensional read touches many
//! rows), so no split into sub-slices exists. A buffer per chunk and a copy afterwards would do
//! without it, and would eat up what the second thread gains: reading 64 MiB through shuffle and
//! deflate took 83 ms with one thread and 49 ms with two, and one more copy of the result 41 ms (two
//! cores of a shared EPYC, best of five, `cargo run --release -p pumice --example second_thread`).

use pumice_medium::{Result, reserved, zeroed};
use std::marker::PhantomData;

/// Room for a result of which every element will be written: nothing is put there before.
///
/// Zeroing 48 MB took 6 of the 30 ms in which 4 million cells were read into three columns: the calling
/// thread did it alone, before any chunk was read.
pub struct Room<T> {
    memory: Vec<T>,
    count: usize,
}

impl<T: bytemuck::Pod> Room<T> {
    /// Room for `count` elements, or an error where there is not enough memory.
    pub fn new(count: usize) -> Result<Self> {
        Ok(Self { memory: reserved(count)?, count })
    }

    /// As [`new`](Self::new), in the memory of a list if that is enough.
    pub fn reusing(mut memory: Vec<T>, count: usize) -> Result<Self> {
        if memory.capacity() < count {
            // Not both at once.
            drop(memory);
            return Self::new(count);
        }
        memory.clear();
        Ok(Self { memory, count })
    }

    /// Room for `count` zeros, or an error where there is not enough memory.
    pub fn zeroed(count: usize) -> Result<Self> {
        Ok(Self { memory: zeroed(count)?, count })
    }

    /// How many elements there is room for.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there is no room.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The room as something to write to.
    pub fn output(&mut self) -> Output<'_> {
        let (start, len) = (self.memory.as_mut_ptr().cast(), self.count * size_of::<T>());
        Output { start, len, zeroed: false, written: false, buffer: PhantomData }
    }

    /// The places of the elements.
    ///
    /// # Safety
    /// What is in them means nothing: each place is written before it is read.
    pub unsafe fn places(&mut self) -> &mut [T] {
        // SAFETY: `new` has reserved as much, and the room is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.memory.as_mut_ptr(), self.count) }
    }

    /// The elements.
    ///
    /// # Safety
    /// Every byte of the room must have been written, or have been zeroed.
    pub unsafe fn into_vec(mut self) -> Vec<T> {
        // SAFETY: `new` has reserved as much, and the caller promises that it was written; any bytes
        // are a value of a type that is `Pod`.
        unsafe { self.memory.set_len(self.count) };
        self.memory
    }
}

/// A byte buffer that threads write to side by side.
pub struct Output<'a> {
    start: *mut u8,
    len: usize,
    zeroed: bool,
    /// Whether every byte has been written before: not so in a [`Room`].
    written: bool,
    buffer: PhantomData<&'a mut [u8]>,
}

// SAFETY: `Output` is a `&mut [u8]` whose parts may be written from several threads; `slice`
// demands that parts in use at the same time do not overlap, which is what makes that sound.
unsafe impl Send for Output<'_> {}
// SAFETY: as above; shared references give access only through the unsafe function below.
unsafe impl Sync for Output<'_> {}

impl<'a> Output<'a> {
    /// Takes the buffer for the time of one request.
    pub fn new(buffer: &'a mut [u8]) -> Self {
        let (start, len) = (buffer.as_mut_ptr(), buffer.len());
        Self { start, len, zeroed: false, written: true, buffer: PhantomData }
    }

    /// As [`new`](Self::new), for a buffer that is known to be all zeros, so that a fill value of
    /// zero need not be written.
    pub fn zeroed(buffer: &'a mut [u8]) -> Self {
        Self { zeroed: true, ..Self::new(buffer) }
    }

    /// Whether the buffer began as all zeros.
    pub fn is_zeroed(&self) -> bool {
        self.zeroed
    }

    /// How many bytes there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Copies bytes to the place from `start` on.
    ///
    /// # Panics
    /// If they do not lie in the buffer.
    ///
    /// # Safety
    /// As for [`slice`](Self::slice).
    #[inline]
    pub unsafe fn write(&self, start: usize, bytes: &[u8]) {
        self.check(start, bytes.len());
        // SAFETY: the range lies inside the buffer, which nobody else uses there now, so `bytes` are not
        // in it either.
        unsafe { self.start.add(start).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }

    /// The bytes from `start` on, `len` of them, which have been written before; what they are means nothing. For
    /// code that is safe and could look.
    ///
    /// # Panics
    /// If they do not lie in the buffer.
    ///
    /// # Safety
    /// As for [`slice`](Self::slice).
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn written(&self, start: usize, len: usize) -> &mut [u8] {
        self.check(start, len);
        if !self.written {
            // SAFETY: the range lies inside the buffer, which nobody else uses there now.
            unsafe { self.start.add(start).write_bytes(0, len) };
        }
        // SAFETY: the caller's promise.
        unsafe { self.slice(start, len) }
    }

    #[inline]
    fn check(&self, start: usize, len: usize) {
        if start.checked_add(len).is_none_or(|end| end > self.len) {
            self.refuse(start, len);
        }
    }

    #[cold]
    fn refuse(&self, start: usize, len: usize) -> ! {
        panic!("{start}+{len} of {} bytes", self.len)
    }

    /// The bytes from `start` on, `len` of them. They are to be written; what is in them before means
    /// nothing, and may never have been written ([`Room`]): they must not be looked at.
    ///
    /// # Panics
    /// If they do not lie in the buffer.
    ///
    /// # Safety
    /// No other slice of this buffer that is alive at the same time, on this or any other thread,
    /// may overlap this one. The engine's requests meet this because a `Plan` gives every place of
    /// the buffer to exactly one segment of one chunk, and a chunk is scattered by one thread.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn slice(&self, start: usize, len: usize) -> &mut [u8] {
        self.check(start, len);
        // SAFETY: the range lies inside the buffer that `new` borrowed for 'a, and the caller
        // guarantees that nobody else uses these bytes now.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(start), len) }
    }
}

#[cfg(test)]
mod tests {
    use super::Output;

    #[test]
    fn threads_fill_disjoint_places() {
        let mut bytes = vec![0u8; 64];
        let output = Output::zeroed(&mut bytes);
        std::thread::scope(|scope| {
            for thread in 0..4usize {
                let output = &output;
                scope.spawn(move || {
                    for i in 0..16 {
                        // SAFETY: each thread takes the bytes that are its number modulo four.
                        let place = unsafe { output.slice(i * 4 + thread, 1) };
                        place[0] = thread as u8;
                    }
                });
            }
        });
        assert!(bytes.iter().enumerate().all(|(i, &byte)| byte as usize == i % 4));
    }

    #[test]
    #[should_panic(expected = "of 8 bytes")]
    fn places_outside_the_buffer_are_refused() {
        let mut bytes = [0u8; 8];
        let output = Output::new(&mut bytes);
        // SAFETY: the only slice; it is refused before it is made.
        let _ = unsafe { output.slice(4, 5) };
    }
}
