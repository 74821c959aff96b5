//! Copies the elements of a dataset to another dataset with the same storage.

use super::DatasetState;
use crate::{Error, Result};
use pumice_format::UNDEFINED;
use pumice_format::index::ChunkRecord;
use pumice_format::messages::Layout;
use pumice_layout::stretch::beyond;
use pumice_layout::{ChunkTable, Contiguous, Place, Storage};
use pumice_space::{Dims, Selection};
use pumice_store::{ReadOp, WriteOp};
use pumice_structures::index::IndexKind;
use pumice_types::Heaped;

/// About how many bytes are copied at a time.
const PIECE: u64 = 4 << 20;

impl DatasetState {
    /// The layout message as it would be written now.
    pub(crate) fn description(&self) -> Result<Layout> {
        match &self.layout.storage {
            Storage::Contiguous(contiguous) => Ok(match contiguous.place() {
                Place::Compact(data) => Layout::Compact { data },
                Place::File(_) => self.contiguous_message(),
            }),
            Storage::External(_) => Ok(self.contiguous_message()),
            // It is too large to be stored: there is nothing to copy.
            Storage::Unreadable(_)
                if matches!(self.message, Layout::Contiguous { address: UNDEFINED, .. }) =>
            {
                // As libhdf5 counts: older messages do not say.
                let element = self.datatype.size() as u64;
                let size = self.dims().iter().fold(element, |size, &axis| size.wrapping_mul(axis));
                Ok(Layout::Contiguous { address: UNDEFINED, size: Some(size) })
            }
            Storage::Unreadable(reason) => Err(Error::Unsupported(reason.clone())),
            _ => Ok(self.message.clone()),
        }
    }

    fn contiguous_message(&self) -> Layout {
        let size = Some(self.layout.geometry.chunk_bytes());
        Layout::Contiguous { address: UNDEFINED, size }
    }

    /// Copies the stored bytes of a dataset with the same description.
    pub(crate) fn copy_stored(&self, from: &DatasetState) -> Result<()> {
        let _no_resize = from.gate();
        if let (Storage::Contiguous(there), Storage::Contiguous(here)) =
            (&from.layout.storage, &self.layout.storage)
        {
            return copy_piece(from, there, self, here);
        }
        let (Some(there), Some(here)) = (from.layout.table(), self.layout.table()) else {
            // External and virtual data stay where they are.
            return Ok(());
        };
        let _still = from.written_back()?;
        self.place_index(from)?;
        let mut allocated = false;
        there.for_each(|some| {
            if !std::mem::replace(&mut allocated, true) {
                here.index().allocate(&*self.medium)?;
            }
            let mut rest = some.as_slice();
            while !rest.is_empty() {
                let mut bytes = 0u64;
                let fits = |(_, record): &&(Dims, ChunkRecord)| {
                    bytes = bytes.saturating_add(record.size);
                    bytes <= PIECE
                };
                let count = rest.iter().take_while(fits).count().max(1);
                let (now, later) = rest.split_at(count);
                here.adopt(there, now)?;
                rest = later;
            }
            Ok(())
        })
    }

    /// Copies the values of a dataset with the same description, changing them on the way.
    pub(crate) fn copy_values(
        &self,
        from: &DatasetState,
        change: &mut dyn FnMut(&mut Heaped) -> Result<()>,
    ) -> Result<()> {
        self.take_implied_space(from)?;
        self.place_index(from)?;
        let undefined = matches!(from.layout.storage, Storage::Sparse(..))
            || matches!(&from.message, Layout::Structured { sections: 3, .. });
        from.for_each_stored_block(&mut |block| match undefined {
            false => self.copy_block(from, block, change),
            true => self.copy_defined(from, block, change),
        })
    }

    /// Allocates the index if the original has one, even without chunks: without a fill value
    /// message, libhdf5 reads nothing of a dataset whose index has no address.
    fn place_index(&self, from: &DatasetState) -> Result<()> {
        let (Layout::Chunked { address, .. }, Some(table)) = (&from.message, self.layout.table())
        else {
            return Ok(());
        };
        if *address == UNDEFINED { Ok(()) } else { table.index().place(&*self.medium) }
    }

    /// Allocates the space of all chunks if the original has it and the index is implicit.
    fn take_implied_space(&self, from: &DatasetState) -> Result<()> {
        let implied = |table: &ChunkTable| table.index().kind() == IndexKind::Implicit;
        match self.layout.table().is_some_and(implied) && from.chunk_totals()?.0 > 0 {
            true => self.allocate_all(),
            false => Ok(()),
        }
    }

