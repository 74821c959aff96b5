//! The metalayer "b2nd": elements that are an array, divided into chunks and those into blocks.
//!
//! ```text
//! C6 length u32 | 97 | form | rank | 90+rank, D3 axis i64 ... | 90+rank, D2 axis of a chunk i32 ... | the same of a block
//! ```
//!
//! Chunks follow each other as the array's elements would, blocks as those of a chunk, elements as
//! those of a block. Chunks are padded to whole blocks, and blocks are always whole; padding
//! outside of the array is left out here.

use super::chunk::{Chunk, Work};
use super::frame::{Frame, Place};
use super::{NAME, corrupt};
use crate::{FilterError, scratch};
use pumice_bytes::Reader;

/// The most axes that a short list of msgpack has.
const MOST_AXES: u8 = 15;
/// The most padding that blocks may have, in bytes.
const PADDING: usize = 1 << 20;

/// An array; all lists are as long.
pub(super) struct Array {
    shape: Vec<usize>,
    chunk: Vec<usize>,
    block: Vec<usize>,
    element: usize,
}

impl Array {
    /// Reads the metalayer of elements of so many bytes.
    pub(super) fn parse(content: &[u8], element: usize) -> Result<Self, FilterError> {
        let cut = |_| corrupt("a whole metalayer", content.len());
        let mut reader = Reader::new(NAME, 0, content);
        reader.skip(5).map_err(cut)?;
        let [list, _form, rank] = reader.array().map_err(cut)?;
        if list & 0xF0 != 0x90 || rank == 0 || rank > MOST_AXES {
            return Err(corrupt("an array of 1 to 15 axes", format!("{list:#04x}, {rank}")));
        }
        let mut axes = |bytes: usize| -> Result<Vec<usize>, FilterError> {
            reader.skip(1).map_err(cut)?;
            let axis = |_| {
                reader.skip(1).map_err(cut)?;
                let field = reader.take(bytes).map_err(cut)?;
                let axis = field.iter().fold(0u64, |axis, &byte| axis << 8 | u64::from(byte));
                usize::try_from(axis)
                    .ok()
                    .filter(|axis| *axis >> 62 == 0)
                    .ok_or_else(|| corrupt("a shorter axis", axis))
            };
            (0..rank).map(axis).collect()
        };
        let (shape, chunk, block) = (axes(8)?, axes(4)?, axes(4)?);
        let fits = chunk.iter().zip(&block).all(|(chunk, block)| (1..=*chunk).contains(block));
        if !fits {
            return Err(corrupt("blocks inside of chunks", format!("{block:?} in {chunk:?}")));
        }
        Ok(Self { shape, chunk, block, element })
    }

    /// Bytes of so many elements along each axis.
    fn bytes(&self, axes: &[usize]) -> Option<usize> {
        axes.iter().try_fold(self.element, |bytes, axis| bytes.checked_mul(*axis))
    }

    /// Replaces `out` by the elements of the array.
    pub(super) fn decode(
        &self,
        frame: &Frame<'_>,
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        let too_large =
            || FilterError::too_large(NAME, limit, format!("an array of {:?}", self.shape));
        let length =
            self.bytes(&self.shape).filter(|length| *length <= limit).ok_or_else(too_large)?;
        let block =
            self.bytes(&self.block).filter(|block| *block <= length.saturating_add(PADDING));
        let block = block.ok_or_else(|| {
            corrupt("blocks no larger than the array", format!("{:?}", self.block))
        })?;
        out.clear();
        scratch::grow(NAME, out, length)?;
        if length == 0 {
            return Ok(());
        }
        let places = frame.places(limit)?;
        let chunks: Vec<usize> =
            self.shape.iter().zip(&self.chunk).map(|(all, one)| all.div_ceil(*one)).collect();
        let count = chunks.iter().try_fold(1usize, |count, axis| count.checked_mul(*axis));
        if count != Some(places.len()) {
            return Err(corrupt(format!("{count:?} chunks"), places.len()));
        }
        let mut work = Decoding {
            array: self,
            block: vec_of(block)?,
            first: Vec::new(),
            work: Work::default(),
        };
        let mut chunk = vec![0; chunks.len()];
        for place in &places {
            work.decode_chunk(frame, place, &chunk, out)?;
            advance(&mut chunk, &chunks);
        }
        Ok(())
    }

