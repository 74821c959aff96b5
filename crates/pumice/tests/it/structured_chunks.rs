//! Direct input and output of structured chunks, and the dense chunk functions beside it.

use pumice::{
    Context, Dataset, DatasetBuilder, File, FillTime, FilterSpec, Section, Selection, StoredSection,
};
use std::ops::ControlFlow;

fn builder(file: &File) -> DatasetBuilder {
    file.new_dataset::<u8>().shape([10, 12]).chunk([5, 5]).sparse()
}

/// The example of the prototype's tests: six values at [3..=4] x [2..=4] of a chunk.
fn example(filters: [usize; 2]) -> [StoredSection; 2] {
    let cells = Selection::block(&[3, 2], &[2, 3]).unwrap();
    let locations = StoredSection::selection(&[5, 5], &cells).unwrap();
    [
        StoredSection::unfiltered(locations, filters[0]),
        StoredSection::unfiltered(vec![32, 33, 34, 42, 43, 44], filters[1]),
    ]
}

#[test]
fn sections_that_are_written_are_seen_by_reads_and_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("direct.h5");
    for (plain, filters) in [(true, [0, 0]), (false, [2, 1])] {
        let file = File::create(&path).unwrap();
        let dataset = builder(&file);
        let dataset = if plain { dataset.no_filters() } else { dataset };
        let dataset = dataset.create("d").unwrap();
        // A cached, changed chunk is replaced.
        dataset.write((5..7, 0..5), &[9u8; 10]).unwrap();
        dataset.write_structured_chunk([5, 0], &example(filters)).unwrap();
        let check = |dataset: &Dataset| {
            assert_eq!(dataset.read::<u8>((8..10, 2..5)).unwrap(), [32, 33, 34, 42, 43, 44]);
            assert_eq!(dataset.count_defined(..).unwrap(), 6);
            let back = dataset.read_structured_chunk([5, 0]).unwrap().unwrap();
            assert_eq!(back, example(filters));
        };
        check(&dataset);
        file.close().unwrap();
        check(&File::open(&path).unwrap().dataset("d").unwrap());
    }
}

#[test]
fn a_raw_read_sees_what_was_written_just_before() {
    let context = Context::builder().cache_bytes(1 << 20).threads(1).build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = File::options().context(&context).create(folder.path().join("d.h5")).unwrap();
    let dataset = builder(&file).no_filters().create("d").unwrap();
    assert_eq!(dataset.read_structured_chunk([0, 0]).unwrap(), None);
    dataset.write_point(&[1, 1], 7u8).unwrap();
    let sections = dataset.read_structured_chunk([0, 0]).unwrap().unwrap();
    assert_eq!(sections[1].bytes, [7]);
    dataset.write_point(&[1, 2], 8u8).unwrap();
    let sections = dataset.read_structured_chunk([0, 0]).unwrap().unwrap();
    assert_eq!(sections[1].bytes, [7, 8]);
    // And a write of sections is seen by the next change of the same chunk.
    let mut changed = sections.clone();
    changed[1].bytes = vec![1, 2];
    dataset.write_structured_chunk([0, 0], &changed).unwrap();
    dataset.write_point(&[0, 0], 5u8).unwrap();
    assert_eq!(dataset.read_defined::<u8>(..).unwrap().values, [5, 1, 2]);
}

#[test]
fn chunks_are_copied_between_datasets_without_decoding() {
    let file = File::in_memory().unwrap();
    let from = builder(&file).create("from").unwrap();
    let to = builder(&file).create("to").unwrap();
    let points: Vec<[u64; 2]> = (0..10).map(|row| [row, row * 5 % 12]).collect();
    let values: Vec<u8> = (1..11).collect();
    from.write_points(&points, &values).unwrap();
    for chunk in from.structured_chunks().unwrap().list().unwrap() {
        let sections = from.read_structured_chunk(&chunk.offset).unwrap().unwrap();
        to.write_structured_chunk(&chunk.offset, &sections).unwrap();
    }
    assert_eq!(to.read_defined::<u8>(..).unwrap(), from.read_defined::<u8>(..).unwrap());
}

