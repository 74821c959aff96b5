//! The plan for each dataset.

use super::mask;
use super::options::Options;
use super::request::{
    Asked, FilterKind, FilterRequest, KeepRequest, LayoutRequest, SectionRequest,
};
use crate::commands::h5format_convert;
use crate::{cells, failure};
use anyhow::{Context, Result, bail};
use pumice::types::{Conversion, HeapedConversion, Value, VarLenKind};
use pumice::{
    AllocationTime, Dataset, DatasetBuilder, Datatype, File, FilterSpec, Keep, LayoutKind, Remade,
    Section,
};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

/// The most bytes of a compact dataset, as h5repack has it.
const MAX_COMPACT: u64 = 64_000;

/// The level of deflate in the place of other compressors.
const COMPARABLE_LEVEL: u32 = 4;

/// The result for a dataset with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The dataset is stored as requested.
    Remade,
    /// The dataset is smaller than the minimum for filters.
    TooSmall,
    /// Its filters do not suit it.
    Impossible,
    /// The dataset cannot be stored as requested.
    Uncreated,
}

/// Decides how datasets are stored.
pub(super) struct Planner<'a> {
    pub(super) options: &'a Options,
    input: &'a File,
    fates: RefCell<BTreeMap<String, Fate>>,
    /// The path of the dataset that was planned last.
    last: RefCell<String>,
}

impl<'a> Planner<'a> {
    pub(super) fn new(options: &'a Options, input: &'a File) -> Result<Self> {
        Ok(Self { options, input, fates: RefCell::default(), last: RefCell::default() })
    }

    /// The result for the dataset at a path, if something was requested.
    pub(super) fn fate(&self, path: &str) -> Option<Fate> {
        self.fates.borrow().get(path).copied()
    }

    /// The path of the dataset that was planned last.
    pub(super) fn last(&self) -> String {
        self.last.borrow().clone()
    }

    /// The new storage of a dataset; `None` for unchanged.
    pub(super) fn remade(&self, file: &File, dataset: &Dataset) -> Result<Option<Remade>> {
        tell_of_lost_references(dataset);
        *self.last.borrow_mut() = dataset.path().to_owned();
        if self.options.old_indexes && dataset.layout() == LayoutKind::Chunked {
            return self.with_old_index(file, dataset);
        }
        let remade = self.asked(file, dataset)?;
        // Elements in other files come along if anything is to change, as h5repack has it.
        if remade.is_some()
            || dataset.layout() != LayoutKind::External
            || self.options.requests.is_empty()
        {
            return Ok(remade);
        }
        let layout = Some(&LayoutRequest::Contiguous);
        let request = Request { dataset, layout, filters: &[], bytes: 0 };
        let made = request.builder(file, dataset.datatype().clone())?;
        Ok(made.ok().map(|builder| Remade { builder, keep: Keep::Defined }))
    }

    /// The same dataset with the chunk index that every program reads, unless it has that already.
    fn with_old_index(&self, file: &File, dataset: &Dataset) -> Result<Option<Remade>> {
        let path = Path::new(&self.options.input);
        if h5format_convert::has_old_index(path, self.input, dataset)? {
            return Ok(None);
        }
        if dataset.datatype().refers_to_objects() {
            let path = dataset.path();
            failure::warn(&format!("{path}: chunks of references keep an index that is newer"));
            return Ok(None);
        }
        // Asked for by name, chunks at the edge are filtered as all are: older programs know nothing else.
        let layout = dataset.chunk().map(LayoutRequest::Chunked);
        let request = Request { dataset, layout: layout.as_ref(), filters: &[], bytes: 0 };
        match request.builder(file, dataset.datatype().clone())? {
            Ok(builder) => Ok(Some(Remade { builder, keep: Keep::Defined })),
            Err(why) => bail!("older programs cannot have it: {why}"),
        }
    }

