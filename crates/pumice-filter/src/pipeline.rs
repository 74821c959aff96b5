//! Several filters in a row, with the mask of those that were skipped.
//!
//! Encoding runs the filters in the order of their specifications, decoding in the opposite order.
//! Bit `i` of the mask is set if filter `i` did not run on these bytes. An optional filter is skipped
//! when it is missing, fails, or does not shrink the data although that is its whole purpose; a
//! mandatory one that fails fails the pipeline.
//!
//! A stage either works in place or from one buffer into another; buffers come from and go back to
//! [`scratch`]. Decoding bounds every stage: the last by the caller's limit, those before it by the
//! longest encoding that the filters after it could have produced.

use crate::{Filter, FilterError, FilterSpec, find, registered_name, registry, scratch};
use std::borrow::Cow;
use std::fmt;

/// The most filters a pipeline may have: the bits of a filter mask.
pub const MAX_FILTERS: usize = 32;

/// The filters of a dataset or of one section of a structured chunk.
///
/// ```
/// use pumice_filter::{FilterSpec, Pipeline};
///
/// let pipeline = Pipeline::new(vec![FilterSpec::zstd(3), FilterSpec::fletcher32()])?;
/// // One byte does not shrink, so the optional zstd is skipped; the checksum is not optional.
/// let (stored, mask) = pipeline.encode(vec![7])?;
/// assert_eq!((stored.len(), mask), (5, 0b01));
/// assert_eq!(pipeline.decode(stored, mask, 1)?, [7]);
/// # Ok::<(), pumice_filter::FilterError>(())
/// ```
#[derive(Clone, Default)]
pub struct Pipeline {
    specs: Vec<FilterSpec>,
    /// The filter of each spec, if it is built in.
    filters: Vec<Option<&'static dyn Filter>>,
    /// Whether checksums that filters add are skipped on decoding instead of compared.
    unverified: bool,
}

impl Pipeline {
    /// A pipeline of these filters. A filter that is not built in is an error only when it is
    /// needed.
    pub fn new(specs: Vec<FilterSpec>) -> Result<Self, FilterError> {
        if specs.len() > MAX_FILTERS {
            return Err(FilterError::TooMany(specs.len()));
        }
        let filters = specs.iter().map(|spec| find(spec.id)).collect();
        Ok(Self { specs, filters, unverified: false })
    }

    /// The pipeline without comparing the checksums that its filters add: Fletcher-32. Other
    /// checks, such as the checksum of a structured chunk's section, stay.
    ///
    /// ```
    /// use pumice_filter::{FilterSpec, Pipeline};
    ///
    /// let pipeline = Pipeline::new(vec![FilterSpec::fletcher32()])?;
    /// let (mut stored, mask) = pipeline.encode(vec![1, 2, 3])?;
    /// stored[1] = 9;
    /// assert!(pipeline.decode_slice(&stored, mask, 3).is_err());
    /// assert_eq!(pipeline.unverified().decode_slice(&stored, mask, 3)?, [1, 9, 3]);
    /// # Ok::<(), pumice_filter::FilterError>(())
    /// ```
    pub fn unverified(&self) -> Self {
        Self { unverified: true, ..self.clone() }
    }

    /// The filters, first to run on encoding first.
    pub fn specs(&self) -> &[FilterSpec] {
        &self.specs
    }

    /// Whether there is no filter.
    pub fn is_empty(&self) -> bool {
        self.specs.is_empty()
    }

    /// Runs the filters over `input`; gives the stored form and the mask of skipped filters.
    pub fn encode(&self, input: Vec<u8>) -> Result<(Vec<u8>, u32), FilterError> {
        self.encode_from(0, Cow::Owned(input))
    }

    /// [`encode`](Self::encode) for bytes that the caller keeps; the input is copied only if no
    /// filter reads it first.
    pub fn encode_slice(&self, input: &[u8]) -> Result<(Vec<u8>, u32), FilterError> {
        self.encode_from(0, Cow::Borrowed(input))
    }

    /// Undoes [`encode`](Self::encode). `limit` is the most bytes the result may have.
    pub fn decode(&self, input: Vec<u8>, mask: u32, limit: usize) -> Result<Vec<u8>, FilterError> {
        self.decode_until(0, Cow::Owned(input), mask, limit).map(trimmed)
    }

    /// [`decode`](Self::decode) for borrowed bytes, such as a part of a larger read.
    pub fn decode_slice(
        &self,
        input: &[u8],
        mask: u32,
        limit: usize,
    ) -> Result<Vec<u8>, FilterError> {
        self.decode_until(0, Cow::Borrowed(input), mask, limit).map(trimmed)
    }

