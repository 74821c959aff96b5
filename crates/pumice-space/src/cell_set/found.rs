//! The result of searching a set: cells, and the positions of their values.
//!
//! Scattered cells are found as a list, which is made without comparing neighbours. Making a set of
//! them would take longer than reading them, and callers hardly ever want a set.

use super::{CellSet, Division, Form, put_cells};
use crate::{Coordinate, CoordinateWalker, Run, Selection, SpaceError};
use pumice_wide::{Work, run_widely};

/// Cells of a chunk that were found, ascending.
///
/// ```
/// use pumice_space::{CellSet, FoundCells};
///
/// let found = FoundCells::Listed(vec![3, 11]);
/// let mut coordinates = Vec::new();
/// found.append_coordinates(&[4, 5], &[8, 0], &mut coordinates);
/// assert_eq!(coordinates, [8, 3, 10, 1]);
/// assert_eq!(found.into_set(20)?, CellSet::from_list(20, vec![3, 11])?);
/// # Ok::<(), pumice_space::SpaceError>(())
/// ```
#[derive(Clone, Debug)]
pub enum FoundCells {
    /// A list of cells of a chunk of fewer than 2^32 cells.
    Listed(Vec<u32>),
    /// A set, if the cells form runs.
    Set(CellSet),
}

impl From<CellSet> for FoundCells {
    fn from(set: CellSet) -> Self {
        Self::Set(set)
    }
}

impl FoundCells {
    /// The count.
    pub fn len(&self) -> u64 {
        match self {
            Self::Listed(list) => list.len() as u64,
            Self::Set(set) => set.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The set of these cells of a chunk of `cells`.
    pub fn into_set(self, cells: u64) -> Result<CellSet, SpaceError> {
        match self {
            Self::Listed(list) => CellSet::from_list(cells, list),
            Self::Set(set) => Ok(set),
        }
    }

    /// Writes the coordinates of all cells of a chunk of shape `dims` that begins at `origin`, one column per
    /// dimension, each as long as there are cells or longer.
    ///
    /// # Panics
    /// If a column is shorter than that.
    pub fn put_coordinates<C: Coordinate>(
        &self,
        dims: &[u64],
        origin: &[u64],
        columns: &mut [&mut [C]],
    ) {
        match self {
            Self::Listed(cells) => run_widely(PutCells { cells, dims, origin, columns }),
            Self::Set(set) => set.put_coordinates(dims, origin, columns),
        }
    }

    /// Appends the coordinates of all cells, `dims.len()` numbers each, moved by `origin`.
    pub fn append_coordinates(&self, dims: &[u64], origin: &[u64], out: &mut Vec<u64>) {
        match self {
            Self::Listed(cells) => run_widely(AppendCells { cells, dims, origin, out }),
            Self::Set(set) => set.append_coordinates(dims, origin, out),
        }
    }
}

/// Cells that were found, and the positions of their values in the set, as runs.
#[derive(Clone, Debug)]
pub struct Found {
    /// The cells.
    pub cells: FoundCells,
    /// The positions of their values, ascending; runs that touch are one.
    pub positions: Vec<Run>,
}

impl CellSet {
    /// The cells of the set that `wanted` selects in a chunk of shape `dims`, which has as many cells.
    ///
    /// Cost: the runs of the selection and the result, or the cells of the set if these are fewer.
    ///
    /// ```
    /// use pumice_space::{CellSet, Run, Selection};
    ///
    /// let set = CellSet::from_list(20, vec![3, 11, 12])?;
    /// let found = set.find(&Selection::block(&[1, 1], &[3, 2])?, &[4, 5])?;
    /// assert_eq!(found.cells.len(), 2);
    /// assert_eq!(found.positions, [Run { start: 1, len: 2 }]);
    /// # Ok::<(), pumice_space::SpaceError>(())
    /// ```
    pub fn find(&self, wanted: &Selection, dims: &[u64]) -> Result<Found, SpaceError> {
        self.check_shape(dims)?;
        crate::extent::same_rank(dims.len(), wanted.rank().unwrap_or(dims.len()))?;
        if wanted.covers(dims) {
            return Ok(self.find_all());
        }
        let block = wanted.as_block(dims);
        let mut positions = Positions::default();
        // A tall block of a chunk with few cells: these are looked at, and not the block's many rows.
        if let Some((start, count)) = &block {
            if let Some(list) = self.as_list()
                && let Some(found) = run_widely(ListInBlock { cells: self, dims, start, count })
            {
                found.iter().for_each(|&at| positions.add(u64::from(at), 1));
                let cells = found.into_iter().map(|at| list[at as usize]).collect();
                return Ok(Found { cells: FoundCells::Listed(cells), positions: positions.runs });
            }
            if let Some(pieces) = self.runs_in_block(dims, start, count) {
                return self.found_pieces(pieces.into_iter());
            }
        }
        // Points come in any order.
        if wanted.as_points().is_some() || self.is_less_than(wanted, dims) {
            let cells = self.among(wanted, dims)?;
            self.overlaps(cells.runs()).for_each(|piece| positions.add(piece.position, piece.len));
            return Ok(Found { cells: FoundCells::Set(cells), positions: positions.runs });
        }
        if !self.is_scattered() {
            return self.found_pieces(self.overlaps(wanted.runs(dims)));
        }
        let mut cells = self.list_for(wanted.count(dims));
        run_widely(ListWithin { set: self, wanted, dims, list: &mut cells, found: &mut positions });
        Ok(Found { cells: FoundCells::Listed(cells), positions: positions.runs })
    }

    /// All cells.
    fn find_all(&self) -> Found {
        let positions = Run { start: 0, len: self.len };
        let cells = match self.is_scattered() {
            true => {
                let mut list = self.list_for(self.cells);
                run_widely(ListAll { set: self, list: &mut list });
                FoundCells::Listed(list)
            }
            false => FoundCells::Set(self.clone()),
        };
        Found { cells, positions: if self.is_empty() { Vec::new() } else { vec![positions] } }
    }

    fn found_pieces(
        &self,
        pieces: impl Iterator<Item = super::Overlap>,
    ) -> Result<Found, SpaceError> {
        let mut positions = Positions::default();
        let runs = pieces.map(|piece| {
            positions.add(piece.position, piece.len);
            Run { start: piece.cell, len: piece.len }
        });
        let cells = FoundCells::Set(Self::from_runs(self.cells, runs)?);
        Ok(Found { cells, positions: positions.runs })
    }

    /// Whether the cells form hardly any runs, and are kept as a list or as bits.
    fn is_scattered(&self) -> bool {
        matches!(self.form, Form::Cells(_) | Form::Bitmap(_))
    }
}

/// Ascending positions of values; consecutive ones are one run.
#[derive(Default)]
struct Positions {
    runs: Vec<Run>,
}

impl Positions {
    #[inline(always)]
    fn add(&mut self, start: u64, len: u64) {
        match self.runs.last_mut() {
            _ if len == 0 => {}
            Some(last) if last.start + last.len == start => last.len += len,
            _ => self.runs.push(Run { start, len }),
        }
    }
}

/// [`CellSet::list_in_block`], compiled for wide registers.
struct ListInBlock<'a> {
    cells: &'a CellSet,
    dims: &'a [u64],
    start: &'a [u64],
    count: &'a [u64],
}

impl Work for ListInBlock<'_> {
    type Output = Option<Vec<u32>>;

