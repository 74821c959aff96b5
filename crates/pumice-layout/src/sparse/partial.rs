//! Parts of stored chunks that go past the cache: the locations are read, and of the values only those that are asked
//! for; values of cells that are defined already are overwritten where they are.
//!
//! That can be where values are stored as they are. They have no checksum of their own; the locations' is compared. As
//! long as no cell comes or goes, the record of a chunk stays what it is, and so does its place. A write that brings a
//! cell is refused before anything is written: its chunk has to be made anew.

use super::{Sparse, decode_locations, sections};
use crate::dense::zeros;
use crate::request::{ReadRequest, SparseRead, SparseWrite, Taken, Target, WriteRequest};
use crate::sparse_chunk::{ListRows, SparseChunk, collect};
use crate::sparse_points;
use crate::stretch::Stretch;
use pumice_cache::{Direct, Stored};
use pumice_format::index::ChunkRecord;
use pumice_medium::Result;
use pumice_space::{CellSet, Dims, Found, FoundCells, Run, Segment, Selection};
use pumice_store::ReadOp;
use pumice_wide::run_widely;

/// So many pieces of values are put in order at once.
const PIECES: usize = 1 << 16;

/// A stored chunk of which only the locations have been read.
struct Located<'t> {
    /// The defined cells, those beyond the extent included: they have values, too.
    cells: CellSet,
    /// The values.
    stretch: Stretch<'t>,
    element: u64,
    /// Bytes of the locations.
    head: u64,
}

impl Sparse {
    /// Whether values of a chunk are stored as they are.
    pub(super) fn is_plain(&self, key: &Dims) -> bool {
        self.pipelines(key).1.is_empty()
    }

    /// Whether a read can be answered from a part of a stored chunk.
    pub(super) fn can_read_part(&self, key: &Dims, request: &ReadRequest<'_>) -> bool {
        let takes_values = match request {
            ReadRequest::Values { target, .. } => !target.is_unverified(),
            ReadRequest::Sparse(SparseRead::Cells { values, .. }) => *values,
            ReadRequest::Sparse(SparseRead::Points { .. })
            | ReadRequest::DefinedValues { .. }
            | ReadRequest::Sparse(SparseRead::Rows { .. }) => true,
            ReadRequest::Defined { .. } | ReadRequest::DefinedHeaped { .. } => false,
        };
        takes_values && self.is_plain(key)
    }

    /// Memory that locations take while a part of a chunk is read or written.
    pub(super) fn part_bytes(&self, stored: &Stored<ChunkRecord>) -> u64 {
        let values = stored.tag.sections.get(super::VALUES).map_or(0, |section| section.unfiltered);
        stored.head.saturating_add(stored.decoded.saturating_sub(values))
    }

