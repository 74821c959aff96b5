//! Statistics as h5stat prints them.

use super::gather::{Counts, Statistics};
use super::options::Options;
use anyhow::Result;
use pumice::FileSpaceStrategy;
use std::io::Write;

/// Sections of free space below this are small.
const SMALL_SECTION: u64 = 10;

pub(super) fn all(found: &Statistics, options: &Options, out: &mut dyn Write) -> Result<()> {
    let tells = |letter| options.tells(letter);
    if tells('f') {
        objects(found, out)?;
    }
    if tells('F') {
        metadata(found, out)?;
    }
    if tells('g') {
        groups(found, options, out)?;
    }
    if tells('G') && !options.all() {
        let space = &found.groups;
        writeln!(out, "File space information for groups' metadata (in bytes):")?;
        writeln!(out, "\tObject headers (total/unused): {}/{}", space.header, space.unused)?;
        writeln!(out, "\tB-tree/List: {}\n\tHeap: {}", space.index, space.heap)?;
    }
    if tells('d') && found.datasets.count > 0 {
        datasets(found, options, out)?;
    }
    if tells('T') && found.datasets.count > 0 {
        types(found, out)?;
    }
    if tells('D') && !options.all() {
        let space = &found.datasets;
        writeln!(out, "File space information for datasets' metadata (in bytes):")?;
        writeln!(out, "\tObject headers (total/unused): {}/{}", space.header, space.unused)?;
        writeln!(out, "\tIndex for Chunked datasets: {}\n\tHeap: {}", space.index, space.heap)?;
    }
    if tells('A') {
        attributes(found, options, out)?;
    }
    if tells('s') {
        free_space(found, out)?;
    }
    if tells('S') {
        summary(found, out)?;
    }
    Ok(())
}

fn objects(found: &Statistics, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "File information")?;
    writeln!(out, "\t# of unique groups: {}", found.groups.count)?;
    writeln!(out, "\t# of unique datasets: {}", found.datasets.count)?;
    writeln!(out, "\t# of unique named datatypes: {}", found.datatypes.count)?;
    writeln!(out, "\t# of unique links: {}", found.links)?;
    writeln!(out, "\t# of unique other: {}", found.others)?;
    writeln!(out, "\tMax. # of links to object: {}", found.most_links)?;
    Ok(writeln!(out, "\tMax. # of objects in group: {}", found.members.max())?)
}

fn metadata(found: &Statistics, out: &mut dyn Write) -> Result<()> {
    let file = &found.file;
    writeln!(out, "File space information for file metadata (in bytes):")?;
    writeln!(out, "\tSuperblock: {}", file.superblock)?;
    writeln!(out, "\tSuperblock extension: {}", file.extension)?;
    writeln!(out, "\tUser block: {}", found.user_block)?;
    writeln!(out, "\tObject headers: (total/unused)")?;
    for (name, space) in [
        ("Groups", &found.groups),
        ("Datasets(exclude compact data)", &found.datasets),
        ("Datatypes", &found.datatypes),
    ] {
        writeln!(out, "\t\t{name}: {}/{}", space.header, space.unused)?;
    }
    writeln!(out, "\tGroups:\n\t\tB-tree/List: {}", found.groups.index)?;
    writeln!(out, "\t\tHeap: {}", found.groups.heap)?;
    let (index, heap) = attribute_space(found);
    writeln!(out, "\tAttributes:\n\t\tB-tree/List: {index}\n\t\tHeap: {heap}")?;
    writeln!(out, "\tChunked datasets:\n\t\tIndex: {}", found.datasets.index)?;
    writeln!(out, "\tDatasets:\n\t\tHeap: {}", found.datasets.heap)?;
    writeln!(out, "\tShared Messages:\n\t\tHeader: {}", file.shared_table)?;
    writeln!(out, "\t\tB-tree/List: {}\n\t\tHeap: {}", file.shared_index, file.shared_heap)?;
    writeln!(out, "\tFree-space managers:\n\t\tHeader: {}", file.free_managers)?;
    Ok(writeln!(out, "\t\tAmount of free space: {}", free(found))?)
}

fn attribute_space(found: &Statistics) -> (u64, u64) {
    let kinds = [&found.groups, &found.datasets, &found.datatypes];
    kinds.iter().fold((0, 0), |(index, heap), space| {
        (index + space.attribute_index, heap + space.attribute_heap)
    })
}

fn free(found: &Statistics) -> u64 {
    found.file.free.iter().fold(0, |sum, size| sum.saturating_add(*size))
}

