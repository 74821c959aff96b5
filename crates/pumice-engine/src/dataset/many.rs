//! Several datasets in one request of the cache.
//!
//! A virtual dataset has no chunks, so it is read or written before the others. Elements that refer
//! to the global heap are written after the objects that they refer to, and followed after they are
//! read.

use super::windows::{LineSink, WindowPlan};
use super::{DatasetState, transfer::TransferOptions};
use crate::{Error, Result};
use pumice_layout::buffer::Output;
use pumice_layout::request::Piece;
use pumice_layout::{ReadRequest, Source, Storage, Target, WriteRequest};
use pumice_space::{ChunkPart, Dims, Plan, Selection};
use pumice_structures::global_heap::Reading;
use pumice_types::{Conversion, Datatype, Heaped, references};
use std::borrow::Cow;

/// A read that is part of one request.
pub struct ManyRead<'a> {
    /// The dataset.
    pub dataset: &'a DatasetState,
    /// The cells.
    pub selection: Selection,
    /// Where the elements go, and in which datatype.
    pub into: ReadInto<'a>,
}

/// The target of a read.
pub enum ReadInto<'a> {
    /// Elements of a datatype.
    Elements {
        /// The datatype in memory.
        memory_type: Datatype,
        /// Whereto.
        output: Output<'a>,
        /// How.
        options: &'a TransferOptions,
    },
    /// Elements of the file's type with everything that they refer to.
    Heaped(&'a mut Heaped),
    /// Compressed lines of a window, which stands for the selection.
    Lines {
        /// The rows and columns, and their chunks.
        plan: Box<WindowPlan>,
        /// Whereto.
        sink: Box<dyn LineSink + 'a>,
    },
}

/// A write that is part of one request.
pub struct ManyWrite<'a> {
    /// The dataset.
    pub dataset: &'a DatasetState,
    /// The cells.
    pub selection: Selection,
    /// The values.
    pub from: WriteFrom<'a>,
}

/// The source of a write.
#[derive(Clone)]
pub enum WriteFrom<'a> {
    /// Elements of a datatype.
    Elements {
        /// The datatype of the bytes.
        memory_type: Datatype,
        /// The values.
        bytes: &'a [u8],
        /// How.
        options: &'a TransferOptions,
    },
    /// Elements of the file's type, which refer to a heap.
    Heaped {
        /// The elements.
        elements: &'a [u8],
        /// The heap objects that the elements refer to.
        heap: &'a [u8],
    },
    /// Strings or sequences one after another: each from one of the offsets to the next.
    Lists {
        /// The offset of each in values of the file's type, and the end of the last.
        offsets: &'a [u64],
        /// The values.
        heap: &'a [u8],
    },
}

/// Does all reads as one request: no write to any of the datasets comes between them. Virtual
/// datasets, and windows that have to be searched, are read before the others, one by one.
pub fn read_many(mut reads: Vec<ManyRead<'_>>) -> Result<()> {
    let lent = reads.extract_if(.., |read| read.dataset.is_virtual());
    lent.into_iter().try_for_each(ManyRead::alone)?;
    let datasets = distinct(reads.iter().map(|read| read.dataset));
    let _in_hand = in_hand(&datasets);
    let _no_resize: Vec<_> = datasets.iter().map(|dataset| dataset.gate()).collect();
    let (mut planned, mut windows) = (Vec::with_capacity(reads.len()), Vec::new());
    for read in reads {
        match read.into {
            ReadInto::Lines { plan, sink } => {
                // The matrix may have been resized since the window was planned.
                plan.check(&read.dataset.dims())?;
                windows.push((read.dataset, plan, sink));
            }
            _ => planned.extend(read.plan()?),
        }
    }
    let mut targets = Vec::with_capacity(planned.len());
    for read in &mut planned {
        targets.push((read.dataset, read.parts.take(), read.place.target(read.dataset)?));
    }
    let first = targets.first().map(|(dataset, ..)| *dataset);
    let Some(first) = first.or(windows.first().map(|(dataset, ..)| *dataset)) else {
        return Ok(());
    };
    let cache = first.cache().clone();
    let values = targets.iter_mut().map(|(dataset, parts, target)| {
        let target = &*target;
        let request =
            move |part: ChunkPart| (part.chunk.clone(), ReadRequest::Values { part, target });
        let requests: Requests<'_> = Box::new(parts.take().into_iter().flatten().map(request));
        (&dataset.cached, requests)
    });
    let lines = windows.iter_mut().map(|(dataset, plan, _)| {
        let requests: Requests<'_> = Box::new(plan.requests());
        (&dataset.cached, requests)
    });
    cache.read_many(values.chain(lines))?;
    for (dataset, plan, mut sink) in windows {
        sink.put(*plan, dataset)?;
    }
    let pieces: Vec<_> = targets.into_iter().map(|(.., target)| target.into_pieces()).collect();
    planned.into_iter().zip(pieces).try_for_each(|(read, pieces)| read.finish(pieces))
}

