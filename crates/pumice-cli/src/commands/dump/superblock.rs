//! What a file says of itself in its superblock.

use anyhow::Result;
use pumice::File;
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
    writeln!(out, "   FILE_SPACE_STRATEGY H5F_FSPACE_STRATEGY_FSM_AGGR")?;
    writeln!(out, "   FREE_SPACE_PERSIST FALSE")?;
    writeln!(out, "   FREE_SPACE_SECTION_THRESHOLD 1")?;
    writeln!(out, "   FILE_SPACE_PAGE_SIZE 4096")?;
    writeln!(out, "   USER_BLOCK {{\n      USERBLOCK_SIZE {}\n   }}", info.user_block_size)?;
    writeln!(out, "}}")?;
    Ok(())
}
