//! Pieces of h5dump's data description language: dataspaces, and lines of values.

use crate::cells;
use crate::value::{INDENT, Renderer};
use pumice::types::VarLenKind;
use pumice::{Datatype, Extent, UNLIMITED};
use std::fmt::Write as _;
use std::io::{self, Write};

/// How lines of values look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineStyle {
    /// Columns of a line.
    pub(crate) columns: usize,
    /// Whether lines begin with coordinates.
    pub(crate) coordinates: bool,
    /// Whether each element has a line of its own.
    pub(crate) apart: bool,
}

impl Default for LineStyle {
    fn default() -> Self {
        Self { columns: 80, coordinates: true, apart: false }
    }
}

/// Bytes of an element as libhdf5 counts them: a text of variable length is a pointer to it.
pub(crate) fn memory_size(datatype: &Datatype) -> u64 {
    fn less(datatype: &Datatype) -> u64 {
        match datatype {
            Datatype::VarLen(varlen) if varlen.kind != VarLenKind::Sequence => {
                (datatype.size() as u64).saturating_sub(8)
            }
            Datatype::Compound(compound) => {
                compound.members.iter().map(|member| less(&member.datatype)).sum()
            }
            Datatype::Array(array) => {
                let count = array
                    .dims
                    .iter()
                    .fold(1u64, |count, side| count.saturating_mul(u64::from(*side)));
                less(&array.base).saturating_mul(count)
            }
            _ => 0,
        }
    }
    (datatype.size() as u64).saturating_sub(less(datatype))
}

/// A dataspace as h5dump writes it.
pub(crate) fn dataspace(extent: &Extent) -> String {
    let list = |dims: &[u64]| {
        let dims = dims.iter().map(|&dim| match dim {
            UNLIMITED => "H5S_UNLIMITED".to_owned(),
            dim => dim.to_string(),
        });
        dims.collect::<Vec<_>>().join(", ")
    };
    match extent {
        Extent::Null => "NULL".into(),
        Extent::Scalar => "SCALAR".into(),
        extent => {
            format!("SIMPLE {{ ( {} ) / ( {} ) }}", list(extent.dims()), list(extent.max_dims()))
        }
    }
}

/// Fills lines with elements as h5dump does: each line begins with the coordinates of its first
/// element; a comma follows all elements but the last.
///
/// An element waits until it is known whether another follows.
pub(crate) struct DataLines<'a, W> {
    out: &'a mut W,
    style: LineStyle,
    renderer: &'a Renderer,
    level: usize,
    /// h5dump's idea of the current column; 0 before the first element.
    column: usize,
    /// The waiting element's text; empty if there is none.
    text: String,
    coordinates: Vec<u64>,
    /// The waiting element's place in an array of `dims`, if its coordinates are not known yet.
    linear: Option<u64>,
    dims: Vec<u64>,
    new_line: bool,
    prefix: String,
}

impl<'a, W: Write> DataLines<'a, W> {
    /// Lines whose coordinates begin at column `indent`.
    pub(crate) fn new(
        out: &'a mut W,
        renderer: &'a Renderer,
        indent: usize,
        style: LineStyle,
    ) -> Self {
        Self {
            out,
            style,
            renderer,
            // h5dump counts one level more than it indents, also when it measures lines.
            level: indent / INDENT + 1,
            column: 0,
            text: String::new(),
            coordinates: Vec::new(),
            linear: None,
            dims: Vec::new(),
            new_line: true,
            prefix: String::new(),
        }
    }

    /// Places of elements that are told by number are those of an array of this shape.
    pub(crate) fn in_array(mut self, dims: &[u64]) -> Self {
        self.dims = dims.to_vec();
        self
    }

    /// Adds the element that is `linear` in the order of rows. Its coordinates are made only if they
    /// are printed.
    pub(crate) fn push_cell(
        &mut self,
        linear: u64,
        new_line: bool,
        element: &[u8],
        heap: &[u8],
    ) -> io::Result<()> {
        if !self.text.is_empty() {
            self.text.push(',');
            self.write()?;
        }
        self.renderer.push_lines(&mut self.text, element, heap, self.level);
        self.linear = Some(linear);
        self.new_line = new_line;
        Ok(())
    }

    /// Adds an element. It begins a line if `new_line` says so or if it does not fit.
    pub(crate) fn push(
        &mut self,
        coordinates: &[u64],
        new_line: bool,
        element: &[u8],
        heap: &[u8],
    ) -> io::Result<()> {
        if !self.text.is_empty() {
            self.text.push(',');
            self.write()?;
        }
        self.renderer.push_lines(&mut self.text, element, heap, self.level);
        self.linear = None;
        self.coordinates.clear();
        self.coordinates.extend_from_slice(coordinates);
        self.new_line = new_line;
        Ok(())
    }

