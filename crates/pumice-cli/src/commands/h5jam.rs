//! h5jam and h5unjam: put a user block before an HDF5 file, or take it away.
//!
//! The HDF5 part is moved unchanged. Its superblock may then state another address than its own;
//! readers go by the place where it is, as libhdf5 does. A new file gets its name when it is
//! complete.

use super::{Outcome, answered, understood};
use crate::flags::{self, Flag, Takes};
use crate::target::{self, Target};
use anyhow::{Context, Result, bail, ensure};
use pumice::File;
use std::fs;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// The signature of an HDF5 file behind its user block.
const SIGNATURE: &[u8] = b"\x89HDF\r\n\x1a\n";
/// The smallest user block.
const SMALLEST: u64 = 512;

const HELP: Flag = Flag::new('h', "help", Takes::Nothing, "Print this help");
const VERSION: Flag = Flag::new('V', "version", Takes::Nothing, "Print the version");

const JAM: &[Flag] = &[
    HELP,
    VERSION,
    Flag::new('i', "input", Takes::Value("FILE"), "The HDF5 file"),
    Flag::new('u', "user", Takes::Value("FILE"), "The file to put before it"),
    Flag::new(
        'o',
        "output",
        Takes::Value("FILE"),
        "The new file; without it, the HDF5 file changes",
    ),
    Flag::new('1', "clobber", Takes::Nothing, "Drop the user block that is there"),
];

const UNJAM: &[Flag] = &[
    HELP,
    VERSION,
    Flag::new('i', "input", Takes::Value("FILE"), "The HDF5 file"),
    Flag::new('u', "user", Takes::Value("FILE"), "The file for its user block; else it is printed"),
    Flag::new(
        'o',
        "output",
        Takes::Value("FILE"),
        "The new file; without it, the HDF5 file changes",
    ),
    Flag::new('1', "delete", Takes::Nothing, "Drop the user block"),
];

#[derive(Default)]
struct Options {
    help: bool,
    version: bool,
    input: Option<String>,
    user: Option<String>,
    output: Option<String>,
    /// Whether the existing user block is dropped.
    drop: bool,
}

impl Options {
    fn parse(table: &[Flag], arguments: &[String]) -> Result<Self> {
        let mut options = Self::default();
        let parsed = flags::parse(table, arguments)?;
        for (letter, value) in parsed.flags {
            match letter {
                'h' => options.help = true,
                'V' => options.version = true,
                'i' => options.input = value,
                'u' => options.user = value,
                'o' => options.output = value,
                _ => options.drop = true,
            }
        }
        if let Some(word) = parsed.words.first() {
            bail!("{word}: files are named by -i, -u and -o");
        }
        if options.input.is_none() && !options.help && !options.version {
            bail!("missing argument for HDF5 file input");
        }
        Ok(options)
    }

    /// The file that is to be made.
    fn target(&self, input: &Path) -> Result<Target> {
        match &self.output {
            // As h5repack, it replaces what is there.
            Some(output) => Target::new(Path::new(output), input, true),
            None => Target::instead_of(input),
        }
    }
}

/// The HDF5 file, and the bytes of its user block.
fn opened(name: &str) -> Result<(fs::File, u64)> {
    let path = Path::new(name);
    let about = || format!("Input HDF5 file \"{name}\" is not HDF5 format");
    target::regular(path).with_context(about)?;
    let file = File::open(path).with_context(about)?;
    let block = file.info()?.user_block_size;
    file.close()?;
    Ok((fs::File::open(path)?, block))
}

/// Runs h5jam with the words behind its name.
pub(super) fn jam(arguments: &[String], program: &str) -> Result<Outcome> {
    let options = Options::parse(JAM, arguments).and_then(|options| {
        let complete = options.user.is_some() || options.help || options.version;
        ensure!(complete, "missing argument for -u <user_file>");
        Ok(options)
    });
    let options = understood(options, program)?;
    if answered(program, options.help.then_some(jam_help), options.version) {
        return Ok(Outcome::Complete);
    }
    let (input, user) = (options.input.clone().unwrap_or_default(), options.user.clone());
    let user = user.unwrap_or_default();
    let (mut file, old) = opened(&input)?;
    let mut block = user_file(&user)?;
    let length = block.metadata()?.len();
    let target = options.target(Path::new(&input))?;
    let about = || format!("write {}", target.partial.display());
    let mut new = fs::File::create(&target.partial).with_context(about)?;
    // The new block comes behind the old one, or in its place.
    let (begin, size) = match options.drop {
        true => (0, padded(length).max(old)),
        false if old == 0 => (0, padded(length)),
        false => (old, padded(old.saturating_add(padded(length)))),
    };
    pour(&mut file, 0..begin, &mut new, 0).with_context(about)?;
    pour(&mut block, 0..length, &mut new, begin).with_context(about)?;
    pour(&mut file, old..u64::MAX, &mut new, size).with_context(about)?;
    drop(new);
    target.publish()?;
    Ok(Outcome::Complete)
}

