//! `pumice install-links`: links with the names of HDF5 tools that lead to this program.

use super::{Outcome, Tool};
use crate::cli::InstallLinks;
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

pub(super) fn run(arguments: &InstallLinks) -> Result<Outcome> {
    let program = std::env::current_exe().context("find this program")?;
    let folder = &arguments.folder;
    fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
    let links: Vec<PathBuf> = Tool::ALL.iter().map(|(name, _)| folder.join(name)).collect();
    // All or nothing.
    for link in &links {
        vacant(link, &program, arguments.force)?;
    }
    for link in &links {
        let action = || format!("make {}", link.display());
        if let Err(error) = fs::remove_file(link)
            && error.kind() != ErrorKind::NotFound
        {
            return Err(error).with_context(action);
        }
        symlink(&program, link).with_context(action)?;
        println!("{} -> {}", link.display(), program.display());
    }
    Ok(Outcome::Complete)
}

/// Whether a link may be made: existing links and regular files are replaced only on request.
fn vacant(link: &Path, program: &Path, force: bool) -> Result<()> {
    let there = match fs::symlink_metadata(link) {
        Ok(there) => there,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).with_context(|| format!("look at {}", link.display())),
    };
    let link = link.display();
    ensure!(force, "{link} exists already; --force replaces it");
    if !there.is_symlink() && !there.is_file() {
        bail!("{link} is neither a link nor a file, and not replaced");
    }
    let own = fs::metadata(program).context("look at this program")?;
    ensure!(
        (there.dev(), there.ino()) != (own.dev(), own.ino()),
        "{link} is this program, and not replaced by a link to itself"
    );
    Ok(())
}
