//! Defined cells, and reading them alone. In sparse datasets, written cells are defined; in others,
//! all are.

use super::Dataset;
use super::steady::bounded;
use crate::select::Select;
use crate::typed;
use pumice_engine::{Error, Result};
use pumice_space::{CoordinateWalker, Dims, Selection};
use pumice_types::{Conversion, H5Type, plain};

/// Defined cells: coordinates and values.
///
/// Cells are ordered by chunk, and within a chunk in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Defined<T> {
    /// Number of dimensions.
    pub rank: usize,
    /// Coordinates, `rank` numbers for each cell.
    pub coordinates: Vec<u64>,
    /// The value of each cell.
    pub values: Vec<T>,
}

impl<T> Defined<T> {
    /// The number of cells.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The coordinates of one cell.
    pub fn point(&self, index: usize) -> &[u64] {
        &self.coordinates[index * self.rank..(index + 1) * self.rank]
    }

    /// Coordinates and values together.
    pub fn iter(&self) -> impl Iterator<Item = (&[u64], &T)> {
        self.coordinates.chunks_exact(self.rank.max(1)).zip(&self.values)
    }
}

impl Dataset {
    /// The selected cells that are defined, each once, also if a list of points repeats it. Only
    /// sparse datasets have undefined cells.
    pub fn defined(&self, selection: impl Select) -> Result<Selection> {
        self.selected(selection, |selection, dims| match self.is_sparse() {
            true => self.defined_in(selection, dims),
            false => {
                selection.check(dims)?;
                once(selection)
            }
        })
    }

    fn defined_in(&self, selection: &Selection, dims: &Dims) -> Result<Selection> {
        let geometry = &self.state.layout().geometry;
        let chunk = geometry.chunk();
        let placed = |part: pumice_engine::dataset::Defined| -> Result<Selection> {
            let origin = part.chunk.iter().zip(chunk).map(|(&number, &side)| number * side);
            let origin: Vec<u64> = origin.collect();
            let cells = part.cells.into_set(geometry.cells_per_chunk())?;
            if cells.is_full() {
                // As a selection this is "all", which has no place of its own.
                return Ok(Selection::block(&origin, chunk)?);
            }
            // In two steps, of which each fits into an offset.
            let half = |start: &u64| (start / 2) as i64;
            let near: Vec<i64> = origin.iter().map(half).collect();
            let far: Vec<i64> =
                origin.iter().map(|start| half(start) + (start % 2) as i64).collect();
            Ok(cells.to_selection(chunk)?.translate(&near)?.translate(&far)?)
        };
        let mut all = Vec::new();
        self.state.defined_each(&bounded(selection, dims)?, |found| {
            let parts = found.into_iter().map(placed).collect::<Result<Vec<_>>>()?;
            all.push(Selection::union_of(dims.len(), parts, dims)?);
            Ok(())
        })?;
        Ok(Selection::union_of(dims.len(), all, dims)?)
    }

    /// The number of selected cells that are defined; a point that repeats counts once. No values
    /// are read.
    pub fn count_defined(&self, selection: impl Select) -> Result<u64> {
        self.selected(selection, |selection, dims| {
            if !self.is_sparse() {
                selection.check(dims)?;
                return Ok(self.count(&once(selection)?, dims, 1)? as u64);
            }
            let mut count = 0;
            self.state.defined_each(selection, |found| {
                count += found.iter().map(|part| part.cells.len()).sum::<u64>();
                Ok(())
            })?;
            Ok(count)
        })
    }

    /// Whether one cell is defined.
    pub fn is_defined(&self, point: &[u64]) -> Result<bool> {
        let point = self.at(Selection::point(point).map_err(Error::from))?;
        Ok(self.count_defined(point)? > 0)
    }

    /// Coordinates and values of the selected cells that are defined, each once; of datasets that
    /// are not sparse, in the order in which a read gives them. `T` may leave out members of
    /// compounds that are strings or sequences, here as in all readers of defined cells.
    ///
    /// ```
    /// let file = pumice::File::in_memory()?;
    /// let notes = file.new_dataset::<String>().shape([1000]).sparse().create("notes")?;
    /// notes.write(7, &["tuff"])?;
    /// let found = notes.read_defined::<String>(..)?;
    /// assert_eq!((found.point(0), found.values[0].as_str()), (&[7][..], "tuff"));
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn read_defined<T: H5Type>(&self, selection: impl Select) -> Result<Defined<T>> {
        if !self.is_sparse() {
            return self.selected(selection, |selection, dims| {
                selection.check(dims)?;
                let selection = once(&bounded(selection, dims)?)?;
                let values = self.read(&selection)?;
                let coordinates = coordinates_of(&selection, dims, values.len());
                Ok(Defined { rank: dims.len(), coordinates, values })
            });
        }
        let wanted = T::datatype();
        if T::PLAIN
            && let Ok(conversion) = Conversion::new(self.datatype(), &wanted)
        {
            let mut gathered = Gathered::new(self);
            self.selected(selection, |selection, _| {
                gathered.clear();
                self.state.read_defined_each(selection, &wanted, |found| {
                    gathered.convert(&found, &conversion)
                })
            })?;
            return Ok(gathered.defined);
        }
        let (coordinates, found) = self.read_defined_heaped(selection)?;
        let values = self.at(typed::values(self.engine(), self.datatype(), &found))?;
        Ok(Defined { rank: self.state.dims().len(), coordinates, values })
    }

