//! The `pumice` command: HDF5 files with sparse datasets from the shell.
//!
//! `cli.rs` says what can be asked, `commands/` answers, one file per command. Exit codes: 0 for
//! success, 1 for failure, 2 for wrong usage. Results go to standard output, everything else to
//! standard error. A reader that stops listening (`pumice dump FILE | head`) ends the command
//! quietly.

#![forbid(unsafe_code)]

mod cells;
mod cli;
mod commands;
mod ddl;
mod failure;
mod locate;
mod matrix_market;
mod numbers;
mod picture;
mod progress;
mod value;
mod walker;
mod window;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = cli::Arguments::parse();
    match commands::run(arguments.command) {
        Ok(outcome) => outcome.into(),
        Err(error) if failure::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            failure::report(&error);
            ExitCode::FAILURE
        }
    }
}
