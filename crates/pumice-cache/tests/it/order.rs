//! Requests at the same time: who waits for whom, and who does not.

use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use crate::beside::*;
use crate::toy::*;
use pumice_cache::*;

/// Stops whoever comes to a place, until it is opened.
#[derive(Default)]
struct Gate {
    /// How many have come, and whether the gate is open.
    state: Mutex<(usize, bool)>,
    changed: Condvar,
}

impl Gate {
    fn pass(&self) {
        let mut state = self.state.lock().unwrap();
        state.0 += 1;
        self.changed.notify_all();
        let _open = self.changed.wait_while(state, |state| !state.1).unwrap();
    }

    fn wait_for_visitor(&self) {
        let state = self.state.lock().unwrap();
        let _come = self.changed.wait_while(state, |state| state.0 == 0).unwrap();
    }

    fn open(&self) {
        self.state.lock().unwrap().1 = true;
        self.changed.notify_all();
    }
}

/// A place where whoever comes first waits for a second.
#[derive(Default)]
struct Meeting {
    /// How many have come, and whether one has waited in vain.
    state: Mutex<(usize, bool)>,
    changed: Condvar,
}

impl Meeting {
    fn come(&self) {
        let mut state = self.state.lock().unwrap();
        state.0 += 1;
        self.changed.notify_all();
        let (mut state, _) =
            self.changed.wait_timeout_while(state, LONG, |state| state.0 < 2).unwrap();
        state.1 |= state.0 < 2;
    }

    fn happened(&self) -> bool {
        let state = self.state.lock().unwrap();
        state.0 >= 2 && !state.1
    }
}

/// A gate at one callback for one chunk, or for any.
fn gate(bench: &Bench, callback: &'static str, chunk: Option<u64>) -> Arc<Gate> {
    let gate = Arc::new(Gate::default());
    let there = Arc::clone(&gate);
    bench.toy.set_hook(move |name, key| {
        if name == callback && (chunk.is_none() || chunk == key) {
            there.pass();
        }
        Ok(())
    });
    gate
}

fn bench() -> Bench {
    let bench = Bench::with_limits(256, 8, 16);
    bench.toy.store(0..4, |_, _| 1);
    bench
}

#[test]
fn two_that_miss_the_same_chunk_load_it_once() {
    let bench = bench();
    let gate = gate(&bench, "decode", Some(0));
    thread::scope(|scope| {
        let first = beside(scope, || bench.get(0).unwrap());
        gate.wait_for_visitor();
        let second = beside(scope, || bench.get(0).unwrap());
        assert!(second.is_held_back());
        gate.open();
        assert_eq!(first.recv().unwrap(), second.recv().unwrap());
    });
    assert_eq!(bench.stats().loads, 1);
}

#[test]
fn one_that_waits_for_a_load_that_fails_loads_itself() {
    for panics in [false, true] {
        let bench = bench();
        let gate = Arc::new(Gate::default());
        let (there, times) = (Arc::clone(&gate), Mutex::new(0));
        bench.toy.set_hook(move |name, _| {
            if name != "decode" {
                return Ok(());
            }
            *times.lock().unwrap() += 1;
            if *times.lock().unwrap() > 1 {
                return Ok(());
            }
            there.pass();
            assert!(!panics, "told to");
            Err(ToyError::Told("decode"))
        });
        thread::scope(|scope| {
            let first = beside(scope, || bench.get(0));
            gate.wait_for_visitor();
            let second = beside(scope, || bench.get(0));
            assert!(second.is_held_back());
            gate.open();
            assert!(first.recv().unwrap().is_err());
            assert_eq!(second.recv().unwrap().unwrap(), [1; 256]);
        });
    }
}

#[test]
fn a_write_of_another_chunk_does_not_wait_for_a_slow_read() {
    let bench = bench();
    let gate = gate(&bench, "decode", Some(0));
    thread::scope(|scope| {
        let read = beside(scope, || bench.get_many([0, 1]).unwrap());
        gate.wait_for_visitor();
        bench.put(2, 0, &[9]).unwrap();
        assert_eq!(bench.get(2).unwrap()[0], 9);
        let write = beside(scope, || bench.put(1, 0, &[9]).unwrap());
        assert!(write.is_held_back(), "this chunk is being read");
        gate.open();
        assert_eq!(read.recv().unwrap(), [[1; 256]; 2]);
        write.recv().unwrap();
    });
    assert_eq!(bench.get(1).unwrap()[0], 9);
}