    #[inline(always)]
    fn run(self) -> Self::Output {
        self.cells.list_in_block(self.dims, self.start, self.count)
    }
}

/// [`CellSet::list_within`] of a selection, compiled for wide registers.
struct ListWithin<'a> {
    set: &'a CellSet,
    wanted: &'a Selection,
    dims: &'a [u64],
    list: &'a mut Vec<u32>,
    found: &'a mut Positions,
}

impl Work for ListWithin<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { set, wanted, dims, list, found } = self;
        set.list_within(wanted.runs(dims), list, |range| {
            found.add(range.start as u64, range.len() as u64);
        });
    }
}

/// [`CellSet::put_list`], compiled for wide registers.
struct ListAll<'a> {
    set: &'a CellSet,
    list: &'a mut Vec<u32>,
}

impl Work for ListAll<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.set.put_list(self.list);
    }
}

/// [`put_cells`], compiled for wide registers.
struct PutCells<'a, 'c, C> {
    cells: &'a [u32],
    dims: &'a [u64],
    origin: &'a [u64],
    columns: &'a mut [&'c mut [C]],
}

impl<C: Coordinate> Work for PutCells<'_, '_, C> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        put_cells(self.cells, self.dims, self.origin, self.columns);
    }
}

/// Coordinates one after another.
struct AppendCells<'a> {
    cells: &'a [u32],
    dims: &'a [u64],
    origin: &'a [u64],
    out: &'a mut Vec<u64>,
}

/// Cells whose coordinates are computed before they are appended.
const TOGETHER: usize = 64;

