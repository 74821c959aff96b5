//! The compact form of a set of cells: header, streams, checksum.
//!
//! | bytes | content |
//! |---|---|
//! | 1 | [`COMPACT`] |
//! | 1 | kind (0 bitmap, 1 cells, 2 runs), plus 4 if the complement is written |
//! | 1 | rank, 1 to 32 |
//! | varints | the chunk's dimensions, slowest first, none 0; their product is at most 2^48 |
//! | varint | axes along which the difference is written: bit `a` for axis `a`, not the last |
//! | | bitmap: one bit per cell, lowest bit first; then zero bits |
//! | varint | cells, runs: how many, `n` |
//! | | cells, runs: a stream of `n` gaps |
//! | | runs: a stream of `n` lengths |
//! | 4 | checksum of all of the above |
//!
//! A gap is the number of cells between one cell (or run) and the next, less 1 for all but the first;
//! lengths are less 1. Two runs never touch. Every number is thus the smallest that has a meaning.

use super::list;
use super::numbers::{self, BLOCK, Facts, MOST_BITS, Numbers, Wanted};
use super::plan::{Kind, Plan, plan};
use super::streams::{Bits, Cells, Runs, Stream};
use super::toggles::{self, Axis};
use super::varint::{put_varint, varint};
use super::{Aim, CellVisitor, MOST_RUNS, NAME, corrupt};
use crate::{FilterError, scratch};
use pumice_bytes::{Budget, Lookup3, Reader, Writer};
use pumice_space::{CellSet, Dims, MAX_RANK};

/// The first byte of a compact form.
pub(super) const COMPACT: u8 = 1;

/// Added to the kind if the complement is written.
const COMPLEMENT: u8 = 4;

/// The cells of a chunk of shape `dims`, if the compact form can describe it.
pub(super) fn cells_of(dims: &[u64]) -> Option<u64> {
    if dims.is_empty() || dims.len() > MAX_RANK || dims.contains(&0) {
        return None;
    }
    let cells = dims.iter().try_fold(1u64, |cells, dim| cells.checked_mul(*dim))?;
    (cells <= 1 << MOST_BITS).then_some(cells)
}

/// Replaces `out` by the compact form of a set, given as toggles.
pub(super) fn encode(dims: &[u64], cells: u64, set: Vec<u64>, aim: Aim, out: &mut Vec<u8>) {
    let Plan { kind, complement, axes, toggles } = plan(dims, cells, set, aim);
    put_header(dims, kind as u8 + if complement { COMPLEMENT } else { 0 }, axes, out);
    let (runs, _) = toggles.as_chunks::<2>();
    match kind {
        Kind::Bitmap => put_bitmap(cells, runs, out),
        Kind::Cells => put_cells(cells, runs, aim, out),
        Kind::Runs => put_runs(runs, aim, out),
    }
    out.put_checksum(0);
    scratch::give_words(toggles);
}

/// Replaces `out` by the compact form of a set whose cells are the given gaps apart.
pub(super) fn encode_gaps(dims: &[u64], gaps: &[u32], aim: Aim, out: &mut Vec<u8>) {
    put_header(dims, Kind::Cells as u8, 0, out);
    put_varint(gaps.len() as u64, out);
    let facts = Facts::of(gaps);
    numbers::encode(gaps, &facts, Wanted::of_cells(aim, dims.iter().product(), &facts), out);
    out.put_checksum(0);
}

/// As [`encode_gaps`], up to the stream of `count` gaps, which is to follow, and then a checksum.
pub(super) fn put_cells_header(dims: &[u64], count: usize, out: &mut Vec<u8>) {
    put_header(dims, Kind::Cells as u8, 0, out);
    put_varint(count as u64, out);
}

/// Replaces `out` by the compact form of runs, without its checksum: the gaps before them, and their lengths less 1.
pub(super) fn encode_runs(dims: &[u64], gaps: &[u32], lengths: &[u32], out: &mut Vec<u8>) {
    put_header(dims, Kind::Runs as u8, 0, out);
    put_varint(gaps.len() as u64, out);
    numbers::encode(gaps, &Facts::of(gaps), Wanted::of_runs(Aim::Fast), out);
    numbers::encode(lengths, &Facts::of(lengths), Wanted::of_runs(Aim::Fast), out);
}

fn put_header(dims: &[u64], kind: u8, axes: u32, out: &mut Vec<u8>) {
    out.clear();
    out.push(COMPACT);
    out.push(kind);
    out.push(dims.len() as u8);
    for dim in dims {
        put_varint(*dim, out);
    }
    put_varint(u64::from(axes), out);
}

