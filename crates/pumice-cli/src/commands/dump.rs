//! `pumice dump`, and h5dump: a file in the HDF5 data description language.
//!
//! Takes h5dump's flags and prints its output, peculiarities included: in a subset, coordinates of
//! continued lines count cells without regard to the stride, and no comma stands between planes. Of
//! sparse datasets, defined cells are printed with their own coordinates; a subset of one is
//! printed with fill values, as that of a dense dataset.

mod contents;
mod csv;
mod json;
mod mappings;
mod objects;
mod options;
mod outside;
mod properties;
mod references;
mod regions;
mod sink;
mod superblock;
mod values;
mod xml;

use super::{Outcome, answered, understood};
use crate::{failure, flags};
use anyhow::{Context, Result};
use objects::Dumper;
pub(super) use options::FLAGS;
use options::Options;
use pumice::File;
use sink::Sinks;
use xml::XmlDumper;

/// Runs with the words behind the command's name.
pub(super) fn run(arguments: &[String], program: &str) -> Result<Outcome> {
    let options = understood(Options::parse(arguments, program), program)?;
    if answered(program, options.help.then_some(help), options.version) {
        return Ok(Outcome::Complete);
    }
    if let (false, Some(place)) = (options.xml, &options.schema_place) {
        failure::warn(&format!("option \"--xml-dtd\" only applies with XML: {place}"));
    }
    let mut outcome = Outcome::Complete;
    let mut sinks = Sinks::open(&options, options.force || program == "h5dump")?;
    if options.driver.is_onion() && !options.driver.counts_revisions() {
        println!("Using revision {}", options.driver.revision()?);
    }
    for spot in &options.files {
        let name = &spot.name();
        if options.driver.counts_revisions() {
            let count = File::revisions(name)?;
            println!("The number of revisions for the onion file is {count}");
            continue;
        }
        let opened = options.driver.open(name);
        let file = opened.with_context(|| format!("unable to open file \"{name}\""))?;
        let options = options.of(spot, &file)?;
        if dump(&file, name, &options, &mut sinks)? == Outcome::Incomplete {
            outcome = Outcome::Incomplete;
        }
    }
    sinks.finish(&options)?;
    Ok(outcome)
}

fn dump(file: &File, name: &str, options: &Options, sinks: &mut Sinks) -> Result<Outcome> {
    if options.json {
        return json::print(file, name, options, sinks.text());
    }
    if options.csv {
        csv::print(file, options, sinks.text())?;
        return Ok(Outcome::Complete);
    }
    if options.xml {
        let mut dumper = XmlDumper::new(file, options, sinks);
        dumper.run()?;
        return Ok(dumper.outcome);
    }
    writeln!(sinks.text(), "HDF5 \"{name}\" {{")?;
    let mut outcome = Outcome::Complete;
    if options.contents {
        contents::list(file, options, sinks.text())?;
    } else {
        if options.superblock {
            superblock::print(file, sinks.text())?;
        }
        let mut dumper = Dumper::new(file, name, options, sinks);
        dumper.run()?;
        outcome = dumper.outcome;
    }
    writeln!(sinks.text(), "}}")?;
    Ok(outcome)
}

fn help(program: &str) -> String {
    // HDF5's tools know files alone.
    let (inside, example) = match program.starts_with("h5") {
        true => ("", String::new()),
        false => (
            ", or FILE/PATH for one object of a file",
            format!(
                "\n  {program} 'run.h5/hits[-10:,::2]'                  the last ten rows, every second column"
            ),
        ),
    };
    format!(
        "Print files or parts of them in the HDF5 data description language.

Usage: {program} [OPTIONS] FILE...{inside}

Dense datasets are printed as h5dump prints them. Of sparse datasets only defined cells are printed,
each with its coordinates; neighbours in a row share a line:

    SPARSE {{ DEFINED 3 OF 4024126096 }}
    DATA {{
    (7,9): 1.5, 3.5,
    (70000,8): 2.5
    }}

With -H there is a line SPARSE alone. --dense prints every cell instead, undefined ones as the fill
value, and so does a subset (-s, -c). --sparse-locations prints where cells are defined, as blocks and
points, and --sparse their values, too:

    REGION_TYPE BLOCK  (2,2)-(4,7)
    REGION_TYPE POINT  (5,9), (11,1)

Options:
{}
Examples:
  {program} -H matrix.h5                             types and shapes only{example}
  {program} -d /matrix -s 100,100 -c 4,8 matrix.h5   4 rows, 8 columns from (100,100)
  {program} -p -d /matrix matrix.h5                  with layout, filters and fill value
  {program} -a /matrix/source_file matrix.h5         one attribute
  {program} --sparse-locations -d /matrix matrix.h5  where cells are defined
  {program} --csv -d /matrix matrix.h5               a row a line
  {program} --json -H matrix.h5                      for programs

Exit codes: 0 success, 1 failure.
",
        flags::describe(FLAGS)
    )
}
