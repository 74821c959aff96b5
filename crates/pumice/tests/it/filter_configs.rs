//! Text configurations of filters in HDF5 2.3's draft: version 3 of the filter pipeline message.

use pumice::{CopyOptions, File, FilterSpec, LibraryVersion, MemoryStore, Store};
use std::sync::Arc;

const WORDS: &str = "level = 6, strategy = \"none\"";

fn asked() -> FilterSpec {
    FilterSpec { config: Some(WORDS.to_owned()), ..FilterSpec::deflate(6) }
}

fn new_file(low: LibraryVersion, high: LibraryVersion) -> (Arc<MemoryStore>, File) {
    let store = Arc::new(MemoryStore::default());
    let options = File::options().library_version(low).newest_version(high);
    (store.clone(), options.create_in(store).unwrap())
}

fn add(file: &File, filter: FilterSpec) {
    let builder =
        file.new_dataset::<i32>().shape([1000]).chunk([100]).filter(FilterSpec::shuffle(4));
    let dataset = builder.filter(filter).create("numbers").unwrap();
    dataset.write(.., &(0..1000).collect::<Vec<i32>>()).unwrap();
}

/// The words of the second filter, after the values have been read.
fn words(file: &File) -> Option<String> {
    let dataset = file.dataset("numbers").unwrap();
    assert_eq!(dataset.read::<i32>(..).unwrap(), (0..1000).collect::<Vec<i32>>());
    dataset.filters()[1].config.clone()
}

fn bytes(store: &MemoryStore) -> Vec<u8> {
    let mut all = vec![0; store.len().unwrap() as usize];
    store.read_at(0, &mut all).unwrap();
    all
}

fn has_words(store: &MemoryStore) -> bool {
    bytes(store).windows(WORDS.len()).any(|window| window == WORDS.as_bytes())
}

#[test]
fn words_are_stored_where_the_newest_forms_are_allowed_and_only_there() {
    use LibraryVersion::{V110, V200, V300};
    for (low, high, kept) in [(V110, V300, true), (V300, V300, true), (V110, V200, false)] {
        let (store, file) = new_file(low, high);
        add(&file, asked());
        file.close().unwrap();
        assert_eq!(has_words(&store), kept, "{low:?} to {high:?}");
        let file = File::options().edit_in(store).unwrap();
        assert_eq!(words(&file).as_deref(), kept.then_some(WORDS), "{low:?} to {high:?}");
        // What is edited keeps them.
        file.dataset("numbers").unwrap().write(3..5, &[3, 4]).unwrap();
        file.dataset("numbers").unwrap().set_attribute("unit", "m").unwrap();
        file.flush().unwrap();
        assert_eq!(words(&file).as_deref(), kept.then_some(WORDS));
    }
}

#[test]
fn the_message_has_version_three_if_the_lower_bound_asks_for_it_or_there_are_words() {
    use LibraryVersion::{V110, V300};
    for (low, filter, version) in
        [(V110, FilterSpec::deflate(6), 2), (V110, asked(), 3), (V300, FilterSpec::deflate(6), 3)]
    {
        let (store, file) = new_file(low, V300);
        add(&file, filter);
        file.close().unwrap();
        // Two filters: shuffle of four bytes comes first.
        let message = [version, 2, 2, 0, 1, 0, 1, 0, 4, 0, 0, 0];
        assert!(bytes(&store).windows(12).any(|window| window == message), "{low:?}, {version}");
    }
}

#[test]
fn copies_keep_words_where_they_may() {
    use LibraryVersion::{V110, V200, V300};
    let (_, from) = new_file(V110, V300);
    add(&from, asked());
    for (high, kept) in [(V300, true), (V200, false)] {
        for whole in [true, false] {
            let (store, to) = new_file(V110, high);
            let options = CopyOptions::new();
            match whole {
                true => from.copy_whole(&to, &options, |_| Ok(None), |_, _| ()).map(drop).unwrap(),
                false => from.copy_object("numbers", &to, "numbers", &options).unwrap(),
            }
            to.close().unwrap();
            assert_eq!(has_words(&store), kept, "{high:?}");
            let to = File::options().edit_in(store).unwrap();
            assert_eq!(words(&to).as_deref(), kept.then_some(WORDS), "{high:?}");
        }
    }
}

#[test]
fn the_bound_above_the_newest_release_is_above_it_and_not_the_latest() {
    assert!(LibraryVersion::V300 > LibraryVersion::V200);
    assert_eq!(LibraryVersion::LATEST, LibraryVersion::V200);
    assert_eq!(LibraryVersion::DRAFT, LibraryVersion::V300);
}