/// `runs` are pairs of the first cell and the cell after the last.
fn put_bitmap(cells: u64, runs: &[[u64; 2]], out: &mut Vec<u8>) {
    let start = out.len();
    let len = cells.div_ceil(8) as usize;
    out.resize(start + len.next_multiple_of(8), 0);
    let (words, _) = out[start..].as_chunks_mut::<8>();
    for [start, end] in runs {
        set_bits(words, *start, *end);
    }
    out.truncate(start + len);
}

/// Sets the bits from `start` up to `end`.
fn set_bits(words: &mut [[u8; 8]], start: u64, end: u64) {
    let set = |word: &mut [u8; 8], bits: u64| {
        *word = (u64::from_le_bytes(*word) | bits).to_le_bytes();
    };
    let (first, last) = ((start / 64) as usize, ((end - 1) / 64) as usize);
    let from = u64::MAX << (start % 64);
    let to = u64::MAX >> (63 - (end - 1) % 64);
    if first == last {
        return set(&mut words[first], from & to);
    }
    set(&mut words[first], from);
    words[first + 1..last].fill([0xFF; 8]);
    set(&mut words[last], to);
}

fn put_cells(cells: u64, runs: &[[u64; 2]], aim: Aim, out: &mut Vec<u8>) {
    let mut gaps = scratch::take_words(2 * runs.len());
    gaps.clear();
    let mut next = 0;
    for [start, end] in runs {
        gaps.push(start - next);
        if end - start > 1 {
            gaps.resize(gaps.len() + (end - start - 1) as usize, 0);
        }
        next = *end;
    }
    put_varint(gaps.len() as u64, out);
    let facts = Facts::of(gaps.as_slice());
    numbers::encode(gaps.as_slice(), &facts, Wanted::of_cells(aim, cells, &facts), out);
    scratch::give_words(gaps);
}

fn put_runs(runs: &[[u64; 2]], aim: Aim, out: &mut Vec<u8>) {
    put_varint(runs.len() as u64, out);
    let mut numbers = scratch::take_words(runs.len());
    numbers.clear();
    let mut next = 0;
    numbers.extend(runs.iter().map(|[start, end]| {
        let gap = start - next;
        next = end + 1;
        gap
    }));
    numbers::encode(numbers.as_slice(), &Facts::of(numbers.as_slice()), Wanted::of_runs(aim), out);
    numbers.clear();
    numbers.extend(runs.iter().map(|[start, end]| end - start - 1));
    numbers::encode(numbers.as_slice(), &Facts::of(numbers.as_slice()), Wanted::of_runs(aim), out);
    scratch::give_words(numbers);
}

/// A compact form whose header and streams have been found.
struct Parsed<'a> {
    shape: Shape,
    body: Body<'a>,
}

enum Body<'a> {
    Bits(Bits<'a>),
    /// The gaps between cells, and their number.
    Cells(Numbers<'a>, usize),
    /// The gaps between runs, the runs' lengths, and their number.
    Runs(Numbers<'a>, Numbers<'a>, usize),
}

/// Finds the parts of a compact form without its checksum, and checks that nothing follows.
fn parse(content: &[u8]) -> Result<Parsed<'_>, FilterError> {
    let mut reader = Reader::new(NAME, 0, content);
    reader.skip(1).map_err(corrupt)?;
    let kind = reader.u8().map_err(corrupt)?;
    let (dims, cells) = read_shape(&mut reader)?;
    let axes = varint(&mut reader)?;
    if axes >> (dims.len() - 1) != 0 {
        return Err(corrupt(reader.error("axes of the chunk except the last", axes)));
    }
    let shape = Shape { dims, cells, complement: kind & COMPLEMENT != 0, axes };
    let body = match kind & !COMPLEMENT {
        0 => {
            let len = reader.count(cells.div_ceil(8), 1).map_err(corrupt)?;
            Body::Bits(Bits::new(reader.take(len).map_err(corrupt)?))
        }
        1 => {
            let count = read_count(&mut reader, cells)?;
            Body::Cells(Numbers::open(&mut reader, count)?, count)
        }
        2 => {
            let count = read_count(&mut reader, cells)?;
            let gaps = Numbers::open(&mut reader, count)?;
            Body::Runs(gaps, Numbers::open(&mut reader, count)?, count)
        }
        _ => return Err(corrupt(reader.error("a set of kind 0 to 2 or 4 to 6", kind))),
    };
    check_end(&reader)?;
    Ok(Parsed { shape, body })
}

