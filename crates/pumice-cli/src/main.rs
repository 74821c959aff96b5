//! The `pumice` command: HDF5 files with sparse datasets from the shell.
//!
//! `cli.rs` has the command line, `commands/` the commands, one file each. Exit codes: 0 for
//! success, 1 for failure, 2 for wrong usage. Results go to standard output, everything else to
//! standard error. A reader that stops reading (`pumice dump FILE | head`) ends the command
//! quietly.

#![forbid(unsafe_code)]

mod atlas;
mod cells;
mod cli;
mod commands;
mod ddl;
mod driver;
mod failure;
mod flags;
mod locate;
mod numbers;
mod picture;
mod progress;
mod region;
mod remote;
mod sections;
mod style;
mod subset;
mod target;
mod threads;
mod value;
mod walker;
mod window;

use clap::Parser;
use pumice_formats as formats;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args_os()
        .map(|word| word.into_string().unwrap_or_else(|word| word.to_string_lossy().into_owned()))
        .collect();
    // Called by the name of an HDF5 tool, it is that tool.
    let done = match words.first().and_then(|name| commands::Tool::named(name)) {
        Some(tool) => tool.run(&words[1..]),
        None => cli::Arguments::try_parse()
            .map_err(|error| cli::one_line(error, words.get(1)))
            .and_then(|arguments| commands::run(arguments.command)),
    };
    match done {
        Ok(outcome) => outcome.into(),
        Err(error) if failure::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            failure::report(&error);
            failure::exit_code(&error).into()
        }
    }
}
