//! Cells that are named one by one, where they hold strings, sequences or values of any datatype.
//!
//! Each form that [`Dataset::write_at`] and similar methods have for elements of a fixed size is
//! here for strings, sequences and values. Many cells at once are written chunk by chunk; single
//! cells are kept in the chunk's log until they are read, so that n of them cost n log n in a chunk
//! of any size.

use crate::Dataset;
use pumice_engine::{Error, Result};
use pumice_space::{Points, Selection};
use pumice_types::{Element, Sequences, Strings, Value};

/// Strings of variable or fixed length.
impl Dataset {
    /// Writes one string to each of the points, in any order; where a point repeats, its last string
    /// counts.
    ///
    /// ```
    /// use pumice::{File, Points};
    ///
    /// # let file = File::in_memory()?;
    /// let notes = file.new_strings().shape([3, 5]).sparse().create("notes")?;
    /// let (rows, columns) = ([2u32, 0, 2], [3u32, 4, 3]);
    /// let points = Points::columns([&rows[..], &columns[..]])?;
    /// notes.write_strings_at(&points, &["draft", "old", "new"])?;
    /// assert_eq!(notes.count_defined(..)?, 2);
    /// assert_eq!(notes.read_strings_at(&points)?, ["new", "old", "new"]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn write_strings_at<S: AsRef<[u8]>>(
        &self,
        points: &Points<'_>,
        strings: &[S],
    ) -> Result<()> {
        self.write_packed_strings_at(points, &strings.iter().collect())
    }

    /// [`write_strings_at`](Self::write_strings_at) from one buffer, which is not copied unless the
    /// strings have a fixed length.
    pub fn write_packed_strings_at(&self, points: &Points<'_>, strings: &Strings) -> Result<()> {
        self.write_packed_strings(self.cells_of(points)?, strings)
    }

    /// The string of each of the points, of variable or fixed length; the fill value where none is
    /// defined.
    pub fn read_strings_at(&self, points: &Points<'_>) -> Result<Strings> {
        self.read_strings(self.cells_of(points)?)
    }

    /// Writes one string.
    ///
    /// ```
    /// # let file = pumice::File::in_memory()?;
    /// let notes = file.new_strings().shape([1000, 1000]).sparse().create("notes")?;
    /// notes.write_string_point(&[3, 4], "basalt")?;
    /// assert_eq!(notes.read_strings([3, 4])?, ["basalt"]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn write_string_point(&self, point: &[u64], string: impl AsRef<[u8]>) -> Result<()> {
        self.require_rank(point)?;
        match point {
            // The one cell of a scalar.
            [] => self.write_strings(.., &[string]),
            _ => self.write_string_coordinates(point, &[string]),
        }
    }

    /// Writes strings to points given as arrays; see [`write_strings_at`](Self::write_strings_at).
    pub fn write_string_points<S: AsRef<[u8]>, const N: usize>(
        &self,
        points: &[[u64; N]],
        strings: &[S],
    ) -> Result<()> {
        self.write_strings_at(&self.listed(N, points.as_flattened())?, strings)
    }

    /// Writes pairs of coordinates and string; see
    /// [`write_string_points`](Self::write_string_points).
    ///
    /// ```
    /// # let file = pumice::File::in_memory()?;
    /// let notes = file.new_strings().shape([9, 9]).sparse().create("notes")?;
    /// notes.write_string_cells([([2, 3], "tuff"), ([7, 0], "")])?;
    /// assert_eq!(notes.count_defined(..)?, 2, "an empty string that was written is defined");
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn write_string_cells<S: AsRef<[u8]>, const N: usize>(
        &self,
        cells: impl IntoIterator<Item = ([u64; N], S)>,
    ) -> Result<()> {
        let (mut points, mut strings) = (Vec::new(), Strings::new());
        for (point, string) in cells {
            points.push(point);
            strings.push(string);
        }
        self.write_packed_strings_at(&self.listed(N, points.as_flattened())?, &strings)
    }

    /// Writes strings to points whose coordinates are one after another; see
    /// [`write_string_points`](Self::write_string_points).
    pub fn write_string_coordinates<S: AsRef<[u8]>>(
        &self,
        coordinates: &[u64],
        strings: &[S],
    ) -> Result<()> {
        self.write_strings_at(&self.listed(self.state().dims().len(), coordinates)?, strings)
    }
}

