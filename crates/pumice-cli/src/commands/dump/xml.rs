//! A file as XML, in the manner of `h5dump --xml`: one element for each object, by a schema or a
//! document type definition.

mod types;

use super::objects::WIDEST;
use super::options::{Options, Schema};
use super::sink::Sinks;
use crate::atlas::Atlas;
use crate::cells::{self, Hyperslab};
use crate::commands::Outcome;
use crate::numbers::FloatFormat;
use crate::sections;
use crate::value::{INDENT, Renderer, Style, xml_text};
use crate::walker::{self, Kind, Visitor};
use anyhow::{Context, Result};
use pumice::types::{ReferenceKind, VarLenKind};
use pumice::{
    AllocationTime, Attribute, CommittedDatatype, Dataset, Datatype, Error, Extent, File, Fill,
    FillTime, FilterSpec, Group, Heaped, LayoutKind, MemberKind, UNLIMITED,
};
use std::collections::HashMap;

/// The place of the schema, as h5dump prints it.
const SCHEMA: &str = "http://www.hdfgroup.org/HDF5/XML/schema/HDF5-File.xsd";
const DEFINITION: &str = "http://www.hdfgroup.org/HDF5/XML/DTD/HDF5-File.dtd";

/// Prints the objects that it visits.
pub(super) struct XmlDumper<'a> {
    file: &'a File,
    options: &'a Options,
    sinks: &'a mut Sinks,
    pub(super) outcome: Outcome,
    indent: usize,
    /// Levels that are not indented.
    beyond: usize,
    atlas: Atlas,
    /// Numbers of paths that no object has.
    invented: HashMap<String, u64>,
    /// The number of objects that were met again.
    repeated: u64,
}

impl<'a> XmlDumper<'a> {
    pub(super) fn new(file: &'a File, options: &'a Options, sinks: &'a mut Sinks) -> Self {
        Self {
            file,
            options,
            sinks,
            outcome: Outcome::Complete,
            indent: 0,
            beyond: 0,
            atlas: Atlas::of(file),
            invented: HashMap::new(),
            repeated: 0,
        }
    }

