//! Sets of more runs than the compact form of the location filter can have: they are stored as they are, with
//! every filter behind it, come back from there, and take memory by their plain form.

#[path = "../../../pumice/tests/it/memory.rs"]
mod memory;

use pumice_filter::location::{self, Aim, encode_cells};
use pumice_filter::{FilterSpec, Pipeline, find};
use pumice_space::CellSet;

/// The most runs that have a compact form.
const MOST: u64 = 1 << 22;

/// The most memory that the thread took, beyond what it held before.
fn peak<T>(action: impl FnOnce() -> T) -> (T, usize) {
    memory::reset();
    let done = action();
    (done, memory::peak() as usize)
}

/// So many cells without neighbours, in no pattern.
fn scattered(runs: u64) -> CellSet {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut cell = 0;
    let cells = (0..runs).map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        cell += 2 + state % 3;
        cell
    });
    CellSet::from_sorted_cells(5 * runs, cells.collect::<Vec<_>>()).unwrap()
}

#[test]
fn sets_of_more_runs_than_the_compact_form_has_are_skipped_or_carried_verbatim_and_come_back() {
    for runs in [MOST, MOST + 1] {
        let cells = scattered(runs);
        let dims = [5 * runs];
        let mut filters = vec![FilterSpec::location(), FilterSpec::zstd(1)];
        for (optional, others) in [(true, 1), (true, 0), (false, 0)] {
            filters.truncate(1 + others);
            filters[0].optional = optional;
            let pipeline = Pipeline::new(filters.clone()).unwrap();
            let stored = pipeline.encode_cells(&dims, &cells).unwrap();
            let skipped = runs > MOST && optional;
            assert_eq!(stored.mask & 1, u32::from(skipped), "{runs} runs, {filters:?}");
            if runs > MOST && others == 0 {
                let verbatim = u64::from(!optional);
                assert_eq!(stored.bytes.len() as u64, stored.unfiltered + verbatim);
            }
            let (shape, back) = pipeline
                .decode_cells(&stored.bytes, stored.mask, stored.unfiltered, dims[0])
                .unwrap();
            assert!(shape.as_slice() == dims && back == cells, "{runs} runs, {filters:?}");
        }
    }
}

#[test]
fn bytes_of_so_many_runs_go_through_the_filter_and_come_back() {
    let cells = scattered(MOST + 1);
    let dims = [5 * (MOST + 1)];
    let plain = Pipeline::new(Vec::new()).unwrap().encode_cells(&dims, &cells).unwrap().bytes;
    let filter = find(location::ID).unwrap();
    let (mut encoded, mut decoded) = (Vec::new(), Vec::new());
    filter.encode(&[], &plain, &mut encoded).unwrap();
    assert_eq!((encoded[0], encoded.len()), (0, plain.len() + 1), "verbatim");
    filter.decode(&[], &encoded, plain.len(), &mut decoded).unwrap();
    assert!(decoded == plain);
    assert!(filter.decode(&[], &encoded, plain.len() - 1, &mut decoded).is_err(), "the limit");
    let mut direct = Vec::new();
    for aim in [Aim::Short, Aim::Fast] {
        assert_eq!(encode_cells(&dims, &cells, aim, &mut direct).unwrap(), plain.len() as u64);
        assert!(direct == encoded);
    }
}

#[test]
fn memory_stays_in_proportion_to_the_plain_form() {
    let pipeline = Pipeline::new(vec![FilterSpec::location(), FilterSpec::zstd(1)]).unwrap();
    for runs in [MOST / 4, MOST + 1] {
        let cells = scattered(runs);
        let dims = [5 * runs];
        let (stored, writing) = peak(|| pipeline.encode_cells(&dims, &cells).unwrap());
        let (back, reading) = peak(|| {
            pipeline.decode_cells(&stored.bytes, stored.mask, stored.unfiltered, dims[0]).unwrap()
        });
        assert!(back.1 == cells);
        let plain = stored.unfiltered as usize;
        println!(
            "{runs} runs: {} of {plain} bytes, {writing} and {reading} in memory",
            stored.bytes.len()
        );
        assert!(writing <= 6 * plain, "{writing} byte(s) for {plain}, {runs} runs");
        assert!(reading <= 6 * plain, "{reading} byte(s) for {plain}, {runs} runs");
    }
}
