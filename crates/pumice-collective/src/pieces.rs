//! What a rank hands in, split by chunk, and on its way to the owners of the chunks.

use crate::owners::Share;
use crate::wire::{In, Out};
use crate::{CollectiveError, Result};
use pumice::{Dataset, Selection, Transfer};
use pumice_format::Context;
use pumice_format::messages::datatype;
use pumice_space::{ChunkGrid, ChunkPart, Dims, plan_packed};
use pumice_types::heaped::{self, InMemory};
use pumice_types::{Conversion, Datatype, Heaped};

/// Values for cells, or that there are none.
pub(crate) enum Values<'v> {
    /// Elements of a datatype without references into memory.
    Plain(Datatype, &'v [u8]),
    /// Elements of the dataset's own datatype, with what they refer to.
    Heaped(Heaped),
    /// Cells are erased, or get the fill value.
    None,
}

const PLAIN: u8 = 0;
const HEAPED: u8 = 1;
const NONE: u8 = 2;

impl Values<'_> {
    /// Fails unless there is a value for each of `count` cells, which can be one of the dataset.
    pub(crate) fn check(&self, count: u64, own: &Datatype) -> Result<()> {
        let (size, bytes) = match self {
            Self::Plain(datatype, bytes) => {
                Conversion::new(datatype, own)?;
                (datatype.size(), bytes.len())
            }
            Self::Heaped(heaped) => (own.size(), heaped.elements.len()),
            Self::None => return Ok(()),
        };
        match count.checked_mul(size as u64) == Some(bytes as u64) {
            true => Ok(()),
            false => {
                let what =
                    format!("{count} cell(s) of {size} byte(s), but {bytes} byte(s) of values");
                Err(pumice::Error::CountMismatch(what).into())
            }
        }
    }

    fn element(&self, own: &Datatype) -> usize {
        match self {
            Self::Plain(datatype, _) => datatype.size(),
            _ => own.size(),
        }
    }

    fn header(&self, out: &mut Out) -> Result<()> {
        match self {
            Self::Plain(memory, _) => {
                let mut bytes = Vec::new();
                let encoded = datatype::encode(memory, &mut bytes);
                encoded.map_err(pumice::Error::from)?;
                out.byte(PLAIN);
                out.bytes(&bytes);
            }
            Self::Heaped(_) => out.byte(HEAPED),
            Self::None => out.byte(NONE),
        }
        Ok(())
    }

    /// Appends the values at these stretches of elements.
    fn append(
        &self,
        stretches: impl Iterator<Item = (u64, u64)>,
        own: &Datatype,
        out: &mut Out,
    ) -> Result<()> {
        let size = self.element(own);
        let pick = |all: &[u8]| -> Vec<u8> {
            let mut picked = Vec::new();
            for (first, count) in stretches {
                let (first, count) = (first as usize * size, count as usize * size);
                picked.extend_from_slice(&all[first..first + count]);
            }
            picked
        };
        match self {
            Self::Plain(_, bytes) => out.bytes(&pick(bytes)),
            Self::Heaped(values) => {
                let (mut elements, mut heap) = (pick(&values.elements), Vec::new());
                heaped::load(own, &mut elements, &mut heap, &mut InMemory(&values.heap))?;
                out.bytes(&elements);
                out.bytes(&heap);
            }
            Self::None => {}
        }
        Ok(())
    }

    /// Gives these values to all cells of `selection`.
    pub(crate) fn write(&self, target: &Dataset, selection: &Selection) -> Result<()> {
        match self {
            Self::Plain(memory, bytes) => {
                target.write_as(selection, memory, bytes, &Transfer::default())?;
            }
            Self::Heaped(values) => target.write_heaped(selection, values)?,
            Self::None => target.reset(selection)?,
        }
        Ok(())
    }
}

/// The cells of a contribution, by chunk.
pub(crate) enum Parts {
    /// Cells that have values.
    Valued(Vec<ChunkPart>),
    /// Cells that are erased, as cells of the dataset.
    Erased(Vec<(Dims, Selection)>),
}

impl Parts {
    /// The parts of a write.
    pub(crate) fn of(selection: &Selection, grid: &ChunkGrid) -> Result<Self> {
        Ok(Self::Valued(plan_packed(selection, grid)?.collect()))
    }

    /// The parts of an erasure: of these chunks alone, for others have nothing to erase.
    pub(crate) fn among(selection: &Selection, grid: &ChunkGrid, chunks: &[Dims]) -> Result<Self> {
        let found = selection.cut(grid, chunks)?.into_iter();
        Ok(Self::Erased(found.map(|(at, cells)| (chunks[at].clone(), cells)).collect()))
    }

