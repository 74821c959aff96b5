//! Sparse matrices as programs hold them: written from and read into arrays of coordinates, pointers
//! and values. Values are `<f8`, coordinates and pointers `<u8`.

use anyhow::{Context, Result, bail};
use pumice::{Compressed, Coo, Duplicates, File, Lines, MemberKind};
use serde_json::Value;
use std::path::Path;

/// `write_coo` and `write_lines`, in as many blocks as the operation lists.
pub(crate) fn write(file: &File, folder: &Path, operation: &Value) -> Result<()> {
    let dataset = file.dataset(operation["path"].as_str().context("no path")?)?;
    let rule = match operation["duplicates"].as_str() {
        Some("first") => Duplicates::First,
        Some("sum") => Duplicates::Sum,
        Some("error") => Duplicates::Error,
        Some("last") | None => Duplicates::Last,
        Some(other) => bail!("no such rule: {other}"),
    };
    for block in operation["blocks"].as_array().context("no blocks")? {
        let bytes = |field: &str| -> Result<Vec<u8>> {
            let name = block[field].as_str().with_context(|| format!("no {field}"))?;
            Ok(std::fs::read(folder.join(name))?)
        };
        let values = floats(&bytes("values")?);
        if operation["op"] == "write_coo" {
            let rank = dataset.shape().len();
            let list = integers(&bytes("coords")?);
            let axis = |axis: usize| list.iter().skip(axis).step_by(rank).copied().collect();
            let columns = (0..rank).map(axis).collect();
            dataset.write_coo([&Coo { shape: dataset.shape(), columns, values }], rule)?;
            continue;
        }
        let lines = if block["lines"] == "rows" { Lines::Rows } else { Lines::Columns };
        let first = block["first"].as_u64().unwrap_or(0);
        let (pointers, indices) = (integers(&bytes("pointers")?), integers(&bytes("indices")?));
        let part = Compressed { lines, first, pointers, indices, values };
        dataset.write_compressed([&part], rule)?;
    }
    Ok(())
}

/// `pumice-interop lines`: every sparse matrix of the root group as CSR and CSC, joined from blocks,
/// and every sparse array as COO: `NAME.rows.pointers` and so on.
pub(crate) fn run(file: &Path, out: &Path) -> Result<()> {
    let file = File::open(file)?;
    std::fs::create_dir_all(out)?;
    for member in file.members()?.into_iter().filter(|m| m.kind == MemberKind::Dataset) {
        let dataset = file.dataset(&member.name)?;
        let save = |form: &str, bytes: &[u8]| {
            std::fs::write(out.join(format!("{}.{form}", member.name)), bytes)
        };
        let coo = dataset.read_coo::<f64>()?;
        for (axis, column) in coo.columns.iter().enumerate() {
            save(&format!("coo.{axis}"), &bytes(column))?;
        }
        save("coo.values", &float_bytes(&coo.values))?;
        if dataset.shape().len() != 2 {
            continue;
        }
        for (name, lines) in [("rows", Lines::Rows), ("columns", Lines::Columns)] {
            let (mut pointers, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
            for block in dataset.compressed_blocks::<f64>(lines)? {
                let block = block?;
                let before = indices.len() as u64;
                pointers.extend(block.pointers.iter().skip(1).map(|pointer| pointer + before));
                indices.extend(block.indices);
                values.extend(block.values);
            }
            save(&format!("{name}.pointers"), &bytes(&pointers))?;
            save(&format!("{name}.indices"), &bytes(&indices))?;
            save(&format!("{name}.values"), &float_bytes(&values))?;
        }
    }
    Ok(())
}

fn integers(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks_exact(8).map(|b| u64::from_le_bytes(b.try_into().expect("eight"))).collect()
}

fn floats(bytes: &[u8]) -> Vec<f64> {
    bytes.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().expect("eight"))).collect()
}

fn bytes(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn float_bytes(numbers: &[f64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}
