//! The options of a new dataset.

use crate::datatype::PyDatatype;
use crate::errors::invalid;
use crate::selection::PySelection;
use pumice::{AllocationTime, DatasetBuilder, Datatype, FillTime, FilterSpec, Heaped, Selection};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A filter: its number, whether it is optional, and its parameters.
type Filter = (u16, bool, Vec<u32>);

/// A part of a virtual dataset: its cells, the file and the dataset that have them, and the cells there.
type Part = (Selection, String, String, Selection);

/// The options in the dictionary.
#[derive(Default)]
pub(crate) struct NewDataset {
    shape: Option<Vec<u64>>,
    max_shape: Option<Vec<Option<u64>>>,
    chunk: Option<Vec<u64>>,
    fill: Option<(Datatype, Vec<u8>)>,
    fill_heaped: Option<(Vec<u8>, Vec<u8>)>,
    no_fill: bool,
    fill_time: Option<FillTime>,
    allocation: Option<AllocationTime>,
    filters: Option<Vec<Filter>>,
    location_filters: Option<Vec<Filter>>,
    external: Vec<(String, u64, Option<u64>)>,
    parts: Option<Vec<Part>>,
    sparse: bool,
    density: Option<f64>,
    compact: bool,
    null: bool,
    track_times: bool,
    track_order: bool,
}

impl NewDataset {
    pub(crate) fn parse(options: &Bound<'_, PyDict>) -> PyResult<Self> {
        let mut new = Self::default();
        for (name, value) in options.iter() {
            let name: String = name.extract()?;
            match name.as_str() {
                "shape" => new.shape = value.extract()?,
                "max_shape" => new.max_shape = value.extract()?,
                "chunk" => new.chunk = value.extract()?,
                "fill" => {
                    let (datatype, bytes): (PyRef<'_, PyDatatype>, Vec<u8>) = value.extract()?;
                    new.fill = Some((datatype.0.clone(), bytes));
                }
                "fill_heaped" => new.fill_heaped = value.extract()?,
                "no_fill" => new.no_fill = value.extract()?,
                "fill_time" => new.fill_time = Some(fill_time(&value.extract::<String>()?)?),
                "allocation" => new.allocation = Some(allocation(&value.extract::<String>()?)?),
                "filters" => new.filters = value.extract()?,
                "location_filters" => new.location_filters = value.extract()?,
                "external" => new.external = value.extract()?,
                "parts" => {
                    let parts = new.parts.get_or_insert_default();
                    for part in value.try_iter()? {
                        let (target, file, dataset, source): (
                            PyRef<'_, PySelection>,
                            String,
                            String,
                            PyRef<'_, PySelection>,
                        ) = part?.extract()?;
                        parts.push((target.0.clone(), file, dataset, source.0.clone()));
                    }
                }
                "sparse" => new.sparse = value.extract()?,
                "density" => new.density = value.extract()?,
                "compact" => new.compact = value.extract()?,
                "null" => new.null = value.extract()?,
                "track_times" => new.track_times = value.extract()?,
                "track_order" => new.track_order = value.extract()?,
                "committed" => {}
                other => return Err(invalid(format!("{other} is no option of datasets"))),
            }
        }
        Ok(new)
    }
}

fn fill_time(name: &str) -> PyResult<FillTime> {
    match name {
        "alloc" => Ok(FillTime::Allocation),
        "never" => Ok(FillTime::Never),
        "ifset" => Ok(FillTime::IfSet),
        other => Err(invalid(format!(
            "fill_time must be one of: 'alloc', 'never', 'ifset', not {other}"
        ))),
    }
}

fn allocation(name: &str) -> PyResult<AllocationTime> {
    match name {
        "early" => Ok(AllocationTime::Early),
        "late" => Ok(AllocationTime::Late),
        "incremental" => Ok(AllocationTime::Incremental),
        other => Err(invalid(format!("{other} is no time of allocation"))),
    }
}

fn spec((id, optional, parameters): &Filter) -> FilterSpec {
    let location = FilterSpec::location();
    if *id == location.id {
        return location;
    }
    let (optional, parameters) = (*optional, parameters.clone());
    FilterSpec { id: *id, optional, name: None, config: None, parameters }
}

/// A builder with everything that was asked for.
pub(crate) fn built(mut builder: DatasetBuilder, new: &NewDataset) -> DatasetBuilder {
    if let Some(shape) = &new.shape {
        builder = builder.shape(shape.clone());
    }
    if let Some(max) = &new.max_shape {
        builder = builder.max_shape(max.iter().copied());
    }
    if let Some(chunk) = &new.chunk {
        builder = builder.chunk(chunk.clone());
    }
    if let Some((datatype, bytes)) = &new.fill {
        builder = builder.fill_bytes_of(datatype.clone(), bytes.clone());
    }
    if let Some((elements, heap)) = &new.fill_heaped {
        builder = builder.fill_heaped(Heaped { elements: elements.clone(), heap: heap.clone() });
    }
    if new.no_fill {
        builder = builder.no_fill_value();
    }
    if let Some(time) = new.fill_time {
        builder = builder.fill_time(time);
    }
    if let Some(time) = new.allocation {
        builder = builder.allocation_time(time);
    }
    if new.sparse {
        builder = builder.sparse();
    }
    if let Some(density) = new.density {
        builder = builder.expected_density(density);
    }
    stored(builder, new)
}

fn stored(mut builder: DatasetBuilder, new: &NewDataset) -> DatasetBuilder {
    let filters = new.filters.iter().flatten().map(spec);
    if new.sparse && new.filters.is_some() {
        // The requested filters are for the values; locations keep their own.
        builder = builder.value_filters(filters.collect());
    } else {
        builder = filters.fold(builder, DatasetBuilder::filter);
    }
    if let Some(filters) = &new.location_filters {
        builder = builder.location_filters(filters.iter().map(spec).collect());
    }
    for (path, offset, size) in &new.external {
        builder = builder.external(path, *offset, *size);
    }
    if new.parts.is_some() {
        builder = builder.virtual_dataset();
    }
    for (target, file, dataset, source) in new.parts.iter().flatten() {
        builder = builder.virtual_part(target.clone(), file, dataset, source.clone());
    }
    if new.compact {
        builder = builder.compact();
    }
    if new.null {
        builder = builder.null();
    }
    builder.track_times(new.track_times).track_attribute_order(new.track_order)
}
