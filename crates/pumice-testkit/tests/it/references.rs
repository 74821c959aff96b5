//! References of the revised kind in files of HDF5's own tests lead where h5dump says.
//!
//! The files are found through `PUMICE_CORPUS` (default: beside the project).

use pumice::{Datatype, File, Locking, MemberKind, Reference, Result};
use std::path::{Path, PathBuf};

fn folder() -> Option<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpora");
    let corpus = std::env::var_os("PUMICE_CORPUS").map_or_else(|| beside.into(), PathBuf::from);
    let folder = corpus.join("stage/h5dump/testfiles/std");
    if folder.is_dir() {
        return Some(folder);
    }
    println!("skipped: no corpus at {}", corpus.display());
    None
}

/// The output of h5dump for the elements of the first dataset: `KIND "file/path"`.
fn shown(ddl: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(ddl).unwrap();
    let kinds = ["GROUP \"", "DATASET \"", "DATATYPE \"", "ATTRIBUTE \"", "REGION"];
    let lines = text.lines().map(str::trim).filter(|line| line.contains(".h5/"));
    let lines = lines.filter(|line| kinds.iter().any(|kind| line.starts_with(kind)));
    lines.map(|line| line.split('"').nth(1).unwrap_or_default().to_string()).collect()
}

/// The targets of our references, in the same words.
fn followed(folder: &Path, name: &str) -> Result<Vec<String>> {
    let file = open(&folder.join(name))?;
    let mut found = Vec::new();
    for member in file.members()?.iter().filter(|member| member.kind == MemberKind::Dataset) {
        let dataset = file.dataset(&member.name)?;
        if let Datatype::Reference(_) = dataset.datatype() {
            for reference in dataset.read_references(..)?.iter().flatten() {
                found.push(target(folder, &file, name, reference)?);
            }
        }
    }
    Ok(found)
}

fn target(folder: &Path, file: &File, name: &str, reference: &Reference) -> Result<String> {
    let node = file.dereference(reference)?;
    let name = reference.file().unwrap_or(name);
    let path = open(&folder.join(name))?.path_of(node.address()).unwrap_or_default();
    Ok(match reference.attribute() {
        Some(attribute) => format!("{name}{path}/{attribute}"),
        None => format!("{name}{path}"),
    })
}

fn open(path: &Path) -> Result<File> {
    File::options().locking(Locking::Off).open(path)
}

#[test]
fn references_lead_where_h5dump_says() {
    let Some(folder) = folder() else { return };
    for (name, count) in [
        ("trefer_attr.h5", 4),
        ("trefer_obj.h5", 4),
        ("trefer_grp.h5", 1),
        ("trefer_ext2.h5", 4),
        ("trefer_param.h5", 0),
        ("tdatareg.h5", 2),
    ] {
        let wanted = shown(&folder.join(name.replace("2.h5", ".h5").replace(".h5", "R.ddl")));
        let found = followed(&folder, name).unwrap();
        assert_eq!(found, wanted, "{name}");
        assert_eq!(found.len(), count, "{name}");
    }
}

#[test]
fn regions_have_the_values_that_h5dump_shows() {
    let Some(folder) = folder() else { return };
    let file = open(&folder.join("tdatareg.h5")).unwrap();
    let references = file.dataset("Dataset1").unwrap().read_references(..).unwrap();
    let values = |reference: &Option<Reference>| {
        let (dataset, selection) = file.dereference_region(reference.as_ref()?).unwrap();
        Some(dataset.read::<u8>(selection).unwrap())
    };
    let block: Vec<u8> =
        (2..8u8).flat_map(|row| (2..8).map(move |column| 30 * row + 3 * column)).collect();
    let points = vec![207, 66, 252, 48, 84, 96, 12, 14, 213, 99];
    let found: Vec<_> = references.iter().map(values).collect();
    assert_eq!(found, [Some(block), Some(points), None, None]);
}

#[test]
fn referenced_attributes_have_the_values_that_h5dump_shows() {
    let Some(folder) = folder() else { return };
    let file = open(&folder.join("trefer_attr.h5")).unwrap();
    let references = file.dataset("Dataset3").unwrap().read_references(..).unwrap();
    let values: Vec<_> = references
        .iter()
        .flatten()
        .map(|reference| file.dereference_attribute(reference)?.read::<u32>())
        .map(|values| values.ok())
        .collect();
    // The second attribute is gone.
    let wanted = [Some(vec![0, 3, 6, 9]), None, Some(vec![1, 4, 7, 10]), Some(vec![2, 5, 8, 11])];
    assert_eq!(values, wanted);
}
