//! A recorded trace, replayed, tells what the cache did.

use std::io::{Error, Write};
use std::sync::{Arc, Mutex};

use crate::toy::*;
use pumice_cache::*;
use pumice_trace::simulate::replay;
use pumice_trace::trace::{Trace, TraceError, start, stop};

/// A file in memory that the test can look into.
#[derive(Clone, Default)]
struct Shelf(Arc<Mutex<Vec<u8>>>);

impl Write for Shelf {
    fn write(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

/// A loop over 12 chunks with single chunks between.
fn keys() -> impl Iterator<Item = u64> {
    (0..40_u64).flat_map(|round| (0..12).chain([100 + round % 3, 100 + round % 5]))
}

#[test]
fn the_simulator_counts_the_hits_that_the_cache_had() {
    for kind in PolicyKind::ALL {
        let toy = Toy::new(16);
        let bytes = (toy.chunk_bytes() + BOOK) * 8;
        let config = Config::default().resident_limit(bytes).active_limit(bytes * 2).policy(kind);
        let bench = Bench::new(config, toy);
        bench.toy.store(0..110, |key, _| key as u8);
        let shelf = Shelf::default();
        start(&bench.cache, shelf.clone()).unwrap();
        keys().for_each(|key| drop(bench.get(key).unwrap()));
        stop(&bench.cache).unwrap();
        bench.get(3).unwrap();

        let trace = Trace::read(shelf.0.lock().unwrap().as_slice()).unwrap();
        assert_eq!((trace.len(), trace.chunks()), (keys().count(), 17));
        assert!(trace.accesses().iter().all(|access| access.bytes == bytes / 8));
        let (stats, score) = (bench.stats(), replay(&trace, kind, bytes));
        let live = (stats.hits, stats.misses);
        let (hit, missed) = (score.hits, score.misses);
        // One read came after the trace.
        assert!(live == (hit + 1, missed) || live == (hit, missed + 1), "{kind:?}: {live:?}");
    }
}

#[test]
fn writes_are_recorded_as_such_and_by_dataset() {
    let bench = Bench::with_limits(16, 4, 8);
    let toy = Arc::new(Toy::new(16));
    let other = bench.cache.register(Arc::clone(&toy), DatasetOptions::default());
    toy.store(0..1, |key, _| key as u8);
    let shelf = Shelf::default();
    start(&bench.cache, shelf.clone()).unwrap();
    bench.put(0, 0, &[1; 4]).unwrap();
    bench.get(0).unwrap();
    bench.cache.read(&other, [(0, Read::Values { start: 0, out: &mut [0; 16] })]).unwrap();
    stop(&bench.cache).unwrap();
    let trace = Trace::read(shelf.0.lock().unwrap().as_slice()).unwrap();
    let seen = trace.accesses().iter().map(|access| (access.write, access.dataset, access.chunk));
    assert_eq!(seen.collect::<Vec<_>>(), [(true, 0, 0), (false, 0, 0), (false, 1, 1)]);
}

#[test]
fn a_trace_that_cannot_be_written_harms_nothing_and_tells_at_the_end() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> Result<usize, Error> {
            Err(Error::other("disk full"))
        }
        fn flush(&mut self) -> Result<(), Error> {
            Ok(())
        }
    }
    let bench = Bench::with_limits(16, 4, 8);
    start(&bench.cache, Full).unwrap();
    bench.toy.store(0..3, |key, _| key as u8);
    (0..200_000).for_each(|i| drop(bench.get(i % 3).unwrap()));
    let error = stop(&bench.cache).unwrap_err();
    assert!(matches!(error, TraceError::Io(_)) && error.to_string().contains("disk full"));
    assert!(stop(&bench.cache).is_ok());
}
