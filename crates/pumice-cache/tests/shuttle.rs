//! Models of what happens at the same time, checked under many schedules.
//!
//! `RUSTFLAGS="--cfg shuttle" CARGO_TARGET_DIR=target/shuttle cargo test -p pumice-cache --test shuttle`

#![cfg(shuttle)]

#[path = "shuttle/ahead.rs"]
mod ahead;
#[path = "shuttle/batches.rs"]
mod batches;
#[path = "shuttle/limits.rs"]
mod limits;
#[path = "shuttle/pool.rs"]
mod pool;
#[path = "support/toy.rs"]
mod toy;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use pumice_cache::*;
use shuttle::rand::{Rng, thread_rng};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::thread;
use toy::*;

const CELLS: usize = 64;
/// What a chunk takes, without and with what the cache needs to keep it.
const DATA: u64 = 2 * CELLS as u64;
const CHUNK: u64 = DATA + BOOK;

/// Checks a model under random schedules and under such with few but ill-timed switches.
fn check(model: impl Fn() + Send + Sync + 'static) {
    let model = Arc::new(model);
    let runs = |share: usize| {
        let all = std::env::var("SHUTTLE_RUNS").ok().and_then(|runs| runs.parse().ok());
        all.unwrap_or(2000) / share
    };
    let mut config = shuttle::Config::new();
    config.stack_size = 1 << 19;
    let again = Arc::clone(&model);
    shuttle::Runner::new(RandomScheduler::new(runs(1)), config.clone()).run(move || model());
    shuttle::Runner::new(PctScheduler::new(3, runs(2)), config).run(move || again());
}

/// A cache of so many chunks.
fn bench(resident: u64, active: u64) -> Bench {
    Bench::with_limits(CELLS, resident, active)
}

/// Runs the tasks of a request on threads of the model.
///
/// Here as in the models, whoever opens a scope does nothing else inside it: the last thread of a
/// scope wakes the one that opened it, even from a wait for something else.
struct Threads(usize);

impl Executor for Threads {
    fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some(index) =
                Some(next.fetch_add(1, Ordering::Relaxed)).filter(|i| *i < count)
            {
                task(index);
            }
        };
        thread::scope(|scope| {
            for _ in 0..self.0.min(count) {
                scope.spawn(work);
            }
        });
    }

    fn threads(&self) -> usize {
        self.0
    }

    fn spawn(&self, task: Box<dyn FnOnce() + Send>) -> bool {
        thread::spawn(task);
        true
    }
}

/// A cache of so many chunks with threads of its own.
fn busy_bench(resident: u64, active: u64) -> Bench {
    let config = Config::default().executor(Arc::new(Threads(2)));
    let config = config.resident_limit(resident * CHUNK).active_limit(active * CHUNK);
    Bench::new(config, Toy::new(CELLS))
}

#[test]
fn a_chunk_missed_by_many_is_decoded_once() {
    check(|| {
        let bench = bench(4, 16);
        bench.toy.store(0..2, |key, _| key as u8);
        let decoded = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&decoded);
        bench.toy.set_hook(move |name, _| {
            counted.fetch_add(usize::from(name == "decode"), Ordering::Relaxed);
            Ok(())
        });
        thread::scope(|scope| {
            scope.spawn(|| assert_eq!(bench.get(0).unwrap(), [0; CELLS]));
            scope.spawn(|| assert_eq!(bench.get_many([1, 0]).unwrap()[1], [0; CELLS]));
            scope.spawn(|| assert_eq!(bench.get_many([0, 1]).unwrap()[1], [1; CELLS]));
        });
        assert_eq!(decoded.load(Ordering::Relaxed), 2);
        // One who takes a chunk over may be overtaken before he has claimed it, and fetched again.
        assert!((2..=4).contains(&bench.stats().loads), "{}", bench.stats().loads);
    });
}

