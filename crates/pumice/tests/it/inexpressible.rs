//! Sizes that HDF5 cannot express are refused where they are asked for, with what to do.

use pumice::{AllocationTime, Dataset, Datatype, File, LibraryVersion, Result};

fn in_file(version: LibraryVersion, ask: impl FnOnce(&File) -> Result<()>) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = File::options().library_version(version).create(folder.path().join("x.h5")).unwrap();
    let error = ask(&file).expect_err("refused").to_string();
    // What was refused leaves nothing behind.
    file.create_group("after").unwrap();
    file.close().unwrap();
    assert!(File::open(folder.path().join("x.h5")).unwrap().group("after").is_ok());
    error
}

fn told(version: LibraryVersion, words: &[&str], ask: impl FnOnce(&File) -> Result<Dataset>) {
    let error = in_file(version, |file| ask(file).map(drop));
    assert!(words.iter().all(|word| error.contains(word)), "{error}");
    assert!(!error.contains("cannot encode a chunk") && !error.contains("integral"), "{error}");
}

#[test]
fn chunks_and_pieces_beyond_64_bits() {
    for version in [LibraryVersion::Earliest, LibraryVersion::LATEST] {
        told(version, &["2^64 bytes", "`chunk`", "`sparse`"], |file| {
            file.new_dataset::<f64>().shape([1 << 63, 2]).create("x")
        });
        told(version, &["chunks of", "2^64 bytes", "take smaller ones"], |file| {
            file.new_dataset::<f64>().shape([1 << 63]).chunk([1 << 62]).create("x")
        });
        told(version, &["exceed the shape", "`max_shape`"], |file| {
            file.new_dataset::<u8>().shape([10]).chunk([20]).create("x")
        });
        told(version, &["2^63", "in chunks or sparse"], |file| {
            let early = AllocationTime::Early;
            file.new_dataset::<f64>().shape([1 << 60]).allocation_time(early).create("x")
        });
        told(version, &["2^63 bytes", "in chunks or sparse"], |file| {
            let end = (1 << 61) - 1;
            let dataset = file.new_dataset::<f64>().shape([end]).create("x")?;
            dataset.write(end - 1..end, &[1.0])?;
            Ok(dataset)
        });
    }
}

#[test]
fn axes_that_no_size_can_say() {
    let words = ["18446744073709551615 cells", "18446744073709551614 at most"];
    told(LibraryVersion::LATEST, &words, |file| {
        file.new_dataset::<u8>().shape([u64::MAX, 3]).sparse().create("x")
    });
    told(LibraryVersion::LATEST, &words, |file| {
        let growing = file.new_dataset::<u8>().shape([3]).max_shape([None]).chunk([3]);
        let dataset = growing.create("x")?;
        dataset.write(.., &[1u8, 2, 3])?;
        let resized = dataset.resize([u64::MAX]);
        assert_eq!(dataset.read::<u8>(..)?, [1, 2, 3]);
        resized.map(|()| dataset)
    });
}

#[test]
fn messages_that_no_header_can_hold() {
    let old = LibraryVersion::Earliest;
    let attribute = in_file(old, |file| file.set_attribute("a", vec![1u8; 70_000]));
    assert!(attribute.contains("an attribute takes") && attribute.contains("V18"), "{attribute}");
    let comment = "x".repeat(70_000);
    let error = in_file(old, |file| file.create_group("g")?.set_comment(Some(&comment)));
    assert!(error.contains("a comment takes") && error.contains("shorter"), "{error}");
    for version in [old, LibraryVersion::LATEST] {
        told(version, &["a fill value takes", "smaller elements"], |file| {
            let opaque = file.new_dataset_of(Datatype::opaque(70_000, "t")).shape([2]);
            opaque.fill_bytes(vec![1; 70_000]).create("x")
        });
        told(version, &["a datatype takes", "shorter names"], |file| {
            let member = |n: u32| (format!("member{n}"), Datatype::opaque(1, "t"));
            let members = pumice::types::Compound::packed((0..5_000).map(member));
            file.new_dataset_of(Datatype::Compound(members)).shape([2]).create("x")
        });
    }
}

#[test]
fn external_files_that_are_too_small() {
    told(LibraryVersion::LATEST, &["8 bytes", "may have 800", "`None`"], |file| {
        file.new_dataset::<f64>().shape([100]).external("a.bin", 0, Some(8)).create("x")
    });
}
