//! Questions about defined cells: which there are, and their values, chunk by chunk.
//!
//! A question may concern millions of chunks, and its answer may be larger than the cache. So
//! chunks are asked in portions, and the caller takes the answer of one portion before the next. To
//! other requests all of it is one request. In sparse datasets, a vast selection costs what is
//! stored of it.

use super::DatasetState;
use super::transfer::{cells_by_chunk, chunks_around, chunks_within, cut};
use crate::Result;
use crate::file::Cache;
use pumice_cache::{Dataset as Cached, ReadInParts};
use pumice_layout::buffer::Output;
use pumice_layout::{ChunkTable, Filled, Hdf5, ReadRequest, TOGETHER};
use pumice_space::{CellSet, ChunkGrid, Dims, FoundCells, Selection};
use pumice_types::Datatype;
use std::collections::VecDeque;

/// Above this many chunks, stored chunks are listed instead of visiting all of them.
const MANY: u64 = 1024;

/// A portion finds at most this many bytes of cells and values, unless one chunk has more.
const FOUND: u64 = 16 << 20;

/// The defined cells of one chunk, and their values if they were asked for.
pub struct Defined {
    /// The chunk's coordinates in the grid.
    pub chunk: Dims,
    /// Its defined cells.
    pub cells: FoundCells,
    /// The value of each, in the file's type; empty if only the cells were asked for.
    pub values: Vec<u8>,
}

/// Chunks, each with the selected cells in it.
pub(super) type Touched = Vec<(Dims, Selection)>;

/// The chunks that a selection touches, some at a time.
pub(super) struct Touching<'a> {
    table: Option<&'a ChunkTable>,
    selection: &'a Selection,
    grid: &'a ChunkGrid,
    chunks: Chunks<'a>,
}

/// The source of chunks.
enum Chunks<'a> {
    /// A plan, or a list.
    Planned(Box<dyn Iterator<Item = (Dims, Selection)> + 'a>),
    /// Chunks that may have defined cells.
    Filled(Filled),
}

impl Touching<'_> {
    /// The next ones; `None` behind the last.
    pub(super) fn next(&mut self) -> Result<Option<Touched>> {
        loop {
            let some = match (&mut self.chunks, self.table) {
                (Chunks::Filled(filled), Some(table)) => {
                    let Some(keys) = filled.next(table)? else { return Ok(None) };
                    cut(self.selection, &keys, self.grid)?
                }
                (Chunks::Planned(parts), _) => {
                    let some: Touched = parts.take(TOGETHER).collect();
                    return Ok((!some.is_empty()).then_some(some));
                }
                (Chunks::Filled(_), None) => return Ok(None),
            };
            if !some.is_empty() {
                return Ok(Some(some));
            }
        }
    }

    /// The next `count` chunks, or all that are left.
    fn take(&mut self, count: usize) -> Result<Option<Touched>> {
        let Some(mut all) = self.next()? else { return Ok(None) };
        while all.len() < count
            && let Some(more) = self.next()?
        {
            all.extend(more);
        }
        Ok(Some(all))
    }
}

/// The way to read a portion of chunks: by a request of its own, or as a part of one.
pub(super) enum Turn<'a> {
    Whole(&'a Cache, &'a Cached<Hdf5>),
    Part(ReadInParts<'a, Hdf5>),
}

impl Turn<'_> {
    pub(super) fn read<'r>(
        &self,
        requests: impl IntoIterator<Item = (Dims, ReadRequest<'r>)>,
    ) -> Result<()> {
        match self {
            Self::Whole(cache, cached) => cache.read(cached, requests),
            Self::Part(part) => part.read(requests),
        }
    }
}

impl DatasetState {
    /// Calls `visit` with the defined cells among the selected ones, some chunks at a time.
    pub fn defined_each(
        &self,
        selection: &Selection,
        mut visit: impl FnMut(Vec<Defined>) -> Result<()>,
    ) -> Result<()> {
        if self.sources.is_some() {
            let parts = self.virtual_parts(selection)?.into_iter();
            let part = |(chunk, cells, _): (Dims, CellSet, _)| Defined {
                chunk,
                cells: cells.into(),
                values: Vec::new(),
            };
            return visit(parts.map(part).collect());
        }
        let _no_resize = self.gate();
        self.ask(selection, |turn, touched| visit(defined_of(turn, touched)?))
    }

