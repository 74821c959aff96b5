//! Chunks that a filter refuses: all else of the file is stored, the chunks stay as they were stored, in memory
//! they stay as they are, and the error tells which they are.

use pumice::{
    BitshuffleCodec, DatasetBuilder, Error, File, Filter, FilterError, FilterSpec, MemoryStore,
    Section,
};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A value that the filter below does not take.
const POISON: i32 = 0x7EF0_5ED1;

/// Refuses chunks with that value in them, and changes nothing in others.
struct Choosy;

impl Filter for Choosy {
    fn id(&self) -> u16 {
        281
    }

    fn name(&self) -> &'static str {
        "choosy"
    }

    fn encode(&self, _: &[u32], input: &[u8], out: &mut Vec<u8>) -> Result<(), FilterError> {
        if input.windows(4).any(|bytes| bytes == POISON.to_le_bytes()) {
            return Err(FilterError::Encode { filter: "choosy", reason: "poison".into() });
        }
        out.clear();
        out.extend_from_slice(input);
        Ok(())
    }

    fn decode(
        &self,
        _: &[u32],
        input: &[u8],
        _: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        out.clear();
        out.extend_from_slice(input);
        Ok(())
    }
}

/// Refuses everything while it is told to.
struct Switched;

static REFUSES: AtomicBool = AtomicBool::new(false);

impl Filter for Switched {
    fn id(&self) -> u16 {
        282
    }

    fn name(&self) -> &'static str {
        "switched"
    }

    fn encode(&self, _: &[u32], input: &[u8], out: &mut Vec<u8>) -> Result<(), FilterError> {
        assert!(!REFUSES.load(Ordering::Relaxed), "told to panic");
        out.clear();
        out.extend_from_slice(input);
        Ok(())
    }

    fn decode(
        &self,
        _: &[u32],
        input: &[u8],
        _: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        out.clear();
        out.extend_from_slice(input);
        Ok(())
    }
}

fn choosy() -> FilterSpec {
    // Each test may be the first.
    let _ = pumice::register_filter(Box::new(Choosy));
    FilterSpec { id: 281, optional: false, name: None, config: None, parameters: vec![] }
}

fn switched() -> FilterSpec {
    let _ = pumice::register_filter(Box::new(Switched));
    FilterSpec { id: 282, optional: false, name: None, config: None, parameters: vec![] }
}

fn numbers(file: &File) -> DatasetBuilder {
    file.new_dataset::<i32>().shape([20]).chunk([5])
}

/// A dataset of each layout, with all chunks written.
fn make_beside(file: &File, value: i32) {
    file.create_group("beside").unwrap();
    numbers(file).sparse().create("beside/sparse").unwrap().write(.., &[value; 20]).unwrap();
    numbers(file).deflate(1).create("beside/dense").unwrap().write(.., &[value; 20]).unwrap();
    let contiguous = file.new_dataset::<i32>().shape([20]).create("beside/contiguous").unwrap();
    contiguous.write(.., &[value; 20]).unwrap();
    let strings = file.new_strings().shape([2]).create("beside/strings").unwrap();
    strings.write_strings(.., &[value.to_string(), "text".into()]).unwrap();
    file.set_attribute("attribute", value).unwrap();
}

fn check_beside(file: &File, value: i32) {
    for name in ["beside/sparse", "beside/dense", "beside/contiguous"] {
        assert_eq!(file.dataset(name).unwrap().read::<i32>(..).unwrap(), [value; 20], "{name}");
    }
    let strings = file.dataset("beside/strings").unwrap().read_strings(..).unwrap();
    assert_eq!(strings, [value.to_string(), "text".into()]);
    assert_eq!(file.attribute("attribute").unwrap().read::<i32>().unwrap(), [value]);
}

fn check_words(error: &Error, words: &[&str]) {
    let text = error.to_string();
    assert!(words.iter().all(|word| text.contains(word)), "{text} lacks some of {words:?}");
}

