//! Reads of sparse chunks: from those in the cache, from stored ones that are not kept, and from those that are not
//! stored.

use super::{Sparse, decode_locations, sections};
use crate::RECYCLED;
use crate::logged_chunk::LoggedChunk;
use crate::request::{ReadRequest, SparseRead, Taken, Target};
use crate::sparse_chunk::SparseChunk;
use crate::sparse_points;
use pumice_cache::{Direct, Part, Stored};
use pumice_filter::location::CellVisitor;
use pumice_filter::scratch;
use pumice_format::index::{ChunkRecord, SectionRecord};
use pumice_medium::Result;
use pumice_space::{CellSet, Dims, Run, Selection};
use pumice_store::ReadOp;

/// So many runs are shown to a visitor at once.
const SHOWN: usize = 1024;

impl Sparse {
    /// Answers a read from a resident chunk; its log is merged unless few cells are asked for.
    pub(crate) fn scatter_logged(
        &self,
        chunk: &LoggedChunk,
        request: &mut ReadRequest<'_>,
    ) -> Result<()> {
        let dims = self.geometry.chunk();
        match request {
            ReadRequest::Values { part, target } if chunk.spares_merging(part.count()) => {
                target.fill_all(part.segments(dims));
                place_held(
                    chunk,
                    part.segments(dims).map(|segment| {
                        (segment.memory, Run { start: segment.cell, len: segment.len })
                    }),
                    target,
                )
            }
            ReadRequest::Sparse(SparseRead::Points { part, target })
                if chunk.spares_merging(part.count() as u64) =>
            {
                sparse_points::fill(part, target);
                let cells = part.cells64().into_iter().zip(part.memory().flatten());
                let runs = cells.map(|(start, memory)| (memory as u64, Run { start, len: 1 }));
                place_held(chunk, runs, target)
            }
            ReadRequest::Defined { cells, found } if chunk.spares_merging(cells.count(dims)) => {
                **found = Some(chunk.defined_among(&CellSet::from_selection(cells, dims)?));
                Ok(())
            }
            ReadRequest::DefinedValues { cells, found, .. }
                if chunk.spares_merging(cells.count(dims)) =>
            {
                let (cells, values) = chunk.extract(&CellSet::from_selection(cells, dims)?);
                **found = Some((cells.into(), values));
                Ok(())
            }
            ReadRequest::Sparse(SparseRead::Rows { rows, columns, .. })
                if chunk
                    .spares_merging((rows.count() as u64).saturating_mul(columns.len() as u64)) =>
            {
                let width = dims.last().copied().unwrap_or(1);
                let wanted = rows.cells(self.geometry.cells_per_chunk(), width, columns)?;
                let (cells, values) = chunk.extract(&wanted);
                self.scatter_merged(&SparseChunk::new(cells, Some(values)), request)
            }
            _ => self.scatter_merged(chunk.view(), request),
        }
    }

    /// Answers a read from a resident chunk.
    fn scatter_merged(&self, chunk: &SparseChunk, request: &mut ReadRequest<'_>) -> Result<()> {
        let (dims, element) = (self.geometry.chunk(), self.geometry.element_size());
        match request {
            ReadRequest::Values { part, target } => {
                target.fill_all(part.segments(dims));
                chunk.scatter(element, part.segments(dims), target)
            }
            ReadRequest::Sparse(SparseRead::Points { part, target }) => {
                sparse_points::fill(part, target);
                sparse_points::scatter(chunk, element, part, target)
            }
            ReadRequest::Sparse(SparseRead::Cells {
                cells,
                origin,
                place,
                values,
                sink,
                taken,
                ..
            }) => {
                let held = chunk.values();
                let wanted = cells.filter(|cells| !cells.covers(dims));
                **taken = match (place, wanted) {
                    (Some(place), None) if place.len() as u64 == chunk.cells.len() => {
                        let (cells, _) = chunk.select(element, dims, &Selection::all(), false)?;
                        sink.put(place.clone(), dims, origin, &cells, held)?;
                        Taken::Placed
                    }
                    (_, wanted) => {
                        let all = Selection::all();
                        let wanted = wanted.unwrap_or(&all);
                        let (cells, values) = chunk.select(element, dims, wanted, *values)?;
                        Taken::Kept(cells, values)
                    }
                };
                Ok(())
            }
            ReadRequest::Defined { cells, found } => {
                let (cells, _) = chunk.select(element, dims, cells, false)?;
                **found = Some(cells.into_set(self.geometry.cells_per_chunk())?);
                Ok(())
            }
            ReadRequest::DefinedValues { cells, found, .. } => {
                **found = Some(chunk.select(element, dims, cells, true)?);
                Ok(())
            }
            ReadRequest::Sparse(SparseRead::Rows { rows, columns, found }) => {
                let width = dims.last().copied().unwrap_or(1);
                **found = Some(chunk.rows(element, width, rows.clone(), columns.clone()));
                Ok(())
            }
            ReadRequest::DefinedHeaped { .. } => Err(crate::without_heap()),
        }
    }

