//! The contiguous and compact layouts: all elements in one piece, in the file or in the object
//! header.
//!
//! The whole dataset is one chunk that the cache never holds: requests pass through it, in order,
//! straight between the file and the caller's buffer. Space is allocated by the first write.

use super::geometry::Geometry;
use super::request::{ReadRequest, Source, Target, WriteRequest, fill_with, points_of_sparse};
use crate::medium::Medium;
use crate::metadata::MetadataIo;
use crate::{Error, Result};
use pumice_bytes::DecodeError;
use pumice_space::{CellSet, Segment};
use pumice_store::{ReadOp, WriteOp};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Neighbouring segments are read together if what lies between them is no larger than this.
const GAP: u64 = 4096;
/// The most that is read or written in one piece through a buffer of our own.
const PIECE: u64 = 1 << 20;

/// Elements in one piece.
pub struct Contiguous {
    geometry: Arc<Geometry>,
    medium: Arc<Medium>,
    place: Mutex<Place>,
}

/// Where the elements are.
#[derive(Clone, Debug)]
pub enum Place {
    /// In the layout message.
    Compact(Vec<u8>),
    /// In the file, or nowhere yet.
    File(Option<u64>),
}

impl Contiguous {
    /// A layout of elements at `place`.
    pub fn new(geometry: Arc<Geometry>, medium: Arc<Medium>, place: Place) -> Self {
        Self { geometry, medium, place: Mutex::new(place) }
    }

