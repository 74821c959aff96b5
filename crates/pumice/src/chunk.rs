//! Stored chunks: their addresses, and their bytes as stored.

use crate::{CacheOptions, CurvePoint, Dataset, Select, Stats};
use pumice_engine::dataset::StoredChunks;
use pumice_engine::{Error, Result};
use pumice_format::index::ChunkRecord;
use pumice_space::{ChunkGrid, Dims};

/// Chunks that are looked up together.
const TOGETHER: usize = 1 << 12;

/// The record of a stored chunk.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ChunkInfo {
    /// The chunk's first cell.
    pub offset: Vec<u64>,
    /// The address of its bytes, counted from the start of the file.
    pub address: u64,
    /// The number of stored bytes.
    pub size: u64,
    /// A bit for each filter that was skipped, the first filter's lowest.
    pub filter_mask: u32,
}

/// The stored chunks of a dataset in row-major order, one after another: [`Dataset::chunks`] and
/// [`Dataset::structured_chunks`].
///
/// Few chunks are in memory at a time. The dataset may be used meanwhile; chunks that are stored or
/// removed meanwhile may be listed or not.
pub struct Chunks<'d, I = ChunkInfo> {
    dataset: &'d Dataset,
    stored: StoredChunks,
    info: fn(&Dataset, &[u64], &ChunkRecord) -> I,
    done: bool,
}

impl<'d, I> Chunks<'d, I> {
    pub(crate) fn new(
        dataset: &'d Dataset,
        info: fn(&Dataset, &[u64], &ChunkRecord) -> I,
    ) -> Result<Self> {
        let stored = dataset.at(dataset.state.stored_chunks())?;
        Ok(Self { dataset, stored, info, done: false })
    }

    /// The remaining chunks as a list: some hundred bytes each.
    ///
    /// ```
    /// # let file = pumice::File::in_memory()?;
    /// let dataset = file.new_dataset::<u8>().shape([4]).chunk([2]).create("pairs")?;
    /// dataset.write(.., &[1u8; 4])?;
    /// assert_eq!(dataset.chunks()?.list()?.len(), 2);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn list(self) -> Result<Vec<I>> {
        self.collect()
    }
}

impl<I> Iterator for Chunks<'_, I> {
    type Item = Result<I>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let Self { dataset, stored, info, .. } = self;
        let next = dataset.at(dataset.state.next_stored(stored)).transpose();
        // Behind an error nothing is known.
        self.done = !matches!(next, Some(Ok(_)));
        next.map(|next| next.map(|(offset, record)| info(dataset, &offset, &record)))
    }
}

impl<I> std::iter::FusedIterator for Chunks<'_, I> {}

impl<I> std::fmt::Debug for Chunks<'_, I> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chunks").field("dataset", &self.dataset.path()).finish_non_exhaustive()
    }
}

/// Stored chunks, past filters and conversion.
///
/// A chunk is named by its first cell, as in HDF5: of chunks of 100 x 64 cells, the second one down
/// is at `[100, 0]`.
///
/// Of structured chunks, which have a mask per section, only the number, the storage size and the
/// stored bytes are told here, as in HDF5; the rest is in
/// [`structured_chunks`](Self::structured_chunks) and its kin.
impl Dataset {
    /// The number of stored chunks. Dirty chunks are written first.
    pub fn chunk_count(&self) -> Result<u64> {
        match self.chunk() {
            Some(_) => Ok(self.at(self.state.chunk_totals())?.0),
            None => Ok(0),
        }
    }

