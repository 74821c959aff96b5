//! Windows on the command line, in Python's manner: `0:8,0:8`, `5,:100`, `-10:,3`, `::2`, `...,-1`.
//!
//! Negative numbers count from the end of an axis, ranges end where the axis does, missing axes are
//! taken whole. An index beyond the axis is an error; a step is at least 1.

use crate::cells::Hyperslab;
use anyhow::{Context, Result, ensure};
use std::str::FromStr;

/// A range or an index for each axis, not yet held against a shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// The parts of the first axes.
    first: Vec<Part>,
    /// The parts of the last axes, behind `...`.
    last: Vec<Part>,
}

/// The selected part of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Index(i128),
    Range { from: Option<i128>, to: Option<i128>, step: u64 },
}

impl Window {
    /// The cells of this window in an array of `shape`, all inside it.
    pub(crate) fn slab(&self, shape: &[u64]) -> Result<Hyperslab> {
        let named = self.first.len() + self.last.len();
        ensure!(
            named <= shape.len(),
            "the window has {named} range(s), the dataset {} dimension(s)",
            shape.len()
        );
        let whole = std::iter::repeat_n(Part::WHOLE, shape.len() - named);
        let parts = self.first.iter().copied().chain(whole).chain(self.last.iter().copied());
        let mut slab = Hyperslab::whole(shape);
        for (axis, part) in parts.enumerate() {
            part.narrow(&mut slab, axis, shape[axis])?;
        }
        Ok(slab)
    }
}

impl Part {
    const WHOLE: Self = Self::Range { from: None, to: None, step: 1 };

    /// Narrows an axis of `length` cells to this part of it.
    pub(crate) fn narrow(self, slab: &mut Hyperslab, axis: usize, length: u64) -> Result<()> {
        let end = i128::from(length);
        let (from, to, step) = match self {
            Self::Index(index) => {
                let place = if index < 0 { index + end } else { index };
                ensure!(
                    (0..end).contains(&place),
                    "the index {index} is beyond axis {axis}, which has {length} cell(s)"
                );
                (place, place + 1, 1)
            }
            Self::Range { from, to, step } => {
                let place = |bound: i128| if bound < 0 { bound + end } else { bound };
                let bound = |bound: Option<i128>, default| {
                    bound.map_or(default, |bound| place(bound).clamp(0, end))
                };
                (bound(from, 0), bound(to, end), step)
            }
        };
        let cells = u64::try_from(to - from).unwrap_or(0);
        slab.start[axis] = u64::try_from(from)?;
        slab.count[axis] = cells.div_ceil(step);
        slab.stride[axis] = if slab.count[axis] > 1 { step } else { 1 };
        Ok(())
    }
}

impl FromStr for Window {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split(',').map(str::trim).collect();
        let parts =
            |words: &[&str]| words.iter().map(|word| word.parse()).collect::<Result<_, String>>();
        Ok(match words.iter().position(|word| *word == "...") {
            Some(at) => Self { first: parts(&words[..at])?, last: parts(&words[at + 1..])? },
            None => Self { first: parts(&words)?, last: Vec::new() },
        })
    }
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| -> Result<i128, String> {
            let number: Option<i128> = text.trim().parse().ok();
            let number = number.filter(|number| number.unsigned_abs() <= u64::MAX.into());
            number.ok_or_else(|| format!("\"{text}\" is no index"))
        };
        let bound = |text: &str| match text.trim() {
            "" => Ok(None),
            text => number(text).map(Some),
        };
        let Some((from, rest)) = text.split_once(':') else { return number(text).map(Self::Index) };
        let (to, step) = rest.split_once(':').unwrap_or((rest, ""));
        let step = bound(step)?.unwrap_or(1);
        let step = u64::try_from(step).ok().filter(|&step| step > 0);
        let step = step.ok_or_else(|| format!("\"{text}\": a step is 1 or more"))?;
        Ok(Self::Range { from: bound(from)?, to: bound(to)?, step })
    }
}

