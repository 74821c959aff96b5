//! Enumerations: values are matched by their names.

use super::{Kernel, Number};
use crate::model::Enumeration;

/// Converts values between two enumerations by name.
#[derive(Debug, Clone)]
pub(super) struct EnumKernel {
    source_size: usize,
    target_size: usize,
    /// The source's values, packed and sorted by their bytes.
    sources: Vec<u8>,
    /// The target's values of the same names, packed, in the same order.
    targets: Vec<u8>,
}

impl EnumKernel {
    /// `None` when the target lacks a name of the source.
    pub(super) fn choose(from: &Enumeration, to: &Enumeration) -> Option<Kernel> {
        let mut names: Vec<(&str, &[u8])> = to.members().collect();
        names.sort_unstable();
        let mut pairs = Vec::with_capacity(from.names.len());
        for (name, source) in from.members() {
            let index = names.binary_search_by_key(&name, |(known, _)| known).ok()?;
            pairs.push((source, names[index].1));
        }
        let same_bytes = Number::of_integer(&from.base) == Number::of_integer(&to.base);
        if same_bytes && pairs.iter().all(|(source, target)| source == target) {
            return Some(Kernel::Copy);
        }
        pairs.sort();
        pairs.dedup_by_key(|pair| pair.0);
        Some(Kernel::Enum(Box::new(Self {
            source_size: from.base.size as usize,
            target_size: to.base.size as usize,
            sources: pairs.iter().flat_map(|pair| pair.0).copied().collect(),
            targets: pairs.iter().flat_map(|pair| pair.1).copied().collect(),
        })))
    }

    pub(super) fn run(&self, source: &[u8], target: &mut [u8]) {
        let values = source.chunks_exact(self.source_size);
        for (from, to) in values.zip(target.chunks_exact_mut(self.target_size)) {
            match self.find(from) {
                Some(value) => to.copy_from_slice(value),
                None => to.fill(0xFF),
            }
        }
    }

    /// The target's bytes for a source value that has a name.
    fn find(&self, value: &[u8]) -> Option<&[u8]> {
        let (mut low, mut high) = (0, self.sources.len() / self.source_size);
        while low < high {
            let middle = low + (high - low) / 2;
            let known = &self.sources[middle * self.source_size..][..self.source_size];
            match known.cmp(value) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => {
                    return Some(&self.targets[middle * self.target_size..][..self.target_size]);
                }
            }
        }
        None
    }
}
