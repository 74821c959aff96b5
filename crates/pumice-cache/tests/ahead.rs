//! Work ahead of requests: what is loaded and written before it must be.

#![cfg(not(shuttle))]

#[path = "support/toy.rs"]
mod toy;

use std::sync::{Arc, Mutex};

use pumice_cache::*;
use toy::*;

/// Keeps the tasks of idle threads until they are told to run.
#[derive(Default)]
struct Later(Mutex<Vec<Box<dyn FnOnce() + Send>>>);

impl Later {
    /// Runs what is waiting and returns how much it was.
    fn run_all(&self) -> usize {
        let tasks = std::mem::take(&mut *self.0.lock().unwrap());
        let count = tasks.len();
        tasks.into_iter().for_each(|task| task());
        count
    }
}

impl Executor for Later {
    fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        (0..count).for_each(task);
    }

    fn threads(&self) -> usize {
        2
    }

    fn spawn(&self, task: Box<dyn FnOnce() + Send>) -> bool {
        self.0.lock().unwrap().push(task);
        true
    }
}

fn bench(chunks: u64) -> (Bench, Arc<Later>) {
    let later = Arc::new(Later::default());
    let chunk = 512 + BOOK;
    let config = Config::default().resident_limit(chunks * chunk).active_limit(2 * chunks * chunk);
    let bench = Bench::new(config.executor(later.clone()), Toy::new(256));
    bench.toy.store(0..200, |key, _| key as u8);
    (bench, later)
}

#[test]
fn without_threads_chunks_asked_for_are_loaded_at_once() {
    let bench = Bench::with_limits(256, 20, 40);
    bench.toy.store(0..10, |key, _| key as u8);
    assert!(bench.cache.prefetch(&bench.dataset, 2..5));
    (0..10).for_each(|key| assert_eq!(bench.get(key).unwrap(), [key as u8; 256]));
    let stats = bench.stats();
    assert_eq!((stats.hits, stats.misses, stats.loads), (3, 7, 10));
    assert_eq!((stats.prefetched, stats.prefetch_useful, stats.prefetch_wasted), (3, 3, 0));
}

#[test]
fn reads_in_a_row_are_loaded_ahead() {
    for stride in [1, 3] {
        let (bench, later) = bench(100);
        let mut loaded = Vec::new();
        for step in 0..40 {
            let key = step * stride;
            assert_eq!(bench.get(key).unwrap(), [key as u8; 256]);
            if later.run_all() > 0 {
                loaded.push(step);
            }
        }
        let stats = bench.stats();
        assert_eq!(loaded[0], 2, "two steps alike tell the third");
        assert!(loaded.len() < 12, "many at a time: {loaded:?}");
        assert!(stats.misses <= 3, "{stats:?}");
        assert_eq!(stats.prefetch_useful + stats.misses, 40);
    }
}

#[test]
fn requests_of_several_chunks_in_a_row_are_loaded_ahead() {
    let (bench, later) = bench(100);
    for row in 0..20 {
        bench.get_many(row * 4..row * 4 + 4).unwrap();
        later.run_all();
    }
    assert_eq!(bench.stats().misses, 12);
}

#[test]
fn hints_say_what_is_loaded_ahead() {
    let (bench, later) = bench(100);
    bench.dataset.set_options(DatasetOptions::default().hint(Hint::Random));
    (0..10).for_each(|key| drop(bench.get(key).unwrap()));
    assert_eq!(later.run_all(), 0);
    bench.dataset.set_options(DatasetOptions::default().hint(Hint::Sequential));
    bench.get(50).unwrap();
    assert_eq!(later.run_all(), 1);
    bench.get(51).unwrap();
    assert_eq!((bench.stats().prefetch_useful, bench.stats().prefetched), (1, 8));
}

#[test]
fn what_the_program_says_it_will_read_is_loaded_ahead() {
    let (bench, later) = bench(100);
    let order: Vec<u64> = (0..60).map(|step| step * 37 % 101).collect();
    bench.cache.will_read(&bench.dataset, order.iter().copied());
    for key in order {
        later.run_all();
        assert_eq!(bench.get(key).unwrap(), [key as u8; 256]);
    }
    assert_eq!((bench.stats().misses, bench.stats().prefetch_useful), (0, 60));
}

