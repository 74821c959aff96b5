//! Strings and sequences of variable length, and values of any datatype.

use super::Dataset;
use crate::select::Select;
use pumice_engine::{Error, Result};
use pumice_types::{Element, Heaped, Sequences, Strings, Value};

impl Dataset {
    /// Reads strings of variable or fixed length, in row-major order (points: in their order). Null
    /// gives an empty string.
    ///
    /// They arrive in one buffer, without an allocation for each; [`Strings::to_vec`] makes a
    /// `Vec<String>` of them.
    pub fn read_strings(&self, selection: impl Select) -> Result<Strings> {
        let heaped = self.read_heaped(selection)?;
        self.at(Strings::from_heaped(self.datatype(), heaped).map_err(Error::from))
    }

    /// Reads sequences of variable length, their values converted to `T`. Null gives an empty one.
    pub fn read_sequences<T: Element>(&self, selection: impl Select) -> Result<Sequences<T>> {
        let heaped = self.read_heaped(selection)?;
        self.at(Sequences::from_heaped(self.datatype(), &heaped).map_err(Error::from))
    }

    /// Reads elements of any datatype, however nested, as owned values.
    pub fn read_values(&self, selection: impl Select) -> Result<Vec<Value>> {
        let heaped = self.read_heaped(selection)?;
        self.at(heaped.values(self.datatype()).map_err(Error::from))
    }

    /// Reads elements in the dataset's own type, with everything that they refer to in one heap.
    /// [`read_bytes`](Self::read_bytes) gives the references as the file has them.
    pub fn read_heaped(&self, selection: impl Select) -> Result<Heaped> {
        let selection = self.selection(selection)?;
        self.at(self.state.read_heaped(&selection))
    }
}
