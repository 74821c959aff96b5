//! The operations beside reading and writing one dataset: files, many datasets at once, stored
//! chunks, settings, the end.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::toy::*;
use pumice_cache::*;

fn put(data: &[u8]) -> Write<'_> {
    Write::Put { start: 0, data }
}

/// Counts calls of one callback.
fn count(toy: &Toy, callback: &'static str) -> Arc<AtomicU64> {
    let counter = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&counter);
    toy.set_hook(move |name, _| {
        counted.fetch_add(u64::from(name == callback), Ordering::Relaxed);
        Ok(())
    });
    counter
}

#[test]
fn what_cannot_be_encoded_is_told_apart_from_a_store_that_fails() {
    let Bench { toy, cache, dataset } = Bench::with_limits(4, 100, 200);
    let file = cache.register_file();
    let (one, two) = (Arc::new(Toy::beside(&toy)), Arc::new(Toy::beside(&toy)));
    let first = file.register(Arc::clone(&one), DatasetOptions::default());
    let second = file.register(Arc::clone(&two), DatasetOptions::default());
    cache.write(&first, (0..6).map(|key| (key, put(&[1; 4])))).unwrap();
    cache.write(&second, [(0, put(&[2; 4]))]).unwrap();
    let odd = |name: &'static str, key: Option<u64>| match (name, key) {
        ("encode", Some(1 | 3)) => Err(ToyError::Told(name)),
        _ => Ok(()),
    };
    one.set_hook(odd);
    let refused = cache.flush_file_apart(&file).unwrap();
    let [refused] = &refused[..] else { panic!("{refused:?}") };
    assert!(first.has_refused(refused) && !second.has_refused(refused));
    assert_eq!((&refused.keys[..], &refused.error), (&[1, 3][..], &ToyError::Told("encode")));
    assert_eq!((one.stored_keys(), two.stored_keys()), (vec![0, 2, 4, 5], vec![0]));
    assert_eq!(cache.flush_apart(&first).unwrap().unwrap().keys, [1, 3]);
    assert!(cache.flush_apart(&second).unwrap().is_none());
    assert_eq!(cache.flush_file(&file, false), Err(ToyError::Told("encode")));

    // Whatever comes first, it is the store that counts.
    cache.write(&first, [(5, put(&[3; 4]))]).unwrap();
    one.set_hook(move |name, key| match name {
        "put" => Err(ToyError::Told("put")),
        _ => odd(name, key),
    });
    assert_eq!(cache.flush_file_apart(&file).unwrap_err(), ToyError::Told("put"));
    one.clear_hook();
    assert!(cache.flush_file_apart(&file).unwrap().is_empty());
    assert_eq!(one.stored_keys(), [0, 1, 2, 3, 4, 5]);
    drop(dataset);
}

#[test]
fn a_file_is_flushed_and_evicted_without_others() {
    let Bench { toy, cache, dataset } = Bench::with_limits(4, 100, 200);
    let file = cache.register_file();
    let (one, two) = (Arc::new(Toy::beside(&toy)), Arc::new(Toy::beside(&toy)));
    let first = file.register(Arc::clone(&one), DatasetOptions::default());
    let second = file.register(Arc::clone(&two), DatasetOptions::default());
    cache.write(&dataset, [(0, put(&[1; 4]))]).unwrap();
    cache.write(&first, [(0, put(&[2; 4])), (1, put(&[3; 4]))]).unwrap();
    cache.write(&second, [(0, put(&[4; 4]))]).unwrap();
    let puts = count(&one, "put");
    cache.flush_file(&file, false).unwrap();
    assert_eq!(
        (toy.stored_keys(), one.stored_keys(), two.stored_keys()),
        (vec![], vec![0, 1], vec![0])
    );
    assert_eq!(puts.load(Ordering::Relaxed), 1, "one write for both datasets");
    cache.write(&first, [(5, put(&[5; 4]))]).unwrap();
    one.set_hook(|name, _| if name == "put" { Err(ToyError::Told(name)) } else { Ok(()) });
    let (file, _) = file.close().unwrap_err();
    assert_ne!(cache.dataset_stats(&first).resident, 0, "what is not written stays");
    one.clear_hook();
    assert!(file.close().is_ok());
    assert_eq!(one.stored_keys(), [0, 1, 5]);
    assert_eq!(cache.dataset_stats(&first).resident + cache.dataset_stats(&second).resident, 0);
    assert_ne!(cache.dataset_stats(&dataset).resident, 0);
    cache.flush_all(true).unwrap();
    assert_eq!((toy.stored_keys(), cache.stats().resident), (vec![0], 0));
}

