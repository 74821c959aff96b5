//! Names, links and attributes: what happens to objects when names come, go and collide.

use pumice::{File, H5Type, LibraryVersion, RawAttribute};
use pumice_cache::{ChunkCache, Config};
use pumice_engine::file::File as Engine;
use pumice_format::messages::{Link, LinkTarget, Message};
use pumice_store::FileStore;
use std::sync::Arc;

#[test]
fn removing_a_name_makes_no_groups_on_the_way() {
    let file = File::in_memory().unwrap();
    assert!(file.unlink("a/b/c").is_err());
    assert!(!file.contains("a"));
}

#[test]
fn an_absolute_path_is_that_of_the_object_wherever_it_is_asked_for() {
    let file = File::in_memory().unwrap();
    file.new_dataset::<u8>().shape([1]).create("x").unwrap();
    let group = file.create_group("g").unwrap();
    assert_eq!(group.dataset("/x").unwrap().path(), "/x");
    assert_eq!(file.group("/").unwrap().path(), "/");
}

#[test]
fn a_name_that_is_taken_costs_no_space() {
    let file = File::in_memory().unwrap();
    file.create_group("g").unwrap();
    file.flush().unwrap();
    let before = file.create_group("h").unwrap().address();
    file.unlink("h").unwrap();
    for _ in 0..10 {
        assert!(file.create_group("g").is_err());
    }
    assert!(file.create_group("i").unwrap().address() < before + 1000);
}

#[test]
fn threads_that_make_the_same_groups_share_them() {
    for _ in 0..50 {
        let file = File::in_memory().unwrap();
        let barrier = std::sync::Barrier::new(4);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (file, barrier) = (&file, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    let builder = file.new_dataset::<u8>().shape([1]);
                    builder.create(&format!("run/part/{thread}")).unwrap();
                });
            }
        });
        assert_eq!(file.members().unwrap().len(), 1);
        assert_eq!(file.group("run/part").unwrap().members().unwrap().len(), 4);
    }
}

#[test]
fn of_threads_that_want_the_same_name_one_gets_it() {
    for _ in 0..50 {
        let file = File::in_memory().unwrap();
        let barrier = std::sync::Barrier::new(4);
        let made: usize = std::thread::scope(|scope| {
            let make = || {
                barrier.wait();
                usize::from(file.new_dataset::<u8>().shape([1]).create("d").is_ok())
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(make)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!((made, file.members().unwrap().len()), (1, 1));
    }
}

#[test]
fn threads_that_set_and_remove_attributes_leave_the_others_alone() {
    let file = File::in_memory().unwrap();
    let dataset = file.new_dataset::<u8>().shape([2]).create("d").unwrap();
    dataset.set_attribute("kept", 7i32).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let dataset = &dataset;
            scope.spawn(move || {
                let name = format!("a{thread}");
                for i in 0..300i32 {
                    dataset.set_attribute(&name, i).unwrap();
                    dataset.set_attribute(&name, i + 1).unwrap();
                    assert_eq!(dataset.attribute(&name).unwrap().read::<i32>().unwrap(), [i + 1]);
                    dataset.remove_attribute(&name).unwrap();
                }
            });
        }
    });
    assert_eq!(dataset.attributes().unwrap().len(), 1);
    assert_eq!(dataset.attribute("kept").unwrap().read::<i32>().unwrap(), [7]);
}

#[test]
fn what_is_too_large_for_a_header_goes_elsewhere_or_is_refused_and_harms_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let large = || RawAttribute::new(u8::datatype(), &[70_000], vec![1; 70_000]).unwrap();
    let long = "n".repeat(70_000);
    for (version, stored) in [(LibraryVersion::Earliest, 1), (LibraryVersion::V18, 2)] {
        let path = folder.path().join("large.h5");
        let file = File::options().library_version(version).create(&path).unwrap();
        assert_eq!(file.set_attribute("large", large()).is_ok(), stored == 2, "{version:?}");
        file.create_group(&long).unwrap();
        assert!(file.set_attribute(&long, 1u8).is_err());
        file.set_attribute("small", 1u8).unwrap();
        file.close().unwrap();
        let file = File::open(&path).unwrap();
        assert_eq!(file.attributes().unwrap().len(), stored);
        assert_eq!(file.attribute("small").unwrap().read::<u8>().unwrap(), [1]);
        if stored == 2 {
            assert_eq!(file.attribute("large").unwrap().bytes(), vec![1; 70_000]);
        }
        assert!(file.group(&long).is_ok());
    }
}

