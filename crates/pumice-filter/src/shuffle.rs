//! The shuffle filter (id 2): bytes of equal significance side by side, which compressors like.
//!
//! Of `n` elements of `s` bytes, byte `b` of element `i` moves to `b * n + i`. Bytes at the end that
//! do not fill an element stay where they are. The only parameter is the element size.
//!
//! Elements go through the processor's registers in small groups; the last few byte by byte.

mod kernels;

use crate::{DatasetFacts, Filter, FilterError, registry, scratch};

const NAME: &str = "shuffle";

/// Bytes that are put together before they go to fresh memory.
const STRIPE: usize = 8 << 10;

pub(crate) struct Shuffle;

impl Filter for Shuffle {
    fn id(&self) -> u16 {
        registry::SHUFFLE
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
        let size = element_size(parameters)?;
        scratch::size(NAME, out, input.len())?;
        shuffle(size, input, out);
        Ok(())
    }

    fn decode(
        &self,
        parameters: &[u32],
        input: &[u8],
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        let size = element_size(parameters)?;
        if input.len() > limit {
            return Err(FilterError::too_large(NAME, limit, input.len()));
        }
        if out.capacity() < input.len() {
            *out = Vec::new();
            scratch::reserve(NAME, out, input.len())?;
            unshuffled(size, input, out);
        } else {
            scratch::size(NAME, out, input.len())?;
            unshuffle(size, input, out);
        }
        Ok(())
    }

    /// Changes nothing if there is nothing to group.
    fn encode_in_place(&self, parameters: &[u32], data: &mut Vec<u8>) -> Result<bool, FilterError> {
        let size = element_size(parameters)?;
        Ok(size == 1 || data.len() / size < 2)
    }

    fn decode_in_place(
        &self,
        parameters: &[u32],
        data: &mut Vec<u8>,
        limit: usize,
    ) -> Result<bool, FilterError> {
        Ok(data.len() <= limit && self.encode_in_place(parameters, data)?)
    }

    fn parameters_for(
        &self,
        _parameters: &[u32],
        dataset: &DatasetFacts<'_>,
    ) -> Result<Vec<u32>, FilterError> {
        Ok(vec![dataset.element_size()])
    }

    fn decoded_bound(&self, len: usize) -> usize {
        len
    }

    fn encoded_bound(&self, len: usize) -> usize {
        len
    }
}

fn element_size(parameters: &[u32]) -> Result<usize, FilterError> {
    match parameters {
        [size, ..] if *size > 0 => Ok(*size as usize),
        _ => Err(FilterError::Parameters {
            filter: NAME,
            expected: "an element size of at least 1",
            found: format!("{parameters:?}"),
        }),
    }
}

pub(crate) fn shuffle(size: usize, input: &[u8], out: &mut [u8]) {
    let count = input.len() / size;
    let (elements, rest) = input.split_at(count * size);
    let (planes, rest_out) = out.split_at_mut(elements.len());
    rest_out.copy_from_slice(rest);
    let moved = match size {
        2 => kernels::shuffle_2(elements, planes),
        4 => kernels::shuffle_4(elements, planes),
        8 => kernels::shuffle_8(elements, planes),
        _ => 0,
    };
    kernels::shuffle_any(size, moved, elements, planes);
}

pub(crate) fn unshuffle(size: usize, input: &[u8], out: &mut [u8]) {
    let (planes, rest) = input.split_at(input.len() / size * size);
    let (elements, rest_out) = out.split_at_mut(planes.len());
    rest_out.copy_from_slice(rest);
    unshuffle_some(size, planes, 0, elements);
}

/// [`unshuffle`] into an empty buffer that has room, a stripe at a time that stays in the nearest cache: fresh
/// memory is written once, not cleared first.
fn unshuffled(size: usize, input: &[u8], out: &mut Vec<u8>) {
    let (planes, rest) = input.split_at(input.len() / size * size);
    let mut stripe = [0; STRIPE];
    let bytes = STRIPE / size * size;
    if bytes == 0 {
        out.resize(planes.len(), 0);
        unshuffle_some(size, planes, 0, out);
    }
    while out.len() < planes.len() {
        let stripe = &mut stripe[..bytes.min(planes.len() - out.len())];
        unshuffle_some(size, planes, out.len() / size, stripe);
        out.extend_from_slice(stripe);
    }
    out.extend_from_slice(rest);
}

/// The elements from number `first` on, as many as there is room for.
fn unshuffle_some(size: usize, planes: &[u8], first: usize, elements: &mut [u8]) {
    let moved = match size {
        2 => kernels::unshuffle_2(planes, first, elements),
        4 => kernels::unshuffle_4(planes, first, elements),
        8 => kernels::unshuffle_8(planes, first, elements),
        _ => 0,
    };
    kernels::unshuffle_any(size, first + moved, planes, &mut elements[moved * size..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn naive(size: usize, input: &[u8]) -> Vec<u8> {
        let count = input.len() / size;
        let mut out = input.to_vec();
        for element in 0..count {
            for byte in 0..size {
                out[byte * count + element] = input[element * size + byte];
            }
        }
        out
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn every_size_moves_bytes_as_specified_and_back(
            size in prop_oneof![Just(2usize), Just(4), Just(8), 1usize..40, Just(STRIPE + 1)],
            input in proptest::collection::vec(any::<u8>(), 0..3 * STRIPE),
            fresh in any::<bool>(),
        ) {
            let mut encoded = Vec::new();
            Shuffle.encode(&[size as u32], &input, &mut encoded).unwrap();
            prop_assert_eq!(&encoded, &naive(size, &input));
            let mut decoded = vec![1; if fresh { 0 } else { input.len() + 17 }];
            Shuffle.decode(&[size as u32], &encoded, input.len(), &mut decoded).unwrap();
            prop_assert_eq!(decoded, input);
        }
    }

    #[test]
    fn an_element_size_of_zero_or_none_is_refused() {
        for parameters in [&[][..], &[0]] {
            assert!(Shuffle.encode(parameters, &[1, 2], &mut Vec::new()).is_err());
            assert!(Shuffle.decode(parameters, &[1, 2], 2, &mut Vec::new()).is_err());
        }
    }

    #[test]
    fn an_element_larger_than_the_data_moves_nothing() {
        let mut out = Vec::new();
        Shuffle.encode(&[u32::MAX], &[1, 2, 3], &mut out).unwrap();
        assert_eq!(out, [1, 2, 3]);
        assert!(Shuffle.encode_in_place(&[2], &mut vec![1, 2, 3]).unwrap());
    }
}
