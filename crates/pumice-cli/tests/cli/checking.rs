//! `pumice check`, `recover`, `bench`, `completions` and `man`.

use crate::support::{Place, small};
use pumice::{File, PlaceKind};
use pumice_store::MemoryStore;
use pumice_testkit::recording::RecordingStore;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A file with a chunk whose checksum will be wrong.
fn damaged(place: &Place) {
    let file = File::create(place.path("d.h5")).unwrap();
    let builder = file.new_dataset::<u32>().shape([64]).chunk([16]).fletcher32();
    let bad = builder.create("runs/bad").unwrap();
    bad.write(.., &[7u32; 64]).unwrap();
    let good = file.new_dataset::<u32>().shape([4]).create("runs/good").unwrap();
    good.write(.., &[1u32, 2, 3, 4]).unwrap();
    let address = bad.chunks().unwrap().list().unwrap()[2].address as usize;
    drop((bad, good));
    file.close().unwrap();
    let mut bytes = std::fs::read(place.path("d.h5")).unwrap();
    bytes[address + 5] ^= 1;
    place.write("d.h5", bytes);
}

#[test]
fn sound_files_are_told_to_be_sound() {
    let place = small();
    let told = place.succeed("check small.h5");
    assert!(told.starts_with("small.h5: sound; 1 group, 1 dataset, "), "{told}");
    assert!(place.succeed("recover small.h5").contains("no journal is left"));
}

#[test]
fn a_hole_is_told_with_what_to_do_about_it() {
    let place = Place::new();
    let file = File::create(place.path("h.h5")).unwrap();
    for name in ["a", "b"] {
        let data = file.new_dataset::<u8>().shape([100_000]).create(name).unwrap();
        data.write(.., &vec![1; 100_000]).unwrap();
    }
    file.close().unwrap();
    assert!(!place.succeed("check h.h5").contains("repack"));
    let file = File::edit(place.path("h.h5")).unwrap();
    file.unlink("a").unwrap();
    file.close().unwrap();
    assert!(place.succeed("check h.h5").contains("`pumice repack` leaves these bytes out"));
    place.succeed("repack -P 1 h.h5 n.h5");
    assert!(!place.succeed("check n.h5").contains("repack"));
    assert!(File::open(place.path("n.h5")).unwrap().info().unwrap().file_space.persist);
}

#[test]
fn damage_is_found_and_the_rest_is_copied() {
    let place = Place::new();
    damaged(&place);
    let run = place.pumice("check d.h5 --repair new.h5");
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(
        run.out.contains("problem: /runs/bad: the chunk at [32] (68 bytes at 0x"),
        "{}",
        run.out
    );
    assert!(run.out.contains("left behind: /runs/bad"), "{}", run.out);
    let file = File::open(place.path("new.h5")).unwrap();
    assert_eq!(file.dataset("runs/good").unwrap().read::<u32>(..).unwrap(), [1, 2, 3, 4]);
    assert!(!file.contains("runs/bad"));
    place.write("text.h5", "this is no HDF5 file\n");
    assert_eq!(place.pumice("check text.h5").code, Some(2));
}

#[test]
fn wrong_sizes_of_selections_are_told_though_they_can_be_read() {
    let place = Place::new();
    let path = place.path("s.h5");
    let file = File::create(&path).unwrap();
    let new = file.new_dataset::<u16>().shape([4000]).chunk([4000]).sparse();
    let dataset = new.create("d").unwrap();
    let points: Vec<[u64; 1]> = (0..100).map(|number| [number * number % 3989]).collect();
    dataset.write_points(&points, &[7u16; 100]).unwrap();
    let size = dataset.read_structured_chunk([0]).unwrap().unwrap()[0].unfiltered_size;
    let header = dataset.places().unwrap()[0];
    drop(dataset);
    file.close().unwrap();
    assert_eq!(place.pumice("check s.h5").code, Some(0));
    // There is one chunk, and the object header describes it.
    let mut bytes = std::fs::read(&path).unwrap();
    let block = &mut bytes[header.address as usize..(header.address + header.length) as usize];
    let sought = (size as u16).to_le_bytes();
    let found: Vec<usize> =
        (0..block.len() - 1).filter(|&at| block[at..at + 2] == sought).collect();
    assert_eq!(found.len(), 1, "the size stands in the header once");
    block[found[0]] ^= 1;
    let end = block.len() - 4;
    let checksum = pumice_bytes::lookup3(&block[..end]).to_le_bytes();
    block[end..].copy_from_slice(&checksum);
    place.write("s.h5", bytes);
    let run = place.pumice("check s.h5");
    assert_eq!(run.code, Some(1), "{}{}", run.out, run.err);
    let told = format!("section 0 has {size} byte(s) before filters, but {} were", size ^ 1);
    assert!(run.out.contains(&told), "{}", run.out);
    let file = File::open(&path).unwrap();
    assert_eq!(file.dataset("d").unwrap().count_defined(..).unwrap(), 100);
}

