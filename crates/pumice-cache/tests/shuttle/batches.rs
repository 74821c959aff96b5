//! Requests of more chunks than are served at a time.

use super::*;

/// More than twice as many as are served at a time here.
const MANY: u64 = 9;

#[test]
fn requests_of_very_many_chunks_are_seen_whole_or_not_at_all() {
    check(|| {
        let bench = bench(4 * CHUNK, 6 * CHUNK);
        bench.toy.store(0..MANY, |_, _| 1);
        let same = |keys: &[u64]| {
            let found = bench.get_many(keys.iter().copied()).unwrap();
            assert!(found.windows(2).all(|two| two[0] == two[1]), "{keys:?}");
        };
        let all: Vec<u64> = (0..MANY).collect();
        thread::scope(|scope| {
            scope.spawn(|| bench.put_many(0..MANY, &[2; CELLS]).unwrap());
            scope.spawn(|| bench.put_many(0..MANY, &[3; CELLS]).unwrap());
            scope.spawn(|| same(&all));
            scope.spawn(|| same(&[0, MANY - 1]));
        });
        same(&all);
    });
}
