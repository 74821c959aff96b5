//! Several datasets in one call, and reading ahead.

use crate::Result;
use crate::dataset::Dataset;
use crate::dataset::steady::in_one_extent_each;
use crate::select::Select;
use pumice_engine::buffer::Output;
use pumice_engine::dataset::{ManyRead, ManyWrite, read_many, write_many};
use pumice_types::{Datatype, Element};

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
    reads: Vec<Part<'a, &'a mut [u8]>>,
}

/// What is read or written of one dataset.
struct Part<'a, B> {
    dataset: &'a Dataset,
    /// Becomes a selection of the extent that the dataset has when it is used.
    selection: Box<dyn Select + Send + 'a>,
    memory_type: Datatype,
    buffer: B,
}

impl<'a, B> Part<'a, B> {
    fn new<T: Element>(
        dataset: &'a Dataset,
        selection: impl Select + Send + 'a,
        buffer: B,
    ) -> Result<Self> {
        // What cannot be selected is told now.
        dataset.selection(&selection)?;
        Ok(Self { dataset, selection: Box::new(selection), memory_type: T::datatype(), buffer })
    }
}

/// The datasets of all parts.
fn datasets<'a, B>(parts: &[Part<'a, B>]) -> Vec<&'a Dataset> {
    parts.iter().map(|part| part.dataset).collect()
}

impl<'a> ReadMany<'a> {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a read of the selected cells into `buffer`. A range such as `..` is that of the extent that the
    /// dataset has when all are read.
    pub fn add<T: Element>(
        &mut self,
        dataset: &'a Dataset,
        selection: impl Select + Send + 'a,
        buffer: &'a mut [T],
    ) -> Result<&mut Self> {
        let buffer = bytemuck::cast_slice_mut(buffer);
        self.reads.push(Part::new::<T>(dataset, selection, buffer)?);
        Ok(self)
    }

    /// Does them all.
    pub fn run(mut self) -> Result<()> {
        in_one_extent_each(&datasets(&self.reads), || {
            let reads = self.reads.iter_mut().map(|part| {
                Ok(ManyRead {
                    dataset: &part.dataset.state,
                    selection: part.dataset.selection(&part.selection)?,
                    memory_type: part.memory_type.clone(),
                    output: Output::new(part.buffer),
                })
            });
            read_many(reads.collect::<Result<Vec<_>>>()?)
        })
    }
}

/// Writes to several datasets that are done together: nobody sees some of them and not the others.
/// See [`ReadMany`] for an example.
#[derive(Default)]
pub struct WriteMany<'a> {
    writes: Vec<Part<'a, &'a [u8]>>,
}

impl<'a> WriteMany<'a> {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a write of `values` to the selected cells. A range such as `..` is that of the extent that the
    /// dataset has when all are written.
    pub fn add<T: Element>(
        &mut self,
        dataset: &'a Dataset,
        selection: impl Select + Send + 'a,
        values: &'a [T],
    ) -> Result<&mut Self> {
        dataset.make_room()?;
        let bytes = bytemuck::cast_slice(values);
        self.writes.push(Part::new::<T>(dataset, selection, bytes)?);
        Ok(self)
    }

    /// Does them all.
    pub fn run(self) -> Result<()> {
        in_one_extent_each(&datasets(&self.writes), || {
            let writes = self.writes.iter().map(|part| {
                Ok(ManyWrite {
                    dataset: &part.dataset.state,
                    selection: part.dataset.selection(&part.selection)?,
                    memory_type: part.memory_type.clone(),
                    bytes: part.buffer,
                })
            });
            write_many(writes.collect::<Result<Vec<_>>>()?)
        })
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
        let selections: Vec<S> = selections.into_iter().collect();
        self.in_one_extent(|dims| {
            let selections = selections.iter().map(|selection| selection.select(dims));
            self.state.will_read(&selections.collect::<Result<Vec<_>>>()?)
        })
    }
}
