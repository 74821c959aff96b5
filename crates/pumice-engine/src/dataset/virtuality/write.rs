//! Writing to virtual datasets: elements go to the sources that have their cells.
//!
//! As in libhdf5, a write to cells without a source is refused before anything is written. Writes
//! to other files are committed with the virtual dataset's own file. A reset, which libhdf5 does
//! not have, goes to the existing sources.

use super::{Deeper, Piece, Virtual};
use crate::dataset::DatasetState;
use crate::dataset::transfer::TransferOptions;
use crate::file::{File, KeptFile};
use crate::{Error, Result};
use pumice_layout::Geometry;
use pumice_space::{Segment, Selection};
use pumice_types::{Datatype, Heaped};
use std::sync::{Arc, MutexGuard, PoisonError};

/// Bytes of elements that a reset writes at once.
const RESET_BYTES: u64 = 16 << 20;

impl DatasetState {
    /// Makes the selected cells read as the fill value: writes it where cells cannot be undefined.
    pub fn reset(&self, selection: &Selection) -> Result<()> {
        let Some(sources) = &self.sources else { return self.erase(selection) };
        self.begin_write()?;
        let _no_resize = self.gate();
        let dims = self.dims();
        selection.check(&dims)?;
        let (all, shape) = (Selection::all(), selection.shape(&dims));
        let cells = super::segments(selection, &dims, &all, &shape)?;
        let fill = match self.fill_heaped()? {
            Some(fill) => fill,
            None => Heaped { elements: self.layout.geometry.fill().to_vec(), heap: Vec::new() },
        };
        sources.reset(&self.layout.geometry, &self.datatype, &cells, &fill)
    }
}

/// The part of a write for one source: its cells, and the positions of their elements in memory.
struct Share {
    piece: Piece,
    cells: Selection,
    pairs: Vec<Segment>,
}

impl Virtual {
    /// Writes elements of `memory_type` to the sources; `wanted` says which cells come from which
    /// place of `bytes`, in order of the cells.
    pub(in crate::dataset) fn write(
        &self,
        geometry: &Geometry,
        memory_type: &Datatype,
        wanted: &[Segment],
        bytes: &[u8],
        options: &TransferOptions,
    ) -> Result<()> {
        let _deeper = Deeper::enter()?;
        let options = TransferOptions { memory: None, ..options.clone() };
        for share in self.shares(geometry, wanted)? {
            let values = share.gather(bytes, memory_type.size())?;
            share.piece.source.dataset.write_with(&share.cells, memory_type, &values, &options)?;
        }
        Ok(())
    }

    /// Writes elements of the file's type, which refer to `heap`.
    pub(in crate::dataset) fn write_heaped(
        &self,
        geometry: &Geometry,
        datatype: &Datatype,
        wanted: &[Segment],
        elements: &[u8],
        heap: &[u8],
    ) -> Result<()> {
        let _deeper = Deeper::enter()?;
        let shares = self.shares(geometry, wanted)?;
        if shares.iter().any(|share| share.piece.source.dataset.datatype() != datatype) {
            return Err(other_datatype());
        }
        for share in shares {
            let values = share.gather(elements, datatype.size())?;
            share.piece.source.dataset.write_heaped(&share.cells, &values, heap)?;
        }
        Ok(())
    }

    /// Writes one element to the source cells of `cells`, where there are any.
    fn reset(
        &self,
        geometry: &Geometry,
        datatype: &Datatype,
        cells: &[Segment],
        fill: &Heaped,
    ) -> Result<()> {
        let _deeper = Deeper::enter()?;
        let most = (RESET_BYTES / datatype.size().max(1) as u64).max(1);
        let blocks = cells.iter().flat_map(|segment| {
            let starts = (0..segment.len).step_by(most as usize);
            starts.map(|start| Segment {
                cell: segment.cell + start,
                memory: 0,
                len: most.min(segment.len - start),
            })
        });
        let mut group = Vec::new();
        let mut blocks = blocks.peekable();
        let mut count = 0;
        while let Some(block) = blocks.next() {
            group.push(Segment { memory: count, ..block });
            count += block.len;
            if blocks.peek().is_some_and(|next| count + next.len <= most) {
                continue;
            }
            for share in self.parts(geometry, &group)?.0 {
                let values = fill.elements.repeat(share.count() as usize);
                let source = &share.piece.source.dataset;
                match datatype.has_varlen() {
                    true if source.datatype() != datatype => return Err(other_datatype()),
                    true => source.write_heaped(&share.cells, &values, &fill.heap)?,
                    false => source.write(&share.cells, datatype, &values)?,
                }
            }
            group.clear();
            count = 0;
        }
        Ok(())
    }

