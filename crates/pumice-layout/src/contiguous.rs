//! The contiguous and compact layouts: all elements in one piece, in the file or in the object
//! header.
//!
//! The whole dataset is one chunk that the cache never holds: requests pass through it, straight between the file
//! and the caller's buffer. Those that have a cell in common, a write among them, do so in order; others at the
//! same time. Space is allocated by the first write.
//!
//! Elements that refer to the global heap are another matter: what they refer to is in the file only with
//! the next commit, and a program that ends before it must leave the old ones. So the file *holds* all elements of
//! such a dataset in memory from the first change after a commit on (`medium/held.rs`), and the next one writes
//! them, as metadata. Data that are too large for that are overwritten in place all the same.

use super::Hdf5;
use super::geometry::Geometry;
use super::request::{ReadRequest, Source, Target, WriteRequest, fill_with, not_sparse};
use super::stretch::{self, PIECE, Stretch, beyond};
use super::table::stored::{read_ops, write_ops};
use pumice_cache::{Announced, ByteStore, Direct, Fetch, Put, Reach, StoreId, Unchunked};
use pumice_medium::zeroed;
use pumice_medium::{DataKind, MetadataIo};
use pumice_medium::{Error, Result};
use pumice_medium::{MOST_HELD, Medium};
use pumice_space::{CellSet, ChunkPart, Dims, Segment, Selection};
use pumice_store::{JoinedStore, WriteOp};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLockReadGuard};

/// Elements in one piece.
pub struct Contiguous {
    geometry: Arc<Geometry>,
    medium: Arc<Medium>,
    place: Mutex<Place>,
    /// Whether elements refer to what is elsewhere in the file.
    refers: bool,
    /// The external files that have them.
    outside: Option<Arc<JoinedStore>>,
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
    pub fn new(geometry: Arc<Geometry>, medium: Arc<Medium>, place: Place, refers: bool) -> Self {
        Self { geometry, medium, place: Mutex::new(place), refers, outside: None }
    }

    /// A layout of elements in external files, of which `medium` is made.
    pub fn external(geometry: Arc<Geometry>, medium: Arc<Medium>, files: Arc<JoinedStore>) -> Self {
        let place = Mutex::new(Place::File(Some(0)));
        Self { geometry, medium, place, refers: false, outside: Some(files) }
    }

    /// Whether elements refer to something, so that they may have to wait for a commit.
    pub fn refers(&self) -> bool {
        self.refers
    }

    /// Whether there are not too many elements to be held.
    pub fn can_hold(&self) -> bool {
        self.bytes() <= MOST_HELD
    }

    /// Before a change of elements that the last commit may know: holds them, if that is to be. During a
    /// [change](Self::change), and until it ends.
    fn hold(&self) -> Result<()> {
        let Place::File(Some(address)) = self.place() else { return Ok(()) };
        // What is written to new space that only a commit may write to waits for that there.
        if !self.refers || !self.can_hold() || self.medium.is_new(address) {
            return Ok(());
        }
        self.medium.hold_all(address, self.bytes())
    }

