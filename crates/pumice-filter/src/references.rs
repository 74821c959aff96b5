//! The references filter: references to the objects of a structured chunk's heap, as their counts.
//!
//! The plain side is the references section of a structured chunk whose elements are strings or
//! sequences and nothing else, its checksum included: sixteen bytes an element, of which only the
//! count says something where objects are numbered in the order of the elements. The encoded side has
//! the counts; `docs/format/references-filter.md` has every byte.
//!
//! Any bytes go through and come back. Bytes that are not *canonical*, that is, not Pumice's form
//! of a list of counts, are carried verbatim. [`Pipeline::encode_references`] and
//! [`Pipeline::decode_references`] go between counts and the encoded side without the plain form;
//! both ways give the same bytes, and both verify a checksum.

use crate::section::EncodedCells;
use crate::{Filter, FilterError, Pipeline, planes, scratch};
use pumice_bytes::{Reader, Writer, lookup3};
use std::borrow::Cow;

/// The filter's id. HDF5 leaves 256 to 511 to applications; this one is in no known file.
pub const ID: u16 = 304;

/// The filter's name in files and errors.
pub const NAME: &str = "pumice-references";

/// Bytes of a reference that has a compact form: count, slot, index, and eight zeros.
pub const SIZE: usize = 16;

/// The last byte of bytes that are carried verbatim.
const VERBATIM: u8 = 0;
/// The last byte of a list of counts.
const COMPACT: u8 = 1;
/// Objects of a full collection.
const FULL: u32 = u16::MAX as u32;
/// Bytes of the checksum.
const CHECKSUM: usize = 4;

/// The contents of a references section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReferencesSection {
    /// For each element, one more than the count of its reference, or 0 for null. The others lead
    /// to the objects of the heap in their order.
    Counts(Vec<u32>),
    /// The section without its checksum, which was right.
    Plain(Vec<u8>),
}

impl Pipeline {
    /// Encodes references to objects in their order as a references section, with its checksum, and
    /// filters it: for each, one more than its count, or 0 for null.
    ///
    /// ```
    /// use pumice_filter::references::ReferencesSection;
    /// use pumice_filter::{FilterSpec, Pipeline};
    ///
    /// let pipeline = Pipeline::new(vec![FilterSpec::references(), FilterSpec::zstd(3)])?;
    /// let stored = pipeline.encode_references(&[4, 0, 1])?;
    /// assert_eq!(stored.unfiltered, 3 * 16 + 4);
    /// let back = pipeline.decode_references(&stored.bytes, stored.mask, stored.unfiltered)?;
    /// assert_eq!(back, ReferencesSection::Counts(vec![4, 0, 1]));
    /// # Ok::<(), pumice_filter::FilterError>(())
    /// ```
    pub fn encode_references(&self, counts: &[u32]) -> Result<EncodedCells, FilterError> {
        let unfiltered = (counts.len() * SIZE + CHECKSUM) as u64;
        let (bytes, mask) = if self.begins_with_references() && !counts.is_empty() {
            let mut encoded = scratch::take(counts.len() + 32);
            encode_counts(counts, &mut encoded)?;
            self.encode_from(1, Cow::Owned(encoded))?
        } else {
            self.encode(plain_form(counts)?)?
        };
        Ok(EncodedCells { bytes, unfiltered, mask })
    }

    /// Undoes [`encode_references`](Self::encode_references). `unfiltered` is the section's length
    /// before filters as the index has it.
    pub fn decode_references(
        &self,
        input: &[u8],
        mask: u32,
        unfiltered: u64,
    ) -> Result<ReferencesSection, FilterError> {
        let limit = usize::try_from(unfiltered)
            .map_err(|_| FilterError::too_large(NAME, usize::MAX, unfiltered))?;
        let mut plain = if self.begins_with_references() && mask & 1 == 0 {
            let bound = References.encoded_bound(limit);
            let encoded = self.decode_until(1, Cow::Borrowed(input), mask, bound)?;
            match decode_counts(encoded)? {
                ReferencesSection::Counts(counts) => {
                    let length = (counts.len() * SIZE + CHECKSUM) as u64;
                    return match length == unfiltered {
                        true => Ok(ReferencesSection::Counts(counts)),
                        false => Err(wrong_length(unfiltered, length)),
                    };
                }
                ReferencesSection::Plain(plain) => plain,
            }
        } else {
            self.decode_until(0, Cow::Borrowed(input), mask, limit)?
        };
        if plain.len() != limit || limit < CHECKSUM {
            return Err(wrong_length(unfiltered, plain.len() as u64));
        }
        let mut reader = Reader::new("references section", 0, &plain);
        let checked = reader.skip(limit - CHECKSUM).and_then(|()| reader.checksum());
        checked.map_err(|error| corrupt(error.expected, error.found))?;
        plain.truncate(limit - CHECKSUM);
        Ok(ReferencesSection::Plain(plain))
    }

