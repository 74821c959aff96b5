//! Lists of cells, as `h5dump --sparse-locations` prints them.

use anyhow::{Context, Result, bail, ensure};
use pumice::Selection;

/// Blocks and points by their first and last cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Locations(Vec<(Vec<u64>, Vec<u64>)>);

impl Locations {
    /// Reads `BLOCK (2,2)-(4,7), (6,0)-(6,2) POINT (5,9), (11,1)`, or such a list from `@FILE`, which
    /// may be a dump.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        if let Some(path) = text.strip_prefix('@') {
            let text = std::fs::read_to_string(path)
                .with_context(|| format!("read locations from {path}"))?;
            let regions = text.lines().filter(|line| line.trim_start().starts_with("REGION_TYPE"));
            let regions: Vec<&str> = regions.collect();
            return match regions.is_empty() {
                true => Self::parse(&text),
                // A dump: values and attributes have parentheses, too.
                false => Self::parse(&regions.join("\n")),
            };
        }
        let mut cells: Vec<(Vec<u64>, Vec<u64>)> = Vec::new();
        let mut rest = text;
        // Whether the next tuple ends the block that the last one begins.
        let mut open = false;
        while let Some(start) = rest.find('(') {
            let between = rest[..start].trim();
            let end = rest[start..].find(')').context("a list of cells without an end")? + start;
            let tuple = rest[start + 1..end].split(',').map(|word| word.trim().parse::<u64>());
            let tuple = tuple.collect::<Result<Vec<_>, _>>();
            let tuple = tuple.with_context(|| format!("no coordinates: {}", &rest[start..=end]))?;
            if between.ends_with('-') && open {
                let last = cells.last_mut().context("a block without a beginning")?;
                ensure!(last.0.len() == tuple.len(), "a block between different ranks");
                let ordered = last.0.iter().zip(&tuple).all(|(first, last)| first <= last);
                ensure!(ordered, "a block that ends before it begins: {tuple:?}");
                last.1 = tuple;
                open = false;
            } else {
                cells.push((tuple.clone(), tuple));
                open = true;
            }
            rest = &rest[end + 1..];
        }
        if cells.is_empty() {
            bail!("no cells in \"{}\"", text.trim());
        }
        Ok(Self(cells))
    }

    /// The cells in a dataset of a shape.
    pub(crate) fn selection(&self, shape: &[u64]) -> Result<Selection> {
        let block = |(first, last): &(Vec<u64>, Vec<u64>)| -> Result<Selection> {
            let inside =
                first.len() == shape.len() && last.iter().zip(shape).all(|(at, side)| at < side);
            ensure!(inside, "{first:?} to {last:?} is not in a shape of {shape:?}");
            let size: Vec<u64> = first.iter().zip(last).map(|(from, to)| to - from + 1).collect();
            Ok(Selection::block(first, &size)?)
        };
        let blocks = self.0.iter().map(block).collect::<Result<Vec<_>>>()?;
        Ok(Selection::union_of(shape.len(), blocks, shape)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_and_points_are_read_as_they_are_printed() {
        let text =
            "REGION_TYPE BLOCK  (2,2)-(4,7)\n REGION_TYPE BLOCK (6,0) - (6,2) POINT (5,9), (11, 1)";
        let locations = Locations::parse(text).unwrap();
        assert_eq!(locations.0.len(), 4);
        let selection = locations.selection(&[13, 10]).unwrap();
        assert_eq!(selection.count(&[13, 10]), 18 + 3 + 2);
        assert!(locations.selection(&[5, 10]).is_err());
        for wrong in ["", "BLOCK", "POINT (1", "POINT (a)", "BLOCK (3,3)-(1,1)"] {
            assert!(Locations::parse(wrong).is_err(), "{wrong}");
        }
    }
}
