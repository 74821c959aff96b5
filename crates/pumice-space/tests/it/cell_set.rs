//! Cell sets against plain sets of cells.

use crate::model;
use proptest::prelude::*;
use pumice_space::{CellSet, MergePiece, Overlap, Placement, Run, Segment, SplicePiece};
use std::collections::BTreeSet;

type Model = BTreeSet<u64>;

/// A chunk size and some of its cells: scattered, in long runs, or dense.
fn chunk() -> impl Strategy<Value = (u64, Model)> {
    (1u64..1500).prop_flat_map(|cells| (Just(cells), some_cells(cells)))
}

fn pair() -> impl Strategy<Value = (u64, Model, Model)> {
    (1u64..1500).prop_flat_map(|cells| (Just(cells), some_cells(cells), some_cells(cells)))
}

/// Two sets of very different size in a chunk so large that both are lists of runs.
fn unequal() -> impl Strategy<Value = (u64, Model, Model)> {
    let few = prop::collection::vec((0u64..40_000, 1u64..60), 0..8);
    let many = prop::collection::vec((1u64..30, 1u64..6), 100..400);
    (few, many).prop_map(|(few, many)| {
        let few = few.into_iter().flat_map(|(start, len)| start % 9000..start % 9000 + len);
        let mut at = 0;
        let many = many.into_iter().flat_map(|(gap, len)| {
            at += gap + len;
            at - len..at
        });
        (50_000, few.collect(), many.collect())
    })
}

fn some_cells(cells: u64) -> impl Strategy<Value = Model> {
    let run =
        (0..cells, 1..cells + 1).prop_map(move |(start, len)| start..(start + len).min(cells));
    prop_oneof![
        2 => prop::collection::btree_set(0..cells, 0..40),
        3 => prop::collection::btree_set(0..cells, 0..=cells as usize),
        2 => prop::collection::vec(run, 0..6).prop_map(|runs| runs.into_iter().flatten().collect()),
        1 => Just((0..cells).collect()),
        1 => (1u64..9).prop_map(move |step| (0..cells).step_by(step as usize).collect()),
    ]
}

fn set(cells: u64, model: &Model) -> CellSet {
    CellSet::from_sorted_cells(cells, model.iter().copied()).unwrap()
}

fn model(set: &CellSet) -> Model {
    set.runs().flat_map(|run| run.start..run.end()).collect()
}

/// Scattered cells, runs or bits made of the same cells are the same set, in the smallest form.
fn check_form(cells: u64, model: &Model, set: &CellSet) {
    let list: Vec<u32> = model.iter().map(|&cell| cell as u32).collect();
    assert_eq!(&CellSet::from_list(cells, list.clone()).unwrap(), set);
    let backwards = model.iter().rev().copied().collect();
    assert_eq!(&CellSet::from_unsorted_cells(cells, backwards).unwrap(), set);
    assert!(set.as_list().is_none_or(|held| held == list));
    let bounds: Vec<[u64; 2]> = set.runs().map(|run| [run.start, run.end()]).collect();
    assert_eq!(&CellSet::from_bounds(cells, &bounds).unwrap(), set);
    // In runs that touch, too.
    let single: Vec<[u64; 2]> = model.iter().map(|&cell| [cell, cell + 1]).collect();
    assert_eq!(&CellSet::from_bounds(cells, &single).unwrap(), set);
    assert!(set.is_empty() || CellSet::from_bounds(*model.last().unwrap(), &bounds).is_err());
    for before in [0, list.len() / 2, list.len() + 100] {
        let mut put = vec![9; before];
        set.put_list(&mut put);
        assert_eq!(put, list);
    }
    let bytes = [4 * set.len(), 8 * (set.run_count() + 1)].into_iter().min().unwrap();
    assert!(set.heap_bytes() as u64 <= bytes, "{set:?}");
}

