//! Files of a newer program: every version, class and type that a file names is raised, with checksums
//! that hold, and what is told of it.

use crate::support::Place;
use pumice::{File, GroupOptions, LibraryVersion};
use pumice_bytes::lookup3;

/// The offsets of blocks with a version behind their signature.
const SIGNATURES: [&[u8; 4]; 15] = [
    b"BTHD", b"BTLF", b"BTIN", b"FRHP", b"FHDB", b"FHIB", b"FAHD", b"FADB", b"EAHD", b"EAIB",
    b"EADB", b"EASB", b"GCOL", b"SNOD", b"HEAP",
];

/// A file with most structures of a version.
fn rich(place: &Place, name: &str, version: LibraryVersion) {
    let file = File::options().library_version(version).create(place.path(name)).unwrap();
    let options = GroupOptions::default();
    let group = file.create_group_with("links", &options).unwrap();
    for n in 0..12 {
        group.create_group(&format!("group{n}")).unwrap();
    }
    file.create_soft_link("soft", "/links").unwrap();
    let numbers: Vec<i32> = (0..100).collect();
    let tree = file.new_dataset::<i32>().shape([10, 10]).chunk([5, 5]).max_shape([None, None]);
    let grown = file.new_dataset::<i32>().shape([100]).chunk([10]).max_shape([None]);
    let fixed = file.new_dataset::<i32>().shape([100]).chunk([10]).deflate(1);
    for (name, builder) in [("tree", tree), ("grown", grown), ("fixed", fixed)] {
        builder.create(name).unwrap().write(.., &numbers).unwrap();
    }
    let flat = file.new_dataset::<i32>().shape([100]).fill_value(7).create("flat").unwrap();
    flat.write(.., &numbers).unwrap();
    for n in 0..12 {
        flat.set_attribute(&format!("attribute{n}"), n).unwrap();
    }
    let strings = file.new_strings().shape([2]).create("strings").unwrap();
    strings.write_strings(.., &["one", "two"]).unwrap();
    if version > LibraryVersion::V18 {
        let sparse = file.new_dataset::<f32>().shape([100, 100]).sparse().create("sparse").unwrap();
        sparse.write_points(&[[7, 9], [70, 8]], &[1.5, 2.5]).unwrap();
    }
    file.close().unwrap();
}

/// The offset of the checksum of the block at `start`, if it has one.
fn checksum(bytes: &[u8], start: usize) -> Option<usize> {
    let stored = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let last = bytes.len().saturating_sub(4).min(start + 4200);
    (start + 8..=last).find(|&end| lookup3(&bytes[start..end]) == stored(end))
}

/// A copy with another byte, and the checksum of its block in order.
fn changed(bytes: &[u8], start: usize, at: usize, byte: u8) -> Vec<u8> {
    let end = checksum(bytes, start);
    let mut bytes = bytes.to_vec();
    bytes[at] = byte;
    if let Some(end) = end {
        let sum = lookup3(&bytes[start..end]);
        bytes[end..end + 4].copy_from_slice(&sum.to_le_bytes());
    }
    bytes
}

fn places_of(bytes: &[u8], signature: &[u8; 4]) -> Vec<usize> {
    let found = bytes.windows(4).enumerate().filter(|(_, window)| window == signature);
    found.map(|(at, _)| at).collect()
}

/// The messages of a version 2 object header: kind, where its flags are, where its body is.
fn messages(bytes: &[u8], start: usize) -> Vec<(u8, usize, usize)> {
    let flags = bytes[start + 5];
    let width = 1usize << (flags & 3);
    let first =
        start + 6 + if flags & 0x20 != 0 { 16 } else { 0 } + if flags & 0x10 != 0 { 4 } else { 0 };
    let mut size = [0; 8];
    size[..width].copy_from_slice(&bytes[first..first + width]);
    let (mut at, end) = (first + width, first + width + u64::from_le_bytes(size) as usize);
    let envelope = if flags & 4 != 0 { 6 } else { 4 };
    let mut found = Vec::new();
    while at + envelope <= end {
        let length = usize::from(u16::from_le_bytes([bytes[at + 1], bytes[at + 2]]));
        found.push((bytes[at], at + 3, at + envelope));
        at += envelope + length;
    }
    found
}

