//! The defined cells of one chunk, and the position of each one's value.
//!
//! Values of a sparse chunk are packed in row-major order of its defined cells, so "where is the
//! value of this cell" is "how many defined cells come before it". A [`CellSet`] answers that in
//! constant time (bitmap) or logarithmic time (runs), and answers whole requests run by run.
//!
//! The form is a function of the set: all cells; a list of cells, 4 bytes each; runs, 8 bytes each
//! (16 in chunks of 2^32 cells and more); or a bitmap with a rank index, whichever is smallest. Equal
//! sets are therefore equal values.

mod among;
mod bitmap;
mod builder;
mod cell_list;
mod collect;
mod columns;
pub(crate) mod coordinates;
mod found;
mod merge;
mod operate;
mod overlap;
mod run_list;
mod splice;
mod within;

pub use columns::{Coordinate, Division, RunWriter, put_cells};
pub use found::{Found, FoundCells};
pub use merge::{Merge, MergePiece};
pub use overlap::{Cursor, Overlap, Overlaps, Placement, Placements};
pub use splice::{Kept, Splice, SplicePiece};

use crate::{Run, Segment, SpaceError};
use bitmap::Bitmap;
use builder::{Builder, Smallest, is_small};
use cell_list::{Ascent, CellList};
use run_list::RunList;

/// A set of cells of one chunk. The n-th cell of the set owns the n-th stored value.
///
/// ```
/// use pumice_space::{CellSet, Overlap, Run};
///
/// let set = CellSet::from_runs(100, [Run { start: 10, len: 5 }, Run { start: 40, len: 2 }])?;
/// assert_eq!(set.len(), 7);
/// assert_eq!(set.position(41), Some(6));
///
/// // Cells 12 to 49 are asked for: these are defined, and here are their values.
/// let request = [Run { start: 12, len: 38 }];
/// let found: Vec<Overlap> = set.overlaps(request.into_iter()).collect();
/// assert_eq!(found[0], Overlap { cell: 12, position: 2, len: 3 });
/// assert_eq!(found[1], Overlap { cell: 40, position: 5, len: 2 });
/// # Ok::<(), pumice_space::SpaceError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellSet {
    cells: u64,
    len: u64,
    form: Form,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    /// Every cell.
    Full,
    /// Scattered cells of a chunk whose cells fit 32 bits.
    Cells(CellList),
    /// Runs of a chunk whose cells fit 32 bits.
    Small(RunList<u32>),
    /// Runs of a larger chunk.
    Large(RunList<u64>),
    /// More cells and runs than a bitmap is worth; cells fit 32 bits.
    Bitmap(Bitmap),
}

impl CellSet {
    /// No cell of a chunk of `cells`.
    pub fn empty(cells: u64) -> Self {
        Builder::new(cells).finish()
    }

    /// Every cell of a chunk of `cells`.
    pub fn full(cells: u64) -> Self {
        Self { cells, len: cells, form: Form::Full }
    }

    /// The set of runs that ascend and do not overlap (they may touch).
    ///
    /// ```
    /// use pumice_space::{CellSet, Run};
    ///
    /// let (a, b) = (Run { start: 2, len: 2 }, Run { start: 4, len: 1 });
    /// assert_eq!(CellSet::from_runs(10, [a, b])?.run_count(), 1);
    /// assert!(CellSet::from_runs(10, [b, a]).is_err());
    /// assert!(CellSet::from_runs(4, [a, b]).is_err());
    /// # Ok::<(), pumice_space::SpaceError>(())
    /// ```
    pub fn from_runs(cells: u64, runs: impl IntoIterator<Item = Run>) -> Result<Self, SpaceError> {
        let mut builder = Builder::new(cells);
        let runs = runs.into_iter();
        builder.reserve(runs.size_hint().0);
        for run in runs {
            check_inside(run, cells)?;
            if run.start < builder.end() {
                return Err(SpaceError::UnorderedCells { cell: run.start, cells });
            }
            builder.add(run);
        }
        Ok(builder.finish())
    }

