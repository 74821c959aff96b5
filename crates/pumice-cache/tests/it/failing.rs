//! What a cache does when a layout fails or panics: it reports, keeps what it had and goes on.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::toy::*;
use pumice_cache::*;

/// Lets one callback fail or panic from now on; the returned switch ends it.
fn fail(bench: &Bench, callback: &'static str, panics: bool) -> Arc<AtomicBool> {
    let on = Arc::new(AtomicBool::new(true));
    let switch = Arc::clone(&on);
    bench.toy.set_hook(move |name, _| {
        if name != callback || !switch.load(Ordering::Relaxed) {
            return Ok(());
        }
        assert!(!panics, "told to panic in {callback}");
        Err(ToyError::Told(callback))
    });
    on
}

fn is_expected(error: &ToyError, callback: &'static str, panics: bool) -> bool {
    match error {
        ToyError::Told(name) => !panics && *name == callback,
        ToyError::Cache(CacheError::Panicked { message }) => panics && message.contains(callback),
        ToyError::Cache(_) => false,
    }
}

/// Runs a check for every combination of executor and way to fail.
fn in_all_ways(check: impl Fn(&Bench, bool)) {
    for threads in [1, 3] {
        for panics in [false, true] {
            let executor = Arc::new(Pool::new(threads).unwrap());
            let chunk = 512 + BOOK;
            let config = Config::default().resident_limit(8 * chunk).active_limit(16 * chunk);
            check(&Bench::new(config.executor(executor), Toy::new(256)), panics);
        }
    }
}

#[test]
fn a_read_that_fails_says_so_and_the_next_one_works() {
    for callback in ["lookup", "fetch", "decode", "scatter", "scatter_absent"] {
        in_all_ways(|bench, panics| {
            bench.toy.store(0..30, |key, _| key as u8);
            let switch = fail(bench, callback, panics);
            let error = bench.get_many(0..40).unwrap_err();
            assert!(is_expected(&error, callback, panics), "{error:?}");
            assert!(bench.stats().resident <= 8 * 512);
            switch.store(false, Ordering::Relaxed);
            let chunks = bench.get_many(0..40).unwrap();
            assert!((0..30).all(|key| chunks[key] == [key as u8; 256]));
            assert_eq!(chunks[39], [FILL; 256]);
        });
    }
}

#[test]
fn a_hit_that_fails_says_so_and_the_next_one_works() {
    in_all_ways(|bench, panics| {
        bench.toy.store([0], |_, _| 1);
        bench.get(0).unwrap();
        let switch = fail(bench, "scatter", panics);
        assert!(is_expected(&bench.get(0).unwrap_err(), "scatter", panics));
        switch.store(false, Ordering::Relaxed);
        assert_eq!(bench.get(0).unwrap(), [1; 256]);
    });
}

#[test]
fn a_write_that_fails_before_anything_is_changed_changes_nothing() {
    for callback in ["lookup", "fetch", "decode", "new_chunk", "gather"] {
        in_all_ways(|bench, panics| {
            bench.toy.store([0], |_, _| 1);
            let switch = fail(bench, callback, panics);
            // One is stored, one is not.
            let parts = [0, 1].map(|key| (key, Write::Put { start: 3, data: &[9] }));
            let error = bench.cache.write(&bench.dataset, parts).unwrap_err();
            assert!(is_expected(&error, callback, panics), "{error:?}");
            switch.store(false, Ordering::Relaxed);
            let one_at_most = usize::from(bench.get(0).unwrap() != [1; 256])
                + usize::from(bench.get(1).unwrap() != [FILL; 256]);
            assert!(one_at_most <= usize::from(callback != "lookup"), "after {callback}");
            bench.put(0, 3, &[9]).unwrap();
            assert_eq!(bench.get(0).unwrap()[2..5], [1, 9, 1]);
        });
    }
}

#[test]
fn a_write_that_fails_half_way_leaves_a_clean_chunk_as_it_was() {
    in_all_ways(|bench, panics| {
        bench.toy.store([0], |_, _| 1);
        bench.get(0).unwrap();
        let switch = fail(bench, "gathered", panics);
        assert!(is_expected(&bench.put(0, 3, &[9]).unwrap_err(), "gathered", panics));
        switch.store(false, Ordering::Relaxed);
        assert_eq!(bench.get(0).unwrap(), [1; 256]);
    });
}