    /// Whether the references filter comes first.
    pub fn begins_with_references(&self) -> bool {
        self.specs().first().is_some_and(|spec| spec.id == ID)
    }
}

fn encode_counts(counts: &[u32], out: &mut Vec<u8>) -> Result<(), FilterError> {
    planes::put(NAME, &[], counts, out)?;
    out.put_u8(COMPACT);
    Ok(())
}

/// The contents of the encoded side; the plain form, if carried verbatim, with its checksum.
fn decode_counts(mut input: Vec<u8>) -> Result<ReferencesSection, FilterError> {
    match input.pop() {
        Some(COMPACT) => {}
        Some(VERBATIM) => return Ok(ReferencesSection::Plain(input)),
        Some(other) => return Err(corrupt("mode 0 or 1", other)),
        None => return Err(corrupt("a mode", "no bytes")),
    }
    match planes::split(NAME, "a list of counts", &input)? {
        ([], counts) => Ok(ReferencesSection::Counts(counts)),
        (before, _) => {
            let found = format!("{} byte(s) before them", before.len());
            Err(corrupt("counts and nothing else", found))
        }
    }
}

/// The section that stands for a list of counts, with its checksum.
fn plain_form(counts: &[u32]) -> Result<Vec<u8>, FilterError> {
    let mut out = Vec::new();
    scratch::room(NAME, &mut out, counts.len().saturating_mul(SIZE).saturating_add(CHECKSUM))?;
    let mut number = 0u32;
    for &count in counts {
        let Some(count) = count.checked_sub(1) else {
            out.put_zeros(SIZE);
            continue;
        };
        out.put_u32(count);
        out.put_u16((number / FULL) as u16);
        out.put_u16((number % FULL + 1) as u16);
        out.put_zeros(8);
        number += 1;
    }
    out.put_checksum(0);
    Ok(out)
}

/// The counts of a section with its checksum, if it is the one that stands for them.
fn canonical(plain: &[u8]) -> Result<Option<Vec<u32>>, FilterError> {
    let mut counts = Vec::new();
    scratch::room(NAME, &mut counts, plain.len() / SIZE)?;
    Ok(list_counts(plain, &mut counts).map(|()| counts))
}

fn list_counts(plain: &[u8], counts: &mut Vec<u32>) -> Option<()> {
    let (body, checksum) = plain.split_last_chunk::<CHECKSUM>()?;
    let (references, []) = body.as_chunks::<SIZE>() else { return None };
    if references.len() as u64 > u64::from(FULL) << 16 || lookup3(body).to_le_bytes() != *checksum {
        return None;
    }
    let mut number = 0u32;
    for reference in references {
        let value = u128::from_le_bytes(*reference);
        if value == 0 {
            counts.push(0);
            continue;
        }
        let place = u128::from(number / FULL) | u128::from(number % FULL + 1) << 16;
        number += 1;
        counts.push((value as u32).checked_add(1).filter(|_| value >> 32 == place)?);
    }
    Some(())
}

pub(crate) struct References;

impl Filter for References {
    fn id(&self) -> u16 {
        ID
    }

    fn name(&self) -> &'static str {
        NAME
    }

    fn encode(
        &self,
        _parameters: &[u32],
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        if let Some(counts) = canonical(input)?.filter(|counts| !counts.is_empty()) {
            return encode_counts(&counts, out);
        }
        scratch::room(NAME, out, input.len() + 1)?;
        out.put_bytes(input);
        out.put_u8(VERBATIM);
        Ok(())
    }

    fn decode(
        &self,
        _parameters: &[u32],
        input: &[u8],
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        let mut encoded = Vec::new();
        scratch::copy(NAME, input, &mut encoded)?;
        let plain = match decode_counts(encoded)? {
            ReferencesSection::Plain(plain) => plain,
            ReferencesSection::Counts(counts) if counts.len() <= limit / SIZE => {
                plain_form(&counts)?
            }
            ReferencesSection::Counts(counts) => {
                return Err(FilterError::too_large(NAME, limit, counts.len() * SIZE));
            }
        };
        if plain.len() > limit {
            return Err(FilterError::too_large(NAME, limit, plain.len()));
        }
        *out = plain;
        Ok(())
    }

    fn encoded_bound(&self, len: usize) -> usize {
        len.saturating_add(16)
    }

    fn is_gain(&self, input: &[u8], encoded: &[u8]) -> bool {
        encoded.len() < input.len()
    }
}

fn wrong_length(expected: u64, found: u64) -> FilterError {
    corrupt(format!("{expected} byte(s) before filters"), found)
}

fn corrupt(
    expected: impl Into<std::borrow::Cow<'static, str>>,
    found: impl std::fmt::Display,
) -> FilterError {
    FilterError::corrupt(NAME, expected, found)
}
