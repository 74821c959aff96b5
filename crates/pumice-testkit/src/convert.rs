//! `pumice-interop as`: datasets read as other datatypes, one JSON object a line.

use super::datatype;
use anyhow::{Context, Result};
use pumice::{File, Transfer};
use serde_json::Value;
use std::path::Path;

pub(crate) fn run(file: &Path, list: &Path, out: &Path) -> Result<()> {
    let file = File::open(file)?;
    std::fs::create_dir_all(out)?;
    for (number, line) in std::fs::read_to_string(list)?.lines().enumerate() {
        let wish: Value = serde_json::from_str(line)?;
        let dataset = file.dataset(wish["path"].as_str().context("no path")?)?;
        let datatype = datatype::parse(&wish["dtype"])?;
        let cells: u64 = dataset.shape().iter().product();
        // Bytes that a conversion leaves alone are seen as such.
        let mut bytes = vec![0xA5; cells as usize * datatype.size()];
        let mut transfer = Transfer::new();
        if let Some(expression) = wish["transform"].as_str() {
            transfer = transfer.transform(expression)?;
        }
        let target = out.join(format!("{number}.bin"));
        match dataset.read_as(.., &datatype, &mut bytes, &transfer) {
            Ok(()) => std::fs::write(target, bytes)?,
            Err(error) => std::fs::write(target.with_extension("error"), error.to_string())?,
        }
    }
    Ok(())
}
