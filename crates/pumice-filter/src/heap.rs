//! The heap filter: the objects of a structured chunk's heap, as lengths and bytes.
//!
//! The plain side is the heap section of a structured chunk with variable-length data, its checksum
//! included: sixteen bytes and padding around each object, which a compressor finds between any two
//! strings. The encoded side has the bytes of all objects one after another, then their lengths; `docs/format/heap-filter.md` has every byte.
//!
//! Any bytes go through and come back. Bytes that are not *canonical*, that is, not Pumice's form
//! of a list of objects, are carried verbatim.
//! [`Pipeline::encode_heap`](crate::Pipeline::encode_heap) and
//! [`Pipeline::decode_heap`](crate::Pipeline::decode_heap) go between objects and the encoded side
//! without the plain form; both ways give the same bytes, and both verify a checksum.

mod plain;

use crate::{DatasetFacts, Filter, FilterError, planes, scratch};
use pumice_bytes::Writer;

pub(crate) use plain::{check_fits, image, plain_length};

/// The filter's id. HDF5 leaves 256 to 511 to applications; this one is in no known file.
pub const ID: u16 = 303;

/// The filter's name in files and errors.
pub const NAME: &str = "pumice-heap";

/// The width of lengths in most files, for which there is no parameter.
pub(crate) const USUAL_WIDTH: usize = 8;

/// The last byte of bytes that are carried verbatim.
const VERBATIM: u8 = 0;
/// The last byte of a list of objects.
const COMPACT: u8 = 1;

/// The objects of a heap, in the order in which they are numbered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeapObjects {
    /// The length of each.
    pub lengths: Vec<u32>,
    /// Their bytes, one after another.
    pub bytes: Vec<u8>,
}

/// Replaces `out` by the encoded side of objects: `lengths` of them, one after another in `bytes`.
pub(crate) fn encode_objects(
    lengths: &[u32],
    bytes: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), FilterError> {
    // Bytes come first, so that a reader has them where it needs them.
    planes::put(NAME, bytes, lengths, out)?;
    out.put_u8(COMPACT);
    Ok(())
}

/// The decoded contents of the encoded side.
pub(crate) enum Decoded {
    Objects(HeapObjects),
    /// The plain form, carried verbatim.
    Plain(Vec<u8>),
}

/// Takes the encoded side apart.
pub(crate) fn decode_objects(mut input: Vec<u8>) -> Result<Decoded, FilterError> {
    match input.pop() {
        Some(COMPACT) => {}
        Some(VERBATIM) => return Ok(Decoded::Plain(input)),
        Some(other) => return Err(corrupt("mode 0 or 1", other)),
        None => return Err(corrupt("a mode", "no bytes")),
    }
    let (bytes, lengths) = planes::split(NAME, "a list of objects", &input)?;
    let (found, total) =
        (bytes.len(), lengths.iter().map(|&length| u64::from(length)).sum::<u64>());
    if total != found as u64 {
        return Err(corrupt(format!("{total} byte(s) of objects"), found));
    }
    input.truncate(found);
    Ok(Decoded::Objects(HeapObjects { lengths, bytes: input }))
}

/// The width of lengths in the plain form, which is the filter's only parameter.
pub(crate) fn width_of(parameters: &[u32]) -> Result<usize, FilterError> {
    match parameters {
        [] => Ok(USUAL_WIDTH),
        &[width @ (2 | 4 | 8), ..] => Ok(width as usize),
        other => Err(FilterError::Parameters {
            filter: NAME,
            expected: "none, or lengths of 2, 4 or 8 bytes",
            found: format!("{other:?}"),
        }),
    }
}

pub(crate) struct Heap;

impl Filter for Heap {
    fn id(&self) -> u16 {
        ID
    }

    fn name(&self) -> &'static str {
        NAME
    }

    fn encode(
        &self,
        parameters: &[u32],
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        if let Some(HeapObjects { lengths, bytes }) = plain::objects(input, width_of(parameters)?)?
        {
            return encode_objects(&lengths, &bytes, out);
        }
        scratch::room(NAME, out, input.len() + 1)?;
        out.extend_from_slice(input);
        out.push(VERBATIM);
        Ok(())
    }

    fn decode(
        &self,
        parameters: &[u32],
        input: &[u8],
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        let width = width_of(parameters)?;
        let mut encoded = Vec::new();
        scratch::copy(NAME, input, &mut encoded)?;
        match decode_objects(encoded)? {
            Decoded::Plain(plain) if plain.len() <= limit => *out = plain,
            Decoded::Plain(plain) => return Err(FilterError::too_large(NAME, limit, plain.len())),
            Decoded::Objects(HeapObjects { lengths, bytes }) => {
                let length = plain_length(&lengths, width);
                if length > limit as u64 {
                    return Err(FilterError::too_large(NAME, limit, length));
                }
                check_fits(length, width)
                    .map_err(|_| corrupt(format!("lengths of {width} bytes"), length))?;
                *out = image(&lengths, &bytes, width)?;
            }
        }
        Ok(())
    }

    fn encoded_bound(&self, len: usize) -> usize {
        // A list of objects is shorter than their plain form.
        len.saturating_add(1)
    }

    fn parameters_for(
        &self,
        _parameters: &[u32],
        dataset: &DatasetFacts<'_>,
    ) -> Result<Vec<u32>, FilterError> {
        Ok(match usize::from(dataset.length_width) {
            USUAL_WIDTH => Vec::new(),
            width => vec![width as u32],
        })
    }

    fn is_gain(&self, input: &[u8], encoded: &[u8]) -> bool {
        encoded.len() < input.len()
    }
}

fn corrupt(
    expected: impl Into<std::borrow::Cow<'static, str>>,
    found: impl std::fmt::Display,
) -> FilterError {
    FilterError::corrupt(NAME, expected, found)
}