    /// The set of runs given by their first cells and the cells after their last ones: faster than
    /// [`from_runs`](Self::from_runs), if runs do not touch.
    ///
    /// ```
    /// use pumice_space::CellSet;
    ///
    /// let set = CellSet::from_bounds(10, &[[2, 4], [5, 6]])?;
    /// assert_eq!((set.run_count(), set.len()), (2, 3));
    /// assert!(CellSet::from_bounds(10, &[[5, 6], [2, 4]]).is_err());
    /// # Ok::<(), pumice_space::SpaceError>(())
    /// ```
    pub fn from_bounds(cells: u64, bounds: &[[u64; 2]]) -> Result<Self, SpaceError> {
        if let Some(set) = Builder::known(cells, bounds) {
            return Ok(set);
        }
        if let Some(&[_, cell]) = bounds.iter().find(|[start, end]| end < start) {
            return Err(SpaceError::UnorderedCells { cell, cells });
        }
        let run = |&[start, end]: &[u64; 2]| Run { start, len: end - start };
        Self::from_runs(cells, bounds.iter().map(run))
    }

    /// The set of cells that ascend without repetition.
    pub fn from_sorted_cells(
        cells: u64,
        sorted: impl IntoIterator<Item = u64>,
    ) -> Result<Self, SpaceError> {
        Self::from_runs(cells, sorted.into_iter().map(|start| Run { start, len: 1 }))
    }

    /// The set of a list of cells that ascend without repetition, in a chunk of fewer than 2^32
    /// cells.
    ///
    /// The list itself becomes the set if that is its smallest form.
    ///
    /// ```
    /// use pumice_space::CellSet;
    ///
    /// let set = CellSet::from_list(100, vec![3, 50, 51])?;
    /// assert_eq!(set.position(50), Some(1));
    /// assert_eq!(set.as_list(), Some(&[3, 50, 51][..]));
    /// assert!(CellSet::from_list(100, vec![3, 3]).is_err());
    /// assert!(CellSet::from_list(100, vec![3, 100]).is_err());
    /// # Ok::<(), pumice_space::SpaceError>(())
    /// ```
    pub fn from_list(cells: u64, list: Vec<u32>) -> Result<Self, SpaceError> {
        let wrong = |cell: u32| SpaceError::UnorderedCells { cell: u64::from(cell), cells };
        if !is_small(cells) {
            return Self::from_sorted_cells(cells, list.into_iter().map(u64::from));
        }
        if let Some(&last) = list.last().filter(|last| u64::from(**last) >= cells) {
            return Err(wrong(last));
        }
        let Ascent { strict, runs } = Ascent::of(&list);
        if !strict {
            let pair = list.windows(2).find(|pair| pair[0] >= pair[1]);
            return Err(wrong(pair.map_or(0, |pair| pair[1])));
        }
        Ok(Self::from_known(cells, list, runs))
    }

    /// [`from_list`](Self::from_list) without checks.
    fn from_ascending(cells: u64, list: Vec<u32>) -> Self {
        let runs = Ascent::of(&list).runs;
        Self::from_known(cells, list, runs)
    }

    /// [`from_ascending`](Self::from_ascending) for a list of `runs` runs.
    fn from_known(cells: u64, list: Vec<u32>, runs: u64) -> Self {
        let len = list.len() as u64;
        let form = match Smallest::of(cells, len, runs) {
            _ if len == cells => return Self::full(cells),
            Smallest::Cells => Form::Cells(CellList::new(list, runs)),
            Smallest::Bitmap => {
                let mut words = vec![0u64; cells.div_ceil(64) as usize];
                let mut set = |cell: u32| words[cell as usize / 64] |= 1 << (cell % 64);
                // Neighbours share a word, and would wait for each other.
                let quarter = list.len() / 4;
                let (a, rest) = list.split_at(quarter);
                let (b, rest) = rest.split_at(quarter);
                let (c, d) = rest.split_at(quarter);
                for (((&a, &b), &c), &d) in a.iter().zip(b).zip(c).zip(d) {
                    [a, b, c, d].into_iter().for_each(&mut set);
                }
                d[quarter..].iter().copied().for_each(set);
                Form::Bitmap(Bitmap::new(words))
            }
            Smallest::Runs => {
                let mut builder = Builder::new(cells);
                builder.reserve(runs as usize);
                let list = CellList::new(list, runs);
                list.for_each_within(0, cells, 0, |run, _| builder.add(run));
                return builder.finish();
            }
        };
        Self { cells, len, form }
    }