#[test]
fn a_dataset_that_cannot_be_flushed_does_not_keep_others_from_it() {
    for callback in ["encode", "insert", "put", "settle"] {
        let bench = Bench::with_limits(4, 100, 200);
        let (toy, dataset) = bench.sibling();
        let (last, end) = bench.sibling();
        for one in [&bench.dataset, &dataset, &end] {
            bench.cache.write(one, [(0, put(&[1; 4]))]).unwrap();
        }
        toy.set_hook(
            move |name, _| if name == callback { Err(ToyError::Told(name)) } else { Ok(()) },
        );
        // The first dataset's callback writes for all: it must fail as well to see each tried alone.
        let fail_once = Mutex::new(callback == "put");
        bench.toy.set_hook(move |name, _| {
            let fails = name == "put" && std::mem::take(&mut *fail_once.lock().unwrap());
            if fails { Err(ToyError::Told("put of all")) } else { Ok(()) }
        });
        assert_eq!(bench.cache.flush_all(false), Err(ToyError::Told(callback)));
        assert!(bench.toy.stored(0).is_some() && last.stored(0).is_some());
        toy.clear_hook();
        bench.cache.flush_all(false).unwrap();
        assert_eq!(toy.stored(0).unwrap(), [Some(1); 4]);
        assert_eq!(bench.cache.dataset_stats(&bench.dataset).write_backs, 1);
    }
}

#[test]
fn many_datasets_are_read_in_one_request_and_fetched_in_one_call() {
    let bench = Bench::with_limits(16, 100, 200);
    let (toy, dataset) = bench.sibling();
    let apart = Arc::new(Toy::new(16));
    let other = bench.cache.register(Arc::clone(&apart), DatasetOptions::default());
    for key in 0..8 {
        bench.toy.store([key], |key, _| key as u8);
        toy.store([key], |key, _| 100 + key as u8);
        apart.store([key], |key, _| 200 + key as u8);
    }
    let (here, there) = (count(&bench.toy, "fetch"), count(&apart, "fetch"));
    let mut out = vec![[0; 16]; 24];
    let (first, rest) = out.split_at_mut(8);
    let (second, third) = rest.split_at_mut(8);
    let parts = |out| {
        let out: &mut [[u8; 16]] = out;
        (0..8).zip(out).map(|(key, out)| (key, Read::Values { start: 0, out }))
    };
    let requests =
        [(&bench.dataset, parts(first)), (&other, parts(third)), (&dataset, parts(second))];
    bench.cache.read_many(requests).unwrap();
    for key in 0..8 {
        let [a, b, c] = [0, 8, 16].map(|at| out[key + at]);
        assert_eq!((a, b, c), ([key as u8; 16], [100 + key as u8; 16], [200 + key as u8; 16]));
    }
    assert_eq!((here.load(Ordering::Relaxed), there.load(Ordering::Relaxed)), (1, 1));
    for one in [&bench.dataset, &dataset, &other] {
        let stats = bench.cache.dataset_stats(one);
        assert_eq!((stats.hits, stats.misses, stats.loads), (0, 8, 8));
    }
}