#[test]
fn names_that_are_empty_are_told() {
    use pumice::{Datatype, LibraryVersion};
    let place = Place::new();
    let path = place.path("names.h5");
    // The oldest format has no checksums of metadata.
    let file = File::options().library_version(LibraryVersion::Earliest).create(&path).unwrap();
    let group = file.create_group("group").unwrap();
    group.set_attribute("Xattr", 1).unwrap();
    group.create_group("Xlink").unwrap();
    let pair = Datatype::compound([("Xpart", Datatype::i32_le()), ("y", Datatype::i32_le())]);
    file.commit_datatype("type", &pair).unwrap();
    drop(group);
    file.close().unwrap();
    assert_eq!(place.pumice("check names.h5").code, Some(0));
    let mut bytes = std::fs::read(&path).unwrap();
    for name in ["Xattr\0", "Xlink\0", "Xpart\0"] {
        let at = bytes.windows(6).position(|found| found == name.as_bytes()).unwrap();
        bytes[at] = 0;
    }
    place.write("names.h5", bytes);
    let run = place.pumice("check names.h5");
    assert_eq!(run.code, Some(1), "{}", run.err);
    for told in [
        "/group: an attribute without a name",
        "/group: a link without a name",
        "/type: elements: a member without a name in its datatype",
    ] {
        assert!(run.out.contains(told), "{}", run.out);
    }
}

/// A file that has every kind of structure that the newest format has, with checksums everywhere.
fn everything(place: &Place) -> Vec<pumice::Place> {
    let path = place.path("all.h5");
    let file = File::options().persist_free_space(true).create(&path).unwrap();
    for number in 0..30 {
        file.create_group(&format!("many/g{number}")).unwrap();
        file.group("many").unwrap().set_attribute(&format!("a{number}"), number).unwrap();
    }
    let values: Vec<i32> = (0..400).collect();
    for (name, limits) in [
        ("fixed", vec![Some(20), Some(20)]),
        ("extensible", vec![None, Some(20)]),
        ("tree", vec![None, None]),
    ] {
        let builder = file.new_dataset::<i32>().shape([20, 20]).max_shape(limits);
        builder.chunk([4, 4]).fletcher32().create(name).unwrap().write(.., &values).unwrap();
    }
    let sparse = file.new_dataset::<i32>().shape([1000, 1000]).chunk([10, 10]).sparse();
    let sparse = sparse.create("sparse").unwrap();
    sparse.write_points(&[[1, 1], [500, 2], [999, 999]], &[1, 2, 3]).unwrap();
    drop(sparse);
    file.new_dataset::<i32>().shape([300]).create("gone").unwrap().write(.., &[7; 300]).unwrap();
    file.flush().unwrap();
    file.unlink("gone").unwrap();
    file.close().unwrap();
    let file = File::open(path).unwrap();
    let mut places = file.places().unwrap();
    places.extend(file.group("/").unwrap().places().unwrap());
    places.extend(file.group("many").unwrap().places().unwrap());
    for name in ["fixed", "extensible", "tree", "sparse"] {
        places.extend(file.dataset(name).unwrap().places().unwrap());
    }
    places
}

