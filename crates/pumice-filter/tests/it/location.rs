//! The location filter: reversible for all bytes, the same on its fast path, close to the entropy.

use proptest::prelude::*;
use pumice_bytes::{Budget, Writer};
use pumice_filter::location::{
    self, Aim, RowBreaks, RowEncoder, RowSteps, RunEncoder, decode_cells, encode_cells,
};
use pumice_filter::{Filter, FilterSpec, Pipeline};
use pumice_space::{CellSet, Run, Selection, serial};
use std::ops::Range;

fn filter() -> &'static dyn Filter {
    pumice_filter::find(location::ID).expect("built in")
}

fn plain(dims: &[u64], cells: &CellSet) -> Vec<u8> {
    let mut out = Vec::new();
    serial::encode_cells(dims, cells, &mut out).unwrap();
    out.put_checksum(0);
    out
}

fn encode(input: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    filter().encode(&[], input, &mut out).unwrap();
    out
}

fn decode(input: &[u8], limit: usize) -> Vec<u8> {
    let mut out = Vec::new();
    filter().decode(&[], input, limit, &mut out).unwrap();
    out
}

/// All that must hold of a set: the filter is undone, the fast paths agree with it.
fn check(dims: &[u64], cells: &CellSet) {
    let plain = plain(dims, cells);
    let encoded = encode(&plain);
    assert!(encoded.len() <= plain.len() + 1);
    assert_eq!(decode(&encoded, plain.len()), plain);
    assert!(filter().decode(&[], &encoded, plain.len() - 1, &mut Vec::new()).is_err());

    let mut fast = vec![9; 5];
    assert_eq!(encode_cells(dims, cells, Aim::Short, &mut fast).unwrap(), plain.len() as u64);
    assert_eq!(fast, encoded);
    if let Some((found, set)) = decode_cells(&encoded, &mut Budget::new(1 << 30)).unwrap() {
        assert_eq!((found.as_slice(), &set), (dims, cells));
    }
    // In the form that is read fastest, too.
    assert_eq!(encode_cells(dims, cells, Aim::Fast, &mut fast).unwrap(), plain.len() as u64);
    assert!(fast.len() < 2 * plain.len());
    assert_eq!(decode(&fast, plain.len()), plain);
    if let Some((found, set)) = decode_cells(&fast, &mut Budget::new(1 << 30)).unwrap() {
        assert_eq!((found.as_slice(), &set), (dims, cells));
    }
    for specs in [vec![FilterSpec::location(), FilterSpec::zstd(3)], vec![FilterSpec::deflate(1)]] {
        let pipeline = Pipeline::new(specs).unwrap();
        let stored = pipeline.encode_cells(dims, cells).unwrap();
        assert_eq!((stored.bytes.clone(), stored.mask), pipeline.encode(plain.clone()).unwrap());
        assert_eq!(stored.unfiltered, plain.len() as u64);
        let back = pipeline.decode(stored.bytes.clone(), stored.mask, plain.len()).unwrap();
        assert_eq!(back, plain);
        let total = dims.iter().product();
        let (bytes, mask) = (&stored.bytes, stored.mask);
        let (found, set) = pipeline.decode_cells(bytes, mask, stored.unfiltered, total).unwrap();
        assert_eq!((found.as_slice(), &set), (dims, cells));
        assert!(pipeline.decode_cells(bytes, mask, stored.unfiltered, total - 1).is_err());
    }
}

/// A matrix row by row, the chunk's first column being `first`, among columns of other cells; whether it
/// is encoded so.
fn check_rows(dims: [u64; 2], cells: &CellSet, first: u32) -> bool {
    let short = vec![FilterSpec::location(), FilterSpec::zstd(3)];
    let short = check_rows_of(dims, cells, first, Pipeline::new(short).unwrap());
    let fast = Pipeline::new(vec![FilterSpec::location()]).unwrap();
    assert_eq!(fast.location_aim(), Aim::Fast);
    short & check_rows_of(dims, cells, first, fast)
}

