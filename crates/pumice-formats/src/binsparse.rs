//! Binsparse 0.1 in HDF5: a group whose attribute `binsparse` describes, in JSON, the arrays beside
//! it.
//!
//! Read: CSR, CSC, DCSR, DCSC, COO (COOR), COOC, CVEC (VEC), DVEC, DMAT (DMATR), DMATC; values that
//! are all the same (`iso`), complex and Boolean values; symmetric, skew-symmetric and hermitian
//! structure. Written: CSR, CSC, DCSR, DCSC, COO, CVEC, DVEC, DMATR, in the form that the matrix had
//! when it was imported unless another is asked for; a matrix that was symmetric and still is, by one
//! triangle (`binsparse/structure.rs`). Custom formats and fill values other than zero are refused.

mod structure;

use super::array_stream::{Numbers, Pairs, Renamed, Repeated, Stream};
use super::compressed::{CompressedSource, Parts};
use super::container::{
    self, Appender, Names, Types, number_stream, stream, text, write_compressed,
};
use super::coordinates::CoordinateSource;
use super::dense::{Blocks, DenseSource, selection};
use super::{Array, Form, Format, Found, Input, Output, Probe, Source};
use super::{arithmetic, bands};
use crate::Unwatched;
use anyhow::{Context, Result, bail, ensure};
use pumice::types::{Enumeration, Integer};
use pumice::{Dataset, Datatype, File, Group};
use serde_json::{Value, json};
use structure::Structure;

const NAMES: Names = Names { pointers: "pointers_to_1", indices: "indices_1", values: "values" };

/// Attributes of a dataset that remember the form of the matrix.
const LAYOUT: &str = "source_layout";
const ISO: &str = "source_iso";
const STRUCTURE: &str = "source_structure";

pub(crate) struct Binsparse;

impl Format for Binsparse {
    fn name(&self) -> &'static str {
        "binsparse"
    }

    fn title(&self) -> &'static str {
        "Binsparse (HDF5)"
    }

    fn endings(&self) -> &'static [&'static str] {
        &[".bsp.h5", ".bsp"]
    }

    fn recognises(&self, probe: &Probe) -> bool {
        let groups = probe.file.as_ref().map(container::objects);
        groups.is_some_and(|(groups, _)| {
            groups.iter().any(|group| group.attribute("binsparse").is_ok())
        })
    }

    fn open(&self, input: &Input<'_>) -> Result<Vec<Found>> {
        let file = container::open(input.path)?;
        let (groups, _) = container::objects(&file);
        let mut found = Vec::new();
        for group in groups {
            let Some(descriptor) = text(group.attribute("binsparse")) else { continue };
            let source = source(&group, &descriptor).with_context(|| group.path().to_owned())?;
            let name = match group.path().trim_matches('/') {
                "" => "matrix".to_owned(),
                path => path.to_owned(),
            };
            let dense = source.array().dense;
            let inside = (!dense).then(|| group.path().to_owned());
            found.push(Found { group: inside, ..Found::new(name, source) });
        }
        Ok(found)
    }

    fn arrays(&self) -> &'static [&'static str] {
        &["pointers_to_1", "indices_0", "indices_1", "values", "fill_value"]
    }

    fn values(&self) -> &'static str {
        NAMES.values
    }

    fn export(&self, output: &Output<'_>) -> Result<()> {
        let file = File::create(output.path)?;
        match output.datasets {
            [dataset] => write(&file, dataset, output)?,
            several => {
                for dataset in several {
                    let group = file.create_group(dataset.path().trim_matches('/'))?;
                    write(&group, dataset, output)?;
                }
            }
        }
        Ok(file.close()?)
    }

    fn holds_several(&self) -> bool {
        true
    }
}

