//! Lines of a text file of any size, with numbers, and the errors that name them.

use std::fmt;
use std::io::{self, BufRead, Read};

/// The longest line that is read. Comments are the longest lines of real files; a file without line
/// ends is no text file.
const MAX_LINE: u64 = 1 << 20;

/// A fault of a file, and its place.
#[derive(Debug)]
pub(crate) struct SyntaxError {
    /// The file's name.
    pub(crate) file: String,
    /// The line, counted from 1.
    pub(crate) line: u64,
    /// What was expected and what was found.
    pub(crate) message: String,
    /// The failure of the reader, if it was one.
    source: Option<io::Error>,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)
    }
}

impl std::error::Error for SyntaxError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}

/// Reads a file line by line into one buffer.
pub(crate) struct Lines<R> {
    input: R,
    file: String,
    number: u64,
    line: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(input: R, file: impl Into<String>) -> Self {
        Self { input, file: file.into(), number: 0, line: Vec::new() }
    }

    /// Reads the next line; false at the end of the file.
    pub(crate) fn advance(&mut self) -> Result<bool, SyntaxError> {
        self.line.clear();
        self.number += 1;
        let mut limited = self.input.by_ref().take(MAX_LINE);
        match limited.read_until(b'\n', &mut self.line) {
            Err(source) => Err(SyntaxError { source: Some(source), ..self.error("read") }),
            Ok(0) => Ok(false),
            Ok(_) if self.line.len() as u64 == MAX_LINE && !self.line.ends_with(b"\n") => {
                Err(self
                    .error(format!("expected a line of text, found more than {MAX_LINE} bytes")))
            }
            Ok(_) => Ok(true),
        }
    }

    /// Reads the next line that is neither blank nor a comment; false at the end of the file.
    pub(crate) fn advance_to_data(&mut self) -> Result<bool, SyntaxError> {
        while self.advance()? {
            match self.words().next() {
                None => {}
                Some(word) if word.starts_with(b"%") => {}
                Some(_) => return Ok(true),
            }
        }
        Ok(false)
    }

    /// The words of the current line. Line ends of every system are white space.
    pub(crate) fn words(&self) -> impl Iterator<Item = &[u8]> {
        self.line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
    }

    /// The current line's bytes.
    pub(crate) fn line(&self) -> &[u8] {
        &self.line
    }

    /// The current line's number.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// An error at the current line.
    pub(crate) fn error(&self, message: impl Into<String>) -> SyntaxError {
        self.error_at(self.number, message)
    }

    /// An error at another line.
    pub(crate) fn error_at(&self, line: u64, message: impl Into<String>) -> SyntaxError {
        SyntaxError { file: self.file.clone(), line, message: message.into(), source: None }
    }
}

/// Text of unknown origin for an error message: printable and short.
pub(crate) fn quoted(text: &[u8]) -> String {
    const MAX: usize = 40;
    let shown = String::from_utf8_lossy(&text[..text.len().min(MAX)]);
    let more = if text.len() > MAX { "..." } else { "" };
    format!("\"{}{more}\"", shown.trim_end().escape_debug())
}
