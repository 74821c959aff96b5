//! `pumice-interop write`: operations on a new file, one JSON object a line.

use super::{datatype, packed};
use anyhow::{Context, Result, bail};
use pumice::{
    AllocationTime, AttributeValue, ByKind, Dataset, File, FileOptions, FileSpaceStrategy,
    FillTime, FilterSpec, Group, LibraryVersion, Node, RawAttribute, Section, Selection,
    VariableLength,
};
use serde_json::Value;
use std::path::{Path, PathBuf};

pub(crate) fn run(spec: &Path, out: &Path) -> Result<()> {
    let folder = spec.parent().unwrap_or(Path::new("."));
    let text = std::fs::read_to_string(spec).with_context(|| spec.display().to_string())?;
    operations(&text, folder, File::create(out)?, out)
}

/// `pumice-interop edit`: operations on a file that is there.
pub(crate) fn edit(spec: &Path, out: &Path) -> Result<()> {
    let folder = spec.parent().unwrap_or(Path::new("."));
    let text = std::fs::read_to_string(spec).with_context(|| spec.display().to_string())?;
    operations(&text, folder, File::edit(out)?, out)
}

fn operations(text: &str, folder: &Path, file: File, out: &Path) -> Result<()> {
    let (mut file, mut out) = (Some(file), out.to_owned());
    for (number, line) in text.lines().enumerate() {
        let operation: Value = serde_json::from_str(line)?;
        let done = match (&file, operation["op"].as_str()) {
            (_, Some("file")) => next_file(&mut file, &mut out, &operation, false),
            (_, Some("edit")) => next_file(&mut file, &mut out, &operation, true),
            (Some(file), Some(op)) if op != "reopen" => apply(file, folder, &operation),
            _ => reopen(&mut file, &out),
        };
        done.with_context(|| format!("line {}: {line}", number + 1))?;
    }
    file.map_or(Ok(()), |file| Ok(file.close()?))
}

/// Closes the file and begins another beside it, or edits one that is there.
fn next_file(
    file: &mut Option<File>,
    out: &mut PathBuf,
    operation: &Value,
    edit: bool,
) -> Result<()> {
    if let Some(open) = file.take() {
        open.close()?;
    }
    out.set_file_name(operation["path"].as_str().context("no path")?);
    let options = options(operation)?;
    *file = Some(if edit { options.edit(&*out)? } else { options.create(&*out)? });
    Ok(())
}

/// The file-space settings of a new file, with h5py's names.
fn options(operation: &Value) -> Result<FileOptions> {
    let mut options = File::options();
    if let Some(name) = operation["fs_strategy"].as_str() {
        options = options.space_strategy(match name {
            "fsm" => FileSpaceStrategy::FreeSpaceManagers,
            "page" => FileSpaceStrategy::Paged,
            "aggregate" => FileSpaceStrategy::Aggregators,
            "none" => FileSpaceStrategy::EndOfFile,
            other => bail!("no such strategy: {other}"),
        });
    }
    if let Some(bytes) = operation["fs_page_size"].as_u64() {
        options = options.page_size(bytes);
    }
    if let Some(bytes) = operation["fs_threshold"].as_u64() {
        options = options.free_space_threshold(bytes);
    }
    if let Some([offset, length]) = operation["widths"].as_array().map(Vec::as_slice) {
        let bytes = |width: &Value| width.as_u64().and_then(|width| u8::try_from(width).ok());
        let widths = bytes(offset).zip(bytes(length)).context("widths of addresses and lengths")?;
        options = options.widths(widths.0, widths.1);
    }
    if let Some(oldest) = library_version(&operation["libver"]) {
        options = options.library_version(oldest);
    }
    if let Some(newest) = library_version(&operation["newest"]) {
        options = options.newest_version(newest);
    }
    if let Some(bytes) = operation["memb_size"].as_u64() {
        options = options.family(bytes);
    }
    if let Some(name) = operation["by_kind"].as_str() {
        options = options.by_kind(match name {
            "split" => ByKind::Split,
            "meta-raw" => ByKind::SplitMetaRaw,
            "multi" => ByKind::Multi,
            other => bail!("no such files: {other}"),
        });
    }
    options = options.user_block(operation["userblock_size"].as_u64().unwrap_or(0));
    options = options.mark_open(operation["mark_open"] == true);
    options = options.ignore_mark(operation["ignore_mark"] == true);
    Ok(options.persist_free_space(operation["fs_persist"] == true))
}

