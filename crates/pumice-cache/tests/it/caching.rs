//! What a cache does when all goes well: loads once, serves from memory, writes back, makes room.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::toy::*;
use pumice_cache::*;

fn number(key: u64, cell: usize) -> u8 {
    (key as usize * 7 + cell) as u8
}

fn numbers(bench: &Bench, key: u64) -> Vec<u8> {
    (0..bench.toy.cells).map(|cell| number(key, cell)).collect()
}

/// Counts calls of one callback.
fn count(bench: &Bench, callback: &'static str) -> Arc<AtomicU64> {
    let counter = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&counter);
    bench.toy.set_hook(move |name, _| {
        counted.fetch_add(u64::from(name == callback), Ordering::Relaxed);
        Ok(())
    });
    counter
}

#[test]
fn a_chunk_is_loaded_once_and_then_served_from_memory() {
    let bench = Bench::with_limits(16, 4, 8);
    bench.toy.store(0..3, number);
    for _ in 0..5 {
        assert_eq!(bench.get(1).unwrap(), numbers(&bench, 1));
    }
    let stats = bench.stats();
    assert_eq!((stats.hits, stats.misses, stats.loads), (4, 1, 1));
    assert_eq!((stats.bytes_fetched, stats.resident), (32, 32));
    assert_eq!(stats.hit_ratio(), 0.8);
    assert_eq!(bench.cache.dataset_stats(&bench.dataset).hits, 4);
}

#[test]
fn a_chunk_that_is_not_stored_reads_as_fill_values() {
    let bench = Bench::with_limits(16, 4, 8);
    assert_eq!(bench.get(9).unwrap(), [FILL; 16]);
    assert_eq!(bench.defined(9).unwrap(), []);
    assert_eq!(bench.stats().resident, 0);
}

#[test]
fn a_read_of_many_chunks_looks_them_up_at_once_and_fetches_neighbours_together() {
    let bench = Bench::with_limits(16, 100, 500);
    bench.toy.store((0..64).rev(), number);
    let lookups = count(&bench, "lookup");
    let chunks = bench.get_many(0..64).unwrap();
    for (key, chunk) in (0..).zip(chunks) {
        assert_eq!(chunk, numbers(&bench, key));
    }
    assert_eq!(lookups.load(Ordering::Relaxed), 1);
    bench.cache.flush(&bench.dataset, true).unwrap();
    let fetches = count(&bench, "fetch");
    bench.get_many(0..64).unwrap();
    assert_eq!(fetches.load(Ordering::Relaxed), 1);
}

#[test]
fn a_write_is_seen_at_once_and_stored_at_the_flush() {
    let bench = Bench::with_limits(4, 4, 8);
    bench.put(0, 1, &[5, 6]).unwrap();
    assert_eq!(bench.get(0).unwrap(), [FILL, 5, 6, FILL]);
    assert_eq!(bench.toy.stored(0), None);
    bench.flush().unwrap();
    assert_eq!(bench.toy.stored(0).unwrap(), [None, Some(5), Some(6), None]);
    let stats = bench.stats();
    assert_eq!((stats.write_backs, stats.bytes_written, stats.resident), (1, 8, 8));
    bench.flush().unwrap();
    assert_eq!(bench.stats().write_backs, 1, "clean chunks are not written again");
}

#[test]
fn a_write_to_a_stored_chunk_keeps_the_cells_it_does_not_name() {
    let bench = Bench::with_limits(4, 4, 8);
    bench.toy.store([3], |_, cell| cell as u8);
    bench.put(3, 2, &[9]).unwrap();
    bench.cache.flush(&bench.dataset, true).unwrap();
    assert_eq!(bench.get(3).unwrap(), [0, 1, 9, 3]);
}

#[test]
fn a_chunk_overwritten_whole_is_never_loaded() {
    let bench = Bench::with_limits(4, 4, 8);
    bench.toy.store([3], number);
    let lookups = count(&bench, "lookup");
    bench.put(3, 0, &[1, 2, 3, 4]).unwrap();
    assert_eq!(lookups.load(Ordering::Relaxed), 0);
    assert_eq!((bench.stats().loads, bench.get(3).unwrap()), (0, vec![1, 2, 3, 4]));
}

