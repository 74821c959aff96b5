//! The Fletcher-32 filter (id 3): a checksum of four bytes behind the data.
//!
//! HDF5's variant: the data are 16-bit words, first byte high; an odd last byte is the high half of a
//! word; both sums are taken modulo 65535 where 65535 stands for zero unless everything was zero.
//! The second sum is the high half of the checksum, which is stored little-endian.
//!
//! Files of HDF5 1.6.2 and before may have the bytes of each half exchanged; those are accepted.

use crate::{Filter, FilterError, registry, scratch};

const NAME: &str = "fletcher32";

/// Bytes of the checksum.
const SIZE: usize = 4;

pub(crate) struct Fletcher32;

impl Filter for Fletcher32 {
    fn id(&self) -> u16 {
        registry::FLETCHER32
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
        scratch::room(NAME, out, input.len() + SIZE)?;
        out.extend_from_slice(input);
        self.encode_in_place(parameters, out).map(drop)
    }

    fn decode(
        &self,
        _parameters: &[u32],
        input: &[u8],
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        scratch::copy(NAME, verified(input, limit)?, out)
    }

    fn decode_unverified(
        &self,
        _parameters: &[u32],
        input: &[u8],
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        scratch::copy(NAME, split(input, limit)?.0, out)
    }

    fn encode_in_place(
        &self,
        _parameters: &[u32],
        data: &mut Vec<u8>,
    ) -> Result<bool, FilterError> {
        scratch::reserve(NAME, data, SIZE)?;
        let checksum = fletcher32(data);
        data.extend_from_slice(&checksum.to_le_bytes());
        Ok(true)
    }

    fn decode_in_place(
        &self,
        _parameters: &[u32],
        data: &mut Vec<u8>,
        limit: usize,
    ) -> Result<bool, FilterError> {
        let len = verified(data, limit)?.len();
        data.truncate(len);
        Ok(true)
    }

    fn decoded_bound(&self, len: usize) -> usize {
        len
    }

    fn encoded_bound(&self, len: usize) -> usize {
        len.saturating_add(SIZE)
    }
}

/// The data and the checksum behind them.
fn split(input: &[u8], limit: usize) -> Result<(&[u8], &[u8; SIZE]), FilterError> {
    let Some((data, stored)) = input.split_last_chunk::<SIZE>() else {
        return Err(FilterError::corrupt(NAME, "4 bytes of checksum", input.len()));
    };
    if data.len() > limit {
        return Err(FilterError::too_large(NAME, limit, data.len()));
    }
    Ok((data, stored))
}

/// The data in front of a checksum that matches them.
fn verified(input: &[u8], limit: usize) -> Result<&[u8], FilterError> {
    let (data, stored) = split(input, limit)?;
    let computed = fletcher32(data);
    let [a, b, c, d] = computed.to_le_bytes();
    if *stored == [a, b, c, d] || *stored == [b, a, d, c] {
        return Ok(data);
    }
    let found = u32::from_le_bytes(*stored);
    Err(FilterError::corrupt(NAME, format!("checksum {computed:#010x}"), format!("{found:#010x}")))
}

/// Words per step: small enough that a step's weighted sum fits 32 bits, so that it can be computed
/// in vectors of 32-bit lanes.
const STEP: usize = 128;

fn fletcher32(data: &[u8]) -> u32 {
    let (mut first, mut second) = (0u64, 0u64);
    let mut steps = data.chunks_exact(2 * STEP);
    for step in &mut steps {
        let (sum, weighted) = step_sums(step);
        second = (second + STEP as u64 * first + u64::from(weighted)) % 65535;
        first = (first + u64::from(sum)) % 65535;
    }
    for pair in steps.remainder().chunks(2) {
        let low = pair.get(1).copied().unwrap_or(0);
        first += u64::from(u16::from_be_bytes([pair[0], low]));
        second += first;
    }
    let any = data.iter().any(|&byte| byte != 0);
    fold(second, any) << 16 | fold(first, any)
}

/// The sum of the words of a step, and their sum weighted by how many words stand from each to the
/// end of the step, itself included.
fn step_sums(step: &[u8]) -> (u32, u32) {
    let (mut sum, mut weighted) = (0u32, 0u32);
    for (at, pair) in step.as_chunks::<2>().0.iter().enumerate() {
        let word = u32::from(u16::from_be_bytes(*pair));
        sum += word;
        weighted += word * (STEP - at) as u32;
    }
    (sum, weighted)
}

/// The remainder that libhdf5's end-around carries arrive at: never 0 unless all words were.
fn fold(sum: u64, any: bool) -> u32 {
    match (sum % 65535) as u32 {
        0 if any => 65535,
        remainder => remainder,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition, one word and one carry at a time.
    fn naive(data: &[u8]) -> u32 {
        let carry = |sum: u32| (sum & 0xFFFF) + (sum >> 16);
        let (mut first, mut second) = (0u32, 0u32);
        for pair in data.chunks(2) {
            let low = pair.get(1).copied().unwrap_or(0);
            first = carry(first + u32::from(u16::from_be_bytes([pair[0], low])));
            second = carry(second + first);
        }
        second << 16 | first
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn steps_agree_with_the_definition(
            data in proptest::collection::vec(prop_oneof![Just(0u8), Just(255), any::<u8>()], 0..1500),
        ) {
            prop_assert_eq!(fletcher32(&data), naive(&data));
        }

        #[test]
        fn data_come_back_and_damage_is_found(
            data in proptest::collection::vec(any::<u8>(), 1..600),
            at in any::<proptest::sample::Index>(),
            bit in 0u32..8,
        ) {
            let mut encoded = Vec::new();
            Fletcher32.encode(&[], &data, &mut encoded).unwrap();
            let mut decoded = Vec::new();
            Fletcher32.decode(&[], &encoded, data.len(), &mut decoded).unwrap();
            prop_assert_eq!(&decoded, &data);
            encoded[at.index(data.len())] ^= 1 << bit;
            prop_assert!(Fletcher32.decode(&[], &encoded, data.len(), &mut decoded).is_err());
        }
    }

    #[test]
    fn all_ones_is_not_all_zeros() {
        assert_eq!(fletcher32(&[0; 1000]), 0);
        assert_eq!(fletcher32(&[0xFF; 1000]), 0xFFFF_FFFF);
        assert_eq!(fletcher32(&[]), 0);
    }

    #[test]
    fn the_checksum_of_old_files_with_exchanged_bytes_is_accepted() {
        let mut encoded = Vec::new();
        Fletcher32.encode(&[], b"pumice", &mut encoded).unwrap();
        encoded.swap(6, 7);
        encoded.swap(8, 9);
        let mut decoded = Vec::new();
        Fletcher32.decode(&[], &encoded, 6, &mut decoded).unwrap();
        assert_eq!(decoded, b"pumice");
    }

    #[test]
    fn fewer_bytes_than_a_checksum_are_refused() {
        assert!(Fletcher32.decode(&[], &[1, 2, 3], 100, &mut Vec::new()).is_err());
        let mut decoded = vec![7];
        Fletcher32.decode(&[], &[0; 4], 0, &mut decoded).unwrap();
        assert!(decoded.is_empty());
    }
}
