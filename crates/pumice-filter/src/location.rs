//! The location filter: which cells of a sparse chunk are defined, as gaps and run lengths.
//!
//! The plain side is section 0 of a structured chunk: the H5Sencode form of the chunk's extent and
//! selection, with the checksum at its end, which has many bytes for each block. The encoded side
//! is close to the entropy of a random set, and shorter for sets with a pattern once a compressor
//! has followed; `docs/format/location-filter.md` has every byte.
//!
//! Any bytes go through and come back. Bytes that are not *canonical*, that is, not Pumice's form
//! of a set of cells, are carried verbatim.
//!
//! [`encode_cells`] and [`decode_cells`] go between a [`CellSet`] and the encoded side without the
//! plain form. With the same [`Aim`] (the long way has [`Aim::Short`]) both ways give the same
//! bytes; both verify a checksum.

mod breaks;
mod compact;
mod list;
mod numbers;
mod plain_length;
mod plan;
mod row_runs;
mod rows;
mod scan;
mod streams;
mod toggles;
mod varint;

pub use row_runs::{RowBreaks, RunEncoder};
pub use rows::{RowCells, RowEncoder, RowSteps};

use crate::{Filter, FilterError, scratch};
use pumice_bytes::{Budget, DecodeError, Reader, Writer, memory};
use pumice_space::{CellSet, Dims, serial};

/// The filter's id. HDF5 leaves 256 to 511 to applications; this one is in no known file.
pub const ID: u16 = 302;

/// The filter's name in files and errors.
pub const NAME: &str = "pumice-location";

/// The first byte of bytes that are carried verbatim.
const VERBATIM: u8 = 0;

/// The most runs of a set that has a compact form.
const MOST_RUNS: u64 = 1 << 22;

/// The most memory for reading a set, whatever the length of its plain and encoded forms: enough
/// for [`MOST_RUNS`].
pub(crate) const MOST_MEMORY: u64 = 512 << 20;
/// Bytes of a checksum.
const CHECKSUM: usize = 4;

/// The aim when a set of cells can be written in several ways. Readers take all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// Few bytes once a compressor has followed.
    Short,
    /// Fast reading: no compressor follows, and bytes are read faster than bits.
    Fast,
}

/// Encodes the set of defined cells of a chunk of shape `dims`: replaces `out` by the bytes that the
/// filter makes of the section's plain form. Returns the length of the plain form, checksum included.
///
/// ```
/// use pumice_filter::location::{Aim, encode_cells};
/// use pumice_space::CellSet;
///
/// let cells = CellSet::from_sorted_cells(1 << 20, (0..1000).map(|n| n * n))?;
/// let mut out = Vec::new();
/// let plain = encode_cells(&[1024, 1024], &cells, Aim::Short, &mut out)?;
/// assert!(plain > 8000);
/// assert!(out.len() < 1500);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn encode_cells(
    dims: &[u64],
    cells: &CellSet,
    aim: Aim,
    out: &mut Vec<u8>,
) -> Result<u64, FilterError> {
    if let Some((total, runs)) = compactible(dims, cells) {
        check_memory(cells, runs)?;
        let length = match list::encode(dims, cells, runs, aim, out) {
            Some(length) => Some(length),
            None => {
                let toggles = toggles_of(cells, runs)?;
                let length = plain_length::plain_length(dims, total, toggles.as_chunks::<2>().0);
                compact::encode(dims, total, toggles, aim, out);
                length
            }
        };
        match length {
            Some(length) if pays(out.len() as u64, length, aim) => return Ok(length),
            // The plain form has few bytes for boxes, and is slow to read.
            Some(_) if aim == Aim::Fast => return encode_cells(dims, cells, Aim::Short, out),
            Some(_) => {}
            None => return shorter_of_both(dims, cells, aim, out),
        }
    }
    let plain = plain_form(dims, cells)?;
    encode_verbatim(&plain, out)?;
    scratch::give(plain);
    Ok(out.len() as u64 - 1)
}

/// Keeps the compact form in `out` unless the plain form is better.
fn shorter_of_both(
    dims: &[u64],
    cells: &CellSet,
    aim: Aim,
    out: &mut Vec<u8>,
) -> Result<u64, FilterError> {
    let plain = plain_form(dims, cells)?;
    let length = plain.len() as u64;
    if !pays(out.len() as u64, length, aim) {
        if aim == Aim::Fast {
            scratch::give(plain);
            return encode_cells(dims, cells, Aim::Short, out);
        }
        encode_verbatim(&plain, out)?;
    }
    scratch::give(plain);
    Ok(length)
}