/// Windows have a plan already, and virtual datasets have none.
fn planned_already() -> Error {
    Error::Internal("a window among elements".into())
}

/// The requests for the chunks of a dataset.
type Requests<'a> = Box<dyn Iterator<Item = (Dims, ReadRequest<'a>)> + 'a>;

/// A read that has been checked.
struct PlannedRead<'a> {
    dataset: &'a DatasetState,
    parts: Option<Plan>,
    place: Place<'a>,
}

/// The first target of a read.
enum Place<'a> {
    /// The final target.
    Elements(Datatype, Option<Output<'a>>, &'a TransferOptions),
    /// Elements in the file's type, and the buffer that gets them with their heap objects.
    Heaped(Vec<u8>, &'a mut Heaped),
}

impl<'a> ManyRead<'a> {
    fn alone(self) -> Result<()> {
        match self.into {
            ReadInto::Elements { memory_type, output, options } => {
                self.dataset.read_with(&self.selection, &memory_type, output, options)
            }
            ReadInto::Heaped(heaped) => {
                *heaped = self.dataset.read_heaped(&self.selection)?;
                Ok(())
            }
            ReadInto::Lines { .. } => Err(planned_already()),
        }
    }

    /// Checks the read; `None` if nothing is selected.
    fn plan(self) -> Result<Option<PlannedRead<'a>>> {
        let ManyRead { dataset, selection, into } = self;
        let dims = dataset.dims();
        let plain = TransferOptions::default();
        let (count, options, place) = match into {
            ReadInto::Elements { memory_type, output, options } => {
                let size = output.len();
                let count = dataset.check_with(&selection, &dims, &memory_type, size, options)?;
                (count, options, Place::Elements(memory_type, Some(output), options))
            }
            ReadInto::Heaped(heaped) => {
                selection.check(&dims)?;
                let count = dataset.count(&selection, &dims);
                *heaped = Heaped::default();
                (count, &plain, Place::Heaped(dataset.buffer(count)?, heaped))
            }
            ReadInto::Lines { .. } => return Err(planned_already()),
        };
        if count == 0 {
            return Ok(None);
        }
        let parts = Some(dataset.parts(&selection, &dims, options)?);
        Ok(Some(PlannedRead { dataset, parts, place }))
    }
}

impl Place<'_> {
    fn target<'t>(&'t mut self, dataset: &'t DatasetState) -> Result<Target<'t>> {
        match self {
            Place::Elements(memory_type, output, options) => {
                let output = output.take().ok_or_else(|| Error::Internal("no output".into()))?;
                dataset.target(memory_type, output, options)
            }
            Place::Heaped(elements, _) => {
                let datatype = &dataset.datatype;
                let conversion = Conversion::new(datatype, datatype)?;
                let output = Output::zeroed(elements);
                match &dataset.layout.storage {
                    // SAFETY: the target goes into the requests of one plan, which packs elements.
                    Storage::VariableLength(structured) => unsafe {
                        Target::heaped(output, conversion, structured.fill())
                    },
                    // SAFETY: likewise.
                    _ => unsafe { Target::new(output, conversion, dataset.layout.geometry.fill()) },
                }
            }
        }
    }
}

