//! Strings and sequences of variable length, and values of any datatype.

use super::{Dataset, Defined};
use crate::select::Select;
use pumice_engine::{Error, Result};
use pumice_layout::Storage;
use pumice_types::{
    Conversion, Datatype, Element, Heaped, Sequences, Strings, Value, VarLenKind, heaped,
};

impl Dataset {
    /// Reads strings of variable or fixed length, in row-major order (points: in their order). Null
    /// gives an empty string.
    ///
    /// They are in one buffer, without an allocation for each; [`Strings::to_vec`] makes a
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

    /// Writes strings to the selected cells, in row-major order (points: in their order). Strings
    /// of a fixed length end as their datatype says; if one is too long, that is an error, and
    /// nothing is written.
    ///
    /// ```
    /// use pumice::File;
    ///
    /// let file = File::in_memory()?;
    /// let notes = file.new_strings().shape([1000, 1000]).sparse().create("notes")?;
    /// notes.write_strings((3, 0..2), &["new", "old"])?;
    /// assert_eq!(notes.read_strings((2..4, 1))?, ["", "old"]);
    /// assert_eq!(notes.count_defined(..)?, 2);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn write_strings<S: AsRef<[u8]>>(
        &self,
        selection: impl Select,
        strings: &[S],
    ) -> Result<()> {
        self.write_packed_strings(selection, &strings.iter().collect())
    }

    /// [`write_strings`](Self::write_strings) from one buffer, which is not copied unless the
    /// strings have a fixed length.
    pub fn write_packed_strings(&self, selection: impl Select, strings: &Strings) -> Result<()> {
        if let Some(elements) = self.fixed_strings(strings)? {
            return self.write_bytes(selection, &elements);
        }
        self.make_room()?;
        self.selected(selection, |selection, _| {
            self.state.write_lists(selection, strings.offsets(), strings.bytes())
        })
    }

    /// Strings as elements, if the dataset's strings have a fixed length.
    pub(crate) fn fixed_strings(&self, strings: &Strings) -> Result<Option<Vec<u8>>> {
        match self.datatype() {
            Datatype::VarLen(varlen) if matches!(varlen.kind, VarLenKind::String { .. }) => {
                Ok(None)
            }
            Datatype::String(string) => {
                self.at(strings.to_fixed(string).map(Some).map_err(Error::from))
            }
            other => self.at(Err(Error::TypeMismatch(format!("{other} is no string")))),
        }
    }

    /// Writes sequences to the selected cells, their values converted to the file's type.
    ///
    /// ```
    /// use pumice::{Datatype, File, Sequences};
    ///
    /// let file = File::in_memory()?;
    /// let builder = file.new_sequences(Datatype::i16_be()).shape([3]).variable_length();
    /// let walks = builder.create("walks")?;
    /// let two: Sequences<i32> = [vec![1, 2, 3], vec![]].into_iter().collect();
    /// walks.write_sequences(0..2, &two)?;
    /// assert_eq!(walks.read_sequences::<f64>(..)?[0], [1.0, 2.0, 3.0]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn write_sequences<T: Element>(
        &self,
        selection: impl Select,
        sequences: &Sequences<T>,
    ) -> Result<()> {
        let heap = self.sequence_values(sequences)?;
        self.make_room()?;
        self.selected(selection, |selection, _| {
            self.state.write_lists(selection, sequences.offsets(), &heap)
        })
    }

    /// The values of sequences in the file's type.
    pub(crate) fn sequence_values<T: Element>(&self, sequences: &Sequences<T>) -> Result<Vec<u8>> {
        let varlen = match self.datatype() {
            Datatype::VarLen(varlen) if varlen.kind == VarLenKind::Sequence => varlen,
            other => return self.at(Err(Error::TypeMismatch(format!("{other} is no sequence")))),
        };
        let (base, count) = (varlen.base.size(), sequences.values().len());
        let convert = || -> Result<Vec<u8>> {
            let conversion = Conversion::new(&T::datatype(), &varlen.base)?;
            let mut heap = vec![0; count * base];
            conversion.convert(bytemuck::cast_slice(sequences.values()), &mut heap)?;
            Ok(heap)
        };
        self.at(convert())
    }

    /// Writes values of any datatype, however nested.
    ///
    /// ```
    /// use pumice::{Datatype, File, Value};
    ///
    /// let file = File::in_memory()?;
    /// let tags = Datatype::varlen(Datatype::varlen_string(16), 16);
    /// let photo = Datatype::compound([("id", Datatype::i32_le()), ("tags", tags)]);
    /// let photos = file.new_dataset_of(photo).shape([10]).sparse().create("photos")?;
    /// let tags = Value::Sequence(vec!["sea".into(), "sun".into()]);
    /// let first = Value::Compound(vec![("id".into(), Value::Integer(7)), ("tags".into(), tags)]);
    /// photos.write_values(4, &[first.clone()])?;
    /// assert_eq!(photos.read_values(4)?, [first]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn write_values(&self, selection: impl Select, values: &[Value]) -> Result<()> {
        let heaped = Heaped::from_values(self.datatype(), values).map_err(Error::from);
        self.write_heaped(selection, &self.at(heaped)?)
    }

    /// Writes elements of the dataset's own type with everything that they refer to.
    pub fn write_heaped(&self, selection: impl Select, values: &Heaped) -> Result<()> {
        self.make_room()?;
        self.selected(selection, |selection, _| {
            self.state.write_heaped(selection, &values.elements, &values.heap)
        })
    }

    /// Coordinates of the selected cells that are defined, and their strings.
    pub fn read_defined_strings(&self, selection: impl Select) -> Result<(Vec<u64>, Strings)> {
        let (coordinates, heaped) = self.read_defined_heaped(selection)?;
        let strings = Strings::from_heaped(self.datatype(), heaped);
        Ok((coordinates, self.at(strings.map_err(Error::from))?))
    }

    /// Coordinates of the selected cells that are defined, and their sequences, with values converted
    /// to `T`.
    ///
    /// ```
    /// use pumice::{Datatype, File, Sequences};
    ///
    /// let file = File::in_memory()?;
    /// let builder = file.new_sequences(Datatype::i16_le()).shape([100]).sparse();
    /// let walks = builder.create("walks")?;
    /// let two: Sequences<i16> = [vec![1, 2, 3], vec![]].into_iter().collect();
    /// walks.write_sequences(7..9, &two)?;
    /// let (cells, sequences) = walks.read_defined_sequences::<i32>(..)?;
    /// assert_eq!((cells.as_slice(), &sequences[0]), (&[7, 8][..], &[1, 2, 3][..]));
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn read_defined_sequences<T: Element>(
        &self,
        selection: impl Select,
    ) -> Result<(Vec<u64>, Sequences<T>)> {
        let (coordinates, heaped) = self.read_defined_heaped(selection)?;
        let sequences = Sequences::from_heaped(self.datatype(), &heaped);
        Ok((coordinates, self.at(sequences.map_err(Error::from))?))
    }

    /// Coordinates and values of the selected cells that are defined, of any datatype.
    pub fn read_defined_values(&self, selection: impl Select) -> Result<Defined<Value>> {
        let (coordinates, heaped) = self.read_defined_heaped(selection)?;
        let values = self.at(heaped.values(self.datatype()).map_err(Error::from))?;
        Ok(Defined { rank: self.state.dims().len(), coordinates, values })
    }

    /// Coordinates of the selected cells that are defined, and their values with everything that
    /// they refer to. Cells are ordered by chunk, and within a chunk in row-major order.
    pub fn read_defined_heaped(&self, selection: impl Select) -> Result<(Vec<u64>, Heaped)> {
        let (mut coordinates, mut all) = (Vec::new(), Heaped::default());
        let chunk = self.state.layout().geometry.chunk();
        self.selected(selection, |selection, _| {
            (coordinates, all) = Default::default();
            self.state.read_defined_heaped_each(selection, |mut part| {
                let origin = part.chunk.iter().zip(chunk).map(|(&number, &side)| number * side);
                let origin: Vec<u64> = origin.collect();
                part.cells.append_coordinates(chunk, &origin, &mut coordinates);
                let base = all.heap.len() as u64;
                all.heap.append(&mut part.values.heap);
                let elements = &mut part.values.elements;
                let moved = |old| old + base;
                heaped::move_references(self.datatype(), elements, &mut all.heap, &moved)?;
                all.elements.append(elements);
                Ok(())
            })
        })?;
        Ok((coordinates, all))
    }

    /// Sets the share of a chunk's heap in memory that overwritten or erased values may take, in
    /// percent (25 by default). Above it the heap is compacted; stored heaps have no such rests.
    pub fn set_heap_waste(&self, percent: u32) {
        if let Storage::VariableLength(layout) = &self.state.layout().storage {
            layout.set_waste(percent);
        }
    }

    /// Reads elements in the dataset's own type, with everything that they refer to in one heap.
    /// [`read_bytes`](Self::read_bytes) gives the references as the file has them.
    pub fn read_heaped(&self, selection: impl Select) -> Result<Heaped> {
        self.selected(selection, |selection, _| self.state.read_heaped(selection))
    }
}