    /// The memory that it takes to read where a chunk is stored, if its values are stored as they are and the
    /// read takes some or all of them.
    pub(super) fn direct_memory(
        &self,
        key: &Dims,
        stored: &Stored<ChunkRecord>,
        request: &ReadRequest<'_>,
    ) -> Option<u64> {
        if self.can_read_whole(key, stored, request) {
            return Some(0);
        }
        self.can_read_part(key, request).then(|| self.part_bytes(stored))
    }

    /// Whether all cells of a chunk are asked for and its values are stored as they are.
    pub(super) fn can_read_whole(
        &self,
        key: &Dims,
        stored: &Stored<ChunkRecord>,
        request: &ReadRequest<'_>,
    ) -> bool {
        let ReadRequest::Sparse(SparseRead::Cells {
            cells, place: Some(place), values: true, ..
        }) = request
        else {
            return false;
        };
        let all = cells.is_none_or(|cells| cells.covers(self.geometry.chunk()));
        if !all || !self.is_plain(key) {
            return false;
        }
        let Ok((locations, values)) = sections(&stored.tag) else { return false };
        let wanted = place.len().checked_mul(self.geometry.element_size());
        Some(values.1) == wanted && locations.1 <= RECYCLED
    }

    /// Reads all cells of a chunk that is not in the cache and whose values are stored as they are: the file gives
    /// them straight to their place.
    pub(super) fn read_whole(
        &self,
        key: &Dims,
        stored: &Stored<ChunkRecord>,
        request: &mut ReadRequest<'_>,
    ) -> Result<Option<Direct>> {
        let ReadRequest::Sparse(SparseRead::Cells { place: Some(place), sink, .. }) = request
        else {
            return Ok(None);
        };
        let record = &stored.tag;
        let locations = sections(record)?.0;
        let mut head = scratch::take_sized(locations.1)?;
        let (at, behind) = (record.address, record.address.saturating_add(locations.1 as u64));
        let read = sink.read_values(place.clone(), &mut |room| {
            let first = ReadOp { offset: at, buffer: &mut head };
            self.table.medium().fetch(&mut [first, ReadOp { offset: behind, buffer: room }])
        })?;
        let placed = read && self.place_cells(key, &head, &locations.0, record, request)?;
        scratch::give(head);
        Ok(placed.then_some(Direct::Done { bytes: stored.len }))
    }

    /// Puts the cells of a chunk to their place as they are decoded; `false` if the chunk has to be made.
    fn place_cells(
        &self,
        key: &Dims,
        bytes: &[u8],
        section: &SectionRecord,
        record: &ChunkRecord,
        request: &mut ReadRequest<'_>,
    ) -> Result<bool> {
        let ReadRequest::Sparse(SparseRead::Cells {
            origin, place: Some(place), sink, taken, ..
        }) = request
        else {
            return Ok(false);
        };
        let (dims, total) = (self.geometry.chunk(), self.geometry.cells_per_chunk());
        let pipeline = self.pipelines(key).0;
        let received = sink.receive(place.clone(), dims, origin, &mut |visitor| {
            if bytes.is_empty() || !pipeline.begins_with_location() {
                let cells = decode_locations(&self.geometry, pipeline, bytes, section, record)?;
                return Ok(show(&cells, dims, visitor));
            }
            let (mask, unfiltered) = (section.filter_mask, section.unfiltered);
            Ok(pipeline.visit_cells(bytes, mask, unfiltered, total, visitor)?)
        })?;
        if received {
            **taken = Taken::Placed;
        }
        Ok(received)
    }

