//! The Blosc2 filter (id 32026): frames of chunks of blocks, as PyTables, pandas and hdf5plugin write them.
//!
//! A chunk of a dataset is stored as one of Blosc2's contiguous frames ([`frame`]): a header,
//! chunks of Blosc2's own ([`chunk`]), an index of them, a trailer. With a metalayer "b2nd"
//! (formerly "caterva"), the elements are an array that is divided twice, into chunks and those
//! into blocks ([`array`]); chunks of two and more axes are stored so. Other elements are one chunk
//! after another.
//!
//! Frames are read, with the codecs BloscLZ, LZ4, zlib and Zstandard, and the filters that Blosc2 has built in. They are
//! written by a plugin alone (feature `plugins`).
//!
//! Parameters as the plugin stores them: its revision, bytes of a block or 0, bytes of an element and of a chunk, level,
//! filter, codec; then rank and shape of a chunk, if there are two axes or more. None of them is needed here.

mod array;
mod chunk;
mod frame;

use crate::read_only::ReadOnly;
use crate::{FilterError, registry, scratch};
use chunk::{Chunk, Work};
use frame::{Frame, Place};

const NAME: &str = "blosc2";

pub(crate) static BLOSC2: ReadOnly = ReadOnly { id: registry::BLOSC2, name: NAME, decode };

/// Replaces `out` by the elements of a frame.
fn decode(
    _parameters: &[u32],
    input: &[u8],
    limit: usize,
    out: &mut Vec<u8>,
) -> Result<(), FilterError> {
    let frame = Frame::parse(input)?;
    match frame.array()? {
        Some(array) => array.decode(&frame, limit, out),
        None => decode_plain(&frame, limit, out),
    }
}

/// Chunks one after another.
fn decode_plain(frame: &Frame<'_>, limit: usize, out: &mut Vec<u8>) -> Result<(), FilterError> {
    let Some(length) = usize::try_from(frame.length).ok().filter(|length| *length <= limit) else {
        return Err(FilterError::too_large(NAME, limit, frame.length));
    };
    let places = frame.places(limit)?;
    out.clear();
    scratch::grow(NAME, out, length)?;
    let mut work = Work::default();
    for (place, part) in places.iter().zip(out.chunks_mut(frame.chunk_length.max(1))) {
        match place {
            Place::At(bytes) => Chunk::parse(bytes)?.decode(part, &mut work)?,
            Place::Special(special) => special.fill(frame.element, part)?,
        }
    }
    Ok(())
}

fn corrupt(
    expected: impl Into<std::borrow::Cow<'static, str>>,
    found: impl std::fmt::Display,
) -> FilterError {
    FilterError::corrupt(NAME, expected, found)
}

/// The error for a feature that HDF5 files do not need, with the way to read it all the same.
fn unknown(what: impl std::fmt::Display) -> FilterError {
    let found = format!(
        "{what}: rewrite the dataset where Blosc2's library is installed, for example with hdf5plugin and \
         `h5repack -f NONE old.h5 new.h5`"
    );
    corrupt("what Pumice knows of Blosc2", found)
}
