//! Copying a dataset into another layout: between dense and sparse, other chunks, other filters.
//!
//! Data streams block by block, so that memory does not grow with the dataset.

mod varlen;

use crate::blocks::{BLOCK_CELLS, Block, advance, clip};
use crate::{Dataset, DatasetBuilder, Defined};
use pumice_engine::{Error, Result};
use pumice_layout::{Dense, Storage};
use pumice_space::{Points, Selection};
use pumice_types::{Conversion, Datatype, Element, H5Type, Heaped, HeapedConversion, Value};
use std::sync::atomic::{AtomicUsize, Ordering};

/// About how many bytes are read and written at once where all cells are copied.
const SLAB_BYTES: u64 = 16 << 20;

/// The cells that a copy keeps.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Keep {
    /// Defined cells: undefined cells stay undefined, a defined zero stays defined. Of a dense
    /// dataset, every stored cell is defined; unwritten chunks take no room in the copy, unless its
    /// fill value is another.
    Defined,
    /// Defined and selected cells.
    Selected(Selection),
    /// Defined cells with another value than this one, which is one element of a datatype; see
    /// [`Keep::except`]. A value that the dataset's type cannot have excludes nothing; a
    /// floating-point number is rounded to those of the dataset. Elements are compared byte by
    /// byte, so zero does not exclude negative zero. For strings and sequences, an element of a
    /// fixed length excludes those with its value, and one with a reference is an error; see
    /// [`Keep::ExceptValue`].
    Except(Datatype, Vec<u8>),
    /// Defined cells with another value than this one, of any datatype, strings and sequences
    /// included. Null and an empty string or sequence are the same here.
    ExceptValue(Value),
    /// Defined cells whose cell in another dataset of numbers, of the same shape, is not zero.
    Where(Dataset),
}

impl Keep {
    /// Keeps cells that have another value. It cannot tell a written zero from one that nobody
    /// wrote.
    pub fn except<T: Element>(value: T) -> Self {
        Self::Except(T::datatype(), bytemuck::bytes_of(&value).to_vec())
    }
}

impl Dataset {
    /// Copies the dataset, with its attributes, to a new one at `path` that `builder` describes:
    /// dense or sparse, with other chunks, filters, another datatype or fill value. Strings and
    /// sequences are copied with their text and elements; references to objects stay within their
    /// file.
    ///
    /// Cells that are not kept are undefined in a sparse copy and read as the copy's fill value. In
    /// other copies they have the fill value of the original, so that they read as before.
    ///
    /// ```
    /// use pumice::{File, Keep};
    ///
    /// let file = File::in_memory()?;
    /// let dense = file.new_dataset::<i32>().shape([3, 4]).create("dense")?;
    /// dense.write((1, 1..3), &[7, 8])?;
    ///
    /// let builder = file.new_dataset_like(&dense).sparse().chunk([2, 2]);
    /// let sparse = dense.copy_as(builder, "sparse", &Keep::except(0))?;
    /// assert_eq!(sparse.count_defined(..)?, 2);
    ///
    /// let again = sparse.copy_as(file.new_dataset_like(&sparse), "again", &Keep::Defined)?;
    /// assert_eq!(again.read::<i32>(..)?, dense.read::<i32>(..)?);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn copy_as(&self, builder: DatasetBuilder, path: &str, keep: &Keep) -> Result<Dataset> {
        let group = builder.group().clone();
        let absent = group.absent_groups(path);
        let target = builder.create(path).inspect_err(|_| group.remove_empty(&absent))?;
        let copied = self.unless_resized("copied", || self.copy_to(&target, keep));
        match copied {
            Ok(()) => Ok(target),
            Err(error) => {
                // Half a copy is of no use; the first error says more than one about this.
                drop(target);
                let _ = group.unlink(path);
                group.remove_empty(&absent);
                Err(error)
            }
        }
    }

    fn copy_to(&self, to: &Dataset, keep: &Keep) -> Result<()> {
        if to.shape() != self.shape() {
            let what = format!(
                "a copy of shape {:?} does not fit a dataset of shape {:?}",
                to.shape(),
                self.shape()
            );
            return self.at(Err(Error::Invalid(what)));
        }
        let same_file = std::ptr::eq(self.state.medium(), to.state.medium());
        if !same_file && self.datatype().refers_to_objects() {
            return self.at(Err(Error::Unsupported(format!(
                "copying references to objects into another file: {}",
                self.datatype()
            ))));
        }
        Copying::new(self, to, keep)?.cells(&mut |_| {})?;
        let (from, onto) = (self.state.object(), to.state.object());
        self.at(pumice_engine::copy::attributes(&self.owner().0, from, &to.owner().0, onto))
    }

    /// The excluded value as an element of the dataset's type; none if no element can have it.
    fn excluded(&self, keep: &Keep) -> Result<Option<Vec<u8>>> {
        let own = self.datatype();
        match keep {
            Keep::Except(datatype, value) => equal_element(datatype, value, own),
            Keep::ExceptValue(value) => {
                let made = Heaped::from_values(own, std::slice::from_ref(value))?;
                let elements = made.elements.clone();
                let same = made.values(own)?.iter().all(|made| is_same(value, made));
                Ok(same.then_some(elements))
            }
            _ => Ok(None),
        }
    }
}

