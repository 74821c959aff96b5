//! Coordinates and values as text, one cell a line: comma-, tab- or blank-separated.
//!
//! Words may be in double quotes. A first line of names (`row,column,value`) is skipped. A comment
//! `# shape=5,6 type=f64` states the shape, which otherwise is that of the largest coordinates, and
//! the type, which otherwise is an integer of 64 bits if all values are integers, and a float if
//! not. Exported files have both. Files are read twice, the first time for what is not stated.

use super::matrix_market::lines::{Lines, SyntaxError, quoted};
use super::number_text::NumberText;
use super::text_file::{open_file, packing};
use super::{
    Array, BATCH, Cells, Format, Found, Input, Output, Part, Probe, Source, bands, unpacked,
};
use anyhow::{Result, bail, ensure};
use pumice::types::Conversion;
use pumice::{Datatype, H5Type};
use std::fmt::Write as _;
use std::io::{BufRead, Write};

/// Axes, at most.
const MAX_RANK: usize = 32;

pub(crate) struct Text;

impl Format for Text {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn title(&self) -> &'static str {
        "coordinates as CSV or TSV"
    }

    fn endings(&self) -> &'static [&'static str] {
        &[".csv", ".tsv", ".csv.gz", ".tsv.gz"]
    }

    fn recognises(&self, _probe: &Probe) -> bool {
        // Any text may be this: the file's name decides.
        false
    }

    fn open(&self, input: &Input<'_>) -> Result<Vec<Found>> {
        ensure!(!input.is_standard_input(), "text is read twice: from a file, not from a pipe");
        let summary = Summary::of(input)?;
        let source = TextSource::open(input, summary)?;
        Ok(vec![Found::new("matrix", Box::new(source))])
    }

    fn export(&self, output: &Output<'_>) -> Result<()> {
        let dataset = output.only_dataset()?;
        let name = output.final_path.to_string_lossy().to_lowercase();
        let comma = if name.contains(".tsv") { '\t' } else { ',' };
        let printer = NumberText::new(dataset.datatype(), comma)?;
        let shape = dataset.shape();
        ensure!(!shape.is_empty(), "{}: a scalar has no coordinates", dataset.path());
        let mut out = packing(output)?;
        let sides: Vec<String> = shape.iter().map(u64::to_string).collect();
        writeln!(out, "# shape={} type={}", sides.join(","), type_name(dataset.datatype()))?;
        let mut names: Vec<String> = match shape.len() {
            2 => vec!["row".into(), "column".into()],
            rank => (0..rank).map(|axis| format!("axis{axis}")).collect(),
        };
        match printer.field() {
            "complex" => names.extend(["real".into(), "imaginary".into()]),
            _ => names.push("value".into()),
        }
        writeln!(out, "{}", names.join(&comma.to_string()))?;
        let size = dataset.datatype().size().max(1);
        let mut text = String::new();
        bands::for_each_band(dataset, 0, output.progress, |band| {
            for (cell, value) in band.values.chunks_exact(size).enumerate() {
                text.clear();
                for column in &band.columns {
                    let _ = write!(text, "{}{comma}", column[cell]);
                }
                printer.push(&mut text, value)?;
                text.push('\n');
                out.write_all(text.as_bytes())?;
            }
            Ok(())
        })?;
        out.finish()
    }
}