impl PlannedRead<'_> {
    /// Puts the pieces that were read into the buffer.
    fn finish(self, pieces: Vec<Piece>) -> Result<()> {
        let Place::Heaped(elements, heaped) = self.place else { return Ok(()) };
        *heaped = match &self.dataset.layout.storage {
            Storage::VariableLength(..) => self.dataset.join(elements, pieces)?,
            _ => self.dataset.follow(elements)?,
        };
        Ok(())
    }
}

/// Does all writes as one request: others see all of them or none. Virtual datasets are written
/// before the others, one by one. Nothing is written if a selection or a buffer is wrong.
pub fn write_many(mut writes: Vec<ManyWrite<'_>>) -> Result<()> {
    let datasets = distinct(writes.iter().map(|write| write.dataset));
    datasets.iter().try_for_each(|dataset| dataset.begin_write())?;
    let mut counts = Vec::with_capacity(writes.len());
    for write in &mut writes {
        counts.push(write.check()?);
    }
    let mut counts = counts.into_iter();
    writes.retain(|_| counts.next() != Some(0));
    let lent = writes.extract_if(.., |write| write.dataset.is_virtual());
    lent.into_iter().try_for_each(ManyWrite::alone)?;

    let renewing = distinct(writes.iter().filter(|write| write.renews()).map(|w| w.dataset));
    let _one_at_a_time: Vec<_> = renewing.iter().map(|dataset| dataset.replacing()).collect();
    let _in_hand = in_hand(&renewing);
    let renewals = writes.iter().map(ManyWrite::renew).collect::<Result<Vec<_>>>()?;

    let datasets = distinct(writes.iter().map(|write| write.dataset));
    let no_resize: Vec<_> = datasets.iter().map(|dataset| dataset.gate()).collect();
    let mut plans = Vec::with_capacity(writes.len());
    for (write, renewal) in writes.iter().zip(&renewals) {
        plans.push(write.plan(renewal.as_ref())?);
    }
    let Some(first) = writes.first() else { return Ok(()) };
    let cache = first.dataset.cache().clone();
    cache.write_many(writes.iter().zip(&mut plans).map(|(write, (parts, source))| {
        let source = &*source;
        let request =
            move |part: ChunkPart| (part.chunk.clone(), WriteRequest::Values { part, source });
        (&write.dataset.cached, parts.take().into_iter().flatten().map(request))
    }))?;
    // Of a request of many, with whatever else waits of their datasets.
    let through = distinct(writes.iter().filter(|write| write.goes_through()).map(|w| w.dataset));
    through.iter().try_for_each(|dataset| cache.flush(&dataset.cached, false))?;
    drop(no_resize);
    let renewals = writes.iter().zip(renewals);
    renewals.filter_map(|(write, renewal)| Some((write.dataset, renewal?))).try_for_each(
        |(dataset, Renewal { selection, dims, old, .. })| {
            dataset.leave_references(&selection, &dims, old)
        },
    )
}

/// The references that cells have, and the references that they get.
struct Renewal {
    selection: Selection,
    dims: Dims,
    old: Vec<u8>,
    new: Vec<u8>,
}

