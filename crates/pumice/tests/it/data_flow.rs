//! The data flow of a read: filters, checksums, conversion, transformation, places in memory. The
//! first two tests are examples A and B of "HDF5 Data Flow Pipeline for H5Dread".

use pumice::{Context, Dataset, Datatype, File, Selection, Transfer};

/// Dataset D. The elements of the region at <1, 1> are a to p; c is 65.
fn dataset_d(file: &File) -> Dataset {
    let builder = file.new_dataset_of(Datatype::i32_le()).shape([32, 64]).chunk([4, 4]);
    let dataset = builder.deflate(6).fletcher32().create("D").unwrap();
    let mut cells = vec![-1i32; 32 * 64];
    for (at, value) in (63..79).enumerate() {
        cells[(1 + at / 4) * 64 + 1 + at % 4] = value;
    }
    dataset.write(.., &cells).unwrap();
    dataset
}

fn big_endian(values: impl IntoIterator<Item = i64>) -> Vec<u8> {
    values.into_iter().flat_map(i64::to_be_bytes).collect()
}

#[test]
fn example_a_fills_a_buffer_with_converted_and_transformed_elements() {
    let file = File::in_memory().unwrap();
    let dataset = dataset_d(&file);
    let mut buffer = vec![0xAA; 4 * 4 * 8];
    let transfer = Transfer::new().transform("x+2").unwrap();
    dataset.read_as((1..5, 1..5), &Datatype::i64_be(), &mut buffer, &transfer).unwrap();
    assert_eq!(buffer, big_endian(65..81));
    assert_eq!(buffer[2 * 8..3 * 8], 67i64.to_be_bytes(), "c");
}

#[test]
fn example_b_fills_every_other_column_and_leaves_the_rest() {
    let file = File::in_memory().unwrap();
    let dataset = dataset_d(&file);
    let mut buffer = big_endian([-9; 2 * 16]);
    let columns = Selection::hyperslab(&[0, 0], &[2, 2], &[1, 8], &[2, 1]).unwrap();
    let transfer = Transfer::new().memory(columns, [2, 16]);
    dataset.read_as((1..5, 1..5), &Datatype::i64_be(), &mut buffer, &transfer).unwrap();
    let rows = [63..71, 71..79].into_iter().flatten();
    assert_eq!(buffer, big_endian(rows.flat_map(|value| [value, -9])));
}

#[test]
fn what_is_written_is_transformed_before_it_is_converted() {
    let file = File::in_memory().unwrap();
    let dataset = file.new_dataset::<u8>().shape([2, 2]).create("bytes").unwrap();
    let transfer = Transfer::new().transform("x*10").unwrap();
    dataset.write_with(.., &[1.26f64, 2.0, -1.0, 30.0], &transfer).unwrap();
    assert_eq!(dataset.read::<u8>(..).unwrap(), [12, 20, 0, 255]);
    // The fill value is transformed like any other.
    let empty = file.new_dataset::<i32>().shape([3]).chunk([2]).fill_value(5i32).create("empty");
    let shifted = Transfer::new().transform("x-1").unwrap();
    assert_eq!(empty.unwrap().read_with::<i16>(.., &shifted).unwrap(), [4, 4, 4]);
}

#[test]
fn places_in_memory_must_suit_buffer_and_selection() {
    let file = File::in_memory().unwrap();
    let dataset = dataset_d(&file);
    let mut buffer = [0i32; 32];
    let mut read = |places: Selection, shape: [u64; 1]| {
        dataset.read_into_with((0..4, 0..4), &mut buffer, &Transfer::new().memory(places, shape))
    };
    assert!(read(Selection::block(&[3], &[16]).unwrap(), [32]).is_ok());
    assert!(read(Selection::block(&[3], &[15]).unwrap(), [32]).is_err(), "too few places");
    assert!(read(Selection::block(&[20], &[16]).unwrap(), [32]).is_err(), "outside of the shape");
    assert!(read(Selection::block(&[0], &[16]).unwrap(), [33]).is_err(), "not the buffer's shape");
    let twice = Selection::points(1, vec![1; 16]).unwrap();
    assert!(read(twice, [32]).is_err(), "places that repeat");
}

#[test]
fn memory_places_serve_writes_too() {
    let file = File::in_memory().unwrap();
    let dataset = file.new_dataset::<i32>().shape([2, 2]).chunk([1, 2]).create("d").unwrap();
    let places = Selection::hyperslab(&[1], &[2], &[4], &[1]).unwrap();
    let values: Vec<i32> = (0..8).collect();
    dataset.write_with(.., &values, &Transfer::new().memory(places, [8])).unwrap();
    assert_eq!(dataset.read::<i32>(..).unwrap(), [1, 3, 5, 7]);
}

