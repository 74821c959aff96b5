//! Calls from threads of the application: of rayon's pools, of std, of tokio.
//!
//! A thread of an application's pool that waits may be given other work of the application. If a call waited like
//! that, the other work could make a call that waits for the one below it on the same stack, and neither would
//! ever return. So every case here is watched, and fails if it does not end.

use crate::thorough::amount;
use pumice::{Context, Dataset, File, MemoryStore};
use rayon::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

/// Long enough for a machine on which everything else runs, too.
const PATIENCE: Duration = Duration::from_secs(300);

const ROWS: u64 = 400;
const COLUMNS: u64 = 64;
/// Rows of a chunk: more than a call has, so that calls share chunks.
const CHUNK: u64 = 64;
/// Rows of a call.
const EACH: u64 = 20;
const CALLS: u64 = ROWS / EACH;

/// How many threads caches have.
fn thread_counts() -> &'static [usize] {
    amount(&[1, 3], &[1, 2, 3, 4])
}

/// Runs something on a thread of its own, and fails if it does not end.
fn watched(what: &str, act: impl FnOnce() + Send + 'static) {
    let (tell, told) = channel();
    std::thread::spawn(move || tell.send(catch_unwind(AssertUnwindSafe(act))));
    match told.recv_timeout(PATIENCE) {
        Ok(Ok(())) => {}
        Ok(Err(panic)) => resume_unwind(panic),
        Err(_) => panic!("{what}: it does not return"),
    }
}

/// The application's work on a number.
type Task<'a> = &'a (dyn Fn(u64) + Sync);

/// One dataset of a kind, of a file with a cache of its own.
struct Case {
    name: String,
    dataset: Dataset,
    /// Whether cells can be undefined.
    sparse: bool,
    file: File,
}

/// Dense, sparse, with filters and without, contiguous, of strings; in caches of none, a few and all chunks; on so
/// many threads.
fn cases(threads: usize) -> Vec<Case> {
    let mut cases = Vec::new();
    for bytes in [0, 40_000, 16 << 20] {
        for kind in ["dense", "deflated", "sparse", "contiguous"] {
            let context = Context::builder().cache_bytes(bytes).threads(threads).build().unwrap();
            let store = Arc::new(MemoryStore::default());
            let file = File::options().context(&context).create_in(store).unwrap();
            let builder = file.new_dataset::<i32>().shape([ROWS, COLUMNS]);
            let chunked = |builder: pumice::DatasetBuilder| {
                builder.max_shape([None, None]).chunk([CHUNK, 16])
            };
            let builder = match kind {
                "dense" => chunked(builder),
                "deflated" => chunked(builder).deflate(1),
                "sparse" => chunked(builder).sparse(),
                _ => builder,
            };
            let dataset = builder.create("d").unwrap();
            let name = format!("{kind}, {bytes} bytes, {threads} threads");
            cases.push(Case { name, dataset, sparse: kind == "sparse", file });
        }
    }
    cases
}

impl Case {
    fn rows(n: u64) -> std::ops::Range<u64> {
        n * EACH..(n + 1) * EACH
    }

    fn values(n: u64) -> Vec<i32> {
        (0..(EACH * COLUMNS) as i32).map(|cell| cell + 10_000 * n as i32).collect()
    }

    /// What the `n`-th task of the application does: a write of its own rows, which share chunks with others',
    /// and a look at them.
    fn write(&self, n: u64) {
        self.dataset.write((Self::rows(n), ..), &Self::values(n)).unwrap();
        assert_eq!(self.dataset.read::<i32>((Self::rows(n), ..)).unwrap(), Self::values(n));
    }

    fn read(&self, n: u64) {
        assert_eq!(self.dataset.read::<i32>((Self::rows(n), ..)).unwrap(), Self::values(n));
        let (row, column) = (n * EACH, n % COLUMNS);
        let expected = Self::values(n)[column as usize];
        assert_eq!(self.dataset.read::<i32>((row, column)).unwrap(), [expected]);
    }

