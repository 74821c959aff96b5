//! Filters that are only read, against chunks that their plugins have written.
//!
//! `tests/python/filter_vectors.py` makes the vectors, and says how they are stored.

use proptest::prelude::*;
use pumice_bytes::Reader;
use pumice_filter::{FilterError, FilterSpec, Pipeline, find};

const BLOSC2: &[u8] = include_bytes!("../vectors/blosc2.bin");
const ZFP: &[u8] = include_bytes!("../vectors/zfp.bin");

/// A chunk as it is stored, and what it holds.
struct Vector {
    name: String,
    parameters: Vec<u32>,
    length: usize,
    sum: u64,
    stored: Vec<u8>,
}

fn vectors(bytes: &[u8]) -> Vec<Vector> {
    let mut reader = Reader::new("vectors", 0, bytes);
    let mut all = Vec::new();
    while !reader.is_empty() {
        let name = reader.u8().unwrap();
        let name = String::from_utf8_lossy(reader.take(usize::from(name)).unwrap()).into_owned();
        let count = reader.u8().unwrap();
        let parameters = (0..count).map(|_| reader.u32().unwrap()).collect();
        let (length, sum) = (reader.u32().unwrap() as usize, reader.u64().unwrap());
        let stored = reader.u32().unwrap() as usize;
        let stored = reader.take(stored).unwrap().to_vec();
        all.push(Vector { name, parameters, length, sum, stored });
    }
    all
}

fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |sum, &byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    })
}

fn decode(
    id: u16,
    parameters: &[u32],
    stored: &[u8],
    limit: usize,
) -> Result<Vec<u8>, FilterError> {
    let mut out = vec![7; 10];
    find(id).unwrap().decode(parameters, stored, limit, &mut out).map(|()| out)
}

fn check(id: u16, all: &[Vector], least: usize) {
    assert!(all.len() >= least, "{} vectors", all.len());
    for Vector { name, parameters, length, sum, stored } in all {
        let found =
            decode(id, parameters, stored, *length).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!((found.len(), fnv(&found)), (*length, *sum), "{name}");
        assert!(decode(id, parameters, stored, length - 1).is_err(), "{name}: beyond the limit");
    }
}

#[test]
fn chunks_of_the_blosc2_plugin_and_of_pytables_are_read() {
    check(32026, &vectors(BLOSC2), 70);
}

#[test]
fn streams_of_the_zfp_plugin_are_read_in_every_mode() {
    check(32013, &vectors(ZFP), 120);
}

#[test]
fn a_header_and_elements_of_a_big_endian_writer_are_read() {
    for Vector { name, parameters, length, stored, .. } in vectors(ZFP) {
        let mut expected = decode(32013, &parameters, &stored, length).unwrap();
        let turned = parameters.iter().enumerate();
        let turned: Vec<u32> =
            turned.map(|(at, word)| if at == 0 { *word } else { word.swap_bytes() }).collect();
        // The type is in the two bits behind the magic number.
        let size = if parameters[2] & 1 == 1 { 8 } else { 4 };
        expected.chunks_exact_mut(size).for_each(<[u8]>::reverse);
        assert_eq!(decode(32013, &turned, &stored, length).unwrap(), expected, "{name}");
    }
}

#[test]
fn what_is_only_read_says_how_it_is_written() {
    for id in [32013, 32026] {
        let spec = FilterSpec { id, optional: false, ..FilterSpec::zstd(1) };
        let error =
            Pipeline::new(vec![spec]).unwrap().encode(vec![1, 2, 3]).unwrap_err().to_string();
        assert!(error.contains("only reading is built in") && error.contains("zstd"), "{error}");
    }
}

/// Whatever the bytes, there is an answer within the limit or an error.
fn damage(id: u16, all: &[Vector], at: usize, changes: &[(usize, u8)], cut: usize) {
    let Vector { name, parameters, length, stored, .. } = &all[at % all.len()];
    let mut bytes = stored.clone();
    for (place, byte) in changes {
        let place = place % bytes.len();
        bytes[place] = *byte;
    }
    bytes.truncate(bytes.len() - cut % bytes.len() * usize::from(cut.is_multiple_of(3)));
    if let Ok(found) = decode(id, parameters, &bytes, *length) {
        assert!(found.len() <= *length, "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn damaged_frames_of_blosc2_end_in_an_answer_or_an_error(
        at in any::<usize>(),
        // Most of what there is to decide is in the headers of frame and chunk.
        changes in prop::collection::vec((prop_oneof![0usize..200, any::<usize>()], prop_oneof![any::<u8>(), Just(0), Just(255)]), 1..4),
        cut in any::<usize>(),
    ) {
        thread_local! {
            static ALL: Vec<Vector> = vectors(BLOSC2);
        }
        ALL.with(|all| damage(32026, all, at, &changes, cut));
    }

    #[test]
    fn damaged_streams_of_zfp_end_in_an_answer_or_an_error(
        at in any::<usize>(),
        changes in prop::collection::vec((any::<usize>(), any::<u8>()), 1..4),
        cut in any::<usize>(),
        parameter in (0usize..8, any::<u32>(), any::<bool>()),
    ) {
        thread_local! {
            static ALL: Vec<Vector> = vectors(ZFP);
        }
        ALL.with(|all| {
            damage(32013, all, at, &changes, cut);
            // The header is in the parameters.
            let vector = &all[at % all.len()];
            let (place, bits, flip) = parameter;
            let mut parameters = vector.parameters.clone();
            let place = place % parameters.len();
            parameters[place] = if flip { parameters[place] ^ 1 << (bits % 32) } else { bits };
            if let Ok(found) = decode(32013, &parameters, &vector.stored, 1 << 20) {
                assert!(found.len() <= 1 << 20, "{}", vector.name);
            }
        });
    }
}
