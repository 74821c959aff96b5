//! What a program leaves that ends in the middle of editing a family of files: between any two changes
//! of any member and in the middle of each, the family as of the last commit or of the one under way,
//! which can be edited from there. No file that is not its own is ever touched.

use crate::ended::{Content, Folder, add, apply, content, lay_out, torn};
use pumice::{File, FileOptions, FileSpaceStrategy, LibraryVersion};
use pumice_store::{FamilyStore, FileStore, Locking};
use pumice_testkit::moments::is_tried;
use std::path::Path;
use std::sync::{Arc, Mutex};

const STEPS: usize = 12;

fn kinds() -> Vec<(&'static str, u64, FileOptions)> {
    let paged = File::options().space_strategy(FileSpaceStrategy::Paged).page_size(512);
    vec![
        ("new format", 700, File::options()),
        ("old format", 1000, File::options().library_version(LibraryVersion::Earliest)),
        ("remembered space", 512, File::options().persist_free_space(true)),
        ("pages", 1024, paged.persist_free_space(true)),
        ("one member", 1 << 20, File::options()),
    ]
}

fn look(folder: &Path) -> Folder {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    entries.map(|path| (name(&path), std::fs::read(&path).unwrap())).collect()
}

/// The files before each change of one of them and at the end; how many changes there were before and after
/// each commit, and what it contains.
struct Seen {
    before: Arc<Mutex<Vec<Folder>>>,
    commits: Vec<(usize, usize, Content)>,
}

/// Makes and edits a family, and looks at its files before every change of one of them.
fn record(folder: &Path, size: u64, options: FileOptions) -> Seen {
    let directory = folder.to_path_buf();
    let name = move |number: u64| directory.join(format!("{number}.h5"));
    let first = Arc::new(FileStore::create(name(0)).unwrap());
    let before = Arc::new(Mutex::new(Vec::new()));
    let (seen, place) = (before.clone(), folder.to_path_buf());
    let store = FamilyStore::open(first, size, Locking::Off, name).unwrap();
    let store = Arc::new(store.observed(move || seen.lock().unwrap().push(look(&place))));
    let count = || before.lock().unwrap().len();
    let file = options.family(size).create_in(store.clone()).unwrap();
    let mut commits = vec![(0, count(), content(&file).unwrap())];
    for step in 0..STEPS {
        apply(&file, step, STEPS).unwrap();
        let start = count();
        file.flush().unwrap();
        commits.push((start, count(), content(&file).unwrap()));
    }
    let (start, last) = (count(), content(&file).unwrap());
    file.close().unwrap();
    drop(store);
    commits.push((start, count(), last));
    before.lock().unwrap().push(look(folder));
    Seen { before, commits }
}

/// The family can be read, as `known` says, and edited from there.
fn check(files: &Folder, known: &[&Content], at: &str) {
    let folder = lay_out(files);
    let pattern = folder.path().join("%d.h5");
    let mut found = File::open(&pattern)
        .and_then(|file| content(&file))
        .unwrap_or_else(|error| panic!("{at}: {error}"));
    assert!(known.contains(&&found), "{at}: neither old nor new");
    let more = add(&pattern).unwrap_or_else(|error| panic!("{at}: {error}"));
    found.insert("after".into(), more);
    assert!(content(&File::open(&pattern).unwrap()).unwrap() == found, "{at}: after editing");
    let empty = look(folder.path()).into_values().filter(Vec::is_empty).count();
    assert_eq!(empty, 0, "{at}: nothing is left behind");
}

/// A file of somebody else that stands behind the last of these, which is where the family needs to
/// grow, stays; growing is refused or finds enough room before it. Says whether it was refused.
fn check_beside(files: &Folder, at: &str) -> bool {
    let folder = lay_out(files);
    let other = folder.path().join(format!("{}.h5", files.len()));
    std::fs::write(&other, "somebody else's").unwrap();
    let grown = add(&folder.path().join("%d.h5"));
    assert_eq!(std::fs::read(&other).unwrap(), b"somebody else's", "{at}");
    let Err(error) = grown else { return false };
    let text = format!("{error}");
    assert!(text.contains(other.to_str().unwrap()), "{at}: {text}");
    true
}

#[test]
fn a_program_may_end_before_any_change_of_any_member_and_in_the_middle_of_it() {
    for (kind, size, options) in kinds() {
        let folder = tempfile::tempdir().unwrap();
        let Seen { before, commits } = record(folder.path(), size, options);
        let before = before.lock().unwrap();
        let most = before.iter().map(Folder::len).max().unwrap();
        let shrinks = before.last().unwrap().len() + 4 < most;
        // Where free space is remembered, it stays.
        let shrinks = shrinks || !kind.contains("format");
        assert!(size > 1 << 16 || most > 5 && shrinks, "{kind}: members come and go: {most}");
        let mut refused = 0;
        for count in (commits[0].1..before.len()).filter(|&count| is_tried(count)) {
            let done = commits.iter().rposition(|commit| commit.1 <= count).unwrap();
            let under_way = commits.get(done + 1).filter(|commit| commit.0 <= count + 1);
            let known: Vec<&Content> =
                commits[done..=done].iter().chain(under_way).map(|commit| &commit.2).collect();
            let at = format!("{kind}: before change {count} of {}", before.len());
            check(&before[count], &known, &at);
            refused += usize::from(check_beside(&before[count], &at));
            if let Some(torn) = before.get(count + 1).and_then(|after| torn(&before[count], after))
            {
                check(&torn, &known, &format!("{at}, in the middle"));
            }
        }
        assert!(size > 1 << 16 || refused > 0, "{kind}: nothing was in the way");
    }
}