#[test]
fn a_slow_chunk_holds_up_no_other_chunk_of_its_request() {
    let bench = Bench::with_limits(256, 64, 128);
    bench.toy.store(0..8, |_, _| 1);
    let gate = gate(&bench, "decode", Some(0));
    thread::scope(|scope| {
        let read = beside(scope, || bench.get_many(0..8).unwrap());
        gate.wait_for_visitor();
        let others = beside(scope, || (1..8).map(|key| bench.get(key).unwrap()).collect());
        let others: Vec<_> = others.soon("chunk 0 is in nobody's way");
        assert_eq!(others, [[1; 256]; 7]);
        assert!(read.has_not_ended());
        gate.open();
        assert_eq!(read.recv().unwrap(), [[1; 256]; 8]);
    });
    assert_eq!(bench.stats().resident, 8 * bench.toy.chunk_bytes(), "each is here once");
}

#[test]
fn a_read_waits_for_the_write_before_it_and_not_for_others() {
    let bench = bench();
    bench.get_many(0..4).unwrap();
    let gate = gate(&bench, "gather", Some(1));
    thread::scope(|scope| {
        let write = beside(scope, || bench.put_many([0, 1], &[9; 256]).unwrap());
        gate.wait_for_visitor();
        // Chunk 0 is changed already, but the write is not done.
        let one = beside(scope, || bench.get(0).unwrap());
        let both = beside(scope, || bench.get_many([1, 0]).unwrap());
        assert!(one.is_held_back() && both.has_not_ended());
        assert_eq!(bench.get(3).unwrap(), [1; 256]);
        gate.open();
        write.recv().unwrap();
        assert_eq!(one.recv().unwrap(), [9; 256]);
        assert_eq!(both.recv().unwrap(), [[9; 256]; 2]);
    });
}

#[test]
fn requests_take_their_turn_in_the_order_of_arrival() {
    let bench = bench();
    let gate = gate(&bench, "decode", Some(0));
    thread::scope(|scope| {
        let slow = beside(scope, || bench.get(0).unwrap());
        gate.wait_for_visitor();
        let mut waiting = Vec::new();
        let bench = &bench;
        // Each enters when the one before it has taken its place.
        let mut enter = |done| {
            waiting.push(done);
            while bench.stats().pinned <= waiting.len() as u64 {
                thread::yield_now();
            }
        };
        for value in 2..10 {
            enter(beside(scope, move || bench.put(0, 0, &[value]).unwrap()));
            enter(beside(scope, move || assert_eq!(bench.get(0).unwrap()[0], value)));
        }
        gate.open();
        slow.recv().unwrap();
        waiting.into_iter().for_each(|done| done.recv().unwrap());
    });
}

#[test]
fn reads_of_a_chunk_run_together() {
    let bench = bench();
    bench.put(0, 0, &[5]).unwrap();
    let gate = gate(&bench, "scatter", Some(0));
    thread::scope(|scope| {
        let reads: Vec<_> = (0..3).map(|_| beside(scope, || bench.get(0).unwrap())).collect();
        while gate.state.lock().unwrap().0 < 3 {
            thread::yield_now();
        }
        gate.open();
        reads.into_iter().for_each(|read| assert_eq!(read.recv().unwrap()[0], 5));
    });
}

#[test]
fn sole_use_waits_for_requests_and_holds_back_later_ones_of_its_dataset_alone() {
    let bench = bench();
    let other = Arc::new(Toy::new(256));
    let elsewhere = bench.cache.register(Arc::clone(&other), DatasetOptions::default());
    bench.get(1).unwrap();
    let gate = gate(&bench, "scatter", Some(1));
    thread::scope(|scope| {
        // A hit, which has no place in the order.
        let hit = beside(scope, || bench.get(1).unwrap());
        gate.wait_for_visitor();
        let (granted, is_granted) = channel();
        let (release, released) = channel::<()>();
        let cache = &bench.cache;
        let dataset = &bench.dataset;
        let sole = beside(scope, move || {
            let exclusive = cache.exclusive(dataset);
            granted.send(()).unwrap();
            released.recv().unwrap();
            exclusive.write([(1, Write::Put { start: 0, data: &[9] })]).unwrap();
        });
        assert!(sole.is_held_back() && is_granted.try_recv().is_err(), "the hit is being served");
        gate.open();
        hit.recv().unwrap();
        is_granted.recv().unwrap();
        let read = beside(scope, || bench.get(1).unwrap());
        let write = beside(scope, || bench.put(3, 0, &[9]).unwrap());
        assert!(read.is_held_back() && write.has_not_ended());
        cache.write(&elsewhere, [(1, Write::Put { start: 0, data: &[9] })]).unwrap();
        release.send(()).unwrap();
        assert_eq!(read.recv().unwrap()[0], 9);
        write.recv().unwrap();
    });
}