#[test]
fn a_wrong_byte_is_told_or_harms_nothing() {
    let place = Place::new();
    let places = everything(&place);
    let told = place.succeed("check -v all.h5");
    assert!(told.contains("all.h5: sound;") && told.contains("free space:"), "{told}");
    let bytes = std::fs::read(place.path("all.h5")).unwrap();
    let wanted = place.succeed("dump all.h5").replace("all.h5", "");
    let mut seen: BTreeMap<PlaceKind, u32> = BTreeMap::new();
    let mut found: BTreeMap<PlaceKind, u32> = BTreeMap::new();
    for (number, piece) in places.iter().enumerate() {
        let count = seen.entry(piece.kind).or_default();
        *count += 1;
        if *count > 12 || piece.kind == PlaceKind::FreeSpace {
            continue;
        }
        let at = (piece.address + [0, piece.length / 2, piece.length - 1][number % 3]) as usize;
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x41;
        place.write("hurt.h5", damaged);
        let run = place.pumice("check hurt.h5");
        if run.code != Some(0) {
            *found.entry(piece.kind).or_default() += 1;
            continue;
        }
        let dumped = place.pumice("dump hurt.h5");
        assert_eq!(dumped.out.replace("hurt.h5", ""), wanted, "{piece:?}, byte {at:#x}");
    }
    for kind in [
        PlaceKind::Superblock,
        PlaceKind::ObjectHeader,
        PlaceKind::Links,
        PlaceKind::Attributes,
        PlaceKind::ChunkIndex,
        PlaceKind::Chunk,
        PlaceKind::FreeSpaceManager,
    ] {
        assert!(found.contains_key(&kind), "no damage of {kind} was seen: {found:?} of {seen:?}");
    }
}

#[test]
fn structures_that_overlap_are_told_with_their_places() {
    let place = Place::new();
    let file = File::create(place.path("o.h5")).unwrap();
    for name in ["a", "b"] {
        let dataset = file.new_dataset::<u8>().shape([1000]).create(name).unwrap();
        dataset.write(.., &[1; 1000]).unwrap();
    }
    file.close().unwrap();
    let file = File::open(place.path("o.h5")).unwrap();
    let elements = |name: &str| {
        let places = file.dataset(name).unwrap().places().unwrap();
        places.into_iter().find(|place| place.kind == PlaceKind::Elements).unwrap().address
    };
    let header = file.dataset("b").unwrap().places().unwrap()[0];
    let (first, second) = (elements("a"), elements("b"));
    // The layout message of b names a place inside of a; the header gets a new checksum.
    let mut bytes = std::fs::read(place.path("o.h5")).unwrap();
    let block = header.address as usize..(header.address + header.length) as usize;
    let block = &mut bytes[block];
    let at = block.windows(8).position(|window| window == second.to_le_bytes()).unwrap();
    block[at..at + 8].copy_from_slice(&(first + 600).to_le_bytes());
    let end = block.len() - 4;
    let sum = pumice_bytes::lookup3(&block[..end]);
    block[end..].copy_from_slice(&sum.to_le_bytes());
    place.write("o.h5", bytes);
    let run = place.pumice("check o.h5");
    assert_eq!(run.code, Some(1), "{}", run.out);
    let (begin, end) = (first + 600, first + 1600);
    let overlap = format!("/b: elements from {begin:#x} to {end:#x} overlaps elements of /a");
    assert!(run.out.contains(&overlap), "{}", run.out);
    assert!(run.out.contains("nothing refers to "), "{}", run.out);
}

/// Writes two commits into a store that remembers every change; what there was before the second.
fn two_commits(store: &Arc<RecordingStore>) -> usize {
    let file = File::options().create_in(store.clone()).unwrap();
    for number in 0..20 {
        let dataset =
            file.new_dataset::<u32>().shape([50]).create(&format!("old{number}")).unwrap();
        dataset.write(.., &[number; 50]).unwrap();
    }
    file.flush().unwrap();
    let before = store.count();
    for number in 0..20 {
        file.unlink(&format!("old{number}")).unwrap();
        file.create_group(&format!("new{number}")).unwrap();
    }
    file.close().unwrap();
    before
}