#[test]
fn many_datasets_are_written_in_one_request() {
    let bench = Bench::with_limits(4, 100, 200);
    let (toy, dataset) = bench.sibling();
    let write = |value: u8| {
        let data = [value; 4];
        let requests = [
            (&dataset, [(0, put(&data)), (1, put(&data))]),
            (&bench.dataset, [(1, put(&data)), (2, put(&data))]),
        ];
        bench.cache.write_many(requests)
    };
    write(1).unwrap();
    let other = Bench::with_limits(4, 4, 8);
    let refused = bench.cache.write_many([(&other.dataset, [(0, put(&[1]))])]);
    assert_eq!(refused, Err(ToyError::Cache(CacheError::ForeignDataset)));
    bench.cache.flush_all(true).unwrap();
    assert_eq!((toy.stored_keys(), bench.toy.stored_keys()), (vec![0, 1], vec![1, 2]));
    // The same dataset may be named twice.
    let data = [9; 4];
    let twice = [
        (&dataset, [(0, put(&data))]),
        (&bench.dataset, [(1, put(&data))]),
        (&dataset, [(1, put(&data))]),
    ];
    bench.cache.write_many(twice).unwrap();
    assert_eq!(bench.cache.dataset_stats(&dataset).misses, 4);
    bench.cache.flush_all(false).unwrap();
    assert_eq!(toy.stored(1).unwrap(), [Some(9); 4]);
}

#[test]
fn holes_between_chunks_are_read_through_when_they_are_small() {
    let bench = Bench::with_limits(1024, 100, 200);
    bench.toy.store(0..9, |key, _| key as u8);
    let pieces = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&pieces);
    bench.toy.set_fetch_hook(move |reads| {
        seen.lock().unwrap().extend(reads.iter().map(|read| (read.offset, read.buffer.len())));
    });
    // 2 KiB each: one left out is a hole of 2 KiB, four left out are a hole of 8 KiB.
    let chunks = bench.get_many([0, 2, 3, 8]).unwrap();
    assert_eq!(chunks.iter().map(|chunk| chunk[7]).collect::<Vec<_>>(), [0, 2, 3, 8]);
    let expected = [(0, 2048), (2048, 2048), (4096, 2048), (6144, 2048), (16384, 2048)];
    assert_eq!(*pieces.lock().unwrap(), expected);
    assert_eq!(bench.stats().bytes_fetched, 4 * 2048);
}

#[test]
fn a_stored_chunk_is_read_as_it_was_last_written() {
    let bench = Bench::with_limits(4, 10, 20);
    assert!(bench.cache.read_stored(&bench.dataset, &0).unwrap().is_none());
    assert!(bench.cache.find_stored(&bench.dataset, &0).unwrap().is_none());
    bench.put_many([0, 1], &[5; 4]).unwrap();
    let (stored, bytes) = bench.cache.read_stored(&bench.dataset, &0).unwrap().unwrap();
    assert_eq!((bytes, stored.len), (image(&[5; 4]), 8));
    assert_eq!(bench.toy.stored_keys(), [0], "only this chunk was written back");
    assert_eq!(bench.cache.find_stored(&bench.dataset, &0).unwrap().unwrap(), stored);
    assert_eq!(bench.stats().write_backs, 1);
}

#[test]
fn a_stored_chunk_replaces_whatever_was_there() {
    let bench = Bench::with_limits(4, 10, 20);
    bench.toy.store([0, 1], |_, _| 1);
    bench.get(0).unwrap(); // clean
    bench.put(1, 0, &[2]).unwrap(); // dirty
    for key in 0..3 {
        bench.cache.write_stored(&bench.dataset, &key, &image(&[7; 4]), None).unwrap();
        assert_eq!(bench.get(key).unwrap(), [7; 4]);
    }
    bench.flush().unwrap();
    assert_eq!(bench.toy.stored(1).unwrap(), [Some(7); 4], "the change was dropped");
}

#[test]
fn a_stored_chunk_that_cannot_be_written_leaves_the_chunk_as_it_was() {
    for callback in ["insert", "put", "settle"] {
        let bench = Bench::with_limits(4, 10, 20);
        bench.put(0, 0, &[2; 4]).unwrap();
        bench.toy.set_hook(
            move |name, _| if name == callback { Err(ToyError::Told(name)) } else { Ok(()) },
        );
        let failed = bench.cache.write_stored(&bench.dataset, &0, &image(&[7; 4]), None);
        assert_eq!(failed, Err(ToyError::Told(callback)));
        bench.toy.clear_hook();
        assert_eq!(bench.get(0).unwrap(), [2; 4]);
        bench.cache.flush(&bench.dataset, true).unwrap();
        assert_eq!(bench.get(0).unwrap(), [2; 4]);
    }
}

