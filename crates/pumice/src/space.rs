//! The bytes of a file's structures.

use crate::{CommittedDatatype, Dataset, File, Group, VirtualMapping};
use pumice_engine::object::Object;
use pumice_engine::{Result, measure, survey};
use std::sync::Arc;

pub use pumice_engine::measure::{ExternalPiece, FileSpace, ObjectSpace};
pub use pumice_engine::survey::{Place, PlaceKind};

/// Everything that belongs to an object, at addresses from the beginning of the file.
fn places(file: &pumice_engine::file::File, object: &Arc<Object>) -> Result<Vec<Place>> {
    Ok(absolute(file, survey::object(file, object)?))
}

fn absolute(file: &pumice_engine::file::File, mut places: Vec<Place>) -> Vec<Place> {
    let base = file.medium().base();
    places.iter_mut().for_each(|place| place.address = place.address.saturating_add(base));
    places
}

impl File {
    /// The bytes of structures that belong to the file as a whole: superblock, shared messages,
    /// managers of free space.
    ///
    /// ```
    /// let file = pumice::File::in_memory()?;
    /// let space = file.space()?;
    /// assert_eq!(space.superblock, 48);
    /// assert!(space.free.is_empty());
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn space(&self) -> Result<FileSpace> {
        measure::file(self.engine())
    }

    /// The ranges of structures that belong to the file as a whole: superblock, shared messages,
    /// managers of free space, and the free ranges that these list.
    ///
    /// [`Group::places`], [`Dataset::places`] and [`CommittedDatatype::places`] give the ranges of
    /// objects. Nothing in the file refers to a range that none of these has.
    ///
    /// ```
    /// use pumice::PlaceKind;
    ///
    /// let file = pumice::File::in_memory()?;
    /// file.flush()?;
    /// let places = file.places()?;
    /// assert_eq!((places[0].address, places[0].length), (0, 48));
    /// assert_eq!(places[0].kind, PlaceKind::Superblock);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn places(&self) -> Result<Vec<Place>> {
        Ok(absolute(self.engine(), survey::file(self.engine())?))
    }

    /// Whether the file has all `length` bytes from an address on, counted from its beginning. Of
    /// several files that are one, each has an end of its own.
    ///
    /// ```
    /// let file = pumice::File::in_memory()?;
    /// file.flush()?;
    /// assert!(file.has_bytes(0, 48)?);
    /// assert!(!file.has_bytes(1 << 40, 1)?);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn has_bytes(&self, address: u64, length: u64) -> Result<bool> {
        let medium = self.engine().medium();
        match address.checked_sub(medium.base()) {
            Some(address) => medium.reaches(address, length),
            None => Ok(length <= medium.base() - address),
        }
    }

    /// Watches which collections of the global heap are read from now on.
    pub fn watch_global_heap(&self) {
        self.engine().global_heap().watch();
    }

    /// The ranges of global heap collections that reads have led to since they are
    /// [watched](Self::watch_global_heap). A file has no list of them.
    ///
    /// ```
    /// let file = pumice::File::in_memory()?;
    /// file.watch_global_heap();
    /// assert!(file.global_heap_places().is_empty());
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn global_heap_places(&self) -> Vec<Place> {
        absolute(self.engine(), survey::global_heap(self.engine()))
    }
}

impl Group {
    /// The version of its object header, 1 or 2.
    pub fn header_version(&self) -> u8 {
        self.object().version()
    }

    /// The bytes of the group's header, index, heap and attributes.
    ///
    /// ```
    /// let file = pumice::File::in_memory()?;
    /// let space = file.create_group("empty")?.space()?;
    /// assert!(space.header >= 40);
    /// assert_eq!(space.heap, 0, "no links are stored densely");
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn space(&self) -> Result<ObjectSpace> {
        measure::object(self.engine(), self.object()).map_err(|error| error.at(self.path()))
    }

    /// The ranges of the group: its header, the index and heap of its links, and its attributes,
    /// with addresses from the beginning of the file. Reads every block of them.
    ///
    /// ```
    /// let file = pumice::File::in_memory()?;
    /// let group = file.create_group("empty")?;
    /// assert_eq!(group.places()?.len(), 1, "an object header");
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn places(&self) -> Result<Vec<Place>> {
        places(self.engine(), self.object()).map_err(|error| error.at(self.path()))
    }
}

impl Dataset {
    /// The version of its object header, 1 or 2.
    pub fn header_version(&self) -> u8 {
        self.state().object().version()
    }

    /// The bytes of the dataset's header, chunk index and attributes; not of its elements.
    ///
    /// ```
    /// let file = pumice::File::in_memory()?;
    /// let dataset = file.new_dataset::<u8>().shape([10]).create("x")?;
    /// assert!(dataset.space()?.header > 0);
    /// assert_eq!(dataset.space()?.index, 0, "it has no chunks");
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn space(&self) -> Result<ObjectSpace> {
        let space = measure::object(self.engine(), self.state().object());
        let mut space = space.map_err(|error| error.at(self.path()))?;
        space.index = self.index_size()?;
        Ok(space)
    }

    /// The ranges of the dataset: its header, its elements or chunks, its chunk index, and its
    /// attributes, with addresses from the beginning of the file. Dirty chunks are written first.
    /// Collections of the global heap belong to the file.
    ///
    /// ```
    /// use pumice::PlaceKind;
    ///
    /// let file = pumice::File::in_memory()?;
    /// let dataset = file.new_dataset::<u8>().shape([10]).chunk([5]).create("x")?;
    /// dataset.write(.., &[1; 10])?;
    /// file.flush()?;
    /// let places = dataset.places()?;
    /// assert_eq!(places.iter().filter(|place| place.kind == PlaceKind::Chunk).count(), 2);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn places(&self) -> Result<Vec<Place>> {
        self.flush()?;
        places(self.engine(), self.state().object()).map_err(|error| error.at(self.path()))
    }
}

impl Dataset {
    /// Bytes of the description of its datatype.
    ///
    /// ```
    /// let file = pumice::File::in_memory()?;
    /// let dataset = file.new_dataset::<u8>().shape([10]).create("x")?;
    /// assert_eq!(dataset.datatype_length()?, 12);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn datatype_length(&self) -> Result<u64> {
        let length = measure::description(self.engine(), self.state().object());
        length.map_err(|error| error.at(self.path()))
    }

    /// The external files that hold its elements, in order; none if the elements are in the file
    /// itself.
    pub fn external_pieces(&self) -> Result<Vec<ExternalPiece>> {
        let pieces = measure::external_pieces(self.engine(), self.state().object());
        pieces.map_err(|error| error.at(self.path()))
    }

    /// The mappings of a virtual dataset, in order; none for others.
    pub fn virtual_mappings(&self) -> &[VirtualMapping] {
        self.state().sources().map_or(&[], |sources| sources.mappings())
    }
}

impl CommittedDatatype {
    /// The version of its object header, 1 or 2.
    pub fn header_version(&self) -> u8 {
        self.object().version()
    }

    /// The bytes of the datatype's header and attributes.
    pub fn space(&self) -> Result<ObjectSpace> {
        measure::object(self.engine(), self.object()).map_err(|error| error.at(self.path()))
    }

    /// The ranges of the datatype: its header and its attributes, with addresses from the beginning
    /// of the file.
    pub fn places(&self) -> Result<Vec<Place>> {
        places(self.engine(), self.object()).map_err(|error| error.at(self.path()))
    }
}
