//! Several datasets in one call.

use crate::convert::compressed::window::{window_of, window_of_rows};
use crate::dataset::Dataset;
use crate::dataset::steady::in_one_extent_each;
use crate::select::Select;
use crate::transfer::Transfer;
use crate::{Compressed, Lines, Result};
use pumice_engine::Error;
use pumice_engine::dataset::{
    LineSink, ManyRead, ManyWrite, ReadInto, TransferOptions, Window, WriteFrom, read_many,
    write_many,
};
use pumice_layout::buffer::Output;
use pumice_space::Dims;
use pumice_types::{Datatype, Element, Heaped, Sequences, Strings, Value};
use std::borrow::Cow;
use std::fmt::{self, Debug, Formatter};

/// Reads of several datasets as one request: no write of any of them comes between, and neighbours
/// in the file are read together.
///
/// Datasets may have any layout and any datatype, and be of several files of one
/// [`Context`](crate::Context). A virtual dataset has no data of its own: it is read before the
/// others, and writes to its sources may come between.
///
/// ```
/// use pumice::{File, ReadMany, Strings, WriteMany};
///
/// let file = File::in_memory()?;
/// let one = file.new_dataset::<u8>().shape([4]).chunk([2]).create("one")?;
/// let two = file.new_dataset::<u8>().shape([4]).chunk([2]).create("two")?;
/// let names = file.new_strings().shape([2]).create("names")?;
/// let mut writes = WriteMany::new();
/// writes.add(&one, .., &[1u8; 4])?.add(&two, 1..3, &[2u8; 2])?;
/// writes.add_strings(&names, .., &["sea", "sun"])?;
/// writes.run()?;
///
/// let (mut first, mut second, mut texts) = ([0u8; 2], [0u8; 4], Strings::default());
/// let mut reads = ReadMany::new();
/// reads.add(&one, 0..2, &mut first)?.add(&two, .., &mut second)?;
/// reads.add_strings(&names, .., &mut texts)?;
/// reads.run()?;
/// assert_eq!((first, second), ([1, 1], [0, 2, 2, 0]));
/// assert_eq!(texts, ["sea", "sun"]);
/// # Ok::<(), pumice::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct ReadMany<'a> {
    reads: Vec<Part<'a, Into<'a>>>,
}

/// The part of one dataset.
struct Part<'a, B> {
    dataset: &'a Dataset,
    /// Becomes a selection of the extent that the dataset has when it is used.
    selection: Box<dyn Select + Send + 'a>,
    buffer: B,
}

/// The target of a read.
enum Into<'a> {
    Elements { datatype: Datatype, buffer: &'a mut [u8], options: Box<TransferOptions> },
    Heaped { found: Heaped, deliver: Deliver<'a> },
    Lines(Box<dyn Batch + 'a>),
}

/// Compressed lines that are read with others.
trait Batch: Send {
    /// The rows, if they are named one by one; else the selection counts.
    fn rows(&self) -> Option<&[u64]>;

    /// The sink for the lines.
    fn sink(&mut self) -> Box<dyn LineSink + '_>;

    /// Reads the window alone.
    fn look_for(&mut self, dataset: &Dataset, window: &Window, shape: &Dims) -> Result<()>;
}

struct Lined<'a, T> {
    rows: Option<&'a [u64]>,
    found: &'a mut Compressed<T>,
}

impl<T: Element> Batch for Lined<'_, T> {
    fn rows(&self) -> Option<&[u64]> {
        self.rows
    }

    fn sink(&mut self) -> Box<dyn LineSink + '_> {
        self.found.first = 0;
        Box::new(self.found.room())
    }

    fn look_for(&mut self, dataset: &Dataset, window: &Window, shape: &Dims) -> Result<()> {
        *self.found = dataset.look_for(window, shape, self.found.lines)?;
        Ok(())
    }
}

/// Takes the elements that were read, in the dataset's type.
type Deliver<'a> = Box<dyn FnMut(&Datatype, Heaped) -> Result<()> + Send + 'a>;

impl<B> Debug for Part<'_, B> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        self.dataset.fmt(formatter)
    }
}

impl<'a, B> Part<'a, B> {
    fn new(dataset: &'a Dataset, selection: impl Select + Send + 'a, buffer: B) -> Result<Self> {
        // A wrong selection is reported now.
        dataset.selection(&selection)?;
        Ok(Self { dataset, selection: Box::new(selection), buffer })
    }
}

/// The datasets of all parts.
fn datasets<'a, B>(parts: &[Part<'a, B>]) -> Vec<&'a Dataset> {
    parts.iter().map(|part| part.dataset).collect()
}

