//! Compressed rows whose columns ascend: the stretches of a row are found by counting, many at once.

use super::scan::{HandOut, Id};

/// Points that are looked at, and moved, at a time.
const BLOCK: usize = 16;

impl HandOut<'_> {
    /// Hands out rows as long as their columns ascend inside the array; says which point is next.
    pub(super) fn rows<P: Id>(&mut self, pointers: &[P], columns: &[u32]) -> usize {
        let (dims, sizes) = (self.grid.dims(), self.grid.chunk());
        let (&[height, width], &[rows_each, side]) = (dims, sizes) else { return self.range.start };
        let mut point = self.range.start;
        let Ok(side32) = u32::try_from(side) else { return point };
        let per_row = self.grid.counts()[1];
        let mut row = pointers.partition_point(|at| at.wide() as usize <= point).saturating_sub(1);
        while point < self.range.end && (row as u64) < height {
            let Some(end) = pointers.get(row + 1).map(|end| end.wide() as usize) else { break };
            let Some(line) = columns.get(point..end.min(self.range.end).max(point)) else { break };
            if !ascends(line) || line.last().is_some_and(|&last| u64::from(last) >= width) {
                break;
            }
            let chunk = (row as u64 / rows_each * per_row).wrapping_sub(self.first);
            self.row(row as u64, chunk, point, line.len(), columns, side32);
            point += line.len();
            row += 1;
        }
        point
    }

    /// Hands out the points of a row, the first of whose chunks has this number.
    fn row(&mut self, row: u64, chunk: u64, from: usize, len: usize, columns: &[u32], side: u32) {
        let (mut point, end) = (from, from + len);
        while point < end {
            let number = columns[point] / side;
            let limit = (number + 1).saturating_mul(side);
            let count = count_below(&columns[point..end], limit);
            let at = chunk.wrapping_add(u64::from(number)) as usize;
            let first = row.wrapping_mul(u64::from(side)).wrapping_sub(self.bases[at]) as u32;
            let part = &mut self.parts[at];
            let moved = |column: u32| first.wrapping_add(column);
            append::<_, BLOCK>(&mut part.cells, &columns[point..], count, moved);
            let values = self.values.get(point * self.element..).unwrap_or_default();
            if self.element == 4 {
                append::<_, { 4 * BLOCK }>(&mut part.values, values, 4 * count, |byte| byte);
            } else {
                let values = values.get(..count * self.element);
                part.values.extend_from_slice(values.unwrap_or_default());
            }
            point += count;
        }
    }
}

/// Whether columns ascend; all are looked at, so that many are compared at once.
fn ascends(line: &[u32]) -> bool {
    line.windows(2).fold(true, |all, pair| all & (pair[0] <= pair[1]))
}

/// How many of some columns that ascend are below a limit: the first is.
fn count_below(line: &[u32], limit: u32) -> usize {
    let below = |columns: &[u32]| columns.iter().map(|&at| u32::from(at < limit)).sum::<u32>();
    let (blocks, rest) = line.as_chunks::<BLOCK>();
    let mut count = 0;
    for block in blocks {
        let here = below(block) as usize;
        count += here;
        if here < BLOCK {
            return count;
        }
    }
    count + below(rest) as usize
}

/// Appends `count` of some items. A few are moved as a block of `N`, of which the rest is cut off again.
#[inline(always)]
fn append<T: Copy, const N: usize>(
    to: &mut Vec<T>,
    from: &[T],
    count: usize,
    change: impl Fn(T) -> T,
) {
    let len = to.len() + count;
    match from.first_chunk::<N>() {
        Some(block) if count <= N => {
            to.extend_from_slice(&block.map(change));
            to.truncate(len);
        }
        _ => to.extend(from[..count.min(from.len())].iter().map(|&item| change(item))),
    }
}
