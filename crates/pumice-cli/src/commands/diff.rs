//! `pumice diff`, and h5diff: the differences between two files, or two objects.
//!
//! Takes h5diff's flags, prints what it prints and ends with its exit codes: 0 for no difference, 1
//! for differences, 2 for errors. Values are compared block by block, so that memory stays bounded.

mod attributes;
mod datasets;
mod elements;
mod objects;
mod options;
mod references;
mod report;
mod types;

use super::{Outcome, answered, output};
use crate::failure::{self, Misuse};
use crate::flags;
use anyhow::{Result, bail};
use objects::Differ;
pub(super) use options::FLAGS;
use options::Options;
use std::io::Write;

/// Runs with the words behind the command's name.
pub(super) fn run(arguments: &[String], program: &str) -> Result<Outcome> {
    let mut options = match Options::parse(arguments, program) {
        Ok(options) => options,
        Err(error) if program == "h5diff" => {
            usage(&format!("{error:#}"));
            return Ok(Outcome::Incomplete);
        }
        Err(error) => {
            println!("{error:#}");
            bail!(Misuse(format!("`{program} --help` tells what can be asked")))
        }
    };
    if answered(program, options.help.then_some(help), options.version) {
        return Ok(Outcome::Complete);
    }
    options.explains = program != "h5diff" && !options.quiet && !options.verbose;
    let mut out = output();
    if let Some(wrong) = options.contradiction() {
        writeln!(out, "{wrong}")?;
        out.flush()?;
        return Ok(Outcome::Error);
    }
    let outcome = compare(&options, &mut out);
    out.flush()?;
    match outcome {
        Err(error) if !failure::is_broken_pipe(&error) => {
            failure::report(&error);
            Ok(Outcome::Error)
        }
        other => other,
    }
}

/// h5diff's text behind a wrong option, and without files.
fn usage(error: &str) {
    if error.starts_with("h5diff error") {
        println!("{error}");
        return;
    }
    if error.starts_with('<') {
        println!("{error}");
    }
    print!("{}", help("h5diff"));
}

fn compare(options: &Options, out: &mut dyn Write) -> Result<Outcome> {
    let mut files = Vec::new();
    for (name, driver) in options.files.iter().zip(&options.drivers) {
        match driver.open(name) {
            Ok(file) => files.push(file),
            Err(error) => {
                writeln!(out, "h5diff: <{name}>: unable to open file")?;
                return Err(error);
            }
        }
    }
    let mut differ = Differ::new([&files[0], &files[1]], options, out);
    let found = differ.run()?;
    differ.conclude()?;
    Ok(match (differ.failed, found > 0 || differ.unlike) {
        (true, _) => Outcome::Error,
        (false, true) => Outcome::Different,
        (false, false) => Outcome::Complete,
    })
}

fn help(program: &str) -> String {
    // HDF5's tools know files alone.
    let example = match program.starts_with("h5") {
        true => String::new(),
        false => {
            format!("\n  {program} one.h5/runs/first two.h5/first       two objects, anywhere")
        }
    };
    format!(
        "Compare two files, or two objects.

Usage: {program} [OPTIONS] FILE1 FILE2 [OBJECT1 [OBJECT2]]

Without objects, everything of the two files is compared, path by path; with one, that object of both
files; with two, these. A dataset may be followed by a part of it, as in \"/matrix[0,0;;2,8]\" or \"/matrix[-2:,::3]\".

Options:
{}
Examples:
  {program} one.h5 two.h5                      are they the same?{example}
  {program} -r one.h5 two.h5 /matrix           list values that differ
  {program} -d 0.001 one.h5 two.h5             differences up to 0.001 do not count
  {program} --defined one.h5 two.h5 /matrix    compare where cells are defined, too

Exit codes: 0 no differences, 1 differences, 2 error.
",
        flags::describe(FLAGS)
    )
}