/// Sequences of variable length.
impl Dataset {
    /// Writes one sequence to each of the points, in any order, values converted to the file's type;
    /// where a point repeats, its last sequence counts.
    ///
    /// ```
    /// use pumice::{Datatype, File, Points, Sequences};
    ///
    /// # let file = File::in_memory()?;
    /// let walks = file.new_sequences(Datatype::i16_be()).shape([50]).sparse().create("walks")?;
    /// let points = Points::list(1, &[40, 7])?;
    /// let two: Sequences<i32> = [vec![1, 2, 3], vec![]].into_iter().collect();
    /// walks.write_sequences_at(&points, &two)?;
    /// assert_eq!(walks.read_sequences_at::<f64>(&points)?[0], [1.0, 2.0, 3.0]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn write_sequences_at<T: Element>(
        &self,
        points: &Points<'_>,
        sequences: &Sequences<T>,
    ) -> Result<()> {
        self.write_sequences(self.cells_of(points)?, sequences)
    }

    /// The sequence of each of the points, values converted to `T`; the fill value where none is defined.
    pub fn read_sequences_at<T: Element>(&self, points: &Points<'_>) -> Result<Sequences<T>> {
        self.read_sequences(self.cells_of(points)?)
    }

    /// Writes one sequence.
    ///
    /// ```
    /// use pumice::{Datatype, File};
    ///
    /// # let file = File::in_memory()?;
    /// let walks = file.new_sequences(Datatype::i16_le()).shape([50]).sparse().create("walks")?;
    /// walks.write_sequence_point(&[7], &[1i16, 2, 3])?;
    /// assert_eq!(walks.read_sequences::<i16>(7)?[0], [1, 2, 3]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn write_sequence_point<T: Element>(&self, point: &[u64], sequence: &[T]) -> Result<()> {
        self.require_rank(point)?;
        let one = [sequence].into_iter().collect();
        match point {
            [] => self.write_sequences(.., &one),
            _ => self.write_sequence_coordinates(point, &one),
        }
    }

    /// Writes sequences to points given as arrays; see
    /// [`write_sequences_at`](Self::write_sequences_at).
    pub fn write_sequence_points<T: Element, const N: usize>(
        &self,
        points: &[[u64; N]],
        sequences: &Sequences<T>,
    ) -> Result<()> {
        self.write_sequences_at(&self.listed(N, points.as_flattened())?, sequences)
    }

    /// Writes pairs of coordinates and sequence; see
    /// [`write_sequence_points`](Self::write_sequence_points).
    ///
    /// ```
    /// use pumice::{Datatype, File};
    ///
    /// # let file = File::in_memory()?;
    /// let hits = file.new_sequences(Datatype::f32_le()).shape([9, 9]).sparse().create("hits")?;
    /// hits.write_sequence_cells([([2, 3], vec![1.5f32, 2.5]), ([7, 0], vec![])])?;
    /// assert_eq!(hits.count_defined(..)?, 2);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn write_sequence_cells<T: Element, S: AsRef<[T]>, const N: usize>(
        &self,
        cells: impl IntoIterator<Item = ([u64; N], S)>,
    ) -> Result<()> {
        let (points, sequences): (Vec<[u64; N]>, Vec<S>) = cells.into_iter().unzip();
        self.write_sequence_points(&points, &sequences.into_iter().collect::<Sequences<T>>())
    }

    /// Writes sequences to points whose coordinates are one after another; see
    /// [`write_sequence_points`](Self::write_sequence_points).
    pub fn write_sequence_coordinates<T: Element>(
        &self,
        coordinates: &[u64],
        sequences: &Sequences<T>,
    ) -> Result<()> {
        self.write_sequences_at(&self.listed(self.state().dims().len(), coordinates)?, sequences)
    }
}

