//! h5clear: removes marks of a killed program from a file's superblock, and prints or sets the end
//! of the file.
//!
//! The superblock is changed byte by byte, because nothing opens a file that is marked as open, or
//! that ends elsewhere than it states.

use super::{Outcome, answered, understood};
use crate::failure;
use crate::flags::{self, Flag, Takes};
use crate::target;
use anyhow::{Context, Result, bail, ensure};
use pumice::{ErrorKind, File, PlaceKind};
use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

const FLAGS: &[Flag] = &[
    Flag::new('h', "help", Takes::Nothing, "Print this help"),
    Flag::new('V', "version", Takes::Nothing, "Print the version"),
    Flag::new('s', "status", Takes::Nothing, "Remove the mark of a file that is open for writing"),
    Flag::new('m', "image", Takes::Nothing, "Remove the image of a metadata cache"),
    Flag::new(
        '1',
        "filesize",
        Takes::Nothing,
        "Print where the file should end, and where it does",
    ),
    Flag::new(
        '2',
        "increment",
        Takes::Attached("C"),
        "Let the file end C bytes (1 MiB) behind the later\nof the two",
    ),
];

/// The default growth of a file.
const INCREMENT: u64 = 1 << 20;
const SIGNATURE: &[u8; 8] = b"\x89HDF\r\n\x1a\n";
/// The longest superblock that is looked at: addresses of eight bytes.
const LONGEST: usize = 64;

#[derive(Default)]
struct Options {
    help: bool,
    version: bool,
    status: bool,
    image: bool,
    tell: bool,
    increment: Option<u64>,
    file: String,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut options = Self::default();
        let parsed = flags::parse(FLAGS, arguments)?;
        for (letter, value) in parsed.flags {
            match (letter, value) {
                ('h', _) => options.help = true,
                ('V', _) => options.version = true,
                ('s', _) => options.status = true,
                ('m', _) => options.image = true,
                ('1', _) => options.tell = true,
                (_, None) => options.increment = Some(INCREMENT),
                (_, Some(text)) => {
                    let bytes = text.parse().ok();
                    let wrong = || format!("--increment={text}: not a number of bytes");
                    options.increment = Some(bytes.with_context(wrong)?);
                }
            }
        }
        if options.help || options.version {
            return Ok(options);
        }
        let changes = options.status || options.image || options.increment.is_some();
        ensure!(!options.tell || !changes, "Cannot combine --filesize with other options");
        options.file = parsed.words.into_iter().next().context("missing file name")?;
        ensure!(options.tell || changes, "No option specified");
        Ok(options)
    }
}

/// Runs with the words behind the command's name.
pub(super) fn run(arguments: &[String], program: &str) -> Result<Outcome> {
    let options = understood(Options::parse(arguments), program)?;
    if answered(program, options.help.then_some(help), options.version) {
        return Ok(Outcome::Complete);
    }
    let path = Path::new(&options.file);
    target::regular(path).with_context(|| options.file.clone())?;
    let mut superblock = Superblock::read(path).with_context(|| options.file.clone())?;
    not_a_part(path).with_context(|| options.file.clone())?;
    let end = fs::metadata(path)?.len();
    ensure!(
        options.status || !superblock.is_marked(),
        "{}: it is marked as open for writing; -s removes the mark",
        options.file
    );
    if options.tell {
        println!("EOA is {}; EOF is {end} ", superblock.end());
        return Ok(Outcome::Complete);
    }
    if options.status {
        superblock.clear_mark();
    }
    if let Some(bytes) = options.increment {
        let new = superblock.end().max(end).checked_add(bytes);
        let new = new.filter(|&new| i64::try_from(new).is_ok()).context("no file is so long")?;
        superblock.set_end(new)?;
    }
    superblock.write(path).with_context(|| options.file.clone())?;
    if options.image {
        remove_image(path)?;
    }
    Ok(Outcome::Complete)
}

/// Fails if a file is one of several that are one, which ends elsewhere. A damaged file may be
/// cleared.
fn not_a_part(path: &Path) -> Result<()> {
    match File::open(path) {
        Err(error) if error.kind() == ErrorKind::Invalid => Err(error.into()),
        _ => Ok(()),
    }
}

/// Removes the image of a metadata cache, as the first change of a file does.
fn remove_image(path: &Path) -> Result<()> {
    let file = File::open(path)?;
    let has = file.places()?.iter().any(|place| place.kind == PlaceKind::CacheImage);
    drop(file);
    if !has {
        failure::warn("No cache image in the file");
        return Ok(());
    }
    Ok(File::edit(path)?.close()?)
}