fn check_rows_of(dims: [u64; 2], cells: &CellSet, first: u32, pipeline: Pipeline) -> bool {
    let (mut columns, mut rows) = (vec![7; first as usize % 20], Vec::new());
    for row in 0..dims[0] {
        let start = columns.len();
        let inside = (0..dims[1]).filter(|column| cells.position(row * dims[1] + column).is_some());
        columns.extend(inside.map(|column| first + column as u32));
        rows.push((row as u32, start..columns.len()));
    }
    columns.extend(vec![9; first as usize % 30]);
    let encode = |rows: &[(u32, Range<usize>)]| {
        let mut encoder = RowEncoder::new(dims, first, 10, pipeline.location_aim()).unwrap();
        let steps = RowSteps::new(&columns, 0..columns.len());
        rows.iter().for_each(|(row, range)| encoder.row(*row, &steps, range.clone()));
        encoder.finish()
    };
    let located = encode(&rows);
    assert_eq!(&located.to_set().unwrap(), cells);
    // Rows that do not come in order are not taken.
    let twice = encode(&[rows.clone(), rows.clone()].concat());
    assert!(cells.is_empty() || !twice.is_final());

    let by_set = pipeline.encode_cells(&dims, cells).unwrap();
    let by_rows = pipeline.encode_rows(&located).unwrap();
    if let Some(by_rows) = &by_rows {
        assert_eq!((by_rows.unfiltered, by_rows.mask), (by_set.unfiltered, by_set.mask));
        let (bytes, total) = (&by_rows.bytes, dims[0] * dims[1]);
        let back = pipeline.decode_cells(bytes, by_rows.mask, by_rows.unfiltered, total).unwrap();
        assert_eq!((back.0.as_slice(), &back.1), (&dims[..], cells));
    }
    let encode_runs = |rows: &[(u32, Range<usize>)]| {
        let mut encoder = RunEncoder::new(dims, first, pipeline.location_aim()).unwrap();
        let breaks = RowBreaks::new(&columns, 0..columns.len());
        rows.iter().for_each(|(row, range)| encoder.row(*row, &breaks, range.clone()));
        encoder.finish()
    };
    let runs = encode_runs(&rows);
    assert_eq!(&runs.to_set().unwrap(), cells);
    assert!(cells.is_empty() || !encode_runs(&[rows.clone(), rows].concat()).is_final());
    if let Some(by_runs) = pipeline.encode_rows(&runs).unwrap() {
        assert_eq!(by_runs.unfiltered, by_set.unfiltered);
        let (bytes, total) = (&by_runs.bytes, dims[0] * dims[1]);
        let back = pipeline.decode_cells(bytes, by_runs.mask, by_runs.unfiltered, total).unwrap();
        assert_eq!((back.0.as_slice(), &back.1), (&dims[..], cells));
    }
    let others = Pipeline::new(vec![FilterSpec::zstd(1)]).unwrap();
    assert_eq!(others.encode_rows(&located).unwrap(), None);
    by_rows == Some(by_set)
}

#[test]
fn scattered_cells_of_a_matrix_are_taken_row_by_row() {
    let mut random = Random(5);
    for (dims, one_in) in [([300, 500], 100), ([64, 4000], 9), ([900, 30], 20), ([1000, 1000], 900)]
    {
        let total = dims[0] * dims[1];
        let cells = (0..total).filter(|_| random.below(one_in) == 0).collect::<Vec<_>>();
        let set = CellSet::from_sorted_cells(total, cells).unwrap();
        assert!(check_rows(dims, &set, 4000), "{dims:?}");
    }
    // Clusters far apart: gaps of very different length in one block.
    let (mut random, mut member) = (Random(9), vec![false; 1_000_000]);
    for _ in 0..300 {
        let (top, left) = (random.below(980) as usize, random.below(980) as usize);
        (0..400).for_each(|at| member[(top + at / 20) * 1000 + left + at % 20] = at % 3 > 0);
    }
    let cells = (0..1_000_000).filter(|cell| member[*cell as usize]);
    check_rows([1000, 1000], &CellSet::from_sorted_cells(1_000_000, cells).unwrap(), 77);
    // Every cell; every other row; the same cells in every row.
    let all = (0..10_000).collect::<Vec<u64>>();
    let striped = all.iter().copied().filter(|cell| cell / 100 % 2 == 0).collect();
    let upright = all.iter().copied().filter(|cell| cell % 7 == 0).collect();
    for cells in [all.clone(), striped, upright] {
        assert!(!check_rows([100, 100], &CellSet::from_sorted_cells(10_000, cells).unwrap(), 0));
    }
}

