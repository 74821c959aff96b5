//! Making a dataset of its description: extent, fill value, layout and chunks.

use super::{Access, DatasetBuilder, Fill, guess};
use crate::Dataset;
use crate::filters::Section;
use pumice_engine::dataset::{DatasetSpec, LayoutSpec};
use pumice_engine::{Error, Result};
use pumice_space::Extent;
use pumice_types::{Conversion, Heaped, HeapedConversion};

/// The bytes of a dense chunk by default, about: enough for fast filters and few system calls, few
/// enough that a hundred fit into a cache.
const DENSE_CHUNK_BYTES: u64 = 256 << 10;
/// The defined cells of a sparse chunk by default, about: enough that the chunk's overhead is
/// small, few enough that a row or a column, which passes through many chunks, is read fast.
const SPARSE_CHUNK_DEFINED: f64 = 16384.0;
/// No sparse chunk has more or fewer cells by default.
const SPARSE_CHUNK_CELLS: (f64, f64) = ((1u64 << 16) as f64, (1u64 << 26) as f64);
/// A row of a sparse dataset lies in at most this many chunks by default, unless these would have
/// to be that many times as wide as otherwise.
const MOST_ACROSS: u64 = 14;
const MOST_WIDENING: u64 = 4;
/// The defined cells of a sparse chunk whose values have no filters, about, and its width divided
/// by its height. Values are not decoded then, so larger chunks cost a column little, and rows in
/// fewer pieces are written faster.
const PLAIN_CHUNK_DEFINED: f64 = 24576.0;
const PLAIN_WIDTH: f64 = 2.5;
/// The cells of a dense chunk with variable-length data by default, about: with short strings a
/// megabyte or two.
const HEAP_CHUNK_CELLS: u64 = 1 << 15;
/// About how many defined cells a sparse one has.
const HEAP_CHUNK_DEFINED: f64 = 10_000.0;

impl DatasetBuilder {
    /// Creates the dataset, and the groups on the way to it. A filter that is not optional must be
    /// available, because nothing could be stored without it.
    pub fn create(self, path: &str) -> Result<Dataset> {
        let spec = self.spec().map_err(|error| error.at(path))?;
        self.group.link_dataset(path, spec)
    }

    pub(crate) fn spec(&self) -> Result<DatasetSpec> {
        let extent = match (&self.max_shape, self.shape.as_slice()) {
            _ if self.null => self.null_extent()?,
            (None, []) => Extent::Scalar,
            (None, shape) => Extent::simple(shape)?,
            (Some(max), shape) => Extent::with_max(shape, max)?,
        };
        let mut spec = DatasetSpec {
            fill_time: self.fill_time,
            allocation: self.allocation,
            track_times: self.track_times,
            track_attribute_order: self.track_attribute_order,
            attribute_phase_change: self.attribute_phase_change,
            undefined_fill: self.undefined_fill,
            committed: self.committed.clone(),
            ..DatasetSpec::new(self.datatype.clone(), extent, self.layout()?)
        };
        self.put_fill(&mut spec)?;
        Ok(spec)
    }

    fn null_extent(&self) -> Result<Extent> {
        let stored = self.layout()?;
        let plain = matches!(stored, LayoutSpec::Contiguous | LayoutSpec::Compact);
        match plain && self.shape.is_empty() {
            true => Ok(Extent::Null),
            false => Err(Error::Invalid("a null dataspace has no shape and no chunks".into())),
        }
    }

    /// Sets the fill value, with the objects that it refers to unless they are in the file.
    fn put_fill(&self, spec: &mut DatasetSpec) -> Result<()> {
        let heaped = match &self.fill {
            None => None,
            Some(Fill::Element(datatype, value)) => {
                let mut converted = vec![0; self.datatype.size()];
                Conversion::new(datatype, &self.datatype)?.convert(value, &mut converted)?;
                spec.fill = Some(converted);
                None
            }
            Some(Fill::Typed(datatype, value)) => {
                let conversion = HeapedConversion::writing(datatype, &self.datatype)?;
                Some(conversion.convert(value.as_ref().map_err(Clone::clone)?)?)
            }
            Some(Fill::Value(value)) => {
                Some(Heaped::from_values(&self.datatype, std::slice::from_ref(value))?)
            }
            Some(Fill::Heaped(fill)) => Some(fill.clone()),
            Some(Fill::Of(other)) => other.fill_heaped()?,
        };
        if let Some(Heaped { elements, heap }) = heaped {
            spec.fill = Some(elements);
            spec.fill_heap = self.datatype.has_varlen().then_some(heap);
        }
        Ok(())
    }

    fn layout(&self) -> Result<LayoutSpec> {
        if !self.external.is_empty() || self.mappings.is_some() {
            return self.elsewhere();
        }
        if self.variable_length || (self.sparse && self.datatype.has_varlen()) {
            return self.variable_length_layout();
        }
        if self.sparse {
            return self.sparse_layout();
        }
        let filters = self.filters_of(&[Section::Chunk])?.of(Section::Chunk).to_vec();
        let chunked = self.chunk.is_some() || !filters.is_empty() || self.max_shape.is_some();
        match (chunked, self.compact) {
            (true, true) => Err(Error::Invalid("compact datasets have no chunks".into())),
            (false, true) => Ok(LayoutSpec::Compact),
            (false, false) => Ok(LayoutSpec::Contiguous),
            (true, false) => {
                let cells = DENSE_CHUNK_BYTES / self.datatype.size().max(1) as u64;
                let chunk = self.chunk_or(|| self.default_chunk(cells))?;
                let dont_filter_partial = self.dont_filter_partial;
                Ok(LayoutSpec::Chunked { chunk, filters, dont_filter_partial })
            }
        }
    }

