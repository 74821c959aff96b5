//! Parts of datasets as h5dump and h5diff take them: start, stride, count and block, each a list with
//! a number for each axis.

use crate::cells::Hyperslab;
use anyhow::{Context, Result, ensure};

/// Lists of a hyperslab; those not given are 0 (start) or 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Subset {
    pub(crate) start: Option<Vec<u64>>,
    pub(crate) stride: Option<Vec<u64>>,
    pub(crate) count: Option<Vec<u64>>,
    pub(crate) block: Option<Vec<u64>>,
}

impl Subset {
    /// Divides `name[start;stride;count;block]`, where any list may be missing. Unless that form is
    /// `compact`, a bracket is part of the name.
    pub(crate) fn split(text: &str, compact: bool) -> Result<(String, Option<Self>)> {
        let Some((name, lists)) = text.split_once('[').filter(|_| compact) else {
            return Ok((text.to_owned(), None));
        };
        let mut lists = lists.trim_end_matches(']').split(';').map(|part| match part.trim() {
            "" => Ok(None),
            part => list(part).map(Some),
        });
        let mut next = || lists.next().transpose().map(Option::flatten);
        let subset = Self { start: next()?, stride: next()?, count: next()?, block: next()? };
        Ok((name.to_owned(), Some(subset)))
    }

    /// The part of an array of `shape`.
    pub(crate) fn slab(&self, shape: &[u64]) -> Result<Hyperslab> {
        ensure!(!shape.is_empty(), "a scalar has no parts to select");
        let given = |name: &str, list: &Option<Vec<u64>>, default| {
            let mut list = list.clone().unwrap_or_else(|| vec![default; shape.len()]);
            // As h5dump has it, the axes that are not named begin at their beginning. No other number can be guessed.
            if name == "start" && list.len() < shape.len() {
                list.resize(shape.len(), 0);
            }
            let (found, wanted) = (list.len(), shape.len());
            let relation = if found > wanted { "exceed" } else { "does not match" };
            ensure!(
                found == wanted,
                "number of {name} dims ({found}) {relation} dataset dims ({wanted})"
            );
            Ok(list)
        };
        let slab = Hyperslab {
            start: given("start", &self.start, 0)?,
            stride: given("stride", &self.stride, 1)?,
            count: given("count", &self.count, 1)?,
            block: given("block", &self.block, 1)?,
        };
        slab.check(shape)?;
        Ok(slab)
    }
}

/// A list of numbers, divided by commas or blanks.
pub(crate) fn list(text: &str) -> Result<Vec<u64>> {
    let words = text.split([',', ' ']).filter(|word| !word.is_empty());
    words.map(|word| word.parse().with_context(|| format!("\"{word}\" in \"{text}\""))).collect()
}
