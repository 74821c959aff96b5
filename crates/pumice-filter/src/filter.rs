//! The seam between a pipeline and its filters.

use crate::{DatasetFacts, FilterError};

/// A reversible transformation of bytes.
///
/// A filter has no state: all settings are in the `parameters` that the file stores beside the
/// filter's id. `out` is scratch space: its content is replaced, and its initialised length on
/// entry may be used to avoid clearing memory twice.
///
/// ```
/// use pumice_filter::Filter;
///
/// let shuffle = pumice_filter::find(2).expect("shuffle is built in");
/// let mut out = Vec::new();
/// shuffle.encode(&[2], &[1, 2, 3, 4], &mut out)?;
/// assert_eq!(out, [1, 3, 2, 4]);
/// # Ok::<(), pumice_filter::FilterError>(())
/// ```
pub trait Filter: Send + Sync {
    /// The id under which HDF5 files refer to the filter.
    fn id(&self) -> u16;

    /// The filter's name, for errors and for the file.
    fn name(&self) -> &'static str;

    /// Replaces `out` by the encoded form of `input`.
    fn encode(
        &self,
        parameters: &[u32],
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError>;

    /// [`encode`](Self::encode) for bytes that shuffle has grouped: every `plane` of them are
    /// alike.
    fn encode_planes(
        &self,
        parameters: &[u32],
        input: &[u8],
        _plane: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        self.encode(parameters, input, out)
    }

    /// Replaces `out` by the decoded `input`, or fails if that is more than `limit` bytes. Never
    /// allocates more than `limit` and a little slack.
    fn decode(
        &self,
        parameters: &[u32],
        input: &[u8],
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError>;

    /// [`decode`](Self::decode) for a caller who wants the data even if a checksum does not match.
    fn decode_unverified(
        &self,
        parameters: &[u32],
        input: &[u8],
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        self.decode(parameters, input, limit, out)
    }

    /// Encodes without a second buffer. `Ok(false)`, with `data` untouched, if that is not possible;
    /// an error leaves `data` untouched, too.
    fn encode_in_place(
        &self,
        _parameters: &[u32],
        _data: &mut Vec<u8>,
    ) -> Result<bool, FilterError> {
        Ok(false)
    }

    /// Decodes without a second buffer. `Ok(false)`, with `data` untouched, if that is not possible.
    fn decode_in_place(
        &self,
        _parameters: &[u32],
        _data: &mut Vec<u8>,
        _limit: usize,
    ) -> Result<bool, FilterError> {
        Ok(false)
    }

    /// The longest encoded form of `len` bytes that a reader should accept. Other writers may be
    /// less thrifty than this crate, so this is generous.
    fn encoded_bound(&self, len: usize) -> usize {
        len.saturating_add(len / 8).saturating_add(4096)
    }

    /// The most bytes that `len` encoded bytes can stand for, whatever they are; `usize::MAX` if that
    /// does not follow from their number. A pipeline lets no filter announce more.
    fn decoded_bound(&self, _len: usize) -> usize {
        usize::MAX
    }

    /// Whether the filter fits datasets such as this one (libhdf5: "can apply"). One that does not
    /// is refused, unless it is optional: then it is skipped for every chunk.
    fn can_apply(&self, _dataset: &DatasetFacts<'_>) -> bool {
        true
    }

    /// Whether the filter can encode, and not only decode (libhdf5: an encoder is present).
    fn encodes(&self) -> bool {
        true
    }

    /// The parameters to store for a new dataset, from those that the caller gave (libhdf5: "set
    /// local").
    fn parameters_for(
        &self,
        parameters: &[u32],
        _dataset: &DatasetFacts<'_>,
    ) -> Result<Vec<u32>, FilterError> {
        Ok(parameters.to_vec())
    }

    /// Whether the encoded bytes are worth keeping; if not, an optional filter is skipped.
    /// Compressors require them to be shorter.
    fn is_gain(&self, _input: &[u8], _encoded: &[u8]) -> bool {
        true
    }
}
