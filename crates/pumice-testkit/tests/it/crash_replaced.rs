//! What a program leaves that ends while it replaces things: what is new may have the space of what was deleted
//! before the same commit, and yet the file is as of the last commit, or of the one under way.

use pumice::{Durability, File, FileOptions, FileSpaceStrategy, LibraryVersion, MemoryStore};
use pumice::{Selection, VariableLength};
use pumice_store::Store;
use pumice_testkit::moments::{share, torn};
use pumice_testkit::recording::RecordingStore;
use std::sync::Arc;

const NAMES: [&str; 8] = [
    "compact",
    "contiguous",
    "chunks",
    "compressed chunks",
    "strings",
    "long strings",
    "strings in chunks",
    "attribute",
];
const ROUNDS: u32 = 5;

/// Instead of the round of what is not there.
const MISSING: u32 = u32::MAX;

fn kinds() -> Vec<(&'static str, FileOptions)> {
    let paged = File::options().space_strategy(FileSpaceStrategy::Paged).page_size(512);
    vec![
        ("new format", File::options()),
        ("old format", File::options().library_version(LibraryVersion::Earliest)),
        ("remembered space", File::options().persist_free_space(true)),
        ("pages", paged.clone()),
        ("pages, remembered", paged.persist_free_space(true)),
        ("little memory", File::options().metadata_limit(20_000)),
    ]
}

fn numbers(round: u32) -> Vec<u32> {
    (0..300).map(|number| (number + round).wrapping_mul(2_654_435_761)).collect()
}

fn texts(name: &str, round: u32) -> Vec<String> {
    let length = if name == "long strings" { 5000 } else { 12 };
    (0..4).map(|at| format!("{at} of {round:length$}")).collect()
}

/// Deletes something, if it is there, and makes it again.
fn replace(file: &File, name: &str, round: u32) -> pumice::Result<()> {
    if name == "attribute" {
        return file.set_attribute(name, VariableLength::strings(texts(name, round))?);
    }
    if round > 0 {
        file.unlink(name)?;
    }
    if name.contains("strings") {
        let builder = file.new_strings().shape([4]);
        let builder = if name.contains("chunks") { builder.chunk([2]) } else { builder };
        return builder.create(name)?.write_strings(.., &texts(name, round));
    }
    let builder = file.new_dataset::<u32>().shape([300]);
    let builder = match name {
        "compact" => builder.compact(),
        "chunks" => builder.chunk([50]),
        "compressed chunks" => builder.max_shape([None]).chunk([50]).deflate(1),
        _ => builder,
    };
    builder.create(name)?.write(Selection::all(), &numbers(round))
}

/// The rounds of all: which is what they have.
fn content(file: &File) -> pumice::Result<Vec<u32>> {
    let names: Vec<String> = file.members()?.into_iter().map(|member| member.name).collect();
    let round = |name: &&str| -> pumice::Result<u32> {
        if *name != "attribute" && !names.iter().any(|known| known == name) {
            return Ok(MISSING);
        }
        if *name == "attribute" || name.contains("strings") {
            let found = match *name {
                "attribute" => file.attribute(name)?.read_strings()?,
                name => file.dataset(name)?.read_strings(..)?,
            };
            let known = (0..=2 * ROUNDS).find(|&round| found == texts(name, round));
            return Ok(known.unwrap_or_else(|| panic!("{name}: neither old nor new")));
        }
        let found = file.dataset(name)?.read::<u32>(Selection::all())?;
        let known = (0..=2 * ROUNDS).find(|&round| found == numbers(round));
        Ok(known.unwrap_or_else(|| panic!("{name}: neither old nor new")))
    };
    NAMES.iter().map(round).collect()
}

/// A recorded program that replaces all, some of it twice, in every commit; and what there was after each.
fn record(kind: &str, options: FileOptions) -> (Arc<RecordingStore>, Vec<(usize, Vec<u32>)>) {
    let store = Arc::new(RecordingStore::default());
    let file = options.clone().create_in(store.clone()).unwrap();
    NAMES.iter().for_each(|name| replace(&file, name, 0).unwrap());
    file.close().unwrap();
    let length = store.len().unwrap();
    store.sync().unwrap();
    let mut commits = vec![(store.count(), vec![0; NAMES.len()])];
    let mut file = options.clone().edit_in(store.clone()).unwrap();
    for round in 1..=ROUNDS {
        for (number, name) in NAMES.iter().enumerate() {
            for again in 0..=number % 2 {
                replace(&file, name, round + ROUNDS * (number % 2 - again) as u32).unwrap();
            }
        }
        file.flush().unwrap();
        commits.push((store.count(), content(&file).unwrap()));
        if round % 2 == 0 {
            file.close().unwrap();
            file = options.clone().edit_in(store.clone()).unwrap();
        }
    }
    file.close().unwrap();
    assert_eq!(commits.last().unwrap().1, vec![ROUNDS; NAMES.len()]);
    let now = store.len().unwrap();
    // As far as there is memory for what is to be there.
    assert!(now < length * 3 / 2 || kind == "little memory", "{kind}: {length} to {now}");
    (store, commits)
}

#[test]
fn a_program_may_end_while_it_replaces_things() {
    for (kind, options) in kinds() {
        // With little memory there are commits that nobody asked for.
        let all_or_nothing = kind != "little memory";
        let (store, commits) = record(kind, options);
        for count in commits[0].0..=store.count() {
            for torn in torn(count) {
                let at = format!("{kind}: after {count} of {} changes, {torn}", store.count());
                let copy = Arc::new(MemoryStore::default());
                store.play(count, torn, &*copy).unwrap();
                let found = File::options().open_in(copy).and_then(|file| content(&file));
                let found = found.unwrap_or_else(|error| panic!("{at}: {error}"));
                let done = commits.iter().rposition(|commit| commit.0 <= count).unwrap();
                let mut known = commits[done..commits.len().min(done + 2)].iter();
                assert!(
                    !all_or_nothing || known.any(|commit| commit.1 == found),
                    "{at}: {found:?}"
                );
            }
        }
    }
}

#[test]
fn power_may_fail_while_a_program_replaces_things() {
    for (kind, options) in kinds().into_iter().take(5) {
        let (store, commits) = record(kind, options.durability(Durability::Power));
        let mut draw = 1u64;
        for count in commits[0].0..=store.count() {
            for _ in 0..share(4) {
                draw = draw.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let bits = draw >> 20;
                let copy = Arc::new(MemoryStore::default());
                let kept = |number: usize| bits >> (number % 40) & 1 == 1;
                store.play_power_loss(count, kept, &*copy).unwrap();
                let at = format!("{kind}: after {count} of {} changes", store.count());
                let found = File::options().open_in(copy).and_then(|file| content(&file));
                let found = found.unwrap_or_else(|error| panic!("{at}: {error}"));
                let done = commits.iter().rposition(|commit| commit.0 <= count).unwrap();
                let mut known = commits[done..commits.len().min(done + 2)].iter();
                assert!(known.any(|commit| commit.1 == found), "{at}: {found:?}");
            }
        }
    }
}