/// The cells of a dataset on their way to another.
pub(crate) struct Copying<'a> {
    from: &'a Dataset,
    to: &'a Dataset,
    keep: &'a Keep,
    excluded: Option<Vec<u8>>,
    /// The excluded value, in a dataset of variable length.
    excluded_value: Option<Value>,
    /// Whether only stored cells are visited, because all others read the same in the copy.
    stored: bool,
}

impl<'a> Copying<'a> {
    pub(crate) fn new(from: &'a Dataset, to: &'a Dataset, keep: &'a Keep) -> Result<Self> {
        if let Keep::Where(mask) = keep
            && mask.shape() != from.shape()
        {
            let what = format!(
                "a mask of shape {:?} does not fit a dataset of shape {:?}",
                mask.shape(),
                from.shape()
            );
            return from.at(Err(Error::Invalid(what)));
        }
        if let Keep::Where(mask) = keep
            && Conversion::new(mask.datatype(), &Datatype::f64_le()).is_err()
        {
            let what = format!("a mask has to be of numbers, not of {}", mask.datatype());
            return from.at(Err(Error::Invalid(what)));
        }
        if let Keep::Selected(selection) = keep {
            from.at(selection.check(&from.shape()).map_err(Error::from))?;
        }
        let (excluded, excluded_value) = match from.datatype().has_varlen() {
            true => (None, from.at(varlen::excluded(keep, from.datatype()))?),
            false => (from.at(from.excluded(keep))?, None),
        };
        let mut copying =
            Self { from, to, keep, excluded, excluded_value, stored: from.is_sparse() };
        // A selection of cells is visited for its own sake.
        let chosen = matches!(keep, Keep::Selected(_) | Keep::Where(_));
        copying.stored |= !chosen && !copying.other_fill();
        Ok(copying)
    }

    /// Copies all cells; `progress` gets the bytes of elements that are done.
    pub(crate) fn cells(&self, progress: &mut dyn FnMut(u64)) -> Result<()> {
        let size = self.from.datatype().size().max(1) as u64;
        let limit = (BLOCK_CELLS * 8 / size).max(1);
        if self.from.datatype().has_varlen() {
            return self.cells_with_heap(limit.min(BLOCK_CELLS), progress);
        }
        let all = !self.from.is_sparse() && matches!(self.keep, Keep::Defined);
        if !all && !self.to.is_sparse() && self.other_fill() {
            self.fill(limit)?;
        }
        if self.stored && self.from.has_no_place() {
            return Ok(());
        }
        if self.from.shape().is_empty() {
            return self.scalar();
        }
        if all && self.is_stored_whole()? {
            return self.slabs(SLAB_BYTES / size, &mut |cells| progress(cells * size));
        }
        self.parts(limit.min(BLOCK_CELLS), |block, cells| {
            self.block(cells)?;
            progress(block.cells().saturating_mul(size));
            Ok(())
        })
    }

    /// Visits the cells that may have to be copied, in pieces of at most `limit` cells.
    fn parts(&self, limit: u64, visit: impl FnMut(&Block, Selection) -> Result<()>) -> Result<()> {
        let (shape, within) = (self.from.shape(), self.within());
        self.from.for_each_part_of(&shape, &within, limit, self.stored, visit)
    }