#[test]
fn a_load_that_fails_or_panics_leaves_the_chunk_to_others() {
    for panics in [false, true] {
        check(move || {
            let bench = bench(4, 16);
            bench.toy.store([0], |_, _| 1);
            let first = AtomicBool::new(true);
            bench.toy.set_hook(move |name, _| {
                if name != "decode" || !first.swap(false, Ordering::Relaxed) {
                    return Ok(());
                }
                if panics {
                    // Not `panic!`: the hook would report each of them.
                    std::panic::resume_unwind(Box::new("told to"));
                }
                Err(ToyError::Told("decode"))
            });
            let failures = AtomicUsize::new(0);
            thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| match bench.get(0) {
                        Ok(chunk) => assert_eq!(chunk, [1; CELLS]),
                        Err(_) => drop(failures.fetch_add(1, Ordering::Relaxed)),
                    });
                }
            });
            assert_eq!(failures.into_inner(), 1);
            assert_eq!(bench.get(0).unwrap(), [1; CELLS]);
        });
    }
}

#[test]
fn no_request_sees_half_a_write() {
    // Once with all chunks resident, once with room for one.
    for resident in [4, 1] {
        check(move || {
            let bench = bench(resident, 4 * resident);
            bench.put_many([0, 1], &[1; CELLS]).unwrap();
            thread::scope(|scope| {
                scope.spawn(|| bench.put_many([0, 1], &[2; CELLS]).unwrap());
                scope.spawn(|| bench.put_many([1, 0], &[3; CELLS]).unwrap());
                scope.spawn(|| {
                    let both = bench.get_many([0, 1]).unwrap();
                    assert_eq!(both[0], both[1]);
                });
                scope.spawn(|| {
                    // What one read has seen, the next one must see.
                    let first = bench.get(0).unwrap()[0];
                    let second = bench.get(1).unwrap()[0];
                    assert!(first == 1 || second != 1);
                });
            });
            let both = bench.get_many([0, 1]).unwrap();
            assert!(both[0] == both[1] && both[0][0] != 1);
        });
    }
}

#[test]
fn changes_survive_eviction_and_flushes() {
    check(|| {
        let bench = bench(1, 5);
        thread::scope(|scope| {
            for own in 0..3 {
                let bench = &bench;
                scope.spawn(move || {
                    bench.put(own, 0, &[1]).unwrap();
                    bench.put((own + 1) % 3, 1 + own as usize, &[2]).unwrap();
                    if own == 0 {
                        bench.cache.flush(&bench.dataset, true).unwrap();
                    }
                    assert_eq!(bench.get(own).unwrap()[0], 1);
                });
            }
        });
        assert!(bench.stats().resident <= DATA);
        bench.cache.flush_all(false).unwrap();
        for own in 0..3_u64 {
            let stored = bench.toy.stored(own).unwrap();
            let other = 1 + (own as usize + 2) % 3;
            assert_eq!((stored[0], stored[other]), (Some(1), Some(2)));
        }
    });
}

#[test]
fn a_chunk_that_leaves_while_a_change_waits_for_room_is_not_lost() {
    check(|| {
        let toy = Toy { growth: 2 * CHUNK, ..Toy::new(CELLS) };
        let config = Config::default().resident_limit(2 * CHUNK).active_limit(4 * CHUNK);
        let bench = Bench::new(config, toy);
        bench.put_many(0..2, &[1; CELLS]).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| bench.put(0, 1, &[2]).unwrap());
            scope.spawn(|| bench.erase(1, 1, 1).unwrap());
            scope.spawn(|| bench.put_many(2..4, &[3; CELLS]).unwrap());
        });
        assert_eq!(bench.get(0).unwrap()[..3], [1, 2, 1]);
        assert_eq!(bench.get(1).unwrap()[..3], [1, FILL, 1]);
        assert!(bench.stats().resident <= 2 * DATA);
    });
}

