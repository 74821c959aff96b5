//! Commits of files with chunks that a filter refuses: a program may end at any write of them, and any write may
//! fail. All else of the file is as of the last commit, or of the one under way, and what is stored of such chunks
//! stays.

use pumice::{File, FileOptions, FileSpaceStrategy, Filter, FilterError, FilterSpec, MemoryStore};
use pumice_store::Store;
use pumice_testkit::faults::{Fault, FaultyStore};
use pumice_testkit::moments::torn;
use pumice_testkit::recording::RecordingStore;
use std::sync::Arc;

const ROUNDS: i32 = 4;

/// Refuses chunks that have a negative value.
struct Choosy;

impl Filter for Choosy {
    fn id(&self) -> u16 {
        283
    }

    fn name(&self) -> &'static str {
        "choosy"
    }

    fn encode(&self, _: &[u32], input: &[u8], out: &mut Vec<u8>) -> Result<(), FilterError> {
        if input.chunks_exact(4).any(|value| value[3] >= 0x80) {
            return Err(FilterError::Encode { filter: "choosy", reason: "negative".into() });
        }
        out.clear();
        out.extend_from_slice(input);
        Ok(())
    }

    fn decode(
        &self,
        _: &[u32],
        input: &[u8],
        _: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        out.clear();
        out.extend_from_slice(input);
        Ok(())
    }
}

fn kinds() -> Vec<(&'static str, FileOptions)> {
    let paged = File::options().space_strategy(FileSpaceStrategy::Paged).page_size(512);
    vec![
        ("new format", File::options()),
        ("remembered space", File::options().persist_free_space(true)),
        ("pages", paged),
    ]
}

fn texts(round: i32) -> Vec<String> {
    (0..6).map(|at| format!("text {at} of round {round}")).collect()
}

fn make(file: &File) {
    let _ = pumice::register_filter(Box::new(Choosy));
    let choosy =
        FilterSpec { id: 283, optional: false, name: None, config: None, parameters: vec![] };
    let numbers = || file.new_dataset::<i32>().shape([30]).chunk([10]);
    numbers().filter(choosy).create("refused").unwrap().write(.., &[0; 30]).unwrap();
    numbers().sparse().create("sparse").unwrap().write(.., &[0; 30]).unwrap();
    // References, in chunks and in one piece, which wait for the commit.
    let strings = || file.new_strings().shape([6]);
    strings().chunk([3]).create("chunks").unwrap().write_strings(.., &texts(0)).unwrap();
    strings().create("strings").unwrap().write_strings(.., &texts(0)).unwrap();
}

/// All get the values of a round, and the middle chunk of one cannot be stored.
fn change(file: &File, round: i32) -> pumice::Result<()> {
    let refused = file.dataset("refused")?;
    refused.write(.., &[round; 30])?;
    refused.write_point(&[15], -1)?;
    file.dataset("sparse")?.write(.., &[round; 30])?;
    file.dataset("chunks")?.write_strings(.., &texts(round))?;
    file.dataset("strings")?.write_strings(.., &texts(round))?;
    let added = file.new_dataset::<i32>().shape([1]).create(&format!("added {round}"))?;
    added.write(.., &[round])
}

/// The round of which a stored file is, if it is of one.
fn round(file: &File) -> pumice::Result<Option<i32>> {
    let refused = file.dataset("refused")?.read::<i32>(..)?;
    let sparse = file.dataset("sparse")?.read::<i32>(..)?;
    let strings = [file.dataset("chunks")?, file.dataset("strings")?];
    let [one, other] = strings.map(|dataset| dataset.read_strings(..));
    let (one, other, members) = (one?, other?, file.members()?.len() as i32);
    let is = |round: &i32| {
        let stored = [[*round; 10], [0; 10], [*round; 10]].concat();
        let texts = texts(*round);
        refused == stored
            && sparse == [*round; 30]
            && one == texts
            && other == texts
            && members == 4 + round
    };
    Ok((0..=ROUNDS).find(is))
}

#[test]
fn a_program_may_end_at_any_write_of_a_commit_that_leaves_chunks_out() {
    for (kind, options) in kinds() {
        let store = Arc::new(RecordingStore::default());
        let file = options.clone().create_in(store.clone()).unwrap();
        make(&file);
        file.close().unwrap();
        store.sync().unwrap();
        let mut commits = vec![store.count()];
        let file = options.edit_in(store.clone()).unwrap();
        for round in 1..=ROUNDS {
            change(&file, round).unwrap();
            assert!(file.flush().unwrap_err().is_not_stored());
            commits.push(store.count());
        }
        assert!(file.close().unwrap_err().is_not_stored());
        for count in commits[0]..=store.count() {
            for torn in torn(count) {
                let at = format!("{kind}: after {count} of {} changes, {torn}", store.count());
                let copy = Arc::new(MemoryStore::default());
                store.play(count, torn, &*copy).unwrap();
                let found = File::options().open_in(copy).and_then(|file| round(&file));
                let found = found.unwrap_or_else(|error| panic!("{at}: {error}"));
                let done = commits.iter().rposition(|commit| *commit <= count).unwrap() as i32;
                assert!(found == Some(done) || found == Some(done + 1), "{at}: {found:?}");
            }
        }
    }
}

/// A file whose last commit leaves a chunk out, with a fault at a call. Says whether that came.
fn close_with(options: FileOptions, fault: Fault, call: usize) -> bool {
    let memory = Arc::new(MemoryStore::default());
    let file = options.clone().create_in(memory.clone()).unwrap();
    make(&file);
    file.close().unwrap();
    let store = Arc::new(FaultyStore::new(memory.clone()));
    let file = options.edit_in(store.clone()).unwrap();
    change(&file, 1).unwrap();
    store.fail_at(call, fault);
    let error = file.close().unwrap_err();
    let came = !store.is_waiting();
    store.heal();
    let when = format!("{fault:?} at call {call}: {error}");
    let file = File::options().open_bytes(memory.to_vec());
    let found =
        file.and_then(|file| round(&file)).unwrap_or_else(|other| panic!("{when}: {other}"));
    match error.is_not_stored() {
        true => assert_eq!(found, Some(1), "{when}"),
        false => assert!(came && matches!(found, Some(0 | 1)), "{when}: {found:?}"),
    }
    came
}

#[test]
fn a_store_that_fails_beside_a_refused_chunk_leaves_the_file_as_of_a_commit() {
    for (kind, options) in kinds() {
        for fault in [Fault::WriteError, Fault::ReadError, Fault::DiskFull] {
            let calls = (0..).take_while(|&call| close_with(options.clone(), fault, call)).count();
            assert!(calls > 0, "{kind}, {fault:?}");
        }
    }
}