/// The array that a group and its descriptor make.
fn source(group: &Group, descriptor: &str) -> Result<Box<dyn Source>> {
    let json: Value = serde_json::from_str(descriptor).context("the attribute binsparse")?;
    // The entries are in a name space of their own, in which some writers do not put them.
    let json = json.get("binsparse").unwrap_or(&json);
    let format = match json.get("format") {
        Some(Value::String(format)) => format.as_str(),
        Some(Value::Object(_)) => bail!("custom formats are not supported; CSR, CSC and COO are"),
        _ => bail!("the attribute binsparse has no format"),
    };
    if json.get("fill").and_then(Value::as_bool) == Some(true) {
        let fill = group.dataset("fill_value")?.read_bytes(..)?;
        ensure!(fill.iter().all(|&byte| byte == 0), "a fill value other than 0 is not supported");
    }
    let shape: Option<Vec<u64>> = json
        .get("shape")
        .and_then(Value::as_array)
        .and_then(|sides| sides.iter().map(Value::as_u64).collect());
    let shape = shape.context("the attribute binsparse has no shape")?;
    let rank = if format.ends_with("VEC") { 1 } else { 2 };
    ensure!(shape.len() == rank, "expected {rank} number(s) for the shape, found {}", shape.len());
    let stored = entries(group, format, json, &shape)?;
    if stored == 0
        && rank == shape.len()
        && !format.starts_with("DVEC")
        && !format.starts_with("DMAT")
    {
        return empty(group, shape);
    }
    let values = values(group, json, stored)?;
    let mut array = Array::sparse(shape, values.datatype().clone(), stored);
    array.notes = vec![(LAYOUT, format.to_owned())];
    if let Some(name) = json.get("structure").and_then(Value::as_str) {
        let structure = Structure::named(name);
        let structure = structure.with_context(|| format!("the structure {name} is not known"))?;
        array.symmetry = structure.symmetry;
        array.notes.push((STRUCTURE, name.to_owned()));
    }
    if is_iso(json) {
        array.notes.push((ISO, "true".to_owned()));
    }
    arranged(group, format, array, values)
}

/// A matrix without entries, whose arrays may be missing.
fn empty(group: &Group, shape: Vec<u64>) -> Result<Box<dyn Source>> {
    let known = stream(group, NAMES.values).map(|values| values.datatype().clone());
    let datatype = known.unwrap_or_else(|_| Datatype::f64_le());
    let nothing = |datatype: Datatype| -> Box<dyn Stream> {
        let element = vec![0; datatype.size()];
        Box::new(Repeated::new(datatype, element, 0))
    };
    let column = |_: &u64| Numbers::new(nothing(Datatype::u64_le()), "indices".to_owned());
    let columns = shape.iter().map(column).collect::<Result<_>>()?;
    let array = Array::sparse(shape, datatype.clone(), 0);
    Ok(Box::new(CoordinateSource::new(array, columns, nothing(datatype))?))
}

/// Puts the arrays of a format together.
fn arranged(
    group: &Group,
    format: &str,
    array: Array,
    values: Box<dyn Stream>,
) -> Result<Box<dyn Source>> {
    let numbers = |name: &str| number_stream(group, name);
    let compressed = |axis: usize, doubly: bool, array: Array, values| -> Result<Box<dyn Source>> {
        let parts = Parts {
            pointers: numbers(NAMES.pointers)?,
            indices: numbers(NAMES.indices)?,
            values,
            lines: if doubly { Some(numbers("indices_0")?) } else { None },
            axis,
        };
        Ok(Box::new(CompressedSource::new(array, parts)?))
    };
    let dense = |mut array: Array, values, reversed: bool| -> Result<Box<dyn Source>> {
        array.dense = true;
        Ok(Box::new(DenseSource::new(array, values, reversed)))
    };
    match format {
        "CSR" => compressed(0, false, array, values),
        "CSC" => compressed(1, false, array, values),
        "DCSR" => compressed(0, true, array, values),
        "DCSC" => compressed(1, true, array, values),
        "COO" | "COOR" => {
            let columns = vec![numbers("indices_0")?, numbers("indices_1")?];
            Ok(Box::new(CoordinateSource::new(array, columns, values)?))
        }
        // Columns come first.
        "COOC" => {
            let columns = vec![numbers("indices_1")?, numbers("indices_0")?];
            Ok(Box::new(CoordinateSource::new(array, columns, values)?))
        }
        "VEC" | "CVEC" => {
            Ok(Box::new(CoordinateSource::new(array, vec![numbers("indices_0")?], values)?))
        }
        "DVEC" | "DMAT" | "DMATR" => dense(array, values, false),
        "DMATC" => dense(array, values, true),
        other => bail!("the format {other} is not known"),
    }
}