    /// The defined cells among the selected ones of some chunks alone, which ascend in row-major order: no other is
    /// looked for.
    pub fn defined_in(&self, chunks: &[Dims], selection: &Selection) -> Result<Vec<Defined>> {
        let _no_resize = self.gate();
        let whole = Turn::Whole(self.cache(), &self.cached);
        defined_of(&whole, self.cut_checked(chunks, selection)?)
    }

    /// Calls `visit` with the selected defined cells and their values, in portions. Values have the
    /// file's type; those parts of variable length that `wanted` lacks are undefined.
    pub fn read_defined_each(
        &self,
        selection: &Selection,
        wanted: &Datatype,
        mut visit: impl FnMut(Vec<Defined>) -> Result<()>,
    ) -> Result<()> {
        if self.sources.is_some() {
            let fixed = self.datatype.fixed_part().filter(|_| self.lacks_parts(wanted));
            let datatype = fixed.as_ref().unwrap_or(&self.datatype);
            for (chunk, cells, selection) in self.virtual_parts(selection)? {
                let mut values = self.buffer(cells.len())?;
                self.read(&selection, datatype, Output::zeroed(&mut values))?;
                visit(vec![Defined { chunk, cells: cells.into(), values }])?;
            }
            return Ok(());
        }
        let _no_resize = self.gate();
        if let Some(found) = self.read_window_cells(selection)? {
            return visit(found);
        }
        let members = self.lacks_parts(wanted);
        self.ask(selection, |turn, touched| visit(read_defined_of(turn, touched, members)?))
    }

    /// The defined cells of some chunks alone, which ascend in row-major order: no other is looked for.
    pub fn read_defined_in(
        &self,
        chunks: &[Dims],
        selection: &Selection,
        wanted: &Datatype,
    ) -> Result<Vec<Defined>> {
        let _no_resize = self.gate();
        let whole = Turn::Whole(self.cache(), &self.cached);
        let touched = self.cut_checked(chunks, selection)?;
        read_defined_of(&whole, touched, self.lacks_parts(wanted))
    }