    /// The requested storage of a dataset.
    fn asked(&self, file: &File, dataset: &Dataset) -> Result<Option<Remade>> {
        let Asked { layout, filters, keep } = self.options.requests.of(dataset.path());
        let datatype = match self.options.native {
            true => cells::with_order(dataset.datatype(), false),
            false => dataset.datatype().clone(),
        };
        let converted = datatype != *dataset.datatype();
        let idle = layout.is_none() && filters.is_empty() && !converted;
        if idle || (self.options.keep_defined && mask::is_mask(dataset)) {
            return Ok(None);
        }
        let note = |fate| self.fates.borrow_mut().insert(dataset.path().to_owned(), fate);
        let cells = dataset.extent()?.cells().unwrap_or(u64::MAX);
        let bytes = cells.saturating_mul(dataset.datatype().size() as u64);
        if bytes < self.options.minimum && layout != Some(&LayoutRequest::Compact) {
            note(Fate::TooSmall);
            return Ok(None);
        }
        if dataset.shape().is_empty() && !converted {
            note(Fate::Remade);
            return Ok(None);
        }
        // References are written again in the end, and stay as they are stored.
        let sparse = matches!(layout, Some(LayoutRequest::Sparse(_)));
        if matches!(dataset.datatype(), Datatype::Reference(_)) && !sparse {
            return Ok(None);
        }
        let request = Request { dataset, layout, filters, bytes };
        let possible = match self.keep(dataset, layout, keep)? {
            Ok(keep) => request.builder(file, datatype)?.map(|builder| (builder, keep)),
            Err(why) => Err(why),
        };
        let (builder, keep) = match possible {
            Ok(possible) => possible,
            Err(why) => {
                note(request.failure());
                // Where a layout for all does not fit, h5repack says nothing either.
                let rank = dataset.shape().len();
                let same_rank = |chunk: &Vec<u64>| chunk.len() == rank;
                if let Some(LayoutRequest::Sparse(chunk)) = layout
                    && chunk.as_ref().is_none_or(same_rank)
                {
                    let path = dataset.path();
                    failure::warn(&format!("{path} is copied as it is, not as SPARSECHUNK: {why}"));
                }
                return Ok(None);
            }
        };
        note(Fate::Remade);
        if !converted && request.is_same() {
            return Ok(None);
        }
        Ok(Some(Remade { builder, keep }))
    }

    /// The defined cells of a sparse copy; an error if they are unknown.
    fn keep(
        &self,
        dataset: &Dataset,
        layout: Option<&LayoutRequest>,
        request: Option<&KeepRequest>,
    ) -> Result<Possible<Keep>> {
        if !matches!(layout, Some(LayoutRequest::Sparse(_))) {
            return Ok(Ok(Keep::Defined));
        }
        match request {
            Some(KeepRequest::Listed(locations)) => {
                return Ok(Ok(Keep::Selected(locations.selection(&dataset.shape())?)));
            }
            Some(KeepRequest::Except(value)) => {
                let keep = excluded(value, dataset.datatype())?;
                return Ok(match &keep {
                    Keep::Except(given, _)
                        if Conversion::new(given, dataset.datatype()).is_err() =>
                    {
                        let class = dataset.datatype().class_name();
                        Err(format!("--exclude {value} does not fit values of class {class}"))
                    }
                    _ => Ok(keep),
                });
            }
            None => {}
        }
        if self.options.keep_defined
            && let Some(mask) = mask::of(self.input, dataset.path())
        {
            return Ok(Ok(Keep::Where(mask)));
        }
        Ok(Ok(Keep::Defined))
    }
}

/// Warns that references in a fill value become null in another file, if any is not null in this
/// one.
fn tell_of_lost_references(dataset: &Dataset) {
    let datatype = dataset.datatype();
    if !datatype.refers_to_objects() {
        return;
    }
    // Copying the value reports its fault.
    let Ok(Some(fill)) = dataset.fill_heaped() else { return };
    if fill.values(datatype).is_ok_and(|values| values.iter().any(leads_somewhere)) {
        let path = dataset.path();
        failure::warn(&format!("{path}: references in its fill value are null in the new file"));
    }
}

fn leads_somewhere(value: &Value) -> bool {
    match value {
        Value::Reference(bytes) => bytes.iter().any(|&byte| byte != 0),
        Value::Sequence(values) | Value::Array(values) => values.iter().any(leads_somewhere),
        Value::Compound(members) => members.iter().any(|(_, value)| leads_somewhere(value)),
        _ => false,
    }
}