    /// Copies the one cell of a scalar, if it is kept.
    fn scalar(&self) -> Result<()> {
        let value = self.from.read_bytes(..)?;
        if self.excluded.as_ref() == Some(&value) || !self.keeps_scalar()? {
            return Ok(());
        }
        self.write(&Selection::all(), &value)
    }

    /// Whether a selection or a mask has the one cell of a scalar.
    fn keeps_scalar(&self) -> Result<bool> {
        match self.keep {
            Keep::Selected(selection) => Ok(selection.count(&[]) > 0),
            Keep::Where(mask) => match mask.datatype() {
                Datatype::Float(_) => Ok(mask.read::<f64>(..)?.iter().any(|&x| x != 0.0)),
                _ => Ok(mask.read::<i64>(..)?.iter().any(|&flag| flag != 0)),
            },
            Keep::Defined | Keep::Except(..) | Keep::ExceptValue(_) => Ok(true),
        }
    }

    /// Whether every cell is stored, so that it is pointless to ask for chunks.
    fn is_stored_whole(&self) -> Result<bool> {
        let (Some(chunk), shape) = (self.from.chunk(), self.from.shape()) else { return Ok(true) };
        let sides = shape.iter().zip(&chunk).map(|(all, side)| all.div_ceil(*side));
        let all = sides.fold(1u64, u64::saturating_mul);
        Ok(self.from.chunk_count()? == all)
    }

    /// Copies every cell, in blocks of about `limit` cells that consist of whole chunks.
    fn slabs(&self, limit: u64, progress: &mut dyn FnMut(u64)) -> Result<()> {
        let shape = self.from.shape();
        if shape.contains(&0) {
            return Ok(());
        }
        let chunk = self.to.chunk().or_else(|| self.from.chunk());
        let mut block = chunk.unwrap_or_else(|| vec![1; shape.len()]);
        for axis in (0..shape.len()).rev() {
            let cells = block.iter().fold(1u64, |cells, &side| cells.saturating_mul(side));
            let times = (limit / cells.max(1)).max(1);
            block[axis] = block[axis].saturating_mul(times).min(shape[axis].max(block[axis]));
        }
        let mut offset = vec![0; shape.len()];
        loop {
            let part = clip(&offset, &block, &shape);
            let cells = part.selection()?;
            let bytes = self.from.read_bytes(&cells)?;
            match self.encodes() {
                Some(dense) => self.encoded(dense, &part, &bytes)?,
                None => self.write(&cells, &bytes)?,
            }
            progress(part.cells());
            if !advance(&mut offset, &block, &shape) {
                return Ok(());
            }
        }
    }

    /// Takes out cells for which a mask has zero.
    fn retain_where(&self, found: &mut Defined<u8>, mask: &Dataset) -> Result<()> {
        let points = Points::list(found.rank, &found.coordinates)?;
        let wanted: Vec<bool> = match mask.datatype() {
            Datatype::Float(_) => mask.read_at::<f64>(&points)?.iter().map(|&x| x != 0.0).collect(),
            _ => mask.read_at::<i64>(&points)?.iter().map(|&flag| flag != 0).collect(),
        };
        retain(found, self.from.datatype().size(), |cell, _| wanted[cell]);
        Ok(())
    }

    /// The layout of the copy, if its chunks have filters and hold elements in the form in which
    /// they are read.
    fn encodes(&self) -> Option<&Dense> {
        match &self.to.state.layout().storage {
            Storage::Dense(dense) if self.from.datatype() == self.to.datatype() => {
                Some(&**dense).filter(|dense| !dense.pipeline().is_empty())
            }
            _ => None,
        }
    }

