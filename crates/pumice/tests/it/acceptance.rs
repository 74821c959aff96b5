//! The checks of the structured-chunk prototype's own suite, through Pumice's interfaces.

use pumice::{
    AllocationTime, Context, Dataset, DatasetBuilder, DatasetFacts, File, FileSpaceStrategy,
    Filter, FilterError, FilterSpec, LayoutKind, LibraryVersion, MemoryStore, Section, Selection,
    SzipCoding,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What libhdf5 leaves out of the size of an extensible array's index block that it has not read:
/// 29 addresses.
const INDEX_BLOCK_QUIRK: u64 = 29 * 8;

struct Case {
    shape: u64,
    max: Option<u64>,
    chunk: u64,
    /// Index size without and with filters.
    sizes: [u64; 2],
}

#[test]
fn the_index_is_chosen_by_shape_and_has_the_known_size() {
    let cases = [
        Case { shape: 50, max: Some(50), chunk: 50, sizes: [0, 0] },
        Case { shape: 50, max: Some(50), chunk: 5, sizes: [226, 466] },
        Case {
            shape: 20,
            max: None,
            chunk: 5,
            sizes: [178 + INDEX_BLOCK_QUIRK, 274 + INDEX_BLOCK_QUIRK],
        },
    ];
    let folder = tempfile::tempdir().unwrap();
    for (number, case) in cases.iter().enumerate() {
        for (filtered, size) in [false, true].into_iter().zip(case.sizes) {
            let path = folder.path().join(format!("{number}{filtered}.h5"));
            let file = File::create(&path).unwrap();
            let builder = file.new_dataset::<i32>().shape([case.shape]).max_shape([case.max]);
            let builder = builder.chunk([case.chunk]).sparse().no_filters();
            let builder = if filtered { builder.deflate(6) } else { builder };
            let dataset = builder.create("d").unwrap();
            // Two hyperslabs, from a compact buffer.
            let parts = [(1, 2), (12, 3)].map(|(at, n)| Selection::block(&[at], &[n]).unwrap());
            let cells = Selection::union_of(1, parts, &[case.shape]).unwrap();
            dataset.write(&cells, &[1, 2, 3, 4, 5]).unwrap();
            let beside = file.new_dataset::<i32>().shape([50]).chunk([5]).create("dense").unwrap();
            beside.write(.., &[7; 50]).unwrap();
            file.close().unwrap();

            let file = File::open(&path).unwrap();
            let dataset = file.dataset("d").unwrap();
            assert_eq!(dataset.index_size().unwrap(), size, "case {number}, filters: {filtered}");
            assert_eq!(dataset.read::<i32>(&cells).unwrap(), [1, 2, 3, 4, 5]);
            assert!(dataset.defined(..).unwrap().same_cells(&cells, &[case.shape]).unwrap());
            assert_eq!(file.dataset("dense").unwrap().read::<i32>(..).unwrap(), [7; 50]);
        }
    }
}

/// Sizes of an index before anything is written, if it is there at once: its header.
const HEADERS: [(&str, u64, Option<u64>, u64, u64); 4] = [
    ("single", 50, Some(50), 50, 0),
    ("fixed array", 50, Some(50), 5, 28),
    ("extensible array", 20, None, 5, 72),
    ("fixed array below maximum", 20, Some(50), 5, 28),
];

fn create_and_write(file: &File, filtered: bool, early: bool) {
    let filters = |builder: DatasetBuilder| match (filtered, early) {
        (true, true) => builder.deflate(5).allocation_time(AllocationTime::Early),
        (true, false) => builder.deflate(5),
        (false, true) => builder.no_filters().allocation_time(AllocationTime::Early),
        (false, false) => builder.no_filters(),
    };
    for (name, shape, max, chunk, header) in HEADERS {
        let cells = || file.new_dataset::<i32>().shape([shape]).max_shape([max]).chunk([chunk]);
        let dataset = filters(cells().sparse()).create(name).unwrap();
        assert_eq!(dataset.index_size().unwrap(), if early { header } else { 0 });
        assert_eq!(dataset.storage_size().unwrap(), 0, "only the index is there early");
        dataset.write(3..6, &[1, 2, 3]).unwrap();
        let strings = file.new_strings().shape([shape]).max_shape([max]).chunk([chunk]);
        let strings = filters(strings.variable_length()).create(&format!("{name} strings"));
        let strings = strings.unwrap();
        assert_eq!(strings.index_size().unwrap(), if early { header } else { 0 });
        strings.write_strings(3..6, &["one", "", "three"]).unwrap();
    }
    let tree = file.new_dataset::<i32>().shape([9, 9]).max_shape([None, None]).chunk([5, 5]);
    let tree = filters(tree.sparse()).create("tree").unwrap();
    assert_eq!(tree.index_size().unwrap(), if early { 38 } else { 0 });
    tree.write((4, 3..6), &[1, 2, 3]).unwrap();
}

#[test]
fn files_of_every_kind_can_hold_structured_chunks() {
    let versions = [
        LibraryVersion::Earliest,
        LibraryVersion::V18,
        LibraryVersion::V110,
        LibraryVersion::V112,
        LibraryVersion::V114,
        LibraryVersion::V200,
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kind.h5");
    for version in versions {
        for case in 0..8 {
            let (paged, filtered, early) = (case & 1 != 0, case & 2 != 0, case & 4 != 0);
            let options = File::options().library_version(version);
            let options = match paged {
                true => options.space_strategy(FileSpaceStrategy::Paged),
                false => options,
            };
            let file = options.create(&path).unwrap();
            create_and_write(&file, filtered, early);
            file.close().unwrap();

            let file = File::edit(&path).unwrap();
            let time = match early {
                true => AllocationTime::Early,
                false => AllocationTime::Incremental,
            };
            for (name, ..) in HEADERS {
                let dataset = file.dataset(name).unwrap();
                assert_eq!(dataset.read::<i32>(2..7).unwrap(), [0, 1, 2, 3, 0]);
                assert_eq!(dataset.count_defined(..).unwrap(), 3);
                assert_eq!(dataset.creation().unwrap().allocation_time, time);
                let strings = file.dataset(&format!("{name} strings")).unwrap();
                assert_eq!(strings.read_strings(2..7).unwrap(), ["", "one", "", "three", ""]);
            }
            let tree = file.dataset("tree").unwrap();
            assert_eq!(tree.read::<i32>((3..6, 4)).unwrap(), [0, 2, 0]);
            assert_eq!(tree.index_size().unwrap(), 2086);
        }
    }
}

/// As the prototype's tests have it for every pair of bounds: the upper one decides, the lower does not.
#[test]
fn structured_chunks_are_refused_unless_the_newest_forms_are_allowed() {
    use LibraryVersion::{Earliest, V18, V110, V112, V114, V200};
    let bounds = [Earliest, V18, V110, V112, V114, V200];
    for (at, low) in bounds.into_iter().enumerate() {
        for high in bounds.into_iter().skip(at.max(1)) {
            let options = File::options().library_version(low).newest_version(high);
            let file = options.create_in(Arc::new(MemoryStore::default())).unwrap();
            let numbers = || file.new_dataset::<i32>().shape([40]).chunk([10]);
            let words = || file.new_strings().shape([40]).chunk([10]);
            for (name, builder) in [
                ("sparse", numbers().sparse()),
                ("sparse, without filters", numbers().sparse().no_filters()),
                ("sparse words", words().sparse()),
                ("dense words", words().variable_length()),
            ] {
                assert_eq!(builder.check().is_ok(), high == V200, "{name}: {low:?} to {high:?}");
                match builder.create(name) {
                    Ok(_) => assert_eq!(high, V200, "{name} from {low:?} on"),
                    Err(error) => {
                        assert!(high < V200, "{name}: {low:?} to {high:?}: {error}");
                        let error = error.to_string();
                        let upper = format!("up to {high:?}");
                        assert!(error.contains("structured chunks") && error.contains(&upper));
                        assert!(error.contains(name) && file.dataset(name).is_err(), "{error}");
                    }
                }
            }
            // The file is none the worse for it.
            numbers().create("dense").unwrap().write(3..5, &[1, 2]).unwrap();
            words().create("words").unwrap().write_strings(3..5, &["a", "b"]).unwrap();
            file.close().unwrap();
        }
    }
}

#[test]
fn an_early_index_without_chunks_is_opened_used_and_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("early.h5");
    let file = File::create(&path).unwrap();
    let maxima = [[Some(9), Some(9)], [Some(9), None], [None, None]];
    for (number, max) in maxima.into_iter().enumerate() {
        let builder = file.new_dataset::<i32>().shape([9, 9]).max_shape(max).chunk([5, 5]);
        let builder = builder.sparse().allocation_time(AllocationTime::Early);
        builder.create(&format!("d{number}")).unwrap();
    }
    file.close().unwrap();
    let file = File::edit(&path).unwrap();
    for number in 0..maxima.len() {
        let dataset = file.dataset(&format!("d{number}")).unwrap();
        assert_eq!(dataset.count_defined(..).unwrap(), 0);
        assert_eq!(dataset.index_size().unwrap(), [28, 72, 38][number]);
        dataset.write((7, 2..4), &[5, 6]).unwrap();
    }
    file.close().unwrap();
    let file = File::edit(&path).unwrap();
    for number in 0..maxima.len() {
        let name = format!("d{number}");
        assert_eq!(file.dataset(&name).unwrap().read::<i32>((7, 1..5)).unwrap(), [0, 5, 6, 0]);
        file.unlink(&name).unwrap();
    }
    file.close().unwrap();
    assert!(std::fs::metadata(&path).unwrap().len() < 1000, "their space is free");
}

#[test]
fn deflate_on_the_selection_and_szip_on_the_values_as_in_the_first_example() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("first.h5");
    let file = File::create(&path).unwrap();
    let builder = file.new_dataset::<i32>().shape([32, 64]).chunk([5, 9]).sparse();
    let szip = FilterSpec::szip(SzipCoding::NearestNeighbour, 4);
    let builder = builder.section_filter(Section::Selection, FilterSpec::deflate(9));
    let dataset = builder.section_filter(Section::Values, szip).create("DS1").unwrap();
    let values: Vec<i32> = (0..32 * 64).map(|at| at / 64 * (at % 64) - at % 64).collect();
    dataset.write(.., &values).unwrap();
    file.close().unwrap();
    let file = File::open(&path).unwrap();
    let dataset = file.dataset("DS1").unwrap();
    let filters = dataset.section_filters();
    assert_eq!(filters.get(Section::Selection, 0).map(|filter| filter.id), Some(1));
    assert_eq!(filters.get(Section::Values, 0).map(|filter| filter.id), Some(4));
    assert_eq!(dataset.read::<i32>(..).unwrap(), values);
    for chunk in dataset.structured_chunks().unwrap().list().unwrap() {
        let [cells, values] = chunk.sections.as_slice() else { panic!("two sections") };
        assert!(cells.filter_mask == 0 && cells.size < cells.unfiltered_size, "{chunk:?}");
        // At the edge are five values or fewer, of which szip may not make less.
        let few = values.unfiltered_size <= 20;
        assert!(few || values.filter_mask == 0, "{chunk:?}");
        assert!(few || values.size < values.unfiltered_size, "{chunk:?}");
    }
}

