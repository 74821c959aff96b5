//! `pumice stat`, and h5stat: how many objects there are, and what takes the space of a file.
//!
//! Takes h5stat's flags and prints what it prints; of sparse datasets, how full their chunks are.

mod gather;
mod options;
mod print;

use super::{Outcome, answered, output, understood};
use crate::driver;
use crate::failure;
use crate::flags;
use anyhow::{Context, Result};
use gather::Statistics;
pub(super) use options::FLAGS;
use options::Options;
use std::io::Write;

/// Runs with the words behind the command's name.
pub(super) fn run(arguments: &[String], program: &str) -> Result<Outcome> {
    let options = understood(Options::parse(arguments), program)?;
    if answered(program, options.help.then_some(help), options.version) {
        return Ok(Outcome::Complete);
    }
    let mut out = output();
    let mut outcome = Outcome::Complete;
    for name in &options.files {
        writeln!(out, "Filename: {name}")?;
        out.flush()?;
        let done = file(name, &options, &mut out);
        out.flush()?;
        match done {
            Err(error) if failure::is_broken_pipe(&error) => return Err(error),
            Err(error) => {
                failure::report(&error);
                outcome = Outcome::Incomplete;
            }
            Ok(file) if outcome == Outcome::Complete => outcome = file,
            Ok(_) => {}
        }
    }
    Ok(outcome)
}

fn file(name: &str, options: &Options, out: &mut dyn Write) -> Result<Outcome> {
    let file = driver::open(name).with_context(|| format!("unable to open file \"{name}\""))?;
    let statistics = Statistics::of(&file).context("unable to traverse objects/links")?;
    print::all(&statistics, options, out)?;
    out.flush()?;
    for error in &statistics.newer {
        failure::warn(&format!("{error}; it is newer than this program and does not count"));
    }
    Ok(if statistics.newer.is_empty() { Outcome::Complete } else { Outcome::Incomplete })
}

fn help(program: &str) -> String {
    format!(
        "Tell how many objects a file has, and what takes its space.

Usage: {program} [OPTIONS] FILE...

Without options, everything is told. Of sparse datasets, the number of chunks by how full they are.

Options:
{}
Examples:
  {program} matrix.h5           everything
  {program} -S matrix.h5        metadata, raw data, free and unaccounted space
  {program} -d -T matrix.h5     datasets and their datatypes

Exit codes: 0 success, 1 failure.
",
        flags::describe(FLAGS)
    )
}
