//! Models of the cache's own threads.

use super::*;
use std::sync::Mutex;

/// A cache of so many chunks with a pool of so many threads.
fn pool_bench(threads: usize, resident: u64, active: u64) -> Bench {
    let config = Config::default().executor(Arc::new(Pool::new(threads).unwrap()));
    let config = config.resident_limit(resident * CHUNK).active_limit(active * CHUNK);
    Bench::new(config, Toy::new(CELLS))
}

#[test]
fn a_caller_runs_its_own_tasks_only_and_each_task_runs_once() {
    for threads in 1..=3 {
        check(move || {
            let pool = Pool::new(threads).unwrap();
            let callers = Mutex::new(Vec::new());
            thread::scope(|scope| {
                for caller in 0..3 {
                    let (pool, callers) = (&pool, &callers);
                    scope.spawn(move || {
                        callers.lock().unwrap().push((thread::current().id(), caller));
                        let counts = [const { AtomicUsize::new(0) }; 4];
                        for round in 1..3 {
                            pool.run(counts.len(), &|index| {
                                counts[index].fetch_add(1, Ordering::Relaxed);
                                thread::yield_now();
                                let here = thread::current().id();
                                let known = callers.lock().unwrap();
                                let owner = known.iter().find(|(id, _)| *id == here);
                                assert!(owner.is_none_or(|(_, owner)| *owner == caller));
                            });
                            assert!(counts.iter().all(|n| n.load(Ordering::Relaxed) == round));
                        }
                    });
                }
            });
        });
    }
}

#[test]
fn what_is_lent_is_used_only_while_the_caller_waits() {
    check(|| {
        let pool = Arc::new(Pool::new(3).unwrap());
        // What a task finds when its caller has gone: the model's memory stays, so it can tell.
        let here = Arc::new(AtomicBool::new(false));
        thread::scope(|scope| {
            for panics in [false, true] {
                let (pool, here) = (&pool, Arc::new(AtomicBool::new(true)));
                scope.spawn(move || {
                    let task = |index: usize| {
                        assert!(here.load(Ordering::SeqCst));
                        thread::yield_now();
                        assert!(here.load(Ordering::SeqCst));
                        if panics && index == 1 {
                            std::panic::resume_unwind(Box::new("told to"));
                        }
                    };
                    let run = std::panic::AssertUnwindSafe(|| pool.run(3, &task));
                    assert_eq!(std::panic::catch_unwind(run).is_err(), panics);
                    here.store(false, Ordering::SeqCst);
                });
            }
            scope.spawn(|| {
                let told = Arc::clone(&here);
                if pool.spawn(Box::new(move || told.store(true, Ordering::SeqCst))) {
                    while !here.load(Ordering::SeqCst) {
                        thread::yield_now();
                    }
                }
            });
        });
    });
}

#[test]
fn calls_that_wait_for_each_other_return_on_any_number_of_threads() {
    for threads in 1..=3 {
        check(move || {
            // Nothing fits, one chunk fits, all fit.
            let resident = [0, 1, 4][thread_rng().gen_range(0..3)];
            let bench = pool_bench(threads, resident, resident + 3);
            bench.toy.store(0..2, |_, _| 1);
            thread::scope(|scope| {
                scope.spawn(|| bench.put_many(0..3, &[2; CELLS]).unwrap());
                scope.spawn(|| {
                    bench.get_many((0..3).rev()).unwrap();
                    bench.erase(2, 0, CELLS).unwrap();
                });
                scope.spawn(|| {
                    bench.cache.prefetch(&bench.dataset, 0..3);
                    bench.cache.flush(&bench.dataset, true).unwrap();
                });
                scope.spawn(|| {
                    let exclusive = bench.cache.exclusive(&bench.dataset);
                    exclusive.discard(&3);
                    exclusive.flush(false).unwrap();
                });
            });
            assert_eq!(bench.get_many(0..2).unwrap(), [[2; CELLS]; 2]);
        });
    }
}

#[test]
fn threads_on_one_pool_find_their_cells_as_they_left_them() {
    check(|| {
        let resident = thread_rng().gen_range(0..3);
        let bench = pool_bench(3, resident, resident + 5);
        thread::scope(|scope| {
            for own in 0..3 {
                let bench = &bench;
                scope.spawn(move || play(bench, own));
            }
        });
    });
}

#[test]
fn a_cache_that_is_dropped_beside_its_own_work_ends_its_threads() {
    check(|| {
        let bench = pool_bench(2, 4, 12);
        bench.toy.store(0..3, |_, _| 1);
        bench.cache.prefetch(&bench.dataset, 0..3);
        // The pool may now be let go of by its own thread.
        drop(bench);
    });
}