#[test]
fn a_chunk_in_which_nothing_is_left_leaves_cache_and_file() {
    let bench = Bench::with_limits(4, 4, 8);
    bench.toy.store([1, 2, 3], number);
    bench.get(1).unwrap();
    bench.erase(1, 0, 4).unwrap(); // resident
    bench.erase(2, 0, 4).unwrap(); // not resident
    bench.erase(7, 0, 4).unwrap(); // not stored
    bench.erase(3, 0, 2).unwrap(); // something is left
    assert_eq!(bench.toy.stored_keys(), [3]);
    assert_eq!((bench.get(1).unwrap(), bench.stats().resident), (vec![FILL; 4], 8));
    assert_eq!(bench.defined(3).unwrap(), [2, 3]);
    bench.put(5, 0, &[1]).unwrap();
    bench.erase(5, 0, 1).unwrap(); // never stored
    bench.flush().unwrap();
    assert_eq!(bench.toy.stored_keys(), [3]);
}

#[test]
fn defined_cells_are_fetched_without_values_which_come_when_asked_for() {
    let bench = Bench::with_limits(16, 4, 8);
    bench.toy.store([0], number);
    assert_eq!(bench.defined(0).unwrap().len(), 16);
    let stats = bench.stats();
    assert_eq!((stats.bytes_fetched, stats.resident), (16, 16));
    bench.defined(0).unwrap();
    assert_eq!(bench.stats().hits, 1);
    assert_eq!(bench.get(0).unwrap(), numbers(&bench, 0));
    assert_eq!((bench.stats().bytes_fetched, bench.stats().resident), (48, 32));
    bench.defined(0).unwrap();
    assert_eq!(bench.stats().hits, 2);
}

#[test]
fn a_write_to_a_chunk_without_values_loads_them_first() {
    let bench = Bench::with_limits(4, 4, 8);
    bench.toy.store([0, 1], |_, cell| cell as u8);
    bench.defined(0).unwrap();
    bench.put(0, 0, &[9]).unwrap();
    assert_eq!(bench.get(0).unwrap(), [9, 1, 2, 3]);
    bench.defined(1).unwrap();
    bench.put(1, 0, &[7; 4]).unwrap();
    assert_eq!(bench.get(1).unwrap(), [7; 4]);
}

#[test]
fn values_leave_before_defined_cells_where_those_were_asked_for() {
    let chunk = 8192;
    let resident = 3 * chunk + 2 * chunk / 2 + 5 * BOOK;
    let config = Config::default().resident_limit(resident).active_limit(2 * resident);
    let bench = Bench::new(config, Toy::new(4096));
    bench.toy.store(0..5, number);
    bench.defined(0).unwrap();
    bench.get_many(0..5).unwrap();
    let before = bench.stats();
    assert_eq!(before.resident, 3 * chunk + 2 * chunk / 2);
    (0..5).for_each(|key| drop(bench.defined(key).unwrap()));
    assert_eq!(bench.stats().hits - before.hits, 5);
    for key in 0..5 {
        assert_eq!(bench.get(key).unwrap(), numbers(&bench, key));
    }
}

#[test]
fn what_leaves_makes_room_to_write_more_at_once() {
    let bench = Bench::with_limits(256, 16, 64);
    let puts = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&puts);
    *bench.toy.hook.lock().unwrap() = Arc::new(move |name, _| {
        counted.fetch_add(u64::from(name == "put"), Ordering::SeqCst);
        Ok(())
    });
    bench.put_many(0..200, &[7; 256]).unwrap();
    bench.flush().unwrap();
    assert_eq!(bench.stats().write_backs, 200);
    let puts = puts.load(Ordering::SeqCst);
    assert!(puts < 40, "{puts}: one by one, as long as all the room is taken");
}