/// Reads a compact form. The memory of the set is taken from `budget`.
pub(super) fn decode(input: &[u8], budget: &mut Budget) -> Result<(Dims, CellSet), FilterError> {
    let (content, stored) = split_checksum(input)?;
    let checksum = Lookup3::new(content);
    let Parsed { shape, body } = match parse(content) {
        // No more memory than the bytes justify, whether they are right or not.
        Ok(Parsed { shape, body: Body::Cells(numbers, count) })
            if shape.is_list(count) && count <= content.len() =>
        {
            let set = list_of(&shape, numbers, count, budget, checksum, stored)?;
            return Ok((shape.dims, set));
        }
        Ok(Parsed { shape, body: Body::Runs(gaps, lengths, count) })
            if shape.is_run_list(count) && count <= content.len() =>
        {
            let set = runs_of(&shape, gaps, lengths, count, budget, checksum, stored)?;
            return Ok((shape.dims, set));
        }
        parsed => {
            verify(checksum, stored)?;
            parsed?
        }
    };
    let cells = shape.cells;
    let set = match body {
        Body::Bits(bits) => shape.collect(bits, cells / 2, budget)?,
        Body::Cells(numbers, count) if shape.is_list(count) => {
            list_of(&shape, numbers, count, budget, Lookup3::new(content), stored)?
        }
        Body::Cells(numbers, count) => shape.collect(Cells::new(numbers), count as u64, budget)?,
        Body::Runs(gaps, lengths, count) => {
            shape.collect(Runs::new(gaps, lengths), count as u64, budget)?
        }
    };
    check_runs(&set)?;
    Ok((shape.dims, set))
}

/// The set of `count` cells as a list; computes the checksum meanwhile.
fn list_of(
    shape: &Shape,
    numbers: Numbers<'_>,
    count: usize,
    budget: &mut Budget,
    mut checksum: Lookup3<'_>,
    stored: u32,
) -> Result<CellSet, FilterError> {
    let cells = shape.cells;
    let paid = budget.spend(4 * count as u64, NAME, 0).map_err(corrupt);
    let paid = paid.and_then(|()| spend(budget, cells, count as u64));
    let list = paid.and_then(|()| numbers.cells(cells, &mut checksum));
    // Whatever else is wrong, a wrong checksum says why.
    verify(checksum, stored)?;
    let set = CellSet::from_list(cells, list?).map_err(outside)?;
    check_runs(&set)?;
    Ok(set)
}

/// The set of `count` runs as a list; computes the checksum meanwhile.
fn runs_of(
    shape: &Shape,
    gaps: Numbers<'_>,
    lengths: Numbers<'_>,
    count: usize,
    budget: &mut Budget,
    mut checksum: Lookup3<'_>,
    stored: u32,
) -> Result<CellSet, FilterError> {
    let mut collected = Collected(scratch::take_words(2 * count));
    scratch::room(NAME, &mut collected.0, 2 * count)?;
    let paid = spend(budget, shape.cells, count as u64);
    let read = paid.and_then(|()| {
        visit_runs(gaps, lengths, shape.cells, &mut collected, &mut checksum).map(drop)
    });
    // Whatever else is wrong, a wrong checksum says why.
    verify(checksum, stored).and(read)?;
    let set = CellSet::from_bounds(shape.cells, collected.0.as_chunks().0).map_err(outside)?;
    scratch::give_words(collected.0);
    check_runs(&set)?;
    Ok(set)
}

/// Runs, each as its first cell and the cell after its last.
struct Collected(Vec<u64>);

impl CellVisitor for Collected {
    fn begin(&mut self, _dims: &[u64]) -> bool {
        true
    }

    fn cells(&mut self, _cells: &[u32]) -> bool {
        false
    }

    fn runs(&mut self, runs: &[[u64; 2]]) -> bool {
        self.0.extend_from_slice(runs.as_flattened());
        true
    }
}

/// Reads a compact form with a visitor; `false` if the visitor declines, or if a set has to be made
/// first. A fault may be found only after some cells were visited.
pub(super) fn visit(
    input: &[u8],
    budget: &mut Budget,
    visitor: &mut dyn CellVisitor,
) -> Result<bool, FilterError> {
    let (content, stored) = split_checksum(input)?;
    let mut checksum = Lookup3::new(content);
    let visited = parse(content).and_then(|parsed| show(parsed, budget, visitor, &mut checksum));
    // Whatever else is wrong, a wrong checksum says why.
    verify(checksum, stored)?;
    visited
}

