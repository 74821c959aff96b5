//! Objects that elements refer to: finding them, and putting them where elements will refer to them.

use super::leaving::Gone;
use super::write::Writing;
use super::{GlobalHeap, parse};
use pumice_format::UNDEFINED;
use pumice_medium::MetadataIo;
use pumice_medium::{Error, Result};
use pumice_types::heaped::{self, ObjectSink};
use pumice_types::{Datatype, VarLen};
use std::sync::MutexGuard;

/// An object that elements refer to.
#[derive(Clone, Copy)]
pub(super) struct Found {
    pub(super) address: u64,
    pub(super) index: u32,
    /// Its bytes, as the reference says.
    pub(super) bytes: usize,
}

impl Found {
    pub(super) fn gone(&self, moment: u64) -> Gone {
        Gone { address: self.address, index: self.index, moment }
    }
}

/// Objects that are put before others get a turn.
const TURN: usize = 1024;

/// The sink for heaped objects. It keeps other writers out for a while, because asking for each of a million strings takes
/// longer than storing them.
pub(super) struct Sink<'a> {
    heap: &'a GlobalHeap,
    writing: Option<MutexGuard<'a, Writing>>,
    /// Objects that were put since the last turn.
    put: usize,
}

impl<'a> Sink<'a> {
    pub(super) fn new(heap: &'a GlobalHeap) -> Result<Self> {
        heap.refuse_in_swmr()?;
        Ok(Self { heap, writing: None, put: 0 })
    }
}

impl ObjectSink for Sink<'_> {
    type Error = Error;

    fn put(&mut self, object: &[u8], count: u32, reference: &mut [u8]) -> Result<()> {
        if self.put == TURN {
            (self.writing, self.put) = (None, 0);
        }
        self.put += 1;
        let writing = self.writing.get_or_insert_with(|| self.heap.writing());
        let (address, index) = self.heap.add_to(writing, object)?;
        put_reference(reference, count, address, index, self.heap.medium.sizes().offset)
    }
}

/// Makes a reference of the file: count, address, index.
fn put_reference(
    reference: &mut [u8],
    count: u32,
    address: u64,
    index: u32,
    width: u8,
) -> Result<()> {
    let length = reference.len();
    let (count, index, address) = (count.to_le_bytes(), index.to_le_bytes(), address.to_le_bytes());
    let parts = reference
        .split_first_chunk_mut::<4>()
        .and_then(|(head, rest)| Some((head, rest.split_last_chunk_mut::<4>()?)));
    match parts {
        Some((head, (middle, tail))) if middle.len() == usize::from(width) => {
            (*head, *tail) = (count, index);
            middle.copy_from_slice(&address[..usize::from(width)]);
            Ok(())
        }
        _ => Err(Error::Damaged(format!(
            "variable-length references of {length} byte(s), where this file has {}",
            8 + usize::from(width)
        ))),
    }
}

/// The length of the object that a reference leads to.
pub(super) fn length(varlen: &VarLen, reference: &[u8]) -> usize {
    let count = reference.get(..4).and_then(|count| count.try_into().ok());
    let count = u32::from_le_bytes(count.unwrap_or_default()) as usize;
    count.saturating_mul(varlen.base.size())
}

/// Lists the objects that elements refer to, and those that these refer to.
pub(super) fn collect(
    heap: &GlobalHeap,
    datatype: &Datatype,
    elements: &mut [u8],
    width: u8,
    found: &mut Vec<Found>,
) -> Result<()> {
    heaped::for_each_reference(datatype, elements, &mut |varlen, reference| -> Result<()> {
        let id = reference.get(4..).unwrap_or_default();
        let (address, index) = parse(id, width)?;
        if address == 0 || address == UNDEFINED {
            return Ok(());
        }
        found.push(Found { address, index, bytes: length(varlen, reference) });
        if varlen.base.has_varlen() {
            // Objects that cannot be read cannot be given back either.
            if let Ok(mut object) = heap.object(id) {
                let size = varlen.base.size().max(1);
                let whole = object.len() / size * size;
                collect(heap, &varlen.base, &mut object[..whole], width, found)?;
            }
        }
        Ok(())
    })
}