#[test]
fn a_read_of_more_than_fits_passes_until_it_is_known_to_come_back() {
    let bench = Bench::with_limits(16, 8, 16);
    bench.toy.store(0..100, number);
    let hot = 90..94;
    for _ in 0..3 {
        hot.clone().for_each(|key| drop(bench.get(key).unwrap()));
    }
    let before = bench.stats();
    bench.get_many(0..40).unwrap();
    let passed = bench.stats();
    assert_eq!((passed.evictions, passed.resident), (before.evictions, before.resident));
    hot.clone().for_each(|key| drop(bench.get(key).unwrap()));
    assert_eq!(bench.stats().misses, passed.misses, "what is in use has stayed");
    bench.get_many(0..40).unwrap();
    let again = bench.stats();
    assert!(again.resident > passed.resident, "now it is known to come back");
    bench.get_many(0..40).unwrap();
    assert!(bench.stats().hits > again.hits);
}

#[test]
fn chunks_loaded_ahead_leave_most_of_what_is_in_use() {
    let bench = Bench::with_limits(16, 16, 32);
    bench.toy.store(0..100, number);
    let hot = 50..62;
    for _ in 0..3 {
        hot.clone().for_each(|key| drop(bench.get(key).unwrap()));
    }
    let loads = bench.stats().loads;
    assert!(bench.cache.prefetch(&bench.dataset, 0..40));
    let before = bench.stats();
    assert!(before.loads > loads, "some are loaded");
    hot.clone().for_each(|key| drop(bench.get(key).unwrap()));
    let lost = bench.stats().misses - before.misses;
    assert!(lost <= 4, "a quarter of the cache is for what is loaded ahead, {lost} chunks left");
}

#[test]
fn unused_memory_is_given_back_before_chunks_leave() {
    let toy = Toy { slack: 32, ..Toy::new(16) };
    let bench = Bench::new(
        Config::default().resident_limit(128 + 4 * BOOK).active_limit(1024 + 9 * BOOK),
        toy,
    );
    bench.toy.store(0..4, number);
    bench.get_many(0..4).unwrap();
    let stats = bench.stats();
    assert_eq!((stats.resident, stats.evictions), (128, 0));
}

#[test]
fn idle_the_cache_keeps_to_its_resident_limit() {
    let bench = Bench::with_limits(16, 3, 6);
    bench.toy.store(0..20, number);
    for key in 0..20 {
        bench.get(key).unwrap();
        assert!(bench.stats().resident <= 3 * 32);
    }
    bench.get_many(0..20).unwrap();
    bench.put_many(0..20, &[1; 16]).unwrap();
    let stats = bench.stats();
    assert!(stats.resident <= 3 * 32);
    assert_eq!(bench.toy.stored_keys().len(), 20);
    for key in 0..20 {
        assert_eq!(bench.get(key).unwrap(), [1; 16]);
    }
}

#[test]
fn all_that_is_held_stays_within_the_active_limit() {
    for threads in [1, 3] {
        let executor = Arc::new(Pool::new(threads).unwrap());
        // Six chunks: what is loaded, being written and resident at once must share them.
        let (resident, active) = (3 * (512 + BOOK), 6 * (512 + BOOK));
        let config = Config::default().resident_limit(resident).active_limit(active);
        let bench = Bench::new(config.executor(executor), Toy::new(256));
        bench.toy.store(0..100, number);
        bench.get_many(0..50).unwrap();
        bench.put_many(20..80, &[3; 256]).unwrap();
        let parts = (0..100).map(|key| (key, Write::Put { start: 7, data: &[8] }));
        bench.cache.write(&bench.dataset, parts).unwrap();
        bench.get_many(0..100).unwrap();
        bench.flush().unwrap();
        let stats = bench.stats();
        assert!(stats.peak <= active, "{} of {active} on {threads} threads", stats.peak);
        assert!(stats.resident <= resident);
        for key in 0..100 {
            let chunk = bench.get(key).unwrap();
            let expected = if (20..80).contains(&key) { 3 } else { number(key, 8) };
            assert_eq!((chunk[7], chunk[8]), (8, expected));
        }
    }
}

