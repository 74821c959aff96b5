//! MATLAB's files of version 7.3: sparse matrices are groups with compressed columns.
//!
//! Numeric arrays that are not sparse are read, too; MATLAB stores them with their axes in the
//! opposite order. Only sparse arrays are written.

use super::arithmetic::complex_part;
use super::compressed::{CompressedSource, Parts};
use super::container::{self, Appender, number_stream, stream, text};
use super::{Array, Format, Found, Input, Output, Part, Probe, Source, array_stream, bands, dense};
use anyhow::{Context, Result, bail, ensure};
use array_stream::{Numbers, Repeated, Stream};
use pumice::types::Conversion;
use pumice::{Dataset, Datatype, File, FixedLength, Group, H5Type, LibraryVersion};
use std::fs;
use std::io::Write;

/// The attribute with the number of a sparse matrix's rows.
const ROWS: &str = "MATLAB_sparse";
const CLASS: &str = "MATLAB_class";
/// MATLAB's own bytes before the HDF5 part.
const HEADER: usize = 512;

pub(crate) struct Matlab;

impl Format for Matlab {
    fn name(&self) -> &'static str {
        "mat"
    }

    fn title(&self) -> &'static str {
        "MATLAB 7.3 (HDF5)"
    }

    fn endings(&self) -> &'static [&'static str] {
        &[".mat"]
    }

    fn recognises(&self, probe: &Probe) -> bool {
        let Some(file) = &probe.file else { return false };
        let (groups, datasets) = container::objects(file);
        groups.iter().any(|group| group.attribute(ROWS).is_ok())
            || datasets.iter().any(|dataset| dataset.attribute(CLASS).is_ok())
    }

    fn open(&self, input: &Input<'_>) -> Result<Vec<Found>> {
        let file = container::open(input.path)?;
        let (groups, datasets) = container::objects(&file);
        let mut found = Vec::new();
        for group in groups.iter().filter(|group| group.attribute(ROWS).is_ok()) {
            let source = sparse(group).with_context(|| group.path().to_owned())?;
            let inside = Some(group.path().to_owned());
            let name = group.path().trim_matches('/');
            found.push(Found { group: inside, ..Found::new(name, source) });
        }
        for dataset in datasets.into_iter().filter(is_numeric) {
            let name = dataset.path().trim_matches('/').to_owned();
            found.push(Found::new(name, Box::new(Reversed::new(dataset))));
        }
        found.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(found)
    }

    fn arrays(&self) -> &'static [&'static str] {
        &["data", "ir", "jc"]
    }

    fn export(&self, output: &Output<'_>) -> Result<()> {
        let options = File::options().user_block(HEADER as u64);
        let file = options.library_version(LibraryVersion::Earliest).create(output.path)?;
        for dataset in output.datasets {
            write(&file, dataset, output)?;
        }
        file.close()?;
        write_header(output)
    }

    fn holds_several(&self) -> bool {
        true
    }
}

fn sparse(group: &Group) -> Result<Box<dyn Source>> {
    let rows = container::numbers(group.attribute(ROWS)).and_then(|rows| rows.first().copied());
    let rows = rows.context("the attribute MATLAB_sparse has no number of rows")?;
    let pointers = number_stream(group, "jc")?;
    let columns = pointers.len().checked_sub(1).context("jc has no element")?;
    // A matrix without entries has neither values nor rows of them.
    let empty = || Box::new(Repeated::new(u64::datatype(), vec![0; 8], 0));
    let (indices, values): (Numbers, Box<dyn Stream>) = match group.contains("ir") {
        true => (number_stream(group, "ir")?, stream(group, "data")?),
        false => {
            let none = Repeated::new(f64::datatype(), vec![0; 8], 0);
            (Numbers::new(empty(), "ir")?, Box::new(none))
        }
    };
    let mut array = Array::sparse(vec![rows, columns], values.datatype().clone(), values.len());
    if let Some(class) = text(group.attribute(CLASS)) {
        array.notes.push(("source_class", class));
    }
    let parts = Parts { pointers, indices, values, lines: None, axis: 1 };
    Ok(Box::new(CompressedSource::new(array, parts)?))
}

/// Whether a dataset is a named array of numbers.
fn is_numeric(dataset: &Dataset) -> bool {
    const CLASSES: [&str; 10] = [
        "double", "single", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
        "uint64",
    ];
    let class = text(dataset.attribute(CLASS));
    class.is_some_and(|class| CLASSES.contains(&class.as_str()))
        && dataset.attribute("MATLAB_empty").is_err()
        && !dataset.path().starts_with("/#")
}

