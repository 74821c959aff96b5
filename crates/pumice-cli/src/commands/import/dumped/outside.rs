//! Values that are in another file than their description: `h5dump -o FILE`, as text or as bytes.

use super::lexer::Lexer;
use crate::formats;
use anyhow::{Context, Result, ensure};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::PathBuf;

/// The bytes of a file that are read to tell text from bytes.
const LOOK: usize = 4096;

/// The source of values.
pub(super) enum Outside<'a> {
    /// Nothing has been read yet.
    Unknown(PathBuf),
    Text(Box<Lexer<'a>>),
    Bytes(Bytes),
}

impl Outside<'_> {
    /// Finds out the kind of file, given how many bytes the first values would take.
    pub(super) fn look(&mut self, bytes: Option<u64>) -> Result<()> {
        let Self::Unknown(path) = self else { return Ok(()) };
        let name = path.display().to_string();
        let file = File::open(&*path).with_context(|| format!("open {name}"))?;
        let length = file.metadata().with_context(|| format!("read {name}"))?.len();
        let mut input = BufReader::with_capacity(256 << 10, file);
        let head = input.fill_buf().with_context(|| format!("read {name}"))?;
        *self = if is_text(&head[..head.len().min(LOOK)], bytes == Some(length)) {
            let input = formats::unpacked(input)?;
            Self::Text(Box::new(Lexer::bare(name, input)))
        } else {
            Self::Bytes(Bytes { name, input, length })
        };
        Ok(())
    }
}

/// Whether a file begins like h5dump's texts. A file of exactly the values' length must also have
/// coordinates at its beginning.
fn is_text(head: &[u8], fits: bool) -> bool {
    let printable = |byte: &u8| matches!(byte, b'\n' | b'\t' | b'\r' | b' '..=b'~' | 0x80..);
    let Some(rest) = head.strip_prefix(b"\n") else { return false };
    let first = rest.trim_ascii_start();
    rest.iter().all(printable) && (!fits || first.starts_with(b"(") || first.starts_with(b"\""))
}

/// Values as bytes.
pub(super) struct Bytes {
    name: String,
    input: BufReader<File>,
    /// The length of the file.
    pub(super) length: u64,
}

impl Bytes {
    /// The next bytes, which must be there.
    pub(super) fn take(&mut self, count: u64, into: &mut Vec<u8>) -> Result<()> {
        let action = || format!("read {}", self.name);
        let found = self.input.by_ref().take(count).read_to_end(into).with_context(action)? as u64;
        let (name, length) = (&self.name, self.length);
        ensure!(
            found == count,
            "{name}: it ends too early: it has {length} bytes, and {} more are needed",
            count - found
        );
        Ok(())
    }

    /// The offset of the next bytes.
    pub(super) fn place(&mut self) -> Result<u64> {
        self.input.stream_position().with_context(|| format!("read {}", self.name))
    }

    /// Moves to the start of values that are not read in order.
    pub(super) fn seek(&mut self, place: u64) -> Result<()> {
        let here = self.place()?;
        // Stays in the buffer where that is possible.
        let step = i128::from(place) - i128::from(here);
        let moved = match i64::try_from(step) {
            Ok(step) => self.input.seek_relative(step),
            Err(_) => self.input.seek(SeekFrom::Start(place)).map(drop),
        };
        moved.with_context(|| format!("read {}", self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_told_from_bytes() {
        assert!(is_text(b"\n   (0,0): 1, 2", false));
        assert!(is_text(b"\n   (0,0): 1, 2", true));
        assert!(is_text(b"\n   \"a\"", true));
        assert!(is_text(b"\n   1, 2", false));
        // Bytes that happen to be letters.
        assert!(!is_text(b"\n   1, 2", true));
        assert!(!is_text(b"abc", true) && !is_text(b"\n\0\0\0", false) && !is_text(b"", false));
    }
}
