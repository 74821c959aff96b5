//! Reading, writing, erasing and asking for defined cells: a selection of the dataset becomes one
//! request per chunk.
//!
//! A read or write visits every chunk that the selection touches; its cost is that of the caller's
//! buffer anyway. Erasing and questions about defined cells of sparse datasets may name a vast
//! array of which little is stored, so they visit stored chunks only. In other datasets all cells
//! are defined.

use super::{DatasetState, virtuality};
use crate::{Error, Result};
use pumice_layout::buffer::Output;
use pumice_layout::{ReadRequest, Source, Target, WriteRequest};
use pumice_space::{
    CellSet, ChunkGrid, Dims, Plan, Segment, Selection, SpaceError, plan, plan_packed,
};
use pumice_types::{Conversion, Datatype, Transform};

/// Options for moving elements between file and memory.
#[derive(Clone, Debug, Default)]
pub struct TransferOptions {
    /// Arithmetic on every element in its memory type: after a read, before a write.
    pub transform: Option<Transform>,
    /// The cells of a buffer of this shape that elements go to or come from; otherwise the buffer
    /// holds the selected elements one after another.
    pub memory: Option<(Selection, Vec<u64>)>,
    /// Whether chunks are read although the checksum of a filter does not match.
    pub unverified: bool,
    /// Whether the values are stored before the call returns.
    pub write_through: bool,
    /// Bytes of the conversion buffer, if not the default.
    pub piece: Option<u64>,
}

impl DatasetState {
    /// Reads the selected cells into `output`, as elements of `memory_type` in row-major order of
    /// the selection (points: in their order). Undefined cells give the fill value.
    pub fn read(
        &self,
        selection: &Selection,
        memory_type: &Datatype,
        output: Output<'_>,
    ) -> Result<()> {
        self.read_with(selection, memory_type, output, &TransferOptions::default())
    }

    /// Reads cells with these options; see [`read`](Self::read).
    pub fn read_with(
        &self,
        selection: &Selection,
        memory_type: &Datatype,
        output: Output<'_>,
        options: &TransferOptions,
    ) -> Result<()> {
        let _no_resize = self.gate();
        let dims = self.dims();
        let size = output.len();
        if self.check_with(selection, &dims, memory_type, size, options)? == 0 {
            return Ok(());
        }
        let target = &self.target(memory_type, output, options)?;
        if let Some(sources) = &self.sources {
            let segments = virtual_segments(selection, &dims, options)?;
            return sources.read(&self.layout.geometry, &self.datatype, &segments, target);
        }
        let parts = self.parts(selection, &dims, options)?;
        let requests = parts.map(|part| (part.chunk.clone(), ReadRequest::Values { part, target }));
        self.cache().read(&self.cached, requests)
    }

    /// Writes elements of `memory_type` to the selected cells, which become defined.
    pub fn write(&self, selection: &Selection, memory_type: &Datatype, bytes: &[u8]) -> Result<()> {
        self.write_with(selection, memory_type, bytes, &TransferOptions::default())
    }

    /// Writes cells with these options; see [`write`](Self::write).
    pub fn write_with(
        &self,
        selection: &Selection,
        memory_type: &Datatype,
        bytes: &[u8],
        options: &TransferOptions,
    ) -> Result<()> {
        self.begin_write()?;
        let _no_resize = self.gate();
        let dims = self.dims();
        if self.check_with(selection, &dims, memory_type, bytes.len(), options)? == 0 {
            return Ok(());
        }
        self.check_reach(selection, &dims)?;
        if let Some(sources) = &self.sources {
            let segments = virtual_segments(selection, &dims, options)?;
            return sources.write(&self.layout.geometry, memory_type, &segments, bytes, options);
        }
        let source = &self.source(memory_type, bytes, options)?;
        let parts = self.parts(selection, &dims, options)?;
        let requests =
            parts.map(|part| (part.chunk.clone(), WriteRequest::Values { part, source }));
        match options.write_through {
            true => self.cache().write_through(&self.cached, requests),
            false => self.cache().write(&self.cached, requests),
        }
    }

