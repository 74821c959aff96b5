//! The worked example of `docs/format/structured-chunk.md`, byte for byte: what Pumice writes, and
//! every other form of the same bytes that it accepts.
//!
//! A one-dimensional array of 32-bit integers, 20 long, in chunks of 10, without filters. Elements
//! 2, 3 and 7 are 0x11, 0x22 and 0x33; the second chunk does not exist. Other forms are made by
//! patching the written file: messages are exchanged, blocks rewritten, checksums repaired.

mod document;
pub(crate) mod patch;

use patch::{Message, append, message, messages, patch, put_checksum, set_message};
use pumice::{Dataset, File, FilterSpec};
use pumice_bytes::lookup3;

const LAYOUT: u8 = 0x08;
const PIPELINE: u8 = 0x0B;
const STRUCTURED_PIPELINE: u8 = 0x19;

const CELLS: [u64; 3] = [2, 3, 7];
const VALUES: [i32; 3] = [0x11, 0x22, 0x33];
/// Section 1: the values one after another.
const SECTION_1: [u8; 12] = [0x11, 0, 0, 0, 0x22, 0, 0, 0, 0x33, 0, 0, 0];

/// The beginning of every section 0: dataspace message, encoding version 0, lengths of 8 bytes.
const OPENING: [u8; 3] = [1, 0, 8];
/// Length and bytes of the extent that Pumice writes: version 1, no maximum, 10 cells.
const EXTENT: [u8; 20] = [16, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0];
/// The cells as Pumice writes them: hyperslab version 3, blocks of 16-bit corners.
const SELECTION: [u8; 24] =
    [2, 0, 0, 0, 3, 0, 0, 0, 0, 2, 1, 0, 0, 0, 2, 0, 2, 0, 3, 0, 7, 0, 7, 0];
/// The cells as the prototype writes them: hyperslab version 1, blocks of 32-bit corners.
const SELECTION_1: [u8; 40] = [
    2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 24, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, //
    2, 0, 0, 0, 3, 0, 0, 0, 7, 0, 0, 0, 7, 0, 0, 0,
];

// ---------------------------------------------------------------------------------------------
// What Pumice writes
// ---------------------------------------------------------------------------------------------

#[test]
fn the_layout_message_has_24_bytes_and_names_the_index() {
    let example = Example::new();
    let (flags, body) = example.message(LAYOUT);
    assert_eq!(flags, 0, "never marked as constant: the address changes");
    assert_eq!(body, layout_message(example.header));
    assert_eq!(body.len(), 24);
    assert!(example.messages().iter().all(|message| message.0 != STRUCTURED_PIPELINE));
}

#[test]
fn the_fixed_array_has_the_documented_bytes() {
    let example = Example::new();
    assert_eq!(example.at(example.header, 28), array_header(example.block));
    assert_eq!(example.at(example.block, 54), array_block(example.header, example.chunk));
}

#[test]
fn the_chunk_has_the_documented_63_bytes() {
    let example = Example::new();
    let mut section = [&OPENING[..], &EXTENT, &SELECTION].concat();
    assert_eq!(section.len(), 47);
    put_checksum(&mut section);
    assert_eq!(section[47..], 0x892C_50D3u32.to_le_bytes());
    assert_eq!(example.at(example.chunk, 63), [&section[..], &SECTION_1].concat());
}

#[test]
fn the_document_shows_these_bytes() {
    let address = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    let layout = document::bytes("layout message");
    let (header, block) = (document::bytes("FAHD"), document::bytes("FADB"));
    let (header_at, block_at) = (address(&layout[16..]), address(&header[16..24]));
    assert_eq!(layout, layout_message(header_at));
    assert_eq!(header, array_header(block_at));
    assert_eq!(block, array_block(header_at, address(&block[14..22])));
    assert_eq!(document::bytes("chunk"), chunk_of(&EXTENT, &SELECTION));
    assert_eq!(document::bytes("prototype chunk"), chunk_of(&maximum_extent(), &SELECTION_1));
}

#[test]
fn the_document_shows_the_bytes_of_default_filters() {
    let bytes = write(|file| {
        let builder = file.new_dataset::<i32>().shape([20]).chunk([10]).sparse();
        let dataset = builder.create("d").unwrap();
        dataset.write_points(&CELLS.map(|cell| [cell]), &VALUES).unwrap();
    });
    let example = Example::of(bytes);
    assert_eq!(example.message(STRUCTURED_PIPELINE).1, document::bytes("filter message"));
    let (record, chunk) = (document::bytes("filtered record"), document::bytes("filtered chunk"));
    assert_eq!(example.at(example.block + 14, 42)[8..], record[8..]);
    assert_eq!(example.at(example.chunk, chunk.len()), chunk);
    check(&example.bytes, "default filters");
}

