//! The defined cells of a sparse chunk (section 0) through a pipeline.
//!
//! The section is the plain form of [`location`], with its checksum. If the location filter comes
//! first in the pipeline, cells go to and from its encoded side directly.

use crate::location::{Aim, CellVisitor, RowCells};
use crate::{Filter, FilterError, Pipeline, location, scratch};
use pumice_bytes::Budget;
use pumice_space::{CellSet, Dims};
use std::borrow::Cow;
use std::sync::Arc;

/// The name of the section in errors.
const SECTION: &str = "section 0";

/// A stored section with its entry in the chunk's record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedCells {
    /// The section as it is stored.
    pub bytes: Vec<u8>,
    /// Its length before filters, checksum included.
    pub unfiltered: u64,
    /// The mask of skipped filters.
    pub mask: u32,
}

impl RowCells {
    /// Bytes in memory.
    pub fn heap_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Whether they can be stored unchanged, after a location filter.
    pub fn is_final(&self) -> bool {
        self.unfiltered.is_some()
    }

    /// The cells.
    pub fn to_set(&self) -> Result<CellSet, FilterError> {
        let mut budget = Budget::new(location::MOST_MEMORY);
        let unfiltered = self.unfiltered.unwrap_or(u64::MAX);
        parse_encoded(&self.bytes, unfiltered, &mut budget).map(|(_, cells)| cells)
    }
}

impl Pipeline {
    /// Encodes the defined cells of a chunk of shape `dims` as section 0, with its checksum, and
    /// filters it.
    ///
    /// ```
    /// use pumice_filter::{FilterSpec, Pipeline};
    /// use pumice_space::CellSet;
    ///
    /// let pipeline = Pipeline::new(vec![FilterSpec::location(), FilterSpec::zstd(3)])?;
    /// let cells = CellSet::from_sorted_cells(1 << 20, (0..5000).map(|n| n * 7))?;
    /// let stored = pipeline.encode_cells(&[1024, 1024], &cells)?;
    ///
    /// let back = pipeline.decode_cells(&stored.bytes, stored.mask, stored.unfiltered, 1 << 20)?;
    /// assert_eq!(back.1, cells);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn encode_cells(&self, dims: &[u64], cells: &CellSet) -> Result<EncodedCells, FilterError> {
        if !self.begins_with_location() {
            let plain = location::plain_form(dims, cells)?;
            let unfiltered = plain.len() as u64;
            let (bytes, mask) = self.encode(plain)?;
            return Ok(EncodedCells { bytes, unfiltered, mask });
        }
        let mut encoded = scratch::take(cells.heap_bytes());
        let unfiltered = location::encode_cells(dims, cells, self.location_aim(), &mut encoded)?;
        let (bytes, mask) = if location::is_verbatim(&encoded) && self.specs()[0].optional {
            // As the filter itself would have been: skipped. Behind its mode is the plain form.
            encoded.drain(..1);
            let (bytes, mask) = self.encode_from(1, Cow::Owned(encoded))?;
            (bytes, mask | 1)
        } else {
            self.encode_from(1, Cow::Owned(encoded))?
        };
        Ok(EncodedCells { bytes, unfiltered, mask })
    }

    /// [`encode_cells`](Self::encode_cells) for cells that the location filter has encoded already;
    /// `None` if they are better encoded from the set, or if the location filter does not come
    /// first.
    pub fn encode_rows(&self, cells: &RowCells) -> Result<Option<EncodedCells>, FilterError> {
        let Some(unfiltered) = cells.unfiltered.filter(|_| self.begins_with_location()) else {
            return Ok(None);
        };
        let (bytes, mask) = self.encode_from(1, Cow::Borrowed(&cells.bytes))?;
        Ok(Some(EncodedCells { bytes, unfiltered, mask }))
    }

    /// The result of [`encode_rows`](Self::encode_rows) and its length before filters, if it is the
    /// cells unchanged.
    pub fn keep_rows(&self, cells: &RowCells) -> Option<(Arc<Vec<u8>>, u64)> {
        let alone = self.begins_with_location() && self.specs().len() == 1;
        let unfiltered = cells.unfiltered.filter(|_| alone)?;
        Some((Arc::clone(&cells.bytes), unfiltered))
    }

    /// Undoes [`encode_cells`](Self::encode_cells): the chunk's shape and its defined cells.
    /// `unfiltered` is the section's length before filters as the index has it, and a chunk of more
    /// than `most_cells` cells is refused.
    pub fn decode_cells(
        &self,
        input: &[u8],
        mask: u32,
        unfiltered: u64,
        most_cells: u64,
    ) -> Result<(Dims, CellSet), FilterError> {
        self.decode_cells_beside(input, mask, unfiltered, most_cells, 0)
    }

    /// [`decode_cells`](Self::decode_cells) for a section beside which `beside` bytes of values are
    /// stored. A regular selection has a few bytes however many pieces it has; the number of values
    /// justifies the memory for them.
    pub fn decode_cells_beside(
        &self,
        input: &[u8],
        mask: u32,
        unfiltered: u64,
        most_cells: u64,
        beside: u64,
    ) -> Result<(Dims, CellSet), FilterError> {
        let limit = plain_limit(unfiltered, most_cells)?;
        let mut budget = self.budget(input.len(), mask, unfiltered, most_cells, beside);
        let (dims, cells) = if self.begins_with_location() && mask & 1 == 0 {
            let bound = location::Location.encoded_bound(limit);
            let others = (1..self.specs().len()).any(|at| mask >> at & 1 == 0);
            if others || input.len() > bound {
                let encoded = self.decode_until(1, Cow::Borrowed(input), mask, bound)?;
                let set = parse_encoded(&encoded, unfiltered, &mut budget);
                scratch::give(encoded);
                set?
            } else {
                // Stored as the location filter has made it.
                parse_encoded(input, unfiltered, &mut budget)?
            }
        } else {
            let plain = self.decode_until(0, Cow::Borrowed(input), mask, limit)?;
            let set = parse_plain(&plain, &mut budget);
            scratch::give(plain);
            set?
        };
        if cells.cells() > most_cells {
            let expected = format!("a chunk of at most {most_cells} cells");
            return Err(FilterError::corrupt(SECTION, expected, format!("{dims:?}")));
        }
        Ok((dims, cells))
    }

    /// [`decode_cells`](Self::decode_cells) with a visitor instead of a set; `false`: not all cells
    /// were visited, and they have to be decoded. After an error, the visited cells have no
    /// meaning.
    pub fn visit_cells(
        &self,
        input: &[u8],
        mask: u32,
        unfiltered: u64,
        most_cells: u64,
        visitor: &mut dyn CellVisitor,
    ) -> Result<bool, FilterError> {
        let Ok(limit) = plain_limit(unfiltered, most_cells) else { return Ok(false) };
        if !self.begins_with_location() || mask & 1 != 0 {
            return Ok(false);
        }
        let bound = location::Location.encoded_bound(limit);
        let others = (1..self.specs().len()).any(|at| mask >> at & 1 == 0);
        let mut budget = self.budget(input.len(), mask, unfiltered, most_cells, 0);
        if !others && input.len() <= bound {
            return visit_encoded(input, unfiltered, &mut budget, visitor);
        }
        let encoded = self.decode_until(1, Cow::Borrowed(input), mask, bound)?;
        let shown = visit_encoded(&encoded, unfiltered, &mut budget, visitor);
        scratch::give(encoded);
        shown
    }

    /// The memory for a set of cells from `stored` bytes, with `beside` more for their values,
    /// whatever its stated length before filters.
    fn budget(
        &self,
        stored: usize,
        mask: u32,
        unfiltered: u64,
        most_cells: u64,
        beside: u64,
    ) -> Budget {
        let first = usize::from(self.begins_with_location());
        let possible = self.decoded_bound_until(first, stored, mask) as u64;
        Budget::new(memory(unfiltered.min(possible).saturating_add(beside), most_cells))
    }

    /// The aim of writing locations: fast reading, unless another filter follows.
    pub fn location_aim(&self) -> Aim {
        if self.specs().len() == 1 { Aim::Fast } else { Aim::Short }
    }

    /// Whether the location filter comes first.
    pub fn begins_with_location(&self) -> bool {
        self.specs().first().is_some_and(|spec| spec.id == location::ID)
    }
}