#[test]
fn sole_use_is_sole() {
    check(|| {
        let bench = bench(2, 8);
        bench.toy.store(0..2, |_, _| 1);
        bench.get(0).unwrap();
        let inside = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&inside);
        bench.toy.set_hook(move |name, key| {
            // A read of the others, from its beginning to its end: the request that is made by the
            // sole user is a write of chunk 1.
            if name == "scatter" && key == Some(0) {
                assert!(!seen.load(Ordering::SeqCst));
                thread::yield_now();
                assert!(!seen.load(Ordering::SeqCst));
            }
            Ok(())
        });
        thread::scope(|scope| {
            scope.spawn(|| bench.get(0).unwrap());
            scope.spawn(|| bench.get_many([1, 0]).unwrap());
            scope.spawn(|| bench.put(0, 1, &[5]).unwrap());
            scope.spawn(|| {
                let exclusive = bench.cache.exclusive(&bench.dataset);
                inside.store(true, Ordering::SeqCst);
                thread::yield_now();
                exclusive.discard(&0);
                exclusive.write([(1, Write::Put { start: 0, data: &[9] })]).unwrap();
                exclusive.flush(false).unwrap();
                inside.store(false, Ordering::SeqCst);
            });
        });
        assert_eq!(bench.get(1).unwrap()[..2], [9, 1]);
    });
}

#[test]
fn a_chunk_that_is_deleted_stays_deleted() {
    check(|| {
        // With LRU the chunk is the first to leave, and so is being written back when it is erased.
        let config = Config::default().policy(PolicyKind::Lru);
        let config = config.resident_limit(CHUNK).active_limit(8 * CHUNK);
        let bench = Bench::new(config, Toy::new(CELLS));
        bench.put(0, 0, &[1; CELLS]).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| bench.erase(0, 0, CELLS).unwrap());
            scope.spawn(|| bench.put(1, 0, &[2; CELLS]).unwrap());
        });
        bench.flush().unwrap();
        assert_eq!(bench.toy.stored_keys(), [1]);
        assert_eq!(bench.get(0).unwrap(), [FILL; CELLS]);
    });
}

#[test]
fn a_write_back_that_fails_loses_nothing() {
    check(|| {
        let bench = bench(1, 5);
        let failures = AtomicUsize::new(2);
        bench.toy.set_hook(move |name, _| {
            let less = |left: usize| left.checked_sub(1);
            let fails = matches!(name, "encode" | "put" | "insert")
                && failures.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok();
            if fails { Err(ToyError::Told(name)) } else { Ok(()) }
        });
        // The error of a write-back may reach either, and the change is made all the same, or it
        // was refused for lack of room.
        let persist = |key| while bench.put(key, 0, &[7]).is_err() {};
        thread::scope(|scope| {
            scope.spawn(|| persist(0));
            scope.spawn(|| persist(1));
            scope.spawn(|| persist(2));
        });
        while bench.cache.flush(&bench.dataset, true).is_err() {}
        for key in 0..3 {
            assert_eq!(bench.get(key).unwrap()[0], 7);
        }
    });
}

#[test]
fn values_and_defined_cells_of_a_chunk_are_loaded_side_by_side() {
    check(|| {
        let bench = bench(1, 6);
        bench.toy.store(0..2, |key, _| key as u8);
        thread::scope(|scope| {
            scope.spawn(|| assert_eq!(bench.defined(0).unwrap().len(), CELLS));
            scope.spawn(|| assert_eq!(bench.get(0).unwrap(), [0; CELLS]));
            scope.spawn(|| assert_eq!(bench.get_many([1, 0]).unwrap()[0], [1; CELLS]));
            scope.spawn(|| assert_eq!(bench.defined(1).unwrap().len(), CELLS));
        });
        assert!(bench.stats().resident <= DATA);
    });
}

#[test]
fn a_request_that_runs_on_several_threads_is_whole() {
    check(|| {
        let config = Config::default().executor(Arc::new(Threads(2)));
        let config = config.resident_limit(3 * CHUNK).active_limit(8 * CHUNK);
        let bench = Bench::new(config, Toy::new(CELLS));
        bench.toy.store(0..2, |_, _| 1);
        thread::scope(|scope| {
            scope.spawn(|| bench.put_many(0..4, &[2; CELLS]).unwrap());
            scope.spawn(|| {
                let chunks = bench.get_many(0..4).unwrap();
                let before = chunks[0][0] == 1 && chunks[3][0] == FILL;
                assert!(before || chunks == [[2; CELLS]; 4]);
            });
        });
        bench.flush().unwrap();
        assert_eq!(bench.get_many(0..4).unwrap(), [[2; CELLS]; 4]);
        assert!(bench.stats().peak <= 8 * CHUNK);
    });
}

