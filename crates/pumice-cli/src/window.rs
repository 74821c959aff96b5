//! Windows as they are typed: `0:8,0:8`, `5,:100`, `60000:,3`.

use anyhow::{Result, bail, ensure};
use std::ops::Range;
use std::str::FromStr;

/// A range or index for each axis, not yet held against a shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Window(Vec<(Option<u64>, Option<u64>)>);

impl Window {
    /// The ranges of this window in a dataset of `shape`, all inside it.
    pub(crate) fn ranges(&self, shape: &[u64]) -> Result<Vec<Range<u64>>> {
        ensure!(
            self.0.len() == shape.len(),
            "the window has {} range(s), the dataset {} dimension(s)",
            self.0.len(),
            shape.len()
        );
        let axes = self.0.iter().zip(shape).enumerate();
        axes.map(|(axis, (&(from, to), &length))| {
            let (from, to) = (from.unwrap_or(0), to.unwrap_or(length));
            if to > length || from > to {
                bail!("the range {from}:{to} does not fit axis {axis}, which has {length} cell(s)");
            }
            Ok(from..to)
        })
        .collect()
    }
}

impl FromStr for Window {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.split(',').map(axis).collect::<Result<_, _>>().map(Self)
    }
}

fn axis(text: &str) -> Result<(Option<u64>, Option<u64>), String> {
    let number = |text: &str| -> Result<u64, String> {
        text.trim().parse().map_err(|_| format!("\"{text}\" is no index"))
    };
    let bound = |text: &str| match text.trim() {
        "" => Ok(None),
        text => number(text).map(Some),
    };
    match text.split_once(':') {
        Some((from, to)) => Ok((bound(from)?, bound(to)?)),
        None => {
            let index = number(text)?;
            let next = index.checked_add(1).ok_or_else(|| format!("\"{text}\" is no index"))?;
            Ok((Some(index), Some(next)))
        }
    }
}

/// The shape of ranges.
pub(crate) fn shape(ranges: &[Range<u64>]) -> Vec<u64> {
    ranges.iter().map(|range| range.end - range.start).collect()
}

#[cfg(test)]
mod tests {
    use super::Window;

    fn parse(text: &str) -> Window {
        text.parse().unwrap()
    }

    #[test]
    fn ranges_may_be_open_or_single() {
        let shape = [10, 20];
        assert_eq!(parse("0:8,0:8").ranges(&shape).unwrap(), [0..8, 0..8]);
        assert_eq!(parse("5, :7").ranges(&shape).unwrap(), [5..6, 0..7]);
        assert_eq!(parse("3:,:").ranges(&shape).unwrap(), [3..10, 0..20]);
    }

    #[test]
    fn ranges_that_do_not_fit_are_refused() {
        assert!(parse("0:8").ranges(&[10, 20]).is_err());
        assert!(parse("0:11").ranges(&[10]).is_err());
        assert!(parse("10").ranges(&[10]).is_err());
        assert!(parse("5:4").ranges(&[10]).is_err());
        for wrong in ["", "a", "1:b", "1:2:3", "-1", "18446744073709551615"] {
            assert!(wrong.parse::<Window>().is_err(), "{wrong}");
        }
    }
}