/// A file in which "a" and "b" are two names of one dataset.
fn two_names(path: &std::path::Path) {
    let file = File::create(path).unwrap();
    let dataset = file.new_dataset::<u64>().shape([1000]).create("a").unwrap();
    dataset.write(.., &[7u64; 1000]).unwrap();
    file.close().unwrap();
    let store = Arc::new(FileStore::open_writable(path).unwrap());
    let engine = Engine::open(store, ChunkCache::new(Config::default()), true).unwrap();
    let (root, address) = (engine.root().unwrap(), dataset.address());
    let count = Message::ReferenceCount(2).to_raw(engine.superblock().sizes, 0).unwrap();
    engine.object(address).unwrap().push(count).unwrap();
    let link = Link::new("b", LinkTarget::Hard { address });
    pumice_engine::group::insert(&engine, &root, link).unwrap();
    engine.commit().unwrap();
}

#[test]
fn a_dataset_lives_as_long_as_one_of_its_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("names.h5");
    two_names(&path);
    let length = || std::fs::metadata(&path).unwrap().len();
    let before = length();

    let file = File::edit(&path).unwrap();
    file.unlink("a").unwrap();
    file.flush().unwrap();
    assert!(!file.contains("a"));
    assert_eq!(file.dataset("b").unwrap().read::<u64>(..).unwrap(), [7; 1000]);
    file.new_dataset::<u64>().shape([1000]).create("c").unwrap().write(.., &[1u64; 1000]).unwrap();
    file.close().unwrap();
    let file = File::edit(&path).unwrap();
    assert_eq!(file.dataset("b").unwrap().read::<u64>(..).unwrap(), [7; 1000]);

    file.unlink("c").unwrap();
    file.unlink("b").unwrap();
    file.close().unwrap();
    assert!(length() < before / 4);
}

#[test]
fn nothing_gets_an_empty_name() {
    use pumice_types::{ByteOrder, Datatype, Enumeration, Integer};
    for era in [LibraryVersion::Earliest, LibraryVersion::V110] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.h5");
        let file = File::options().library_version(era).create(&path).unwrap();
        let group = file.create_group("g").unwrap();
        let data = group.new_dataset::<i32>().shape([3]).create("d").unwrap();
        let committed = file.commit_datatype("t", &i32::datatype()).unwrap();
        for attribute in 0..20 {
            // In messages at first, then in a heap where the format has one.
            let refused = [
                group.set_attribute("", attribute),
                group.set_attribute("", "text"),
                data.set_attribute("", attribute),
                committed.set_attribute("", attribute),
            ];
            for error in refused.map(Result::unwrap_err) {
                assert!(error.to_string().contains("an attribute without a name"), "{error}");
            }
            let name = attribute.to_string();
            group.set_attribute(&name, attribute).unwrap();
            data.set_attribute(&name, attribute).unwrap();
            committed.set_attribute(&name, attribute).unwrap();
            assert!(group.rename_attribute(&name, "").is_err());
            assert!(data.rename_attribute(&name, "").is_err());
            assert!(committed.rename_attribute(&name, "").is_err());
        }
        assert!(file.create_group("").is_err() && file.create_soft_link("", "g").is_err());
        assert!(file.rename("g", "").is_err() && file.create_hard_link("", "g").is_err());
        let unnamed = Datatype::compound([("", Datatype::i32_le())]);
        let base = Integer::new(4, ByteOrder::Little, true);
        let names = Enumeration { base, names: vec![String::new()], values: vec![0; 4] };
        for datatype in [unnamed.clone(), Datatype::Enum(names), Datatype::array(unnamed, [2])] {
            assert!(file.commit_datatype("bad", &datatype).is_err());
            assert!(file.new_dataset_of(datatype.clone()).create("bad").is_err());
            let value =
                RawAttribute::new(datatype.clone(), &[1], vec![0; datatype.size()]).unwrap();
            assert!(group.set_attribute("bad", value).is_err());
        }
        let renamed = committed.rename_attribute("7", "seven");
        assert!(renamed.is_ok() && committed.attribute("7").is_err());
        drop((group, data, committed));
        file.close().unwrap();
        let file = File::open(&path).unwrap();
        assert_eq!(file.group("g").unwrap().attributes().unwrap().len(), 20);
        assert_eq!(file.members().unwrap().len(), 2);
        let committed = file.committed_datatype("t").unwrap();
        assert_eq!(committed.attribute("seven").unwrap().read::<i32>().unwrap(), [7]);
    }
}
