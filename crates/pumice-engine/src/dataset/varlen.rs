//! Reading and writing elements with parts of variable length, together with the objects that they
//! refer to.
//!
//! Structured chunks keep elements and objects together. In all other layouts elements are
//! references into the file's global heap: a read follows them after it has read the elements, a
//! write stores the objects before the elements.

use super::{DatasetState, virtuality};
use crate::{Error, Result};
use pumice_layout::buffer::Output;
use pumice_layout::request::{Piece, piece_of};
use pumice_layout::{Lists, ReadRequest, Source, Storage, Target, VariableLength, WriteRequest};
use pumice_medium::{reserved, zeroed};
use pumice_space::{CellSet, Dims, FoundCells, Selection, plan_packed};
use pumice_types::{Conversion, Datatype, Heaped, VarLen, VarLenKind, heaped, references};
use pumice_wide::widely;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{MutexGuard, PoisonError};

/// Bytes of text that a thread looks through at a time.
const TEXT_PIECE: usize = 1 << 20;

/// The defined cells of one chunk, with their values and the objects that these refer to.
pub struct DefinedHeaped {
    /// The chunk's coordinates in the grid.
    pub chunk: Dims,
    /// Its defined cells.
    pub cells: FoundCells,
    /// The value of each, in the file's type.
    pub values: Heaped,
}

impl DatasetState {
    /// Reads the selected cells with everything that they refer to, in the file's type and in
    /// row-major order of the selection (points: in their order).
    pub fn read_heaped(&self, selection: &Selection) -> Result<Heaped> {
        if let Storage::VariableLength(structured) = &self.layout.storage {
            return self.read_structured(selection, structured);
        }
        let dims = self.dims();
        selection.check(&dims)?;
        let count = self.count(selection, &dims);
        if let Some(sources) = &self.sources
            && self.datatype.has_varlen()
        {
            let (all, shape) = (Selection::all(), selection.shape(&dims));
            let wanted = virtuality::segments(selection, &dims, &all, &shape)?;
            return sources.read_heaped(&self.layout.geometry, &self.datatype, &wanted);
        }
        let mut elements = self.buffer(count)?;
        let _reading = self.heap.reading();
        self.read(selection, &self.datatype, Output::zeroed(&mut elements))?;
        self.follow(elements)
    }

    /// Reads elements with their objects from structured chunks.
    fn read_structured(
        &self,
        selection: &Selection,
        structured: &VariableLength,
    ) -> Result<Heaped> {
        let _no_resize = self.gate();
        let dims = self.dims();
        selection.check(&dims)?;
        let count = self.count(selection, &dims);
        if count == 0 {
            return Ok(Heaped::default());
        }
        let mut elements = self.buffer(count)?;
        let conversion = Conversion::new(&self.datatype, &self.datatype)?;
        let output = Output::zeroed(&mut elements);
        // SAFETY: the target goes into the requests of one plan, which packs elements.
        let target = unsafe { Target::heaped(output, conversion, structured.fill())? };
        let parts = plan_packed(selection, &self.grid(&dims)?)?;
        let requests =
            parts.map(|part| (part.chunk.clone(), ReadRequest::Values { part, target: &target }));
        self.cache().read(&self.cached, requests)?;
        let pieces = target.into_pieces();
        self.join(elements, pieces)
    }

    /// Joins pieces of heap in the order of the elements. Chunks come in any order, but a reader of
    /// strings wants them in sequence.
    pub(super) fn join(&self, mut elements: Vec<u8>, mut pieces: Vec<Piece>) -> Result<Heaped> {
        if pieces.len() <= 1 {
            let heap = pieces.pop().map(|piece| piece.bytes);
            return Ok(Heaped { elements, heap: heap.unwrap_or_default() });
        }
        let mut heap = reserved(pieces.iter().map(|piece| piece.bytes.len()).sum())?;
        let mut starts = vec![0; pieces.len()];
        let mut order: Vec<usize> = (0..pieces.len()).collect();
        order.sort_by_key(|&number| pieces[number].first);
        for number in order {
            starts[number] = heap.len() as u64;
            heap.extend_from_slice(&std::mem::take(&mut pieces[number].bytes));
        }
        let place = |old: u64| {
            let (piece, place) = piece_of(old);
            starts.get(piece).map_or(u64::MAX, |start| start + place)
        };
        heaped::move_references(&self.datatype, &mut elements, &mut heap, &place)?;
        Ok(Heaped { elements, heap })
    }