fn dims() -> impl Strategy<Value = Vec<u64>> {
    prop_oneof![
        proptest::collection::vec(1u64..3000, 1..2),
        proptest::collection::vec(1u64..60, 2..3),
        proptest::collection::vec(1u64..12, 3..5),
    ]
}

/// Cells of a chunk: scattered at some density, or boxes, or runs.
fn set() -> impl Strategy<Value = (Vec<u64>, CellSet)> {
    let shape = (dims(), any::<u64>(), 0u32..12, 0u8..3);
    shape.prop_map(|(dims, seed, level, style)| {
        let total: u64 = dims.iter().product();
        let mut random = Random(seed | 1);
        let member: Vec<bool> = match style {
            0 => (0..total).map(|_| random.below(1 << 12) < 1 << level).collect(),
            1 => boxes(&dims, &mut random, level),
            _ => runs(total, &mut random, 1 << level),
        };
        let cells = (0..total).filter(|cell| member[*cell as usize]);
        let set = CellSet::from_sorted_cells(total, cells).unwrap();
        (dims, set)
    })
}

fn boxes(dims: &[u64], random: &mut Random, count: u32) -> Vec<bool> {
    let total: u64 = dims.iter().product();
    let mut member = vec![false; total as usize];
    for _ in 0..count {
        let corners: Vec<(u64, u64)> = dims
            .iter()
            .map(|dim| (random.below(*dim), random.below(*dim)))
            .map(|(a, b)| (a.min(b), a.max(b)))
            .collect();
        for cell in 0..total {
            let mut rest = cell;
            let inside = dims.iter().zip(&corners).rev().all(|(dim, (low, high))| {
                let at = rest % dim;
                rest /= dim;
                (*low..=*high).contains(&at)
            });
            member[cell as usize] |= inside;
        }
    }
    member
}

fn runs(total: u64, random: &mut Random, mean: u64) -> Vec<bool> {
    let mut member = Vec::new();
    while member.len() < total as usize {
        let len = random.below(2 * mean) as usize;
        let inside = random.below(2) == 1;
        member.extend(std::iter::repeat_n(inside, len));
    }
    member
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(160))]

    #[test]
    fn rows_of_any_matrix_say_the_same_as_its_cells((dims, cells) in set(), first in 0u32..5000) {
        if let &[rows, columns] = dims.as_slice() {
            check_rows([rows, columns], &cells, first);
        }
    }

    #[test]
    fn every_set_comes_back_on_both_paths((dims, cells) in set()) {
        check(&dims, &cells);
    }

    #[test]
    fn any_bytes_come_back(input in proptest::collection::vec(any::<u8>(), 0..300)) {
        let encoded = encode(&input);
        prop_assert_eq!(decode(&encoded, input.len()), input);
    }

    #[test]
    fn plain_forms_that_are_not_canonical_come_back(
        (dims, cells) in set(),
        at in any::<proptest::sample::Index>(),
        byte in any::<u8>(),
        repair in any::<bool>(),
    ) {
        let mut input = plain(&dims, &cells);
        let body = input.len() - 4;
        input[at.index(body)] = byte;
        if repair {
            input.truncate(body);
            input.put_checksum(0);
        }
        let encoded = encode(&input);
        prop_assert_eq!(decode(&encoded, input.len()), input);
    }

    #[test]
    fn damaged_forms_are_refused(
        (dims, cells) in set(),
        at in any::<proptest::sample::Index>(),
        bit in 0u32..8,
    ) {
        let mut encoded = encode(&plain(&dims, &cells));
        let at = at.index(encoded.len());
        encoded[at] ^= 1 << bit;
        if encoded[0] == 1 {
            prop_assert!(decode_cells(&encoded, &mut Budget::new(1 << 24)).is_err());
            prop_assert!(filter().decode(&[], &encoded, 1 << 20, &mut Vec::new()).is_err());
        }
    }

    #[test]
    fn hostile_forms_with_a_right_checksum_give_a_set_or_an_error(
        (dims, cells) in set(),
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut encoded = encode(&plain(&dims, &cells));
        if encoded[0] == 1 {
            encoded.truncate(encoded.len() - 4);
            for (at, byte) in changes {
                let at = at.index(encoded.len() - 1) + 1;
                encoded[at] = byte;
            }
            encoded.put_checksum(0);
            if let Ok(Some((dims, set))) = decode_cells(&encoded, &mut Budget::new(1 << 24)) {
                prop_assert_eq!(dims.iter().product::<u64>(), set.cells());
                prop_assert!(set.len() <= set.cells());
            }
            let _ = filter().decode(&[], &encoded, 1 << 20, &mut Vec::new());
        }
    }
}

