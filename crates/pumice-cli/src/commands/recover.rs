//! `pumice recover`: finishes the commit of an interrupted writer.
//!
//! A commit that was cut short leaves its journal at the end of the file. Opening the file for
//! editing applies it; this command does that, and reports it. A file without a journal is as its
//! last commit left it, and is not changed. On request, the mark of a killed program is removed.

use super::{Outcome, output};
use crate::cli::Recover;
use crate::numbers;
use anyhow::{Context, Result, ensure};
use pumice::File;
use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

/// The signature near the end of a file with a journal, and its distance from the end.
const SIGNATURE: &[u8] = b"PumiceJ1";
const TRAILER: u64 = 40;

pub(super) fn run(arguments: &Recover) -> Result<Outcome> {
    let path = &arguments.file;
    let name = path.display();
    let mut out = output();
    if !path.exists() {
        // A pattern of a family, or the name that a split file's members have in common.
        edit(arguments)?.close()?;
        writeln!(out, "{name}: of several files; what journal they had is applied")?;
        out.flush()?;
        return Ok(Outcome::Complete);
    }
    if !path.is_file() {
        // Says what it is, and waits for nobody.
        File::open(path)?;
    }
    if arguments.clear {
        let blocks = journal(path).with_context(|| format!("open {name}"))?;
        edit(arguments)?.close()?;
        let applied = match blocks.filter(|_| matches!(journal(path), Ok(None))) {
            Some(blocks) => {
                format!("; a journal of {} block(s) was applied", numbers::grouped(blocks))
            }
            None => String::new(),
        };
        writeln!(out, "{name}: is not marked as open any more{applied}")?;
        out.flush()?;
        return Ok(Outcome::Complete);
    }
    if let Err(error) = File::open(path)
        && error.is_being_written()
    {
        return Err(error.into());
    }
    let Some(blocks) = journal(path).with_context(|| format!("open {name}"))? else {
        let file = File::open(path)?;
        let members = file.members()?.len() as u64;
        writeln!(
            out,
            "{name}: no journal is left; the file is as its last commit left it, with {} member(s) in its root group; `pumice check` reads the rest",
            numbers::grouped(members)
        )?;
        out.flush()?;
        return Ok(Outcome::Complete);
    };
    edit(arguments)?.close()?;
    ensure!(
        journal(path)?.is_none(),
        "{name}: its journal is not complete, so its commit had not begun: the file is as the one before left it"
    );
    writeln!(out, "{name}: a journal of {} block(s) was applied", numbers::grouped(blocks))?;
    out.flush()?;
    Ok(Outcome::Complete)
}

/// Opens the file for editing, which finishes its last commit.
fn edit(arguments: &Recover) -> Result<File> {
    Ok(File::options().ignore_mark(arguments.clear).edit(&arguments.file)?)
}

/// The number of blocks in the journal at the end of a file; `None` if there is no journal.
fn journal(path: &Path) -> Result<Option<u64>> {
    let mut file = fs::File::open(path)?;
    let length = file.metadata()?.len();
    if length < TRAILER {
        return Ok(None);
    }
    file.seek(SeekFrom::Start(length - TRAILER))?;
    let mut trailer = [0; TRAILER as usize];
    file.read_exact(&mut trailer)?;
    let (signature, rest) = trailer.split_at(SIGNATURE.len());
    let mut blocks = [0; 8];
    blocks.copy_from_slice(&rest[..8]);
    Ok((signature == SIGNATURE).then(|| u64::from_le_bytes(blocks)))
}