/// The beginning of a file's metadata.
struct Superblock {
    /// The offset of the superblock, behind the user block.
    at: u64,
    bytes: Vec<u8>,
    version: u8,
    /// Bytes of an address.
    width: usize,
    /// The offset of the field with the file's end.
    end: usize,
    /// The offset and length of the flags.
    flags: (usize, usize),
    /// The offset of the checksum, if there is one.
    checksum: Option<usize>,
    /// The length that the file is to have.
    length: Option<u64>,
}

impl Superblock {
    fn read(path: &Path) -> Result<Self> {
        let mut file = fs::File::open(path)?;
        let length = file.metadata()?.len();
        let mut at = 0;
        loop {
            ensure!(at < length, "it is no HDF5 file");
            file.seek(SeekFrom::Start(at))?;
            let mut bytes = Vec::new();
            Read::by_ref(&mut file).take(LONGEST as u64).read_to_end(&mut bytes)?;
            if bytes.starts_with(SIGNATURE) {
                return Self::decode(at, bytes);
            }
            at = if at == 0 { 512 } else { at * 2 };
        }
    }

    fn decode(at: u64, bytes: Vec<u8>) -> Result<Self> {
        let byte = |at: usize| bytes.get(at).copied().context("its superblock is cut off");
        let version = byte(8)?;
        let width = usize::from(byte(if version < 2 { 13 } else { 9 })?);
        ensure!(matches!(width, 2 | 4 | 8), "addresses of {width} bytes are not known");
        let (end, flags, checksum) = match version {
            0 => (24 + 2 * width, (20, 4), None),
            1 => (28 + 2 * width, (20, 4), None),
            2 | 3 => (12 + 2 * width, (11, 1), Some(12 + 4 * width)),
            _ => bail!("a superblock of version {version} is not known"),
        };
        let last = checksum.map_or(end + width, |checksum| checksum + 4);
        ensure!(bytes.len() >= last, "its superblock is cut off");
        Ok(Self { at, bytes, version, width, end, flags, checksum, length: None })
    }

    /// The file's end as the superblock states it.
    fn end(&self) -> u64 {
        let mut address = [0; 8];
        address[..self.width].copy_from_slice(&self.bytes[self.end..self.end + self.width]);
        u64::from_le_bytes(address)
    }

    fn set_end(&mut self, address: u64) -> Result<()> {
        let bytes = address.to_le_bytes();
        let (kept, lost) = bytes.split_at(self.width);
        ensure!(lost.iter().all(|&byte| byte == 0), "the file's addresses are too short for that");
        self.bytes[self.end..self.end + self.width].copy_from_slice(kept);
        self.length = Some(address);
        Ok(())
    }

    /// Whether a program has the file open for writing, or had when it was killed.
    fn is_marked(&self) -> bool {
        self.version == 3 && self.bytes[self.flags.0] != 0
    }

    fn clear_mark(&mut self) {
        let (at, length) = self.flags;
        self.bytes[at..at + length].fill(0);
    }

    fn write(&mut self, path: &Path) -> Result<()> {
        if let Some(at) = self.checksum {
            let sum = pumice_bytes::lookup3(&self.bytes[..at]);
            self.bytes[at..at + 4].copy_from_slice(&sum.to_le_bytes());
        }
        let mut file = fs::OpenOptions::new().write(true).open(path)?;
        file.seek(SeekFrom::Start(self.at))?;
        file.write_all(&self.bytes)?;
        if let Some(length) = self.length {
            file.set_len(length)?;
        }
        Ok(file.sync_all()?)
    }
}

fn help(program: &str) -> String {
    format!(
        "\
Remove what a program that was killed left in a file, and tell or set where the file ends.

Usage: {program} [OPTIONS] FILE

No other program may have the file open. Nothing is repaired: `pumice check` tells what is wrong with a
file, and `pumice check --repair` copies what is sound.

Options:
{}
Examples:
  {program} -s run.h5                 let others open a file whose writer was killed
  {program} -m run.h5                 without the image of a metadata cache
  {program} --filesize run.h5         where it should end, and where it does
  {program} --increment=512 run.h5    let it end there, with 512 bytes to spare

Exit codes: 0 success, 1 failure.
",
        flags::describe(FLAGS)
    )
}