#[test]
fn a_chunk_larger_than_the_cache_is_handled_and_not_kept() {
    let bench = Bench::new(Config::default().resident_limit(16).active_limit(16), Toy::new(64));
    bench.toy.store([0], number);
    assert_eq!(bench.get(0).unwrap(), numbers(&bench, 0));
    bench.put(0, 1, &[77]).unwrap();
    assert_eq!(bench.toy.stored(0).unwrap()[1], Some(77), "written at once");
    assert_eq!(bench.get(0).unwrap()[..3], [0, 77, 2]);
    assert_eq!(bench.stats().resident, 0);
    bench.put(1, 1, &[77]).unwrap();
    bench.erase(1, 1, 1).unwrap();
    assert_eq!(bench.toy.stored_keys(), [0]);
}

#[test]
fn what_does_not_stay_of_a_part_is_stored_in_one_call() {
    let config = Config::default().resident_limit(16).active_limit(1 << 20);
    let executor = Arc::new(Pool::new(3).unwrap());
    let bench = Bench::new(config.executor(executor), Toy::new(64));
    let calls = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&calls);
    bench.toy.set_hook(move |name, _| {
        counter.fetch_add(u64::from(name == "put"), Ordering::Relaxed);
        Ok(())
    });
    let write = bench.cache.begin_write(&bench.dataset, 0..40).unwrap();
    let parts =
        |keys: std::ops::Range<u64>| keys.map(|key| (key, Write::Put { start: 1, data: &[77] }));
    write.write_alone(parts(0..20)).unwrap();
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    write.write_alone(parts(20..40)).unwrap();
    drop(write);
    assert_eq!(calls.load(Ordering::Relaxed), 2);
    assert!((0..40).all(|key| bench.toy.stored(key).unwrap()[1] == Some(77)));
    assert_eq!(bench.stats().resident, 0);
}

#[test]
fn a_chunk_larger_than_the_cache_goes_direct_where_the_layout_can() {
    let toy = Toy { direct: true, ..Toy::new(64) };
    let bench = Bench::new(Config::default().resident_limit(16).active_limit(16), toy);
    bench.toy.store([0], number);
    bench.put(0, 1, &[77]).unwrap();
    assert_eq!(bench.get(0).unwrap()[..3], [0, 77, 2]);
    assert_eq!((bench.stats().direct, bench.stats().loads), (2, 0));
}

#[test]
fn a_resident_chunk_without_room_to_grow_is_changed_all_the_same() {
    // Two dirty chunks that were never stored; a change of one claims to need more than there is,
    // so that the other leaves, or even itself.
    for growth in [512, 2048] {
        let toy = Toy { growth, ..Toy::new(256) };
        let bench = Bench::new(
            Config::default().resident_limit(1024 + 2 * BOOK).active_limit(2048 + 2 * BOOK),
            toy,
        );
        bench.put_many([0, 1], &[1; 256]).unwrap();
        for key in [0, 1, 0] {
            bench.put(key, 3, &[2]).unwrap();
            bench.erase(key, 200, 1).unwrap();
        }
        for key in [0, 1] {
            let chunk = bench.get(key).unwrap();
            assert_eq!((chunk[2], chunk[3], chunk[4], chunk[200]), (1, 2, 1, FILL));
        }
        bench.erase(0, 0, 256).unwrap();
        assert_eq!(bench.get(0).unwrap(), [FILL; 256]);
        assert!(bench.stats().resident <= 1024);
    }
}

#[test]
fn a_direct_write_does_not_leave_old_defined_cells_behind() {
    let toy = Toy { direct: true, ..Toy::new(8) };
    let bench = Bench::new(Config::default(), toy);
    bench.toy.store([0], number);
    bench.erase(0, 0, 4).unwrap();
    bench.cache.flush(&bench.dataset, true).unwrap();
    let options = DatasetOptions::default().direct(true);
    let dataset = bench.cache.register(Arc::clone(&bench.toy), options);
    for expected in [4, 5] {
        let mut cells = Vec::new();
        bench.cache.read(&dataset, [(0, Read::Defined(&mut cells))]).unwrap();
        assert_eq!(cells.len(), expected);
        bench.cache.write(&dataset, [(0, Write::Put { start: 1, data: &[1] })]).unwrap();
    }
}

