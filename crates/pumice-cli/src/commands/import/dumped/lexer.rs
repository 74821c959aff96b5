//! The words of h5dump's output, line by line.
//!
//! Coordinates such as `(0,3):` at the beginning of lines are skipped. A text ends with a quote
//! followed by something other than text: by default, h5dump does not escape quotes inside.

use anyhow::{Context, Result, bail};
use std::io::BufRead;

/// A word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// Letters, digits and signs without a gap.
    Word(String),
    /// The text between quotes.
    Text(Vec<u8>),
    /// One of `{ } ( ) [ ] , ;`.
    Mark(u8),
}

/// Reads words.
pub(super) struct Lexer<'a> {
    input: Box<dyn BufRead + 'a>,
    line: Vec<u8>,
    at: usize,
    number: u64,
    /// The column where elements begin.
    indent: usize,
    peeked: Option<Token>,
    /// Whether elements are read: texts among these may have quotes inside.
    pub(super) in_data: bool,
    /// Whether coordinates are read: every line of elements begins with some.
    pub(super) in_places: bool,
    /// The position that the present line began with, until it is taken.
    place: Option<Vec<u64>>,
    /// The name of a file that has values alone, without braces around them.
    bare: Option<String>,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(input: Box<dyn BufRead + 'a>) -> Self {
        Self {
            input,
            line: Vec::new(),
            at: 0,
            number: 0,
            indent: 0,
            peeked: None,
            in_data: false,
            in_places: false,
            place: None,
            bare: None,
        }
    }

    /// Reads a file that has values alone.
    pub(super) fn bare(name: String, input: Box<dyn BufRead + 'a>) -> Self {
        Self { bare: Some(name), in_data: true, in_places: true, ..Self::new(input) }
    }

    /// The name of the file, if it has values alone.
    pub(super) fn bare_name(&self) -> Option<&str> {
        self.bare.as_deref()
    }

    /// Whether no more values follow; skips the brace behind them.
    pub(super) fn data_ends(&mut self) -> Result<bool> {
        match self.bare {
            Some(_) => Ok(self.peek()?.is_none()),
            None => self.passes(b'}'),
        }
    }

    /// The number of the line that was read last.
    pub(super) fn line(&self) -> u64 {
        self.number
    }

    /// The next word; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<Token>> {
        if let Some(token) = self.peeked.take() {
            return Ok(Some(token));
        }
        loop {
            while self.line.get(self.at).is_some_and(u8::is_ascii_whitespace) {
                self.at += 1;
            }
            let Some(&first) = self.line.get(self.at) else {
                if !self.read_line()? {
                    return Ok(None);
                }
                continue;
            };
            self.at += 1;
            return Ok(Some(match first {
                b'{' | b'}' | b'(' | b')' | b'[' | b']' | b',' | b';' => Token::Mark(first),
                b'"' => Token::Text(self.text()?),
                b'\'' => Token::Text(self.counted()?),
                _ => Token::Word(self.word()),
            }));
        }
    }

    /// The next word, which stays the next one.
    pub(super) fn peek(&mut self) -> Result<Option<&Token>> {
        if self.peeked.is_none() {
            self.peeked = self.next()?;
        }
        Ok(self.peeked.as_ref())
    }

    /// The next word; there must be one.
    pub(super) fn take(&mut self) -> Result<Token> {
        self.next()?.context("the text ends too early")
    }

    /// Passes over a mark; anything else is an error.
    pub(super) fn expect(&mut self, mark: u8) -> Result<()> {
        match self.take()? {
            Token::Mark(found) if found == mark => Ok(()),
            other => bail!("expected {:?}, found {other:?}", char::from(mark)),
        }
    }

    /// Passes over a mark if it is the next word.
    pub(super) fn passes(&mut self, mark: u8) -> Result<bool> {
        let is_it = self.peek()? == Some(&Token::Mark(mark));
        if is_it {
            self.peeked = None;
        }
        Ok(is_it)
    }

    /// A word, not text and not a mark.
    pub(super) fn name(&mut self) -> Result<String> {
        match self.take()? {
            Token::Word(word) => Ok(word),
            other => bail!("expected a word, found {other:?}"),
        }
    }

    /// A text in quotes as UTF-8.
    pub(super) fn quoted(&mut self) -> Result<String> {
        match self.take()? {
            Token::Text(text) => Ok(String::from_utf8_lossy(&text).into_owned()),
            other => bail!("expected a text in quotes, found {other:?}"),
        }
    }

    /// The position of the next word, if a line begins with it.
    pub(super) fn take_place(&mut self) -> Result<Option<Vec<u64>>> {
        self.peek()?;
        Ok(self.place.take())
    }

    /// Passes over everything up to the end of the braces that were opened.
    pub(super) fn skip_block(&mut self) -> Result<()> {
        let mut depth = 1;
        while depth > 0 {
            match self.take()? {
                Token::Mark(b'{') => depth += 1,
                Token::Mark(b'}') => depth -= 1,
                _ => {}
            }
        }
        Ok(())
    }

    fn read_line(&mut self) -> Result<bool> {
        self.line.clear();
        self.at = 0;
        self.number += 1;
        if self.input.read_until(b'\n', &mut self.line)? == 0 {
            return Ok(false);
        }
        self.at = position_mark(&self.line, self.in_places);
        self.place = self.in_places.then(|| position(&self.line[..self.at])).flatten();
        self.indent = match self.at {
            0 => self.line.iter().take_while(|byte| **byte == b' ').count(),
            behind_mark => behind_mark + 1,
        };
        Ok(true)
    }

    fn word(&mut self) -> String {
        let start = self.at - 1;
        let ends = |byte: &u8| byte.is_ascii_whitespace() || b"{}()[],;\"".contains(byte);
        let length = self.line[self.at..].iter().position(ends);
        self.at = length.map_or(self.line.len(), |length| self.at + length);
        String::from_utf8_lossy(&self.line[start..self.at]).into_owned()
    }

    /// The rest of a text whose first quote was read.
    fn text(&mut self) -> Result<Vec<u8>> {
        let mut text = Vec::new();
        loop {
            let Some(&byte) = self.line.get(self.at) else {
                // A text that has line breaks.
                let before = self.number;
                self.line.clear();
                self.at = 0;
                self.number += 1;
                if self.input.read_until(b'\n', &mut self.line)? == 0 {
                    bail!("a text that begins before line {before} does not end");
                }
                // h5dump puts them below the first element of their line.
                let blank = self.line.iter().take_while(|byte| **byte == b' ').count();
                self.at = blank.min(self.indent);
                continue;
            };
            self.at += 1;
            match byte {
                b'"' if self.text_ends() => return Ok(text),
                b'\\' => text.push(self.escaped()),
                byte => text.push(byte),
            }
        }
    }

    /// Whether the quote that was just read is the last of its text.
    fn text_ends(&self) -> bool {
        let rest = &self.line[self.at..];
        let followed = rest.trim_ascii_start().first();
        if !self.in_data {
            // Names of objects stand before braces, datatypes, numbers and ends of lines.
            return followed.is_none_or(|byte| b"{};,)-0123456789H".contains(byte));
        }
        rest.first() != Some(&b'"') && followed.is_none_or(|byte| b",})]'\"".contains(byte))
    }

    /// The character behind a backslash: three octal digits are a byte, some letters are control
    /// characters.
    fn escaped(&mut self) -> u8 {
        // Bytes above 127, as some releases print them: with their sign.
        if self.line[self.at..].starts_with(b"37777777") {
            self.at += 8;
        }
        let digits = self.line.get(self.at..self.at + 3).unwrap_or_default();
        if digits.len() == 3 && digits.iter().all(|digit| (b'0'..b'8').contains(digit)) {
            let byte = digits.iter().fold(0u32, |byte, digit| byte * 8 + u32::from(digit - b'0'));
            self.at += 3;
            return byte as u8;
        }
        let plain = match self.line.get(self.at) {
            Some(b'"') if !self.line[self.at + 1..].trim_ascii().is_empty() => b'"',
            Some(b'\\') => b'\\',
            _ => return b'\\',
        };
        self.at += 1;
        plain
    }

    /// `'a' repeats 9 times`, behind its first quote: the letter, ten times.
    fn counted(&mut self) -> Result<Vec<u8>> {
        let letter = match self.line.get(self.at) {
            Some(b'\\') => {
                self.at += 1;
                self.escaped()
            }
            Some(&letter) => {
                self.at += 1;
                letter
            }
            None => bail!("a letter that is missing"),
        };
        let rest = String::from_utf8_lossy(&self.line[self.at..]).into_owned();
        let count = rest.strip_prefix("' repeats ").and_then(|rest| rest.split_once(" times"));
        let Some((count, _)) = count else { bail!("expected a letter that repeats") };
        self.at += "' repeats ".len() + count.len() + " times".len();
        let count: usize = count.parse().context("how often a letter repeats")?;
        anyhow::ensure!(count < 1 << 24, "a letter that repeats {count} times");
        Ok(vec![letter; count + 1])
    }
}

/// The numbers of a position.
fn position(mark: &[u8]) -> Option<Vec<u64>> {
    let mark = std::str::from_utf8(mark).ok()?;
    let inside = mark.trim().strip_prefix('(')?.trim_end_matches(':').strip_suffix(')')?;
    inside.split(',').map(|number| number.parse().ok()).collect()
}

/// Behind the mark of a position that a line begins with, if it does. In some lists there is no colon.
fn position_mark(line: &[u8], bare: bool) -> usize {
    let blank = line.len() - line.trim_ascii_start().len();
    let Some(rest) = line[blank..].strip_prefix(b"(") else { return 0 };
    let inside = rest.iter().position(|byte| !byte.is_ascii_digit() && *byte != b',');
    match inside {
        Some(end) if end > 0 && rest[end..].starts_with(b"):") => blank + 1 + end + 2,
        Some(end) if bare && end > 0 && rest[end..].starts_with(b") ") => blank + 1 + end + 1,
        _ => 0,
    }
}
