//! The shape of a dataset as its layout sees it: extent, chunk, element, fill value.

use pumice_medium::{Error, Result};
use pumice_space::{CellSet, Dims, Selection};
use std::sync::{PoisonError, RwLock};

/// Extent, chunk shape, element size and fill value. Only the extent ever changes.
pub struct Geometry {
    dims: RwLock<Dims>,
    max_dims: Dims,
    chunk: Dims,
    cells_per_chunk: u64,
    element_size: usize,
    fill: Vec<u8>,
}

impl Geometry {
    /// `fill` is one element of the file's type.
    pub fn new(dims: &[u64], max_dims: &[u64], chunk: &[u64], fill: Vec<u8>) -> Result<Self> {
        let cells = chunk.iter().try_fold(1u64, |cells, &length| cells.checked_mul(length));
        let fits = |cells: u64| cells.checked_mul(fill.len() as u64).is_some();
        let cells_per_chunk = cells.filter(|&cells| fits(cells)).ok_or_else(|| {
            Error::Invalid(format!(
                "a chunk of {chunk:?} elements has more bytes than can be addressed"
            ))
        })?;
        Ok(Self {
            dims: RwLock::new(dims.into()),
            max_dims: max_dims.into(),
            chunk: chunk.into(),
            cells_per_chunk,
            element_size: fill.len(),
            fill,
        })
    }

    /// This geometry with another extent.
    pub fn with_dims(&self, dims: &[u64]) -> Self {
        Self {
            dims: RwLock::new(dims.into()),
            max_dims: self.max_dims.clone(),
            chunk: self.chunk.clone(),
            fill: self.fill.clone(),
            ..*self
        }
    }

    /// The current extent.
    pub fn dims(&self) -> Dims {
        Dims::from_slice(&self.dims.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes the extent; the caller holds back all input and output of the dataset.
    pub fn set_dims(&self, dims: &[u64]) {
        *self.dims.write().unwrap_or_else(PoisonError::into_inner) = dims.into();
    }

    /// The largest extent.
    pub fn max_dims(&self) -> &[u64] {
        &self.max_dims
    }

    /// The shape of a chunk.
    pub fn chunk(&self) -> &[u64] {
        &self.chunk
    }

    /// How many chunks it takes along each axis to cover the extent.
    pub fn chunk_counts(&self) -> Dims {
        let dims = self.dims.read().unwrap_or_else(PoisonError::into_inner);
        dims.iter().zip(&self.chunk).map(|(&length, &side)| length.div_ceil(side.max(1))).collect()
    }

    /// How many cells a chunk has.
    pub fn cells_per_chunk(&self) -> u64 {
        self.cells_per_chunk
    }

    /// Bytes of an element in the file.
    pub fn element_size(&self) -> usize {
        self.element_size
    }

    /// Bytes of a dense chunk.
    pub fn chunk_bytes(&self) -> u64 {
        self.cells_per_chunk * self.element_size as u64
    }

    /// The fill value, one element of the file's type.
    pub fn fill(&self) -> &[u8] {
        &self.fill
    }

    /// Whether the chunk reaches beyond the extent.
    pub fn is_partial(&self, key: &Dims) -> bool {
        let dims = self.dims.read().unwrap_or_else(PoisonError::into_inner);
        self.inside(key, &dims).as_slice() != self.chunk.as_slice()
    }

    /// Those of the cells of the chunk that lie beyond the extent, if there are any.
    pub fn beyond(&self, key: &Dims, cells: &CellSet) -> Result<Option<CellSet>> {
        let shape = self.inside(key, &self.dims());
        if shape == self.chunk || cells.is_empty() {
            return Ok(None);
        }
        if shape.contains(&0) {
            return Ok(Some(cells.clone()));
        }
        let inside = cells.among(&corner(&shape)?, &self.chunk)?;
        Ok((inside.len() < cells.len()).then(|| cells.difference(&inside)))
    }

    /// All cells of the chunk beyond an extent of `dims`, if there are any, in coordinates of the chunk.
    pub fn outside_of(&self, key: &Dims, dims: &[u64]) -> Result<Option<Selection>> {
        let shape = self.inside(key, dims);
        if shape == self.chunk {
            return Ok(None);
        }
        if shape.contains(&0) {
            return Ok(Some(Selection::all()));
        }
        Ok(Some(Selection::all().not_b(&corner(&shape)?, &self.chunk)?))
    }

    /// Whether all of these cells of the chunk lie inside the extent.
    pub fn has_all(&self, key: &Dims, cells: &CellSet) -> bool {
        let shape = self.inside(key, &self.dims());
        shape == self.chunk || (!shape.is_empty() && cells.is_inside(&self.chunk, &shape))
    }

    /// The chunks that will be read after `now`, at most `count`, if `recent` are those that were read before:
    /// reads that move on by the same number of chunks each time, counted in the order of storage, will go on like
    /// that.
    pub fn successors(&self, recent: &[Dims], now: &[Dims], count: usize) -> Vec<Dims> {
        let Some(first) = now.first() else { return Vec::new() };
        let grid = self.chunk_counts();
        let at = |key: &Dims| linear(key, &grid);
        let stride = match recent {
            [] => Some(now.len() as i128),
            [.., before, last] => {
                let stride = at(last) - at(before);
                (stride != 0 && at(first) - at(last) == stride).then_some(stride)
            }
            [_] => None,
        };
        let Some(stride) = stride else { return Vec::new() };
        let steps = 1..=(count / now.len()) as i128;
        let all = steps.flat_map(|step| now.iter().map(move |key| (key, step * stride)));
        all.map_while(|(key, shift)| coordinates(at(key) + shift, &grid)).collect()
    }

    /// The shape of the part of a chunk that lies inside `dims`.
    pub fn inside(&self, key: &Dims, dims: &[u64]) -> Dims {
        let axes = key.iter().zip(&self.chunk).zip(dims);
        axes.map(|((&number, &length), &extent)| clip(number, length, extent)).collect()
    }
}

/// The first cells of a chunk, as a block of this shape.
fn corner(shape: &[u64]) -> Result<Selection> {
    Ok(Selection::block(&Dims::from_elem(0, shape.len()), shape)?)
}

/// How much of chunk `number` of an axis lies inside the extent.
fn clip(number: u64, length: u64, extent: u64) -> u64 {
    extent.saturating_sub(number.saturating_mul(length)).min(length)
}

/// The number of a chunk in the order of storage.
fn linear(key: &[u64], grid: &[u64]) -> i128 {
    let places = key.iter().zip(grid);
    places.fold(0_i128, |sum, (&at, &side)| {
        sum.saturating_mul(i128::from(side)).saturating_add(i128::from(at))
    })
}

/// The chunk of that number, if the grid has it.
fn coordinates(number: i128, grid: &[u64]) -> Option<Dims> {
    let mut rest = u128::try_from(number).ok()?;
    let mut key = Dims::from_elem(0, grid.len());
    for (place, &side) in key.iter_mut().zip(grid).rev() {
        let side = u128::from(side.max(1));
        *place = (rest % side) as u64;
        rest /= side;
    }
    (rest == 0).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_has_its_number_back() {
        let grid = [3, 4, 5];
        let keys: Vec<Dims> = (0..60).map(|number| coordinates(number, &grid).unwrap()).collect();
        assert!(keys.is_sorted());
        assert!(keys.iter().zip(0..).all(|(key, number)| linear(key, &grid) == number));
        assert_eq!((coordinates(60, &grid), coordinates(-1, &grid)), (None, None));
        assert_eq!(coordinates(0, &[]).unwrap().len(), 0);
    }
}