#[test]
fn data_that_are_not_in_chunks_go_past_the_cache() {
    let toy = Toy { unchunked: true, ..Toy::new(8) };
    let bench = Bench::new(Config::default(), toy);
    bench.put_many(0..5, &[4; 8]).unwrap();
    assert_eq!(bench.toy.stored_keys().len(), 5);
    assert_eq!(bench.get_many(0..6).unwrap()[4..], [[4; 8], [FILL; 8]]);
    let stats = bench.stats();
    assert_eq!((stats.direct, stats.resident, stats.loads), (11, 0, 0));
}

#[test]
fn a_dataset_that_wishes_so_goes_direct() {
    let bench = Bench::new(Config::default(), Toy { direct: true, ..Toy::new(8) });
    let options = DatasetOptions::default().direct(true);
    let dataset = bench.cache.register(Arc::clone(&bench.toy), options);
    let put = |value: &[u8; 8]| {
        let whole = Write::Put { start: 0, data: value };
        bench.cache.write(&dataset, [(0, whole)]).unwrap();
        assert_eq!(bench.toy.stored(0).unwrap(), value.map(Some));
        let stats = bench.cache.dataset_stats(&dataset);
        (stats.direct, stats.write_backs, stats.resident)
    };
    assert_eq!(put(&[1; 8]), (0, 1, 0), "there is no place yet to which it could go");
    assert_eq!(put(&[2; 8]), (1, 1, 0));
}

#[test]
fn datasets_share_the_cache_and_are_told_apart() {
    let bench = Bench::with_limits(8, 4, 8);
    let other = Arc::new(Toy::new(8));
    other.store([0], |_, _| 1);
    bench.toy.store([0], |_, _| 2);
    let dataset = bench.cache.register(Arc::clone(&other), DatasetOptions::default());
    let mut out = [0; 8];
    bench.cache.read(&dataset, [(0, Read::Values { start: 0, out: &mut out })]).unwrap();
    assert_eq!((out, bench.get(0).unwrap()), ([1; 8], vec![2; 8]));
    assert_eq!(bench.stats().resident, 32);
    drop(dataset);
    assert_eq!(
        (bench.stats().resident, bench.stats().loads),
        (16, 2),
        "what was done still counts"
    );
}

#[test]
fn a_minimum_keeps_a_datasets_chunks_from_being_pushed_out() {
    let bench = Bench::with_limits(8, 4, 8);
    let other = Arc::new(Toy::new(8));
    other.store([0], |_, _| 1);
    let dataset = bench.cache.register(Arc::clone(&other), DatasetOptions::default().minimum(16));
    let mut out = [0; 8];
    bench.cache.read(&dataset, [(0, Read::Values { start: 0, out: &mut out })]).unwrap();
    bench.toy.store(0..50, number);
    for _ in 0..3 {
        bench.get_many(0..50).unwrap();
    }
    assert_eq!(bench.cache.dataset_stats(&dataset).resident, 16);
    bench.cache.set_limits(0, 0).unwrap();
    assert_eq!(bench.stats().resident, 0, "the cache's limit comes first");
}

#[test]
fn a_scan_does_not_push_out_what_is_hot() {
    let bench = Bench::with_limits(64, 100, 110);
    bench.toy.store(0..2000, number);
    for _ in 0..3 {
        bench.get_many(0..50).unwrap();
    }
    bench.get_many(50..2000).unwrap();
    let before = bench.stats().hits;
    bench.get_many(0..50).unwrap();
    assert_eq!(bench.stats().hits - before, 50);
}

#[test]
fn a_loop_longer_than_the_cache_hits_with_lirs_and_not_with_lru() {
    let hits = |policy| {
        let config =
            Config::default().resident_limit(256 * (32 + BOOK)).active_limit(260 * (32 + BOOK));
        let bench = Bench::new(config.policy(policy), Toy::new(16));
        bench.toy.store(0..400, number);
        for _ in 0..20 {
            (0..400).for_each(|key| drop(bench.get(key).unwrap()));
        }
        (bench.stats().hit_ratio() * 100.0) as u32
    };
    assert_eq!(hits(PolicyKind::Lru), 0);
    assert!(hits(PolicyKind::Lirs) >= 55);
}