impl Work for AppendCells<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { cells, dims, origin, out } = self;
        out.reserve(cells.len().saturating_mul(dims.len()));
        match (dims, origin) {
            (&[_], &[from]) => out.extend(cells.iter().map(|&cell| from + u64::from(cell))),
            (&[_, width], &[top, left])
                if cells.last().is_none_or(|&last| u64::from(last) < Division::MOST) =>
            {
                let division = Division::by(width);
                let mut together = [[0; 2]; TOGETHER];
                for cells in cells.chunks(TOGETHER) {
                    for (&cell, to) in cells.iter().zip(&mut together) {
                        let (row, column) = division.of(cell);
                        *to = [top + row, left + column];
                    }
                    out.extend_from_slice(together[..cells.len()].as_flattened());
                }
            }
            _ => {
                let mut walker = CoordinateWalker::new(dims);
                for &cell in cells {
                    let at = walker.seek(u64::from(cell));
                    out.extend(at.iter().zip(origin).map(|(at, from)| at + from));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A shape of one to four dimensions, a share of cells in thousandths, how long runs are, and a seed.
    fn chunks() -> impl Strategy<Value = (Vec<u64>, CellSet)> {
        let shape = prop_oneof![
            prop::collection::vec(1u64..2000, 1..=1),
            prop::collection::vec(1u64..70, 2..=2),
            prop::collection::vec(1u64..14, 3..=3),
            prop::collection::vec(1u64..7, 4..=4),
        ];
        let share = prop::sample::select(vec![0u64, 4, 30, 300, 800, 1000]);
        (shape, share, 1u64..30, any::<u64>()).prop_map(|(dims, share, length, seed)| {
            let cells: u64 = dims.iter().product();
            let drawn = |at: u64| {
                (at / length).wrapping_add(seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54
            };
            let defined = (0..cells).filter(|at| drawn(*at) < share * 1024 / 1000);
            (dims.clone(), CellSet::from_sorted_cells(cells, defined).unwrap())
        })
    }

    fn wanted(dims: &[u64], kind: u8, numbers: &[u64]) -> Selection {
        let number = |at: usize| numbers[at % numbers.len()];
        let rank = dims.len();
        let start: Vec<u64> = (0..rank).map(|axis| number(axis) % dims[axis]).collect();
        let room = |axis: usize| dims[axis] - start[axis];
        let count: Vec<u64> = (0..rank).map(|axis| 1 + number(axis + 5) % room(axis)).collect();
        let block = Selection::block(&start, &count).unwrap();
        match kind {
            0 => Selection::all(),
            1 => block,
            2 => {
                let stride: Vec<u64> = (0..rank).map(|axis| 1 + number(axis + 9) % 4).collect();
                let count: Vec<u64> =
                    (0..rank).map(|axis| 1 + (room(axis) - 1) / stride[axis]).collect();
                Selection::hyperslab(&start, &stride, &count, &vec![1; rank]).unwrap()
            }
            3 => Selection::all().not_b(&block, dims).unwrap(),
            _ => {
                let points = numbers.iter().enumerate().map(|(at, number)| {
                    number.wrapping_mul(31).wrapping_add(at as u64) % dims[at % rank]
                });
                let points: Vec<u64> = points.take(numbers.len() / rank * rank).collect();
                Selection::points(rank, points).unwrap()
            }
        }
    }

    proptest! {
        #[test]
        fn found_cells_are_those_that_a_look_at_each_finds(
            (dims, set) in chunks(),
            kind in 0u8..5,
            numbers in prop::collection::vec(any::<u64>(), 12..40),
        ) {
            let wanted = wanted(&dims, kind, &numbers);
            let mut walker = CoordinateWalker::new(&dims);
            let all = (0..set.cells()).filter(|cell| set.contains(*cell));
            let expected: Vec<(u64, Vec<u64>)> = all
                .map(|cell| (cell, walker.seek(cell).to_vec()))
                .filter(|(_, at)| wanted.contains(at))
                .collect();
            let found = set.find(&wanted, &dims).unwrap();
            prop_assert_eq!(found.cells.len(), expected.len() as u64);
            let positions: Vec<u64> =
                found.positions.iter().flat_map(|run| run.start..run.end()).collect();
            let named: Vec<u64> = positions.iter().filter_map(|at| set.select(*at)).collect();
            prop_assert_eq!(named, expected.iter().map(|(cell, _)| *cell).collect::<Vec<_>>());
            prop_assert!(found.positions.windows(2).all(|pair| pair[0].end() < pair[1].start));

            let origin: Vec<u64> = (0..dims.len() as u64).map(|axis| 1000 * axis + 7).collect();
            let moved: Vec<Vec<u64>> = expected
                .iter()
                .map(|(_, at)| at.iter().zip(&origin).map(|(at, from)| at + from).collect())
                .collect();
            let mut together = vec![5];
            found.cells.append_coordinates(&dims, &origin, &mut together);
            prop_assert_eq!(&together[1..], moved.concat());
            let mut columns = vec![vec![0u32; expected.len()]; dims.len()];
            let mut parts: Vec<&mut [u32]> = columns.iter_mut().map(Vec::as_mut_slice).collect();
            found.cells.put_coordinates(&dims, &origin, &mut parts);
            for (axis, column) in columns.iter().enumerate() {
                let axis: Vec<u32> = moved.iter().map(|at| at[axis] as u32).collect();
                prop_assert_eq!(column, &axis);
            }
            let cells = expected.iter().map(|(cell, _)| *cell);
            let same = CellSet::from_sorted_cells(set.cells(), cells).unwrap();
            prop_assert_eq!(found.cells.into_set(set.cells()).unwrap(), same);
        }
    }
}
