//! What a program leaves that ends in the middle of editing a split or multi file, found by its name: between
//! any two changes of any member and in the middle of each, the file as of the last commit or of the one
//! under way, which can be edited from there. (`crash.rs` does the same, and lets power fail, where the
//! members are given.)

use pumice::{ByKind, File, FileOptions, LibraryVersion};
use pumice_store::{FileStore, Locking, PartedStore};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// The files of a folder.
type Folder = BTreeMap<String, Vec<u8>>;
/// Everything in a file: values by name.
type Content = BTreeMap<String, Vec<i32>>;

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

fn values(seed: usize, count: usize) -> Vec<i32> {
    (0..count).map(|number| (seed * 1000 + number) as i32).collect()
}

/// Step number `step`, after which members are longer or, sometimes, shorter.
fn apply(file: &File, step: usize) -> pumice::Result<()> {
    let name = |step: usize| format!("d{step}");
    file.set_attribute(&format!("a{step}"), values(step, 5).as_slice())?;
    if step + 1 == STEPS {
        return file.members()?.iter().try_for_each(|member| file.unlink(&member.name));
    }
    match step % 3 {
        0 => file
            .new_dataset::<i32>()
            .shape([400])
            .create(&name(step))?
            .write(.., &values(step, 400)),
        1 => {
            let new =
                file.new_dataset::<i32>().shape([300]).max_shape([None]).chunk([64]).deflate(1);
            new.create(&name(step))?.write(.., &values(step, 300))
        }
        _ => {
            file.unlink(&name(step - 2))?;
            let grown = file.dataset(&name(step - 1))?;
            grown.resize([350])?;
            grown.write(280..350, &values(step, 70))
        }
    }
}

fn content(file: &File) -> pumice::Result<Content> {
    let mut found = Content::new();
    for attribute in file.attributes()? {
        found.insert(format!("@{}", attribute.name()), attribute.read::<i32>()?);
    }
    for member in file.members()? {
        found.insert(member.name.clone(), file.dataset(&member.name)?.read::<i32>(..)?);
    }
    Ok(found)
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
        apply(&file, step).unwrap();
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

/// The files between two changes, or `None` if the change is not one that can be half done.
fn torn(before: &Folder, after: &Folder) -> Option<Folder> {
    let (name, new) = after.iter().find(|(name, bytes)| before.get(*name) != Some(bytes))?;
    let old = before.get(name).filter(|old| old.len() <= new.len())?;
    let same = |at: &usize| old.get(*at) == new.get(*at);
    let from = (0..new.len()).find(|at| !same(at))?;
    let to = (0..new.len()).rev().find(|at| !same(at))? + 1;
    // As small as a superblock is: that is done or not.
    if to - from <= 96 {
        return None;
    }
    let half = from + (to - from) / 2;
    let mut bytes = old.clone();
    bytes.resize(bytes.len().max(half), 0);
    bytes[from..half].copy_from_slice(&new[from..half]);
    let mut folder = before.clone();
    folder.insert(name.clone(), bytes);
    Some(folder)
}

/// The file can be read, as `known` says, and edited from there.
fn check(files: &Folder, known: &[&Content], at: &str) {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    let path = folder.path().join("run");
    let mut found = File::open(&path)
        .and_then(|file| content(&file))
        .unwrap_or_else(|error| panic!("{at}: {error}"));
    assert!(known.contains(&&found), "{at}: neither old nor new");
    let more = values(7, 600);
    let add = || {
        let file = File::edit(&path)?;
        file.new_dataset::<i32>().shape([600]).create("after")?.write(.., &more)?;
        file.close()
    };
    add().unwrap_or_else(|error| panic!("{at}: {error}"));
    found.insert("after".into(), more.clone());
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
