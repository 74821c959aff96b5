//! Filters per section: asked for, counted, found, changed, removed, stored, and read back.

use pumice::{Dataset, DatasetBuilder, File, FilterSpec, Section, SectionFilters};

const DEFLATE: u16 = 1;
const SHUFFLE: u16 = 2;
const FLETCHER32: u16 = 3;
const LOCATION: u16 = 302;
const ZSTD: u16 = 32015;

fn sparse(file: &File) -> DatasetBuilder {
    file.new_dataset::<i32>().shape([40, 40]).chunk([10, 10]).sparse()
}

fn ids(dataset: &Dataset, section: Section) -> Vec<u16> {
    dataset.section_filters().of(section).iter().map(|filter| filter.id).collect()
}

/// Creates, writes, closes, opens again, and gives what `look` sees then.
fn reopened<T>(build: impl FnOnce(&File) -> DatasetBuilder, look: impl FnOnce(Dataset) -> T) -> T {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("filters.h5");
    let file = File::create(&path).unwrap();
    let dataset = build(&file).create("d").unwrap();
    let points: Vec<[u64; 2]> = (0..40).map(|at| [at, at * 7 % 40]).collect();
    let values: Vec<i32> = (0..40).collect();
    dataset.write_points(&points, &values).unwrap();
    file.close().unwrap();
    let file = File::open(&path).unwrap();
    let dataset = file.dataset("d").unwrap();
    for (point, value) in points.iter().zip(values) {
        assert_eq!(dataset.read::<i32>(*point).unwrap(), [value]);
    }
    look(dataset)
}

#[test]
fn defaults_stand_until_a_section_gets_a_filter() {
    reopened(sparse, |dataset| {
        assert_eq!(ids(&dataset, Section::Selection), [LOCATION, ZSTD]);
        assert_eq!(ids(&dataset, Section::Values), [SHUFFLE, ZSTD]);
    });
    let one = |file: &File| sparse(file).section_filter(Section::Values, FilterSpec::deflate(9));
    reopened(one, |dataset| {
        assert_eq!(ids(&dataset, Section::Selection), [LOCATION, ZSTD]);
        assert_eq!(ids(&dataset, Section::Values), [DEFLATE]);
    });
}

#[test]
fn predefined_filters_go_to_every_section() {
    reopened(
        |file| sparse(file).shuffle().deflate(9).fletcher32(),
        |dataset| {
            let filters = dataset.section_filters();
            assert_eq!(ids(&dataset, Section::Selection), [SHUFFLE, DEFLATE]);
            assert_eq!(ids(&dataset, Section::Values), [SHUFFLE, DEFLATE, FLETCHER32]);
            for section in [Section::Selection, Section::Values] {
                assert_eq!(filters.by_id(section, DEFLATE).unwrap().parameters, [9]);
                assert_eq!(filters.by_id(section, SHUFFLE).unwrap().parameters, [4]);
                assert!(filters.get(section, 1).unwrap().optional);
            }
        },
    );
}

#[test]
fn what_is_stored_comes_back_by_the_same_interface() {
    let build = |file: &File| {
        let builder = sparse(file).no_filters().section_filter(Section::Selection, shuffled());
        builder
            .section_filter(Section::Selection, FilterSpec::deflate(5))
            .section_filter(Section::Values, FilterSpec::deflate(3))
    };
    reopened(build, |dataset| {
        let filters = dataset.section_filters();
        assert_eq!(filters.sections().collect::<Vec<_>>(), dataset.sections());
        assert_eq!((filters.count(Section::Selection), filters.count(Section::Values)), (2, 1));
        assert_eq!(filters.get(Section::Selection, 0), Some(&shuffled()));
        assert_eq!(filters.get(Section::Values, 1), None);
        assert_eq!(filters.by_id(Section::Values, DEFLATE), Some(&FilterSpec::deflate(3)));
        assert_eq!(filters.by_id(Section::Values, SHUFFLE), None);
        assert_eq!(filters.count(Section::Heap), 0, "there is no such section");

        // And another dataset can be made with them.
        let other = File::in_memory().unwrap();
        let copy = sparse(&other).filters(filters.clone()).create("copy").unwrap();
        assert_eq!(copy.section_filters(), filters);
    });
}

