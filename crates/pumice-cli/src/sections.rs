//! The bytes of the sections of a dataset's structured chunks.

use anyhow::Result;
use pumice::{Dataset, Section};
use std::ops::ControlFlow;

/// A section of all chunks together.
pub(crate) struct SectionSizes {
    pub(crate) section: Section,
    /// Bytes in the file.
    pub(crate) stored: u64,
    /// Bytes before filters.
    pub(crate) plain: u64,
}

impl SectionSizes {
    /// The bytes before filters for each stored byte; 0 if nothing is stored.
    pub(crate) fn ratio(&self) -> f64 {
        if self.stored > 0 { self.plain as f64 / self.stored as f64 } else { 0.0 }
    }
}

/// The sizes of each section of a structured dataset.
pub(crate) fn sizes(dataset: &Dataset) -> Result<Vec<SectionSizes>> {
    let sections = dataset.sections().into_iter();
    let mut sizes: Vec<_> =
        sections.map(|section| SectionSizes { section, stored: 0, plain: 0 }).collect();
    dataset.for_each_structured_chunk(|chunk| {
        for (sizes, section) in sizes.iter_mut().zip(&chunk.sections) {
            // Sizes of a damaged file may have any sum.
            sizes.stored = sizes.stored.saturating_add(section.size);
            sizes.plain = sizes.plain.saturating_add(section.unfiltered_size);
        }
        ControlFlow::<()>::Continue(())
    })?;
    Ok(sizes)
}