/// Shows the cells of a compact form; goes on with the checksum meanwhile.
fn show(
    Parsed { shape, body }: Parsed<'_>,
    budget: &mut Budget,
    visitor: &mut dyn CellVisitor,
    checksum: &mut Lookup3<'_>,
) -> Result<bool, FilterError> {
    let runs = match &body {
        Body::Bits(_) => shape.cells / 2,
        Body::Cells(_, count) | Body::Runs(.., count) => *count as u64,
    };
    if runs.min(shape.cells / 2) > MOST_RUNS || !visitor.begin(&shape.dims) {
        return Ok(false);
    }
    match body {
        Body::Cells(numbers, count) if shape.is_list(count) => {
            numbers.for_each_cell(shape.cells, |cells| visitor.cells(cells), checksum)
        }
        Body::Bits(bits) => shape.visit(bits, runs, budget, visitor),
        Body::Cells(numbers, _) => shape.visit(Cells::new(numbers), runs, budget, visitor),
        Body::Runs(gaps, lengths, _) if shape.is_plain() => {
            visit_runs(gaps, lengths, shape.cells, visitor, checksum)
        }
        Body::Runs(gaps, lengths, _) => {
            shape.visit(Runs::new(gaps, lengths), runs, budget, visitor)
        }
    }
}

