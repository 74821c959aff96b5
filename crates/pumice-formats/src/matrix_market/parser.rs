//! The Matrix Market exchange format, read as a stream.
//!
//! A file has a banner (`%%MatrixMarket matrix coordinate real general`, in any case), comments, a
//! line of sizes, and one entry a line. Rows and columns count from 1 in the file, from 0 in
//! [`Entry`]. Blank lines, comments between entries, line ends of any system and Fortran's exponents
//! are accepted; everything else that the format does not allow is an error that names its line. No
//! number of the file is trusted: memory does not depend on sizes that it states.

use super::lines::{Lines, SyntaxError, quoted};
use super::scalar::{self, Scalar};
use crate::Symmetry;
use std::fmt;
use std::io::BufRead;

/// The form of a file's entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listing {
    /// Row, column and value of each entry.
    Coordinate,
    /// Values of all cells, column by column.
    Array,
}

/// The type of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    Real,
    Integer,
    UnsignedInteger,
    Complex,
    Pattern,
}

macro_rules! names {
    ($kind:ident, $what:literal, $($name:literal => $variant:ident),+) => {
        impl $kind {
            const WHAT: &'static str = $what;

            fn named(name: &[u8]) -> Option<Self> {
                $(if name.eq_ignore_ascii_case($name.as_bytes()) { return Some(Self::$variant); })+
                None
            }
        }
    };
}

names! { Listing, "\"coordinate\" or \"array\"", "coordinate" => Coordinate, "array" => Array }
names! { Field, "\"real\", \"integer\", \"unsigned-integer\", \"complex\" or \"pattern\"",
"real" => Real, "double" => Real, "integer" => Integer,
"unsigned-integer" => UnsignedInteger, "complex" => Complex, "pattern" => Pattern }
names! { Symmetry, "\"general\", \"symmetric\", \"skew-symmetric\" or \"hermitian\"",
"general" => General, "symmetric" => Symmetric, "skew-symmetric" => SkewSymmetric,
"hermitian" => Hermitian }

impl fmt::Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Coordinate => "coordinate",
            Self::Array => "array",
        })
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Real => "real",
            Self::Integer => "integer",
            Self::UnsignedInteger => "unsigned-integer",
            Self::Complex => "complex",
            Self::Pattern => "pattern",
        })
    }
}

impl fmt::Display for Symmetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::General => "general",
            Self::Symmetric => "symmetric",
            Self::SkewSymmetric => "skew-symmetric",
            Self::Hermitian => "hermitian",
        })
    }
}

/// The banner and the line of sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) format: Listing,
    pub(crate) field: Field,
    pub(crate) symmetry: Symmetry,
    pub(crate) rows: u64,
    pub(crate) columns: u64,
    /// The number of entries that the file states.
    pub(crate) entries: u64,
}

/// One entry as the file has it, before symmetry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Entry<S> {
    pub(crate) row: u64,
    pub(crate) column: u64,
    pub(crate) value: S,
    /// The line it stands on.
    pub(crate) line: u64,
}

/// A Matrix Market file behind its header.
pub(crate) struct Parser<R> {
    lines: Lines<R>,
    header: Header,
    /// Entries read so far.
    read: u64,
    /// Row and column of the next value of an array.
    place: (u64, u64),
}

impl<R: BufRead> Parser<R> {
    /// Reads banner and sizes. `file` is the name for error messages.
    pub(crate) fn open(input: R, file: &str) -> Result<Self, SyntaxError> {
        let mut lines = Lines::new(input, file);
        let (format, field, symmetry) = banner(&mut lines)?;
        let (rows, columns, stated) = sizes(&mut lines, format)?;
        if symmetry != Symmetry::General && rows != columns {
            return Err(lines.error(format!(
                "expected as many rows as columns in a {symmetry} matrix, found {rows} and {columns}"
            )));
        }
        let entries = match format {
            Listing::Coordinate => Some(stated),
            Listing::Array => array_entries(rows, columns, symmetry),
        };
        let Some(entries) = entries else {
            return Err(lines.error(format!("{rows} x {columns} values are too many")));
        };
        let header = Header { format, field, symmetry, rows, columns, entries };
        let place = (u64::from(symmetry == Symmetry::SkewSymmetric), 0);
        Ok(Self { lines, header, read: 0, place })
    }