#[test]
fn limits_can_be_changed_while_chunks_are_dirty() {
    let bench = Bench::with_limits(256, 10, 20);
    bench.put_many(0..10, &[6; 256]).unwrap();
    assert_eq!(bench.toy.stored_keys().len(), 0);
    let (resident, active) = (2 * (512 + BOOK), 4 * (512 + BOOK));
    bench.cache.set_limits(resident, active).unwrap();
    assert_eq!((bench.stats().resident, bench.toy.stored_keys().len()), (1024, 8));
    assert_eq!(bench.cache.config().limits(), (resident, active));
}

#[test]
fn closing_writes_back_and_dropping_too() {
    let Bench { toy, cache, dataset } = Bench::with_limits(4, 4, 8);
    cache.write(&dataset, [(0, Write::Put { start: 0, data: &[1] })]).unwrap();
    dataset.close().unwrap();
    assert_eq!(toy.stored(0).unwrap()[0], Some(1));
    let dataset = cache.register(Arc::clone(&toy), DatasetOptions::default());
    cache.write(&dataset, [(0, Write::Put { start: 1, data: &[2] })]).unwrap();
    drop(dataset);
    assert_eq!(toy.stored(0).unwrap()[..2], [Some(1), Some(2)]);
    assert_eq!(cache.stats().resident, 0);
    assert_eq!(Arc::strong_count(&toy), 1, "nothing holds on to a closed dataset's layout");
}

#[test]
fn flushing_all_reaches_every_dataset() {
    let bench = Bench::with_limits(4, 8, 16);
    let other = Arc::new(Toy::new(4));
    let dataset = bench.cache.register(Arc::clone(&other), DatasetOptions::default());
    bench.put(0, 0, &[1]).unwrap();
    bench.cache.write(&dataset, [(5, Write::Put { start: 0, data: &[2] })]).unwrap();
    bench.cache.flush_all(false).unwrap();
    assert_eq!((bench.toy.stored_keys(), other.stored_keys()), (vec![0], vec![5]));
}

#[test]
fn sole_use_lists_drops_reads_and_writes_chunks() {
    let bench = Bench::with_limits(4, 8, 100);
    bench.toy.store(0..3, number);
    bench.put_many([0, 2, 1], &[9; 4]).unwrap();
    let exclusive = bench.cache.exclusive(&bench.dataset);
    assert_eq!(exclusive.resident_keys(), [0, 1, 2]);
    assert!(exclusive.discard(&1) && !exclusive.discard(&1));
    exclusive.write([(2, Write::Erase { start: 0, len: 2 })]).unwrap();
    let mut out = [0; 4];
    exclusive.read([(2, Read::Values { start: 0, out: &mut out })]).unwrap();
    assert_eq!(out, [FILL, FILL, 9, 9]);
    exclusive.flush(true).unwrap();
    assert_eq!(exclusive.resident_keys(), []);
    drop(exclusive);
    assert_eq!(bench.get(1).unwrap(), numbers(&bench, 1), "its change was dropped");
    assert_eq!(bench.get(0).unwrap(), [9; 4]);
}

#[test]
fn a_dataset_of_another_cache_is_refused() {
    let (one, two) = (Bench::with_limits(4, 4, 8), Bench::with_limits(4, 4, 8));
    let refused = one.cache.flush(&two.dataset, false);
    assert_eq!(refused, Err(ToyError::Cache(CacheError::ForeignDataset)));
}

#[test]
fn requests_without_parts_do_nothing() {
    let bench = Bench::with_limits(4, 4, 8);
    bench.cache.read(&bench.dataset, []).unwrap();
    bench.cache.write(&bench.dataset, []).unwrap();
    assert_eq!(bench.stats(), Stats::default());
}

