//! The mapping of a virtual dataset: an object of the global heap that lists, for parts of the
//! dataset, which part of which other dataset has their elements.
//!
//! ```text
//! version | count L | entries | checksum u32
//! entry: [flags] | file name NUL | dataset name NUL | source selection | virtual selection
//! ```
//!
//! Entries of version 1 (HDF5 2.0) have flags, by which a name is that of an earlier entry, whose
//! number (L) stands in its place, or the file is this one, and no name is there.

use crate::text::terminated;
use crate::{Context, DecodeError, FormatError, Sizes};
use pumice_bytes::{Budget, Reader, Writer};
use pumice_space::serial::HyperslabVersion;
use pumice_space::{Selection, UNLIMITED, serial};

const STRUCTURE: &str = "virtual dataset mapping";
/// Flag: the file is that of an earlier entry.
const SHARED_FILE: u8 = 0x01;
/// Flag: the dataset has the name of that of an earlier entry.
const SHARED_DATASET: u8 = 0x02;
/// Flag: the file is this one.
const SAME_FILE: u8 = 0x04;
/// The largest rank that HDF5 knows.
const MAX_RANK: u32 = 32;

/// One part of a virtual dataset.
#[derive(Clone, Debug)]
pub struct VirtualMapping {
    /// The file that has the elements; `.` for this one. `%b` stands for the number of a block.
    pub file: String,
    /// The dataset in it; `%b` as above.
    pub dataset: String,
    /// The cells of that dataset, in row-major order; may be unlimited.
    pub source: Selection,
    /// The cells of the virtual dataset, in the same order; may be unlimited.
    pub target: Selection,
}

/// Decodes the mapping of a virtual dataset of `rank`.
pub fn decode(
    bytes: &[u8],
    rank: usize,
    context: &Context,
) -> Result<Vec<VirtualMapping>, DecodeError> {
    let mut reader = context.reader(STRUCTURE, bytes);
    let start = reader.clone();
    let version = reader.u8()?;
    if version > 1 {
        return Err(start.unknown("version 0 or 1", 1u8, version));
    }
    let count = reader.uint(context.length_width())?;
    // A null byte and two selections of at least 14 bytes each.
    let count = reader.count(count, 29)?;
    let mut mappings: Vec<VirtualMapping> = Vec::with_capacity(count);
    // A name that many entries share must not take more memory than the block has bytes.
    let mut budget = Budget::new((bytes.len() as u64).saturating_mul(64));
    for _ in 0..count {
        let before = reader.clone();
        let flags = if version == 0 { 0 } else { reader.u8()? };
        if flags & !(SHARED_FILE | SHARED_DATASET | SAME_FILE) != 0 {
            return Err(before.reserved("flags of bits 0 to 2", flags));
        }
        let width = context.length_width();
        let file = match flags & (SHARED_FILE | SAME_FILE) {
            0 => terminated(&mut reader, 1)?,
            SHARED_FILE => earlier(&mut reader, width, &mappings)?.file.clone(),
            _ => ".".into(),
        };
        let dataset = match flags & SHARED_DATASET {
            0 => terminated(&mut reader, 1)?,
            _ => earlier(&mut reader, width, &mappings)?.dataset.clone(),
        };
        budget.spend((file.len() + dataset.len()) as u64, STRUCTURE, before.address())?;
        let source_rank = peek_rank(&reader)?.unwrap_or(rank);
        let source = serial::decode_selection(&mut reader, source_rank)?;
        let target = serial::decode_selection(&mut reader, rank)?;
        mappings.push(VirtualMapping { file, dataset, source, target });
    }
    reader.checksum()?;
    Ok(mappings)
}

/// Appends the mapping of a virtual dataset of shape `dims`, as version 0.
pub fn encode(
    mappings: &[VirtualMapping],
    dims: &[u64],
    sizes: Sizes,
    out: &mut Vec<u8>,
) -> Result<(), FormatError> {
    let start = out.len();
    out.put_u8(0);
    out.put_uint(mappings.len() as u64, usize::from(sizes.length));
    for mapping in mappings {
        for name in [&mapping.file, &mapping.dataset] {
            if name.contains('\0') {
                return Err(FormatError::unencodable(STRUCTURE, "a name with a null byte"));
            }
            out.put_bytes(name.as_bytes());
            out.put_u8(0);
        }
        // The source's extent is not known here; without an end, only form and rank matter.
        let rank = mapping.source.rank().unwrap_or(dims.len());
        encode_selection(&mapping.source, &vec![UNLIMITED; rank], out)?;
        encode_selection(&mapping.target, dims, out)?;
    }
    out.put_checksum(start);
    Ok(())
}