impl<'a> ReadMany<'a> {
    /// An empty list of reads.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a read of the selected cells into `buffer`. A range such as `..` is that of the
    /// dataset's extent when all are read.
    pub fn add<T: Element>(
        &mut self,
        dataset: &'a Dataset,
        selection: impl Select + Send + 'a,
        buffer: &'a mut [T],
    ) -> Result<&mut Self> {
        self.add_with(dataset, selection, buffer, &Transfer::default())
    }

    /// Adds a read with the options of `transfer`; see [`add`](Self::add).
    ///
    /// ```
    /// use pumice::{File, ReadMany, Selection, Transfer};
    ///
    /// let file = File::in_memory()?;
    /// let heat = file.new_dataset::<i16>().shape([2]).create("fahrenheit")?;
    /// heat.write(.., &[32i16, 212])?;
    /// let (celsius, mut buffer) = (Transfer::new().transform("(5.0/9)*(x-32)")?, [7.0f64; 4]);
    /// let places = Selection::hyperslab(&[1], &[2], &[2], &[1])?;
    /// let mut reads = ReadMany::new();
    /// reads.add_with(&heat, .., &mut buffer, &celsius.memory(places, [4]))?;
    /// reads.run()?;
    /// assert_eq!(buffer, [7.0, 0.0, 7.0, 100.0]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn add_with<T: Element>(
        &mut self,
        dataset: &'a Dataset,
        selection: impl Select + Send + 'a,
        buffer: &'a mut [T],
        transfer: &Transfer,
    ) -> Result<&mut Self> {
        let buffer = bytemuck::cast_slice_mut(buffer);
        self.add_as(dataset, selection, &T::datatype(), buffer, transfer)
    }

    /// Adds a read into packed elements of any datatype that the dataset's converts to.
    pub fn add_as(
        &mut self,
        dataset: &'a Dataset,
        selection: impl Select + Send + 'a,
        datatype: &Datatype,
        buffer: &'a mut [u8],
        transfer: &Transfer,
    ) -> Result<&mut Self> {
        let (datatype, options) = (datatype.clone(), Box::new(transfer.0.clone()));
        let into = Into::Elements { datatype, buffer, options };
        self.reads.push(Part::new(dataset, selection, into)?);
        Ok(self)
    }

    /// Adds a read of strings of variable or fixed length. Null gives an empty string.
    pub fn add_strings(
        &mut self,
        dataset: &'a Dataset,
        selection: impl Select + Send + 'a,
        strings: &'a mut Strings,
    ) -> Result<&mut Self> {
        self.add_delivered(dataset, selection, move |datatype, heaped| {
            *strings = Strings::from_heaped(datatype, heaped)?;
            Ok(())
        })
    }

    /// Adds a read of sequences of variable length, their values converted to `T`. Null gives an empty one.
    pub fn add_sequences<T: Element + Send>(
        &mut self,
        dataset: &'a Dataset,
        selection: impl Select + Send + 'a,
        sequences: &'a mut Sequences<T>,
    ) -> Result<&mut Self> {
        self.add_delivered(dataset, selection, move |datatype, heaped| {
            *sequences = Sequences::from_heaped(datatype, &heaped)?;
            Ok(())
        })
    }

    /// Adds a read of elements of any datatype, however nested, as owned values.
    pub fn add_values(
        &mut self,
        dataset: &'a Dataset,
        selection: impl Select + Send + 'a,
        values: &'a mut Vec<Value>,
    ) -> Result<&mut Self> {
        self.add_delivered(dataset, selection, move |datatype, heaped| {
            *values = heaped.values(datatype)?;
            Ok(())
        })
    }

    /// Adds a read of elements in the dataset's own type, with everything that they refer to.
    pub fn add_heaped(
        &mut self,
        dataset: &'a Dataset,
        selection: impl Select + Send + 'a,
        heaped: &'a mut Heaped,
    ) -> Result<&mut Self> {
        self.add_delivered(dataset, selection, move |_, found| {
            *heaped = found;
            Ok(())
        })
    }

    /// Adds a read of some rows of a matrix, as [`Dataset::read_rows_into`] does it.
    ///
    /// ```
    /// use pumice::{Compressed, File, Lines, ReadMany};
    ///
    /// let file = File::in_memory()?;
    /// let matrix = file.new_dataset::<f32>().shape([4, 5]).sparse().create("matrix")?;
    /// matrix.write_points(&[[0, 4], [2, 1]], &[1f32, 2.0])?;
    /// let [mut one, mut two] = [(); 2].map(|()| Compressed::<f32>::new(Lines::Rows));
    /// let mut reads = ReadMany::new();
    /// reads.add_rows(&matrix, &[2, 3], &mut one)?.add_rows(&matrix, &[0], &mut two)?;
    /// reads.run()?;
    /// assert_eq!((one.values, two.values), (vec![2.0], vec![1.0]));
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn add_rows<T: Element>(
        &mut self,
        dataset: &'a Dataset,
        rows: &'a [u64],
        found: &'a mut Compressed<T>,
    ) -> Result<&mut Self> {
        found.lines = Lines::Rows;
        self.add_lines(dataset, .., Lined { rows: Some(rows), found })
    }

    /// Adds a read of a window of a matrix, as [`Dataset::read_compressed_into`] does it.
    pub fn add_compressed<T: Element>(
        &mut self,
        dataset: &'a Dataset,
        selection: impl Select + Send + 'a,
        found: &'a mut Compressed<T>,
    ) -> Result<&mut Self> {
        self.add_lines(dataset, selection, Lined { rows: None, found })
    }

    fn add_lines(
        &mut self,
        dataset: &'a Dataset,
        selection: impl Select + Send + 'a,
        batch: impl Batch + 'a,
    ) -> Result<&mut Self> {
        dataset.require_matrix()?;
        self.reads.push(Part::new(dataset, selection, Into::Lines(Box::new(batch)))?);
        Ok(self)
    }

    fn add_delivered(
        &mut self,
        dataset: &'a Dataset,
        selection: impl Select + Send + 'a,
        deliver: impl FnMut(&Datatype, Heaped) -> Result<()> + Send + 'a,
    ) -> Result<&mut Self> {
        let into = Into::Heaped { found: Heaped::default(), deliver: Box::new(deliver) };
        self.reads.push(Part::new(dataset, selection, into)?);
        Ok(self)
    }

    /// Does them all.
    pub fn run(mut self) -> Result<()> {
        in_one_extent_each(&datasets(&self.reads), || {
            let mut reads = Vec::with_capacity(self.reads.len());
            for part in &mut self.reads {
                let (dataset, state) = (part.dataset, &part.dataset.state);
                let selection = dataset.selection(&part.selection)?;
                let into = match &mut part.buffer {
                    Into::Elements { datatype, buffer, options } => ReadInto::Elements {
                        memory_type: datatype.clone(),
                        output: Output::new(buffer),
                        options,
                    },
                    Into::Heaped { found, .. } => ReadInto::Heaped(found),
                    Into::Lines(batch) => {
                        let shape = state.dims();
                        let window = match batch.rows() {
                            Some(rows) => window_of_rows(rows, &shape)?,
                            None => window_of(&selection, &shape)?,
                        };
                        let Some(plan) = state.plan_window(&window)? else {
                            batch.look_for(dataset, &window, &shape)?;
                            continue;
                        };
                        ReadInto::Lines { plan: Box::new(plan), sink: batch.sink() }
                    }
                };
                reads.push(ManyRead { dataset: state, selection, into });
            }
            read_many(reads)
        })?;
        self.reads.into_iter().try_for_each(|part| match part.buffer {
            Into::Elements { .. } | Into::Lines(_) => Ok(()),
            Into::Heaped { found, mut deliver } => {
                part.dataset.at(deliver(part.dataset.datatype(), found))
            }
        })
    }
}