/// A dataset with axes in the opposite order.
struct Reversed {
    array: Array,
    inner: dense::DatasetSource,
}

impl Reversed {
    fn new(dataset: Dataset) -> Self {
        let inner = dense::DatasetSource::new(dataset);
        let mut array = inner.array().clone();
        array.shape.reverse();
        Self { array, inner }
    }
}

impl Source for Reversed {
    fn array(&self) -> &Array {
        &self.array
    }

    fn next_part(&mut self) -> Result<Option<Part>> {
        let Some(Part::Block { mut start, mut count, values }) = self.inner.next_part()? else {
            return Ok(None);
        };
        let values = dense::transposed(&values, &count, self.array.datatype.size());
        start.reverse();
        count.reverse();
        Ok(Some(Part::Block { start, count, values }))
    }
}

/// Writes a sparse matrix: values are doubles, complex doubles or truth values, as MATLAB has them.
fn write(file: &File, dataset: &Dataset, output: &Output<'_>) -> Result<()> {
    let shape = dataset.shape();
    ensure!(shape.len() == 2, "{}: a sparse matrix of MATLAB has two dimensions", dataset.path());
    let name = dataset.path().trim_matches('/').replace(['/', '-', ' ', '.'], "_");
    let logical = text(dataset.attribute("source_class")).is_some_and(|class| class == "logical")
        || matches!(dataset.datatype(), Datatype::Enum(_));
    let double = Datatype::f64_le();
    let target = match (dataset.datatype(), complex_part(dataset.datatype())) {
        (_, Some(_)) => Datatype::compound([("real", double.clone()), ("imag", double)]),
        (Datatype::Integer(_) | Datatype::Enum(_), _) if logical => Datatype::u8(),
        (Datatype::Integer(_) | Datatype::Float(_), _) => double,
        (other, _) => {
            bail!("{}: MATLAB has no sparse matrix of {}", dataset.path(), other.class_name())
        }
    };
    let convert = converter(dataset.datatype(), &target)?;
    let group = file.create_group(&name)?;
    group.set_attribute(CLASS, FixedLength(if logical { "logical" } else { "double" }))?;
    if logical {
        group.set_attribute("MATLAB_int_decode", 1i32)?;
    }
    group.set_attribute(ROWS, shape[0])?;
    let entries = bands::count(dataset)?;
    let wide = Datatype::u64_le;
    let mut pointers = Appender::numbers(&group, "jc", wide(), shape[1] + 1)?;
    pointers.append_numbers(&[0])?;
    let mut arrays = match entries {
        0 => None,
        _ => Some((
            Appender::numbers(&group, "ir", wide(), entries)?,
            Appender::elements(&group, "data", &target, entries)?,
        )),
    };
    let mut before = 0;
    bands::for_each_band(dataset, 1, output.progress, |band| {
        let ends: Vec<u64> = band.ends(1).iter().map(|end| before + end).collect();
        pointers.append_numbers(&ends)?;
        before += band.columns[1].len() as u64;
        let Some((indices, values)) = &mut arrays else { return Ok(()) };
        indices.append_numbers(&band.columns[0])?;
        values.append(&convert(&band.values)?)
    })
}

/// Converts elements; parts of complex numbers one by one, whatever their names.
fn converter(from: &Datatype, to: &Datatype) -> Result<impl Fn(&[u8]) -> Result<Vec<u8>>> {
    let (from, to) = match (complex_part(from), complex_part(to), from) {
        (Some(from), Some(to), _) => (from, to),
        (_, _, Datatype::Enum(enumeration)) => {
            (Datatype::Integer(enumeration.base.clone()), to.clone())
        }
        _ => (from.clone(), to.clone()),
    };
    let conversion = Conversion::new(&from, &to)?;
    Ok(move |bytes: &[u8]| {
        let mut converted = vec![0; bytes.len() / from.size().max(1) * to.size()];
        conversion.convert(bytes, &mut converted)?;
        Ok(converted)
    })
}

/// The header that MATLAB expects at the beginning of its files.
fn write_header(output: &Output<'_>) -> Result<()> {
    let mut header = [0; HEADER];
    header[..116].fill(b' ');
    let title = b"MATLAB 7.3 MAT-file, written by pumice HDF5 schema 1.00 .";
    header[..title.len()].copy_from_slice(title);
    header[124..128].copy_from_slice(&[0x00, 0x02, b'I', b'M']);
    let action = || format!("write {}", output.path.display());
    let mut file = fs::OpenOptions::new().write(true).open(output.path).with_context(action)?;
    file.write_all(&header).with_context(action)
}
