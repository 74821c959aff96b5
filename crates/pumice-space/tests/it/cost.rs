//! Work that would take hours, or all memory, if its cost followed the number of cells.

use pumice_bytes::{Budget, Reader};
use pumice_space::{CellSet, ChunkGrid, Dims, Run, Segment, Selection, plan, serial};

#[test]
fn a_union_of_650_000_rows_is_quick() {
    let dims = [10_000_000, 1_000];
    // A stride through all rows that visits them in no useful order.
    let row = |index: u64| index * 7_368_787 % 5_000_000 * 2;
    let rows = (0..650_000).map(|index| Selection::block(&[row(index), 0], &[1, 1_000]).unwrap());
    let union = Selection::union_of(2, rows, &dims).unwrap();
    assert_eq!(union.count(&dims), 650_000 * 1_000);
    assert!(union.contains(&[row(17), 999]));
    let runs: u64 = union.runs(&dims).map(|run| run.len).sum();
    assert_eq!(runs, 650_000 * 1_000);
}

#[test]
fn appending_row_after_row_is_linear() {
    let dims = [u64::MAX - 1, 50];
    let mut union = Selection::none();
    for row in 0..300_000 {
        let columns = Selection::block(&[row * 3, row % 7], &[2, 40]).unwrap();
        union.append(&columns, &dims).unwrap();
    }
    assert_eq!(union.count(&dims), 300_000 * 80);
    for column in 0..10_000 {
        let cell = Selection::point(&[1_000_000, column]).unwrap();
        union.append(&cell, &[u64::MAX - 1, u64::MAX - 1]).unwrap();
    }
    assert_eq!(union.count(&dims), 300_000 * 80 + 10_000);
}

#[test]
fn a_hyperslab_of_10_to_the_12_cells_is_cut_by_arithmetic() {
    let dims = [4_000_000, 4_000_000];
    let slab = Selection::hyperslab(&[1, 1], &[4, 4], &[1_000_000; 2], &[1, 1]).unwrap();
    assert_eq!(slab.count(&dims), 1_000_000_000_000);
    for step in 0..10_000 {
        let origin = step * 397;
        let chunk = Selection::block(&[origin, 3_999_000 - origin], &[64, 64]).unwrap();
        let part = slab.and(&chunk, &dims).unwrap();
        assert!((225..=256).contains(&part.count(&dims)));
    }
    let other = Selection::hyperslab(&[0, 0], &[3, 5], &[1_000_000, 700_000], &[1, 1]).unwrap();
    let both = slab.and(&other, &dims).unwrap();
    assert_eq!(both.regular().unwrap()[0].stride, 12);
    let blocks = Selection::hyperslab(&[0, 0], &[8, 8], &[500_000; 2], &[5, 3]).unwrap();
    assert_eq!(slab.and(&blocks, &dims).unwrap().count(&dims), 500_000 * 500_000);
}

#[test]
fn a_plan_of_a_huge_box_is_lazy() {
    let dims = [1 << 40, 1 << 20];
    let grid = ChunkGrid::new(&dims, &[1 << 10, 1 << 10]).unwrap();
    let memory = [1u64 << 40, 1 << 20];
    let mut plan = plan(&Selection::all(), &dims, &grid, &Selection::all(), &memory).unwrap();
    assert_eq!(plan.chunk_count_hint(), 1 << 40);
    let part = plan.nth(1).unwrap();
    assert!(part.is_whole());
    let first = part.segments(grid.chunk()).next().unwrap();
    assert_eq!(first, Segment { cell: 0, memory: 1 << 10, len: 1 << 10 });
}

#[test]
fn shared_subtrees_are_worked_on_once() {
    // Every second cell of each of 20 dimensions: 100^20 blocks in 20 nodes.
    let dims = [u64::MAX - 1; 20];
    let even = Selection::hyperslab(&[0; 20], &[4; 20], &[100; 20], &[2; 20]).unwrap();
    let odd = Selection::hyperslab(&[3; 20], &[5; 20], &[70; 20], &[3; 20]).unwrap();
    let both = even.and(&odd, &dims).unwrap();
    assert!(both.contains(&[4; 20]) && !both.contains(&[3; 20]));
    let (low, high) = both.bounds(&dims).unwrap();
    assert_eq!((low[19], high[19]), (4, 349));
    let moved = both.translate(&[1; 20]).unwrap().translate(&[-1; 20]).unwrap();
    assert!(moved.same_cells(&both, &dims).unwrap());
    let mut out = Vec::new();
    assert!(serial::encode_selection(&both, &dims, &mut out).is_err(), "too many blocks to write");
}

