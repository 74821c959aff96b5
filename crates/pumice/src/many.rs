//! Several datasets in one call, and reading ahead.

use crate::Result;
use crate::dataset::Dataset;
use crate::select::Select;
use pumice_engine::buffer::Output;
use pumice_engine::dataset::{ManyRead, ManyWrite, read_many, write_many};
use pumice_types::Element;

/// Reads of several datasets that are done together: no write of any of them comes between, and
/// what lies together in the file is read together.
///
/// ```
/// # let file = pumice::File::in_memory()?;
/// let one = file.new_dataset::<u8>().shape([4]).chunk([2]).create("one")?;
/// let two = file.new_dataset::<u8>().shape([4]).chunk([2]).create("two")?;
/// let mut writes = pumice::WriteMany::new();
/// writes.add(&one, .., &[1u8; 4])?.add(&two, 1..3, &[2u8; 2])?;
/// writes.run()?;
///
/// let (mut first, mut second) = ([0u8; 2], [0u8; 4]);
/// let mut reads = pumice::ReadMany::new();
/// reads.add(&one, 0..2, &mut first)?.add(&two, .., &mut second)?;
/// reads.run()?;
/// assert_eq!((first, second), ([1, 1], [0, 2, 2, 0]));
/// # Ok::<(), pumice::Error>(())
/// ```
#[derive(Default)]
pub struct ReadMany<'a> {
    reads: Vec<ManyRead<'a>>,
}

impl<'a> ReadMany<'a> {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a read of the selected cells into `buffer`.
    pub fn add<T: Element>(
        &mut self,
        dataset: &'a Dataset,
        selection: impl Select,
        buffer: &'a mut [T],
    ) -> Result<&mut Self> {
        let selection = dataset.selection(selection)?;
        let output = Output::new(bytemuck::cast_slice_mut(buffer));
        let (dataset, memory_type) = (&*dataset.state, T::datatype());
        self.reads.push(ManyRead { dataset, selection, memory_type, output });
        Ok(self)
    }

    /// Does them all.
    pub fn run(self) -> Result<()> {
        read_many(self.reads)
    }
}

/// Writes to several datasets that are done together: nobody sees some of them and not the others.
/// See [`ReadMany`] for an example.
#[derive(Default)]
pub struct WriteMany<'a> {
    writes: Vec<ManyWrite<'a>>,
}

impl<'a> WriteMany<'a> {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a write of `values` to the selected cells.
    pub fn add<T: Element>(
        &mut self,
        dataset: &'a Dataset,
        selection: impl Select,
        values: &'a [T],
    ) -> Result<&mut Self> {
        dataset.make_room()?;
        let selection = dataset.selection(selection)?;
        let (dataset, memory_type) = (&*dataset.state, T::datatype());
        let bytes = bytemuck::cast_slice(values);
        self.writes.push(ManyWrite { dataset, selection, memory_type, bytes });
        Ok(self)
    }

    /// Does them all.
    pub fn run(self) -> Result<()> {
        write_many(self.writes)
    }
}

impl Dataset {
    /// Loads what is selected into the cache, on an idle thread if there is one: a read that comes
    /// later finds it there. Says whether that has begun.
    ///
    /// ```
    /// # let file = pumice::File::in_memory()?;
    /// # let dataset = file.new_dataset::<u8>().shape([100]).chunk([10]).create("a")?;
    /// dataset.prefetch(50..70)?;
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn prefetch(&self, selection: impl Select) -> Result<bool> {
        self.selected(selection, |selection, _| self.state.prefetch(selection))
    }

    /// Says what will be read next, selection by selection: the cache keeps those chunks rather than
    /// others, and idle threads load them a little ahead of the reads. Replaces what was said
    /// before; nothing is promised, and nothing else changes.
    ///
    /// ```
    /// # let file = pumice::File::in_memory()?;
    /// # let dataset = file.new_dataset::<u8>().shape([100]).chunk([10]).create("a")?;
    /// // Batches in the order in which they were drawn.
    /// let batches = [40..50, 0..10, 70..80];
    /// dataset.will_read(batches.clone())?;
    /// for batch in batches {
    ///     dataset.read::<u8>(batch)?;
    /// }
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn will_read<S: Select>(&self, selections: impl IntoIterator<Item = S>) -> Result<()> {
        let selections = selections.into_iter().map(|selection| self.selection(selection));
        let selections = selections.collect::<Result<Vec<_>>>()?;
        self.at(self.state.will_read(&selections))
    }
}