#[test]
fn a_full_chunk_is_written_as_all_with_the_documented_checksum() {
    let file = write(|file| {
        let dataset = sparse(file, 20).create("d").unwrap();
        dataset.write(0..10, &[7i32; 10]).unwrap();
    });
    let example = Example::of(file);
    let mut section = [&OPENING[..], &EXTENT, &all()].concat();
    section.extend_from_slice(&0xC84C_82FCu32.to_le_bytes());
    assert_eq!(example.at(example.chunk, 43), section);
    assert_eq!(example.slot(), (example.chunk, 83, 43));
}

#[test]
fn a_single_chunk_has_its_record_in_the_layout_message() {
    let bytes = write(|file| {
        let dataset = sparse(file, 10).create("d").unwrap();
        dataset.write_points(&CELLS.map(|cell| [cell]), &VALUES).unwrap();
    });
    let address = dataset_address(&bytes);
    let body = message(&bytes, address, LAYOUT).1;
    let head = [5, 4, 0, 1, 0, 0, 2, 1, 10, 4, 8, 2, 1, 0, 1, 63, 0, 51, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(body[..25], head);
    assert_eq!(body.len(), 33);
    let chunk = u64::from_le_bytes(body[25..].try_into().unwrap()) as usize;
    assert_eq!(bytes[chunk..chunk + 63], chunk_of(&EXTENT, &SELECTION));
}

#[test]
fn an_erased_chunk_leaves_an_unset_slot_behind() {
    let bytes = write(|file| {
        let dataset = sparse(file, 20).create("d").unwrap();
        dataset.write_points(&CELLS.map(|cell| [cell]), &VALUES).unwrap();
        file.flush().unwrap();
        dataset.erase(0..10).unwrap();
    });
    let address = dataset_address(&bytes);
    let body = message(&bytes, address, LAYOUT).1;
    let header = u64::from_le_bytes(body[16..24].try_into().unwrap()) as usize;
    let block = u64::from_le_bytes(bytes[header + 16..header + 24].try_into().unwrap()) as usize;
    let unset = [[0xFF; 8].as_slice(), &[0; 10]].concat();
    assert_eq!(bytes[block + 14..block + 50], unset.repeat(2));
}

#[test]
fn deflate_on_the_values_has_the_documented_filter_message() {
    let bytes = filtered();
    let (flags, body) = message(&bytes, dataset_address(&bytes), STRUCTURED_PIPELINE);
    assert_eq!(flags, 1, "constant");
    assert_eq!(body, [1, 1, 1, 1, 10, 0, 1, 0, 1, 0, 1, 0, 6, 0, 0, 0]);
    check(&bytes, "as written");
}

// ---------------------------------------------------------------------------------------------
// What Pumice accepts
// ---------------------------------------------------------------------------------------------

#[test]
fn every_form_of_the_extent_gives_the_same_cells() {
    let extent = |version: &[u8], sizes: &[u64]| {
        let mut body = version.to_vec();
        sizes.iter().for_each(|size| body.extend_from_slice(&size.to_le_bytes()));
        [&(body.len() as u32).to_le_bytes()[..], &body].concat()
    };
    let (version_1, version_2) = ([1, 1, 0, 0, 0, 0, 0, 0], [2, 1, 0, 1]);
    let (maximum_1, maximum_2) = ([1, 1, 1, 0, 0, 0, 0, 0], [2, 1, 1, 1]);
    let forms = [
        (extent(&maximum_1, &[10, 20]), Some(0xD761_0EBCu32)),
        (extent(&version_2, &[10]), Some(0x62EB_0788)),
        (extent(&maximum_2, &[10, 10]), Some(0x43A0_5B90)),
        (extent(&version_1, &[10]), None),
        (extent(&maximum_2, &[10, u64::MAX]), None),
        // A maximum below the size is nonsense, but says nothing about the cells.
        (extent(&maximum_2, &[10, 5]), None),
    ];
    for (extent, checksum) in forms {
        let section = [&OPENING[..], &extent, &SELECTION_1].concat();
        if let Some(checksum) = checksum {
            assert_eq!(lookup3(&section), checksum);
        }
        let mut example = Example::new();
        example.replace_chunk(&section, &SECTION_1);
        check(&example.bytes, &format!("{extent:?}"));
    }
}

#[test]
fn the_chunk_of_the_prototype_is_read_as_documented() {
    #[rustfmt::skip]
    let payload = [
        0x01, 0x00, 0x08, 0x18, 0x00, 0x00, 0x00, 0x01, 0x01, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x0a,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02,
        0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x18, 0x00, 0x00, 0x00, 0x01,
        0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0x07,
        0x00, 0x00, 0x00, 0x07, 0x00, 0x00, 0x00, 0xbc, 0x0e, 0x61, 0xd7, 0x11, 0x00, 0x00, 0x00, 0x22,
        0x00, 0x00, 0x00, 0x33, 0x00, 0x00, 0x00,
    ];
    let mut example = Example::new();
    example.store(&payload, 0x4B);
    check(&example.bytes, "87 bytes");
}

#[test]
fn every_form_of_the_selection_gives_the_same_cells() {
    let number = |value: u64, width: usize| value.to_le_bytes()[..width].to_vec();
    let numbers = |values: &[u64], width: usize| -> Vec<u8> {
        values.iter().flat_map(|&value| number(value, width)).collect()
    };
    let mut forms = vec![SELECTION.to_vec(), SELECTION_1.to_vec()];
    for width in [2, 4, 8] {
        let head = [2, 0, 0, 0, 3, 0, 0, 0, 0, width as u8, 1, 0, 0, 0];
        forms.push([&head[..], &numbers(&[2, 2, 3, 7, 7], width)].concat());
        // One block for each cell, in no order, one of them twice.
        forms.push([&head[..], &numbers(&[4, 7, 7, 3, 3, 2, 2, 3, 3], width)].concat());
        let head = [1, 0, 0, 0, 2, 0, 0, 0, width as u8, 1, 0, 0, 0];
        forms.push([&head[..], &numbers(&[3, 2, 3, 7], width)].concat());
    }
    let head = [1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0, 1, 0, 0, 0];
    forms.push([&head[..], &numbers(&[3, 2, 3, 7], 4)].concat());
    for selection in forms {
        let mut example = Example::new();
        example.replace_chunk(&[&OPENING[..], &EXTENT, &selection].concat(), &SECTION_1);
        check(&example.bytes, &format!("{selection:?}"));
    }
}

#[test]
fn regular_hyperslabs_of_every_version_give_the_same_cells() {
    let mut forms = Vec::new();
    // Start 1, stride 3, three blocks of one: cells 1, 4 and 7.
    for width in [2, 4, 8] {
        let mut selection = vec![2, 0, 0, 0, 3, 0, 0, 0, 1, width as u8, 1, 0, 0, 0];
        for value in [1u64, 3, 3, 1] {
            selection.extend_from_slice(&value.to_le_bytes()[..width]);
        }
        forms.push(selection);
    }
    let mut selection = vec![2, 0, 0, 0, 2, 0, 0, 0, 1, 36, 0, 0, 0, 1, 0, 0, 0];
    for value in [1u64, 3, 3, 1] {
        selection.extend_from_slice(&value.to_le_bytes());
    }
    forms.push(selection);
    for selection in forms {
        let mut example = Example::new();
        example.replace_chunk(&[&OPENING[..], &EXTENT, &selection].concat(), &SECTION_1);
        assert_eq!(cells(&example.bytes), [1, 4, 7].into_iter().zip(VALUES).collect::<Vec<_>>());
    }
}

#[test]
fn a_chunk_may_be_full_empty_or_without_section_0() {
    let values: Vec<u8> = (0..10i32).flat_map(i32::to_le_bytes).collect();
    let full: Vec<(u64, i32)> = (0..10).map(|cell| (cell, cell as i32)).collect();
    let mut example = Example::new();
    example.replace_chunk(&[&OPENING[..], &EXTENT, &all()].concat(), &values);
    assert_eq!(cells(&example.bytes), full, "all");
    example.store(&values, 0);
    assert_eq!(cells(&example.bytes), full, "no section 0");
    let none = [[0, 0, 0, 0, 1, 0, 0, 0].as_slice(), &[0; 8]].concat();
    example.replace_chunk(&[&OPENING[..], &EXTENT, &none].concat(), &[]);
    assert_eq!(cells(&example.bytes), [], "none");
}

#[test]
fn cells_beyond_the_extent_are_not_there() {
    // 17 long: the second chunk has cells 10 to 16 inside, and a shrinking writer left all ten.
    let file = write(|file| {
        let dataset = sparse(file, 17).create("d").unwrap();
        dataset.write_points(&CELLS.map(|cell| [cell]), &VALUES).unwrap();
        dataset.write_points(&[[12]], &[1]).unwrap();
    });
    let mut example = Example::of(file);
    let values: Vec<u8> = (0..10i32).flat_map(i32::to_le_bytes).collect();
    example.slot = 1;
    example.replace_chunk(&[&OPENING[..], &EXTENT, &all()].concat(), &values);
    let inside = (0..7).map(|cell| (cell + 10, cell as i32));
    let expected: Vec<_> = CELLS.into_iter().zip(VALUES).chain(inside).collect();
    assert_eq!(cells(&example.bytes), expected);
}

#[test]
fn version_bytes_of_the_fixed_array_are_0_or_1() {
    for (header, block) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let mut example = Example::new();
        example.patch(example.header, 28, |bytes| bytes[4] = header);
        example.patch(example.block, 54, |bytes| bytes[4] = block);
        check(&example.bytes, &format!("{header} and {block}"));
    }
    let mut example = Example::new();
    example.patch(example.header, 28, |bytes| bytes[4] = 2);
    assert!(try_cells(&example.bytes).is_err());
}

