//! Space of objects deleted in one opening is used by the next ones.

use pumice::{File, LibraryVersion};

/// Deletes and makes in openings of their own, one of two datasets in turn, so that the hole is never at the end.
#[test]
fn a_file_that_remembers_free_space_does_not_grow_over_openings() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("turns.h5");
    let make = |file: &File, round: u8| {
        let data = file.new_dataset::<u8>().shape([50_000]);
        let data = data.create(&format!("d{}", round % 2)).unwrap();
        data.write(.., &vec![round; 50_000]).unwrap();
    };
    let file = File::options().persist_free_space(true).create(&path).unwrap();
    make(&file, 0);
    make(&file, 1);
    file.close().unwrap();
    let mut lengths = Vec::new();
    for round in 2..102 {
        let file = File::edit(&path).unwrap();
        file.unlink(&format!("d{}", round % 2)).unwrap();
        file.close().unwrap();
        let file = File::edit(&path).unwrap();
        make(&file, round);
        file.close().unwrap();
        lengths.push(path.metadata().unwrap().len());
    }
    // One more of them may be there than are in use, and lists of what is free.
    assert!(lengths.iter().all(|&length| length < 160_000), "{lengths:?}");
    assert_eq!(lengths[50], lengths[99]);
}

/// Everything that can refer to something else, so that a hole taken by mistake is seen.
fn furnish(file: &File) {
    let group = file.create_group("kept/deep").unwrap();
    for number in 0..20 {
        group.create_group(&format!("g{number}")).unwrap();
        let text = "text".repeat(number);
        file.group("kept").unwrap().set_attribute(&format!("a{number}"), text.as_str()).unwrap();
    }
    let strings = file.new_strings().shape([50]).chunk([7]).create("kept/strings").unwrap();
    let words: Vec<String> = (0..50).map(|n| "word".repeat(n)).collect();
    strings.write_strings(.., &words).unwrap();
    let packed = file.new_dataset::<i32>().shape([3000]).chunk([100]).deflate(4);
    packed.create("kept/packed").unwrap().write(.., &(0..3000).collect::<Vec<i32>>()).unwrap();
    let sparse = file.new_dataset::<f32>().shape([1000, 1000]).sparse().create("kept/sparse");
    sparse.unwrap().write_points(&[[1, 2], [900, 3]], &[1.5f32, 2.5]).unwrap();
}

fn check_furniture(file: &File) {
    let words = file.dataset("kept/strings").unwrap().read_strings(..).unwrap();
    assert!((0..50).all(|n| &words[n] == "word".repeat(n).as_bytes()));
    let packed = file.dataset("kept/packed").unwrap().read::<i32>(..).unwrap();
    assert!(packed.iter().zip(0..).all(|(&found, n)| found == n));
    let sparse = file.dataset("kept/sparse").unwrap().read_defined::<f32>(..).unwrap();
    assert_eq!((sparse.coordinates, sparse.values), (vec![1, 2, 900, 3], vec![1.5, 2.5]));
    assert_eq!(file.group("kept/deep").unwrap().members().unwrap().len(), 20);
}

/// Without any option: nothing in the file tells what is free.
#[test]
fn files_do_not_grow_over_openings_that_delete_and_make() {
    for version in [LibraryVersion::Earliest, LibraryVersion::V18, LibraryVersion::LATEST] {
        for user_block in [0, 512] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("turns.h5");
            let options = File::options().library_version(version).user_block(user_block);
            let file = options.create(&path).unwrap();
            furnish(&file);
            file.close().unwrap();
            let mut lengths = Vec::new();
            for round in 0..50u64 {
                // Nothing has the size of what it follows, and nothing the same form.
                let file = File::edit(&path).unwrap();
                if round > 0 {
                    file.unlink(&format!("d{}", round - 1)).unwrap();
                    file.close().unwrap();
                } else {
                    drop(file);
                }
                let file = File::edit(&path).unwrap();
                let length = 20_000 + round * 997 % 10_000;
                let builder = file.new_dataset::<u8>().shape([length]);
                let builder = match round % 3 {
                    0 => builder,
                    1 => builder.chunk([1000]),
                    _ => builder.chunk([1000]).deflate(1),
                };
                let data = builder.create(&format!("d{round}")).unwrap();
                let noise: Vec<u8> = (0..length).map(|n| (n * n * 31 + round) as u8).collect();
                data.write(.., &noise).unwrap();
                file.close().unwrap();
                let file = File::open(&path).unwrap();
                check_furniture(&file);
                let found = file.dataset(&format!("d{round}")).unwrap().read::<u8>(..).unwrap();
                assert!(found == noise, "{version:?}, round {round}");
                lengths.push(path.metadata().unwrap().len());
            }
            let most = lengths[10..].iter().max().unwrap();
            assert!(lengths[49] < lengths[0] + 60_000, "{version:?}: {lengths:?}");
            assert!(*most < lengths[0] + 60_000, "{version:?}: {lengths:?}");
        }
    }
}

#[test]
fn a_hole_of_an_earlier_opening_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hole.h5");
    let make = |file: &File, name: &str, value: u8| {
        let data = file.new_dataset::<u8>().shape([4 << 20]).create(name).unwrap();
        data.write(.., &vec![value; 4 << 20]).unwrap();
    };
    let file = File::create(&path).unwrap();
    make(&file, "first", 1);
    furnish(&file);
    file.close().unwrap();
    let length = path.metadata().unwrap().len();
    let file = File::edit(&path).unwrap();
    file.unlink("first").unwrap();
    file.close().unwrap();
    let file = File::edit(&path).unwrap();
    make(&file, "second", 2);
    file.close().unwrap();
    assert!(path.metadata().unwrap().len() < length + 1000);
    let file = File::open(&path).unwrap();
    check_furniture(&file);
    assert!(file.dataset("second").unwrap().read::<u8>(..).unwrap().iter().all(|&byte| byte == 2));
}