    /// The parts of a write by source. Fails unless every cell has a source that can be written.
    fn shares(&self, geometry: &Geometry, wanted: &[Segment]) -> Result<Vec<Share>> {
        let (shares, found) = self.parts(geometry, wanted)?;
        let asked = wanted.iter().fold(0u64, |asked, place| asked.saturating_add(place.len));
        match found < asked {
            true => Err(Error::Invalid(format!("{} cell(s) have no source", asked - found))),
            false => Ok(shares),
        }
    }

    /// The parts of a write by source, and how many cells have a source.
    fn parts(&self, geometry: &Geometry, wanted: &[Segment]) -> Result<(Vec<Share>, u64)> {
        let dims = geometry.dims();
        let (mut shares, mut found) = (Vec::new(), 0u64);
        for mapping in &self.mappings {
            for piece in self.pieces(mapping)? {
                let Some((cells, pairs)) = piece.cells(&dims, wanted)? else { continue };
                let file = &piece.source.file;
                if !file.writable() {
                    let what = format!(
                        "the source \"{}\" of \"{}\" can only be read",
                        mapping.dataset, mapping.file
                    );
                    return Err(Error::Invalid(what));
                }
                self.note_written(file);
                found = pairs.iter().fold(found, |found, pair| found.saturating_add(pair.len));
                shares.push(Share { piece, cells, pairs });
            }
        }
        Ok((shares, found))
    }

    fn note_written(&self, file: &Arc<File>) {
        let known = |kept: &KeptFile| Arc::ptr_eq(kept.file(), file);
        if self.written().iter().any(known) {
            return;
        }
        // A file that keeps this one open, or is this one, commits by itself, or as one that this
        // file has led to.
        let Some(kept) = KeptFile::new(self.number, file) else { return };
        self.written().push(kept);
    }

    fn written(&self) -> MutexGuard<'_, Vec<KeptFile>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether files were written to and are not committed yet.
    pub(crate) fn holds_written(&self) -> bool {
        !self.written().is_empty()
    }

    /// Commits the files that were written to. Sources may lead back: the file must not be in the
    /// middle of its own commit.
    pub(crate) fn commit_sources(&self) -> Result<()> {
        let mut written = std::mem::take(&mut *self.written()).into_iter();
        let mut all = Ok(());
        while let Some(kept) = written.next() {
            let Err(error) = kept.file().commit() else { continue };
            let mut again = self.written();
            again.push(kept);
            if !error.is_not_stored() {
                again.extend(written);
                return Err(error);
            }
            // It has refused chunks, and stays open with them. The other files can be committed.
            all = all.and(Err(error));
        }
        all
    }
}

fn other_datatype() -> Error {
    Error::Unsupported("virtual variable-length data of sources with another datatype".into())
}

impl Share {
    fn count(&self) -> u64 {
        self.pairs.iter().map(|pair| pair.len).sum()
    }

    /// Its elements, in the order of its cells.
    fn gather(&self, bytes: &[u8], size: usize) -> Result<Vec<u8>> {
        let mut values = pumice_medium::reserved((self.count() as usize).saturating_mul(size))?;
        for pair in &self.pairs {
            let start = pair.memory as usize * size;
            let part = bytes.get(start..start + pair.len as usize * size);
            let part = part.ok_or_else(|| Error::Internal("elements outside of memory".into()))?;
            values.extend_from_slice(part);
        }
        Ok(values)
    }
}
