//! The contents of a file's superblock.

use anyhow::Result;
use pumice::{File, FileSpaceStrategy};
use std::io::Write;

pub(super) fn print(file: &File, out: &mut dyn Write) -> Result<()> {
    let info = file.info()?;
    writeln!(out, "SUPER_BLOCK {{")?;
    for (name, value) in [
        ("SUPERBLOCK_VERSION", u64::from(info.superblock_version)),
        ("FREELIST_VERSION", 0),
        ("SYMBOLTABLE_VERSION", 0),
        ("OBJECTHEADER_VERSION", 0),
        ("OFFSET_SIZE", u64::from(info.offset_size)),
        ("LENGTH_SIZE", u64::from(info.length_size)),
        ("BTREE_RANK", u64::from(info.group_internal_k)),
        ("BTREE_LEAF", u64::from(info.group_leaf_k)),
        ("ISTORE_K", u64::from(info.chunk_internal_k)),
    ] {
        writeln!(out, "   {name} {value}")?;
    }
    let space = info.file_space;
    let strategy = match space.strategy {
        FileSpaceStrategy::FreeSpaceManagers => "FSM_AGGR",
        FileSpaceStrategy::Paged => "PAGE",
        FileSpaceStrategy::Aggregators => "AGGR",
        FileSpaceStrategy::EndOfFile => "NONE",
    };
    let persist = if space.persist { "TRUE" } else { "FALSE" };
    writeln!(out, "   FILE_SPACE_STRATEGY H5F_FSPACE_STRATEGY_{strategy}")?;
    writeln!(out, "   FREE_SPACE_PERSIST {persist}")?;
    writeln!(out, "   FREE_SPACE_SECTION_THRESHOLD {}", space.threshold)?;
    writeln!(out, "   FILE_SPACE_PAGE_SIZE {}", space.page_size)?;
    writeln!(out, "   USER_BLOCK {{\n      USERBLOCK_SIZE {}\n   }}", info.user_block_size)?;
    writeln!(out, "}}")?;
    Ok(())
}
