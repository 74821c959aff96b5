//! The bytes of a trace: a signature, then accesses of one byte and the difference from the one
//! before.
//!
//! The first byte of an access:
//!
//! | bits | meaning |
//! |---|---|
//! | 0 | the chunk is changed |
//! | 1 | the chunk is complete |
//! | 2-3 | which chunk: 0 that of the access before, 1 its successor, 2 one that is new, 3 as told |
//! | 4 | the dataset follows; otherwise as last told for the chunk, for a new one as just before |
//! | 5 | the size follows; otherwise likewise |
//! | 6-7 | zero |
//!
//! Then come, each if told: the chunk as the zigzag-coded difference to the one before, the
//! dataset, the size. All are little-endian base-128 integers of at most ten bytes.

use std::io::{BufReader, BufWriter, Read, Write};

use super::{Access, TraceError};

/// The last byte is the version.
const SIGNATURE: [u8; 8] = *b"PUMTRAC\x01";

const WRITE: u8 = 1;
const DONE: u8 = 2;
const CHUNK: u8 = 3 << 2;
const SAME: u8 = 0;
const NEXT: u8 = 1 << 2;
const NEW: u8 = 2 << 2;
const TOLD: u8 = 3 << 2;
const DATASET: u8 = 1 << 4;
const SIZE: u8 = 1 << 5;
const ZERO: u8 = 3 << 6;

/// The state that encoder and decoder share.
#[derive(Debug, Default)]
struct Memory {
    /// Dataset and size of each chunk.
    chunks: Vec<(u64, u64)>,
    last: u64,
}

impl Memory {
    /// The expected dataset and size of a chunk that may be new.
    fn expected(&self, chunk: u64) -> (u64, u64) {
        let known = self.chunks.get(chunk as usize).or(self.chunks.get(self.last as usize));
        known.copied().unwrap_or_default()
    }

    fn note(&mut self, access: &Access) {
        let known = (access.dataset, access.bytes);
        match self.chunks.get_mut(access.chunk as usize) {
            Some(place) => *place = known,
            None => self.chunks.push(known),
        }
        self.last = access.chunk;
    }
}

/// Writes accesses, one at a time.
#[derive(Debug)]
pub struct TraceWriter<W: Write> {
    to: BufWriter<W>,
    memory: Memory,
}

impl<W: Write> TraceWriter<W> {
    /// Begins a trace.
    pub fn new(to: W) -> Result<Self, TraceError> {
        let mut to = BufWriter::with_capacity(1 << 16, to);
        to.write_all(&SIGNATURE)?;
        Ok(TraceWriter { to, memory: Memory::default() })
    }

    /// Adds an access. Chunks must be numbered in the order in which they come.
    pub fn write(&mut self, access: &Access) -> Result<(), TraceError> {
        let memory = &mut self.memory;
        let (dataset, bytes) = memory.expected(access.chunk);
        let new = access.chunk == memory.chunks.len() as u64;
        let step = access.chunk.wrapping_sub(memory.last) as i64;
        let mut first = match step {
            _ if new => NEW,
            0 => SAME,
            1 => NEXT,
            _ => TOLD,
        };
        first |= if access.write { WRITE } else { 0 } | if access.done { DONE } else { 0 };
        first |= if access.dataset != dataset { DATASET } else { 0 };
        first |= if access.bytes != bytes { SIZE } else { 0 };
        memory.note(access);
        let mut code = Code::new(first);
        if first & CHUNK == TOLD {
            code.push((step << 1 ^ step >> 63) as u64);
        }
        if first & DATASET != 0 {
            code.push(access.dataset);
        }
        if first & SIZE != 0 {
            code.push(access.bytes);
        }
        Ok(self.to.write_all(&code.bytes[..code.len])?)
    }

    /// Writes buffered accesses, and returns the writer.
    pub fn finish(self) -> Result<W, TraceError> {
        Ok(self.to.into_inner().map_err(|error| error.into_error())?)
    }
}

/// An access on its way to the file.
struct Code {
    bytes: [u8; 31],
    len: usize,
}

impl Code {
    fn new(first: u8) -> Self {
        let mut bytes = [0; 31];
        bytes[0] = first;
        Code { bytes, len: 1 }
    }

    fn push(&mut self, mut value: u64) {
        loop {
            let more = value > 0x7f;
            self.bytes[self.len] = value as u8 & 0x7f | u8::from(more) << 7;
            self.len += 1;
            value >>= 7;
            if !more {
                return;
            }
        }
    }
}

/// Reads accesses, one at a time; after an error there are no more.
#[derive(Debug)]
pub struct TraceReader<R: Read> {
    from: BufReader<R>,
    memory: Memory,
    number: u64,
    offset: u64,
    failed: bool,
}

impl<R: Read> TraceReader<R> {
    /// Reads the signature.
    pub fn new(from: R) -> Result<Self, TraceError> {
        let mut from = BufReader::with_capacity(1 << 16, from);
        let mut found = [0; 8];
        let mut filled = 0;
        while filled < found.len() {
            match from.read(&mut found[filled..])? {
                0 => break,
                more => filled += more,
            }
        }
        if found != SIGNATURE {
            return Err(TraceError::Signature { expected: SIGNATURE, found });
        }
        Ok(TraceReader { from, memory: Memory::default(), number: 0, offset: 8, failed: false })
    }

    fn byte(&mut self) -> Result<Option<u8>, TraceError> {
        let mut byte = [0];
        let count = self.from.read(&mut byte)?;
        self.offset += count as u64;
        Ok((count > 0).then_some(byte[0]))
    }

    fn integer(&mut self) -> Result<u64, &'static str> {
        let mut value = 0_u64;
        for place in 0..10 {
            let byte = match self.byte() {
                Ok(Some(byte)) => byte,
                Ok(None) => return Err("the bytes end within an access"),
                Err(_) => return Err("the bytes cannot be read"),
            };
            value |= u64::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err("an integer of more than ten bytes")
    }

    fn access(&mut self, first: u8) -> Result<Access, &'static str> {
        if first & ZERO != 0 {
            return Err("bits that must be zero are set");
        }
        let known = self.memory.chunks.len() as u64;
        let chunk = match first & CHUNK {
            SAME => self.memory.last,
            NEXT => self.memory.last.wrapping_add(1),
            NEW => known,
            _ => {
                let code = self.integer()?;
                let step = (code >> 1) as i64 ^ -((code & 1) as i64);
                self.memory.last.wrapping_add(step as u64)
            }
        };
        if chunk >= known + u64::from(first & CHUNK == NEW) {
            return Err("a chunk that did not occur before");
        }
        let (mut dataset, mut bytes) = self.memory.expected(chunk);
        if first & DATASET != 0 {
            dataset = self.integer()?;
        }
        if first & SIZE != 0 {
            bytes = self.integer()?;
        }
        let (write, done) = (first & WRITE != 0, first & DONE != 0);
        let access = Access { chunk, dataset, bytes, write, done };
        self.memory.note(&access);
        Ok(access)
    }
}

impl<R: Read> Iterator for TraceReader<R> {
    type Item = Result<Access, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let (number, offset) = (self.number, self.offset);
        let access = match self.byte() {
            Ok(None) => return None,
            Ok(Some(first)) => self.access(first).map_err(|problem| TraceError::Damaged {
                number,
                offset,
                problem,
            }),
            Err(error) => Err(error),
        };
        self.number += 1;
        self.failed = access.is_err();
        Some(access)
    }
}
