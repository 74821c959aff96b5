//! Visiting many cells in little memory.
//!
//! A [`Hyperslab`] is visited in row-major order: [`for_each_piece`] reads all of its cells, a
//! bounded number at a time; [`for_each_band`] finds bands of rows with defined cells, at a cost
//! that follows the stored cells, not the extent; [`Defined`] holds those of a band. At most about
//! a million cells are kept, unless a single row has more defined ones.

mod defined;
mod hyperslab;

pub(crate) use self::defined::{Defined, for_each_defined_run, value_type};
pub(crate) use self::hyperslab::{Hyperslab, coordinates, linear};

use crate::threads;
use anyhow::{Result, ensure};
use pumice::types::{ByteOrder, Float};
use pumice::{Attribute, Dataset, Datatype, Heaped, Selection, Transfer};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The most cells that are held at once.
const MAX_CELLS: u64 = 1 << 20;
/// The bytes of a piece, about.
const MAX_BYTES: u64 = 16 << 20;
/// The multiple of that which is compared at once: most of it is equal.
const PAIR_LENGTH: u64 = 2;
/// The bytes that a thread compares at once, about: they fit into a processor's own cache.
const SCAN_BYTES: u64 = 512 << 10;
/// Pieces that each thread compares before differences are reported.
const SCAN_PIECES: usize = 16;
/// About how many stored bytes a band of rows has at first.
const BAND_BYTES: u64 = 4 << 20;
/// Into how many bands the rows of a dataset are split at first, at most.
const MAX_BANDS: u64 = 1024;

/// Reads the cells of `slab` piece by piece in row-major order. `visit` gets the number of selected
/// cells before the piece, and the piece's elements in the file's type, with the heap that those of
/// variable length refer to.
pub(crate) fn for_each_piece(
    dataset: &Dataset,
    slab: &Hyperslab,
    mut visit: impl FnMut(u64, &Selection, &Heaped) -> Result<()>,
) -> Result<()> {
    for_each_selection(slab, limit(dataset), |before, selection| {
        visit(before, selection, &read(dataset, selection)?)
    })
}

/// Reads the same cells of two datasets piece by piece, in row-major order. `visit` gets the number
/// of selected cells before the piece, the selections, and the elements with their heaps.
pub(crate) fn for_each_pair(
    datasets: [&Dataset; 2],
    slabs: &[Hyperslab; 2],
    mut visit: impl FnMut(u64, [&Selection; 2], [Heaped; 2]) -> Result<()>,
) -> Result<()> {
    let limit = limit(datasets[0]).min(limit(datasets[1])).saturating_mul(PAIR_LENGTH);
    if slabs[0] == slabs[1] {
        return for_each_selection(&slabs[0], limit, |before, selection| {
            let values = [read(datasets[0], selection)?, read(datasets[1], selection)?];
            visit(before, [selection, selection], values)
        });
    }
    // Parts at different places are cut differently; they are seldom large.
    let selections = [slabs[0].selection()?, slabs[1].selection()?];
    let values = [read(datasets[0], &selections[0])?, read(datasets[1], &selections[1])?];
    visit(0, [&selections[0], &selections[1]], values)
}

/// Reads the same cells of two datasets piece by piece, as [`for_each_pair`] does, but visits only
/// pieces whose bytes differ. Pieces are compared by several threads, in memory of their own.
pub(crate) fn for_each_different_pair(
    datasets: [&Dataset; 2],
    slab: &Hyperslab,
    mut visit: impl FnMut(u64, [&Selection; 2], [Heaped; 2]) -> Result<()>,
) -> Result<()> {
    let threads = threads::available();
    let size = datasets[0].datatype().size().max(1) as u64;
    let limit = (SCAN_BYTES / size).max(1).max(chunk_cells(datasets[0])).min(limit(datasets[0]));
    let mut waiting: Vec<(u64, Selection)> = Vec::new();
    let mut compare = |pieces: &mut Vec<(u64, Selection)>| -> Result<()> {
        for (before, selection) in different(datasets, pieces, threads)? {
            let values = [read(datasets[0], selection)?, read(datasets[1], selection)?];
            visit(before, [selection, selection], values)?;
        }
        pieces.clear();
        Ok(())
    };
    for_each_selection(slab, limit, |before, selection| {
        waiting.push((before, selection.clone()));
        if waiting.len() < SCAN_PIECES * threads { Ok(()) } else { compare(&mut waiting) }
    })?;
    compare(&mut waiting)
}

