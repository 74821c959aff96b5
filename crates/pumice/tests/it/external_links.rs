//! External links: what is made, changed and removed through one is in the file that it leads to, and
//! nowhere else.

use pumice::{CopyOptions, File, H5Type, LibraryVersion, Node, Result};
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
        assert!(refused.contains("a hard link cannot lead to another file"), "{refused}");
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

#[test]
fn a_file_is_edited_through_a_link_of_a_file_that_is() {
    for (era, (change, made)) in ERAS.into_iter().flat_map(|era| CHANGES.map(|one| (era, one))) {
        let pair = Pair::new(era);
        let before = [&pair.a, &pair.b].map(|path| objects(path));
        let a = File::edit(&pair.a).unwrap();
        change(&a).unwrap();
        a.close().unwrap();
        assert_eq!(objects(&pair.a), before[0], "{made:?}");
        let new: Vec<_> =
            objects(&pair.b).into_iter().filter(|name| !before[1].contains(name)).collect();
        assert_eq!(new, made, "{era:?}");
    }
    let pair = Pair::new(LibraryVersion::V110);
    let a = File::edit(&pair.a).unwrap();
    a.dataset("e/d").unwrap().write(1..2, &[9]).unwrap();
    a.group("e").unwrap().set_attribute("x", 5).unwrap();
    a.group("e").unwrap().set_comment(Some("changed")).unwrap();
    drop(a);
    let b = File::edit(&pair.b).unwrap();
    assert_eq!(b.dataset("g/d").unwrap().read::<i32>(..).unwrap(), [1, 9, 3]);
    assert_eq!(b.group("g").unwrap().attribute("x").unwrap().read::<i32>().unwrap(), [5]);
    assert_eq!(b.group("g").unwrap().comment().as_deref(), Some("changed"));
    drop(b);
    File::edit(&pair.a).unwrap().unlink("e/d").unwrap();
    assert!(!objects(&pair.b).contains(&"/g/d".to_owned()));
}