    /// Writes what waits, without a comma behind it.
    pub(crate) fn interrupt(&mut self) -> io::Result<()> {
        if self.text.is_empty() { Ok(()) } else { self.write() }
    }

    /// Writes what waits and ends the last line.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.interrupt()?;
        if self.column > 0 { self.out.write_all(b"\n") } else { Ok(()) }
    }

    fn write(&mut self) -> io::Result<()> {
        let wide = self.column + self.text.len() + 1 > self.style.columns;
        if self.new_line || wide || self.column == 0 || self.style.apart {
            self.begin_line()?;
        } else {
            self.out.write_all(b" ")?;
            self.column += 1;
        }
        self.out.write_all(self.text.as_bytes())?;
        self.column += self.text.len();
        self.text.clear();
        Ok(())
    }

    fn begin_line(&mut self) -> io::Result<()> {
        if self.column > 0 {
            self.out.write_all(b"\n")?;
        }
        self.prefix.clear();
        if !self.style.coordinates {
            self.column = self.level * INDENT;
            return write!(self.out, "{:1$}", "", self.column);
        }
        if let Some(linear) = self.linear {
            match self.dims.is_empty() {
                true => self.coordinates.splice(.., [0]).for_each(drop),
                false => cells::coordinates(linear, &self.dims, &mut self.coordinates),
            }
        }
        for (axis, coordinate) in self.coordinates.iter().enumerate() {
            let before = if axis == 0 { "(" } else { "," };
            // Writing to a string does not fail.
            let _ = write!(self.prefix, "{before}{coordinate}");
        }
        self.prefix.push_str("): ");
        write!(self.out, "{:1$}{2}", "", (self.level - 1) * INDENT, self.prefix)?;
        self.column = self.prefix.len() + self.level * INDENT;
        Ok(())
    }
}

/// Prints bytes as characters, as `h5dump --string` does: lines in quotes, a new one for each row.
pub(crate) struct CharacterLines<'a, W> {
    out: &'a mut W,
    renderer: &'a Renderer,
    columns: usize,
    indent: usize,
    /// h5dump's idea of the current column; 0 before the first character.
    column: usize,
    text: String,
}

impl<'a, W: Write> CharacterLines<'a, W> {
    /// Lines that begin at column `indent`.
    pub(crate) fn new(
        out: &'a mut W,
        renderer: &'a Renderer,
        indent: usize,
        columns: usize,
    ) -> Self {
        Self { out, renderer, columns, indent, column: 0, text: String::new() }
    }

    pub(crate) fn push(&mut self, new_line: bool, byte: &[u8]) -> io::Result<()> {
        self.text.clear();
        self.renderer.push_inline(&mut self.text, byte, &[]);
        let wide = self.column + self.text.len() + 1 > self.columns;
        if new_line || wide || self.column == 0 {
            let end = if self.column > 0 { "\"\n" } else { "" };
            write!(self.out, "{end}{:1$}\"", "", self.indent)?;
            self.column = self.indent + INDENT + 1;
        }
        self.column += self.text.len();
        self.out.write_all(self.text.as_bytes())
    }

    /// Ends the last line.
    pub(crate) fn finish(self) -> io::Result<()> {
        if self.column > 0 { self.out.write_all(b"\"\n") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dataspaces_are_named_as_in_h5dump() {
        let growing = Extent::with_max(&[2, 3], &[UNLIMITED, 3]).unwrap();
        assert_eq!(dataspace(&growing), "SIMPLE { ( 2, 3 ) / ( H5S_UNLIMITED, 3 ) }");
        assert_eq!(dataspace(&Extent::Scalar), "SCALAR");
        assert_eq!(dataspace(&Extent::Null), "NULL");
    }

    #[test]
    fn lines_break_where_they_are_full_and_where_rows_end() {
        let renderer = Renderer::new(&Datatype::u16_le()).unwrap();
        let mut out = Vec::new();
        let mut lines = DataLines::new(&mut out, &renderer, 3, LineStyle::default());
        for index in 0..15u16 {
            let element = (60_000 + index).to_le_bytes();
            lines.push(&[0, u64::from(index)], index == 12, &element, &[]).unwrap();
        }
        lines.finish().unwrap();
        let expected = "   (0,0): 60000, 60001, 60002, 60003, 60004, 60005, 60006, 60007, 60008,\n   \
                        (0,9): 60009, 60010, 60011,\n   (0,12): 60012, 60013, 60014\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