/// The pieces with different bytes, in order.
fn different<'p>(
    datasets: [&Dataset; 2],
    pieces: &'p [(u64, Selection)],
    threads: usize,
) -> Result<Vec<(u64, &'p Selection)>> {
    let next = AtomicUsize::new(0);
    let scan = || -> Result<Vec<usize>> {
        let mut found = Vec::new();
        let [mut one, mut other] = [Vec::new(), Vec::new()];
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some((_, selection)) = pieces.get(number) else { return Ok(found) };
            read_bytes(datasets[0], selection, &mut one)?;
            read_bytes(datasets[1], selection, &mut other)?;
            if one != other {
                found.push(number);
            }
        }
    };
    let scanned = threads::on_several(threads, scan).into_iter().collect::<Result<Vec<_>>>()?;
    let mut found = scanned.concat();
    found.sort_unstable();
    let piece = |number: usize| pieces.get(number).map(|(before, cells)| (*before, cells));
    Ok(found.into_iter().filter_map(piece).collect())
}

/// Elements of a fixed size, in memory that is used again.
fn read_bytes(dataset: &Dataset, selection: &Selection, bytes: &mut Vec<u8>) -> Result<()> {
    let count = selection.count(&dataset.shape()) as usize;
    bytes.resize(count * dataset.datatype().size(), 0);
    Ok(dataset.read_as(selection, dataset.datatype(), bytes, &Transfer::new())?)
}

/// The cells of a row of chunks, so that no chunk is decoded for two pieces.
fn chunk_cells(dataset: &Dataset) -> u64 {
    let rows = dataset.chunk().and_then(|chunk| chunk.first().copied()).unwrap_or(1);
    let row = dataset.shape().iter().skip(1).fold(1u64, |cells, &side| cells.saturating_mul(side));
    row.saturating_mul(rows)
}

/// The elements of a selection in the file's type, and their heap.
pub(crate) fn read(dataset: &Dataset, selection: &Selection) -> Result<Heaped> {
    if dataset.datatype().has_varlen() {
        return Ok(dataset.read_heaped(selection)?);
    }
    Ok(Heaped { elements: dataset.read_bytes(selection)?, heap: Vec::new() })
}

/// The elements of an attribute, and their heap.
pub(crate) fn read_attribute(attribute: &Attribute) -> Result<Heaped> {
    if attribute.datatype().has_varlen() {
        return Ok(attribute.read_heaped()?);
    }
    Ok(Heaped { elements: attribute.bytes().to_vec(), heap: Vec::new() })
}

/// The cells of a dataset that are held at once.
fn limit(dataset: &Dataset) -> u64 {
    (MAX_BYTES / dataset.datatype().size().max(1) as u64).clamp(1, MAX_CELLS)
}

/// Splits `slab` into selections of at most `limit` cells each, in row-major order.
fn for_each_selection(
    slab: &Hyperslab,
    limit: u64,
    mut visit: impl FnMut(u64, &Selection) -> Result<()>,
) -> Result<()> {
    let shape = slab.shape();
    if shape.contains(&0) {
        return Ok(());
    }
    // The axis along which pieces are cut: all behind it fit into one piece.
    let mut inner = 1u64;
    let mut cut = shape.len();
    while cut > 0 && inner.saturating_mul(shape[cut - 1]) <= limit {
        cut -= 1;
        inner *= shape[cut];
    }
    if cut == 0 {
        return visit(0, &slab.selection()?);
    }
    let axis = cut - 1;
    let most = (limit / inner).max(1);
    let mut outer = vec![0u64; axis];
    let mut before = 0;
    loop {
        let mut fixed = slab.clone();
        for (axis, &index) in outer.iter().enumerate() {
            fixed = fixed.narrowed(axis, index, 1).0;
        }
        let mut first = 0;
        while first < shape[axis] {
            let (part, count) = fixed.narrowed(axis, first, most.min(shape[axis] - first));
            visit(before, &part.selection()?)?;
            first += count;
            before += count * inner;
        }
        if !advance(&mut outer, &shape) {
            return Ok(());
        }
    }
}

