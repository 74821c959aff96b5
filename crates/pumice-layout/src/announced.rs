//! How long section 0 of a structured chunk is before filters, and whether its record says so.
//!
//! Reading needs the length only as a limit, and the location filter does without it: it makes a set of cells of
//! what is stored, and never the section that others would read. So nobody compares the two while chunks are read;
//! who stores sections that somebody else has made, or checks a file, does it here.

use super::geometry::Geometry;
use super::sparse::decode_locations;
use pumice_filter::{FilterError, Pipeline};
use pumice_format::index::{ChunkRecord, SectionRecord};
use pumice_medium::{Error, Result};

/// Fails unless the stored `bytes` of section 0 of a chunk are, without filters, as long as its record says.
pub(super) fn check_locations(
    geometry: &Geometry,
    pipeline: &Pipeline,
    bytes: &[u8],
    section: &SectionRecord,
    record: &ChunkRecord,
) -> Result<()> {
    let announced = section.unfiltered;
    let wrong = |found: String| {
        Err(Error::Invalid(format!(
            "section 0 has {found} byte(s) before filters, but {announced} were announced"
        )))
    };
    if bytes.is_empty() {
        return if announced == 0 { Ok(()) } else { wrong("0".into()) };
    }
    let cells = decode_locations(geometry, pipeline, bytes, section, record)?;
    // What the location filter decodes to. Others may have spelled the same cells otherwise.
    let usual = Pipeline::default().encode_cells(geometry.chunk(), &cells)?.unfiltered;
    let limit = usize::try_from(usual.max(announced)).unwrap_or(usize::MAX);
    match pipeline.decode_slice(bytes, section.filter_mask, limit) {
        Ok(plain) if plain.len() as u64 == announced => Ok(()),
        Ok(plain) => wrong(plain.len().to_string()),
        Err(FilterError::TooLarge { .. }) => wrong(format!("more than {limit}")),
        Err(error) => Err(error.into()),
    }
}
