//! The filters of a dataset, between the messages of its header and pipelines that run.

use super::describe::optional;
use crate::Result;
use crate::file::File;
use crate::object::Object;
use crate::shared::context;
use pumice_filter::{FilterSpec, Pipeline};
use pumice_format::messages::{
    self, Era, FilterDescription, Layout, SectionPipeline, StructuredPipeline, kind,
};
use pumice_format::object_header::{MESSAGE_CONSTANT, RawMessage};

/// The filters of a dataset: of its chunks, or of each of their sections.
pub(super) struct Filters {
    /// By the number of the section; a dense chunk has one.
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

    pub(super) fn is_empty(&self) -> bool {
        self.sections.iter().all(Vec::is_empty)
    }

    /// The message that describes them, if there are any.
    pub(super) fn message(&self, era: Era) -> Result<Option<RawMessage>> {
        if self.is_empty() {
            return Ok(None);
        }
        let mut body = Vec::new();
        if !self.structured {
            let filters = self.sections.iter().flatten().map(description_of).collect();
            messages::Pipeline { filters }.encode_for(era, &mut body)?;
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

/// The filters of a pipeline message, ready to run.
pub(crate) fn pipeline_of(message: &messages::Pipeline) -> Result<Pipeline> {
    Ok(Pipeline::new(message.filters.iter().map(spec_of).collect())?)
}

fn spec_of(description: &FilterDescription) -> FilterSpec {
    FilterSpec {
        id: description.id,
        optional: description.is_optional(),
        name: description.name.clone(),
        parameters: description.parameters.clone(),
    }
}

fn description_of(spec: &FilterSpec) -> FilterDescription {
    let mut description = FilterDescription::new(spec.id, &spec.parameters);
    description.flags = u16::from(spec.optional);
    description.name.clone_from(&spec.name);
    description
}
