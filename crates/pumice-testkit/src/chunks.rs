//! `pumice-interop chunks`: the stored chunks of all datasets of the root group, one JSON object a
//! line; their bytes, as they are in the file, stand one after another in `data.bin`.

use anyhow::{Context, Result};
use pumice::{File, MemberKind};
use serde_json::json;
use std::io::{BufWriter, Write};
use std::path::Path;

pub(crate) fn run(file: &Path, out: &Path) -> Result<()> {
    let file = File::open(file)?;
    std::fs::create_dir_all(out)?;
    let mut manifest = BufWriter::new(std::fs::File::create(out.join("manifest.jsonl"))?);
    let mut data = BufWriter::new(std::fs::File::create(out.join("data.bin"))?);
    for member in file.members()?.iter().filter(|member| member.kind == MemberKind::Dataset) {
        let dataset = file.dataset(&member.name)?;
        for chunk in dataset.chunks()? {
            let chunk = chunk?;
            let again = dataset.chunk_info(&chunk.offset)?;
            anyhow::ensure!(again.as_ref() == Some(&chunk), "{chunk:?} is also {again:?}");
            let found = dataset.read_chunk(&chunk.offset)?;
            let (bytes, mask) = found.context("a chunk that is listed is not there")?;
            anyhow::ensure!(mask == chunk.filter_mask, "{chunk:?} with a mask of {mask}");
            data.write_all(&bytes)?;
            let line = json!({
                "path": dataset.path(), "offset": chunk.offset, "address": chunk.address,
                "size": chunk.size, "mask": chunk.filter_mask,
                "storage": dataset.storage_size()?, "count": dataset.chunk_count()?,
            });
            writeln!(manifest, "{line}")?;
        }
    }
    manifest.flush()?;
    Ok(data.flush()?)
}
