//! 10x Genomics' matrices of counts: compressed columns of genes by barcodes, in the group `matrix`
//! (version 3) or in one group for each genome (version 2).

use super::container::{self, SCIPY, Types, compressed, write_compressed};
use super::labels::{self, Label};
use super::{Format, Found, Input, Output, Probe};
use anyhow::{Context, Result, ensure};
use pumice::{Dataset, Datatype, File, Group};

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
            let labels = names_of(&group);
            let inside = Some(group.path().to_owned());
            let source = compressed(&group, SCIPY, shape, 1)?;
            found.push(Found { labels, group: inside, ..Found::new(name, source) });
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
        let names = |axis, fields: &[&str]| labels::of(output.file, dataset, axis, fields);
        let barcodes = names(1, &["barcode", "index"]);
        write_strings(&group, "barcodes", shape[1], barcodes.as_ref(), "barcode")?;
        let features = group.create_group("features")?;
        for (field, fields) in [("id", ["id", "index"]), ("name", ["name", "index"])] {
            write_strings(&features, field, shape[0], names(0, &fields).as_ref(), "feature")?;
        }
        for (field, text) in [("feature_type", "Gene Expression"), ("genome", "unknown")] {
            match names(0, &[field]) {
                Some(known) => write_strings(&features, field, shape[0], Some(&known), "")?,
                None => write_constant(&features, field, text, shape[0])?,
            }
        }
        let tags = features.new_strings().shape([1]).create("_all_tag_keys")?;
        tags.write_strings(.., &["genome"])?;
        Ok(file.close()?)
    }

    fn holds_several(&self) -> bool {
        false
    }
}

/// The groups with the arrays of a matrix.
fn matrices(file: &File) -> Result<Vec<Group>> {
    let members = file.members()?.into_iter().filter_map(|member| file.group(&member.name).ok());
    // Barcodes and features, or genes, are not everywhere.
    let complete = |group: &Group| {
        ["data", "indices", "indptr", "shape"].iter().all(|name| group.contains(name))
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

/// The names of features and barcodes. Version 2 has genes instead of features.
fn names_of(group: &Group) -> Vec<Label> {
    let mut labels: Vec<Label> = Label::find(group, "barcodes", 1, "barcode").into_iter().collect();
    let fields = ["id", "name", "feature_type", "genome"];
    match group.group("features") {
        Ok(features) => {
            labels.extend(fields.iter().filter_map(|name| Label::find(&features, name, 0, name)));
        }
        Err(_) => {
            labels.extend(Label::find(group, "genes", 0, "id"));
            labels.extend(Label::find(group, "gene_names", 0, "name"));
        }
    }
    labels
}

fn write_constant(group: &Group, name: &str, text: &str, count: u64) -> Result<()> {
    let datatype = Datatype::fixed_string(text.len() as u32);
    let dataset = container::vector(group, datatype, count).create(name)?;
    let mut first = 0;
    while first < count {
        let end = (first + (1 << 16)).min(count);
        dataset.write_bytes(first..end, &text.as_bytes().repeat((end - first) as usize))?;
        first = end;
    }
    Ok(())
}

/// Strings of one length: those of `names`, or a stem and numbers.
fn write_strings(
    group: &Group,
    name: &str,
    count: u64,
    names: Option<&Dataset>,
    stem: &str,
) -> Result<()> {
    let mut width = 1;
    labels::for_each_batch(count, names, stem, |_, names| {
        width = names.iter().map(String::len).fold(width, usize::max);
        Ok(())
    })?;
    let datatype = Datatype::fixed_string(width as u32);
    let dataset = container::vector(group, datatype, count).create(name)?;
    labels::for_each_batch(count, names, stem, |first, names| {
        let mut bytes = Vec::with_capacity(names.len() * width);
        for name in names {
            bytes.extend_from_slice(name.as_bytes());
            bytes.resize(bytes.len() + width - name.len(), 0);
        }
        Ok(dataset.write_bytes(first..first + names.len() as u64, &bytes)?)
    })
}