    pub(super) fn run(&mut self) -> Result<()> {
        self.line("<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
        let place = self.options.schema_place.as_deref();
        let prefix = self.options.namespace.clone();
        let instance = "xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"";
        match self.options.schema {
            Schema::Definition => {
                let place = place.unwrap_or(DEFINITION);
                self.line(&format!("<!DOCTYPE HDF5-File PUBLIC \"HDF5-File.dtd\" \"{place}\">"))?;
                self.line("<HDF5-File>")?;
            }
            Schema::Schema if prefix.is_empty() => {
                let place = place.unwrap_or(SCHEMA);
                let schema = format!("xsi:noNamespaceSchemaLocation=\"{place}\"");
                self.line(&format!("<HDF5-File {instance} {schema}>"))?;
            }
            Schema::Schema => {
                let name = prefix.trim_end_matches(':');
                let home = "http://hdfgroup.org/HDF5/XML/schema/HDF5-File";
                let schema = format!("xsi:schemaLocation=\"{home} {SCHEMA}\"");
                self.line(&format!(
                    "<{prefix}HDF5-File xmlns:{name}=\"{home}.xsd\" {instance} {schema}>"
                ))?;
            }
        }
        let (file, order) = (self.file, self.options.order());
        walker::walk_in_order(file, order, self)?;
        self.line(&format!("</{prefix}HDF5-File>"))
    }

    pub(super) fn line(&mut self, text: &str) -> Result<()> {
        let indent = self.indent;
        Ok(writeln!(self.sinks.text(), "{:1$}{text}", "", indent)?)
    }

    /// A tag alone on its line; `{}` stands for the namespace.
    fn tag(&mut self, text: &str) -> Result<()> {
        let prefix = self.options.namespace.clone();
        self.line(&text.replacen("{}", &prefix, 1))
    }

    fn open(&mut self, name: &str) -> Result<()> {
        self.tag(&format!("<{{}}{name}>"))?;
        self.deeper();
        Ok(())
    }

    fn deeper(&mut self) {
        match self.indent < WIDEST {
            true => self.indent += INDENT,
            false => self.beyond += 1,
        }
    }

    fn close(&mut self, name: &str) -> Result<()> {
        match self.beyond {
            0 => self.indent = self.indent.saturating_sub(INDENT),
            beyond => self.beyond = beyond - 1,
        }
        self.tag(&format!("</{{}}{name}>"))
    }

    /// The identifier of the object at a path. A path without an object gets a number of its own.
    fn identifier(&mut self, path: &str, address: Option<u64>) -> String {
        let path = if path.is_empty() { "/" } else { path };
        match address.or_else(|| self.address(path)) {
            Some(address) => format!("xid_{address}"),
            None => self.invented(path),
        }
    }

    /// An identifier for a path without an object in this file.
    fn invented(&mut self, path: &str) -> String {
        let next = u64::MAX - 1 - self.invented.len() as u64;
        format!("xid_{}", self.invented.entry(path.to_owned()).or_insert(next))
    }

    fn address(&self, path: &str) -> Option<u64> {
        self.file.node(path).ok().map(|node| node.address())
    }

    /// The attributes that tell an object's parent.
    fn parent(&mut self, path: &str) -> (String, String) {
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        let parent = if parent.is_empty() { "/" } else { parent };
        (self.identifier(parent, None), escape_name(parent))
    }

    fn attributes(&mut self, attributes: pumice::Result<Vec<Attribute>>) -> Result<()> {
        match attributes {
            Ok(attributes) => {
                for attribute in self.options.sorted(attributes) {
                    self.attribute(&attribute)?;
                }
                Ok(())
            }
            Err(error) => self.failed("", error),
        }
    }

    fn attribute(&mut self, attribute: &Attribute) -> Result<()> {
        self.open(&format!("Attribute Name=\"{}\"", escape_name(attribute.name())))?;
        self.dataspace(attribute.extent())?;
        self.datatype_of(attribute.datatype(), attribute.committed_datatype())?;
        let shown = self.options.attribute_values && !attribute.extent().is_null();
        if !shown {
            self.no_data()?;
            return self.close("Attribute");
        }
        let values = cells::read_attribute(attribute);
        match (attribute.datatype(), values) {
            (_, Err(error)) => self.survive(Err(error))?,
            (Datatype::Reference(reference), Ok(values)) => {
                self.references(reference.kind, &values, attribute.datatype().size(), 0)?;
            }
            (datatype, Ok(values)) => {
                self.note(datatype, 0)?;
                self.values(datatype, |print| print(&values))?;
            }
        }
        self.close("Attribute")
    }

    fn dataspace(&mut self, extent: &Extent) -> Result<()> {
        self.open("Dataspace")?;
        match extent {
            Extent::Null => self.line("<!-- unknown dataspace -->")?,
            Extent::Scalar => self.tag("<{}ScalarDataspace />")?,
            extent => {
                self.open(&format!("SimpleDataspace Ndims=\"{}\"", extent.dims().len()))?;
                for (now, max) in extent.dims().iter().zip(extent.max_dims()) {
                    let max = match *max {
                        UNLIMITED => "UNLIMITED".to_owned(),
                        max => max.to_string(),
                    };
                    self.tag(&format!("<{{}}Dimension  DimSize=\"{now}\" MaxDimSize=\"{max}\"/>"))?;
                }
                self.close("SimpleDataspace")?;
            }
        }
        self.close("Dataspace")
    }

    /// A datatype, or the place of a committed one.
    fn datatype_of(&mut self, datatype: &Datatype, committed: Option<u64>) -> Result<()> {
        let Some(address) = committed else {
            self.open("DataType")?;
            self.print_type(datatype)?;
            return self.close("DataType");
        };
        // A datatype without a path is called by a dataset that has it.
        let named = self.atlas.nameless_types().find(|(own, _)| *own == address);
        let named = named.map(|(_, dataset)| dataset.to_owned());
        if let Some(dataset) = named.and_then(|dataset| self.address(&dataset)) {
            return self.tag(&format!("<{{}}NamedDataTypePtr OBJ-XID=\"xid_{dataset}\"/>"));
        }
        let path = self.atlas.path(address).map(escape_name);
        let path = path.map_or(String::new(), |path| format!(" H5Path=\"{path}\" "));
        self.tag(&format!("<{{}}NamedDataTypePtr OBJ-XID=\"xid_{address}\"{path}/>"))
    }

    /// Committed datatypes that lost their names.
    fn nameless_types(&mut self) -> Result<()> {
        let types: Vec<_> = self.atlas.nameless_types().map(|(a, p)| (a, p.to_owned())).collect();
        for (address, dataset) in types {
            let identifier = self.identifier(&format!("/#{address}"), None);
            let parent = self.identifier("/", None);
            self.open(&format!(
                "NamedDataType Name=\"#{address}\" OBJ-XID=\"{identifier}\" \
                 Parents=\"{parent}\" H5ParentPaths=\"/\""
            ))?;
            self.open("DataType")?;
            let datatype = self.file.dataset(&dataset)?.datatype().clone();
            self.print_type(&datatype)?;
            self.close("DataType")?;
            self.close("NamedDataType")?;
        }
        Ok(())
    }

    /// h5dump's remark about values whose form the schema leaves open.
    fn note(&mut self, datatype: &Datatype, less: usize) -> Result<()> {
        let (what, less) = match datatype {
            Datatype::Compound(_) => ("compound", less),
            Datatype::VarLen(varlen) if varlen.kind == VarLenKind::Sequence => ("VL", less * 2),
            _ => return Ok(()),
        };
        let indent = self.indent;
        self.indent = indent.saturating_sub(less * INDENT);
        self.line(&format!("<!-- Note: format of {what} data not specified -->"))?;
        self.indent = indent;
        Ok(())
    }

    /// Values, one on a line. `feed` passes all of them, piece by piece.
    fn values(
        &mut self,
        datatype: &Datatype,
        feed: impl FnOnce(&mut dyn FnMut(&Heaped) -> Result<()>) -> Result<()>,
    ) -> Result<()> {
        self.open("Data")?;
        self.tag("<{}DataFromFile>")?;
        let indent = self.indent;
        let style = Style { xml: true, ..self.options.style() };
        let shown = Renderer::styled(datatype, &style).and_then(|renderer| {
            let (out, mut text) = (self.sinks.text(), String::new());
            feed(&mut |values: &Heaped| {
                for element in values.elements.chunks_exact(renderer.size().max(1)) {
                    text.clear();
                    renderer.push_lines(&mut text, element, &values.heap, indent / INDENT);
                    writeln!(out, "{:indent$}{text}", "")?;
                }
                Ok(())
            })
        });
        if shown.is_err() {
            self.line(&format!("{:INDENT$}Unable to print data.", ""))?;
        }
        self.survive(shown)?;
        self.tag("</{}DataFromFile>")?;
        self.close("Data")
    }

    fn references(
        &mut self,
        kind: ReferenceKind,
        values: &Heaped,
        size: usize,
        less: usize,
    ) -> Result<()> {
        let indent = self.indent;
        self.indent = indent.saturating_sub(less);
        self.tag("<{}Data>")?;
        if kind == ReferenceKind::Object {
            self.tag("<{}DataFromFile>")?;
            self.indent += INDENT;
            for element in values.elements.chunks_exact(size.max(1)) {
                let mut address = [0; 8];
                address[..size.min(8)].copy_from_slice(&element[..size.min(8)]);
                let path = self.atlas.path(u64::from_le_bytes(address));
                let path = path.map_or("NULL".to_owned(), xml_text);
                self.line(&format!("\"{path}\""))?;
            }
            self.indent -= INDENT;
            self.tag("</{}DataFromFile>")?;
        } else {
            self.line("<!-- Note: Region references not supported -->")?;
            self.tag("<{}NoData />")?;
        }
        self.tag("</{}Data>")?;
        self.indent = indent;
        Ok(())
    }

    fn no_data(&mut self) -> Result<()> {
        self.open("Data")?;
        self.tag("<{}NoData/>")?;
        self.close("Data")
    }

    fn dataset_body(&mut self, dataset: &Dataset) -> Result<()> {
        self.layout(dataset)?;
        self.fill(dataset)?;
        self.dataspace(&dataset.extent()?)?;
        self.datatype_of(dataset.datatype(), dataset.committed_datatype())?;
        self.attributes(dataset.attributes())?;
        if !self.options.values || dataset.storage_size()? == 0 {
            return self.no_data();
        }
        let slab = Hyperslab::whole(&dataset.shape());
        if let Datatype::Reference(reference) = dataset.datatype() {
            let values = cells::read(dataset, &slab.selection()?)?;
            return self.references(reference.kind, &values, dataset.datatype().size(), INDENT);
        }
        self.note(dataset.datatype(), 1)?;
        self.values(dataset.datatype(), |print| {
            cells::for_each_piece(dataset, &slab, |_, _, piece| print(piece))
        })
    }

    fn layout(&mut self, dataset: &Dataset) -> Result<()> {
        let kind = match dataset.layout() {
            LayoutKind::Contiguous | LayoutKind::External => "<{}ContiguousLayout/>",
            LayoutKind::Compact => "<{}CompactLayout/>",
            LayoutKind::Chunked | LayoutKind::Sparse | LayoutKind::VariableLength => "",
            _ => return Ok(()),
        };
        self.open("StorageLayout")?;
        if !kind.is_empty() {
            self.tag(kind)?;
        } else if dataset.sections().len() > 1 {
            self.structured(dataset)?;
        } else {
            self.chunks("ChunkedLayout", dataset)?;
            self.required(&dataset.filters())?;
            self.close("ChunkedLayout")?;
        }
        self.close("StorageLayout")
    }

    /// Opens a layout and tells the shape of its chunks.
    fn chunks(&mut self, layout: &str, dataset: &Dataset) -> Result<()> {
        let chunk = dataset.chunk().unwrap_or_default();
        self.open(&format!("{layout} Ndims=\"{}\"", chunk.len()))?;
        for side in chunk {
            self.tag(&format!("<{{}}ChunkDimension DimSize=\"{side}\" />"))?;
        }
        Ok(())
    }

    fn required(&mut self, filters: &[FilterSpec]) -> Result<()> {
        self.open("RequiredFilter")?;
        self.indent += INDENT;
        for filter in filters {
            self.filter(filter)?;
        }
        self.indent -= INDENT;
        self.close("RequiredFilter")
    }

    /// Structured chunks, which no schema knows: as h5dump's words for other layouts have it.
    fn structured(&mut self, dataset: &Dataset) -> Result<()> {
        let name = if dataset.is_sparse() { "SparseChunkLayout" } else { "StructuredChunkLayout" };
        self.chunks(name, dataset)?;
        let filters = dataset.section_filters();
        for (number, sizes) in sections::sizes(dataset)?.iter().enumerate() {
            let (section, stored, plain) = (sizes.section.name(), sizes.stored, sizes.plain);
            self.open(&format!(
                "Section Number=\"{number}\" Name=\"{section}\" Size=\"{stored}\" \
                 UnfilteredSize=\"{plain}\""
            ))?;
            self.required(filters.of(sizes.section))?;
            self.close("Section")?;
        }
        self.close(name)
    }

    fn filter(&mut self, filter: &FilterSpec) -> Result<()> {
        let value = |index: usize| filter.parameters.get(index).copied();
        match filter.id {
            1 => self.tag(&format!("<{{}}Deflate Level=\"{}\"/>", value(0).unwrap_or(6))),
            2 => self.tag("<{}Shuffle />"),
            3 => self.tag("<{}Fletcher32 />"),
            4 => {
                let (options, pixels) = (value(0).unwrap_or(0), value(1));
                let has = |bit: u32| options & bit != 0;
                let pixels = pixels.map_or("-1".to_owned(), |pixels| pixels.to_string());
                let mode = match (has(2), has(1)) {
                    (true, _) => "Mode =\"Hardware\" ",
                    (_, true) => "Mode =\"K13\" ",
                    _ => "",
                };
                let coding = if has(4) { "Entropy" } else { "NN" };
                let order = if has(8) { "LSB" } else { "MSB" };
                let header = if has(128) { "Header=\"Raw\"" } else { "" };
                self.tag(&format!(
                    "<{{}}SZIP Pixels_per_block=\"{pixels}\" {mode}Coding=\"{coding}\" \
                     ByteOrder=\"{order}\" {header}/>"
                ))
            }
            _ => Ok(()),
        }
    }

    fn fill(&mut self, dataset: &Dataset) -> Result<()> {
        let creation = dataset.creation()?;
        let time = match creation.fill_time {
            FillTime::Allocation => "FillOnAlloc",
            FillTime::Never => "FillNever",
            FillTime::IfSet => "FillIfSet",
        };
        let allocation = match creation.allocation_time {
            AllocationTime::Early => "Early",
            AllocationTime::Incremental => "Incremental",
            AllocationTime::Late => "Late",
            AllocationTime::Default => "?",
        };
        self.open(&format!("FillValueInfo FillTime=\"{time}\" AllocationTime=\"{allocation}\""))?;
        self.open("FillValue")?;
        let default = creation.fill == Fill::Default && creation.fill_time == FillTime::IfSet;
        match &creation.fill {
            Fill::Value(bytes) => self.fill_value(dataset.datatype(), bytes)?,
            Fill::Default if !default => {
                let zeros = vec![0; dataset.datatype().size()];
                self.fill_value(dataset.datatype(), &zeros)?;
            }
            _ => self.tag("<{}NoFill/>")?,
        }
        self.close("FillValue")?;
        self.close("FillValueInfo")
    }

    fn fill_value(&mut self, datatype: &Datatype, bytes: &[u8]) -> Result<()> {
        self.open("Data")?;
        let what = match datatype {
            Datatype::String(_) => Some("String fill values"),
            Datatype::Array(_) => Some("Array fill values"),
            Datatype::Time(_) => Some("Time fill"),
            Datatype::Compound(_) => Some("Compound fill"),
            Datatype::VarLen(varlen) if varlen.kind == VarLenKind::Sequence => Some("VL fill"),
            Datatype::VarLen(_) => Some("String fill values"),
            _ => None,
        };
        if let Some(what) = what {
            self.line(&format!("<!-- {what} not yet implemented. -->"))?;
            self.tag("<{}NoData />")?;
        } else {
            self.tag("<{}DataFromFile>")?;
            let mut text = String::new();
            let style = Style { xml: true, float: FloatFormat::parse("%f"), ..Style::default() };
            let renderer = Renderer::styled(datatype, &style);
            renderer?.push_inline(&mut text, bytes, &[]);
            self.line(&format!("\"{text}\""))?;
            self.tag("</{}DataFromFile>")?;
        }
        self.close("Data")
    }

    /// Reports a failure and goes on, unless the reader has gone away.
    fn survive(&mut self, done: Result<()>) -> Result<()> {
        self.outcome.survive(done)
    }

    fn name_and_place(&mut self, path: &str, address: u64) -> String {
        let name = escape_name(walker::name(path));
        format!("Name=\"{name}\" OBJ-XID=\"xid_{address}\"")
    }
}

impl Visitor for XmlDumper<'_> {
    fn enter_group(&mut self, path: &str, group: &Group) -> Result<bool> {
        let address = group.address();
        if path == "/" {
            self.tag(&format!("<{{}}RootGroup OBJ-XID=\"xid_{address}\" H5Path=\"/\">"))?;
            self.deeper();
        } else {
            let (parent, parent_path) = self.parent(path);
            let begin = self.name_and_place(path, address);
            self.tag(&format!(
                "<{{}}Group {begin} H5Path=\"{}\" Parents=\"{parent}\" \
                 H5ParentPaths=\"{parent_path}\" >",
                escape_name(path)
            ))?;
            self.deeper();
        }
        self.attributes(group.attributes())?;
        if path == "/" {
            self.nameless_types()?;
        }
        Ok(true)
    }