    /// Cells that were found chunk by chunk, with values of a type of memory.
    pub(crate) fn converted<T: H5Type>(
        &self,
        found: &[pumice_engine::dataset::Defined],
    ) -> Result<Defined<T>> {
        let conversion = Conversion::new(self.datatype(), &T::datatype());
        let conversion = self.at(conversion.map_err(Error::from))?;
        let mut gathered = Gathered::new(self);
        self.at(gathered.convert(found, &conversion))?;
        Ok(gathered.defined)
    }

    /// [`read_defined`](Self::read_defined) with the stored bytes of the values, one after another.
    pub fn read_defined_bytes(&self, selection: impl Select) -> Result<Defined<u8>> {
        if !self.is_sparse() {
            return self.selected(selection, |selection, dims| {
                selection.check(dims)?;
                let selection = once(&bounded(selection, dims)?)?;
                let values = self.read_bytes(&selection)?;
                let count = values.len() / self.datatype().size().max(1);
                let coordinates = coordinates_of(&selection, dims, count);
                Ok(Defined { rank: dims.len(), coordinates, values })
            });
        }
        let mut gathered = Gathered::new(self);
        self.selected(selection, |selection, _| {
            gathered.clear();
            self.state.read_defined_each(selection, self.datatype(), |found| {
                gathered.add(&found)?;
                let bytes = found.iter().map(|part| part.values.len()).sum();
                reserve(&mut gathered.defined.values, bytes)?;
                let values = &mut gathered.defined.values;
                found.iter().for_each(|part| values.extend_from_slice(&part.values));
                Ok(())
            })
        })?;
        Ok(gathered.defined)
    }
}

/// Cells that are found some chunks at a time.
struct Gathered<'d, T> {
    chunk: &'d [u64],
    defined: Defined<T>,
}

impl<'d, T> Gathered<'d, T> {
    fn new(dataset: &'d Dataset) -> Self {
        let chunk = dataset.state.layout().geometry.chunk();
        let (coordinates, values) = Default::default();
        Self { chunk, defined: Defined { rank: chunk.len(), coordinates, values } }
    }

    /// Clears the result, before the question is asked once more.
    fn clear(&mut self) {
        self.defined.coordinates.clear();
        self.defined.values.clear();
    }

    /// Adds the coordinates of cells; gives how many they are.
    fn add(&mut self, found: &[pumice_engine::dataset::Defined]) -> Result<usize> {
        let count: usize = found.iter().map(|part| part.cells.len() as usize).sum();
        let numbers = count.saturating_mul(self.chunk.len());
        reserve(&mut self.defined.coordinates, numbers)?;
        for part in found {
            let origin = part.chunk.iter().zip(self.chunk).map(|(&number, &side)| number * side);
            let origin: Vec<u64> = origin.collect();
            let coordinates = &mut self.defined.coordinates;
            part.cells.append_coordinates(self.chunk, &origin, coordinates);
        }
        Ok(count)
    }
}

impl<T: H5Type> Gathered<'_, T> {
    /// Adds cells, with values of a type of memory.
    fn convert(
        &mut self,
        found: &[pumice_engine::dataset::Defined],
        conversion: &Conversion,
    ) -> Result<()> {
        let count = self.add(found)?;
        let Some(new) = plain::zeroed::<T>(count) else {
            return Err(Error::Internal("values that are not plain".into()));
        };
        let mut new = new?;
        let mut place = plain::bytes_mut(&mut new).unwrap_or_default();
        for part in found {
            let (now, later) = place.split_at_mut(part.cells.len() as usize * size_of::<T>());
            conversion.convert(&part.values, now)?;
            place = later;
        }
        let values = &mut self.defined.values;
        if values.is_empty() {
            *values = new;
        } else {
            reserve(values, count)?;
            values.append(&mut new);
        }
        Ok(())
    }
}

/// Reserves room for `more` elements, or fails.
fn reserve<T>(list: &mut Vec<T>, more: usize) -> Result<()> {
    let none = |_| Error::NoMemory(format!("no memory for {more} more"));
    list.try_reserve(more).map_err(none)
}

/// Each of the selected cells once: a list of points may have one twice, of which the first stays.
fn once(selection: &Selection) -> Result<Selection> {
    let Some((rank, list)) = selection.as_points().filter(|(rank, _)| *rank > 0) else {
        return Ok(selection.clone());
    };
    let points: Vec<&[u64]> = list.chunks_exact(rank).collect();
    if points.is_sorted_by(|one, next| one < next) {
        return Ok(selection.clone());
    }
    let mut order: Vec<usize> = (0..points.len()).collect();
    // Stable: of equal points the first stays first.
    order.sort_by_key(|&at| points[at]);
    order.dedup_by_key(|at| points[*at]);
    order.sort_unstable();
    let kept: Vec<&[u64]> = order.into_iter().map(|at| points[at]).collect();
    Ok(Selection::points(rank, kept.concat())?)
}

/// The coordinates of all selected cells, in the order in which a read gives them.
pub(crate) fn coordinates_of(selection: &Selection, dims: &[u64], count: usize) -> Vec<u64> {
    let mut coordinates = Vec::with_capacity(count * dims.len());
    let mut walker = CoordinateWalker::new(dims);
    for run in selection.runs(dims).filter(|_| count > 0) {
        walker.for_each_row(run, |start, length| {
            let (last, before) = start.split_last().unwrap_or((&0, &[]));
            for step in (0..length).filter(|_| !start.is_empty()) {
                coordinates.extend_from_slice(before);
                coordinates.push(last + step);
            }
        });
    }
    coordinates
}