/// A value that makes cells undefined, as it was typed.
fn excluded(text: &str, datatype: &Datatype) -> Result<Keep> {
    let is_text = match datatype {
        Datatype::String(_) => true,
        Datatype::VarLen(varlen) => matches!(varlen.kind, VarLenKind::String { .. }),
        _ => false,
    };
    if is_text {
        return Ok(Keep::ExceptValue(Value::Text(text.as_bytes().to_vec())));
    }
    if let Ok(number) = text.parse::<i64>() {
        return Ok(Keep::Except(Datatype::i64_le(), number.to_le_bytes().to_vec()));
    }
    if let Ok(number) = text.parse::<u64>() {
        return Ok(Keep::Except(Datatype::u64_le(), number.to_le_bytes().to_vec()));
    }
    let number = text.parse::<f64>().with_context(|| format!("--exclude {text}: not a number"))?;
    Ok(Keep::except(number))
}

/// The result of a request, or the reason why it is impossible.
type Possible<T> = std::result::Result<T, String>;

/// The request for one dataset.
struct Request<'a> {
    dataset: &'a Dataset,
    layout: Option<&'a LayoutRequest>,
    filters: &'a [FilterRequest],
    bytes: u64,
}

impl Request<'_> {
    /// The new dataset, or why it cannot be made like that.
    fn builder(&self, file: &File, datatype: Datatype) -> Result<Possible<DatasetBuilder>> {
        let (dataset, shape) = (self.dataset, self.dataset.shape());
        let same_rank = |chunk: &[u64]| chunk.len() == shape.len();
        let other_shape = |chunk: &[u64]| format!("chunks of {chunk:?} do not fit {shape:?}");
        let max = dataset.max_shape();
        let fits = |chunk: &[u64]| {
            let mut sides = chunk.iter().zip(&max);
            same_rank(chunk) && sides.all(|(side, max)| max.is_none_or(|max| *side <= max.max(1)))
        };
        let sparse = match self.layout {
            Some(LayoutRequest::Sparse(_)) => true,
            None => dataset.is_sparse(),
            Some(_) => false,
        };
        let mut builder = file.new_dataset_of(datatype.clone()).shape(shape.clone());
        let grows = max.iter().zip(&shape).any(|(max, now)| *max != Some(*now));
        let chunked = sparse
            || !matches!(self.layout, Some(LayoutRequest::Compact | LayoutRequest::Contiguous));
        if grows && chunked {
            builder = builder.max_shape(max.clone());
        }
        builder = match self.layout {
            Some(LayoutRequest::Compact) if self.bytes > MAX_COMPACT => {
                return Ok(Err(format!("{} bytes are too many", self.bytes)));
            }
            Some(LayoutRequest::Compact) if self.keeps_filters() => {
                return Ok(Err("its filters need chunks".to_owned()));
            }
            Some(LayoutRequest::Compact) => builder.compact(),
            Some(LayoutRequest::Contiguous) => builder,
            Some(LayoutRequest::Chunked(chunk)) if !fits(chunk) => {
                return Ok(Err(other_shape(chunk)));
            }
            Some(LayoutRequest::Chunked(chunk)) => builder.chunk(chunk.clone()),
            Some(LayoutRequest::Sparse(Some(chunk))) if !same_rank(chunk) => {
                return Ok(Err(other_shape(chunk)));
            }
            Some(LayoutRequest::Sparse(Some(chunk))) => builder.sparse().chunk(chunk.clone()),
            Some(LayoutRequest::Sparse(None)) => builder.sparse(),
            None => {
                let builder = match dataset.chunk() {
                    Some(chunk) => builder.chunk(chunk),
                    None if dataset.layout() == LayoutKind::Compact && !self.adds_filters() => {
                        builder.compact()
                    }
                    None => builder,
                };
                match dataset.layout() {
                    _ if sparse => builder.sparse(),
                    LayoutKind::VariableLength => builder.variable_length(),
                    _ => builder,
                }
            }
        };
        builder = self.properties(builder, &datatype)?;
        Ok(self.filtered(builder, chunked, sparse))
    }

    /// Whether dense chunks that hold variable-length data themselves stay so.
    fn stays_variable_length(&self) -> bool {
        self.layout.is_none() && self.dataset.layout() == LayoutKind::VariableLength
    }

    /// Whether the dataset keeps its filters.
    fn keeps_filters(&self) -> bool {
        self.filters.is_empty() && !self.dataset.filters().is_empty()
    }

    /// The result if it cannot be stored as requested.
    fn failure(&self) -> Fate {
        let rank = self.dataset.shape().len();
        match self.layout {
            Some(LayoutRequest::Chunked(chunk)) if chunk.len() != rank => Fate::Uncreated,
            Some(LayoutRequest::Compact) if self.keeps_filters() => Fate::Uncreated,
            _ if self.checks_references() => Fate::Uncreated,
            _ => Fate::Impossible,
        }
    }

    /// Whether a checksum is wanted of strings or sequences, of which chunks have references only.
    fn checks_references(&self) -> bool {
        let (datatype, checksum) = (self.dataset.datatype(), FilterSpec::fletcher32().id);
        let wanted = |filter: &FilterRequest| filter.spec(1);
        matches!(datatype, Datatype::VarLen(_))
            && self.filters.iter().filter_map(wanted).any(|filter| filter.id == checksum)
    }

    fn adds_filters(&self) -> bool {
        self.filters.iter().any(|filter| filter.kind != FilterKind::None)
    }

    /// Keeps fill value and times.
    fn properties(&self, builder: DatasetBuilder, datatype: &Datatype) -> Result<DatasetBuilder> {
        let creation = self.dataset.creation()?;
        let own = self.dataset.datatype();
        let builder = match self.dataset.fill_value() {
            Some(fill) if !own.has_references() => {
                builder.fill_bytes_of(own.clone(), fill.to_vec())
            }
            // Its objects are copied with it.
            Some(_) => match self.dataset.fill_heaped()? {
                Some(fill) if own == datatype => builder.fill_heaped(fill),
                Some(fill) => {
                    builder.fill_heaped(HeapedConversion::new(own, datatype)?.convert(&fill)?)
                }
                None => builder,
            },
            None => builder,
        };
        let builder = match self.layout.is_none() && creation.dont_filter_partial_chunks {
            true => builder.dont_filter_partial_chunks(),
            false => builder,
        };
        let usual = match self.dataset.layout() {
            LayoutKind::Compact => AllocationTime::Early,
            LayoutKind::Chunked
            | LayoutKind::Sparse
            | LayoutKind::VariableLength
            | LayoutKind::Virtual => AllocationTime::Incremental,
            _ => AllocationTime::Late,
        };
        let builder = builder.fill_time(creation.fill_time);
        let compact = self.layout == Some(&LayoutRequest::Compact);
        let chosen = creation.allocation_time != usual && !compact;
        Ok(if chosen { builder.allocation_time(creation.allocation_time) } else { builder })
    }

    /// Adds the requested filters, or its own; fails with the reason if they do not fit.
    fn filtered(
        &self,
        builder: DatasetBuilder,
        chunked: bool,
        sparse: bool,
    ) -> Possible<DatasetBuilder> {
        if !chunked {
            return Ok(builder);
        }
        let builder = if self.filters.is_empty() {
            match (self.dataset.is_sparse(), sparse) {
                (true, true) => builder.filters(self.dataset.section_filters()),
                _ if self.stays_variable_length() => {
                    builder.filters(self.dataset.section_filters())
                }
                (false, false) => {
                    let own = self.dataset.filters();
                    own.into_iter().fold(builder, |builder, filter| builder.filter(plain(filter)))
                }
                (true, false) => self.compressed_alike(builder),
                // The usual ones.
                (false, true) => builder,
            }
        } else {
            self.requested(builder, sparse)
        };
        builder.check().map_err(|error| error.to_string())?;
        Ok(builder)
    }

    /// Keeps the compression of a sparse dataset that becomes dense: the filters of its values if
    /// every HDF5 program has them, otherwise deflate. Strings and sequences of variable length are
    /// not in its chunks.
    fn compressed_alike(&self, builder: DatasetBuilder) -> DatasetBuilder {
        let own = match self.dataset.datatype().has_varlen() {
            true => Vec::new(),
            false => self.dataset.filters(),
        };
        let mut deflated = false;
        own.into_iter().fold(builder, |builder, filter| match filter.id {
            1..=6 => builder.filter(plain(filter)),
            _ if std::mem::replace(&mut deflated, true) => builder,
            _ => builder.filter(FilterSpec::deflate(COMPARABLE_LEVEL)),
        })
    }

    /// Adds the requested filters; those of single sections if chunks have several.
    fn requested(&self, mut builder: DatasetBuilder, sparse: bool) -> DatasetBuilder {
        let structured = sparse || self.stays_variable_length();
        let own = |wanted: &[SectionRequest]| self.sections(wanted, sparse);
        let element = self.dataset.datatype().size() as u32;
        for request in self.filters {
            builder = match (&request.kind, &request.sections) {
                (FilterKind::None, Some(sections)) if structured => own(sections)
                    .into_iter()
                    .fold(builder, |builder, section| builder.clear_filters(section)),
                (FilterKind::None, _) => builder.no_filters(),
                (_, Some(sections)) if structured => {
                    let spec = request.spec(element);
                    own(sections).into_iter().fold(builder, |builder, section| match &spec {
                        Some(spec) => builder.section_filter(section, spec.clone()),
                        None => builder,
                    })
                }
                (FilterKind::Shuffle, _) => builder.shuffle(),
                (FilterKind::Spec(spec), _) => builder.filter(spec.clone()),
            };
        }
        builder
    }

    /// The sections of structured chunks of this type that were asked for.
    fn sections(&self, wanted: &[SectionRequest], sparse: bool) -> Vec<Section> {
        let mut all = if sparse { vec![Section::Selection] } else { Vec::new() };
        match self.dataset.datatype().has_varlen() {
            true => all.extend([Section::References, Section::Heap]),
            false => all.push(Section::Values),
        }
        let chosen = all.iter().enumerate().filter(|(number, section)| {
            wanted.iter().any(|wanted| match wanted {
                SectionRequest::Named(name) => name == *section,
                SectionRequest::Number(wanted) => wanted == number,
            })
        });
        chosen.map(|(_, section)| *section).collect()
    }

    /// Whether the dataset is stored like that already.
    fn is_same(&self) -> bool {
        let dataset = self.dataset;
        let same_layout = match self.layout {
            None => true,
            Some(LayoutRequest::Compact) => dataset.layout() == LayoutKind::Compact,
            Some(LayoutRequest::Contiguous) => dataset.layout() == LayoutKind::Contiguous,
            Some(LayoutRequest::Chunked(chunk)) => {
                dataset.layout() == LayoutKind::Chunked && dataset.chunk().as_ref() == Some(chunk)
            }
            Some(LayoutRequest::Sparse(_)) => false,
        };
        if self.filters.is_empty() {
            return same_layout;
        }
        let element = dataset.datatype().size() as u32;
        let wanted: Vec<_> =
            self.filters.iter().filter_map(|filter| filter.spec(element)).collect();
        let alike = |one: &FilterSpec, other: &FilterSpec| {
            // Some filters note facts of the dataset behind their own parameters.
            one.id == other.id && one.id <= 3 && one.parameters == other.parameters
        };
        let own = dataset.filters();
        let same_filters = own.len() == wanted.len()
            && own.iter().zip(&wanted).all(|(one, other)| alike(one, other));
        same_layout && same_filters && dataset.layout() == LayoutKind::Chunked
    }
}

/// A filter without its facts about the dataset.
fn plain(filter: FilterSpec) -> FilterSpec {
    let parameters = match filter.id {
        5 => Vec::new(),
        6 => filter.parameters.iter().take(2).copied().collect(),
        4 => filter.parameters.iter().take(2).copied().collect(),
        _ => filter.parameters.clone(),
    };
    FilterSpec { parameters, ..filter }
}