#[test]
fn a_flush_holds_back_writes_and_lets_reads_go_on() {
    let bench = bench();
    bench.put(0, 0, &[5]).unwrap();
    let gate = gate(&bench, "put", None);
    thread::scope(|scope| {
        let flush = beside(scope, || bench.flush().unwrap());
        gate.wait_for_visitor();
        let write = beside(scope, || bench.put(1, 0, &[9]).unwrap());
        assert!(write.is_held_back());
        assert_eq!(bench.get(0).unwrap()[0], 5, "being written back");
        assert_eq!(bench.get(3).unwrap()[0], 1, "not even resident");
        gate.open();
        flush.recv().unwrap();
        write.recv().unwrap();
    });
    assert_eq!(bench.toy.stored(0).unwrap()[0], Some(5));
    assert_eq!(bench.toy.stored(1).unwrap()[0], Some(1));
}

#[test]
fn a_flush_waits_for_the_writes_before_it() {
    let bench = bench();
    let gate = gate(&bench, "gather", Some(1));
    thread::scope(|scope| {
        let write = beside(scope, || bench.put_many([0, 1], &[9; 256]).unwrap());
        gate.wait_for_visitor();
        let flush = beside(scope, || bench.flush().unwrap());
        assert!(flush.is_held_back());
        gate.open();
        write.recv().unwrap();
        flush.recv().unwrap();
        assert_eq!(bench.toy.stored(1).unwrap(), [Some(9); 256]);
    });
}

#[test]
fn a_write_during_the_write_back_of_its_chunk_is_not_lost() {
    // The write-back is that of an eviction, which does not hold back writes.
    let bench = Bench::with_limits(256, 2, 4);
    bench.put_many([0, 1], &[5; 256]).unwrap();
    let gate = gate(&bench, "put", None);
    thread::scope(|scope| {
        let eviction = beside(scope, || bench.cache.set_limits(512, 2048).unwrap());
        gate.wait_for_visitor();
        for key in [0, 1] {
            bench.put(key, 7, &[6]).unwrap();
            assert_eq!(bench.get(key).unwrap()[6..9], [5, 6, 5]);
        }
        gate.open();
        eviction.recv().unwrap();
    });
    bench.cache.flush(&bench.dataset, true).unwrap();
    for key in [0, 1] {
        assert_eq!(bench.toy.stored(key).unwrap()[6..9], [Some(5), Some(6), Some(5)]);
    }
}

#[test]
fn a_delete_waits_for_the_write_back_of_its_chunk() {
    let bench = Bench::with_limits(256, 2, 4);
    bench.put_many([0, 1], &[5; 256]).unwrap();
    let gate = gate(&bench, "insert", None);
    thread::scope(|scope| {
        let eviction = beside(scope, || bench.cache.set_limits(0, 2048).unwrap());
        gate.wait_for_visitor();
        let erase = beside(scope, || bench.erase(0, 0, 256).unwrap());
        assert!(erase.is_held_back());
        gate.open();
        eviction.recv().unwrap();
        erase.recv().unwrap();
    });
    assert_eq!(bench.toy.stored_keys(), [1]);
}

#[test]
fn what_could_not_leave_during_a_flush_leaves_after_it() {
    let bench = Bench::with_limits(256, 2, 8);
    bench.put_many([0, 1], &[5; 256]).unwrap();
    let gate = gate(&bench, "put", None);
    thread::scope(|scope| {
        let flush = beside(scope, || bench.flush().unwrap());
        gate.wait_for_visitor();
        bench.cache.set_limits(512 + BOOK, 4096 + 8 * BOOK).unwrap();
        assert_eq!(bench.stats().resident, 1024, "both are being written");
        gate.open();
        flush.recv().unwrap();
    });
    assert_eq!(bench.stats().resident, 512);
}

