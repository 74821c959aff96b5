//! A dataset in blocks that fit into memory, for streaming.

use crate::chunk::Chunks;
use crate::{Dataset, Select};
use pumice_engine::{Error, Result};
use pumice_layout::{Place, Storage};
use pumice_space::{ChunkGrid, Dims, Selection};
use pumice_types::{H5Type, Heaped, Value};

/// About how many cells a block may bring into memory.
pub(crate) const BLOCK_CELLS: u64 = 1 << 20;
/// About how many bytes of one repeated element there are in memory.
const BLOCK_BYTES: u64 = 16 << 20;

/// Chunks by which a selection is cut at once.
const AT_ONCE: usize = 1 << 12;

/// A block of cells: where it begins and how many there are along each axis.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) start: Vec<u64>,
    pub(crate) count: Vec<u64>,
}

impl Block {
    pub(crate) fn selection(&self) -> Result<Selection> {
        Ok(Selection::block(&self.start, &self.count)?)
    }

    /// The cells of the block that an array of this shape has.
    pub(crate) fn within(&self, shape: &[u64]) -> Result<Selection> {
        let Self { start, count } = clip(&self.start, &self.count, shape);
        match count.contains(&0) {
            true => Ok(Selection::none()),
            false => Ok(Selection::block(&start, &count)?),
        }
    }

    pub(crate) fn cells(&self) -> u64 {
        self.count.iter().fold(1, |cells, &axis| cells.saturating_mul(axis))
    }

    /// Both halves along the slowest axis that can be cut.
    pub(crate) fn halves(&self) -> Option<[Self; 2]> {
        let axis = self.count.iter().position(|&count| count > 1)?;
        let (mut first, mut second) = (self.clone(), self.clone());
        first.count[axis] /= 2;
        second.count[axis] -= first.count[axis];
        second.start[axis] += first.count[axis];
        Some([first, second])
    }
}

