//! Running the command in a folder of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// The result of running the command.
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).expect("text"),
            err: String::from_utf8(output.stderr).expect("text"),
        }
    }
}

/// A folder for a test.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), text).expect("write");
    }

    /// The names of all files.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).expect("list");
        let name = |entry: std::io::Result<std::fs::DirEntry>| {
            entry.expect("entry").file_name().to_string_lossy().into_owned()
        };
        let mut names: Vec<String> = entries.map(name).collect();
        names.sort();
        names
    }

    /// A command that runs here.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.0.path()).stdin(Stdio::null());
        command
    }

    /// Runs pumice here with the words of a command line.
    pub(crate) fn pumice(&self, line: &str) -> Run {
        self.run(&line.split_whitespace().collect::<Vec<_>>())
    }

    /// Runs pumice here.
    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        let mut command = self.command(env!("CARGO_BIN_EXE_pumice"));
        command.args(arguments).output().expect("run").into()
    }

    /// Runs pumice here and expects success.
    pub(crate) fn succeed(&self, line: &str) -> String {
        let run = self.pumice(line);
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "pumice {line}\n{}", run.out);
        run.out
    }

    /// Runs pumice here and expects failure; returns what it says.
    pub(crate) fn fail(&self, line: &str) -> String {
        let run = self.pumice(line);
        assert_eq!(run.code, Some(1), "pumice {line}\n{}", run.err);
        assert!(run.err.starts_with("pumice: ") && run.err.lines().count() == 1, "{}", run.err);
        run.err
    }
}

/// A small matrix with an explicit zero.
pub(crate) const SMALL: &str = "\
%%MatrixMarket matrix coordinate real general
% five rows, six columns
5 6 6
1 1 1.5
1 2 -2
2 4 1e-7
3 3 0
5 6 123456789
5 5 3
";

/// A folder with [`SMALL`] as `small.mtx` and `small.h5`.
pub(crate) fn small() -> Place {
    let place = Place::new();
    place.write("small.mtx", SMALL);
    place.succeed("import small.mtx small.h5");
    place
}

/// A folder of the corpora, if these are there; says so otherwise.
pub(crate) fn corpus(folder: &str) -> Option<PathBuf> {
    let root = match std::env::var_os("PUMICE_CORPUS") {
        Some(root) => PathBuf::from(root),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora"),
    };
    let path = root.join(folder);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: no {}", path.display());
    None
}

/// Whether a program is installed; says so if it is not.
pub(crate) fn installed(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        println!("skipped: no {program}");
    }
    found
}
