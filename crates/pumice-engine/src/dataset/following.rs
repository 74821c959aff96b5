//! Following references into the global heap on all threads.
//!
//! Elements are cut into parts. Each part is followed by one thread into a heap of its own; then the parts become one
//! heap, and the references move with them. Only references whose objects have none of their own are followed this way.

use super::DatasetState;
use crate::{Error, Result};
use pumice_types::heaped::{put_reference, reference_of};
use pumice_types::{Heaped, VarLen};
use std::sync::{Mutex, PoisonError};

/// Bytes of references that a thread follows at least: it takes longer than to wake another.
const PART: usize = 512 << 10;

/// A part of the elements, and the heap that its references lead to.
type Part<'a> = Mutex<(&'a mut [u8], Result<Vec<u8>>)>;

impl DatasetState {
    /// How many threads are to follow references of so many bytes.
    pub(super) fn followers(&self, bytes: usize) -> usize {
        self.cache().executor().threads().min(bytes / PART)
    }

    /// Follows the references of flat sequences in so many parts.
    pub(super) fn follow_in_parts(
        &self,
        mut elements: Vec<u8>,
        varlen: &VarLen,
        parts: usize,
    ) -> Result<Heaped> {
        let size = (varlen.size as usize).max(1);
        let step = (elements.len() / size).div_ceil(parts.max(1)).max(1) * size;
        let parts: Vec<Part<'_>> =
            elements.chunks_mut(step).map(|part| Mutex::new((part, Ok(Vec::new())))).collect();
        self.cache().executor().run(parts.len(), &|number| {
            let mut part = parts[number].lock().unwrap_or_else(PoisonError::into_inner);
            part.1 = self.heap.load_part(&self.datatype, part.0);
        });
        let mut heap: Vec<u8> = Vec::new();
        for part in parts {
            let (elements, found) = part.into_inner().unwrap_or_else(PoisonError::into_inner);
            let (found, base) = (found?, heap.len() as u64);
            if base == 0 {
                heap = found;
                continue;
            }
            let no_memory = |_| Error::NoMemory(format!("no memory for {} bytes", found.len()));
            heap.try_reserve(found.len()).map_err(no_memory)?;
            heap.extend_from_slice(&found);
            for reference in elements.chunks_exact_mut(size) {
                if let Some((count, place)) = reference_of(reference) {
                    put_reference(reference, count, place + base)?;
                }
            }
        }
        Ok(Heaped { elements, heap })
    }
}