    /// To be held from when it is decided whether elements are to be held until they are written: what they refer
    /// to came before, and is in the commit that they are in.
    fn change(&self) -> Option<RwLockReadGuard<'_, ()>> {
        self.refers.then(|| self.medium.change())
    }

    /// Makes external files that are not there: cells between those of a write are read.
    fn make_files(&self) -> Result<()> {
        let Some(files) = &self.outside else { return Ok(()) };
        let element = self.geometry.element_size() as u64;
        let bytes = self.geometry.dims().iter().fold(element, |n, &side| n.saturating_mul(side));
        let action = "make external files".into();
        files.make(bytes).map_err(|source| Error::Io { action, source })
    }

    /// Where the elements are now.
    pub fn place(&self) -> Place {
        self.lock().clone()
    }

    /// Says where the elements are from now on, as another program has it.
    pub fn set_place(&self, place: Place) {
        *self.lock() = place;
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
            self.medium.free_raw(address, self.bytes());
        }
    }

    /// Moves the elements to free space before them, if there is such. Says whether there is. Changes are
    /// held back, and all is committed.
    pub fn move_down(&self) -> Result<bool> {
        let Place::File(Some(old)) = self.place() else { return Ok(false) };
        if self.medium.is_staged(old) || !self.medium.has_raw_hole_before(old, self.bytes()) {
            return Ok(false);
        }
        let new = self.medium.allocate_free(DataKind::Raw, self.bytes())?;
        // The hole may not be aligned as this has to be.
        let copied = match new < old {
            true => self.medium.copy(old, new, self.bytes()).map(|()| true),
            false => Ok(false),
        };
        if !matches!(copied, Ok(true)) {
            self.medium.free_raw(new, self.bytes());
            return copied;
        }
        *self.lock() = Place::File(Some(new));
        self.medium.free_raw(old, self.bytes());
        Ok(true)
    }

    /// Where the elements are if they are in a file.
    pub fn medium(&self) -> &Arc<Medium> {
        &self.medium
    }

    /// Adds the bounding box of a part's cells to a coarse reach.
    fn bounded(&self, reach: Reach, part: &ChunkPart) -> Reach {
        let dims = self.geometry.chunk();
        match reach.is_coarse() {
            true => within(reach, &part.cells(dims), dims),
            false => reach,
        }
    }

    fn selected(&self, cells: &Selection) -> Reach {
        let dims = self.geometry.chunk();
        let runs = cells.runs(dims).map(|run| run.start..run.start.saturating_add(run.len));
        let reach = Reach::of(runs);
        if reach.is_coarse() { within(reach, cells, dims) } else { reach }
    }

    fn read_values<'r, S: Iterator<Item = Segment>>(
        &self,
        segments: impl Fn() -> S,
        target: &'r Target<'_>,
        extents: &mut Vec<Fetch<'r>>,
    ) -> Result<Direct> {
        let element = self.geometry.element_size();
        let address = match &*self.lock() {
            Place::Compact(data) => {
                for segment in segments() {
                    target.place(segment.memory, inside(data, &segment, element)?)?;
                }
                return Ok(Direct::Done { bytes: 0 });
            }
            Place::File(address) => *address,
        };
        match address {
            Some(address) => {
                Stretch::new(&self.medium, address, element).read(segments, target, extents)
            }
            None => {
                target.fill_all(segments());
                Ok(Direct::Done { bytes: 0 })
            }
        }
    }

    fn read_bytes(&self, place: &Place, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let mut copy = |data: &[u8]| {
            let start = offset as usize;
            let data = data.get(start..start + buffer.len());
            let data = data.ok_or_else(|| Error::Internal("compact data too short".into()))?;
            buffer.copy_from_slice(data);
            Ok(())
        };
        match place {
            Place::Compact(data) => copy(data),
            Place::File(Some(address)) => {
                Stretch::new(&self.medium, *address, 1).read_bytes(offset, buffer)
            }
            Place::File(None) => {
                fill_with(buffer, self.geometry.fill());
                Ok(())
            }
        }
    }

    fn write_values<'r, S: Iterator<Item = Segment>>(
        &self,
        segments: impl Fn() -> S,
        source: &'r Source<'_>,
        extents: &mut Vec<Put<'r>>,
    ) -> Result<Direct> {
        let element = self.geometry.element_size();
        let address = match &mut *self.lock() {
            Place::Compact(data) => {
                for segment in segments() {
                    let place = inside_mut(data, &segment, element)?;
                    source.copy_to(segment.memory, segment.len, place)?;
                }
                return Ok(Direct::Done { bytes: 0 });
            }
            Place::File(address) => address.ok_or_else(no_space)?,
        };
        Stretch::new(&self.medium, address, element).write(segments, source, extents)
    }

    fn erase(&self, cells: &Selection) -> Result<()> {
        let element = self.geometry.element_size();
        let piece = (PIECE as usize / element.max(1)).max(1);
        let most = piece.min(self.geometry.cells_per_chunk() as usize);
        let mut fill = zeroed(most.saturating_mul(element))?;
        fill_with(&mut fill, self.geometry.fill());
        for run in cells.runs(self.geometry.chunk()) {
            let mut done = 0;
            while done < run.len {
                let len = (run.len - done).min(piece as u64);
                self.write_fill(run.start + done, &fill[..len as usize * element])?;
                done += len;
            }
        }
        Ok(())
    }

    fn write_fill(&self, cell: u64, bytes: &[u8]) -> Result<()> {
        let element = self.geometry.element_size();
        let address = match &mut *self.lock() {
            Place::Compact(data) => {
                let len = (bytes.len() / element.max(1)) as u64;
                let place = inside_mut(data, &Segment { cell, memory: 0, len }, element)?;
                place.copy_from_slice(bytes);
                return Ok(());
            }
            Place::File(address) => address.ok_or_else(no_space)?,
        };
        Stretch::new(&self.medium, address, element).write_bytes(cell, bytes)
    }

    /// Takes space for all elements, if there is none yet; they get the fill value if wanted.
    /// Space that there is must lie inside the file: an address from elsewhere is no place to
    /// write to.
    pub fn allocate(&self, fill: bool) -> Result<()> {
        let mut place = self.lock();
        if let Place::File(Some(address)) = *place {
            let inside = self.medium.reaches(address, self.bytes())?;
            return if inside { Ok(()) } else { Err(beyond(address, self.medium.length()?)) };
        }
        if !matches!(*place, Place::File(None)) || self.bytes() == 0 {
            return Ok(());
        }
        let (address, written) = self.medium.allocate_zeroed(self.bytes())?;
        // Bytes that were never written are zero already.
        let zero = self.geometry.fill().iter().all(|&byte| byte == 0);
        let dirty = if zero { written } else { self.bytes() };
        if fill && let Err(error) = self.fill_up(address, dirty) {
            self.medium.free_raw(address, self.bytes());
            return Err(error);
        }
        *place = Place::File(Some(address));
        Ok(())
    }

    /// Writes the fill value over the first `length` bytes.
    fn fill_up(&self, address: u64, length: u64) -> Result<()> {
        let element = self.geometry.element_size();
        let piece = (PIECE as usize / element).max(1) * element;
        let mut fill = zeroed(piece.min(self.bytes() as usize))?;
        fill_with(&mut fill, self.geometry.fill());
        let mut offset = 0;
        while offset < length {
            let len = (length - offset).min(fill.len() as u64) as usize;
            self.medium.put(&mut [WriteOp { offset: address + offset, bytes: &fill[..len] }])?;
            offset += len as u64;
        }
        Ok(())
    }
}