#[test]
fn the_documented_addresses_give_the_documented_checksums() {
    let mut header = b"FAHD\x01\x02\x12\x0a\x02\0\0\0\0\0\0\0\x1c\x07\0\0\0\0\0\0".to_vec();
    put_checksum(&mut header);
    assert_eq!(header[24..], [0x16, 0x88, 0xbb, 0x9a]);
    let mut block = b"FADB\x01\x02\0\x07\0\0\0\0\0\0\0\x08\0\0\0\0\0\0W\0K\0\0\0\0\0\0\0".to_vec();
    block.extend_from_slice(&[0xFF; 8]);
    block.extend_from_slice(&[0; 10]);
    put_checksum(&mut block);
    assert_eq!(block[50..], [0x73, 0x96, 0x04, 0xd7]);
}

#[test]
fn other_forms_of_the_layout_message_are_read() {
    let body = Example::new().message(LAYOUT).1;
    let trailing = [&body[..], &[0xAA, 0x55]].concat();
    let composition_last = [&body[..10], &body[14..], &body[10..14]].concat();
    let composition_last_and_trailing = [&composition_last[..], &[3, 1]].concat();
    let with_type = |low, high| {
        let mut changed = body.clone();
        (changed[3], changed[4]) = (low, high);
        changed
    };
    let forms = [
        ("trailing bytes", trailing),
        ("composition after the address", composition_last),
        ("both", composition_last_and_trailing),
        ("type 0", with_type(0, 0)),
        ("an unknown type", with_type(0xFF, 0xFF)),
    ];
    for (what, form) in forms {
        let mut example = Example::new();
        example.set_message(LAYOUT, LAYOUT, 0, &form);
        check(&example.bytes, what);
    }
}

