//! The best encoding of a set of cells: transformations first, then cells, runs or a bitmap.
//!
//! Nothing here affects what can be read back, only how long it is. Sizes are estimated from counts
//! (cells, runs, cells of the chunk) as if the set were random; sets with a pattern come out shorter
//! than estimated, in every form.

use super::Aim;
use super::toggles::{self, Axis};
use crate::scratch;

/// The form in which a set is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// One bit per cell of the chunk.
    Bitmap,
    /// The gaps between cells.
    Cells,
    /// The gaps between runs, and the lengths of runs.
    Runs,
}

/// A set, transformed, and the way to write it.
pub(super) struct Plan {
    pub(super) kind: Kind,
    /// Whether the complement is written.
    pub(super) complement: bool,
    /// Bit `a` is set if the difference along axis `a` is written.
    pub(super) axes: u32,
    /// The toggles to write.
    pub(super) toggles: Vec<u64>,
}

/// Plans the writing of a set of cells of a chunk of shape `dims` with `cells` cells.
pub(super) fn plan(dims: &[u64], cells: u64, mut set: Vec<u64>, aim: Aim) -> Plan {
    // To undo a difference takes as long as to read the runs that it saves.
    let share = |toggles: usize| match aim {
        Aim::Short => toggles * 3 / 4,
        Aim::Fast => toggles / 16,
    };
    let mut axes = 0;
    for axis in (0..dims.len().saturating_sub(1)).rev().filter(|axis| dims[*axis] > 1) {
        let steps = Axis::new(dims, axis);
        if !worth_trying(&set, steps, aim) {
            continue;
        }
        if let Some(shorter) = toggles::difference(&set, steps, share(set.len())) {
            axes |= 1 << axis;
            scratch::give_words(std::mem::replace(&mut set, shorter));
        }
    }
    let (kind, complement) = choose(cells, toggles::count(&set), set.len() as u64 / 2);
    if complement {
        toggles::complement(&mut set, cells);
    }
    Plan { kind, complement, axes, toggles: set }
}

/// The toggles that are sampled before a difference is computed.
pub(super) const SAMPLES: usize = 64;

/// Whether most toggles of a sample have another one stride further, with which they would cancel.
fn worth_trying(set: &[u64], axis: Axis, aim: Aim) -> bool {
    if set.len() < 8 {
        return !set.is_empty();
    }
    let step = (set.len() / SAMPLES).max(1);
    let sampled = set.iter().step_by(step).take(SAMPLES);
    let repeats = sampled.clone().filter(|at| set.binary_search(&(**at + axis.stride)).is_ok());
    // Chance alone may come close in a small sample; computing the difference decides.
    match aim {
        Aim::Short => 2 * repeats.count() >= sampled.count(),
        // Nearly all have to cancel.
        Aim::Fast => 8 * repeats.count() >= 7 * sampled.count(),
    }
}

/// The shortest way to write `members` of `cells` cells in `runs` runs, and whether to write the
/// complement instead.
pub(super) fn choose(cells: u64, members: u64, runs: u64) -> (Kind, bool) {
    if runs == 0 {
        return (Kind::Runs, false);
    }
    let holes = cells - members;
    // Cells cost time by their number, so they must not be many more than the runs.
    let (few_members, few_holes) = (members <= 4 * runs, holes <= 4 * runs);
    let (set, unset, pieces) = (members as f64, holes as f64, runs as f64);
    let as_runs = pieces * (rice_bits(unset / pieces - 1.0) + rice_bits(set / pieces - 1.0));
    let as_cells = if few_members { set * rice_bits(unset / set) } else { f64::INFINITY };
    let as_holes = if few_holes { unset * rice_bits(set / unset) } else { f64::INFINITY };
    let shortest = as_runs.min(as_cells).min(as_holes);
    // A bitmap is read in no time, so it may be a little longer.
    if cells as f64 <= shortest * 1.02 {
        (Kind::Bitmap, false)
    } else if as_runs == shortest {
        (Kind::Runs, false)
    } else {
        (Kind::Cells, as_holes < as_cells)
    }
}

/// The mean length of the best Rice code for numbers that follow a geometric law with this mean.
fn rice_bits(mean: f64) -> f64 {
    if mean <= 0.0 {
        return 0.0;
    }
    // The probability that a number reaches 2^k is squared with every further bit of k.
    let mut reaches = mean / (1.0 + mean);
    let mut best = f64::INFINITY;
    for low_bits in 0..48 {
        let bits = f64::from(low_bits) + 1.0 / (1.0 - reaches);
        if bits >= best {
            break;
        }
        best = bits;
        reaches *= reaches;
    }
    best
}
