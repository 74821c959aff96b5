//! Where the built library is, and running programs.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The crate's folder.
pub(crate) fn crate_folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folder that cargo has put the shared library into, beside the program of the tests.
pub(crate) fn built() -> PathBuf {
    let program = std::env::current_exe().expect("a running program has a path");
    let folder = program.parent().expect("it is in a folder").to_owned();
    assert!(folder.join("libpumice_c.so").exists(), "no libpumice_c.so in {}", folder.display());
    folder
}

/// Whether a program can be run; says so if a test has to do without it.
pub(crate) fn has(program: &str) -> bool {
    let found =
        Command::new(program).arg("--version").output().is_ok_and(|done| done.status.success());
    if !found {
        eprintln!("skipped: {program} is not there");
    }
    found
}

/// Runs a command that must succeed; gives what it printed.
pub(crate) fn run(command: &mut Command) -> String {
    let done = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{command:?}: {}\n{out}\n{err}", done.status);
    out.into_owned()
}
