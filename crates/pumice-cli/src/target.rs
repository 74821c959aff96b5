//! A file to make: it appears under its name when it is complete.

use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};

/// A file to make. Until it is published it has another name; dropped before that, it is removed.
pub(crate) struct Target {
    pub(crate) path: PathBuf,
    pub(crate) partial: PathBuf,
    force: bool,
}

impl Target {
    /// A file that is made of `input`. One that exists is replaced only by `force`.
    pub(crate) fn new(path: &Path, input: &Path, force: bool) -> Result<Self> {
        let Some(name) = path.file_name() else {
            bail!("{} is no name for a file", path.display());
        };
        if !force {
            refuse_existing(path)?;
        }
        if let (Ok(input), Ok(output)) = (fs::canonicalize(input), fs::canonicalize(path)) {
            ensure!(input != output, "{} is the input", path.display());
        }
        let mut partial = std::ffi::OsString::from(".");
        partial.push(name);
        partial.push(format!(".{}.partial", std::process::id()));
        let partial = path.with_file_name(partial);
        Ok(Self { path: path.to_owned(), partial, force })
    }

    /// Gives the file its name.
    pub(crate) fn publish(self) -> Result<()> {
        if !self.force {
            refuse_existing(&self.path)?;
        }
        fs::rename(&self.partial, &self.path).with_context(|| {
            format!("rename {} to {}", self.partial.display(), self.path.display())
        })
    }

    /// Bytes of what is made so far.
    pub(crate) fn length(&self) -> Result<u64> {
        let length = fs::metadata(&self.partial).map(|data| data.len());
        length.with_context(|| format!("read the size of {}", self.partial.display()))
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // After publishing there is nothing under this name; before the file was made, neither.
        let _ = fs::remove_file(&self.partial);
    }
}

fn refuse_existing(path: &Path) -> Result<()> {
    match path.symlink_metadata() {
        Ok(_) => bail!("{} exists already; --force replaces it", path.display()),
        Err(_) => Ok(()),
    }
}
