//! Handles and what they lead to: what is unlinked lives as long as a handle to it, and so does a
//! file that is closed; what is deleted gives back all its space.

use pumice::{CopyOptions, File, MemoryStore, VariableLength};
use std::sync::Arc;

fn stored() -> (Arc<MemoryStore>, File) {
    let store = Arc::new(MemoryStore::default());
    (store.clone(), File::options().create_in(store).unwrap())
}

#[test]
fn an_unlinked_dataset_lives_until_its_last_handle_goes() {
    let (store, file) = stored();
    file.create_group("kept").unwrap();
    file.flush().unwrap();
    let empty = store.to_vec().len();
    let data = file.new_dataset::<u8>().shape([100_000]).create("g/data").unwrap();
    data.write(.., &[1u8; 100_000]).unwrap();
    let group = file.group("g").unwrap();
    file.unlink("g").unwrap();
    assert!(!file.contains("g"));
    // The group is open, so its member is there as well.
    assert_eq!(group.dataset("data").unwrap().read::<u8>(7..9).unwrap(), [1, 1]);
    drop(group);
    file.flush().unwrap();
    data.write(0..2, &[5u8, 6]).unwrap();
    data.set_attribute("still", 1i32).unwrap();
    file.flush().unwrap();
    assert_eq!(data.read::<u8>(..3).unwrap(), [5, 6, 1]);
    // What was freed meanwhile is no part of it.
    let other = file.new_dataset::<u8>().shape([50_000]).create("other").unwrap();
    other.write(.., &[9u8; 50_000]).unwrap();
    file.flush().unwrap();
    assert_eq!(data.read::<u8>(..3).unwrap(), [5, 6, 1]);
    drop((data, other));
    file.unlink("other").unwrap();
    file.flush().unwrap();
    file.flush().unwrap();
    file.create_group("last").unwrap();
    file.flush().unwrap();
    assert!(store.to_vec().len() < empty + 2000, "{} after {empty}", store.to_vec().len());
}

#[test]
fn the_last_handle_may_be_one_to_an_unlinked_object() {
    let (store, file) = stored();
    let data = file.new_dataset::<u8>().shape([100_000]).create("data").unwrap();
    data.write(.., &[1u8; 100_000]).unwrap();
    file.unlink("data").unwrap();
    file.close().unwrap();
    assert_eq!(data.read::<u8>(..2).unwrap(), [1, 1]);
    drop(data);
    let file = File::options().edit_in(store.clone()).unwrap();
    assert!(file.members().unwrap().is_empty());
    // Its space is at the end of the file and free.
    file.create_group("new").unwrap();
    file.close().unwrap();
    assert!(store.to_vec().len() < 3000, "{}", store.to_vec().len());
}

#[test]
fn handles_stay_usable_when_the_file_is_closed_and_keep_it_open() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    let file = File::create(&path).unwrap();
    let data = file.new_dataset::<i32>().shape([3]).create("data").unwrap();
    let group = file.create_group("group").unwrap();
    file.close().unwrap();
    data.write(.., &[1, 2, 3]).unwrap();
    group.set_attribute("late", 5i32).unwrap();
    // It is the same file, still open for changes by them; who opens it for reading sees these.
    let again = File::open(&path).unwrap();
    assert!(!again.is_writable() && again.create_group("other").is_err());
    assert!(File::edit(&path).unwrap().is_writable());
    assert_eq!(again.dataset("data").unwrap().read::<i32>(..).unwrap(), [1, 2, 3]);
    assert!(File::create(&path).is_err(), "it is open");
    drop((again, data, group));
    let file = File::open(&path).unwrap();
    assert!(!file.is_writable());
    assert_eq!(file.group("group").unwrap().attribute("late").unwrap().read::<i32>().unwrap(), [5]);
    assert_eq!(file.dataset("data").unwrap().read::<i32>(..).unwrap(), [1, 2, 3]);
}

/// Bytes of the file after each of several rounds.
fn lengths(store: &MemoryStore, file: &File, mut round: impl FnMut(&File, usize)) -> Vec<usize> {
    let mut lengths = Vec::new();
    for number in 0..12 {
        round(file, number);
        file.flush().unwrap();
        lengths.push(store.to_vec().len());
    }
    lengths
}

fn assert_steady(lengths: &[usize]) {
    let most = |rounds: &[usize]| rounds.iter().copied().max();
    assert!(most(&lengths[6..]) <= most(&lengths[..6]), "the file grows: {lengths:?}");
}