    /// Stores a block of whole chunks; each thread takes the next chunk, filters and stores it.
    fn encoded(&self, dense: &Dense, part: &Block, bytes: &[u8]) -> Result<()> {
        let (shape, chunk) = (self.to.shape(), self.to.chunk().unwrap_or_default());
        let mut offsets = vec![part.start.clone()];
        let mut offset = vec![0; chunk.len()];
        while advance(&mut offset, &chunk, &part.count) {
            offsets.push(part.start.iter().zip(&offset).map(|(start, at)| start + at).collect());
        }
        let next = AtomicUsize::new(0);
        let work = || -> Result<()> {
            while let Some(offset) = offsets.get(next.fetch_add(1, Ordering::Relaxed)) {
                let here = clip(offset, &chunk, &shape);
                let cells = gather(bytes, part, &here, self.from.datatype().size());
                if here.count != chunk {
                    self.write(&here.selection()?, &cells)?;
                    continue;
                }
                let encoded = dense.pipeline().encode_slice(&cells).map_err(Error::from);
                let (stored, mask) = self.to.at(encoded)?;
                self.to.at(self.to.state.write_chunk(offset, &stored, mask))?;
            }
            Ok(())
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            // As many as the system lets begin, beside this one.
            let begin = |_| std::thread::Builder::new().spawn_scoped(scope, work).ok();
            let workers: Vec<_> = (1..threads).map_while(begin).collect();
            work()?;
            workers.into_iter().try_for_each(|worker| {
                // A thread that panicked goes on doing so here.
                worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
        })
    }

    /// Whether cells that are left out would read as another value in the copy. Compares values, as
    /// a zero of one datatype is a zero of another, because writing all of them takes long.
    fn other_fill(&self) -> bool {
        // The same value has another position in the heap of another file, even of the same file.
        let fill = |dataset: &Dataset| -> Option<Heaped> {
            let element = dataset.state.layout().geometry.fill().to_vec();
            dataset.state.follow(element).ok()
        };
        let (from, to) = (self.from.datatype(), self.to.datatype());
        let converted = |fill: Heaped| match from == to {
            true => Some(fill),
            false => HeapedConversion::new(from, to).ok()?.convert(&fill).ok(),
        };
        fill(self.from).and_then(converted).is_none_or(|here| fill(self.to) != Some(here))
    }

    /// Gives every cell of a dense copy the fill value of the original.
    fn fill(&self, limit: u64) -> Result<()> {
        let fill = self.from.state.layout().geometry.fill();
        self.to.for_each_block(limit.min(BLOCK_CELLS), |block| {
            self.write(&block.selection()?, &fill.repeat(block.cells() as usize))
        })
    }

    /// The cells that are to be copied if they are defined.
    fn within(&self) -> Selection {
        match self.keep {
            Keep::Selected(selection) => selection.clone(),
            Keep::Defined | Keep::Except(..) | Keep::ExceptValue(_) | Keep::Where(_) => {
                Selection::all()
            }
        }
    }

    /// Copies cells of a block.
    fn block(&self, cells: Selection) -> Result<()> {
        let wanted = cells.count(&self.from.shape());
        let all = !self.from.is_sparse() || self.from.count_defined(&cells)? == wanted;
        if all && self.excluded.is_none() && !matches!(self.keep, Keep::Where(_)) {
            return self.write(&cells, &self.from.read_bytes(&cells)?);
        }
        let mut found = self.from.read_defined_bytes(&cells)?;
        let size = self.from.datatype().size();
        if let Some(excluded) = &self.excluded {
            retain(&mut found, size, |_, value| value != excluded);
        }
        if let Keep::Where(mask) = self.keep {
            self.retain_where(&mut found, mask)?;
        }
        if found.coordinates.is_empty() {
            return Ok(());
        }
        let points = Points::list(found.rank, &found.coordinates)?;
        let state = &self.to.state;
        self.to.at(state.write_points(&points, self.from.datatype(), &found.values))
    }

    fn write(&self, cells: &Selection, bytes: &[u8]) -> Result<()> {
        self.to.at(self.to.state.write(cells, self.from.datatype(), bytes))
    }
}

/// The element of the datatype `to` that equals `value`. Where it would have to be clipped, or rounded
/// to an integer, there is none.
fn equal_element(from: &Datatype, value: &[u8], to: &Datatype) -> Result<Option<Vec<u8>>> {
    let mut element = vec![0; to.size()];
    Conversion::new(from, to)?.convert(value, &mut element)?;
    let number =
        |datatype: &Datatype| matches!(datatype, Datatype::Integer(_) | Datatype::Float(_));
    if !number(from) || !number(to) {
        return Ok(Some(element));
    }
    if let (Datatype::Float(_), Datatype::Float(_)) = (from, to) {
        let wide = |datatype: &Datatype, float: &[u8]| -> Result<f64> {
            let mut wide = 0f64;
            let bytes = bytemuck::bytes_of_mut(&mut wide);
            Conversion::new(datatype, &f64::datatype())?.convert(float, bytes)?;
            Ok(wide)
        };
        let same = is_rounded(wide(from, value)?, wide(to, &element)?);
        return Ok(same.then_some(element));
    }
    let mut back = vec![0; from.size()];
    Conversion::new(to, from)?.convert(&element, &mut back)?;
    Ok((back == value).then_some(element))
}

/// Whether a number is another one rounded: 0.1 of 64 bits stands for that of 32. A number that
/// became zero or infinite is another one.
fn is_rounded(value: f64, made: f64) -> bool {
    value.is_nan() == made.is_nan()
        && value.is_infinite() == made.is_infinite()
        && (value == 0.0) == (made == 0.0)
}

/// Whether a converted element still has the value.
fn is_same(value: &Value, made: &Value) -> bool {
    match (value, made) {
        (Value::Integer(value), Value::Integer(made)) => value == made,
        (Value::Float(value), Value::Float(made)) => is_rounded(*value, *made),
        (Value::Complex(real, imaginary), Value::Complex(made, with)) => {
            is_rounded(*real, *made) && is_rounded(*imaginary, *with)
        }
        (Value::Enum(_, value), Value::Enum(_, made)) => value == made,
        (Value::Text(value), Value::Text(made)) => value == made,
        (Value::Array(values), Value::Array(made)) => {
            values.iter().zip(made).all(|(value, made)| is_same(value, made))
        }
        (Value::Compound(values), Value::Compound(made)) => {
            values.iter().zip(made).all(|(value, made)| is_same(&value.1, &made.1))
        }
        _ => true,
    }
}

/// The cells of `part` among the `bytes` of a block that it lies in.
fn gather(bytes: &[u8], block: &Block, part: &Block, size: usize) -> Vec<u8> {
    let rank = part.count.len();
    let row = part.count[rank - 1] as usize * size;
    let rows: u64 = part.count[..rank - 1].iter().product();
    let mut cells = Vec::with_capacity(rows as usize * row);
    let mut index = vec![0; rank - 1];
    let ones = vec![1; rank - 1];
    loop {
        let mut linear = 0;
        for axis in 0..rank {
            let inside = part.start[axis] - block.start[axis] + index.get(axis).unwrap_or(&0);
            linear = linear * block.count[axis] + inside;
        }
        let start = linear as usize * size;
        cells.extend_from_slice(&bytes[start..start + row]);
        if !advance(&mut index, &ones, &part.count[..rank - 1]) {
            return cells;
        }
    }
}

/// Removes cells that are not wanted.
fn retain(found: &mut Defined<u8>, size: usize, wanted: impl Fn(usize, &[u8]) -> bool) {
    let Defined { rank, coordinates, values } = found;
    let mut kept = 0;
    for cell in 0..coordinates.len() / *rank {
        if !wanted(cell, &values[cell * size..(cell + 1) * size]) {
            continue;
        }
        values.copy_within(cell * size..(cell + 1) * size, kept * size);
        coordinates.copy_within(cell * *rank..(cell + 1) * *rank, kept * *rank);
        kept += 1;
    }
    values.truncate(kept * size);
    coordinates.truncate(kept * *rank);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::File;

    #[test]
    fn chunks_are_filtered_by_threads_and_edges_are_kept() {
        let file = File::in_memory().unwrap();
        let dense = file.new_dataset::<i32>().shape([21, 5, 34]).create("dense").unwrap();
        let values: Vec<i32> = (0..21 * 5 * 34).map(|cell| cell % 1000).collect();
        dense.write(.., &values).unwrap();
        let builder = file.new_dataset_like(&dense).chunk([4, 5, 16]).shuffle().deflate(1);
        let copy = dense.copy_as(builder, "copy", &Keep::Defined).unwrap();
        assert_eq!(copy.chunk_count().unwrap(), 6 * 3);
        assert_eq!(copy.read::<i32>(..).unwrap(), values);
        let again = copy.copy_as(file.new_dataset_like(&dense), "again", &Keep::Defined).unwrap();
        assert_eq!(again.read::<i32>(..).unwrap(), values);
    }
}