    fn leave_group(&mut self, path: &str) -> Result<()> {
        self.close(if path == "/" { "RootGroup" } else { "Group" })
    }

    fn dataset(&mut self, path: &str, dataset: &Dataset) -> Result<()> {
        let (parent, parent_path) = self.parent(path);
        let begin = self.name_and_place(path, dataset.address());
        self.open(&format!(
            "Dataset {begin} H5Path= \"{}\" Parents=\"{parent}\" H5ParentPaths=\"{parent_path}\"",
            escape_name(path)
        ))?;
        let indent = self.indent;
        let shown = self.dataset_body(dataset).with_context(|| path.to_owned());
        self.survive(shown)?;
        self.indent = indent;
        self.close("Dataset")
    }

    fn datatype(&mut self, path: &str, datatype: &CommittedDatatype) -> Result<()> {
        let (parent, parent_path) = self.parent(path);
        let begin = self.name_and_place(path, datatype.address());
        self.open(&format!(
            "NamedDataType {begin} H5Path=\"{}\" Parents=\"{parent}\" \
             H5ParentPaths=\"{parent_path}\"",
            escape_name(path)
        ))?;
        self.open("DataType")?;
        self.print_type(datatype.datatype())?;
        self.close("DataType")?;
        self.close("NamedDataType")
    }

