//! Comparing the objects of references to regions, attributes and objects of any file, pair by
//! pair.

use super::objects::Differ;
use anyhow::Result;
use pumice::{Datatype, Node, Reference, Selection, types::ReferenceKind};

/// References of one side.
pub(super) type List = Vec<Option<Reference>>;

/// Whether the elements are references that are read as such. References to objects of the file
/// alone are addresses, and may be parts of other types.
pub(super) fn are_references(types: [&Datatype; 2]) -> bool {
    types.iter().all(|datatype| {
        matches!(datatype, Datatype::Reference(reference) if reference.kind != ReferenceKind::Object)
    })
}

impl Differ<'_> {
    /// Compares the objects of references; returns the number of differences.
    pub(super) fn reference_lists(&mut self, names: &[String; 2], lists: [List; 2]) -> Result<u64> {
        let [first, second] = lists;
        let mut found = 0;
        for pair in first.iter().zip(&second) {
            if self.options.count.is_some_and(|most| found >= most) {
                break;
            }
            found += match pair {
                (Some(one), Some(other)) => self.reference_pair(names, [one, other])?,
                (one, other) => u64::from(one.is_some() != other.is_some()),
            };
        }
        Ok(found)
    }

    fn reference_pair(&mut self, names: &[String; 2], pair: [&Reference; 2]) -> Result<u64> {
        let [one, other] = pair;
        let (first, second) = (self.files[0], self.files[1]);
        if one.attribute().is_some() {
            let Ok(one) = first.dereference_attribute(one) else {
                self.print("Warning: Cannot open referenced attribute1\n")?;
                return Ok(0);
            };
            let Ok(other) = second.dereference_attribute(other) else {
                self.print("Warning: Cannot open referenced attribute2\n")?;
                return Ok(0);
            };
            return self.attribute([&names[0], &names[1]], [&one, &other]);
        }
        if one.is_region() {
            // A reference that cannot be followed may never have been written.
            let (Ok((dataset, mine)), Ok((another, yours))) =
                (first.dereference_region(one), second.dereference_region(other))
            else {
                return Ok(0);
            };
            let addresses = [one.address(), other.address()];
            return self.regions(addresses, [&mine, &yours], [&dataset.shape(), &another.shape()]);
        }
        let nodes = (first.dereference(one)?, second.dereference(other)?);
        let [one, other] = names;
        match nodes {
            (Node::Dataset(mine), Node::Dataset(yours)) if self.depth < 16 => {
                self.depth += 1;
                let result = self.datasets([one, other], [&mine, &yours]);
                self.depth -= 1;
                result
            }
            (mine, yours) => {
                let alike = std::mem::discriminant(&mine) == std::mem::discriminant(&yours);
                self.not_datasets(names, alike).map(|()| 0)
            }
        }
    }

    /// Reports references to objects that are not two datasets: `alike`, of the same kind.
    pub(super) fn not_datasets(&mut self, names: &[String; 2], alike: bool) -> Result<()> {
        let [one, other] = names;
        self.incomparable();
        if !alike {
            self.failed = true;
            return self
                .print(&format!("Different object types referenced: <{one}> and <{other}>"));
        }
        if self.options.verbose {
            self.print(&format!(
                "Warning: Comparison not possible of object types referenced: \
                 <{one}> and <{other}>\n"
            ))?;
        }
        Ok(())
    }

    fn regions(
        &mut self,
        addresses: [u64; 2],
        [one, other]: [&Selection; 2],
        [shape, another]: [&[u64]; 2],
    ) -> Result<u64> {
        if shape.len() != another.len() {
            self.incomparable();
            return Ok(0);
        }
        let rank = shape.len().max(1);
        if let (Some((_, one)), Some((_, other))) = (one.as_points(), other.as_points()) {
            if one.len() != other.len() {
                self.incomparable();
                return Ok(0);
            }
            let found = one.iter().zip(other).filter(|(one, other)| one != other).count() as u64;
            if found > 0 && self.options.verbose {
                self.print("Region points\n")?;
                let points = one.chunks_exact(rank).zip(other.chunks_exact(rank));
                for (number, (one, other)) in
                    points.enumerate().filter(|(_, (one, other))| one != other)
                {
                    let text = [one, other].map(|point| format!("              ({})", list(point)));
                    self.print(&format!("point #{number}{}\n", text.concat()))?;
                }
            }
            // Coordinates that differ, in whole points.
            return Ok(found / rank as u64);
        }
        let blocks = [(one, shape), (other, another)].map(|(region, shape)| {
            let mut blocks = Vec::new();
            region.for_each_block(shape, |low, high| blocks.push((low.to_vec(), high.to_vec())));
            blocks
        });
        let points = [one, other].map(|region| region.as_points().is_some());
        if blocks[0].len() != blocks[1].len() || points[0] != points[1] {
            self.incomparable();
            return Ok(0);
        }
        let pairs = blocks[0].iter().zip(&blocks[1]);
        let differs = |(one, other): (&Block, &Block)| {
            let axes = one.0.iter().zip(&one.1).zip(other.0.iter().zip(&other.1));
            axes.filter(|(one, other)| one != other).count() as u64
        };
        let found: u64 = pairs.clone().map(differs).sum();
        if found > 0 && self.options.verbose {
            let [one, other] = addresses;
            self.print(&format!("Referenced dataset      {one}            {other}\n"))?;
            self.print("------------------------------------------------------------\n")?;
            self.print("Region blocks\n")?;
            for (number, (one, other)) in pairs.enumerate() {
                let text = [one, other]
                    .map(|(low, high)| format!("           ({})-({})", list(low), list(high)));
                self.print(&format!("block #{number}{}\n", text.concat()))?;
            }
        }
        Ok(found / rank as u64)
    }
}

/// The corners of a block.
type Block = (Vec<u64>, Vec<u64>);

fn list(numbers: &[u64]) -> String {
    numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(",")
}
