//! Objects that elements refer to: finding them, and putting them where elements will refer to them.

use super::leaving::Gone;
use super::{GlobalHeap, parse};
use pumice_bytes::Writer as _;
use pumice_format::UNDEFINED;
use pumice_medium::MetadataIo;
use pumice_medium::{Error, Result};
use pumice_types::heaped::{self, ObjectSink};
use pumice_types::{Datatype, VarLen};

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

/// The sink for heaped objects.
pub(super) struct Sink<'a> {
    pub(super) heap: &'a GlobalHeap,
}

impl ObjectSink for Sink<'_> {
    type Error = Error;

    fn put(&mut self, object: &[u8], count: u32, reference: &mut [u8]) -> Result<()> {
        let (address, index) = self.heap.add(object)?;
        let width = usize::from(self.heap.medium.sizes().offset);
        let mut bytes = Vec::with_capacity(reference.len());
        bytes.put_u32(count);
        bytes.put_uint(address, width);
        bytes.put_u32(index);
        if bytes.len() != reference.len() {
            return Err(Error::Damaged(format!(
                "variable-length references of {} byte(s), where this file has {}",
                reference.len(),
                bytes.len()
            )));
        }
        reference.copy_from_slice(&bytes);
        Ok(())
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