    /// The cells as a list, if that is the set's form.
    pub fn as_list(&self) -> Option<&[u32]> {
        match &self.form {
            Form::Cells(list) => Some(list.cells()),
            _ => None,
        }
    }

    /// Replaces the contents of a list by the cells of the set, which has fewer than 2^32 cells.
    /// The old contents only save clearing memory.
    ///
    /// ```
    /// use pumice_space::CellSet;
    ///
    /// let mut list = vec![7; 5];
    /// CellSet::from_sorted_cells(100, [3, 50, 51])?.put_list(&mut list);
    /// assert_eq!(list, [3, 50, 51]);
    /// # Ok::<(), pumice_space::SpaceError>(())
    /// ```
    #[inline(always)]
    pub fn put_list(&self, list: &mut Vec<u32>) {
        if let Form::Bitmap(bits) = &self.form {
            return bits.put_cells(list);
        }
        list.clear();
        list.reserve(self.len as usize);
        match self.as_list() {
            Some(cells) => list.extend_from_slice(cells),
            None => self.for_each_run(|run| list.extend(run.start as u32..run.end() as u32)),
        }
    }

    /// The positions of the cells that lie in `runs`, which ascend, range by range; `None` if the
    /// set's form is no list.
    ///
    /// ```
    /// use pumice_space::{CellSet, Run};
    ///
    /// let set = CellSet::from_list(100, vec![3, 50, 52, 90])?;
    /// let runs = [Run { start: 10, len: 45 }, Run { start: 80, len: 20 }];
    /// let found: Vec<_> = set.list_ranges(runs).unwrap().collect();
    /// assert_eq!(found, [1..3, 3..4]);
    /// # Ok::<(), pumice_space::SpaceError>(())
    /// ```
    pub fn list_ranges(
        &self,
        runs: impl IntoIterator<Item = Run>,
    ) -> Option<impl Iterator<Item = std::ops::Range<usize>>> {
        let Form::Cells(list) = &self.form else { return None };
        let mut at = 0;
        Some(runs.into_iter().filter_map(move |run| {
            let start = list.seek(run.start, at);
            at = list.seek(run.end(), start);
            (start < at).then_some(start..at)
        }))
    }

    /// The set of cells in any order, repeated or not.
    ///
    /// ```
    /// use pumice_space::CellSet;
    ///
    /// let set = CellSet::from_unsorted_cells(10, vec![7, 3, 3, 2])?;
    /// assert_eq!(set, CellSet::from_sorted_cells(10, [2, 3, 7])?);
    /// # Ok::<(), pumice_space::SpaceError>(())
    /// ```
    pub fn from_unsorted_cells(cells: u64, list: Vec<u64>) -> Result<Self, SpaceError> {
        let mut collector = Self::collect_runs(cells, list.len() as u64);
        for cell in list {
            let run = Run { start: cell, len: 1 };
            check_inside(run, cells)?;
            collector.add(run);
        }
        Ok(collector.finish())
    }

    /// The number of cells of the chunk, defined or not.
    pub fn cells(&self) -> u64 {
        self.cells
    }

    /// Cells in the set.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the set has no cell.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether the set has every cell of the chunk.
    pub fn is_full(&self) -> bool {
        self.len == self.cells
    }

    /// Number of maximal runs; counted word by word in a bitmap.
    pub fn run_count(&self) -> u64 {
        match &self.form {
            Form::Full => u64::from(self.cells > 0),
            Form::Cells(list) => list.run_count(),
            Form::Small(runs) => runs.count() as u64,
            Form::Large(runs) => runs.count() as u64,
            Form::Bitmap(bits) => bitmap::count_runs(bits.words()),
        }
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        match &self.form {
            Form::Full => 0,
            Form::Cells(list) => list.heap_bytes(),
            Form::Small(runs) => runs.heap_bytes(),
            Form::Large(runs) => runs.heap_bytes(),
            Form::Bitmap(bits) => bits.heap_bytes(),
        }
    }

    /// Whether `cell` is in the set.
    pub fn contains(&self, cell: u64) -> bool {
        match &self.form {
            Form::Bitmap(bits) => bits.contains(cell),
            _ => self.position(cell).is_some(),
        }
    }

