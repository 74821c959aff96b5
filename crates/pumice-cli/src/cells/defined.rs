//! The defined cells of a band.

use super::{linear, require_numbers};
use anyhow::Result;
use pumice::types::Integer;
use pumice::{Dataset, Datatype, Element, H5Type, Heaped, Selection};

/// Defined cells in row-major order, with their values.
pub(crate) struct Defined {
    /// The position of each cell in row-major order.
    pub(crate) cells: Vec<u64>,
    /// Their values, one after another, of [`value_type`].
    pub(crate) values: Heaped,
}

impl Defined {
    /// Reads the defined cells of a band.
    pub(crate) fn read(dataset: &Dataset, band: &Selection) -> Result<Self> {
        require_numbers(&dataset.shape())?;
        match dataset.datatype() {
            Datatype::Integer(Integer { signed: true, .. }) => Self::numbers::<i64>(dataset, band),
            Datatype::Integer(_) => Self::numbers::<u64>(dataset, band),
            Datatype::Float(_) => Self::numbers::<f64>(dataset, band),
            _ => {
                let found = dataset.defined(band)?;
                let shape = dataset.shape();
                let cells = found.runs(&shape).flat_map(|run| run.start..run.start + run.len);
                Ok(Self { cells: cells.collect(), values: super::read(dataset, &found)? })
            }
        }
    }

    /// Numbers come with their coordinates, which is faster than asking for both.
    fn numbers<T: Element + Number>(dataset: &Dataset, band: &Selection) -> Result<Self> {
        let found = dataset.read_defined::<T>(band)?;
        let cells = linear_cells(&found.coordinates, &dataset.shape());
        // Cells come chunk by chunk.
        let mut pairs: Vec<(u64, T)> = cells.into_iter().zip(found.values).collect();
        if !pairs.is_sorted_by_key(|&(cell, _)| cell) {
            pairs.sort_unstable_by_key(|&(cell, _)| cell);
        }
        let mut values = Vec::with_capacity(pairs.len() * size_of::<T>());
        pairs.iter().for_each(|(_, value)| values.extend_from_slice(&value.bytes()));
        let values = Heaped { elements: values, heap: Vec::new() };
        Ok(Self { cells: pairs.into_iter().map(|(cell, _)| cell).collect(), values })
    }
}

/// The type in which [`Defined`] has values of `datatype`: wide native numbers for numbers.
pub(crate) fn value_type(datatype: &Datatype) -> Datatype {
    match datatype {
        Datatype::Integer(Integer { signed: true, .. }) => i64::datatype(),
        Datatype::Integer(_) => u64::datatype(),
        Datatype::Float(_) => f64::datatype(),
        other => other.clone(),
    }
}

/// A number of eight bytes.
trait Number: Copy {
    fn bytes(self) -> [u8; 8];
}

macro_rules! numbers {
    ($($number:ty),+) => {$(
        impl Number for $number {
            fn bytes(self) -> [u8; 8] {
                self.to_ne_bytes()
            }
        }
    )+};
}

numbers! { i64, u64, f64 }

/// The positions in row-major order of a list of coordinates.
fn linear_cells(coordinates: &[u64], shape: &[u64]) -> Vec<u64> {
    coordinates.chunks_exact(shape.len().max(1)).map(|point| linear(point, shape)).collect()
}

/// Visits the defined cells of a band in any order, as runs in row-major order: first cell, length.
pub(crate) fn for_each_defined_run(
    dataset: &Dataset,
    band: &Selection,
    mut visit: impl FnMut(u64, u64),
) -> Result<()> {
    let shape = dataset.shape();
    require_numbers(&shape)?;
    match dataset.datatype() {
        Datatype::Integer(_) | Datatype::Float(_) => {
            let found = dataset.read_defined::<u8>(band)?;
            linear_cells(&found.coordinates, &shape).into_iter().for_each(|cell| visit(cell, 1));
        }
        _ => dataset.defined(band)?.runs(&shape).for_each(|run| visit(run.start, run.len)),
    }
    Ok(())
}
