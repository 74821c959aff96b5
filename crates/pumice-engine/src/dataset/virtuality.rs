//! Virtual datasets: a read or write becomes reads or writes of the datasets that have the elements.
//!
//! A virtual dataset has nothing to cache: its sources go through the cache. Cells without a
//! source, or with a missing one, read as the fill value. With an unlimited mapping the extent
//! follows the sources, as in libhdf5 by default: to the last that is available, and for numbered
//! sources (`%b`) up to the first that is missing. A [`VirtualView`] chooses otherwise.

mod ahead;
mod endless;
mod write;

use super::DatasetState;
use crate::file::{File, KeptFile};
use crate::{Error, Result, group, outside};
use endless::{
    block, first_cells, is_numbered, layer, numbered, plain, unlimited_axis, with_trail,
};
use pumice_format::Context;
use pumice_format::UNDEFINED;
use pumice_format::messages::Layout;
use pumice_format::virtual_mapping::{self, VirtualMapping};
use pumice_layout::Geometry;
use pumice_layout::dense::zeros;
use pumice_layout::request::{Target, fill_with};
use pumice_medium::MetadataIo;
use pumice_space::{CellSet, ChunkGrid, Dims, Extent, Run, Segment, Selection, UNLIMITED, plan};
use pumice_types::{Datatype, Heaped, heaped};
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The deepest nesting of virtual datasets; deeper ones count as a circle.
const MAX_NESTING: usize = 16;
/// The most numbered sources that are looked for.
const MAX_BLOCKS: u64 = 1 << 20;
/// The most runs of a selection.
const MAX_RUNS: usize = 1 << 23;
/// The most sources that are kept open.
const KEPT: usize = 256;

thread_local! {
    static NESTING: Cell<usize> = const { Cell::new(0) };
}

/// The extent of virtual datasets without end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VirtualView {
    /// Whether the extent ends at the first element that any source lacks, instead of the last that
    /// one has.
    pub first_missing: bool,
    /// The most numbered sources in a row that may be missing before one that exists.
    pub gap: u64,
}

/// The sources of a virtual dataset.
pub struct Virtual {
    file: Weak<File>,
    /// The number of that file.
    number: u64,
    view: VirtualView,
    mappings: Vec<VirtualMapping>,
    sources: Mutex<Sources>,
    /// Files of sources that were written to since the last commit.
    written: Mutex<Vec<KeptFile>>,
}

/// The sources that were looked up.
#[derive(Default)]
struct Sources {
    /// Sources in other files that are kept open, by file and path.
    kept: HashMap<(String, String), (Arc<DatasetState>, KeptFile)>,
    /// Files that keep this one open, or are this one, by the names that led to them.
    not_kept: HashMap<String, Weak<File>>,
}

/// An open source, and the file that it keeps open. Its writes are committed before it is closed
/// with its last user.
#[derive(Clone)]
struct Source {
    dataset: Arc<DatasetState>,
    /// Last, so that the file is closed after everything in it.
    file: Arc<File>,
}

/// A part of the dataset and the source that has it, both with an end.
struct Piece {
    source: Source,
    from: Selection,
    to: Selection,
    /// The endless selection of which `from` is the beginning.
    endless: Option<Selection>,
}

/// Puts the mapping of a new dataset into the global heap; gives the layout that says where.
pub(super) fn store(file: &File, mappings: &[VirtualMapping], extent: &Extent) -> Result<Layout> {
    for mapping in mappings {
        let (source, target) = (&mapping.source, &mapping.target);
        if target.rank().is_some_and(|rank| rank != extent.dims().len()) {
            let what = format!(
                "a part of a virtual dataset has another rank than its shape {:?}",
                extent.dims()
            );
            return Err(Error::Invalid(what));
        }
        if source.is_unlimited() && !target.is_unlimited() {
            let what = "a source has no end, but its part of the virtual dataset has one";
            return Err(Error::Invalid(what.into()));
        }
    }
    let mut bytes = Vec::new();
    virtual_mapping::encode(mappings, extent.dims(), file.medium().sizes(), &mut bytes)?;
    let (heap_address, heap_index) = file.global_heap().add(&bytes)?;
    Ok(Layout::Virtual { heap_address, heap_index })
}

