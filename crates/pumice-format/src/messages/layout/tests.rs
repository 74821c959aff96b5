use super::*;
use crate::UNDEFINED;
use crate::index::{ChunkRecord, SectionRecord};
use crate::structured::SPARSE;
use proptest::prelude::*;

fn example(address: u64) -> Layout {
    Layout::Structured {
        kind: SPARSE,
        chunk: vec![10],
        element_size: 4,
        sections: 2,
        metadata_sections: vec![0],
        index: ChunkIndexInfo::fixed_array(),
        address,
        dont_filter_partial: false,
    }
}

const EXAMPLE: [u8; 24] =
    [5, 4, 0, 1, 0, 0, 2, 1, 10, 4, 8, 2, 1, 0, 3, 10, 0, 7, 0, 0, 0, 0, 0, 0];

fn decode(bytes: &[u8]) -> Result<Layout, DecodeError> {
    Layout::decode(bytes, &Context::default())
}

fn encode(layout: &Layout) -> Vec<u8> {
    let mut out = Vec::new();
    layout.encode(Sizes::default(), &mut out).unwrap();
    out
}

#[test]
fn the_worked_example_encodes_byte_for_byte() {
    assert_eq!(encode(&example(0x700)), EXAMPLE);
    assert_eq!(decode(&EXAMPLE).unwrap(), example(0x700));
}

#[test]
fn trailing_bytes_of_the_prototype_are_ignored() {
    let mut bytes = EXAMPLE.to_vec();
    bytes.extend_from_slice(&[0xAB, 0xCD]);
    assert_eq!(decode(&bytes).unwrap(), example(0x700));
}

#[test]
fn the_single_chunk_of_the_worked_example_encodes_byte_for_byte() {
    let mut layout = example(0x800);
    let Layout::Structured { index, .. } = &mut layout else { unreachable!() };
    let mut record = ChunkRecord::dense(0x800, 0x57);
    record.sections.push(SectionRecord { offset: 0, unfiltered: 0x4B, filter_mask: 0 });
    record.sections.push(SectionRecord { offset: 0x4B, unfiltered: 12, filter_mask: 0 });
    *index = ChunkIndexInfo::Single(SingleChunk::from_record(&record, false));
    let bytes = encode(&layout);
    assert_eq!(&bytes[14..], [1, 0x57, 0, 0x4B, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0]);
    assert_eq!(decode(&bytes).unwrap(), layout);
}

#[test]
fn the_older_order_is_accepted_only_when_all_of_it_decodes() {
    let mut older = EXAMPLE[..10].to_vec();
    older.extend_from_slice(&EXAMPLE[14..]);
    older.extend_from_slice(&EXAMPLE[10..14]);
    assert_eq!(decode(&older).unwrap(), example(0x700));
    for end in 0..older.len() {
        assert!(decode(&older[..end]).is_err(), "{end}");
    }
}

#[test]
fn the_older_order_finds_the_sections_of_a_single_chunk() {
    let mut older = vec![5, 4, 0, 1, 0, 0, 2, 1, 10, 16, 1];
    older.put_u64(500); // three sections: the size field has 8 bytes
    older.put_u64(75);
    older.put_u64(235);
    older.put_u64(0x800);
    older.put_bytes(&[8, 3, 3, 0, 1, 2]);
    let Layout::Structured { sections, index: ChunkIndexInfo::Single(chunk), address, .. } =
        decode(&older).unwrap()
    else {
        panic!("not a single structured chunk")
    };
    assert_eq!((sections, chunk.size, chunk.sections[2].offset, address), (3, 500, 235, 0x800));
}

#[test]
fn every_shorter_message_is_refused() {
    for end in 0..EXAMPLE.len() {
        assert!(decode(&EXAMPLE[..end]).is_err(), "{end}");
    }
}

#[test]
fn dense_layouts_survive_a_round_trip() {
    let chunked = |version, index| Layout::Chunked {
        version,
        chunk: vec![300, 7],
        element_size: 8,
        index,
        address: 0x1234,
        dont_filter_partial: version > 3,
    };
    let single =
        SingleChunk { filtered: true, size: 99, filter_mask: 2, sections: Default::default() };
    let plain = SingleChunk { size: 300 * 7 * 8, ..Default::default() };
    let layouts = [
        Layout::Compact { data: vec![1, 2, 3] },
        Layout::Contiguous { address: UNDEFINED, size: Some(0) },
        Layout::Virtual { heap_address: 0x99, heap_index: 4 },
        chunked(3, ChunkIndexInfo::BTree1),
        chunked(4, ChunkIndexInfo::Implicit),
        chunked(4, ChunkIndexInfo::Single(single)),
        chunked(5, ChunkIndexInfo::Single(plain)),
        chunked(5, ChunkIndexInfo::fixed_array()),
        chunked(4, ChunkIndexInfo::extensible_array()),
        chunked(4, ChunkIndexInfo::btree2()),
    ];
    for layout in layouts {
        assert_eq!(decode(&encode(&layout)).unwrap(), layout);
    }
}

