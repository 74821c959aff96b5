//! Filters per section: asked for, counted, found, changed, removed, stored, and read back.

use pumice::types::{ByteOrder, Integer};
use pumice::{
    BitshuffleCodec, BloscCodec, BloscShuffle, Dataset, DatasetBuilder, Datatype, File, FilterSpec,
    Scaling, Section, SectionFilters, Selection, SzipCoding,
};

const DEFLATE: u16 = 1;
const SHUFFLE: u16 = 2;
const FLETCHER32: u16 = 3;
const LOCATION: u16 = 302;
const LZF: u16 = 32000;
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

/// Everything that can be asked for of one section.
fn ask(builder: DatasetBuilder, section: Section) -> DatasetBuilder {
    let added = builder.section_filter(section, FilterSpec::deflate(1));
    let changed = added.modify_filter(section, FilterSpec::deflate(9));
    let removed = changed.section_filter(section, FilterSpec::lzf()).remove_filter(section, LZF);
    removed.clear_filters(section).section_filter(section, FilterSpec::deflate(2))
}

#[test]
fn filters_for_a_selection_or_a_heap_are_ignored_where_there_is_none() {
    let file = File::in_memory().unwrap();
    let numbers = || file.new_dataset::<i32>().shape([40]).chunk([10]);
    let words = || file.new_strings().shape([40]).chunk([10]);
    let kinds = [
        ("contiguous", file.new_dataset::<i32>().shape([40])),
        ("chunked", numbers().shuffle()),
        ("sparse", numbers().sparse()),
        ("dense words", words().variable_length()),
        ("sparse words", words().sparse()),
    ];
    for (name, builder) in kinds {
        let plain = builder.clone().create(name).unwrap();
        let asked = ask(ask(builder, Section::Selection), Section::Heap);
        let asked = asked.create(&format!("{name}, asked for")).unwrap();
        assert_eq!(asked.layout(), plain.layout(), "{name}");
        assert_eq!(asked.sections(), plain.sections(), "{name}");
        for section in asked.sections() {
            let wanted = match section {
                Section::Selection | Section::Heap => vec![FilterSpec::deflate(2)],
                _ => plain.section_filters().of(section).to_vec(),
            };
            assert_eq!(asked.section_filters().of(section), wanted, "{name}: {section}");
        }
    }
}