    /// The most bytes that `len` stored bytes can decode to; more is damage.
    ///
    /// ```
    /// use pumice_filter::{FilterSpec, Pipeline};
    ///
    /// let pipeline = Pipeline::new(vec![FilterSpec::deflate(6), FilterSpec::fletcher32()])?;
    /// assert_eq!(pipeline.decoded_bound(10, 0b00), 10_320);
    /// assert_eq!(pipeline.decoded_bound(10, 0b01), 10, "deflate was skipped");
    /// # Ok::<(), pumice_filter::FilterError>(())
    /// ```
    pub fn decoded_bound(&self, len: usize, mask: u32) -> usize {
        self.decoded_bound_until(0, len, mask)
    }

    /// [`decoded_bound`](Self::decoded_bound) with the filters before number `first` still encoded.
    pub(crate) fn decoded_bound_until(&self, first: usize, len: usize, mask: u32) -> usize {
        let ran = (first..self.specs.len()).rev().filter(|at| mask & (1 << at) == 0);
        ran.fold(len, |most, at| match self.filters[at] {
            Some(filter) => filter.decoded_bound(most),
            None => usize::MAX,
        })
    }

    /// Runs the filters from number `first` on. Mask bits of earlier ones are left clear.
    pub(crate) fn encode_from(
        &self,
        first: usize,
        input: Cow<'_, [u8]>,
    ) -> Result<(Vec<u8>, u32), FilterError> {
        self.encode_planes_from(first, input, usize::MAX)
    }

    /// [`encode_from`](Self::encode_from) for bytes of which every `plane` in a row are alike.
    pub(crate) fn encode_planes_from(
        &self,
        first: usize,
        input: Cow<'_, [u8]>,
        mut plane: usize,
    ) -> Result<(Vec<u8>, u32), FilterError> {
        let mut data = input;
        let mut mask = 0;
        for (at, (spec, filter)) in self.specs.iter().zip(&self.filters).enumerate().skip(first) {
            let done = match filter {
                Some(filter) => encode_stage(*filter, spec, plane, &mut data),
                None => Err(missing(spec)),
            };
            match done {
                Ok(true) => plane = plane_after(spec, data.len()),
                Ok(false) => mask |= 1 << at,
                Err(_) if spec.optional => mask |= 1 << at,
                Err(error) => return Err(error),
            }
        }
        Ok((into_owned(data)?, mask))
    }

    /// Undoes the filters down to and including number `first`, to give `limit` bytes at most.
    pub(crate) fn decode_until(
        &self,
        first: usize,
        input: Cow<'_, [u8]>,
        mask: u32,
        limit: usize,
    ) -> Result<Vec<u8>, FilterError> {
        let verify = !self.unverified;
        let mut data = input;
        for at in (first..self.specs.len()).rev().filter(|at| mask & (1 << at) == 0) {
            let spec = &self.specs[at];
            let Some(filter) = self.filters[at] else {
                return Err(missing(spec));
            };
            // No more than the filters that come before this one could have made of the limit.
            let most = (first..at).filter(|at| mask & (1 << at) == 0).fold(limit, |most, at| {
                self.filters[at].map_or(most, |filter| filter.encoded_bound(most))
            });
            let most = most.min(filter.decoded_bound(data.len()));
            decode_stage(filter, spec, &mut data, most, verify)?;
        }
        if data.len() > limit {
            return Err(FilterError::too_large("pipeline", limit, data.len()));
        }
        into_owned(data)
    }
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(&self.specs).finish()
    }
}

impl PartialEq for Pipeline {
    fn eq(&self, other: &Self) -> bool {
        self.specs == other.specs
    }
}

impl Eq for Pipeline {}

/// Encodes one stage; `false` if the filter is to be marked as skipped. On an error `data` is
/// unchanged.
fn encode_stage(
    filter: &dyn Filter,
    spec: &FilterSpec,
    plane: usize,
    data: &mut Cow<'_, [u8]>,
) -> Result<bool, FilterError> {
    if let Cow::Owned(owned) = data
        && filter.encode_in_place(&spec.parameters, owned)?
    {
        return Ok(true);
    }
    let mut out = scratch::take(filter.encoded_bound(data.len()));
    if let Err(error) = filter.encode_planes(&spec.parameters, data, plane, &mut out) {
        scratch::give(out);
        return Err(error);
    }
    if spec.optional && !filter.is_gain(data, &out) {
        scratch::give(out);
        return Ok(false);
    }
    // Whoever reads it accepts no more.
    let bound = filter.encoded_bound(data.len());
    if out.len() > bound {
        let what = format!("it made {} byte(s), more than its bound of {bound}", out.len());
        scratch::give(out);
        return Err(FilterError::encode(filter.name(), what));
    }
    replace(data, out);
    Ok(true)
}

