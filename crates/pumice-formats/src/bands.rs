//! A matrix on its way out, in bands of rows or columns.

use super::BATCH;
use crate::{Progress, Unwatched};
use anyhow::Result;
use pumice::{Compressed, Dataset, Element, H5Type, Lines, Selection};
use std::cmp::Ordering;

/// About how many bytes of a dense dataset are read at once.
const BYTES: u64 = 16 << 20;

/// The cells of consecutive lines, line by line, in ascending order.
pub(crate) struct Band {
    /// The first line, and how many there are.
    pub(crate) first: u64,
    pub(crate) count: u64,
    /// Coordinates, one column per axis.
    pub(crate) columns: Vec<Vec<u64>>,
    pub(crate) values: Vec<u8>,
}

impl Band {
    /// The ends of lines, counted from the band's first cell.
    pub(crate) fn ends(&self, axis: usize) -> Vec<u64> {
        let mut ends = vec![0u64; self.count as usize];
        for line in &self.columns[axis] {
            ends[(line - self.first) as usize] += 1;
        }
        let mut sum = 0;
        for end in &mut ends {
            sum += *end;
            *end = sum;
        }
        ends
    }

    /// Keeps the cells on the diagonal of a matrix and on one side of it; values have `size` bytes.
    pub(crate) fn keep_triangle(&mut self, lower: bool, size: usize) {
        let sides = self.columns[0].iter().zip(&self.columns[1]);
        let kept: Vec<bool> =
            sides.map(|(row, column)| if lower { row >= column } else { row <= column }).collect();
        for column in &mut self.columns {
            let mut at = kept.iter();
            column.retain(|_| at.next() == Some(&true));
        }
        let values = self.values.chunks_exact(size).zip(&kept);
        self.values =
            values.filter(|(_, kept)| **kept).flat_map(|(value, _)| value).copied().collect();
    }
}

/// The number of cells in all bands: the defined ones, or those of a dense dataset that are not zero.
pub(crate) fn count(dataset: &Dataset) -> Result<u64> {
    if dataset.is_sparse() {
        return Ok(dataset.count_defined(..)?);
    }
    let mut count = 0;
    for_each_band(dataset, 0, &Unwatched, |band| {
        count += band.columns[0].len() as u64;
        Ok(())
    })?;
    Ok(count)
}

/// Visits bands that together are the dataset, along an axis. All lines are there, also empty ones.
pub(crate) fn for_each_band(
    dataset: &Dataset,
    axis: usize,
    progress: &dyn Progress,
    mut visit: impl FnMut(Band) -> Result<()>,
) -> Result<()> {
    let shape = dataset.shape();
    let length = shape[axis];
    let step = match dataset.chunk() {
        Some(chunk) if dataset.is_sparse() => chunk[axis],
        _ => {
            let line = shape.iter().product::<u64>() / length.max(1);
            BYTES / (line.max(1).saturating_mul(dataset.datatype().size() as u64)).max(1)
        }
    };
    let mut first = 0;
    while first < length {
        let mut count = step.clamp(1, BATCH as u64).min(length - first);
        let mut cells = lines(&shape, axis, first, count)?;
        while count > 1 && dataset.is_sparse() && dataset.count_defined(&cells)? > BATCH as u64 {
            count = count.div_ceil(2);
            cells = lines(&shape, axis, first, count)?;
        }
        let band = read(dataset, axis, first, count, &cells)?;
        progress.add(band.values.len() as u64);
        visit(band)?;
        first += count;
    }
    Ok(())
}

/// Some lines of a dataset.
pub(crate) fn band(dataset: &Dataset, axis: usize, first: u64, count: u64) -> Result<Band> {
    read(dataset, axis, first, count, &lines(&dataset.shape(), axis, first, count)?)
}

fn lines(shape: &[u64], axis: usize, first: u64, count: u64) -> Result<Selection> {
    if shape.contains(&0) {
        return Ok(Selection::none());
    }
    let (mut start, mut size) = (vec![0; shape.len()], shape.to_vec());
    (start[axis], size[axis]) = (first, count);
    Ok(Selection::block(&start, &size).map_err(pumice::Error::from)?)
}

