//! Which part of a matrix is read: rows in any order, and columns.

use crate::{Error, Result};
use pumice_medium::reserved;
use pumice_space::{HyperslabAxis, Selection};
use std::borrow::Cow;
use std::ops::Range;

/// Which part of a matrix is read.
#[derive(Clone, Debug)]
pub struct Window {
    /// The rows, in the order in which they are wanted.
    pub rows: WindowRows,
    /// The columns, ascending.
    pub columns: Vec<Range<u64>>,
}

/// The rows of a window.
#[derive(Clone, Debug)]
pub enum WindowRows {
    /// Those that follow each other.
    Range(Range<u64>),
    /// Any others. One may be there several times.
    Listed(Vec<u64>),
}

impl WindowRows {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Range(rows) => (rows.end - rows.start) as usize,
            Self::Listed(rows) => rows.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether each lies behind the one before it.
    pub fn ascends(&self) -> bool {
        match self {
            Self::Range(_) => true,
            Self::Listed(rows) => rows.is_sorted_by(|one, next| one < next),
        }
    }

    /// One by one.
    pub fn list(&self) -> Result<Cow<'_, [u64]>> {
        Ok(match self {
            Self::Listed(rows) => Cow::Borrowed(rows),
            Self::Range(rows) => {
                let mut list = reserved(self.len())?;
                list.extend(rows.clone());
                Cow::Owned(list)
            }
        })
    }

    /// Behind the last of them.
    fn end(&self) -> u64 {
        match self {
            Self::Range(rows) => rows.end,
            Self::Listed(rows) => rows.iter().max().map_or(0, |row| row.saturating_add(1)),
        }
    }
}

impl Window {
    /// The window that a selection of a matrix of this shape is, if it is one: some rows, and in each the same columns.
    pub fn of(selection: &Selection, shape: &[u64]) -> Result<Option<Self>> {
        selection.check(shape)?;
        if shape.len() != 2 {
            return Ok(None);
        }
        if selection.as_points().is_none()
            && let Some((start, count)) = selection.as_block(shape)
        {
            let [rows, columns] = [0, 1].map(|axis| start[axis]..start[axis] + count[axis]);
            let columns = std::iter::once(columns).filter(|range| !range.is_empty()).collect();
            return Ok(Some(Self { rows: WindowRows::Range(rows), columns }));
        }
        let Some([rows, columns]) = axes(selection, shape) else { return Ok(None) };
        if let [rows] = rows.as_slice() {
            return Ok(Some(Self { rows: WindowRows::Range(rows.clone()), columns }));
        }
        let count: u64 = rows.iter().map(|range| range.end - range.start).sum();
        let mut listed = reserved(usize::try_from(count).unwrap_or(usize::MAX))?;
        listed.extend(rows.into_iter().flatten());
        Ok(Some(Self { rows: WindowRows::Listed(listed), columns }))
    }

    /// How many columns there are.
    pub fn width(&self) -> u64 {
        self.columns.iter().map(|range| range.end - range.start).sum()
    }

    /// Up to which rows and columns it reaches; an error if its columns do not ascend.
    pub(super) fn end(&self) -> Result<[u64; 2]> {
        let mut before = 0;
        for range in &self.columns {
            if range.start < before || range.end < range.start {
                return Err(Error::Invalid(format!("columns {range:?} behind column {before}")));
            }
            before = range.end;
        }
        Ok([self.rows.end(), before])
    }
}

/// Rows and columns of a window, ascending; `None` if what is selected is no window.
fn axes(selection: &Selection, shape: &[u64]) -> Option<[Vec<Range<u64>>; 2]> {
    if selection.as_points().is_some() {
        return None;
    }
    if let Some(slab) = selection.regular() {
        return Some([0, 1].map(|axis| blocks(&slab[axis], shape[axis])));
    }
    // Blocks come row by row: the columns of the first must be those of all.
    let (mut rows, mut columns): (Vec<Range<u64>>, Vec<Range<u64>>) = (Vec::new(), Vec::new());
    let (mut place, mut same) = (0, true);
    selection.for_each_block(shape, |low, high| {
        let [row, column] = [0, 1].map(|axis| low[axis]..high[axis] + 1);
        if rows.last() != Some(&row) {
            same &= rows.len() < 2 || place == columns.len();
            rows.push(row);
            place = 0;
        }
        match rows.len() {
            1 => columns.push(column),
            _ => same &= columns.get(place) == Some(&column),
        }
        place += 1;
    });
    same &= rows.len() < 2 || place == columns.len();
    let ascends = |ranges: &[Range<u64>]| ranges.is_sorted_by(|one, next| one.end <= next.start);
    (same && ascends(&rows) && ascends(&columns)).then_some([rows, columns])
}

/// The blocks of a hyperslab along an axis of this size.
fn blocks(slab: &HyperslabAxis, size: u64) -> Vec<Range<u64>> {
    let starts = (0..slab.count).map_while(|number| {
        let start = number.checked_mul(slab.stride)?.checked_add(slab.start)?;
        (start < size).then_some(start)
    });
    starts.map(|start| start..start.saturating_add(slab.block).min(size)).collect()
}
