//! Extents and selections to bytes and back.

use crate::model;
use crate::model::Modelled;
use proptest::prelude::*;
use pumice_bytes::{Budget, Reader, lookup3};
use pumice_space::serial::{
    HyperslabVersion, decode_cells, decode_dataspace, decode_extent, decode_selection,
    encode_cells, encode_cells_with, encode_dataspace, encode_dataspace_with, encode_extent,
    encode_selection, encode_selection_with,
};
use pumice_space::{CellSet, Extent, Selection, UNLIMITED};

const EVERY_VERSION: [HyperslabVersion; 4] =
    [HyperslabVersion::Smallest, HyperslabVersion::V1, HyperslabVersion::V2, HyperslabVersion::V3];

fn reader(bytes: &[u8]) -> Reader<'_> {
    Reader::new("selection", 0x100, bytes)
}

fn setup() -> impl Strategy<Value = (Vec<u64>, Modelled)> {
    model::dims().prop_flat_map(|dims| (Just(dims.clone()), model::selection(dims)))
}

/// Section 0 of the chunk that the format's description works out by hand: cells 2, 3 and 7 of 10.
fn documented_section() -> Vec<u8> {
    let mut bytes = vec![1, 0, 8, 0x18, 0, 0, 0];
    bytes.extend([1, 1, 1, 0, 0, 0, 0, 0]);
    for size in [10u64, 20] {
        bytes.extend(size.to_le_bytes());
    }
    for word in [2u32, 1, 0, 0x18, 1, 2, 2, 3, 7, 7] {
        bytes.extend(word.to_le_bytes());
    }
    bytes
}

#[test]
fn the_documented_chunk_decodes_and_has_its_checksum() {
    let bytes = documented_section();
    assert_eq!(bytes.len(), 0x47);
    assert_eq!(lookup3(&bytes), 0xD761_0EBC);
    let (extent, selection) = decode_dataspace(&mut reader(&bytes)).unwrap();
    assert_eq!(extent.dims(), [10]);
    let expected = CellSet::from_sorted_cells(10, [2, 3, 7]).unwrap();
    assert_eq!(CellSet::from_selection(&selection, &[10]).unwrap(), expected);
    let (dims, set) = decode_cells(&mut reader(&bytes), &mut Budget::new(1000)).unwrap();
    assert_eq!((dims.as_slice(), set), ([10].as_slice(), expected));
}

#[test]
fn variants_of_the_documented_extent_decode_alike() {
    let selection = &documented_section()[0x1F..];
    let expected = CellSet::from_sorted_cells(10, [2, 3, 7]).unwrap();
    for (max, checksum) in [(None, 0x62EB_0788), (Some(10u64), 0x43A0_5B90)] {
        let mut bytes = vec![1, 0, 8, if max.is_some() { 20 } else { 12 }, 0, 0, 0];
        bytes.extend([2, 1, u8::from(max.is_some()), 1]);
        bytes.extend(10u64.to_le_bytes());
        bytes.extend(max.into_iter().flat_map(u64::to_le_bytes));
        bytes.extend(selection);
        assert_eq!(lookup3(&bytes), checksum);
        let (_, set) = decode_cells(&mut reader(&bytes), &mut Budget::new(1000)).unwrap();
        assert_eq!(set, expected);
    }
}

#[test]
fn the_documented_chunk_is_written_without_maximum() {
    let set = CellSet::from_sorted_cells(10, [2, 3, 7]).unwrap();
    let mut out = Vec::new();
    encode_cells_with(&[10], &set, HyperslabVersion::V1, &mut out).unwrap();
    let documented = documented_section();
    let mut expected = documented.clone();
    expected.drain(0x17..0x1F);
    expected[3] = 0x10;
    expected[9] = 0;
    assert_eq!(out, expected, "the same but for the maximum");
    let mut shortest = Vec::new();
    encode_cells(&[10], &set, &mut shortest).unwrap();
    assert_eq!(shortest.len(), 23 + 24, "version 3: 14 bytes, a count and two pairs of 2 bytes");
}

#[test]
fn a_full_chunk_is_the_documented_39_bytes() {
    let mut out = Vec::new();
    encode_cells(&[10], &CellSet::full(10), &mut out).unwrap();
    assert_eq!((out.len(), lookup3(&out)), (39, 0xC84C_82FC));
    let mut plain = Vec::new();
    let whole = Selection::block(&[0], &[10]).unwrap();
    encode_dataspace(&[10], &whole, &mut plain).unwrap();
    assert_eq!(plain, out);
    let (_, set) = decode_cells(&mut reader(&out), &mut Budget::new(0)).unwrap();
    assert!(set.is_full());
}