fn groups(found: &Statistics, options: &Options, out: &mut dyn Write) -> Result<()> {
    let small = options.small_group;
    writeln!(out, "Small groups (with 0 to {} links):", small - 1)?;
    let mut total = 0;
    for (links, count) in found.members.below(small) {
        writeln!(out, "\t# of groups with {links} link(s): {count}")?;
        total += count;
    }
    writeln!(out, "\tTotal # of small groups: {total}")?;
    writeln!(out, "Group bins:")?;
    bins(out, &found.members, "\t# of groups with 0 link:", ("\t# of groups with", " links"))?;
    Ok(writeln!(out, "\tTotal # of groups: {}", found.members.total())?)
}

/// Lines of bins that are not empty. `zero` begins that of 0, if there is to be one.
fn bins(
    out: &mut dyn Write,
    counts: &Counts,
    zero: &str,
    (begin, end): (&str, &str),
) -> Result<()> {
    let mut first = 0u64;
    for count in counts.bins() {
        if count > 0 && first == 0 && !zero.is_empty() {
            writeln!(out, "{zero} {count}")?;
        } else if count > 0 && first > 0 {
            let last = first.saturating_mul(10) - 1;
            writeln!(out, "{begin} {first} - {last}{end}: {count}")?;
        }
        first = first.saturating_mul(10).max(1);
    }
    Ok(())
}

fn datasets(found: &Statistics, options: &Options, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "Dataset dimension information:")?;
    writeln!(out, "\tMax. rank of datasets: {}\n\tDataset ranks:", found.ranks.max())?;
    for (rank, count) in found.ranks.below(u64::MAX) {
        writeln!(out, "\t\t# of dataset with rank {rank}: {count}")?;
    }
    writeln!(out, "1-D Dataset information:")?;
    writeln!(out, "\tMax. dimension size of 1-D datasets: {}", found.lengths.max())?;
    let small = options.small_dataset;
    writeln!(out, "\tSmall 1-D datasets (with dimension sizes 0 to {}):", small - 1)?;
    let mut total = 0;
    for (length, count) in found.lengths.below(small) {
        writeln!(out, "\t\t# of datasets with dimension sizes {length}: {count}")?;
        total += count;
    }
    writeln!(out, "\t\tTotal # of small datasets: {total}")?;
    if found.lengths.total() > 0 {
        writeln!(out, "\t1-D Dataset dimension bins:")?;
        let zero = "\t\t# of datasets with dimension size 0:";
        bins(out, &found.lengths, zero, ("\t\t# of datasets with dimension size", ""))?;
        writeln!(out, "\t\tTotal # of datasets: {}", found.lengths.total())?;
    }
    writeln!(out, "Dataset storage information:\n\tTotal raw data size: {}", found.raw)?;
    writeln!(out, "\tTotal external raw data size: {}", found.external)?;
    writeln!(out, "Dataset layout information:")?;
    let [compact, contiguous, chunked, virtual_layout, structured] = found.layouts;
    let mut counts = vec![("COMPACT", compact), ("CONTIG", contiguous), ("CHUNKED", chunked)];
    if structured > 0 {
        counts.push(("STRUCTURED CHUNK SPARSE", structured));
    }
    counts.push(("VIRTUAL", virtual_layout));
    for (name, count) in counts {
        writeln!(out, "\tDataset layout counts[{name}]: {count}")?;
    }
    writeln!(out, "\tNumber of external files : {}", found.external_files)?;
    writeln!(out, "Dataset filters information:\n\tNumber of datasets with:")?;
    let names =
        ["NO", "GZIP", "SHUFFLE", "FLETCHER32", "SZIP", "NBIT", "SCALEOFFSET", "USER-DEFINED"];
    for (name, count) in names.iter().zip(found.filters) {
        writeln!(out, "\t\t{name} filter: {count}")?;
    }
    if found.sparse.datasets > 0 { sparse(found, out) } else { Ok(()) }
}

/// Sparse datasets, of which h5stat does not know.
fn sparse(found: &Statistics, out: &mut dyn Write) -> Result<()> {
    let sparse = &found.sparse;
    writeln!(out, "Sparse dataset information:")?;
    writeln!(out, "\t# of sparse datasets: {}", sparse.datasets)?;
    writeln!(out, "\t# of defined cells: {}", sparse.defined)?;
    writeln!(out, "\t# of structured chunks: {}", sparse.chunks)?;
    writeln!(out, "\tStructured chunks by defined cells:")?;
    for (tenth, count) in sparse.fill.iter().enumerate().filter(|(_, count)| **count > 0) {
        writeln!(out, "\t\t{:>3} - {:>3}%: {count}", tenth * 10, tenth * 10 + 10)?;
    }
    Ok(())
}