/// Values that name their cell and the set they come from, spliced and removed.
fn check_values(old: &CellSet, new: &CellSet, a: &Model, b: &Model) {
    let values = |model: &Model, new: bool| model.iter().map(|&cell| (cell, new)).collect();
    let (from_old, from_new): (Vec<_>, Vec<_>) = (values(a, false), values(b, true));
    let mut spliced = Vec::new();
    let pieces: Vec<SplicePiece> = old.splice(new).collect();
    for &SplicePiece { new, position, len } in &pieces {
        let values = if new { &from_new } else { &from_old };
        spliced.extend_from_slice(&values[position as usize..(position + len) as usize]);
    }
    let expected: Vec<_> = a.union(b).map(|&cell| (cell, b.contains(&cell))).collect();
    assert_eq!(spliced, expected);
    assert!(
        pieces
            .windows(2)
            .all(|pair| pair[0].new != pair[1].new
                || pair[0].position + pair[0].len != pair[1].position),
        "pieces are as long as can be"
    );
    let kept: Vec<Run> = old.kept(new).collect();
    let values: Vec<_> = kept.iter().flat_map(|run| run.start..run.end()).collect();
    let expected: Vec<_> = a.difference(b).filter_map(|&cell| old.position(cell)).collect();
    assert_eq!(values, expected);
    assert!(kept.windows(2).all(|pair| pair[0].end() < pair[1].start));
}

fn requests() -> impl Strategy<Value = Vec<Run>> {
    prop::collection::vec((0u64..1600, 0u64..80), 0..30)
        .prop_map(|list| list.into_iter().map(|(start, len)| Run { start, len }).collect())
}

