//! Regular selections, and where cells are in row-major order.

use anyhow::{Result, ensure};
use pumice::Selection;
use std::ops::Range;

/// A regular selection: blocks of one shape at regular distances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hyperslab {
    pub(crate) start: Vec<u64>,
    pub(crate) stride: Vec<u64>,
    pub(crate) count: Vec<u64>,
    pub(crate) block: Vec<u64>,
}

impl Hyperslab {
    /// Everything in `shape`.
    pub(crate) fn whole(shape: &[u64]) -> Self {
        let ranges: Vec<Range<u64>> = shape.iter().map(|&length| 0..length).collect();
        Self::ranges(&ranges)
    }

    /// A box.
    pub(crate) fn ranges(ranges: &[Range<u64>]) -> Self {
        let ones = vec![1; ranges.len()];
        Self {
            start: ranges.iter().map(|range| range.start).collect(),
            stride: ones.clone(),
            count: ranges.iter().map(|range| range.end - range.start).collect(),
            block: ones,
        }
    }

    /// Checks that all blocks lie apart from each other and inside `shape`.
    pub(crate) fn check(&self, shape: &[u64]) -> Result<()> {
        for (name, list) in [
            ("start", &self.start),
            ("stride", &self.stride),
            ("count", &self.count),
            ("block", &self.block),
        ] {
            ensure!(
                list.len() == shape.len(),
                "{name} has {} number(s), the dataset {} dimension(s)",
                list.len(),
                shape.len()
            );
        }
        for (axis, &length) in shape.iter().enumerate() {
            let (stride, count, block) = (self.stride[axis], self.count[axis], self.block[axis]);
            ensure!(stride > 0, "the stride of axis {axis} is 0");
            ensure!(
                count <= 1 || stride >= block,
                "wrong subset selection; blocks overlap on axis {axis}"
            );
            ensure!(
                self.end(axis).is_some_and(|end| end <= length),
                "the selection does not fit axis {axis}, which has {length} cell(s)"
            );
        }
        Ok(())
    }

    /// The selected cells' shape. Only after [`check`](Self::check).
    pub(crate) fn shape(&self) -> Vec<u64> {
        self.count.iter().zip(&self.block).map(|(count, block)| count * block).collect()
    }

    /// The selection.
    pub(crate) fn selection(&self) -> Result<Selection> {
        if self.count.is_empty() {
            return Ok(Selection::all());
        }
        if self.shape().contains(&0) {
            return Ok(Selection::none());
        }
        Ok(Selection::hyperslab(&self.start, &self.stride, &self.count, &self.block)
            .map_err(pumice::Error::from)?)
    }

    /// The coordinate of the selected index `index` on an axis.
    pub(crate) fn coordinate(&self, axis: usize, index: u64) -> u64 {
        let block = self.block[axis].max(1);
        self.start[axis] + index / block * self.stride[axis] + index % block
    }

    /// The coordinates of the selected cell `number`, counted in row-major order.
    pub(crate) fn coordinates(&self, number: u64) -> Vec<u64> {
        let mut index = Vec::new();
        coordinates(number, &self.shape(), &mut index);
        index.iter().enumerate().map(|(axis, &number)| self.coordinate(axis, number)).collect()
    }

    /// The end of the selection along an axis, if it can be computed.
    fn end(&self, axis: usize) -> Option<u64> {
        let (count, block) = (self.count[axis], self.block[axis]);
        if count == 0 || block == 0 {
            return Some(self.start[axis]);
        }
        let last = (count - 1).checked_mul(self.stride[axis])?;
        self.start[axis].checked_add(last)?.checked_add(block)
    }

    /// The part of this slab with up to `length` selected indices from `first` on an axis, as many
    /// as make up a regular selection, and their number.
    pub(crate) fn narrowed(&self, axis: usize, first: u64, length: u64) -> (Self, u64) {
        let (stride, block) = (self.stride[axis], self.block[axis]);
        let gapless = self.count[axis] == 1 || stride == block;
        let (stride, count, block) = if gapless {
            (1, length, 1)
        } else if block == 1 {
            (stride, length, 1)
        } else {
            (1, length.min(block - first % block), 1)
        };
        let mut part = self.clone();
        part.start[axis] = self.coordinate(axis, first);
        (part.stride[axis], part.count[axis], part.block[axis]) = (stride, count, block);
        (part, count)
    }

    /// The part of this slab, which has no blocks, in a box; `None` if it is empty.
    pub(crate) fn within(&self, first: &[u64], lengths: &[u64]) -> Option<Self> {
        let mut part = self.clone();
        for (axis, (&first, &length)) in first.iter().zip(lengths).enumerate() {
            let (start, stride) = (self.start[axis], self.stride[axis]);
            let skipped = first.saturating_sub(start).div_ceil(stride);
            let place = start.checked_add(skipped.checked_mul(stride)?)?;
            let room = first.saturating_add(length).saturating_sub(place).div_ceil(stride);
            let count = room.min(self.count[axis].saturating_sub(skipped));
            if count == 0 {
                return None;
            }
            (part.start[axis], part.count[axis]) = (place, count);
        }
        Some(part)
    }

    /// The end of the selected rows, if there are rows and it can be computed.
    pub(super) fn end_of_rows(&self) -> Option<u64> {
        if self.start.is_empty() { None } else { self.end(0) }
    }
}

/// The position of a cell in row-major order.
pub(crate) fn linear(point: &[u64], shape: &[u64]) -> u64 {
    point.iter().zip(shape).fold(0u64, |linear, (&coordinate, &length)| {
        linear.wrapping_mul(length).wrapping_add(coordinate)
    })
}

/// The coordinates of the cell at `linear` in row-major order.
pub(crate) fn coordinates(mut linear: u64, shape: &[u64], out: &mut Vec<u64>) {
    out.clear();
    out.resize(shape.len(), 0);
    for (place, &length) in out.iter_mut().zip(shape).rev() {
        let length = length.max(1);
        *place = linear % length;
        linear /= length;
    }
}
