//! NumPy's files of one array (.npy).

use super::arithmetic::complex_part;
use super::array_stream::Stream;
use super::binsparse::truth;
use super::dense::{Blocks, DenseSource, selection};
use super::{Array, Format, Found, Input, Output, Probe, Source};
use crate::Progress;
use anyhow::{Context, Result, bail, ensure};
use pumice::types::{ByteOrder, Float, Integer};
use pumice::{Dataset, Datatype};
use std::fs;
use std::io::{self, BufReader, BufWriter, Read, Write};

const MAGIC: &[u8] = b"\x93NUMPY";
/// The longest header that is read.
const MAX_HEADER: usize = 1 << 20;

pub(crate) struct Npy;

impl Format for Npy {
    fn name(&self) -> &'static str {
        "npy"
    }

    fn title(&self) -> &'static str {
        "NumPy array"
    }

    fn endings(&self) -> &'static [&'static str] {
        &[".npy"]
    }

    fn recognises(&self, probe: &Probe) -> bool {
        probe.head.starts_with(MAGIC)
    }

    fn open(&self, input: &Input<'_>) -> Result<Vec<Found>> {
        let reader: Box<dyn Read> = match input.is_standard_input() {
            true => Box::new(io::stdin().lock()),
            false => Box::new(super::text_file::open_file(input.path)?),
        };
        let reader = Box::new(BufReader::with_capacity(256 << 10, reader));
        let array = NpyStream::open(reader).with_context(|| input.name())?;
        Ok(vec![Found::new("array", array.dense())])
    }

    fn export(&self, output: &Output<'_>) -> Result<()> {
        let dataset = output.only_dataset()?;
        let action = || format!("create {}", output.path.display());
        let file = fs::File::create(output.path).with_context(action)?;
        let mut file = BufWriter::with_capacity(256 << 10, file);
        write_dense(dataset, &mut file, output.progress)?;
        Ok(file.flush()?)
    }
}

/// Writes a dataset, undefined cells with the fill value.
pub(super) fn write_dense(
    dataset: &Dataset,
    out: &mut dyn Write,
    progress: &dyn Progress,
) -> Result<()> {
    out.write_all(&header(dataset.datatype(), &dataset.shape())?)?;
    for (start, count) in Blocks::new(dataset.shape(), dataset.datatype().size()) {
        let values = dataset.read_bytes(&selection(&start, &count)?)?;
        progress.add(values.len() as u64);
        out.write_all(&values)?;
    }
    Ok(())
}

