//! The output of h5repack with `-v`.

use super::options::Options;
use super::plan::{Fate, Planner};
use super::request::LayoutRequest;
use super::{Kind, Table};
use crate::atlas::Atlas;
use anyhow::{Result, bail};
use pumice::types::ReferenceKind;
use pumice::{Dataset, Datatype, File, Group, Node};
use std::collections::HashMap;
use std::time::Instant;

/// The time that datasets took.
pub(super) struct Times {
    last: Instant,
    by_path: HashMap<String, f64>,
}

impl Default for Times {
    fn default() -> Self {
        Self { last: Instant::now(), by_path: HashMap::new() }
    }
}

impl Times {
    /// Assigns the bytes since the last note to the dataset at a path.
    pub(super) fn note(&mut self, path: &str) {
        let took = self.last.elapsed().as_secs_f64();
        self.last = Instant::now();
        *self.by_path.entry(path.to_owned()).or_default() += took;
    }
}

/// Prints the requests.
pub(super) fn requests(options: &Options) -> Result<()> {
    if options.verbose == 0 {
        return Ok(());
    }
    let requests = &options.requests;
    let sides = |chunk: &[u64]| chunk.iter().map(|side| format!("{side} ")).collect::<String>();
    let asked = !requests.is_empty();
    match &requests.all.layout {
        Some(layout) => {
            println!("All objects to modify layout are...");
            let (name, chunk) = match layout {
                LayoutRequest::Compact => ("compact", None),
                LayoutRequest::Contiguous => ("contiguous", None),
                LayoutRequest::Chunked(chunk) => ("chunked", Some(chunk)),
                LayoutRequest::Sparse(chunk) => ("sparse chunked", chunk.as_ref()),
            };
            let with =
                chunk.map_or(String::new(), |chunk| format!("with dimension [ {}]", sides(chunk)));
            println!(" Apply {name} layout to all{with}");
        }
        None if asked => println!("No all objects to modify layout"),
        None => {}
    }
    for object in &requests.objects {
        if let Some(LayoutRequest::Chunked(chunk) | LayoutRequest::Sparse(Some(chunk))) =
            &object.layout
        {
            println!(" <{}> with chunk size {}", object.path, sides(chunk));
        }
    }
    if !requests.all.filters.is_empty() {
        println!("All objects to apply filter are...");
        for filter in &requests.all.filters {
            match filter.name() {
                (_, 0) => println!(" Uncompress all"),
                (name, 2 | 3) => println!(" All with {name}"),
                (name, 1 | 4) => println!(" All with {name}, parameter {}", filter.parameter()),
                (_, id) => println!(" User Defined {id}"),
            }
        }
    } else if asked {
        println!("No all objects to apply filter");
    }
    for object in &requests.objects {
        for filter in &object.filters {
            match filter.name() {
                (name, id @ 7..) => println!(" <{}> with {name} filter {id}", object.path),
                (name, _) => println!(" <{}> with {name} filter", object.path),
            }
        }
    }
    if options.user_block_file.is_none() && options.user_block > 0 {
        println!(
            "Warning: user block file name missing. Reserving a size of {}...",
            options.user_block
        );
    }
    Ok(())
}

/// Prints whether the named objects exist; fails if one does not.
pub(super) fn objects(options: &Options, table: &Table) -> Result<()> {
    let objects = &options.requests.objects;
    if objects.is_empty() {
        return Ok(());
    }
    if options.verbose > 0 {
        println!("Opening file. Searching {} objects to modify ...", table.objects.len());
    }
    for object in objects {
        let name = object.path.trim_start_matches('/');
        let found =
            table.objects.iter().any(|(_, path)| path.to_string().trim_start_matches('/') == name);
        if options.verbose > 0 {
            print!(" <{}>", object.path);
        }
        if !found {
            bail!("Could not find <{}> in file <{}>. Exiting...", object.path, options.input);
        }
        if options.verbose > 0 {
            println!("...Found");
        }
    }
    Ok(())
}

/// The head of the table.
pub(super) fn head(options: &Options) {
    let (width, gap, title) = match options.verbose {
        0 => return,
        2 => (65, "        ", "Timing read/write    Name"),
        _ => (41, "     ", "Name"),
    };
    let rule = "-".repeat(width);
    println!("{rule}\n Type     Filter (Compression){gap}{title}\n{rule}");
}

/// Prints the objects that were copied before a dataset that could not be.
pub(super) fn begun(options: &Options, planner: &Planner<'_>, table: &Table) {
    if options.verbose == 0 {
        return;
    }
    let (timed, times, failed) = (options.verbose == 2, Times::default(), planner.last());
    for (kind, path) in &table.objects {
        let path = &path.to_string();
        let text = match kind {
            Kind::Dataset if *path == failed => return,
            Kind::Dataset => "dset",
            Kind::Group => "group",
            Kind::Datatype => "type",
            Kind::Link => "link",
        };
        line(text, path, timed, &times, *kind);
    }
}

