//! Sets of cells as *toggles*: the cells at which membership changes, in ascending order.
//!
//! A set of runs `[a, b), [c, d), ...` has the toggles `a, b, c, d, ...`: an even number of them,
//! strictly ascending. The symmetric difference of two sets is that of their toggles, which makes the
//! two transformations here short:
//!
//! * the *complement* toggles the first cell and the end;
//! * the *difference along an axis* replaces every slice of the chunk across that axis by its
//!   symmetric difference with the slice before it. Shapes that reach over many slices keep only
//!   their first and last.

use crate::{FilterError, scratch};
use pumice_bytes::Budget;
use pumice_space::Run;

/// The steps of one axis of a chunk, in cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Axis {
    /// The distance from one slice to the next.
    pub(super) stride: u64,
    /// The distance between groups of slices: the first of a group has nothing before it.
    pub(super) group: u64,
}

impl Axis {
    /// Axis number `axis` of a chunk of shape `dims`, whose cells are known to fit 64 bits.
    pub(super) fn new(dims: &[u64], axis: usize) -> Self {
        let stride = dims[axis + 1..].iter().product();
        Self { stride, group: dims[axis] * stride }
    }
}

/// Appends a toggle; a second one at the same place undoes the first.
#[inline(always)]
fn toggle(out: &mut Vec<u64>, at: u64) {
    if out.last() == Some(&at) {
        out.pop();
    } else {
        out.push(at);
    }
}

/// The cells of a chunk of `cells` that are not in the set.
pub(super) fn complement(toggles: &mut Vec<u64>, cells: u64) {
    if toggles.first() == Some(&0) {
        toggles.remove(0);
    } else {
        toggles.insert(0, 0);
    }
    toggle(toggles, cells);
}

/// The set of these ascending runs, which may touch; an error if one reaches beyond `cells`, or if there is no memory.
pub(super) fn from_runs(
    runs: impl Iterator<Item = Run>,
    cells: u64,
) -> Result<Vec<u64>, FilterError> {
    let mut out = Vec::with_capacity(2 * runs.size_hint().0.min(1 << 16));
    for run in runs {
        let end = run.start + run.len;
        if end > cells {
            return Err(super::compact::outside("a run that is not"));
        }
        scratch::reserve(super::NAME, &mut out, 2)?;
        toggle(&mut out, run.start);
        out.push(end);
    }
    Ok(out)
}

/// The number of cells in the set.
pub(super) fn count(toggles: &[u64]) -> u64 {
    toggles.as_chunks::<2>().0.iter().map(|[start, end]| end - start).sum()
}

/// The difference of the set along an axis, or `None` if it has more than `most` toggles.
pub(super) fn difference(toggles: &[u64], axis: Axis, most: usize) -> Option<Vec<u64>> {
    let mut out = scratch::take_words(most.min(2 * toggles.len()));
    out.clear();
    let mut groups = Groups::new(toggles, axis.group);
    while let Some(end) = groups.advance() {
        let set = &groups.inside;
        // The same set one slice further, as far as the group reaches.
        let shifts = set.partition_point(|at| at + axis.stride < end);
        let seam = out.len();
        merge(set, &set[..shifts], axis.stride, &mut out);
        if shifts % 2 == 1 {
            toggle(&mut out, end);
        }
        close_seam(&mut out, seam);
        if out.len() > most {
            scratch::give_words(out);
            return None;
        }
    }
    Some(out)
}

/// Appends the symmetric difference of two sets, the second moved up by `stride`.
fn merge(set: &[u64], moved: &[u64], stride: u64, out: &mut Vec<u64>) {
    let start = out.len();
    out.resize(start + set.len() + moved.len(), 0);
    let room = &mut out[start..];
    let (mut a, mut b, mut len) = (0, 0, 0);
    // Which of the two comes next cannot be predicted: so no branches on it.
    while let (Some(&here), Some(before)) = (set.get(a), moved.get(b)) {
        let there = before + stride;
        let at = here.min(there);
        room[len] = at;
        a += usize::from(here == at);
        b += usize::from(there == at);
        len += usize::from(here != there);
    }
    let rest = set[a..].iter().copied().chain(moved[b..].iter().map(|at| at + stride));
    for (to, at) in room[len..].iter_mut().zip(rest) {
        *to = at;
        len += 1;
    }
    out.truncate(start + len);
}

