//! The filters of a dataset, between the messages of its header and pipelines that run.

use super::describe::optional;
use crate::Result;
use crate::file::File;
use crate::object::Object;
use crate::shared::context;
use crate::version::LibraryVersion;
use pumice_filter::{DatasetFacts, FilterSpec, Pipeline, registered_name};
use pumice_format::Sizes;
use pumice_format::messages::{
    self, Era, FilterDescription, Layout, SectionPipeline, StructuredPipeline, kind,
};
use pumice_format::object_header::{MESSAGE_CONSTANT, RawMessage};
use pumice_format::structured::VARIABLE_LENGTH;
use pumice_structures::spec_of;
use pumice_types::Datatype;

/// Filters from this number on are not HDF5's own; their names are stored in the file.
const FIRST_NAMED: u16 = 256;

/// The filters of a dataset: of its chunks, or of each of their sections.
pub(super) struct Filters {
    /// The filters by number of the section; a dense chunk has one.
    pub(super) sections: Vec<Vec<FilterSpec>>,
    pub(super) structured: bool,
}

impl Filters {
    pub(super) fn none() -> Self {
        Self { sections: Vec::new(), structured: false }
    }

    pub(super) fn structured(sections: Vec<Vec<FilterSpec>>) -> Self {
        Self { sections, structured: true }
    }

    /// The pipeline of a section; of a dense chunk, 0.
    pub(super) fn pipeline(&self, section: usize) -> Result<Pipeline> {
        Ok(Pipeline::new(self.sections.get(section).cloned().unwrap_or_default())?)
    }

    pub(super) fn read(file: &File, object: &Object, layout: &Layout) -> Result<Self> {
        let mut filters = Self::none();
        if let Layout::Structured { sections, .. } = layout {
            filters.structured = true;
            let pipeline = if let Some(raw) = optional(file, object, kind::STRUCTURED_PIPELINE)? {
                StructuredPipeline::decode(&raw.body, &context(file, &raw))?
            } else if let Some(raw) = optional(file, object, kind::PIPELINE)? {
                StructuredPipeline::decode_in_pipeline(&raw.body, &context(file, &raw))?
            } else {
                return Ok(filters);
            };
            let section = |number| pipeline.filters(number).iter().map(spec_of).collect();
            filters.sections = (0..*sections).map(section).collect();
        } else if let Some(raw) = optional(file, object, kind::PIPELINE)? {
            let pipeline = messages::Pipeline::decode(&raw.body, &context(file, &raw))?;
            filters.sections = vec![pipeline.filters.iter().map(spec_of).collect()];
        }
        Ok(filters)
    }

    /// Fits the parameters of filters to another datatype and to the lengths of another file.
    /// Returns whether any filter has such parameters.
    fn refit(&mut self, datatype: &Datatype, layout: &Layout, sizes: Sizes) -> Result<bool> {
        let (section, chunk, sparse, fresh) = match layout {
            Layout::Chunked { chunk, .. } => (0, chunk, false, FilterSpec::nbit()),
            Layout::Structured { chunk, sections: 2, kind, .. } if kind & VARIABLE_LENGTH == 0 => {
                (1, chunk, true, FilterSpec::nbit())
            }
            // Sections of variable-length data have bytes, not elements; the last one is a heap.
            Layout::Structured { chunk, sections, .. } => {
                (usize::from(*sections).saturating_sub(1), chunk, true, FilterSpec::heap())
            }
            _ => return Ok(false),
        };
        let length_width = sizes.length;
        let facts = DatasetFacts { datatype, chunk, fill: None, sparse, length_width };
        let mut any = false;
        for filter in self.sections.get_mut(section).into_iter().flatten() {
            let fresh = fresh.clone();
            if filter.id == fresh.id {
                *filter = FilterSpec { optional: filter.optional, ..fresh }.for_dataset(&facts)?;
                any = true;
            }
        }
        Ok(any)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sections.iter().all(Vec::is_empty)
    }

