//! Reading and writing values of Rust types: plain ones as bytes, others value by value.

use super::Dataset;
use crate::select::Select;
use crate::typed::{self, Outgoing, is_unconvertible};
use crate::{Transfer, Value};
use pumice_engine::{Error, Result};
use pumice_layout::buffer::Output;
use pumice_medium::zeroed;
use pumice_space::{Dims, Selection, SpaceError};
use pumice_types::{Datatype, H5Type, from_elements, plain, to_elements};

impl Dataset {
    /// Reads the selected cells as `T`, in row-major order (points: in their order).
    ///
    /// `T` is a number, `bool`, `String`, `Vec` or array of such, or a struct or enum with
    /// [`derive(H5Type)`](macro@crate::H5Type). Text of a fixed length is read as `String` too, numbers and bits as
    /// `bool`.
    ///
    /// ```
    /// # let file = pumice::File::in_memory()?;
    /// let squares = file.new_dataset::<u8>().shape([2, 3]).create("squares")?;
    /// squares.write(.., &[0u8, 1, 4, 9, 16, 25])?;
    /// assert_eq!(squares.read::<f32>((1, 1..3))?, [16.0, 25.0]);
    ///
    /// let names = file.new_dataset::<String>().shape([3]).create("names")?;
    /// names.write(1.., &["tuff", "basalt"])?;
    /// assert_eq!(names.read::<String>(..)?, ["", "tuff", "basalt"]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn read<T: H5Type>(&self, selection: impl Select) -> Result<Vec<T>> {
        self.read_with(selection, &Transfer::default())
    }

    /// Reads the one cell of a scalar dataset.
    ///
    /// ```
    /// # let file = pumice::File::in_memory()?;
    /// file.new_dataset::<f64>().create("mass")?.write(.., &[1.5])?;
    /// assert_eq!(file.dataset("mass")?.read_scalar::<f64>()?, 1.5);
    ///
    /// let many = file.new_dataset::<f64>().shape([2]).create("masses")?;
    /// assert!(many.read_scalar::<f64>().is_err());
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn read_scalar<T: H5Type>(&self) -> Result<T> {
        let shape = self.shape();
        if shape.iter().any(|&axis| axis != 1) {
            let what = format!("a dataset of shape {shape:?} cannot be read as one value");
            return self.at(Err(Error::RankMismatch(what)));
        }
        let one = self.read(..)?.pop();
        one.ok_or_else(|| Error::CountMismatch("a dataset without a value".into()).at(self.path()))
    }

    /// Reads the selected cells into `buffer`.
    pub fn read_into<T: H5Type>(&self, selection: impl Select, buffer: &mut [T]) -> Result<()> {
        self.read_into_with(selection, buffer, &Transfer::default())
    }

    /// Reads cells with the options of `transfer`; see [`read`](Self::read). It must not have
    /// places in memory of its own: see [`read_into_with`](Self::read_into_with).
    pub fn read_with<T: H5Type>(
        &self,
        selection: impl Select,
        transfer: &Transfer,
    ) -> Result<Vec<T>> {
        self.selected(selection, |selection, dims| {
            match self.read_by_engine(selection, dims, transfer) {
                Err(error) if is_unconvertible(&error) && transfer.is_simple() => {
                    let found = self.state.read_heaped(selection)?;
                    typed::values(self.engine(), self.datatype(), &found)
                        .map_err(|other| if is_unconvertible(&other) { error } else { other })
                }
                done => done,
            }
        })
    }

    /// Reads elements that the engine converts.
    fn read_by_engine<T: H5Type>(
        &self,
        selection: &Selection,
        dims: &Dims,
        transfer: &Transfer,
    ) -> Result<Vec<T>> {
        let count = self.count(selection, dims, T::SIZE.max(size_of::<T>()))?;
        let memory = T::datatype();
        if let Some(values) = plain::zeroed::<T>(count) {
            let mut values = values.map_err(|_| no_memory(count))?;
            let output = Output::zeroed(plain::bytes_mut(&mut values).unwrap_or_default());
            self.state.read_with(selection, &memory, output, &transfer.0)?;
            return Ok(values);
        }
        if memory.has_references() {
            return Err(self.no_conversion(&memory));
        }
        let mut elements = zeroed(count * T::SIZE)?;
        self.state.read_with(selection, &memory, Output::zeroed(&mut elements), &transfer.0)?;
        Ok(from_elements(&elements, &Default::default())?)
    }

    fn no_conversion(&self, memory: &Datatype) -> Error {
        let (from, to) = (self.datatype().to_string(), memory.to_string());
        Error::Type(pumice_types::TypeError::NoConversion { from, to })
    }

    /// Reads cells into a buffer with the options of `transfer`; see
    /// [`read_into`](Self::read_into).
    pub fn read_into_with<T: H5Type>(
        &self,
        selection: impl Select,
        buffer: &mut [T],
        transfer: &Transfer,
    ) -> Result<()> {
        if T::PLAIN {
            let read = self.selected(&selection, |selection, _| {
                let output = Output::new(plain::bytes_mut(buffer).unwrap_or_default());
                self.state.read_with(selection, &T::datatype(), output, &transfer.0)
            });
            match read {
                Err(error) if is_unconvertible(&error) && transfer.is_simple() => {}
                done => return done,
            }
        }
        let values = self.read_with::<T>(selection, transfer)?;
        if values.len() != buffer.len() {
            let (memory, file) = (buffer.len() as u64, values.len() as u64);
            return self.at(Err(SpaceError::CountMismatch { file, memory }.into()));
        }
        buffer.iter_mut().zip(values).for_each(|(place, value)| *place = value);
        Ok(())
    }

    /// Writes `values` to the selected cells, in row-major order (points: in their order). They may be of any type
    /// that converts to the dataset's; see [`read`](Self::read).
    ///
    /// Members of a compound that `T` lacks keep their values.
    ///
    /// In a sparse dataset every cell that is written is defined from then on, a zero too: of data that are
    /// mostly zeros, use [`write_except`](Self::write_except), or write the cells that have a value with
    /// [`write_points`](Self::write_points).
    pub fn write<T: H5Type>(&self, selection: impl Select, values: &[T]) -> Result<()> {
        self.write_with(selection, values, &Transfer::default())
    }

    /// Writes values with the options of `transfer`; see [`write`](Self::write).
    pub fn write_with<T: H5Type>(
        &self,
        selection: impl Select,
        values: &[T],
        transfer: &Transfer,
    ) -> Result<()> {
        self.make_room()?;
        let memory = T::datatype();
        if let Some(bytes) = plain::bytes(values) {
            let written = self.selected(&selection, |selection, _| {
                self.state.write_with(selection, &memory, bytes, &transfer.0)
            });
            match written {
                Err(error) if is_unconvertible(&error) && transfer.is_simple() => {
                    return match self.write_loosely(selection, values, &memory) {
                        Err(other) if is_unconvertible(&other) => Err(error),
                        done => done,
                    };
                }
                done => return done,
            }
        }
        if !memory.has_references() {
            let (elements, _) = self.at(to_elements(values).map_err(Error::from))?;
            let written = self.selected(&selection, |selection, _| {
                self.state.write_with(selection, &memory, &elements, &transfer.0)
            });
            match written {
                Err(error) if is_unconvertible(&error) && transfer.is_simple() => {}
                done => return done,
            }
        }
        self.write_loosely(selection, values, &memory)
    }

    /// Writes values with the objects that they refer to.
    fn write_loosely<T: H5Type>(
        &self,
        selection: impl Select,
        values: &[T],
        memory: &Datatype,
    ) -> Result<()> {
        let elements = self.at(to_elements(values).map_err(Error::from))?;
        let mut outgoing =
            self.at(Outgoing::new(self.engine(), memory, elements, self.datatype()))?;
        self.selected(selection, |selection, _| {
            // Members without a value are read, and written again.
            let deciding = (!outgoing.is_complete()).then(|| self.state.deciding());
            let onto = deciding.is_some().then(|| self.state.read_heaped(selection)).transpose()?;
            if let Some(onto) = &onto
                && onto.elements.len() / self.datatype().size().max(1) != values.len()
            {
                let file = (onto.elements.len() / self.datatype().size().max(1)) as u64;
                return Err(SpaceError::CountMismatch { file, memory: values.len() as u64 }.into());
            }
            let made = outgoing.convert(onto)?;
            self.state.write_heaped(selection, &made.elements, &made.heap)
        })
    }
}

impl Dataset {
    /// Reads one value of any datatype: that of a scalar dataset.
    ///
    /// ```
    /// # let file = pumice::File::in_memory()?;
    /// file.new_dataset::<bool>().create("done")?.write(.., &[true])?;
    /// assert_eq!(file.dataset("done")?.read_value()?.to_string(), "TRUE");
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn read_value(&self) -> Result<Value> {
        let one = self.read_values(..)?.pop();
        one.ok_or_else(|| Error::CountMismatch("a dataset without a value".into()).at(self.path()))
    }
}

fn no_memory(count: usize) -> Error {
    Error::NoMemory(format!("no memory for {count} cells"))
}
