//! Set algebra on cell sets: on runs if both are runs, else on words of a bitmap.
//!
//! Sets of chunks of different size may be combined: the result is one of the larger chunk.

use super::bitmap::{Bitmap, count_runs, for_each_run, set_run};
use super::builder::{Builder, Smallest, is_small};
use super::cell_list::CellList;
use super::run_list::{Number, RunList};
use super::{CellSet, Form};
use crate::Run;

impl CellSet {
    /// Cells in either set.
    ///
    /// ```
    /// use pumice_space::CellSet;
    ///
    /// let a = CellSet::from_sorted_cells(10, [1, 2])?;
    /// let b = CellSet::from_sorted_cells(10, [2, 7])?;
    /// assert_eq!(a.union(&b), CellSet::from_sorted_cells(10, [1, 2, 7])?);
    /// assert_eq!(a.intersection(&b), CellSet::from_sorted_cells(10, [2])?);
    /// assert_eq!(a.difference(&b), CellSet::from_sorted_cells(10, [1])?);
    /// # Ok::<(), pumice_space::SpaceError>(())
    /// ```
    pub fn union(&self, other: &CellSet) -> CellSet {
        let cells = self.cells.max(other.cells);
        for (full, set) in [(self, other), (other, self)] {
            if full.cells == cells && (full.is_full() || set.is_empty()) {
                return full.clone();
            }
        }
        if let Some(words) = combine_words(self, other, |a, b| a | b) {
            return from_words(cells, words);
        }
        if let (Form::Cells(a), Form::Cells(b)) = (&self.form, &other.form)
            && is_small(cells)
        {
            return CellSet::from_ascending(cells, union_cells(self, other, a, b));
        }
        let mut builder = Builder::new(cells);
        match (&self.form, &other.form) {
            (Form::Small(a), Form::Small(b)) => union_lists(a, b, &mut builder),
            (Form::Large(a), Form::Large(b)) => union_lists(a, b, &mut builder),
            _ => union_runs(self.runs(), other.runs(), &mut builder),
        }
        builder.finish()
    }

    /// Cells in both sets.
    pub fn intersection(&self, other: &CellSet) -> CellSet {
        let cells = self.cells.max(other.cells);
        for (full, set) in [(self, other), (other, self)] {
            if set.cells == cells && (full.cells == cells && full.is_full() || set.is_empty()) {
                return set.clone();
            }
        }
        if let Some(words) = combine_words(self, other, |a, b| a & b) {
            return from_words(cells, words);
        }
        let (few, many) =
            if self.run_count() <= other.run_count() { (self, other) } else { (other, self) };
        let mut builder = Builder::new(cells);
        let mut cursor = many.cursor();
        few.for_each_run(|run| {
            cursor.for_each(run, |piece| builder.add(Run { start: piece.cell, len: piece.len }));
        });
        builder.finish()
    }

    /// Cells of this set that are not in `other`.
    pub fn difference(&self, other: &CellSet) -> CellSet {
        let cells = self.cells.max(other.cells);
        if self.cells == cells && (self.is_empty() || other.is_empty()) {
            return self.clone();
        }
        if let Some(words) = combine_words(self, other, |a, b| a & !b) {
            return from_words(cells, words);
        }
        if let Some(list) = self.as_list()
            && is_small(cells)
        {
            return CellSet::from_ascending(cells, pieces(list, self.kept(other)));
        }
        let mut builder = Builder::new(cells);
        let mut cursor = other.cursor();
        self.for_each_run(|run| {
            let mut at = run.start;
            cursor.for_each(run, |piece| {
                if piece.cell > at {
                    builder.add(Run { start: at, len: piece.cell - at });
                }
                at = piece.cell + piece.len;
            });
            if at < run.end() {
                builder.add(Run { start: at, len: run.end() - at });
            }
        });
        builder.finish()
    }

    /// The cells of this set that are not in `other`, and their positions among those of this set.
    ///
    /// ```
    /// use pumice_space::{CellSet, Run};
    /// let set = CellSet::from_sorted_cells(100, [10, 20, 30, 40])?;
    /// let (left, kept) = set.without(&CellSet::from_sorted_cells(100, [20, 25])?);
    /// assert_eq!(left, CellSet::from_sorted_cells(100, [10, 30, 40])?);
    /// assert_eq!(kept, [Run { start: 0, len: 1 }, Run { start: 2, len: 2 }]);
    /// # Ok::<(), pumice_space::SpaceError>(())
    /// ```
    pub fn without(&self, other: &CellSet) -> (CellSet, Vec<Run>) {
        let kept: Vec<Run> = self.kept(other).collect();
        let left = match self.as_list() {
            // Cells that were found are not searched again.
            Some(list) if self.cells >= other.cells && is_small(self.cells) => {
                CellSet::from_ascending(self.cells, pieces(list, kept.iter().copied()))
            }
            _ => self.difference(other),
        };
        (left, kept)
    }

    /// Cells of the chunk that are not in the set.
    pub fn complement(&self) -> CellSet {
        if self.is_full() {
            return CellSet::empty(self.cells);
        }
        let mut builder = Builder::new(self.cells);
        let mut at = 0;
        self.for_each_run(|run| {
            if run.start > at {
                builder.add(Run { start: at, len: run.start - at });
            }
            at = run.end();
        });
        if at < self.cells {
            builder.add(Run { start: at, len: self.cells - at });
        }
        builder.finish()
    }
}