fn library_version(name: &Value) -> Option<LibraryVersion> {
    Some(match name.as_str()? {
        "earliest" => LibraryVersion::Earliest,
        "v108" => LibraryVersion::V18,
        "v110" => LibraryVersion::V110,
        "v112" => LibraryVersion::V112,
        "v114" => LibraryVersion::V114,
        "v200" => LibraryVersion::V200,
        "v300" => LibraryVersion::V300,
        _ => return None,
    })
}

/// Reports that the file is open, and waits until standard input has a line or ends.
pub(crate) fn hold() -> Result<()> {
    println!("open");
    std::io::stdin().read_line(&mut String::new())?;
    Ok(())
}

fn reopen(file: &mut Option<File>, out: &Path) -> Result<()> {
    if let Some(open) = file.take() {
        open.close()?;
    }
    *file = Some(File::edit(out)?);
    Ok(())
}

fn apply(file: &File, folder: &Path, operation: &Value) -> Result<()> {
    let path = operation["path"].as_str().context("no path")?;
    let bytes = |field: &str| -> Result<Vec<u8>> {
        let name = operation[field].as_str().with_context(|| format!("no {field}"))?;
        Ok(std::fs::read(folder.join(name))?)
    };
    if crate::objects::apply(file, path, operation)?
        || crate::pairs::apply(file, folder, path, operation)?
    {
        return Ok(());
    }
    match operation["op"].as_str() {
        Some("group") => drop(file.create_group(path)?),
        Some("dense" | "variable" | "sparse") => drop(create(file, path, operation)?),
        Some("attribute") => set_attribute(file, path, operation, bytes("data")?)?,
        Some("write") => {
            let dataset = file.dataset(path)?;
            let values = packed::unpack(dataset.datatype(), bytes("data")?)?;
            dataset.write_heaped(block(operation)?, &values)?;
        }
        Some("write_points") => {
            let dataset = file.dataset(path)?;
            let coords = bytes("coords")?;
            let coords = coords.chunks_exact(8).map(|c| u64::from_le_bytes(c.try_into().unwrap()));
            let points = Selection::points(dataset.shape().len(), coords.collect())?;
            let values = packed::unpack(dataset.datatype(), bytes("values")?)?;
            dataset.write_heaped(points, &values)?;
        }
        Some("write_chunk") => {
            let mask = operation["mask"].as_u64().unwrap_or(0) as u32;
            let offset = numbers(&operation["offset"])?;
            file.dataset(path)?.write_chunk(offset, &bytes("data")?, mask)?;
        }
        Some("write_coo" | "write_lines") => crate::lines::write(file, folder, operation)?,
        Some("write_scalar") => {
            let value = operation["value"].as_f64().context("no value")?;
            file.dataset(path)?.write_scalar(block(operation)?, value)?;
        }
        Some("erase") => file.dataset(path)?.erase(block(operation)?)?,
        Some("hold") => hold()?,
        Some("flush") => file.flush()?,
        Some("delete") => file.unlink(path)?,
        Some("resize") => file.dataset(path)?.resize(numbers(&operation["shape"])?)?,
        other => bail!("no such operation: {other:?}"),
    }
    Ok(())
}

