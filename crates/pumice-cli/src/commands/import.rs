//! `pumice import`: files of other programs become datasets.
//!
//! `formats` finds the contents of a file, and fills datasets with them. The output is written under a temporary name beside its own and renamed when
//! it is complete.

pub(super) mod dumped;
mod left;

use super::{Outcome, output};
use crate::cli::{Duplicates, Import, Storing};
use crate::driver;
use crate::formats::Keeper;
use crate::formats::{self, Array, Format, Found, Input, Source};
use crate::locate::Spot;
use crate::numbers;
use crate::progress::{Progress, Unit};
use crate::target::Target;
use anyhow::{Context, Result, bail, ensure};
use pumice::{Dataset, File};
use std::io::Write;
use std::path::Path;

pub(super) fn run(arguments: &Import) -> Result<Outcome> {
    let input_path = unpacked_container(&arguments.input)?;
    if arguments.from.as_deref() == Some("h5dump")
        || (arguments.from.is_none() && formats::is_dump(&input_path.path))
    {
        return dump(arguments, &input_path.path);
    }
    let format = match &arguments.from {
        Some(name) => formats::named(name)?,
        None => formats::recognised(&input_path.path)?,
    };
    let into = Spot::new(&arguments.storing.output);
    let target = Target::new(&into.file, &arguments.input, arguments.storing.force)?;
    let (shape, one_based) = (arguments.shape.as_deref(), arguments.one_based);
    ensure!(!one_based || format.name() == "csv", "--one-based is for csv; other formats say it");
    let input = Input { path: &input_path.path, shape, one_based };
    let found = format.open(&input)?;
    // A request that names arrays leaves out the others on purpose.
    let left = match arguments.object.is_empty() && format.title().contains("HDF5") {
        true => left::out(&driver::open(&input_path.path)?, &found, format)?,
        false => Vec::new(),
    };
    let found = chosen(found, arguments, format)?;
    let single = found.len() == 1;
    let file = File::create(&target.partial)?;
    let total = found.iter().map(|found| found.source.array().entries).sum();
    let progress = Progress::new(total, Unit::Entries);
    let mut summaries = Vec::new();
    let mut names = Keeper::default();
    for found in found {
        // One array is the object at a path, several are below it.
        let name = match &arguments.dataset {
            Some(name) => Some(name.as_str()),
            None => Some(found.name.as_str()).filter(|_| !(single && into.names_an_object())),
        };
        let name = into.object(name).unwrap_or_default();
        let temporary = target.partial.with_extension("sorted");
        let asked = Asked {
            input: &arguments.input,
            storing: &arguments.storing,
            duplicates: arguments.duplicates,
        };
        let summary = copy(&asked, format, found.source, &file, &name, &temporary, &progress)?;
        names.keep(&file, &file.dataset(&summary.path)?, &found.labels)?;
        summaries.push(summary);
    }
    file.close()?;
    drop(progress);
    let bytes = target.length()?;
    target.publish()?;
    tell(&summaries, bytes, &left)
}

/// Imports h5dump's output, with all that the text has.
fn dump(arguments: &Import, path: &Path) -> Result<Outcome> {
    let target = target(&arguments.storing, &arguments.input)?;
    let input = Input { path, shape: None, one_based: false };
    let file = File::create(&target.partial)?;
    let progress = Progress::new(0, Unit::Entries);
    let made = dumped::import(&input, &file, &progress)?;
    file.close()?;
    drop(progress);
    let bytes = target.length()?;
    target.publish()?;
    let mut out = output();
    for left in &made.left {
        writeln!(out, "left out: {left}")?;
    }
    let dumped::Made { datasets, groups, attributes, .. } = made;
    let [datasets, groups, attributes, bytes] =
        [datasets, groups, attributes, bytes].map(numbers::grouped);
    writeln!(
        out,
        "{groups} group(s), {datasets} dataset(s), {attributes} attribute(s), {bytes} bytes"
    )?;
    out.flush()?;
    Ok(Outcome::Complete)
}

fn tell(summaries: &[Summary], bytes: u64, left: &[String]) -> Result<Outcome> {
    let mut out = output();
    for summary in summaries {
        summary.tell(&mut out)?;
        if summaries.len() == 1 {
            let each = numbers::per_cell(bytes, summary.entries);
            write!(out, ", {} bytes, {each} bytes per entry", numbers::grouped(bytes))?;
        }
        writeln!(out)?;
    }
    if summaries.len() > 1 {
        let (count, bytes) = (summaries.len(), numbers::grouped(bytes));
        writeln!(out, "{count} datasets, {bytes} bytes")?;
    }
    for left in left {
        writeln!(out, "left out: {left}")?;
    }
    if !left.is_empty() {
        writeln!(out, "`pumice convert` keeps it all")?;
    }
    out.flush()?;
    Ok(Outcome::Complete)
}

