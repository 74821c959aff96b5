//! Datasets that nobody holds are forgotten when there are many: while other threads use and flush the
//! file, and without forgetting what is not written yet.

use pumice::{File, MemoryStore};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

/// More than a file remembers of those that nobody holds.
const DATASETS: usize = 5000;
const OPENERS: usize = 2;
const ROUNDS: usize = 3;
/// Seconds, long enough for a machine that does something else, too.
const PATIENCE: usize = 120;

fn name(number: usize) -> String {
    format!("g{}/d{number}", number % 16)
}

/// The elements of a dataset after a round.
fn values(number: usize, round: usize) -> Vec<i32> {
    (0..6).map(|cell| (number * 100 + round * 10 + cell) as i32).collect()
}

/// Some in one piece, some in chunks with and without filters.
fn create(file: &File) {
    for group in 0..16 {
        file.create_group(&format!("g{group}")).unwrap();
    }
    for number in 0..DATASETS {
        let new = file.new_dataset::<i32>().shape([6]);
        let new = match number % 4 {
            0 => new,
            1 => new.chunk([4]),
            2 => new.max_shape([None]).chunk([4]).deflate(1),
            _ => new.max_shape([None]).chunk([6]).sparse(),
        };
        new.create(&name(number)).unwrap().write(.., &values(number, 0)).unwrap();
    }
}

/// Opens dataset after dataset, changes each and lets go of it.
fn write(file: &File) {
    for round in 1..=ROUNDS {
        for number in 0..DATASETS {
            let dataset = file.dataset(&name(number)).unwrap();
            assert_eq!(dataset.read::<i32>(..).unwrap(), values(number, round - 1), "{number}");
            dataset.write(.., &values(number, round)).unwrap();
        }
    }
}

/// Opens dataset after dataset, so that others are forgotten.
fn open(file: &File, done: &AtomicBool) {
    for number in (0..DATASETS).cycle() {
        drop(file.dataset(&name(number)).unwrap());
        if done.load(Ordering::Relaxed) {
            return;
        }
    }
}

/// Flushes again and again, each time with something that takes a while to write.
fn flush(file: &File, done: &AtomicBool) {
    let new = file.new_dataset::<i32>().shape([1 << 18]).chunk([1 << 12]).deflate(6);
    let large = new.create("large").unwrap();
    let mut values: Vec<i32> =
        (0..1 << 18).map(|cell: i32| cell.wrapping_mul(7919) % 10_007).collect();
    while !done.load(Ordering::Relaxed) {
        values.rotate_left(1);
        large.write(.., &values).unwrap();
        file.flush().unwrap();
    }
}

fn use_and_flush(store: Arc<MemoryStore>) {
    let file = File::options().create_in(store).unwrap();
    create(&file);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let writer = scope.spawn(|| write(&file));
        for _ in 0..OPENERS {
            scope.spawn(|| open(&file, &done));
        }
        scope.spawn(|| flush(&file, &done));
        let ended = writer.join();
        done.store(true, Ordering::Relaxed);
        ended.unwrap();
    });
    file.close().unwrap();
}

#[test]
fn many_datasets_are_used_and_forgotten_while_another_thread_flushes() {
    let store = Arc::new(MemoryStore::default());
    let (tell, told) = mpsc::channel();
    let worker = thread::spawn({
        let store = store.clone();
        move || {
            use_and_flush(store);
            let _ = tell.send(());
        }
    });
    // Threads that wait for each other would wait for ever. Seconds are counted one by one: those in which
    // the whole program stands still are none.
    let second = |_| told.recv_timeout(Duration::from_secs(1));
    let ended =
        (0..PATIENCE).map(second).find(|told| *told != Err(mpsc::RecvTimeoutError::Timeout));
    assert!(ended.is_some(), "threads that use and flush a file did not come to an end");
    worker.join().unwrap();
    let file = File::options().open_in(store).unwrap();
    for number in 0..DATASETS {
        let found = file.dataset(&name(number)).unwrap().read::<i32>(..).unwrap();
        assert_eq!(found, values(number, ROUNDS), "{number}");
    }
}