    /// Where the elements are now.
    pub fn place(&self) -> Place {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn bytes(&self) -> u64 {
        self.geometry.chunk_bytes()
    }

    /// Gives the space back.
    pub fn free(&self) {
        let _change = self.medium.change();
        if let Place::File(Some(address)) = std::mem::replace(&mut *self.lock(), Place::File(None))
        {
            self.medium.free(address, self.bytes());
        }
    }

    /// Answers a read.
    pub fn read(&self, request: &mut ReadRequest<'_>) -> Result<()> {
        let dims = self.geometry.chunk();
        match request {
            ReadRequest::Values { part, target } => self.read_values(part.segments(dims), target),
            ReadRequest::Points { .. } => Err(points_of_sparse()),
            ReadRequest::Defined { cells, found } => {
                if !matches!(*self.lock(), Place::File(None)) {
                    **found = Some(CellSet::from_selection(cells, dims)?);
                }
                Ok(())
            }
            ReadRequest::DefinedValues { cells, found } => {
                let cells = CellSet::from_selection(cells, dims)?;
                let element = self.geometry.element_size();
                let mut values = super::dense::zeros(cells.len() * element as u64)?;
                let place = self.place();
                let mut rest = values.as_mut_slice();
                for run in cells.runs() {
                    let (now, later) = rest.split_at_mut(run.len as usize * element);
                    self.read_bytes(&place, run.start * element as u64, now)?;
                    rest = later;
                }
                if !matches!(place, Place::File(None)) {
                    **found = Some((cells, values));
                }
                Ok(())
            }
        }
    }

    fn read_values(
        &self,
        segments: impl Iterator<Item = Segment>,
        target: &Target<'_>,
    ) -> Result<()> {
        let place = self.place();
        if matches!(place, Place::File(None)) {
            target.fill_all(segments);
            return Ok(());
        }
        let element = self.geometry.element_size() as u64;
        let mut near: Vec<Segment> = Vec::new();
        for segment in segments {
            if segment.len * element >= PIECE && target.is_noop() {
                // SAFETY: a plan gives each place of the buffer to one segment.
                let memory = unsafe { target.slice(segment.memory, segment.len) };
                self.read_bytes(&place, segment.cell * element, memory)?;
                continue;
            }
            for segment in pieces(segment, element) {
                if !joins(&near, &segment, element) {
                    self.read_near(&place, &mut near, target)?;
                }
                near.push(segment);
            }
        }
        self.read_near(&place, &mut near, target)
    }

    /// Reads segments that lie close together in one go.
    fn read_near(&self, place: &Place, near: &mut Vec<Segment>, target: &Target<'_>) -> Result<()> {
        let (Some(first), Some(last)) = (near.first(), near.last()) else { return Ok(()) };
        let element = self.geometry.element_size();
        let start = first.cell;
        let mut bytes = vec![0; (last.cell + last.len - start) as usize * element];
        self.read_bytes(place, start * element as u64, &mut bytes)?;
        for segment in near.drain(..) {
            let from = (segment.cell - start) as usize * element;
            let values = &bytes[from..from + segment.len as usize * element];
            target.place(segment.memory, values)?;
        }
        Ok(())
    }

    fn read_bytes(&self, place: &Place, offset: u64, buffer: &mut [u8]) -> Result<()> {
        match place {
            Place::Compact(data) => {
                let start = offset as usize;
                let data = data.get(start..start + buffer.len());
                let data = data.ok_or_else(|| Error::Internal("compact data too short".into()))?;
                buffer.copy_from_slice(data);
                Ok(())
            }
            Place::File(Some(address)) => {
                let offset = at(*address, offset)?;
                self.medium.fetch(&mut [ReadOp { offset, buffer }])
            }
            Place::File(None) => {
                fill_with(buffer, self.geometry.fill());
                Ok(())
            }
        }
    }

    /// Carries out a write.
    pub fn write(&self, request: &mut WriteRequest<'_>) -> Result<()> {
        let fill = match request {
            WriteRequest::Values { part, source } => !(part.is_whole() && source.overwrites()),
            WriteRequest::Points { .. } | WriteRequest::ErasePoints { .. } => {
                return Err(points_of_sparse());
            }
            // Nothing is there to be erased.
            WriteRequest::Erase { .. } if matches!(*self.lock(), Place::File(None)) => {
                return Ok(());
            }
            WriteRequest::Erase { .. } => true,
        };
        self.allocate(fill)?;
        let dims = self.geometry.chunk();
        let element = self.geometry.element_size();
        match request {
            WriteRequest::Values { part, source } => {
                part.segments(dims).try_for_each(|segment| self.write_segment(segment, source))
            }
            WriteRequest::Points { .. } | WriteRequest::ErasePoints { .. } => Ok(()),
            WriteRequest::Erase { cells } => {
                let piece = (PIECE / element as u64).max(1);
                let mut fill = vec![0; piece as usize * element];
                fill_with(&mut fill, self.geometry.fill());
                for run in cells.runs() {
                    let run = Segment { cell: run.start, memory: 0, len: run.len };
                    for run in pieces(run, element as u64) {
                        let bytes = &fill[..run.len as usize * element];
                        self.write_bytes(run.cell * element as u64, bytes)?;
                    }
                }
                Ok(())
            }
        }
    }

    fn write_segment(&self, segment: Segment, source: &Source<'_>) -> Result<()> {
        let element = self.geometry.element_size();
        if source.is_noop() {
            let bytes = source.slice(segment.memory, segment.len)?;
            return self.write_bytes(segment.cell * element as u64, bytes);
        }
        for piece in pieces(segment, element as u64) {
            let mut bytes = vec![0; piece.len as usize * element];
            if !source.overwrites() {
                self.read_bytes(&self.place(), piece.cell * element as u64, &mut bytes)?;
            }
            source.copy_to(piece.memory, piece.len, &mut bytes)?;
            self.write_bytes(piece.cell * element as u64, &bytes)?;
        }
        Ok(())
    }

    fn write_bytes(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let address = match &mut *self.lock() {
            Place::Compact(data) => {
                let start = offset as usize;
                let place = data.get_mut(start..start + bytes.len());
                let place =
                    place.ok_or_else(|| Error::Internal("compact data too short".into()))?;
                place.copy_from_slice(bytes);
                return Ok(());
            }
            Place::File(address) => *address,
        };
        let address = address.ok_or_else(|| Error::Internal("no space for the data".into()))?;
        self.medium.put(&mut [WriteOp { offset: at(address, offset)?, bytes }])
    }

    /// Takes space for all elements, if there is none yet; they get the fill value if wanted.
    /// Space that there is must lie inside the file: an address from elsewhere is no place to
    /// write to.
    fn allocate(&self, fill: bool) -> Result<()> {
        let mut place = self.lock();
        if let Place::File(Some(address)) = *place {
            let (end, length) = (address.checked_add(self.bytes()), self.medium.length()?);
            return match end.is_some_and(|end| end <= length) {
                true => Ok(()),
                false => Err(beyond(address, length)),
            };
        }
        if !matches!(*place, Place::File(None)) || self.bytes() == 0 {
            return Ok(());
        }
        let address = self.medium.allocate(self.bytes())?;
        if fill {
            self.write_fill(address)?;
        }
        *place = Place::File(Some(address));
        Ok(())
    }

    fn write_fill(&self, address: u64) -> Result<()> {
        let element = self.geometry.element_size();
        let piece = (PIECE as usize / element).max(1) * element;
        let mut fill = vec![0; piece.min(self.bytes() as usize)];
        fill_with(&mut fill, self.geometry.fill());
        let mut offset = 0;
        while offset < self.bytes() {
            let len = (self.bytes() - offset).min(fill.len() as u64) as usize;
            self.medium.put(&mut [WriteOp { offset: address + offset, bytes: &fill[..len] }])?;
            offset += len as u64;
        }
        Ok(())
    }
}

/// A place in the data at `address`, which a file may have put anywhere.
fn at(address: u64, offset: u64) -> Result<u64> {
    address.checked_add(offset).ok_or_else(|| beyond(address, u64::MAX))
}

fn beyond(address: u64, length: u64) -> Error {
    let expected = format!("data that ends before {length:#x}");
    DecodeError::new("contiguous data", address, expected, "more").into()
}

/// Whether `next` can be read together with the segments before it.
fn joins(near: &[Segment], next: &Segment, element: u64) -> bool {
    let (Some(first), Some(last)) = (near.first(), near.last()) else { return true };
    let end = last.cell + last.len;
    next.cell >= end
        && (next.cell - end) * element <= GAP
        && (next.cell + next.len - first.cell) * element <= PIECE
}

/// Cuts a segment into pieces of limited size.
fn pieces(segment: Segment, element: u64) -> impl Iterator<Item = Segment> {
    let most = (PIECE / element.max(1)).max(1);
    (0..segment.len.div_ceil(most)).map(move |i| Segment {
        cell: segment.cell + i * most,
        memory: segment.memory + i * most,
        len: most.min(segment.len - i * most),
    })
}
