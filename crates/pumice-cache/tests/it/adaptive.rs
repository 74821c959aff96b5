//! The cache's size follows what it is used for.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::toy::*;
use pumice_cache::*;

/// A clock that stands still and memory that does not change, until told; and how often the watcher
/// was about to look.
#[derive(Debug, Default)]
struct Still(Mutex<(Duration, Option<Memory>, u64)>);

impl Surroundings for Still {
    fn now(&self) -> Duration {
        self.0.lock().unwrap().0
    }

    fn memory(&self) -> Option<Memory> {
        self.0.lock().unwrap().1
    }

    fn patience(&self) -> Duration {
        self.0.lock().unwrap().2 += 1;
        Duration::from_millis(1)
    }
}

/// Chunks of 4 KiB and a little, of which `start` fit at first, 4 at least and 512 at most.
fn bench(start: u64) -> (Bench, Arc<Still>, u64) {
    let toy = Toy::new(4096);
    let chunk = toy.chunk_bytes() + ChunkCache::<Toy>::BOOKKEEPING;
    let still = Arc::new(Still::default());
    let config = Config::default()
        .resident_limit(start * chunk)
        .active_limit((start + 64) * chunk)
        .sizing(Sizing::Adaptive { minimum: 4 * chunk, maximum: 512 * chunk })
        .surroundings(Arc::clone(&still) as _);
    let bench = Bench::new(config, toy);
    bench.toy.store(0..2200, |key, _| key as u8);
    (bench, still, chunk)
}

fn read_in_a_loop(bench: &Bench, chunks: u64, rounds: u64) {
    for _ in 0..rounds {
        (0..chunks).for_each(|key| drop(bench.get(key).unwrap()));
    }
}

/// How many chunks fit.
fn size(bench: &Bench, chunk: u64) -> u64 {
    bench.cache.config().limits().0 / chunk
}

#[test]
fn it_grows_to_hold_a_loop_and_shrinks_when_less_is_used() {
    let (bench, _, chunk) = bench(32);
    read_in_a_loop(&bench, 100, 40);
    let grown = size(&bench, chunk);
    assert!((100..130).contains(&grown), "{grown}");
    let before = bench.stats().misses;
    read_in_a_loop(&bench, 100, 5);
    assert_eq!(bench.stats().misses, before, "all fit");
    assert_eq!(
        bench.cache.config().limits(),
        (bench.cache.config().limits().0, { bench.cache.config().limits().0 + 64 * chunk })
    );

    // Eight chunks and one that is new each time: hits alone are not looked at.
    for round in 0..2000 {
        (0..8).for_each(|key| drop(bench.get(key).unwrap()));
        bench.get(200 + round).unwrap();
    }
    let shrunk = size(&bench, chunk);
    assert!((32..43).contains(&shrunk), "{shrunk}");
    assert!(bench.stats().resident <= shrunk * chunk);
}

#[test]
fn it_shrinks_at_the_first_request_after_a_rest() {
    let (bench, still, chunk) = bench(64);
    bench.get_many(0..40).unwrap();
    still.0.lock().unwrap().0 = Duration::from_secs(61);
    bench.get_many([50, 51]).unwrap();
    assert_eq!(size(&bench, chunk), 16);
    assert!(bench.stats().resident <= 16 * chunk);
}

