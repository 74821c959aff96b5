//! Models of work ahead of requests: loads, writes and encodings by idle threads.

use super::*;

#[test]
fn what_is_loaded_ahead_is_never_older_than_what_was_written() {
    check(|| {
        let bench = busy_bench(4, 12);
        bench.toy.store(0..3, |_, _| 1);
        bench.cache.prefetch(&bench.dataset, 0..3);
        thread::scope(|scope| {
            scope.spawn(|| bench.put_many(0..2, &[2; CELLS]).unwrap());
            scope.spawn(|| bench.cache.flush(&bench.dataset, true).unwrap());
            scope.spawn(|| {
                bench.cache.prefetch(&bench.dataset, [1, 2]);
                let one = bench.get(1).unwrap();
                assert!(one == [1; CELLS] || one == [2; CELLS]);
            });
        });
        bench.cache.prefetch(&bench.dataset, 0..3);
        assert_eq!(bench.get_many(0..3).unwrap(), [[2; CELLS], [2; CELLS], [1; CELLS]]);
    });
}

#[test]
fn a_dataset_is_closed_while_its_chunks_are_loaded_ahead() {
    check(|| {
        let Bench { toy, cache, dataset } = busy_bench(4, 12);
        toy.store(0..3, |_, _| 1);
        cache.prefetch(&dataset, 0..2);
        cache.prefetch(&dataset, 1..3);
        dataset.close().unwrap();
        assert_eq!(cache.stats().resident, 0);
        let again = cache.register(Arc::clone(&toy), DatasetOptions::default());
        cache.prefetch(&again, 0..2);
        drop(again);
        assert_eq!(cache.stats().resident, 0);
    });
}

#[test]
fn a_failure_ahead_of_a_read_harms_nobody() {
    check(|| {
        let bench = busy_bench(4, 12);
        bench.toy.store(0..2, |_, _| 1);
        let first = AtomicBool::new(true);
        bench.toy.set_hook(move |name, _| {
            if name == "decode" && first.swap(false, Ordering::Relaxed) {
                std::panic::resume_unwind(Box::new("told to"));
            }
            Ok(())
        });
        bench.cache.prefetch(&bench.dataset, 0..2);
        let failed = bench.get(0).is_err();
        assert_eq!(bench.get_many(0..2).or_else(|_| bench.get_many(0..2)).unwrap()[1], [1; CELLS]);
        assert!(!failed || bench.get(0).unwrap() == [1; CELLS]);
    });
}

#[test]
fn what_is_written_early_and_changed_again_is_written_again() {
    // So large that bookkeeping does not matter: more than half of the limit is dirty.
    const LARGE: usize = 4096;
    check(|| {
        let limit = 4 * (2 * LARGE as u64 + BOOK);
        let config = Config::default().executor(Arc::new(Threads(2)));
        let config = config.resident_limit(limit).active_limit(3 * limit);
        let bench = Bench::new(config, Toy::new(LARGE));
        thread::scope(|scope| {
            scope.spawn(|| {
                bench.put_many(0..3, &[1; LARGE]).unwrap();
                bench.put(0, 0, &[2]).unwrap();
            });
            scope.spawn(|| {
                bench.put(4, 0, &[3; LARGE]).unwrap();
                bench.put(4, 1, &[4]).unwrap();
            });
        });
        bench.flush().unwrap();
        let stored = |key: u64| bench.toy.stored(key).unwrap()[..2].to_vec();
        assert_eq!((stored(0), stored(4)), (vec![Some(2), Some(1)], vec![Some(3), Some(4)]));
    });
}

/// So large that bookkeeping does not matter.
const LARGE: usize = 4096;

/// A cache of so many large chunks of which nobody knows whether they are complete.
fn open_bench(resident: u64, active: u64) -> Bench {
    let chunk = 2 * LARGE as u64 + BOOK;
    let config = Config::default().executor(Arc::new(Threads(2)));
    let config = config.resident_limit(resident * chunk).active_limit(active * chunk);
    Bench::new(config, Toy { open: true, ..Toy::new(LARGE) })
}

/// Writes three chunks, and uses the last until the others are cold.
fn let_cool(bench: &Bench, dataset: &Dataset<Toy>) {
    for key in 0..3 {
        let data = [1; LARGE];
        bench.cache.write(dataset, [(key, Write::Put { start: 0, data: &data })]).unwrap();
    }
    for _ in 0..8 {
        let mut out = [0; 1];
        bench.cache.read(dataset, [(2, Read::Values { start: 0, out: &mut out })]).unwrap();
    }
}

#[test]
fn what_is_encoded_early_and_changed_before_it_is_stored_is_stored_as_changed() {
    let encoded = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&encoded);
    check(move || {
        // Three chunks are more than half of the room, and there is some left for encodings.
        let bench = open_bench(5, 12);
        let_cool(&bench, &bench.dataset);
        thread::scope(|scope| {
            // What follows a write encodes chunks 0 and 1, if they are still cold.
            scope.spawn(|| bench.put(2, 0, &[2]).unwrap());
            scope.spawn(|| bench.put(0, 1, &[3]).unwrap());
            scope.spawn(|| bench.flush().unwrap());
            scope.spawn(|| assert_eq!(bench.get(1).unwrap()[..2], [1, 1]));
        });
        let stats = bench.stats();
        seen.fetch_add(stats.encoded_early as usize, Ordering::Relaxed);
        bench.flush().unwrap();
        let stored = |key: u64| bench.toy.stored(key).unwrap()[..2].to_vec();
        assert_eq!(stored(0), [Some(1), Some(3)]);
        assert_eq!((stored(1), stored(2)), (vec![Some(1); 2], vec![Some(2), Some(1)]));
    });
    assert!(encoded.load(Ordering::Relaxed) > 0, "the model is of something else");
}

#[test]
fn early_encodings_of_several_datasets_stay_within_the_limits() {
    let encoded = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&encoded);
    check(move || {
        let bench = open_bench(5, 8);
        let (toy, other) = bench.sibling();
        let_cool(&bench, &other);
        thread::scope(|scope| {
            scope.spawn(|| bench.put(0, 0, &[5; LARGE]).unwrap());
            scope.spawn(|| {
                let put = |value| [(0, Write::Put { start: 0, data: value })];
                bench.cache.write(&other, put(&[6])).unwrap();
                bench.cache.write(&other, put(&[7])).unwrap();
            });
            scope.spawn(|| bench.put(1, 0, &[8; LARGE]).unwrap());
        });
        let (chunk, stats) = (2 * LARGE as u64 + BOOK, bench.stats());
        seen.fetch_add(stats.encoded_early as usize, Ordering::Relaxed);
        assert!(stats.peak <= 8 * chunk, "{}", stats.peak);
        let peak = bench.toy.living.peak.load(Ordering::SeqCst);
        assert!(peak <= 8 * chunk, "counted by themselves: {peak}");
        bench.cache.flush_all(true).unwrap();
        assert_eq!(toy.stored(0).unwrap()[..2], [Some(7), Some(1)]);
        assert_eq!(bench.get(1).unwrap(), [8; LARGE]);
        assert_eq!(bench.stats().resident, 2 * LARGE as u64);
    });
    assert!(encoded.load(Ordering::Relaxed) > 0, "the model is of something else");
}
