//! What a program leaves that ends in the middle of editing a split or multi file, found by its name: between
//! any two changes of any member and in the middle of each, the file as of the last commit or of the one
//! under way, which can be edited from there. (`crash.rs` does the same, and lets power fail, where the
//! members are given.)

use crate::ended::{Content, Folder, add, apply, content, lay_out, torn};
use pumice::{ByKind, File, FileOptions, LibraryVersion};
use pumice_store::{FileStore, Locking, PartedStore};
use std::path::Path;
use std::sync::{Arc, Mutex};

const STEPS: usize = 8;

const SPLIT: [&str; 2] = ["run-m.h5", "run-r.h5"];
const META_RAW: [&str; 2] = ["run.meta", "run.raw"];
const MULTI: [&str; 6] = ["run-s.h5", "run-b.h5", "run-r.h5", "run-g.h5", "run-l.h5", "run-o.h5"];

fn kinds() -> Vec<(&'static str, ByKind, &'static [&'static str], FileOptions)> {
    let old = File::options().library_version(LibraryVersion::Earliest);
    vec![
        ("split", ByKind::Split, &SPLIT, File::options()),
        ("old split", ByKind::SplitMetaRaw, &META_RAW, old.clone()),
        ("user block", ByKind::Split, &SPLIT, old.clone().user_block(512)),
        ("multi", ByKind::Multi, &MULTI, File::options()),
        ("old multi", ByKind::Multi, &MULTI, old),
    ]
}

fn look(folder: &Path, names: &[&str]) -> Folder {
    let read = |name: &&str| ((*name).to_owned(), std::fs::read(folder.join(name)).unwrap());
    names.iter().map(read).collect()
}

/// The files before each change of one of them and at the end; how many changes there were before and after
/// each commit, and what it contains.
struct Seen {
    before: Arc<Mutex<Vec<Folder>>>,
    commits: Vec<(usize, usize, Content)>,
}

/// Makes and edits a file, and looks at its members before every change of one of them.
fn record(
    folder: &Path,
    kind: ByKind,
    names: &'static [&'static str],
    options: FileOptions,
) -> Seen {
    let path = |name: &str| folder.join(name);
    let first = Arc::new(FileStore::create(path(names[0])).unwrap());
    let others = kind.starts().into_iter().zip(names).skip(1);
    let others = others.map(|(start, name)| (start, path(name))).collect();
    let store = PartedStore::create(first, &path(names[0]), others, Locking::Off).unwrap();
    let before = Arc::new(Mutex::new(Vec::new()));
    let (seen, place) = (before.clone(), folder.to_path_buf());
    let store = store.observed(move || seen.lock().unwrap().push(look(&place, names)));
    let count = || before.lock().unwrap().len();
    let file = options.by_kind(kind).create_in(Arc::new(store)).unwrap();
    let mut commits = vec![(0, count(), content(&file).unwrap())];
    for step in 0..STEPS {
        apply(&file, step, STEPS).unwrap();
        let start = count();
        file.flush().unwrap();
        commits.push((start, count(), content(&file).unwrap()));
    }
    let (start, last) = (count(), content(&file).unwrap());
    file.close().unwrap();
    commits.push((start, count(), last));
    before.lock().unwrap().push(look(folder, names));
    Seen { before, commits }
}

/// The file can be read, as `known` says, and edited from there.
fn check(files: &Folder, known: &[&Content], at: &str) {
    let folder = lay_out(files);
    let path = folder.path().join("run");
    let mut found = File::open(&path)
        .and_then(|file| content(&file))
        .unwrap_or_else(|error| panic!("{at}: {error}"));
    assert!(known.contains(&&found), "{at}: neither old nor new");
    let more = add(&path).unwrap_or_else(|error| panic!("{at}: {error}"));
    found.insert("after".into(), more);
    assert!(content(&File::open(&path).unwrap()).unwrap() == found, "{at}: after editing");
}

#[test]
fn a_program_may_end_before_any_change_of_any_member_and_in_the_middle_of_it() {
    for (kind, by_kind, names, options) in kinds() {
        let folder = tempfile::tempdir().unwrap();
        let Seen { before, commits } = record(folder.path(), by_kind, names, options);
        let before = before.lock().unwrap();
        let raw = names.iter().find(|name| name.contains("-r") || name.contains("raw")).unwrap();
        let length = |files: &Folder| files[*raw].len();
        let most = before.iter().map(length).max().unwrap();
        let last = length(before.last().unwrap());
        assert!(most > 3000 && last == 0, "{kind}: it grows and shrinks: {most}, {last}");
        for count in commits[0].1..before.len() {
            let done = commits.iter().rposition(|commit| commit.1 <= count).unwrap();
            let under_way = commits.get(done + 1).filter(|commit| commit.0 <= count + 1);
            let known: Vec<&Content> =
                commits[done..=done].iter().chain(under_way).map(|commit| &commit.2).collect();
            let at = format!("{kind}: before change {count} of {}", before.len());
            check(&before[count], &known, &at);
            if let Some(torn) = before.get(count + 1).and_then(|after| torn(&before[count], after))
            {
                check(&torn, &known, &format!("{at}, in the middle"));
            }
        }
    }
}
