//! Unlimited parts of virtual datasets, and numbered names of sources: which cells the existing
//! sources provide.

use crate::{Error, Result};
use pumice_space::{HyperslabAxis, Selection, UNLIMITED};

/// The axis along which a selection has no end, and its parameters there.
pub(super) fn unlimited_axis(selection: &Selection) -> Option<(usize, HyperslabAxis)> {
    let axes = selection.regular()?;
    let endless = |axis: &HyperslabAxis| axis.count == UNLIMITED || axis.block == UNLIMITED;
    axes.iter().position(endless).map(|place| (place, axes[place]))
}

/// An unlimited selection with other parameters along its unlimited axis.
fn with_axis(selection: &Selection, axis: usize, parameters: HyperslabAxis) -> Result<Selection> {
    let mut axes = selection.regular().unwrap_or_default();
    if let Some(place) = axes.get_mut(axis) {
        *place = parameters;
    }
    let column = |field: fn(&HyperslabAxis) -> u64| axes.iter().map(field).collect::<Vec<u64>>();
    Ok(Selection::hyperslab(
        &column(|axis| axis.start),
        &column(|axis| axis.stride),
        &column(|axis| axis.count),
        &column(|axis| axis.block),
    )?)
}

/// Block `number` of an unlimited selection.
pub(super) fn block(
    selection: &Selection,
    axis: usize,
    parameters: HyperslabAxis,
    number: u64,
) -> Result<Selection> {
    let start = number.checked_mul(parameters.stride).and_then(|s| s.checked_add(parameters.start));
    let start = start.ok_or_else(|| {
        Error::Invalid("the selection of a virtual dataset's part has no end".into())
    })?;
    with_axis(selection, axis, HyperslabAxis { start, count: 1, ..parameters })
}

/// The number of cells of a selection at one place of its unlimited axis.
pub(super) fn layer(selection: &Selection, axis: usize) -> u64 {
    let axes = selection.regular().unwrap_or_default();
    let others = axes.iter().enumerate().filter(|(place, _)| *place != axis);
    let counts = others.map(|(_, axis)| axis.count.saturating_mul(axis.block));
    counts.fold(1, u64::saturating_mul).max(1)
}

/// The first missing cell along an unlimited axis, if the cells before `end` are there. Gaps
/// between whole blocks count as present.
pub(super) fn with_trail(parameters: HyperslabAxis, end: u64) -> u64 {
    let HyperslabAxis { start, stride, block, .. } = parameters;
    let within = end.saturating_sub(start);
    if end == 0 {
        return start;
    }
    let whole = block != UNLIMITED && stride > 0 && within % stride == block % stride;
    if whole { start.saturating_add(within.div_ceil(stride).saturating_mul(stride)) } else { end }
}

/// The first `count` cells of an unlimited selection, which come in whole layers across its axis.
pub(super) fn first_cells(
    selection: &Selection,
    axis: usize,
    parameters: HyperslabAxis,
    count: u64,
) -> Result<Selection> {
    let layers = count / layer(selection, axis);
    if parameters.block == UNLIMITED || layers <= parameters.block {
        let one =
            HyperslabAxis { count: u64::from(layers > 0), block: layers.max(1), ..parameters };
        return match layers {
            0 => Ok(Selection::none()),
            _ => with_axis(
                selection,
                axis,
                HyperslabAxis { stride: one.block.max(one.stride), ..one },
            ),
        };
    }
    let (blocks, rest) = (layers / parameters.block, layers % parameters.block);
    let whole = with_axis(selection, axis, HyperslabAxis { count: blocks, ..parameters })?;
    if rest == 0 {
        return Ok(whole);
    }
    let start = parameters.start.saturating_add(blocks.saturating_mul(parameters.stride));
    let last = HyperslabAxis { start, count: 1, block: rest, ..parameters };
    let vast = vec![UNLIMITED - 1; selection.rank().unwrap_or_default()];
    Ok(whole.or(&with_axis(selection, axis, last)?, &vast)?)
}

/// Whether a name has a `%b`, which stands for a number.
pub(super) fn is_numbered(name: &str) -> bool {
    name.replace("%%", "").contains("%b")
}

pub(super) fn numbered(name: &str, number: u64) -> String {
    name.split("%%")
        .map(|part| part.replace("%b", &number.to_string()))
        .collect::<Vec<_>>()
        .join("%")
}

pub(super) fn plain(name: &str) -> String {
    name.replace("%%", "%")
}
