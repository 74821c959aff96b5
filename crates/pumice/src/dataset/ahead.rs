//! Prefetching, and announcing reads.

use super::Dataset;
use crate::Result;
use crate::select::Select;

impl Dataset {
    /// Loads the selected chunks into the cache, on an idle thread if there is one; a later read
    /// finds them there. Returns whether that has begun.
    ///
    /// Only chunks are kept in the cache. Contiguous, compact and external data cannot be loaded
    /// ahead, nor can a dataset that goes [past the cache](crate::CacheOptions); then the answer is
    /// `false`. Of a virtual dataset, the chunks of its sources are loaded. Of strings and
    /// sequences outside structured chunks, the references are loaded, not the text.
    ///
    /// ```
    /// # let file = pumice::File::in_memory()?;
    /// # let dataset = file.new_dataset::<u8>().shape([100]).chunk([10]).create("a")?;
    /// dataset.write(.., &[7u8; 100])?;
    /// assert!(dataset.prefetch(50..70)?);
    ///
    /// let contiguous = file.new_dataset::<u8>().shape([100]).create("b")?;
    /// assert!(!contiguous.prefetch(50..70)?);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn prefetch(&self, selection: impl Select) -> Result<bool> {
        self.selected(selection, |selection, _| self.state.prefetch(selection))
    }

    /// Announces the next reads, selection by selection: the cache prefers to keep these chunks,
    /// and idle threads load them a little ahead of the reads. Replaces an earlier announcement. It
    /// is a hint and changes nothing else.
    ///
    /// Returns whether that is of any use: `false` for data that are never in the cache, as with
    /// [`prefetch`](Self::prefetch). A virtual dataset announces to each source its part.
    ///
    /// ```
    /// # let file = pumice::File::in_memory()?;
    /// # let dataset = file.new_dataset::<u8>().shape([100]).chunk([10]).create("a")?;
    /// // Batches in the order in which they were drawn.
    /// let batches = [40..50, 0..10, 70..80];
    /// assert!(dataset.will_read(batches.clone())?);
    /// for batch in batches {
    ///     dataset.read::<u8>(batch)?;
    /// }
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn will_read<S: Select>(&self, selections: impl IntoIterator<Item = S>) -> Result<bool> {
        let selections: Vec<S> = selections.into_iter().collect();
        self.in_one_extent(|dims| {
            let selections = selections.iter().map(|selection| selection.select(dims));
            self.state.will_read(&selections.collect::<Result<Vec<_>>>()?)
        })
    }
}