#[test]
fn whatever_three_threads_do_each_finds_its_cells_as_it_left_them() {
    check(|| {
        let resident = thread_rng().gen_range(0..3);
        let bench = bench(resident, resident + 5);
        thread::scope(|scope| {
            for own in 0..3 {
                let bench = &bench;
                scope.spawn(move || play(bench, own));
            }
        });
        assert!(bench.stats().resident <= resident * DATA);
    });
}

#[test]
fn threads_whose_requests_go_direct_by_extents_find_their_cells_as_they_left_them() {
    check(|| {
        // Nothing fits, one chunk fits, or all requests pass.
        let (resident, unchunked) =
            [(0, false), (1, false), (2, true)][thread_rng().gen_range(0..3)];
        let config = Config::default().executor(Arc::new(Threads(2)));
        let config = config.resident_limit(resident * CHUNK).active_limit((resident + 1) * CHUNK);
        let toy = Toy { direct: true, extents: true, unchunked, ..Toy::new(CELLS) };
        let bench = Bench::new(config, toy);
        thread::scope(|scope| {
            for own in 0..2 {
                let bench = &bench;
                scope.spawn(move || play(bench, own));
            }
        });
    });
}

#[test]
fn requests_past_the_cache_are_whole_where_they_meet() {
    check(|| {
        let toy = Toy { unchunked: true, reaches: true, ..Toy::new(CELLS) };
        let bench = Bench::new(Config::default(), toy);
        bench.toy.store([0], |_, _| 0);
        // Two pieces each, which go one after another.
        let write = |value: u8| {
            let data = [value; 4];
            let parts = [0, 20].map(|start| (0, Write::Put { start, data: &data }));
            bench.cache.write(&bench.dataset, parts).unwrap();
        };
        let read = || {
            let mut found = [[0; 4]; 2];
            let parts = [0, 20].into_iter().zip(&mut found);
            let parts = parts.map(|(start, out)| (0, Read::Values { start, out }));
            bench.cache.read(&bench.dataset, parts).unwrap();
            found
        };
        thread::scope(|scope| {
            scope.spawn(|| write(1));
            scope.spawn(|| {
                write(2);
                let found = read();
                assert!(found == [[1; 4]; 2] || found == [[2; 4]; 2], "{found:?}");
            });
            scope.spawn(|| {
                let found = read();
                assert!(found[0] == found[1], "{found:?}");
                assert!(found[0].iter().all(|value| *value == found[0][0]), "{found:?}");
            });
            // Between the pieces, and in nobody's way.
            scope.spawn(|| {
                bench.put(0, 4, &[9; 16]).unwrap();
                let mut own = [0; 16];
                let read = Read::Values { start: 4, out: &mut own };
                bench.cache.read(&bench.dataset, [(0, read)]).unwrap();
                assert_eq!(own, [9; 16]);
            });
            scope.spawn(|| drop(bench.cache.exclusive(&bench.dataset)));
        });
        assert_eq!(bench.get(0).unwrap()[4..20], [9; 16]);
    });
}

/// Does a few things to cell `own` of two chunks.
fn play(bench: &Bench, own: usize) {
    let mut model = [FILL; 2];
    for round in 0..4 {
        let chunk = thread_rng().gen_range(0..2);
        match thread_rng().gen_range(0..6) {
            0 => {
                bench.put(chunk, own, &[round]).unwrap();
                model[chunk as usize] = round;
            }
            1 => {
                let parts = [0, 1].map(|key| (key, Write::Put { start: own, data: &[99] }));
                bench.cache.write(&bench.dataset, parts).unwrap();
                model = [99; 2];
            }
            2 => {
                bench.erase(chunk, own, 1).unwrap();
                model[chunk as usize] = FILL;
            }
            3 => assert_eq!(bench.get(chunk).unwrap()[own], model[chunk as usize]),
            4 => {
                let chunks = bench.get_many(0..2).unwrap();
                assert_eq!([chunks[0][own], chunks[1][own]], model);
            }
            _ => bench.cache.flush(&bench.dataset, round % 2 == 0).unwrap(),
        }
    }
    assert_eq!(bench.get(0).unwrap()[own], model[0]);
}