/// The beginning of a file.
pub(super) fn header(datatype: &Datatype, shape: &[u64]) -> Result<Vec<u8>> {
    let sides: String = shape.iter().map(|side| format!("{side}, ")).collect();
    let sides = if shape.len() == 1 { sides.trim_end() } else { sides.trim_end_matches(", ") };
    let description = describe(datatype)?;
    let text = format!("{{'descr': {description}, 'fortran_order': False, 'shape': ({sides}), }}");
    // All of it is a multiple of 64 bytes.
    let length = (MAGIC.len() + 4 + text.len() + 1).next_multiple_of(64);
    let room = length - MAGIC.len() - 4;
    let mut bytes = MAGIC.to_vec();
    bytes.extend([1, 0]);
    bytes.extend(u16::try_from(room).context("a shape of too many axes")?.to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.resize(length - 1, b' ');
    bytes.push(b'\n');
    Ok(bytes)
}

fn describe(datatype: &Datatype) -> Result<String> {
    let sign = |order: ByteOrder, size: u32| match (size, order) {
        (1, _) => '|',
        (_, ByteOrder::Big) => '>',
        _ => '<',
    };
    Ok(match datatype {
        Datatype::Integer(Integer { size, order, signed, .. }) => {
            let kind = if *signed { 'i' } else { 'u' };
            format!("'{}{kind}{size}'", sign(*order, *size))
        }
        Datatype::Float(Float { size, order, .. }) => format!("'{}f{size}'", sign(*order, *size)),
        Datatype::Enum(enumeration) if *datatype == truth() || enumeration.base.size == 1 => {
            "'|b1'".to_owned()
        }
        Datatype::String(string) => format!("'|S{}'", string.size),
        other => match complex_part(other) {
            Some(Datatype::Float(Float { size, order, .. })) => {
                format!("'{}c{}'", sign(order, size), size * 2)
            }
            _ => bail!("NumPy has no type for elements that are {}", other.class_name()),
        },
    })
}

/// A type as NumPy writes it, such as `<f8`.
fn datatype(text: &str) -> Option<Datatype> {
    let order = if text.starts_with('>') { ByteOrder::Big } else { ByteOrder::Little };
    let text = text.trim_start_matches(['<', '>', '|', '=']);
    let (kind, size) = (text.chars().next()?, text.get(1..)?.parse::<u32>().ok()?);
    let float = |size: u32| match size {
        2 => Some(Datatype::Float(Float::half(order))),
        4 => Some(Datatype::Float(Float::single(order))),
        8 => Some(Datatype::Float(Float::double(order))),
        _ => None,
    };
    match kind {
        'b' if size == 1 => Some(truth()),
        'i' | 'u' if matches!(size, 1 | 2 | 4 | 8) => {
            let order = if size == 1 { ByteOrder::Little } else { order };
            Some(Datatype::Integer(Integer::new(size, order, kind == 'i')))
        }
        'f' => float(size),
        'c' => float(size / 2).map(|part| Datatype::compound([("r", part.clone()), ("i", part)])),
        'S' if size > 0 => Some(Datatype::fixed_string(size)),
        _ => None,
    }
}

/// The array of a file, read from front to back.
pub(super) struct NpyStream {
    reader: Box<dyn Read>,
    datatype: Datatype,
    pub(super) shape: Vec<u64>,
    fortran_order: bool,
    length: u64,
}

impl NpyStream {
    pub(super) fn open(mut reader: Box<dyn Read>) -> Result<Self> {
        let mut start = [0; 8];
        reader.read_exact(&mut start).context("read the header")?;
        ensure!(start.starts_with(MAGIC), "expected a NumPy array, found something else");
        let mut length = vec![0; if start[6] == 1 { 2 } else { 4 }];
        reader.read_exact(&mut length).context("read the header")?;
        let length = length.iter().rev().fold(0usize, |sum, &byte| sum << 8 | usize::from(byte));
        ensure!(length <= MAX_HEADER, "a header of {length} bytes is too long");
        let mut text = vec![0; length];
        reader.read_exact(&mut text).context("read the header")?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let (datatype, fortran_order, shape) = parse(&text)?;
        let length = shape.iter().try_fold(1u64, |cells, &side| cells.checked_mul(side));
        let length = length.with_context(|| format!("the shape {shape:?} is too large"))?;
        Ok(Self { reader, datatype, shape, fortran_order, length })
    }

    /// Whether elements are in row-major order.
    pub(super) fn is_in_rows(&self) -> bool {
        let long = self.shape.iter().filter(|&&side| side > 1).count();
        !self.fortran_order || long < 2
    }

    pub(super) fn dense(self) -> Box<dyn Source> {
        let array = Array::dense(self.shape.clone(), self.datatype.clone());
        let reversed = self.fortran_order && self.shape.len() > 1;
        Box::new(DenseSource::new(array, Box::new(self), reversed))
    }
}

impl Stream for NpyStream {
    fn datatype(&self) -> &Datatype {
        &self.datatype
    }

    fn len(&self) -> u64 {
        self.length
    }

    fn read(&mut self, count: u64) -> Result<Vec<u8>> {
        let wanted = count.checked_mul(self.datatype.size() as u64).context("too many elements")?;
        // Memory grows with what is there, not with what the header states.
        let mut bytes = Vec::new();
        self.reader.by_ref().take(wanted).read_to_end(&mut bytes)?;
        ensure!(
            bytes.len() as u64 == wanted,
            "expected {wanted} more bytes of values, found {}",
            bytes.len()
        );
        Ok(bytes)
    }
}

/// Type, order and shape, from the Python dictionary that the header is.
fn parse(text: &str) -> Result<(Datatype, bool, Vec<u64>)> {
    let after = |key: &str| {
        let at = text.find(&format!("'{key}'"))? + key.len() + 2;
        text[at..].trim_start().strip_prefix(':').map(str::trim_start)
    };
    let wrong = || format!("expected a NumPy header, found {:?}", text.trim_end());
    let description = after("descr").with_context(wrong)?;
    ensure!(!description.starts_with('['), "arrays of records are not supported");
    let name = description.split('\'').nth(1).with_context(wrong)?;
    let datatype = datatype(name).with_context(|| format!("the type {name:?} is not supported"))?;
    let fortran_order = after("fortran_order").with_context(wrong)?.starts_with("True");
    let shape = after("shape").and_then(|shape| shape.strip_prefix('(')).with_context(wrong)?;
    let shape = shape.split(')').next().unwrap_or_default().split(',').map(str::trim);
    let shape: Option<Vec<u64>> =
        shape.filter(|side| !side.is_empty()).map(|side| side.parse().ok()).collect();
    Ok((datatype, fortran_order, shape.with_context(wrong)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_as_they_are_written() {
        let complex = Datatype::compound([("r", Datatype::f32_le()), ("i", Datatype::f32_le())]);
        for datatype in [
            Datatype::f64_le(),
            Datatype::f16_le(),
            Datatype::i16_be(),
            Datatype::u8(),
            complex,
            truth(),
            Datatype::fixed_string(7),
        ] {
            for shape in [&[][..], &[5], &[3, 4], &[1, 0, 7]] {
                let bytes = header(&datatype, shape).unwrap();
                assert_eq!(bytes.len() % 64, 0);
                let found = NpyStream::open(Box::new(io::Cursor::new(bytes))).unwrap();
                assert_eq!((&found.datatype, found.shape.as_slice()), (&datatype, shape));
            }
        }
    }

    #[test]
    fn short_and_strange_files_are_refused() {
        let open = |bytes: &[u8]| NpyStream::open(Box::new(io::Cursor::new(bytes.to_vec())));
        assert!(open(b"").is_err());
        assert!(open(b"\x93NUMPY\x01\x00\xff\xff").is_err());
        for text in ["{}", "{'descr': '<q8', 'fortran_order': False, 'shape': (1,), }"] {
            let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
            bytes.extend((text.len() as u16).to_le_bytes());
            bytes.extend(text.as_bytes());
            assert!(open(&bytes).is_err(), "{text}");
        }
        let mut array = open(&header(&Datatype::f64_le(), &[1 << 40]).unwrap()).unwrap();
        assert!(array.read(1 << 40).is_err());
    }
}