#[test]
fn closing_stores_all_but_a_chunk_that_a_mandatory_filter_refuses() {
    let folder = tempfile::tempdir().unwrap();
    for dropped in [false, true] {
        let path = folder.path().join(format!("{dropped}.h5"));
        let file = File::create(&path).unwrap();
        make_beside(&file, 8);
        let mut bitshuffle = FilterSpec::bitshuffle(BitshuffleCodec::Lz4);
        bitshuffle.optional = false;
        let bad = file.new_dataset::<i32>().shape([20]).sparse().no_filters();
        let bad = bad.section_filter(Section::Values, FilterSpec::deflate(1));
        let bad = bad.section_filter(Section::Values, bitshuffle).create("bad").unwrap();
        bad.write(0..3, &[1, 2, 3]).unwrap();
        drop(bad);
        if dropped {
            drop(file);
        } else {
            let error = file.close().unwrap_err();
            assert!(error.is_not_stored());
            check_words(&error, &["/bad: ", "one chunk from cell [0]", "lost", "bitshuffle"]);
        }
        let file = File::open(&path).unwrap();
        check_beside(&file, 8);
        let bad = file.dataset("bad").unwrap();
        assert_eq!((bad.count_defined(..).unwrap(), bad.shape()), (0, vec![20]));
    }
}

/// A dataset whose second chunk cannot be stored, in a layout.
type Make = fn(&File) -> DatasetBuilder;

const LAYOUTS: [(&str, Make); 3] = [
    ("dense", |file| numbers(file).filter(choosy())),
    ("sparse", |file| numbers(file).sparse().section_filter(Section::Values, choosy())),
    ("extensible", |file| numbers(file).max_shape([None]).filter(choosy())),
];

#[test]
fn a_refused_chunk_keeps_what_is_stored_of_it_and_its_neighbours_do_not() {
    for (layout, make) in LAYOUTS {
        for committed in [false, true] {
            let store = Arc::new(MemoryStore::default());
            // A mark of a file that was left open would keep others from it.
            let file = File::options().mark_open(true).create_in(store.clone()).unwrap();
            let bad = make(&file).create("bad").unwrap();
            bad.write(.., &[1; 20]).unwrap();
            if committed {
                file.flush().unwrap();
            } else {
                bad.flush().unwrap();
            }
            make_beside(&file, 9);
            bad.write(.., &[2; 20]).unwrap();
            bad.write_point(&[7], POISON).unwrap();
            drop(bad);
            let error = file.close().unwrap_err();
            check_words(&error, &["/bad: ", "one chunk from cell [5]", "lost", "poison"]);
            let file = File::options().edit_in(store).unwrap();
            check_beside(&file, 9);
            let found = file.dataset("bad").unwrap().read::<i32>(..).unwrap();
            let expected: Vec<i32> =
                (0..20).map(|cell| if (5..10).contains(&cell) { 1 } else { 2 }).collect();
            assert_eq!(found, expected, "{layout}, {committed}");
            file.close().unwrap();
        }
    }
}

#[test]
fn what_is_refused_by_a_flush_stays_in_memory_and_can_be_mended() {
    for (layout, make) in LAYOUTS {
        let store = Arc::new(MemoryStore::default());
        let file = File::options().create_in(store.clone()).unwrap();
        file.create_group("a").unwrap();
        let bad = make(&file).create("a/bad").unwrap();
        bad.write(.., &[3; 20]).unwrap();
        make_beside(&file, 4);
        bad.write(5..10, &[POISON; 5]).unwrap();
        for _ in 0..2 {
            let error = file.flush().unwrap_err();
            check_words(&error, &["/a/bad: ", "one chunk from cell [5]", "stay in memory"]);
            let stored = File::options().open_bytes(store.to_vec()).unwrap();
            check_beside(&stored, 4);
            let found = stored.dataset("a/bad").unwrap().read::<i32>(..).unwrap();
            assert_eq!((&found[..6], &found[10..]), (&[3, 3, 3, 3, 3, 0][..], &[3; 10][..]));
            assert_eq!(bad.read::<i32>(4..6).unwrap(), [3, POISON], "{layout}");
        }
        bad.write(5..10, &[5; 5]).unwrap();
        file.flush().unwrap();
        drop(bad);
        file.close().unwrap();
        let stored = File::options().open_bytes(store.to_vec()).unwrap();
        assert_eq!(stored.dataset("a/bad").unwrap().read::<i32>(4..7).unwrap(), [3, 5, 5]);
    }
}