/// The arrays that were asked for.
fn chosen(found: Vec<Found>, arguments: &Import, format: &dyn Format) -> Result<Vec<Found>> {
    let names: Vec<String> = found.iter().map(|found| found.name.clone()).collect();
    let listed = || {
        let more = if names.len() > 12 { ", ..." } else { "" };
        let shown: Vec<_> = names.iter().take(12).map(String::as_str).collect();
        format!("{}{more}", shown.join(", "))
    };
    ensure!(
        !found.is_empty(),
        "{}: it has no matrix that {} knows",
        arguments.input.display(),
        format.title()
    );
    let wanted: Vec<&str> = arguments.object.iter().map(|name| name.trim_matches('/')).collect();
    for name in &wanted {
        ensure!(
            names.iter().any(|known| formats::is_at(known, name)),
            "{}: it has no {name}, but {}",
            arguments.input.display(),
            listed()
        );
    }
    let found: Vec<Found> = match wanted.is_empty() {
        true => found,
        false => {
            let chosen =
                |found: &Found| wanted.iter().any(|name| formats::is_at(&found.name, name));
            found.into_iter().filter(chosen).collect()
        }
    };
    if arguments.dataset.is_some() && found.len() > 1 {
        bail!(
            "--dataset names one dataset, but there are {}: --object chooses one of {}",
            found.len(),
            listed()
        );
    }
    Ok(found)
}

/// Prints the dataset's path, shape and density.
pub(super) struct Summary {
    pub(super) path: String,
    pub(super) shape: Vec<u64>,
    pub(super) entries: u64,
}

impl Summary {
    /// Where it is, how large, how full.
    pub(super) fn tell(&self, out: &mut impl Write) -> Result<()> {
        let Self { path, shape, entries } = self;
        let cells = shape.iter().fold(1u64, |cells, &side| cells.saturating_mul(side));
        write!(out, "{path}: {}, {} entries", numbers::shape(shape), numbers::grouped(*entries))?;
        Ok(write!(out, ", density {}", numbers::percent(*entries, cells))?)
    }
}

/// The file to make.
pub(super) fn target(storing: &Storing, input: &Path) -> Result<Target> {
    Target::new(&storing.output, input, storing.force)
}

/// The options for a dataset.
pub(super) struct Asked<'a> {
    pub(super) input: &'a Path,
    pub(super) storing: &'a Storing,
    pub(super) duplicates: Duplicates,
}

/// Copies an array into a new dataset.
pub(super) fn copy(
    arguments: &Asked<'_>,
    format: &dyn Format,
    source: Box<dyn Source>,
    file: &File,
    name: &str,
    temporary: &Path,
    progress: &Progress,
) -> Result<Summary> {
    let array = source.array().clone();
    let dataset = create_dataset(file, arguments.storing, &array, name)?;
    let duplicates = arguments.duplicates.into();
    let entries = formats::fill(source, &dataset, duplicates, temporary, progress)?;
    formats::record_origin(&dataset, arguments.input, format, &array)?;
    Ok(Summary { path: dataset.path().to_owned(), shape: array.shape, entries })
}

fn create_dataset(file: &File, arguments: &Storing, array: &Array, name: &str) -> Result<Dataset> {
    let shape = &array.shape;
    let chunk = match &arguments.chunk {
        None => None,
        Some(_) if shape.is_empty() => None,
        Some(chunk) => {
            let example = vec!["1000"; shape.len()].join(",");
            let count = ["no", "one", "two", "three", "four"].get(shape.len()).unwrap_or(&"more");
            ensure!(
                chunk.len() == shape.len() && !chunk.contains(&0),
                "--chunk needs {count} numbers above 0, as in {example}"
            );
            let sides = chunk.iter().zip(shape).map(|(&side, &length)| side.min(length.max(1)));
            Some(sides.collect::<Vec<u64>>())
        }
    };
    let builder = formats::dataset_for(file, array, chunk);
    let builder = match array.dense && !shape.is_empty() && !arguments.no_filters {
        true => builder.shuffle().deflate(4),
        false => builder,
    };
    let plain = arguments.no_filters && !shape.is_empty();
    Ok(if plain { builder.no_filters() } else { builder }.create(name)?)
}

/// An HDF5 file, which must be a file of its own; packed ones are unpacked to a temporary file.
pub(super) struct Unpacked {
    path: std::path::PathBuf,
    temporary: bool,
}

impl Unpacked {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Unpacked {
    fn drop(&mut self) {
        if self.temporary {
            // It is in a folder that is emptied by and by.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Unpacks HDF5 from a gzip file, because it is not read from front to back.
pub(super) fn unpacked_container(path: &Path) -> Result<Unpacked> {
    let plain = Unpacked { path: path.to_owned(), temporary: false };
    let packed = path.extension().is_some_and(|ending| ending == "gz");
    if !packed || !path.is_file() {
        return Ok(plain);
    }
    let action = || format!("unpack {}", path.display());
    let mut reader = formats::unpacked(std::fs::File::open(path).with_context(action)?)?;
    let start = std::io::BufRead::fill_buf(&mut reader).with_context(action)?;
    if !start.starts_with(b"\x89HDF\r\n\x1a\n") {
        return Ok(plain);
    }
    let name = format!("pumice-{}.h5", std::process::id());
    let unpacked = Unpacked { path: std::env::temp_dir().join(name), temporary: true };
    let mut file = std::fs::File::create(&unpacked.path).with_context(action)?;
    std::io::copy(&mut reader, &mut file).with_context(action)?;
    Ok(unpacked)
}