impl Virtual {
    /// The mapping of a dataset of `rank`, at an object of the global heap.
    pub(super) fn load(file: &File, address: u64, index: u32, rank: usize) -> Result<Self> {
        let mut mappings = Vec::new();
        if address != UNDEFINED {
            let bytes = file.global_heap().object_at(address, index)?;
            let context = Context::new(file.medium().sizes()).at(address);
            mappings = virtual_mapping::decode(&bytes, rank, &context)?;
        }
        Ok(Self::new(file, mappings))
    }

    /// A mapping that is stored already.
    pub(super) fn new(file: &File, mappings: Vec<VirtualMapping>) -> Self {
        let (view, sources, written) = (file.virtual_view(), Mutex::default(), Mutex::default());
        Self { file: file.weak(), number: file.number(), view, mappings, sources, written }
    }

    /// The mappings, as they are stored.
    pub fn mappings(&self) -> &[VirtualMapping] {
        &self.mappings
    }

    /// Whether the extent follows the sources.
    pub(super) fn has_no_end(&self) -> bool {
        self.mappings.iter().any(|mapping| mapping.target.is_unlimited())
    }

    /// Refuses an extent that does not have all parts.
    pub(super) fn check_extent(&self, dims: &[u64]) -> Result<()> {
        let vast = Dims::from_elem(UNLIMITED - 1, dims.len());
        for mapping in self.mappings.iter().filter(|mapping| !mapping.target.is_all()) {
            let Some((_, last)) = mapping.target.bounds(&vast) else { continue };
            if last.iter().zip(dims).any(|(last, side)| last >= side) {
                let what =
                    format!("the shape {dims:?} does not contain all parts of the virtual dataset");
                return Err(Error::Invalid(what));
            }
        }
        Ok(())
    }

    /// The dimensions that the sources give the dataset now.
    pub(super) fn dims(&self, stored: &Dims) -> Result<Dims> {
        let mut dims = stored.clone();
        let endless = self.mappings.iter().filter_map(|mapping| unlimited_axis(&mapping.target));
        let axes: Vec<usize> = endless.map(|(axis, _)| axis).collect();
        if axes.is_empty() {
            return Ok(dims);
        }
        let _deeper = Deeper::enter()?;
        axes.iter().for_each(|&axis| dims[axis] = 0);
        let vast = Dims::from_elem(UNLIMITED - 1, dims.len());
        let end = |target: &Selection, axis: usize| {
            target.bounds(&vast).map_or(0, |(_, last)| last[axis].saturating_add(1))
        };
        let mut first_missing = vec![None::<u64>; dims.len()];
        for mapping in &self.mappings {
            let Some((own, parameters)) = unlimited_axis(&mapping.target) else {
                let fixed = !mapping.target.is_all() && !self.view.first_missing;
                for &axis in axes.iter().filter(|_| fixed) {
                    dims[axis] = dims[axis].max(end(&mapping.target, axis));
                }
                continue;
            };
            let pieces = self.pieces(mapping)?;
            if self.view.first_missing {
                // Without any source the dataset ends where it begins, as in libhdf5.
                let reached = pieces.last().map(|piece| end(&piece.to, own));
                let reached = reached.map_or(0, |reached| with_trail(parameters, reached));
                let first = &mut first_missing[own];
                *first = Some(first.map_or(reached, |first| first.min(reached)));
                continue;
            }
            for (piece, &axis) in
                pieces.iter().flat_map(|piece| axes.iter().map(move |a| (piece, a)))
            {
                dims[axis] = dims[axis].max(end(&piece.to, axis));
            }
        }
        for (dim, first) in dims.iter_mut().zip(first_missing) {
            *dim = first.unwrap_or(*dim);
        }
        Ok(dims)
    }

