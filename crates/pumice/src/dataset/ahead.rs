//! Saying what will be read, so that it is in memory by then.

use super::Dataset;
use crate::Result;
use crate::select::Select;

impl Dataset {
    /// Loads what is selected into the cache, on an idle thread if there is one: a read that comes
    /// later finds it there. Says whether that has begun.
    ///
    /// Only chunks are kept in the cache. Of contiguous, compact and external data nothing can be loaded ahead, nor of a
    /// dataset that goes [past the cache](crate::CacheOptions); the answer is `false` then. Of a virtual dataset, the
    /// chunks of its sources are loaded. Of strings and sequences that are not in structured chunks, the references
    /// are loaded, and not what they refer to.
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

    /// Says what will be read next, selection by selection: the cache keeps those chunks rather than
    /// others, and idle threads load them a little ahead of the reads. Replaces what was said
    /// before; nothing is promised, and nothing else changes.
    ///
    /// Says whether that is of any use: `false` for what never is in the cache, as with
    /// [`prefetch`](Self::prefetch). To each source of a virtual dataset it is said what of it will be read.
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
