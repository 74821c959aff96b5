//! h5mkgrp: makes groups in a file, and the file if it does not exist.

use super::{Outcome, answered, understood};
use crate::flags::{self, Flag, Takes};
use crate::target;
use anyhow::{Context, Result, bail, ensure};
use pumice::{File, LibraryVersion};
use std::path::Path;

const FLAGS: &[Flag] = &[
    Flag::new('h', "help", Takes::Nothing, "Print this help"),
    Flag::new('V', "version", Takes::Nothing, "Print the version"),
    Flag::new('l', "latest", Takes::Nothing, "Make groups in the newest form"),
    Flag::new('p', "parents", Takes::Nothing, "Make groups on the way"),
    Flag::new('v', "verbose", Takes::Nothing, "Print what is done"),
];

#[derive(Default)]
struct Options {
    help: bool,
    version: bool,
    latest: bool,
    parents: bool,
    verbose: bool,
    file: String,
    groups: Vec<String>,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut options = Self::default();
        let parsed = flags::parse(FLAGS, arguments)?;
        for (letter, _) in parsed.flags {
            match letter {
                'h' => options.help = true,
                'V' => options.version = true,
                'l' => options.latest = true,
                'p' => options.parents = true,
                _ => options.verbose = true,
            }
        }
        if options.help || options.version {
            return Ok(options);
        }
        let mut words = parsed.words.into_iter();
        options.file = words.next().context("missing file name")?;
        options.groups = words.collect();
        ensure!(!options.groups.is_empty(), "missing group name(s)");
        Ok(options)
    }
}

/// Runs with the words behind the command's name.
pub(super) fn run(arguments: &[String], program: &str) -> Result<Outcome> {
    let options = understood(Options::parse(arguments), program)?;
    if answered(program, options.help.then_some(help), options.version) {
        return Ok(Outcome::Complete);
    }
    let path = Path::new(&options.file);
    target::editable(path)?;
    let form = match options.latest {
        true => LibraryVersion::LATEST,
        false => LibraryVersion::Earliest,
    };
    let file = match path.exists() {
        true => File::options().library_version(form).edit(path),
        false => File::options().library_version(form).create_new(path),
    };
    let file = file.with_context(|| format!("Could not open output file '{}'", options.file))?;
    if options.verbose && options.latest {
        println!("{program}: Creating groups with latest version of the format");
    }
    if options.verbose && options.parents {
        println!("{program}: Creating parent groups");
    }
    let made = options.groups.iter().try_for_each(|name| {
        make(&file, name, options.parents)
            .with_context(|| format!("Could not create group '{name}'"))?;
        if options.verbose {
            println!("{program}: created group '{name}'");
        }
        Ok(())
    });
    // Groups made before a failure stay.
    file.close()?;
    made.map(|()| Outcome::Complete)
}

fn make(file: &File, name: &str, parents: bool) -> Result<()> {
    let parent = name.trim_end_matches('/').rsplit_once('/').map_or("", |(parent, _)| parent);
    if !parents && !parent.is_empty() && !file.contains(parent) {
        bail!("there is no group '{parent}'; -p makes it");
    }
    file.create_group(name)?;
    Ok(())
}

fn help(program: &str) -> String {
    format!(
        "\
Make groups in a file, and the file if it is not there.

Usage: {program} [OPTIONS] FILE GROUP...

Options:
{}
Examples:
  {program} run.h5 first second
  {program} -p run.h5 /archive/2026/runs      make /archive and /archive/2026, too

Exit codes: 0 success, 1 failure.
",
        flags::describe(FLAGS)
    )
}