#[test]
fn a_few_bytes_cannot_ask_for_much_memory() {
    // A chunk of 2^48 cells, every other one defined: two constant streams.
    let mut bytes = vec![1, 2, 1];
    bytes.extend_from_slice(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40]);
    bytes.push(0);
    bytes.extend_from_slice(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20]);
    bytes.extend_from_slice(&[0, 0, 0, 0]);
    bytes.put_checksum(0);
    assert!(decode_cells(&bytes, &mut Budget::new(1 << 30)).is_err());
    assert!(filter().decode(&[], &bytes, usize::MAX, &mut Vec::new()).is_err());
}

#[test]
fn a_plain_form_is_not_looked_into_before_its_checksum() {
    // Every other cell of 2^40: a few bytes that stand for more runs than fit into memory.
    let cells = Selection::hyperslab(&[0], &[2], &[1 << 39], &[1]).unwrap();
    let mut bytes = Vec::new();
    serial::encode_dataspace(&[1 << 40], &cells, &mut bytes).unwrap();
    bytes.put_checksum(0);
    *bytes.last_mut().unwrap() ^= 1;
    let length = bytes.len() as u64;
    for filters in [vec![], vec![FilterSpec::location()]] {
        let pipeline = Pipeline::new(filters).unwrap();
        let stored = [&vec![0; pipeline.specs().len()], &bytes[..]].concat();
        let error = pipeline.decode_cells(&stored, 0, length, 1 << 40).unwrap_err().to_string();
        assert!(error.contains("checksum"), "{error}");
    }
}

/// A form with its checksum, and what reading it directly and as a filter says.
fn refusals(content: &[u8]) -> [String; 2] {
    let mut bytes = content.to_vec();
    bytes.put_checksum(0);
    let direct = decode_cells(&bytes, &mut Budget::new(1 << 30)).unwrap_err();
    let filtered = filter().decode(&[], &bytes, usize::MAX, &mut Vec::new()).unwrap_err();
    [direct.to_string(), filtered.to_string()]
}

#[test]
fn leftover_bits_of_a_packed_stream_are_refused_though_the_checksum_is_right() {
    for (content, reason) in [
        (&[1, 1, 1, 10, 0, 3, 1, 0, 1, 0x9C][..], "one bit for every number"),
        (&[1, 1, 1, 10, 0, 3, 1, 1, 1, 0x16, 0x0C], "zero bits"),
        (&[1, 1, 1, 10, 0, 3, 1, 0, 2, 0x8C, 0], "spare bytes"),
        // The second stream of a set of runs, and a set that is transformed.
        (&[1, 2, 1, 10, 0, 2, 0, 1, 1, 0, 1, 0x07], "one bit for every number"),
        (&[1, 5, 2, 5, 2, 1, 3, 1, 0, 1, 0x9C], "one bit for every number"),
    ] {
        for error in refusals(content) {
            assert!(error.contains(reason), "{error}");
        }
    }
}