    /// The number of cells of the set before `cell`.
    pub fn rank(&self, cell: u64) -> u64 {
        let cell = cell.min(self.cells);
        match &self.form {
            Form::Full => cell,
            Form::Cells(list) => list.rank(cell),
            Form::Small(runs) => runs.rank(cell),
            Form::Large(runs) => runs.rank(cell),
            Form::Bitmap(bits) => bits.rank(cell),
        }
    }

    /// The position of the value of `cell`, if it is in the set.
    pub fn position(&self, cell: u64) -> Option<u64> {
        fn in_run((run, before): (Run, u64), cell: u64) -> Option<u64> {
            (run.start <= cell).then(|| before + (cell - run.start))
        }
        match &self.form {
            Form::Full => (cell < self.cells).then_some(cell),
            Form::Cells(list) => list.position(cell),
            Form::Small(runs) => in_run(runs.get(runs.find(cell))?, cell),
            Form::Large(runs) => in_run(runs.get(runs.find(cell))?, cell),
            Form::Bitmap(bits) => bits.contains(cell).then(|| bits.rank(cell)),
        }
    }

    /// The cell that owns the value at `position`.
    ///
    /// ```
    /// let set = pumice_space::CellSet::from_sorted_cells(10, [2, 3, 7])?;
    /// assert_eq!(set.select(2), Some(7));
    /// assert_eq!(set.select(3), None);
    /// # Ok::<(), pumice_space::SpaceError>(())
    /// ```
    pub fn select(&self, position: u64) -> Option<u64> {
        if position >= self.len {
            return None;
        }
        match &self.form {
            Form::Full => Some(position),
            Form::Cells(list) => list.select(position),
            Form::Small(runs) => runs.select(position),
            Form::Large(runs) => runs.select(position),
            Form::Bitmap(bits) => bits.select(position),
        }
    }

