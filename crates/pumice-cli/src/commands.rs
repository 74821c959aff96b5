//! One file per command. Each takes its arguments and writes its answer to standard output.

mod bench;
mod cache;
mod check;
mod complete;
mod convert;
mod copy;
mod diff;
mod dump;
mod erase;
mod export;
mod h5clear;
mod h5format_convert;
mod h5import;
mod h5jam;
mod h5mkgrp;
mod import;
mod install_links;
mod ls;
mod man;
mod read;
mod recover;
mod repack;
mod spy;
mod stat;

use crate::cli::Command;
use crate::failure::{self, Misuse};
use anyhow::Result;
use std::io::{self, BufWriter, StdoutLock};
use std::process::ExitCode;

/// The outcome of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Everything was done.
    Complete,
    /// Some objects failed and were reported; the rest was done.
    Incomplete,
    /// A comparison found differences.
    Different,
    /// A comparison failed.
    Error,
}

impl Outcome {
    /// Reports a failure and goes on, unless the reader has gone away.
    pub(crate) fn survive(&mut self, done: Result<()>) -> Result<()> {
        match done {
            Err(error) if failure::is_broken_pipe(&error) => Err(error),
            Err(error) => {
                failure::report(&error);
                *self = Self::Incomplete;
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Complete => ExitCode::SUCCESS,
            Outcome::Incomplete | Outcome::Different => ExitCode::FAILURE,
            Outcome::Error => ExitCode::from(2),
        }
    }
}

/// Options as they were given; an error says where to find out about them.
fn understood<T>(options: Result<T>, program: &str) -> Result<T> {
    let advice = |error| Misuse(format!("{error:#}; `{program} --help` tells what can be asked"));
    options.map_err(|error| advice(error).into())
}

/// Answers `--help`, with the text that is made for it, and `--version`; `true` if one was asked for.
fn answered(program: &str, help: Option<fn(&str) -> String>, version: bool) -> bool {
    if let Some(help) = help {
        print!("{}", help(program));
    } else if version {
        println!("{program}: Version {}", env!("CARGO_PKG_VERSION"));
    }
    help.is_some() || version
}

/// An HDF5 tool whose name and flags this program takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tool {
    Dump,
    Ls,
    Diff,
    Stat,
    Import,
    Repack,
    Copy,
    MakeGroup,
    Clear,
    FormatConvert,
    Jam,
    Unjam,
}

impl Tool {
    /// All tools, with their names.
    pub(crate) const ALL: &'static [(&'static str, Tool)] = &[
        ("h5dump", Tool::Dump),
        ("h5ls", Tool::Ls),
        ("h5diff", Tool::Diff),
        ("h5stat", Tool::Stat),
        ("h5import", Tool::Import),
        ("h5repack", Tool::Repack),
        ("h5copy", Tool::Copy),
        ("h5mkgrp", Tool::MakeGroup),
        ("h5clear", Tool::Clear),
        ("h5format_convert", Tool::FormatConvert),
        ("h5jam", Tool::Jam),
        ("h5unjam", Tool::Unjam),
    ];

    /// The tool that a program's path names.
    pub(crate) fn named(path: &str) -> Option<Self> {
        let name = std::path::Path::new(path).file_name()?.to_str()?;
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, tool)| *tool)
    }

    /// Runs the tool with the words behind its name.
    pub(crate) fn run(self, arguments: &[String]) -> Result<Outcome> {
        let name = Self::ALL.iter().find(|(_, tool)| *tool == self).map_or("", |(name, _)| name);
        failure::speak_as(name);
        match self {
            Self::Dump => dump::run(arguments, name),
            Self::Ls => ls::run(arguments, name),
            Self::Diff => diff::run(arguments, name),
            Self::Stat => stat::run(arguments, name),
            Self::Import => h5import::run(arguments, name),
            Self::Repack => repack::run(arguments, name),
            Self::Copy => copy::run(arguments, name),
            Self::MakeGroup => h5mkgrp::run(arguments, name),
            Self::Clear => h5clear::run(arguments, name),
            Self::FormatConvert => h5format_convert::run(arguments, name),
            Self::Jam => h5jam::jam(arguments, name),
            Self::Unjam => h5jam::unjam(arguments, name),
        }
    }
}

/// Runs a command.
pub(crate) fn run(command: Command) -> Result<Outcome> {
    match command {
        Command::Import(arguments) => import::run(&arguments.located()),
        Command::Export(arguments) => export::run(&arguments),
        Command::Convert(arguments) => convert::run(&arguments.located()),
        Command::Ls(arguments) => ls::run(&arguments.arguments, "pumice ls"),
        Command::Dump(arguments) => dump::run(&arguments.arguments, "pumice dump"),
        Command::Diff(arguments) => diff::run(&arguments.arguments, "pumice diff"),
        Command::Stat(arguments) => stat::run(&arguments.arguments, "pumice stat"),
        Command::Repack(arguments) => repack::run(&arguments.arguments, "pumice repack"),
        Command::Copy(arguments) => copy::run(&arguments.arguments, "pumice copy"),
        Command::Spy(arguments) => spy::run(&arguments),
        Command::Read(arguments) => read::run(&arguments),
        Command::Erase(arguments) => erase::run(&arguments),
        Command::Cache(arguments) => cache::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Recover(arguments) => recover::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Completions(arguments) => complete::completions(&arguments),
        Command::Complete(arguments) => complete::run(&arguments),
        Command::Man(arguments) => man::run(&arguments),
        Command::InstallLinks(arguments) => install_links::run(&arguments),
    }
}

/// The flag table of a command, if it has one.
fn tool_flags(command: &str) -> Option<&'static [crate::flags::Flag]> {
    match command {
        "dump" => Some(dump::FLAGS),
        "ls" => Some(ls::FLAGS),
        "diff" => Some(diff::FLAGS),
        "stat" => Some(stat::FLAGS),
        "repack" => Some(repack::FLAGS),
        "copy" => Some(copy::FLAGS),
        _ => None,
    }
}

/// Standard output, buffered. Callers flush it, so that errors are seen.
fn output() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(64 << 10, io::stdout().lock())
}
