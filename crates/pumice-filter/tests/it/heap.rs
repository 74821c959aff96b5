//! The heap filter: any bytes come back, canonical heaps become short, damage is noticed.

use proptest::prelude::*;
use pumice_filter::{FilterSpec, HeapSection, Pipeline};

fn pipeline(filters: Vec<FilterSpec>) -> Pipeline {
    Pipeline::new(filters).unwrap()
}

fn objects() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let object = prop_oneof![
        8 => prop::collection::vec(any::<u8>(), 0..40),
        1 => prop::collection::vec(any::<u8>(), 250..700),
    ];
    prop::collection::vec(object, 1..60)
}

fn parts(objects: &[Vec<u8>]) -> (Vec<u32>, Vec<u8>) {
    (objects.iter().map(|object| object.len() as u32).collect(), objects.concat())
}

proptest! {
    #[test]
    fn any_bytes_come_back(bytes in prop::collection::vec(any::<u8>(), 0..500)) {
        let heap = pipeline(vec![FilterSpec { optional: false, ..FilterSpec::heap() }]);
        let (stored, mask) = heap.encode(bytes.clone()).unwrap();
        prop_assert_eq!(heap.decode(stored, mask, bytes.len()).unwrap(), bytes);
    }

    #[test]
    fn both_ways_to_the_encoded_side_give_the_same_bytes(objects in objects()) {
        let (lengths, bytes) = parts(&objects);
        let plain = pipeline(vec![]).encode_heap(&lengths, &bytes, 8).unwrap();
        prop_assert_eq!(plain.bytes.len() as u64, plain.unfiltered);
        let heap = pipeline(vec![FilterSpec::heap()]);
        let direct = heap.encode_heap(&lengths, &bytes, 8).unwrap();
        let (filtered, mask) = heap.encode(plain.bytes.clone()).unwrap();
        prop_assert_eq!((&direct.bytes, direct.mask), (&filtered, mask));
        prop_assert_eq!(direct.unfiltered, plain.unfiltered);
        prop_assert_eq!(heap.decode(filtered, mask, plain.bytes.len()).unwrap(), plain.bytes.clone());
        let found = heap.decode_heap(&direct.bytes, mask, direct.unfiltered).unwrap();
        let HeapSection::Objects(found) = found else { panic!("not the direct way") };
        prop_assert_eq!((found.lengths, found.bytes), (lengths, bytes));
        let found = pipeline(vec![]).decode_heap(&plain.bytes, 0, plain.unfiltered).unwrap();
        let HeapSection::Plain(image) = found else { panic!("no plain form") };
        prop_assert_eq!(&image, &plain.bytes[..plain.bytes.len() - 4]);
    }

    #[test]
    fn a_changed_plain_form_comes_back_changed(objects in objects(), at in any::<usize>(), by in 1u8..) {
        let (lengths, bytes) = parts(&objects);
        let mut plain = pipeline(vec![]).encode_heap(&lengths, &bytes, 8).unwrap().bytes;
        let place = at % plain.len();
        plain[place] ^= by;
        let heap = pipeline(vec![FilterSpec { optional: false, ..FilterSpec::heap() }]);
        let (stored, mask) = heap.encode(plain.clone()).unwrap();
        prop_assert_eq!(heap.decode(stored, mask, plain.len()).unwrap(), plain);
    }
}

#[test]
fn every_changed_bit_of_the_encoded_side_is_an_error() {
    let heap = pipeline(vec![FilterSpec::heap()]);
    let stored = heap.encode_heap(&[3, 0, 300, 2], &[b'x'; 305], 8).unwrap();
    assert_eq!(stored.mask, 0);
    for bit in 0..stored.bytes.len() * 8 {
        let mut damaged = stored.bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(heap.decode_heap(&damaged, 0, stored.unfiltered).is_err(), "bit {bit}");
    }
    for end in 0..stored.bytes.len() {
        let found = heap.decode_heap(&stored.bytes[..end], 0, stored.unfiltered);
        assert!(end == 0 || found.is_err(), "{end} byte(s)");
    }
}

#[test]
fn more_objects_than_a_collection_holds_make_two() {
    let lengths = vec![1; 65_535 + 3];
    let bytes = vec![7; lengths.len()];
    let heap = pipeline(vec![FilterSpec::heap(), FilterSpec::zstd(1)]);
    let stored = heap.encode_heap(&lengths, &bytes, 8).unwrap();
    assert!(stored.bytes.len() < 100);
    let plain = heap.decode(stored.bytes, stored.mask, stored.unfiltered as usize).unwrap();
    assert_eq!(&plain[..12], b"HGLS\x01\0\0\0\x02\0\0\0");
    assert_eq!(plain.len() as u64, stored.unfiltered);
}

mod references {
    use super::pipeline;
    use proptest::prelude::*;
    use pumice_filter::FilterSpec;
    use pumice_filter::references::ReferencesSection;