#[test]
fn layout_messages_that_mean_something_else_are_refused() {
    let body = Example::new().message(LAYOUT).1;
    // Property version, unknown flag, no dimensions, an empty chunk, offsets of 4 bytes, 4
    // sections, a section list longer than the sections, a section that is not there, index types
    // of dense chunks.
    let damages = [
        (2, 1),
        (5, 4),
        (6, 1),
        (8, 0),
        (10, 4),
        (11, 4),
        (11, 0),
        (12, 3),
        (13, 2),
        (14, 0),
        (14, 2),
        (14, 6),
        (15, 0),
    ];
    for (at, byte) in damages {
        let mut damaged = body.clone();
        damaged[at] = byte;
        let mut example = Example::new();
        example.set_message(LAYOUT, LAYOUT, 0, &damaged);
        assert!(try_cells(&example.bytes).is_err(), "byte {at} = {byte}");
    }
}

#[test]
fn other_forms_of_a_single_chunk_are_read() {
    let bytes = write(|file| {
        let dataset = sparse(file, 10).create("d").unwrap();
        dataset.write_points(&CELLS.map(|cell| [cell]), &VALUES).unwrap();
    });
    let address = dataset_address(&bytes);
    let body = message(&bytes, address, LAYOUT).1;
    let forms = [
        ("as written", body.clone()),
        ("trailing bytes", [&body[..], &[0; 8]].concat()),
        ("composition after the address", [&body[..10], &body[14..], &body[10..14]].concat()),
    ];
    for (what, form) in forms {
        let mut patched = bytes.clone();
        set_message(&mut patched, address, LAYOUT, LAYOUT, 0, &form);
        check(&patched, what);
    }
    // The prototype's payload behind the end of the file.
    let mut patched = bytes.clone();
    let chunk = append(&mut patched, &chunk_of(&maximum_extent(), &SELECTION_1));
    let mut record = [&body[..15], &[0x57, 0, 0x4B, 0, 0, 0, 0, 0, 0, 0]].concat();
    record.extend_from_slice(&chunk.to_le_bytes());
    set_message(&mut patched, address, LAYOUT, LAYOUT, 0, &record);
    check(&patched, "the prototype's payload");
}