/// Values of any datatype.
impl Dataset {
    /// Writes one value of any datatype, however nested, to each of the points, in any order; where a
    /// point repeats, its last value counts.
    ///
    /// ```
    /// use pumice::{Datatype, File, Points, Value};
    ///
    /// # let file = File::in_memory()?;
    /// let rock = [("id", Datatype::i32_le()), ("name", Datatype::varlen_string(16))];
    /// let rocks = file.new_dataset_of(Datatype::compound(rock)).shape([90]).sparse().create("rocks")?;
    /// let tuff = [("id".into(), Value::Integer(7)), ("name".into(), "tuff".into())];
    /// let tuff = Value::Compound(tuff.into());
    /// rocks.write_values_at(&Points::list(1, &[80, 8])?, &[tuff.clone(), tuff.clone()])?;
    /// assert_eq!(rocks.read_values_at(&Points::list(1, &[8])?)?, [tuff]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn write_values_at(&self, points: &Points<'_>, values: &[Value]) -> Result<()> {
        self.write_values(self.cells_of(points)?, values)
    }

    /// The value of each of the points; the fill value where none is defined.
    pub fn read_values_at(&self, points: &Points<'_>) -> Result<Vec<Value>> {
        self.read_values(self.cells_of(points)?)
    }

    /// Writes one value.
    pub fn write_value_point(&self, point: &[u64], value: &Value) -> Result<()> {
        self.require_rank(point)?;
        self.write_value_coordinates(point, std::slice::from_ref(value))
    }

    /// Writes values of any datatype to points given as arrays; see
    /// [`write_values_at`](Self::write_values_at).
    pub fn write_value_points<const N: usize>(
        &self,
        points: &[[u64; N]],
        values: &[Value],
    ) -> Result<()> {
        self.write_values_at(&self.listed(N, points.as_flattened())?, values)
    }

    /// Writes pairs of coordinates and value; see [`write_value_points`](Self::write_value_points).
    ///
    /// ```
    /// use pumice::{File, Value};
    ///
    /// # let file = File::in_memory()?;
    /// let notes = file.new_strings().shape([9, 9]).sparse().create("notes")?;
    /// notes.write_value_cells([([2, 3], Value::from("tuff")), ([7, 0], Value::Null)])?;
    /// assert_eq!(notes.count_defined(..)?, 2, "null that was written is defined");
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn write_value_cells<const N: usize>(
        &self,
        cells: impl IntoIterator<Item = ([u64; N], Value)>,
    ) -> Result<()> {
        let (points, values): (Vec<[u64; N]>, Vec<Value>) = cells.into_iter().unzip();
        self.write_value_points(&points, &values)
    }

    /// Writes values to points whose coordinates are one after another; see
    /// [`write_value_points`](Self::write_value_points).
    pub fn write_value_coordinates(&self, coordinates: &[u64], values: &[Value]) -> Result<()> {
        self.write_values_at(&self.listed(self.state().dims().len(), coordinates)?, values)
    }
}

impl Dataset {
    /// Points from coordinates that lie one after another.
    pub(super) fn listed<'p>(&self, rank: usize, coordinates: &'p [u64]) -> Result<Points<'p>> {
        if rank > 0 && !coordinates.len().is_multiple_of(rank) {
            return self.at(Err(Error::CountMismatch(format!(
                "{} coordinate(s), which make no whole points of {rank} dimension(s)",
                coordinates.len()
            ))));
        }
        self.at(Points::list(rank, coordinates).map_err(Error::from))
    }

    /// Fails unless a point has as many coordinates as the dataset has dimensions.
    pub(super) fn require_rank(&self, point: &[u64]) -> Result<()> {
        let rank = self.state().dims().len();
        if point.len() == rank {
            return Ok(());
        }
        self.at(Err(Error::RankMismatch(format!(
            "the point {point:?} has {} coordinate(s), and the dataset {rank} dimension(s)",
            point.len()
        ))))
    }

    pub(super) fn cells_of(&self, points: &Points<'_>) -> Result<Selection> {
        self.at(Selection::points(points.rank(), points.to_list()).map_err(Error::from))
    }
}
