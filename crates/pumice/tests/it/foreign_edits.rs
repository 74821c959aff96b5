//! Files that libhdf5 can edit further: room in object headers, names of filters, indexes that are there though
//! empty, and what is refused before it harms a file.

use pumice::{
    CopyOptions, File, FilterSpec, LibraryVersion, MemoryStore, PlaceKind, Points, WriteMany,
};
use std::sync::Arc;

/// The most unused bytes of a header's block: libhdf5 joins more than 64 KiB and loses it.
const MOST_UNUSED: u64 = 33 << 10;

fn reopened(store: &Arc<MemoryStore>) -> File {
    File::options().edit_in(store.clone()).unwrap()
}

fn created(version: LibraryVersion) -> (Arc<MemoryStore>, File) {
    let store = Arc::new(MemoryStore::default());
    let options = File::options().library_version(version);
    (store.clone(), options.create_in(store).unwrap())
}

#[test]
fn headers_have_little_unused_room_whatever_is_added_and_removed() {
    for version in [LibraryVersion::V18, LibraryVersion::V110] {
        let (store, file) = created(version);
        let group = file.create_group("g").unwrap();
        for number in 0..6 {
            group.set_attribute(&format!("a{number}"), vec![number as i64; 8000]).unwrap();
        }
        drop((group, file));
        for left in (0..6).rev() {
            let file = reopened(&store);
            let group = file.group("g").unwrap();
            let unused = group.space().unwrap().header_unused;
            assert!(unused < MOST_UNUSED, "{unused} unused with {} attributes", left + 1);
            group.remove_attribute(&format!("a{left}")).unwrap();
            file.flush().unwrap();
            let space = group.space().unwrap();
            assert!(space.header_unused < MOST_UNUSED, "{space:?} with {left}");
            for number in 0..left {
                let found = group.attribute(&format!("a{number}")).unwrap();
                assert_eq!(found.read::<i64>().unwrap(), vec![number; 8000]);
            }
        }
    }
}

#[test]
fn copies_of_objects_have_headers_as_long_as_the_original() {
    let file = File::in_memory().unwrap();
    for (name, size) in [("small", 10), ("large", 1000), ("larger", 4000)] {
        let group = file.create_group(name).unwrap();
        group.set_attribute("a", vec![7i64; size]).unwrap();
        let copy = format!("copy of {name}");
        file.copy_object(name, &file, &copy, &CopyOptions::new()).unwrap();
        file.flush().unwrap();
        let space = file.group(&copy).unwrap().space().unwrap();
        assert!(space.header_unused < 16, "{name}: {space:?}");
        assert_eq!(
            file.group(&copy).unwrap().attribute("a").unwrap().read::<i64>().unwrap().len(),
            size
        );
    }
}

#[test]
fn an_attribute_that_a_longer_name_makes_too_long_for_a_header_is_renamed() {
    let (store, file) = created(LibraryVersion::V110);
    let group = file.create_group("g").unwrap();
    group.set_attribute("first", 5).unwrap();
    group.set_attribute("a", vec![3u8; 65_480]).unwrap();
    let name = "a name that does not fit beside so much";
    group.rename_attribute("a", name).unwrap();
    drop((group, file));
    let file = reopened(&store);
    let group = file.group("g").unwrap();
    assert_eq!(group.attribute(name).unwrap().read::<u8>().unwrap(), vec![3; 65_480]);
    assert_eq!(group.attribute("first").unwrap().read::<i32>().unwrap(), [5]);
    assert!(group.attribute("a").is_err());
    // Older headers have no other place for it: it stays as it is.
    let (_, file) = created(LibraryVersion::Earliest);
    let numbers = file.new_dataset::<u8>().shape([1]).create("d").unwrap();
    numbers.set_attribute("a", vec![3u8; 65_400]).unwrap();
    assert!(numbers.rename_attribute("a", &"long".repeat(50)).is_err());
    assert_eq!(numbers.attribute("a").unwrap().read::<u8>().unwrap().len(), 65_400);
}