#[test]
fn the_node_size_of_a_b_tree_is_that_of_its_header() {
    let bytes = write(|file| {
        let builder = sparse(file, 20).max_shape([None, None]).shape([1, 20]).chunk([1, 10]);
        let dataset = builder.create("d").unwrap();
        dataset.write_points(&CELLS.map(|cell| [0, cell]), &VALUES).unwrap();
    });
    let address = dataset_address(&bytes);
    let mut body = message(&bytes, address, LAYOUT).1;
    assert_eq!(body[15..22], [5, 0, 8, 0, 0, 100, 40]);
    body[17] = 0;
    let mut patched = bytes;
    set_message(&mut patched, address, LAYOUT, LAYOUT, 0, &body);
    let file = File::options().open_bytes(patched).unwrap();
    let found = file.dataset("d").unwrap().read_defined::<i32>(..).unwrap();
    assert_eq!((found.values, found.coordinates), (VALUES.to_vec(), vec![0, 2, 0, 3, 0, 7]));
}

#[test]
fn a_dataset_that_can_have_very_many_chunks_takes_little_space() {
    for (shape, max) in [([1 << 40], Some(1 << 40)), ([20], Some(1 << 40)), ([1 << 40], None)] {
        let bytes = write(|file| {
            let dataset = sparse(file, 20).shape(shape).max_shape([max]).create("d").unwrap();
            dataset.write_points(&CELLS.map(|cell| [cell]), &VALUES).unwrap();
        });
        assert!(bytes.len() < 10_000, "{shape:?}, {max:?}: {} byte(s)", bytes.len());
        let file = File::options().open_bytes(bytes).unwrap();
        let found = file.dataset("d").unwrap().read_defined::<i32>(..).unwrap();
        assert_eq!((found.coordinates, found.values), (CELLS.to_vec(), VALUES.to_vec()));
    }
}

#[test]
fn filters_are_read_from_either_message_in_any_order_of_sections() {
    let bytes = filtered();
    let address = dataset_address(&bytes);
    let body = message(&bytes, address, STRUCTURED_PIPELINE).1;
    let older = [&[3], &body[1..]].concat();
    let with_empty = [&[1, 2], &body[2..], &[0, 0, 0, 0]].concat();
    let trailing = [&body[..], &[0; 5]].concat();
    let forms = [
        ("0x000B version 3", PIPELINE, older),
        ("an empty list of another section", STRUCTURED_PIPELINE, with_empty),
        ("trailing bytes", STRUCTURED_PIPELINE, trailing),
    ];
    for (what, kind, form) in forms {
        let mut patched = bytes.clone();
        set_message(&mut patched, address, STRUCTURED_PIPELINE, kind, 1, &form);
        check(&patched, what);
    }
    let mut patched = bytes.clone();
    set_message(&mut patched, address, STRUCTURED_PIPELINE, PIPELINE, 1, &body);
    assert!(try_cells(&patched).is_err(), "0x000B version 1 is a dense dataset's");
}