/// The union of two lists: stretches between the cells of the shorter list are copied.
fn union_cells(first: &CellSet, second: &CellSet, a: &CellList, b: &CellList) -> Vec<u32> {
    let longer_first = a.cells().len() >= b.cells().len();
    let (many, few) = if longer_first { (first, second) } else { (second, first) };
    let (long, short) = if longer_first { (a, b) } else { (b, a) };
    let mut all = Vec::with_capacity(long.cells().len() + short.cells().len());
    for piece in many.splice(few) {
        let list = if piece.new { short } else { long };
        let (from, len) = (piece.position as usize, piece.len as usize);
        all.extend_from_slice(&list.cells()[from..from + len]);
    }
    all.shrink_to_fit();
    all
}

/// The parts of a list that runs name.
fn pieces(list: &[u32], runs: impl Iterator<Item = Run>) -> Vec<u32> {
    let mut found = Vec::with_capacity(list.len());
    for run in runs {
        found.extend_from_slice(&list[run.start as usize..run.end() as usize]);
    }
    found
}

fn union_lists<T: Number>(a: &RunList<T>, b: &RunList<T>, builder: &mut Builder) {
    let (few, many) = if a.count() <= b.count() { (a, b) } else { (b, a) };
    builder.reserve(many.count());
    if few.count() > many.count() / 16 {
        return union_runs(a.iter(), b.iter(), builder);
    }
    // A few runs among many: copy what lies between them.
    let mut done = 0;
    for run in few.iter() {
        let next = done.max(many.seek(run.start, done));
        builder.add_list(many, done..next);
        done = next;
        if let Some((reaching, _)) = many.get(done)
            && reaching.start < run.start
        {
            builder.add(reaching);
            done += 1;
        }
        builder.add(run);
    }
    builder.add_list(many, done..many.count());
}

fn union_runs(
    mut a: impl Iterator<Item = Run>,
    mut b: impl Iterator<Item = Run>,
    builder: &mut Builder,
) {
    let (mut first, mut second) = (a.next(), b.next());
    while let (Some(x), Some(y)) = (first, second) {
        if x.start <= y.start {
            builder.add(x);
            first = a.next();
        } else {
            builder.add(y);
            second = b.next();
        }
    }
    first.into_iter().chain(a).chain(second).chain(b).for_each(|run| builder.add(run));
}

/// Combines word by word if one of the sets is a bitmap already.
fn combine_words(a: &CellSet, b: &CellSet, combine: impl Fn(u64, u64) -> u64) -> Option<Vec<u64>> {
    let cells = a.cells.max(b.cells);
    let bitmaps = [a, b].into_iter().any(|set| matches!(set.form, Form::Bitmap(_)));
    if !bitmaps || !is_small(cells) {
        return None;
    }
    let mut words = to_words(a, cells);
    let mut apply = |other: &[u64]| {
        let rest = other.iter().copied().chain(std::iter::repeat(0));
        words.iter_mut().zip(rest).for_each(|(word, other)| *word = combine(*word, other));
    };
    match &b.form {
        Form::Bitmap(bits) => apply(bits.words()),
        _ => apply(&to_words(b, cells)),
    }
    Some(words)
}

/// The bits of a set, in words enough for `cells`.
fn to_words(set: &CellSet, cells: u64) -> Vec<u64> {
    let count = cells.div_ceil(64) as usize;
    if let Form::Bitmap(bits) = &set.form {
        let mut words = bits.words().to_vec();
        words.resize(count, 0);
        return words;
    }
    let mut words = vec![0; count];
    set.for_each_run(|run| set_run(&mut words, run));
    words
}

/// The cells whose bits are set, `len` of them in so many runs.
fn to_list(words: &[u64], len: u64, runs: u64) -> CellList {
    let mut list = Vec::with_capacity(len as usize);
    for (base, &word) in (0u32..).step_by(64).zip(words) {
        let mut word = word;
        while word != 0 {
            list.push(base + word.trailing_zeros());
            word &= word - 1;
        }
    }
    CellList::new(list, runs)
}

/// The set of the bits, in its smallest form. `cells` fit 32 bits, bits beyond them are zero.
pub(super) fn from_words(cells: u64, words: Vec<u64>) -> CellSet {
    let len: u64 = words.iter().map(|word| u64::from(word.count_ones())).sum();
    if len == cells {
        return CellSet::full(cells);
    }
    let runs = count_runs(&words);
    match Smallest::of(cells, len, runs) {
        Smallest::Bitmap => {
            return CellSet { cells, len, form: Form::Bitmap(Bitmap::new(words)) };
        }
        Smallest::Cells => {
            return CellSet { cells, len, form: Form::Cells(to_list(&words, len, runs)) };
        }
        Smallest::Runs => {}
    }
    let mut builder = Builder::new(cells);
    builder.reserve(runs as usize);
    for_each_run(&words, 0, cells, |run| builder.add(run));
    builder.finish()
}
