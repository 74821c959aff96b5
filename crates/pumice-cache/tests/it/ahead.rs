//! Work ahead of requests: what is loaded and written before it must be.

use std::sync::{Arc, Mutex};

use crate::toy::*;
use pumice_cache::*;

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
    let (bench, later) = bench_of(chunks, Toy::new(256));
    bench.toy.store(0..200, |key, _| key as u8);
    (bench, later)
}

fn bench_of(chunks: u64, toy: Toy) -> (Bench, Arc<Later>) {
    let later = Arc::new(Later::default());
    let chunk = toy.chunk_bytes() + BOOK;
    let config = Config::default().resident_limit(chunks * chunk).active_limit(2 * chunks * chunk);
    (Bench::new(config.executor(later.clone()), toy), later)
}

/// Names chunks as they are encoded.
fn encodings(toy: &Toy) -> Arc<Mutex<Vec<u64>>> {
    let all = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&all);
    toy.set_hook(move |name, key| {
        if name == "encode" {
            seen.lock().unwrap().extend(key);
        }
        Ok(())
    });
    all
}

/// A cache with 24 dirty chunks of which nobody knows whether they are complete, all but the last of
/// them not used for long.
fn open_bench(chunks: u64) -> (Bench, Arc<Later>) {
    let (bench, later) = bench_of(chunks, Toy { open: true, ..Toy::new(4096) });
    (0..24).for_each(|key| bench.put(key, 0, &[key as u8; 4096]).unwrap());
    later.run_all();
    assert_eq!(bench.stats().encoded_early, 0, "all of them were just used");
    (0..40).for_each(|_| drop(bench.get(23).unwrap()));
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
fn cold_chunks_that_may_change_are_encoded_early_and_a_later_change_wins() {
    let (bench, later) = open_bench(40);
    let encoded = encodings(&bench.toy);
    let before = bench.stats();
    bench.put(23, 0, &[7]).unwrap();
    assert_eq!(later.run_all(), 1);
    let early = encoded.lock().unwrap().clone();
    let stats = bench.stats();
    assert!(!early.is_empty() && !early.contains(&23), "{early:?}");
    assert_eq!(stats.encoded_early, early.len() as u64);
    assert_eq!((stats.write_backs, stats.dirty), (0, 24), "nothing is written");
    assert!(bench.toy.stored_keys().is_empty());
    // What is encoded counts, and takes an eighth at most, but for the last.
    let limit = bench.cache.config().limits().0;
    let bytes = early.len() as u64 * bench.toy.chunk_bytes();
    assert_eq!(stats.resident, before.resident + bytes);
    assert!(bytes - bench.toy.chunk_bytes() < limit / 8, "{bytes} of {limit}");
    // One is changed again: what was encoded of it goes at once.
    bench.put(early[0], 3, &[99]).unwrap();
    assert_eq!(bench.stats().resident, stats.resident - bench.toy.chunk_bytes());
    bench.flush().unwrap();
    for key in 0..24 {
        let stored = bench.toy.stored(key).unwrap();
        let changed = if key == early[0] { 99 } else { key as u8 };
        assert_eq!((stored[3], stored[4]), (Some(changed), Some(key as u8)));
    }
    let mut all = encoded.lock().unwrap().clone();
    assert_eq!(all.len(), 25, "all once, and again the one that was changed");
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 24);
    let stats = bench.stats();
    assert_eq!(stats.resident, before.resident, "what is written is not kept twice");
    assert_eq!((stats.early_dropped, stats.early_used), (1, early.len() as u64 - 1));
}

#[test]
fn what_was_encoded_early_is_written_when_the_chunk_leaves() {
    let (bench, later) = open_bench(40);
    bench.put(23, 0, &[7]).unwrap();
    later.run_all();
    let early = bench.stats().encoded_early;
    assert!(early > 0);
    let encoded = encodings(&bench.toy);
    bench.cache.set_limits(0, 20 * (8192 + BOOK)).unwrap();
    assert_eq!(encoded.lock().unwrap().len() as u64, 24 - early);
    let stats = bench.stats();
    assert_eq!((stats.resident, stats.write_backs, stats.evictions), (0, 24, 24));
    (0..23).for_each(|key| assert_eq!(bench.get(key).unwrap(), [key as u8; 4096]));
}

#[test]
fn in_a_full_cache_cold_chunks_that_may_change_are_written_early() {
    let (bench, later) = open_bench(24);
    bench.put(23, 0, &[7]).unwrap();
    assert_eq!(later.run_all(), 1);
    let stats = bench.stats();
    assert!(stats.written_early > 0 && stats.encoded_early == 0, "{stats:?}");
    assert_eq!(stats.dirty + stats.written_early, 24);
    let written = bench.toy.stored_keys();
    assert_eq!(written.len() as u64, stats.written_early);
    bench.put(written[0], 3, &[99]).unwrap();
    bench.flush().unwrap();
    assert_eq!(bench.toy.stored(written[0]).unwrap()[3], Some(99));
}

#[test]
fn an_early_encoding_that_fails_is_tried_again_by_who_writes() {
    let (bench, later) = open_bench(40);
    bench.toy.set_hook(|name, _| match name {
        "encode" => Err(ToyError::Told(name)),
        _ => Ok(()),
    });
    bench.put(23, 0, &[7]).unwrap();
    later.run_all();
    let stats = bench.stats();
    assert_eq!((stats.encoded_early, stats.dirty, stats.in_flight), (0, 24, 0));
    assert_eq!(bench.flush(), Err(ToyError::Told("encode")));
    bench.toy.clear_hook();
    bench.flush().unwrap();
    assert_eq!(bench.toy.stored_keys().len(), 24);
}

#[test]
fn an_early_encoding_goes_with_a_chunk_that_ceases_to_be() {
    let (bench, later) = open_bench(40);
    bench.put(23, 0, &[7]).unwrap();
    later.run_all();
    assert!(bench.stats().encoded_early > 0);
    (0..12).for_each(|key| bench.erase(key, 0, 4096).unwrap());
    for key in 12..24 {
        let image = bench.toy.image(&[1; 4096]);
        bench.cache.write_stored(&bench.dataset, &key, &image, None).unwrap();
    }
    assert_eq!((bench.stats().resident, bench.stats().dirty), (0, 0));
    bench.flush().unwrap();
    assert!(bench.toy.stored_keys().into_iter().eq(12..24));
    assert_eq!(bench.get(12).unwrap(), [1; 4096]);
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
