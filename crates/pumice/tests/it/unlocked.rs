//! Files that are read without a lock: all that is read is of one state, or nothing is.

use pumice::{Dataset, File, Locking};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// States of a file, each in a file of its own: chunks that move, datasets that come and go.
fn states(folder: &Path) -> Vec<PathBuf> {
    let path = folder.join("writer.h5");
    let file = File::create(&path).unwrap();
    let make = |name: &str| {
        let made = file.new_dataset::<i64>().shape([0]).max_shape([None]).chunk([16]).deflate(3);
        made.create(name).unwrap()
    };
    let (a, b) = (make("a"), make("b"));
    let notes = file.new_strings().shape([1]).create("notes").unwrap();
    (0..30i64)
        .map(|number| {
            for dataset in [&a, &b] {
                dataset.resize([40 + number as u64]).unwrap();
                let values: Vec<i64> = (0..40 + number).map(|cell| cell * number).collect();
                dataset.write(.., &values).unwrap();
                dataset.set_attribute("state", number).unwrap();
            }
            notes.write_strings(.., &[number.to_string()]).unwrap();
            if number % 5 == 1 {
                file.new_dataset::<u8>()
                    .shape([900])
                    .create("c")
                    .unwrap()
                    .write(.., &[1; 900])
                    .unwrap();
            } else if number % 5 == 4 {
                file.unlink("c").unwrap();
            }
            file.flush().unwrap();
            let state = folder.join(format!("{number}.h5"));
            std::fs::copy(&path, &state).unwrap();
            state
        })
        .collect()
}

/// Writes another state over a file, as a program would that knows nothing of locks.
fn show(state: &Path, shown: &Path) {
    std::fs::write(shown, std::fs::read(state).unwrap()).unwrap();
}

fn state_of(dataset: &Dataset) -> pumice::Result<i64> {
    let values = dataset.read::<i64>(..)?;
    let state = dataset.attribute("state")?.read::<i64>()?[0];
    assert_eq!(values.len() as i64, 40 + state, "{}", dataset.path());
    assert!(values.iter().zip(0..).all(|(&value, cell)| value == cell * state), "{values:?}");
    Ok(state)
}

#[test]
fn all_is_of_one_state_until_it_is_refreshed() {
    let folder = tempfile::tempdir().unwrap();
    let states = states(folder.path());
    let shown = folder.path().join("shown.h5");
    show(&states[0], &shown);
    let file = File::options().locking(Locking::Off).open(&shown).unwrap();
    let (a, b, notes) =
        (file.dataset("a").unwrap(), file.dataset("b").unwrap(), file.dataset("notes").unwrap());
    for (number, state) in states.iter().enumerate() {
        show(state, &shown);
        for dataset in [&a, &b] {
            // Chunks in memory may be read on: they are of the state before.
            match state_of(dataset) {
                Ok(found) => assert!(found < number.max(1) as i64),
                Err(error) => assert!(error.is_changed(), "{error}"),
            }
        }
        match number % 2 {
            0 => file.refresh().unwrap(),
            _ => b.refresh().unwrap(),
        }
        assert_eq!(state_of(&a).unwrap(), number as i64);
        assert_eq!(state_of(&b).unwrap(), number as i64);
        assert_eq!(notes.read_strings(..).unwrap(), [number.to_string()]);
    }
}

#[test]
fn threads_that_read_while_others_refresh_have_one_state_or_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let states = states(folder.path());
    let shown = folder.path().join("shown.h5");
    show(&states[0], &shown);
    let file = File::options().locking(Locking::Off).open(&shown).unwrap();
    let datasets = [file.dataset("a").unwrap(), file.dataset("b").unwrap()];
    let (done, reads) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for dataset in datasets.iter().cycle().take(4) {
            let (done, reads) = (&done, &reads);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    match dataset.read::<i64>(..) {
                        Ok(values) => {
                            let state = values.get(1).copied().unwrap_or(0);
                            let right =
                                values.iter().zip(0..).all(|(&value, cell)| value == cell * state);
                            assert!(right, "{values:?}");
                            reads.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(error) => assert!(error.is_changed(), "{error}"),
                    }
                }
            });
        }
        for state in &states {
            show(state, &shown);
            file.refresh().unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(reads.into_inner() > 0);
}

#[test]
fn what_is_gone_lets_a_refresh_fail_and_reads_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let states = states(folder.path());
    let shown = folder.path().join("shown.h5");
    show(&states[1], &shown);
    let file = File::options().locking(Locking::Off).open(&shown).unwrap();
    let (a, c) = (file.dataset("a").unwrap(), file.dataset("c").unwrap());
    show(&states[4], &shown);
    // What has come in its place may look like an object: then it is not this dataset.
    if file.refresh().is_err() {
        assert!(a.read::<i64>(..).is_err());
        drop(c);
        file.refresh().unwrap();
    }
    assert_eq!(state_of(&a).unwrap(), 4);
}