/// Prints the copied objects.
pub(super) fn copied(
    options: &Options,
    planner: &Planner<'_>,
    input: &File,
    file: &File,
    table: &Table,
    times: &Times,
) -> Result<()> {
    if options.verbose == 0 {
        return Ok(());
    }
    let timed = options.verbose == 2;
    let asked = !options.requests.is_empty();
    let atlas = std::cell::OnceCell::new();
    let mut references = Vec::new();
    for (kind, path) in &table.objects {
        let path = &path.to_string();
        let is_reference = |dataset: &Dataset| matches!(dataset.datatype(), Datatype::Reference(_));
        let text = match kind {
            Kind::Group => "group".to_owned(),
            Kind::Datatype => "type".to_owned(),
            Kind::Link => "link".to_owned(),
            Kind::Dataset => {
                let old = input.dataset(path)?;
                if is_reference(&old) {
                    references.push((path.clone(), old));
                    continue;
                }
                // An unchanged dataset is copied after its attributes.
                if !asked && !old.datatype().has_varlen() && old.committed_datatype().is_none() {
                    attributes(input, path, timed)?;
                    line("dset", path, timed, times, Kind::Dataset);
                    continue;
                }
                dataset(planner, path, &old, &file.dataset(path)?)?
            }
        };
        let fate = planner.fate(path).filter(|_| *kind == Kind::Dataset);
        if fate == Some(Fate::Uncreated) {
            println!(" warning: could not create dataset <{path}>. Applying original settings");
        }
        line(&text, path, timed, times, *kind);
        // h5repack says so of datasets that have filters already.
        let fate = fate.filter(|_| input.dataset(path).is_ok_and(|old| !old.filters().is_empty()));
        match fate {
            Some(Fate::TooSmall) => println!(
                " <warning: filter not applied to {path}. dataset smaller than {} bytes>",
                options.minimum
            ),
            Some(Fate::Impossible | Fate::Uncreated) => {
                println!(" <warning: could not apply the filter to {path}>");
            }
            _ => {}
        }
        if *kind != Kind::Link {
            attributes(input, path, timed)?;
        }
    }
    for (path, dataset) in references {
        let atlas = atlas.get_or_init(|| Atlas::of(input));
        let word = match dataset.datatype() {
            Datatype::Reference(own) if own.kind == ReferenceKind::Region => "region",
            _ => "object",
        };
        for reference in dataset.read_references(..)?.into_iter().flatten() {
            if let Some(target) = atlas.path(reference.address()) {
                line("dset", &path, timed, times, Kind::Group);
                println!("object <{path}> {word} reference created to <{target}>");
            }
        }
        attributes(input, &path, timed)?;
    }
    Ok(())
}

/// The line of an object.
fn line(text: &str, path: &str, timed: bool, times: &Times, kind: Kind) {
    let took = times.by_path.get(path).copied().unwrap_or(0.0);
    match (timed, kind) {
        (false, _) => println!(" {text:<27} {path}"),
        (true, Kind::Dataset) => {
            println!(" {text:<27}  {}/{}   {path}", scientific(0.0), scientific(took));
        }
        (true, _) => println!(" {text:<27} {:29} {path}", ""),
    }
}

/// The lines of an object's attributes.
fn attributes(input: &File, path: &str, timed: bool) -> Result<()> {
    let node = match path {
        "/" => Node::Group(Group::clone(input)),
        path => input.node(path)?,
    };
    for name in node.attribute_names()? {
        match timed {
            false => println!("  {:<27} {name}", "attr"),
            true => {
                let zero = scientific(0.0);
                println!("  {:<27}  {zero}/{zero}   {name}", "attr");
            }
        }
    }
    Ok(())
}

/// `%e`.
fn scientific(value: f64) -> String {
    let text = format!("{value:.6e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

fn dataset(planner: &Planner<'_>, path: &str, old: &Dataset, new: &Dataset) -> Result<String> {
    let filters = planner.options.requests.of(path).filters;
    if filters.is_empty() || planner.fate(path) != Some(Fate::Remade) {
        return Ok("dset".to_owned());
    }
    let names = new.filters().into_iter().map(|filter| match filter.id {
        1 => "GZIP ",
        2 => "SHUF ",
        3 => "FLET ",
        4 => "SZIP ",
        5 => "NBIT ",
        6 => "SCALEOFFSET ",
        _ => "UD ",
    });
    let names: String = names.collect();
    let (before, after) = (old.storage_size()?, new.storage_size()?);
    let ratio = if after == 0 { 0.0 } else { before as f64 / after as f64 };
    Ok(format!("dset     {names}  ({ratio:.3}:1)"))
}
