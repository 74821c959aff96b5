//! Several datasets in one request of the cache, and loading ahead.

use super::{DatasetState, transfer::TransferOptions};
use crate::Result;
use crate::buffer::Output;
use crate::layout::{ReadRequest, Source, Storage, Target, WriteRequest};
use pumice_space::Selection;
use pumice_types::{Conversion, Datatype};

/// A read, to be done with others.
pub struct ManyRead<'a> {
    /// Of which dataset.
    pub dataset: &'a DatasetState,
    /// Which cells.
    pub selection: Selection,
    /// As what.
    pub memory_type: Datatype,
    /// Whereto.
    pub output: Output<'a>,
}

/// A write, to be done with others.
pub struct ManyWrite<'a> {
    /// Of which dataset.
    pub dataset: &'a DatasetState,
    /// Which cells.
    pub selection: Selection,
    /// What the bytes are.
    pub memory_type: Datatype,
    /// The values.
    pub bytes: &'a [u8],
}

/// Does all reads as one request: no write of any of the datasets comes between them. Virtual datasets
/// come first, each for itself: their data are those of others.
pub fn read_many(reads: Vec<ManyRead<'_>>) -> Result<()> {
    let (lent, reads): (Vec<_>, Vec<_>) = reads
        .into_iter()
        .partition(|read| matches!(read.dataset.layout.storage, Storage::Virtual(_)));
    for ManyRead { dataset, selection, memory_type, output } in lent {
        dataset.read(&selection, &memory_type, output)?;
    }
    let datasets = distinct(reads.iter().map(|read| read.dataset));
    let _no_resize: Vec<_> = datasets.iter().map(|dataset| dataset.gate()).collect();
    let options = TransferOptions::default();
    let (mut plans, mut targets) = (Vec::new(), Vec::new());
    for ManyRead { dataset, selection, memory_type, output } in reads {
        let dims = dataset.dims();
        let size = output.len();
        if dataset.check_with(&selection, &dims, &memory_type, size, &options)? == 0 {
            continue;
        }
        let conversion = Conversion::new(&dataset.datatype, &memory_type)?;
        let target = Target::new(output, conversion, dataset.layout.geometry.fill())?;
        targets.push(target.members(dataset.lacks_parts(&memory_type)));
        plans.push((dataset, dataset.parts(&selection, &dims, &options)?));
    }
    let Some((first, _)) = plans.first() else { return Ok(()) };
    let cache = first.cache().clone();
    cache.read_many(plans.into_iter().zip(&targets).map(|((dataset, parts), target)| {
        let request = move |part: pumice_space::ChunkPart| {
            (part.chunk.clone(), ReadRequest::Values { part, target })
        };
        (&dataset.cached, parts.map(request))
    }))
}

/// Does all writes as one request: nobody sees some of them and not the others.
pub fn write_many(writes: Vec<ManyWrite<'_>>) -> Result<()> {
    let datasets = distinct(writes.iter().map(|write| write.dataset));
    datasets.iter().try_for_each(|dataset| dataset.begin_write())?;
    let _no_resize: Vec<_> = datasets.iter().map(|dataset| dataset.gate()).collect();
    let options = TransferOptions::default();
    let (mut plans, mut sources) = (Vec::new(), Vec::new());
    for ManyWrite { dataset, selection, memory_type, bytes } in writes {
        let dims = dataset.dims();
        if dataset.check_with(&selection, &dims, &memory_type, bytes.len(), &options)? == 0 {
            continue;
        }
        dataset.check_reach(&selection, &dims)?;
        let source = Source::new(bytes, Conversion::new(&memory_type, &dataset.datatype)?);
        sources.push(source.members(dataset.lacks_parts(&memory_type)));
        plans.push((dataset, dataset.parts(&selection, &dims, &options)?));
    }
    let Some((first, _)) = plans.first() else { return Ok(()) };
    let cache = first.cache().clone();
    cache.write_many(plans.into_iter().zip(&sources).map(|((dataset, parts), source)| {
        let request = move |part: pumice_space::ChunkPart| {
            (part.chunk.clone(), WriteRequest::Values { part, source })
        };
        (&dataset.cached, parts.map(request))
    }))
}

/// Each dataset once, in an order that is the same for all callers.
fn distinct<'a>(datasets: impl Iterator<Item = &'a DatasetState>) -> Vec<&'a DatasetState> {
    let mut datasets: Vec<_> = datasets.collect();
    datasets.sort_by_key(|dataset| std::ptr::from_ref(*dataset));
    datasets.dedup_by_key(|dataset| std::ptr::from_ref(*dataset));
    datasets
}

impl DatasetState {
    /// Says which cells will be read, in this order.
    pub fn will_read(&self, selections: &[Selection]) -> Result<()> {
        let _no_resize = self.gate();
        let dims = self.dims();
        let mut chunks = Vec::new();
        for selection in selections {
            selection.check(&dims)?;
            if self.count(selection, &dims) > 0 {
                let parts = self.parts(selection, &dims, &TransferOptions::default())?;
                chunks.extend(parts.map(|part| part.chunk));
            }
        }
        self.cache().will_read(&self.cached, chunks);
        Ok(())
    }

    /// Loads the chunks of the selected cells; says whether that has begun.
    pub fn prefetch(&self, selection: &Selection) -> Result<bool> {
        let _no_resize = self.gate();
        let dims = self.dims();
        selection.check(&dims)?;
        if self.count(selection, &dims) == 0 {
            return Ok(false);
        }
        let parts = self.parts(selection, &dims, &TransferOptions::default())?;
        Ok(self.cache().prefetch(&self.cached, parts.map(|part| part.chunk)))
    }
}
