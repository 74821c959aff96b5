//! What every filter that turns data into other data must keep: data come back, whatever their
//! length; whatever the bytes, decoding ends in an answer within the limit or in an error.

use proptest::prelude::*;
use pumice_filter::{
    BitshuffleCodec, BloscCodec, BloscShuffle, DatasetFacts, FilterError, FilterSpec, Pipeline,
    Scaling, SzipCoding, find,
};
use pumice_types::{ByteOrder, Datatype, Integer};

/// Every filter that works on elements of any bytes, for a dataset of `size` bytes an element, whose
/// chunks have `cells` of them, or in the sparse case any number.
fn filters(size: u32, cells: u64, sparse: bool) -> Vec<FilterSpec> {
    let datatype = Datatype::Integer(Integer::new(size, ByteOrder::Little, false));
    let facts =
        DatasetFacts { datatype: &datatype, chunk: &[cells], fill: None, sparse, length_width: 8 };
    let given = [
        FilterSpec::deflate(3),
        FilterSpec::shuffle(0),
        FilterSpec::fletcher32(),
        FilterSpec::zstd(1),
        FilterSpec::lzf(),
        FilterSpec::lz4(0),
        FilterSpec::lz4(100),
        FilterSpec::bzip2(1),
        FilterSpec::bitshuffle(BitshuffleCodec::None),
        FilterSpec::bitshuffle(BitshuffleCodec::Lz4),
        FilterSpec::bitshuffle(BitshuffleCodec::Zstd(1)),
    ];
    let mut given = given.to_vec();
    if cells >= 8 && [1, 2, 4, 8].contains(&size) {
        given.push(FilterSpec::szip(SzipCoding::Entropy, 8));
        given.push(FilterSpec::szip(SzipCoding::NearestNeighbour, 8));
    }
    if cells > 0 && [1, 2, 4, 8].contains(&size) {
        given.push(FilterSpec::scale_offset(Scaling::Integer));
    }
    given.push(FilterSpec::nbit());
    type Codec = BloscCodec;
    for codec in [Codec::BloscLz, Codec::Lz4, Codec::Snappy, Codec::Zlib, Codec::Zstd] {
        for shuffle in [BloscShuffle::None, BloscShuffle::Bytes, BloscShuffle::Bits] {
            given.push(FilterSpec::blosc(codec, 3, shuffle));
        }
    }
    given.iter().map(|spec| spec.for_dataset(&facts).unwrap()).collect()
}

fn decode(spec: &FilterSpec, input: &[u8], limit: usize) -> Result<Vec<u8>, FilterError> {
    let mut out = Vec::new();
    find(spec.id).unwrap().decode(&spec.parameters, input, limit, &mut out).map(|()| out)
}

fn encode(spec: &FilterSpec, input: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    find(spec.id).unwrap().encode(&spec.parameters, input, &mut out).unwrap();
    out
}