    fn other(&mut self, path: &str, kind: &MemberKind) -> Result<()> {
        let identifier = match kind {
            MemberKind::ExternalLink(..) => self.invented(path),
            _ => self.identifier(path, None),
        };
        let (parent, parent_path) = self.parent(path);
        let name = escape_name(walker::name(path));
        let begin = format!(
            "LinkName=\"{name}\" OBJ-XID=\"{identifier}\" H5SourcePath=\"{}\"",
            escape_name(path)
        );
        let end = format!("Parents=\"{parent}\" H5ParentPaths=\"{parent_path}\" />");
        match kind {
            MemberKind::SoftLink(target) => {
                let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
                let absolute = match target.starts_with('/') {
                    true => target.clone(),
                    false => format!("{folder}/{target}"),
                };
                let object = self.address(&absolute);
                let object = object
                    .map_or(" ".to_owned(), |address| format!("TargetObj=\"xid_{address}\" "));
                let target = escape_name(target);
                self.tag(&format!("<{{}}SoftLink {begin} TargetPath=\"{target}\" {object}{end}"))
            }
            MemberKind::ExternalLink(file, target) => self.tag(&format!(
                "<{{}}ExternalLink {begin} TargetFilename=\"{}\"  TargetPath=\"{}\"  {end}",
                escape_name(file),
                escape_name(target)
            )),
            MemberKind::UserDefinedLink(class) => {
                self.tag(&format!("<{{}}UserDefined {begin} LinkClass=\"{class}\"  {end}"))
            }
            _ => Ok(()),
        }
    }

