//! Common parts of formats inside HDF5 files: groups with arrays for pointers, indices and values,
//! attributes, names.

use super::array_stream::{DatasetStream, Numbers, Stream};
use super::bands::{self, Band};
use super::compressed::{CompressedSource, Parts};
use super::{Array, Output, Source};
use anyhow::{Context, Result};
use pumice::types::Conversion;
use pumice::{Attribute, Dataset, DatasetBuilder, Datatype, File, Group, Node, WalkOrder};
use std::ops::ControlFlow;
use std::path::Path;

/// Elements of a chunk of the arrays that are written.
const CHUNK: u64 = 1 << 16;

/// Opens the file that holds arrays.
pub(super) fn open(path: &Path) -> Result<File> {
    crate::open(path).with_context(|| path.display().to_string())
}

/// The text of an attribute, of fixed or variable length.
pub(super) fn text(attribute: pumice::Result<Attribute>) -> Option<String> {
    attribute.ok()?.read_string().ok()
}

/// The whole numbers of an attribute.
pub(super) fn numbers(attribute: pumice::Result<Attribute>) -> Option<Vec<u64>> {
    let numbers = attribute.ok()?.read::<i64>().ok()?;
    numbers.into_iter().map(|number| u64::try_from(number).ok()).collect()
}

/// A one-dimensional dataset of a group, as a stream.
pub(super) fn stream(group: &Group, name: &str) -> Result<Box<dyn Stream>> {
    Ok(Box::new(DatasetStream::new(group.dataset(name)?)?))
}

/// The stream of an array of non-negative integers.
pub(super) fn number_stream(group: &Group, name: &str) -> Result<Numbers> {
    let what = format!("{}/{name}", group.path().trim_end_matches('/'));
    Numbers::new(stream(group, name)?, what)
}

/// The names of the three arrays of compressed lines.
#[derive(Clone, Copy)]
pub(super) struct Names {
    pub(super) pointers: &'static str,
    pub(super) indices: &'static str,
    pub(super) values: &'static str,
}

/// SciPy's names, which AnnData, 10x and others use.
pub(super) const SCIPY: Names = Names { pointers: "indptr", indices: "indices", values: "data" };

/// Compressed lines that a group holds.
pub(super) fn compressed(
    group: &Group,
    names: Names,
    shape: Vec<u64>,
    axis: usize,
) -> Result<Box<dyn Source>> {
    let values = stream(group, names.values)?;
    let array = Array::sparse(shape, values.datatype().clone(), values.len());
    let parts = Parts {
        pointers: number_stream(group, names.pointers)?,
        indices: number_stream(group, names.indices)?,
        values,
        lines: None,
        axis,
    };
    let source = CompressedSource::new(array, parts);
    Ok(Box::new(source.with_context(|| group.path().to_owned())?))
}

/// Groups and datasets of a file, in order of their paths. Unreadable ones are left out; asking for
/// one reports its error.
pub fn objects(file: &File) -> (Vec<Group>, Vec<Dataset>) {
    let (mut groups, mut datasets) = (Vec::new(), Vec::new());
    let _ = file.walk(WalkOrder::Name, |_, node| {
        match node {
            Ok(Node::Group(group)) => groups.push(group),
            Ok(Node::Dataset(dataset)) => datasets.push(dataset),
            Ok(Node::Datatype(_)) | Err(_) => {}
        }
        ControlFlow::<()>::Continue(())
    });
    (groups, datasets)
}

/// A builder for an array of `length` elements in compressed chunks.
pub(super) fn vector(group: &Group, datatype: Datatype, length: u64) -> DatasetBuilder {
    let builder = group.new_dataset_of(datatype).shape([length]);
    match length {
        0 => builder,
        _ => builder.chunk([length.min(CHUNK)]).shuffle().deflate(4),
    }
}

/// An array that is written from front to back, its numbers converted to its type.
pub(super) struct Appender {
    dataset: Dataset,
    conversion: Option<Conversion>,
    next: u64,
}

impl Appender {
    /// An array of elements.
    pub(super) fn elements(group: &Group, name: &str, like: &Datatype, len: u64) -> Result<Self> {
        let dataset = vector(group, like.clone(), len).create(name)?;
        Ok(Self { dataset, conversion: None, next: 0 })
    }

    /// An array of whole numbers in `datatype`.
    pub(super) fn numbers(group: &Group, name: &str, datatype: Datatype, len: u64) -> Result<Self> {
        let conversion = Conversion::new(&Datatype::native::<u64>(), &datatype)?;
        let dataset = vector(group, datatype, len).create(name)?;
        Ok(Self { dataset, conversion: Some(conversion), next: 0 })
    }

    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let count = bytes.len() as u64 / self.dataset.datatype().size().max(1) as u64;
        if count > 0 {
            self.dataset.write_bytes(self.next..self.next + count, bytes)?;
        }
        self.next += count;
        Ok(())
    }

    pub(super) fn append_numbers(&mut self, numbers: &[u64]) -> Result<()> {
        let Some(conversion) = &self.conversion else { return Ok(()) };
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
        let mut converted = vec![0; numbers.len() * self.dataset.datatype().size()];
        conversion.convert(&bytes, &mut converted)?;
        self.append(&converted)
    }
}

/// The narrowest of two types that holds numbers up to `most`.
pub(super) fn index_type(most: u64) -> Datatype {
    if most <= i32::MAX as u64 { Datatype::i32_le() } else { Datatype::i64_le() }
}

/// Types of pointers and indices.
pub(super) struct Types {
    pub(super) pointers: Datatype,
    pub(super) indices: Datatype,
    pub(super) values: Datatype,
}

impl Types {
    /// The names that SciPy uses for a matrix.
    pub(super) fn scipy(dataset: &Dataset, entries: u64) -> Self {
        let most = dataset.shape().into_iter().fold(entries, u64::max);
        let (pointers, indices) = (index_type(most), index_type(most));
        Self { pointers, indices, values: dataset.datatype().clone() }
    }
}

/// Writes a matrix as compressed lines into a group; returns how many entries it has.
pub(super) fn write_compressed(
    group: &Group,
    names: Names,
    dataset: &Dataset,
    axis: usize,
    types: &Types,
    output: &Output<'_>,
) -> Result<u64> {
    let entries = bands::count(dataset)?;
    let lines = dataset.shape()[axis];
    let mut pointers = Appender::numbers(group, names.pointers, types.pointers.clone(), lines + 1)?;
    let mut indices = Appender::numbers(group, names.indices, types.indices.clone(), entries)?;
    let mut values = Appender::elements(group, names.values, &types.values, entries)?;
    pointers.append_numbers(&[0])?;
    let mut before = 0;
    bands::for_each_band(dataset, axis, output.progress, |band: Band| {
        let ends: Vec<u64> = band.ends(axis).into_iter().map(|end| before + end).collect();
        before += band.columns[axis].len() as u64;
        pointers.append_numbers(&ends)?;
        indices.append_numbers(&band.columns[1 - axis])?;
        values.append(&band.values)
    })?;
    Ok(entries)
}