/// The types that a comment may name.
fn types() -> [(&'static str, Datatype); 11] {
    let complex = Datatype::compound([("r", f64::datatype()), ("i", f64::datatype())]);
    [
        ("f64", f64::datatype()),
        ("f32", f32::datatype()),
        ("i8", i8::datatype()),
        ("i16", i16::datatype()),
        ("i32", i32::datatype()),
        ("i64", i64::datatype()),
        ("u8", u8::datatype()),
        ("u16", u16::datatype()),
        ("u32", u32::datatype()),
        ("u64", u64::datatype()),
        ("c128", complex),
    ]
}

fn type_name(datatype: &Datatype) -> String {
    match datatype {
        Datatype::Integer(integer) => {
            format!("{}{}", if integer.signed { 'i' } else { 'u' }, integer.size * 8)
        }
        Datatype::Float(float) if float.size <= 4 => "f32".into(),
        Datatype::Float(_) => "f64".into(),
        Datatype::Enum(_) => "i8".into(),
        _ => "c128".into(),
    }
}

/// The result of the first pass.
#[derive(Default)]
struct Summary {
    rank: usize,
    shape: Vec<u64>,
    entries: u64,
    datatype: Option<Datatype>,
    said: Option<Vec<u64>>,
    integers: bool,
    one_based: bool,
}

impl Summary {
    fn of(input: &Input<'_>) -> Result<Self> {
        let mut lines = Lines::new(unpacked(open_file(input.path)?)?, input.name());
        let mut summary = Self { integers: true, one_based: input.one_based, ..Self::default() };
        let mut first = true;
        while lines.advance()? {
            let line = lines.line().to_vec();
            if line.starts_with(b"#") || line.starts_with(b"%") {
                summary.comment(&line, &lines)?;
            } else if let Some(words) = words(&line) {
                if !(first && is_names(&words)) {
                    summary.cell(&words, &lines)?;
                }
                first = false;
            }
        }
        if let Some(shape) = input.shape.map(<[u64]>::to_vec).or(summary.said.take()) {
            ensure!(
                summary.rank == 0 || shape.len() == summary.rank,
                "{}: a shape of {} number(s) for {} coordinate(s)",
                input.name(),
                shape.len(),
                summary.rank
            );
            summary.rank = shape.len();
            summary.shape = shape;
        }
        ensure!(
            summary.rank > 0,
            "{}: it has no cells; --shape says how large the array is",
            input.name()
        );
        Ok(summary)
    }

    fn comment<R: BufRead>(&mut self, line: &[u8], lines: &Lines<R>) -> Result<(), SyntaxError> {
        let text = String::from_utf8_lossy(line).into_owned();
        for word in text.trim_start_matches(['#', '%']).split_whitespace() {
            if let Some(shape) = word.strip_prefix("shape=") {
                let shape: Result<Vec<u64>, _> = shape.split(',').map(str::parse).collect();
                self.said = Some(shape.map_err(|_| lines.error("expected shape=ROWS,COLUMNS"))?);
            }
            if let Some(name) = word.strip_prefix("type=") {
                let found = types().into_iter().find(|(known, _)| *known == name);
                let known = || lines.error(format!("the type {name} is not known"));
                self.datatype = Some(found.ok_or_else(known)?.1);
            }
        }
        Ok(())
    }

    fn cell<R: BufRead>(&mut self, words: &[&[u8]], lines: &Lines<R>) -> Result<(), SyntaxError> {
        let rank = words.len() - self.value_words().min(words.len());
        if self.rank == 0 {
            if rank == 0 || rank > MAX_RANK {
                return Err(lines.error("expected coordinates and a value"));
            }
            (self.rank, self.shape) = (rank, vec![0; rank]);
        }
        if rank != self.rank {
            let (expected, found) = (self.rank + self.value_words(), words.len());
            return Err(lines.error(format!("expected {expected} columns, found {found}")));
        }
        for (side, word) in self.shape.iter_mut().zip(words) {
            *side = (*side).max(coordinate(word, self.one_based, lines)?.saturating_add(1));
        }
        self.integers &= number::<i64>(words[rank]).is_some();
        self.entries += 1;
        Ok(())
    }

    /// The number of columns of a value.
    fn value_words(&self) -> usize {
        if self.datatype.as_ref().is_some_and(|datatype| datatype.class() == 6) { 2 } else { 1 }
    }
}

/// The columns of a line, `None` if it is blank.
fn words(line: &[u8]) -> Option<Vec<&[u8]>> {
    let line = line.trim_ascii();
    if line.is_empty() {
        return None;
    }
    let comma = [b',', b'\t', b';'].into_iter().find(|comma| line.contains(comma));
    Some(match comma {
        Some(comma) => line.split(|&byte| byte == comma).map(bare).collect(),
        None => {
            line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).map(bare).collect()
        }
    })
}

/// A word without blanks and quotes around it.
fn bare(word: &[u8]) -> &[u8] {
    let word = word.trim_ascii();
    let inside = word.strip_prefix(b"\"").and_then(|word| word.strip_suffix(b"\""));
    inside.map_or(word, <[u8]>::trim_ascii)
}

/// Whether a first line has names for columns.
fn is_names(words: &[&[u8]]) -> bool {
    words.iter().all(|word| number::<f64>(word).is_none())
}

fn number<T: std::str::FromStr>(word: &[u8]) -> Option<T> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

