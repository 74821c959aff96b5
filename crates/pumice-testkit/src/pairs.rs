//! Writes and reads between any selection of a dataset and any selection of memory, values of any
//! type that a dataset of the file has, structs and arrays of Rust.

use crate::datatype;
use anyhow::{Context, Result, bail};
use ndarray::{ArrayD, Axis, IxDyn, Slice};
use pumice::types::FixedText;
use pumice::{
    Dataset, File, Group, H5Type, RawAttribute, Scalar, Selection, Transfer, VariableLength,
};
use serde_json::Value;
use std::path::Path;

/// Carries out an operation if it is one of these; returns whether it was.
pub(crate) fn apply(file: &File, folder: &Path, path: &str, operation: &Value) -> Result<bool> {
    let text = |field: &str| -> Result<&str> {
        operation[field].as_str().with_context(|| format!("no {field}"))
    };
    match operation["op"].as_str() {
        Some("write_pair") => {
            let bytes = std::fs::read(folder.join(text("data")?))?;
            let pair = Pair::new(&file.dataset(path)?, operation)?;
            pair.dataset.write_as(&pair.cells, &pair.datatype, &bytes, &pair.transfer)?;
        }
        Some("read_pair") => {
            let mut bytes = std::fs::read(folder.join(text("data")?))?;
            let pair = Pair::new(&file.dataset(path)?, operation)?;
            pair.dataset.read_as(&pair.cells, &pair.datatype, &mut bytes, &pair.transfer)?;
            std::fs::write(folder.join(text("out")?), bytes)?;
        }
        Some("dataset_from") => dataset_from(file, path, &file.dataset(text("source")?)?)?,
        Some("attribute_from") => {
            attribute_from(file, path, text("name")?, &file.dataset(text("source")?)?)?;
        }
        Some("structs") => structs(file, path)?,
        Some("arrays") => arrays(file, path)?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// Cells of a dataset and places of memory.
struct Pair {
    dataset: Dataset,
    cells: Selection,
    datatype: pumice::Datatype,
    transfer: Transfer,
}

impl Pair {
    fn new(dataset: &Dataset, operation: &Value) -> Result<Self> {
        let shape = numbers(&operation["memory_shape"])?;
        let cells = selection(&operation["cells"], &dataset.shape())?;
        let places = selection(&operation["places"], &shape)?;
        let datatype = match &operation["dtype"] {
            Value::Null => dataset.datatype().clone(),
            dtype => datatype::parse(dtype)?,
        };
        let transfer = Transfer::new().memory(places, shape);
        Ok(Self { dataset: dataset.clone(), cells, datatype, transfer })
    }
}

/// `"all"`, `{"points": [...]}`, or a list of hyperslabs that are put together one after another.
fn selection(value: &Value, dims: &[u64]) -> Result<Selection> {
    if value == "all" {
        return Ok(Selection::all());
    }
    if value["points"].is_array() {
        return Ok(Selection::points(dims.len(), numbers(&value["points"])?)?);
    }
    let mut all = Selection::none();
    for (number, slab) in value.as_array().context("no selection")?.iter().enumerate() {
        let field = |name: &str| numbers(&slab[name]);
        let (start, stride) = (field("start")?, field("stride")?);
        let slab_cells = Selection::hyperslab(&start, &stride, &field("count")?, &field("block")?)?;
        all = match slab["op"].as_str() {
            _ if number == 0 => slab_cells,
            Some("or") => all.or(&slab_cells, dims)?,
            Some("and") => all.and(&slab_cells, dims)?,
            Some("xor") => all.xor(&slab_cells, dims)?,
            Some("not_b") => all.not_b(&slab_cells, dims)?,
            other => bail!("no such operator: {other:?}"),
        };
    }
    Ok(all)
}

fn numbers(value: &Value) -> Result<Vec<u64>> {
    let list = value.as_array().with_context(|| format!("no list of numbers: {value}"))?;
    list.iter().map(|n| n.as_u64().with_context(|| format!("no number: {n}"))).collect()
}

/// A dataset of the same type and values, in chunks if it has axes.
fn dataset_from(file: &Group, path: &str, source: &Dataset) -> Result<()> {
    let shape = source.shape();
    let mut builder = file.new_dataset_of(source.datatype().clone()).shape(shape.clone());
    if !shape.is_empty() {
        let chunk: Vec<u64> = shape.iter().map(|side| side.div_ceil(2).max(1)).collect();
        builder = builder.chunk(chunk).deflate(2);
    }
    builder.create(path)?.write_heaped(.., &source.read_heaped(..)?)?;
    Ok(())
}

/// An attribute of the same type and value.
fn attribute_from(file: &File, path: &str, name: &str, source: &Dataset) -> Result<()> {
    let (datatype, shape) = (source.datatype().clone(), source.shape());
    if source.extent()?.is_null() {
        return crate::write::attach(file, path, name, RawAttribute::null(datatype));
    }
    let values = source.read_heaped(..)?;
    if datatype.has_varlen() {
        let value = VariableLength::heaped(datatype, &shape, values)?;
        return crate::write::attach(file, path, name, value);
    }
    crate::write::attach(file, path, name, RawAttribute::new(datatype, &shape, values.elements)?)
}

#[derive(H5Type, Clone, Copy)]
#[repr(C)]
struct Place {
    row: i16,
    column: u16,
}

#[derive(H5Type, Clone, Copy, PartialEq, Debug)]
#[repr(u8)]
enum Quality {
    Good = 1,
    #[h5(rename = "not so good")]
    Poor = 7,
}

#[derive(H5Type, Clone, Copy)]
#[repr(C)]
struct Record {
    time: f64,
    #[h5(rename = "where")]
    place: Place,
    samples: [[f32; 2]; 3],
    label: FixedText<8>,
    count: u32,
}

fn record(number: u32) -> Result<Record> {
    Ok(Record {
        time: f64::from(number) / 4.0,
        place: Place { row: -(number as i16), column: number as u16 },
        samples: [[number as f32, 0.5], [1.5, 2.5], [-1.0, number as f32 + 0.25]],
        label: FixedText::new(&format!("r{number}")).context("a long label")?,
        count: number * 1000,
    })
}

/// Derived structs and enumerations as datasets and attributes.
fn structs(file: &File, path: &str) -> Result<()> {
    let records = (0..12).map(record).collect::<Result<Vec<_>>>()?;
    let table = file.new_dataset::<Record>().shape([3, 4]).max_shape([None, Some(4)]);
    let table = table.chunk([2, 3]).deflate(1).create(&format!("{path}/records"))?;
    table.write((..2, ..), &records[..8])?;
    table.write((2, ..), &records[8..])?;
    table.set_attribute("one", Scalar(&records[5]))?;
    table.set_attribute("some", records[..2].to_vec())?;
    let qualities = [Quality::Good, Quality::Poor, Quality::Poor];
    let marks = file.new_dataset::<Quality>().shape([3]).create(&format!("{path}/marks"))?;
    marks.write(.., &qualities)?;
    // Fields are found by name: one of another type, in another order, without the others.
    let part = pumice::types::Compound {
        size: 12,
        members: vec![
            pumice::types::Member { name: "count".into(), offset: 0, datatype: datatype("<i8")? },
            pumice::types::Member { name: "time".into(), offset: 8, datatype: datatype("<f4")? },
        ],
    };
    let part = file.new_dataset_of(pumice::Datatype::Compound(part)).shape([12]);
    part.create(&format!("{path}/part"))?.write(.., &records)?;
    Ok(())
}

fn datatype(text: &str) -> Result<pumice::Datatype> {
    datatype::parse(&Value::String(text.into()))
}

/// Arrays in any order of memory, to blocks, rows and every other cell.
fn arrays(file: &File, path: &str) -> Result<()> {
    let shape = [4usize, 5, 6];
    let whole =
        ArrayD::from_shape_fn(IxDyn(&shape), |at| (at[0] * 100 + at[1] * 10 + at[2]) as i32);
    let make = |name: &str| -> Result<Dataset> {
        let builder = file.new_dataset::<i32>().shape([4, 5, 6]).chunk([3, 2, 4]).fill_value(-1);
        Ok(builder.create(&format!("{path}/{name}"))?)
    };
    make("rows")?.write_array(.., &whole)?;
    // The same values, but memory in order of columns.
    let columns = whole.t().as_standard_layout().into_owned();
    make("columns")?.write_array(.., &columns.t())?;
    // A view of every other row, backwards, to part of the dataset.
    let view = whole.slice_axis(Axis(0), Slice::new(0, None, -2));
    make("part")?.write_array((1..3, .., ..), &view)?;
    make("row")?.write_array((2, 3, ..), &whole.index_axis(Axis(0), 1).index_axis(Axis(0), 4))?;
    let converted = file.new_dataset::<f32>().shape([4, 5, 6]).create(&format!("{path}/floats"))?;
    converted.write_array(.., &whole)?;
    Ok(())
}