#[test]
fn two_unlimited_axes_get_a_b_tree_of_the_known_size() {
    for filtered in [false, true] {
        let file = File::in_memory().unwrap();
        let dataset = matrix(&file, filtered);
        dataset.write((3..8, 2..19), &vec![5i32; 5 * 17]).unwrap();
        assert_eq!(dataset.index_size().unwrap(), 2086);
        assert_eq!(dataset.count_defined(..).unwrap(), 85);
    }
}

/// 10 x 19 cells, both axes unlimited, with partial edge chunks.
fn matrix(file: &File, filtered: bool) -> Dataset {
    let builder = file.new_dataset::<i32>().shape([10, 19]).max_shape([None, None]);
    let builder = builder.chunk([5, 5]).sparse();
    let builder = if filtered { builder } else { builder.no_filters() };
    builder.create("matrix").unwrap()
}

#[test]
fn the_extent_changes_before_anything_is_written() {
    for (shape, max, new) in [(20, Some(50), 50), (20, None, 10)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("extent.h5");
        let file = File::create(&path).unwrap();
        let builder = file.new_dataset::<i32>().shape([shape]).max_shape([max]).chunk([5]);
        let builder = builder.sparse().deflate(5).dont_filter_partial_chunks();
        let dataset = builder.create("d").unwrap();
        dataset.resize([new]).unwrap();
        dataset.write(3..6, &[1, 2, 3]).unwrap();
        file.close().unwrap();
        let file = File::open(&path).unwrap();
        let dataset = file.dataset("d").unwrap();
        assert_eq!(dataset.shape(), [new]);
        assert_eq!(dataset.max_shape(), [max]);
        assert!(dataset.creation().unwrap().dont_filter_partial_chunks);
        assert_eq!(dataset.read::<i32>(2..7).unwrap(), [0, 1, 2, 3, 0]);
    }
}