#[test]
fn chunks_of_one_request_are_decoded_encoded_and_gathered_side_by_side() {
    for callback in ["decode", "encode", "gather"] {
        let executor = Arc::new(Pool::new(2).unwrap());
        let config = Config::default().executor(executor);
        let bench = Bench::new(config, Toy::new(256));
        bench.toy.store(0..16, |_, _| 1);
        let met = Arc::new(Meeting::default());
        let there = Arc::clone(&met);
        bench.toy.set_hook(move |name, _| {
            if name == callback {
                there.come();
            }
            Ok(())
        });
        let parts = (0..16).map(|key| (key, Write::Put { start: 0, data: &[2] }));
        bench.cache.write(&bench.dataset, parts).unwrap();
        bench.flush().unwrap();
        assert!(met.happened(), "{callback}");
    }
}

#[test]
fn one_who_finds_no_room_waits_for_those_who_use_it() {
    // Room for one chunk at a time.
    let bench = Bench::with_limits(256, 1, 2);
    bench.toy.store(0..4, |_, _| 1);
    let gate = gate(&bench, "decode", Some(0));
    thread::scope(|scope| {
        let first = beside(scope, || bench.get(0).unwrap());
        gate.wait_for_visitor();
        let second = beside(scope, || bench.get(1).unwrap());
        assert!(second.is_held_back());
        gate.open();
        first.recv().unwrap();
        second.recv().unwrap();
    });
    assert!(bench.stats().peak <= 1024 + 2 * BOOK);
}

#[test]
fn large_requests_take_turns_and_small_ones_pass() {
    // In flight there is room for the groups of one large request.
    let bench = Bench::with_limits(256, 8, 12);
    bench.toy.store(0..30, |_, _| 1);
    let gate = gate(&bench, "decode", Some(0));
    thread::scope(|scope| {
        let first = beside(scope, || bench.get_many(0..6).unwrap());
        gate.wait_for_visitor();
        let second = beside(scope, || bench.get_many(10..16).unwrap());
        assert!(second.is_held_back());
        bench.get(20).unwrap();
        gate.open();
        first.recv().unwrap();
        second.recv().unwrap();
    });
}

/// More chunks than a request has served at a time.
const VERY_MANY: u64 = 10_000;

#[test]
fn a_write_of_very_many_chunks_is_one_request_to_others() {
    let bench = Bench::with_limits(16, 1 << 20, 2 << 20);
    let gate = gate(&bench, "gather", Some(VERY_MANY - 1));
    thread::scope(|scope| {
        let write = beside(scope, || bench.put_many(0..VERY_MANY, &[2; 16]).unwrap());
        gate.wait_for_visitor();
        let read = beside(scope, || bench.get_many([0, VERY_MANY - 1]).unwrap());
        let one = beside(scope, || bench.get(0).unwrap());
        assert!(read.is_held_back(), "not all of it is written");
        assert!(one.is_held_back());
        gate.open();
        write.recv().unwrap();
        assert_eq!(read.recv().unwrap(), [[2; 16]; 2]);
        assert_eq!(one.recv().unwrap(), [2; 16]);
    });
}

#[test]
fn a_read_of_very_many_chunks_holds_back_writes_but_no_reads() {
    let bench = Bench::with_limits(16, 1 << 20, 2 << 20);
    bench.toy.store(0..VERY_MANY, |_, _| 1);
    let gate = gate(&bench, "scatter", Some(VERY_MANY - 1));
    thread::scope(|scope| {
        let read = beside(scope, || bench.get_many(0..VERY_MANY).unwrap());
        gate.wait_for_visitor();
        assert_eq!(bench.get_many([3, 5]).unwrap(), [[1; 16]; 2]);
        let write = beside(scope, || bench.put(VERY_MANY - 2, 0, &[9]).unwrap());
        assert!(write.is_held_back(), "this chunk is being read");
        gate.open();
        assert!(read.recv().unwrap().iter().all(|chunk| *chunk == [1; 16]));
        write.recv().unwrap();
    });
}

