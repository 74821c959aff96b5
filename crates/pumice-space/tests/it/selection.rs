//! Selections against plain sets of coordinates.

use crate::model;
use crate::model::{Cells, Modelled, dims, every_cell, linear};
use proptest::prelude::*;
use pumice_space::{ChunkGrid, Dims, Run, Selection, plan};

fn check(selection: &Selection, expected: &Cells, dims: &[u64]) {
    let from_runs: Vec<u64> =
        selection.runs(dims).flat_map(|run| run.start..run.start + run.len).collect();
    let cells: Vec<u64> = expected.iter().map(|cell| linear(dims, cell)).collect();
    let mut sorted = from_runs;
    if selection.as_points().is_some() {
        sorted.sort_unstable();
        sorted.dedup();
    }
    assert_eq!(sorted, cells, "{selection:?}");
    if selection.as_points().is_none() {
        assert_eq!(selection.count(dims), expected.len() as u64);
        let runs: Vec<Run> = selection.runs(dims).collect();
        assert!(runs.windows(2).all(|pair| pair[0].end() < pair[1].start), "runs are maximal");
    }
    for cell in every_cell(dims) {
        assert_eq!(selection.contains(&cell), expected.contains(&cell), "{cell:?}");
    }
    let bounds = selection.bounds(dims);
    assert_eq!(bounds.is_none(), expected.is_empty());
    if let Some((low, high)) = bounds {
        for axis in 0..dims.len() {
            assert_eq!(low[axis], expected.iter().map(|cell| cell[axis]).min().unwrap());
            assert_eq!(high[axis], expected.iter().map(|cell| cell[axis]).max().unwrap());
        }
    }
    assert_eq!(selection.covers(dims), expected.len() == every_cell(dims).len());
    let mut blocks = Cells::new();
    let mut disjoint = true;
    selection.for_each_block(dims, |low, high| {
        let shape: Vec<u64> = low.iter().zip(high).map(|(low, high)| high - low + 1).collect();
        for cell in every_cell(&shape) {
            disjoint &= blocks.insert(cell.iter().zip(low).map(|(at, low)| at + low).collect());
        }
    });
    assert_eq!(&blocks, expected);
    assert!(disjoint || selection.as_points().is_some());
}