impl Dataset {
    /// Writes one value to all selected cells.
    ///
    /// ```
    /// let file = pumice::File::in_memory()?;
    /// let dataset = file.new_dataset::<i32>().shape([3, 4]).create("d")?;
    /// dataset.write_scalar((1.., ..2), 7)?;
    /// assert_eq!(dataset.read::<i32>(..)?, [0, 0, 0, 0, 7, 7, 0, 0, 7, 7, 0, 0]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn write_scalar<T: H5Type + Clone>(&self, selection: impl Select, value: T) -> Result<()> {
        let mut values = Vec::new();
        self.in_pieces(selection, size_of::<T>(), |cells, count| {
            values.resize(count.max(values.len()), value.clone());
            self.write(cells, &values[..count])
        })
    }

    /// [`write_scalar`](Self::write_scalar) for datasets of any type: strings, sequences,
    /// compounds. The objects that the value refers to are in memory once, however many cells there
    /// are.
    ///
    /// ```
    /// use pumice::{File, Value};
    ///
    /// let file = File::in_memory()?;
    /// let names = file.new_strings().shape([3]).create("names")?;
    /// names.write_scalar_value(1.., &Value::from("basalt"))?;
    /// assert_eq!(names.read_strings(..)?, ["", "basalt", "basalt"]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn write_scalar_value(&self, selection: impl Select, value: &Value) -> Result<()> {
        let made = Heaped::from_values(self.datatype(), std::slice::from_ref(value));
        let Heaped { elements, heap } = self.at(made.map_err(Error::from))?;
        match self.datatype().has_varlen() {
            true => self.repeat(selection, &elements, |cells, elements| {
                self.make_room()?;
                self.at(self.state.write_heaped(cells, elements, &heap))
            }),
            false => self.write_scalar_bytes(selection, &elements),
        }
    }

    /// As [`write_scalar`](Self::write_scalar), for a string, of a fixed length or of any.
    ///
    /// ```
    /// use pumice::{Datatype, File};
    ///
    /// let file = File::in_memory()?;
    /// let rocks = file.new_dataset_of(Datatype::fixed_string(6)).shape([2, 3]).create("rocks")?;
    /// rocks.write_scalar_string((1, ..), "tuff")?;
    /// assert_eq!(rocks.read_bytes((.., 0))?, b"\0\0\0\0\0\0tuff\0\0");
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn write_scalar_string(&self, selection: impl Select, text: &str) -> Result<()> {
        self.write_scalar_value(selection, &Value::from(text))
    }

    /// As [`write_scalar`](Self::write_scalar), given as one element of the dataset's own type.
    ///
    /// ```
    /// let file = pumice::File::in_memory()?;
    /// let dataset = file.new_dataset::<i16>().shape([3]).create("d")?;
    /// dataset.write_scalar_bytes(1.., &7i16.to_le_bytes())?;
    /// assert_eq!(dataset.read::<i16>(..)?, [0, 7, 7]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn write_scalar_bytes(&self, selection: impl Select, element: &[u8]) -> Result<()> {
        if element.len() != self.datatype().size() {
            let (found, own) = (element.len(), self.datatype().size());
            let what = format!("an element has {own} byte(s), not {found}");
            return self.at(Err(Error::Invalid(what)));
        }
        self.repeat(selection, element, |cells, elements| self.write_bytes(cells, elements))
    }

    /// Calls `write` with parts of a selection, and one element as often as each has cells.
    fn repeat(
        &self,
        selection: impl Select,
        element: &[u8],
        mut write: impl FnMut(&Selection, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut elements = Vec::new();
        self.in_pieces(selection, element.len(), |cells, count| {
            let length = count * element.len();
            while elements.len() < length {
                elements.extend_from_slice(element);
            }
            write(cells, &elements[..length])
        })
    }

    /// Visits parts of a selection that are so small that elements of `size` bytes for them fit into memory,
    /// each with the number of its cells.
    fn in_pieces(
        &self,
        selection: impl Select,
        size: usize,
        mut visit: impl FnMut(&Selection, usize) -> Result<()>,
    ) -> Result<()> {
        let limit = (BLOCK_BYTES / size.max(1) as u64).clamp(1, BLOCK_CELLS);
        self.selected(selection, |selection, shape| {
            selection.check(shape)?;
            let whole = selection.count(shape);
            // Points have coordinates in memory that are as large.
            if whole <= limit || selection.as_points().is_some() {
                return visit(selection, whole as usize);
            }
            let Some((first, last)) = selection.bounds(shape) else { return Ok(()) };
            let count = first.iter().zip(&last).map(|(first, last)| last - first + 1).collect();
            let mut blocks = vec![Block { start: first.to_vec(), count }];
            while let Some(block) = blocks.pop() {
                let cells = selection.and(&block.selection()?, shape)?;
                let count = cells.count(shape);
                match block.halves() {
                    _ if count == 0 => {}
                    Some(halves) if count > limit => blocks.extend(halves),
                    _ => visit(&cells, count as usize)?,
                }
            }
            Ok(())
        })
    }

    /// Visits blocks that cover every cell that may be defined, each with at most `limit` defined
    /// cells unless it is a single cell. Chunks are visited one after another, in row-major order.
    pub(crate) fn for_each_block(
        &self,
        limit: u64,
        mut visit: impl FnMut(&Block) -> Result<()>,
    ) -> Result<()> {
        self.for_each_part(&Selection::all(), limit, |block, _| visit(block))
    }

    /// [`for_each_block`](Self::for_each_block), with those cells of each block that `within` has;
    /// blocks without any are left out.
    pub(crate) fn for_each_part(
        &self,
        within: &Selection,
        limit: u64,
        visit: impl FnMut(&Block, Selection) -> Result<()>,
    ) -> Result<()> {
        self.for_each_part_of(&self.shape(), within, limit, self.is_sparse(), visit)
    }

    /// Visits the parts of a selection of the extent `shape`: of stored chunks alone if `stored`, or of all cells.
    pub(crate) fn for_each_part_of(
        &self,
        shape: &[u64],
        within: &Selection,
        limit: u64,
        stored: bool,
        mut visit: impl FnMut(&Block, Selection) -> Result<()>,
    ) -> Result<()> {
        if shape.contains(&0) || (stored && self.has_no_place()) {
            return Ok(());
        }
        let Some(chunk) = self.chunk() else {
            let whole = Block { start: vec![0; shape.len()], count: shape.to_vec() };
            let cells = within.and(&whole.selection()?, shape)?;
            if cells.count(shape) == 0 {
                return Ok(());
            }
            return self.visit_parts(shape, whole, cells, limit, &mut visit);
        };
        let grid = ChunkGrid::new(shape, &chunk)?;
        let mut visit_all = |chunks: &[Dims]| -> Result<()> {
            for (number, cells) in within.cut(&grid, chunks)? {
                let block = clip(&grid.origin(&chunks[number]), &chunk, shape);
                self.visit_parts(shape, block, cells, limit, &mut visit)?;
            }
            Ok(())
        };
        if stored {
            let mut keys = self.stored_chunks(&grid)?;
            loop {
                let some = keys.by_ref().take(AT_ONCE).collect::<Result<Vec<Dims>>>()?;
                if some.is_empty() {
                    return Ok(());
                }
                visit_all(&some)?;
            }
        }
        let mut offset = vec![0; shape.len()];
        loop {
            let mut keys = vec![grid.chunk_of(&offset)];
            let mut more = advance(&mut offset, &chunk, shape);
            while more && keys.len() < AT_ONCE {
                keys.push(grid.chunk_of(&offset));
                more = advance(&mut offset, &chunk, shape);
            }
            visit_all(&keys)?;
            if !more {
                return Ok(());
            }
        }
    }

    /// Whether its elements are one piece that has no space yet, because none was ever written.
    pub(crate) fn has_no_place(&self) -> bool {
        match &self.state.layout().storage {
            Storage::Contiguous(contiguous) => matches!(contiguous.place(), Place::File(None)),
            _ => false,
        }
    }

    /// The numbers of the stored chunks that a grid has; a later extent may have stored others.
    pub(crate) fn stored_chunks<'a>(
        &'a self,
        grid: &'a ChunkGrid,
    ) -> Result<impl Iterator<Item = Result<Dims>> + 'a> {
        let inside = |offset: &[u64]| offset.iter().zip(grid.dims()).all(|(at, end)| at < end);
        let stored = Chunks::new(self, |_, offset, _| Dims::from_slice(offset))?;
        let stored = stored.filter(move |offset| offset.as_ref().map_or(true, |at| inside(at)));
        Ok(stored.map(|offset| offset.map(|offset| grid.chunk_of(&offset))))
    }

    fn visit_parts(
        &self,
        shape: &[u64],
        block: Block,
        cells: Selection,
        limit: u64,
        visit: &mut impl FnMut(&Block, Selection) -> Result<()>,
    ) -> Result<()> {
        let mut waiting = vec![(block, cells)];
        while let Some((block, cells)) = waiting.pop() {
            let small = cells.count(shape) <= limit
                || (self.is_sparse() && self.count_defined(&cells)? <= limit);
            let Some(halves) = block.halves().filter(|_| !small) else {
                visit(&block, cells)?;
                continue;
            };
            for half in halves.into_iter().rev() {
                let inside = cells.and(&half.selection()?, shape)?;
                if inside.count(shape) > 0 {
                    waiting.push((half, inside));
                }
            }
        }
        Ok(())
    }
}

pub(crate) fn clip(offset: &[u64], chunk: &[u64], shape: &[u64]) -> Block {
    let axes = offset.iter().zip(chunk).zip(shape);
    let count = axes.map(|((&at, &side), &end)| side.min(end.saturating_sub(at))).collect();
    Block { start: offset.to_vec(), count }
}

/// Goes to the next chunk in row-major order; `false` after the last.
pub(crate) fn advance(offset: &mut [u64], chunk: &[u64], shape: &[u64]) -> bool {
    for axis in (0..offset.len()).rev() {
        match offset[axis].checked_add(chunk[axis]).filter(|&next| next < shape[axis]) {
            Some(next) => {
                offset[axis] = next;
                return true;
            }
            None => offset[axis] = 0,
        }
    }
    false
}