impl ByteStore<Hdf5> for Contiguous {
    fn id(&self) -> StoreId {
        // What may have to wait for a commit is not written with what others write.
        if self.refers { StoreId::of(self) } else { StoreId::of(&*self.medium) }
    }

    fn fetch(&self, reads: &mut [Fetch<'_>]) -> Result<()> {
        self.medium.fetch(&mut read_ops(reads))
    }

    fn is_far(&self) -> bool {
        self.medium.is_far()
    }

    fn announce(&self, ranges: &[Range<u64>]) -> Announced {
        self.medium.announce(ranges)
    }

    /// Writes bytes that a [write](Unchunked::write) has named.
    fn put(&self, writes: &[Put<'_>]) -> Result<()> {
        let _change = self.change();
        // A commit may have begun since then.
        self.hold()?;
        self.medium.put(&mut write_ops(writes))
    }
}

impl Unchunked<Hdf5> for Contiguous {
    /// Answers a read, or names the bytes that answer it.
    fn read<'r>(
        &self,
        _: &Dims,
        request: &'r mut ReadRequest<'_>,
        extents: &mut Vec<Fetch<'r>>,
    ) -> Result<Direct> {
        let dims = self.geometry.chunk();
        match request {
            ReadRequest::Values { part, target } => {
                self.read_values(|| part.segments(dims), target, extents)
            }
            ReadRequest::Sparse(_) => Err(not_sparse()),
            ReadRequest::Defined { cells, found } => {
                **found = Some(CellSet::from_selection(cells, dims)?);
                Ok(Direct::Done { bytes: 0 })
            }
            ReadRequest::DefinedValues { cells, found, .. } => {
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
                let bytes = values.len() as u64;
                **found = Some((cells.into(), values));
                Ok(Direct::Done { bytes })
            }
            ReadRequest::DefinedHeaped { .. } => Err(super::without_heap()),
        }
    }

    /// Carries out a write, or names the bytes that have to be written for it.
    fn write<'r>(
        &self,
        _: &Dims,
        request: &'r mut WriteRequest<'_>,
        extents: &mut Vec<Put<'r>>,
    ) -> Result<Direct> {
        let fill = match request {
            WriteRequest::Values { part, source } => !(part.is_whole() && source.overwrites()),
            // Nothing is there to be erased.
            WriteRequest::Erase { .. } if matches!(*self.lock(), Place::File(None)) => {
                return Ok(Direct::Done { bytes: 0 });
            }
            WriteRequest::Erase { .. } => true,
            WriteRequest::Sparse(_) => return Err(not_sparse()),
        };
        let _change = self.change();
        self.allocate(fill)?;
        self.make_files()?;
        self.hold()?;
        match request {
            WriteRequest::Values { part, source } => {
                self.write_values(|| part.segments(self.geometry.chunk()), source, extents)
            }
            WriteRequest::Erase { cells } => {
                self.erase(cells)?;
                let count = cells.count(self.geometry.chunk());
                Ok(Direct::Done { bytes: count * self.geometry.element_size() as u64 })
            }
            WriteRequest::Sparse(_) => Err(not_sparse()),
        }
    }