/// A cache with a dataset that goes past it and says which cells its requests touch; the first callback of
/// some name waits at a gate.
fn reaching(callback: &'static str) -> (Bench, Arc<Gate>) {
    let toy = Toy { unchunked: true, reaches: true, ..Toy::new(64) };
    let bench = Bench::new(Config::default(), toy);
    bench.toy.store([0], |_, _| 1);
    let gate = Arc::new(Gate::default());
    let (there, first) = (Arc::clone(&gate), Mutex::new(true));
    bench.toy.set_hook(move |name, _| {
        if name == callback && std::mem::take(&mut *first.lock().unwrap()) {
            there.pass();
        }
        Ok(())
    });
    (bench, gate)
}

/// Reads cells of the first chunk.
fn cells(bench: &Bench, start: usize, len: usize) -> Vec<u8> {
    let mut out = vec![0; len];
    let read = Read::Values { start, out: &mut out };
    bench.cache.read(&bench.dataset, [(0, read)]).unwrap();
    out
}

#[test]
fn requests_past_the_cache_wait_for_those_alone_that_they_meet() {
    let (bench, gate) = reaching("direct_write");
    thread::scope(|scope| {
        let first = beside(scope, || bench.put(0, 10, &[2; 10]).unwrap());
        gate.wait_for_visitor();
        let apart = beside(scope, || {
            bench.put(0, 20, &[3; 10]).unwrap();
            bench.put(0, 0, &[3; 10]).unwrap();
            (cells(&bench, 0, 10), cells(&bench, 20, 44))
        });
        let apart = apart.soon("nobody is in its way");
        assert_eq!(apart, (vec![3; 10], [vec![3; 10], vec![1; 34]].concat()));
        let read = beside(scope, || cells(&bench, 0, 11));
        let write = beside(scope, || bench.put(0, 19, &[4; 2]).unwrap());
        assert!(read.is_held_back() && write.is_held_back());
        // One that meets the waiting write waits with it; one that meets nobody does not.
        let behind = beside(scope, || cells(&bench, 20, 2));
        assert!(behind.is_held_back());
        let beyond = beside(scope, || cells(&bench, 21, 2));
        assert_eq!(beyond.soon("nobody is in its way"), [3, 3]);
        gate.open();
        first.recv().unwrap();
        write.recv().unwrap();
        assert_eq!(read.recv().unwrap(), [[3; 10].as_slice(), &[2]].concat());
        assert_eq!(behind.recv().unwrap(), [4, 3]);
    });
}

#[test]
fn a_write_past_the_cache_waits_for_reads_that_it_meets() {
    let (bench, gate) = reaching("direct_read");
    thread::scope(|scope| {
        let first = beside(scope, || cells(&bench, 0, 8));
        gate.wait_for_visitor();
        bench.put(0, 8, &[5; 8]).unwrap();
        assert_eq!(cells(&bench, 4, 8), [1, 1, 1, 1, 5, 5, 5, 5], "reads do not wait for reads");
        let write = beside(scope, || bench.put(0, 7, &[6]).unwrap());
        assert!(write.is_held_back());
        gate.open();
        assert_eq!(first.recv().unwrap(), [1; 8]);
        write.recv().unwrap();
    });
}

#[test]
fn flushes_and_sole_use_wait_for_all_that_go_past_the_cache() {
    let (bench, gate) = reaching("direct_write");
    thread::scope(|scope| {
        let first = beside(scope, || bench.put(0, 0, &[2; 4]).unwrap());
        gate.wait_for_visitor();
        let flush = beside(scope, || bench.flush().unwrap());
        assert!(flush.is_held_back());
        let later = beside(scope, || bench.put(0, 60, &[2; 4]).unwrap());
        assert!(later.is_held_back(), "a flush holds back later writes");
        let sole = beside(scope, || drop(bench.cache.exclusive(&bench.dataset)));
        assert!(sole.is_held_back());
        let last = beside(scope, || cells(&bench, 30, 1));
        assert!(last.is_held_back(), "sole use holds back reads");
        gate.open();
        first.recv().unwrap();
        flush.recv().unwrap();
        later.recv().unwrap();
        sole.recv().unwrap();
        last.recv().unwrap();
    });
}
