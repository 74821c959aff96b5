//! Arrays with a value in every cell.

use super::array_stream::Stream;
use super::{Array, BATCH, Part, Source};
use anyhow::Result;
use pumice::Dataset;

/// About how many bytes are held at once.
const BYTES: u64 = 16 << 20;

/// Blocks that together are an array, in row-major order and each in one piece of it: whole lines
/// along as many axes as fit.
pub struct Blocks {
    shape: Vec<u64>,
    limit: u64,
    next: Option<Vec<u64>>,
}

impl Blocks {
    /// The blocks of an array of this shape.
    pub fn new(shape: Vec<u64>, element_size: usize) -> Self {
        let limit = (BYTES / element_size.max(1) as u64).clamp(1, BATCH as u64 * 4);
        let next = (!shape.contains(&0)).then(|| vec![0; shape.len()]);
        Self { shape, limit, next }
    }

    fn advance(&self, mut place: Vec<u64>, mut axis: usize, count: u64) -> Option<Vec<u64>> {
        *place.get_mut(axis)? += count;
        while place[axis] >= self.shape[axis] {
            place[axis] = 0;
            axis = axis.checked_sub(1)?;
            place[axis] += 1;
        }
        Some(place)
    }
}

impl Iterator for Blocks {
    type Item = (Vec<u64>, Vec<u64>);

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.next.take()?;
        let mut count = vec![1; start.len()];
        let mut cells = 1u64;
        let mut axis = start.len();
        // Axes behind `axis` are taken whole.
        while axis > 0 {
            axis -= 1;
            let room = (self.limit / cells).max(1);
            count[axis] = (self.shape[axis] - start[axis]).min(room);
            if count[axis] < self.shape[axis] {
                break;
            }
            cells *= count[axis];
        }
        let step = count.get(axis).copied().unwrap_or(1);
        self.next = self.advance(start.clone(), axis, step);
        Some((start, count))
    }
}

/// A dense array on its way in.
pub(crate) struct DenseSource {
    array: Array,
    stream: Box<dyn Stream>,
    /// The file has axes in the opposite order.
    reversed: bool,
    blocks: Blocks,
}

impl DenseSource {
    pub(crate) fn new(array: Array, stream: Box<dyn Stream>, reversed: bool) -> Self {
        let mut shape = array.shape.clone();
        if reversed {
            shape.reverse();
        }
        let blocks = Blocks::new(shape, array.datatype.size());
        Self { array, stream, reversed, blocks }
    }
}

impl Source for DenseSource {
    fn array(&self) -> &Array {
        &self.array
    }

    fn next_part(&mut self) -> Result<Option<Part>> {
        let Some((mut start, mut count)) = self.blocks.next() else { return Ok(None) };
        let mut values = self.stream.read(count.iter().product())?;
        if self.reversed {
            values = transposed(&values, &count, self.array.datatype.size());
            start.reverse();
            count.reverse();
        }
        Ok(Some(Part::Block { start, count, values }))
    }
}

/// The elements of a block with its axes in the opposite order.
pub(crate) fn transposed(values: &[u8], shape: &[u64], size: usize) -> Vec<u8> {
    let rank = shape.len();
    if rank < 2 || size == 0 {
        return values.to_vec();
    }
    // How far apart neighbours along each axis are; the result runs through the first axis fastest.
    let mut distances = vec![size; rank];
    for axis in (0..rank - 1).rev() {
        distances[axis] = distances[axis + 1] * shape[axis + 1] as usize;
    }
    let mut result = Vec::with_capacity(values.len());
    let mut index = vec![0u64; rank];
    let mut place = 0usize;
    for _ in 0..values.len() / size {
        result.extend_from_slice(&values[place..place + size]);
        for axis in 0..rank {
            index[axis] += 1;
            place += distances[axis];
            if index[axis] < shape[axis] {
                break;
            }
            place -= distances[axis] * shape[axis] as usize;
            index[axis] = 0;
        }
    }
    result
}

/// A dense dataset of an HDF5 file on its way in.
pub(crate) struct DatasetSource {
    array: Array,
    dataset: Dataset,
    blocks: Blocks,
}

impl DatasetSource {
    pub(crate) fn new(dataset: Dataset) -> Self {
        let array = Array::dense(dataset.shape(), dataset.datatype().clone());
        let blocks = Blocks::new(array.shape.clone(), array.datatype.size());
        Self { array, dataset, blocks }
    }
}

impl Source for DatasetSource {
    fn array(&self) -> &Array {
        &self.array
    }

    fn next_part(&mut self) -> Result<Option<Part>> {
        let Some((start, count)) = self.blocks.next() else { return Ok(None) };
        let values = self.dataset.read_bytes(&selection(&start, &count)?)?;
        Ok(Some(Part::Block { start, count, values }))
    }
}

/// The selection of a block; everything of an array without dimensions.
pub fn selection(start: &[u64], count: &[u64]) -> Result<pumice::Selection> {
    match start.is_empty() {
        true => Ok(pumice::Selection::all()),
        false => Ok(pumice::Selection::block(start, count).map_err(pumice::Error::from)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transposing_twice_changes_nothing() {
        let values: Vec<u8> = (0..24).collect();
        let turned = transposed(&values, &[2, 3, 4], 1);
        assert_eq!(turned[..4], [0, 12, 4, 16]);
        assert_eq!(transposed(&turned, &[4, 3, 2], 1), values);
    }

    #[test]
    fn blocks_cover_an_array_once_and_in_order() {
        for (shape, limit) in [(vec![3, 4, 5], 7), (vec![3, 4, 5], 20), (vec![60], 7), (vec![], 1)]
        {
            let blocks = Blocks { next: Some(vec![0; shape.len()]), shape: shape.clone(), limit };
            let mut cells = Vec::new();
            for (start, count) in blocks {
                assert!(count.iter().product::<u64>() <= limit);
                let selection = selection(&start, &count).unwrap();
                cells.extend(selection.runs(&shape).flat_map(|run| run.start..run.start + run.len));
            }
            let all = shape.iter().product::<u64>();
            assert_eq!(cells, (0..all).collect::<Vec<_>>(), "{shape:?} by {limit}");
        }
    }
}
