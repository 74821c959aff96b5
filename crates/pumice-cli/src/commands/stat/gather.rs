//! Gathering the statistics.

use crate::ddl::memory_size;
use crate::walker::{self, Visitor};
use anyhow::Result;
use pumice::types::VarLenKind;
use pumice::{
    Attribute, CommittedDatatype, Dataset, Datatype, Error, File, FileSpace, FileSpaceInfo, Group,
    LayoutKind, MemberKind, Node, ObjectSpace, Selection,
};
use std::collections::BTreeMap;

/// Counts by number: how many things have a size.
#[derive(Debug, Default)]
pub(super) struct Counts(BTreeMap<u64, u64>);

impl Counts {
    fn add(&mut self, number: u64) {
        *self.0.entry(number).or_default() += 1;
    }

    /// The numbers below `end`, with their counts.
    pub(super) fn below(&self, end: u64) -> impl Iterator<Item = (u64, u64)> {
        self.0.range(..end).map(|(number, count)| (*number, *count))
    }

    /// The counts of 0, of 1 to 9, of 10 to 99 and so on, up to the largest number.
    pub(super) fn bins(&self) -> Vec<u64> {
        let mut bins = Vec::new();
        for (&number, &count) in &self.0 {
            let bin = number.checked_ilog10().map_or(0, |power| power as usize + 1);
            if bins.len() <= bin {
                bins.resize(bin + 1, 0);
            }
            bins[bin] += count;
        }
        bins
    }

    pub(super) fn max(&self) -> u64 {
        self.0.last_key_value().map_or(0, |(number, _)| *number)
    }

    pub(super) fn total(&self) -> u64 {
        self.0.values().sum()
    }
}

impl FromIterator<u64> for Counts {
    fn from_iter<I: IntoIterator<Item = u64>>(numbers: I) -> Self {
        let mut counts = Self::default();
        numbers.into_iter().for_each(|number| counts.add(number));
        counts
    }
}

/// A datatype of datasets.
pub(super) struct UsedType {
    datatype: Datatype,
    pub(super) count: u64,
    pub(super) named: u64,
    /// Bytes of its description.
    pub(super) description: u64,
    pub(super) size: u64,
}

/// Sparse datasets together.
#[derive(Debug, Default)]
pub(super) struct Sparse {
    pub(super) datasets: u64,
    pub(super) defined: u64,
    pub(super) chunks: u64,
    /// Chunks by tenths of their cells that are defined.
    pub(super) fill: [u64; 10],
}

/// Everything about a file.
pub(super) struct Statistics {
    pub(super) file: FileSpace,
    pub(super) settings: FileSpaceInfo,
    pub(super) user_block: u64,
    pub(super) groups: Space,
    pub(super) datasets: Space,
    pub(super) datatypes: Space,
    pub(super) links: u64,
    pub(super) others: u64,
    pub(super) most_links: u32,
    pub(super) members: Counts,
    pub(super) attributes: Counts,
    pub(super) ranks: Counts,
    pub(super) lengths: Counts,
    pub(super) raw: u64,
    pub(super) external: u64,
    pub(super) external_files: u64,
    /// Compact, contiguous, chunked, virtual, sparse.
    pub(super) layouts: [u64; 5],
    /// None, the six of HDF5 by number, others.
    pub(super) filters: [u64; 8],
    pub(super) types: Vec<UsedType>,
    pub(super) sparse: Sparse,
    /// Objects that are newer than this program, and do not count.
    pub(super) newer: Vec<Error>,
}

/// The objects of a kind and their bytes.
#[derive(Debug, Default)]
pub(super) struct Space {
    pub(super) count: u64,
    pub(super) header: u64,
    pub(super) unused: u64,
    pub(super) index: u64,
    pub(super) heap: u64,
    pub(super) attribute_index: u64,
    pub(super) attribute_heap: u64,
}

impl Space {
    fn add(&mut self, space: &ObjectSpace) {
        self.count += 1;
        for (sum, bytes) in [
            (&mut self.header, space.header),
            (&mut self.unused, space.header_unused),
            (&mut self.index, space.index),
            (&mut self.heap, space.heap),
            (&mut self.attribute_index, space.attribute_index),
            (&mut self.attribute_heap, space.attribute_heap),
        ] {
            *sum = sum.saturating_add(bytes);
        }
    }
}

impl Statistics {
    /// The statistics of an object of a file, and of everything below it.
    pub(super) fn of(file: &File, node: &Node) -> Result<Self> {
        let info = file.info()?;
        let mut statistics = Self {
            file: file.space()?,
            settings: info.file_space,
            user_block: info.user_block_size,
            groups: Space::default(),
            datasets: Space::default(),
            datatypes: Space::default(),
            links: 0,
            others: 0,
            most_links: 0,
            members: Counts::default(),
            attributes: Counts::default(),
            ranks: Counts::default(),
            lengths: Counts::default(),
            raw: 0,
            external: 0,
            external_files: 0,
            layouts: [0; 5],
            filters: [0; 8],
            types: Vec::new(),
            sparse: Sparse::default(),
            newer: Vec::new(),
        };
        walker::walk_node(node, &mut statistics)?;
        Ok(statistics)
    }

    fn object(&mut self, links: u32, attributes: pumice::Result<Vec<Attribute>>) -> Result<()> {
        self.most_links = self.most_links.max(links);
        self.attributes.add(attributes?.len() as u64);
        Ok(())
    }

