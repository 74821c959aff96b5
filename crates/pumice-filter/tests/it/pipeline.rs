//! Pipelines with missing, failing and useless filters, masks and limits.

use proptest::prelude::*;
use pumice_filter::{FilterError, FilterSpec, MAX_FILTERS, Pipeline};

fn missing(id: u16, optional: bool) -> FilterSpec {
    FilterSpec { id, optional, name: None, config: None, parameters: Vec::new() }
}

fn pipeline(specs: Vec<FilterSpec>) -> Pipeline {
    Pipeline::new(specs).expect("few filters")
}

/// Bytes that no compressor can shorten.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9u32;
    let step = |_| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 24) as u8
    };
    (0..len).map(step).collect()
}

#[test]
fn a_missing_filter_is_named_with_its_id_its_name_and_a_remedy() {
    let named = |id, name: Option<&str>| {
        let spec = FilterSpec { name: name.map(str::to_owned), ..missing(id, false) };
        pipeline(vec![spec]).decode(vec![1], 0, 1).unwrap_err().to_string()
    };
    let text = named(32017, Some("whatever the file says"));
    assert!(text.contains("32017 (sz)") && text.contains("h5repack"), "{text}");
    assert!(named(400, Some("my own")).contains("400 (my own)"));
    assert!(named(400, None).contains("400 (unregistered)"));
}

#[test]
fn a_missing_filter_matters_only_if_it_ran() {
    let specs = vec![missing(32017, true), FilterSpec::fletcher32()];
    let (stored, mask) = pipeline(specs.clone()).encode(vec![1, 2, 3]).unwrap();
    assert_eq!(mask, 0b01, "an optional filter that is missing is skipped");
    assert_eq!(pipeline(specs.clone()).decode(stored.clone(), mask, 3).unwrap(), [1, 2, 3]);
    let error = pipeline(specs).decode(stored, 0, 3).unwrap_err();
    assert!(matches!(error, FilterError::Missing { id: 32017, .. }));
    assert!(pipeline(vec![missing(32017, false)]).encode(vec![1]).is_err());
}

#[test]
fn a_filter_that_fails_is_skipped_if_optional_and_an_error_if_not() {
    let broken = |optional| FilterSpec { optional, ..FilterSpec::shuffle(0) };
    let data = vec![5; 100];
    assert_eq!(pipeline(vec![broken(true)]).encode(data.clone()).unwrap(), (data.clone(), 1));
    assert!(pipeline(vec![broken(false)]).encode(data).is_err());
}

#[test]
fn compression_that_does_not_shrink_is_skipped_only_if_optional() {
    // libhdf5 keeps a deflate stream however long it is.
    for (spec, skipped) in [(FilterSpec::deflate(6), 0), (FilterSpec::zstd(3), 0b10)] {
        let data = noise(1000);
        let optional = pipeline(vec![FilterSpec::shuffle(4), spec.clone()]);
        let (stored, mask) = optional.encode(data.clone()).unwrap();
        assert_eq!((stored.len() == 1000, mask), (skipped != 0, skipped));
        assert_eq!(optional.decode(stored, mask, 1000).unwrap(), data);

        let mandatory = pipeline(vec![FilterSpec { optional: false, ..spec }]);
        let (stored, mask) = mandatory.encode(data.clone()).unwrap();
        assert!(stored.len() > 1000);
        assert_eq!(mask, 0);
        assert_eq!(mandatory.decode(stored, mask, 1000).unwrap(), data);
    }
}

#[test]
fn a_limit_holds_for_every_stage_and_for_skipped_pipelines() {
    let bomb = pipeline(vec![FilterSpec::zstd(3), FilterSpec::zstd(3)]);
    let (stored, mask) = bomb.encode(vec![0; 50 << 20]).unwrap();
    assert!(stored.len() < 1000 && mask == 0);
    assert!(bomb.decode(stored.clone(), mask, (50 << 20) - 1).is_err());
    assert!(bomb.decode(stored.clone(), mask, 1000).is_err());
    assert_eq!(bomb.decode(stored, mask, 50 << 20).unwrap().len(), 50 << 20);
    assert!(pipeline(vec![]).decode(vec![0; 10], 0, 9).is_err());
    assert!(bomb.decode(vec![0; 10], 0b11, 9).is_err());
}

#[test]
fn a_decoded_chunk_does_not_hold_on_to_a_larger_buffer() {
    let deflate = pipeline(vec![FilterSpec::deflate(1)]);
    let (stored, mask) = deflate.encode(vec![1; 50_000]).unwrap();
    let decoded = deflate.decode(stored, mask, 1 << 20).unwrap();
    assert_eq!(decoded.len(), 50_000);
    assert!(decoded.capacity() < 70_000);
}

#[test]
fn more_filters_than_mask_bits_are_refused() {
    assert!(Pipeline::new(vec![FilterSpec::fletcher32(); MAX_FILTERS]).is_ok());
    assert!(Pipeline::new(vec![FilterSpec::fletcher32(); MAX_FILTERS + 1]).is_err());
    let full = pipeline(vec![FilterSpec::fletcher32(); MAX_FILTERS]);
    let (stored, mask) = full.encode(vec![7; 3]).unwrap();
    assert_eq!(stored.len(), 3 + 4 * MAX_FILTERS);
    assert_eq!(full.decode(stored, mask, 3).unwrap(), [7; 3]);
}

fn spec() -> impl Strategy<Value = FilterSpec> {
    let spec = prop_oneof![
        (1u32..10).prop_map(FilterSpec::shuffle),
        (0u32..10).prop_map(FilterSpec::deflate),
        (1u32..6).prop_map(FilterSpec::zstd),
        Just(FilterSpec::fletcher32()),
        Just(FilterSpec::location()),
    ];
    (spec, any::<bool>()).prop_map(|(spec, optional)| FilterSpec { optional, ..spec })
}

fn data() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..2000),
        proptest::collection::vec(0u8..3, 0..2000),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn what_any_pipeline_encodes_it_decodes(
        specs in proptest::collection::vec(spec(), 0..6),
        data in data(),
    ) {
        let pipeline = pipeline(specs);
        let (stored, mask) = pipeline.encode(data.clone()).unwrap();
        prop_assert_eq!(pipeline.encode_slice(&data).unwrap(), (stored.clone(), mask));
        prop_assert_eq!(pipeline.decode_slice(&stored, mask, data.len()).unwrap(), data.clone());
        prop_assert_eq!(pipeline.decode(stored, mask, data.len()).unwrap(), data);
    }

    #[test]
    fn damaged_chunks_give_an_error_or_bytes_within_the_limit(
        specs in proptest::collection::vec(spec(), 1..4),
        data in data(),
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..4),
        mask in 0u32..16,
        cut in any::<proptest::sample::Index>(),
    ) {
        let pipeline = pipeline(specs);
        let (mut stored, _) = pipeline.encode(data.clone()).unwrap();
        if !stored.is_empty() {
            for (at, byte) in changes {
                let at = at.index(stored.len());
                stored[at] = byte;
            }
            stored.truncate(cut.index(stored.len()) + 1);
        }
        if let Ok(decoded) = pipeline.decode(stored, mask, data.len()) {
            prop_assert!(decoded.len() <= data.len());
        }
    }
}