    /// The message that describes them in a file, if there are any.
    pub(super) fn message(&self, file: &File) -> Result<Option<RawMessage>> {
        if self.is_empty() {
            return Ok(None);
        }
        let mut body = Vec::new();
        if !self.structured {
            let filters = self.sections.iter().flatten().map(description_of).collect();
            encode_for(file, messages::Pipeline { filters }, &mut body)?;
            return Ok(Some(RawMessage::new(kind::PIPELINE, MESSAGE_CONSTANT, body)));
        }
        let mut sections = Vec::new();
        for (section, filters) in (0..).zip(&self.sections) {
            if !filters.is_empty() {
                let filters = filters.iter().map(description_of).collect();
                sections.push(SectionPipeline { section, filters });
            }
        }
        StructuredPipeline { sections }.encode(&mut body)?;
        Ok(Some(RawMessage::new(kind::STRUCTURED_PIPELINE, MESSAGE_CONSTANT, body)))
    }
}

/// Appends the body of a pipeline message. The text configuration of filters is kept if the file's
/// newest release can store it.
fn encode_for(file: &File, pipeline: messages::Pipeline, body: &mut Vec<u8>) -> Result<()> {
    let needed = LibraryVersion::of_pipeline(3);
    let asked = pipeline.has_config() && file.require_version(needed, "a filter").is_ok();
    match asked || file.library_version() >= needed {
        true => pipeline.encode_with_configs(body)?,
        false => pipeline.encode_for(file.era(), body)?,
    }
    Ok(())
}

/// The pipeline message for another file or datatype; `None` if it stays the same.
pub(crate) fn refitted(
    file: &File,
    object: &Object,
    datatype: &Datatype,
    target: &File,
) -> Result<Option<RawMessage>> {
    let Some(raw) = optional(file, object, kind::LAYOUT)? else { return Ok(None) };
    let layout = Layout::decode(&raw.body, &context(file, &raw))?;
    let mut filters = Filters::read(file, object, &layout)?;
    let sizes = target.superblock().sizes;
    if filters.refit(datatype, &layout, sizes)? { filters.message(target) } else { Ok(None) }
}

fn description_of(spec: &FilterSpec) -> FilterDescription {
    let mut description = FilterDescription::new(spec.id, &spec.parameters);
    description.flags = u16::from(spec.optional);
    description.name.clone_from(&spec.name);
    description.config.clone_from(&spec.config);
    name(&mut description);
    description
}

/// Gives a filter that is not HDF5's own its registered name if it has none. libhdf5 would add the
/// name to copies of a message that have no room for it.
fn name(filter: &mut FilterDescription) -> bool {
    let nameless =
        filter.id >= FIRST_NAMED && filter.name.as_deref().unwrap_or_default().is_empty();
    let Some(found) = registered_name(filter.id).filter(|_| nameless) else { return false };
    filter.name = Some(found.to_owned());
    true
}

/// The pipeline message of a dense dataset with all names, in the form for another file; `None` if
/// the message can stay as it is.
pub(crate) fn named(
    file: &File,
    object: &Object,
    raw: &RawMessage,
    target: &File,
) -> Result<Option<RawMessage>> {
    let version = raw.body.first().copied().unwrap_or(0);
    if raw.kind != kind::PIPELINE
        || !(1..=3).contains(&version)
        || version == 3 && is_structured(file, object)?
    {
        return Ok(None);
    }
    let mut pipeline = messages::Pipeline::decode(&raw.body, &context(file, raw))?;
    let mut body = Vec::new();
    // Visits all of them: `any` would stop at the first.
    let named = pipeline.filters.iter_mut().filter_map(|filter| name(filter).then_some(())).count();
    match version {
        3 => encode_for(target, pipeline, &mut body)?,
        _ if named == 0 => return Ok(None),
        1 => pipeline.encode_for(Era::Old, &mut body)?,
        _ => pipeline.encode_for(Era::New, &mut body)?,
    }
    Ok(Some(RawMessage::new(raw.kind, raw.flags, body)))
}

/// Whether a dataset has structured chunks.
fn is_structured(file: &File, object: &Object) -> Result<bool> {
    let Some(raw) = optional(file, object, kind::LAYOUT)? else { return Ok(false) };
    let layout = Layout::decode(&raw.body, &context(file, &raw))?;
    Ok(matches!(layout, Layout::Structured { .. }))
}