/// The number of values, computed from the arrays' lengths.
fn entries(group: &Group, format: &str, json: &Value, shape: &[u64]) -> Result<u64> {
    // An empty array may be left out.
    let none = json.get("number_of_stored_values").and_then(Value::as_u64) == Some(0);
    let length = |name: &str| -> Result<u64> {
        if none && !group.contains(name) { Ok(0) } else { Ok(stream(group, name)?.len()) }
    };
    match format {
        "CSR" | "CSC" | "DCSR" | "DCSC" => length("indices_1"),
        "COO" | "COOR" | "COOC" | "VEC" | "CVEC" => length("indices_0"),
        "DVEC" | "DMAT" | "DMATR" | "DMATC" => {
            let cells = shape.iter().try_fold(1u64, |cells, &side| cells.checked_mul(side));
            cells.context("the shape is too large")
        }
        _ => Ok(json.get("number_of_stored_values").and_then(Value::as_u64).unwrap_or(0)),
    }
}

/// Whether one value stands for all.
fn is_iso(json: &Value) -> bool {
    let kind = json.pointer("/data_types/values").and_then(Value::as_str);
    kind.is_some_and(|kind| kind.starts_with("iso["))
}

/// The values by their type: all of them, pairs, one for all, truth values.
fn values(group: &Group, json: &Value, entries: u64) -> Result<Box<dyn Stream>> {
    let types = json.get("data_types");
    let kind = types.and_then(|types| types.get("values")).and_then(Value::as_str).unwrap_or("");
    let (iso, inner) = match kind.strip_prefix("iso[").and_then(|kind| kind.strip_suffix(']')) {
        Some(inner) => (true, inner),
        None => (false, kind),
    };
    let mut values = stream(group, NAMES.values)?;
    if inner.starts_with("complex[") {
        values = Box::new(Pairs::new(values)?);
    } else if inner == "bint8" {
        values = Box::new(Renamed { inner: values, datatype: truth() });
    }
    let expected = if iso { 1 } else { entries };
    let found = values.len();
    ensure!(
        found == expected || (iso && found >= 1),
        "values: expected {expected} element(s), found {found}"
    );
    if !iso {
        return Ok(values);
    }
    let element = values.read(1)?;
    Ok(Box::new(Repeated::new(values.datatype().clone(), element, entries)))
}

/// Truth values as h5py stores them.
pub(super) fn truth() -> Datatype {
    let base = Integer::new(1, pumice::types::ByteOrder::Little, true);
    let names = vec!["FALSE".to_owned(), "TRUE".to_owned()];
    Datatype::Enum(Enumeration { base, names, values: vec![0, 1] })
}

/// The form that a dataset gets.
fn form(dataset: &Dataset, asked: Option<Form>) -> Result<&'static str> {
    let remembered = text(dataset.attribute(LAYOUT));
    Ok(match (dataset.shape().len(), dataset.is_sparse(), asked) {
        (1, true, _) => "CVEC",
        (1, false, _) => "DVEC",
        (2, false, None) => "DMATR",
        (2, true, None) => match remembered.as_deref() {
            Some("CSC") => "CSC",
            Some("DCSR") => "DCSR",
            Some("DCSC") => "DCSC",
            Some("COO" | "COOR" | "COOC") => "COO",
            _ => "CSR",
        },
        (2, _, Some(Form::Csr)) => "CSR",
        (2, _, Some(Form::Csc)) => "CSC",
        (2, _, Some(Form::Coo)) => "COO",
        (2, _, Some(Form::Dcsr)) => "DCSR",
        (2, _, Some(Form::Dcsc)) => "DCSC",
        (rank, ..) => bail!(
            "{}: Binsparse holds vectors and matrices, this has {rank} dimensions",
            dataset.path()
        ),
    })
}

