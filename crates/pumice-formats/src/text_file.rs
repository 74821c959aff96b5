//! Text files, plain or packed by gzip, to read and to write.

use super::Output;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// A file, with an error that names it.
pub(super) fn open_file(path: &Path) -> Result<fs::File> {
    let action = || format!("open {}", path.display());
    let file = fs::File::open(path).with_context(action)?;
    ensure!(!file.metadata().with_context(action)?.is_dir(), "{} is a folder", path.display());
    Ok(file)
}

/// A text file that is being written, packed if its name ends in `.gz`.
pub(super) enum Packing {
    Plain(BufWriter<fs::File>),
    Gzip(flate2::write::GzEncoder<BufWriter<fs::File>>),
}

/// The file to write.
pub(super) fn packing(output: &Output<'_>) -> Result<Packing> {
    let action = || format!("create {}", output.path.display());
    let file = fs::File::create(output.path).with_context(action)?;
    let file = BufWriter::with_capacity(256 << 10, file);
    let packed = output.final_path.extension().is_some_and(|ending| ending == "gz");
    Ok(match packed {
        true => Packing::Gzip(flate2::write::GzEncoder::new(file, flate2::Compression::default())),
        false => Packing::Plain(file),
    })
}

impl Packing {
    pub(super) fn finish(self) -> Result<()> {
        match self {
            Self::Plain(mut file) => file.flush()?,
            Self::Gzip(packed) => packed.finish()?.flush()?,
        }
        Ok(())
    }
}

impl Write for Packing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(file) => file.write(bytes),
            Self::Gzip(packed) => packed.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.flush(),
            Self::Gzip(packed) => packed.flush(),
        }
    }
}
