//! The output of differences: a header before the first one, then a line for each.

use super::options::Options;
use super::types::dimensions;
use crate::cells;
use std::fmt::Write as _;
use std::io::{self, Write};

/// The differences of one pair of arrays.
pub(super) struct Report<'a> {
    out: &'a mut dyn Write,
    pub(super) options: &'a Options,
    /// Names of the two arrays.
    pub(super) names: [String; 2],
    dims: Vec<u64>,
    /// The extent that places are counted in, if only a part is compared.
    began: bool,
    /// Whether it is one of several reports that are joined.
    part: bool,
    relative: Option<bool>,
    place: Vec<u64>,
    /// Bytes of lines that were told.
    told: usize,
}

/// The output of a report on a part.
pub(super) struct Told {
    pub(super) text: Vec<u8>,
    /// Whether the first difference was printed with a relative one; `None` without differences.
    pub(super) relative: Option<bool>,
}

impl<'a> Report<'a> {
    pub(super) fn new(
        out: &'a mut dyn Write,
        options: &'a Options,
        names: [String; 2],
        dims: &[u64],
    ) -> Self {
        let (dims, place) = (dims.to_vec(), Vec::new());
        Self {
            out,
            options,
            names,
            dims,
            began: false,
            part: false,
            relative: None,
            place,
            told: 0,
        }
    }

    /// A report on a part of the arrays, whose lines are joined later; without a header.
    pub(super) fn of_part(
        out: &'a mut dyn Write,
        options: &'a Options,
        names: [String; 2],
        dims: &[u64],
    ) -> Self {
        Self { part: true, ..Self::new(out, options, names, dims) }
    }

    /// The parameters for a report on a part.
    pub(super) fn parts(&self) -> (&'a Options, &[String; 2], &[u64]) {
        (self.options, &self.names, &self.dims)
    }

    /// Whether the first difference, if there was one, was printed with a relative one.
    pub(super) fn relative(&self) -> Option<bool> {
        self.relative
    }

    /// The number of bytes printed, without the header.
    pub(super) fn told(&self) -> usize {
        self.told
    }

    /// Whether the header was printed.
    pub(super) fn began(&self) -> bool {
        self.began
    }

    /// Continues behind a header that was printed already.
    pub(super) fn behind_header(mut self, told: bool) -> Self {
        self.began = told;
        self
    }

    /// Adds the output of a part.
    pub(super) fn append(&mut self, told: &Told) -> io::Result<()> {
        if let Some(relative) = told.relative
            && !self.began
        {
            self.began = true;
            self.header(relative)?;
        }
        self.out.write_all(&told.text)
    }

    /// Whether differences are printed one by one.
    pub(super) fn listens(&self) -> bool {
        self.options.shows_values()
    }

    /// Prints a difference at the cell `linear`. `character`: its index in a text. `relative`:
    /// whether a relative difference is printed.
    pub(super) fn tell(
        &mut self,
        linear: u64,
        character: Option<usize>,
        relative: bool,
        text: &str,
    ) -> io::Result<()> {
        if !self.options.shows_values() {
            return Ok(());
        }
        if !self.began {
            (self.began, self.relative) = (true, Some(relative));
            if !self.part {
                self.header(relative)?;
            }
        }
        let mut line = String::new();
        if self.dims.is_empty() {
            match character {
                Some(character) => write!(line, "[ {character}]"),
                None => write!(line, "      "),
            }
            .map_err(io::Error::other)?;
        } else {
            cells::coordinates(linear, &self.dims, &mut self.place);
            line.push_str("[ ");
            for coordinate in &self.place {
                write!(line, "{coordinate} ").map_err(io::Error::other)?;
            }
            line.push(']');
        }
        writeln!(line, "          {text}").map_err(io::Error::other)?;
        self.told += line.len();
        self.out.write_all(line.as_bytes())
    }

    fn header(&mut self, relative: bool) -> io::Result<()> {
        let dims = dimensions(&self.dims);
        writeln!(self.out, "{:<16}{dims}{:11}{dims}", "size:", "")?;
        let [first, second] = &self.names;
        if relative {
            writeln!(
                self.out,
                "{:<15} {first:<15} {second:<15} {:<15} {:<15}",
                "position", "difference", "relative"
            )?;
            return writeln!(self.out, "{:-<72}", "");
        }
        writeln!(self.out, "{:<15} {first:<15} {second:<15} {:<20}", "position", "difference")?;
        writeln!(self.out, "{:-<60}", "")
    }
}