    /// Answers a read from the stored bytes of a chunk that is not kept: one that does not compare the
    /// checksums of filters, or one of all cells, if cells and values can go to their places as they are
    /// decoded; `false` if the chunk has to be made.
    pub(super) fn scatter_bytes(
        &self,
        key: &Dims,
        bytes: &[u8],
        record: &ChunkRecord,
        request: &mut ReadRequest<'_>,
    ) -> Result<bool> {
        if request.is_unverified() {
            let chunk = self.unverified().decode_sections(key, bytes, record, Part::All, false)?;
            self.scatter_merged(&chunk, request)?;
            return Ok(true);
        }
        let ReadRequest::Sparse(SparseRead::Cells {
            cells, place: Some(place), values, sink, ..
        }) = request
        else {
            return Ok(false);
        };
        let (place, values, sink) = (place.clone(), *values, *sink);
        let (locations, stored) = sections(record)?;
        let Some((head, tail)) = bytes.split_at_checked(locations.1) else { return Ok(false) };
        let wanted = place.len().checked_mul(self.geometry.element_size());
        let all = cells.is_none_or(|cells| cells.covers(self.geometry.chunk()));
        if !all || values && (tail.len() != stored.1 || wanted.is_none()) {
            return Ok(false);
        }
        // The values first: cells that are in place are taken as the chunk's.
        if let Some(wanted) = wanted.filter(|_| values) {
            let filters = self.pipelines(key).1;
            if filters.is_empty() && tail.len() == wanted {
                sink.put_values(place, tail)?;
            } else {
                // How many there are was known before the chunk was read: it may have changed in between. What is
                // wrong with it is said where it is made.
                let decoded = filters.decode_slice(tail, stored.0.filter_mask, wanted);
                let Some(decoded) = decoded.ok().filter(|decoded| decoded.len() == wanted) else {
                    return Ok(false);
                };
                sink.put_values(place, &decoded)?;
                scratch::give(decoded);
            }
        }
        self.place_cells(key, head, &locations.0, record, request)
    }

    /// Answers a read from a chunk that is not stored: nothing is defined there.
    pub(super) fn scatter_absent(&self, request: &mut ReadRequest<'_>) -> Result<()> {
        match request {
            ReadRequest::Values { part, target } => {
                target.fill_all(part.segments(self.geometry.chunk()));
            }
            ReadRequest::Sparse(SparseRead::Points { part, target }) => {
                sparse_points::fill(part, target);
            }
            ReadRequest::Sparse(SparseRead::Cells { .. })
            | ReadRequest::Defined { .. }
            | ReadRequest::DefinedValues { .. }
            | ReadRequest::Sparse(SparseRead::Rows { .. })
            | ReadRequest::DefinedHeaped { .. } => {}
        }
        Ok(())
    }
}

/// Shows cells of a chunk of shape `dims` to a visitor; whether it has taken them.
fn show(cells: &CellSet, dims: &[u64], visitor: &mut dyn CellVisitor) -> bool {
    if !visitor.begin(dims) {
        return false;
    }
    if let Some(list) = cells.as_list() {
        return visitor.cells(list);
    }
    let mut some = Vec::with_capacity(SHOWN);
    let mut runs = cells.runs();
    loop {
        some.clear();
        some.extend(runs.by_ref().take(SHOWN).map(|run| [run.start, run.end()]));
        if some.is_empty() {
            return true;
        }
        if !visitor.runs(&some) {
            return false;
        }
    }
}

/// Puts elements of cells that are defined to their places in memory.
fn place_held(
    chunk: &LoggedChunk,
    runs: impl Iterator<Item = (u64, Run)>,
    target: &Target<'_>,
) -> Result<()> {
    let mut placed = Ok(());
    chunk.for_each_held_in(runs, |memory, held| {
        if let Err(error) = target.place(memory, held) {
            placed = Err(error);
        }
    });
    placed
}