#[test]
fn settings_change_while_chunks_are_resident() {
    let bench = Bench::with_limits(4, 4, 8);
    bench.toy.store(0..4, |key, _| key as u8);
    (0..4).for_each(|key| drop(bench.get(key).unwrap()));
    let config = bench.cache.config().policy(PolicyKind::Lru).threads(2).unwrap();
    bench.cache.configure(config).unwrap();
    bench.get(0).unwrap();
    assert_eq!(bench.stats().hits, 1);
    assert!(format!("{:?}", bench.cache).contains("Lru"));
    assert!(format!("{:?}", bench.cache).contains("threads: 2"));
    bench.cache.set_limits(2 * (8 + BOOK), 4 * (8 + BOOK)).unwrap();
    assert_eq!(bench.stats().resident, 16);
    bench.get(0).unwrap();
    assert_eq!(bench.stats().hits, 2, "the least recently used ones have left");
}

#[test]
fn options_of_a_dataset_change_while_it_is_open() {
    let bench = Bench::new(Config::default(), Toy { direct: true, ..Toy::new(8) });
    bench.toy.store([0], |_, _| 7);
    bench.dataset.set_options(bench.dataset.options().direct(true));
    bench.put(0, 0, &[1; 8]).unwrap();
    assert_eq!((bench.stats().direct, bench.stats().resident), (1, 0));
}

#[test]
fn a_cache_with_changes_in_it_is_not_destroyed() {
    let bench = Bench::with_limits(4, 4, 8);
    bench.put_many([0, 1], &[1; 4]).unwrap();
    let refused = bench.cache.destroy();
    let Err(ToyError::Cache(error)) = refused else { panic!("{refused:?}") };
    assert!(matches!(error, CacheError::Dirty { chunks: 2, .. }), "{error:?}");
    assert!(error.to_string().starts_with("a dataset has "), "{error}");
    assert_eq!(bench.get(1).unwrap(), [1; 4]);
    bench.flush().unwrap();
    bench.cache.destroy().unwrap();
    assert_eq!(bench.stats().resident, 0);
    let gone = Err(ToyError::Cache(CacheError::Destroyed));
    assert_eq!(bench.put(0, 0, &[1]), gone);
    assert_eq!(bench.flush(), gone);
    assert_eq!(bench.cache.destroy(), gone);
    let Bench { toy, dataset, .. } = bench;
    dataset.close().unwrap();
    assert_eq!(toy.stored_keys(), [0, 1]);
}

#[test]
fn a_closed_dataset_is_let_go_of_while_others_go_on() {
    let bench = Bench::with_limits(4, 100, 200);
    bench.put(0, 0, &[1; 4]).unwrap();
    let (send, receive) = std::sync::mpsc::sync_channel::<Arc<Dataset<Toy>>>(0);
    std::thread::scope(|scope| {
        let cache = &bench.cache;
        let dataset = &bench.dataset;
        scope.spawn(move || {
            let read = |from: &Dataset<Toy>| {
                let mut out = [0; 4];
                cache.read(from, [(0, Read::Values { start: 0, out: &mut out })]).unwrap();
            };
            // Reads some of the other's, lets go of it, and reads its own meanwhile.
            while let Ok(other) = receive.recv() {
                (0..50).for_each(|_| read(&other));
                drop(other);
                (0..400).for_each(|_| read(dataset));
            }
        });
        for _ in 0..600 {
            let (toy, other) = bench.sibling();
            cache.write(&other, [(0, put(&[2; 4]))]).unwrap();
            let mut other = Arc::new(other);
            send.send(Arc::clone(&other)).unwrap();
            let other = loop {
                match Arc::try_unwrap(other) {
                    Ok(alone) => break alone,
                    Err(shared) => other = shared,
                }
            };
            other.close().unwrap();
            assert_eq!(Arc::strong_count(&toy), 1, "somebody still has the dataset");
        }
        drop(send);
    });
}