#[test]
fn a_checksum_that_does_not_match_fails_a_read_unless_it_is_not_to_be_verified() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.h5");
    let values: Vec<u16> = (0..12).collect();
    {
        let file = File::create(&path).unwrap();
        let dataset = file.new_dataset::<u16>().shape([12]).chunk([4]).fletcher32().create("d");
        dataset.unwrap().write(.., &values).unwrap();
        file.close().unwrap();
    }
    let mut bytes = std::fs::read(&path).unwrap();
    let stored: Vec<u8> = values[4..8].iter().flat_map(|value| value.to_le_bytes()).collect();
    let at = bytes.windows(8).position(|window| window == stored).unwrap();
    bytes[at] = 99;
    std::fs::write(&path, &bytes).unwrap();

    let file = File::open(&path).unwrap();
    let dataset = file.dataset("d").unwrap();
    let error = dataset.read::<u16>(..).unwrap_err().to_string();
    assert!(error.contains("fletcher32"), "{error}");
    assert_eq!(dataset.read::<u16>(0..4).unwrap(), [0, 1, 2, 3], "other chunks are fine");
    let unverified = Transfer::new().verify(false);
    let found = dataset.read_with::<u16>(.., &unverified).unwrap();
    assert_eq!(found, [0, 1, 2, 3, 99, 5, 6, 7, 8, 9, 10, 11]);
    assert!(dataset.read::<u16>(..).is_err(), "the next read verifies again");
}

#[test]
fn a_read_that_does_not_verify_sees_what_is_not_written_yet_and_keeps_nothing() {
    let context = Context::builder().threads(1).build().unwrap();
    let store = std::sync::Arc::new(pumice_store::MemoryStore::default());
    let file = File::options().context(&context).create_in(store).unwrap();
    let dataset = file.new_dataset::<u16>().shape([12]).chunk([4]).deflate(1).fletcher32();
    let dataset = dataset.create("d").unwrap();
    dataset.write(.., &(0..12).collect::<Vec<u16>>()).unwrap();
    file.flush().unwrap();
    context.evict().unwrap();
    dataset.write(4..8, &[50u16; 4]).unwrap();
    let before = dataset.cache_stats();
    let found = dataset.read_with::<u16>(.., &Transfer::new().verify(false)).unwrap();
    assert_eq!(found, [0, 1, 2, 3, 50, 50, 50, 50, 8, 9, 10, 11]);
    let after = dataset.cache_stats();
    assert_eq!(
        (after.dirty, after.write_backs),
        (1, before.write_backs),
        "nothing is written for it"
    );
    assert_eq!((after.hits, after.misses), (before.hits + 1, before.misses + 2));
    assert_eq!(after.resident, before.resident, "what was not verified is not kept");
}

/// A sparse dataset of three chunks whose values have a checksum of a filter, and its bytes.
fn sparse_with_checksums(values: &[u16]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sparse.h5");
    let file = File::create(&path).unwrap();
    let builder = file.new_dataset::<u16>().shape([30]).chunk([10]).sparse().no_filters();
    let dataset = builder.fletcher32().fill_value(7u16).create("d").unwrap();
    let cells = Selection::hyperslab(&[1], &[3], &[values.len() as u64], &[1]).unwrap();
    dataset.write(cells, values).unwrap();
    file.close().unwrap();
    std::fs::read(&path).unwrap()
}

#[test]
fn values_of_sparse_chunks_are_read_past_fletcher32_if_it_is_not_to_be_verified() {
    let values: Vec<u16> = (0..10).map(|n| 0x4C00 + 257 * n).collect();
    let mut bytes = sparse_with_checksums(&values);
    // Cells 10, 13, 16 and 19 are those of the second chunk.
    let stored: Vec<u8> = values[3..7].iter().flat_map(|value| value.to_le_bytes()).collect();
    let at = bytes.windows(8).position(|window| window == stored).unwrap();
    bytes[at + 2] ^= 0x40;

    let context = Context::builder().threads(1).build().unwrap();
    let file = File::options().context(&context).open_bytes(bytes).unwrap();
    let dataset = file.dataset("d").unwrap();
    let mut wanted = vec![7u16; 30];
    values.iter().enumerate().for_each(|(n, &value)| wanted[1 + 3 * n] = value);
    let unverified = Transfer::new().verify(false);
    for _ in 0..2 {
        let error = dataset.read::<u16>(..).unwrap_err().to_string();
        assert!(error.contains("fletcher32"), "{error}");
        let mut damaged = wanted.clone();
        damaged[13] ^= 0x40;
        assert_eq!(dataset.read_with::<u16>(.., &unverified).unwrap(), damaged);
        assert_eq!(dataset.read_with::<f64>(13, &unverified).unwrap(), [f64::from(damaged[13])]);
    }
    assert_eq!(dataset.read::<u16>(20..).unwrap(), wanted[20..], "other chunks are fine");
    context.evict().unwrap();
    let before = dataset.cache_stats().resident;
    dataset.read_with::<u16>(20.., &unverified).unwrap();
    assert_eq!(dataset.cache_stats().resident, before, "what was not verified is not kept");
    dataset.read::<u16>(20..).unwrap();
    assert!(dataset.cache_stats().resident > before);
}

#[test]
fn checksums_of_sections_are_compared_whatever_a_read_wants() {
    let values: Vec<u16> = (0..10).map(|n| 0x4C00 + 257 * n).collect();
    let bytes = sparse_with_checksums(&values);
    let stored: Vec<u8> = values[..3].iter().flat_map(|value| value.to_le_bytes()).collect();
    let behind = bytes.windows(6).position(|window| window == stored).unwrap();
    // The checksum of the locations, and what it stands behind: the last cell.
    for at in [behind - 1, behind - 6] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        let dataset = File::options().open_bytes(damaged).unwrap().dataset("d").unwrap();
        let read = dataset.read_with::<u16>(..10, &Transfer::new().verify(false));
        let error = read.unwrap_err().to_string();
        assert!(error.contains("checksum"), "{error}");
        assert!(dataset.read_with::<u16>(10.., &Transfer::new().verify(false)).is_ok());
    }
}