    /// The parts of a mapping that have a source.
    fn pieces(&self, mapping: &VirtualMapping) -> Result<Vec<Piece>> {
        let Some((axis, parameters)) = unlimited_axis(&mapping.target) else {
            let (file, dataset) = (plain(&mapping.file), plain(&mapping.dataset));
            let Some(source) = self.source(&file, &dataset)? else { return Ok(Vec::new()) };
            let (from, to) = (mapping.source.clone(), mapping.target.clone());
            return Ok(vec![Piece { source, from, to, endless: None }]);
        };
        if !is_numbered(&mapping.file) && !is_numbered(&mapping.dataset) {
            let (file, dataset) = (plain(&mapping.file), plain(&mapping.dataset));
            let Some(source) = self.source(&file, &dataset)? else { return Ok(Vec::new()) };
            let dims = source.dataset.dims();
            let from = mapping.source.clip(&dims)?;
            let to = first_cells(&mapping.target, axis, parameters, from.count(&dims))?;
            let endless = Some(mapping.source.clone());
            return Ok(vec![Piece { source, from, to, endless }]);
        }
        let mut pieces = Vec::new();
        let patience = if self.view.first_missing { 0 } else { self.view.gap };
        let mut missing = 0;
        for number in 0..MAX_BLOCKS {
            let (file, dataset) =
                (numbered(&mapping.file, number), numbered(&mapping.dataset, number));
            let Some(source) = self.source(&file, &dataset)? else {
                missing += 1;
                if missing > patience {
                    break;
                }
                continue;
            };
            missing = 0;
            let mut parameters = parameters;
            if parameters.block == UNLIMITED {
                // Blocks that touch are one without end: a source tells where to cut.
                let cells = mapping.source.count(&source.dataset.dims());
                let layers = (cells / layer(&mapping.target, axis)).max(1);
                (parameters.block, parameters.stride) = (layers, layers);
            }
            let to = block(&mapping.target, axis, parameters, number)?;
            pieces.push(Piece { source, from: mapping.source.clone(), to, endless: None });
        }
        Ok(pieces)
    }

    /// Refreshes sources that other programs may have changed, and looks again for missing ones.
    pub(super) fn refresh(&self) -> Result<()> {
        let _deeper = Deeper::enter()?;
        let before = std::mem::take(&mut *self.sources());
        for (dataset, kept) in before.kept.values() {
            dataset.refresh(kept.file())?;
        }
        let own = self.file.upgrade();
        let inside = self.mappings.iter().filter(|mapping| mapping.file == ".");
        for (mapping, own) in inside.flat_map(|mapping| own.iter().map(move |own| (mapping, own))) {
            if let Some(source) = self.source(".", &plain(&mapping.dataset))? {
                source.dataset.refresh(own)?;
            }
        }
        Ok(())
    }