#[test]
fn the_extent_changes_after_a_write() {
    for (new, left) in [([20, 29], 85), ([5, 9], 2 * 7)] {
        for cache in [0, 1 << 20] {
            let context = Context::builder().cache_bytes(cache).threads(1).build().unwrap();
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("extent.h5");
            let file = File::options().context(&context).create(&path).unwrap();
            let dataset = matrix(&file, true);
            dataset.write((3..8, 2..19), &vec![5i32; 5 * 17]).unwrap();
            dataset.resize(new).unwrap();
            assert_eq!(dataset.count_defined(..).unwrap(), left);
            file.close().unwrap();
            let file = File::open(&path).unwrap();
            let dataset = file.dataset("matrix").unwrap();
            assert_eq!((dataset.shape(), dataset.count_defined(..).unwrap()), (new.into(), left));
            let sum: i32 = dataset.read::<i32>(..).unwrap().iter().sum();
            assert_eq!(sum, 5 * left as i32);
        }
    }
}

#[test]
fn an_opened_dataset_tells_how_it_was_made() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("made.h5");
    let file = File::create(&path).unwrap();
    file.new_dataset::<i32>().shape([50]).chunk([5]).sparse().create("one").unwrap();
    file.new_dataset::<f64>().shape([9, 8]).chunk([4, 5]).sparse().create("two").unwrap();
    file.close().unwrap();
    let file = File::open(&path).unwrap();
    for (name, shape, chunk) in [("one", vec![50], vec![5]), ("two", vec![9, 8], vec![4, 5])] {
        let dataset = file.dataset(name).unwrap();
        assert_eq!((dataset.layout(), dataset.is_sparse()), (LayoutKind::Sparse, true));
        assert_eq!((dataset.shape(), dataset.chunk()), (shape, Some(chunk)));
        assert_eq!(dataset.sections(), [Section::Selection, Section::Values]);
    }
}