    pub(crate) fn header(&self) -> Header {
        self.header
    }

    /// The next entry, `None` behind the last one.
    pub(crate) fn next_entry<S: Scalar>(&mut self) -> Result<Option<Entry<S>>, SyntaxError> {
        let found = self.lines.advance_to_data()?;
        let entries = self.header.entries;
        match (found, self.read < entries) {
            (false, false) => return Ok(None),
            (false, true) => {
                let (read, lines) = (self.read, &self.lines);
                return Err(lines.error(format!(
                    "expected {entries} entries, found the end of the file after {read}"
                )));
            }
            (true, false) => {
                return Err(self.lines.error(format!("expected {entries} entries, found more")));
            }
            (true, true) => {}
        }
        self.read += 1;
        match self.header.format {
            Listing::Coordinate => self.coordinate_entry().map(Some),
            Listing::Array => self.array_entry().map(Some),
        }
    }

    /// An error at a line that was read before.
    pub(crate) fn error_at(&self, line: u64, message: impl Into<String>) -> SyntaxError {
        self.lines.error_at(line, message)
    }

    fn coordinate_entry<S: Scalar>(&self) -> Result<Entry<S>, SyntaxError> {
        let words = self.entry_words::<4>(2 + S::WORDS)?;
        let row = self.index(words[0], "row", self.header.rows)?;
        let column = self.index(words[1], "column", self.header.columns)?;
        let value = self.value::<S>(&words[2..])?;
        Ok(Entry { row, column, value, line: self.lines.number() })
    }

    fn array_entry<S: Scalar>(&mut self) -> Result<Entry<S>, SyntaxError> {
        let words = self.entry_words::<2>(S::WORDS)?;
        let value = self.value::<S>(&words)?;
        let (row, column) = self.place;
        let entry = Entry { row, column, value, line: self.lines.number() };
        let first_row = match self.header.symmetry {
            Symmetry::General => 0,
            Symmetry::Symmetric | Symmetry::Hermitian => column + 1,
            Symmetry::SkewSymmetric => column + 2,
        };
        let below = row + 1 < self.header.rows;
        self.place = if below { (row + 1, column) } else { (first_row, column + 1) };
        Ok(entry)
    }

    /// The words of an entry, `count` of them, in a place for `N`.
    fn entry_words<const N: usize>(&self, count: usize) -> Result<[&[u8]; N], SyntaxError> {
        let mut words = [&[][..]; N];
        let mut found = 0;
        for word in self.lines.words() {
            if let Some(place) = words.get_mut(found) {
                *place = word;
            }
            found += 1;
        }
        if found == count {
            return Ok(words);
        }
        let Header { format, field, .. } = self.header;
        let what = match (format, field) {
            (Listing::Coordinate, Field::Pattern) => "row and column",
            (Listing::Coordinate, Field::Complex) => "row, column and two numbers",
            (Listing::Coordinate, _) => "row, column and value",
            (Listing::Array, Field::Complex) => "two numbers",
            (Listing::Array, _) => "a value",
        };
        Err(self.lines.error(format!("expected {what}, found {}", quoted(self.lines.line()))))
    }

    fn index(&self, word: &[u8], what: &str, length: u64) -> Result<u64, SyntaxError> {
        let index = std::str::from_utf8(word).ok().and_then(|text| text.parse::<u64>().ok());
        match index {
            Some(index) if (1..=length).contains(&index) => Ok(index - 1),
            _ => {
                let found = String::from_utf8_lossy(word);
                let found = if index.is_some() { found.into_owned() } else { quoted(word) };
                Err(self
                    .lines
                    .error(format!("expected a {what} from 1 to {length}, found {found}")))
            }
        }
    }

