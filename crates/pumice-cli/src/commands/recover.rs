//! `pumice recover`: what can be done for a file whose writer did not come to its end.
//!
//! There is no journal to replay: Pumice writes none. What is there is told, not more.

use super::{Outcome, output};
use crate::cli::Recover;
use crate::numbers;
use anyhow::{Context, Result};
use pumice::File;
use std::io::Write;

pub(super) fn run(arguments: &Recover) -> Result<Outcome> {
    let path = &arguments.file;
    let name = path.display();
    let length = std::fs::metadata(path).with_context(|| format!("open {name}"))?.len();
    let mut out = output();
    writeln!(out, "{name}: no journal to replay: Pumice writes none, and libhdf5 neither")?;
    match File::open(path).and_then(|file| file.members().map(|members| members.len() as u64)) {
        Ok(members) => {
            writeln!(
                out,
                "{name}: superblock and root group can be read ({} bytes, {} members): the file is as its last flush left it; `pumice check` reads the rest",
                numbers::grouped(length),
                numbers::grouped(members)
            )?;
            out.flush()?;
            Ok(Outcome::Complete)
        }
        Err(error) => {
            writeln!(out, "{name}: {error}")?;
            writeln!(
                out,
                "{name}: `pumice check --repair NEW.h5` copies what can still be read, if the file opens at all"
            )?;
            out.flush()?;
            Ok(Outcome::Incomplete)
        }
    }
}
