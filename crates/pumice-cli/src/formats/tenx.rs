//! 10x Genomics' matrices of counts: compressed columns of genes by barcodes, in the group `matrix`
//! (version 3) or in one group for each genome (version 2).

use super::container::{self, SCIPY, Types, compressed, write_compressed};
use super::{Format, Found, Input, Output, Probe};
use anyhow::{Context, Result, ensure};
use pumice::{Datatype, File, Group};

pub(crate) struct TenX;

impl Format for TenX {
    fn name(&self) -> &'static str {
        "10x"
    }

    fn title(&self) -> &'static str {
        "10x Genomics (HDF5)"
    }

    fn endings(&self) -> &'static [&'static str] {
        &[]
    }

    fn recognises(&self, probe: &Probe) -> bool {
        let matrices = probe.file.as_ref().map(matrices);
        matrices.is_some_and(|found| found.is_ok_and(|found| !found.is_empty()))
    }

    fn open(&self, input: &Input<'_>) -> Result<Vec<Found>> {
        let file = container::open(input.path)?;
        let mut found = Vec::new();
        for group in matrices(&file)? {
            let shape = shape(&group)?;
            let name = group.path().trim_start_matches('/').to_owned();
            found.push(Found { name, source: compressed(&group, SCIPY, shape, 1)? });
        }
        Ok(found)
    }

    fn export(&self, output: &Output<'_>) -> Result<()> {
        let dataset = output.only_dataset()?;
        let shape = dataset.shape();
        ensure!(shape.len() == 2, "{}: 10x files hold matrices", dataset.path());
        let file = File::create(output.path)?;
        file.set_attribute("filetype", "matrix")?;
        let group = file.create_group("matrix")?;
        let types = Types {
            pointers: Datatype::i64_le(),
            indices: Datatype::i64_le(),
            values: dataset.datatype().clone(),
        };
        write_compressed(&group, SCIPY, dataset, 1, &types, output)?;
        let sides = group.new_dataset::<i64>().shape([2]).create("shape")?;
        sides.write(.., &[shape[0] as i64, shape[1] as i64])?;
        write_labels(&group, "barcodes", "barcode", shape[1])?;
        let features = group.create_group("features")?;
        write_labels(&features, "id", "feature", shape[0])?;
        write_labels(&features, "name", "feature", shape[0])?;
        write_constant(&features, "feature_type", "Gene Expression", shape[0])?;
        write_constant(&features, "genome", "unknown", shape[0])?;
        Ok(file.close()?)
    }

    fn holds_several(&self) -> bool {
        false
    }
}

/// The groups with the arrays of a matrix.
fn matrices(file: &File) -> Result<Vec<Group>> {
    let members = file.members()?.into_iter().filter_map(|member| file.group(&member.name).ok());
    let complete = |group: &Group| {
        let names = ["barcodes", "data", "indices", "indptr", "shape"];
        let labelled = group.contains("features") || group.contains("genes");
        labelled && names.iter().all(|name| group.contains(name))
    };
    Ok(members.filter(complete).collect())
}

fn shape(group: &Group) -> Result<Vec<u64>> {
    let dataset = group.dataset("shape")?;
    let sides = dataset.read::<i64>(..)?;
    let sides: Option<Vec<u64>> = sides.iter().map(|&side| u64::try_from(side).ok()).collect();
    sides.filter(|sides| sides.len() == 2).with_context(|| {
        format!("{}: expected rows and columns, found something else", dataset.path())
    })
}

/// Numbered labels of one length.
fn write_labels(group: &Group, name: &str, stem: &str, count: u64) -> Result<()> {
    write_strings(group, name, count, stem.len() + 20, |number| format!("{stem}{number}"))
}

fn write_constant(group: &Group, name: &str, text: &str, count: u64) -> Result<()> {
    write_strings(group, name, count, text.len(), |_| text.to_owned())
}

fn write_strings(
    group: &Group,
    name: &str,
    count: u64,
    width: usize,
    label: impl Fn(u64) -> String,
) -> Result<()> {
    let datatype = Datatype::fixed_string(width as u32);
    let dataset = container::vector(group, datatype, count).create(name)?;
    let mut first = 0;
    while first < count {
        let end = (first + (1 << 16)).min(count);
        let mut bytes = Vec::with_capacity((end - first) as usize * width);
        for number in first..end {
            let mut text = label(number).into_bytes();
            text.resize(width, 0);
            bytes.append(&mut text);
        }
        dataset.write_bytes(first..end, &bytes)?;
        first = end;
    }
    Ok(())
}
