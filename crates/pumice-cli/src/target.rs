//! Files that commands make, and existing files in their place.
//!
//! Every command that writes asks here. A symbolic link stays, and its target is written. A regular
//! file is replaced only on request, and never if it is read at the same time. Directories,
//! devices, FIFOs and sockets are not replaced; a stream may be written to a FIFO or to a device
//! such as a terminal.

use anyhow::{Context, Result, bail, ensure};
use std::fs::{self, FileType, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The most symbolic links that may lead to a file, as on Linux.
const MAX_LINKS: usize = 40;

/// A file to make: it appears under its name when it is complete.
///
/// Until it is published it has another name; dropped before that, it is removed.
pub(crate) struct Target {
    /// The name that was given.
    pub(crate) path: PathBuf,
    pub(crate) partial: PathBuf,
    /// The target of the name.
    place: PathBuf,
    force: bool,
}

impl Target {
    /// A file that is made of `input`. One that exists is replaced only by `force`.
    pub(crate) fn new(path: &Path, input: &Path, force: bool) -> Result<Self> {
        vacant(path, force)?;
        refuse_input(path, input)?;
        Self::at(path, force)
    }

    /// A file that takes the place of the one that it is made of.
    pub(crate) fn instead_of(input: &Path) -> Result<Self> {
        let there = vacant(input, true)?;
        ensure!(there.is_some(), "{} is no single file; name a second one", input.display());
        Self::at(input, true)
    }

    fn at(path: &Path, force: bool) -> Result<Self> {
        let place = followed(path)?;
        let Some(name) = place.file_name() else {
            bail!("{} is no name for a file", path.display());
        };
        let mut partial = std::ffi::OsString::from(".");
        partial.push(name);
        partial.push(format!(".{}.partial", std::process::id()));
        let partial = place.with_file_name(partial);
        Ok(Self { path: path.to_owned(), partial, place, force })
    }

    /// Gives the file its name, and the rights of the one that it replaces.
    pub(crate) fn publish(self) -> Result<()> {
        if let Some(there) = vacant(&self.path, self.force)? {
            fs::set_permissions(&self.partial, there.permissions())
                .with_context(|| format!("set the rights of {}", self.partial.display()))?;
        }
        fs::rename(&self.partial, &self.place).with_context(|| {
            format!("rename {} to {}", self.partial.display(), self.place.display())
        })
    }

    /// Bytes written so far.
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

/// A file that is written from beginning to end; perhaps a FIFO, or a device such as a terminal.
///
/// A file that exists is emptied only by `force`, and never if it is one of the inputs.
pub(crate) fn stream(path: &Path, inputs: &[&Path], force: bool) -> Result<fs::File> {
    let action = || format!("write {}", path.display());
    let mut options = fs::OpenOptions::new();
    options.write(true);
    if may_stream(path, inputs, force)? == Sink::Stream {
        return options.open(path).with_context(action);
    }
    match force {
        true => options.create(true).truncate(true),
        // Nothing that came meanwhile is harmed.
        false => options.create_new(true),
    };
    options.open(followed(path)?).with_context(action)
}

/// The target of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sink {
    File,
    /// An existing FIFO or device, where nothing is replaced.
    Stream,
}

/// Fails if `stream` would; for commands that have much to do before they write.
pub(crate) fn may_stream(path: &Path, inputs: &[&Path], force: bool) -> Result<Sink> {
    if let Ok(there) = fs::metadata(path)
        && (there.file_type().is_fifo() || there.file_type().is_char_device())
    {
        return Ok(Sink::Stream);
    }
    vacant(path, force)?;
    inputs.iter().try_for_each(|input| refuse_input(path, input))?;
    Ok(Sink::File)
}

/// Fails unless a name is that of a regular file, or of none, so that it may be edited or made.
pub(crate) fn editable(path: &Path) -> Result<()> {
    vacant(path, true).map(drop)
}

/// Fails for an existing file that is not regular: opening it might wait for ever.
pub(crate) fn regular(path: &Path) -> Result<()> {
    let there = fs::metadata(path).ok();
    match there.and_then(|there| irregular(there.file_type())) {
        Some(kind) => bail!("it is {kind}, not a regular file"),
        None => Ok(()),
    }
}

/// Whether two names lead to one file.
pub(crate) fn same_file(one: &Path, other: &Path) -> bool {
    match (fs::metadata(one), fs::metadata(other)) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    }
}

fn refuse_input(path: &Path, input: &Path) -> Result<()> {
    ensure!(!same_file(path, input), "{} is the input", path.display());
    Ok(())
}

/// The target of a name, through symbolic links; the last one may dangle.
fn followed(path: &Path) -> Result<PathBuf> {
    let mut place = path.to_owned();
    for _ in 0..MAX_LINKS {
        // A name at the end of which there is nothing is the place of a new file.
        let Ok(next) = fs::read_link(&place) else { return Ok(place) };
        place = place.parent().unwrap_or(Path::new("")).join(next);
    }
    bail!("{}: its symbolic links lead in a circle", path.display())
}

/// Fails unless a file may be made under a name; returns the file that it would replace.
fn vacant(path: &Path, force: bool) -> Result<Option<Metadata>> {
    let there = match fs::metadata(path) {
        Ok(there) => there,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("look at {}", path.display())),
    };
    if let Some(kind) = irregular(there.file_type()) {
        bail!("{} is {kind}, not a file to write; choose another name", path.display());
    }
    ensure!(force, "{} exists already; --force replaces it", path.display());
    // One that may not be written is not replaced, either.
    fs::OpenOptions::new()
        .write(true)
        .open(path)
        .with_context(|| format!("write {}", path.display()))?;
    Ok(Some(there))
}

/// The kind of a file that is not regular.
fn irregular(kind: FileType) -> Option<&'static str> {
    match kind {
        kind if kind.is_file() => None,
        kind if kind.is_dir() => Some("a directory"),
        kind if kind.is_fifo() => Some("a FIFO"),
        kind if kind.is_socket() => Some("a socket"),
        kind if kind.is_char_device() || kind.is_block_device() => Some("a device"),
        _ => Some("no regular file"),
    }
}