#[test]
fn overwritten_and_removed_strings_of_attributes_give_their_space_back() {
    let (store, file) = stored();
    let text = |number: usize| "x".repeat(5000 + number % 3);
    assert_steady(&lengths(&store, &file, |file, number| {
        file.set_attribute("text", VariableLength::text(&text(number)).unwrap()).unwrap();
    }));
    assert_steady(&lengths(&store, &file, |file, number| {
        file.set_attribute("gone", VariableLength::text(&text(number)).unwrap()).unwrap();
        file.remove_attribute("gone").unwrap();
    }));
    assert_steady(&lengths(&store, &file, |file, number| {
        let group = file.create_group("group").unwrap();
        for place in 0..20 {
            let value = VariableLength::text(&text(number)).unwrap();
            group.set_attribute(&format!("a{place}"), value).unwrap();
        }
        drop(group);
        file.unlink("group").unwrap();
    }));
    assert_eq!(file.attribute("text").unwrap().read_string().unwrap(), text(11));
}

#[test]
fn an_attribute_that_is_set_to_what_it_is_keeps_its_strings() {
    let (_, file) = stored();
    file.set_attribute("a", VariableLength::strings(["one", "two"]).unwrap()).unwrap();
    let found = file.attribute("a").unwrap();
    let same =
        pumice::RawAttribute::new(found.datatype().clone(), &[2], found.bytes().to_vec()).unwrap();
    file.set_attribute("a", same).unwrap();
    file.flush().unwrap();
    file.set_attribute("b", VariableLength::text("something else").unwrap()).unwrap();
    assert_eq!(file.attribute("a").unwrap().read_strings().unwrap(), ["one", "two"]);
}

#[test]
fn deleted_and_shrunk_datasets_give_their_strings_back() {
    let (store, file) = stored();
    let texts: Vec<String> = (0..200).map(|number| "y".repeat(number)).collect();
    let kept = file.new_strings().shape([200]).create("kept").unwrap();
    kept.write_strings(.., &texts).unwrap();
    for chunked in [false, true] {
        assert_steady(&lengths(&store, &file, |file, _| {
            let mut builder = file.new_strings().shape([200]);
            if chunked {
                builder = builder.chunk([30]).deflate(2);
            }
            builder.create("data").unwrap().write_strings(.., &texts).unwrap();
            file.unlink("data").unwrap();
        }));
    }
    let builder = file.new_strings().shape([200]).max_shape([None]).chunk([30]);
    let data = builder.create("data").unwrap();
    assert_steady(&lengths(&store, &file, |_, _| {
        data.resize([200]).unwrap();
        data.write_strings(.., &texts).unwrap();
        data.resize([17]).unwrap();
        assert_eq!(data.read_strings(..).unwrap(), texts[..17]);
    }));
    assert_steady(&lengths(&store, &file, |file, _| {
        file.copy_object("kept", file, "copy", &CopyOptions::new()).unwrap();
        file.unlink("copy").unwrap();
    }));
    assert_eq!(kept.read_strings(..).unwrap(), texts);
}

#[test]
fn strings_that_wait_for_a_commit_are_read_after_thousands_of_other_datasets() -> pumice::Result<()>
{
    let file = File::in_memory()?;
    file.new_strings().shape([2]).create("s")?.write_strings(.., &["old", "older"])?;
    for number in 0..5000 {
        file.new_dataset::<u8>().shape([1]).create(&format!("d{number}"))?;
    }
    file.flush()?;
    file.dataset("s")?.write_strings(0, &["new"])?;
    for number in 0..5000 {
        file.dataset(&format!("d{number}"))?;
    }
    assert_eq!(file.dataset("s")?.read_strings(..)?, ["new", "older"]);
    file.dataset("s")?.write_strings(1, &["newer"])?;
    file.flush()?;
    assert_eq!(file.dataset("s")?.read_strings(..)?, ["new", "newer"]);
    Ok(())
}

#[test]
fn strings_that_wait_for_a_commit_count_for_the_limit_of_what_waits() -> pumice::Result<()> {
    let store = Arc::new(MemoryStore::default());
    let file = File::options().metadata_limit(1 << 20).create_in(store.clone())?;
    for number in 0..4 {
        let dataset = file.new_strings().shape([40_000]).create(&format!("s{number}"))?;
        dataset.write_strings(0, &["old"])?;
    }
    file.flush()?;
    let waiting = || File::options().open_in(store.clone())?.dataset("s0")?.read_strings(0);
    for number in 0..4 {
        file.dataset(&format!("s{number}"))?.write_strings(0, &["new"])?;
    }
    // Two of them are more than may wait, so that the first ones were committed meanwhile.
    assert_eq!(waiting()?, ["new"]);
    Ok(())
}