#[test]
fn four_byte_addresses_are_read_at_their_width() {
    let sizes = Sizes { offset: 4, length: 4 };
    let layout = Layout::Contiguous { address: UNDEFINED, size: Some(16) };
    let mut bytes = Vec::new();
    layout.encode(sizes, &mut bytes).unwrap();
    assert_eq!(bytes, [3, 1, 255, 255, 255, 255, 16, 0, 0, 0]);
    assert_eq!(Layout::decode(&bytes, &Context::new(sizes)).unwrap(), layout);
}

#[test]
fn versions_1_and_2_are_read() {
    let chunked = [1, 2, 2, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 4, 0, 0, 0];
    assert_eq!(decode(&chunked).unwrap(), btree1(1, vec![5], 4, 0x800));
    let contiguous = [2, 1, 1, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0];
    let expected = Layout::Contiguous { address: 0x800, size: None };
    assert_eq!(decode(&contiguous).unwrap(), expected);
    let compact = [2, 1, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 7, 8];
    assert_eq!(decode(&compact).unwrap(), Layout::Compact { data: vec![7, 8] });
}

#[test]
fn chunks_without_cells_or_beyond_64_bits_are_refused() {
    let empty = [3, 2, 2, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0];
    assert!(decode(&empty).is_err());
    let mut huge = vec![4, 2, 0, 3, 8];
    huge.extend_from_slice(&[0xFF; 24]);
    assert!(decode(&huge).is_err());
}

fn single(sections: u8, filtered: bool) -> impl Strategy<Value = ChunkIndexInfo> {
    (any::<u32>(), prop::collection::vec(0u64..250, 3), 0u64..250).prop_map(
        move |(filter_mask, mut offsets, size)| {
            offsets.iter_mut().for_each(|offset| *offset = (*offset).min(size));
            offsets.sort_unstable();
            offsets[0] = 0;
            let mut chunk = SingleChunk::unset(sections, filtered);
            chunk.size = size;
            chunk.filter_mask = if sections == 0 { filter_mask } else { 0 };
            for (section, offset) in chunk.sections.iter_mut().zip(offsets) {
                *section = SectionRecord { offset, unfiltered: 7, filter_mask };
            }
            ChunkIndexInfo::Single(chunk)
        },
    )
}

fn index(sections: u8) -> impl Strategy<Value = ChunkIndexInfo> {
    prop_oneof![
        Just(ChunkIndexInfo::fixed_array()),
        Just(ChunkIndexInfo::extensible_array()),
        Just(ChunkIndexInfo::btree2()),
        single(sections, true),
    ]
}

fn layout() -> impl Strategy<Value = Layout> {
    let chunk = || prop::collection::vec(1u64..100_000, 1..4);
    let dense = (chunk(), 1u64..99, index(0), 4u8..6, any::<u64>(), any::<bool>()).prop_map(
        |(chunk, element_size, index, version, address, dont_filter_partial)| Layout::Chunked {
            version,
            chunk,
            element_size,
            index,
            address,
            dont_filter_partial,
        },
    );
    let structured = (1u8..4).prop_flat_map(move |sections| {
        let metadata =
            prop::sample::subsequence((0..sections).collect::<Vec<_>>(), 0..=sections as usize);
        (chunk(), 1u64..99, index(sections), metadata, any::<u64>(), any::<(bool, u16)>()).prop_map(
            move |(chunk, element_size, index, metadata_sections, address, (flag, kind))| {
                Layout::Structured {
                    kind,
                    chunk,
                    element_size,
                    sections,
                    metadata_sections,
                    index,
                    address,
                    dont_filter_partial: flag,
                }
            },
        )
    });
    prop_oneof![dense, structured]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn chunked_and_structured_layouts_survive_a_round_trip(layout in layout()) {
        prop_assert_eq!(decode(&encode(&layout)).unwrap(), layout);
    }

    #[test]
    fn damaged_layouts_never_panic(
        layout in layout(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        end in any::<prop::sample::Index>(),
    ) {
        let mut bytes = encode(&layout);
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(other) = decode(&bytes) {
            let _ = other.encode(Sizes::default(), &mut Vec::new());
        }
        let _ = decode(&bytes[..end.index(bytes.len())]);
    }
}