#[test]
fn compact_forms_of_too_many_runs_are_refused() {
    // Every other cell, of 2^23 and of two more.
    let most = [1, 2, 1, 0x80, 0x80, 0x80, 0x04, 0, 0x80, 0x80, 0x80, 0x02, 0, 0, 0, 0];
    let mut bytes = most.to_vec();
    bytes.put_checksum(0);
    let (_, set) = decode_cells(&bytes, &mut Budget::new(1 << 30)).unwrap().unwrap();
    assert_eq!(set.run_count(), 1 << 22);
    let more = [1, 2, 1, 0x82, 0x80, 0x80, 0x04, 0, 0x81, 0x80, 0x80, 0x02, 0, 0, 0, 0];
    // The first column of a chunk of 2^23 rows of two: one run before the difference is undone.
    let column = [1, 1, 2, 0x80, 0x80, 0x80, 0x04, 2, 1, 1, 0, 0];
    for content in [&more[..], &column] {
        for error in refusals(content) {
            assert!(error.contains("4194304 runs"), "{error}");
        }
    }
}

/// Every other cell of some is a short hyperslab; here it is gaps and lengths.
fn every_other(cells: u64) -> Vec<u8> {
    let runs = cells as usize / 2;
    let mut bytes = vec![1, 2, 1];
    match cells {
        ..128 => bytes.push(cells as u8),
        _ => bytes.extend([cells as u8 | 0x80, (cells >> 7) as u8]),
    }
    bytes.extend([0, runs as u8, 2]);
    bytes.extend(vec![0; runs + 1]);
    bytes.push(2);
    bytes.extend(vec![0; runs + 1]);
    bytes.put_checksum(0);
    bytes
}

#[test]
fn compact_forms_that_are_twice_as_long_as_the_plain_ones_are_refused() {
    let pipeline = Pipeline::new(vec![FilterSpec::location()]).unwrap();
    let set = |bytes: &[u8]| decode_cells(bytes, &mut Budget::new(1 << 20)).unwrap().unwrap();
    let long = every_other(240);
    let (dims, cells) = set(&long);
    let length = plain(&dims, &cells).len();
    assert!(2 * length <= long.len());
    let error = filter().decode(&[], &long, 1000, &mut Vec::new()).unwrap_err();
    assert!(error.to_string().contains("fewer than twice"), "{error}");
    for unfiltered in [length, long.len() / 2] {
        assert!(pipeline.decode_cells(&long, 0, unfiltered as u64, 240).is_err());
    }
    // Those that are longer, but not so much, are the writer's choice.
    let longer = every_other(80);
    let (dims, cells) = set(&longer);
    let plain = plain(&dims, &cells);
    assert!(plain.len() < longer.len() && longer.len() < 2 * plain.len());
    assert_eq!(decode(&longer, plain.len()), plain);
    assert_eq!(
        pipeline.decode_cells(&longer, 0, plain.len() as u64, 80).unwrap(),
        (dims.clone(), cells)
    );
}

#[test]
fn boxes_that_no_compressor_follows_are_runs_as_they_are() {
    let (dims, mut random) = ([600, 900], Random(3));
    let mut member = vec![false; 540_000];
    for _ in 0..60 {
        let (top, left) = (random.below(560) as usize, random.below(880) as usize);
        let (high, wide) = (10 + random.below(30) as usize, 2 + random.below(18) as usize);
        for row in top..top + high {
            member[row * 900 + left..row * 900 + left + wide].fill(true);
        }
    }
    let cells = (0..540_000).filter(|cell| member[*cell as usize]);
    let cells = CellSet::from_sorted_cells(540_000, cells).unwrap();
    let mut fast = Vec::new();
    let plain = encode_cells(&dims, &cells, Aim::Fast, &mut fast).unwrap();
    assert!(fast.len() as u64 > plain && (fast.len() as u64) < 2 * plain, "{} {plain}", fast.len());
    // Runs, and no difference between rows.
    assert_eq!((&fast[..3], fast[7]), (&[1, 2, 2][..], 0));
    check_rows(dims, &cells, 40);
    let pipeline = Pipeline::new(vec![FilterSpec::location()]).unwrap();
    let stored = pipeline.encode_cells(&dims, &cells).unwrap();
    assert_eq!((&stored.bytes, stored.mask, stored.unfiltered), (&fast, 0, plain));
}