#[test]
fn filters_run_when_chunks_are_flushed_not_when_they_are_written() {
    pumice::register_filter(Box::new(Failing)).unwrap();
    let file = File::in_memory().unwrap();
    let failing =
        FilterSpec { id: 278, optional: false, name: None, config: None, parameters: vec![] };
    let builder = file.new_dataset::<i32>().shape([50]).chunk([5]).sparse();
    let dataset = builder.section_filter(Section::Values, failing).create("d").unwrap();
    dataset.write(0..5, &[1, 2, 3, 4, 5]).unwrap();
    assert_eq!(dataset.read::<i32>(0..5).unwrap(), [1, 2, 3, 4, 5]);
    let error = dataset.flush().unwrap_err().to_string();
    assert!(error.contains("failing"), "{error}");
    dataset.erase(..).unwrap();
    dataset.flush().unwrap();
}

/// A filter that cannot run.
struct Failing;

impl Filter for Failing {
    fn id(&self) -> u16 {
        278
    }

    fn name(&self) -> &'static str {
        "failing"
    }

    fn encode(&self, _: &[u32], input: &[u8], _: &mut Vec<u8>) -> Result<(), FilterError> {
        let (limit, found) = (0, input.len().to_string());
        Err(FilterError::TooLarge { filter: "failing", limit, found })
    }

    fn decode(
        &self,
        _: &[u32],
        input: &[u8],
        _: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        self.encode(&[], input, out)
    }
}

