//! Cells of a sparse chunk that are named one by one: as a set with values in its order, and as
//! places to read to.
//!
//! Where points come in the order of the chunk, their cells are the set and their values follow each
//! other already. Otherwise they are sorted by cell, n log n at most, and of several values for one
//! cell the last one stays.

use super::request::{Source, Target};
use super::sparse_chunk::SparseChunk;
use pumice_medium::Result;
use pumice_space::{CellSet, PointBand, PointPart};

/// Fewer points than this are sorted by comparing.
const FEW: usize = 1 << 10;
/// Bits of a cell that one pass of sorting looks at.
const DIGIT: u32 = 11;

/// The cells that points name.
pub(super) fn cells(part: &PointPart<'_>) -> Result<CellSet> {
    let total = part.cells_per_chunk();
    if total > u64::from(u32::MAX) {
        return Ok(CellSet::from_unsorted_cells(total, part.cells64())?);
    }
    let mut list = part.cells32();
    if !ascends(&list) {
        list.sort_unstable();
        list.dedup();
    }
    Ok(CellSet::from_list(total, list)?)
}

/// The cells that points name, and the value of each in row-major order and in the memory's type.
pub(super) fn collect(part: &PointPart<'_>, source: &Source<'_>) -> Result<(CellSet, Vec<u8>)> {
    let total = part.cells_per_chunk();
    if total > u64::from(u32::MAX) {
        return collect_wide(part, source);
    }
    let list = part.cells32();
    if ascends(&list) {
        let mut values = Vec::with_capacity(source.bytes_of(list.len() as u64));
        for places in part.memory() {
            let (start, len) = (places.start as u64, places.len() as u64);
            values.extend_from_slice(source.slice(start, len)?);
        }
        return Ok((CellSet::from_list(total, list)?, values));
    }
    let (cells, order) = sorted(&list, total);
    drop(list);
    let places: Vec<usize> = part.memory().flatten().collect();
    let mut values = Vec::with_capacity(source.bytes_of(order.len() as u64));
    for number in order {
        values.extend_from_slice(source.slice(places[number as usize] as u64, 1)?);
    }
    Ok((CellSet::from_list(total, cells)?, values))
}

/// As [`collect`], of points whose values are beside them already, `element` bytes each. Takes both.
pub(super) fn in_order(
    total: u64,
    band: &mut PointBand,
    element: usize,
) -> Result<(CellSet, Vec<u8>)> {
    let (list, held) = (std::mem::take(&mut band.cells), std::mem::take(&mut band.values));
    if ascends(&list) {
        return Ok((CellSet::from_list(total, list)?, held));
    }
    let (cells, order) = sorted(&list, total);
    let mut values = Vec::with_capacity(order.len() * element);
    for number in order {
        let start = number as usize * element;
        values.extend_from_slice(held.get(start..start + element).unwrap_or_default());
    }
    Ok((CellSet::from_list(total, cells)?, values))
}

/// [`collect`] for chunks of 2^32 cells and more.
fn collect_wide(part: &PointPart<'_>, source: &Source<'_>) -> Result<(CellSet, Vec<u8>)> {
    let cells = part.cells64();
    let mut places: Vec<(u64, usize)> = cells.into_iter().zip(part.memory().flatten()).collect();
    // Stable, so that of equal cells the one that came last stays last.
    places.sort_by_key(|place| place.0);
    let mut values = Vec::with_capacity(source.bytes_of(places.len() as u64));
    let last = last_of_each(&places);
    for &(_, memory) in last.clone() {
        values.extend_from_slice(source.slice(memory as u64, 1)?);
    }
    let cells = last.map(|place| place.0);
    Ok((CellSet::from_sorted_cells(part.cells_per_chunk(), cells)?, values))
}

fn last_of_each(places: &[(u64, usize)]) -> impl Iterator<Item = &(u64, usize)> + Clone {
    let next = places.iter().skip(1).map(|place| Some(place.0)).chain([None]);
    places.iter().zip(next).filter(|(place, next)| *next != Some(place.0)).map(|(place, _)| place)
}

/// Whether cells ascend without repetition; all are looked at, so that many are compared at once.
fn ascends(list: &[u32]) -> bool {
    list.windows(2).fold(true, |all, pair| all & (pair[0] < pair[1]))
}

/// The cells of `list` in order, each once, and the number of the last point that names it.
fn sorted(list: &[u32], total: u64) -> (Vec<u32>, Vec<u32>) {
    // The number makes every key unique, so no sort need be stable.
    let keys = list.iter().enumerate();
    let mut keys: Vec<u64> = keys.map(|(at, &cell)| u64::from(cell) << 32 | at as u64).collect();
    if keys.len() < FEW {
        keys.sort_unstable();
    } else {
        keys = sort_by_digits(keys, total);
    }
    let (mut cells, mut order) = (Vec::with_capacity(keys.len()), Vec::with_capacity(keys.len()));
    for (at, key) in keys.iter().enumerate() {
        let cell = (key >> 32) as u32;
        if keys.get(at + 1).is_none_or(|next| (next >> 32) as u32 != cell) {
            cells.push(cell);
            order.push(*key as u32);
        }
    }
    cells.shrink_to_fit();
    (cells, order)
}

/// Sorts keys that are in order of their lower halves by their upper halves, which are below
/// `total`: digit by digit, lowest first.
fn sort_by_digits(mut keys: Vec<u64>, total: u64) -> Vec<u64> {
    let mut other = vec![0; keys.len()];
    let bits = 64 - total.leading_zeros();
    for shift in (0..bits).step_by(DIGIT as usize) {
        let digit = |key: u64| (key >> (32 + shift)) as usize & ((1 << DIGIT) - 1);
        let mut places = [0usize; 1 << DIGIT];
        keys.iter().for_each(|&key| places[digit(key)] += 1);
        let mut sum = 0;
        places.iter_mut().for_each(|place| (*place, sum) = (sum, sum + *place));
        for &key in &keys {
            let place = &mut places[digit(key)];
            other[*place] = key;
            *place += 1;
        }
        std::mem::swap(&mut keys, &mut other);
    }
    keys
}

/// Puts the fill value wherever points go.
pub(super) fn fill(part: &PointPart<'_>, target: &Target<'_>) {
    part.memory().for_each(|places| target.fill(places.start as u64, places.len() as u64));
}

/// Places the values of points that are defined; the caller has put the fill value everywhere.
pub(super) fn scatter(
    chunk: &SparseChunk,
    element: usize,
    part: &PointPart<'_>,
    target: &Target<'_>,
) -> Result<()> {
    let values = chunk.values();
    let cells = part.cells64().into_iter();
    for (cell, memory) in cells.zip(part.memory().flatten()) {
        if let Some(position) = chunk.cells.position(cell) {
            let start = position as usize * element;
            target.place(memory as u64, &values[start..start + element])?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorting_keeps_the_last_point_of_each_cell() {
        for count in [0u32, 1, 50, 5000] {
            let list: Vec<u32> =
                (0..count).map(|at| at.wrapping_mul(2_654_435_761) % 3000).collect();
            let mut last = std::collections::BTreeMap::new();
            last.extend(list.iter().enumerate().map(|(at, cell)| (*cell, at as u32)));
            let (cells, order) = sorted(&list, 3000);
            assert_eq!(cells, last.keys().copied().collect::<Vec<_>>());
            assert_eq!(order, last.values().copied().collect::<Vec<_>>());
        }
    }
}