/// Counts on to the next index in row-major order; false behind the last one.
fn advance(index: &mut [u64], shape: &[u64]) -> bool {
    for (place, &length) in index.iter_mut().zip(shape).rev() {
        *place += 1;
        if *place < length {
            return true;
        }
        *place = 0;
    }
    false
}

/// Finds bands of rows of `slab`, in order, with a bounded number of defined cells each and all of
/// them together.
pub(crate) fn for_each_band(
    dataset: &Dataset,
    slab: &Hyperslab,
    mut visit: impl FnMut(&Selection) -> Result<()>,
) -> Result<()> {
    let shape = dataset.shape();
    let cells = slab.selection()?;
    let rows = match (slab.start.first(), slab.end_of_rows()) {
        (Some(&first), Some(end)) if !slab.shape().contains(&0) => first..end,
        _ => return Ok(()),
    };
    let chunk = dataset.chunk().map_or(1, |chunk| chunk[0].max(1));
    let bands = Rows { dataset, shape: &shape, cells: &cells, chunk, limit: limit(dataset) };
    let count = (dataset.storage_size()? / BAND_BYTES).clamp(1, MAX_BANDS);
    let step = (rows.end - rows.start).div_ceil(count).checked_next_multiple_of(chunk);
    let step = step.unwrap_or(u64::MAX);
    let mut first = rows.start;
    while first < rows.end {
        let end = (first / step + 1).saturating_mul(step).min(rows.end);
        bands.visit(first..end, &mut visit)?;
        first = end;
    }
    Ok(())
}

/// Fails where cells cannot be numbered in row-major order, as most commands do it.
pub(crate) fn require_numbers(shape: &[u64]) -> Result<()> {
    let cells = shape.iter().try_fold(1u64, |cells, &side| cells.checked_mul(side));
    let counted = cells.is_some() || shape.contains(&0);
    ensure!(counted, "{shape:?} has more than 2^64 cells: they have no numbers, which this needs");
    Ok(())
}

/// The number of defined cells in `slab`.
pub(crate) fn count_defined(dataset: &Dataset, slab: &Hyperslab) -> Result<u64> {
    let mut count = 0;
    for_each_band(dataset, slab, |band| {
        count += dataset.count_defined(band)?;
        Ok(())
    })?;
    Ok(count)
}

/// Rows of a dataset, taken band by band.
struct Rows<'a> {
    dataset: &'a Dataset,
    shape: &'a [u64],
    cells: &'a Selection,
    chunk: u64,
    limit: u64,
}

impl Rows<'_> {
    /// Visits a band, in halves if it has many defined cells.
    fn visit(
        &self,
        rows: Range<u64>,
        visit: &mut impl FnMut(&Selection) -> Result<()>,
    ) -> Result<()> {
        let mut start = vec![0; self.shape.len()];
        let mut count = self.shape.to_vec();
        (start[0], count[0]) = (rows.start, rows.end - rows.start);
        let band = Selection::block(&start, &count).map_err(pumice::Error::from)?;
        let band = self.cells.and(&band, self.shape).map_err(pumice::Error::from)?;
        if band.count(self.shape) > self.limit && rows.end - rows.start > 1 {
            let defined = self.dataset.count_defined(&band)?;
            if defined == 0 {
                return Ok(());
            }
            if defined > self.limit {
                let middle = self.middle(&rows);
                self.visit(rows.start..middle, visit)?;
                return self.visit(middle..rows.end, visit);
            }
        }
        visit(&band)
    }

    /// The row at which to halve rows: between chunks if possible.
    fn middle(&self, rows: &Range<u64>) -> u64 {
        let middle = rows.start + (rows.end - rows.start) / 2;
        let aligned = middle / self.chunk * self.chunk;
        if aligned > rows.start { aligned } else { middle }
    }
}

