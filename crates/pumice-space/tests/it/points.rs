//! Points split by chunk, against a look at each point alone.

use proptest::prelude::*;
use pumice_space::{ChunkGrid, PointPlan, Points, RowGrid};
use std::collections::BTreeMap;
use std::ops::Range;

/// Chunk, then (cell, number of the point) in order.
type Model = BTreeMap<Vec<u64>, Vec<(u64, usize)>>;

fn model(list: &[Vec<u64>], chunk: &[u64], range: Range<usize>) -> Model {
    let mut parts = Model::new();
    for number in range {
        let point = &list[number];
        let key = point.iter().zip(chunk).map(|(at, side)| at / side).collect();
        let cell = point.iter().zip(chunk).fold(0, |cell, (at, side)| cell * side + at % side);
        parts.entry(key).or_default().push((cell, number));
    }
    parts
}

fn planned(points: &Points<'_>, range: Range<usize>, grid: &ChunkGrid, threads: usize) -> Model {
    let run = |count: usize, task: &(dyn Fn(usize) + Sync)| {
        std::thread::scope(|scope| {
            for number in 0..count {
                scope.spawn(move || task(number));
            }
        });
    };
    let plan = PointPlan::with_threads(points.clone(), range, grid, threads, &run).unwrap();
    let mut before = None;
    plan.parts()
        .map(|part| {
            let cells = part.cells64();
            assert_eq!(part.count(), cells.len());
            assert!(part.cells32().iter().map(|&cell| u64::from(cell)).eq(cells.iter().copied()));
            let key = part.chunk().to_vec();
            assert!(before.replace(key.clone()) < Some(key.clone()), "chunks ascend");
            (key, cells.into_iter().zip(part.memory().flatten()).collect())
        })
        .collect()
}

/// Splits points and values that are put together; `None` if they do not ascend.
fn banded(points: &Points<'_>, grid: &ChunkGrid) -> Option<Model> {
    let values: Vec<u8> = (0..points.len() as u32).flat_map(u32::to_le_bytes).collect();
    let run = |count: usize, task: &(dyn Fn(usize) + Sync)| (0..count).for_each(task);
    let bands = points.in_bands(&values, 4, grid, &run).unwrap()?;
    let part = |band: pumice_space::PointBand| {
        let numbers =
            band.values.as_chunks::<4>().0.iter().map(|n| u32::from_le_bytes(*n) as usize);
        let cells = band.cells.into_iter().map(u64::from);
        (band.chunk.to_vec(), cells.zip(numbers).collect())
    };
    Some(bands.into_iter().map(part).collect())
}

/// Splits compressed rows in place; `None` if columns do not ascend, or rows are too many.
fn in_rows(points: &Points<'_>, grid: &ChunkGrid) -> Option<Model> {
    let rows = RowGrid::new(points, grid)?;
    let side = grid.chunk()[1];
    let mut parts = Model::new();
    for band in 0..rows.bands() {
        let mut count = 0;
        let neighbours = rows.neighbours(band)?;
        let mut take = |chunk: usize, row: u32, range: Range<usize>| {
            count += range.len();
            let part = parts.entry(vec![band as u64, chunk as u64]).or_default();
            let first = u64::from(row) * side;
            part.extend(range.map(|number| {
                (first + u64::from(rows.columns()[number]) - chunk as u64 * side, number)
            }));
        };
        rows.stretches(band).for_each(|lines| rows.split(lines, &mut take));
        assert_eq!(count, rows.cells(rows.lines(band)).len());
        assert!(neighbours <= count);
    }
    Some(parts)
}

fn columns(list: &[Vec<u64>], rank: usize) -> Vec<Vec<u64>> {
    (0..rank).map(|axis| list.iter().map(|point| point[axis]).collect()).collect()
}