    /// Follows references into the global heap: the elements of a fill value, or of a layout
    /// without structured chunks, with their objects.
    pub fn follow(&self, elements: Vec<u8>) -> Result<Heaped> {
        if !self.datatype.has_varlen() {
            return Ok(Heaped { elements, heap: Vec::new() });
        }
        let parts = self.followers(elements.len());
        match self.datatype.as_flat_varlen() {
            Some(varlen) if parts > 1 => self.follow_in_parts(elements, varlen, parts),
            _ => self.heap.load(&self.datatype, elements),
        }
    }

    /// Writes elements of the file's type, which refer to `heap`, to the selected cells.
    pub fn write_heaped(&self, selection: &Selection, elements: &[u8], heap: &[u8]) -> Result<()> {
        self.begin_write()?;
        if !self.datatype.has_varlen() {
            return self.write(selection, &self.datatype, elements);
        }
        if !matches!(self.layout.storage, Storage::VariableLength(..)) {
            return self.write_references(selection, elements, heap);
        }
        let conversion = Conversion::new(&self.datatype, &self.datatype)?;
        let source = Source::heaped(elements, conversion, heap);
        self.write_from(selection, elements.len(), &source)
    }

    /// Writes strings or sequences, which lie one after another in `heap`, to the selected cells: each
    /// from one of `offsets`, which count values of the file's type, to the next. Strings with a null
    /// byte are refused.
    pub fn write_lists(&self, selection: &Selection, offsets: &[u64], heap: &[u8]) -> Result<()> {
        self.medium().require_writable()?;
        let lists = self.lists(offsets, heap)?;
        if !matches!(self.layout.storage, Storage::VariableLength(..)) {
            let elements = references(offsets, lists.base, lists.size)?;
            return self.write_references(selection, &elements, heap);
        }
        let conversion = Conversion::new(&self.datatype, &self.datatype)?;
        let bytes = lists.len().saturating_mul(self.datatype.size());
        self.write_from(selection, bytes, &Source::lists(lists, conversion, heap))
    }

