//! What a file's structures take of its bytes.

use crate::{CommittedDatatype, Dataset, File, Group};
use pumice_engine::{Result, measure};

pub use pumice_engine::measure::{ExternalPiece, FileSpace, ObjectSpace};

impl File {
    /// What belongs to the file as a whole: superblock, shared messages, managers of free space.
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
}

impl Group {
    /// The version of its object header, 1 or 2.
    pub fn header_version(&self) -> u8 {
        self.object().version()
    }

    /// What the group's header, index and heap take, and its attributes.
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
}

impl Dataset {
    /// The version of its object header, 1 or 2.
    pub fn header_version(&self) -> u8 {
        self.state().object().version()
    }

    /// What the dataset's header and chunk index take, and its attributes; not its elements.
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

    /// The files outside that hold its elements, in order; none if these are in the file itself.
    pub fn external_pieces(&self) -> Result<Vec<ExternalPiece>> {
        let pieces = measure::external_pieces(self.engine(), self.state().object());
        pieces.map_err(|error| error.at(self.path()))
    }
}

impl CommittedDatatype {
    /// The version of its object header, 1 or 2.
    pub fn header_version(&self) -> u8 {
        self.object().version()
    }

    /// What the datatype's header takes, and its attributes.
    pub fn space(&self) -> Result<ObjectSpace> {
        measure::object(self.engine(), self.object()).map_err(|error| error.at(self.path()))
    }
}