#[test]
fn all_datasets_with_refused_chunks_are_named() {
    let file = File::in_memory().unwrap();
    for name in ["one", "two"] {
        let bad = numbers(&file).filter(choosy()).create(name).unwrap();
        bad.write(.., &[POISON; 20]).unwrap();
    }
    let error = file.close().unwrap_err();
    check_words(&error, &["/one", "4 chunks from cell [0]", "4 chunks of /two"]);
}

#[test]
fn other_changes_go_on_beside_a_refused_chunk() {
    let file = File::options().metadata_limit(20_000);
    let file = file.create_in(Arc::new(MemoryStore::default())).unwrap();
    let bad = numbers(&file).filter(choosy()).create("bad").unwrap();
    bad.write(.., &[POISON; 20]).unwrap();
    drop(bad);
    // More than there is memory for, and more than are remembered when nobody holds them.
    for number in 0..5500 {
        file.new_dataset::<i32>().shape([1]).create(&format!("dataset {number}")).unwrap();
    }
    assert_eq!(file.dataset("bad").unwrap().read::<i32>(..).unwrap(), [POISON; 20]);
    check_words(&file.close().unwrap_err(), &["/bad: ", "4 chunks", "lost"]);
}

fn strings(path: &Path) -> Vec<String> {
    let found = File::open(path).unwrap().dataset("strings").unwrap().read_strings(..).unwrap();
    found.iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect()
}

/// One test for what the switch does, which is there once.
#[test]
fn strings_of_a_chunk_that_stays_as_it_is_stay_in_the_heap() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("strings.h5");
    let texts = |word: &str| -> Vec<String> { (0..40).map(|at| format!("{word} {at}")).collect() };
    let file = File::create(&path).unwrap();
    let builder = file.new_strings().shape([40]).chunk([10]).filter(switched());
    let dataset = builder.create("strings").unwrap();
    dataset.write_strings(0..20, &texts("old")[..20]).unwrap();
    file.flush().unwrap();

    // Chunks that are not stored refer to nothing yet: the rest is committed. A panic is an error like others.
    REFUSES.store(true, Ordering::Relaxed);
    dataset.write_strings(20..40, &texts("late")[20..]).unwrap();
    make_beside(&file, 6);
    let error = file.flush().unwrap_err();
    check_words(&error, &["/strings: ", "2 chunks from cell [20]", "told to panic"]);
    assert!(error.is_not_stored());
    let stored = File::options().open_bytes(std::fs::read(&path).unwrap()).unwrap();
    check_beside(&stored, 6);

    // A stored chunk must not lose what it refers to: nothing is committed.
    dataset.write_strings(0..40, &texts("new")).unwrap();
    file.new_dataset::<i32>().shape([1]).create("more").unwrap();
    let error = file.flush().unwrap_err();
    check_words(&error, &["/strings: ", "told to panic"]);
    assert!(!error.is_not_stored());
    let again = folder.path().join("again.h5");
    std::fs::copy(&path, &again).unwrap();
    assert_eq!(strings(&again)[..20], texts("old")[..20]);

    REFUSES.store(false, Ordering::Relaxed);
    file.flush().unwrap();
    REFUSES.store(true, Ordering::Relaxed);
    dataset.write_strings(0..40, &texts("newest")).unwrap();
    drop(dataset);
    check_words(&file.close().unwrap_err(), &["/strings: "]);
    REFUSES.store(false, Ordering::Relaxed);
    assert_eq!(strings(&path), texts("new"));
    check_beside(&File::open(&path).unwrap(), 6);
}