#[test]
fn filters_of_others_have_names_in_the_file() {
    // libhdf5 would write the name into copies of messages without room for it.
    let nameless = FilterSpec {
        id: 32_000,
        optional: true,
        name: None,
        config: None,
        parameters: vec![4, 261, 80],
    };
    for version in [LibraryVersion::V18, LibraryVersion::V110] {
        let (store, file) = created(version);
        let builder = file.new_dataset::<f64>().shape([100]).chunk([10]);
        builder.filter(nameless.clone()).create("d").unwrap();
        drop(file);
        let filters = reopened(&store).dataset("d").unwrap().filters();
        assert_eq!(filters[0].name.as_deref(), Some("lzf"));
    }
}

#[test]
fn what_an_extensible_array_cannot_number_is_refused_by_the_write() {
    let (_, file) = created(LibraryVersion::V110);
    let cells = 1u64 << 33;
    let beyond = (1u64 << 32) + 5;
    let builder = file.new_dataset::<i16>().shape([4]).max_shape([None]).chunk([1]);
    let dense = builder.create("dense").unwrap();
    let builder = file.new_dataset::<i16>().shape([4]).max_shape([None]).chunk([1]).sparse();
    let sparse = builder.create("sparse").unwrap();
    for dataset in [&dense, &sparse] {
        dataset.resize([cells]).unwrap();
        let refused = |result: pumice::Result<()>| {
            let error = result.unwrap_err().to_string();
            assert!(error.contains("2^32 chunks") && error.contains(dataset.path()), "{error}");
        };
        refused(dataset.write(beyond..beyond + 1, &[1i16]));
        refused(dataset.write_points(&[[3], [beyond]], &[1i16, 2]));
        let columns = [vec![3u64, beyond]];
        let points = Points::columns(&columns).unwrap();
        refused(dataset.write_at(&points, &[1i16, 2]));
        let mut writes = WriteMany::new();
        writes.add(dataset, beyond..beyond + 1, &[1i16]).unwrap();
        assert!(writes.run().is_err());
        // What can be stored is, and nothing waits that cannot.
        dataset.write(7..9, &[5i16, 6]).unwrap();
        dataset.write_points(&[[1 << 20], [2]], &[8i16, 9]).unwrap();
        file.flush().unwrap();
        assert_eq!(dataset.read::<i16>(7..9).unwrap(), [5, 6]);
        assert_eq!(dataset.read::<i16>(beyond..beyond + 1).unwrap(), [0]);
    }
}

#[test]
fn the_copy_of_an_index_without_chunks_is_one() {
    for version in [LibraryVersion::Earliest, LibraryVersion::V110] {
        let (store, file) = created(version);
        let builder = file.new_dataset::<i32>().shape([40]).max_shape([None]).chunk([4]);
        let emptied = builder.create("emptied").unwrap();
        emptied.write(.., &[3; 40]).unwrap();
        file.flush().unwrap();
        emptied.resize([0]).unwrap();
        emptied.resize([40]).unwrap();
        file.new_dataset_like(&emptied).create("new").unwrap();
        drop((emptied, file));
        let file = reopened(&store);
        for name in ["emptied", "new"] {
            let copy = format!("copy of {name}");
            file.copy_object(name, &file, &copy, &CopyOptions::new()).unwrap();
            file.flush().unwrap();
            let indexed = |path: &str| {
                let places = file.dataset(path).unwrap().places().unwrap();
                places.iter().any(|place| place.kind == PlaceKind::ChunkIndex)
            };
            assert_eq!(indexed(&copy), indexed(name), "{name}");
            assert_eq!(indexed(name), name == "emptied");
            let copy = file.dataset(&copy).unwrap();
            assert_eq!(copy.read::<i32>(..).unwrap(), [0; 40]);
            copy.write(10..20, &[4; 10]).unwrap();
        }
    }
}