/// The grouping of a filter's output bytes.
fn plane_after(spec: &FilterSpec, len: usize) -> usize {
    match (spec.id, spec.parameters.first()) {
        (registry::SHUFFLE, Some(&size)) if size > 1 && len >= size as usize => len / size as usize,
        _ => usize::MAX,
    }
}

fn decode_stage(
    filter: &dyn Filter,
    spec: &FilterSpec,
    data: &mut Cow<'_, [u8]>,
    limit: usize,
    verify: bool,
) -> Result<(), FilterError> {
    if let Cow::Owned(owned) = data
        && verify
        && filter.decode_in_place(&spec.parameters, owned, limit)?
    {
        return Ok(());
    }
    let mut out = scratch::take(limit);
    let decoded = match verify {
        true => filter.decode(&spec.parameters, data, limit, &mut out),
        false => filter.decode_unverified(&spec.parameters, data, limit, &mut out),
    };
    replace(data, out);
    decoded
}

/// Replaces `data` by `new`, and keeps the old buffer as a spare.
fn replace(data: &mut Cow<'_, [u8]>, new: Vec<u8>) {
    if let Cow::Owned(old) = std::mem::replace(data, Cow::Owned(new)) {
        scratch::give(old);
    }
}

fn into_owned(data: Cow<'_, [u8]>) -> Result<Vec<u8>, FilterError> {
    match data {
        Cow::Owned(owned) => Ok(owned),
        Cow::Borrowed(bytes) => {
            let mut owned = scratch::take(bytes.len());
            scratch::copy("pipeline", bytes, &mut owned)?;
            Ok(owned)
        }
    }
}

/// A result may be kept for long: it must not hold on to a much larger buffer.
fn trimmed(mut data: Vec<u8>) -> Vec<u8> {
    if data.capacity() - data.len() > data.len() / 4 + 256 {
        data.shrink_to_fit();
    }
    data
}

fn missing(spec: &FilterSpec) -> FilterError {
    let name = match (&spec.name, registered_name(spec.id)) {
        (_, Some(registered)) => Cow::Borrowed(registered),
        (Some(name), None) if !name.is_empty() => Cow::Owned(name.clone()),
        _ => Cow::Borrowed("unregistered"),
    };
    FilterError::Missing { id: spec.id, name }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes eight bytes of one, and does not say so.
    struct Expanding;

    impl Filter for Expanding {
        fn id(&self) -> u16 {
            300
        }

        fn name(&self) -> &'static str {
            "expanding"
        }

        fn encode(&self, _: &[u32], input: &[u8], out: &mut Vec<u8>) -> Result<(), FilterError> {
            *out = input.repeat(8);
            Ok(())
        }

        fn decode(
            &self,
            _: &[u32],
            input: &[u8],
            _: usize,
            out: &mut Vec<u8>,
        ) -> Result<(), FilterError> {
            *out = input[..input.len() / 8].to_vec();
            Ok(())
        }
    }

    #[test]
    fn a_filter_that_makes_more_than_it_says_is_skipped_or_an_error() {
        for optional in [true, false] {
            let first =
                FilterSpec { id: 300, optional, name: None, config: None, parameters: Vec::new() };
            let second = FilterSpec::shuffle(2);
            let mut pipeline = Pipeline::new(vec![second.clone(), second.clone()]).unwrap();
            pipeline.specs[0] = first;
            pipeline.filters[0] = Some(&Expanding);
            let data: Vec<u8> = (0..100).map(|number| number as u8).collect();
            let (bytes, mask) = pipeline.encode(data.clone()).unwrap();
            assert_eq!(
                pipeline.decode(bytes, mask, 100).unwrap(),
                data,
                "what a bound has room for"
            );
            let data = vec![7; 5000];
            match pipeline.encode(data.clone()) {
                Ok((bytes, mask)) => {
                    assert!(optional && mask == 1);
                    assert_eq!(pipeline.decode(bytes, mask, 5000).unwrap(), data);
                }
                Err(error) => assert!(!optional && error.to_string().contains("bound"), "{error}"),
            }
        }
    }
}