    /// A task of any kind: calls that wait for one another, and some that wait for all.
    fn mixed(&self, n: u64) {
        match n % 7 {
            0 => self.dataset.flush().unwrap(),
            1 => self.file.flush().unwrap(),
            2 if self.sparse => self.dataset.erase((Self::rows(n), 3..9)).unwrap(),
            2 => self.dataset.reset((Self::rows(n), 3..9)).unwrap(),
            3 if self.dataset.chunk().is_some() => {
                self.dataset.resize([ROWS + n, COLUMNS]).unwrap();
            }
            4 => drop(self.dataset.read::<i32>((..ROWS, ..)).unwrap()),
            5 => drop(self.dataset.prefetch((Self::rows(n), ..)).unwrap()),
            _ => self.dataset.write((Self::rows(n), ..), &Self::values(n)).unwrap(),
        }
    }

    /// Everything, by one way of running the tasks of an application.
    fn play(&self, run: &dyn Fn(Task<'_>)) {
        run(&|n| self.write(n));
        run(&|n| self.read(n));
        self.file.flush().unwrap();
        run(&|n| self.read(CALLS - 1 - n));
        run(&|n| self.mixed(n));
        run(&|n| self.write(n));
        self.dataset.flush().unwrap();
        run(&|n| self.read(n));
    }
}

/// Plays all cases on pools of each size, by each way of running tasks.
fn in_all_cases(way: &'static str, run: fn(&(dyn Fn(u64) + Sync))) {
    for &threads in thread_counts() {
        for case in cases(threads) {
            let what = format!("{way}: {}", case.name);
            watched(&what, move || case.play(&|task| run(task)));
        }
    }
}

#[test]
fn calls_from_the_global_pool_of_rayon_return() {
    in_all_cases("global pool", |task| (0..CALLS).into_par_iter().for_each(task));
}

#[test]
fn calls_from_a_pool_of_rayon_return() {
    for size in [1, 2, 5] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(size).build().unwrap();
        let pool = Arc::new(pool);
        for &threads in thread_counts() {
            for case in cases(threads) {
                let what = format!("pool of {size}: {}", case.name);
                let pool = Arc::clone(&pool);
                watched(&what, move || {
                    case.play(&|task| pool.install(|| (0..CALLS).into_par_iter().for_each(task)));
                    // Not from a thread of the pool, which is at work for the call's siblings.
                    case.play(&|task| {
                        pool.in_place_scope(|scope| {
                            (0..CALLS).for_each(|n| scope.spawn(move |_| task(n)));
                        });
                    });
                });
            }
        }
    }
}

#[test]
fn calls_from_nested_scopes_of_rayon_return() {
    in_all_cases("nested scopes", |task| {
        rayon::scope(|scope| {
            for outer in 0..4 {
                scope.spawn(move |scope| {
                    task(outer);
                    for inner in 1..CALLS / 4 {
                        scope.spawn(move |_| {
                            rayon::scope(|scope| scope.spawn(|_| task(outer + 4 * inner)));
                        });
                    }
                });
            }
        });
    });
}

#[test]
fn calls_from_joins_of_rayon_return() {
    fn halves(from: u64, to: u64, task: &(dyn Fn(u64) + Sync)) {
        match to - from {
            0 => {}
            1 => task(from),
            count => {
                let middle = from + count / 2;
                rayon::join(|| halves(from, middle, task), || halves(middle, to, task));
            }
        }
    }
    in_all_cases("join", |task| halves(0, CALLS, task));
}

#[test]
fn calls_from_threads_return() {
    in_all_cases("threads", |task| {
        std::thread::scope(|scope| (0..CALLS).for_each(|n| drop(scope.spawn(move || task(n)))));
    });
}

#[test]
fn calls_from_blocking_tasks_of_tokio_return() {
    for (workers, blocking) in [(1, 1), (2, 3), (2, 64)] {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(workers).max_blocking_threads(blocking);
        let runtime = Arc::new(builder.build().unwrap());
        for &threads in thread_counts() {
            for case in cases(threads) {
                let what = format!("tokio, {blocking} threads: {}", case.name);
                let (case, runtime) = (Arc::new(case), Arc::clone(&runtime));
                watched(&what, move || {
                    for act in [Case::write, Case::read, Case::mixed, Case::write, Case::read] {
                        let spawn = |n| {
                            let case = Arc::clone(&case);
                            runtime.spawn_blocking(move || act(&case, n))
                        };
                        let tasks: Vec<_> = (0..CALLS).map(spawn).collect();
                        for task in tasks {
                            runtime.block_on(task).unwrap();
                        }
                    }
                });
            }
        }
        drop(runtime);
    }
}