#[test]
fn chunks_that_are_not_stored_are_not_looked_up_again() {
    let bench = Bench::new(Config::default(), Toy::new(16));
    bench.toy.store([5], number);
    let lookups = count(&bench, "lookup");
    for _ in 0..3 {
        bench.get_many(0..10).unwrap();
    }
    assert_eq!(lookups.load(Ordering::Relaxed), 1);
    assert_eq!(bench.stats().known_absent, 18);
    // However a chunk comes to be, it is seen.
    bench.put(0, 0, &[1]).unwrap();
    bench.put(1, 0, &[1; 16]).unwrap();
    bench.cache.write_stored(&bench.dataset, &2, &image(&[1; 16]), None).unwrap();
    let exclusive = bench.cache.exclusive(&bench.dataset);
    bench.toy.store([3], |_, _| 1);
    drop(exclusive);
    bench.dataset.set_options(DatasetOptions::default().direct(true));
    bench.put(4, 0, &[1; 16]).unwrap();
    bench.cache.flush(&bench.dataset, true).unwrap();
    let chunks = bench.get_many(0..10).unwrap();
    assert!(chunks[..5].iter().all(|chunk| chunk[0] == 1));
    bench.cache.set_limits(0, 0).unwrap();
    assert_eq!((bench.stats().resident, bench.stats().bookkeeping), (0, 0));
}

#[test]
fn a_dataset_keeps_to_its_maximum_and_others_to_theirs() {
    let bench = Bench::with_limits(16, 100, 200);
    let (toy, dataset) = bench.sibling();
    bench.toy.store(0..20, number);
    toy.store(0..20, number);
    bench.dataset.set_options(DatasetOptions::default().maximum(3 * 32));
    let mut out = vec![[0; 16]; 20];
    let parts = (0..20).zip(&mut out).map(|(key, out)| (key, Read::Values { start: 0, out }));
    bench.cache.read(&dataset, parts).unwrap();
    bench.get_many(0..20).unwrap();
    bench.get(17).unwrap();
    bench.get(3).unwrap();
    let own = bench.cache.dataset_stats(&bench.dataset);
    assert_eq!((own.resident, own.hits), (3 * 32, 1));
    assert_eq!((own.evictions, own.evictions_over_maximum), (0, 18));
    assert_eq!(bench.cache.dataset_stats(&dataset).resident, 20 * 32);
    bench.put_many(0..20, &[1; 16]).unwrap();
    assert_eq!(bench.stats().dirty, 3);
    assert_eq!(bench.cache.dataset_stats(&bench.dataset).resident, 3 * 32);
    bench.get(17).unwrap(); // used last
    bench.put(0, 0, &[1]).unwrap();
    let hits = bench.stats().hits;
    bench.get(17).unwrap();
    assert_eq!(bench.stats().hits, hits + 1);
}

#[test]
fn bookkeeping_counts_for_the_limits() {
    let bench = Bench::new(Config::default().resident_limit(100 * BOOK), Toy::new(1));
    bench.toy.store(0..200, number);
    bench.get_many(0..200).unwrap();
    let stats = bench.stats();
    assert!(stats.resident + stats.bookkeeping <= 100 * BOOK, "{stats:?}");
    assert!(stats.resident <= 200, "fewer than a hundred chunks of two bytes");
}

#[test]
fn complete_chunks_leave_first_unless_their_weight_is_nothing() {
    for (weight, leaves) in [(0.75, 1), (0.0, 0)] {
        let toy = Toy::new(64);
        let room = 2 * toy.chunk_bytes() + 2 * BOOK;
        let config = Config::default().policy(PolicyKind::WeightedLru);
        let config = config.resident_limit(room).active_limit(4 * room);
        let bench = Bench::new(config, toy);
        bench.dataset.set_options(DatasetOptions::default().preemption(weight));
        bench.toy.store(0..3, number);
        let mut part = [0; 8];
        let read = [(0, Read::Values { start: 0, out: &mut part[..] })];
        bench.cache.read(&bench.dataset, read).unwrap();
        bench.get(1).unwrap();
        bench.get(2).unwrap();
        assert_eq!(bench.stats().loads, 3);
        bench.get(1 - leaves).unwrap();
        assert_eq!(bench.stats().loads, 3, "weight {weight}: the other one left");
        bench.get(leaves).unwrap();
        assert_eq!(bench.stats().loads, 4, "weight {weight}");
    }
}