#[test]
fn information_is_found_by_number_by_coordinates_and_in_turn() {
    let file = File::in_memory().unwrap();
    let filters = vec![FilterSpec::deflate(6)];
    let dataset = builder(&file).location_filters(filters.clone()).value_filters(vec![]);
    let dataset = dataset.create("d").unwrap();
    dataset.write_points(&[[0, 0], [0, 6], [9, 11]], &[1u8, 2, 3]).unwrap();
    let all = dataset.structured_chunks().unwrap().list().unwrap();
    let offsets: Vec<_> = all.iter().map(|chunk| chunk.offset.clone()).collect();
    assert_eq!(offsets, [[0, 0], [0, 5], [5, 10]]);
    for (number, chunk) in all.iter().enumerate() {
        assert_eq!(dataset.structured_chunk_info(.., number).unwrap().as_ref(), Some(chunk));
        let found = dataset.structured_chunk_info_at(&chunk.offset).unwrap();
        assert_eq!(found.as_ref(), Some(chunk));
        let [locations, values] = chunk.sections.as_slice() else { panic!("two sections") };
        assert_eq!((locations.section, values.section), (Section::Selection, Section::Values));
        assert_eq!((values.size, values.unfiltered_size, values.filter_mask), (1, 1, 0));
        assert!(locations.unfiltered_size > 40 && locations.size < locations.unfiltered_size);
        assert_eq!(chunk.size, locations.size + values.size);
        assert_ne!(chunk.address, 0);
    }
    assert_eq!(dataset.structured_chunk_info(.., 3).unwrap(), None);
    let lower = dataset.structured_chunk_info((.., 5..12), 1).unwrap().unwrap();
    assert_eq!(lower.offset, [5, 10]);
    assert_eq!(dataset.structured_chunk_info((5..10, 0..5), 0).unwrap(), None);
    assert_eq!(dataset.structured_chunk_info_at([5, 0]).unwrap(), None, "not stored");
    assert!(dataset.structured_chunk_info_at([5, 1]).is_err(), "no chunk begins there");

    let mut seen = 0;
    let stopped = dataset.for_each_structured_chunk(|chunk| {
        seen += 1;
        if chunk.offset == [0, 5] { ControlFlow::Break("here") } else { ControlFlow::Continue(()) }
    });
    assert_eq!((stopped.unwrap(), seen), (Some("here"), 2));
    let whole = dataset.for_each_structured_chunk(|_| ControlFlow::<()>::Continue(())).unwrap();
    assert_eq!(whole, None);
}

#[test]
fn dense_chunk_functions_on_structured_datasets_are_as_in_the_programming_model() {
    let file = File::in_memory().unwrap();
    let dataset = builder(&file).no_filters().create("d").unwrap();
    dataset.write_point(&[1, 1], 7u8).unwrap();
    dataset.write_point(&[5, 6], 8u8).unwrap();
    dataset.write_point(&[5, 8], 8u8).unwrap();
    // These work.
    assert_eq!(dataset.chunk_count().unwrap(), 2);
    assert_eq!(dataset.chunk_count_in((5.., ..)).unwrap(), 1);
    assert_eq!(dataset.chunk_count_in((..5, 5..)).unwrap(), 0);
    let (bytes, _) = dataset.read_chunk([0, 0]).unwrap().unwrap();
    let sizes = [[0, 0], [5, 5], [0, 5]].map(|at| dataset.chunk_storage_size(at).unwrap());
    assert_eq!((sizes[0], sizes[2]), (Some(bytes.len() as u64), None));
    assert!(sizes[1] > sizes[0], "two cells take more");
    assert_eq!(dataset.storage_size().unwrap(), sizes.iter().flatten().sum::<u64>());
    let sections = dataset.read_structured_chunk([0, 0]).unwrap().unwrap();
    assert_eq!(bytes, [sections[0].bytes.clone(), sections[1].bytes.clone()].concat());
    // These fail.
    assert!(dataset.write_chunk([0, 0], &bytes, 0).is_err());
    assert!(dataset.chunk_info([0, 0]).is_err());
    assert!(dataset.chunks().is_err());
}

#[test]
fn structured_chunk_functions_on_other_datasets_fail() {
    let file = File::in_memory().unwrap();
    let dense = file.new_dataset::<u8>().shape([10]).chunk([5]).create("dense").unwrap();
    let contiguous = file.new_dataset::<u8>().shape([10]).create("contiguous").unwrap();
    for dataset in [dense, contiguous] {
        assert!(dataset.write_structured_chunk([0], &example([0, 0])).is_err());
        assert!(dataset.read_structured_chunk([0]).is_err());
        assert!(dataset.structured_chunk_info(.., 0).is_err());
        assert!(dataset.structured_chunk_info_at([0]).is_err());
        assert!(dataset.for_each_structured_chunk(|_| ControlFlow::<()>::Continue(())).is_err());
    }
}

/// A fault of a chunk, and the word that the error must have.
fn refused(spoil: impl FnOnce(&mut [StoredSection; 2]), offset: [u64; 2], about: &str) {
    let file = File::in_memory().unwrap();
    let dataset = builder(&file).no_filters().create("d").unwrap();
    dataset.write_point(&[1, 1], 7u8).unwrap();
    let mut sections = example([0, 0]);
    spoil(&mut sections);
    let error = dataset.write_structured_chunk(offset, &sections).unwrap_err().to_string();
    assert!(error.contains(about), "{error}");
    assert_eq!(dataset.read_defined::<u8>(..).unwrap().values, [7], "nothing has changed");
}