    fn value<S: Scalar>(&self, words: &[&[u8]]) -> Result<S, SyntaxError> {
        S::parse(words).map_err(|word| self.lines.error(scalar::expected::<S>(word)))
    }
}

fn banner<R: BufRead>(lines: &mut Lines<R>) -> Result<(Listing, Field, Symmetry), SyntaxError> {
    const BANNER: &[u8] = b"%%MatrixMarket";
    lines.advance()?;
    let mut words = lines.words();
    let first = words.next().unwrap_or_default();
    if !first.eq_ignore_ascii_case(BANNER) {
        return Err(lines.error(format!(
            "expected a Matrix Market file, which begins with \"%%MatrixMarket\", found {}",
            quoted(lines.line())
        )));
    }
    let mut word = || words.next().unwrap_or_default();
    let (object, format, field, symmetry) = (word(), word(), word(), word());
    let expected =
        |what: &str, found: &[u8]| lines.error(format!("expected {what}, found {}", quoted(found)));
    if !object.eq_ignore_ascii_case(b"matrix") {
        return Err(expected("\"matrix\"", object));
    }
    let format = Listing::named(format).ok_or_else(|| expected(Listing::WHAT, format))?;
    let field = Field::named(field).ok_or_else(|| expected(Field::WHAT, field))?;
    let symmetry = Symmetry::named(symmetry).ok_or_else(|| expected(Symmetry::WHAT, symmetry))?;
    if let Some(more) = words.next() {
        return Err(expected("the end of the banner", more));
    }
    match (format, field, symmetry) {
        (Listing::Array, Field::Pattern, _) => {
            Err(lines.error("expected values in an array, found a pattern"))
        }
        (_, Field::Pattern, Symmetry::SkewSymmetric | Symmetry::Hermitian) => {
            Err(lines.error(format!("expected values in a {symmetry} matrix, found a pattern")))
        }
        _ => Ok((format, field, symmetry)),
    }
}

/// Rows, columns and, of a coordinate matrix, entries.
fn sizes<R: BufRead>(
    lines: &mut Lines<R>,
    format: Listing,
) -> Result<(u64, u64, u64), SyntaxError> {
    let (count, what) = match format {
        Listing::Coordinate => (3, "rows, columns and entries"),
        Listing::Array => (2, "rows and columns"),
    };
    if !lines.advance_to_data()? {
        return Err(lines.error(format!("expected {what}, found the end of the file")));
    }
    let number = |word: &[u8]| std::str::from_utf8(word).ok()?.parse::<u64>().ok();
    let numbers: Option<Vec<u64>> = lines.words().take(4).map(number).collect();
    match numbers.as_deref() {
        Some(&[rows, columns, entries]) if count == 3 => Ok((rows, columns, entries)),
        Some(&[rows, columns]) if count == 2 => Ok((rows, columns, 0)),
        _ => Err(lines.error(format!("expected {what}, found {}", quoted(lines.line())))),
    }
}