#[test]
fn empty_and_full_and_single_cells_come_back() {
    for dims in [&[1][..], &[7], &[5, 9], &[1, 1, 1], &[2, 3, 4, 5], &[1 << 40, 1 << 8]] {
        let total = dims.iter().product();
        check(dims, &CellSet::empty(total));
        check(dims, &CellSet::full(total));
        check(dims, &CellSet::from_sorted_cells(total, [0]).unwrap());
        check(dims, &CellSet::from_sorted_cells(total, [total - 1]).unwrap());
    }
}

#[test]
fn chunks_too_large_for_the_compact_form_are_carried_verbatim() {
    let total = 1 << 50;
    let cells = CellSet::from_sorted_cells(total, (0..1000).map(|n| n * 1_000_003)).unwrap();
    check(&[1 << 20, 1 << 30], &cells);
    let mut out = Vec::new();
    encode_cells(&[1 << 20, 1 << 30], &cells, Aim::Short, &mut out).unwrap();
    assert_eq!(out[0], 0);
}

/// Sizes after location and zstd at its default level.
fn stored(dims: &[u64], cells: &CellSet) -> usize {
    let pipeline = Pipeline::new(vec![FilterSpec::location(), FilterSpec::zstd(3)]).unwrap();
    let stored = pipeline.encode_cells(dims, cells).unwrap();
    let total = dims.iter().product();
    let back = pipeline.decode_cells(&stored.bytes, stored.mask, stored.unfiltered, total).unwrap();
    assert_eq!(&back.1, cells);
    stored.bytes.len()
}

/// `count` cells of `total`, all such sets equally likely.
fn scattered(total: u64, count: u64) -> CellSet {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut left = count;
    let cells = (0..total).filter(|cell| {
        let chosen = random.below(total - cell) < left;
        left -= u64::from(chosen);
        chosen
    });
    CellSet::from_sorted_cells(total, cells.collect::<Vec<_>>()).unwrap()
}

/// The entropy in bytes of a random set.
fn entropy(total: u64, count: u64) -> f64 {
    let p = count as f64 / total as f64;
    -(total as f64) * (p * p.log2() + (1.0 - p) * (1.0 - p).log2()) / 8.0
}

#[test]
fn scattered_cells_are_stored_near_their_entropy() {
    let million = 1 << 20;
    assert!(stored(&[1024, 1024], &scattered(million, million / 10)) <= 64_000);
    assert!(stored(&[1024, 1024], &scattered(million, million / 100)) <= 10_900);
    for (side, per_mille) in [(1024, 1), (1024, 3), (1024, 30), (1024, 200), (2048, 10)] {
        let (total, count) = (side * side, side * side * per_mille / 1000);
        let size = stored(&[side, side], &scattered(total, count)) as f64;
        let ratio = size / entropy(total, count);
        assert!(ratio <= 1.035, "{per_mille} of 1000 in {side}^2: {ratio} of the entropy");
    }
    for per_mille in [350, 400, 500, 650, 900, 990] {
        let size = stored(&[1024, 1024], &scattered(million, million * per_mille / 1000)) as f64;
        let ratio = size / entropy(million, million * per_mille / 1000);
        assert!(ratio <= 1.08, "{per_mille} of 1000: {ratio} of the entropy");
    }
}

#[test]
fn one_run_per_row_costs_its_start_and_length() {
    let mut random = Random(77);
    let runs = (0..1024).map(|row| {
        let start = random.below(1024);
        Run { start: row * 1024 + start, len: 1 + random.below(1024 - start) }
    });
    let cells = CellSet::from_runs(1 << 20, runs.collect::<Vec<_>>()).unwrap();
    assert!(stored(&[1024, 1024], &cells) <= 3000);
}