/// Joins a run that ends at the beginning of the next; `seam` is the first toggle after it.
fn close_seam(out: &mut Vec<u64>, seam: usize) {
    if seam > 0 && out.get(seam - 1) == out.get(seam) {
        out.drain(seam - 1..=seam);
    }
}

/// Undoes [`difference`]: every slice becomes its symmetric difference with the restored one before
/// it. The result may be much longer than the input; it is paid for from `budget`.
pub(super) fn integrate(
    toggles: &[u64],
    axis: Axis,
    budget: &mut Budget,
) -> Result<Vec<u64>, FilterError> {
    let mut out = Vec::new();
    if toggles.last().is_some_and(|last| *last <= axis.group) {
        // The usual case: one group, which is all of the chunk.
        integrate_group(toggles, axis.stride, axis.group, &mut out, budget)?;
        return Ok(out);
    }
    let mut groups = Groups::new(toggles, axis.group);
    while let Some(end) = groups.advance() {
        let seam = out.len();
        integrate_group(&groups.inside, axis.stride, end, &mut out, budget)?;
        close_seam(&mut out, seam);
    }
    Ok(out)
}

/// Appends a restored group, which is read again one stride behind its end.
fn integrate_group(
    changes: &[u64],
    stride: u64,
    end: u64,
    out: &mut Vec<u64>,
    budget: &mut Budget,
) -> Result<(), FilterError> {
    let start = out.len();
    let (mut before, mut len) = (start, start);
    for &change in changes.iter().chain([&end]) {
        // Most toggles equal those of the slice before: they are copied as far as the next change.
        let inherited = loop {
            if len + 1 >= out.len() {
                // As much again as the group has: unused memory would be cleared in vain.
                grow(out, len + 2, (len - start).clamp(16, 4096), budget)?;
            }
            let (taken, reached) = inherit(out, before, len, stride, change);
            (before, len) = (before + taken, len + taken);
            if reached.is_some() || before == len {
                break reached;
            }
        };
        if change >= end {
            break;
        }
        // A change at an inherited toggle undoes it.
        if inherited == Some(change) {
            before += 1;
        } else {
            out[len] = change;
            len += 1;
        }
    }
    // A run that reaches the group's end ends there.
    out[len] = end;
    out.truncate(len + (len - start) % 2);
    Ok(())
}

/// Appends the toggles from `before` on, moved by a stride, to the first `len` ones of a list, as long as
/// they stay below `change` and there is room; says how many that were, and the one that did not.
#[inline(always)]
fn inherit(
    list: &mut [u64],
    before: usize,
    len: usize,
    stride: u64,
    change: u64,
) -> (usize, Option<u64>) {
    let (done, room) = list.split_at_mut(len);
    let mut taken = 0;
    for (from, to) in done[before..].iter().zip(room) {
        let at = from + stride;
        if at >= change {
            return (taken, Some(at));
        }
        *to = at;
        taken += 1;
    }
    (taken, None)
}

/// Makes a list at least `len` long, and `more` if that is cheap. Memory is paid for from `budget`.
#[cold]
fn grow(
    list: &mut Vec<u64>,
    len: usize,
    more: usize,
    budget: &mut Budget,
) -> Result<(), FilterError> {
    if list.capacity() < len {
        let room = 2 * len.max(64);
        budget.spend(8 * room as u64, super::NAME, 0).map_err(super::corrupt)?;
        list.reserve_exact(room - list.len());
    }
    list.resize(list.capacity().min(len + more), 0);
    Ok(())
}