/// Writes to several datasets as one request: others see all of them or none. See [`ReadMany`] for
/// an example.
///
/// A virtual dataset has no data of its own: it is written before the others. Selections and
/// buffers are checked before anything is written.
#[derive(Debug, Default)]
pub struct WriteMany<'a> {
    writes: Vec<Part<'a, From<'a>>>,
}

/// The source of a write.
enum From<'a> {
    Elements { datatype: Datatype, bytes: Cow<'a, [u8]>, options: Box<TransferOptions> },
    Heaped(Cow<'a, Heaped>),
    Strings(Cow<'a, Strings>),
    Lists { offsets: &'a [u64], heap: Vec<u8> },
}

impl From<'_> {
    fn source(&self) -> WriteFrom<'_> {
        match self {
            From::Elements { datatype, bytes, options } => {
                WriteFrom::Elements { memory_type: datatype.clone(), bytes, options }
            }
            From::Heaped(heaped) => {
                WriteFrom::Heaped { elements: &heaped.elements, heap: &heaped.heap }
            }
            From::Strings(strings) => {
                WriteFrom::Lists { offsets: strings.offsets(), heap: strings.bytes() }
            }
            From::Lists { offsets, heap } => WriteFrom::Lists { offsets, heap },
        }
    }
}

impl<'a> WriteMany<'a> {
    /// An empty list of writes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a write of `values` to the selected cells. A range such as `..` is that of the
    /// dataset's extent when all are written.
    pub fn add<T: Element>(
        &mut self,
        dataset: &'a Dataset,
        selection: impl Select + Send + 'a,
        values: &'a [T],
    ) -> Result<&mut Self> {
        self.add_with(dataset, selection, values, &Transfer::default())
    }

    /// Adds a write with the options of `transfer`; see [`add`](Self::add).
    pub fn add_with<T: Element>(
        &mut self,
        dataset: &'a Dataset,
        selection: impl Select + Send + 'a,
        values: &'a [T],
        transfer: &Transfer,
    ) -> Result<&mut Self> {
        let bytes = bytemuck::cast_slice(values);
        self.add_as(dataset, selection, &T::datatype(), bytes, transfer)
    }

    /// Adds a write of packed elements of any datatype that converts to the dataset's.
    pub fn add_as(
        &mut self,
        dataset: &'a Dataset,
        selection: impl Select + Send + 'a,
        datatype: &Datatype,
        bytes: &'a [u8],
        transfer: &Transfer,
    ) -> Result<&mut Self> {
        let (datatype, options) = (datatype.clone(), Box::new(transfer.0.clone()));
        let bytes = Cow::Borrowed(bytes);
        self.push(dataset, selection, From::Elements { datatype, bytes, options })
    }

    /// Adds a write of strings of variable or fixed length.
    pub fn add_strings<S: AsRef<[u8]>>(
        &mut self,
        dataset: &'a Dataset,
        selection: impl Select + Send + 'a,
        strings: &[S],
    ) -> Result<&mut Self> {
        self.add_text(dataset, selection, Cow::Owned(strings.iter().collect()))
    }

    /// [`add_strings`](Self::add_strings) from one buffer, which is not copied unless the strings
    /// have a fixed length.
    pub fn add_packed_strings(
        &mut self,
        dataset: &'a Dataset,
        selection: impl Select + Send + 'a,
        strings: &'a Strings,
    ) -> Result<&mut Self> {
        self.add_text(dataset, selection, Cow::Borrowed(strings))
    }

    fn add_text(
        &mut self,
        dataset: &'a Dataset,
        selection: impl Select + Send + 'a,
        strings: Cow<'a, Strings>,
    ) -> Result<&mut Self> {
        let from = match dataset.fixed_strings(&strings)? {
            Some(elements) => From::Elements {
                datatype: dataset.datatype().clone(),
                bytes: Cow::Owned(elements),
                options: Box::default(),
            },
            None => From::Strings(strings),
        };
        self.push(dataset, selection, from)
    }

    /// Adds a write of sequences, their values converted to the file's type.
    ///
    /// ```
    /// use pumice::{Datatype, File, ReadMany, Sequences, WriteMany};
    ///
    /// let file = File::in_memory()?;
    /// let walks = file.new_sequences(Datatype::i16_le()).shape([100]).sparse().create("walks")?;
    /// let two: Sequences<i32> = [vec![1, 2, 3], vec![]].into_iter().collect();
    /// let mut writes = WriteMany::new();
    /// writes.add_sequences(&walks, 7..9, &two)?;
    /// writes.run()?;
    ///
    /// let mut found = Sequences::<i64>::default();
    /// let mut reads = ReadMany::new();
    /// reads.add_sequences(&walks, 6..9, &mut found)?;
    /// reads.run()?;
    /// assert_eq!((found.len(), &found[1]), (3, &[1, 2, 3][..]));
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn add_sequences<T: Element>(
        &mut self,
        dataset: &'a Dataset,
        selection: impl Select + Send + 'a,
        sequences: &'a Sequences<T>,
    ) -> Result<&mut Self> {
        let heap = dataset.sequence_values(sequences)?;
        self.push(dataset, selection, From::Lists { offsets: sequences.offsets(), heap })
    }

    /// Adds a write of values of any datatype, however nested.
    pub fn add_values(
        &mut self,
        dataset: &'a Dataset,
        selection: impl Select + Send + 'a,
        values: &[Value],
    ) -> Result<&mut Self> {
        let heaped = Heaped::from_values(dataset.datatype(), values).map_err(Error::from);
        self.push(dataset, selection, From::Heaped(Cow::Owned(dataset.at(heaped)?)))
    }

    /// Adds a write of elements of the dataset's own type with everything that they refer to.
    pub fn add_heaped(
        &mut self,
        dataset: &'a Dataset,
        selection: impl Select + Send + 'a,
        values: &'a Heaped,
    ) -> Result<&mut Self> {
        self.push(dataset, selection, From::Heaped(Cow::Borrowed(values)))
    }

    fn push(
        &mut self,
        dataset: &'a Dataset,
        selection: impl Select + Send + 'a,
        from: From<'a>,
    ) -> Result<&mut Self> {
        dataset.make_room()?;
        self.writes.push(Part::new(dataset, selection, from)?);
        Ok(self)
    }

    /// Does them all.
    pub fn run(self) -> Result<()> {
        in_one_extent_each(&datasets(&self.writes), || {
            let writes = self.writes.iter().map(|part| {
                let selection = part.dataset.selection(&part.selection)?;
                let from = part.buffer.source();
                Ok(ManyWrite { dataset: &part.dataset.state, selection, from })
            });
            write_many(writes.collect::<Result<Vec<_>>>()?)
        })
    }
}