#[test]
fn an_empty_chunk_is_none() {
    let mut out = Vec::new();
    encode_cells(&[4, 5], &CellSet::empty(20), &mut out).unwrap();
    assert_eq!(out[31..35], [0, 0, 0, 0]);
    let (_, set) = decode_cells(&mut reader(&out), &mut Budget::new(0)).unwrap();
    assert_eq!(set, CellSet::empty(20));
}

#[test]
fn regular_sets_are_written_as_regular_hyperslabs() {
    let slab = Selection::hyperslab(&[1, 2], &[3, 5], &[20, 40], &[2, 1]).unwrap();
    let set = CellSet::from_selection(&slab, &[100, 256]).unwrap();
    let mut out = Vec::new();
    encode_cells(&[100, 256], &set, &mut out).unwrap();
    assert_eq!(out.len(), 31 + 14 + 4 * 2 * 2);
    let (_, back) = decode_dataspace(&mut reader(&out)).unwrap();
    assert_eq!(back.regular(), slab.regular());
}

#[test]
fn unlimited_hyperslabs_stay_unlimited() {
    let endless = [
        Selection::hyperslab(&[3], &[10], &[UNLIMITED], &[2]).unwrap(),
        Selection::hyperslab(&[3], &[1], &[1], &[UNLIMITED]).unwrap(),
        Selection::hyperslab(&[70_000], &[1], &[UNLIMITED], &[1]).unwrap(),
    ];
    for selection in endless {
        for version in [HyperslabVersion::Smallest, HyperslabVersion::V2, HyperslabVersion::V3] {
            let mut out = Vec::new();
            encode_selection_with(&selection, &[100_000], version, &mut out).unwrap();
            let back = decode_selection(&mut reader(&out), 1).unwrap();
            assert_eq!(back.regular(), selection.regular());
            assert!(back.is_unlimited());
        }
        let mut out = Vec::new();
        let refused = encode_selection_with(&selection, &[9], HyperslabVersion::V1, &mut out);
        assert!(refused.is_err());
    }
}

#[test]
fn points_keep_their_order() {
    for (coords, size) in [(vec![5, 1, 0, 9, 5, 1], 15 + 12), (vec![70_000, 1], 17 + 8)] {
        let points = Selection::points(2, coords.clone()).unwrap();
        let mut out = Vec::new();
        encode_selection(&points, &[80_000, 10], &mut out).unwrap();
        assert_eq!(out.len(), size);
        let back = decode_selection(&mut reader(&out), 2).unwrap();
        assert_eq!(back.as_points().unwrap(), (2, &coords[..]));
        let mut old = Vec::new();
        encode_selection_with(&points, &[80_000, 10], HyperslabVersion::V1, &mut old).unwrap();
        assert_eq!(old.len(), 24 + 4 * coords.len());
        let back = decode_selection(&mut reader(&old), 2).unwrap();
        assert_eq!(back.as_points().unwrap(), (2, &coords[..]));
    }
}

#[test]
fn overlapping_blocks_count_once() {
    let mut bytes = Vec::new();
    for word in [2u32, 1, 0, 0, 2, 3] {
        bytes.extend(word.to_le_bytes());
    }
    for corners in [[0u32, 0, 2, 2], [1, 1, 3, 3], [0, 0, 0, 5]] {
        bytes.extend(corners.into_iter().flat_map(u32::to_le_bytes));
    }
    let selection = decode_selection(&mut reader(&bytes), 2).unwrap();
    assert_eq!(selection.count(&[6, 6]), 9 + 5 + 3);
    let mut section = Vec::new();
    encode_dataspace(&[6, 6], &Selection::none(), &mut section).unwrap();
    section.truncate(31);
    section.extend(&bytes);
    let (_, set) = decode_cells(&mut reader(&section), &mut Budget::new(10_000)).unwrap();
    assert_eq!(set, CellSet::from_selection(&selection, &[6, 6]).unwrap());
}

#[test]
fn coordinates_outside_the_extent_are_refused() {
    for selection in [
        Selection::block(&[3, 0], &[4, 2]).unwrap(),
        Selection::points(2, vec![6, 0, 7, 1]).unwrap(),
        Selection::hyperslab(&[0, 0], &[3, 1], &[3, 1], &[1, 2]).unwrap(),
    ] {
        let mut section = Vec::new();
        encode_dataspace(&[6, 6], &Selection::none(), &mut section).unwrap();
        section.truncate(31);
        encode_selection(&selection, &[9, 9], &mut section).unwrap();
        assert!(decode_dataspace(&mut reader(&section)).is_err());
        assert!(decode_cells(&mut reader(&section), &mut Budget::new(10_000)).is_err());
        assert!(encode_dataspace(&[6, 6], &selection, &mut Vec::new()).is_err());
    }
}

