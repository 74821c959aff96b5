//! Selections as plain sets of coordinates, and strategies that make both at once.
#![allow(dead_code, unreachable_pub)]

use proptest::prelude::*;
use pumice_space::Selection;
use std::collections::BTreeSet;

pub type Cells = BTreeSet<Vec<u64>>;

/// A selection and the cells that it must select.
#[derive(Clone, Debug)]
pub struct Modelled {
    pub selection: Selection,
    pub cells: Cells,
}

/// Every coordinate of an array, in row-major order.
pub fn every_cell(dims: &[u64]) -> Vec<Vec<u64>> {
    let mut cells = vec![vec![]];
    for &size in dims {
        cells = cells
            .into_iter()
            .flat_map(|cell: Vec<u64>| (0..size).map(move |at| [&cell[..], &[at]].concat()))
            .collect();
    }
    cells
}

pub fn linear(dims: &[u64], cell: &[u64]) -> u64 {
    dims.iter().zip(cell).fold(0, |sum, (size, at)| sum * size + at)
}

/// Shapes of rank 1 to 5 with few cells.
pub fn dims() -> impl Strategy<Value = Vec<u64>> {
    prop_oneof![
        prop::collection::vec(1u64..40, 1..=1),
        prop::collection::vec(1u64..10, 2..=2),
        prop::collection::vec(1u64..6, 3..=3),
        prop::collection::vec(1u64..5, 4..=5),
    ]
}

fn axis_cells(size: u64, (start, stride, count, block): (u64, u64, u64, u64)) -> Vec<u64> {
    let cells = (0..count).flat_map(|k| (0..block).map(move |b| start + k * stride + b));
    cells.filter(|&at| at < size).collect()
}

fn product(axes: &[Vec<u64>]) -> Cells {
    let mut cells = vec![vec![]];
    for axis in axes {
        cells = cells
            .into_iter()
            .flat_map(|cell: Vec<u64>| axis.iter().map(move |&at| [&cell[..], &[at]].concat()))
            .collect();
    }
    cells.into_iter().collect()
}

/// A hyperslab that may be cut by the extent.
pub fn hyperslab(dims: Vec<u64>) -> impl Strategy<Value = Modelled> {
    let axes: Vec<_> = dims
        .iter()
        .map(|&size| {
            (0..size, 1u64..5, 1u64..6, 1u64..4, prop::bool::weighted(0.4)).prop_map(
                move |(start, stride, count, block, whole)| match whole {
                    true => (0, size, 1, size),
                    false => (start, stride.max(block), count, block),
                },
            )
        })
        .collect();
    axes.prop_map(move |axes| {
        let part = |pick: fn(&(u64, u64, u64, u64)) -> u64| -> Vec<u64> {
            axes.iter().map(pick).collect()
        };
        let selection =
            Selection::hyperslab(&part(|a| a.0), &part(|a| a.1), &part(|a| a.2), &part(|a| a.3));
        let sets: Vec<_> =
            axes.iter().zip(&dims).map(|(&axis, &size)| axis_cells(size, axis)).collect();
        Modelled { selection: selection.unwrap().clip(&dims).unwrap(), cells: product(&sets) }
    })
}

/// Points in random order, perhaps repeated.
pub fn points(dims: Vec<u64>) -> impl Strategy<Value = Modelled> {
    let rank = dims.len();
    let point: Vec<_> = dims.iter().map(|&size| 0..size).collect();
    prop::collection::vec(point, 0..12).prop_map(move |points| Modelled {
        selection: Selection::points(rank, points.concat()).unwrap(),
        cells: points.into_iter().collect(),
    })
}

/// A union of blocks and points.
pub fn union(dims: Vec<u64>) -> impl Strategy<Value = Modelled> {
    let part = prop_oneof![3 => hyperslab(dims.clone()), 1 => points(dims.clone())];
    prop::collection::vec(part, 0..6).prop_map(move |parts| {
        let selections = parts.iter().map(|part| part.selection.clone());
        Modelled {
            selection: Selection::union_of(dims.len(), selections, &dims).unwrap(),
            cells: parts.into_iter().flat_map(|part| part.cells).collect(),
        }
    })
}

/// A selection of any kind, inside the extent.
pub fn selection(dims: Vec<u64>) -> BoxedStrategy<Modelled> {
    let every: Cells = every_cell(&dims).into_iter().collect();
    prop_oneof![
        1 => Just(Modelled { selection: Selection::all(), cells: every }),
        1 => Just(Modelled { selection: Selection::none(), cells: Cells::new() }),
        4 => hyperslab(dims.clone()),
        3 => points(dims.clone()),
        6 => union(dims),
    ]
    .boxed()
}