/// Decodes the filter's output straight into the chunk's shape and its defined cells, or `None` if
/// the plain form was carried verbatim: then [`Filter::decode`] gives it. The memory that the set
/// needs is taken from `budget`.
///
/// ```
/// use pumice_bytes::Budget;
/// use pumice_filter::location::{Aim, decode_cells, encode_cells};
/// use pumice_space::CellSet;
///
/// let cells = CellSet::from_sorted_cells(20, [3, 4, 11])?;
/// let mut out = Vec::new();
/// encode_cells(&[4, 5], &cells, Aim::Short, &mut out)?;
/// let (dims, back) = decode_cells(&out, &mut Budget::new(1 << 20))?.expect("not verbatim");
/// assert_eq!((dims.as_slice(), back), (&[4, 5][..], cells));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn decode_cells(
    input: &[u8],
    budget: &mut Budget,
) -> Result<Option<(Dims, CellSet)>, FilterError> {
    match input.first() {
        Some(&VERBATIM) => Ok(None),
        Some(&compact::COMPACT) => compact::decode(input, budget).map(Some),
        Some(other) => Err(FilterError::corrupt(NAME, "mode 0 or 1", other)),
        None => Err(FilterError::corrupt(NAME, "a mode", "no bytes")),
    }
}

/// Receives the cells of a set as they are decoded, ascending, piece by piece.
pub trait CellVisitor {
    /// Receives the shape of the chunk, before anything else; `false` declines the cells.
    fn begin(&mut self, dims: &[u64]) -> bool;

    /// Takes cells; `false`: no more are wanted.
    fn cells(&mut self, cells: &[u32]) -> bool;

    /// Takes runs, each as its first cell and the cell after its last; they may touch. `false`: no
    /// more are wanted.
    fn runs(&mut self, runs: &[[u64; 2]]) -> bool;
}

/// [`decode_cells`] with a visitor instead of a set. `false`: not all cells were visited, because
/// they were declined or the plain form was carried verbatim.
///
/// Cells are visited before all bytes are checked: after an error, the visited cells have no
/// meaning.
pub fn visit_cells(
    input: &[u8],
    budget: &mut Budget,
    visitor: &mut dyn CellVisitor,
) -> Result<bool, FilterError> {
    match input.first() {
        Some(&compact::COMPACT) => compact::visit(input, budget, visitor),
        // The decoder reports the fault.
        _ => Ok(false),
    }
}

/// Refuses a compact form that is so long that the plain form has to be carried verbatim.
pub(crate) fn check_short(compact: &[u8], plain: u64) -> Result<(), FilterError> {
    if is_short(compact.len() as u64, plain) {
        return Ok(());
    }
    let expected = format!("fewer than twice the plain form's {plain} bytes");
    Err(FilterError::corrupt(NAME, expected, compact.len()))
}

/// Whether a compact form of this length is shorter than twice the plain form.
fn is_short(compact: u64, plain: u64) -> bool {
    compact < plain.saturating_mul(2)
}

/// Whether a compact form of this length is better than the plain one, which is slow to read: it
/// may be longer by some bytes.
fn pays(compact: u64, plain: u64, aim: Aim) -> bool {
    match aim {
        Aim::Fast => is_short(compact, plain),
        Aim::Short => compact < plain,
    }
}

/// The plain form with its checksum, in a scratch buffer.
pub(crate) fn plain_form(dims: &[u64], cells: &CellSet) -> Result<Vec<u8>, FilterError> {
    let mut plain = scratch::take(cells.heap_bytes());
    plain.clear();
    check_plain(dims, cells)?;
    serial::encode_cells(dims, cells, &mut plain)
        .map_err(|error| FilterError::encode(NAME, error))?;
    plain.put_checksum(0);
    Ok(plain)
}

/// The set of cells in a plain form with its checksum.
pub(crate) fn parse_plain(
    plain: &[u8],
    budget: &mut Budget,
) -> Result<(Dims, CellSet), DecodeError> {
    let mut reader = Reader::new("chunk section 0", 0, plain);
    // First of all: a few damaged bytes can ask for a set that takes much memory.
    reader.skip(plain.len().saturating_sub(CHECKSUM))?;
    reader.checksum()?;
    let mut reader = Reader::new("chunk section 0", 0, &plain[..plain.len() - CHECKSUM]);
    let set = serial::decode_cells(&mut reader, budget)?;
    if reader.is_empty() {
        return Ok(set);
    }
    Err(reader.error("the end of the section", format!("{} more byte(s)", reader.remaining())))
}