/// A matrix and some of its cells.
fn matrix() -> impl Strategy<Value = ([u64; 2], Model)> {
    let shape = (1u64..40, 1u64..40);
    shape.prop_flat_map(|(rows, width)| (Just([rows, width]), some_cells(rows * width)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_corner_has_all_cells_whose_coordinates_are_in_it(
        (dims, cells) in matrix(),
        height in 0u64..42,
        across in 0u64..42,
    ) {
        let set = set(dims[0] * dims[1], &cells);
        let inside = |cell: &u64| cell / dims[1] < height && cell % dims[1] < across;
        prop_assert_eq!(set.is_inside(&dims, &[height, across]), cells.iter().all(inside));
        // The least corner that has them, and those that are a little less.
        let high = cells.iter().map(|cell| cell / dims[1] + 1).max().unwrap_or(0);
        let wide = cells.iter().map(|cell| cell % dims[1] + 1).max().unwrap_or(0);
        prop_assert!(set.is_inside(&dims, &[high, wide]));
        if !cells.is_empty() {
            prop_assert!(!set.is_inside(&dims, &[high - 1, wide]));
            prop_assert!(!set.is_inside(&dims, &[high, wide - 1]));
        }
    }

    #[test]
    fn questions_agree_with_a_plain_set((cells, cells_in) in chunk()) {
        let set = set(cells, &cells_in);
        check_form(cells, &cells_in, &set);
        prop_assert_eq!(model(&set), cells_in.clone());
        prop_assert_eq!(set.len(), cells_in.len() as u64);
        prop_assert_eq!(set.is_empty(), cells_in.is_empty());
        prop_assert_eq!(set.is_full(), cells_in.len() as u64 == cells);
        let mut rank = 0;
        for cell in 0..cells + 2 {
            prop_assert_eq!(set.contains(cell), cells_in.contains(&cell));
            prop_assert_eq!(set.rank(cell), rank);
            let position = cells_in.contains(&cell).then_some(rank);
            prop_assert_eq!(set.position(cell), position);
            rank += u64::from(position.is_some());
        }
        for (position, &cell) in cells_in.iter().enumerate() {
            prop_assert_eq!(set.select(position as u64), Some(cell));
        }
        prop_assert_eq!(set.select(set.len()), None);
        let runs: Vec<Run> = set.runs().collect();
        prop_assert!(runs.windows(2).all(|pair| pair[0].end() < pair[1].start));
        prop_assert_eq!(set.run_count(), runs.len() as u64);
        let mut visited = Vec::new();
        set.for_each_run(|run| visited.push(run));
        prop_assert_eq!(&visited, &runs);
        let most = (8 * (runs.len() + 1)).min((cells as usize).div_ceil(512) * 68);
        prop_assert!(set.heap_bytes() <= most);
        let shuffled: Vec<u64> = cells_in.iter().rev().chain(&cells_in).copied().collect();
        prop_assert_eq!(CellSet::from_unsorted_cells(cells, shuffled).unwrap(), set);
    }

    #[test]
    fn operations_agree_with_plain_sets((cells, a, b) in pair()) {
        let (x, y) = (set(cells, &a), set(cells, &b));
        // Equal sets are equal values, whichever way they were made.
        prop_assert_eq!(x.union(&y), set(cells, &(&a | &b)));
        prop_assert_eq!(x.intersection(&y), set(cells, &(&a & &b)));
        prop_assert_eq!(x.difference(&y), set(cells, &(&a - &b)));
        let every: Model = (0..cells).collect();
        prop_assert_eq!(x.complement(), set(cells, &(&every - &a)));
    }

    #[test]
    fn sets_of_different_chunks_combine_in_the_larger((cells, a) in chunk(), (other, b) in chunk()) {
        let (x, y, most) = (set(cells, &a), set(other, &b), cells.max(other));
        prop_assert_eq!(x.union(&y), set(most, &(&a | &b)));
        prop_assert_eq!(x.intersection(&y), set(most, &(&a & &b)));
        prop_assert_eq!(x.difference(&y), set(most, &(&a - &b)));
    }

    #[test]
    fn overlaps_are_what_is_defined_of_the_request(
        (cells, cells_in) in chunk(),
        mut requests in requests(),
        ascending in any::<bool>(),
    ) {
        if ascending {
            requests.sort_unstable();
        }
        let set = set(cells, &cells_in);
        let expected: Vec<(u64, u64)> = requests
            .iter()
            .flat_map(|run| run.start..run.end())
            .filter(|cell| cells_in.contains(cell))
            .map(|cell| (cell, set.rank(cell)))
            .collect();
        let spread = |Overlap { cell, position, len }: Overlap| {
            (0..len).map(move |step| (cell + step, position + step))
        };
        let found: Vec<_> = set.overlaps(requests.iter().copied()).flat_map(spread).collect();
        prop_assert_eq!(&found, &expected);
        let mut cursor = set.cursor();
        let mut visited = Vec::new();
        for &run in &requests {
            cursor.for_each(run, |piece| visited.extend(spread(piece)));
        }
        prop_assert_eq!(&visited, &expected);
        let segments = requests.iter().enumerate().map(|(index, run)| Segment {
            cell: run.start,
            memory: 1000 * index as u64,
            len: run.len,
        });
        for Placement { cell, position, memory, len } in set.placements(segments) {
            let request = requests[(memory / 1000) as usize];
            prop_assert_eq!(cell - request.start, memory % 1000);
            prop_assert!(cell + len <= request.end());
            prop_assert_eq!(set.position(cell + len - 1), Some(position + len - 1));
        }
    }

    #[test]
    fn merging_walks_the_union_once((cells, a, b) in pair()) {
        let (x, y) = (set(cells, &a), set(cells, &b));
        let mut walked = Vec::new();
        for MergePiece { cell, a, b, len } in x.merge(&y) {
            for step in 0..len {
                prop_assert_eq!(a.map(|at| at + step), x.position(cell + step));
                prop_assert_eq!(b.map(|at| at + step), y.position(cell + step));
                walked.push(cell + step);
            }
        }
        let union: Vec<u64> = a.union(&b).copied().collect();
        prop_assert_eq!(walked, union);
    }

    #[test]
    fn few_runs_among_many_combine_like_any_others((cells, few, many) in unequal()) {
        let (x, y) = (set(cells, &few), set(cells, &many));
        for (a, b, one, other) in [(&few, &many, &x, &y), (&many, &few, &y, &x)] {
            prop_assert_eq!(one.union(other), set(cells, &(a | b)));
            prop_assert_eq!(one.intersection(other), set(cells, &(a & b)));
            prop_assert_eq!(one.difference(other), set(cells, &(a - b)));
            check_values(one, other, a, b);
        }
    }

    #[test]
    fn splicing_gives_the_values_of_the_union((cells, a, b) in pair()) {
        check_values(&set(cells, &a), &set(cells, &b), &a, &b);
    }

    #[test]
    fn coordinates_and_selections_round_trip(
        (dims, picked) in model::dims().prop_flat_map(|dims| {
            let cells: u64 = dims.iter().product();
            (Just(dims), some_cells(cells))
        })
    ) {
        let cells = dims.iter().product();
        let set = set(cells, &picked);
        let selection = set.to_selection(&dims).unwrap();
        prop_assert_eq!(&CellSet::from_selection(&selection, &dims).unwrap(), &set);
        let every = model::every_cell(&dims);
        let origin: Vec<u64> = (0..dims.len() as u64).map(|axis| 100 * axis).collect();
        let expected: Vec<u64> = picked
            .iter()
            .flat_map(|&cell| every[cell as usize].iter().zip(&origin).map(|(at, from)| at + from))
            .collect();
        let mut found = Vec::new();
        set.append_coordinates(&dims, &origin, &mut found);
        prop_assert_eq!(&found, &expected);
        let mut columns = vec![vec![0u32; picked.len()]; dims.len()];
        let mut places: Vec<&mut [u32]> = columns.iter_mut().map(Vec::as_mut_slice).collect();
        set.put_coordinates(&dims, &origin, &mut places);
        let cell = |at: usize| columns.iter().map(move |column| u64::from(column[at]));
        let found: Vec<u64> = (0..picked.len()).flat_map(cell).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn cells_of_a_list_in_a_block_are_those_whose_coordinates_are(
        (rows, width) in (1u64..100, 1u64..1000),
        every in 3u64..50,
        (top, left, height, across) in (0u64..100, 0u64..1000, 1u64..100, 1u64..20),
    ) {
        let cells: Vec<u32> = (0..rows * width)
            .filter(|cell| cell.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32 < (1 << 32) / every)
            .map(|cell| cell as u32)
            .collect();
        let set = CellSet::from_list(rows * width, cells.clone()).unwrap();
        let inside = |cell: &u32| {
            let (row, column) = (u64::from(*cell) / width, u64::from(*cell) % width);
            (top..top + height).contains(&row) && (left..left + across).contains(&column)
        };
        let expected: Vec<u32> =
            (0..).zip(&cells).filter(|(_, cell)| inside(cell)).map(|(at, _)| at).collect();
        if let Some(found) = set.list_in_block(&[rows, width], &[top, left], &[height, across]) {
            prop_assert_eq!(found, expected);
        } else {
            // Wide blocks, and rows with many cells, are better sought row by row.
            let rows = top * width..(top + height) * width;
            let beside = cells.iter().filter(|&&cell| rows.contains(&u64::from(cell))).count();
            let sought = across * 64 > width || 8 * height < beside as u64;
            prop_assert!(set.as_list().is_none() || sought);
        }
    }

    #[test]
    fn any_selection_becomes_the_set_of_its_cells(
        (dims, modelled) in model::dims().prop_flat_map(|dims| {
            (Just(dims.clone()), model::selection(dims))
        })
    ) {
        let cells = dims.iter().product();
        let expected: Model =
            modelled.cells.iter().map(|cell| model::linear(&dims, cell)).collect();
        let found = CellSet::from_selection(&modelled.selection, &dims).unwrap();
        prop_assert_eq!(found, set(cells, &expected));
    }
}

#[test]
fn the_smaller_form_is_chosen() {
    let scattered = CellSet::from_sorted_cells(1 << 20, (0..100).map(|cell| cell * 9000)).unwrap();
    assert_eq!(scattered.heap_bytes(), 4 * 100);
    let runs = (0..100).map(|run| Run { start: run * 9000, len: 50 });
    assert_eq!(CellSet::from_runs(1 << 20, runs).unwrap().heap_bytes(), 8 * 101);
    let dense = CellSet::from_sorted_cells(1 << 20, (0..1 << 20).step_by(2)).unwrap();
    assert_eq!(dense.heap_bytes(), (1 << 17) + (1 << 13));
    assert_eq!(CellSet::full(1 << 40).heap_bytes(), 0);
    let few = dense.intersection(&scattered);
    assert_eq!(few.heap_bytes(), 4 * 100, "a bitmap that grew sparse becomes a list again");
}

#[test]
fn chunks_beyond_32_bits_work() {
    let cells = 1 << 40;
    let set = CellSet::from_sorted_cells(cells, [7, 1 << 35, (1 << 40) - 1]).unwrap();
    assert_eq!(set.position(1 << 35), Some(1));
    assert_eq!(set.select(2), Some((1 << 40) - 1));
    assert_eq!(set.complement().len(), cells - 3);
    assert_eq!(set.union(&set.complement()), CellSet::full(cells));
}

#[test]
fn cells_outside_the_chunk_are_refused() {
    assert!(CellSet::from_sorted_cells(10, [10]).is_err());
    assert!(CellSet::from_runs(10, [Run { start: 5, len: u64::MAX }]).is_err());
    assert!(CellSet::from_sorted_cells(10, [3, 3]).is_err());
    assert!(CellSet::from_unsorted_cells(10, vec![3, 11]).is_err());
    assert!(CellSet::full(10).to_selection(&[3, 3]).is_err());
}

#[test]
fn a_chunk_without_cells_is_both_empty_and_full() {
    let none = CellSet::empty(0);
    assert!(none.is_empty() && none.is_full());
    assert_eq!(none, CellSet::full(0));
    assert_eq!(none.runs().count(), 0);
    assert_eq!(none.run_count(), 0);
}