/// Data with repetitions of all sorts.
fn cells() -> impl Strategy<Value = (u32, Vec<u8>)> {
    let value = prop_oneof![4 => 0u8..4, 1 => any::<u8>()];
    let pieces = prop::collection::vec((prop::collection::vec(value, 1..20), 1usize..30), 0..12);
    (prop_oneof![Just(1u32), Just(2), Just(3), Just(4), Just(8)], pieces).prop_map(
        |(size, pieces)| {
            let mut bytes: Vec<u8> =
                pieces.into_iter().flat_map(|(piece, times)| piece.repeat(times)).collect();
            bytes.truncate(bytes.len() / size as usize * size as usize);
            (size, bytes)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn data_come_back((size, data) in cells(), sparse in any::<bool>()) {
        for spec in filters(size, data.len() as u64 / u64::from(size), sparse) {
            let encoded = encode(&spec, &data);
            let bound = find(spec.id).unwrap().encoded_bound(data.len());
            prop_assert!(encoded.len() <= bound, "{spec:?}: {} > {bound}", encoded.len());
            let bound = find(spec.id).unwrap().decoded_bound(encoded.len());
            prop_assert!(data.len() <= bound, "{spec:?}: {} > {bound}", data.len());
            let decoded = decode(&spec, &encoded, data.len());
            prop_assert_eq!(decoded.as_ref(), Ok(&data), "{:?}", spec);
            if let Some(less) = data.len().checked_sub(1) {
                prop_assert!(decode(&spec, &encoded, less).is_err(), "{:?}", spec);
            }
        }
    }

    #[test]
    fn damaged_bytes_end_in_an_answer_within_the_limit_or_an_error(
        (size, data) in cells(),
        sparse in any::<bool>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
        limit in 0usize..6000,
    ) {
        for spec in filters(size, data.len() as u64 / u64::from(size), sparse) {
            let mut encoded = encode(&spec, &data);
            if let Ok(decoded) = decode(&spec, &encoded[..cut.index(encoded.len() + 1)], limit) {
                prop_assert!(decoded.len() <= limit);
            }
            for (at, byte) in &damage {
                let len = encoded.len();
                if let Some(place) = len.checked_sub(1).map(|_| &mut encoded[at.index(len)]) {
                    *place ^= byte;
                }
            }
            if let Ok(decoded) = decode(&spec, &encoded, limit) {
                prop_assert!(decoded.len() <= limit);
            }
        }
    }

    #[test]
    fn any_bytes_and_any_parameters_end_in_an_answer_or_an_error(
        bytes in prop::collection::vec(prop_oneof![0u8..4, any::<u8>()], 0..300),
        parameters in prop::collection::vec(prop_oneof![3 => 0u32..70, 1 => any::<u32>()], 0..24),
        limit in 0usize..6000,
    ) {
        for id in (0..=u16::MAX).filter(|&id| find(id).is_some()) {
            let filter = find(id).unwrap();
            let mut out = Vec::new();
            if filter.decode(&parameters, &bytes, limit, &mut out).is_ok() {
                prop_assert!(out.len() <= limit, "{}", filter.name());
            }
            let _ = filter.encode(&parameters, &bytes, &mut out);
        }
    }
}

#[test]
fn equal_bytes_come_back_however_short_they_have_become() {
    let data = vec![7; 4 << 20];
    for spec in filters(8, data.len() as u64 / 8, true) {
        let once = encode(&spec, &data);
        let bound = find(spec.id).unwrap().decoded_bound(once.len());
        assert!(data.len() <= bound, "{spec:?}: {} from {}, not {bound}", data.len(), once.len());
        let pipeline = Pipeline::new(vec![spec.clone(), FilterSpec::zstd(3)]).unwrap();
        let (stored, mask) = pipeline.encode(data.clone()).unwrap();
        assert!(data.len() <= pipeline.decoded_bound(stored.len(), mask), "{spec:?}");
        assert!(pipeline.decode(stored, mask, data.len()).unwrap() == data, "{spec:?}");
    }
}

/// Data for which a filter that believes announced lengths would take too much memory.
#[test]
fn lengths_that_so_few_bytes_cannot_hold_are_refused_before_memory_is_taken() {
    let data: Vec<u8> = (0..200u32).map(|n| ((n * n) >> 5) as u8).collect();
    for spec in filters(4, 50, true) {
        let stored = encode(&spec, &data);
        let pipeline = Pipeline::new(vec![spec.clone()]).unwrap();
        for width in [4, 8] {
            for at in 0..=stored.len().saturating_sub(width).min(24) {
                for value in [1u64 << 30, (1 << 30) + (1 << 62), 0x0400_0000_4000_0000] {
                    let mut damaged = stored.clone();
                    damaged[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
                    if let Ok(decoded) = pipeline.decode(damaged, 0, usize::MAX) {
                        assert!(decoded.len() < 1 << 26, "{spec:?}: {} bytes", decoded.len());
                    }
                }
            }
        }
    }
    let mut szip = FilterSpec::szip(SzipCoding::NearestNeighbour, 8);
    szip.parameters = vec![8 | 32, 8, 8, 200];
    let announced = [0, 0, 0, 0x40, 1, 2, 3];
    let error = Pipeline::new(vec![szip]).unwrap().decode(announced.to_vec(), 0, usize::MAX);
    assert!(matches!(error, Err(FilterError::TooLarge { .. })), "{error:?}");
}
