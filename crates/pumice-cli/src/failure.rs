//! Reports of failures: one line on standard error, with all causes.

use pumice::FilterError;
use std::io::{self, Write};
use std::sync::OnceLock;

/// The beginning of failure messages.
static BEGINNING: OnceLock<String> = OnceLock::new();

/// Lets failures be reported in the manner of an HDF5 tool.
pub(crate) fn speak_as(tool: &str) {
    // The first name stays: there is one tool in a process.
    let _ = BEGINNING.set(format!("{tool} error"));
}

/// The message for objects that only a newer program knows.
pub(crate) const NEWER: &str = "it is newer than this program; a newer one may read it";

/// A request that cannot be understood.
#[derive(Debug)]
pub(crate) struct Misuse(pub(crate) String);

impl std::fmt::Display for Misuse {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Misuse {}

/// The exit code that tells a failure: wrong usage has its own, except in HDF5's tools.
pub(crate) fn exit_code(error: &anyhow::Error) -> u8 {
    if error.is::<Misuse>() && BEGINNING.get().is_none() { 2 } else { 1 }
}

/// Prints an error and its causes on one line.
pub(crate) fn report(error: &anyhow::Error) {
    // Nobody is left to hear that standard error is closed.
    let beginning = BEGINNING.get().map_or("pumice", String::as_str);
    let _ = writeln!(io::stderr(), "{beginning}: {}{}", chain(error), hint(error));
}

/// Advice, where there is any. Some errors contain it.
fn hint(error: &anyhow::Error) -> String {
    error.chain().find_map(advice).map_or(String::new(), |text| format!("; {text}"))
}

/// Advice against an error.
fn advice(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    if let Some(error) = error.downcast_ref::<io::Error>() {
        return system_advice(error);
    }
    let error = error.downcast_ref::<pumice::Error>()?;
    let list = if BEGINNING.get().is_some() { "h5ls" } else { "pumice ls" };
    Some(match error.cause() {
        pumice::Error::Io { source, .. } => return system_advice(source),
        pumice::Error::NotFound(_) => format!("`{list} -r` lists what is in a file"),
        pumice::Error::Space(_) => format!("`{list} -v` tells the shapes of datasets"),
        pumice::Error::Type(_) => format!("`{list} -v` tells the types of datasets"),
        pumice::Error::Decode(error) if error.to_string().contains("HDF5 signature") => {
            "is it an HDF5 file? `pumice import --help` lists what else can be read".into()
        }
        pumice::Error::Filter(FilterError::Encode { .. } | FilterError::Parameters { .. }) => {
            "choose another filter or other settings of it, or make it optional".into()
        }
        _ if error.is_newer() => NEWER.into(),
        _ if error.kind() == pumice::ErrorKind::Damaged => {
            "`pumice check` tells all that is wrong, its --repair saves what is sound".into()
        }
        pumice::Error::Unsupported(_) => format!("`{list} -v` tells how it is stored"),
        _ => return None,
    })
}

/// Advice for an error of the system.
fn system_advice(error: &io::Error) -> Option<String> {
    if error.to_string().contains("://") {
        // What is said of an address says what to do.
        return None;
    }
    let text = match error.kind() {
        io::ErrorKind::NotFound => "is the name right?",
        io::ErrorKind::PermissionDenied => "`ls -l` tells who may read and write it",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "make room, or write to another folder"
        }
        io::ErrorKind::IsADirectory => "name a file in it",
        io::ErrorKind::UnexpectedEof => {
            "is the file complete? `pumice check` tells what is missing"
        }
        _ => return None,
    };
    Some(text.to_owned())
}

/// Prints a warning.
pub(crate) fn warn(text: &str) {
    let beginning = BEGINNING.get().map_or("pumice error", String::as_str);
    let beginning = beginning.trim_end_matches(" error");
    let _ = writeln!(io::stderr(), "{beginning} warning: {text}");
}

/// An error and its causes, outermost first. A cause that the text before it ends with already is
/// not repeated: many errors quote theirs.
pub(crate) fn chain(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    one_line(&text)
}

/// A text without line breaks.
pub(crate) fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// Whether the reader of standard output has gone away.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let broken = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    error.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(broken))
}

#[cfg(test)]
mod tests {
    use anyhow::{Context, anyhow};

    #[test]
    fn causes_are_told_once() {
        let error = anyhow!("open a.h5: no such file");
        assert_eq!(super::chain(&error), "open a.h5: no such file");
        let wrapped = Err::<(), _>(anyhow!("no such file")).context("open a.h5: no such file");
        assert_eq!(super::chain(&wrapped.unwrap_err()), "open a.h5: no such file");
        let wrapped = Err::<(), _>(anyhow!("no such file")).context("open a.h5");
        assert_eq!(super::chain(&wrapped.unwrap_err()), "open a.h5: no such file");
    }
}
