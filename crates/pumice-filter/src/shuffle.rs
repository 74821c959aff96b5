//! The shuffle filter (id 2): bytes of equal significance side by side, which compressors like.
//!
//! Of `n` elements of `s` bytes, byte `b` of element `i` moves to `b * n + i`. Bytes at the end that
//! do not fill an element stay where they are. The only parameter is the element size.
//!
//! Sizes 2, 4 and 8 go through the processor's registers in small square blocks, other sizes byte by
//! byte in stripes that stay in its nearest cache.

use crate::{Filter, FilterError, registry};

const NAME: &str = "shuffle";

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
        out.resize(input.len(), 0);
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
        out.resize(input.len(), 0);
        unshuffle(size, input, out);
        Ok(())
    }

    /// Nothing moves if there is nothing to group.
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

/// How many elements are moved at a time where the element size is known when compiling.
const BLOCK: usize = 16;

fn shuffle(size: usize, input: &[u8], out: &mut [u8]) {
    let count = input.len() / size;
    let (elements, rest) = input.split_at(count * size);
    let (planes, rest_out) = out.split_at_mut(elements.len());
    rest_out.copy_from_slice(rest);
    match size {
        1 => planes.copy_from_slice(elements),
        2 => shuffle_fixed::<2>(elements, planes),
        4 => shuffle_fixed::<4>(elements, planes),
        8 => shuffle_fixed::<8>(elements, planes),
        _ if count > 0 => shuffle_any(size, elements, planes),
        _ => {}
    }
}

fn unshuffle(size: usize, input: &[u8], out: &mut [u8]) {
    let count = input.len() / size;
    let (planes, rest) = input.split_at(count * size);
    let (elements, rest_out) = out.split_at_mut(planes.len());
    rest_out.copy_from_slice(rest);
    match size {
        1 => elements.copy_from_slice(planes),
        2 => unshuffle_fixed::<2>(planes, elements),
        4 => unshuffle_fixed::<4>(planes, elements),
        8 => unshuffle_fixed::<8>(planes, elements),
        _ if count > 0 => unshuffle_any(size, planes, elements),
        _ => {}
    }
}

fn shuffle_fixed<const S: usize>(elements: &[u8], planes: &mut [u8]) {
    let count = elements.len() / S;
    let (blocks, _) = elements.as_chunks::<S>();
    let (blocks, tail) = blocks.as_chunks::<BLOCK>();
    for (number, block) in blocks.iter().enumerate() {
        for byte in 0..S {
            let at = byte * count + number * BLOCK;
            let column: [u8; BLOCK] = std::array::from_fn(|element| block[element][byte]);
            planes[at..at + BLOCK].copy_from_slice(&column);
        }
    }
    let done = blocks.len() * BLOCK;
    for (element, bytes) in tail.iter().enumerate() {
        for (byte, value) in bytes.iter().enumerate() {
            planes[byte * count + done + element] = *value;
        }
    }
}

fn unshuffle_fixed<const S: usize>(planes: &[u8], elements: &mut [u8]) {
    let count = elements.len() / S;
    let (blocks, _) = elements.as_chunks_mut::<S>();
    let (blocks, tail) = blocks.as_chunks_mut::<BLOCK>();
    let done = blocks.len() * BLOCK;
    for (number, block) in blocks.iter_mut().enumerate() {
        let columns: [[u8; BLOCK]; S] = std::array::from_fn(|byte| {
            let at = byte * count + number * BLOCK;
            let mut column = [0; BLOCK];
            column.copy_from_slice(&planes[at..at + BLOCK]);
            column
        });
        *block = std::array::from_fn(|element| std::array::from_fn(|byte| columns[byte][element]));
    }
    for (element, bytes) in tail.iter_mut().enumerate() {
        for (byte, value) in bytes.iter_mut().enumerate() {
            *value = planes[byte * count + done + element];
        }
    }
}

/// Elements whose bytes are moved together, so that a stripe of the input stays cached.
const STRIPE: usize = 1024;

fn shuffle_any(size: usize, elements: &[u8], planes: &mut [u8]) {
    let count = elements.len() / size;
    for (number, stripe) in elements.chunks(STRIPE * size).enumerate() {
        for (byte, plane) in planes.chunks_exact_mut(count).enumerate() {
            let column = &mut plane[number * STRIPE..];
            for (to, element) in column.iter_mut().zip(stripe.chunks_exact(size)) {
                *to = element[byte];
            }
        }
    }
}

fn unshuffle_any(size: usize, planes: &[u8], elements: &mut [u8]) {
    let count = elements.len() / size;
    for (number, stripe) in elements.chunks_mut(STRIPE * size).enumerate() {
        for (byte, plane) in planes.chunks_exact(count).enumerate() {
            let column = &plane[number * STRIPE..];
            for (from, element) in column.iter().zip(stripe.chunks_exact_mut(size)) {
                element[byte] = *from;
            }
        }
    }
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
            size in prop_oneof![Just(2usize), Just(4), Just(8), 1usize..40],
            input in proptest::collection::vec(any::<u8>(), 0..3000),
        ) {
            let mut encoded = Vec::new();
            Shuffle.encode(&[size as u32], &input, &mut encoded).unwrap();
            prop_assert_eq!(&encoded, &naive(size, &input));
            let mut decoded = vec![1; 17];
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
