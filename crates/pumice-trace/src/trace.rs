//! Traces: which chunks were used, in which order and how, for [`simulate`](crate::simulate).
//!
//! A [`Trace`] is a list of [`Access`]es in memory; [`TraceWriter`] and [`TraceReader`] turn one
//! into bytes and back, one access at a time. A loop over chunks takes one byte per access. The
//! bytes are described in `docs/cache-trace.md`; `trace/coding.rs` writes and reads them.
//!
//! ```
//! use pumice_trace::trace::{Access, Trace};
//! let mut trace = Trace::new();
//! for chunk in [100, 200, 100] {
//!     trace.push(chunk, Access { bytes: 4096, ..Access::default() });
//! }
//! assert_eq!((trace.len(), trace.chunks()), (3, 2));
//!
//! let mut file = Vec::new();
//! trace.write(&mut file)?;
//! assert_eq!(Trace::read(file.as_slice())?, trace);
//! # Ok::<(), pumice_trace::trace::TraceError>(())
//! ```

mod coding;
mod recorder;

pub use coding::{TraceReader, TraceWriter};
pub use recorder::{start, stop};

use std::io::{Read, Write};

use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// One use of a chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// The chunk: numbers count from 0 in the order in which chunks first occur.
    pub chunk: u64,
    /// The dataset to which it belongs.
    pub dataset: u64,
    /// The memory that the chunk takes.
    pub bytes: u64,
    /// Whether the access changes the chunk.
    pub write: bool,
    /// Whether this access completes reading, or writing, all of the chunk.
    pub done: bool,
}

/// The fault of an invalid trace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The bytes cannot be read or written.
    #[error("cache trace: {0}")]
    Io(#[from] std::io::Error),
    /// The bytes do not begin as a trace does.
    #[error("not a cache trace: expected it to begin with {expected:?}, found {found:?}")]
    Signature {
        /// The signature of a trace.
        expected: [u8; 8],
        /// The bytes in its place.
        found: [u8; 8],
    },
    /// An access is damaged.
    #[error("cache trace, access {number}, byte {offset}: {problem}")]
    Damaged {
        /// The number of accesses before.
        number: u64,
        /// Its offset in the file.
        offset: u64,
        /// The fault.
        problem: &'static str,
    },
}

/// A list of accesses.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    accesses: Vec<Access>,
    numbers: Numbers,
}

impl PartialEq for Trace {
    fn eq(&self, other: &Self) -> bool {
        self.accesses == other.accesses
    }
}

impl Trace {
    /// An empty list.
    pub fn new() -> Self {
        Trace::default()
    }

    /// Adds an access to the chunk that `identity` names; [`Access::chunk`] is filled in.
    pub fn push(&mut self, identity: u64, access: Access) {
        let (chunk, _) = self.numbers.number(identity);
        self.accesses.push(Access { chunk, ..access });
    }

    /// All accesses.
    pub fn accesses(&self) -> &[Access] {
        &self.accesses
    }

    /// The number of accesses.
    pub fn len(&self) -> usize {
        self.accesses.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.accesses.is_empty()
    }

    /// The number of chunks.
    pub fn chunks(&self) -> usize {
        self.numbers.0.len()
    }

    /// Writes all accesses.
    pub fn write(&self, to: impl Write) -> Result<(), TraceError> {
        let mut writer = TraceWriter::new(to)?;
        for access in &self.accesses {
            writer.write(access)?;
        }
        writer.finish()?;
        Ok(())
    }

    /// Reads all accesses.
    pub fn read(from: impl Read) -> Result<Self, TraceError> {
        let mut trace = Trace::new();
        for access in TraceReader::new(from)? {
            let access = access?;
            trace.push(access.chunk, access);
        }
        Ok(trace)
    }
}

/// Numbers chunks in the order in which they come.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers(HashMap<u64, u64, FixedState>);

impl Numbers {
    /// The number of a chunk, and whether it is new.
    pub(crate) fn number(&mut self, identity: u64) -> (u64, bool) {
        let next = self.0.len() as u64;
        let number = *self.0.entry(identity).or_insert(next);
        (number, number == next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(accesses: u64) -> Trace {
        let mut trace = Trace::new();
        let mut seed = 7_u64;
        for _ in 0..accesses {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let chunk = (seed >> 33) % 300;
            let access = Access {
                dataset: chunk % 7 + (seed >> 60 & 1) * 90_000,
                bytes: 1 << (seed >> 50 & 63),
                write: seed >> 40 & 1 == 1,
                done: seed >> 41 & 3 == 3,
                ..Access::default()
            };
            trace.push(chunk, access);
        }
        trace
    }

    #[test]
    fn what_is_written_is_read() {
        let trace = sample(5000);
        let mut bytes = Vec::new();
        trace.write(&mut bytes).unwrap();
        assert!(Trace::read(bytes.as_slice()).unwrap() == trace);
    }

    #[test]
    fn a_loop_takes_a_byte_an_access() {
        let mut trace = Trace::new();
        (0..10_000).for_each(|i| {
            trace.push(i % 100, Access { bytes: 1 << 20, dataset: 3, ..Access::default() });
        });
        let mut bytes = Vec::new();
        trace.write(&mut bytes).unwrap();
        assert!(bytes.len() < 10_300, "{}", bytes.len());
    }

    #[test]
    fn a_trace_that_ends_early_or_holds_anything_is_read_or_refused_without_panic() {
        let mut bytes = Vec::new();
        sample(300).write(&mut bytes).unwrap();
        for end in 0..bytes.len() {
            let _ = Trace::read(&bytes[..end]);
        }
        for (i, change) in (0..bytes.len()).zip((1_u8..=255).cycle()) {
            let mut damaged = bytes.clone();
            damaged[i] ^= change;
            let _ = Trace::read(damaged.as_slice());
        }
        assert!(matches!(Trace::read(&b"HDF"[..]), Err(TraceError::Signature { .. })));
        bytes.push(0x80);
        let error = Trace::read(bytes.as_slice()).unwrap_err().to_string();
        assert!(error.contains("access 300"), "{error}");
    }
}