/// The number of values of an array.
fn array_entries(rows: u64, columns: u64, symmetry: Symmetry) -> Option<u64> {
    let all = rows.checked_mul(columns)?;
    match symmetry {
        Symmetry::General => Some(all),
        Symmetry::Symmetric | Symmetry::Hermitian => Some(all.checked_add(rows)? / 2),
        Symmetry::SkewSymmetric => Some((all - rows) / 2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries<S: Scalar>(text: &str) -> Result<Vec<(u64, u64, S)>, SyntaxError> {
        let mut parser = Parser::open(text.as_bytes(), "m.mtx")?;
        let mut entries = Vec::new();
        while let Some(entry) = parser.next_entry::<S>()? {
            entries.push((entry.row, entry.column, entry.value));
        }
        Ok(entries)
    }

    fn error(text: &str) -> String {
        entries::<f64>(text).expect_err(text).to_string()
    }

    #[test]
    fn comments_blank_lines_and_line_ends_do_not_matter() {
        let text = "%%matrixmarket MATRIX Coordinate Real GENERAL \r\n% note\r\n\r\n 2 3 2\r\n\
                    1 1 0.5\r\n%\n\n2 3 -1e2";
        assert_eq!(entries::<f64>(text).unwrap(), [(0, 0, 0.5), (1, 2, -100.0)]);
    }

    #[test]
    fn arrays_run_down_columns() {
        let general = "%%MatrixMarket matrix array integer general\n2 2\n1\n2\n3\n4\n";
        let expected = [(0, 0, 1), (1, 0, 2), (0, 1, 3), (1, 1, 4)];
        assert_eq!(entries::<i64>(general).unwrap(), expected);
        let symmetric = "%%MatrixMarket matrix array integer symmetric\n2 2\n1\n2\n3\n";
        assert_eq!(entries::<i64>(symmetric).unwrap(), [(0, 0, 1), (1, 0, 2), (1, 1, 3)]);
        let skew = "%%MatrixMarket matrix array integer skew-symmetric\n3 3\n1\n2\n3\n";
        assert_eq!(entries::<i64>(skew).unwrap(), [(1, 0, 1), (2, 0, 2), (2, 1, 3)]);
    }

    #[test]
    fn errors_name_the_line_and_what_was_found() {
        let header = "%%MatrixMarket matrix coordinate real general\n";
        let expected = "m.mtx:1: expected a Matrix Market file, which begins with \
                        \"%%MatrixMarket\", found \"\"";
        assert_eq!(error(""), expected);
        for (body, expected) in [
            ("", "m.mtx:2: expected rows, columns and entries, found the end of the file"),
            ("5 5\n", "m.mtx:2: expected rows, columns and entries, found \"5 5\""),
            ("5 5 1\n9 1 1\n", "m.mtx:3: expected a row from 1 to 5, found 9"),
            ("5 5 1\n1 0 1\n", "m.mtx:3: expected a column from 1 to 5, found 0"),
            ("5 5 1\n1 x 1\n", "m.mtx:3: expected a column from 1 to 5, found \"x\""),
            ("5 5 1\n1 1 y\n", "m.mtx:3: expected a number, found \"y\""),
            ("5 5 1\n1 1\n", "m.mtx:3: expected row, column and value, found \"1 1\""),
            (
                "5 5 1\n1 1 1 1 1 1\n",
                "m.mtx:3: expected row, column and value, found \"1 1 1 1 1 1\"",
            ),
            ("5 5 2\n1 1 1\n", "m.mtx:4: expected 2 entries, found the end of the file after 1"),
            ("5 5 1\n1 1 1\n2 2 2\n", "m.mtx:4: expected 1 entries, found more"),
        ] {
            assert_eq!(error(&format!("{header}{body}")), expected);
        }
    }

    #[test]
    fn headers_that_contradict_themselves_are_refused() {
        for (header, sizes) in [
            ("matrix array pattern general", "2 2"),
            ("matrix coordinate pattern skew-symmetric", "2 2 0"),
            ("matrix coordinate real symmetric", "2 3 0"),
            ("vector coordinate real general", "2 2 0"),
            ("matrix coordinate real general extra", "2 2 0"),
            ("matrix array real general", "9999999999 9999999999"),
        ] {
            error(&format!("%%MatrixMarket {header}\n{sizes}\n"));
        }
    }

    #[test]
    fn a_file_without_line_ends_is_refused_early() {
        let error = error(&format!("%%MatrixMarket matrix {}", "x".repeat(3 << 20)));
        assert!(error.contains("expected a line of text"), "{error}");
    }
}
