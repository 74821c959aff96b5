//! What a program leaves that ends in the middle of a commit, for readers that know of no journal: a file that they
//! refuse, or one commit, or the other.

use pumice::{File, FileOptions, LibraryVersion, MemoryStore, Node};
use pumice_format::superblock::{OPEN_FOR_WRITING, Superblock};
use pumice_testkit::moments::torn;
use pumice_testkit::recording::RecordingStore;
use std::collections::BTreeMap;
use std::sync::Arc;

type Content = BTreeMap<String, Vec<i32>>;

fn kinds() -> Vec<(&'static str, FileOptions)> {
    let old = File::options().library_version(LibraryVersion::Earliest);
    vec![
        ("superblock 0", old.clone()),
        ("superblock 0 behind a user block", old.clone().user_block(512)),
        ("superblock 0, addresses of 4 bytes", old.clone().widths(4, 4)),
        ("superblock 1", old.chunk_rank(7)),
        ("superblock 2", File::options().library_version(LibraryVersion::V18)),
        ("superblock 3", File::options().library_version(LibraryVersion::V110)),
    ]
}

fn change(file: &File, step: usize) {
    file.set_attribute("step", step as i32).unwrap();
    let group = file.create_group(&format!("groups/with number {step}")).unwrap();
    group.set_attribute("of", &[step as i32; 5][..]).unwrap();
    let data = file.new_dataset::<i32>().shape([20]).max_shape([None]).chunk([8]).deflate(1);
    data.create(&format!("d{step}")).unwrap().write(.., &[step as i32; 20]).unwrap();
    if step >= 2 {
        let grown = file.dataset(&format!("d{}", step - 2)).unwrap();
        grown.resize([30]).unwrap();
        grown.write(20..30, &[7; 10]).unwrap();
        drop(grown);
        file.unlink(&format!("groups/with number {}", step - 2)).unwrap();
    }
    if step == 6 {
        // The root group of an old file becomes another.
        file.create_external_link("elsewhere", "nowhere.h5", "/").unwrap();
    }
}

fn content(group: &pumice::Group, at: &str, found: &mut Content) -> pumice::Result<()> {
    for attribute in group.attributes()? {
        found.insert(format!("{at}@{}", attribute.name()), attribute.read::<i32>()?);
    }
    for member in group.members()? {
        let below = format!("{at}/{}", member.name);
        if matches!(member.kind, pumice::MemberKind::ExternalLink(..)) {
            found.insert(below, Vec::new());
            continue;
        }
        match group.node(&member.name)? {
            Node::Group(inner) => content(&inner, &below, found)?,
            Node::Dataset(data) => drop(found.insert(below, data.read::<i32>(..)?)),
            Node::Datatype(_) => {}
        }
    }
    Ok(())
}

/// What who knows of no journal sees: nothing if the file says that it is open, or longer than it is; else what is
/// before the end that the superblock tells.
fn seen_elsewhere(bytes: &[u8]) -> Option<pumice::Result<Content>> {
    let start = Superblock::candidates(bytes.len() as u64)
        .find(|&at| Superblock::is_signature(&bytes[at as usize..]))? as usize;
    let superblock = Superblock::decode(&bytes[start..], start as u64).ok()?;
    let marked = superblock.version >= 3 && superblock.consistency_flags & OPEN_FOR_WRITING != 0;
    if marked || superblock.end_of_file > bytes.len() as u64 {
        return None;
    }
    let store = MemoryStore::new(bytes[..superblock.end_of_file as usize].to_vec());
    let read = || {
        let mut found = Content::new();
        content(&*File::options().open_in(Arc::new(store))?, "", &mut found)?;
        Ok(found)
    };
    Some(read())
}

#[test]
fn other_readers_see_one_commit_or_the_other_or_nothing() {
    for (kind, options) in kinds() {
        let store = Arc::new(RecordingStore::default());
        let file = options.create_in(store.clone()).unwrap();
        let now = |file: &File| {
            let mut found = Content::new();
            content(file, "", &mut found).unwrap();
            found
        };
        file.flush().unwrap();
        let mut commits = vec![(0, store.count(), now(&file))];
        for step in 0..10 {
            change(&file, step);
            let before = store.count();
            file.flush().unwrap();
            commits.push((before, store.count(), now(&file)));
        }
        let (before, last) = (store.count(), now(&file));
        file.close().unwrap();
        commits.push((before, store.count(), last));
        let (mut refused, mut seen) = (0, 0);
        for count in commits[0].1..=store.count() {
            let done = commits.iter().rposition(|commit| commit.1 <= count).unwrap();
            let under_way = commits.get(done + 1).filter(|commit| commit.0 <= count);
            for torn in torn(count) {
                let copy = MemoryStore::default();
                store.play(count, torn, &copy).unwrap();
                let at = format!("{kind}: after {count} changes, {torn}");
                let Some(found) = seen_elsewhere(&copy.to_vec()) else {
                    assert!(under_way.is_some(), "{at}: refused between commits");
                    refused += 1;
                    continue;
                };
                let found = found.unwrap_or_else(|error| panic!("{at}: {error}"));
                let new = under_way.is_some_and(|commit| found == commit.2);
                assert!(found == commits[done].2 || new, "{at}: a mixture");
                seen += 1;
            }
        }
        assert!(refused > 20 && seen > 20, "{kind}: {refused} refused, {seen} seen");
    }
}