#[test]
fn an_announcement_ends_when_it_is_used_up_replaced_or_closed() {
    type End = fn(&Bench);
    let used_up: End = |bench| [7, 3, 9, 3].iter().for_each(|key| drop(bench.get(*key).unwrap()));
    let replaced: End = |bench| {
        bench.cache.will_read(&bench.dataset, [300]);
        bench.get(300).unwrap();
    };
    let closed: End = |bench| {
        let layout = std::sync::Arc::clone(&bench.toy);
        let other = bench.cache.register(layout, DatasetOptions::default());
        bench.cache.will_read(&other, [1, 2, 3]);
        other.close().unwrap();
        bench.cache.will_read(&bench.dataset, []);
    };
    for end in [used_up, replaced, closed] {
        let (bench, _) = bench(16);
        bench.cache.will_read(&bench.dataset, [7, 3, 9, 3]);
        end(&bench);
        let before = bench.stats().evictions;
        bench.get_many(100..160).unwrap();
        assert_eq!(bench.stats().evictions, before, "a scan passes as if nothing had been said");
    }
    let (bench, _) = bench(16);
    bench.cache.will_read(&bench.dataset, 100..160);
    bench.get_many(100..160).unwrap();
    assert!(bench.stats().evictions > 0, "what is announced is kept");
}

#[test]
fn what_was_loaded_in_vain_is_counted() {
    let (bench, later) = bench(100);
    bench.cache.prefetch(&bench.dataset, [1, 2, 3, 500]);
    later.run_all();
    bench.get(2).unwrap();
    bench.cache.flush(&bench.dataset, true).unwrap();
    let stats = bench.stats();
    assert_eq!((stats.prefetched, stats.prefetch_useful, stats.prefetch_wasted), (3, 1, 2));
}

#[test]
fn loading_ahead_keeps_to_the_limits_and_what_is_ready_stays_until_it_is_used() {
    let (bench, later) = bench(16);
    for key in 0..60 {
        bench.get(key).unwrap();
        later.run_all();
        let stats = bench.stats();
        assert!(stats.resident + stats.bookkeeping <= 16 * (512 + BOOK));
    }
    let stats = bench.stats();
    assert!(stats.prefetch_useful >= 50 && stats.prefetch_wasted == 0, "{stats:?}");
    assert_eq!(stats.loads, 60 + stats.prefetched - stats.prefetch_useful);
}

#[test]
fn a_load_ahead_that_fails_is_forgotten() {
    let (bench, later) = bench(100);
    bench.toy.set_hook(|name, key| match (name, key) {
        ("decode", Some(2)) => Err(ToyError::Told(name)),
        _ => Ok(()),
    });
    bench.cache.prefetch(&bench.dataset, 0..4);
    later.run_all();
    bench.put(3, 0, &[7]).unwrap();
    assert_eq!(bench.get(2), Err(ToyError::Told("decode")));
    bench.toy.clear_hook();
    assert_eq!(bench.get(2).unwrap(), [2; 256]);
    assert_eq!(bench.stats().in_flight, 0);
}

#[test]
fn a_closed_dataset_is_not_loaded_ahead() {
    let (Bench { toy, cache, dataset }, later) = bench(100);
    cache.prefetch(&dataset, 0..4);
    dataset.close().unwrap();
    assert_eq!(later.run_all(), 1);
    assert_eq!((cache.stats().resident, cache.stats().prefetched), (0, 0));
    assert_eq!(Arc::strong_count(&toy), 1);
}

#[test]
fn many_dirty_chunks_are_written_early_and_again_when_they_change() {
    let (bench, later) = bench(40);
    bench.put_many(0..10, &[1; 256]).unwrap();
    assert_eq!(later.run_all(), 0, "few are dirty");
    let half = |key: u64| (key, Write::Put { start: 0, data: &[2; 128] });
    bench.cache.write(&bench.dataset, (10..16).map(half)).unwrap();
    bench.put_many(20..36, &[1; 256]).unwrap();
    assert_eq!(later.run_all(), 1);
    let stats = bench.stats();
    let early = stats.written_early;
    assert_eq!((stats.dirty + early, stats.write_backs), (32, early));
    assert!(stats.dirty >= 6 && stats.dirty * 512 <= 10 * (512 + BOOK), "{stats:?}");
    let written: Vec<_> =
        (0..36).filter(|key| bench.toy.stored(*key).unwrap()[0] == Some(1)).collect();
    assert!(!(10..16).any(|key| written.contains(&key)), "those may still be completed");
    let key = written.iter().copied().find(|key| *key != 1).unwrap();
    bench.put(key, 3, &[9]).unwrap();
    bench.flush().unwrap();
    assert_eq!(bench.toy.stored(key).unwrap()[3], Some(9));
    assert_eq!(bench.stats().write_backs, 32 + 1);
}

#[test]
fn a_pool_loads_ahead_by_itself() {
    let config = Config::default().threads(2).unwrap();
    let bench = Bench::new(config, Toy::new(256));
    bench.toy.store(0..200, |key, _| key as u8);
    for key in 0..200 {
        assert_eq!(bench.get(key).unwrap(), [key as u8; 256]);
    }
    let stats = bench.stats();
    assert_eq!(stats.hits + stats.misses, 200);
    assert_eq!(stats.loads, 200, "each is loaded once, by whomever");
}
