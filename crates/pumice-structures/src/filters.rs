//! Filters between the messages that describe them and pipelines that run.

use pumice_filter::{FilterSpec, Pipeline};
use pumice_format::messages::{self, FilterDescription};
use pumice_medium::Result;

/// The filters of a pipeline message, ready to run.
pub fn pipeline_of(message: &messages::Pipeline) -> Result<Pipeline> {
    Ok(Pipeline::new(message.filters.iter().map(spec_of).collect())?)
}

/// The filter that a pipeline message describes.
pub fn spec_of(description: &FilterDescription) -> FilterSpec {
    FilterSpec {
        id: description.id,
        optional: description.is_optional(),
        name: description.name.clone(),
        config: description.config.clone(),
        parameters: description.parameters.clone(),
    }
}