/// Goes through a set group by group.
struct Groups<'a> {
    rest: &'a [u64],
    group: u64,
    /// The end of a run that crosses from one group to the next.
    open: Option<u64>,
    /// The toggles of the current group; a run that crosses its bounds is cut there.
    inside: Vec<u64>,
}

impl<'a> Groups<'a> {
    fn new(toggles: &'a [u64], group: u64) -> Self {
        Self { rest: toggles, group, open: None, inside: Vec::new() }
    }

    /// Moves on to the next group that has cells of the set; gives its end.
    fn advance(&mut self) -> Option<u64> {
        if self.open.is_some() && self.open.as_ref() == self.rest.first() {
            self.rest = &self.rest[1..];
            self.open = None;
        }
        let start = match self.open {
            Some(start) => start,
            None => self.rest.first()? / self.group * self.group,
        };
        let end = start + self.group;
        self.inside.clear();
        self.inside.extend(self.open);
        let here = self.rest.partition_point(|at| *at < end);
        self.inside.extend_from_slice(&self.rest[..here]);
        self.rest = &self.rest[here..];
        self.open = (self.inside.len() % 2 == 1).then_some(end);
        self.inside.extend(self.open);
        Some(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DIMS: [u64; 3] = [4, 5, 6];

    fn to_cells(toggles: &[u64]) -> Vec<bool> {
        (0..120).map(|cell| toggles.iter().filter(|at| **at <= cell).count() % 2 == 1).collect()
    }

    fn from_cells(cells: &[bool]) -> Vec<u64> {
        let mut out = Vec::new();
        for (at, _) in cells.iter().enumerate().filter(|(_, set)| **set) {
            toggle(&mut out, at as u64);
            toggle(&mut out, at as u64 + 1);
        }
        out
    }

    fn naive_difference(cells: &[bool], axis: usize) -> Vec<bool> {
        let axis = Axis::new(&DIMS, axis);
        let first = |at: usize| (at as u64 % axis.group) < axis.stride;
        let before = |at: usize| !first(at) && cells[at - axis.stride as usize];
        cells.iter().enumerate().map(|(at, set)| set ^ before(at)).collect()
    }

    fn cells() -> impl Strategy<Value = Vec<bool>> {
        let dense = proptest::collection::vec(any::<bool>(), 120);
        let boxes = proptest::collection::vec((0u64..120, 0u64..60), 0..6).prop_map(|runs| {
            let mut cells = vec![false; 120];
            for (start, len) in runs {
                (start..(start + len).min(120)).for_each(|cell| cells[cell as usize] ^= true);
            }
            cells
        });
        prop_oneof![dense, boxes]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn difference_agrees_with_the_definition_and_is_undone(cells in cells(), axis in 0usize..2) {
            let toggles = from_cells(&cells);
            prop_assert_eq!(&to_cells(&toggles), &cells);
            let steps = Axis::new(&DIMS, axis);
            let changed = difference(&toggles, steps, usize::MAX).unwrap();
            prop_assert_eq!(&to_cells(&changed), &naive_difference(&cells, axis));
            prop_assert!(changed.windows(2).all(|pair| pair[0] < pair[1]));
            let back = integrate(&changed, steps, &mut Budget::new(1 << 20)).unwrap();
            prop_assert_eq!(back, toggles);
        }

        #[test]
        fn complement_agrees_with_the_definition(cells in cells()) {
            let mut toggles = from_cells(&cells);
            complement(&mut toggles, 120);
            let opposite: Vec<bool> = cells.iter().map(|set| !set).collect();
            prop_assert_eq!(count(&toggles), opposite.iter().filter(|set| **set).count() as u64);
            prop_assert_eq!(to_cells(&toggles), opposite);
        }
    }

    #[test]
    fn restoring_many_runs_from_few_is_stopped_by_the_budget() {
        // Every other cell of the first row of a chunk of 2^40 rows.
        let toggles: Vec<u64> = (0..64).collect();
        let axis = Axis { stride: 64, group: 64 << 40 };
        assert!(integrate(&toggles, axis, &mut Budget::new(1 << 20)).is_err());
    }
}