/// Checks that `check` calls a file newer, not damaged.
fn assert_newer(place: &Place, what: &str, bytes: &[u8]) {
    place.write("newer.h5", bytes);
    let run = place.pumice("check newer.h5");
    let told = format!("{}{}", run.out, run.err);
    assert_eq!(run.code, Some(1), "{what}: {told}");
    assert!(told.contains("newer than this program"), "{what}: {told}");
    assert!(!told.contains("problem") && !told.contains("--repair"), "{what}: {told}");
    assert!(!told.contains(": sound"), "{what}: {told}");
}

#[test]
fn raised_versions_of_blocks_are_called_newer() {
    let place = Place::new();
    let mut seen = 0;
    for (name, version) in
        [("old.h5", LibraryVersion::Earliest), ("new.h5", LibraryVersion::LATEST)]
    {
        rich(&place, name, version);
        let bytes = std::fs::read(place.path(name)).unwrap();
        for signature in SIGNATURES {
            // One block of each kind; trees of free space that check alone reads are not among them.
            let Some(&at) = places_of(&bytes, signature).first() else { continue };
            seen += 1;
            let what = format!("{name}: {}", signature.escape_ascii());
            assert_newer(&place, &what, &changed(&bytes, at, at + 4, bytes[at + 4] + 2));
        }
    }
    assert!(seen >= 12, "{seen}");
}

#[test]
fn raised_versions_and_classes_of_messages_are_called_newer() {
    let place = Place::new();
    rich(&place, "new.h5", LibraryVersion::LATEST);
    let bytes = std::fs::read(place.path("new.h5")).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for start in places_of(&bytes, b"OHDR") {
        for (kind, _, body) in messages(&bytes, start) {
            // A filler, a link to the next block and a comment have no version. The version of a structured
            // pipeline tells it from another.
            if matches!(kind, 0 | 0x0D | 0x10 | 0x19) || !seen.insert(kind) {
                continue;
            }
            // The class of a datatype stands below its version.
            let step = if kind == 3 { 0x60 } else { 3 };
            let what = format!("version of message {kind:#04x}");
            assert_newer(&place, &what, &changed(&bytes, start, body, bytes[body] + step));
            match kind {
                3 => {
                    let class = bytes[body] & 0xF0 | 14;
                    assert_newer(&place, "datatype class", &changed(&bytes, start, body, class));
                }
                8 => assert_newer(&place, "layout class", &changed(&bytes, start, body + 1, 7)),
                _ => {}
            }
        }
    }
    assert!(seen.len() >= 8, "{seen:?}");
}

#[test]
fn messages_that_must_not_be_ignored_are_obeyed() {
    let place = Place::new();
    rich(&place, "new.h5", LibraryVersion::LATEST);
    let bytes = std::fs::read(place.path("new.h5")).unwrap();
    // A filler of some dataset becomes a message that nobody knows.
    let (start, message) = places_of(&bytes, b"OHDR")
        .into_iter()
        .filter(|&start| messages(&bytes, start).iter().any(|message| message.0 == 8))
        .find_map(|start| {
            let filler = messages(&bytes, start).into_iter().find(|message| message.0 == 0);
            filler.map(|message| (start, message))
        })
        .expect("a filler");
    let with_flags = |flags: u8| {
        let named = changed(&bytes, start, message.1 - 3, 0x1F);
        changed(&named, start, message.1, flags)
    };
    assert_newer(&place, "a message that must be known", &with_flags(0x80));
    // Passed over where nothing forbids it.
    place.write("passed.h5", with_flags(0x00));
    assert!(place.succeed("check passed.h5").contains("passed.h5: sound"));
    // Only readers may pass over it.
    place.write("read.h5", with_flags(0x08));
    assert!(place.succeed("check read.h5").contains("read.h5: sound"));
    let file = File::edit(place.path("read.h5")).unwrap();
    let names = ["tree", "grown", "fixed", "flat", "strings", "sparse"];
    let refused: Vec<_> = names.iter().filter_map(|name| file.dataset(name).err()).collect();
    assert_eq!(refused.len(), 1);
    assert!(
        refused[0].is_newer() && refused[0].to_string().contains("may be changed"),
        "{}",
        refused[0]
    );
}