/// Adds its parameter to every byte, and counts how often it runs.
struct Adding;

static ENCODED: AtomicUsize = AtomicUsize::new(0);
static DECODED: AtomicUsize = AtomicUsize::new(0);

impl Adding {
    fn add(by: u32, input: &[u8], out: &mut Vec<u8>) {
        out.clear();
        out.extend(input.iter().map(|byte| byte.wrapping_add(by as u8)));
    }
}

impl Filter for Adding {
    fn id(&self) -> u16 {
        277
    }

    fn name(&self) -> &'static str {
        "adding"
    }

    fn encode(&self, by: &[u32], input: &[u8], out: &mut Vec<u8>) -> Result<(), FilterError> {
        ENCODED.fetch_add(1, Ordering::Relaxed);
        Self::add(by[0], input, out);
        Ok(())
    }

    fn decode(
        &self,
        by: &[u32],
        input: &[u8],
        _limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        DECODED.fetch_add(1, Ordering::Relaxed);
        Self::add(by[0].wrapping_neg(), input, out);
        Ok(())
    }

    fn parameters_for(
        &self,
        parameters: &[u32],
        _dataset: &DatasetFacts<'_>,
    ) -> Result<Vec<u32>, FilterError> {
        assert_eq!(parameters, [9]);
        Ok(vec![3])
    }
}