#[test]
fn shapes_cost_a_few_dozen_bytes() {
    let total = 1 << 20;
    let rectangle = (100..400).map(|row| Run { start: row * 1024 + 200, len: 577 });
    let block = (10..40)
        .flat_map(|z| (20..90).map(move |y| Run { start: (z * 128 + y) * 128 + 5, len: 72 }));
    let diagonal = (0..1024).map(|row| Run { start: row * 1025, len: 1 });
    let every_third = (0..total / 3).map(|at| Run { start: at * 3, len: 1 });
    assert!(stored(&[1024, 1024], &CellSet::full(total)) <= 40);
    assert!(stored(&[1024, 1024], &CellSet::from_runs(total, rectangle).unwrap()) <= 60);
    assert!(stored(&[64, 128, 128], &CellSet::from_runs(total, block).unwrap()) <= 80);
    assert!(stored(&[1024, 1024], &CellSet::from_runs(total, diagonal).unwrap()) <= 80);
    assert!(stored(&[total], &CellSet::from_runs(total, every_third).unwrap()) <= 80);
}

/// The rows of the table of sizes that can be made again: their sets, by name.
fn documented_set(name: &str) -> Option<(Vec<u64>, CellSet)> {
    let (square, total) = (vec![1024, 1024], 1u64 << 20);
    if let Some(share) = name.strip_prefix("random, ") {
        let (share, side) = match share.strip_suffix(" of 2048 x 2048") {
            Some(share) => (share, 2048),
            None => (share, 1024),
        };
        let percent: f64 = share.strip_suffix(" %")?.parse().ok()?;
        let count = (side * side) as f64 * percent / 100.0;
        return Some((vec![side; 2], scattered(side * side, count as u64)));
    }
    let cells = match name {
        "one rectangle" => {
            let rows = (100..400).map(|row| Run { start: row * 1024 + 200, len: 577 });
            CellSet::from_runs(total, rows).unwrap()
        }
        "every cell" => CellSet::full(total),
        _ => return None,
    };
    Some((square, cells))
}

#[test]
fn the_documented_sizes_are_those_of_today() {
    let document = include_str!("../../../../docs/format/location-filter.md");
    let number = |text: &str| text.replace(',', "").parse::<usize>().unwrap();
    let (_, table) = document.split_once("## Sizes").unwrap();
    let mut compared = 0;
    for line in table.lines().filter(|line| line.starts_with("| ")) {
        let fields: Vec<&str> = line.split('|').map(str::trim).collect();
        let Some((dims, cells)) = fields.get(1).and_then(|name| documented_set(name)) else {
            continue;
        };
        assert_eq!(number(fields[2]), cells.len() as usize, "{line}");
        let (length, size) = (plain(&dims, &cells).len(), stored(&dims, &cells));
        println!("{line} plain {length} stored {size}");
        // Another random set of as many cells takes a little more or less.
        let near =
            |documented: usize, found: usize| documented.abs_diff(found) * 100 <= found + 100;
        assert!(near(number(fields[3]), length), "{line}: the plain form has {length} bytes");
        assert!(near(number(fields[4]), size), "{line}: stored in {size} bytes");
        compared += 1;
    }
    assert_eq!(compared, 10, "rows of the table of sizes");
}

#[test]
fn rectangles_cost_by_their_number_not_by_their_rows() {
    let mut random = Random(5);
    let mut member = vec![false; 1 << 20];
    for _ in 0..200 {
        let (y, x) = (random.below(1010), random.below(1010));
        let (height, width) = (2 + random.below(11), 2 + random.below(11));
        for row in y..y + height {
            let start = (row * 1024 + x) as usize;
            member[start..start + width as usize].fill(true);
        }
    }
    let cells = (0..1 << 20).filter(|cell| member[*cell as usize]);
    let cells = CellSet::from_sorted_cells(1 << 20, cells).unwrap();
    assert!(cells.run_count() > 1000);
    assert!(stored(&[1024, 1024], &cells) <= 200 * 6);
}

#[test]
fn the_documented_examples_are_written_and_read() {
    // docs/format/location-filter.md
    let cells = CellSet::from_sorted_cells(10, [2, 3, 7]).unwrap();
    let bytes = [1, 1, 1, 10, 0, 3, 1, 0, 1, 0x8C, 0x22, 0x23, 0x11, 0x63];
    check_example(&[10], &cells, &bytes, 51);

    let rows = (20..50).map(|row| Run { start: row * 100 + 30, len: 40 });
    let cells = CellSet::from_runs(10_000, rows).unwrap();
    let mut bytes = vec![1, 2, 2, 100, 100, 1, 2, 1, 11, 1, 5, 0xEE, 0x7F, 0x1C, 0, 39];
    bytes.extend_from_slice(&[0xE9, 0xF7, 0xD8, 0x0E]);
    check_example(&[100, 100], &cells, &bytes, 59);
}