impl ManyWrite<'_> {
    /// Whether the values are to be stored before the call returns.
    fn goes_through(&self) -> bool {
        matches!(&self.from, WriteFrom::Elements { options, .. } if options.write_through)
    }

    /// Checks selection and buffer, and says how many cells there are.
    fn check(&mut self) -> Result<u64> {
        let (dataset, dims) = (self.dataset, self.dataset.dims());
        let plain = TransferOptions::default();
        if let WriteFrom::Lists { offsets, heap } = self.from {
            dataset.lists(offsets, heap)?;
        }
        let count = match &self.from {
            WriteFrom::Elements { memory_type, bytes, options } => {
                dataset.check_with(&self.selection, &dims, memory_type, bytes.len(), options)?
            }
            WriteFrom::Heaped { elements, .. } => {
                let datatype = &dataset.datatype;
                dataset.check_with(&self.selection, &dims, datatype, elements.len(), &plain)?
            }
            WriteFrom::Lists { offsets, .. } => {
                let (lists, datatype) = (offsets.len().saturating_sub(1), &dataset.datatype);
                let bytes = lists.saturating_mul(datatype.size());
                dataset.check_with(&self.selection, &dims, datatype, bytes, &plain)?
            }
        };
        if count > 0 && !dataset.is_virtual() {
            dataset.check_reach(&self.selection, &dims)?;
        }
        Ok(count)
    }

    fn alone(self) -> Result<()> {
        let ManyWrite { dataset, selection, from } = self;
        match from {
            WriteFrom::Elements { memory_type, bytes, options } => {
                dataset.write_with(&selection, &memory_type, bytes, options)
            }
            WriteFrom::Heaped { elements, heap } => {
                dataset.write_heaped(&selection, elements, heap)
            }
            WriteFrom::Lists { offsets, heap } => dataset.write_lists(&selection, offsets, heap),
        }
    }

    /// Whether the write replaces references to the global heap.
    fn renews(&self) -> bool {
        let heaped = !matches!(self.from, WriteFrom::Elements { .. });
        let structured = matches!(self.dataset.layout.storage, Storage::VariableLength(..));
        heaped && self.dataset.datatype.has_varlen() && !structured
    }

    /// Stores heap objects in the global heap, if the elements refer to it.
    fn renew(&self) -> Result<Option<Renewal>> {
        if !self.renews() {
            return Ok(None);
        }
        let dataset = self.dataset;
        let (elements, heap) = match self.from {
            WriteFrom::Heaped { elements, heap } => (Cow::Borrowed(elements), heap),
            WriteFrom::Lists { offsets, heap } => {
                let lists = dataset.lists(offsets, heap)?;
                (Cow::Owned(references(offsets, lists.base, lists.size)?), heap)
            }
            WriteFrom::Elements { .. } => return Ok(None),
        };
        let (selection, elements) = match dataset.last_values(&self.selection, &elements)? {
            Some((selection, elements)) => (selection, Cow::Owned(elements)),
            None => (self.selection.clone(), elements),
        };
        let dims = dataset.dims();
        let (old, new) = dataset.renew_references(&selection, &dims, &elements, heap)?;
        Ok(Some(Renewal { selection, dims, old, new }))
    }

    /// The source of each cell.
    fn plan<'s>(&'s self, renewal: Option<&'s Renewal>) -> Result<(Option<Plan>, Source<'s>)> {
        let (dataset, dims) = (self.dataset, self.dataset.dims());
        let (datatype, plain) = (&dataset.datatype, TransferOptions::default());
        let itself = || Conversion::new(datatype, datatype);
        let (selection, options, source) = match (renewal, &self.from) {
            (Some(Renewal { selection, new, .. }), _) => {
                (selection, &plain, Source::new(new, itself()?))
            }
            (None, WriteFrom::Elements { memory_type, bytes, options }) => {
                (&self.selection, *options, dataset.source(memory_type, bytes, options)?)
            }
            (None, WriteFrom::Heaped { elements, heap }) => {
                let source = match datatype.has_varlen() {
                    true => Source::heaped(elements, itself()?, heap),
                    false => Source::new(elements, itself()?),
                };
                (&self.selection, &plain, source)
            }
            (None, WriteFrom::Lists { offsets, heap }) => {
                let source = Source::lists(dataset.lists(offsets, heap)?, itself()?, heap);
                (&self.selection, &plain, source)
            }
        };
        // The extent may have changed since this was checked.
        selection.check(&dims)?;
        dataset.check_reach(selection, &dims)?;
        Ok((Some(dataset.parts(selection, &dims, options)?), source))
    }
}

/// Each dataset once, in an order that is the same for all callers.
fn distinct<'a>(datasets: impl Iterator<Item = &'a DatasetState>) -> Vec<&'a DatasetState> {
    let mut datasets: Vec<_> = datasets.collect();
    datasets.sort_by_key(|dataset| std::ptr::from_ref(*dataset));
    datasets.dedup_by_key(|dataset| std::ptr::from_ref(*dataset));
    datasets
}

/// Keeps the global heap objects of these datasets while references are in hand.
fn in_hand<'a>(datasets: &[&'a DatasetState]) -> Vec<Reading<'a>> {
    let referring = datasets.iter().filter(|dataset| dataset.uses_global_heap());
    referring.map(|dataset| dataset.heap.reading()).collect()
}

impl DatasetState {
    fn is_virtual(&self) -> bool {
        self.sources.is_some()
    }
}