/// In a form that every release with virtual datasets reads.
fn encode_selection(
    selection: &Selection,
    dims: &[u64],
    out: &mut Vec<u8>,
) -> Result<(), FormatError> {
    let start = out.len();
    let versions = [HyperslabVersion::V1, HyperslabVersion::V2, HyperslabVersion::Smallest];
    let first = usize::from(selection.is_unlimited());
    let mut failure = None;
    for version in versions.into_iter().skip(first) {
        out.truncate(start);
        match serial::encode_selection_with(selection, dims, version, out) {
            Ok(()) => return Ok(()),
            Err(error) => failure = Some(error),
        }
    }
    let reason = failure.map(|error| error.to_string()).unwrap_or_default();
    Err(FormatError::unencodable(STRUCTURE, reason))
}

/// The entry whose number stands here.
fn earlier<'a>(
    reader: &mut Reader<'_>,
    width: usize,
    mappings: &'a [VirtualMapping],
) -> Result<&'a VirtualMapping, DecodeError> {
    let before = reader.clone();
    let number = reader.uint(width)?;
    let entry = usize::try_from(number).ok().and_then(|number| mappings.get(number));
    entry.ok_or_else(|| before.error("the number of an earlier entry", number))
}

/// The rank of the selection that `reader` stands before; "all" and "none" have none.
fn peek_rank(reader: &Reader<'_>) -> Result<Option<usize>, DecodeError> {
    let mut reader = reader.clone();
    let (kind, version) = (reader.u32()?, reader.u32()?);
    match (kind, version) {
        (1 | 2, 1) => reader.skip(8)?,
        (1, 2) => reader.skip(1)?,
        (2, 2) => reader.skip(5)?,
        (2, 3) => reader.skip(2)?,
        _ => return Ok(None),
    }
    let rank = reader.u32()?;
    if rank == 0 || rank > MAX_RANK {
        return Err(reader.error("a rank of 1 to 32", rank));
    }
    Ok(Some(rank as usize))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pumice_bytes::Writer;

    #[test]
    fn sources_may_have_another_rank() {
        let mut bytes = vec![0];
        bytes.put_u64(1);
        bytes.put_bytes(b"a.h5\0data\0");
        let source = Selection::block(&[2], &[6]).unwrap();
        let target = Selection::block(&[1, 0], &[2, 3]).unwrap();
        serial::encode_selection(&source, &[9], &mut bytes).unwrap();
        serial::encode_selection(&target, &[4, 3], &mut bytes).unwrap();
        bytes.put_checksum(0);
        let context = Context::default();
        let mappings = decode(&bytes, 2, &context).unwrap();
        assert_eq!((mappings[0].file.as_str(), mappings[0].dataset.as_str()), ("a.h5", "data"));
        assert!(mappings[0].source.same_cells(&source, &[9]).unwrap());
        assert!(mappings[0].target.same_cells(&target, &[4, 3]).unwrap());
        bytes[12] ^= 1;
        assert!(decode(&bytes, 2, &context).is_err(), "checksum");
    }

    #[test]
    fn names_may_be_those_of_earlier_entries() {
        let block = |second: u64| {
            let mut bytes = vec![1];
            bytes.put_u64(3);
            for number in 0..3u64 {
                match number {
                    0 => bytes.put_bytes(b"\x00a.h5\0data\0"),
                    1 => bytes.put_bytes(b"\x04own\0"),
                    _ => {
                        bytes.put_u8(3);
                        bytes.put_u64(0);
                        bytes.put_u64(second);
                    }
                }
                for _ in 0..2 {
                    serial::encode_selection(&Selection::all(), &[4], &mut bytes).unwrap();
                }
            }
            bytes.put_checksum(0);
            bytes
        };
        let context = Context::default();
        let names: Vec<_> = decode(&block(1), 1, &context).unwrap();
        let names: Vec<_> = names.iter().map(|m| (m.file.as_str(), m.dataset.as_str())).collect();
        assert_eq!(names, [("a.h5", "data"), (".", "own"), ("a.h5", "own")]);
        assert!(decode(&block(2), 1, &context).is_err(), "its own number");
    }
}