/// Waits for something that happens by itself.
fn until(so: impl Fn() -> bool) {
    let start = std::time::Instant::now();
    while !so() {
        assert!(start.elapsed() < Duration::from_secs(60), "it does not happen");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn it_shrinks_while_no_request_comes_if_it_has_threads() {
    let (bench, still, chunk) = bench(64);
    let threads = bench.cache.config().threads(2).unwrap();
    bench.cache.configure(threads.sizing(bench.cache.config().sizing_in_force())).unwrap();
    bench.get_many(0..40).unwrap();
    bench.put(41, 0, &[1]).unwrap();
    assert_eq!(size(&bench, chunk), 64);
    // The watcher has seen all uses.
    let looks = still.0.lock().unwrap().2;
    until(|| still.0.lock().unwrap().2 > looks + 1);
    still.0.lock().unwrap().0 = Duration::from_secs(61);
    until(|| size(&bench, chunk) == 16 && bench.stats().resident <= 16 * chunk);
    let limit = 10_000 * chunk;
    still.0.lock().unwrap().1 = Some(Memory { used: limit, limit });
    until(|| size(&bench, chunk) == 4 && bench.stats().resident <= 4 * chunk);
    assert_eq!(bench.get(41).unwrap()[..2], [1, 41]);
}

#[test]
fn who_has_only_hits_does_not_rest() {
    let (bench, still, chunk) = bench(64);
    let threads = bench.cache.config().threads(2).unwrap();
    bench.cache.configure(threads.sizing(bench.cache.config().sizing_in_force())).unwrap();
    bench.get_many(0..40).unwrap();
    for round in 1..20 {
        // By turns one chunk and many; each time the watcher has looked, too.
        let chunks = if round % 2 == 0 { 3..4 } else { 0..40 };
        bench.get_many(chunks).unwrap();
        let looks = still.0.lock().unwrap().2;
        until(|| still.0.lock().unwrap().2 > looks + 1);
        still.0.lock().unwrap().0 = Duration::from_secs(20 * round);
    }
    assert_eq!(size(&bench, chunk), 64);
}

#[test]
fn hits_alone_let_it_shrink_after_a_rest_and_when_memory_is_short() {
    let (rested, still, chunk) = bench(64);
    read_in_a_loop(&rested, 8, 1);
    still.0.lock().unwrap().0 = Duration::from_secs(61);
    read_in_a_loop(&rested, 8, 200);
    assert_eq!(size(&rested, chunk), 16);

    let (tight, still, chunk) = bench(64);
    read_in_a_loop(&tight, 8, 1);
    let limit = 10_000 * chunk;
    still.0.lock().unwrap().1 = Some(Memory { used: limit, limit });
    read_in_a_loop(&tight, 8, 1000);
    assert_eq!(size(&tight, chunk), 4);
    assert_eq!((rested.stats().misses, rested.stats().evictions), (8, 0));
    assert!(tight.stats().resident <= 4 * chunk);
}

/// Memory that somebody changes the settings in the middle of looking at.
struct Interrupted(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl std::fmt::Debug for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Interrupted")
    }
}

impl Surroundings for Interrupted {
    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn memory(&self) -> Option<Memory> {
        if let Some(interruption) = self.0.lock().unwrap().take() {
            interruption();
        }
        None
    }
}

#[test]
fn settings_made_while_a_size_is_chosen_stay() {
    let (bench, _, chunk) = bench(32);
    let interrupted = Arc::new(Interrupted(Mutex::new(None)));
    let config = bench.cache.config().surroundings(Arc::clone(&interrupted) as _);
    bench.cache.configure(config.clone().sizing(Sizing::Fixed)).unwrap();
    bench.cache.configure(config.clone()).unwrap();
    let (cache, wanted) = (bench.cache.clone(), config.sizing(Sizing::Fixed));
    let (begin, begun) = std::sync::mpsc::channel::<()>();
    let told = std::thread::spawn(move || {
        begun.recv().unwrap();
        cache.configure(wanted.resident_limit(8 * chunk)).unwrap();
    });
    *interrupted.0.lock().unwrap() = Some(Box::new(move || {
        begin.send(()).unwrap();
        std::thread::sleep(Duration::from_millis(50));
    }));
    read_in_a_loop(&bench, 100, 40);
    told.join().unwrap();
    assert_eq!(size(&bench, chunk), 8);
    read_in_a_loop(&bench, 100, 10);
    assert_eq!(size(&bench, chunk), 8);
}

#[test]
fn one_large_request_makes_it_grow_at_once() {
    let (bench, _, chunk) = bench(32);
    bench.get(0).unwrap();
    bench.get_many(0..90).unwrap();
    let grown = size(&bench, chunk);
    assert!((90..=120).contains(&grown), "{grown}");
    let before = bench.stats().misses;
    bench.get_many(0..90).unwrap();
    assert_eq!(bench.stats().misses, before);
}

#[test]
fn it_gives_memory_back_when_little_is_left() {
    let (bench, still, chunk) = bench(200);
    read_in_a_loop(&bench, 150, 1);
    let limit = 10_000 * chunk;
    still.0.lock().unwrap().1 = Some(Memory { used: limit * 9 / 10 + 1, limit });
    read_in_a_loop(&bench, 600, 2);
    assert_eq!(size(&bench, chunk), 4, "a tenth of the memory is more than the cache");
}

#[test]
fn fixed_and_off_stay_as_they_are() {
    for sizing in [Sizing::Fixed, Sizing::Off] {
        let (bench, still, chunk) = bench(32);
        bench.cache.configure(bench.cache.config().sizing(sizing)).unwrap();
        read_in_a_loop(&bench, 100, 40);
        still.0.lock().unwrap().0 = Duration::from_secs(1000);
        bench.get_many(0..90).unwrap();
        assert_eq!(size(&bench, chunk), 32);
        assert_eq!(bench.cache.miss_ratio_curve().is_empty(), sizing == Sizing::Off);
    }
}

#[test]
fn the_curve_tells_what_a_larger_cache_would_gain() {
    let (bench, _, chunk) = bench(32);
    bench.cache.configure(bench.cache.config().sizing(Sizing::Fixed)).unwrap();
    read_in_a_loop(&bench, 100, 20);
    let curve = bench.cache.miss_ratio_curve();
    let misses_at = |chunks: u64| {
        let fit = curve.iter().filter(|point| point.bytes <= chunks * chunk);
        fit.map(|point| point.miss_ratio).fold(1.0, f64::min)
    };
    assert!(misses_at(95) > 0.99 && misses_at(120) < 0.1, "{curve:?}");
    assert!(
        curve.windows(2).all(|pair| {
            pair[0].bytes < pair[1].bytes && pair[0].miss_ratio >= pair[1].miss_ratio
        })
    );
}