#[test]
fn damaged_sections_are_refused() {
    let section = [&OPENING[..], &EXTENT, &SELECTION].concat();
    let mut example = Example::new();
    // Too few and too many values for the cells.
    for length in [8, 11, 13, 16] {
        let values = SECTION_1.iter().chain(&SECTION_1).copied().take(length).collect::<Vec<_>>();
        example.replace_chunk(&section, &values);
        assert!(try_cells(&example.bytes).is_err(), "{length} bytes of values");
    }
    // Another chunk shape, another rank, cells outside the chunk, a selection that is cut off,
    // bytes behind it: all with a right checksum.
    let mut shape = section.clone();
    shape[15] = 11;
    let mut outside = section.clone();
    outside[45] = 10;
    let mut reversed = section.clone();
    (reversed[39], reversed[41]) = (3, 2);
    let cut = section[..45].to_vec();
    let longer = [&section[..], &[0]].concat();
    for (what, section) in [
        ("shape", shape),
        ("outside", outside),
        ("reversed", reversed),
        ("cut", cut),
        ("longer", longer),
    ] {
        example.replace_chunk(&section, &SECTION_1);
        assert!(try_cells(&example.bytes).is_err(), "{what}");
    }
    // A wrong checksum.
    let mut payload = chunk_of(&EXTENT, &SELECTION);
    payload[48] ^= 1;
    example.store(&payload, 51);
    let error = try_cells(&example.bytes).unwrap_err();
    assert!(error.to_string().contains("checksum"), "{error}");
    // An offset beyond the chunk, a chunk beyond the file.
    let block = example.block;
    example.patch(block, 54, |bytes| bytes[24] = 64);
    assert!(try_cells(&example.bytes).is_err(), "offset");
    example.patch(block, 54, |bytes| (bytes[24], bytes[18]) = (51, 1));
    assert!(try_cells(&example.bytes).is_err(), "address");
}

// ---------------------------------------------------------------------------------------------
// Writing, patching, reading
// ---------------------------------------------------------------------------------------------

/// A file with the example's dataset "d" in a fixed array, and where its parts are.
struct Example {
    bytes: Vec<u8>,
    dataset: u64,
    header: u64,
    block: u64,
    chunk: u64,
    /// Which slot of the array is changed.
    slot: usize,
}

impl Example {
    fn new() -> Self {
        Self::of(write(|file| {
            let dataset = sparse(file, 20).create("d").unwrap();
            dataset.write_points(&CELLS.map(|cell| [cell]), &VALUES).unwrap();
        }))
    }

    fn of(bytes: Vec<u8>) -> Self {
        let address = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let dataset = dataset_address(&bytes);
        let body = message(&bytes, dataset, LAYOUT).1;
        let header = u64::from_le_bytes(body[16..24].try_into().unwrap());
        let block = address(header as usize + 16);
        let chunk = address(block as usize + 14);
        Self { dataset, header, block, chunk, slot: 0, bytes }
    }

    fn at(&self, address: u64, length: usize) -> &[u8] {
        &self.bytes[address as usize..][..length]
    }

    fn messages(&self) -> Vec<Message> {
        messages(&self.bytes, self.dataset)
    }

    fn message(&self, kind: u8) -> (u8, Vec<u8>) {
        message(&self.bytes, self.dataset, kind)
    }

    fn set_message(&mut self, old: u8, new: u8, flags: u8, body: &[u8]) {
        set_message(&mut self.bytes, self.dataset, old, new, flags, body);
    }

    /// Address, size and offset of section 1 in the first slot.
    fn slot(&self) -> (u64, u16, u64) {
        let entry = self.at(self.block + 14, 18);
        let number = |at: usize| u64::from_le_bytes(entry[at..at + 8].try_into().unwrap());
        (number(0), u16::from_le_bytes(entry[8..10].try_into().unwrap()), number(10))
    }

    /// Changes a block that ends in a checksum.
    fn patch(&mut self, address: u64, length: usize, change: impl FnOnce(&mut [u8])) {
        patch(&mut self.bytes, address as usize, length, change);
    }

    /// Puts a chunk of both sections, the first of which gets its checksum, behind the file's end.
    fn replace_chunk(&mut self, section_0: &[u8], section_1: &[u8]) {
        let mut payload = section_0.to_vec();
        put_checksum(&mut payload);
        let offset = payload.len() as u64;
        payload.extend_from_slice(section_1);
        self.store(&payload, offset);
    }

    fn store(&mut self, payload: &[u8], offset: u64) {
        self.chunk = append(&mut self.bytes, payload);
        let (chunk, at) = (self.chunk, 14 + 18 * self.slot);
        self.patch(self.block, 54, |block| {
            block[at..at + 8].copy_from_slice(&chunk.to_le_bytes());
            block[at + 8..at + 10].copy_from_slice(&(payload.len() as u16).to_le_bytes());
            block[at + 10..at + 18].copy_from_slice(&offset.to_le_bytes());
        });
    }
}