/// A slab without blocks as a window, as it would be typed.
pub(crate) fn text(slab: &Hyperslab) -> String {
    let axes = (0..slab.start.len()).map(|axis| {
        let (start, stride, count) = (slab.start[axis], slab.stride[axis], slab.count[axis]);
        let end = if count == 0 { start } else { start + (count - 1) * stride + 1 };
        let step = if stride > 1 { format!(":{stride}") } else { String::new() };
        format!("{start}:{end}{step}")
    });
    axes.collect::<Vec<_>>().join(",")
}

/// Parses a window; the error says what is wrong.
pub(crate) fn parse(text: &str) -> Result<Window> {
    text.parse().map_err(anyhow::Error::msg).with_context(|| format!("\"{text}\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cells(typed: &str, shape: &[u64]) -> Result<String> {
        Ok(text(&parse(typed)?.slab(shape)?))
    }

    #[test]
    fn ranges_may_be_open_or_single() {
        let shape = [10, 20];
        assert_eq!(cells("0:8,0:8", &shape).unwrap(), "0:8,0:8");
        assert_eq!(cells("5, :7", &shape).unwrap(), "5:6,0:7");
        assert_eq!(cells("3:,:", &shape).unwrap(), "3:10,0:20");
        assert_eq!(cells("3", &shape).unwrap(), "3:4,0:20", "axes that are not named");
        assert_eq!(cells("...,3", &shape).unwrap(), "0:10,3:4");
        assert_eq!(cells("...", &shape).unwrap(), "0:10,0:20");
    }

    #[test]
    fn negative_numbers_count_from_the_end_and_ranges_end_with_the_axis() {
        assert_eq!(cells("-1", &[10]).unwrap(), "9:10");
        assert_eq!(cells("-3:", &[10]).unwrap(), "7:10");
        assert_eq!(cells(":-3", &[10]).unwrap(), "0:7");
        assert_eq!(cells("-300:4", &[10]).unwrap(), "0:4");
        assert_eq!(cells("0:11", &[10]).unwrap(), "0:10");
        assert_eq!(cells("5:4", &[10]).unwrap(), "5:5");
        assert_eq!(cells("1::3", &[10]).unwrap(), "1:8:3");
        assert_eq!(cells("::20", &[10]).unwrap(), "0:1");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(cells("0:8,0:1,0:1", &[10, 20]).is_err());
        for wrong in ["10", "-11", "18446744073709551615"] {
            assert!(cells(wrong, &[10]).is_err(), "{wrong}");
        }
        for wrong in ["", "a", "1:b", "1:2:0", "::-1", "1:2:3:4", "...,...", "99999999999999999999"]
        {
            assert!(wrong.parse::<Window>().is_err(), "{wrong}");
        }
    }

    proptest! {
        /// Held against a list of numbers that is walked as Python walks it.
        #[test]
        fn cells_are_those_that_python_takes(
            length in 0..40i64, from in prop::option::of(-50..50i64), to in prop::option::of(-50..50i64),
            step in 1..9i64,
        ) {
            let place = |bound: i64| if bound < 0 { (bound + length).max(0) } else { bound.min(length) };
            let (first, end) = (from.map_or(0, place), to.map_or(length, place));
            let expected: Vec<i64> = (first..end).step_by(step as usize).collect();
            let show = |bound: Option<i64>| bound.map_or(String::new(), |bound| bound.to_string());
            let typed = format!("{}:{}:{step}", show(from), show(to));
            let slab = parse(&typed).unwrap().slab(&[length as u64]).unwrap();
            slab.check(&[length as u64]).unwrap();
            let taken: Vec<i64> =
                (0..slab.count[0]).map(|index| slab.coordinate(0, index) as i64).collect();
            prop_assert_eq!(taken, expected, "{}", typed);
        }
    }
}
