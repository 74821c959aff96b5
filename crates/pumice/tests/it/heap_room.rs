//! Room in heaps is used after a file is opened again, and what nothing refers to gives its room back.

use pumice::{AllocationTime, Attribute, Context, File, MemoryStore, Selection, VariableLength};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    (folder, path)
}

fn length(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().len()
}

#[test]
fn strings_that_are_appended_one_opening_at_a_time_share_collections() {
    let (_folder, path) = folder();
    let file = File::create(&path).unwrap();
    let strings = file.new_strings().shape([0]).max_shape([None]).chunk([256]);
    strings.create("log").unwrap();
    file.close().unwrap();
    for number in 0..100u64 {
        let file = File::edit(&path).unwrap();
        let log = file.dataset("log").unwrap();
        log.resize([number + 1]).unwrap();
        log.write_strings(number..number + 1, &[format!("line {number}")]).unwrap();
        drop(log);
        file.close().unwrap();
    }
    let lines = File::open(&path).unwrap().dataset("log").unwrap().read_strings(..).unwrap();
    assert_eq!(lines.iter().nth(77).unwrap(), b"line 77");
    // A collection each would be 400 kB.
    assert!(length(&path) < 20_000, "{}", length(&path));
}

#[test]
fn dense_attributes_and_links_use_the_room_of_those_that_were_removed_before() {
    let (_folder, path) = folder();
    let value = |number: i64| [number; 20];
    let file = File::create(&path).unwrap();
    for number in 0..80 {
        file.set_attribute(&format!("attribute {number}"), value(number).as_slice()).unwrap();
        file.create_group(&format!("group of a long name, {number}")).unwrap();
    }
    file.close().unwrap();
    let full = length(&path);
    for _ in 0..4 {
        let file = File::edit(&path).unwrap();
        for number in (0..80).step_by(2) {
            file.remove_attribute(&format!("attribute {number}")).unwrap();
            file.unlink(&format!("group of a long name, {number}")).unwrap();
        }
        file.close().unwrap();
        let file = File::edit(&path).unwrap();
        for number in (0..80).step_by(2) {
            file.set_attribute(&format!("attribute {number}"), value(number).as_slice()).unwrap();
        }
        file.close().unwrap();
        let file = File::edit(&path).unwrap();
        for number in (0..80).step_by(2) {
            file.create_group(&format!("group of a long name, {number}")).unwrap();
        }
        file.close().unwrap();
    }
    // Headers of groups lie where there is room in the file, which is not remembered here.
    let headers = 4 * 40 * 200;
    assert!(length(&path) < full + headers, "{} instead of {full}", length(&path));
    let file = File::open(&path).unwrap();
    assert_eq!(file.attributes().unwrap().len(), 80);
    assert_eq!(file.member_count().unwrap(), 80);
    assert_eq!(file.attribute("attribute 34").unwrap().read::<i64>().unwrap(), value(34));
}

#[test]
fn deleted_virtual_datasets_give_their_mappings_back() {
    let (_folder, path) = folder();
    let file = File::create(&path).unwrap();
    file.new_dataset::<i32>().shape([10]).create("source").unwrap();
    let mut sizes = Vec::new();
    for round in 0..300 {
        let builder = file.new_dataset::<i32>().shape([10]);
        let whole = Selection::all();
        let name = "source with a name that takes some room in the heap, more than a few bytes";
        builder.virtual_part(whole.clone(), ".", name, whole).create("view").unwrap();
        file.flush().unwrap();
        file.unlink("view").unwrap();
        file.flush().unwrap();
        if round % 100 == 50 {
            sizes.push(length(&path));
        }
    }
    assert_eq!(sizes[0], sizes[2], "{sizes:?}");
}

/// Strings of one length, so that those of every round take the same room.
fn texts(round: usize) -> Vec<String> {
    (0..1000).map(|number| format!("string {number:6} of round {round:6}, no longer")).collect()
}

/// Makes a file of strings in this layout.
fn strings(path: &Path, chunked: bool) {
    let file = File::create(path).unwrap();
    let builder = file.new_strings().shape([1000]);
    let builder = if chunked { builder.chunk([300]) } else { builder };
    builder.create("strings").unwrap().write_strings(.., &texts(0)).unwrap();
    file.close().unwrap();
}

#[test]
fn strings_that_are_overwritten_again_and_again_take_the_room_of_those_before() {
    for chunked in [false, true] {
        let (_folder, path) = folder();
        let overwritten = |times: usize| {
            strings(&path, chunked);
            let file = File::edit(&path).unwrap();
            let dataset = file.dataset("strings").unwrap();
            for round in 1..=times {
                dataset.write_strings(.., &texts(round)).unwrap();
            }
            assert_eq!(dataset.read_strings(..).unwrap(), texts(times));
            drop(dataset);
            file.close().unwrap();
            let file = File::open(&path).unwrap();
            assert_eq!(file.dataset("strings").unwrap().read_strings(..).unwrap(), texts(times));
            length(&path)
        };
        let (once, often) = (overwritten(1), overwritten(20));
        assert!(often < once * 13 / 10, "chunked: {chunked}: {once} and {often} bytes");
    }
}