    /// The source at a path; `None` if it is missing.
    fn source(&self, file_name: &str, path: &str) -> Result<Option<Source>> {
        let key = (file_name.to_owned(), path.to_owned());
        let known = self
            .sources()
            .kept
            .get(&key)
            .map(|(dataset, kept)| Source { dataset: dataset.clone(), file: kept.file().clone() });
        if let Some(source) = known {
            let object = source.dataset.object();
            let gone = object.is_deleted() || source.file.is_abandoned(object.address());
            if source.file.is_at_its_path() && !gone {
                return Ok(Some(source));
            }
            // Other files may have replaced them.
            let before = self.sources().kept.remove(&key);
            drop(before);
        }
        let Some(named) = self.source_file(file_name)? else { return Ok(None) };
        let found = match group::resolve(&named, &named.root()?, path) {
            Ok(found) => found,
            Err(Error::NotFound(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let file = found.file.unwrap_or_else(|| named.clone());
        let open = || DatasetState::open(&file, &found.object);
        let dataset = file.dataset(found.object.address(), open)?;
        file.close_with_last();
        self.keep(key, &dataset, &file, &named);
        Ok(Some(Source { dataset, file }))
    }

    /// The file that a mapping names; `None` if it is missing.
    fn source_file(&self, name: &str) -> Result<Option<Arc<File>>> {
        let Some(own) = self.file.upgrade() else {
            return Err(Error::Invalid("the file of a virtual dataset is closed".into()));
        };
        if name == "." {
            return Ok(Some(own));
        }
        if let Some(file) = self.sources().not_kept.get(name).and_then(Weak::upgrade) {
            return Ok(Some(file));
        }
        match outside::open(&own, name, outside::VIRTUAL_FOLDERS) {
            Ok(file) => Ok(Some(file)),
            // A file that exists but cannot be opened, for example because it is locked, is not
            // missing.
            Err(Error::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Keeps a source and its file for later requests. If that file is this one, or keeps this one
    /// open, only its path is kept.
    fn keep(
        &self,
        key: (String, String),
        dataset: &Arc<DatasetState>,
        file: &Arc<File>,
        named: &Arc<File>,
    ) {
        let kept = KeptFile::new(self.number, file);
        let mut sources = self.sources();
        let mut before = Sources::default();
        if sources.kept.len().max(sources.not_kept.len()) >= KEPT {
            before = std::mem::take(&mut *sources);
        }
        match kept {
            Some(kept) => drop(sources.kept.insert(key, (dataset.clone(), kept))),
            None if key.0 != "." => {
                sources.not_kept.insert(key.0, Arc::downgrade(named));
            }
            None => {}
        }
        // Files may be closed with it.
        drop(sources);
        drop(before);
    }

    fn sources(&self) -> MutexGuard<'_, Sources> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads cells and puts them into their places: `wanted` says which, in order of the cells.
    pub(super) fn read(
        &self,
        geometry: &Geometry,
        datatype: &Datatype,
        wanted: &[Segment],
        target: &Target<'_>,
    ) -> Result<()> {
        let fixed = datatype.fixed_part();
        let datatype = match (datatype.has_varlen(), &fixed) {
            (false, _) => datatype,
            // Members of fixed size need no heap, and keep their offsets in the element.
            (true, Some(fixed)) if target.takes_members() => fixed,
            _ => {
                let what = "variable-length data of a virtual dataset with the file's references";
                return Err(Error::Unsupported(what.into()));
            }
        };
        let _deeper = Deeper::enter()?;
        let (dims, size) = (geometry.dims(), datatype.size());
        // Elements are collected one after another in the order of `wanted`.
        let mut count = 0;
        let mut collected = Vec::with_capacity(wanted.len());
        for segment in wanted {
            collected.push(Segment { memory: count, ..*segment });
            count += segment.len;
        }
        let mut elements = zeros(count.saturating_mul(size as u64))?;
        fill_with(&mut elements, geometry.fill());
        for mapping in &self.mappings {
            for piece in self.pieces(mapping)? {
                piece.read(&dims, &collected, datatype, &mut elements)?;
            }
        }
        for (segment, place) in wanted.iter().zip(&collected) {
            let (start, length) = (place.memory as usize * size, place.len as usize * size);
            target.place(segment.memory, &elements[start..start + length])?;
        }
        Ok(())
    }

    /// Reads cells with everything that they refer to; cells without a source are null. `wanted`
    /// says which go to which place, in order of the cells.
    pub(super) fn read_heaped(
        &self,
        geometry: &Geometry,
        datatype: &Datatype,
        wanted: &[Segment],
    ) -> Result<Heaped> {
        let _deeper = Deeper::enter()?;
        let (dims, size) = (geometry.dims(), datatype.size());
        let count = wanted.iter().fold(0u64, |count, segment| count.saturating_add(segment.len));
        let mut all =
            Heaped { elements: zeros(count.saturating_mul(size as u64))?, heap: Vec::new() };
        for mapping in &self.mappings {
            for piece in self.pieces(mapping)? {
                let Some((selection, pairs)) = piece.cells(&dims, wanted)? else { continue };
                let source = &piece.source.dataset;
                if source.datatype() != datatype {
                    let what = "virtual variable-length data of sources with another datatype";
                    return Err(Error::Unsupported(what.into()));
                }
                let mut found = source.read_heaped(&selection)?;
                heaped::adopt(datatype, &mut found.elements, &mut all.heap, 0, &found.heap)?;
                distribute(&pairs, &found.elements, size, &mut all.elements);
            }
        }
        Ok(all)
    }
}

/// Puts elements, which are in the order of `pairs`, into their places.
fn distribute(pairs: &[Segment], values: &[u8], size: usize, elements: &mut [u8]) {
    let mut rest = values;
    for pair in pairs {
        let (now, later) = rest.split_at(pair.len as usize * size);
        let start = pair.memory as usize * size;
        elements[start..start + now.len()].copy_from_slice(now);
        rest = later;
    }
}

impl Piece {
    /// Reads the wanted cells that this source has.
    fn read(
        &self,
        dims: &Dims,
        wanted: &[Segment],
        datatype: &Datatype,
        elements: &mut [u8],
    ) -> Result<()> {
        let Some((selection, pairs)) = self.cells(dims, wanted)? else { return Ok(()) };
        let size = datatype.size();
        let count: u64 = pairs.iter().map(|pair| pair.len).sum();
        let mut values = zeros(count.saturating_mul(size as u64))?;
        let output = pumice_layout::buffer::Output::zeroed(&mut values);
        self.source.dataset.read(&selection, datatype, output)?;
        distribute(&pairs, &values, size, elements);
        Ok(())
    }

    /// The wanted cells that this source has: its own cells, in order, and where they go; `None` if
    /// it has none.
    fn cells(&self, dims: &Dims, wanted: &[Segment]) -> Result<Option<(Selection, Vec<Segment>)>> {
        let source_dims = self.source.dataset.dims();
        let (Some(first), Some(last)) = (wanted.first(), wanted.last()) else { return Ok(None) };
        let to = self.to.clip(dims)?;
        let mut from = self.from.clip(&source_dims)?;
        if let Some(all) = &self.endless
            && let Some((axis, parameters)) = unlimited_axis(all)
            && to.count(dims) < from.count(&source_dims)
        {
            // The dataset ends before this source does, where another is missing.
            from = first_cells(all, axis, parameters, to.count(dims))?;
        }
        let outside = |(start, end): (Dims, Dims)| {
            linear(&end, dims) < first.cell || linear(&start, dims) >= last.cell + last.len
        };
        if to.bounds(dims).is_none_or(outside) {
            return Ok(None);
        }
        if to.count(dims) != from.count(&source_dims) {
            // A source that has become smaller, or never was as large as the mapping says.
            return Err(Error::Invalid(format!(
                "a mapping of {} cell(s) of a source to {}",
                from.count(&source_dims),
                to.count(dims)
            )));
        }
        if to.count(dims) == 0 {
            return Ok(None);
        }
        let mut pairs = overlap(&segments(&to, dims, &from, &source_dims)?, wanted);
        if pairs.is_empty() {
            return Ok(None);
        }
        // Elements arrive in the order of the source's cells.
        pairs.sort_unstable_by_key(|pair| pair.cell);
        let cells = source_dims.iter().try_fold(1u64, |cells, &side| cells.checked_mul(side));
        let cells =
            cells.ok_or_else(|| Error::Invalid("the selection of a source has no end".into()))?;
        let runs = pairs.iter().map(|pair| Run { start: pair.cell, len: pair.len });
        let selection = CellSet::from_runs(cells, runs)?.to_selection(&source_dims)?;
        Ok(Some((selection, pairs)))
    }
}

/// The runs in which two selections correspond: `cell` in the first, `memory` in the second, in
/// order of the first's cells.
pub(super) fn segments(
    first: &Selection,
    first_dims: &[u64],
    second: &Selection,
    second_dims: &[u64],
) -> Result<Vec<Segment>> {
    let grid = ChunkGrid::new(first_dims, first_dims)?;
    let mut segments = Vec::new();
    for part in plan(first, first_dims, &grid, second, second_dims)? {
        for segment in part.segments(first_dims) {
            if segments.len() >= MAX_RUNS {
                let what = format!("selections of more than {MAX_RUNS} runs in virtual datasets");
                return Err(Error::Unsupported(what));
            }
            segments.push(segment);
        }
    }
    segments.sort_unstable_by_key(|segment: &Segment| segment.cell);
    Ok(segments)
}

/// The number of a cell in row-major order.
fn linear(cell: &[u64], dims: &[u64]) -> u64 {
    cell.iter()
        .zip(dims)
        .fold(0, |number, (&index, &side)| number.saturating_mul(side).saturating_add(index))
}

/// Combines "virtual cell to source cell" with "virtual cell to place" to "source cell to place".
fn overlap(sources: &[Segment], wanted: &[Segment]) -> Vec<Segment> {
    let (mut pairs, mut first) = (Vec::new(), 0);
    for place in wanted {
        let end = place.cell + place.len;
        first += sources[first..].partition_point(|source| source.cell + source.len <= place.cell);
        for source in sources[first..].iter().take_while(|source| source.cell < end) {
            let start = source.cell.max(place.cell);
            let len = end.min(source.cell + source.len) - start;
            let cell = source.memory + (start - source.cell);
            pairs.push(Segment { cell, memory: place.memory + (start - place.cell), len });
        }
    }
    pairs
}

/// Counts one more level of nesting as long as it lives.
struct Deeper;

impl Deeper {
    fn enter() -> Result<Self> {
        NESTING.with(|nesting| match nesting.get() {
            depth if depth < MAX_NESTING => {
                nesting.set(depth + 1);
                Ok(Self)
            }
            _ => Err(Error::Invalid("virtual datasets lead to each other in a circle".into())),
        })
    }
}

impl Drop for Deeper {
    fn drop(&mut self) {
        NESTING.with(|nesting| nesting.set(nesting.get() - 1));
    }
}

/// The extent of a virtual dataset with the dimensions that its sources give it.
pub(super) fn extent(stored: &Extent, dims: &Dims) -> Result<Extent> {
    match stored {
        Extent::Simple { .. } => Ok(Extent::with_max(dims, stored.max_dims())?),
        other => Ok(other.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_take_the_place_of_their_mark() {
        assert_eq!(numbered("a%b-%%b.h5", 12), "a12-%b.h5");
        assert!(is_numbered("x%b") && !is_numbered("x%%b"));
        assert_eq!(plain("50%%"), "50%");
    }

    #[test]
    fn unlimited_selections_end_where_their_cells_do() {
        let endless = Selection::hyperslab(&[1, 0], &[5, 1], &[UNLIMITED, 1], &[2, 3]).unwrap();
        let (axis, parameters) = unlimited_axis(&endless).unwrap();
        assert_eq!(axis, 0);
        let five = first_cells(&endless, axis, parameters, 15).unwrap();
        let dims = [20, 3];
        let rows: Vec<u64> = (0..20).filter(|&row| five.contains(&[row, 0])).collect();
        assert_eq!((five.count(&dims), rows), (15, vec![1, 2, 6, 7, 11]));
        assert_eq!(first_cells(&endless, axis, parameters, 0).unwrap().count(&dims), 0);
        let third = block(&endless, axis, parameters, 2).unwrap();
        assert_eq!(third.bounds(&dims).unwrap().0.as_slice(), [11, 0]);
    }
}