fn types(found: &Statistics, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "Dataset datatype information:")?;
    writeln!(out, "\t# of unique datatypes used by datasets: {}", found.types.len())?;
    let mut total = 0;
    for (number, used) in found.types.iter().enumerate() {
        writeln!(out, "\tDataset datatype #{number}:")?;
        writeln!(out, "\t\tCount (total/named) = ({}/{})", used.count, used.named)?;
        writeln!(out, "\t\tSize (desc./elmt) = ({}/{})", used.description, used.size)?;
        total += used.count;
    }
    Ok(writeln!(out, "\tTotal dataset datatype count: {total}")?)
}

fn attributes(found: &Statistics, options: &Options, out: &mut dyn Write) -> Result<()> {
    let few = options.few_attributes;
    writeln!(out, "Small # of attributes (objects with 1 to {few} attributes):")?;
    let mut total = 0;
    for (number, count) in found.attributes.below(few.saturating_add(1)) {
        if number > 0 {
            writeln!(out, "\t# of objects with {number} attributes: {count}")?;
            total += count;
        }
    }
    writeln!(out, "\tTotal # of objects with small # of attributes: {total}")?;
    writeln!(out, "Attribute bins:")?;
    bins(out, &found.attributes, "", ("\t# of objects with", " attributes"))?;
    let without: u64 = found.attributes.below(1).map(|(_, count)| count).sum();
    let with = found.attributes.total() - without;
    writeln!(out, "\tTotal # of objects with attributes: {with}")?;
    Ok(writeln!(out, "\tMax. # of attributes to objects: {}", found.attributes.max())?)
}

fn free_space(found: &Statistics, out: &mut dyn Write) -> Result<()> {
    let settings = &found.settings;
    let persist = if settings.persist { "TRUE" } else { "FALSE" };
    writeln!(out, "Free-space persist: {persist}")?;
    writeln!(out, "Free-space section threshold: {} bytes", settings.threshold)?;
    writeln!(out, "Small size free-space sections (< {SMALL_SECTION} bytes):")?;
    let sections: Counts = found.file.free.iter().copied().collect();
    let mut total = 0;
    for (size, count) in sections.below(SMALL_SECTION) {
        writeln!(out, "\t# of sections of size {size}: {count}")?;
        total += count;
    }
    writeln!(out, "\tTotal # of small size sections: {total}")?;
    writeln!(out, "Free-space section bins:")?;
    bins(out, &sections, "", ("\t# of sections of size", ""))?;
    Ok(writeln!(out, "\tTotal # of sections: {}", sections.total())?)
}

fn summary(found: &Statistics, out: &mut dyn Write) -> Result<()> {
    let file = &found.file;
    let strategy = match found.settings.strategy {
        FileSpaceStrategy::FreeSpaceManagers => "FSM_AGGR",
        FileSpaceStrategy::Paged => "PAGE",
        FileSpaceStrategy::Aggregators => "AGGR",
        FileSpaceStrategy::EndOfFile => "NONE",
    };
    writeln!(out, "File space management strategy: H5F_FSPACE_STRATEGY_{strategy}")?;
    writeln!(out, "File space page size: {} bytes", found.settings.page_size)?;
    writeln!(out, "Summary of file space information:")?;
    let kinds = [&found.groups, &found.datasets, &found.datatypes];
    let (index, heap) = attribute_space(found);
    let objects = kinds.iter().map(|space| space.header + space.index + space.heap);
    let metadata = file.superblock
        + file.extension
        + found.user_block
        + objects.sum::<u64>()
        + index
        + heap
        + file.shared_table
        + file.shared_index
        + file.shared_heap
        + file.free_managers;
    writeln!(out, "  File metadata: {metadata} bytes")?;
    writeln!(out, "  Raw data: {} bytes", found.raw)?;
    let (free, length) = (free(found), file.length + found.user_block);
    let percent = free as f64 / length as f64 * 100.0;
    writeln!(out, "  Amount/Percent of tracked free space: {free} bytes/{percent:.1}%")?;
    let known = metadata.saturating_add(found.raw).saturating_add(free);
    let rest = known.abs_diff(length);
    if length < known {
        writeln!(out, "  ??? File has {rest} more bytes accounted for than its size! ???")?;
    } else {
        writeln!(out, "  Unaccounted space: {rest} bytes")?;
    }
    writeln!(out, "Total space: {} bytes", known.saturating_add(rest))?;
    if found.external_files > 0 {
        writeln!(out, "External raw data: {} bytes", found.external)?;
    }
    Ok(())
}