/// The type with the byte order given, where it has one.
pub(crate) fn with_order(datatype: &Datatype, big: bool) -> Datatype {
    let order = if big { ByteOrder::Big } else { ByteOrder::Little };
    let mut changed = datatype.clone();
    match &mut changed {
        Datatype::Integer(integer) => integer.order = order,
        // As h5dump has it, whatever the form in the file: that of VAX has another bias.
        Datatype::Float(float) if float.size == 4 => *float = Float::ieee(4, order, 8, 23),
        Datatype::Float(float) if float.size == 8 => *float = Float::ieee(8, order, 11, 52),
        Datatype::Float(float) => float.order = order,
        Datatype::Bitfield(bits) => bits.order = order,
        Datatype::Compound(compound) => {
            for member in &mut compound.members {
                member.datatype = with_order(&member.datatype, big);
            }
        }
        Datatype::Array(array) => *array.base = with_order(&array.base, big),
        _ => {}
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use pumice::File;

    /// All selected cells, through `for_each_selection`.
    fn visited(slab: &Hyperslab, shape: &[u64]) -> Vec<u64> {
        let mut cells = Vec::new();
        for_each_selection(slab, MAX_CELLS, |before, selection| {
            assert_eq!(before, cells.len() as u64);
            cells.extend(selection.runs(shape).flat_map(|run| run.start..run.start + run.len));
            Ok(())
        })
        .unwrap();
        cells
    }

    #[test]
    fn pieces_together_are_the_slab() {
        let shape = [3, 5, 1_500_000];
        for (stride, count, block) in [(3, 500_000, 1), (3, 500_000, 2), (2, 2, 2), (1, 5, 1)] {
            let slab = Hyperslab {
                start: vec![1, 0, 0],
                stride: vec![1, 2, stride],
                count: vec![2, 3, count],
                block: vec![1, 1, block],
            };
            slab.check(&shape).unwrap();
            let cells = visited(&slab, &shape);
            assert_eq!(cells.len() as u64, slab.shape().iter().product::<u64>());
            assert!(cells.is_sorted());
            let selection = slab.selection().unwrap();
            let runs = selection.runs(&shape);
            assert!(runs.flat_map(|run| run.start..run.start + run.len).eq(cells));
        }
    }

    #[test]
    fn slabs_outside_the_shape_are_refused() {
        let slab = |start, stride, count, block| Hyperslab {
            start: vec![start],
            stride: vec![stride],
            count: vec![count],
            block: vec![block],
        };
        assert!(slab(0, 3, 3, 2).check(&[8]).is_ok());
        for wrong in [
            slab(0, 3, 3, 2).check(&[7]),
            slab(0, 1, 2, 2).check(&[8]),
            slab(0, 0, 1, 1).check(&[8]),
            slab(u64::MAX, 1, 1, 1).check(&[8]),
            slab(0, u64::MAX, 3, 1).check(&[8]),
            slab(0, 1, 1, 1).check(&[8, 8]),
        ] {
            assert!(wrong.is_err());
        }
    }

    #[test]
    fn defined_cells_are_found_in_a_vast_extent() {
        let file = File::in_memory().unwrap();
        let shape = [1 << 40, 1 << 20];
        let dataset = file.new_dataset::<u8>().shape(shape).sparse().create("vast").unwrap();
        let points = [[0, 5], [0, 7], [1 << 39, 0], [(1 << 40) - 1, (1 << 20) - 1]];
        dataset.write_points(&points, &[1u8, 2, 3, 4]).unwrap();
        let (mut cells, mut values) = (Vec::new(), Vec::new());
        for_each_band(&dataset, &Hyperslab::whole(&shape), |band| {
            let found = Defined::read(&dataset, band)?;
            cells.extend(found.cells);
            values.extend(found.values.elements);
            Ok(())
        })
        .unwrap();
        let expected: Vec<u64> = points.iter().map(|[row, column]| (row << 20) + column).collect();
        assert_eq!(cells, expected);
        assert_eq!(values, [1u64, 2, 3, 4].map(u64::to_ne_bytes).concat());
        assert_eq!(count_defined(&dataset, &Hyperslab::ranges(&[0..1, 0..6])).unwrap(), 1);
    }
}