fn sparse(file: &File, length: u64) -> pumice::DatasetBuilder {
    file.new_dataset::<i32>().shape([length]).chunk([10]).sparse().no_filters()
}

/// The example with deflate on its values.
fn filtered() -> Vec<u8> {
    write(|file| {
        let builder = sparse(file, 20).value_filters(vec![FilterSpec::deflate(6)]);
        let dataset = builder.create("d").unwrap();
        dataset.write_points(&CELLS.map(|cell| [cell]), &VALUES).unwrap();
    })
}

/// The bytes of a file made by `fill`.
fn write(fill: impl FnOnce(&File)) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("example.h5");
    let file = File::create(&path).unwrap();
    fill(&file);
    file.close().unwrap();
    std::fs::read(path).unwrap()
}

fn all() -> Vec<u8> {
    [[3, 0, 0, 0, 1, 0, 0, 0].as_slice(), &[0; 8]].concat()
}

/// The prototype's extent: version 1 with the dataset's maximum.
fn maximum_extent() -> Vec<u8> {
    let mut extent = vec![24, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0];
    extent.extend_from_slice(&10u64.to_le_bytes());
    extent.extend_from_slice(&20u64.to_le_bytes());
    extent
}

/// The layout message with the address of the array's header.
fn layout_message(header: u64) -> Vec<u8> {
    let fields = [
        5, 4, 0, // version, class, property version
        1, 0, // type: sparse
        0, // flags
        2, 1, 10, 4, // dimensions: rank + 1, one byte each, chunk, element
        8, 2, 1, 0, // composition: offsets of 8 bytes, 2 sections, 1 with checksum, section 0
        3, 10, // fixed array, page bits
    ];
    [&fields[..], &header.to_le_bytes()].concat()
}

/// The header of the fixed array with the address of its data block.
fn array_header(block: u64) -> Vec<u8> {
    let mut bytes = b"FAHD\x01\x02\x12\x0a\x02\0\0\0\0\0\0\0".to_vec();
    bytes.extend_from_slice(&block.to_le_bytes());
    put_checksum(&mut bytes);
    bytes
}

/// The data block of the fixed array: one chunk, one slot that is unset.
fn array_block(header: u64, chunk: u64) -> Vec<u8> {
    let mut bytes = b"FADB\x01\x02".to_vec();
    bytes.extend_from_slice(&header.to_le_bytes());
    bytes.extend_from_slice(&chunk.to_le_bytes());
    bytes.extend_from_slice(&[63, 0]);
    bytes.extend_from_slice(&51u64.to_le_bytes());
    bytes.extend_from_slice(&[0xFF; 8]);
    bytes.extend_from_slice(&[0; 10]);
    put_checksum(&mut bytes);
    bytes
}

fn chunk_of(extent: &[u8], selection: &[u8]) -> Vec<u8> {
    let mut payload = [&OPENING[..], extent, selection].concat();
    put_checksum(&mut payload);
    payload.extend_from_slice(&SECTION_1);
    payload
}

fn dataset_address(bytes: &[u8]) -> u64 {
    dataset(bytes).unwrap().address()
}

fn dataset(bytes: &[u8]) -> pumice::Result<Dataset> {
    File::options().open_bytes(bytes.to_vec())?.dataset("d")
}

/// The defined cells and their values, read in two ways that must agree.
fn try_cells(bytes: &[u8]) -> pumice::Result<Vec<(u64, i32)>> {
    let dataset = dataset(bytes)?;
    let found = dataset.read_defined::<i32>(..)?;
    let cells: Vec<_> = found.coordinates.into_iter().zip(found.values).collect();
    let mut dense = vec![0; dataset.shape()[0] as usize];
    cells.iter().for_each(|&(cell, value)| dense[cell as usize] = value);
    assert_eq!(dataset.read::<i32>(..)?, dense);
    assert_eq!(dataset.count_defined(..)?, cells.len() as u64);
    Ok(cells)
}

fn cells(bytes: &[u8]) -> Vec<(u64, i32)> {
    try_cells(bytes).unwrap()
}

fn check(bytes: &[u8], what: &str) {
    let expected: Vec<_> = CELLS.into_iter().zip(VALUES).collect();
    assert_eq!(try_cells(bytes).unwrap(), expected, "{what}");
}
