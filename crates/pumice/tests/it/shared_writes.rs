//! Several threads that write to one sparse dataset by rules that look at what is defined.

use pumice::{Coo, Dataset, Duplicates, File};
use std::thread;

const THREADS: usize = 4;
const SIDE: u64 = 200;

fn dataset(file: &File) -> Dataset {
    file.new_dataset::<i32>().shape([SIDE, SIDE]).chunk([100, 100]).sparse().create("d").unwrap()
}

/// Cells that every thread writes, in all chunks.
fn cells(values: Vec<i32>) -> Coo<i32> {
    let count = values.len() as u64;
    let columns = vec![
        (0..count).map(|cell| cell % SIDE).collect(),
        (0..count).map(|cell| cell * 7 % SIDE).collect(),
    ];
    Coo { shape: vec![SIDE, SIDE], columns, values }
}

/// Runs the same on several threads; each has a handle of its own.
fn on_threads<R: Send>(file: &File, run: impl Fn(usize, &Dataset) -> R + Sync) -> Vec<R> {
    let run = &run;
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || run(thread, &file.dataset("d").unwrap())))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn sums_of_several_threads_lose_nothing() {
    let file = File::in_memory().unwrap();
    let sums = dataset(&file);
    let (rounds, ones) = (100, cells(vec![1; 200]));
    on_threads(&file, |_, sums| {
        for _ in 0..rounds {
            sums.write_coo([&ones], Duplicates::Sum).unwrap();
        }
    });
    let found = sums.read_defined::<i32>(..).unwrap();
    let all = (THREADS * rounds) as i32;
    assert_eq!((found.len(), found.values), (200, vec![all; 200]));
}

#[test]
fn floating_point_sums_of_several_threads_lose_nothing() {
    let file = File::in_memory().unwrap();
    let sums = file.new_dataset::<f32>().shape([SIDE, SIDE]).sparse().create("d").unwrap();
    let (rounds, ones) = (100, cells(vec![1; 200]));
    on_threads(&file, |_, sums| {
        for _ in 0..rounds {
            sums.write_coo([&ones], Duplicates::Sum).unwrap();
        }
    });
    let all = (THREADS * rounds) as f32;
    assert_eq!(sums.read_defined::<f32>(..).unwrap().values, vec![all; 200]);
}

#[test]
fn of_several_threads_the_first_one_counts_and_only_one_defines_a_cell() {
    let file = File::in_memory().unwrap();
    let cells_of = |thread: usize| cells(vec![thread as i32; 200]);
    let shared = dataset(&file);
    for _ in 0..30 {
        for rule in [Duplicates::First, Duplicates::Error] {
            shared.erase(..).unwrap();
            let done = on_threads(&file, |thread, shared| {
                shared.write_coo([&cells_of(thread)], rule).is_ok()
            });
            let accepted = if rule == Duplicates::First { THREADS } else { 1 };
            assert_eq!(done.iter().filter(|done| **done).count(), accepted, "{rule:?}");
            let found = shared.read_defined::<i32>(..).unwrap().values;
            assert_eq!(found, vec![found[0]; 200], "{rule:?}: all by one thread");
        }
    }
}
