//! h5format_convert: a file that programs of HDF5 1.8 read, in the place of a newer one.
//!
//! HDF5's tool changes chunk indexes in place; here the file is rewritten, as by `pumice repack`,
//! and replaces the old one when it is complete. The output is that of HDF5's tool.

use super::{Outcome, answered, repack, understood};
use crate::failure;
use crate::flags::{self, Flag, Takes};
use crate::locate;
use crate::target;
use anyhow::{Context, Result};
use pumice::{Dataset, File, LayoutKind, PlaceKind};
use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

const FLAGS: &[Flag] = &[
    Flag::new('h', "help", Takes::Nothing, "Print this help"),
    Flag::new('V', "version", Takes::Nothing, "Print the version"),
    Flag::new('v', "verbose", Takes::Nothing, "Print what is done"),
    Flag::new('d', "dname", Takes::Value("PATH"), "Look at this dataset alone"),
    Flag::new('n', "noop", Takes::Nothing, "Do everything but change the file"),
];

#[derive(Default)]
struct Options {
    help: bool,
    version: bool,
    verbose: bool,
    idle: bool,
    dataset: Option<String>,
    file: String,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut options = Self::default();
        let parsed = flags::parse(FLAGS, arguments)?;
        for (letter, value) in parsed.flags {
            match letter {
                'h' => options.help = true,
                'V' => options.version = true,
                'v' => options.verbose = true,
                'n' => options.idle = true,
                _ => options.dataset = value,
            }
        }
        if options.help || options.version {
            return Ok(options);
        }
        options.file = parsed.words.into_iter().next().context("missing file name")?;
        Ok(options)
    }

    fn tell(&self, text: &str) {
        if self.verbose {
            println!("{text}");
        }
    }
}

/// Runs with the words behind the command's name.
pub(super) fn run(arguments: &[String], program: &str) -> Result<Outcome> {
    let options = understood(Options::parse(arguments), program)?;
    if answered(program, options.help.then_some(help), options.version) {
        return Ok(Outcome::Complete);
    }
    options.tell("Process command line options");
    if options.idle {
        options.tell("It is noop...");
    }
    let path = Path::new(&options.file);
    target::regular(path).with_context(|| options.file.clone())?;
    let opened = File::open(path);
    let file = opened.with_context(|| format!("unable to open file \"{}\"", options.file))?;
    options.tell(&format!("Open the file {}", options.file));
    let done = process(&options, path, &file);
    if done.is_err() {
        options.tell("Error encountered\nClose the file");
        return done;
    }
    drop(file);
    if !options.idle {
        options.tell("Processing the file's superblock...");
        repack::for_older_programs(path)?;
    } else {
        options.tell("Not processing the file's superblock...");
    }
    options.tell("Close the file");
    Ok(Outcome::Complete)
}

/// Processes datasets; fails if one cannot be read whole.
fn process(options: &Options, path: &Path, file: &File) -> Result<Outcome> {
    let (datasets, gap) = match &options.dataset {
        Some(name) => {
            let opened = file.dataset(name);
            (vec![opened.with_context(|| format!("unable to open dataset \"{name}\""))?], " ")
        }
        None => {
            options.tell("Processing all datasets in the file...");
            (locate::datasets_at(file, None, |_| true)?, "")
        }
    };
    for dataset in &datasets {
        let name = options.dataset.as_deref().unwrap_or(dataset.path());
        options.tell(&format!("Going to process dataset:{gap}{name}..."));
        let downgraded = convert(options, path, file, dataset);
        downgraded.with_context(|| format!("unable to downgrade dataset \"{name}\""))?;
    }
    Ok(Outcome::Complete)
}

fn convert(options: &Options, path: &Path, file: &File, dataset: &Dataset) -> Result<()> {
    options.tell("Open the dataset\nRetrieve the dataset's layout");
    let changes = match dataset.layout() {
        LayoutKind::Chunked => {
            options.tell("Dataset is a chunked dataset");
            options.tell("Retrieve the dataset's chunk indexing type");
            let old = has_old_index(path, file, dataset)?;
            options.tell(match old {
                true => {
                    "Dataset's chunk indexing type is already version 1 B-tree: no further action"
                }
                false => "Dataset's chunk indexing type is not version 1 B-tree",
            });
            !old
        }
        layout @ (LayoutKind::Contiguous | LayoutKind::Compact | LayoutKind::External) => {
            let name = if layout == LayoutKind::Compact { "compact" } else { "contiguous" };
            options
                .tell(&format!("Dataset is a {name} dataset: downgrade layout version as needed"));
            true
        }
        LayoutKind::Virtual => {
            options.tell("Dataset is a virtual dataset: no further action");
            false
        }
        _ => {
            failure::warn(&format!("{}: older programs cannot read it", dataset.path()));
            false
        }
    };
    if changes && options.idle {
        options.tell("Not converting the dataset");
    } else if changes {
        options.tell("Converting the dataset...");
        if dataset.layout() == LayoutKind::Chunked {
            dataset.chunks()?.try_for_each(|chunk| chunk.map(drop))?;
        }
        options.tell("Done");
    }
    options.tell("Close the dataset\nClose the dataset creation property list");
    Ok(())
}

/// Whether a dataset's chunk index is the one that the oldest programs read.
pub(super) fn has_old_index(path: &Path, file: &File, dataset: &Dataset) -> Result<bool> {
    let info = file.info()?;
    let places = dataset.places().unwrap_or_default();
    let node = places.into_iter().find(|place| place.kind == PlaceKind::ChunkIndex);
    // Files that are as old have no other one.
    let Some(node) = node else { return Ok(info.superblock_version < 3) };
    let mut bytes = fs::File::open(path)?;
    bytes.seek(SeekFrom::Start(node.address))?;
    let mut signature = [0; 4];
    Ok(bytes.read_exact(&mut signature).is_ok() && signature == *b"TREE")
}

fn help(program: &str) -> String {
    format!(
        "\
Write a file so that programs of HDF5 1.8 read it.

Usage: {program} [OPTIONS] FILE

Indexes of chunks become version 1 B-trees, layouts become version 3, and the superblock version 2. The file
is replaced when the new one is complete.

Options:
{}
Examples:
  {program} run.h5
  {program} -v -n run.h5      what would be done?

Exit codes: 0 success, 1 failure.
",
        flags::describe(FLAGS)
    )
}
