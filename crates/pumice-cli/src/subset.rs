//! Parts of datasets as h5dump and h5diff take them: start, stride, count and block, each a list with
//! a number for each axis; or a window in Python's manner, as `pumice read` takes it.

use crate::cells::Hyperslab;
use crate::window::{self, Window};
use anyhow::{Context, Result, ensure};

/// Lists of a hyperslab; missing ones are 0 (start) or 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Subset {
    /// Numbers below 0 count from the end of an axis.
    pub(crate) start: Option<Vec<i128>>,
    pub(crate) stride: Option<Vec<u64>>,
    pub(crate) count: Option<Vec<u64>>,
    pub(crate) block: Option<Vec<u64>>,
    /// Instead of all lists.
    pub(crate) window: Option<Window>,
}

impl Subset {
    /// Divides `name[start;stride;count;block]`, where any list may be missing, or `name[window]`. Unless that form is
    /// `compact`, a bracket is part of the name.
    pub(crate) fn split(text: &str, compact: bool) -> Result<(String, Option<Self>)> {
        let Some((name, lists)) = text.split_once('[').filter(|_| compact) else {
            return Ok((text.to_owned(), None));
        };
        let lists = lists.trim_end_matches(']');
        if lists.contains(':') || lists.contains("...") {
            let window = Some(window::parse(lists)?);
            return Ok((name.to_owned(), Some(Self { window, ..Self::default() })));
        }
        let mut lists = lists.split(';').map(str::trim);
        let start = match lists.next().unwrap_or_default() {
            "" => None,
            part => Some(list(part)?),
        };
        let mut lists = lists.map(|part| match part {
            "" => Ok(None),
            part => list(part).map(Some),
        });
        let mut next = || lists.next().transpose().map(Option::flatten);
        let (stride, count, block) = (next()?, next()?, next()?);
        Ok((name.to_owned(), Some(Self { start, stride, count, block, window: None })))
    }

    /// The part of an array of `shape`.
    pub(crate) fn slab(&self, shape: &[u64]) -> Result<Hyperslab> {
        ensure!(!shape.is_empty(), "a scalar has no parts to select");
        if let Some(window) = &self.window {
            return window.slab(shape);
        }
        let mut start = given("start", self.start.as_deref(), 0, shape)?;
        for (place, &length) in start.iter_mut().zip(shape) {
            *place += if *place < 0 { i128::from(length) } else { 0 };
        }
        let start: Result<Vec<u64>, _> = start.into_iter().map(u64::try_from).collect();
        let slab = Hyperslab {
            start: start.context("the selection begins before the dataset")?,
            stride: given("stride", self.stride.as_deref(), 1, shape)?,
            count: given("count", self.count.as_deref(), 1, shape)?,
            block: given("block", self.block.as_deref(), 1, shape)?,
        };
        slab.check(shape)?;
        Ok(slab)
    }
}

/// A list with a number for each axis.
fn given<T: Copy>(name: &str, list: Option<&[T]>, default: T, shape: &[u64]) -> Result<Vec<T>> {
    let mut list = list.map_or_else(|| vec![default; shape.len()], <[T]>::to_vec);
    // As h5dump has it, the axes that are not named begin at their beginning. No other number can be guessed.
    if name == "start" && list.len() < shape.len() {
        list.resize(shape.len(), default);
    }
    let (found, wanted) = (list.len(), shape.len());
    let relation = if found > wanted { "exceed" } else { "does not match" };
    ensure!(found == wanted, "number of {name} dims ({found}) {relation} dataset dims ({wanted})");
    Ok(list)
}

/// A list of numbers, divided by commas or blanks.
pub(crate) fn list<T>(text: &str) -> Result<Vec<T>>
where
    T: std::str::FromStr,
    T::Err: std::error::Error + Send + Sync + 'static,
{
    let words = text.split([',', ' ']).filter(|word| !word.is_empty());
    words.map(|word| word.parse().with_context(|| format!("\"{word}\" in \"{text}\""))).collect()
}

#[cfg(test)]
mod tests {
    use super::Subset;

    fn slab(text: &str, shape: &[u64]) -> (Vec<u64>, Vec<u64>, Vec<u64>) {
        let (name, subset) = Subset::split(text, true).unwrap();
        assert_eq!(name, "m");
        let slab = subset.unwrap().slab(shape).unwrap();
        (slab.start, slab.stride, slab.count)
    }

    #[test]
    fn lists_and_windows_select() {
        assert_eq!(slab("m[1,2;;3,4]", &[9, 9]), (vec![1, 2], vec![1, 1], vec![3, 4]));
        assert_eq!(slab("m[-1,-2;;1,2]", &[9, 9]), (vec![8, 7], vec![1, 1], vec![1, 2]));
        assert_eq!(slab("m[-1]", &[9]), (vec![8], vec![1], vec![1]));
        assert_eq!(slab("m[-3:,::4]", &[9, 9]), (vec![6, 0], vec![1, 4], vec![3, 3]));
        let (_, before) = Subset::split("m[-10]", true).unwrap();
        assert!(before.unwrap().slab(&[9]).is_err());
        assert!(Subset::split("m[::-1]", true).is_err());
    }
}
