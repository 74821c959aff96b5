//! What the chunk cache asks of a layout: each question goes to the storage that the dataset has.

use super::{
    Chunk, DatasetLayout, Dense, LoggedChunk, MANY, NOWHERE, RECYCLED, ReadRequest, Sparse,
    Storage, WriteRequest,
};
use pumice_cache::{
    Direct, Encoded, Fetch, Footprint, Intent, Layout, Outcome, Part, Placement, Put, Reach,
    StoreId, Stored,
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

    fn scatter(&self, _key: &Dims, chunk: &Chunk, request: &mut ReadRequest<'_>) -> Result<()> {
        match (&self.storage, chunk) {
            (Storage::Dense(dense, _), Chunk::Dense(cells)) => dense.scatter(cells, request),
            (Storage::Sparse(sparse, _), Chunk::Sparse(chunk)) => {
                sparse.scatter_logged(chunk, request)
            }
            (Storage::VariableLength(layout, _), Chunk::Heap(chunk)) => {
                layout.scatter(chunk, request)
            }
            _ => Err(Self::mismatch()),
        }
    }

    fn scatter_absent(&self, _key: &Dims, request: &mut ReadRequest<'_>) -> Result<()> {
        match &self.storage {
            Storage::Dense(dense, _) => dense.scatter_absent(request),
            Storage::Sparse(sparse, _) => sparse.scatter_absent(request),
            Storage::VariableLength(layout, _) => layout.scatter_absent(request),
            Storage::Contiguous(_)
            | Storage::External(_)
            | Storage::Virtual
            | Storage::Unreadable(_) => Err(Self::mismatch()),
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
                dense.gather(&mut Arc::<Vec<u8>>::make_mut(cells)[..], request)
            }
            (Storage::Sparse(sparse, _), Chunk::Sparse(chunk)) => sparse.gather(chunk, request),
            (Storage::VariableLength(layout, _), Chunk::Heap(chunk)) => {
                layout.gather(chunk, request)
            }
            _ => Err(Self::mismatch()),
        }
    }

    fn footprint(&self, chunk: &Chunk) -> Footprint {
        let (used, allocated) = match chunk {
            Chunk::Dense(cells) => (cells.len(), cells.capacity()),
            Chunk::Sparse(chunk) => chunk.footprint(),
            Chunk::Heap(chunk) => chunk.footprint(),
        };
        Footprint { used: used as u64, allocated: allocated as u64 }
    }

    fn part(&self, request: &ReadRequest<'_>) -> Part {
        match request {
            ReadRequest::Defined { .. } | ReadRequest::Cells { values: false, .. } => Part::Defined,
            ReadRequest::Values { .. }
            | ReadRequest::Points { .. }
            | ReadRequest::Cells { .. }
            | ReadRequest::DefinedValues { .. }
            | ReadRequest::Rows { .. }
            | ReadRequest::DefinedHeaped { .. } => Part::All,
        }
    }

    fn intent(&self, _key: &Dims, request: &WriteRequest<'_>) -> Intent {
        match &self.storage {
            Storage::Dense(..) | Storage::Sparse(..) => intent(request, false),
            Storage::VariableLength(..) => intent(request, true),
            Storage::Contiguous(_)
            | Storage::External(_)
            | Storage::Virtual
            | Storage::Unreadable(_) => Intent::Replace,
        }
    }

    fn growth(&self, _key: &Dims, request: &WriteRequest<'_>, fresh: bool) -> u64 {
        match (&self.storage, request) {
            (Storage::Dense(..), _) if fresh => self.geometry.chunk_bytes(),
            (Storage::Sparse(..), WriteRequest::Values { part, .. }) => {
                // A value, and at most eight bytes for its place.
                part.count().saturating_mul(self.geometry.element_size() as u64 + 8)
            }
            (Storage::Sparse(..), WriteRequest::Band { band, .. }) => {
                let count = band.cells.len() as u64;
                count.saturating_mul(self.geometry.element_size() as u64 + 8)
            }
            (
                Storage::Sparse(..),
                WriteRequest::Rows { part: Some((cells, values)), whole, .. },
            ) => {
                let bytes = (cells.heap_bytes() + values.len()) as u64;
                // Twice, as cells and values may have to be decoded, unless they are stored at once.
                if fresh && *whole && cells.is_final() { bytes } else { 2 * bytes }
            }
            (Storage::Sparse(..), WriteRequest::Points { part, .. }) => {
                let count = part.count() as u64;
                count.saturating_mul(self.geometry.element_size() as u64 + 8)
            }
            (Storage::VariableLength(..), WriteRequest::Values { part, source }) => {
                let each = self.geometry.element_size() as u64 + 8;
                let elements = part.count().saturating_mul(each);
                elements.saturating_add(source.heap_share(part.count()))
            }
            _ => 0,
        }
    }

    fn has_values(&self, chunk: &Chunk) -> bool {
        match chunk {
            Chunk::Dense(_) => true,
            Chunk::Sparse(chunk) => chunk.has_values(),
            Chunk::Heap(chunk) => chunk.has_values(),
        }
    }

    fn drop_values(&self, chunk: &mut Chunk) -> bool {
        match chunk {
            Chunk::Dense(_) => false,
            Chunk::Sparse(chunk) => chunk.settle().values.take().is_some(),
            Chunk::Heap(chunk) => chunk.drop_values(),
        }
    }

    fn condense(&self, chunk: &mut Chunk) {
        match chunk {
            Chunk::Dense(values) => {
                // While it is being stored, it stays as it is.
                if let Some(values) = Arc::get_mut(values) {
                    values.shrink_to_fit();
                }
            }
            Chunk::Sparse(chunk) => chunk.condense(),
            Chunk::Heap(chunk) => chunk.condense(),
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

    /// The next chunk that this thread decodes is likely to be as large.
    fn recycle(&self, chunk: Chunk) {
        if let Chunk::Dense(cells) = chunk
            && let Ok(cells) = Arc::try_unwrap(cells)
            && cells.capacity() <= RECYCLED
        {
            scratch::give(cells);
        }
    }

    fn can_read_direct(
        &self,
        key: &Dims,
        stored: &Stored<ChunkRecord>,
        request: &ReadRequest<'_>,
    ) -> bool {
        match &self.storage {
            Storage::Dense(dense, _) => {
                matches!(request, ReadRequest::Values { .. }) && dense.is_plain(key, stored)
            }
            Storage::Sparse(sparse, _) => sparse.can_read_direct(key, stored, request),
            _ => false,
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

    fn can_write_direct(
        &self,
        key: &Dims,
        stored: &Stored<ChunkRecord>,
        request: &WriteRequest<'_>,
    ) -> bool {
        match (&self.storage, request) {
            (Storage::Dense(dense, table), WriteRequest::Values { .. }) => {
                // Elements that refer to something may have to wait, and chunks wait as a whole.
                table.is_in_place() && !table.refers() && dense.is_plain(key, stored)
            }
            (Storage::Sparse(sparse, table), _) => sparse.can_write_direct(table, key, request),
            _ => false,
        }
    }

    fn direct_read_bytes(
        &self,
        key: &Dims,
        stored: &Stored<ChunkRecord>,
        request: &ReadRequest<'_>,
    ) -> u64 {
        match &self.storage {
            Storage::Sparse(sparse, _) if !sparse.can_read_whole(key, stored, request) => {
                sparse.part_bytes(stored)
            }
            _ => 0,
        }
    }

    fn direct_write_bytes(
        &self,
        key: &Dims,
        stored: &Stored<ChunkRecord>,
        request: &WriteRequest<'_>,
    ) -> u64 {
        match &self.storage {
            Storage::Sparse(sparse, _) => {
                sparse.part_bytes(stored).saturating_add(self.growth(key, request, false))
            }
            _ => 0,
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

    fn read_share(&self, _key: &Dims, request: &ReadRequest<'_>) -> f32 {
        match request {
            ReadRequest::Values { part, .. } => part.share(),
            ReadRequest::Points { .. }
            | ReadRequest::Defined { .. }
            | ReadRequest::Cells { .. }
            | ReadRequest::DefinedValues { .. }
            | ReadRequest::Rows { .. }
            | ReadRequest::DefinedHeaped { .. } => 0.0,
        }
    }

    fn write_share(&self, _key: &Dims, request: &WriteRequest<'_>) -> f32 {
        match (&self.storage, request) {
            // A sparse chunk is never known to be complete.
            (Storage::Dense(..), WriteRequest::Values { part, .. }) => part.share(),
            _ => 0.0,
        }
    }

    /// A chunk that is read whole and as it is stored comes from the system's own cache as quickly.
    fn worth_keeping(&self, key: &Dims, request: &ReadRequest<'_>) -> bool {
        match (&self.storage, request) {
            (Storage::Dense(dense, _), ReadRequest::Values { part, target }) => {
                let passes = part.is_whole() && target.is_noop() && dense.unfiltered(key);
                // What was not verified would answer reads that ask for more.
                !passes && !target.is_unverified()
            }
            // What is put down whole is in the caller's hands, and decoding it again takes hardly longer
            // than putting it down. Kept, a scan would go through memory once more.
            (
                Storage::Sparse(..),
                ReadRequest::Cells { cells: None, place: Some(_), passes: true, .. },
            ) => false,
            (Storage::Sparse(..), ReadRequest::Values { target, .. }) => !target.is_unverified(),
            _ => true,
        }
    }

    /// Many rows, and many lists, are read from the file as quickly as from the cache, which they would only
    /// fill.
    fn passes(&self, _key: &Dims, request: &WriteRequest<'_>) -> bool {
        match request {
            WriteRequest::Rows { whole, .. } => *whole,
            WriteRequest::Values { part, source } => {
                let lists = source.as_lists().and(source.heap());
                lists.is_some_and(|heap| heap.len() >= MANY) && part.is_whole()
            }
            _ => false,
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

/// Whether a write needs what is stored. Elements with a `heap` are written whole, unless only members of fixed size are
/// written.
fn intent(request: &WriteRequest<'_>, heap: bool) -> Intent {
    match request {
        WriteRequest::Values { part, source }
            if part.is_whole() && (heap && !source.has_members() || source.overwrites()) =>
        {
            Intent::Replace
        }
        WriteRequest::Values { .. }
        | WriteRequest::Points { .. }
        | WriteRequest::Band { .. }
        | WriteRequest::Rows { .. } => Intent::Update,
        WriteRequest::Erase { .. } | WriteRequest::ErasePoints { .. } => Intent::UpdateExisting,
    }
}

/// A dense chunk as it is stored.
pub(super) fn encode_dense(
    dense: &Dense,
    key: &Dims,
    cells: &Arc<Vec<u8>>,
) -> Result<Encoded<ChunkRecord>> {
    if dense.unfiltered(key) {
        let rest = Some(Arc::clone(cells));
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