/// Reads the encoded side of the location filter, whichever its mode.
fn parse_encoded(
    encoded: &[u8],
    unfiltered: u64,
    budget: &mut Budget,
) -> Result<(Dims, CellSet), FilterError> {
    match location::decode_cells(encoded, budget)? {
        Some(set) => location::check_short(encoded, unfiltered).map(|()| set),
        None => parse_plain(encoded.get(1..).unwrap_or_default(), budget),
    }
}

fn visit_encoded(
    encoded: &[u8],
    unfiltered: u64,
    budget: &mut Budget,
    visitor: &mut dyn CellVisitor,
) -> Result<bool, FilterError> {
    // A stored form much longer than the plain form is damage.
    let short = location::check_short(encoded, unfiltered).is_ok();
    if short { location::visit_cells(encoded, budget, visitor) } else { Ok(false) }
}

fn parse_plain(plain: &[u8], budget: &mut Budget) -> Result<(Dims, CellSet), FilterError> {
    location::parse_plain(plain, budget)
        .map_err(|error| FilterError::corrupt(SECTION, error.expected, error.found))
}

/// The length of a section before filters, if a chunk of this many cells can have it: no cell takes
/// more than two corners of eight bytes for each of 32 axes.
fn plain_limit(unfiltered: u64, most_cells: u64) -> Result<usize, FilterError> {
    let most = most_cells.saturating_mul(2 * 8 * 32).saturating_add(1 << 16);
    let limit = usize::try_from(unfiltered).ok().filter(|_| unfiltered <= most);
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    limit.ok_or_else(|| FilterError::too_large(location::NAME, most, unfiltered))
}

/// The memory that a set of cells may need: some bytes for each of its runs, of which there may be
/// many more than the section has bytes, but not more than the chunk has cells.
fn memory(bytes: u64, most_cells: u64) -> u64 {
    let by_length = bytes.saturating_mul(64).saturating_add(location::MOST_MEMORY);
    most_cells.saturating_mul(1024).saturating_add(1 << 16).min(by_length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FilterSpec;

    #[test]
    fn more_bytes_than_cells_can_need_are_refused_before_memory_is_taken() {
        let pipeline = Pipeline::new(vec![FilterSpec::zstd(1)]).unwrap();
        let plain = 64 << 20;
        let (bytes, mask) = pipeline.encode(vec![0; plain]).unwrap();
        assert!(bytes.len() < plain / 1000);
        let error = pipeline.decode_cells(&bytes, mask, plain as u64, 100).unwrap_err();
        assert!(matches!(error, FilterError::TooLarge { .. }), "{error}");
        // A chunk of many cells may need so many.
        let error = pipeline.decode_cells(&bytes, mask, plain as u64, 1 << 20).unwrap_err();
        assert!(!matches!(error, FilterError::TooLarge { .. }), "{error}");
    }
}