#[test]
fn a_registered_filter_chooses_its_parameters_and_runs_at_flush_and_at_the_first_read() {
    pumice::register_filter(Box::new(Adding)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("registered.h5");
    let file = File::create(&path).unwrap();
    let adding =
        FilterSpec { id: 277, optional: false, name: None, config: None, parameters: vec![9] };
    let builder = file.new_dataset::<i32>().shape([50]).chunk([5]).sparse().no_filters();
    let builder = builder.section_filter(Section::Values, adding);
    let dataset = builder.create("d").unwrap();
    dataset.write(0..5, &[1, 2, 3, 4, 5]).unwrap();
    assert_eq!(ENCODED.load(Ordering::Relaxed), 0, "written, not flushed");
    dataset.flush().unwrap();
    assert_eq!(ENCODED.load(Ordering::Relaxed), 1);
    let stored = dataset.read_structured_chunk([0]).unwrap().unwrap();
    assert_eq!(stored[1].bytes[..5], [4, 3, 3, 3, 5], "three more in every byte");
    drop(dataset);
    file.close().unwrap();

    let file = File::open(&path).unwrap();
    let dataset = file.dataset("d").unwrap();
    let mut filters = dataset.section_filters();
    let found = filters.get(Section::Values, 0).unwrap();
    assert_eq!((found.id, found.parameters.as_slice()), (277, &[3][..]));
    filters.remove(Section::Values, 277).unwrap();
    assert_eq!(filters.count(Section::Values), 0);
    assert_eq!(DECODED.load(Ordering::Relaxed), 0);
    assert_eq!(dataset.read::<i32>(0..5).unwrap(), [1, 2, 3, 4, 5]);
    assert_eq!(DECODED.load(Ordering::Relaxed), 1);
}

#[test]
fn an_optional_filter_that_nobody_has_is_skipped_and_masked() {
    let file = File::in_memory().unwrap();
    let nobody =
        FilterSpec { id: 77, optional: true, name: None, config: None, parameters: vec![] };
    let builder = file.new_dataset::<i32>().shape([50]).chunk([50]).sparse().no_filters();
    let builder = builder.section_filter(Section::Values, nobody);
    let dataset = builder.section_filter(Section::Values, FilterSpec::deflate(6));
    let dataset = dataset.create("d").unwrap();
    dataset.write(.., &[7; 50]).unwrap();
    let chunk = dataset.structured_chunk_info_at([0]).unwrap().unwrap();
    let masks: Vec<u32> = chunk.sections.iter().map(|section| section.filter_mask).collect();
    assert_eq!(masks, [0, 1]);
    assert!(chunk.sections[1].size < chunk.sections[1].unfiltered_size);
    assert_eq!(dataset.read::<i32>(..).unwrap(), [7; 50]);
}

#[test]
fn what_was_defined_is_erased_and_then_nothing_is() {
    let file = File::in_memory().unwrap();
    let dataset = matrix(&file, true);
    dataset.write((3..8, 2..19), &vec![5i32; 5 * 17]).unwrap();
    let defined = dataset.defined(..).unwrap();
    assert_eq!(defined.as_block(&[10, 19]).unwrap().1.as_slice(), [5, 17]);
    dataset.erase(&defined).unwrap();
    assert!(dataset.defined(..).unwrap().is_none() || dataset.count_defined(..).unwrap() == 0);
    assert_eq!(dataset.chunk_count().unwrap(), 0);
    assert_eq!(dataset.storage_size().unwrap(), 0);
}

#[test]
fn questions_about_defined_cells_need_no_values() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.h5");
    let file = File::create(&path).unwrap();
    let builder = file.new_dataset::<i32>().shape([100]).chunk([25]).sparse().no_filters();
    let dataset = builder.section_filter(Section::Values, FilterSpec::fletcher32());
    let dataset = dataset.create("d").unwrap();
    dataset.write(10..60, &[7; 50]).unwrap();
    let chunks = dataset.structured_chunks().unwrap().list().unwrap();
    drop(dataset);
    file.close().unwrap();
    // Damages the values of every chunk.
    let mut bytes = std::fs::read(&path).unwrap();
    for chunk in chunks {
        let values = (chunk.address + chunk.sections[0].size) as usize;
        bytes[values] ^= 0xFF;
    }
    std::fs::write(&path, bytes).unwrap();

    let file = File::open(&path).unwrap();
    let dataset = file.dataset("d").unwrap();
    assert_eq!(dataset.count_defined(..).unwrap(), 50);
    assert_eq!(dataset.count_defined(20..30).unwrap(), 10);
    assert!(dataset.is_defined(&[59]).unwrap() && !dataset.is_defined(&[60]).unwrap());
    assert_eq!(dataset.defined(..).unwrap().as_block(&[100]).unwrap().0.as_slice(), [10]);
    let error = dataset.read::<i32>(..).unwrap_err().to_string();
    assert!(error.contains("fletcher32"), "{error}");
    assert!(dataset.read_defined::<i32>(..).is_err());
}

#[test]
fn elements_in_other_files_or_datasets_have_no_structured_chunks() {
    let file = File::in_memory().unwrap();
    let part = || Selection::block(&[0], &[4]).unwrap();
    let (numbers, words) = (file.new_dataset::<i32>().shape([4]), file.new_strings().shape([4]));
    for structured in [numbers.sparse(), words.clone().sparse(), words.variable_length()] {
        let builders = [
            structured.clone().external("elsewhere.bin", 0, None),
            structured.virtual_part(part(), ".", "other", part()),
        ];
        for builder in builders {
            let error = builder.create("d").expect_err("refused").to_string();
            assert!(error.contains("another layout"), "{error}");
        }
    }
    assert!(file.members().unwrap().is_empty());
}
