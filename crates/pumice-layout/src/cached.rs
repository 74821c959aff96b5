//! What the chunk cache asks of a layout: each question goes to the storage that the dataset has.

use super::{
    Chunk, DatasetLayout, Dense, DenseChunk, LoggedChunk, NOWHERE, RECYCLED, ReadRequest, Sparse,
    Storage, WriteRequest,
};
use pumice_cache::{
    Direct, Encoded, Fetch, Footprint, Intent, Layout, Outcome, Part, Placement, Put, Reach,
    ReadPlan, StoreId, Stored, Trim, WritePlan,
};
use pumice_filter::scratch;
use pumice_format::index::ChunkRecord;
use pumice_medium::{Error, Result};
use pumice_space::Dims;
use pumice_store::{ReadOp, WriteOp};
use std::sync::Arc;

impl Layout for DatasetLayout {
    type Key = Dims;
    type Chunk = Chunk;
    type Tag = ChunkRecord;
    type Read<'a> = ReadRequest<'a>;
    type Write<'a> = WriteRequest<'a>;
    type Error = Error;

    fn lookup(&self, keys: &[Dims]) -> Result<Vec<Option<Stored<ChunkRecord>>>> {
        let records = self.chunks()?.lookup(keys)?.into_iter();
        // Where places follow from coordinates, there is one for chunks outside the extent, too. Who
        // reads ahead may ask for them, and must not find what the extent has cut off.
        let counts = self.geometry.chunk_counts();
        let inside = |key: &Dims| key.iter().zip(&counts).all(|(at, count)| at < count);
        let found = records.zip(keys).map(|(record, key)| record.filter(|_| inside(key)));
        Ok(found.map(|record| record.map(|record| self.stored(record))).collect())
    }

    fn store(&self) -> StoreId {
        // What may have to wait for a commit is not written with what others write.
        let refers = match &self.storage {
            Storage::Contiguous(contiguous) => contiguous.refers(),
            _ => self.table().is_some_and(|table| table.refers() && table.medium().is_writable()),
        };
        if refers {
            return StoreId::of(self);
        }
        self.medium().map_or_else(|| StoreId::of(self), |medium| StoreId::of(&**medium))
    }

