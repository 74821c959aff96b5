//! Groups that are nested deep, and groups that lead to themselves.

use crate::thorough::amount;
use pumice::{File, Group, LibraryVersion, Node, WalkOrder};
use std::ops::ControlFlow;
use std::path::Path;

/// A file of so many groups, each in the one before, and a dataset in the last one.
fn deep(folder: &Path, era: LibraryVersion, levels: usize) -> File {
    let path = folder.join("deep.h5");
    let file = File::options().library_version(era).create(&path).unwrap();
    let mut group = file.group("/").unwrap();
    for _ in 0..levels {
        group = group.create_group("g").unwrap();
    }
    group.new_dataset::<i32>().shape([3]).create("x").unwrap();
    drop(group);
    file.close().unwrap();
    File::edit(path).unwrap()
}

fn count(group: &Group) -> (usize, usize) {
    let (mut objects, mut longest) = (0, 0);
    let walked = group.walk(WalkOrder::Name, |path, node| {
        assert!(node.is_ok());
        objects += 1;
        longest = longest.max(path.len());
        ControlFlow::<()>::Continue(())
    });
    assert!(walked.is_continue());
    (objects, longest)
}

/// All paths together would take 1 GB, or 10 GB in a thorough run: none can be kept for every group.
#[test]
fn many_levels_are_made_walked_copied_and_deleted() {
    let levels = [amount(6_000, 20_000), amount(30_000, 100_000)];
    for (era, levels) in [LibraryVersion::Earliest, LibraryVersion::V110].into_iter().zip(levels) {
        let folder = tempfile::tempdir().unwrap();
        let file = deep(folder.path(), era, levels);
        assert_eq!(count(&file), (levels + 2, 2 * levels + 2));
        let path = "g/".repeat(levels) + "x";
        let Node::Dataset(data) = file.node(&path).unwrap() else { panic!() };
        assert_eq!(data.path(), format!("/{path}"));
        drop(data);
        file.copy_object("g", &file, "copy", &pumice::CopyOptions::new()).unwrap();
        assert_eq!(count(&file).0, 2 * levels + 3);
        let other = File::in_memory().unwrap();
        file.copy_whole(&other, &pumice::CopyOptions::new(), |_| Ok(None), |_, _| {}).unwrap();
        assert_eq!(count(&other).0, 2 * levels + 3);
        file.unlink("copy").unwrap();
        file.unlink("g").unwrap();
        file.flush().unwrap();
        assert_eq!(count(&file), (1, 1));
    }
}

/// Bytes of a file in which `/a` has a link to itself, and which says that it has `links` links.
fn with_circle(era: LibraryVersion, links: u32) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("circle.h5");
    let file = File::options().library_version(era).create(&path).unwrap();
    let group = file.create_group("a").unwrap();
    group.create_group("b").unwrap();
    group.create_hard_link("self", "/a").unwrap();
    file.create_hard_link("a/b/up", "a").unwrap();
    let address = group.address() as usize;
    assert_eq!(group.link_count(), 3);
    drop(group);
    file.close().unwrap();
    let mut bytes = std::fs::read(path).unwrap();
    if bytes[address] == 1 {
        // Version 1: the count is behind version and number of messages.
        bytes[address + 4..address + 8].copy_from_slice(&links.to_le_bytes());
        return bytes;
    }
    // Version 2: the count is a message, of which none is there for one link.
    let end = address + 4096.min(bytes.len() - address);
    let header = &mut bytes[address..end];
    assert_eq!(&header[..4], b"OHDR");
    let flags = header[5];
    let width = 1usize << (flags & 3);
    let mut start = 6;
    start += if flags & 0x20 != 0 { 16 } else { 0 } + if flags & 0x10 != 0 { 4 } else { 0 };
    let mut size = [0; 8];
    size[..width].copy_from_slice(&header[start..start + width]);
    start += width;
    let stop = start + u64::from_le_bytes(size) as usize;
    let mut at = start;
    while header[at] != 0x16 {
        at += 4 + usize::from(u16::from_le_bytes([header[at + 1], header[at + 2]]));
        assert!(at < stop, "no message with the count of links");
    }
    header[at + 5..at + 9].copy_from_slice(&links.to_le_bytes());
    let sum = pumice_bytes::lookup3(&header[..stop]);
    header[stop..stop + 4].copy_from_slice(&sum.to_le_bytes());
    bytes
}

#[test]
fn a_group_in_itself_can_be_unlinked_whatever_its_count_of_links_says() {
    for era in [LibraryVersion::Earliest, LibraryVersion::V110] {
        for links in [0, 1, 2, 3, 4, u32::MAX] {
            for held in [false, true] {
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join("circle.h5");
                std::fs::write(&path, with_circle(era, links)).unwrap();
                let file = File::edit(&path).unwrap();
                let group = file.group("a").unwrap();
                assert_eq!(group.link_count(), links);
                let held = held.then_some(group);
                file.unlink("a").unwrap();
                drop(held);
                assert!(!file.contains("a"));
                // Space that is given back twice would be told of here.
                file.close().unwrap_or_else(|error| panic!("{era:?}, {links} links: {error}"));
                let file = File::open(&path).unwrap();
                assert_eq!(count(&file).0, 1);
            }
        }
    }
}