#[test]
fn a_write_that_fails_half_way_does_not_lose_earlier_changes() {
    in_all_ways(|bench, panics| {
        bench.toy.store([0], |_, _| 1);
        bench.put(0, 0, &[5]).unwrap();
        let switch = fail(bench, "gathered", panics);
        assert!(bench.put(0, 3, &[9]).is_err());
        switch.store(false, Ordering::Relaxed);
        assert_eq!(bench.get(0).unwrap()[..3], [5, 1, 1]);
        bench.flush().unwrap();
        assert_eq!(bench.toy.stored(0).unwrap()[0], Some(5));
    });
}

#[test]
fn a_chunk_that_cannot_be_written_back_stays_dirty_and_the_flush_says_so() {
    for callback in ["encode", "insert", "put"] {
        in_all_ways(|bench, panics| {
            bench.put_many(0..5, &[7; 256]).unwrap();
            let switch = fail(bench, callback, panics);
            assert!(is_expected(&bench.flush().unwrap_err(), callback, panics));
            assert!(bench.cache.flush(&bench.dataset, true).is_err());
            assert!(bench.cache.flush_all(false).is_err());
            assert_eq!(bench.get(4).unwrap(), [7; 256]);
            switch.store(false, Ordering::Relaxed);
            bench.flush().unwrap();
            assert!((0..5).all(|key| bench.toy.stored(key).unwrap() == [Some(7); 256]));
        });
    }
}

#[test]
fn one_chunk_that_cannot_be_encoded_does_not_keep_the_others_from_being_written() {
    let bench = Bench::with_limits(256, 8, 16);
    bench.put_many(0..5, &[7; 256]).unwrap();
    bench.toy.set_hook(|name, key| match (name, key) {
        ("encode", Some(2)) => Err(ToyError::Told("encode")),
        _ => Ok(()),
    });
    assert_eq!(bench.flush(), Err(ToyError::Told("encode")));
    assert_eq!(bench.toy.stored_keys(), [0, 1, 3, 4]);
}

#[test]
fn a_request_that_needs_an_eviction_learns_of_its_failure_and_nothing_is_lost() {
    for callback in ["encode", "insert", "put"] {
        in_all_ways(|bench, panics| {
            let switch = fail(bench, callback, panics);
            let error = bench.put_many(0..40, &[7; 256]).unwrap_err();
            assert!(is_expected(&error, callback, panics), "{error:?}");
            switch.store(false, Ordering::Relaxed);
            bench.put_many(0..40, &[8; 256]).unwrap();
            bench.flush().unwrap();
            assert!((0..40).all(|key| bench.get(key).unwrap() == [8; 256]));
            // Reads in a row let chunks be loaded ahead, which may still be under way.
            let patience = std::time::Instant::now();
            while bench.stats().resident > 8 * 512 {
                assert!(patience.elapsed().as_secs() < 10, "{:?}", bench.stats());
                std::thread::yield_now();
            }
        });
    }
}

#[test]
fn a_chunk_that_cannot_be_deleted_stays_and_can_be_deleted_later() {
    in_all_ways(|bench, panics| {
        bench.toy.store([0, 1], |_, _| 1);
        bench.get(0).unwrap();
        let switch = fail(bench, "delete", panics);
        for key in [0, 1] {
            assert!(is_expected(&bench.erase(key, 0, 256).unwrap_err(), "delete", panics));
        }
        switch.store(false, Ordering::Relaxed);
        for key in [0, 1] {
            bench.erase(key, 0, 256).unwrap();
        }
        assert_eq!(bench.toy.stored_keys(), []);
        assert_eq!(bench.stats().resident, 0);
    });
}

#[test]
fn closing_reports_what_could_not_be_written() {
    let Bench { toy, cache, dataset } = Bench::with_limits(256, 8, 16);
    cache.write(&dataset, [(0, Write::Put { start: 0, data: &[1] })]).unwrap();
    toy.set_hook(|name, _| if name == "put" { Err(ToyError::Told("put")) } else { Ok(()) });
    assert_eq!(dataset.close(), Err(ToyError::Told("put")));
    assert_eq!(cache.stats().resident, 0);
}