    /// The target in memory of elements of `memory_type`.
    pub(super) fn target<'a>(
        &'a self,
        memory_type: &Datatype,
        output: Output<'a>,
        options: &TransferOptions,
    ) -> Result<Target<'a>> {
        if let Some((places, shape)) = &options.memory
            && places.check(shape).is_ok()
            && places.as_points().is_some_and(|points| repeats(points, shape))
        {
            // Two threads must never write to one place.
            let what = "a read cannot go to points in memory that repeat";
            return Err(Error::Invalid(what.into()));
        }
        let mut conversion = Conversion::new(&self.datatype, memory_type)?;
        if let Some(transform) = &options.transform {
            conversion = conversion.then(transform, memory_type)?;
        }
        // SAFETY: the target goes into the requests of one plan, whose places in memory do not repeat: that has
        // been checked where the program chose them.
        let target = unsafe { Target::new(output, conversion, self.layout.geometry.fill())? };
        let target = target.unverified(options.unverified).in_pieces(options.piece);
        Ok(target.members(self.lacks_parts(memory_type)))
    }

    /// The source in memory of elements of `memory_type`.
    pub(super) fn source<'a>(
        &self,
        memory_type: &Datatype,
        bytes: &'a [u8],
        options: &TransferOptions,
    ) -> Result<Source<'a>> {
        let mut conversion = Conversion::new(memory_type, &self.datatype)?;
        if let Some(transform) = &options.transform {
            conversion = conversion.after(transform, memory_type)?;
        }
        let source = Source::new(bytes, conversion).members(self.lacks_parts(memory_type));
        Ok(source.in_pieces(options.piece))
    }

    /// Whether elements have parts of variable length that the memory type lacks: then only members
    /// of fixed size are transferred.
    pub(super) fn lacks_parts(&self, memory_type: &Datatype) -> bool {
        self.datatype.has_varlen() && !memory_type.has_varlen()
    }

    /// The parts of a transfer: the cells of each chunk, and their positions in memory.
    pub(super) fn parts(
        &self,
        selection: &Selection,
        dims: &Dims,
        options: &TransferOptions,
    ) -> Result<Plan> {
        let grid = self.grid(dims)?;
        Ok(match &options.memory {
            Some((places, shape)) => plan(selection, dims, &grid, places, shape)?,
            None => plan_packed(selection, &grid)?,
        })
    }

    /// Makes the selected cells undefined; where a layout cannot say so, they get the fill value.
    pub fn erase(&self, selection: &Selection) -> Result<()> {
        self.begin_write()?;
        self.check_index()?;
        let _no_resize = self.gate();
        let dims = self.dims();
        selection.check(&dims)?;
        let grid = self.grid(&dims)?;
        let (mut touched, mut failed) = (self.touched(selection, &grid)?, None);
        // Pieces as they come. An error that ends them early is noted.
        let some = std::iter::from_fn(|| {
            touched.next().unwrap_or_else(|error| {
                failed = Some(error);
                None
            })
        });
        let requests = some.flatten().map(|(key, cells)| (key, WriteRequest::Erase { cells }));
        let erased = self.cache().write(&self.cached, requests);
        failed.map_or(erased, Err)
    }

    /// The selected cells of a virtual dataset, as cells of a chunk and as cells of the array. The
    /// whole array counts as one chunk.
    pub(super) fn virtual_parts(
        &self,
        selection: &Selection,
    ) -> Result<Vec<(Dims, CellSet, Selection)>> {
        let dims = self.dims();
        selection.check(&dims)?;
        if self.count(selection, &dims) == 0 {
            return Ok(Vec::new());
        }
        let grid = ChunkGrid::new(&dims, self.layout.geometry.chunk())?;
        let part = |(chunk, cells): (Dims, Selection)| {
            let cells = CellSet::from_selection(&cells, grid.chunk())?;
            let origin = grid.origin(&chunk);
            let inside = match cells.is_full() {
                // As a selection this is "all", which has no place of its own.
                true => Selection::block(&origin, grid.chunk())?,
                false => {
                    let offset: Vec<i64> = origin.iter().map(|&start| start as i64).collect();
                    cells.to_selection(grid.chunk())?.translate(&offset)?
                }
            };
            Ok((chunk, cells, inside))
        };
        cells_by_chunk(selection, &grid)?.map(part).collect()
    }

    /// The number of selected cells. A null extent has no dimensions either, but no cell.
    pub(super) fn count(&self, selection: &Selection, dims: &Dims) -> u64 {
        if self.null { 0 } else { selection.count(dims) }
    }

    /// Checks selection and buffer against each other; returns the number of cells.
    pub(super) fn check(
        &self,
        selection: &Selection,
        dims: &Dims,
        memory_type: &Datatype,
        buffer: usize,
    ) -> Result<u64> {
        self.check_with(selection, dims, memory_type, buffer, &TransferOptions::default())
    }

    pub(super) fn check_with(
        &self,
        selection: &Selection,
        dims: &Dims,
        memory_type: &Datatype,
        buffer: usize,
        options: &TransferOptions,
    ) -> Result<u64> {
        selection.check(dims)?;
        let count = self.count(selection, dims);
        let cells = match &options.memory {
            Some((_, shape)) => {
                shape.iter().try_fold(1, |cells: u64, &axis| cells.checked_mul(axis))
            }
            None => Some(count),
        };
        let bytes = cells.and_then(|cells| cells.checked_mul(memory_type.size() as u64));
        if bytes == Some(buffer as u64) {
            return Ok(count);
        }
        if let Some((_, shape)) = &options.memory {
            return Err(Error::CountMismatch(format!(
                "memory of shape {shape:?} has elements of {} byte(s), but the buffer has {buffer} byte(s)",
                memory_type.size()
            )));
        }
        let size = memory_type.size();
        if size > 0 && buffer.is_multiple_of(size) {
            let memory = (buffer / size) as u64;
            return Err(SpaceError::CountMismatch { file: count, memory }.into());
        }
        Err(Error::CountMismatch(format!(
            "the selection has {count} cell(s) of {size} byte(s), but the buffer has {buffer} byte(s)"
        )))
    }
}