fn read(dataset: &Dataset, axis: usize, first: u64, count: u64, cells: &Selection) -> Result<Band> {
    if let Some(band) = read_numbers(dataset, axis, (first, count), cells)? {
        return Ok(band);
    }
    let found = dataset.read_defined_bytes(cells)?;
    let (rank, size) = (found.rank, dataset.datatype().size().max(1));
    let sparse = dataset.is_sparse();
    let kept = |value: &[u8]| sparse || value.iter().any(|&byte| byte != 0);
    let cells = || {
        let cells = found.coordinates.chunks_exact(rank).zip(found.values.chunks_exact(size));
        cells.filter(|(_, value)| kept(value))
    };
    // Where each line begins. Chunks come one beside the other, so that to bring their cells into lines is all the
    // sorting that most arrays need.
    let mut next = vec![0usize; count as usize + 1];
    cells().for_each(|(point, _)| next[(point[axis] - first) as usize + 1] += 1);
    for line in 1..next.len() {
        next[line] += next[line - 1];
    }
    let total = next[count as usize];
    let (mut columns, mut values) = (vec![vec![0; total]; rank], vec![0; total * size]);
    for (point, value) in cells() {
        let place = &mut next[(point[axis] - first) as usize];
        columns.iter_mut().zip(point).for_each(|(column, at)| column[*place] = *at);
        values[*place * size..(*place + 1) * size].copy_from_slice(value);
        *place += 1;
    }
    let mut band = Band { first, count, columns, values };
    band.sort(axis, size);
    Ok(band)
}

/// Lines of a sparse matrix whose values are numbers of this machine: they come in order. `None` of anything else.
fn read_numbers(
    dataset: &Dataset,
    axis: usize,
    lines: (u64, u64),
    cells: &Selection,
) -> Result<Option<Band>> {
    let shape = dataset.shape();
    if !dataset.is_sparse() || shape.len() != 2 || shape.contains(&0) {
        return Ok(None);
    }
    macro_rules! first_that_fits {
        ($($number:ty)*) => {
            $(if *dataset.datatype() == <$number>::datatype() {
                return read_lines::<$number>(dataset, axis, lines, cells).map(Some);
            })*
        };
    }
    first_that_fits!(f32 f64 i8 i16 i32 i64 u8 u16 u32 u64);
    Ok(None)
}

fn read_lines<T: Element>(
    dataset: &Dataset,
    axis: usize,
    (first, count): (u64, u64),
    cells: &Selection,
) -> Result<Band> {
    let lines = if axis == 0 { Lines::Rows } else { Lines::Columns };
    let Compressed { pointers, indices, values, .. } =
        dataset.read_compressed_of::<T>(cells, lines)?;
    let mut numbers = vec![0; indices.len()];
    for (line, ends) in (first..).zip(pointers.windows(2)) {
        numbers[ends[0] as usize..ends[1] as usize].fill(line);
    }
    let columns = if axis == 0 { vec![numbers, indices] } else { vec![indices, numbers] };
    Ok(Band { first, count, columns, values: bytemuck::cast_slice(&values).to_vec() })
}

impl Band {
    /// How two cells lie to each other: the line first, then the other axes.
    fn compare(&self, axis: usize, one: usize, other: usize) -> Ordering {
        let at = |cell: usize| self.columns.iter().map(move |column| column[cell]);
        let lines = &self.columns[axis];
        lines[one].cmp(&lines[other]).then_with(|| at(one).cmp(at(other)))
    }

    /// Sorts the cells of each line, whose values have `size` bytes.
    fn sort(&mut self, axis: usize, size: usize) {
        let count = self.columns[axis].len();
        if (1..count).all(|at| self.compare(axis, at - 1, at) != Ordering::Greater) {
            return;
        }
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_unstable_by(|&one, &other| self.compare(axis, one, other));
        for column in &mut self.columns {
            *column = order.iter().map(|&cell| column[cell]).collect();
        }
        let values = order.iter().flat_map(|&cell| &self.values[cell * size..(cell + 1) * size]);
        self.values = values.copied().collect();
    }
}