#[test]
fn a_small_input_cannot_claim_much_memory() {
    // Every second column of a chunk with 2^31 rows: 2^31 runs out of a few bytes.
    let dims = [1u64 << 31, 4];
    let comb = Selection::hyperslab(&[0, 0], &[1, 2], &[1 << 31, 2], &[1, 1]).unwrap();
    for version in [HyperslabVersion::Smallest, HyperslabVersion::V1, HyperslabVersion::V3] {
        let mut out = Vec::new();
        encode_dataspace_with(&dims, &comb, version, &mut out).unwrap();
        assert!(out.len() < 200);
        assert!(decode_cells(&mut reader(&out), &mut Budget::new(1 << 20)).is_err());
        assert_eq!(decode_dataspace(&mut reader(&out)).unwrap().1.count(&dims), 1 << 32);
    }
    // A count that the input does not back.
    let mut bytes = Vec::new();
    for word in [2u32, 1, 0, 0, 1, u32::MAX] {
        bytes.extend(word.to_le_bytes());
    }
    assert!(decode_selection(&mut reader(&bytes), 1).is_err());
}

#[test]
fn blocks_that_would_explode_are_refused() {
    // Bars of rank 8 that cross each other in every dimension.
    let (rank, size) = (8usize, 200u32);
    let mut bytes = Vec::new();
    let blocks: Vec<(Vec<u32>, Vec<u32>)> = (0..160)
        .map(|index: u32| {
            let wide = index as usize % rank;
            let low = (0..rank).map(|axis| if axis == wide { 0 } else { index % 100 }).collect();
            let high = (0..rank).map(|axis| if axis == wide { size - 1 } else { index + 30 });
            (low, high.collect())
        })
        .collect();
    for word in [2u32, 1, 0, 0, rank as u32, blocks.len() as u32] {
        bytes.extend(word.to_le_bytes());
    }
    for (low, high) in &blocks {
        bytes.extend(low.iter().chain(high).flat_map(|at| at.to_le_bytes()));
    }
    assert!(decode_selection(&mut reader(&bytes), rank).is_err());
}

#[test]
fn extents_round_trip() {
    let extents = [
        Extent::Null,
        Extent::Scalar,
        Extent::simple(&[0, 7]).unwrap(),
        Extent::with_max(&[3, 4], &[UNLIMITED, 9]).unwrap(),
        Extent::simple(&[1; 32]).unwrap(),
    ];
    for extent in extents {
        for (version, width) in [(1, 8), (2, 8), (2, 4), (1, 2)] {
            let mut out = Vec::new();
            let written = encode_extent(&extent, version, width, &mut out);
            if extent.is_null() && version == 1 {
                assert!(written.is_err());
                continue;
            }
            let mut reader = reader(&out);
            assert_eq!(decode_extent(&mut reader, width).unwrap(), extent);
            assert!(reader.is_empty());
        }
    }
    let wide = Extent::simple(&[70_000]).unwrap();
    assert!(encode_extent(&wide, 1, 2, &mut Vec::new()).is_err());
    assert!(encode_extent(&wide, 3, 8, &mut Vec::new()).is_err());
}