    /// The cells that a read looks at.
    fn read_reach(&self, _: &Dims, request: &ReadRequest<'_>) -> Option<Reach> {
        match request {
            ReadRequest::Values { part, .. } => {
                Some(self.bounded(stretch::reach(part.segments(self.geometry.chunk())), part))
            }
            ReadRequest::Defined { .. } => Some(Reach::of([])),
            ReadRequest::DefinedValues { cells, .. } => Some(self.selected(cells)),
            ReadRequest::Sparse(_) | ReadRequest::DefinedHeaped { .. } => None,
        }
    }

    /// The cells that a write changes, and those that it puts back as they were.
    fn write_reach(&self, _: &Dims, request: &WriteRequest<'_>) -> Option<Reach> {
        match request {
            WriteRequest::Values { part, source } => {
                let element = self.geometry.element_size();
                let stretch = Stretch::new(&self.medium, 0, element);
                let segments = || part.segments(self.geometry.chunk());
                Some(self.bounded(stretch.write_reach(segments, source), part))
            }
            WriteRequest::Erase { cells } => Some(self.selected(cells)),
            WriteRequest::Sparse(_) => None,
        }
    }
}

/// A reach in the box that cells lie in.
fn within(reach: Reach, cells: &Selection, dims: &[u64]) -> Reach {
    let Some((first, last)) = cells.bounds(dims) else { return reach };
    reach.within(first.into_iter().zip(last))
}

fn no_space() -> Error {
    Error::Internal("no space for the data".into())
}

fn range(segment: &Segment, element: usize) -> std::ops::Range<usize> {
    let start = segment.cell as usize * element;
    start..start + segment.len as usize * element
}

fn inside<'d>(data: &'d [u8], segment: &Segment, element: usize) -> Result<&'d [u8]> {
    let found = data.get(range(segment, element));
    found.ok_or_else(|| Error::Internal("compact data too short".into()))
}

fn inside_mut<'d>(data: &'d mut [u8], segment: &Segment, element: usize) -> Result<&'d mut [u8]> {
    let found = data.get_mut(range(segment, element));
    found.ok_or_else(|| Error::Internal("compact data too short".into()))
}
