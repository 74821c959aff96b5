//! The file driver of the HDF5 tools' `--vfd-name` and `--vfd-info`.

use anyhow::{Context, Result, bail, ensure};
use pumice::{File, VirtualView};
use std::path::Path;

pub(crate) use crate::remote::open as open_with;

/// Opens a file for reading, wherever it is, also one that another program is writing beside readers.
pub(crate) fn open(path: impl AsRef<Path>) -> pumice::Result<File> {
    open_with(File::options(), path.as_ref())
}

/// A file driver, by HDF5's name for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Driver {
    name: Option<String>,
    info: Option<String>,
    view: VirtualView,
}

impl Driver {
    /// Families, split and multi files are told by their names and contents.
    pub(crate) fn set_name(&mut self, name: &str) -> Result<()> {
        const KNOWN: [&str; 7] = ["sec2", "stdio", "core", "family", "split", "multi", "onion"];
        if !KNOWN.contains(&name) {
            bail!("files stored as \"{name}\" cannot be read; known are {}", KNOWN.join(", "));
        }
        self.name = Some(name.to_owned());
        Ok(())
    }

    /// Sets the driver's further information: the revision of an onion file.
    pub(crate) fn set_info(&mut self, info: &str) {
        self.info = Some(info.to_owned());
    }

    /// Changes the virtual view.
    pub(crate) fn set_view(&mut self, change: impl FnOnce(&mut VirtualView)) {
        change(&mut self.view);
    }

    /// Whether the file has revisions.
    pub(crate) fn is_onion(&self) -> bool {
        self.name.as_deref() == Some("onion")
    }

    /// Whether only the number of revisions is asked for.
    pub(crate) fn counts_revisions(&self) -> bool {
        self.is_onion() && self.info.as_deref() == Some("revision_count")
    }

    /// The revision that is asked for.
    pub(crate) fn revision(&self) -> Result<u64> {
        let info = self.info.as_deref().unwrap_or("0");
        info.parse().with_context(|| format!("Invalid onion revision specified: {info}"))
    }

    /// Fails if a file cannot be stored as stated.
    fn check(&self, path: &str) -> Result<()> {
        let part = |ending: &str| Path::new(&format!("{path}{ending}")).exists();
        let fits = match self.name.as_deref() {
            Some("family") => path.contains('%'),
            Some("split") => path.contains('%') || part("-m.h5") || part(".meta"),
            Some("multi") => path.contains('%') || part("-s.h5"),
            _ => true,
        };
        let name = self.name.as_deref().unwrap_or_default();
        ensure!(fits, "{path} is not stored as \"{name}\"; try it without saying how it is stored");
        Ok(())
    }

    /// Opens a file for reading.
    pub(crate) fn open(&self, path: &str) -> Result<File> {
        self.check(path)?;
        if self.is_onion() {
            return Ok(File::options().open_revision(path, self.revision()?)?);
        }
        Ok(open_with(File::options().virtual_view(self.view), path.as_ref())?)
    }
}
