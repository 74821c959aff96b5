//! `pumice stat`, and h5stat: the number of objects, and the use of a file's space.
//!
//! Takes h5stat's flags and prints its output; of sparse datasets also how full their chunks are.

mod gather;
mod options;
mod print;

use super::{Outcome, answered, output, understood};
use crate::driver;
use crate::failure;
use crate::flags;
use crate::locate::Spot;
use anyhow::{Context, Result};
use gather::Statistics;
pub(super) use options::FLAGS;
use options::Options;
use std::io::Write;

/// Runs with the words behind the command's name.
pub(super) fn run(arguments: &[String], program: &str) -> Result<Outcome> {
    let options = understood(Options::parse(arguments, program), program)?;
    if answered(program, options.help.then_some(help), options.version) {
        return Ok(Outcome::Complete);
    }
    let mut out = output();
    let mut outcome = Outcome::Complete;
    for spot in &options.files {
        let inside = spot.object(None).unwrap_or_default();
        writeln!(out, "Filename: {}{inside}", spot.name())?;
        out.flush()?;
        let done = file(spot, &options, &mut out);
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

fn file(spot: &Spot, options: &Options, out: &mut dyn Write) -> Result<Outcome> {
    let opened = driver::open(&spot.file);
    let file = opened.with_context(|| format!("unable to open file \"{}\"", spot.name()))?;
    let node = spot.node(&file)?;
    let statistics = Statistics::of(&file, &node).context("unable to traverse objects/links")?;
    match spot.object(None) {
        None => print::all(&statistics, options, out)?,
        Some(_) => print::all(&statistics, &options.of_object(), out)?,
    }
    out.flush()?;
    for error in &statistics.newer {
        failure::warn(&format!("{error}; it is newer than this program and does not count"));
    }
    Ok(if statistics.newer.is_empty() { Outcome::Complete } else { Outcome::Incomplete })
}

fn help(program: &str) -> String {
    // HDF5's tools know files alone.
    let (inside, example) = match program.starts_with("h5") {
        true => ("", String::new()),
        false => (
            ", or FILE/PATH for what is at that path",
            format!("\n  {program} matrix.h5/runs      one group and what is in it"),
        ),
    };
    format!(
        "Tell how many objects a file has, and what takes its space.

Usage: {program} [OPTIONS] FILE...{inside}

Without options, everything is told. Of sparse datasets, the number of chunks by how full they are.

Options:
{}
Examples:
  {program} matrix.h5           everything{example}
  {program} -S matrix.h5        metadata, raw data, free and unaccounted space
  {program} -d -T matrix.h5     datasets and their datatypes

Exit codes: 0 success, 1 failure.
",
        flags::describe(FLAGS)
    )
}