    fn storage(&mut self, dataset: &Dataset, space: &mut ObjectSpace) -> Result<()> {
        let stored = dataset.storage_size()?;
        let layout = match dataset.layout() {
            LayoutKind::Compact => {
                // The elements are part of the header.
                space.header = space.header.saturating_sub(stored);
                0
            }
            LayoutKind::Contiguous | LayoutKind::External => 1,
            LayoutKind::Virtual => 3,
            LayoutKind::Sparse => 4,
            _ => 2,
        };
        self.layouts[layout] += 1;
        match dataset.external_pieces()?.len() as u64 {
            0 => self.raw = self.raw.saturating_add(stored),
            files => {
                self.external_files += files;
                let cells = dataset.extent()?.cells().unwrap_or(u64::MAX);
                let bytes = cells.saturating_mul(dataset.datatype().size() as u64);
                self.external = self.external.saturating_add(bytes);
            }
        }
        if layout == 4 {
            self.sparse(dataset)?;
        }
        Ok(())
    }

    fn sparse(&mut self, dataset: &Dataset) -> Result<()> {
        self.sparse.datasets += 1;
        let (shape, sides) = (dataset.shape(), dataset.chunk().unwrap_or_default());
        for chunk in dataset.structured_chunks()? {
            let chunk = chunk?;
            let axes = chunk.offset.iter().zip(&sides).zip(&shape);
            let lengths: Vec<u64> =
                axes.map(|((first, side), end)| (*side).min(end.saturating_sub(*first))).collect();
            let cells: u64 = lengths.iter().product();
            let block = Selection::block(&chunk.offset, &lengths).map_err(Error::from)?;
            let defined = dataset.count_defined(&block)?;
            self.sparse.chunks += 1;
            self.sparse.defined += defined;
            let tenth = defined.saturating_mul(10) / cells.max(1);
            self.sparse.fill[tenth.min(9) as usize] += 1;
        }
        Ok(())
    }

    fn used_type(&mut self, dataset: &Dataset) -> Result<()> {
        let datatype = dataset.datatype();
        let known = self.types.iter().position(|used| same_type(&used.datatype, datatype));
        let place = known.unwrap_or(self.types.len());
        if known.is_none() {
            self.types.push(UsedType {
                datatype: datatype.clone(),
                count: 0,
                named: 0,
                // Two bytes say that it is an encoded datatype.
                description: dataset.datatype_length()? + 2,
                size: memory_size(datatype),
            });
        }
        self.types[place].count += 1;
        self.types[place].named += u64::from(dataset.committed_datatype().is_some());
        Ok(())
    }
}

/// Whether libhdf5 takes two datatypes for the same: texts of variable length all are.
fn same_type(one: &Datatype, other: &Datatype) -> bool {
    let text = |datatype: &Datatype| matches!(datatype, Datatype::VarLen(varlen) if varlen.kind != VarLenKind::Sequence);
    one == other || (text(one) && text(other))
}

impl Visitor for Statistics {
    fn enter_group(&mut self, _path: &str, group: &Group) -> Result<bool> {
        self.groups.add(&group.space()?);
        self.members.add(group.members()?.len() as u64);
        self.object(group.link_count(), group.attributes())?;
        Ok(true)
    }

    fn dataset(&mut self, _path: &str, dataset: &Dataset) -> Result<()> {
        let mut space = dataset.space()?;
        self.storage(dataset, &mut space)?;
        self.datasets.add(&space);
        self.object(dataset.link_count(), dataset.attributes())?;
        let shape = dataset.shape();
        self.ranks.add(shape.len() as u64);
        if let [length] = shape[..] {
            self.lengths.add(length);
        }
        let filters = filters(dataset);
        if filters.is_empty() {
            self.filters[0] += 1;
        }
        for id in filters {
            self.filters[usize::from(id).min(7)] += 1;
        }
        self.used_type(dataset)
    }

    fn datatype(&mut self, _path: &str, datatype: &CommittedDatatype) -> Result<()> {
        self.datatypes.add(&datatype.space()?);
        self.object(datatype.link_count(), datatype.attributes())
    }

    fn other(&mut self, _path: &str, kind: &MemberKind) -> Result<()> {
        match kind {
            // Links of a program's own kinds are no links to HDF5's tool.
            MemberKind::Other | MemberKind::UserDefinedLink(_) => self.others += 1,
            _ => self.links += 1,
        }
        Ok(())
    }

    fn failed(&mut self, _path: &str, error: Error) -> Result<()> {
        if !error.is_newer() {
            return Err(error.into());
        }
        self.newer.push(error);
        Ok(())
    }
}

/// The filters of a dataset by number. One that several sections of structured chunks have counts once.
fn filters(dataset: &Dataset) -> Vec<u16> {
    let mut ids: Vec<u16> = match dataset.sections().len() {
        0 | 1 => return dataset.filters().iter().map(|filter| filter.id).collect(),
        _ => {
            let filters = dataset.section_filters();
            let ids = |section| filters.of(section).iter().map(|filter| filter.id);
            dataset.sections().into_iter().flat_map(ids).collect()
        }
    };
    ids.sort_unstable();
    ids.dedup();
    ids
}

#[cfg(test)]
mod tests {
    use super::Counts;

    #[test]
    fn numbers_fall_into_bins_by_their_digits() {
        let counts: Counts = [0, 1, 9, 10, 99, 5000].into_iter().collect();
        assert_eq!(counts.bins(), [1, 2, 2, 0, 1]);
        assert_eq!(counts.below(10).count(), 3);
        assert_eq!((counts.max(), counts.total()), (5000, 6));
        assert!(Counts::default().bins().is_empty());
    }
}