#[test]
fn a_stored_chunk_is_seen_whole_or_not_at_all() {
    check(|| {
        let bench = bench(1, 6);
        bench.put_many(0..2, &[1; CELLS]).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                let bytes = image(&[2; CELLS]);
                bench.cache.write_stored(&bench.dataset, &0, &bytes, None).unwrap();
            });
            scope.spawn(|| bench.put(1, 0, &[3]).unwrap());
            scope.spawn(|| {
                let (_, bytes) = bench.cache.read_stored(&bench.dataset, &0).unwrap().unwrap();
                assert!(bytes == image(&[1; CELLS]) || bytes == image(&[2; CELLS]));
            });
            scope.spawn(|| {
                let chunk = bench.get(0).unwrap();
                assert!(chunk == [1; CELLS] || chunk == [2; CELLS]);
            });
        });
        assert_eq!(bench.get(0).unwrap(), [2; CELLS]);
        bench.cache.flush(&bench.dataset, true).unwrap();
        assert_eq!(
            (bench.get(0).unwrap()[0], bench.get(1).unwrap()[..2].to_vec()),
            (2, vec![3, 1])
        );
    });
}

#[test]
fn writes_of_many_datasets_in_any_order_are_each_seen_whole() {
    check(|| {
        let bench = bench(2, 8);
        let (_, other) = bench.sibling();
        let (one, two) = (&bench.dataset, &other);
        let write = |first, second, value: u8| {
            let data = [value; CELLS];
            let put = || [(0, Write::Put { start: 0, data: &data })];
            bench.cache.write_many([(first, put()), (second, put())]).unwrap();
        };
        write(one, two, 1);
        thread::scope(|scope| {
            scope.spawn(|| write(one, two, 2));
            scope.spawn(|| write(two, one, 3));
            scope.spawn(|| bench.cache.flush_all(true).unwrap());
            scope.spawn(|| {
                let (mut a, mut b) = ([0; CELLS], [0; CELLS]);
                let read = |out| [(0, Read::Values { start: 0, out })];
                bench.cache.read_many([(two, read(&mut b[..])), (one, read(&mut a[..]))]).unwrap();
                assert_eq!(a, b);
            });
        });
    });
}

#[test]
fn chunks_that_are_held_are_not_written_back() {
    check(|| {
        let bench = bench(2, 8);
        let (_, other) = bench.sibling();
        bench.put_many(0..2, &[1; CELLS]).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                let exclusive = bench.cache.exclusive(&bench.dataset);
                let _room = exclusive.room(CHUNK).unwrap();
                let held = exclusive.hold(&[0]);
                let stored = bench.toy.stored(0);
                thread::yield_now();
                assert_eq!(bench.toy.stored(0), stored);
                held.discard(|key| *key == 0);
            });
            scope.spawn(|| {
                let data = [3; CELLS];
                let put = |key| (key, Write::Put { start: 0, data: &data });
                bench.cache.write(&other, (0..3).map(put)).unwrap();
            });
            scope.spawn(|| {
                let chunk = bench.get(0).unwrap();
                assert!(chunk == [1; CELLS] || chunk == [FILL; CELLS]);
            });
        });
        bench.flush().unwrap();
        assert_eq!(bench.get(1).unwrap(), [1; CELLS]);
    });
}

#[test]
fn a_chunk_that_came_to_be_is_not_taken_for_absent() {
    check(|| {
        let config = Config::default().resident_limit(1 << 20).active_limit(1 << 21);
        let bench = Bench::new(config, Toy::new(CELLS));
        thread::scope(|scope| {
            scope.spawn(|| bench.get_many(0..2).unwrap());
            scope.spawn(|| bench.cache.flush(&bench.dataset, true).unwrap());
            scope.spawn(|| {
                bench.put(0, 0, &[1]).unwrap();
                bench.cache.flush(&bench.dataset, true).unwrap();
                assert_eq!(bench.get_many(0..2).unwrap()[0][0], 1);
            });
        });
    });
}
