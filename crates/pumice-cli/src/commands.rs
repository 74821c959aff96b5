//! One file per command. Each takes its arguments and writes its answer to standard output.

mod dump;
mod erase;
mod import;
mod ls;
mod read;
mod spy;

use crate::cli::Command;
use anyhow::Result;
use std::io::{self, BufWriter, StdoutLock};
use std::process::ExitCode;

/// How a command that came to its end went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Everything was done.
    Complete,
    /// Some objects failed and were reported; the rest was done.
    Incomplete,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Complete => ExitCode::SUCCESS,
            Outcome::Incomplete => ExitCode::FAILURE,
        }
    }
}

/// Runs a command.
pub(crate) fn run(command: Command) -> Result<Outcome> {
    match command {
        Command::Import(arguments) => import::run(&arguments),
        Command::Ls(arguments) => ls::run(&arguments),
        Command::Dump(arguments) => dump::run(&arguments),
        Command::Spy(arguments) => spy::run(&arguments),
        Command::Read(arguments) => read::run(&arguments),
        Command::Erase(arguments) => erase::run(&arguments),
    }
}

/// Standard output, buffered. Callers flush it, so that errors are seen.
fn output() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(64 << 10, io::stdout().lock())
}