fn write(group: &Group, dataset: &Dataset, output: &Output<'_>) -> Result<()> {
    let format = form(dataset, output.form)?;
    let (values, parts) = value_type(dataset.datatype())?;
    let wide = Datatype::u64_le();
    let axis = usize::from(format.ends_with("CSC"));
    let before = survey(dataset, format, axis)?;
    let stored = match format {
        "CSR" | "CSC" if parts == 1 && before.one.is_none() && before.structure.is_none() => {
            let types = Types { pointers: wide.clone(), indices: wide, values };
            write_compressed(group, NAMES, dataset, axis, &types, output)?
        }
        "DVEC" | "DMATR" => write_dense(group, dataset, &values, parts, output)?,
        _ => {
            let form = Columns { format, axis, values, parts, before: &before };
            write_columns(group, dataset, &form, output)?
        }
    };
    let described = describe(format, dataset, stored, &before)?;
    group.set_attribute("binsparse", described.to_string())?;
    Ok(())
}

/// Facts that are needed before arrays are made.
#[derive(Default)]
struct Survey {
    /// Lines that have cells, and cells.
    lines: u64,
    entries: u64,
    /// The value of all cells, if they had one for all before and still have.
    one: Option<Vec<u8>>,
    /// The symmetry of the matrix, if it had one before and still has.
    structure: Option<Structure>,
}

/// Goes through a matrix once, if its form needs that.
fn survey(dataset: &Dataset, format: &str, axis: usize) -> Result<Survey> {
    let mut survey = Survey::default();
    let mut iso = dataset.is_sparse() && dataset.attribute(ISO).is_ok();
    let structure = text(dataset.attribute(STRUCTURE)).and_then(|name| Structure::named(&name));
    if let Some(structure) = structure.filter(|_| dataset.is_sparse())
        && structure.holds(dataset)?
    {
        survey.structure = Some(structure);
    }
    if !iso && !format.starts_with("DCS") && survey.structure.is_none() {
        return Ok(survey);
    }
    let size = dataset.datatype().size().max(1);
    bands::for_each_band(dataset, axis, &Unwatched, |mut band| {
        if let Some(structure) = &survey.structure {
            band.keep_triangle(structure.lower, size);
        }
        survey.entries += band.columns[axis].len() as u64;
        survey.lines += band.columns[axis].chunk_by(|one, other| one == other).count() as u64;
        if iso && let Some(first) = band.values.get(..size) {
            let one = survey.one.get_or_insert_with(|| first.to_vec());
            iso = band.values.chunks(size).all(|value| value == one.as_slice());
        }
        Ok(())
    })?;
    if !iso {
        survey.one = None;
    }
    Ok(survey)
}

/// Dense values, row by row.
fn write_dense(
    group: &Group,
    dataset: &Dataset,
    values: &Datatype,
    parts: u64,
    output: &Output<'_>,
) -> Result<u64> {
    let cells = dataset.shape().iter().product::<u64>();
    let mut target = Appender::elements(group, NAMES.values, values, cells * parts)?;
    for (start, count) in Blocks::new(dataset.shape(), dataset.datatype().size()) {
        let block = dataset.read_bytes(&selection(&start, &count)?)?;
        output.progress.add(block.len() as u64);
        target.append(&block)?;
    }
    Ok(cells)
}

/// A form that is written array by array.
struct Columns<'a> {
    format: &'static str,
    axis: usize,
    values: Datatype,
    /// The number of values in one element.
    parts: u64,
    before: &'a Survey,
}

