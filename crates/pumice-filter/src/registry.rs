//! Filters by id: built-in ones, and the names of registered ones.
//!
//! The names are facts of The HDF Group's registry of filters, so that an error can say which plugin
//! a file was written with. Having a name here does not mean having the filter.

use crate::bitshuffle::Bitshuffle;
use crate::blosc::Blosc;
use crate::bzip2::Bzip2;
use crate::deflate::Deflate;
use crate::fletcher32::Fletcher32;
use crate::heap::Heap;
use crate::location::Location;
use crate::lz4::Lz4;
use crate::lzf::Lzf;
use crate::nbit::Nbit;
use crate::references::References;
use crate::scaleoffset::ScaleOffset;
use crate::shuffle::Shuffle;
use crate::szip::Szip;
use crate::zstandard::Zstandard;
use crate::{Filter, FilterError, blosc2, heap, location, references, zfp};
use std::sync::{PoisonError, RwLock};

pub(crate) const DEFLATE: u16 = 1;
pub(crate) const SHUFFLE: u16 = 2;
pub(crate) const FLETCHER32: u16 = 3;
pub(crate) const SZIP: u16 = 4;
pub(crate) const NBIT: u16 = 5;
pub(crate) const SCALEOFFSET: u16 = 6;
pub(crate) const BZIP2: u16 = 307;
pub(crate) const LZF: u16 = 32000;
pub(crate) const BLOSC: u16 = 32001;
pub(crate) const LZ4: u16 = 32004;
pub(crate) const BITSHUFFLE: u16 = 32008;
pub(crate) const ZFP: u16 = 32013;
pub(crate) const ZSTD: u16 = 32015;
pub(crate) const BLOSC2: u16 = 32026;

/// Filters of the program.
static REGISTERED: RwLock<Vec<&'static dyn Filter>> = RwLock::new(Vec::new());

/// Makes a filter of the program's own known to every file, from now on and until the program ends. Datasets
/// that are open already do not look for filters again.
///
/// The numbers from 256 to 511 are for trying out filters; others are given out by The HDF Group.
///
/// ```
/// use pumice_filter::{Filter, FilterError};
///
/// struct Turned;
///
/// impl Filter for Turned {
///     fn id(&self) -> u16 {
///         300
///     }
///     fn name(&self) -> &'static str {
///         "turned"
///     }
///     fn encode(&self, _: &[u32], input: &[u8], out: &mut Vec<u8>) -> Result<(), FilterError> {
///         out.clear();
///         out.extend(input.iter().rev());
///         Ok(())
///     }
///     fn decode(
///         &self, _: &[u32], input: &[u8], limit: usize, out: &mut Vec<u8>,
///     ) -> Result<(), FilterError> {
///         assert!(input.len() <= limit, "no longer than what it was made of");
///         self.encode(&[], input, out)
///     }
/// }
///
/// pumice_filter::register(Box::new(Turned))?;
/// assert_eq!(pumice_filter::find(300).unwrap().name(), "turned");
/// assert!(pumice_filter::register(Box::new(Turned)).is_err(), "the number is taken");
/// # Ok::<(), FilterError>(())
/// ```
pub fn register(filter: Box<dyn Filter>) -> Result<(), FilterError> {
    let id = filter.id();
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    let other = built_in(id).or_else(|| own(&registered, id));
    if let Some(other) = other {
        return Err(FilterError::Taken { id, name: other.name() });
    }
    // Pipelines of datasets name it, however long they live.
    registered.push(Box::leak(filter));
    Ok(())
}