fn case() -> impl Strategy<Value = (Vec<u64>, Vec<u64>, Vec<Vec<u64>>)> {
    (1usize..=4).prop_flat_map(|rank| {
        let axes = prop::collection::vec((1u64..30, 1u64..9), rank);
        let points = prop::collection::vec(prop::collection::vec(any::<u64>(), rank), 0..80);
        (axes, points, any::<bool>()).prop_map(|(axes, mut points, sorted)| {
            for point in &mut points {
                point.iter_mut().zip(&axes).for_each(|(at, (size, _))| *at %= size);
            }
            if sorted {
                points.sort();
            }
            let (dims, chunk) = axes.into_iter().unzip();
            (dims, chunk, points)
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn every_form_is_split_as_each_point_alone(
        (dims, chunk, list) in case(),
        cut in any::<prop::sample::Index>(),
    ) {
        let grid = ChunkGrid::new(&dims, &chunk).unwrap();
        let rank = dims.len();
        let range = if list.is_empty() { 0..0 } else { cut.index(list.len())..list.len() };
        let expected = model(&list, &chunk, range.clone());
        let flat = list.concat();
        let wide = columns(&list, rank);
        let narrow: Vec<Vec<u32>> =
            wide.iter().map(|column| column.iter().map(|&at| at as u32).collect()).collect();
        for points in [
            Points::list(rank, &flat).unwrap(),
            Points::columns(wide.iter()).unwrap(),
            Points::columns(narrow.iter()).unwrap(),
        ] {
            prop_assert_eq!(points.len(), list.len());
            prop_assert_eq!(&points.to_list(), &flat);
            prop_assert_eq!(&planned(&points, range.clone(), &grid, 1), &expected);
        }
        let ascends = list.is_sorted_by_key(|point| point[0]);
        for points in [Points::columns(&wide).unwrap(), Points::columns(&narrow).unwrap()] {
            let whole = model(&list, &chunk, 0..list.len());
            prop_assert_eq!(banded(&points, &grid), ascends.then_some(whole));
        }
    }

    #[test]
    fn compressed_lines_are_split_as_each_point_alone(
        (dims, chunk) in ((1u64..20, 1u64..150), (1u64..7, 1u64..60)),
        lines in prop::collection::vec(prop::collection::vec(any::<u64>(), 0..70), 0..20),
        axis in 0usize..2,
        sorted in 0usize..25,
    ) {
        let (dims, chunk) = ([dims.0, dims.1], [chunk.0, chunk.1]);
        let across = dims[1 - axis];
        // The first lines ascend, or all.
        let lines = lines.into_iter().enumerate().map(|(number, mut line)| {
            line.iter_mut().for_each(|index| *index %= across);
            if number < sorted {
                line.sort();
                line.dedup();
            }
            line
        });
        let lines: Vec<Vec<u64>> = lines.collect();
        let (mut pointers, mut indices, mut list) = (vec![0u64], Vec::new(), Vec::new());
        for (line, of_line) in lines.iter().take(dims[axis] as usize).enumerate() {
            for index in of_line.iter().map(|index| index % across) {
                indices.push(index);
                let line = line as u64;
                list.push(if axis == 0 { vec![line, index] } else { vec![index, line] });
            }
            pointers.push(indices.len() as u64);
        }
        let narrow: Vec<u32> = indices.iter().map(|&index| index as u32).collect();
        let grid = ChunkGrid::new(&dims, &chunk).unwrap();
        let expected = model(&list, &chunk, 0..list.len());
        let make = |narrowed: bool| match (axis, narrowed) {
            (0, false) => Points::compressed_rows(&pointers, &indices),
            (0, true) => Points::compressed_rows(&pointers, &narrow),
            (_, false) => Points::compressed_columns(&pointers, &indices),
            (_, true) => Points::compressed_columns(&pointers, &narrow),
        };
        for points in [make(false).unwrap(), make(true).unwrap()] {
            prop_assert_eq!(points.to_list(), list.concat());
            prop_assert_eq!(&planned(&points, 0..list.len(), &grid, 1), &expected);
            prop_assert_eq!(banded(&points, &grid), (axis == 0).then(|| expected.clone()));
        }
        prop_assert_eq!(in_rows(&make(false).unwrap(), &grid), None);
        let strict = list.windows(2).all(|pair| pair[0] < pair[1]);
        let few = (pointers.len() as u64 - 1) * grid.counts()[1] <= list.len() as u64;
        let wanted = (axis == 0 && strict && few).then_some(expected);
        prop_assert_eq!(in_rows(&make(true).unwrap(), &grid), wanted);
    }
}

#[test]
fn several_threads_and_many_chunks_give_the_same() {
    let rows: Vec<u32> = (0..200_000u32).map(|at| at.wrapping_mul(2_654_435_761) % 1000).collect();
    let lines: Vec<u32> = (0..200_000u32).map(|at| at.wrapping_mul(40_503) % 777).collect();
    let list: Vec<Vec<u64>> =
        rows.iter().zip(&lines).map(|(&a, &b)| vec![u64::from(a), u64::from(b)]).collect();
    let points = Points::columns([&rows, &lines]).unwrap();
    // The second has more chunks than points.
    for chunk in [[100, 50], [1, 1]] {
        let grid = ChunkGrid::new(&[1000, 777], &chunk).unwrap();
        let expected = model(&list, &chunk, 7..200_000);
        assert_eq!(planned(&points, 7..200_000, &grid, 3), expected);
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let grid = ChunkGrid::new(&[4, 5], &[2, 2]).unwrap();
    let refused = |points: Points<'_>| {
        let count = points.len();
        let run = |count: usize, task: &(dyn Fn(usize) + Sync)| (0..count).for_each(task);
        if let Err(error) = points.in_bands(&vec![0; count], 1, &grid, &run) {
            assert_eq!(PointPlan::new(points.clone(), 0..count, &grid).unwrap_err(), error);
        }
        PointPlan::new(points, 0..count, &grid).unwrap_err().to_string()
    };
    let far = Points::list(2, &[0, 0, 3, 5]).unwrap();
    assert!(refused(far).contains("coordinate 5 of dimension 1"));
    let far = [&[0u32, 4][..], &[0, 0]];
    assert!(refused(Points::columns(far).unwrap()).contains("coordinate 4 of dimension 0"));
    let many = Points::compressed_rows(&[0u32, 0, 0, 0, 0, 1][..], &[1u32][..]).unwrap();
    assert!(refused(many).contains("dimension 0"));
    assert!(refused(Points::columns([&[1u32][..]]).unwrap()).contains("rank"));
    assert!(Points::list(2, &[1, 2, 3]).is_err());
    assert!(Points::columns([&[1u32][..], &[1, 2]]).is_err());
    for pointers in [&[][..], &[1u64, 2], &[0, 1], &[0, 2, 1, 2]] {
        assert!(Points::compressed_rows(pointers, &[0u32, 0][..]).is_err());
    }
}