    /// Calls `visit` for blocks that together have every cell that is stored.
    pub(crate) fn for_each_stored_block(
        &self,
        visit: &mut dyn FnMut(&Selection) -> Result<()>,
    ) -> Result<()> {
        let (geometry, dims) = (&self.layout.geometry, self.dims());
        if dims.contains(&0) || self.null {
            return Ok(());
        }
        if let Storage::Contiguous(contiguous) = &self.layout.storage {
            if let Place::File(None) = contiguous.place() {
                return Ok(());
            }
            return pieces(&dims, geometry.element_size(), visit);
        }
        self.for_each_stored(|origin| {
            let ends = origin.iter().zip(geometry.chunk()).zip(&dims);
            let count: Dims =
                ends.map(|((&at, &side), &end)| side.min(end.saturating_sub(at))).collect();
            match count.contains(&0) {
                true => Ok(()),
                false => visit(&Selection::block(&origin, &count)?),
            }
        })
    }

    fn copy_block(
        &self,
        from: &DatasetState,
        block: &Selection,
        change: &mut dyn FnMut(&mut Heaped) -> Result<()>,
    ) -> Result<()> {
        let mut values = from.read_heaped(block)?;
        change(&mut values)?;
        self.write_heaped(block, &values.elements, &values.heap)
    }

    fn copy_defined(
        &self,
        from: &DatasetState,
        block: &Selection,
        change: &mut dyn FnMut(&mut Heaped) -> Result<()>,
    ) -> Result<()> {
        let chunk = from.layout.geometry.chunk();
        from.read_defined_heaped_each(block, |mut part| {
            change(&mut part.values)?;
            let origin: Dims = part.chunk.iter().zip(chunk).map(|(at, side)| at * side).collect();
            let mut coordinates = Vec::new();
            part.cells.append_coordinates(chunk, &origin, &mut coordinates);
            let cells = Selection::points(origin.len(), coordinates)?;
            self.write_heaped(&cells, &part.values.elements, &part.values.heap)
        })
    }
}

/// Calls `visit` for blocks of about [`PIECE`] bytes that make up an extent.
fn pieces(
    dims: &[u64],
    element: usize,
    visit: &mut dyn FnMut(&Selection) -> Result<()>,
) -> Result<()> {
    let Some(last) = dims.len().checked_sub(1) else { return visit(&Selection::all()) };
    let bytes = |axis: usize| {
        let inner = dims[axis + 1..].iter();
        inner.fold(element.max(1) as u64, |bytes, &side| bytes.saturating_mul(side))
    };
    // Blocks are one cell long before this axis, and whole behind it.
    let axis = (0..last).find(|&axis| bytes(axis) <= PIECE).unwrap_or(last);
    let step = (PIECE / bytes(axis)).max(1);
    let mut start = vec![0; dims.len()];
    loop {
        let mut count = dims.to_vec();
        count[..axis].fill(1);
        count[axis] = step.min(dims[axis] - start[axis]);
        visit(&Selection::block(&start, &count)?)?;
        let Some(at) = (0..=axis).rev().find(|&at| start[at] + count[at] < dims[at]) else {
            return Ok(());
        };
        start[at] += count[at];
        start[at + 1..].fill(0);
    }
}

/// Copies elements that are in one piece of a file.
fn copy_piece(
    from: &DatasetState,
    there: &Contiguous,
    to: &DatasetState,
    here: &Contiguous,
) -> Result<()> {
    let Place::File(Some(source)) = there.place() else { return Ok(()) };
    let length = from.layout.geometry.chunk_bytes();
    if !from.medium.reaches(source, length)? {
        return Err(beyond(source, from.medium.length()?));
    }
    here.allocate(false)?;
    let Place::File(Some(target)) = here.place() else { return Ok(()) };
    let mut buffer = vec![0; length.min(PIECE) as usize];
    let mut done = 0;
    while done < length {
        let piece = &mut buffer[..(length - done).min(PIECE) as usize];
        from.medium.fetch(&mut [ReadOp { offset: source + done, buffer: piece }])?;
        to.medium.put(&mut [WriteOp { offset: target + done, bytes: piece }])?;
        done += piece.len() as u64;
    }
    Ok(())
}
