//! External links: what is made, changed and removed through one is in the file that it leads to, and
//! nowhere else.

use pumice::{CopyOptions, Element, File, LibraryVersion, Node, Result};
use std::path::{Path, PathBuf};

const ERAS: [LibraryVersion; 2] = [LibraryVersion::Earliest, LibraryVersion::V110];

/// A file `a.h5` whose `e` leads to the group `/g` of `b.h5`; objects of the two lie at other addresses.
struct Pair {
    _folder: tempfile::TempDir,
    a: PathBuf,
    b: PathBuf,
}

impl Pair {
    fn new(era: LibraryVersion) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [a, b] = ["a.h5", "b.h5"].map(|name| folder.path().join(name));
        for path in [&a, &b] {
            let file = File::options().library_version(era).create(path).unwrap();
            if path == &a {
                file.create_group("pad").unwrap().set_attribute("x", &[7i64; 300][..]).unwrap();
                file.create_external_link("e", "b.h5", "/g").unwrap();
            }
            for group in ["g", "l"] {
                let data = file.create_group(group).unwrap().new_dataset::<i32>().shape([3]);
                data.create("d").unwrap().write(.., &[1, 2, 3]).unwrap();
            }
            file.close().unwrap();
        }
        Self { _folder: folder, a, b }
    }
}

/// Every object that hard links of a file lead to, with its kind, all of which can be opened and read.
fn objects(path: &Path) -> Vec<String> {
    let file = File::open(path).unwrap();
    let mut found = Vec::new();
    let mut pending = vec![String::new()];
    while let Some(at) = pending.pop() {
        let group = if at.is_empty() { file.group("/") } else { file.group(&at) }.unwrap();
        for member in group.members().unwrap() {
            let below = format!("{at}/{}", member.name);
            if matches!(member.kind, pumice::MemberKind::ExternalLink(..)) {
                continue;
            }
            let node = file.node(&below).unwrap();
            assert!(node.attributes().is_ok(), "{below}");
            match node {
                Node::Group(_) => pending.push(below.clone()),
                Node::Dataset(data) => assert!(data.read_bytes(..).is_ok(), "{below}"),
                Node::Datatype(_) => {}
            }
            found.push(below);
        }
    }
    found.sort();
    found
}

/// A change through a link, and what the other file has of it.
type Change = (fn(&File) -> Result<()>, &'static [&'static str]);

const CHANGES: [Change; 8] = [
    (|a| a.create_group("e/new").map(drop), &["/g/new"]),
    (|a| a.create_group("e/p/q/r").map(drop), &["/g/p", "/g/p/q", "/g/p/q/r"]),
    (
        |a| {
            let data = a.new_dataset::<i32>().shape([4]).chunk([2]).deflate(1).create("e/nd")?;
            data.write(.., &[4, 5, 6, 7])
        },
        &["/g/nd"],
    ),
    (
        |a| {
            let names = a.new_strings().shape([2]).create("e/names")?;
            names.write_strings(.., &["granite", "basalt"])
        },
        &["/g/names"],
    ),
    (|a| a.commit_datatype("e/t", &i32::datatype()).map(drop), &["/g/t"]),
    (|a| a.copy_object("l", a, "e/l", &CopyOptions::new()), &["/g/l", "/g/l/d"]),
    (|a| a.create_hard_link("e/again", "e/d"), &["/g/again"]),
    (|a| a.rename("e/d", "e/x/d2"), &["/g/x", "/g/x/d2"]),
];

#[test]
fn what_is_made_through_a_link_is_in_the_file_that_it_leads_to() {
    for (era, (change, made)) in ERAS.into_iter().flat_map(|era| CHANGES.map(|one| (era, one))) {
        let pair = Pair::new(era);
        let before = [&pair.a, &pair.b].map(|path| objects(path));
        let (a, b) = (File::edit(&pair.a).unwrap(), File::edit(&pair.b).unwrap());
        change(&a).unwrap();
        a.close().unwrap();
        b.close().unwrap();
        assert_eq!(objects(&pair.a), before[0], "{made:?}");
        let after = objects(&pair.b);
        let new: Vec<_> = after.iter().filter(|name| !before[1].contains(name)).collect();
        assert_eq!(new, made, "{era:?}");
        // What the new objects refer to is theirs: nothing of it goes when all else does.
        let b = File::edit(&pair.b).unwrap();
        b.unlink("l").unwrap();
        b.close().unwrap();
        objects(&pair.b);
    }
}

#[test]
fn elements_and_attributes_written_through_a_link_are_read_from_its_file() {
    let pair = Pair::new(LibraryVersion::V110);
    let (a, b) = (File::edit(&pair.a).unwrap(), File::edit(&pair.b).unwrap());
    a.new_strings().shape([1]).create("e/s").unwrap().write_strings(.., &["tuff"]).unwrap();
    a.group("e").unwrap().set_attribute("rock", "pumice").unwrap();
    let count = a.commit_datatype("e/count", &u16::datatype()).unwrap();
    a.new_dataset_of_committed(&count).shape([2]).create("e/counts").unwrap();
    assert_eq!(a.dataset("e/counts").unwrap().committed_datatype(), Some(count.address()));
    let own = a.commit_datatype("own", &u16::datatype()).unwrap();
    let foreign = a.new_dataset_of_committed(&own).shape([2]).create("e/foreign");
    assert!(foreign.err().unwrap().to_string().contains("another file"));
    drop((a, b, count, own));
    let b = File::open(&pair.b).unwrap();
    assert_eq!(b.dataset("g/s").unwrap().read_strings(..).unwrap(), ["tuff"]);
    assert_eq!(b.group("g").unwrap().attribute("rock").unwrap().read_string().unwrap(), "pumice");
    assert!(!b.contains("g/foreign"));
    assert_eq!(b.dataset("g/counts").unwrap().read::<u16>(..).unwrap(), [0, 0]);
}

#[test]
fn hard_links_and_moves_do_not_lead_from_file_to_file() {
    let pair = Pair::new(LibraryVersion::V110);
    let before = [&pair.a, &pair.b].map(|path| objects(path));
    let (a, b) = (File::edit(&pair.a).unwrap(), File::edit(&pair.b).unwrap());
    for (path, target) in [("e/h", "l"), ("h", "e/d"), ("l/h", "e")] {
        let refused = a.create_hard_link(path, target).unwrap_err().to_string();
        assert!(refused.contains("a hard link between two files"), "{refused}");
    }
    for (path, target) in [("l/d", "e/moved"), ("e/d", "l/moved")] {
        let refused = a.rename(path, target).unwrap_err().to_string();
        assert!(refused.contains("links do not move between files"), "{refused}");
    }
    assert_eq!(a.group("l").unwrap().link_count(), 1);
    assert_eq!(a.dataset("e/d").unwrap().link_count(), 1);
    drop((a, b));
    assert_eq!([&pair.a, &pair.b].map(|path| objects(path)), before);
}