    /// Fails where there cannot be chunks, and says why.
    fn require_chunks(&self, what: &str) -> Result<()> {
        let why = if self.compact {
            "has chunks, which cannot be compact: leave one of the two out"
        } else if self.null {
            "has cells, and a null dataspace has none: leave one of the two out"
        } else if self.shape.is_empty() {
            "has chunks, and a scalar has no dimension that they could have: give it a shape"
        } else {
            return Ok(());
        };
        Err(Error::Invalid(format!("{what} {why}")))
    }

    /// The chunk that was given, or the default. A default must not make more chunks than can be
    /// counted.
    fn chunk_or(&self, default: impl FnOnce() -> Vec<u64>) -> Result<Vec<u64>> {
        if let Some(chunk) = &self.chunk {
            return Ok(chunk.clone());
        }
        let chunk = default();
        let counts = self.shape.iter().zip(&chunk).map(|(all, side)| all.div_ceil((*side).max(1)));
        match counts.into_iter().try_fold(1u64, u64::checked_mul) {
            None if !self.sparse => Err(Error::Invalid(format!(
                "a shape of {:?} has more than 2^64 chunks of the size that is chosen by default, {chunk:?}: give \
                 larger ones with `chunk`, take a smaller shape, or make it sparse with `sparse`",
                self.shape
            ))),
            _ => Ok(chunk),
        }
    }

    /// Elements that are in other files or datasets.
    fn elsewhere(&self) -> Result<LayoutSpec> {
        let chunked = self.chunk.is_some() || self.sparse || self.variable_length;
        let own = chunked || !self.edits.is_empty() || self.compact;
        match (self.external.is_empty(), &self.mappings) {
            (false, None) if !own => Ok(LayoutSpec::External { files: self.external.clone() }),
            (true, Some(mappings)) if !own => {
                Ok(LayoutSpec::Virtual { mappings: mappings.clone() })
            }
            _ => Err(Error::Invalid(
                "elements in other files or datasets, which have another layout as well".into(),
            )),
        }
    }

    fn sparse_layout(&self) -> Result<LayoutSpec> {
        self.require_chunks("a sparse dataset")?;
        let filters = self.filters_of(&[Section::Selection, Section::Values])?;
        let default = || match filters.of(Section::Values) {
            [] => self.default_sparse_chunk(PLAIN_CHUNK_DEFINED, PLAIN_WIDTH),
            _ => self.default_sparse_chunk(SPARSE_CHUNK_DEFINED, 1.0),
        };
        let chunk = self.chunk_or(default)?;
        let locations = filters.of(Section::Selection).to_vec();
        let values = filters.of(Section::Values).to_vec();
        let dont_filter_partial = self.dont_filter_partial;
        Ok(LayoutSpec::Sparse { chunk, locations, values, dont_filter_partial })
    }

    fn variable_length_layout(&self) -> Result<LayoutSpec> {
        let what = if self.sparse { "a sparse dataset" } else { "a dataset of structured chunks" };
        self.require_chunks(what)?;
        let chunk = self.chunk_or(|| match self.sparse {
            true => self.default_sparse_chunk(HEAP_CHUNK_DEFINED, 1.0),
            false => self.default_chunk(HEAP_CHUNK_CELLS),
        })?;
        let mut sections = vec![Section::References, Section::Heap];
        if self.sparse {
            sections.insert(0, Section::Selection);
        }
        let filters = self.filters_of(&sections)?;
        Ok(LayoutSpec::VariableLength {
            chunk,
            locations: self.sparse.then(|| filters.of(Section::Selection).to_vec()),
            references: filters.of(Section::References).to_vec(),
            heap: filters.of(Section::Heap).to_vec(),
            dont_filter_partial: self.dont_filter_partial,
        })
    }

    /// A chunk of about `defined` defined cells, `width` times as wide as high, or wider so that a
    /// row lies in at most [`MOST_ACROSS`] chunks: every chunk of a row is decoded whole, though
    /// the row has few of its cells.
    fn default_sparse_chunk(&self, defined: f64, width: f64) -> Vec<u64> {
        let cells = (defined / self.density).clamp(SPARSE_CHUNK_CELLS.0, SPARSE_CHUNK_CELLS.1);
        let max = self.max_shape.as_deref().unwrap_or(&self.shape);
        let mut chunk = guess::sparse_chunk_shape(&self.shape, max, cells as u64, self.access);
        if let (Access::Blocks, [.., high, wide], [.., rows, columns]) =
            (self.access, &mut *chunk, &*self.shape)
        {
            let cells = *high * *wide;
            let most = (*wide * (*high).min(MOST_WIDENING)).min((*columns).max(*wide));
            let wanted = (cells as f64 * width).sqrt() as u64;
            let wider = wanted.max(columns.div_ceil(MOST_ACROSS)).min(most).max(*wide);
            (*high, *wide) = ((cells / wider).max(1), wider);
            if width > 1.0 {
                // Bands of chunks are encoded side by side: no little one at the end.
                *wide = guess::even(*columns, *wide);
                *high = guess::even(*rows, *high);
            }
        }
        chunk
    }

    fn default_chunk(&self, cells: u64) -> Vec<u64> {
        let max = self.max_shape.as_deref().unwrap_or(&self.shape);
        guess::chunk_shape(&self.shape, max, cells, self.access)
    }
}
