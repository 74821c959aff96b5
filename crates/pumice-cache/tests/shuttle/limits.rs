//! Models of the limits: that they hold, and what happens when they change.

use super::*;

#[test]
fn what_is_held_stays_within_the_limit() {
    check(|| {
        let bench = bench(2, 6);
        bench.toy.store(0..3, |_, _| 1);
        thread::scope(|scope| {
            scope.spawn(|| bench.get_many(0..3).unwrap());
            scope.spawn(|| bench.put_many(2..4, &[2; CELLS]).unwrap());
            scope.spawn(|| {
                bench.put(1, 0, &[3]).unwrap();
                bench.flush().unwrap();
            });
        });
        let stats = bench.stats();
        assert!(stats.peak <= 6 * CHUNK, "{}", stats.peak);
        assert!(stats.resident <= 2 * DATA);
    });
}

#[test]
fn requests_that_together_need_more_than_there_is_take_turns() {
    check(|| {
        // Less than any one of them needs.
        let bench = bench(1, 1);
        bench.toy.store(0..2, |_, _| 1);
        thread::scope(|scope| {
            scope.spawn(|| bench.get_many(0..2).unwrap());
            scope.spawn(|| bench.put(0, 0, &[2]).unwrap());
            scope.spawn(|| bench.put(1, 0, &[3]).unwrap());
        });
        assert_eq!((bench.get(0).unwrap()[0], bench.get(1).unwrap()[0]), (2, 3));
        assert!(bench.stats().resident <= DATA);
    });
}

#[test]
fn what_is_held_stays_within_the_limit_beside_a_flush_of_all_that_could_leave() {
    check(|| {
        // Room to encode chunks, and none to load one: when all that is in memory is being saved,
        // nothing can leave, though at times nobody has room.
        let limit = 4 * CHUNK + CHUNK / 16 + 128;
        let config = Config::default().resident_limit(3 * CHUNK).active_limit(limit);
        let bench = Bench::new(config, Toy::new(CELLS));
        bench.toy.store(3..5, |_, _| 1);
        bench.put_many(0..3, &[2; CELLS]).unwrap();
        assert_eq!(bench.stats().dirty, 3);
        thread::scope(|scope| {
            scope.spawn(|| bench.flush().unwrap());
            scope.spawn(|| bench.get(3).unwrap());
            scope.spawn(|| bench.get(4).unwrap());
        });
        assert!(bench.stats().peak <= limit, "{} of {limit}", bench.stats().peak);
        assert_eq!(bench.get_many(0..4).unwrap()[1..], [[2; CELLS], [2; CELLS], [1; CELLS]]);
    });
}

#[test]
fn a_load_waits_for_a_flush_that_nobody_else_works_for_rather_than_exceed_the_limit() {
    check(|| {
        // Room for three chunks and for encoding some of them. The flush has taken all of them and has no
        // room yet: nothing can leave, and nobody holds room. If saves did not count as work, the load
        // would take the limit for one that its chunk alone is larger than.
        let limit = 4 * CHUNK - 1;
        let bench = bench(3, 10);
        bench.toy.store(3..4, |_, _| 1);
        (0..3).for_each(|key| bench.put(key, 0, &[2; CELLS]).unwrap());
        assert_eq!(bench.stats().dirty, 3);
        bench.cache.set_limits(3 * CHUNK, limit).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| bench.flush().unwrap());
            scope.spawn(|| assert_eq!(bench.get(3).unwrap(), [1; CELLS]));
        });
        assert!(bench.stats().peak <= limit, "{} of {limit}", bench.stats().peak);
        assert_eq!(bench.get_many(0..4).unwrap()[2..], [[2; CELLS], [1; CELLS]]);
    });
}

#[test]
fn settings_change_under_load() {
    check(|| {
        let bench = bench(3, 8);
        bench.toy.store(0..2, |_, _| 1);
        thread::scope(|scope| {
            scope.spawn(|| bench.put_many(1..4, &[2; CELLS]).unwrap());
            scope.spawn(|| {
                let config = bench.cache.config().policy(PolicyKind::Lru);
                bench
                    .cache
                    .configure(config.resident_limit(CHUNK).active_limit(5 * CHUNK))
                    .unwrap();
            });
            scope.spawn(|| bench.get_many(0..2).unwrap());
        });
        assert!(bench.stats().resident <= DATA);
        assert_eq!(bench.get_many(0..4).unwrap()[1..], [[2; CELLS]; 3]);
    });
}

/// A clock by which half a minute or more may have passed at any look.
#[derive(Debug)]
struct Restless(AtomicUsize);

impl Surroundings for Restless {
    fn now(&self) -> std::time::Duration {
        let step = thread_rng().gen_range(0..40);
        std::time::Duration::from_secs((self.0.fetch_add(step, Ordering::Relaxed) + step) as u64)
    }

    fn memory(&self) -> Option<Memory> {
        let limit = 1000 * CHUNK;
        let used = limit - thread_rng().gen_range(0..300) * CHUNK;
        thread_rng().gen_bool(0.5).then_some(Memory { used, limit })
    }
}

#[test]
fn the_size_is_chosen_anew_under_load() {
    check(|| {
        let sizing = Sizing::Adaptive { minimum: CHUNK, maximum: 6 * CHUNK };
        let config = Config::default().resident_limit(4 * CHUNK).active_limit(10 * CHUNK);
        let config = config.sizing(sizing).surroundings(Arc::new(Restless(AtomicUsize::new(0))));
        let bench = Bench::new(config, Toy::new(CELLS));
        bench.toy.store(0..3, |_, _| 1);
        thread::scope(|scope| {
            scope.spawn(|| bench.put_many(1..4, &[2; CELLS]).unwrap());
            scope.spawn(|| {
                bench.get_many(0..4).unwrap();
                assert_eq!(bench.get(0).unwrap(), [1; CELLS]);
            });
            scope.spawn(|| {
                let bytes = 2 * CHUNK;
                bench.cache.configure(bench.cache.config().resident_limit(bytes)).unwrap();
                bench.get(2).unwrap();
            });
        });
        assert_eq!(bench.cache.config().limits().0, 2 * CHUNK, "what was told last");
        assert!(bench.stats().resident <= 2 * CHUNK);
        assert_eq!(bench.get_many(0..4).unwrap()[1..], [[2; CELLS]; 3]);
    });
}
