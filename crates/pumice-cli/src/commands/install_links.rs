//! `pumice install-links`: links with the names of HDF5 tools that lead to this program.

use super::{Outcome, Tool};
use crate::cli::InstallLinks;
use anyhow::{Context, Result};
use std::io::ErrorKind;
use std::os::unix::fs::symlink;

pub(super) fn run(arguments: &InstallLinks) -> Result<Outcome> {
    let program = std::env::current_exe().context("find this program")?;
    let folder = &arguments.folder;
    std::fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
    for (name, _) in Tool::ALL {
        let link = arguments.folder.join(name);
        if arguments.force
            && let Err(error) = std::fs::remove_file(&link)
            && error.kind() != ErrorKind::NotFound
        {
            return Err(error).with_context(|| format!("remove {}", link.display()));
        }
        symlink(&program, &link)
            .with_context(|| format!("make {} (--force replaces what is there)", link.display()))?;
        println!("{} -> {}", link.display(), program.display());
    }
    Ok(Outcome::Complete)
}
