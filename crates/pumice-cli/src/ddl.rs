//! Pieces of h5dump's data description language: dataspaces, and lines of values.

use crate::value::{BREAK, INDENT, Renderer};
use crate::{cells, numbers, threads};
use pumice::types::VarLenKind;
use pumice::{Datatype, Extent, UNLIMITED};
use std::io::{self, Write};

/// The style of lines of values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineStyle {
    /// Columns of a line.
    pub(crate) columns: usize,
    /// Whether lines begin with coordinates.
    pub(crate) coordinates: bool,
    /// Whether each element has a line of its own.
    pub(crate) apart: bool,
    /// The text between coordinates and values.
    pub(crate) separator: &'static str,
    /// The text behind all elements but the last.
    pub(crate) comma: &'static str,
    /// How many columns before their level lines without coordinates begin.
    pub(crate) outdent: usize,
    /// How many columns further in lines begin that continue an element.
    pub(crate) hanging: usize,
}

impl Default for LineStyle {
    fn default() -> Self {
        Self {
            columns: 80,
            coordinates: true,
            apart: false,
            separator: ": ",
            comma: ",",
            outdent: 0,
            hanging: 0,
        }
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
    /// Whether the last element was broken into several lines.
    broken: bool,
    /// Whether the last line ends with a line break.
    ended: bool,
    /// Lines on their way out.
    buffer: Vec<u8>,
}

/// The elements that become text at once.
const BATCH: usize = 1 << 17;
/// The bytes of text that are written at once.
const BUFFER: usize = 64 << 10;

/// The elements that become text at once if memory is short.
const FEW: usize = 1 << 8;
/// Bytes that hold the text of almost any number.
const NUMBER: usize = 24;

/// Texts of elements, one behind the other, and where each ends.
#[derive(Default)]
struct Texts {
    text: String,
    ends: Vec<usize>,
}

impl Texts {
    /// The texts of elements, if there is memory for them.
    fn of(renderer: &Renderer, elements: &[u8]) -> Option<Self> {
        let count = elements.len() / renderer.size().max(1);
        let mut texts = Texts::default();
        texts.text.try_reserve_exact(count * NUMBER).ok()?;
        texts.ends.try_reserve_exact(count).ok()?;
        renderer.push_each(&mut texts.text, &mut texts.ends, elements);
        Some(texts)
    }
}

/// The texts of elements, made on all processors, if there is memory for them.
fn render(renderer: &Renderer, elements: &[u8]) -> Option<Vec<Texts>> {
    let size = renderer.size().max(1);
    let share = (elements.len() / size).div_ceil(threads::available()).max(4096) * size;
    let parts = elements.chunks(share).collect();
    threads::for_each_part(parts, |part| Texts::of(renderer, part)).into_iter().collect()
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
            broken: false,
            ended: true,
            buffer: Vec::with_capacity(BUFFER + 1024),
        }
    }

    /// Computes coordinates of numbered elements in an array of this shape.
    pub(crate) fn in_array(mut self, dims: &[u64]) -> Self {
        self.dims = dims.to_vec();
        self
    }

    /// Leaves the end of the last line to the caller.
    pub(crate) fn open_ended(mut self, open: bool) -> Self {
        self.ended = !open;
        self
    }

    /// Adds elements that follow one another in the order of rows, from the one that is `linear` on.
    /// Rows have `row` elements and begin lines.
    pub(crate) fn push_cells(
        &mut self,
        linear: u64,
        row: u64,
        elements: &[u8],
        heap: &[u8],
    ) -> io::Result<()> {
        let size = self.renderer.size().max(1);
        if !self.renderer.is_number() {
            for (index, element) in (linear..).zip(elements.chunks_exact(size)) {
                self.before_next()?;
                self.renderer.push_lines(&mut self.text, element, heap, self.level);
                (self.linear, self.new_line) = (Some(index), index % row == 0);
            }
            return Ok(());
        }
        let mut index = linear;
        for batch in elements.chunks(BATCH * size) {
            let Some(rendered) = render(self.renderer, batch) else {
                for few in batch.chunks(FEW * size) {
                    let mut texts = Texts::default();
                    self.renderer.push_each(&mut texts.text, &mut texts.ends, few);
                    index = self.push_texts(index, row, &texts)?;
                }
                continue;
            };
            for texts in rendered {
                index = self.push_texts(index, row, &texts)?;
            }
        }
        Ok(())
    }

    fn push_texts(&mut self, linear: u64, row: u64, texts: &Texts) -> io::Result<u64> {
        let mut start = 0;
        let mut in_row = linear % row;
        let mut index = linear;
        for &end in &texts.ends {
            self.before_next()?;
            self.text.push_str(&texts.text[start..end]);
            (self.linear, self.new_line) = (Some(index), in_row == 0);
            in_row = if in_row + 1 == row { 0 } else { in_row + 1 };
            start = end;
            index += 1;
        }
        Ok(index)
    }

    /// Writes the waiting element: another one follows.
    fn before_next(&mut self) -> io::Result<()> {
        if self.text.is_empty() {
            return Ok(());
        }
        self.text.push_str(self.style.comma);
        self.write()
    }

    /// Adds an element. It begins a line if `new_line` says so or if it does not fit.
    pub(crate) fn push(
        &mut self,
        coordinates: &[u64],
        new_line: bool,
        element: &[u8],
        heap: &[u8],
    ) -> io::Result<()> {
        self.before_next()?;
        self.renderer.push_lines(&mut self.text, element, heap, self.level);
        self.linear = None;
        self.coordinates.clear();
        self.coordinates.extend_from_slice(coordinates);
        self.new_line = new_line;
        Ok(())
    }

    /// Writes the waiting element, without a comma behind it.
    pub(crate) fn interrupt(&mut self) -> io::Result<()> {
        if self.text.is_empty() { Ok(()) } else { self.write() }
    }

    /// Writes the waiting element and ends the last line.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.interrupt()?;
        if self.column > 0 && self.ended {
            self.buffer.push(b'\n');
        }
        self.out.write_all(&self.buffer)
    }

    fn write(&mut self) -> io::Result<()> {
        if self.text.contains(BREAK) {
            self.write_sections();
        } else {
            let wide = self.column + self.text.len() + 1 > self.style.columns;
            let new_line = self.new_line || wide || self.column == 0 || self.style.apart;
            let text = std::mem::take(&mut self.text);
            self.write_section(&text, new_line, true);
            self.text = text;
            self.broken = false;
        }
        self.text.clear();
        if self.buffer.len() < BUFFER {
            return Ok(());
        }
        let written = self.out.write_all(&self.buffer);
        self.buffer.clear();
        written
    }

    /// Writes an element section by section. One that does not fit into the line begins another if it
    /// fits into that, or if the element before it was broken, too.
    fn write_sections(&mut self) {
        let text = std::mem::take(&mut self.text);
        let length = text.len() - text.matches(BREAK).count();
        let wide = self.column + length + 1 > self.style.columns;
        let fits = self.level * INDENT + length < self.style.columns;
        let mut new_line = self.new_line || self.column == 0 || self.style.apart;
        new_line |= wide && (self.broken || fits);
        self.broken = false;
        for (number, section) in text.split(BREAK).enumerate() {
            // h5ls does not count the blank that it is about to print before an element.
            let wide = self.column + section.len() + 1 > self.style.columns;
            self.broken |= number > 0 && wide;
            self.write_section(section, new_line || wide, number == 0);
            new_line = false;
        }
        self.text = text;
    }

    fn write_section(&mut self, section: &str, new_line: bool, first: bool) {
        if new_line {
            self.begin_line(!first);
        } else if first {
            self.buffer.push(b' ');
            self.column += 1;
        }
        self.buffer.extend_from_slice(section.as_bytes());
        self.column += section.len();
    }

    fn begin_line(&mut self, inside: bool) {
        if self.column > 0 {
            self.buffer.push(b'\n');
        }
        self.prefix.clear();
        if !self.style.coordinates {
            let hanging = if inside { self.style.hanging } else { 0 };
            self.column = (self.level * INDENT + hanging).saturating_sub(self.style.outdent);
            self.buffer.resize(self.buffer.len() + self.column, b' ');
            return;
        }
        if let Some(linear) = self.linear {
            match self.dims.is_empty() {
                true => self.coordinates.splice(.., [0]).for_each(drop),
                false => cells::coordinates(linear, &self.dims, &mut self.coordinates),
            }
        }
        for (axis, coordinate) in self.coordinates.iter().enumerate() {
            self.prefix.push(if axis == 0 { '(' } else { ',' });
            numbers::push_integer(&mut self.prefix, *coordinate as i64);
        }
        self.prefix.push(')');
        self.prefix.push_str(self.style.separator);
        self.buffer.resize(self.buffer.len() + (self.level - 1) * INDENT, b' ');
        self.buffer.extend_from_slice(self.prefix.as_bytes());
        self.column = self.prefix.len() + self.level * INDENT;
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