fn pair() -> impl Strategy<Value = (Vec<u64>, Modelled, Modelled)> {
    dims().prop_flat_map(|dims| {
        (Just(dims.clone()), model::selection(dims.clone()), model::selection(dims))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_cut_has_what_each_chunk_has(
        (dims, a, b) in pair(),
        sides in proptest::collection::vec(1..6u64, 4),
        left_out in proptest::collection::vec(any::<bool>(), 1..20),
    ) {
        let chunk: Vec<u64> = dims.iter().zip(sides.iter().cycle()).map(|(_, side)| *side).collect();
        let grid = ChunkGrid::new(&dims, &chunk).unwrap();
        let every = every_cell(&grid.counts()).into_iter().zip(left_out.iter().cycle());
        let chunks: Vec<Dims> =
            every.filter(|(_, out)| !**out).map(|(chunk, _)| Dims::from_slice(&chunk)).collect();
        // Spans of a union share what is below them.
        let both = a.selection.or(&b.selection, &dims).unwrap();
        for selection in [&a.selection, &both] {
            let mut found = selection.cut(&grid, &chunks).unwrap().into_iter().peekable();
            for (at, chunk) in chunks.iter().enumerate() {
                let block = Selection::block(&grid.origin(chunk), &grid.clipped(chunk)).unwrap();
                let inside = selection.and(&block, &dims).unwrap();
                match found.next_if(|(number, _)| *number == at) {
                    Some((_, cells)) => prop_assert!(cells.same_cells(&inside, &dims).unwrap()),
                    None => prop_assert_eq!(inside.count(&dims), 0),
                }
            }
            prop_assert!(found.next().is_none());
        }
    }

    #[test]
    fn operations_agree_with_plain_sets((dims, a, b) in pair()) {
        check(&a.selection, &a.cells, &dims);
        let (first, second) = (&a.selection, &b.selection);
        check(&first.or(second, &dims).unwrap(), &(&a.cells | &b.cells), &dims);
        check(&first.and(second, &dims).unwrap(), &(&a.cells & &b.cells), &dims);
        check(&first.xor(second, &dims).unwrap(), &(&a.cells ^ &b.cells), &dims);
        check(&first.not_b(second, &dims).unwrap(), &(&a.cells - &b.cells), &dims);
        check(&first.not_a(second, &dims).unwrap(), &(&b.cells - &a.cells), &dims);
        let mut grown = first.clone();
        grown.append(second, &dims).unwrap();
        check(&grown, &(&a.cells | &b.cells), &dims);
        prop_assert_eq!(first.same_cells(second, &dims).unwrap(), a.cells == b.cells);
        let twice = first.xor(second, &dims).unwrap().xor(second, &dims).unwrap();
        prop_assert!(twice.same_cells(first, &dims).unwrap());
    }

    #[test]
    fn appending_in_order_equals_the_union(
        (dims, parts) in dims().prop_flat_map(|dims| {
            let parts = prop::collection::vec(model::selection(dims.clone()), 0..8);
            (Just(dims), parts)
        })
    ) {
        let mut sorted = parts.clone();
        sorted.sort_by(|a, b| a.cells.first().cmp(&b.cells.first()));
        let mut grown = Selection::none();
        for part in &sorted {
            grown.append(&part.selection, &dims).unwrap();
        }
        let cells: Cells = parts.iter().flat_map(|part| part.cells.clone()).collect();
        check(&grown, &cells, &dims);
        let all = parts.into_iter().map(|part| part.selection);
        let union = Selection::union_of(dims.len(), all, &dims).unwrap();
        check(&union, &cells, &dims);
    }

    #[test]
    fn moving_and_clipping_agree_with_plain_sets(
        (dims, a, offset) in dims().prop_flat_map(|dims| {
            let offset = prop::collection::vec(-3i64..4, dims.len());
            (Just(dims.clone()), model::selection(dims), offset)
        })
    ) {
        if a.selection.is_all() {
            return Ok(());
        }
        let up: Vec<i64> = offset.iter().map(|by| by + 3).collect();
        let down: Vec<i64> = vec![-3; dims.len()];
        let room: Vec<u64> = dims.iter().map(|size| size + 6).collect();
        let moved = a.selection.translate(&up).unwrap();
        let shift = |cell: &Vec<u64>, by: &[i64]| -> Option<Vec<u64>> {
            cell.iter().zip(by).map(|(at, by)| at.checked_add_signed(*by)).collect()
        };
        let expected: Cells = a.cells.iter().filter_map(|cell| shift(cell, &up)).collect();
        check(&moved, &expected, &room);
        let inside: Cells = expected
            .iter()
            .filter(|cell| cell.iter().zip(&dims).all(|(at, size)| at < size))
            .cloned()
            .collect();
        check(&moved.clip(&dims).unwrap(), &inside, &dims);
        prop_assert_eq!(moved.check(&dims).is_ok(), inside == expected);
        let back: Option<Cells> = expected.iter().map(|cell| shift(cell, &down)).collect();
        prop_assert_eq!(moved.translate(&down).is_ok(), back.is_some());
    }

    #[test]
    fn runs_leave_out_what_lies_outside(
        (dims, a) in dims().prop_flat_map(|dims| (Just(dims.clone()), model::selection(dims))),
        smaller in 1u64..4,
    ) {
        let cut: Vec<u64> = dims.iter().map(|&size| size.min(smaller)).collect();
        let expected: Vec<u64> = a.cells
            .iter()
            .filter(|cell| cell.iter().zip(&cut).all(|(at, size)| at < size))
            .map(|cell| linear(&cut, cell))
            .collect();
        let mut found: Vec<u64> =
            a.selection.runs(&cut).flat_map(|run| run.start..run.end()).collect();
        if a.selection.as_points().is_some() {
            found.sort_unstable();
            found.dedup();
        }
        prop_assert_eq!(found, expected);
    }
}

/// Numbers at which arithmetic breaks.
fn extreme() -> impl Strategy<Value = u64> + Clone {
    prop::sample::select(vec![0, 1, 2, 3, 7, 1 << 32, 1 << 40, 1 << 63, u64::MAX - 1, u64::MAX])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn extreme_numbers_give_an_answer_or_an_error(
        (dims, a, b, offset) in (1usize..4).prop_flat_map(|rank| {
            let axes = prop::collection::vec((extreme(), extreme(), extreme(), extreme()), rank);
            let dims = prop::collection::vec(extreme(), rank);
            let offset = prop::sample::select(vec![0, 1, -1, i64::MIN, i64::MAX]);
            (dims, axes.clone(), axes, prop::collection::vec(offset, rank))
        })
    ) {
        let hyperslab = |axes: &[(u64, u64, u64, u64)]| {
            let part = |pick: fn(&(u64, u64, u64, u64)) -> u64| -> Vec<u64> {
                axes.iter().map(pick).collect()
            };
            Selection::hyperslab(&part(|a| a.0), &part(|a| a.1), &part(|a| a.2), &part(|a| a.3))
        };
        let (Ok(a), Ok(b)) = (hyperslab(&a), hyperslab(&b)) else { return Ok(()) };
        let mut made = vec![a.clone(), b.clone()];
        made.extend(a.or(&b, &dims));
        made.extend(a.and(&b, &dims));
        made.extend(a.xor(&b, &dims));
        made.extend(a.not_b(&b, &dims));
        made.extend(a.translate(&offset));
        made.extend(a.clip(&dims));
        made.extend(Selection::points(dims.len(), dims.clone()));
        for selection in made {
            let count = selection.count(&dims);
            let _ = (selection.bounds(&dims), selection.shape(&dims), selection.covers(&dims));
            let _ = (selection.as_block(&dims), selection.regular(), selection.check(&dims));
            let _ = selection.contains(&dims);
            let _ = selection.runs(&dims).take(20).map(|run| run.end()).max();
            let mut out = Vec::new();
            if selection.is_unlimited() || count < 1000 {
                let _ = pumice_space::serial::encode_selection(&selection, &dims, &mut out);
            }
            let chunk: Vec<u64> = dims.iter().map(|size| size / 3 + 1).collect();
            let Ok(grid) = ChunkGrid::new(&dims, &chunk) else { continue };
            let plan = plan(&selection, &dims, &grid, &Selection::all(), &selection.shape(&dims));
            for part in plan.into_iter().flatten().take(10) {
                let _ = (part.count(), part.is_whole());
                prop_assert!(part.segments(&chunk).take(10).all(|step| step.len > 0));
            }
        }
    }
}

#[test]
fn points_keep_order_and_repetitions_in_runs() {
    let points = Selection::points(2, vec![2, 1, 0, 0, 0, 1, 2, 1]).unwrap();
    let runs: Vec<(u64, u64)> = points.runs(&[3, 4]).map(|run| (run.start, run.len)).collect();
    assert_eq!(runs, [(9, 1), (0, 2), (9, 1)]);
    assert_eq!(points.count(&[3, 4]), 4);
}

#[test]
fn a_cut_leaves_out_what_lies_outside_the_array() {
    let grid = ChunkGrid::new(&[10, 10], &[4, 4]).unwrap();
    let chunks: Vec<Dims> =
        (0..4).flat_map(|row| (0..5).map(move |at| Dims::from_slice(&[row, at]))).collect();
    let points = vec![9, 9, 9, 10, 10, 9, 11, 11, 12, 3, 3, 16, 3, 17, 0, 0, 50, 50];
    let found = Selection::points(2, points).unwrap().cut(&grid, &chunks).unwrap();
    let cells: Vec<_> = found.iter().map(|(at, cells)| (*at, cells.count(&[10, 10]))).collect();
    assert_eq!(cells, [(0, 1), (12, 1)]);
    assert!(found[1].1.contains(&[9, 9]));
}

#[test]
fn a_scalar_has_one_cell() {
    let all = Selection::all();
    assert_eq!(all.runs(&[]).collect::<Vec<_>>(), [Run { start: 0, len: 1 }]);
    let point = Selection::point(&[]).unwrap();
    assert_eq!(point.count(&[]), 1);
    assert_eq!(point.runs(&[]).count(), 1);
    assert!(point.and(&all, &[]).unwrap().contains(&[]));
    assert!(point.xor(&all, &[]).unwrap().is_none());
    assert!(point.or(&Selection::none(), &[]).unwrap().covers(&[]));
}

#[test]
fn empty_blocks_keep_their_shape() {
    let empty = Selection::block(&[3, 0], &[0, 5]).unwrap();
    assert!(empty.is_none());
    assert_eq!(empty.shape(&[9, 9]).as_slice(), [0, 5]);
    assert_eq!(empty.runs(&[9, 9]).count(), 0);
    assert!(empty.check(&[1, 5]).is_ok());
    assert_eq!(Selection::all().runs(&[0, 3]).count(), 0);
}

#[test]
fn wrong_ranks_and_overlapping_blocks_are_refused() {
    let flat = Selection::block(&[0], &[1]).unwrap();
    let square = Selection::block(&[0, 0], &[1, 1]).unwrap();
    assert!(flat.or(&square, &[4]).is_err());
    assert!(flat.check(&[4, 4]).is_err());
    assert!(Selection::hyperslab(&[0], &[2], &[2], &[3]).is_err());
    assert!(Selection::hyperslab(&[0], &[2, 2], &[2], &[1]).is_err());
    assert!(Selection::block(&[0; 33], &[1; 33]).is_err());
    assert!(Selection::points(1, vec![u64::MAX]).is_err());
}

#[test]
fn rank_32_works() {
    let dims = [2u64; 32];
    let one = Selection::point(&[1; 32]).unwrap();
    let half = Selection::block(&[0; 32], &[1; 32]).unwrap();
    let both = one.or(&half, &dims).unwrap();
    assert_eq!(both.count(&dims), 2);
    let rest = Selection::all().not_b(&both, &dims).unwrap();
    assert_eq!(rest.count(&dims), (1 << 32) - 2);
    assert_eq!(rest.runs(&dims).next(), Some(Run { start: 1, len: (1 << 32) - 2 }));
}

#[test]
fn unlimited_blocks_that_touch_are_counted_without_overflow() {
    let all = Selection::hyperslab(&[0], &[1], &[u64::MAX], &[1]).unwrap();
    assert!(all.is_unlimited());
    assert_eq!(all.count(&[7]), 7);
    assert_eq!(all.clip(&[7]).unwrap().count(&[7]), 7);
}