/// Coordinates and compressed lines of every kind.
fn write_columns(
    group: &Group,
    dataset: &Dataset,
    form: &Columns<'_>,
    output: &Output<'_>,
) -> Result<u64> {
    let size = dataset.datatype().size().max(1);
    let entries = match form.before.structure {
        Some(_) => form.before.entries,
        None => bands::count(dataset)?,
    };
    let (axis, wide) = (form.axis, Datatype::u64_le);
    let stored = if form.before.one.is_some() { 1 } else { entries };
    let mut target = Appender::elements(group, NAMES.values, &form.values, stored * form.parts)?;
    if let Some(one) = &form.before.one {
        target.append(one)?;
    }
    let numbers = |name, length| Appender::numbers(group, name, wide(), length);
    let (compressed, doubly) = (form.format.contains("CS"), form.format.starts_with("DCS"));
    let lines = match (doubly, compressed) {
        (true, _) => form.before.lines,
        (false, true) => dataset.shape()[axis],
        (false, false) => entries,
    };
    let mut pointers = compressed.then(|| numbers(NAMES.pointers, lines + 1)).transpose()?;
    if let Some(pointers) = &mut pointers {
        pointers.append_numbers(&[0])?;
    }
    let named = doubly || !compressed;
    let mut places = named.then(|| numbers("indices_0", lines)).transpose()?;
    let matrix = dataset.shape().len() == 2;
    let mut indices = matrix.then(|| numbers(NAMES.indices, entries)).transpose()?;
    let mut before = 0;
    bands::for_each_band(dataset, axis, output.progress, |mut band| {
        if let Some(structure) = &form.before.structure {
            band.keep_triangle(structure.lower, size);
        }
        let mut ends: Vec<u64> = band.ends(axis).iter().map(|end| before + end).collect();
        if doubly {
            ends.dedup();
            ends.retain(|&end| end > before);
            let mut full = band.columns[axis].clone();
            full.dedup();
            places.as_mut().map_or(Ok(()), |places| places.append_numbers(&full))?;
        } else if let Some(places) = &mut places {
            places.append_numbers(&band.columns[axis])?;
        }
        pointers.as_mut().map_or(Ok(()), |pointers| pointers.append_numbers(&ends))?;
        before += band.columns[axis].len() as u64;
        if let Some(indices) = &mut indices {
            indices.append_numbers(&band.columns[1 - axis])?;
        }
        if form.before.one.is_some() { Ok(()) } else { target.append(&band.values) }
    })?;
    Ok(entries)
}

/// The type that values are stored in, and how many of it make one.
fn value_type(datatype: &Datatype) -> Result<(Datatype, u64)> {
    Ok(match datatype {
        Datatype::Integer(_) | Datatype::Float(_) => (datatype.clone(), 1),
        Datatype::Enum(enumeration) if enumeration.base.size == 1 => (Datatype::u8(), 1),
        other => match arithmetic::complex_part(other) {
            Some(part) => (part, 2),
            None => bail!("elements that are {} do not fit Binsparse", other.class_name()),
        },
    })
}

fn describe(format: &str, dataset: &Dataset, stored: u64, before: &Survey) -> Result<Value> {
    let mut types = serde_json::Map::new();
    let compressed = format.contains("CS");
    if compressed {
        types.insert("pointers_to_1".into(), json!("uint64"));
    }
    if matches!(format, "COO" | "CVEC" | "DCSR" | "DCSC") {
        types.insert("indices_0".into(), json!("uint64"));
    }
    if compressed || format == "COO" {
        types.insert("indices_1".into(), json!("uint64"));
    }
    let kind = type_name(dataset.datatype())?;
    let kind = if before.one.is_some() { format!("iso[{kind}]") } else { kind };
    types.insert("values".into(), json!(kind));
    let mut about = json!({
        "version": "0.1",
        "format": format,
        "shape": dataset.shape(),
        "number_of_stored_values": stored,
        "data_types": types,
    });
    if let Some(structure) = &before.structure {
        about["structure"] = json!(structure.name);
    }
    Ok(json!({ "binsparse": about }))
}

fn type_name(datatype: &Datatype) -> Result<String> {
    Ok(match datatype {
        Datatype::Integer(integer) => {
            let sign = if integer.signed { "" } else { "u" };
            format!("{sign}int{}", integer.size * 8)
        }
        Datatype::Float(float) => format!("float{}", float.size * 8),
        Datatype::Enum(_) => "bint8".to_owned(),
        other => match arithmetic::complex_part(other) {
            Some(part) => format!("complex[{}]", type_name(&part)?),
            None => bail!("elements that are {} do not fit Binsparse", other.class_name()),
        },
    })
}
