//! Links in dense storage: link messages in a fractal heap, found by a version 2 B-tree.

use crate::Result;
use crate::file::File;
use crate::fractal_heap::FractalHeap;
use crate::metadata::MetadataIo;
use crate::records::for_each_record;
use pumice_format::Context;
use pumice_format::dense::{LINKS_BY_NAME, LinkRecord};
use pumice_format::messages::{Link, LinkInfo};

/// All links of the group behind `info`, in order of their names' hashes.
pub(super) fn links(file: &File, info: &LinkInfo) -> Result<Vec<Link>> {
    let medium = file.medium();
    let context = Context::new(medium.sizes()).at(info.heap_address);
    let mut heap = FractalHeap::open(medium, info.heap_address)?;
    let mut links = Vec::new();
    for_each_record(&**medium, info.name_index_address, &[LINKS_BY_NAME], &mut |record| {
        let record = LinkRecord::decode(record)?;
        links.push(Link::decode(&heap.object(&record.id)?, &context)?);
        Ok(())
    })?;
    Ok(links)
}
