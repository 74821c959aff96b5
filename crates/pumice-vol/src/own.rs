//! Functions of Pumice's own for C programs (`include/pumice_hdf5.h`): settings, the shared cache, work ahead.
//!
//! As those of the RFC, they work on identifiers of the libhdf5 that the program is linked with, or else of the first
//! that has loaded the connector.

use crate::abi::*;
use crate::fault::{Fault, Result, answer, checked};
use crate::handle::{Handle, text};
use crate::introspect::object_of;
use crate::library::Api;
use crate::rfc::{dataset, library, run};
use crate::settings::parse;
use crate::{slots, space};
use pumice::{Context, Hint, Selection, Stats};
use pumice_engine::file::Cache;
use std::ffi::{c_char, c_int, c_void};

/// `pumice_vol_set_fapl`: the connector and its settings, for files that are opened with a list.
///
/// # Safety
/// `settings` is null or ends with a null byte.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_vol_set_fapl(fapl: Hid, settings: *const c_char) -> Herr {
    run(c"pumice_vol_set_fapl", |api| {
        // SAFETY: the caller's promise.
        let given = if settings.is_null() { "" } else { unsafe { text(settings)? } };
        let settings = parse(given)?;
        let class = slots::class(api.slot).ok_or(Fault::Library("H5VLregister_connector"))?;
        // SAFETY: plain calls; the structure lives as long as the process, and what was given is taken back.
        unsafe {
            let class = std::ptr::from_ref(class).cast::<c_void>();
            let connector = (api.H5VLregister_connector)(class, DEFAULT);
            let connector = checked(connector, "H5VLregister_connector")?;
            let info = settings.give();
            let set = (api.H5Pset_vol)(fapl, connector, info);
            crate::settings::free(info);
            (api.H5Idec_ref)(connector);
            checked(set, "H5Pset_vol")?;
        }
        Ok(())
    })
}

/// The cache that an identifier's file uses; the process's own if there is no identifier.
fn cache_of(api: &Api, id: Hid) -> Result<Cache> {
    if id <= 0 {
        return Ok(Context::global().cache());
    }
    let handle = Handle::find(object_of(api, id));
    let handle = handle.ok_or_else(|| {
        Fault::Invalid("not a file or object that the Pumice connector has opened".into())
    })?;
    Ok(handle.engine().cache().clone())
}

/// `pumice_vol_set_cache`: how many bytes the cache keeps.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn pumice_vol_set_cache(id: Hid, bytes: u64) -> Herr {
    run(c"pumice_vol_set_cache", |api| {
        Ok(cache_of(api, id)?.set_limits(bytes, bytes.saturating_add(bytes / 2))?)
    })
}

/// `pumice_vol_cache_stats_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct CacheStats {
    hits: u64,
    misses: u64,
    evictions: u64,
    write_backs: u64,
    bytes_read: u64,
    bytes_written: u64,
    prefetched: u64,
    prefetch_useful: u64,
    resident: u64,
    dirty: u64,
    peak: u64,
    limit: u64,
}

impl CacheStats {
    fn new(stats: &Stats, limit: u64) -> Self {
        Self {
            hits: stats.hits,
            misses: stats.misses,
            evictions: stats.evictions,
            write_backs: stats.write_backs,
            bytes_read: stats.bytes_fetched,
            bytes_written: stats.bytes_written,
            prefetched: stats.prefetched,
            prefetch_useful: stats.prefetch_useful,
            resident: stats.resident,
            dirty: stats.dirty,
            peak: stats.peak,
            limit,
        }
    }
}

/// `pumice_vol_cache_stats`: of a dataset, or of the whole cache that another identifier's file uses.
///
/// # Safety
/// `stats` leads to a place for them, or is null.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_vol_cache_stats(id: Hid, stats: *mut CacheStats) -> Herr {
    run(c"pumice_vol_cache_stats", |api| {
        if stats.is_null() {
            return Err(Fault::Invalid("no place for the statistics".into()));
        }
        let cache = cache_of(api, id)?;
        let found =
            match Handle::find(if id > 0 { object_of(api, id) } else { std::ptr::null_mut() }) {
                Some(handle) if handle.id_type() == crate::abi::id::DATASET => {
                    handle.dataset()?.cache_stats()
                }
                _ => cache.stats(),
            };
        // SAFETY: the caller's promise.
        unsafe { *stats = CacheStats::new(&found, cache.config().limits().0) };
        Ok(())
    })
}

/// `pumice_vol_set_hint`: how a dataset is going to be used.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn pumice_vol_set_hint(id: Hid, hint: c_int) -> Herr {
    run(c"pumice_vol_set_hint", |api| {
        let hint = match hint {
            0 => Hint::Normal,
            1 => Hint::Sequential,
            2 => Hint::Random,
            3 => Hint::Once,
            other => return Err(Fault::Invalid(format!("{other} is no hint"))),
        };
        let (_, dataset) = dataset(api, id)?;
        dataset.set_cache_options(dataset.cache_options().hint(hint));
        Ok(())
    })
}

/// `pumice_vol_prefetch`: 1 if loading has begun, 0 if the dataset's data never are in the cache.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn pumice_vol_prefetch(id: Hid, space: Hid) -> c_int {
    let Some(api) = library() else { return FAIL };
    answer(api, c"pumice_vol_prefetch", FAIL, || {
        let (_, dataset) = dataset(api, id)?;
        let selection = match space {
            SPACE_ALL => Selection::all(),
            space => space::selection(api, space)?,
        };
        Ok(c_int::from(dataset.prefetch(selection)?))
    })
}