#[test]
fn sections_that_cannot_be_read_are_refused() {
    let here = [0, 0];
    refused(|sections| sections[0].bytes[20] ^= 1, here, "checksum");
    refused(|sections| sections[0].bytes.truncate(50), here, "announced");
    refused(|sections| sections[1].bytes.push(1), here, "announced");
    let longer = |sections: &mut [StoredSection; 2]| {
        sections[1] = StoredSection::unfiltered(vec![0; 7], 0);
    };
    refused(longer, here, "6 byte(s)");
    refused(|sections| sections[0].filter_mask = 1, here, "filter mask");
    refused(|sections| sections[1].unfiltered_size = u64::MAX, here, "announced");
    let other_shape = |sections: &mut [StoredSection; 2]| {
        let cells = Selection::block(&[3, 2], &[2, 3]).unwrap();
        let bytes = StoredSection::selection(&[6, 5], &cells).unwrap();
        sections[0] = StoredSection::unfiltered(bytes, 0);
    };
    refused(other_shape, here, "[6, 5]");
    let nothing = |sections: &mut [StoredSection; 2]| {
        let bytes = StoredSection::selection(&[5, 5], &Selection::none()).unwrap();
        *sections = [StoredSection::unfiltered(bytes, 0), StoredSection::unfiltered(vec![], 0)];
    };
    refused(nothing, here, "without defined cells");
    refused(|_| {}, [0, 10], "inside the extent");
    refused(|_| {}, [0, 3], "no chunk");
    refused(|_| {}, [10, 0], "no chunk");

    let file = File::in_memory().unwrap();
    let dataset = builder(&file).no_filters().create("d").unwrap();
    assert!(dataset.write_structured_chunk(here, &example([0, 0])[..1]).is_err());
}

#[test]
fn an_empty_section_0_says_that_every_cell_is_defined() {
    let file = File::in_memory().unwrap();
    let dataset = builder(&file).no_filters().create("d").unwrap();
    let values = (0..25).collect();
    let sections = [StoredSection::unfiltered(vec![], 0), StoredSection::unfiltered(values, 0)];
    dataset.write_structured_chunk([0, 5], &sections).unwrap();
    assert_eq!(dataset.count_defined(..).unwrap(), 25);
    assert_eq!(dataset.read::<u8>((1, 5..10)).unwrap(), [5, 6, 7, 8, 9]);
}

#[test]
fn chunks_of_strings_are_copied_by_sections_and_damage_is_refused() {
    let file = File::in_memory().unwrap();
    for sparse in [false, true] {
        let builder = || {
            let builder = file.new_strings().shape([10]).chunk([4]);
            if sparse { builder.sparse() } else { builder.variable_length() }
        };
        let from = builder().create(&format!("from {sparse}")).unwrap();
        let to = builder().create(&format!("to {sparse}")).unwrap();
        let texts = ["", "one", "a longer text than the others", "two"];
        from.write_strings(1..5, &texts).unwrap();
        for chunk in from.structured_chunks().unwrap().list().unwrap() {
            let sections = from.read_structured_chunk(&chunk.offset).unwrap().unwrap();
            assert_eq!(sections.len(), from.sections().len());
            let mut damaged = sections.clone();
            let references = usize::from(sparse);
            damaged[references].bytes.truncate(3);
            assert!(to.write_structured_chunk(&chunk.offset, &damaged).is_err());
            to.write_structured_chunk(&chunk.offset, &sections).unwrap();
        }
        assert_eq!(to.read_strings(1..5).unwrap().to_vec(), texts);
        assert_eq!(to.count_defined(..).unwrap(), if sparse { 4 } else { 10 });
    }
}

#[test]
fn erasing_what_is_not_defined_leaves_chunks_where_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sparse.h5");
    let file = File::create(&path).unwrap();
    let matrix = builder(&file).create("matrix").unwrap();
    matrix.write_points(&[[0, 0], [0, 4], [3, 3]], &[1u8, 2, 3]).unwrap();
    let places = |file: &File| -> Vec<u64> {
        let chunks = file.dataset("matrix").unwrap().structured_chunks().unwrap().list().unwrap();
        chunks.iter().map(|chunk| chunk.address).collect()
    };
    drop(matrix);
    file.close().unwrap();
    let file = File::edit(&path).unwrap();
    let before = places(&file);
    let erase = |points: &[[u64; 2]]| {
        let points = pumice::Points::list(2, points.as_flattened()).unwrap();
        file.dataset("matrix").unwrap().erase_at(&points).unwrap();
        file.flush().unwrap();
    };
    erase(&[[1, 1], [0, 3]]);
    assert_eq!(places(&file), before);
    erase(&[[1, 1], [0, 0]]);
    assert_ne!(places(&file), before);
    assert_eq!(file.dataset("matrix").unwrap().count_defined(..).unwrap(), 2);
}