    /// Calls `act` with the chunks that are asked which of the selected cells are defined, as many as have a bounded
    /// number of bytes.
    pub(super) fn ask(
        &self,
        selection: &Selection,
        act: impl FnMut(&Turn<'_>, Touched) -> Result<()>,
    ) -> Result<()> {
        let grid = self.grid(&self.dims())?;
        let (mut asked, mut ready) = (self.asked(selection, &grid)?, VecDeque::new());
        let next = || {
            while ready.is_empty() {
                let Some(some) = asked.next()? else { return Ok(None) };
                ready = self.in_portions(some)?;
            }
            Ok(ready.pop_front())
        };
        self.ask_each(next, act)
    }

    /// Asks `count` chunks at a time.
    pub(super) fn ask_many(
        &self,
        selection: &Selection,
        count: usize,
        act: impl FnMut(&Turn<'_>, Touched) -> Result<()>,
    ) -> Result<()> {
        let grid = self.grid(&self.dims())?;
        let mut asked = self.asked(selection, &grid)?;
        self.ask_each(|| asked.take(count), act)
    }

    /// Calls `act` with each portion; several portions are parts of one request.
    fn ask_each(
        &self,
        mut next: impl FnMut() -> Result<Option<Touched>>,
        mut act: impl FnMut(&Turn<'_>, Touched) -> Result<()>,
    ) -> Result<()> {
        let Some(first) = next()? else { return Ok(()) };
        let Some(second) = next()? else {
            return act(&Turn::Whole(self.cache(), &self.cached), first);
        };
        let turn = Turn::Part(self.cache().begin_read(&self.cached)?);
        act(&turn, first)?;
        act(&turn, second)?;
        while let Some(some) = next()? {
            act(&turn, some)?;
        }
        Ok(())
    }

    /// Divides chunks into portions whose answers are bounded.
    fn in_portions(&self, touched: Touched) -> Result<VecDeque<Touched>> {
        let geometry = &self.layout.geometry;
        let cell = geometry.element_size() as u64 + 8;
        let most = geometry.cells_per_chunk().saturating_mul(cell);
        let Some(table) = self.layout.table() else { return Ok(VecDeque::from([touched])) };
        if most.saturating_mul(touched.len() as u64) <= FOUND {
            return Ok(VecDeque::from([touched]));
        }
        let keys: Vec<Dims> = touched.iter().map(|(key, _)| key.clone()).collect();
        let (mut portions, mut bytes) = (VecDeque::from([Touched::new()]), 0u64);
        for (one, record) in touched.into_iter().zip(table.lookup(&keys)?) {
            // As scattered cells are listed, each takes four bytes.
            let found = record.map_or(0, |record| {
                let cells = self.layout.announced_cells(&record).unwrap_or(0);
                table.stored(record).decoded.saturating_add(cells.saturating_mul(4))
            });
            bytes = bytes.saturating_add(found);
            if bytes > FOUND && portions.back().is_some_and(|portion| !portion.is_empty()) {
                portions.push_back(Touched::new());
                bytes = found;
            }
            if let Some(portion) = portions.back_mut() {
                portion.push(one);
            }
        }
        Ok(portions)
    }

    /// The chunks that may have selected defined cells. In datasets where only stored cells are
    /// defined, these are the stored and the dirty ones.
    fn asked<'a>(&'a self, selection: &'a Selection, grid: &'a ChunkGrid) -> Result<Touching<'a>> {
        selection.check(grid.dims())?;
        if self.layout.is_sparse() {
            return self.touched(selection, grid);
        }
        let chunks = match self.count(selection, &Dims::from_slice(grid.dims())) {
            0 => Chunks::Planned(Box::new(std::iter::empty())),
            _ => Chunks::Planned(Box::new(cells_by_chunk(selection, grid)?)),
        };
        Ok(Touching { table: self.layout.table(), selection, grid, chunks })
    }

    /// The chunks that a selection touches and that may hold something.
    pub(super) fn touched<'a>(
        &'a self,
        selection: &'a Selection,
        grid: &'a ChunkGrid,
    ) -> Result<Touching<'a>> {
        let (dims, table) = (Dims::from_slice(grid.dims()), self.layout.table());
        let touching = |chunks| Touching { table, selection, grid, chunks };
        if self.count(selection, &dims) == 0 {
            return Ok(touching(Chunks::Planned(Box::new(std::iter::empty()))));
        }
        // Points have no more chunks than points.
        let listed = table.filter(|_| selection.as_points().is_none());
        let Some(table) = listed.filter(|_| self.count(selection, &dims) > MANY) else {
            return Ok(touching(Chunks::Planned(Box::new(cells_by_chunk(selection, grid)?))));
        };
        // Anything else is not even planned if it is vast.
        if chunks_within(selection, &dims, grid.chunk()) > MANY {
            // The cached chunks first: a chunk that is stored meanwhile is in both lists.
            let changed = self.cache().changed_keys(&self.cached)?;
            let filled = Filled::new(table, grid.clone(), changed)?;
            return Ok(touching(Chunks::Filled(filled)));
        }
        if !selection.is_all() && selection.regular().is_none() {
            // A plan lists every row of a selection that is no hyperslab.
            let all = cut(selection, &chunks_around(selection, grid), grid)?;
            return Ok(touching(Chunks::Planned(Box::new(all.into_iter()))));
        }
        Ok(touching(Chunks::Planned(Box::new(cells_by_chunk(selection, grid)?))))
    }

    fn cut_checked(&self, chunks: &[Dims], selection: &Selection) -> Result<Touched> {
        let dims = self.dims();
        selection.check(&dims)?;
        match self.count(selection, &dims) {
            0 => Ok(Vec::new()),
            _ => cut(selection, chunks, &self.grid(&dims)?),
        }
    }
}

fn defined_of(turn: &Turn<'_>, touched: Touched) -> Result<Vec<Defined>> {
    let mut answers: Vec<Option<CellSet>> = touched.iter().map(|_| None).collect();
    let requests = touched
        .iter()
        .zip(&mut answers)
        .map(|((key, cells), found)| (key.clone(), ReadRequest::Defined { cells, found }));
    turn.read(requests)?;
    let found = touched.into_iter().zip(answers).filter_map(|((chunk, _), cells)| {
        let cells = cells.filter(|cells| !cells.is_empty())?;
        Some(Defined { chunk, cells: cells.into(), values: Vec::new() })
    });
    Ok(found.collect())
}

fn read_defined_of(turn: &Turn<'_>, touched: Touched, members: bool) -> Result<Vec<Defined>> {
    let mut answers: Vec<Option<(FoundCells, Vec<u8>)>> = touched.iter().map(|_| None).collect();
    let requests = touched.iter().zip(&mut answers).map(|((key, cells), found)| {
        (key.clone(), ReadRequest::DefinedValues { cells, members, found })
    });
    turn.read(requests)?;
    let found = touched.into_iter().zip(answers).filter_map(|((chunk, _), found)| {
        let (cells, values) = found.filter(|(cells, _)| !cells.is_empty())?;
        Some(Defined { chunk, cells, values })
    });
    Ok(found.collect())
}