#[test]
fn strings_are_read_whole_while_others_are_written_in_their_place() {
    for name in ["in one piece", "in chunks", "in chunks that leave the cache"] {
        let room = if name.contains("leave") { 4000 } else { 64 << 20 };
        let context = Context::builder().cache_bytes(room).threads(1).build().unwrap();
        let file = File::options().context(&context).create_in(Arc::new(MemoryStore::default()));
        let file = file.unwrap();
        let builder = file.new_strings().shape([1000]);
        let builder = if name.contains("chunks") { builder.chunk([200]) } else { builder };
        let dataset = builder.create(name).unwrap();
        dataset.write_strings(.., &texts(0)).unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        let found = dataset.read_strings(..).unwrap();
                        let first = String::from_utf8(found.iter().next().unwrap().to_vec());
                        let round = first.unwrap()[23..29].trim().parse().unwrap();
                        assert_eq!(found, texts(round), "{name}");
                    }
                });
            }
            for round in 1..200 {
                dataset.write_strings(.., &texts(round)).unwrap();
                if round % 50 == 0 {
                    file.flush().unwrap();
                }
            }
            done.store(true, Ordering::Relaxed);
        });
    }
}

#[test]
fn two_writers_of_the_same_strings_give_nothing_back_that_is_needed() {
    let file = File::in_memory().unwrap();
    let dataset = file.new_strings().shape([1000]).chunk([300]).create("strings").unwrap();
    let beside = file.new_strings().shape([1000]).create("beside").unwrap();
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let (file, dataset) = (&file, &dataset);
            scope.spawn(move || {
                for round in (0..100).map(|round| 2 * round + writer) {
                    dataset.write_strings(.., &texts(round)).unwrap();
                    if round % 40 == 0 {
                        file.flush().unwrap();
                    }
                }
            });
        }
        for round in 0..200 {
            beside.write_strings(.., &texts(round)).unwrap();
            assert_eq!(beside.read_strings(..).unwrap(), texts(round));
        }
    });
    let found = dataset.read_strings(..).unwrap();
    assert!(found == texts(198) || found == texts(199));
}

/// A file with an attribute that was opened and then replaced, so that the collection with its text is free.
/// The next to need that space is a string, or the second chunk of `chunks`.
struct Replaced {
    store: Arc<MemoryStore>,
    file: File,
    old: Attribute,
}

impl Replaced {
    fn new() -> Self {
        let store = Arc::new(MemoryStore::new(Vec::new()));
        let file = File::options().create_in(store.clone()).unwrap();
        file.set_attribute("text", VariableLength::text("the old text").unwrap()).unwrap();
        let strings = file.new_strings().shape([1]).allocation_time(AllocationTime::Early);
        strings.create("strings").unwrap();
        let chunks = file.new_dataset::<u8>().shape([8192]).chunk([4096]);
        chunks.create("chunks").unwrap().write(..4096, &[1; 4096]).unwrap();
        file.flush().unwrap();
        let old = file.attribute("text").unwrap();
        file.set_attribute("text", 1i32).unwrap();
        file.flush().unwrap();
        Self { store, file, old }
    }

    fn write_chunk(&self, values: &[u8]) {
        self.file.dataset("chunks").unwrap().write(4096.., values).unwrap();
    }

    fn write_string(&self, string: &str) {
        self.file.dataset("strings").unwrap().write_strings(.., &[string]).unwrap();
    }

    /// Commits, and checks what the file has then.
    fn check(&self, values: &[u8], string: &str) {
        self.file.flush().unwrap();
        let file = File::options().open_bytes(self.store.to_vec()).unwrap();
        assert_eq!(file.dataset("strings").unwrap().read_strings(..).unwrap(), [string]);
        let chunks = file.dataset("chunks").unwrap().read::<u8>(..).unwrap();
        assert!(chunks[..4096] == [1; 4096] && chunks[4096..] == *values);
    }
}

#[test]
fn reading_an_attribute_that_was_replaced_does_not_make_room_of_its_old_place() {
    let replaced = Replaced::new();
    // Whatever it finds.
    let _ = replaced.old.read_string();
    replaced.write_string("a string");
    replaced.write_chunk(&[2; 4096]);
    replaced.check(&[2; 4096], "a string");
}

#[test]
fn a_chunk_in_the_place_of_a_collection_stays_a_chunk_though_it_looks_like_one() {
    let replaced = Replaced::new();
    let mut collection = [0; 4096];
    collection[..5].copy_from_slice(b"GCOL\x01");
    collection[8..16].copy_from_slice(&4096u64.to_le_bytes());
    collection[24..32].copy_from_slice(&4080u64.to_le_bytes());
    replaced.write_chunk(&collection);
    replaced.file.flush().unwrap();
    let place = u64::from_le_bytes(replaced.old.bytes()[4..12].try_into().unwrap());
    let chunks = replaced.file.dataset("chunks").unwrap().chunks().unwrap().list().unwrap();
    assert_eq!(chunks[1].address, place);
    assert!(replaced.old.read_string().is_err(), "nothing is in it");
    replaced.write_string("a string");
    replaced.check(&collection, "a string");
}