fn coordinate<R: BufRead>(
    word: &[u8],
    one_based: bool,
    lines: &Lines<R>,
) -> Result<u64, SyntaxError> {
    let first = u64::from(one_based);
    let expected =
        || lines.error(format!("expected a coordinate from {first}, found {}", quoted(word)));
    number(word).and_then(|number: u64| number.checked_sub(first)).ok_or_else(expected)
}

struct TextSource {
    array: Array,
    lines: Lines<Box<dyn BufRead>>,
    value_words: usize,
    /// The conversion from 64-bit integers and floats to the type.
    from_integer: Conversion,
    from_float: Conversion,
    /// The conversion from an integer type to 64 bits, to check that a number fits.
    back: Conversion,
    integer: bool,
    names_skipped: bool,
    one_based: bool,
}

impl TextSource {
    fn open(input: &Input<'_>, summary: Summary) -> Result<Self> {
        let value_words = summary.value_words();
        let datatype = match (summary.datatype, summary.integers) {
            (Some(datatype), _) => datatype,
            (None, true) => i64::datatype(),
            (None, false) => f64::datatype(),
        };
        let lines = Lines::new(unpacked(open_file(input.path)?)?, input.name());
        let integer = matches!(datatype, Datatype::Integer(_));
        let part = super::arithmetic::complex_part(&datatype).unwrap_or_else(|| datatype.clone());
        let from_integer = Conversion::new(&i64::datatype(), &part)?;
        let from_float = Conversion::new(&f64::datatype(), &part)?;
        let back = Conversion::new(&part, &i64::datatype())?;
        let array = Array::sparse(summary.shape, datatype, summary.entries);
        let names_skipped = false;
        Ok(Self {
            array,
            lines,
            value_words,
            from_integer,
            from_float,
            back,
            integer,
            names_skipped,
            one_based: input.one_based,
        })
    }

    fn push(&mut self, cells: &mut Cells) -> Result<(), anyhow::Error> {
        let line = self.lines.line().to_vec();
        if line.starts_with(b"#") || line.starts_with(b"%") {
            return Ok(());
        }
        let Some(words) = words(&line) else { return Ok(()) };
        if !std::mem::replace(&mut self.names_skipped, true) && is_names(&words) {
            return Ok(());
        }
        let rank = self.array.shape.len();
        if words.len() != rank + self.value_words {
            bail!(self.lines.error("expected coordinates and a value"));
        }
        for (axis, word) in words[..rank].iter().enumerate() {
            let at = coordinate(word, self.one_based, &self.lines)?;
            let length = self.array.shape[axis];
            if at >= length {
                let message = format!("expected a coordinate below {length}, found {at}");
                bail!(self.lines.error(message));
            }
            cells.columns[axis].push(at);
        }
        cells.marks.push(self.lines.number());
        for word in &words[rank..] {
            self.value(word, &mut cells.values)?;
        }
        Ok(())
    }

    fn value(&self, word: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let size = self.from_float.target_size();
        let start = out.len();
        out.resize(start + size, 0);
        let place = &mut out[start..];
        let wrong =
            |what: &str| self.lines.error(format!("expected {what}, found {}", quoted(word)));
        if !self.integer {
            let value: f64 = number(word).ok_or_else(|| wrong("a number"))?;
            return Ok(self.from_float.convert(&value.to_ne_bytes(), place)?);
        }
        if let Some(value) = number::<i64>(word) {
            self.from_integer.convert(&value.to_ne_bytes(), place)?;
            let mut again = [0; 8];
            self.back.convert(place, &mut again)?;
            ensure!(i64::from_ne_bytes(again) == value, wrong("a number that the type holds"));
            return Ok(());
        }
        match number::<u64>(word).filter(|_| self.array.datatype == u64::datatype()) {
            Some(value) => place.copy_from_slice(&value.to_ne_bytes()),
            None => bail!(wrong("an integer")),
        }
        Ok(())
    }
}

impl Source for TextSource {
    fn array(&self) -> &Array {
        &self.array
    }

    fn next_part(&mut self) -> Result<Option<Part>> {
        let mut cells = Cells::new(self.array.shape.len());
        while cells.len() < BATCH && self.lines.advance()? {
            self.push(&mut cells)?;
        }
        Ok((!cells.is_empty()).then_some(Part::Cells(cells)))
    }

    fn blame(&self, mark: u64, message: String) -> anyhow::Error {
        self.lines.error_at(mark, message).into()
    }
}