/// Visits runs, all of them below `cells`, block by block; `false` if the visitor stops.
fn visit_runs(
    mut gaps: Numbers<'_>,
    mut lengths: Numbers<'_>,
    cells: u64,
    visitor: &mut dyn CellVisitor,
    checksum: &mut Lookup3<'_>,
) -> Result<bool, FilterError> {
    let (mut starts, mut sizes, mut runs) = ([0; BLOCK], [0; BLOCK], [[0; 2]; BLOCK]);
    let mut next = 0u64;
    while gaps.left() > 0 {
        let (starts, sizes) = (gaps.block(&mut starts)?, lengths.block(&mut sizes)?);
        let runs = &mut runs[..starts.len()];
        for ((run, gap), less) in runs.iter_mut().zip(starts).zip(sizes) {
            checksum.step();
            // Each is below 2^48, and there are few of them: no sum overflows.
            let start = next + gap;
            let end = start + less + 1;
            *run = [start, end];
            next = end + 1;
        }
        // They ascend, so the last one decides for all; cells beyond the chunk are not touched.
        if next > cells + 1 {
            return Err(outside(format!("a run up to {}", next - 1)));
        }
        if !visitor.runs(runs) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Refuses sets that have to be carried verbatim.
fn check_runs(set: &CellSet) -> Result<(), FilterError> {
    // Most chunks have no room for so many runs, or fewer cells, so nothing has to be counted.
    if set.cells().div_ceil(2).min(set.len()) <= MOST_RUNS || set.run_count() <= MOST_RUNS {
        return Ok(());
    }
    Err(FilterError::corrupt(NAME, format!("at most {MOST_RUNS} runs"), set.run_count()))
}

/// The header of a compact form.
struct Shape {
    dims: Dims,
    cells: u64,
    complement: bool,
    axes: u64,
}

impl Shape {
    /// The set of the runs of a body, at most `most_runs` of them.
    fn collect(
        &self,
        mut stream: impl Stream,
        most_runs: u64,
        budget: &mut Budget,
    ) -> Result<CellSet, FilterError> {
        if self.is_plain() {
            spend(budget, self.cells, most_runs)?;
            let set = CellSet::from_runs(self.cells, &mut stream).map_err(outside)?;
            return stream.finish().map(|()| set);
        }
        let toggles = self.restore(stream, most_runs, budget)?;
        let (runs, _) = toggles.as_chunks::<2>();
        spend(budget, self.cells, runs.len() as u64)?;
        CellSet::from_bounds(self.cells, runs).map_err(outside)
    }

    /// Visits the runs of a body, at most `most_runs` of them; `false` if the visitor stops.
    fn visit(
        &self,
        mut stream: impl Stream,
        most_runs: u64,
        budget: &mut Budget,
        visitor: &mut dyn CellVisitor,
    ) -> Result<bool, FilterError> {
        if !self.is_plain() {
            let toggles = self.restore(stream, most_runs, budget)?;
            let (runs, _) = toggles.as_chunks::<2>();
            return Ok(runs.len() as u64 <= MOST_RUNS && visitor.runs(runs));
        }
        let mut block = [[0; 2]; BLOCK];
        loop {
            let mut len = 0;
            for (place, run) in block.iter_mut().zip(&mut stream) {
                *place = [run.start, run.start + run.len];
                len += 1;
            }
            // They ascend, so that the last one tells for all.
            let Some((&[_, end], _)) = block[..len].split_last() else { break };
            if end > self.cells {
                return Err(outside(format!("a run up to {end}")));
            }
            if !visitor.runs(&block[..len]) {
                return Ok(false);
            }
        }
        stream.finish().map(|()| true)
    }

    /// Whether a body of `count` cells is a list of cells as they are.
    fn is_list(&self, count: usize) -> bool {
        self.is_plain() && self.cells <= u64::from(u32::MAX) && count <= list::MOST_CELLS
    }

    /// Whether a body of `count` runs is a list of them as they are, and the set shorter so than as a bitmap.
    fn is_run_list(&self, count: usize) -> bool {
        let small = self.cells <= u64::from(u32::MAX);
        self.is_plain() && small && count as u64 <= self.cells / 64
    }

    /// Whether the set itself is in the body.
    fn is_plain(&self) -> bool {
        !self.complement && self.axes == 0
    }

    /// Undoes the transformations.
    fn restore(
        &self,
        mut stream: impl Stream,
        most_runs: u64,
        budget: &mut Budget,
    ) -> Result<Vec<u64>, FilterError> {
        budget.spend(16 * most_runs, NAME, 0).map_err(corrupt)?;
        let mut toggles = toggles::from_runs(&mut stream, self.cells)?;
        stream.finish()?;
        if self.complement {
            toggles::complement(&mut toggles, self.cells);
        }
        for axis in (0..self.dims.len()).filter(|axis| self.axes >> axis & 1 == 1) {
            toggles = toggles::integrate(&toggles, Axis::new(&self.dims, axis), budget)?;
        }
        Ok(toggles)
    }
}

fn check_end(reader: &Reader<'_>) -> Result<(), FilterError> {
    if reader.is_empty() {
        return Ok(());
    }
    let found = format!("{} more byte(s)", reader.remaining());
    Err(corrupt(reader.error("the end", found)))
}

/// Takes the memory of a set of `runs` runs from the budget: a list, or a bitmap if that is
/// smaller.
fn spend(budget: &mut Budget, cells: u64, runs: u64) -> Result<(), FilterError> {
    let bytes = if cells >> 32 == 0 { (8 * runs).min(cells / 7 + 64) } else { 16 * runs };
    budget.spend(bytes, NAME, 0).map_err(corrupt)
}

pub(super) fn outside(found: impl std::fmt::Display) -> FilterError {
    FilterError::corrupt(NAME, "ascending runs inside the chunk", found)
}

/// The form without its checksum, and that.
fn split_checksum(input: &[u8]) -> Result<(&[u8], u32), FilterError> {
    match input.split_last_chunk::<4>() {
        Some((content, stored)) => Ok((content, u32::from_le_bytes(*stored))),
        None => Err(FilterError::corrupt(NAME, "4 bytes of checksum", input.len())),
    }
}

fn verify(checksum: Lookup3<'_>, stored: u32) -> Result<(), FilterError> {
    let computed = checksum.finish();
    if computed == stored {
        return Ok(());
    }
    let expected = format!("checksum {computed:#010x}");
    Err(FilterError::corrupt(NAME, expected, format!("{stored:#010x}")))
}

fn read_shape(reader: &mut Reader<'_>) -> Result<(Dims, u64), FilterError> {
    let rank = reader.u8().map_err(corrupt)?;
    if rank == 0 || usize::from(rank) > MAX_RANK {
        return Err(corrupt(reader.error("a rank of 1 to 32", rank)));
    }
    let dims = (0..rank).map(|_| varint(reader)).collect::<Result<Dims, _>>()?;
    match cells_of(&dims) {
        Some(cells) => Ok((dims, cells)),
        None => Err(corrupt(reader.error("1 to 2^48 cells", format!("dimensions {dims:?}")))),
    }
}

/// How many cells or runs follow: no more than the chunk has cells.
fn read_count(reader: &mut Reader<'_>, cells: u64) -> Result<usize, FilterError> {
    let count = varint(reader)?;
    match usize::try_from(count) {
        Ok(small) if count <= cells => Ok(small),
        _ => Err(corrupt(reader.error(format!("at most {cells} cells"), count))),
    }
}