/// The selected cells of every chunk that has any, relative to it.
pub(super) fn cells_by_chunk<'g>(
    selection: &Selection,
    grid: &'g ChunkGrid,
) -> Result<impl Iterator<Item = (Dims, Selection)> + use<'g>> {
    let parts = plan_packed(selection, grid)?;
    Ok(parts.map(|part| {
        let cells = part.cells(grid.chunk());
        (part.chunk, cells)
    }))
}

/// Splits the selection for these chunks alone.
pub(super) fn cut(
    selection: &Selection,
    chunks: &[Dims],
    grid: &ChunkGrid,
) -> Result<Vec<(Dims, Selection)>> {
    let found = selection.cut(grid, chunks)?.into_iter();
    let relative = |(number, cells): (usize, Selection)| {
        let chunk: &Dims = &chunks[number];
        let origin = grid.origin(chunk);
        // In two steps, of which each fits into an offset.
        let half: Vec<i64> = origin.iter().map(|start| -((start / 2) as i64)).collect();
        let rest = origin.iter().map(|start| -((start - start / 2) as i64));
        let rest: Vec<i64> = rest.collect();
        Ok((chunk.clone(), cells.translate(&half)?.translate(&rest)?))
    };
    found.map(relative).collect()
}

/// The chunks that the box around a selection touches, in row-major order. They are few.
pub(super) fn chunks_around(selection: &Selection, grid: &ChunkGrid) -> Vec<Dims> {
    let Some((first, last)) = selection.bounds(grid.dims()) else { return Vec::new() };
    let mut chunks = vec![Dims::new()];
    for ((first, last), side) in first.iter().zip(&last).zip(grid.chunk()) {
        let along = |chunk: &Dims| -> Vec<Dims> {
            let add = |at| chunk.iter().copied().chain([at]).collect();
            (first / side..=last / side).map(add).collect()
        };
        chunks = chunks.iter().flat_map(along).collect();
    }
    chunks
}

/// The cells of a virtual dataset, and the places in memory where they go to or come from.
fn virtual_segments(
    selection: &Selection,
    dims: &Dims,
    options: &TransferOptions,
) -> Result<Vec<Segment>> {
    match &options.memory {
        Some((places, shape)) => virtuality::segments(selection, dims, places, shape),
        None => virtuality::segments(selection, dims, &Selection::all(), &selection.shape(dims)),
    }
}

/// Whether a point is named twice.
fn repeats((rank, coordinates): (usize, &[u64]), shape: &[u64]) -> bool {
    let place = |point: &[u64]| point.iter().zip(shape).fold(0u64, |n, (&i, &side)| n * side + i);
    let mut places: Vec<u64> = coordinates.chunks_exact(rank.max(1)).map(place).collect();
    places.sort_unstable();
    places.windows(2).any(|pair| pair[0] == pair[1])
}

/// The number of chunks that the box around a selection touches.
pub(super) fn chunks_within(selection: &Selection, dims: &Dims, chunk: &[u64]) -> u64 {
    let Some((first, last)) = selection.bounds(dims) else { return 0 };
    let axes = first.iter().zip(&last).zip(chunk);
    axes.map(|((first, last), side)| last / side - first / side + 1).fold(1, u64::saturating_mul)
}