#[test]
fn a_section_of_elements_that_the_dataset_does_not_have_is_an_error() {
    let file = File::in_memory().unwrap();
    let dense = || file.new_dataset::<i32>().shape([40]).chunk([10]);
    for (builder, section) in [
        (dense(), Section::Values),
        (dense(), Section::References),
        (dense().sparse(), Section::Chunk),
        (dense().sparse(), Section::References),
        (file.new_strings().shape([40]).sparse(), Section::Values),
    ] {
        let error = builder.section_filter(section, FilterSpec::deflate(1)).create("d");
        let error = error.err().unwrap().to_string();
        assert!(error.contains(&format!("no section of {section}")), "{error}");
    }
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

/// Sections of all chunks in which a filter ran.
fn ran(dataset: &Dataset) -> Vec<Section> {
    let chunks = dataset.structured_chunks().unwrap().list().unwrap();
    let sections = chunks.iter().flat_map(|chunk| &chunk.sections);
    let mut ran: Vec<Section> =
        sections.filter(|part| part.filter_mask == 0).map(|part| part.section).collect();
    ran.sort();
    ran.dedup();
    ran
}

#[test]
fn every_predefined_filter_runs_in_the_sections_it_can_and_is_masked_in_the_others() {
    use Section::{Heap, References, Selection as Cells, Values};
    let everywhere = [Cells, Values, References, Heap];
    let filters = [
        (FilterSpec::szip(SzipCoding::NearestNeighbour, 16), &everywhere[..]),
        (FilterSpec::lzf(), &everywhere),
        (FilterSpec::lz4(0), &everywhere),
        (FilterSpec::bzip2(5), &everywhere),
        (FilterSpec::blosc(BloscCodec::Lz4, 5, BloscShuffle::Bytes), &everywhere),
        (FilterSpec::bitshuffle(BitshuffleCodec::Zstd(3)), &everywhere),
        // These are for numbers.
        (FilterSpec::nbit(), &[Values]),
        (FilterSpec::scale_offset(Scaling::Integer), &[Values]),
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("predefined.h5");
    let narrow = Integer { precision: 11, ..Integer::new(4, ByteOrder::Big, false) };
    let scattered = |&(row, column): &(u64, u64)| (row * row * 31 + column * 17) % 7 < 2;
    let points = (0..80).flat_map(|row| (0..80).map(move |column| (row, column)));
    let points: Vec<(u64, u64)> = points.filter(scattered).collect();
    let numbers: Vec<u32> = (0..points.len() as u32).map(|at| at % 1000 / 3).collect();
    let points = points.into_iter().flat_map(|(row, column)| [row, column]).collect();
    let cells = Selection::points(2, points).unwrap();
    let words: Vec<String> = numbers.iter().map(|number| format!("the word of {number}")).collect();
    for (filter, sections) in filters {
        let file = File::create(&path).unwrap();
        let shaped = |datatype: Datatype| {
            let builder = file.new_dataset_of(datatype).shape([80, 80]).chunk([32, 32]);
            builder.filter(filter.clone())
        };
        let fixed = shaped(narrow.clone().into()).sparse().create("fixed").unwrap();
        fixed.write(&cells, &numbers).unwrap();
        let string = Datatype::varlen_string(16);
        let sparse = shaped(string.clone()).sparse().create("sparse").unwrap();
        sparse.write_strings(&cells, &words).unwrap();
        let dense = shaped(string).variable_length().create("dense").unwrap();
        dense.write_strings(&cells, &words).unwrap();
        file.close().unwrap();

        let file = File::open(&path).unwrap();
        let [fixed, sparse, dense] = ["fixed", "sparse", "dense"].map(|name| {
            let dataset = file.dataset(name).unwrap();
            let wanted = dataset.sections();
            assert_eq!(dataset.section_filters().sections().collect::<Vec<_>>(), wanted);
            for section in wanted {
                assert_eq!(ids(&dataset, section), [filter.id], "{name} {section}");
            }
            dataset
        });
        for dataset in [&fixed, &sparse, &dense] {
            let possible: Vec<Section> =
                dataset.sections().into_iter().filter(|own| sections.contains(own)).collect();
            assert_eq!(ran(dataset), possible, "{filter:?}");
        }
        assert_eq!(fixed.read::<u32>(&cells).unwrap(), numbers, "{filter:?}");
        assert_eq!(sparse.read_strings(&cells).unwrap(), words, "{filter:?}");
        assert_eq!(dense.read_strings(&cells).unwrap(), words, "{filter:?}");
        assert_eq!(fixed.count_defined(..).unwrap(), numbers.len() as u64);
    }
}

#[test]
fn numbers_of_few_bits_are_stored_in_few_bits_whatever_their_count() {
    let file = File::in_memory().unwrap();
    let narrow =
        Integer { precision: 5, bit_offset: 2, ..Integer::new(8, ByteOrder::Little, true) };
    for filter in [FilterSpec::nbit(), FilterSpec::scale_offset(Scaling::IntegerBits(5))] {
        let datatype: Datatype = match filter.id == FilterSpec::nbit().id {
            true => narrow.clone().into(),
            false => Datatype::i64_le(),
        };
        let builder = file.new_dataset_of(datatype).shape([1000]).chunk([500]).sparse();
        let builder = builder.no_filters().section_filter(Section::Values, filter.clone());
        let dataset = builder.create(&format!("filter {}", filter.id)).unwrap();
        for count in [1u64, 2, 3, 7, 8, 100, 499, 500] {
            let values: Vec<i64> = (0..count as i64).map(|at| at % 15).collect();
            dataset.erase(..).unwrap();
            dataset.write(500 - count..500, &values).unwrap();
            dataset.flush().unwrap();
            let chunk = dataset.structured_chunk_info_at([0]).unwrap().unwrap();
            let stored = chunk.sections[1];
            assert_eq!(stored.unfiltered_size, count * 8);
            assert!(stored.filter_mask == 1 || stored.size <= count * 5 / 8 + 32, "{stored:?}");
            assert!(stored.filter_mask == 0 || count < 8, "{stored:?}");
            assert_eq!(dataset.read::<i64>(500 - count..500).unwrap(), values);
        }
    }
}

#[test]
fn what_filters_shrink_to_almost_nothing_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    let numbers = vec![7i64; 1 << 21];
    let word = "x".repeat(16 << 20);
    for filter in [FilterSpec::zstd(3), FilterSpec::deflate(9)] {
        let file = File::create(&path).unwrap();
        let twice = |builder: DatasetBuilder| {
            builder.no_filters().filter(filter.clone()).filter(filter.clone())
        };
        let values = file.new_dataset::<i64>().shape([1 << 22]).chunk([1 << 22]).sparse();
        twice(values).create("values").unwrap().write(..1 << 21, &numbers).unwrap();
        let words = file.new_strings().shape([9]).chunk([9]);
        twice(words.clone().sparse()).create("sparse").unwrap().write_strings(3, &[&word]).unwrap();
        let dense = twice(words.variable_length()).create("dense").unwrap();
        dense.write_strings(3, &[&word]).unwrap();
        drop(dense);
        file.close().unwrap();
        assert!(std::fs::metadata(&path).unwrap().len() < 100_000);

        let file = File::open(&path).unwrap();
        assert!(file.dataset("values").unwrap().read::<i64>(..1 << 21).unwrap() == numbers);
        for name in ["sparse", "dense"] {
            let found = file.dataset(name).unwrap().read_strings(3).unwrap();
            assert!(found.iter().eq([word.as_bytes()]), "{name} {filter:?}");
        }
    }
}

#[test]
fn a_filter_that_nobody_has_is_refused_when_the_dataset_is_made_unless_it_is_optional() {
    let file = File::in_memory().unwrap();
    let of = |id: u16, optional: bool| FilterSpec {
        id,
        optional,
        name: None,
        config: None,
        parameters: vec![],
    };
    let numbers = |chunked: bool| {
        let new = file.new_dataset::<i32>().shape([40, 40]).chunk([10, 10]);
        if chunked { new } else { new.sparse() }
    };
    for (name, new) in [
        ("dense", numbers(true).filter(of(999, false))),
        ("sparse", numbers(false).filter(of(999, false))),
        ("locations", numbers(false).section_filter(Section::Selection, of(999, false))),
        (
            "strings",
            file.new_strings().shape([9]).sparse().section_filter(Section::Heap, of(999, false)),
        ),
    ] {
        let checked = new.check().unwrap_err().to_string();
        let error = new.create(name).err().unwrap().to_string();
        for words in ["999", "not available", "register", "optional"] {
            assert!(error.contains(words) && checked.contains(words), "{name}: {error}, {checked}");
        }
        assert!(file.dataset(name).is_err(), "nothing is left of it");
    }
    let error = numbers(true).filter(of(32013, false)).create("zfp").err().unwrap().to_string();
    assert!(error.contains("32013") && error.to_lowercase().contains("zfp"), "{error}");
    for (name, new) in [("dense", numbers(true)), ("sparse", numbers(false))] {
        let dataset = new.filter(of(999, true)).create(name).unwrap();
        dataset.write((3, ..), &[7i32; 40]).unwrap();
        dataset.flush().unwrap();
        assert_eq!(dataset.read::<i32>((3, ..)).unwrap(), [7; 40]);
    }
}
