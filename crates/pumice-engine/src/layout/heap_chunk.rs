//! A decoded chunk with variable-length data: defined cells, elements with references, and the heap
//! that these refer to.
//!
//! The elements are [heaped]: no value has an allocation of its own. A value
//! that is overwritten or erased leaves its bytes behind as waste, until so much is wasted that the
//! heap is made anew. In a chunk of a dense dataset every cell is defined.

use super::request::{Piece, Source, Target};
use super::sparse_chunk::{SparseChunk, collect};
use crate::{Error, Result};
use pumice_space::{CellSet, Run, Segment};
use pumice_types::heaped::{self, InMemory};
use pumice_types::{Datatype, Heaped};

/// Cells, elements and heap.
#[derive(Clone, Debug)]
pub struct HeapChunk {
    /// Cells and elements.
    pub entries: SparseChunk,
    /// What the elements refer to; empty while they are not resident.
    pub heap: Vec<u8>,
    /// Bytes of the heap that nothing refers to.
    waste: u64,
}

impl HeapChunk {
    /// A chunk of these entries, all of whose heap is in use.
    pub fn new(entries: SparseChunk, heap: Vec<u8>) -> Self {
        Self { entries, heap, waste: 0 }
    }

    /// Bytes in memory, used and allocated.
    pub fn footprint(&self) -> (usize, usize) {
        let (used, allocated) = self.entries.footprint();
        (used + self.heap.len(), allocated + self.heap.capacity())
    }

    /// Bytes of the heap that nothing refers to.
    pub fn waste(&self) -> u64 {
        self.waste
    }

    fn elements(&self) -> &[u8] {
        self.entries.values()
    }

    /// Forgets everything but the defined cells.
    pub fn drop_values(&mut self) -> bool {
        (self.heap, self.waste) = (Vec::new(), 0);
        self.entries.values.take().is_some()
    }

    /// Gives back memory that is not used.
    pub fn condense(&mut self) {
        self.entries.condense();
        self.heap.shrink_to_fit();
    }

    /// Defines the cells of `segments` with values of the source.
    pub fn define(
        &mut self,
        datatype: &Datatype,
        segments: impl Iterator<Item = Segment> + Clone,
        source: &Source<'_>,
    ) -> Result<()> {
        let heap = source.heap().ok_or_else(no_heap)?;
        let (cells, mut elements) = collect(self.entries.cells.cells(), segments, source)?;
        self.count_waste(datatype, &cells)?;
        heaped::adopt(datatype, &mut elements, &mut self.heap, 0, heap)?;
        self.entries.define(datatype.size(), cells, elements);
        Ok(())
    }

    /// Makes cells undefined.
    pub fn erase(&mut self, datatype: &Datatype, cells: &CellSet) -> Result<()> {
        self.count_waste(datatype, cells)?;
        self.entries.erase(datatype.size(), cells);
        Ok(())
    }

    /// Gives cells the element `fill`.
    pub fn fill(&mut self, datatype: &Datatype, cells: &CellSet, fill: &Heaped) -> Result<()> {
        self.count_waste(datatype, cells)?;
        let mut elements = fill.elements.repeat(cells.len() as usize);
        heaped::adopt(datatype, &mut elements, &mut self.heap, 0, &fill.heap)?;
        self.entries.define(datatype.size(), cells.clone(), elements);
        Ok(())
    }

    /// Counts what the values of `cells`, which are about to go, leave behind.
    fn count_waste(&mut self, datatype: &Datatype, cells: &CellSet) -> Result<()> {
        if self.heap.is_empty() {
            return Ok(());
        }
        let (size, held) = (datatype.size(), self.elements());
        let mut waste = 0;
        for piece in self.entries.cells.overlaps(cells.runs()) {
            let start = piece.position as usize * size;
            let gone = &held[start..start + piece.len as usize * size];
            waste += heaped::payload_bytes(datatype, gone, &self.heap)?;
        }
        self.waste += waste;
        Ok(())
    }

    /// Makes the heap anew, in the order of the cells, if more than `percent` of it is waste.
    pub fn compact(&mut self, datatype: &Datatype, percent: u32) -> Result<()> {
        if self.waste.saturating_mul(100) <= self.heap.len() as u64 * u64::from(percent) {
            return Ok(());
        }
        let mut heap = Vec::with_capacity(self.heap.len().saturating_sub(self.waste as usize));
        if let Some(elements) = self.entries.values_mut() {
            heaped::load(datatype, elements, &mut heap, &mut InMemory(&self.heap))?;
        }
        (self.heap, self.waste) = (heap, 0);
        Ok(())
    }

    /// Answers a read of values; the caller has put the fill value everywhere.
    pub fn scatter(
        &self,
        datatype: &Datatype,
        segments: impl Iterator<Item = Segment>,
        target: &Target<'_>,
    ) -> Result<()> {
        let base = target.open_piece().ok_or_else(no_heap)?;
        let (size, held) = (datatype.size(), self.elements());
        let mut piece = Piece { first: u64::MAX, bytes: Vec::new() };
        let heap = &mut piece.bytes;
        let mut cursor = self.entries.cells.cursor();
        let mut done = Ok(());
        for segment in segments {
            piece.first = piece.first.min(segment.memory);
            let wanted = Run { start: segment.cell, len: segment.len };
            cursor.for_each(wanted, |piece| {
                let start = piece.position as usize * size;
                let mut elements = held[start..start + piece.len as usize * size].to_vec();
                let memory = segment.memory + (piece.cell - segment.cell);
                let placed = heaped::adopt(datatype, &mut elements, heap, base, &self.heap)
                    .map_err(Error::from)
                    .and_then(|()| target.place(memory, &elements));
                if let Err(error) = placed {
                    done = Err(error);
                }
            });
        }
        target.put_piece(base, piece);
        done
    }

    /// The part of the chunk that lies in `wanted`.
    pub fn extract(&self, datatype: &Datatype, wanted: &CellSet) -> Result<(CellSet, Heaped)> {
        let (cells, mut elements) = self.entries.extract(datatype.size(), wanted);
        let mut heap = Vec::new();
        heaped::adopt(datatype, &mut elements, &mut heap, 0, &self.heap)?;
        Ok((cells, Heaped { elements, heap }))
    }
}

pub(super) fn no_heap() -> Error {
    Error::Invalid(
        "elements of variable length are stored with their chunk: read and write strings, \
         sequences or values, not references"
            .into(),
    )
}