    /// Reads the locations of a chunk; `None` if its values are not those of its cells, which whoever reads all of
    /// it will say.
    fn locate(&self, key: &Dims, record: &ChunkRecord) -> Result<Option<Located<'_>>> {
        let ((section, length), (_, values)) = sections(record)?;
        let mut head = zeros(length as u64)?;
        if !head.is_empty() {
            let read = ReadOp { offset: record.address, buffer: &mut head };
            self.table.medium().fetch(&mut [read])?;
        }
        let cells =
            decode_locations(&self.geometry, self.pipelines(key).0, &head, &section, record)?;
        let element = self.geometry.element_size();
        if cells.len().checked_mul(element as u64) != Some(values as u64) {
            return Ok(None);
        }
        let behind = record.address.saturating_add(length as u64);
        let stretch = Stretch::new(self.table.medium(), behind, element);
        Ok(Some(Located { cells, stretch, element: element as u64, head: length as u64 }))
    }

    /// Answers a read from a part of a stored chunk.
    pub(super) fn read_part(
        &self,
        key: &Dims,
        stored: &Stored<ChunkRecord>,
        request: &mut ReadRequest<'_>,
    ) -> Result<Option<Direct>> {
        let Some(chunk) = self.locate(key, &stored.tag)? else {
            return Ok(None);
        };
        let dims = self.geometry.chunk();
        let bytes = match request {
            ReadRequest::Values { part, target } => {
                target.fill_all(part.segments(dims));
                chunk.place(part.segments(dims), target)?
            }
            ReadRequest::Sparse(SparseRead::Points { part, target }) => {
                sparse_points::fill(part, target);
                let cells = part.cells64().into_iter().zip(part.memory().flatten());
                let point = |(cell, at): (u64, usize)| Segment { cell, memory: at as u64, len: 1 };
                chunk.place(cells.map(point), target)?
            }
            ReadRequest::DefinedValues { cells, found, .. } => {
                let (cells, values) = self.select_part(key, &chunk, cells)?;
                let bytes = values.len() as u64;
                **found = Some((cells, values));
                bytes
            }
            ReadRequest::Sparse(SparseRead::Cells { cells, taken, .. }) => {
                let all = Selection::all();
                let wanted = cells.unwrap_or(&all);
                let (cells, values) = self.select_part(key, &chunk, wanted)?;
                let bytes = values.len() as u64;
                **taken = Taken::Kept(cells, values);
                bytes
            }
            ReadRequest::Sparse(SparseRead::Rows { rows, columns, found, .. }) => {
                let width = dims.last().copied().unwrap_or(1);
                let inside = self.inside(key, &chunk)?;
                let cells = inside.as_ref().unwrap_or(&chunk.cells);
                let (rows, columns) = (rows.clone(), columns.clone());
                let mut positions = Vec::new();
                let visit = |run: Run| positions.extend((run.len > 0).then_some(run));
                let mut listed = run_widely(ListRows { cells, width, rows, columns, visit });
                listed.values = match &inside {
                    None => chunk.values(positions)?,
                    Some(_) => {
                        let total = self.geometry.cells_per_chunk();
                        chunk.values_of(&CellSet::from_list(total, listed.cells.clone())?)?
                    }
                };
                let bytes = listed.values.len() as u64;
                **found = Some(listed);
                bytes
            }
            ReadRequest::Defined { .. } | ReadRequest::DefinedHeaped { .. } => {
                return Ok(None);
            }
        };
        Ok(Some(Direct::Done { bytes: chunk.head + bytes }))
    }

    /// The selected cells that are defined and inside the extent, and their values.
    fn select_part(
        &self,
        key: &Dims,
        chunk: &Located<'_>,
        wanted: &Selection,
    ) -> Result<(FoundCells, Vec<u8>)> {
        let dims = self.geometry.chunk();
        let Some(inside) = self.inside(key, chunk)? else {
            let Found { cells, positions } = chunk.cells.find(wanted, dims)?;
            return Ok((cells, chunk.values(positions)?));
        };
        let cells = inside.find(wanted, dims)?.cells.into_set(inside.cells())?;
        let values = chunk.values_of(&cells)?;
        Ok((cells.into(), values))
    }

    /// The cells that lie inside the extent, if some do not: what others find among them has other positions.
    fn inside(&self, key: &Dims, chunk: &Located<'_>) -> Result<Option<CellSet>> {
        if self.geometry.has_all(key, &chunk.cells) {
            return Ok(None);
        }
        Ok(Some(self.mask(key, SparseChunk::new(chunk.cells.clone(), None))?.cells))
    }

    /// About the memory that values take which a write brings, in a chunk that exists and in a new one; the first
    /// is `None` if it brings none.
    pub(super) fn growth(&self, request: &WriteRequest<'_>) -> (Option<u64>, u64) {
        // A value, and at most eight bytes for its place.
        let cells = |count: u64| {
            let bytes = count.saturating_mul(self.geometry.element_size() as u64 + 8);
            (Some(bytes), bytes)
        };
        match request {
            WriteRequest::Values { part, .. } => cells(part.count()),
            WriteRequest::Sparse(SparseWrite::Points { part, .. }) => cells(part.count() as u64),
            WriteRequest::Sparse(SparseWrite::Band { band, .. }) => cells(band.cells.len() as u64),
            WriteRequest::Sparse(SparseWrite::Rows {
                part: Some((cells, values)), whole, ..
            }) => {
                let bytes = (cells.heap_bytes() + values.len()) as u64;
                // Twice, as cells and values may have to be decoded, unless they are stored at once.
                let stored = *whole && cells.is_final();
                (Some(2 * bytes), if stored { bytes } else { 2 * bytes })
            }
            WriteRequest::Sparse(SparseWrite::Rows { part: None, .. }) => (Some(0), 0),
            WriteRequest::Erase { .. } | WriteRequest::Sparse(SparseWrite::Erase { .. }) => {
                (None, 0)
            }
        }
    }

    /// Replaces the values of cells that are all defined. Nothing is taken from the request otherwise.
    pub(super) fn write_part(
        &self,
        key: &Dims,
        stored: &Stored<ChunkRecord>,
        request: &WriteRequest<'_>,
    ) -> Result<Option<Direct>> {
        let Some(chunk) = self.locate(key, &stored.tag)? else {
            return Ok(None);
        };
        let (dims, total) = (self.geometry.chunk(), self.geometry.cells_per_chunk());
        let ((cells, values), source) = match request {
            WriteRequest::Values { part, .. }
                if part.is_ascending() && part.count() > chunk.cells.len() =>
            {
                return Ok(None);
            }
            WriteRequest::Values { part, source } => {
                (collect(total, part.segments(dims), source)?, source)
            }
            WriteRequest::Sparse(SparseWrite::Points { part, source }) => {
                (sparse_points::collect(part, source)?, source)
            }
            WriteRequest::Sparse(SparseWrite::Band { band, source }) => {
                let mut band = band.clone();
                (sparse_points::in_order(total, &mut band, source.element_size())?, source)
            }
            WriteRequest::Sparse(SparseWrite::Rows {
                part: Some((cells, values)), source, ..
            }) => ((cells.to_set()?, values.clone()), source),
            WriteRequest::Sparse(SparseWrite::Rows { part: None, .. })
            | WriteRequest::Erase { .. }
            | WriteRequest::Sparse(SparseWrite::Erase { .. }) => return Ok(None),
        };
        let Some(places) = chunk.places(&cells) else { return Ok(None) };
        let old = match source.overwrites() {
            true => Vec::new(),
            false => chunk.values_of(&cells)?,
        };
        let values = source.convert(values, || old)?;
        chunk.stretch.scatter(places.into_iter(), &values)?;
        Ok(Some(Direct::Done { bytes: values.len() as u64 }))
    }
}