#[test]
fn few_requests_against_many_runs_do_not_scan_them() {
    let (rows, columns) = (2_048u64, 2_048u64);
    let cells = (0..42_000u64).map(|index| index * 99 + index % 7);
    let set = CellSet::from_sorted_cells(rows * columns, cells).unwrap();
    assert_eq!(set.run_count(), 42_000);
    let mut found = 0u64;
    for column in 0..columns {
        let request = (0..rows).map(|row| Run { start: row * columns + column, len: 1 });
        found += set.overlaps(request).map(|piece| piece.len).sum::<u64>();
    }
    assert_eq!(found, set.len());
}

#[test]
fn isolated_cells_are_encoded_by_run() {
    let dims = [4_096, 4_096];
    let cells = (0..100_000u64).map(|index| index * 167 + index % 13);
    let set = CellSet::from_sorted_cells(4_096 * 4_096, cells).unwrap();
    for _ in 0..10 {
        let mut out = Vec::new();
        serial::encode_cells(&dims, &set, &mut out).unwrap();
        let mut reader = Reader::new("section", 0, &out);
        let (_, back) = serial::decode_cells(&mut reader, &mut Budget::new(1 << 24)).unwrap();
        assert_eq!(back, set);
    }
}

#[test]
fn endless_rows_outside_the_array_are_passed_over() {
    let dims = [1 << 40, 1 << 20];
    let rows = Selection::block(&[0, 10], &[1 << 40, 5]).unwrap();
    let union = rows.or(&Selection::point(&[1 << 39, 2]).unwrap(), &dims).unwrap();
    let runs: Vec<Run> = union.runs(&[1 << 40, 8]).collect();
    assert_eq!(runs, [Run { start: (8 << 39) + 2, len: 1 }]);
}

#[test]
fn whole_rows_are_one_run_however_many() {
    let dims = [1 << 40, 1 << 20];
    let rows = Selection::block(&[5, 0], &[1 << 39, 1 << 20]).unwrap();
    assert_eq!(rows.runs(&dims).collect::<Vec<_>>(), [Run { start: 5 << 20, len: 1 << 59 }]);
    let more = rows.or(&Selection::point(&[2, 2]).unwrap(), &dims).unwrap();
    assert_eq!(more.runs(&dims).count(), 2);
    let set = CellSet::from_selection(&more, &dims).unwrap();
    assert_eq!(set.run_count(), 2);
    assert!(set.to_selection(&dims).unwrap().same_cells(&more, &dims).unwrap());
}

#[test]
fn a_large_tree_costs_what_of_it_lies_in_each_of_many_blocks() {
    const BLOCKS: u64 = 200_000;
    let dims = [BLOCKS * 100];
    let points = (0..BLOCKS).flat_map(|block| [block * 100 + block % 50, block * 100 + 70]);
    let points = Selection::points(1, points.collect()).unwrap();
    let tree = points.or(&Selection::point(&[99]).unwrap(), &dims).unwrap();
    let mut found = 0;
    for block in 0..BLOCKS {
        let block = Selection::block(&[block * 100], &[100]).unwrap();
        found += tree.and(&block, &dims).unwrap().count(&dims);
        let rest = block.not_b(&tree, &dims).unwrap().count(&dims);
        assert_eq!(rest, if found == 3 { 97 } else { 98 });
    }
    assert_eq!(found, 2 * BLOCKS + 1);
}

#[test]
fn a_cell_in_each_of_many_rows_is_found_among_many_columns_of_chunks() {
    const ROWS: u64 = 400_000;
    let dims = [ROWS, 4_000_000];
    let grid = ChunkGrid::new(&dims, &[100_000, 1000]).unwrap();
    let column = |row: u64| row * 7_368_787 % dims[1];
    let points = (0..ROWS).flat_map(|row| [row, column(row)]).collect();
    let points = Selection::points(2, points).unwrap();
    let chunks: Vec<Dims> =
        (0..4).flat_map(|row| (0..4000).map(move |at| Dims::from_slice(&[row, at]))).collect();
    let found = points.cut(&grid, &chunks).unwrap();
    assert_eq!(found.iter().map(|(_, cells)| cells.count(&dims)).sum::<u64>(), ROWS);
    assert!(found.iter().all(|(at, cells)| {
        let (low, high) = cells.bounds(&dims).unwrap();
        grid.chunk_of(&low) == chunks[*at] && grid.chunk_of(&high) == chunks[*at]
    }));
}