    /// The maximal runs, ascending.
    pub fn runs(&self) -> CellRuns<'_> {
        CellRuns { set: self, at: 0 }
    }

    /// Visits the maximal runs, ascending; faster than [`CellSet::runs`].
    pub fn for_each_run(&self, mut visit: impl FnMut(Run)) {
        match &self.form {
            Form::Full if self.cells == 0 => {}
            Form::Full => visit(Run { start: 0, len: self.cells }),
            Form::Cells(list) => {
                list.for_each_within(0, self.cells, 0, |run, _| visit(run));
            }
            Form::Small(runs) => runs.for_each(visit),
            Form::Large(runs) => runs.for_each(visit),
            Form::Bitmap(bits) => bits.for_each_run(0, self.cells, visit),
        }
    }

    /// The pieces of `request` that are in the set, with the positions of their values.
    ///
    /// Fastest if the request ascends: a few runs skip through many, all of them merge in one walk.
    /// Pieces come in the order of the request; cells beyond the chunk are in no set.
    pub fn overlaps<I: Iterator<Item = Run>>(&self, request: I) -> Overlaps<'_, I> {
        Overlaps::new(self, request)
    }

    /// The pieces of a chunk's [`Segment`]s that are in the set: which values go where in memory.
    ///
    /// ```
    /// use pumice_space::{CellSet, Placement, Segment};
    ///
    /// let set = CellSet::from_sorted_cells(10, [2, 3, 7])?;
    /// let segment = Segment { cell: 3, memory: 100, len: 5 };
    /// let placed: Vec<Placement> = set.placements([segment].into_iter()).collect();
    /// assert_eq!(placed[0], Placement { cell: 3, position: 1, memory: 100, len: 1 });
    /// assert_eq!(placed[1], Placement { cell: 7, position: 2, memory: 104, len: 1 });
    /// # Ok::<(), pumice_space::SpaceError>(())
    /// ```
    pub fn placements<I: Iterator<Item = Segment>>(&self, segments: I) -> Placements<'_, I> {
        Placements::new(self, segments)
    }

    /// A cursor that answers one request at a time, fastest when they ascend.
    pub fn cursor(&self) -> Cursor<'_> {
        Cursor::new(self)
    }

    /// Walks the union of two sets piece by piece, with positions in both: merging their values is
    /// one copy per piece.
    ///
    /// ```
    /// use pumice_space::CellSet;
    ///
    /// let old = CellSet::from_sorted_cells(10, [1, 2, 3])?;
    /// let new = CellSet::from_sorted_cells(10, [3, 4])?;
    /// let pieces: Vec<_> = old.merge(&new).map(|piece| (piece.a, piece.b, piece.len)).collect();
    /// assert_eq!(pieces, [(Some(0), None, 2), (Some(2), Some(0), 1), (None, Some(1), 1)]);
    /// # Ok::<(), pumice_space::SpaceError>(())
    /// ```
    pub fn merge<'a>(&'a self, other: &'a CellSet) -> Merge<'a> {
        Merge::new(self, other)
    }

    /// The values of the union of this set and `new`, in order, with as few copies as there can be:
    /// where a cell is in both, the new value stands.
    ///
    /// Values that follow each other are one piece even if their cells do not, so writing a few
    /// cells into a chunk of many takes a few copies. Cost: runs of `new`, each a logarithm.
    ///
    /// ```
    /// use pumice_space::{CellSet, SplicePiece};
    ///
    /// let old = CellSet::from_sorted_cells(100, [10, 20, 30, 40])?;
    /// let new = CellSet::from_sorted_cells(100, [25, 30])?;
    /// let pieces: Vec<SplicePiece> = old.splice(&new).collect();
    /// assert_eq!(pieces[0], SplicePiece { new: false, position: 0, len: 2 });
    /// assert_eq!(pieces[1], SplicePiece { new: true, position: 0, len: 2 });
    /// assert_eq!(pieces[2], SplicePiece { new: false, position: 3, len: 1 });
    /// # Ok::<(), pumice_space::SpaceError>(())
    /// ```
    pub fn splice<'a>(&'a self, new: &'a CellSet) -> Splice<'a> {
        Splice::new(self, new)
    }

    /// The positions of the values that stay when the cells of `removed` leave the set, as runs.
    ///
    /// ```
    /// use pumice_space::{CellSet, Run};
    ///
    /// let set = CellSet::from_sorted_cells(100, [10, 20, 30, 40])?;
    /// let removed = CellSet::from_sorted_cells(100, [20, 25])?;
    /// let kept: Vec<Run> = set.kept(&removed).collect();
    /// assert_eq!(kept, [Run { start: 0, len: 1 }, Run { start: 2, len: 2 }]);
    /// # Ok::<(), pumice_space::SpaceError>(())
    /// ```
    pub fn kept<'a>(&'a self, removed: &'a CellSet) -> Kept<'a> {
        Kept::new(self, removed)
    }
}

fn check_inside(run: Run, cells: u64) -> Result<(), SpaceError> {
    match run.start.checked_add(run.len) {
        Some(end) if end <= cells => Ok(()),
        _ => Err(SpaceError::UnorderedCells { cell: run.start, cells }),
    }
}

/// Iterates over the runs of a [`CellSet`].
#[derive(Clone, Debug)]
pub struct CellRuns<'a> {
    set: &'a CellSet,
    /// The next run's index; for a list the next cell's, for a bitmap the next cell.
    at: u64,
}

impl Iterator for CellRuns<'_> {
    type Item = Run;

    #[inline]
    fn next(&mut self) -> Option<Run> {
        let index = self.at as usize;
        let run = match &self.set.form {
            Form::Full => {
                (self.at < self.set.run_count()).then_some(Run { start: 0, len: self.set.cells })?
            }
            Form::Cells(list) => {
                let run = list.run_at(index, self.set.cells)?;
                self.at += run.len;
                return Some(run);
            }
            Form::Small(runs) => runs.get(index)?.0,
            Form::Large(runs) => runs.get(index)?.0,
            Form::Bitmap(bits) => {
                let run = bits.next_run(self.at, self.set.cells)?;
                self.at = run.end();
                return Some(run);
            }
        };
        self.at += 1;
        Some(run)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = |count: usize| count.saturating_sub(self.at as usize);
        match &self.set.form {
            Form::Full => (left(1), Some(left(1))),
            Form::Small(runs) => (left(runs.count()), Some(left(runs.count()))),
            Form::Large(runs) => (left(runs.count()), Some(left(runs.count()))),
            Form::Cells(_) | Form::Bitmap(_) => (0, None),
        }
    }
}