#[test]
fn a_handle_for_reading_changes_nothing_of_a_file_that_another_edits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    let editing = File::create(&path).unwrap();
    editing.new_dataset::<i32>().shape([3]).create("g/d").unwrap();
    let reading = File::open(&path).unwrap();
    assert!(editing.is_writable() && !reading.is_writable());
    let dataset = reading.dataset("g/d").unwrap();
    let refusals = [
        reading.create_group("h").map(drop),
        reading.group("g").unwrap().create_group("h").map(drop),
        reading.set_attribute("a", 1),
        reading.unlink("g"),
        reading.new_dataset::<i32>().shape([3]).create("e").map(drop),
        editing.copy_object("g", &reading, "h", &CopyOptions::new()),
        dataset.write(.., &[1, 2, 3]),
        dataset.set_attribute("a", 1),
        WriteMany::new().add(&dataset, .., &[1, 2, 3]).map(drop),
    ];
    for refusal in refusals {
        assert!(refusal.unwrap_err().to_string().contains("for reading only"));
    }
    editing.dataset("g/d").unwrap().write(.., &[1, 2, 3]).unwrap();
    assert_eq!(dataset.read::<i32>(..).unwrap(), [1, 2, 3], "it sees what the other does");
}

#[test]
fn new_files_have_the_widths_and_ranks_that_are_asked_for() {
    let versions = [LibraryVersion::Earliest, LibraryVersion::V18, LibraryVersion::V110];
    for (version, width) in versions.into_iter().flat_map(|version| [(version, 4), (version, 2)]) {
        let store = Arc::new(MemoryStore::default());
        let options = File::options().library_version(version).widths(width, width);
        let file = options.group_ranks(2, 3).chunk_rank(2).create_in(store.clone()).unwrap();
        for number in 0..100 {
            file.create_group(&format!("group {number}")).unwrap();
        }
        let numbers = file.new_dataset::<i32>().shape([100]).chunk([3]).create("d").unwrap();
        numbers.write(.., &(0..100).collect::<Vec<i32>>()).unwrap();
        drop((numbers, file));
        let file = reopened(&store);
        let info = file.info().unwrap();
        assert_eq!((info.offset_size, info.length_size), (width, width));
        assert_eq!((info.group_leaf_k, info.group_internal_k, info.chunk_internal_k), (2, 3, 2));
        assert_eq!(file.members().unwrap().len(), 101);
        assert_eq!(
            file.dataset("d").unwrap().read::<i32>(..).unwrap(),
            (0..100).collect::<Vec<_>>()
        );
    }
    for refused in [
        File::options().widths(3, 8),
        File::options().widths(8, 16),
        File::options().group_ranks(0, 16),
        File::options().chunk_rank(40_000),
    ] {
        assert!(refused.create_in(Arc::new(MemoryStore::default())).is_err());
    }
}

#[test]
fn attributes_move_at_the_numbers_that_are_asked_for() {
    let (store, file) = created(LibraryVersion::Earliest);
    let options = pumice::GroupOptions::new().attribute_phase_change(2, 1);
    file.create_group_with("g", &options).unwrap();
    let builder = file.new_dataset::<i32>().shape([1]).attribute_phase_change(2, 1);
    builder.no_fill_value().create("d").unwrap();
    drop(file);
    let file = reopened(&store);
    let (group, dataset) = (file.group("g").unwrap(), file.dataset("d").unwrap());
    assert_eq!(dataset.creation().unwrap().fill, pumice::Fill::Undefined);
    for (number, dense) in [(1, false), (2, false), (3, true)] {
        group.set_attribute(&format!("a{number}"), number).unwrap();
        dataset.set_attribute(&format!("a{number}"), number).unwrap();
        file.flush().unwrap();
        assert_eq!(group.space().unwrap().attribute_heap > 0, dense);
        assert_eq!(dataset.space().unwrap().attribute_heap > 0, dense);
    }
    let builder = file.new_dataset::<i32>().shape([1]).no_fill_value();
    assert!(builder.fill_time(pumice::FillTime::Allocation).create("e").is_err());
    assert!(file.new_dataset::<i32>().no_fill_value().fill_value(3).create("e").is_err());
}