    fn fetch(&self, reads: &mut [Fetch<'_>]) -> Result<()> {
        let mut ops: Vec<ReadOp<'_>> = reads
            .iter_mut()
            .map(|read| ReadOp { offset: read.offset, buffer: &mut *read.buffer })
            .collect();
        self.medium().ok_or_else(Self::mismatch)?.fetch(&mut ops)
    }

    fn decode(
        &self,
        key: &Dims,
        bytes: Vec<u8>,
        stored: &Stored<ChunkRecord>,
        part: Part,
    ) -> Result<Chunk> {
        match &self.storage {
            Storage::Dense(dense, _) => {
                Ok(Chunk::Dense(dense.decode(key, bytes, &stored.tag)?.into()))
            }
            Storage::Sparse(sparse, table) => {
                let changed = table.medium().is_writable();
                let chunk = sparse.decode(key, &bytes, &stored.tag, part, changed)?;
                self.give_back(bytes);
                Ok(Chunk::Sparse(LoggedChunk::new(chunk, self.geometry.element_size())))
            }
            Storage::VariableLength(layout, _) => {
                Ok(Chunk::Heap(layout.decode(key, bytes, &stored.tag, part)?))
            }
            Storage::Contiguous(_)
            | Storage::External(_)
            | Storage::Virtual
            | Storage::Unreadable(_) => Err(Self::mismatch()),
        }
    }

    fn new_chunk(&self, key: &Dims, fill: bool) -> Result<Chunk> {
        match &self.storage {
            Storage::Dense(dense, _) => {
                // Cells beyond the extent hold the fill value as well, in case the extent grows.
                let fill = fill || self.geometry.is_partial(key);
                Ok(Chunk::Dense(dense.new_chunk(fill)?.into()))
            }
            Storage::Sparse(sparse, _) => {
                let element = self.geometry.element_size();
                Ok(Chunk::Sparse(LoggedChunk::new(sparse.new_chunk(), element)))
            }
            Storage::VariableLength(layout, _) => {
                let fill = fill || self.geometry.is_partial(key);
                Ok(Chunk::Heap(layout.new_chunk(fill)?))
            }
            Storage::Contiguous(_)
            | Storage::External(_)
            | Storage::Virtual
            | Storage::Unreadable(_) => Err(Self::mismatch()),
        }
    }

    fn encode(&self, key: &Dims, chunk: &Chunk) -> Result<Encoded<ChunkRecord>> {
        match (&self.storage, chunk) {
            (Storage::Dense(dense, _), Chunk::Dense(cells)) => encode_dense(dense, key, cells),
            (Storage::Sparse(sparse, _), Chunk::Sparse(chunk)) => encode_sparse(sparse, key, chunk),
            (Storage::VariableLength(layout, _), Chunk::Heap(chunk)) => layout.encode(key, chunk),
            _ => Err(Self::mismatch()),
        }
    }

    fn insert(&self, placements: &mut [Placement<Dims, ChunkRecord>]) -> Result<()> {
        let table = self.chunks()?;
        for at in 0..placements.len() {
            let placement = &mut placements[at];
            placement.tag.size = placement.len;
            match table.reserve(&placement.key, placement.tag.clone()) {
                Ok(offset) => {
                    placement.offset = offset;
                    // Of a sparse chunk that keeps its place, only values have changed.
                    let named = placement.tag.address != NOWHERE;
                    placement.kept = named && !table.is_reserved(offset);
                }
                Err(error) => {
                    placements[..at].iter().for_each(|placed| table.cancel(placed.offset));
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn put(&self, writes: &[Put<'_>]) -> Result<()> {
        let mut ops: Vec<WriteOp<'_>> = writes
            .iter()
            .map(|write| WriteOp { offset: write.offset, bytes: write.bytes })
            .collect();
        match (self.table(), &self.storage) {
            (Some(table), _) => table.put(&mut ops),
            (None, Storage::Contiguous(contiguous)) => contiguous.put(&mut ops),
            (None, _) => self.medium().ok_or_else(Self::mismatch)?.put(&mut ops),
        }
    }

    /// Lets the index name chunks whose bytes are written; all that can be, even if one fails.
    fn settle(&self, placements: &[Placement<Dims, ChunkRecord>], written: bool) -> Result<()> {
        let table = self.chunks()?;
        if !written {
            placements.iter().for_each(|placed| table.cancel(placed.offset));
            return Ok(());
        }
        let mut result = Ok(());
        for placed in placements {
            result = result.and(table.enter(placed.offset));
        }
        result
    }

    fn delete(&self, key: &Dims) -> Result<()> {
        self.chunks()?.remove(key)
    }

    fn scatter(
        &self,
        _key: &Dims,
        chunk: Option<&Chunk>,
        request: &mut ReadRequest<'_>,
    ) -> Result<()> {
        match (&self.storage, chunk) {
            (Storage::Dense(dense, _), Some(Chunk::Dense(cells))) => dense.scatter(cells, request),
            (Storage::Dense(dense, _), None) => dense.scatter_absent(request),
            (Storage::Sparse(sparse, _), Some(Chunk::Sparse(chunk))) => {
                sparse.scatter_logged(chunk, request)
            }
            (Storage::Sparse(sparse, _), None) => sparse.scatter_absent(request),
            (Storage::VariableLength(layout, _), Some(Chunk::Heap(chunk))) => {
                layout.scatter(chunk, request)
            }
            (Storage::VariableLength(layout, _), None) => layout.scatter_absent(request),
            _ => Err(Self::mismatch()),
        }
    }

    fn gather(
        &self,
        _key: &Dims,
        chunk: &mut Chunk,
        request: &mut WriteRequest<'_>,
    ) -> Result<Outcome> {
        match (&self.storage, chunk) {
            (Storage::Dense(dense, _), Chunk::Dense(cells)) => {
                dense.gather(cells.to_mut(), request)
            }
            (Storage::Sparse(sparse, _), Chunk::Sparse(chunk)) => sparse.gather(chunk, request),
            (Storage::VariableLength(layout, _), Chunk::Heap(chunk)) => {
                layout.gather(chunk, request)
            }
            _ => Err(Self::mismatch()),
        }
    }

    fn footprint(&self, chunk: &Chunk) -> Footprint {
        let (used, allocated, values) = match chunk {
            Chunk::Dense(cells) => (cells.len(), cells.capacity(), true),
            Chunk::Sparse(chunk) => {
                let (used, allocated) = chunk.footprint();
                (used, allocated, chunk.has_values())
            }
            Chunk::Heap(chunk) => {
                let (used, allocated) = chunk.footprint();
                (used, allocated, chunk.has_values())
            }
        };
        let part = if values { Part::All } else { Part::Defined };
        Footprint { used: used as u64, allocated: allocated as u64, part }
    }

    fn trim(&self, chunk: &mut Chunk, what: Trim) {
        match (chunk, what) {
            (Chunk::Dense(cells), Trim::Slack) => cells.condense(),
            (Chunk::Dense(_), Trim::Values) => {}
            (Chunk::Sparse(chunk), Trim::Slack) => chunk.condense(),
            (Chunk::Sparse(chunk), Trim::Values) => chunk.settle().values = None,
            (Chunk::Heap(chunk), Trim::Slack) => chunk.condense(),
            (Chunk::Heap(chunk), Trim::Values) => chunk.drop_values(),
        }
    }

    fn plan_read(
        &self,
        key: &Dims,
        stored: Option<&Stored<ChunkRecord>>,
        request: &ReadRequest<'_>,
    ) -> ReadPlan {
        match &self.storage {
            Storage::Dense(dense, _) => dense.plan_read(key, stored, request),
            Storage::Sparse(sparse, _) => sparse.plan_read(key, stored, request),
            _ => ReadPlan { part: request.part(), share: request.share(), ..ReadPlan::default() },
        }
    }

    fn plan_write(
        &self,
        key: &Dims,
        stored: Option<&Stored<ChunkRecord>>,
        request: &WriteRequest<'_>,
    ) -> WritePlan {
        match &self.storage {
            Storage::Dense(dense, table) => dense.plan_write(table, key, stored, request),
            Storage::Sparse(sparse, table) => sparse.plan_write(table, key, stored, request),
            Storage::VariableLength(layout, _) => layout.plan_write(request),
            _ => WritePlan { intent: Intent::Replace, ..WritePlan::default() },
        }
    }

    /// Decoding gives it back. What is not decoded becomes the chunk, which must not be too large.
    fn spare(&self, len: usize) -> Option<Vec<u8>> {
        let decoded = match &self.storage {
            Storage::Dense(dense, _) => !dense.pipeline().is_empty(),
            Storage::Sparse(..) => true,
            _ => false,
        };
        (decoded && len <= RECYCLED).then(|| scratch::take_sized(len).ok()).flatten()
    }

    fn give_back(&self, bytes: Vec<u8>) {
        if bytes.capacity() <= RECYCLED {
            scratch::give(bytes);
        }
    }

    fn scatter_stored(
        &self,
        key: &Dims,
        bytes: &[u8],
        stored: &Stored<ChunkRecord>,
        request: &mut ReadRequest<'_>,
    ) -> Result<bool> {
        match &self.storage {
            Storage::Dense(dense, _) => dense.scatter_stored(key, bytes, &stored.tag, request),
            Storage::Sparse(sparse, _) => sparse.scatter_stored(key, bytes, &stored.tag, request),
            _ => Ok(false),
        }
    }

    fn direct_read<'r>(
        &self,
        key: &Dims,
        stored: Option<&Stored<ChunkRecord>>,
        request: &'r mut ReadRequest<'_>,
        extents: &mut Vec<Fetch<'r>>,
    ) -> Result<Direct> {
        match (&self.storage, stored) {
            (Storage::Contiguous(contiguous) | Storage::External(contiguous), _) => {
                contiguous.read(request, extents)
            }
            (Storage::Dense(dense, table), Some(stored)) => {
                dense.direct_read(table, stored, request, extents)
            }
            (Storage::Sparse(sparse, table), Some(stored)) => {
                sparse.direct_read(table, key, stored, request)
            }
            _ => Ok(Direct::Impossible),
        }
    }

    fn direct_write<'r>(
        &self,
        key: &Dims,
        stored: Option<&Stored<ChunkRecord>>,
        request: &'r mut WriteRequest<'_>,
        extents: &mut Vec<Put<'r>>,
    ) -> Result<Direct> {
        match (&self.storage, stored) {
            (Storage::Contiguous(contiguous) | Storage::External(contiguous), _) => {
                contiguous.write(request, extents)
            }
            (Storage::Dense(dense, table), Some(stored)) => {
                dense.direct_write(table, stored, request, extents)
            }
            (Storage::Sparse(sparse, table), Some(stored)) => {
                sparse.direct_write(table, key, stored, request)
            }
            _ => Ok(Direct::Impossible),
        }
    }

    /// Reads that move on by the same number of chunks each time, counted in the order of storage,
    /// will go on like that.
    fn successors(&self, recent: &[Dims], now: &[Dims], count: usize) -> Vec<Dims> {
        let (geometry, Some(first)) = (&self.geometry, now.first()) else { return Vec::new() };
        // What is stored as it is read need not be decoded: the system reads it ahead as well.
        if matches!(&self.storage, Storage::Dense(dense, _) if dense.pipeline().is_empty()) {
            return Vec::new();
        }
        let grid = geometry.chunk_counts();
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

    fn bypass(&self) -> bool {
        matches!(self.storage, Storage::Contiguous(_) | Storage::External(_))
    }

    fn read_reach(&self, _key: &Dims, request: &ReadRequest<'_>) -> Option<Reach> {
        match &self.storage {
            Storage::Contiguous(contiguous) | Storage::External(contiguous) => {
                contiguous.read_reach(request)
            }
            _ => None,
        }
    }

    fn write_reach(&self, _key: &Dims, request: &WriteRequest<'_>) -> Option<Reach> {
        match &self.storage {
            Storage::Contiguous(contiguous) | Storage::External(contiguous) => {
                contiguous.write_reach(request)
            }
            _ => None,
        }
    }
}

/// A dense chunk as it is stored.
pub(super) fn encode_dense(
    dense: &Dense,
    key: &Dims,
    cells: &DenseChunk,
) -> Result<Encoded<ChunkRecord>> {
    if dense.unfiltered(key) {
        let rest = Some(cells.share());
        return Ok(Encoded { bytes: Arc::default(), rest, tag: ChunkRecord::dense(0, 0) });
    }
    let (bytes, filter_mask) = dense.pipeline().encode_slice(cells)?;
    Ok(Encoded::new(bytes, ChunkRecord { filter_mask, ..ChunkRecord::dense(0, 0) }))
}

/// A sparse chunk as it is stored.
pub(super) fn encode_sparse(
    sparse: &Sparse,
    key: &Dims,
    chunk: &LoggedChunk,
) -> Result<Encoded<ChunkRecord>> {
    let encoded = match chunk.fresh() {
        Some((cells, values)) => sparse.encode_fresh(cells, values)?,
        None => sparse.encode(key, chunk.view())?,
    };
    let mut tag = ChunkRecord::dense(encoded.place.unwrap_or(NOWHERE), 0);
    tag.sections.extend(encoded.sections);
    Ok(Encoded { bytes: encoded.bytes, rest: encoded.values, tag })
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