/// Runs h5unjam with the words behind its name.
pub(super) fn unjam(arguments: &[String], program: &str) -> Result<Outcome> {
    let options = Options::parse(UNJAM, arguments).and_then(|options| {
        ensure!(!options.drop || options.user.is_none(), "-u and --delete exclude each other");
        Ok(options)
    });
    let options = understood(options, program)?;
    if answered(program, options.help.then_some(unjam_help), options.version) {
        return Ok(Outcome::Complete);
    }
    let input = options.input.clone().unwrap_or_default();
    let (mut file, size) = opened(&input)?;
    if size == 0 {
        crate::failure::warn(&format!("\"{input}\" has no user block: no change to file"));
        return Ok(Outcome::Complete);
    }
    let target = options.target(Path::new(&input))?;
    match &options.user {
        Some(user) => {
            let (path, mut bytes) = (Path::new(user), Vec::new());
            let about = || format!("write {user}");
            (&file).take(size).read_to_end(&mut bytes)?;
            target::stream(path, &[Path::new(&input)], true)?
                .write_all(&bytes)
                .with_context(about)?;
        }
        None if !options.drop => {
            io::copy(&mut (&file).take(size), &mut io::stdout().lock())?;
        }
        None => {}
    }
    let about = || format!("write {}", target.partial.display());
    let mut new = fs::File::create(&target.partial).with_context(about)?;
    pour(&mut file, size..u64::MAX, &mut new, 0).with_context(about)?;
    drop(new);
    target.publish()?;
    Ok(Outcome::Complete)
}

/// The file that becomes a user block: any but one of HDF5, which would be found in its place.
fn user_file(name: &str) -> Result<fs::File> {
    let path = Path::new(name);
    target::regular(path).with_context(|| name.to_owned())?;
    let about = || format!("unable to open user block file \"{name}\"");
    let mut file = fs::File::open(path).with_context(about)?;
    let mut place = 0;
    while file.metadata()?.len() > place {
        let mut start = Vec::new();
        file.seek(SeekFrom::Start(place))?;
        (&file).take(SIGNATURE.len() as u64).read_to_end(&mut start)?;
        ensure!(
            start != SIGNATURE,
            "-u <user_file> cannot be HDF5 file, but it appears to be an HDF5 file"
        );
        place = (2 * place).max(SMALLEST);
    }
    Ok(file)
}

/// The size of a user block for this many bytes: none, 512, 1024, ...
fn padded(length: u64) -> u64 {
    match length {
        0 => 0,
        _ => length.checked_next_power_of_two().unwrap_or(length).max(SMALLEST),
    }
}

/// Copies a range of a file, as far as it exists, to a place in another.
fn pour(
    from: &mut fs::File,
    range: std::ops::Range<u64>,
    to: &mut fs::File,
    place: u64,
) -> io::Result<()> {
    from.seek(SeekFrom::Start(range.start))?;
    to.seek(SeekFrom::Start(place))?;
    io::copy(&mut from.take(range.end - range.start), to)?;
    Ok(())
}

fn jam_help(program: &str) -> String {
    format!(
        "\
Put a file, such as a text, before an HDF5 file: its user block, which HDF5 programs pass over.

Usage: {program} -i FILE -u FILE [-o FILE] [--clobber]

Behind a user block that is there, or with --clobber in its place. Its size becomes 512, 1024, 2048 ...

Options:
{}
Exit codes: 0 success, 1 failure.
",
        flags::describe(JAM)
    )
}

fn unjam_help(program: &str) -> String {
    format!(
        "\
Take away the user block of an HDF5 file.

Usage: {program} -i FILE [-o FILE] [-u FILE | --delete]

Options:
{}
Exit codes: 0 success, 1 failure.
",
        flags::describe(UNJAM)
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn user_blocks_have_the_sizes_that_hdf5_looks_behind() {
        let sizes = [0, 1, 511, 512, 513, 1024, 1025].map(super::padded);
        assert_eq!(sizes, [0, 512, 512, 512, 1024, 1024, 2048]);
    }
}
