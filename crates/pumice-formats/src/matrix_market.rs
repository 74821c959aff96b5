//! The Matrix Market exchange format, plain or packed by gzip.
//!
//! Coordinate matrices are sparse, array matrices dense. Elements are 64-bit floats (real), 64-bit
//! integers (integer, unsigned-integer), bytes that are 1 (pattern), or pairs "r", "i" of 64-bit
//! floats (complex).

pub(super) mod lines;
mod parser;
mod scalar;

use super::bands;
use super::number_text::NumberText;
use super::text_file::{open_file, packing};
use super::{Array, BATCH, Cells, Format, Found, Input, Output, Part, Probe, Source, unpacked};
use anyhow::{Context, Result, ensure};
use parser::{Field, Listing, Parser};
use pumice::Dataset;
use scalar::{Complex, Present, Scalar};
use std::fmt::Write as _;
use std::io::{self, BufRead, Read, Write};
use std::marker::PhantomData;
use std::path::Path;

/// The attribute that marks a dataset as a pattern.
const FIELD_NOTE: &str = "source_field";

pub(crate) struct MatrixMarket;

impl Format for MatrixMarket {
    fn name(&self) -> &'static str {
        "mtx"
    }

    fn title(&self) -> &'static str {
        "Matrix Market"
    }

    fn endings(&self) -> &'static [&'static str] {
        &[".mtx", ".mtx.gz", ".mm", ".mm.gz"]
    }

    fn recognises(&self, probe: &Probe) -> bool {
        let start = probe.head.get(..14).unwrap_or_default();
        start.eq_ignore_ascii_case(b"%%MatrixMarket") || probe.path == Path::new("-")
    }

    fn open(&self, input: &Input<'_>) -> Result<Vec<Found>> {
        let name = input.name();
        let reader: Box<dyn Read> = match input.is_standard_input() {
            true => Box::new(io::stdin().lock()),
            false => Box::new(open_file(input.path)?),
        };
        let reader = unpacked(reader).with_context(|| format!("read {name}"))?;
        let parser = Parser::open(reader, &name)?;
        let source: Box<dyn Source> = match parser.header().field {
            Field::Real => Entries::<f64, _>::boxed(parser),
            Field::Integer => Entries::<i64, _>::boxed(parser),
            Field::UnsignedInteger => Entries::<u64, _>::boxed(parser),
            Field::Complex => Entries::<Complex, _>::boxed(parser),
            Field::Pattern => Entries::<Present, _>::boxed(parser),
        };
        Ok(vec![Found::new("matrix", source)])
    }

    fn export(&self, output: &Output<'_>) -> Result<()> {
        let dataset = output.only_dataset()?;
        ensure!(
            dataset.shape().len() == 2,
            "{}: a Matrix Market file holds a matrix, this has {} dimension(s)",
            dataset.path(),
            dataset.shape().len()
        );
        let mut out = packing(output)?;
        match dataset.is_sparse() {
            true => write_coordinates(dataset, &mut out, output)?,
            false => write_array(dataset, &mut out, output)?,
        }
        out.finish()
    }
}

/// The entries of a file on their way in.
struct Entries<S, R> {
    array: Array,
    parser: Parser<R>,
    scalar: PhantomData<S>,
}

impl<S: Scalar + 'static, R: BufRead + 'static> Entries<S, R> {
    fn boxed(parser: Parser<R>) -> Box<dyn Source> {
        let header = parser.header();
        let mut array =
            Array::sparse(vec![header.rows, header.columns], S::datatype(), header.entries);
        array.dense = header.format == Listing::Array;
        array.symmetry = header.symmetry;
        array.pattern = header.field == Field::Pattern;
        array.notes = vec![
            ("source_format", format!("Matrix Market {}", header.format)),
            (FIELD_NOTE, header.field.to_string()),
            ("source_symmetry", header.symmetry.to_string()),
        ];
        Box::new(Self { array, parser, scalar: PhantomData })
    }
}

impl<S: Scalar, R: BufRead> Source for Entries<S, R> {
    fn array(&self) -> &Array {
        &self.array
    }

    fn next_part(&mut self) -> Result<Option<Part>> {
        let mut cells = Cells::new(2);
        while cells.len() < BATCH {
            let Some(entry) = self.parser.next_entry::<S>()? else { break };
            cells.columns[0].push(entry.row);
            cells.columns[1].push(entry.column);
            cells.marks.push(entry.line);
            entry.value.append(&mut cells.values);
        }
        Ok((!cells.is_empty()).then_some(Part::Cells(cells)))
    }

    fn blame(&self, mark: u64, message: String) -> anyhow::Error {
        self.parser.error_at(mark, message).into()
    }
}

/// Whether a dataset's entries had no values in its source.
fn is_pattern(dataset: &Dataset) -> bool {
    let note = dataset.attribute(FIELD_NOTE).and_then(|note| note.read_string());
    note.is_ok_and(|field| field == "pattern")
}

fn write_coordinates(dataset: &Dataset, out: &mut impl Write, output: &Output<'_>) -> Result<()> {
    let shape = dataset.shape();
    let printer = match is_pattern(dataset) {
        true => None,
        false => Some(NumberText::new(dataset.datatype(), ' ')?),
    };
    let field = printer.as_ref().map_or("pattern", NumberText::field);
    let entries = bands::count(dataset)?;
    writeln!(out, "%%MatrixMarket matrix coordinate {field} general")?;
    writeln!(out, "{} {} {entries}", shape[0], shape[1])?;
    let size = dataset.datatype().size().max(1);
    let mut text = String::new();
    bands::for_each_band(dataset, 0, output.progress, |band| {
        let values = band.values.chunks_exact(size);
        for ((row, column), value) in band.columns[0].iter().zip(&band.columns[1]).zip(values) {
            text.clear();
            let _ = write!(text, "{} {}", row + 1, column + 1);
            if let Some(printer) = &printer {
                text.push(' ');
                printer.push(&mut text, value)?;
            }
            text.push('\n');
            out.write_all(text.as_bytes())?;
        }
        Ok(())
    })
}

fn write_array(dataset: &Dataset, out: &mut impl Write, output: &Output<'_>) -> Result<()> {
    let shape = dataset.shape();
    let printer = NumberText::new(dataset.datatype(), ' ')?;
    writeln!(out, "%%MatrixMarket matrix array {} general", printer.field())?;
    writeln!(out, "{} {}", shape[0], shape[1])?;
    let size = dataset.datatype().size().max(1);
    let mut text = String::new();
    // Values run down columns.
    let step = (BATCH as u64 / shape[0].max(1)).max(1);
    let mut first = 0;
    while first < shape[1] && shape[0] > 0 {
        let end = (first + step).min(shape[1]);
        let rows = dataset.read_bytes((0..shape[0], first..end))?;
        let columns = super::dense::transposed(&rows, &[shape[0], end - first], size);
        for value in columns.chunks_exact(size) {
            text.clear();
            printer.push(&mut text, value)?;
            text.push('\n');
            out.write_all(text.as_bytes())?;
        }
        output.progress.add(columns.len() as u64);
        first = end;
    }
    Ok(())
}