    /// Builds elements for consecutive strings or sequences, if the dataset's type is one of these.
    pub(super) fn lists<'a>(&self, offsets: &'a [u64], heap: &[u8]) -> Result<Lists<'a>> {
        let Datatype::VarLen(VarLen { base, size, kind }) = &self.datatype else {
            return Err(Error::TypeMismatch(format!("{} is no sequence", self.datatype)));
        };
        if matches!(kind, VarLenKind::String { .. }) && self.has_null(heap) {
            let what = "a string with a null byte, which HDF5 takes for its end";
            return Err(Error::WrongValue(what.into()));
        }
        Ok(Lists { offsets, base: base.size(), size: *size })
    }

    /// Whether a text has a null byte. Searches on all threads.
    fn has_null(&self, text: &[u8]) -> bool {
        let (pieces, found) = (text.chunks(TEXT_PIECE), AtomicBool::new(false));
        let pieces: Vec<&[u8]> = pieces.collect();
        self.cache().executor().run(pieces.len(), &|number| {
            // By blocks, without a decision for every byte.
            let any = |block: &[u8]| block.iter().fold(false, |any, &byte| any | (byte == 0));
            if widely(|| pieces[number].chunks(4096).any(any)) {
                found.store(true, Ordering::Relaxed);
            }
        });
        found.into_inner()
    }

    /// Writes elements, which take `bytes` in memory, to structured chunks.
    fn write_from(&self, selection: &Selection, bytes: usize, source: &Source<'_>) -> Result<()> {
        let _no_resize = self.gate();
        let dims = self.dims();
        if self.check(selection, &dims, &self.datatype, bytes)? == 0 {
            return Ok(());
        }
        self.check_reach(selection, &dims)?;
        let parts = plan_packed(selection, &self.grid(&dims)?)?;
        let requests =
            parts.map(|part| (part.chunk.clone(), WriteRequest::Values { part, source }));
        self.cache().write(&self.cached, requests)
    }

    /// Stores the objects of elements in the global heap and writes references to them. Gives back
    /// the objects that the cells referred to before.
    fn write_references(&self, selection: &Selection, elements: &[u8], heap: &[u8]) -> Result<()> {
        let dims = self.dims();
        let count = self.check(selection, &dims, &self.datatype, elements.len())?;
        if count == 0 {
            return Ok(());
        }
        if let Some((selection, elements)) = self.last_values(selection, elements)? {
            return self.write_references(&selection, &elements, heap);
        }
        if let Some(sources) = &self.sources {
            let (all, shape) = (Selection::all(), selection.shape(&dims));
            let wanted = virtuality::segments(selection, &dims, &all, &shape)?;
            let geometry = &self.layout.geometry;
            return sources.write_heaped(geometry, &self.datatype, &wanted, elements, heap);
        }
        self.check_reach(selection, &dims)?;
        let _one_at_a_time = self.replacing();
        self.replace_references(selection, &dims, elements, heap)
    }

    /// Each cell once with its last value, if a list of points names some repeatedly. A value that
    /// another of the same write replaces must not be stored, and the old object must be given back
    /// once.
    pub(super) fn last_values(
        &self,
        selection: &Selection,
        elements: &[u8],
    ) -> Result<Option<(Selection, Vec<u8>)>> {
        let Some((rank, points)) = selection.as_points() else { return Ok(None) };
        let Some(last) = last_of_each(rank, points) else { return Ok(None) };
        let size = self.datatype.size();
        let elements: Vec<&[u8]> =
            last.iter().map(|&at| &elements[at * size..(at + 1) * size]).collect();
        let points = last.iter().flat_map(|&at| &points[at * rank..(at + 1) * rank]).copied();
        Ok(Some((Selection::points(rank, points.collect())?, elements.concat())))
    }

    /// Keeps others from replacing references: each caller finds those that the one before left.
    pub(super) fn replacing(&self) -> MutexGuard<'_, ()> {
        self.replacing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the references of cells of the dataset itself. The count of elements was checked;
    /// the caller holds [`replacing`](Self::replacing).
    pub(super) fn replace_references(
        &self,
        selection: &Selection,
        dims: &Dims,
        elements: &[u8],
        heap: &[u8],
    ) -> Result<()> {
        let _reading = self.heap.reading();
        let (old, new) = self.renew_references(selection, dims, elements, heap)?;
        // If this fails, some cells may have the new references and others the old ones. Neither
        // objects are given back; only space is lost.
        self.write(selection, &self.datatype, &new)?;
        self.leave_references(selection, dims, old)
    }

    /// Stores the objects of elements. Returns the references that the cells have, and those that
    /// they are to get. The caller holds the heap's reading guard.
    pub(super) fn renew_references(
        &self,
        selection: &Selection,
        dims: &Dims,
        elements: &[u8],
        heap: &[u8],
    ) -> Result<(Vec<u8>, Vec<u8>)> {
        let mut old = self.buffer(self.count(selection, dims))?;
        self.read(selection, &self.datatype, Output::zeroed(&mut old))?;
        if self.heap.knows_no_room() {
            self.look_for_room(selection, dims);
        }
        let mut new = elements.to_vec();
        self.heap.store(&self.datatype, &mut new, heap)?;
        Ok((old, new))
    }

    /// Gives back the objects of references that were replaced.
    pub(super) fn leave_references(
        &self,
        selection: &Selection,
        dims: &Dims,
        old: Vec<u8>,
    ) -> Result<()> {
        if self.discard(old)? {
            self.note_overwritten(selection, dims);
        }
        Ok(())
    }

    /// Reads the object of a cell in front of the selection. A program that appends after opening a
    /// file finds the free room of that collection.
    fn look_for_room(&self, selection: &Selection, dims: &Dims) {
        let Some(first) = selection.bounds(dims).map(|(first, _)| first) else { return };
        for axis in 0..first.len() {
            let mut cell = first.to_vec();
            let Some(before) = cell[axis].checked_sub(1) else { continue };
            cell[axis] = before;
            // An element that cannot be read has no room.
            let found = Selection::points(cell.len(), cell).map_err(Error::from);
            let _ = found.and_then(|cell| self.read_heaped(&cell));
        }
    }

    /// Whether elements refer to the global heap.
    pub(super) fn uses_global_heap(&self) -> bool {
        let inside = matches!(self.layout.storage, Storage::Dense(..) | Storage::Contiguous(_));
        inside && self.datatype.has_varlen()
    }

    /// Gives back the objects that elements in the file's form refer to. They were read while
    /// [references were in hand](pumice_structures::global_heap::GlobalHeap::reading). Unwritten
    /// elements refer to the fill value's objects, which stay. Returns whether an object stays
    /// until the next commit.
    pub(super) fn discard(&self, mut elements: Vec<u8>) -> Result<bool> {
        // What was never written, mostly: null references, which lead nowhere.
        if elements.chunks(4096).all(|part| part.iter().fold(0, |any, byte| any | byte) == 0) {
            return Ok(false);
        }
        if let Some(fill) = self.fill.as_deref().filter(|fill| !fill.is_empty()) {
            let unwritten =
                elements.chunks_exact_mut(fill.len()).filter(|element| *element == fill);
            unwritten.for_each(|element| element.fill(0));
        }
        self.heap.discard(&self.datatype, elements)
    }

    /// Gives back the objects of all elements, when a dataset is deleted.
    pub(crate) fn discard_all(&self) -> Result<()> {
        let _reading = self.heap.reading();
        if self.uses_global_heap() {
            self.for_each_stored_block(&mut |block| {
                let mut elements = self.buffer(block.count(&self.dims()))?;
                self.read(block, &self.datatype, Output::zeroed(&mut elements))?;
                self.discard(elements).map(drop)
            })?;
        }
        match &self.fill {
            Some(fill) if self.datatype.has_varlen() => {
                self.heap.discard(&self.datatype, fill.to_vec()).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Calls `visit` with the selected defined cells, their values and the objects that these refer
    /// to, chunk by chunk.
    pub fn read_defined_heaped_each(
        &self,
        selection: &Selection,
        mut visit: impl FnMut(DefinedHeaped) -> Result<()>,
    ) -> Result<()> {
        if self.sources.is_some() {
            return self.virtual_parts(selection)?.into_iter().try_for_each(
                |(chunk, cells, selection)| {
                    let values = self.read_heaped(&selection)?;
                    visit(DefinedHeaped { chunk, cells: cells.into(), values })
                },
            );
        }
        let Storage::VariableLength(layout) = &self.layout.storage else {
            let _reading = self.heap.reading();
            return self.read_defined_each(selection, &self.datatype, |found| {
                found.into_iter().try_for_each(|part| {
                    let values = self.follow(part.values)?;
                    visit(DefinedHeaped { chunk: part.chunk, cells: part.cells, values })
                })
            });
        };
        let _no_resize = self.gate();
        self.ask(selection, |turn, touched| {
            let mut answers: Vec<Option<(CellSet, Heaped)>> =
                touched.iter().map(|_| None).collect();
            let requests = touched
                .iter()
                .zip(&mut answers)
                .map(|((key, cells), found)| (key.clone(), layout.ask(cells, found)));
            turn.read(requests)?;
            let found = touched.into_iter().zip(answers).filter_map(|((chunk, _), found)| {
                let (cells, values) = found.filter(|(cells, _)| !cells.is_empty())?;
                Some(DefinedHeaped { chunk, cells: cells.into(), values })
            });
            found.into_iter().try_for_each(&mut visit)
        })
    }

    /// Zeroed memory for `count` elements, or an error if there is not enough.
    pub(super) fn buffer(&self, count: u64) -> Result<Vec<u8>> {
        let size = usize::try_from(count).ok().and_then(|n| n.checked_mul(self.datatype.size()));
        let size = size.ok_or_else(|| Error::NoMemory(format!("no memory for {count} cells")))?;
        zeroed(size)
    }
}

/// The last position of each point, if one repeats.
fn last_of_each(rank: usize, points: &[u64]) -> Option<Vec<usize>> {
    let point = |at: usize| &points[at * rank..(at + 1) * rank];
    let mut order: Vec<usize> = (0..points.len() / rank.max(1)).collect();
    // Stable: of equal points the last stays last.
    order.sort_by(|&one, &other| point(one).cmp(point(other)));
    let groups = order.chunk_by(|&one, &other| point(one) == point(other));
    let mut last: Vec<usize> = groups.filter_map(|same| same.last().copied()).collect();
    if last.len() == order.len() {
        return None;
    }
    last.sort_unstable();
    Some(last)
}