#[test]
fn damaged_extents_are_refused() {
    let shrunk = [2, 1, 1, 1, 9, 0, 5, 0];
    assert!(decode_extent(&mut reader(&shrunk), 2).is_err(), "maximum below the size");
    assert!(decode_extent(&mut reader(&[3, 0, 0, 0]), 8).is_err(), "version");
    assert!(decode_extent(&mut reader(&[2, 33, 0, 1]), 8).is_err(), "rank");
    assert!(decode_extent(&mut reader(&[2, 0, 0, 3]), 8).is_err(), "type");
    assert!(decode_extent(&mut reader(&[2, 1, 0, 1, 0xFF, 0xFF]), 2).is_err(), "endless size");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn every_version_round_trips((dims, modelled) in setup()) {
        let expected = CellSet::from_selection(&modelled.selection, &dims).unwrap();
        let mut shortest = Vec::new();
        encode_dataspace(&dims, &modelled.selection, &mut shortest).unwrap();
        for version in EVERY_VERSION {
            let (mut slow, mut fast, mut bare) = (Vec::new(), Vec::new(), Vec::new());
            let written = encode_dataspace_with(&dims, &modelled.selection, version, &mut slow);
            let direct = encode_cells_with(&dims, &expected, version, &mut fast);
            prop_assert_eq!(written.is_ok(), direct.is_ok());
            if written.is_ok() {
                prop_assert_eq!(&slow, &fast, "one set, one encoding");
                prop_assert!(shortest.len() <= slow.len());
                let mut input = reader(&slow);
                let (extent, back) = decode_dataspace(&mut input).unwrap();
                prop_assert!(input.is_empty());
                prop_assert_eq!(extent.dims(), &dims[..]);
                prop_assert!(back.same_cells(&modelled.selection, &dims).unwrap());
                let mut input = reader(&slow);
                let (shape, set) = decode_cells(&mut input, &mut Budget::new(1 << 20)).unwrap();
                prop_assert!(input.is_empty());
                prop_assert_eq!(&shape[..], &dims[..]);
                prop_assert_eq!(&set, &expected);
            } else {
                prop_assert_eq!(version, HyperslabVersion::V2);
            }
            if encode_selection_with(&modelled.selection, &dims, version, &mut bare).is_ok() {
                let mut input = reader(&bare);
                let back = decode_selection(&mut input, dims.len()).unwrap();
                prop_assert!(input.is_empty());
                prop_assert!(back.same_cells(&modelled.selection, &dims).unwrap());
            }
        }
    }

    #[test]
    fn blocks_in_any_order_give_the_same_set(
        (dims, parts) in model::dims().prop_flat_map(|dims| {
            let parts = prop::collection::vec(model::hyperslab(dims.clone()), 1..5);
            (Just(dims), parts)
        }),
        reverse in any::<bool>(),
    ) {
        let mut blocks = Vec::new();
        for part in &parts {
            part.selection.for_each_block(&dims, |low, high| {
                blocks.push(low.iter().chain(high).map(|&at| at as u16).collect::<Vec<u16>>());
            });
        }
        if reverse {
            blocks.reverse();
        }
        let mut bytes = Vec::new();
        encode_dataspace(&dims, &Selection::none(), &mut bytes).unwrap();
        bytes.truncate(bytes.len() - 16);
        bytes.extend([2, 0, 0, 0, 3, 0, 0, 0, 0, 2, dims.len() as u8, 0, 0, 0]);
        bytes.extend((blocks.len() as u16).to_le_bytes());
        bytes.extend(blocks.iter().flatten().flat_map(|at| at.to_le_bytes()));
        let union = parts.iter().map(|part| part.selection.clone());
        let union = Selection::union_of(dims.len(), union, &dims).unwrap();
        let (_, back) = decode_dataspace(&mut reader(&bytes)).unwrap();
        prop_assert!(back.same_cells(&union, &dims).unwrap());
        let (_, set) = decode_cells(&mut reader(&bytes), &mut Budget::new(1 << 20)).unwrap();
        prop_assert_eq!(set, CellSet::from_selection(&union, &dims).unwrap());
    }

    #[test]
    fn damaged_bytes_give_an_answer_or_an_error(
        (dims, modelled) in setup(),
        version in prop::sample::select(EVERY_VERSION.to_vec()),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = Vec::new();
        if encode_dataspace_with(&dims, &modelled.selection, version, &mut bytes).is_err() {
            return Ok(());
        }
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        for end in [bytes.len(), cut.index(bytes.len())] {
            let bytes = &bytes[..end];
            if let Ok((extent, selection)) = decode_dataspace(&mut reader(bytes)) {
                prop_assert!(selection.check(extent.dims()).is_ok());
            }
            let cells = decode_cells(&mut reader(bytes), &mut Budget::new(1 << 16));
            if let Ok((dims, set)) = cells {
                prop_assert_eq!(set.cells(), dims.iter().product::<u64>());
                prop_assert!(set.heap_bytes() <= 1 << 16);
            }
            let _ = decode_selection(&mut reader(bytes), dims.len());
            let _ = decode_extent(&mut reader(bytes), 8);
        }
    }

    #[test]
    fn random_bytes_give_an_answer_or_an_error(
        kind in 0u8..5,
        version in 0u8..4,
        rank in 0usize..5,
        rest in prop::collection::vec(prop_oneof![0u8..6, any::<u8>()], 0..80),
    ) {
        let mut bytes = vec![kind, 0, 0, 0, version, 0, 0, 0];
        bytes.extend(rest);
        let _ = decode_selection(&mut reader(&bytes), rank);
    }
}