fn create(file: &Group, path: &str, operation: &Value) -> Result<Dataset> {
    let datatype = match operation["committed"].as_str() {
        Some(name) => file.committed_datatype(name)?.datatype().clone(),
        None => datatype::parse(&operation["dtype"])?,
    };
    let (sparse, varlen) = (operation["op"] == "sparse", datatype.has_varlen());
    let mut builder = match operation["committed"].as_str() {
        Some(name) => file.new_dataset_of_committed(&file.committed_datatype(name)?),
        None => file.new_dataset_of(datatype.clone()),
    };
    if operation["null"] == true {
        builder = builder.null();
    }
    if operation["op"] == "variable" {
        builder = builder.variable_length();
    }
    builder = builder.shape(numbers(&operation["shape"])?);
    if let Some(max) = operation["maxshape"].as_array() {
        builder = builder.max_shape(max.iter().map(Value::as_u64));
    }
    if operation["chunks"].is_array() {
        builder = builder.chunk(numbers(&operation["chunks"])?);
    }
    if let Some(fill) = operation["fill"].as_str() {
        builder = match varlen {
            true => builder.fill_heaped(packed::unpack(&datatype, unhex(fill)?)?),
            false => builder.fill_bytes(unhex(fill)?),
        };
    }
    builder = match operation["allocation"].as_str() {
        Some("early") => builder.allocation_time(AllocationTime::Early),
        Some("late") => builder.allocation_time(AllocationTime::Late),
        Some("incremental") => builder.allocation_time(AllocationTime::Incremental),
        _ => builder,
    };
    builder = match operation["fill_time"].as_str() {
        Some("alloc") => builder.fill_time(FillTime::Allocation),
        Some("never") => builder.fill_time(FillTime::Never),
        _ => builder,
    };
    if operation["compact"] == true {
        builder = builder.compact();
    }
    for piece in operation["external"].as_array().into_iter().flatten() {
        let name = piece["file"].as_str().context("no file")?;
        let offset = piece["offset"].as_u64().unwrap_or(0);
        builder = builder.external(name, offset, piece["size"].as_u64());
    }
    for part in operation["parts"].as_array().into_iter().flatten() {
        let text = |field: &str| part[field].as_str().with_context(|| format!("no {field}"));
        let (target, source) = (block(&part["target"])?, block(&part["source"])?);
        builder = builder.virtual_part(target, text("file")?, text("dataset")?, source);
    }
    if operation["track_times"] == true {
        builder = builder.track_times(true);
    }
    if operation["dont_filter_partial"] == true {
        builder = builder.dont_filter_partial_chunks();
    }
    match (sparse, operation["filters"].as_array()) {
        (_, Some(sections)) if varlen && operation["op"] != "dense" => {
            let kinds = [Section::Selection, Section::References, Section::Heap];
            for (section, list) in kinds[3 - sections.len().min(3)..].iter().zip(sections) {
                builder = filters(list)?
                    .into_iter()
                    .fold(builder.clear_filters(*section), |builder, filter| {
                        builder.section_filter(*section, filter)
                    });
            }
        }
        (true, Some(sections)) => {
            let [locations, values] = sections.as_slice() else { bail!("two lists of filters") };
            builder = builder.location_filters(filters(locations)?).value_filters(filters(values)?);
        }
        (false, Some(_)) => {
            for filter in filters(&operation["filters"])? {
                builder = builder.filter(filter);
            }
        }
        (_, None) => {}
    }
    Ok(if sparse { builder.sparse() } else { builder }.create(path)?)
}

fn filters(list: &Value) -> Result<Vec<FilterSpec>> {
    let list = list.as_array().context("no list of filters")?;
    list.iter()
        .map(|filter| {
            let id = filter["id"].as_u64().context("no filter id")? as u16;
            let parameters = numbers(&filter["parameters"])?.iter().map(|&n| n as u32).collect();
            let optional = filter["optional"].as_bool().unwrap_or(true);
            Ok(FilterSpec { id, optional, name: None, config: None, parameters })
        })
        .collect()
}

fn set_attribute(file: &File, path: &str, operation: &Value, data: Vec<u8>) -> Result<()> {
    let name = operation["name"].as_str().context("no name")?;
    let shape = numbers(&operation["shape"])?;
    let datatype = datatype::parse(&operation["dtype"])?;
    if datatype.has_varlen() {
        let values = packed::unpack(&datatype, data)?;
        return attach(file, path, name, VariableLength::heaped(datatype, &shape, values)?);
    }
    let value = match operation["null"] == true {
        true => RawAttribute::null(datatype),
        false => RawAttribute::new(datatype, &shape, data)?,
    };
    match operation["committed"].as_str() {
        Some(shared) => attach(file, path, name, file.committed_datatype(shared)?.value(value)),
        None => attach(file, path, name, value),
    }
}

/// Adds an attribute to an object.
pub(crate) fn attach(
    file: &File,
    path: &str,
    name: &str,
    value: impl AttributeValue,
) -> Result<()> {
    match file.node(path)? {
        Node::Group(group) => group.set_attribute(name, value)?,
        Node::Dataset(dataset) => dataset.set_attribute(name, value)?,
        Node::Datatype(datatype) => datatype.set_attribute(name, value)?,
    }
    Ok(())
}

pub(crate) fn block(operation: &Value) -> Result<Selection> {
    if operation["start"].is_null() {
        return Ok(Selection::all());
    }
    Ok(Selection::block(&numbers(&operation["start"])?, &numbers(&operation["count"])?)?)
}

fn numbers(value: &Value) -> Result<Vec<u64>> {
    let list = value.as_array().with_context(|| format!("no list of numbers: {value}"))?;
    list.iter().map(|n| n.as_u64().with_context(|| format!("no number: {n}"))).collect()
}

fn unhex(text: &str) -> Result<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    digits.map(|pair| Ok(u8::from_str_radix(std::str::from_utf8(pair)?, 16)?)).collect()
}
