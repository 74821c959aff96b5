//! `pumice export`: datasets become files of other programs.

use super::{Outcome, output};
use crate::cli::Export;
use crate::driver;
use crate::formats::{self, Output};
use crate::progress::{Progress, Unit};
use crate::target::Target;
use crate::{locate, numbers};
use anyhow::{Context, Result, bail, ensure};
use pumice::{Dataset, Datatype, File};
use std::io::Write;

pub(super) fn run(arguments: &Export) -> Result<Outcome> {
    let format = match &arguments.to {
        Some(name) => formats::named(name)?,
        None => match formats::by_ending(&arguments.output) {
            Some(format) => format,
            None => bail!(
                "{}: its name does not tell the format; --to does",
                arguments.output.display()
            ),
        },
    };
    ensure!(
        !arguments.uncompressed || format.name() == "npz",
        "--uncompressed is for npz; {} has no choice",
        format.title()
    );
    let place = &arguments.file;
    let file = driver::open(&place.file).with_context(|| place.name())?;
    let inside = place.object(None);
    let datasets: Vec<Dataset> = match arguments.dataset.as_slice() {
        [] if format.holds_several() => matrices(&file, inside.as_deref())?,
        [] => {
            let what = "datasets of numbers";
            vec![locate::dataset(&file, inside.as_deref(), what, is_exportable)?]
        }
        names => {
            let dataset =
                |name: &String| file.dataset(&place.object(Some(name)).unwrap_or_default());
            names.iter().map(dataset).collect::<Result<_, _>>()?
        }
    };
    let target = Target::new(&arguments.output, &place.file, arguments.force)?;
    let total = datasets.iter().map(logical_bytes).sum::<Result<u64>>()?;
    let progress = Progress::new(total, Unit::Bytes);
    format.export(&Output {
        file: &file,
        datasets: &datasets,
        path: &target.partial,
        final_path: &target.path,
        form: arguments.form.map(Into::into),
        uncompressed: arguments.uncompressed,
        progress: &progress,
    })?;
    drop(progress);
    let bytes = target.length()?;
    target.publish()?;
    let mut out = output();
    let names: Vec<&str> = datasets.iter().map(Dataset::path).collect();
    writeln!(
        out,
        "{}: {} as {}, {} bytes",
        arguments.output.display(),
        names.join(", "),
        format.title(),
        numbers::grouped(bytes)
    )?;
    out.flush()?;
    Ok(Outcome::Complete)
}

/// All datasets of a file, or at a path, that formats for several hold.
fn matrices(file: &File, path: Option<&str>) -> Result<Vec<Dataset>> {
    let found = locate::datasets_at(file, path, is_exportable)?;
    if found.is_empty() {
        bail!("{} has no datasets of numbers", path.unwrap_or("the file"));
    }
    Ok(found)
}

/// Whether other formats have arrays like this one.
fn is_exportable(dataset: &Dataset) -> bool {
    let number = match dataset.datatype() {
        Datatype::Integer(_) | Datatype::Float(_) | Datatype::Complex(_) => true,
        Datatype::Enum(enumeration) => enumeration.base.size == 1,
        Datatype::Compound(compound) => compound.members.len() == 2,
        _ => false,
    };
    number && !dataset.shape().is_empty()
}

/// About how many bytes go through the bar.
fn logical_bytes(dataset: &Dataset) -> Result<u64> {
    let cells = match dataset.is_sparse() {
        true => dataset.count_defined(..)?,
        false => dataset.shape().iter().product(),
    };
    Ok(cells.saturating_mul(dataset.datatype().size() as u64))
}