#[test]
fn what_a_killed_writer_left_is_recovered() {
    let place = Place::new();
    let store = Arc::new(RecordingStore::default());
    let before = two_commits(&store);
    let mut applied = 0;
    for count in before..=store.count() {
        let copy = MemoryStore::default();
        store.play(count, true, &copy).unwrap();
        place.write("killed.h5", copy.to_vec());
        let run = place.pumice("recover killed.h5");
        assert_eq!(run.code, Some(0), "after {count} changes: {}{}", run.out, run.err);
        if run.out.contains("was applied") {
            applied += 1;
            assert!(place.succeed("recover killed.h5").contains("no journal is left"));
        }
        let told = place.succeed("check killed.h5");
        assert!(told.contains("sound; "), "after {count} changes: {told}");
        let names = place.succeed("ls killed.h5");
        let (old, new) = (names.matches("old").count(), names.matches("new").count());
        assert!(matches!((old, new), (20, 0) | (0, 20)), "after {count} changes: {names}");
    }
    assert!(applied > 0, "no journal was left over");
}

#[test]
fn files_are_measured() {
    let place = small();
    let told = place.succeed("bench small.h5 --seconds 0.01 --threads 2");
    for kind in ["row", "column", "window", "whole"] {
        assert_eq!(told.lines().filter(|line| line.starts_with(kind)).count(), 2, "{told}");
    }
}

#[test]
fn scripts_and_manual_pages_are_made() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        assert!(place.succeed(&format!("completions {shell}")).contains("pumice __complete"));
    }
    let made = place.succeed("man pages");
    assert!(made.lines().count() > 15, "{made}");
    let page = std::fs::read_to_string(place.path("pages/pumice-import.1")).unwrap();
    for part in [".TH \"PUMICE-IMPORT\" 1", ".SH SYNOPSIS", ".B \\-\\-duplicates", ".SH EXAMPLES"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let page = std::fs::read_to_string(place.path("pages/pumice-ls.1")).unwrap();
    assert!(page.contains(".B \\-\\-json"), "{page}");
}

#[test]
fn trees_and_json_list_everything() {
    let place = small();
    let tree = place.succeed("ls --tree small.h5");
    assert!(tree.starts_with("small.h5\n└── matrix  f64  5 x 6 sparse  chunk 5 x 6  "), "{tree}");
    let json = place.succeed("ls --json small.h5");
    for part in ["\"path\": \"/matrix\"", "\"defined_cells\": 6", "\"layout\": \"sparse\""] {
        assert!(json.contains(part), "{json}");
    }
}

#[test]
fn any_two_axes_are_drawn() {
    let place = Place::new();
    let file = File::create(place.path("c.h5")).unwrap();
    let cube = file.new_dataset::<u8>().shape([2, 3, 4]).chunk([2, 3, 4]).sparse();
    let cube = cube.create("cube").unwrap();
    cube.write_points(&[[0, 0, 0], [1, 0, 0], [1, 2, 3]], &[1u8, 0, 1]).unwrap();
    drop(cube);
    file.close().unwrap();
    let caption = |line: &str| place.succeed(line).lines().last().map(String::from).unwrap();
    let all = "/cube: 2 x 3 x 4, 3 defined, density 12.5 % (axis 1 down, axis 2 across, cells counted along axis 0; --axes and --slice choose others)";
    assert_eq!(caption("spy c.h5 cube"), all);
    let turned = place.succeed("spy c.h5 cube --axes 2,0 --ascii");
    assert!(turned.starts_with("+--+\n|@@|\n| @|\n+--+\n"), "{turned}");
    let part = "/cube: 2 x 3 x 4, 2 defined, density 16.7 % (axis 1 down, axis 2 across, axis 0 at 1; --axes and --slice choose others)";
    assert_eq!(caption("spy c.h5 cube --slice 0=1"), part);
    assert!(place.fail("spy c.h5 cube --axes 0,3").contains("two different numbers below 3"));
    let chunks = place.succeed("spy c.h5 cube --chunks");
    assert!(chunks.contains("chunks of 2 x 3 x 4: 1 stored of 1\n"), "{chunks}");
    assert!(chunks.contains("least 3, median 3, most 3"), "{chunks}");
}