    proptest! {
        #[test]
        fn any_bytes_come_back(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let filter = pipeline(vec![FilterSpec { optional: false, ..FilterSpec::references() }]);
            let (stored, mask) = filter.encode(bytes.clone()).unwrap();
            prop_assert_eq!(filter.decode(stored, mask, bytes.len()).unwrap(), bytes);
        }

        #[test]
        fn both_ways_give_the_same_bytes(
            counts in prop::collection::vec(prop_oneof![0u32..40, any::<u32>()], 0..80),
            at in any::<usize>(),
        ) {
            let plain = pipeline(vec![]).encode_references(&counts).unwrap();
            prop_assert_eq!(plain.bytes.len(), counts.len() * 16 + 4);
            let filter = pipeline(vec![FilterSpec::references()]);
            let direct = filter.encode_references(&counts).unwrap();
            let (stored, mask) = filter.encode(plain.bytes.clone()).unwrap();
            prop_assert_eq!((&direct.bytes, direct.mask), (&stored, mask));
            let back = filter.decode(stored, mask, plain.bytes.len()).unwrap();
            prop_assert_eq!(&back, &plain.bytes);
            let found = filter.decode_references(&direct.bytes, mask, direct.unfiltered).unwrap();
            if !counts.is_empty() {
                prop_assert_eq!(found, ReferencesSection::Counts(counts));
            }
            let mut damaged = direct.bytes;
            let place = at % damaged.len();
            damaged[place] ^= 1 << (at % 8);
            prop_assert!(filter.decode_references(&damaged, mask, direct.unfiltered).is_err());
        }
    }
}

mod widths {
    use super::{objects, parts, pipeline};
    use proptest::prelude::*;
    use pumice_filter::{DatasetFacts, FilterSpec, HeapSection};
    use pumice_types::Datatype;

    /// The heap filter of a dataset in a file with such lengths.
    fn heap(length_width: u8) -> FilterSpec {
        let datatype = Datatype::u8();
        let facts = DatasetFacts {
            datatype: &datatype,
            chunk: &[1],
            fill: None,
            sparse: true,
            length_width,
        };
        FilterSpec::heap().for_dataset(&facts).unwrap()
    }

    #[test]
    fn only_lengths_that_are_not_the_usual_ones_are_a_parameter() {
        assert_eq!(heap(8), FilterSpec::heap());
        assert_eq!(heap(4).parameters, [4]);
        assert_eq!(heap(2).parameters, [2]);
        // A dataset that is made anew elsewhere has the lengths of the file that it is in.
        let facts = DatasetFacts {
            datatype: &Datatype::u8(),
            chunk: &[1],
            fill: None,
            sparse: true,
            length_width: 8,
        };
        assert_eq!(heap(4).for_dataset(&facts).unwrap(), FilterSpec::heap());
    }

    #[test]
    fn the_directory_has_the_lengths_of_the_file() {
        for width in [2usize, 4, 8] {
            let stored = pipeline(vec![]).encode_heap(&[3], b"abc", width as u8).unwrap();
            let mut wanted = b"HGLS\x01\0\0\0\x01\0\0\0".to_vec();
            for number in [12 + 2 * width as u64, 40] {
                wanted.extend_from_slice(&number.to_le_bytes()[..width]);
            }
            wanted.extend_from_slice(b"GCOL\x01\0\0\0");
            for number in [40u64, 1, 3] {
                wanted.extend_from_slice(&number.to_le_bytes());
            }
            wanted.extend_from_slice(b"abc\0\0\0\0\0");
            assert_eq!(stored.bytes[..wanted.len()], wanted);
            assert_eq!(stored.bytes.len(), wanted.len() + 4);
        }
    }

    #[test]
    fn what_lengths_cannot_count_is_refused() {
        for filters in [vec![], vec![heap(2)], vec![FilterSpec::deflate(1)]] {
            let error = pipeline(filters).encode_heap(&[65_536], &[7; 65_536], 2).unwrap_err();
            assert!(error.to_string().contains("65535 at most"), "{error}");
        }
        let most = pipeline(vec![]).encode_heap(&[65_480], &[7; 65_480], 2).unwrap();
        assert_eq!(most.bytes.len(), 12 + 4 + 16 + 16 + 65_480 + 4);
        // Filters of datasets from before there was a parameter have lengths of eight bytes everywhere.
        let old = pipeline(vec![FilterSpec::heap()]);
        let stored = old.encode_heap(&[65_536], &[7; 65_536], 2).unwrap();
        assert_eq!(stored.unfiltered, 12 + 16 + 16 + 16 + 65_536 + 4);
        old.decode_heap(&stored.bytes, stored.mask, stored.unfiltered).unwrap();
    }

    #[test]
    fn a_width_that_no_file_has_is_an_error() {
        let filter = FilterSpec { parameters: vec![3], optional: false, ..FilterSpec::heap() };
        assert!(pipeline(vec![filter]).encode_heap(&[3], b"abc", 4).is_err());
    }

    proptest! {
        #[test]
        fn both_ways_to_the_encoded_side_give_the_same_bytes(objects in objects(), four in any::<bool>()) {
            let (lengths, bytes) = parts(&objects);
            let width = if four { 4 } else { 2 };
            let plain = pipeline(vec![]).encode_heap(&lengths, &bytes, width).unwrap();
            let filter = pipeline(vec![heap(width)]);
            let direct = filter.encode_heap(&lengths, &bytes, width).unwrap();
            let (filtered, mask) = filter.encode(plain.bytes.clone()).unwrap();
            prop_assert_eq!((&direct.bytes, direct.mask), (&filtered, mask));
            prop_assert_eq!(direct.unfiltered, plain.bytes.len() as u64);
            prop_assert_eq!(filter.decode(filtered, mask, plain.bytes.len()).unwrap(), plain.bytes);
            let found = filter.decode_heap(&direct.bytes, mask, direct.unfiltered).unwrap();
            let HeapSection::Objects(found) = found else { panic!("not the direct way") };
            prop_assert_eq!((found.lengths, found.bytes), (lengths, bytes));
        }
    }
}