    /// What it has for each chunk.
    pub(crate) fn shares(&self, grid: &ChunkGrid) -> Vec<Share> {
        match self {
            Self::Valued(parts) => {
                let share = |part: &ChunkPart| {
                    let (key, cells, whole) = (part.chunk.clone(), part.count(), part.is_whole());
                    Share { key, cells, whole }
                };
                parts.iter().map(share).collect()
            }
            Self::Erased(parts) => {
                let share = |(key, cells): &(Dims, Selection)| {
                    let cells = cells.count(grid.dims());
                    Share { key: key.clone(), cells, whole: false }
                };
                parts.iter().map(share).collect()
            }
        }
    }

    /// The message with all parts that `wanted` takes.
    pub(crate) fn message(
        &self,
        values: &Values<'_>,
        own: &Datatype,
        grid: &ChunkGrid,
        wanted: impl Fn(&Dims) -> bool,
    ) -> Result<Vec<u8>> {
        let mut out = Out::default();
        values.header(&mut out)?;
        match self {
            Self::Valued(parts) => {
                for part in parts.iter().filter(|part| wanted(&part.chunk)) {
                    out.selection(&cells(part, grid)?, grid.dims())?;
                    let segments = part.segments(grid.chunk());
                    let stretches = segments.map(|segment| (segment.memory, segment.len));
                    values.append(stretches, own, &mut out)?;
                }
            }
            Self::Erased(parts) => {
                for (_, cells) in parts.iter().filter(|(key, _)| wanted(key)) {
                    out.selection(cells, grid.dims())?;
                }
            }
        }
        Ok(out.0)
    }
}

/// The message of a contribution that is not split.
pub(crate) fn whole_message(
    selection: &Selection,
    values: &Values<'_>,
    own: &Datatype,
    dims: &[u64],
) -> Result<Vec<u8>> {
    let mut out = Out::default();
    values.header(&mut out)?;
    out.selection(selection, dims)?;
    let count = selection.count(dims);
    values.append(std::iter::once((0, count)), own, &mut out)?;
    Ok(out.0)
}

/// Does what a message says to a dataset.
pub(crate) fn apply(message: &[u8], target: &Dataset, rank: usize) -> Result<()> {
    let mut message = In(message);
    let kind = message.byte()?;
    let memory = match kind {
        PLAIN => {
            let decoded = datatype::decode(message.bytes()?, &Context::default());
            Some(decoded.map_err(pumice::Error::from)?)
        }
        _ => None,
    };
    while !message.is_empty() {
        let selection = message.selection(rank)?;
        let values = match (kind, &memory) {
            (PLAIN, Some(memory)) => Values::Plain(memory.clone(), message.bytes()?),
            (HEAPED, _) => {
                let (elements, heap) = (message.bytes()?.to_vec(), message.bytes()?.to_vec());
                Values::Heaped(Heaped { elements, heap })
            }
            (NONE, _) => Values::None,
            _ => return Err(CollectiveError::Comm(pumice_comm::CommError::Garbled)),
        };
        values.write(target, &selection)?;
    }
    Ok(())
}

/// The cells of a part, as cells of the dataset, in the order of its segments.
fn cells(part: &ChunkPart, grid: &ChunkGrid) -> Result<Selection> {
    let (origin, chunk) = (grid.origin(&part.chunk), grid.chunk());
    if !part.is_ascending() {
        let mut points = Vec::new();
        for segment in part.segments(chunk) {
            for cell in segment.cell..segment.cell + segment.len {
                append_point(cell, chunk, &origin, &mut points);
            }
        }
        return Ok(Selection::points(chunk.len(), points)?);
    }
    let inside = part.cells(chunk);
    if inside.is_all() {
        return Ok(Selection::block(&origin, chunk)?);
    }
    // In two steps, of which each fits into an offset.
    let half: Vec<i64> = origin.iter().map(|start| (start / 2) as i64).collect();
    let rest: Vec<i64> = origin.iter().map(|start| (start - start / 2) as i64).collect();
    Ok(inside.translate(&half)?.translate(&rest)?)
}

fn append_point(cell: u64, chunk: &[u64], origin: &[u64], points: &mut Vec<u64>) {
    let (start, mut rest) = (points.len(), cell);
    points.extend_from_slice(origin);
    for (place, &side) in points[start..].iter_mut().zip(chunk).rev() {
        *place += rest % side.max(1);
        rest /= side.max(1);
    }
}