fn own(registered: &[&'static dyn Filter], id: u16) -> Option<&'static dyn Filter> {
    registered.iter().copied().find(|filter| filter.id() == id)
}

/// The built-in filter with this id, or else one that was [registered](register), or a plugin's (feature
/// `plugins`).
///
/// ```
/// assert_eq!(pumice_filter::find(1).unwrap().name(), "deflate");
/// assert!(pumice_filter::find(32017).is_none(), "sz is not built in");
/// ```
pub fn find(id: u16) -> Option<&'static dyn Filter> {
    let registered = || own(&REGISTERED.read().unwrap_or_else(PoisonError::into_inner), id);
    built_in(id).or_else(registered).or_else(|| plugin(id))
}

fn built_in(id: u16) -> Option<&'static dyn Filter> {
    match id {
        DEFLATE => Some(&Deflate),
        SHUFFLE => Some(&Shuffle),
        FLETCHER32 => Some(&Fletcher32),
        SZIP => Some(&Szip),
        NBIT => Some(&Nbit),
        SCALEOFFSET => Some(&ScaleOffset),
        location::ID => Some(&Location),
        heap::ID => Some(&Heap),
        references::ID => Some(&References),
        BZIP2 => Some(&Bzip2),
        LZF => Some(&Lzf),
        BLOSC => Some(&Blosc),
        LZ4 => Some(&Lz4),
        BITSHUFFLE => Some(&Bitshuffle),
        ZFP => Some(&zfp::ZFP),
        ZSTD => Some(&Zstandard),
        BLOSC2 => Some(&blosc2::BLOSC2),
        _ => None,
    }
}

#[cfg(feature = "plugins")]
pub(crate) fn plugin(id: u16) -> Option<&'static dyn Filter> {
    crate::plugins::find(id)
}

#[cfg(not(feature = "plugins"))]
pub(crate) fn plugin(_id: u16) -> Option<&'static dyn Filter> {
    None
}

/// The name that is registered for a filter id, whether or not the filter is built in.
///
/// ```
/// assert_eq!(pumice_filter::registered_name(32008), Some("bitshuffle"));
/// assert_eq!(pumice_filter::registered_name(77), None);
/// ```
pub fn registered_name(id: u16) -> Option<&'static str> {
    let at = NAMES.binary_search_by_key(&id, |(id, _)| *id).ok()?;
    Some(NAMES[at].1)
}

/// Sorted by id.
const NAMES: [(u16, &str); 40] = [
    (DEFLATE, "deflate"),
    (SHUFFLE, "shuffle"),
    (FLETCHER32, "fletcher32"),
    (SZIP, "szip"),
    (NBIT, "nbit"),
    (SCALEOFFSET, "scaleoffset"),
    (location::ID, location::NAME),
    (heap::ID, heap::NAME),
    (references::ID, references::NAME),
    (305, "lzo"),
    (BZIP2, "bzip2"),
    (LZF, "lzf"),
    (BLOSC, "blosc"),
    (32002, "mafisc"),
    (32003, "snappy"),
    (LZ4, "lz4"),
    (32005, "apax"),
    (32006, "cbf"),
    (32007, "jpeg-xr"),
    (BITSHUFFLE, "bitshuffle"),
    (32009, "spdp"),
    (32010, "lpc-rice"),
    (32011, "ccsds-123"),
    (32012, "jpeg-ls"),
    (ZFP, "zfp"),
    (32014, "fpzip"),
    (ZSTD, "zstd"),
    (32016, "b3d"),
    (32017, "sz"),
    (32018, "fcidecomp"),
    (32019, "jpeg"),
    (32020, "vbz"),
    (32021, "fapec"),
    (32022, "bitgroom"),
    (32023, "granular bitround"),
    (32024, "sz3"),
    (32025, "delta-rice"),
    (BLOSC2, "blosc2"),
    (32027, "flac"),
    (32028, "h5z-sperr"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_so_that_every_one_is_found() {
        assert!(NAMES.windows(2).all(|pair| pair[0].0 < pair[1].0));
        for (id, name) in NAMES {
            assert_eq!(registered_name(id), Some(name));
        }
    }

    #[test]
    fn every_built_in_filter_is_found_under_its_own_id_and_name() {
        let built_in: Vec<_> = (0..=u16::MAX).filter_map(|id| Some((id, find(id)?))).collect();
        assert_eq!(built_in.len(), 17);
        for (id, filter) in built_in {
            assert_eq!(filter.id(), id);
            assert_eq!(registered_name(id), Some(filter.name()));
        }
    }
}