    /// The number of stored chunks with cells of `selection`; see
    /// [`chunk_count`](Self::chunk_count).
    ///
    /// ```
    /// # let file = pumice::File::in_memory()?;
    /// let dataset = file.new_dataset::<u8>().shape([4, 4]).chunk([2, 2]).create("squares")?;
    /// dataset.write((0..3, 0..2), &[1u8; 6])?;
    /// assert_eq!(dataset.chunk_count_in((.., 0))?, 2);
    /// assert_eq!(dataset.chunk_count_in((2.., ..))?, 1);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn chunk_count_in(&self, selection: impl Select) -> Result<u64> {
        let Some(chunk) = self.chunk() else { return Ok(0) };
        self.selected(selection, |selection, shape| {
            let grid = ChunkGrid::new(shape, &chunk)?;
            let (mut keys, mut count) = (self.stored_chunks(&grid)?, 0);
            loop {
                let some = keys.by_ref().take(TOGETHER).collect::<Result<Vec<Dims>>>()?;
                if some.is_empty() {
                    return Ok(count);
                }
                count += selection.cut(&grid, &some)?.len() as u64;
            }
        })
    }

    /// The bytes that the chunk at `offset` takes in the file, all of its sections if it is
    /// structured; `None` if it is not stored. Dirty chunks are written first.
    ///
    /// ```
    /// # let file = pumice::File::in_memory()?;
    /// let dataset = file.new_dataset::<u8>().shape([4, 4]).chunk([2, 2]).create("squares")?;
    /// dataset.write((0..2, 0..2), &[1u8; 4])?;
    /// assert_eq!(dataset.chunk_storage_size([0, 0])?, Some(4));
    /// assert_eq!(dataset.chunk_storage_size([2, 0])?, None);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn chunk_storage_size(&self, offset: impl AsRef<[u64]>) -> Result<Option<u64>> {
        let record = self.at(self.state.chunk_record(offset.as_ref()))?;
        Ok(record.map(|record| record.size))
    }

    /// The bytes that the elements take in the file. Dirty chunks are written first.
    pub fn storage_size(&self) -> Result<u64> {
        self.at(self.state.storage_size())
    }

    /// Iterates over all stored chunks in row-major order. Dirty chunks are written first.
    ///
    /// ```
    /// # let file = pumice::File::in_memory()?;
    /// let dataset = file.new_dataset::<u8>().shape([4, 4]).chunk([2, 2]).create("squares")?;
    /// dataset.write((0..3, 0..2), &[1u8; 6])?;
    /// for chunk in dataset.chunks()? {
    ///     assert_eq!(chunk?.size, 4);
    /// }
    /// assert_eq!(dataset.chunks()?.list()?[1].offset, [2, 0]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn chunks(&self) -> Result<Chunks<'_>> {
        self.require_dense()?;
        Chunks::new(self, Dataset::info)
    }

    /// The record of the chunk at `offset`; `None` if it is not stored.
    pub fn chunk_info(&self, offset: impl AsRef<[u64]>) -> Result<Option<ChunkInfo>> {
        self.require_dense()?;
        let offset = offset.as_ref();
        let record = self.at(self.state.chunk_record(offset))?;
        Ok(record.map(|record| self.info(offset, &record)))
    }

    /// The stored bytes of the chunk at `offset`, and the mask of skipped filters; `None` if the
    /// chunk is not stored. A dirty chunk is written first.
    ///
    /// ```
    /// # let file = pumice::File::in_memory()?;
    /// let builder = file.new_dataset::<u8>().shape([100]).chunk([50]).deflate(6);
    /// let (from, to) = (builder.clone().create("from")?, builder.create("to")?);
    /// from.write(.., &[7u8; 100])?;
    ///
    /// // Copies chunks without decompressing them.
    /// for chunk in from.chunks()? {
    ///     let chunk = chunk?;
    ///     let (bytes, mask) = from.read_chunk(&chunk.offset)?.expect("it was listed");
    ///     to.write_chunk(&chunk.offset, &bytes, mask)?;
    /// }
    /// assert_eq!(to.read::<u8>(..)?, [7; 100]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn read_chunk(&self, offset: impl AsRef<[u64]>) -> Result<Option<(Vec<u8>, u32)>> {
        let found = self.at(self.state.read_chunk(offset.as_ref()))?;
        Ok(found.map(|(bytes, record)| (bytes, record.filter_mask)))
    }

    /// Stores `bytes` as the chunk at `offset`, replacing it in file and cache.
    ///
    /// The bytes must be the output of the dataset's filters, without those that `filter_mask`
    /// skips. A wrong output is found when the chunk is read. Only for dense chunks.
    pub fn write_chunk(
        &self,
        offset: impl AsRef<[u64]>,
        bytes: &[u8],
        filter_mask: u32,
    ) -> Result<()> {
        self.make_room()?;
        self.at(self.state.write_chunk(offset.as_ref(), bytes, filter_mask))
    }

    fn require_dense(&self) -> Result<()> {
        if self.sections().len() < 2 {
            return Ok(());
        }
        let what =
            "structured chunks have sections, which this cannot tell: ask for structured chunks";
        self.at(Err(Error::Invalid(what.into())))
    }

    /// The options of this dataset in the chunk cache.
    pub fn cache_options(&self) -> CacheOptions {
        self.state.cache_options()
    }

    /// Sets the options of this dataset in the chunk cache: its use, and its share of the memory.
    /// They hold for all handles to the dataset, until the last one is dropped: then the options of
    /// the file ([`FileOptions::cache_options`](crate::FileOptions::cache_options)) hold again.
    /// Chunks stay in memory while the file is open and their room is not needed.
    ///
    /// ```
    /// use pumice::{CacheOptions, Hint};
    /// # let file = pumice::File::in_memory()?;
    /// # let dataset = file.new_dataset::<u8>().shape([100]).chunk([10]).create("d")?;
    /// // Read from the first cell to the last: what is passed need not be kept.
    /// dataset.set_cache_options(CacheOptions::default().hint(Hint::Sequential));
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn set_cache_options(&self, options: CacheOptions) {
        self.state.set_cache_options(options);
    }

    /// Writes back dirty chunks and drops the dataset's chunks from memory: later reads come from
    /// the file.
    ///
    /// ```
    /// # let file = pumice::File::in_memory()?;
    /// # let dataset = file.new_dataset::<u8>().shape([100]).chunk([10]).create("d")?;
    /// dataset.write(.., &[1u8; 100])?;
    /// dataset.evict()?;
    /// assert_eq!((dataset.cache_stats().resident, dataset.cache_stats().write_backs), (0, 10));
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn evict(&self) -> Result<()> {
        self.at(self.state.evict())
    }

    /// The statistics of this dataset in the chunk cache since it was opened.
    pub fn cache_stats(&self) -> Stats {
        self.state.cache_stats()
    }

    /// The share of this dataset's recent chunk requests that would miss at other sizes of the
    /// cache; sizes double.
    ///
    /// ```
    /// # let file = pumice::File::in_memory()?;
    /// # let dataset = file.new_dataset::<u8>().shape([100]).chunk([10]).create("d")?;
    /// dataset.write(.., &[1u8; 100])?;
    /// dataset.read::<u8>(..)?;
    /// let enough = dataset.miss_ratio_curve().into_iter().find(|point| point.miss_ratio <= 0.5);
    /// assert!(enough.is_some_and(|point| point.bytes < 1 << 20));
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn miss_ratio_curve(&self) -> Vec<CurvePoint> {
        self.state.miss_ratio_curve()
    }

    fn info(&self, offset: &[u64], record: &ChunkRecord) -> ChunkInfo {
        ChunkInfo {
            offset: offset.to_vec(),
            address: self.state.medium().base().saturating_add(record.address),
            size: record.size,
            filter_mask: record.filter_mask,
        }
    }
}
