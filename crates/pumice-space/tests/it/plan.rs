//! Plans against a plain list of which cell goes where.

use crate::model;
use crate::model::{Modelled, dims, linear};
use proptest::prelude::*;
use pumice_space::{
    CellSet, ChunkGrid, ChunkPart, Segment, Selection, SpaceError, plan, plan_packed,
};
use std::collections::BTreeMap;

/// Array, chunk and buffer shapes, with a selection of the array.
fn setup() -> impl Strategy<Value = (Vec<u64>, Vec<u64>, Modelled)> {
    dims().prop_flat_map(|dims| {
        let chunk: Vec<_> = dims.iter().map(|&size| 1..size + 3).collect();
        (Just(dims.clone()), chunk, model::selection(dims))
    })
}

/// The selected cells in the order of a transfer.
fn in_order(modelled: &Modelled) -> Vec<Vec<u64>> {
    match modelled.selection.as_points() {
        Some((rank, coords)) => coords.chunks(rank).map(<[u64]>::to_vec).collect(),
        None => modelled.cells.iter().cloned().collect(),
    }
}

fn naive(
    grid: &ChunkGrid,
    file: &[Vec<u64>],
    memory: &[u64],
) -> BTreeMap<Vec<u64>, Vec<(u64, u64)>> {
    let mut parts: BTreeMap<Vec<u64>, Vec<(u64, u64)>> = BTreeMap::new();
    for (cell, &memory) in file.iter().zip(memory) {
        let chunk: Vec<u64> = cell.iter().zip(grid.chunk()).map(|(at, size)| at / size).collect();
        let within: Vec<u64> = cell.iter().zip(grid.chunk()).map(|(at, size)| at % size).collect();
        parts.entry(chunk).or_default().push((linear(grid.chunk(), &within), memory));
    }
    parts
}

/// The side of an array that has more chunks, and cells, than can be numbered.
const VAST: u64 = u64::MAX - 1;

/// A selection of a small array at the far end of a vast one.
fn far(file: &Modelled, dims: &[u64]) -> Modelled {
    let selection = match file.selection.is_all() {
        true => Selection::block(&vec![0; dims.len()], dims).unwrap(),
        false => file.selection.clone(),
    };
    // In three steps, of which each fits into an offset.
    let most: Vec<i64> = dims.iter().map(|_| i64::MAX).collect();
    let rest: Vec<i64> = dims.iter().map(|&side| -(side as i64)).collect();
    let moved = [&most, &rest, &most];
    let selection =
        moved.into_iter().fold(selection, |moved, offset| moved.translate(offset).unwrap());
    let cell = |cell: &Vec<u64>| cell.iter().zip(dims).map(|(at, side)| VAST - side + at).collect();
    Modelled { selection, cells: file.cells.iter().map(cell).collect() }
}

fn check(
    file: &Modelled,
    grid: &ChunkGrid,
    memory: &Selection,
    memory_dims: &[u64],
    memory_order: &[u64],
) {
    let plan = plan(&file.selection, grid.dims(), grid, memory, memory_dims).unwrap();
    let hint = plan.chunk_count_hint();
    let parts: Vec<_> = plan.collect();
    assert!(hint >= parts.len() as u64);
    check_parts(&in_order(file), grid, &parts, memory_order);
}