#[test]
fn undefined_cells_read_as_the_fill_value_whenever_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f.h5");
    let times = [FillTime::Never, FillTime::IfSet, FillTime::Allocation];
    let file = File::create(&path).unwrap();
    for time in times {
        let new = builder(&file).fill_value(9u8).fill_time(time).create(&format!("{time:?}"));
        new.unwrap().write_point(&[1, 1], 7u8).unwrap();
    }
    let check = |file: &File| {
        for time in times {
            let dataset = file.dataset(&format!("{time:?}")).unwrap();
            assert_eq!(dataset.read::<u8>((1, 0..3)).unwrap(), [9, 7, 9], "{time:?}");
            assert_eq!(dataset.read::<u8>((9, 9)).unwrap(), [9], "{time:?}, no chunk");
        }
    };
    check(&file);
    file.close().unwrap();
    check(&File::open(&path).unwrap());
}

#[test]
fn more_chunks_than_can_be_counted_are_refused_at_once_unless_they_are_sparse() {
    let file = File::in_memory().unwrap();
    let strings = file.new_strings().shape([1 << 62, 1 << 60]).chunk([1 << 20, 1 << 10]);
    let error = strings.variable_length().create("strings").err().unwrap().to_string();
    assert!(error.contains("take larger ones"), "{error}");
    for side in [1 << 20, 1 << 30] {
        let new = file.new_dataset::<u8>().shape([1 << 62, 1 << 60]).sparse().chunk([side, side]);
        let dataset = new.create(&side.to_string()).unwrap();
        dataset.write_point(&[1 << 61, 7], 1u8).unwrap();
        assert_eq!(dataset.count_defined(..).unwrap(), 1);
    }
}

/// Whether locations are compact, verbatim behind the location filter, compressed as they are, or neither, their size
/// before filters is what it is.
#[test]
fn sizes_of_selections_that_are_wrong_are_refused_in_every_form() {
    let file = File::in_memory().unwrap();
    let location = || FilterSpec::location();
    let zstd = || FilterSpec::zstd(3);
    let pipelines = [vec![], vec![location()], vec![location(), zstd()], vec![zstd()]];
    let scattered: Vec<u64> = (0..60).map(|cell| cell * cell % 997).collect();
    for (number, filters) in pipelines.into_iter().enumerate() {
        for (kind, points) in [("run", vec![2, 3, 4]), ("scattered", scattered.clone())] {
            let new = file.new_dataset::<u16>().shape([1000]).chunk([1000]).sparse().no_filters();
            let new = filters
                .iter()
                .fold(new, |new, filter| new.section_filter(Section::Selection, filter.clone()));
            let dataset = new.create(&format!("{kind} {number}")).unwrap();
            let mut points = points;
            points.sort_unstable();
            points.dedup();
            let points: Vec<[u64; 1]> = points.into_iter().map(|cell| [cell]).collect();
            dataset.write_points(&points, &vec![7u16; points.len()]).unwrap();
            let sections = dataset.read_structured_chunk([0]).unwrap().unwrap();
            dataset.check_structured_chunk([0]).unwrap();
            dataset.write_structured_chunk([0], &sections).unwrap();
            for change in [-20i64, -1, 1, 1000, 60_000] {
                let mut wrong = sections.clone();
                let size = sections[0].unfiltered_size as i64 + change;
                wrong[0].unfiltered_size = size as u64;
                let error = dataset.write_structured_chunk([0], &wrong);
                assert!(error.is_err(), "{kind} {number}: {change}");
                if change > 0 && number > 0 {
                    let error = error.unwrap_err().to_string();
                    let right = sections[0].unfiltered_size.to_string();
                    assert!(error.contains(&right), "{error}");
                    assert!(error.contains(&size.to_string()), "{error}");
                }
            }
            assert_eq!(dataset.count_defined(..).unwrap(), points.len() as u64, "it is as it was");
        }
    }
    let strings = file.new_strings().shape([10]).chunk([10]).sparse().create("strings").unwrap();
    strings.write_strings(2..5, &["a long one", "b", "c"]).unwrap();
    let sections = strings.read_structured_chunk([0]).unwrap().unwrap();
    strings.check_structured_chunk([0]).unwrap();
    for section in 0..3 {
        for change in [-1i64, 1] {
            let mut wrong = sections.clone();
            wrong[section].unfiltered_size =
                wrong[section].unfiltered_size.wrapping_add_signed(change);
            assert!(strings.write_structured_chunk([0], &wrong).is_err(), "{section} {change}");
        }
    }
    strings.write_structured_chunk([0], &sections).unwrap();
}
