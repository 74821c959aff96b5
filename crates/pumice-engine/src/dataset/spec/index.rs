//! The chunk index of a new dataset.

use super::{DatasetSpec, LayoutSpec};
use crate::{Error, Result};
use pumice_format::Sizes;
use pumice_format::messages::{ChunkIndexInfo, SingleChunk};
use pumice_space::UNLIMITED;
use pumice_structures::index::{ChunkIndex, IndexKind};

/// A sparse dataset with more chunks than this gets a B-tree even if its extent is limited: a fixed
/// array has an entry for every chunk, and most of them will never be stored.
const MANY_CHUNKS: u64 = 1 << 20;
/// The most chunks of a fixed array. Its data block has a bit for each page of 1024 entries, here
/// 128 MiB, and space for all entries behind them.
const MOST_LISTED: u64 = 1 << 40;

/// Whether libhdf5 takes unlimited axes for limited ones. It does in files with short lengths, and
/// then finds no axis for an extensible array.
pub(crate) fn lacks_unlimited(sizes: Sizes) -> bool {
    sizes.length < 8
}

/// The index for a new dataset's dimensions.
pub(super) fn index_info(
    spec: &DatasetSpec,
    sizes: Sizes,
    chunk: &[u64],
    sections: u8,
    filtered: bool,
) -> Result<ChunkIndexInfo> {
    check_chunk(spec, chunk)?;
    let (dims, max) = (spec.extent.dims(), spec.extent.max_dims());
    // Arrays have room for the maximum extent, as far as it has an end.
    let longest = max.iter().zip(dims).map(|(&max, &now)| if max == UNLIMITED { now } else { max });
    let counts = longest.zip(chunk).map(|(length, &chunk)| length.div_ceil(chunk));
    let chunks = counts.fold(1u64, u64::saturating_mul);
    if sections > 0 && chunks > MANY_CHUNKS {
        return Ok(ChunkIndexInfo::btree2());
    }
    let kind = ChunkIndex::choose(dims, max, chunk);
    if kind == IndexKind::FixedArray && chunks > MOST_LISTED {
        return Err(Error::Invalid(format!(
            "{dims:?} cells in chunks of {chunk:?}: {chunks} of them, where an index of a limited shape has at most \
             2^40; take larger ones, or a sparse dataset"
        )));
    }
    Ok(match kind {
        IndexKind::ExtensibleArray if lacks_unlimited(sizes) => ChunkIndexInfo::btree2(),
        IndexKind::Single => ChunkIndexInfo::Single(SingleChunk::unset(sections, filtered)),
        IndexKind::ExtensibleArray => ChunkIndexInfo::extensible_array(),
        IndexKind::BTree2 => ChunkIndexInfo::btree2(),
        // Chunks that are all there from the start and never move need no index.
        IndexKind::FixedArray if sections == 0 && !filtered && spec.is_early() => {
            ChunkIndexInfo::Implicit
        }
        IndexKind::FixedArray | IndexKind::Implicit | IndexKind::BTree1 => {
            ChunkIndexInfo::fixed_array()
        }
    })
}

/// Fails if chunks of this shape do not suit the dataset, or are more than can be numbered.
fn check_chunk(spec: &DatasetSpec, chunk: &[u64]) -> Result<()> {
    let (dims, max) = (spec.extent.dims(), spec.extent.max_dims());
    if dims.is_empty() || chunk.len() != dims.len() || chunk.contains(&0) {
        return Err(Error::Invalid(format!("chunks of {chunk:?} do not suit a shape of {dims:?}")));
    }
    // As in libhdf5, an axis without cells may have chunks of any length.
    let mut axes = chunk.iter().zip(max).zip(dims);
    if axes.any(|((&chunk, &max), &now)| now > 0 && chunk > max) {
        return Err(Error::Invalid(format!(
            "chunks of {chunk:?} exceed the shape {max:?}: take smaller ones, or let the dataset grow with `max_shape`"
        )));
    }
    let size = spec.datatype.size() as u64;
    if chunk.iter().try_fold(size, |bytes, &side| bytes.checked_mul(side)).is_none() {
        return Err(Error::Invalid(format!(
            "chunks of {chunk:?} elements of {size} byte(s) are more than 2^64 bytes: take smaller ones"
        )));
    }
    let now = dims.iter().zip(chunk).map(|(&length, &chunk)| length.div_ceil(chunk));
    // A sparse dataset needs no numbers: a B-tree finds chunks by coordinates.
    if !is_sparse(&spec.layout) && now.into_iter().try_fold(1u64, u64::checked_mul).is_none() {
        return Err(Error::Invalid(format!(
            "{dims:?} cells in chunks of {chunk:?}: more than 2^64 of them; take larger ones, a smaller shape, or a \
             sparse dataset, which can have more"
        )));
    }
    Ok(())
}

fn is_sparse(layout: &LayoutSpec) -> bool {
    use LayoutSpec::{Sparse, VariableLength};
    matches!(layout, Sparse { .. } | VariableLength { locations: Some(_), .. })
}