    fn again(&mut self, path: &str, kind: Kind, first: &str) -> Result<()> {
        let (parent, parent_path) = self.parent(path);
        let identifier = self.identifier(first, None);
        let name = escape_name(walker::name(path));
        let (first, path) = (escape_name(first), escape_name(path));
        if kind != Kind::Datatype {
            self.repeated += 1;
        }
        let number = self.repeated;
        let parents = format!("Parents=\"{parent}\" H5ParentPaths=\"{parent_path}\"");
        match kind {
            Kind::Group => {
                self.open(&format!(
                    "Group Name=\"{name}\" OBJ-XID=\"{identifier}-{number}\" H5Path=\"{first}\" \
                     {parents}"
                ))?;
                let pointer = format!("OBJ-XID=\"{identifier}\" H5Path=\"{first}\" {parents}");
                self.tag(&format!("<{{}}GroupPtr {pointer} />"))?;
                self.close("Group")
            }
            Kind::Dataset => {
                self.open(&format!(
                    "Dataset Name=\"{name}\" OBJ-XID=\"{identifier}-{number}\" H5Path=\"{path}\" \
                     {parents}"
                ))?;
                let pointer = format!("OBJ-XID=\"{identifier}\" H5Path=\"{first}\"");
                self.tag(&format!("<{{}}DatasetPtr {pointer}/>"))?;
                self.close("Dataset")
            }
            Kind::Datatype => {
                self.open(&format!(
                    "NamedDataType Name=\"{name}\" OBJ-XID=\"{identifier}\" H5Path=\"{path}\" \
                     {parents}"
                ))?;
                let pointer = format!("OBJ-XID=\"{identifier}\" H5Path=\"{first}\"");
                self.tag(&format!("<{{}}NamedDatatypePtr {pointer}/>"))?;
                self.close("NamedDataType")
            }
        }
    }

    fn failed(&mut self, _path: &str, error: Error) -> Result<()> {
        self.survive(Err(error.into()))
    }
}

/// A name as the value of an XML attribute.
pub(super) fn escape_name(name: &str) -> String {
    xml_text(name).replace("\\\"", "&quot;").replace("\\\\", "\\")
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_are_escaped() {
        assert_eq!(
            super::escape_name("a<b>'c'&\"d\"\\"),
            "a&lt;b&gt;&apos;c&apos;&amp;&quot;d&quot;\\"
        );
    }
}