fn check_example(dims: &[u64], cells: &CellSet, bytes: &[u8], plain: u64) {
    let mut out = Vec::new();
    assert_eq!(encode_cells(dims, cells, Aim::Short, &mut out).unwrap(), plain);
    assert_eq!(out, bytes);
    let set = decode_cells(bytes, &mut Budget::new(1 << 20)).unwrap();
    assert_eq!(set, Some((dims.into(), cells.clone())));
    check(dims, cells);
}

/// Xorshift: small, and the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let high = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32;
        (high * end.max(1)) >> 32
    }
}

#[test]
fn runs_of_a_matrix_are_taken_row_by_row() {
    let (mut random, dims) = (Random(11), [400, 700]);
    let (mut columns, mut pointers) = (Vec::new(), vec![0]);
    for _ in 0..dims[0] {
        let mut column = random.below(40) as u32;
        while column + 12 < 700 {
            columns.extend(column..column + 3 + random.below(9) as u32);
            column += 14 + random.below(60) as u32;
        }
        pointers.push(columns.len());
    }
    let is_final = |columns: &[u32]| {
        let mut encoder = RunEncoder::new(dims, 0, Aim::Fast).unwrap();
        let rows = pointers.windows(2).enumerate();
        let breaks = RowBreaks::new(columns, 0..columns.len());
        rows.for_each(|(row, ends)| encoder.row(row as u32, &breaks, ends[0]..ends[1]));
        encoder.finish().is_final()
    };
    assert!(is_final(&columns));
    // Columns that do not ascend are not taken, wherever they are.
    for at in [1, 2, 40, columns.len() / 2, columns.len() - 2] {
        let mut wrong = columns.clone();
        wrong[at] = wrong[at - 1];
        assert!(pointers.contains(&at) || !is_final(&wrong), "{at}");
    }
}

#[test]
fn gaps_of_any_length_are_taken_row_by_row() {
    // Wider than a step of 16 bits, with gaps around what these hold.
    let dims = [40, 200_000];
    let steps = [65_533u64, 65_534, 65_535, 65_536, 65_537, 100_000, 1, 2];
    let mut cells = vec![0];
    while let Some(next) = cells.last().map(|last| last + steps[cells.len() % 8] + 7)
        && next < dims[0] * dims[1]
    {
        cells.push(next);
    }
    let set = CellSet::from_sorted_cells(dims[0] * dims[1], cells).unwrap();
    check_rows(dims, &set, 300_000);
}

#[test]
fn pieces_of_rows_know_their_columns_wherever_those_begin() {
    let mut random = Random(3);
    let columns: Vec<u32> = (0..3000)
        .scan(0, |at, _| {
            *at += 1 + random.below(3) as u32 * random.below(300) as u32;
            Some(*at)
        })
        .collect();
    let width = u64::from(columns[2999]) + 1;
    for (start, len) in [(0, 3000), (1, 31), (1, 32), (31, 33), (64, 64), (2990, 10), (700, 1)] {
        let range = start..start + len;
        let wanted = columns[range.clone()].iter().map(|column| u64::from(*column));
        let wanted = CellSet::from_sorted_cells(width, wanted).unwrap();
        for from in [0, start / 2, start] {
            let mut cells = RowEncoder::new([1, width], 0, 0, Aim::Fast).unwrap();
            cells.row(0, &RowSteps::new(&columns, from..5000), range.clone());
            let mut runs = RunEncoder::new([1, width], 0, Aim::Fast).unwrap();
            runs.row(0, &RowBreaks::new(&columns, from..range.end), range.clone());
            for found in [cells.finish(), runs.finish()] {
                assert_eq!(found.to_set().unwrap(), wanted, "{range:?} from {from}");
            }
        }
    }
}