    /// The part of the block at `block` of the chunk at `chunk` that is inside of the array: its
    /// first element and its length along each axis.
    fn inside(&self, chunk: &[usize], block: &[usize]) -> Option<(Vec<usize>, Vec<usize>)> {
        let axes = 0..self.shape.len();
        let start = |axis: usize| chunk[axis] * self.chunk[axis] + block[axis] * self.block[axis];
        let starts: Vec<usize> = axes.clone().map(start).collect();
        let count = |axis: usize| {
            let left = self.shape[axis].checked_sub(starts[axis])?;
            let here = self.chunk[axis].checked_sub(block[axis] * self.block[axis])?;
            Some(left.min(here).min(self.block[axis])).filter(|count| *count > 0)
        };
        let counts = axes.map(count).collect::<Option<_>>()?;
        Some((starts, counts))
    }
}

fn vec_of(bytes: usize) -> Result<Vec<u8>, FilterError> {
    scratch::zeroed(NAME, bytes)
}

/// Moves a position on, last axis first.
fn advance(position: &mut [usize], shape: &[usize]) {
    for (at, axis) in position.iter_mut().zip(shape).rev() {
        *at += 1;
        if *at < *axis {
            return;
        }
        *at = 0;
    }
}

/// An array that is being decoded.
struct Decoding<'a> {
    array: &'a Array,
    block: Vec<u8>,
    /// The content of a chunk's first block, if others are differences from it.
    first: Vec<u8>,
    work: Work,
}

impl Decoding<'_> {
    /// Puts the elements of a chunk to their places in `out`.
    fn decode_chunk(
        &mut self,
        frame: &Frame<'_>,
        place: &Place<'_>,
        at: &[usize],
        out: &mut [u8],
    ) -> Result<(), FilterError> {
        let array = self.array;
        let stored = match place {
            Place::At(bytes) => Some(Chunk::parse(bytes)?),
            Place::Special(special) => {
                special.fill(frame.element, &mut self.block)?;
                None
            }
        };
        let all: Vec<usize> =
            array.chunk.iter().zip(&array.block).map(|(all, one)| all.div_ceil(*one)).collect();
        if let Some(chunk) = &stored {
            let blocks =
                all.iter().try_fold(self.block.len(), |bytes, axis| bytes.checked_mul(*axis));
            if chunk.block != self.block.len() || blocks != Some(chunk.length) {
                let found = format!("{} in blocks of {}", chunk.length, chunk.block);
                return Err(corrupt(
                    format!("a chunk of {blocks:?} bytes in blocks of {}", self.block.len()),
                    found,
                ));
            }
        }
        // Only blocks that have something of the array.
        let left =
            |axis: usize| (array.shape[axis] - at[axis] * array.chunk[axis]).min(array.chunk[axis]);
        let some: Vec<usize> =
            (0..all.len()).map(|axis| left(axis).div_ceil(array.block[axis])).collect();
        let mut block = vec![0; all.len()];
        for _ in 0..some.iter().product() {
            if let Some(chunk) = &stored {
                let number =
                    all.iter().zip(&block).fold(0, |number, (axis, at)| number * axis + at);
                self.decode_block(chunk, number)?;
            }
            if let Some((starts, counts)) = array.inside(at, &block) {
                self.place(&starts, &counts, out);
            }
            advance(&mut block, &some);
        }
        Ok(())
    }

    fn decode_block(&mut self, chunk: &Chunk<'_>, number: usize) -> Result<(), FilterError> {
        chunk.decode_block(
            number,
            if number == 0 { &[] } else { &self.first },
            &mut self.block,
            &mut self.work,
        )?;
        if number == 0 && chunk.has_delta() {
            scratch::copy(NAME, &self.block, &mut self.first)?;
        }
        Ok(())
    }

    /// Copies the elements of a block that are inside of the array, a row at a time.
    fn place(&self, starts: &[usize], counts: &[usize], out: &mut [u8]) {
        let array = self.array;
        let outer = counts.len() - 1;
        let row = counts[outer] * array.element;
        let mut at = vec![0; outer];
        for _ in 0..counts[..outer].iter().product() {
            let (mut from, mut to) = (0, 0);
            for axis in 0..outer {
                from = from * array.block[axis] + at[axis];
                to = to * array.shape[axis] + starts[axis] + at[axis];
            }
            let from = from * array.block[outer] * array.element;
            let to = (to * array.shape[outer] + starts[outer]) * array.element;
            out[to..to + row].copy_from_slice(&self.block[from..from + row]);
            advance(&mut at, &counts[..outer]);
        }
    }
}