fn check_parts(cells: &[Vec<u64>], grid: &ChunkGrid, parts: &[ChunkPart], memory_order: &[u64]) {
    assert_eq!(cells.len(), memory_order.len());
    let expected = naive(grid, cells, memory_order);
    let chunks: Vec<&[u64]> = parts.iter().map(|part| &part.chunk[..]).collect();
    let expected_chunks: Vec<&[u64]> = expected.keys().map(|chunk| &chunk[..]).collect();
    assert_eq!(chunks, expected_chunks, "every chunk once, in order");
    for (part, pairs) in parts.iter().zip(expected.values()) {
        let segments: Vec<Segment> = part.segments(grid.chunk()).collect();
        let mut lines = part.segments(grid.chunk());
        let lines = std::iter::from_fn(|| lines.next_line()).flat_map(|line| line.segments());
        assert_eq!(lines.collect::<Vec<_>>(), segments);
        let spread = segments.iter().flat_map(|segment| {
            (0..segment.len).map(|step| (segment.cell + step, segment.memory + step))
        });
        assert_eq!(spread.collect::<Vec<_>>(), *pairs);
        assert_eq!(part.count(), pairs.len() as u64);
        let mut distinct: Vec<u64> = pairs.iter().map(|pair| pair.0).collect();
        distinct.sort_unstable();
        distinct.dedup();
        let mut selected: Vec<u64> = part
            .cells(grid.chunk())
            .runs(grid.chunk())
            .flat_map(|run| run.start..run.end())
            .collect();
        if part.cells(grid.chunk()).as_points().is_some() {
            selected.sort_unstable();
        }
        assert_eq!(selected, distinct);
        let cells = grid.cells_per_chunk();
        let set = CellSet::from_sorted_cells(cells, distinct.iter().copied()).unwrap();
        assert_eq!(part.cell_set(grid.chunk()), set);
        let inside: u64 = grid.clipped(&part.chunk).iter().product();
        assert_eq!(part.is_whole(), distinct.len() as u64 == inside);
        assert_eq!(part.share(), pairs.len() as f32 / inside as f32);
        if part.is_ascending() {
            assert!(segments.windows(2).all(|pair| pair[0].cell + pair[0].len <= pair[1].cell));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn a_packed_buffer_takes_any_selection((dims, chunk, file) in setup(), flat in any::<bool>()) {
        let grid = ChunkGrid::new(&dims, &chunk).unwrap();
        let count = file.selection.count(&dims);
        let order: Vec<u64> = (0..count).collect();
        let parts: Vec<_> = plan_packed(&file.selection, &grid).unwrap().collect();
        check_parts(&in_order(&file), &grid, &parts, &order);
        let shape = if flat { vec![count] } else { file.selection.shape(&dims).to_vec() };
        check(&file, &grid, &Selection::all(), &shape, &order);
        let inside = Selection::block(&[3], &[count]).unwrap();
        let order: Vec<u64> = (3..3 + count).collect();
        check(&file, &grid, &inside, &[count + 5], &order);
    }

    #[test]
    fn a_vast_array_takes_any_selection((dims, chunk, file) in setup(), step in 1u64..4) {
        prop_assume!(!dims.is_empty() && !file.cells.is_empty());
        let file = far(&file, &dims);
        let vast = vec![VAST; dims.len()];
        let grid = ChunkGrid::new(&vast, &chunk).unwrap();
        let count = file.selection.count(&vast);
        let order: Vec<u64> = (0..count).collect();
        let parts: Vec<_> = plan_packed(&file.selection, &grid).unwrap().collect();
        check_parts(&in_order(&file), &grid, &parts, &order);
        // Every so many of a buffer: boxes have a list of pieces then, too.
        let apart = Selection::hyperslab(&[0], &[step], &[count], &[1]).unwrap();
        let order: Vec<u64> = (0..count).map(|number| number * step).collect();
        check(&file, &grid, &apart, &[count * step], &order);
    }

    #[test]
    fn a_window_of_a_buffer_takes_boxes_and_hyperslabs(
        (dims, chunk, file, margins) in dims().prop_flat_map(|dims| {
            let chunk: Vec<_> = dims.iter().map(|&size| 1..size + 3).collect();
            let margins = prop::collection::vec((0u64..3, 1u64..4, 0u64..3), dims.len());
            (Just(dims.clone()), chunk, model::hyperslab(dims), margins)
        }),
        squeeze in any::<bool>(),
    ) {
        let grid = ChunkGrid::new(&dims, &chunk).unwrap();
        let mut shape = file.selection.shape(&dims).to_vec();
        prop_assume!(!shape.contains(&0));
        let mut margins = margins;
        if squeeze {
            let keep: Vec<bool> = shape.iter().map(|&count| count > 1).collect();
            let mut wanted = keep.iter();
            shape.retain(|_| *wanted.next().unwrap());
            let mut wanted = keep.iter();
            margins.retain(|_| *wanted.next().unwrap());
        }
        let start: Vec<u64> = margins.iter().map(|margin| margin.0).collect();
        let stride: Vec<u64> = margins.iter().map(|margin| margin.1).collect();
        let ones = vec![1; shape.len()];
        let memory = Selection::hyperslab(&start, &stride, &shape, &ones).unwrap();
        let memory_dims: Vec<u64> = margins
            .iter()
            .zip(&shape)
            .map(|((low, stride, high), count)| low + (count - 1) * stride + 1 + high)
            .collect();
        let order: Vec<u64> =
            memory.runs(&memory_dims).flat_map(|run| run.start..run.end()).collect();
        check(&file, &grid, &memory, &memory_dims, &order);
    }

    #[test]
    fn any_two_selections_of_equal_count_pair_up_in_order(
        (dims, chunk, file) in setup(),
        (memory_dims, memory) in dims().prop_flat_map(|dims| {
            (Just(dims.clone()), model::selection(dims))
        }),
    ) {
        let grid = ChunkGrid::new(&dims, &chunk).unwrap();
        // Cut the longer side to the shorter one's count, as points in order.
        let count = file.selection.count(&dims).min(memory.selection.count(&memory_dims)) as usize;
        let shorten = |side: &Modelled, dims: &[u64]| -> Modelled {
            if side.selection.count(dims) == count as u64 {
                return side.clone();
            }
            let kept: Vec<Vec<u64>> = in_order(side).into_iter().take(count).collect();
            Modelled {
                selection: Selection::points(dims.len(), kept.concat()).unwrap(),
                cells: kept.into_iter().collect(),
            }
        };
        let (file, memory) = (shorten(&file, &dims), shorten(&memory, &memory_dims));
        let order: Vec<u64> =
            in_order(&memory).iter().map(|cell| linear(&memory_dims, cell)).collect();
        check(&file, &grid, &memory.selection, &memory_dims, &order);
    }
}

fn segments(file: &Selection, dims: &[u64], chunk: &[u64], memory_dims: &[u64]) -> Vec<usize> {
    let grid = ChunkGrid::new(dims, chunk).unwrap();
    let plan = plan(file, dims, &grid, &Selection::all(), memory_dims).unwrap();
    plan.map(|part| part.segments(grid.chunk()).count()).collect()
}

#[test]
fn rows_that_continue_each_other_are_one_segment() {
    let dims = [8, 6];
    assert_eq!(segments(&Selection::all(), &dims, &[4, 6], &dims), [1, 1]);
    assert_eq!(segments(&Selection::all(), &dims, &[4, 3], &dims), [4; 4]);
    let rows = Selection::block(&[1, 0], &[2, 6]).unwrap();
    assert_eq!(segments(&rows, &dims, &[4, 6], &[2, 6]), [1]);
    let column = Selection::block(&[0, 2], &[8, 1]).unwrap();
    assert_eq!(segments(&column, &dims, &[4, 1], &[8]), [1, 1]);
    let irregular = rows.or(&Selection::point(&[7, 5]).unwrap(), &dims).unwrap();
    assert_eq!(segments(&irregular, &dims, &[4, 6], &[13]), [1, 1]);
}

#[test]
fn of_repeated_points_the_last_comes_last() {
    let grid = ChunkGrid::new(&[4], &[4]).unwrap();
    let points = Selection::points(1, vec![2, 0, 2]).unwrap();
    let mut plan = plan(&points, &[4], &grid, &Selection::all(), &[3]).unwrap();
    let part = plan.next().unwrap();
    let pairs: Vec<_> = part.segments(&[4]).map(|step| (step.cell, step.memory)).collect();
    assert_eq!(pairs, [(2, 0), (0, 1), (2, 2)]);
    assert_eq!((part.count(), part.cells(&[4]).count(&[4])), (3, 2));
    assert!(!part.is_ascending());
}

#[test]
fn a_scalar_is_one_chunk() {
    let grid = ChunkGrid::new(&[], &[]).unwrap();
    let parts: Vec<_> =
        plan(&Selection::all(), &[], &grid, &Selection::all(), &[]).unwrap().collect();
    assert_eq!(parts.len(), 1);
    assert!(parts[0].is_whole());
    let step: Vec<_> = parts[0].segments(&[]).collect();
    assert_eq!(step, [Segment { cell: 0, memory: 0, len: 1 }]);
    let inner = Selection::point(&[2]).unwrap();
    let mut flat = plan(&Selection::all(), &[], &grid, &inner, &[5]).unwrap();
    assert_eq!(flat.next().unwrap().segments(&[]).next().unwrap().memory, 2);
}

#[test]
fn nothing_selected_is_no_chunk() {
    let grid = ChunkGrid::new(&[4, 4], &[2, 2]).unwrap();
    let none = Selection::none();
    assert_eq!(plan(&none, &[4, 4], &grid, &none, &[9]).unwrap().count(), 0);
    let empty = Selection::block(&[4, 0], &[0, 4]).unwrap();
    assert_eq!(plan(&empty, &[4, 4], &grid, &Selection::all(), &[0, 4]).unwrap().count(), 0);
}

#[test]
fn transfers_that_do_not_fit_are_refused() {
    let grid = ChunkGrid::new(&[4], &[2]).unwrap();
    let all = Selection::all();
    let mismatch = plan(&all, &[4], &grid, &all, &[5]).unwrap_err();
    assert_eq!(mismatch, SpaceError::CountMismatch { file: 4, memory: 5 });
    let far = Selection::block(&[3], &[2]).unwrap();
    assert!(matches!(plan(&far, &[4], &grid, &all, &[2]), Err(SpaceError::OutOfBounds { .. })));
    assert!(matches!(plan(&all, &[4], &grid, &far, &[4]), Err(SpaceError::OutOfBounds { .. })));
    assert!(plan(&all, &[5], &grid, &all, &[5]).is_err());
}