/// The state of a file that a program would leave if it ended now.
fn left(path: &Path) -> File {
    File::options().open_bytes(std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn a_flush_reaches_the_files_that_links_have_led_to() {
    let pair = Pair::new(LibraryVersion::V110);
    let c = pair.b.with_file_name("c.h5");
    File::create(&c).unwrap().create_external_link("back", "a.h5", "/l").unwrap();
    File::edit(&pair.b).unwrap().create_external_link("g/on", "c.h5", "/").unwrap();
    let a = File::edit(&pair.a).unwrap();
    let (data, on) = (a.dataset("e/d").unwrap(), a.group("e/on").unwrap());
    let home = on.group("back").unwrap();
    data.write(.., &[4, 5, 6]).unwrap();
    on.set_attribute("third", 3).unwrap();
    home.set_attribute("first", 1).unwrap();
    assert!(left(&c).attribute("third").is_err());
    a.flush().unwrap();
    assert_eq!(left(&pair.b).dataset("g/d").unwrap().read::<i32>(..).unwrap(), [4, 5, 6]);
    assert_eq!(left(&c).attribute("third").unwrap().read::<i32>().unwrap(), [3]);
    assert!(left(&pair.a).group("l").unwrap().attribute("first").is_ok());

    data.write(.., &[7, 8, 9]).unwrap();
    on.set_attribute("late", 3).unwrap();
    home.set_attribute("late", 1).unwrap();
    a.close().unwrap();
    assert!(left(&c).attribute("late").is_ok() && left(&pair.a).group("l").is_ok());
    assert_eq!(left(&pair.b).dataset("g/d").unwrap().read::<i32>(..).unwrap(), [7, 8, 9]);
    assert!(home.attribute("late").is_ok());
    drop((data, on, home));
    for path in [&pair.a, &pair.b, &c] {
        let other = pumice_store::FileStore::open_writable(path).unwrap();
        other.lock(pumice::Locking::Required, true).unwrap();
    }
}

#[test]
fn what_is_only_read_through_a_link_stays_as_it_is() {
    for persist in [false, true] {
        let pair = Pair::new(LibraryVersion::V110);
        let b = File::options().persist_free_space(persist).create(&pair.b).unwrap();
        b.new_dataset::<i32>().shape([3]).create("g/d").unwrap().write(.., &[1, 2, 3]).unwrap();
        b.new_dataset::<i32>().shape([300]).create("x").unwrap().write(.., &[1; 300]).unwrap();
        b.flush().unwrap();
        b.unlink("x").unwrap();
        b.close().unwrap();
        let before = std::fs::read(&pair.b).unwrap();
        let a = File::edit(&pair.a).unwrap();
        assert_eq!(a.dataset("e/d").unwrap().read::<i32>(..).unwrap(), [1, 2, 3]);
        assert!(a.contains("e") && a.group("e").unwrap().attributes().unwrap().is_empty());
        a.close().unwrap();
        assert_eq!(std::fs::read(&pair.b).unwrap(), before, "{persist}");
    }
}

#[test]
fn a_file_that_cannot_be_changed_is_read_through_a_link_and_named_when_it_is_written_to() {
    let pair = Pair::new(LibraryVersion::V110);
    let reader = pumice_store::FileStore::open(&pair.b).unwrap();
    reader.lock(pumice::Locking::Required, false).unwrap();
    let a = File::edit(&pair.a).unwrap();
    let data = a.dataset("e/d").unwrap();
    assert_eq!(data.read::<i32>(..).unwrap(), [1, 2, 3]);
    let refusals = [
        data.write(0..1, &[5]).unwrap_err(),
        a.create_group("e/new").err().unwrap(),
        a.unlink("e/d").unwrap_err(),
        a.group("e").unwrap().set_attribute("x", 1).unwrap_err(),
        a.rename("e/d", "e/f").unwrap_err(),
        a.create_hard_link("e/h", "e/d").unwrap_err(),
    ];
    for refused in refusals.map(|error| error.to_string()) {
        assert!(
            refused.contains("b.h5 can only be read: ") && refused.contains("locked"),
            "{refused}"
        );
    }
    a.create_group("own").unwrap();
    drop(data);
    reader.unlock();
    a.create_group("e/new").unwrap();

    // A file that this process has open for reading stays so.
    let pair = Pair::new(LibraryVersion::V110);
    let b = File::open(&pair.b).unwrap();
    let a = File::edit(&pair.a).unwrap();
    let refused = a.create_group("e/new").err().unwrap().to_string();
    assert!(refused.contains("b.h5 is open for reading only"), "{refused}");
    drop(b);
    a.create_group("e/new").unwrap();
    assert!(File::open(&pair.a).is_ok());
    drop(a);
    let a = File::open(&pair.a).unwrap();
    assert!(a.create_group("e/newer").is_err(), "not through a file that is open for reading");
}

#[test]
fn a_file_is_locked_as_long_as_it_is_edited_through_a_link() {
    let pair = Pair::new(LibraryVersion::V110);
    let other = pumice_store::FileStore::open(&pair.b).unwrap();
    let a = File::edit(&pair.a).unwrap();
    let there = a.group("e").unwrap();
    assert!(other.lock(pumice::Locking::Required, false).is_err());
    drop(there);
    other.lock(pumice::Locking::Required, true).unwrap();
    assert!(a.group("e").is_err(), "locked, not absent");
    drop(a);
    let a = File::options().locking(pumice::Locking::Off).open(&pair.a).unwrap();
    assert_eq!(a.dataset("e/d").unwrap().read::<i32>(..).unwrap(), [1, 2, 3]);
    drop(a);
    let a = File::options().locking(pumice::Locking::Off).edit(&pair.a).unwrap();
    a.dataset("e/d").unwrap().write(0..1, &[5]).unwrap();
}

#[test]
fn a_source_that_is_there_but_cannot_be_read_is_not_missing() {
    use pumice::{Locking, Selection};
    let pair = Pair::new(LibraryVersion::V110);
    let a = File::edit(&pair.a).unwrap();
    let all = Selection::all;
    let view = |file: &File, name: &str, source: &str, path: &str| {
        let view = file.new_dataset::<i32>().shape([3]).fill_value(-1);
        view.virtual_part(all(), source, path, all()).create(name).unwrap();
    };
    view(&a, "v", "b.h5", "g/d");
    view(&a, "no file", "none.h5", "g/d");
    view(&a, "no dataset", "b.h5", "g/none");
    view(&a, "no hdf5", "text.h5", "g/d");
    std::fs::write(pair.a.with_file_name("text.h5"), "not HDF5").unwrap();
    a.close().unwrap();
    let read = |file: &File, name: &str| file.dataset(name)?.read::<i32>(..);
    let a = File::open(&pair.a).unwrap();
    assert_eq!(read(&a, "v").unwrap(), [1, 2, 3]);
    assert_eq!(read(&a, "no file").unwrap(), [-1; 3]);
    assert_eq!(read(&a, "no dataset").unwrap(), [-1; 3]);
    assert!(read(&a, "no hdf5").is_err());
    drop(a);

    let other = pumice_store::FileStore::open_writable(&pair.b).unwrap();
    other.lock(Locking::Required, true).unwrap();
    let ways: [fn(&Path) -> Result<File>; 2] = [|path| File::open(path), |path| File::edit(path)];
    for open in ways {
        let a = open(&pair.a).unwrap();
        let refused = read(&a, "v").unwrap_err().to_string();
        assert!(refused.contains("locked") && refused.contains("b.h5"), "{refused}");
    }
    let unlocked = || File::options().locking(Locking::Off);
    assert_eq!(read(&unlocked().open(&pair.a).unwrap(), "v").unwrap(), [1, 2, 3]);
    let a = unlocked().edit(&pair.a).unwrap();
    a.dataset("v").unwrap().write(1..2, &[5]).unwrap();
    a.close().unwrap();
    other.unlock();
    assert_eq!(read(&File::open(&pair.b).unwrap(), "g/d").unwrap(), [1, 5, 3]);
}

#[test]
fn references_stay_in_the_file_whose_objects_they_lead_to() {
    use pumice::{ReferenceType, References};
    let pair = Pair::new(LibraryVersion::V110);
    let a = File::edit(&pair.a).unwrap();
    let there = a.group("e").unwrap();
    let own = a.reference("l").unwrap();
    let refused = there.set_attribute("r", own.clone()).unwrap_err().to_string();
    assert!(refused.contains("another file"), "{refused}");
    assert!(there.set_attribute("r", References(vec![None, Some(own.clone())])).is_err());
    let links = a.new_references(ReferenceType::Object).shape([1]).create("e/links").unwrap();
    assert!(links.write_references(.., &[Some(own.clone())]).is_err());
    let theirs = there.reference("d").unwrap();
    links.write_references(.., &[Some(theirs.clone())]).unwrap();
    there.set_attribute("r", theirs.clone()).unwrap();
    assert!(a.set_attribute("r", links.read_references(..).unwrap()[0].clone().unwrap()).is_err());
    a.set_attribute("r", own).unwrap();
    drop((links, there, a));
    // What was read before a file was closed is taken when it is open again.
    let b = File::edit(&pair.b).unwrap();
    b.set_attribute("again", theirs).unwrap();
    let found = b.attribute("again").unwrap().read_references().unwrap();
    assert!(matches!(b.dereference(found[0].as_ref().unwrap()), Ok(Node::Dataset(_))));
}