/// The cells of a chunk of shape `dims` and the runs of a set of them, if a compact form can describe
/// both.
fn compactible(dims: &[u64], cells: &CellSet) -> Option<(u64, u64)> {
    let (total, runs) = (compact::cells_of(dims)?, cells.run_count());
    (cells.cells() == total && runs <= MOST_RUNS).then_some((total, runs))
}

fn toggles_of(cells: &CellSet, runs: u64) -> Result<Vec<u64>, FilterError> {
    let mut toggles = scratch::take_words(2 * runs as usize);
    scratch::room(NAME, &mut toggles, 2 * runs as usize)?;
    cells.for_each_run(|run| toggles.extend_from_slice(&[run.start, run.start + run.len]));
    Ok(toggles)
}

/// Fails if there is no memory for the lists that a set goes through on its way to the compact form: gaps of few
/// bytes for each cell, toggles and their difference for each run.
fn check_memory(cells: &CellSet, runs: u64) -> Result<(), FilterError> {
    let listed = cells.len().min(4 * runs);
    ask(runs.saturating_mul(32).saturating_add(listed.saturating_mul(8)))
}

/// Fails if there is no memory for the plain form of a set: two corners for every run at most.
fn check_plain(dims: &[u64], cells: &CellSet) -> Result<(), FilterError> {
    ask(cells.run_count().saturating_mul(32 * dims.len() as u64))
}

fn ask(bytes: u64) -> Result<(), FilterError> {
    let there = memory::is_there(bytes);
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    there.then_some(()).ok_or(FilterError::Memory { filter: NAME, bytes })
}

/// Whether the plain form is carried verbatim, behind one byte.
pub(crate) fn is_verbatim(encoded: &[u8]) -> bool {
    encoded.first() == Some(&VERBATIM)
}

fn encode_verbatim(plain: &[u8], out: &mut Vec<u8>) -> Result<(), FilterError> {
    scratch::room(NAME, out, plain.len() + 1)?;
    out.push(VERBATIM);
    out.extend_from_slice(plain);
    Ok(())
}

/// The set in a plain form, if that is Pumice's own form of the set.
fn canonical(plain: &[u8]) -> Option<(Dims, CellSet)> {
    let (dims, cells) = parse_plain(plain, &mut Budget::new(MOST_MEMORY)).ok()?;
    let again = plain_form(&dims, &cells).ok()?;
    let same = again == plain;
    scratch::give(again);
    same.then_some((dims, cells))
}

pub(crate) struct Location;

impl Filter for Location {
    fn id(&self) -> u16 {
        ID
    }

    fn name(&self) -> &'static str {
        NAME
    }

    fn encode(
        &self,
        _parameters: &[u32],
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        if let Some((dims, cells)) = canonical(input)
            && let Some((total, runs)) = compactible(&dims, &cells)
        {
            check_memory(&cells, runs)?;
            if list::encode(&dims, &cells, runs, Aim::Short, out).is_none() {
                compact::encode(&dims, total, toggles_of(&cells, runs)?, Aim::Short, out);
            }
            if out.len() < input.len() {
                return Ok(());
            }
        }
        encode_verbatim(input, out)
    }

    fn decode(
        &self,
        _parameters: &[u32],
        input: &[u8],
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        out.clear();
        match decode_cells(input, &mut Budget::new(MOST_MEMORY))? {
            // The mode was there, so there is a first byte.
            None if input.len() - 1 <= limit => scratch::copy(NAME, &input[1..], out)?,
            None => return Err(FilterError::too_large(NAME, limit, input.len() - 1)),
            Some((dims, cells)) => {
                check_plain(&dims, &cells)?;
                serial::encode_cells(&dims, &cells, out)
                    .map_err(|error| FilterError::corrupt(NAME, "an expressible set", error))?;
                out.put_checksum(0);
                check_short(input, out.len() as u64)?;
            }
        }
        match out.len() <= limit {
            true => Ok(()),
            false => Err(FilterError::too_large(NAME, limit, out.len())),
        }
    }

    fn encoded_bound(&self, len: usize) -> usize {
        // A compact form is shorter than twice the plain one; a verbatim form has one byte more.
        len.saturating_mul(2).saturating_add(1)
    }

    fn is_gain(&self, input: &[u8], encoded: &[u8]) -> bool {
        encoded.len() < input.len()
    }
}

fn corrupt(error: DecodeError) -> FilterError {
    FilterError::corrupt(NAME, error.expected, error.found)
}