fn shuffled() -> FilterSpec {
    FilterSpec { optional: false, ..FilterSpec::shuffle(4) }
}

#[test]
fn filters_are_changed_and_removed_in_one_section_or_in_all() {
    let sections = [Section::Selection, Section::Values];
    let mut filters = SectionFilters::defaults(&sections, 8);
    filters.modify(.., FilterSpec::zstd(9)).unwrap();
    for section in sections {
        assert_eq!(filters.by_id(section, ZSTD), Some(&FilterSpec::zstd(9)));
    }
    filters.modify(Section::Values, FilterSpec::shuffle(4)).unwrap();
    assert_eq!(filters.get(Section::Values, 0), Some(&FilterSpec::shuffle(4)));
    assert!(filters.modify(Section::Selection, FilterSpec::shuffle(4)).is_err());
    filters.remove(Section::Values, ZSTD).unwrap();
    assert_eq!((filters.count(Section::Values), filters.count(Section::Selection)), (1, 2));
    assert!(filters.remove(Section::Values, ZSTD).is_err(), "it has gone");
    filters.remove(.., ZSTD).unwrap();
    assert_eq!(filters.count(Section::Selection), 1);
    filters.clear(..).unwrap();
    assert_eq!(filters, SectionFilters::none(&sections, 8));
    filters.add(Section::Selection, FilterSpec::location()).unwrap();
    filters.add(.., FilterSpec::deflate(1)).unwrap();
    assert_eq!((filters.count(Section::Values), filters.count(Section::Selection)), (1, 2));
}

#[test]
fn builders_change_defaults_in_place() {
    let file = File::in_memory().unwrap();
    let builder = sparse(&file).modify_filter(.., FilterSpec::zstd(19));
    let dataset = builder.remove_filter(Section::Values, SHUFFLE).create("d").unwrap();
    assert_eq!(ids(&dataset, Section::Selection), [LOCATION, ZSTD]);
    assert_eq!(dataset.section_filters().of(Section::Values), [FilterSpec::zstd(19)]);
    let error = sparse(&file).remove_filter(.., 77).create("e").err().unwrap().to_string();
    assert!(error.contains("no section has a filter 77"), "{error}");
}

#[test]
fn fletcher32_guards_values_and_nothing_else() {
    reopened(
        |file| sparse(file).section_filter(Section::Values, FilterSpec::fletcher32()),
        |dataset| assert_eq!(ids(&dataset, Section::Values), [FLETCHER32]),
    );
    let file = File::in_memory().unwrap();
    let refused = sparse(&file).section_filter(Section::Selection, FilterSpec::fletcher32());
    let error = refused.create("d").err().unwrap().to_string();
    assert!(error.contains("Fletcher-32"), "{error}");
    let refused = sparse(&file).location_filters(vec![FilterSpec::fletcher32()]);
    assert!(refused.create("d").is_err());
    let dense = file.new_dataset::<i32>().shape([40]).fletcher32().create("dense").unwrap();
    assert_eq!(ids(&dense, Section::Chunk), [FLETCHER32]);
}

#[test]
fn a_section_that_the_dataset_does_not_have_is_an_error() {
    let file = File::in_memory().unwrap();
    let dense = file.new_dataset::<i32>().shape([40]).chunk([10]);
    let error = dense.section_filter(Section::Selection, FilterSpec::deflate(1)).create("d");
    assert!(error.err().unwrap().to_string().contains("no section of selection"));
    let other = SectionFilters::none(&[Section::Chunk], 4);
    assert!(sparse(&file).filters(other).create("d").is_err());
    let contiguous = file.new_dataset::<i32>().shape([40]).create("c").unwrap();
    assert_eq!(contiguous.sections(), []);
}

#[test]
fn a_dataset_of_bytes_is_not_shuffled_by_default() {
    let file = File::in_memory().unwrap();
    let dataset = file.new_dataset::<u8>().shape([40]).sparse().create("d").unwrap();
    assert_eq!(ids(&dataset, Section::Values), [ZSTD]);
}