impl Located<'_> {
    /// Reads the cells of segments that are defined to their places, and returns the number of bytes.
    fn place(&self, segments: impl Iterator<Item = Segment>, target: &Target<'_>) -> Result<u64> {
        let (mut cursor, mut pieces, mut bytes) = (self.cells.cursor(), Vec::new(), 0);
        for segment in segments {
            cursor.for_each(Run { start: segment.cell, len: segment.len }, |found| {
                let memory = segment.memory + (found.cell - segment.cell);
                pieces.push(Segment { cell: found.position, memory, len: found.len });
            });
            if pieces.len() >= PIECES {
                bytes += self.place_pieces(&mut pieces, target)?;
            }
        }
        Ok(bytes + self.place_pieces(&mut pieces, target)?)
    }

    fn place_pieces(&self, pieces: &mut Vec<Segment>, target: &Target<'_>) -> Result<u64> {
        // Points come in any order.
        if !pieces.is_sorted_by_key(|piece| piece.cell) {
            pieces.sort_unstable_by_key(|piece| piece.cell);
        }
        self.stretch.read_in_windows(pieces.drain(..), target)
    }

    /// The values at some positions, which ascend.
    fn values(&self, positions: Vec<Run>) -> Result<Vec<u8>> {
        let count: u64 = positions.iter().map(|run| run.len).sum();
        let mut values = zeros(count.saturating_mul(self.element))?;
        self.stretch.gather(positions.into_iter(), &mut values)?;
        Ok(values)
    }

    /// The values of cells that are defined.
    fn values_of(&self, cells: &CellSet) -> Result<Vec<u8>> {
        let runs = self.cells.overlaps(cells.runs());
        self.values(runs.map(|found| Run { start: found.position, len: found.len }).collect())
    }

    /// Where the values of cells are, in their order; `None` if one of them is not defined.
    fn places(&self, cells: &CellSet) -> Option<Vec<Run>> {
        let (mut places, mut known): (Vec<Run>, u64) = (Vec::new(), 0);
        let mut cursor = self.cells.cursor();
        cells.for_each_run(|run| {
            cursor.for_each(run, |found| {
                known += found.len;
                match places.last_mut() {
                    Some(last) if last.end() == found.position => last.len += found.len,
                    _ => places.push(Run { start: found.position, len: found.len }),
                }
            });
        });
        (known == cells.len()).then_some(places)
    }
}