#[test]
fn a_lookup_with_too_few_answers_is_refused() {
    struct Short;
    type Nothing = [u8; 0];
    impl Family for Short {
        type Key = u64;
        type Chunk = Nothing;
        type Tag = ();
        type Read<'a> = ();
        type Write<'a> = ();
        type Error = CacheError;
    }
    impl ByteStore<Short> for Short {
        fn fetch(&self, _: &mut [Fetch<'_>]) -> Result<(), CacheError> {
            Ok(())
        }
        fn put(&self, _: &[Put<'_>]) -> Result<(), CacheError> {
            Ok(())
        }
    }
    impl ChunkStore<Short> for Short {
        fn lookup(&self, _: &[u64]) -> Result<Lookups<()>, CacheError> {
            Ok(vec![None])
        }
        fn insert(&self, _: &mut [Placement<u64, ()>]) -> Result<(), CacheError> {
            Ok(())
        }
        fn delete(&self, _: &u64) -> Result<(), CacheError> {
            Ok(())
        }
    }
    impl Layout<Short> for Short {
        fn chunks(&self) -> &dyn ChunkStore<Short> {
            self
        }
        fn decode(
            &self,
            _: &u64,
            _: Vec<u8>,
            _: &Stored<()>,
            _: Part,
        ) -> Result<Nothing, CacheError> {
            Ok([])
        }
        fn new_chunk(&self, _: &u64, _: bool) -> Result<Nothing, CacheError> {
            Ok([])
        }
        fn encode(&self, _: &u64, _: &Nothing) -> Result<Encoded<()>, CacheError> {
            Ok(Encoded::new(vec![], ()))
        }
        fn scatter(&self, _: &u64, _: Option<&Nothing>, _: &mut ()) -> Result<(), CacheError> {
            Ok(())
        }
        fn gather(&self, _: &u64, _: &mut Nothing, _: &mut ()) -> Result<Outcome, CacheError> {
            Ok(Outcome::Keep)
        }
    }
    let cache = ChunkCache::new(Config::default());
    let dataset = cache.register(Arc::new(Short), DatasetOptions::default());
    let refused = cache.read(&dataset, [(0, ()), (1, ())]);
    assert_eq!(refused, Err(CacheError::Lookup { expected: 2, found: 1 }));
    cache.write(&dataset, [(0, ())]).expect("the defaults do for a layout of nothing");
    assert_eq!(cache.stats().resident, 0);
}

#[test]
fn a_chunk_that_can_never_be_written_does_not_disturb_others() {
    for threads in [1, 2] {
        let config = Config::default().threads(threads).unwrap();
        let config = config.resident_limit(8 * (512 + BOOK)).active_limit(16 * (512 + BOOK));
        let bench = Bench::new(config, Toy::new(256));
        let (toy, dataset) = bench.sibling();
        toy.set_hook(|name, _| if name == "encode" { Err(ToyError::Told(name)) } else { Ok(()) });
        let put = |key| (key, Write::Put { start: 0, data: &[1; 256] });
        bench.cache.write(&dataset, (0..4).map(put)).unwrap();
        bench.toy.store(0..50, |key, _| key as u8);
        for _ in 0..3 {
            let chunks = bench.get_many(0..50).unwrap();
            assert!((0..50).all(|key| chunks[key] == [key as u8; 256]));
            bench.put_many(50..60, &[5; 256]).unwrap();
            bench.flush().unwrap();
        }
        assert!(bench.cache.set_limits(0, 16 * (512 + BOOK)).is_err());
        assert_eq!(bench.cache.flush_all(false), Err(ToyError::Told("encode")));
        let mut out = [0; 256];
        bench.cache.read(&dataset, [(3, Read::Values { start: 0, out: &mut out })]).unwrap();
        assert_eq!(out, [1; 256]);
        assert_eq!(bench.cache.dataset_stats(&dataset).dirty, 4);
        toy.clear_hook();
        bench.cache.flush_all(false).unwrap();
        assert_eq!(toy.stored_keys(), [0, 1, 2, 3]);
        assert_eq!(bench.stats().resident, 0, "now they could leave");
    }
}

/// A dataset beside that of a bench, and its store.
type Beside = (Arc<Toy>, Dataset<Toy>);

/// A cache of eight chunks that a dataset has filled with chunks that cannot be written; beside it, a dataset in
/// its store and one in another.
fn full_of_stuck(threads: usize, fails: &'static str) -> (Bench, [Beside; 2]) {
    let config = Config::default().threads(threads).unwrap();
    let config = config.resident_limit(8 * (512 + BOOK)).active_limit(16 * (512 + BOOK));
    let bench = Bench::new(config, Toy::new(256));
    let beside = bench.sibling();
    let toy = Arc::new(Toy::new(256));
    let elsewhere = bench.cache.register(Arc::clone(&toy), DatasetOptions::default());
    for toy in [&beside.0, &toy] {
        toy.store(0..20, |key, _| key as u8);
    }
    let fail = move |name, _| if name == fails { Err(ToyError::Told(name)) } else { Ok(()) };
    bench.toy.set_hook(fail);
    let failed = (0..40).map(|key| bench.put(key, 0, &[1; 256])).filter_map(Result::err);
    assert!(failed.count() > 10, "who fills the cache is told that it is full");
    (bench, [beside, (toy, elsewhere)])
}

/// The last cell of each of these chunks.
fn read_all(cache: &ChunkCache<Toy>, dataset: &Dataset<Toy>, keys: Range<u64>) -> Vec<u8> {
    let mut chunks = vec![[0; 256]; (keys.end - keys.start) as usize];
    let outs = keys.zip(&mut chunks).map(|(key, out)| (key, Read::Values { start: 0, out }));
    cache.read(dataset, outs).unwrap();
    chunks.iter().map(|chunk| chunk[255]).collect()
}

#[test]
fn chunks_that_cannot_be_encoded_fail_no_call_on_other_datasets_though_they_fill_the_cache() {
    for threads in [1, 2, 3] {
        let (bench, others) = full_of_stuck(threads, "encode");
        for (toy, dataset) in &others {
            let put = |key| (key, Write::Put { start: 0, data: &[7; 255] });
            for round in 0..3 {
                assert_eq!(read_all(&bench.cache, dataset, 0..20), Vec::from_iter(0..20));
                bench.cache.write(dataset, (20 * round..20 * round + 30).map(put)).unwrap();
                bench.cache.write(dataset, [put(1)]).unwrap();
                let erase = Write::Erase { start: 0, len: 256 };
                bench.cache.write(dataset, [(90, erase)]).unwrap();
                bench.cache.flush(dataset, round == 1).unwrap();
            }
            assert_eq!(toy.stored(60).unwrap()[254..], [Some(7), None]);
            bench.cache.exclusive(dataset).room(20 * 512).unwrap();
        }
        // Chunks of a call pass one group after another, whatever their number.
        assert!(bench.stats().peak < 40 * (512 + BOOK), "{:?}", bench.stats());
        assert_eq!(bench.get(0).unwrap(), [1; 256], "what could not be stored is read");
        assert_eq!(bench.flush(), Err(ToyError::Told("encode")));
        bench.toy.clear_hook();
        bench.cache.flush_all(true).unwrap();
        assert_eq!(bench.stats().resident, 0);
        assert!((0..8).all(|key| bench.toy.stored(key).unwrap()[0] == Some(1)));
    }
}

#[test]
fn a_store_that_fails_fails_those_who_write_to_it_and_nobody_else() {
    for threads in [1, 2, 3] {
        for callback in ["put", "insert"] {
            let (bench, [(beside, near), (toy, far)]) = full_of_stuck(threads, callback);
            let put = |key| (key, Write::Put { start: 0, data: &[7; 256] });
            assert_eq!(read_all(&bench.cache, &near, 0..20), Vec::from_iter(0..20));
            assert_eq!(read_all(&bench.cache, &far, 0..20), Vec::from_iter(0..20));
            bench.cache.write(&far, (20..60).map(put)).unwrap();
            bench.cache.flush(&far, false).unwrap();
            assert_eq!(toy.stored(59).unwrap()[0], Some(7));
            let refused = bench.cache.write(&near, [put(30)]);
            assert_eq!(refused, Err(ToyError::Told(callback)), "it would not be stored either");
            assert!(beside.stored(30).is_none());
            assert_eq!(bench.get(1).unwrap(), [1; 256]);
            bench.toy.clear_hook();
            bench.cache.write(&near, [put(30)]).unwrap();
            bench.cache.flush_all(true).unwrap();
            assert_eq!(beside.stored(30).unwrap()[0], Some(7));
            assert!((0..8).all(|key| bench.toy.stored(key).unwrap()[0] == Some(1)));
        }
    }
}

#[test]
fn a_write_that_passes_by_a_full_cache_and_cannot_be_stored_fails_and_leaves_nothing() {
    let (bench, [_, (toy, far)]) = full_of_stuck(1, "encode");
    let before = bench.stats().resident;
    toy.set_hook(|name, _| if name == "encode" { Err(ToyError::Told(name)) } else { Ok(()) });
    for key in 0..100 {
        let put = (key, Write::Put { start: 0, data: &[9; 256] });
        assert_eq!(bench.cache.write(&far, [put]), Err(ToyError::Told("encode")));
    }
    assert!(bench.stats().resident <= before, "nothing is heaped up");
    assert_eq!(read_all(&bench.cache, &far, 0..20), Vec::from_iter(0..20));
}
