//! Chunks that other processes encode and one process stores, without ranks: a *parcel* is the stored chunks of
//! a dataset as bytes.
//!
//! Who stores hands out a [`template`]: a file with an empty dataset of the same description. Others write
//! their cells into copies of it and send what [`pack`] makes of them; [`unpack`] stores that as it is.
//! A chunk comes from one of them only: nothing is merged here.

use crate::entry::{NAME, empty_like};
use crate::wire::{In, Out};
use crate::{CollectiveError, Result};
use pumice::{AllocationTime, Dataset, File, MemoryStore};
use pumice_space::Dims;
use std::sync::Arc;

/// The bytes of a file whose dataset `bench` has the description of another, and no chunk.
///
/// ```
/// use pumice::{File, MemoryStore};
/// use pumice_collective::parcel::{pack, template, unpack};
/// use std::sync::Arc;
///
/// let file = File::in_memory()?;
/// let dataset = file.new_dataset::<u16>().shape([6, 4]).chunk([3, 4]).deflate(4).create("d")?;
///
/// let copy = File::options().edit_in(Arc::new(MemoryStore::new(template(&dataset)?)))?;
/// let bench = copy.dataset("bench")?;
/// bench.write((3..6, ..), &[7u16; 12])?;
/// assert_eq!(unpack(&dataset, &pack(&bench)?)?, 1);
/// assert_eq!(dataset.read::<u16>((2..4, 0))?, [0, 7]);
/// # Ok::<(), pumice_collective::CollectiveError>(())
/// ```
pub fn template(dataset: &Dataset) -> Result<Vec<u8>> {
    if dataset.chunk().is_none() || !dataset.as_engine().is_self_contained() {
        let what = "chunks encoded by others, of a dataset whose values are not in its chunks";
        return Err(pumice::Error::Unsupported(what.into()).into());
    }
    let store = Arc::new(MemoryStore::default());
    let file = File::options().create_in(store.clone())?;
    let builder = empty_like(&file, dataset).allocation_time(AllocationTime::Incremental);
    builder.create(NAME)?;
    file.close()?;
    Ok(store.to_vec())
}

/// The stored chunks of a dataset, with what describes them.
pub fn pack(dataset: &Dataset) -> Result<Vec<u8>> {
    dataset.flush()?;
    let engine = dataset.as_engine();
    let (mut out, mut chunks) = (Out::default(), engine.stored_chunks()?);
    while let Some((origin, _)) = engine.next_stored(&mut chunks)? {
        let Some((bytes, record)) = engine.read_chunk(&origin)? else { continue };
        out.dims(&origin);
        out.record(&record);
        out.bytes(&bytes);
    }
    Ok(out.0)
}

/// Stores the chunks of a parcel in a dataset; tells how many there were. They replace what is there.
pub fn unpack(dataset: &Dataset, parcel: &[u8]) -> Result<usize> {
    let (engine, mut parcel, mut count) = (dataset.as_engine(), In(parcel), 0);
    while !parcel.is_empty() {
        let (origin, record, bytes) = (parcel.dims()?, parcel.record()?, parcel.bytes()?);
        match record.sections.is_empty() {
            true => engine.write_chunk(&origin, bytes, record.filter_mask)?,
            false => engine.write_sections(&origin, record, bytes)?,
        }
        count += 1;
    }
    Ok(count)
}

/// Removes the chunks that begin in a box, which the next commit lets go of: what is stored there afterwards gets a
/// place of its own, and what was stored stays as it is until then.
pub fn remove(dataset: &Dataset, start: &[u64], shape: &[u64]) -> Result<()> {
    let none = || CollectiveError::from(pumice::Error::WrongKind("there are no chunks".into()));
    let (engine, chunk) = (dataset.as_engine(), dataset.chunk().ok_or_else(none)?);
    let (mut keys, mut chunks): (Vec<Dims>, _) = (Vec::new(), engine.stored_chunks()?);
    while let Some((origin, _)) = engine.next_stored(&mut chunks)? {
        let mut axes = origin.iter().zip(start).zip(shape);
        if axes.all(|((&at, &start), &side)| at >= start && at - start < side) {
            keys.push(origin.iter().zip(&chunk).map(|(at, side)| at / side).collect());
        }
    }
    Ok(engine.remove_chunks(&keys)?)
}
