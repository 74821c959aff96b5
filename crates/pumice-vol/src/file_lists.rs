//! File creation and access property lists.

use crate::abi::*;
use crate::fault::{Fault, Result, checked};
use crate::group;
use crate::handle::Handle;
use crate::library::Api;
use crate::settings::Settings;
use crate::slots::SLOTS;
use pumice::CacheOptions as DatasetOptions;
use pumice_engine::version::{CreateOptions, LibraryVersion, SpaceOptions};
use pumice_format::messages::FileSpaceStrategy;
use pumice_store::Locking;
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

/// Where a file's bytes are to be.
pub(crate) enum Driver {
    /// In one file.
    Path,
    /// In memory; `saved` says whether they go to a file when it is closed.
    Memory { saved: bool },
    /// In files of so many bytes each.
    Family(u64),
    /// Wherever a driver of libhdf5 or of the program puts them.
    Other,
}

/// The driver that an access list names.
pub(crate) fn driver(api: &Api, fapl: Hid) -> Result<Driver> {
    if fapl == DEFAULT {
        return Ok(Driver::Path);
    }
    // SAFETY: a plain call with a list that is open.
    let driver = unsafe { (api.H5Pget_driver)(fapl) };
    let is = |variable, start| driver == api.driver(variable, start);
    if is(c"H5FD_SEC2_id_g", "H5FD_sec2_init\0")
        || is(c"H5FD_STDIO_id_g", "H5FD_stdio_init\0")
        || is(c"H5FD_LOG_id_g", "H5FD_log_init\0")
    {
        return Ok(Driver::Path);
    }
    if is(c"H5FD_CORE_id_g", "H5FD_core_init\0") {
        let (mut step, mut saved) = (0, false);
        // SAFETY: as above, with places of the right types.
        let got = unsafe { (api.H5Pget_fapl_core)(fapl, &mut step, &mut saved) };
        checked(got, "H5Pget_fapl_core")?;
        return Ok(Driver::Memory { saved });
    }
    if is(c"H5FD_FAMILY_id_g", "H5FD_family_init\0") {
        let (mut bytes, mut inner) = (0, 0);
        // SAFETY: as above; the inner list is ours to close.
        let got = unsafe {
            let got = (api.H5Pget_fapl_family)(fapl, &mut bytes, &mut inner);
            if inner > 0 {
                (api.H5Pclose)(inner);
            }
            got
        };
        checked(got, "H5Pget_fapl_family")?;
        return Ok(Driver::Family(bytes));
    }
    for (variable, start, name) in [
        (c"H5FD_MULTI_id_g", "H5FD_multi_init\0", "multi (or split)"),
        (c"H5FD_MPIO_id_g", "H5FD_mpio_init\0", "mpio"),
    ] {
        if is(variable, start) {
            return Err(Fault::Unsupported(format!("the file driver {name}")));
        }
    }
    Ok(Driver::Other)
}

/// The image that a file in memory begins with, if the list has one.
pub(crate) fn image(api: &Api, fapl: Hid) -> Result<Option<Vec<u8>>> {
    let (mut bytes, mut length) = (std::ptr::null_mut::<c_void>(), 0);
    // SAFETY: a plain call; the copy that it gives is ours to free.
    unsafe {
        checked((api.H5Pget_file_image)(fapl, &mut bytes, &mut length), "H5Pget_file_image")?;
        if bytes.is_null() || length == 0 {
            return Ok(None);
        }
        let image = std::slice::from_raw_parts(bytes.cast::<u8>(), length).to_vec();
        (api.H5free_memory)(bytes);
        Ok(Some(image))
    }
}

/// How files are locked.
pub(crate) fn locking(api: &Api, fapl: Hid) -> Result<Locking> {
    // The environment comes first, as in libhdf5.
    if fapl == DEFAULT || std::env::var_os("HDF5_USE_FILE_LOCKING").is_some() {
        return Ok(Locking::from_environment());
    }
    let (mut used, mut best_effort) = (true, true);
    // SAFETY: a plain call with a list that is open.
    let got = unsafe { (api.H5Pget_file_locking)(fapl, &mut used, &mut best_effort) };
    checked(got, "H5Pget_file_locking")?;
    Ok(if used { Locking::BestEffort } else { Locking::Off })
}

fn version(bound: c_int) -> LibraryVersion {
    match bound {
        0 => LibraryVersion::Earliest,
        1 => LibraryVersion::V18,
        2 => LibraryVersion::V110,
        3 => LibraryVersion::V112,
        4 => LibraryVersion::V114,
        _ => LibraryVersion::V200,
    }
}

/// What an access list asks for.
pub(crate) fn access(api: &Api, fapl: Hid) -> Result<CreateOptions> {
    let mut options = CreateOptions::default();
    if fapl == DEFAULT {
        return Ok(options);
    }
    let (mut low, mut high) = (0, 0);
    let (mut threshold, mut alignment, mut block) = (0, 0, 0);
    // SAFETY: plain calls with a list that is open, and places of the right types.
    unsafe {
        checked((api.H5Pget_libver_bounds)(fapl, &mut low, &mut high), "H5Pget_libver_bounds")?;
        let got = (api.H5Pget_alignment)(fapl, &mut threshold, &mut alignment);
        checked(got, "H5Pget_alignment")?;
        checked((api.H5Pget_meta_block_size)(fapl, &mut block), "H5Pget_meta_block_size")?;
    }
    // The newest that a library knows is no bound.
    let newest = version(high);
    options.newest_version = (newest < LibraryVersion::V114).then_some(newest);
    options.library_version = Some(version(low));
    if block != 2048 {
        options.metadata_block = Some(block);
    }
    options.chunk_cache = chosen(api, fapl, true)?
        .map(|(bytes, weight)| DatasetOptions::default().chunk_cache(bytes, weight));
    if let Some(durability) = Settings::of(api, fapl)?.durability() {
        options.durability = durability;
    }
    if alignment > 1 {
        options.alignment =
            Some(pumice_medium::allocator::Alignment { threshold, bytes: alignment });
    }
    Ok(options)
}

/// Sizes and weights of chunk caches that a fresh list of a libhdf5 has: they are nobody's wish.
static USUAL: [OnceLock<[(usize, f64); 2]>; SLOTS] = [const { OnceLock::new() }; SLOTS];

/// `rdcc_nbytes` and `rdcc_w0` of a list.
fn chunk_cache(api: &Api, list: Hid, of_file: bool) -> Result<(usize, f64)> {
    let (mut none, mut slots, mut bytes, mut weight) = (0, 0, 0, 0.0);
    // SAFETY: plain calls with a list that is open, and places of the right types.
    let got = unsafe {
        match of_file {
            true => (api.H5Pget_cache)(list, &mut none, &mut slots, &mut bytes, &mut weight),
            false => (api.H5Pget_chunk_cache)(list, &mut slots, &mut bytes, &mut weight),
        }
    };
    checked(got, "H5Pget_chunk_cache")?;
    Ok((bytes, weight))
}

/// What a list says that a fresh one does not.
fn chosen(api: &Api, list: Hid, of_file: bool) -> Result<Option<(u64, f64)>> {
    if list == DEFAULT {
        return Ok(None);
    }
    let usual = |class, of_file| {
        let fresh = checked(api.new_list(class), "H5Pcreate")?;
        let found = chunk_cache(api, fresh, of_file);
        // SAFETY: the list is ours.
        unsafe { (api.H5Pclose)(fresh) };
        found
    };
    let known = match USUAL[api.slot].get() {
        Some(known) => known,
        None => {
            let of_datasets = usual(c"H5P_CLS_DATASET_ACCESS_ID_g", false)?;
            let of_files = usual(c"H5P_CLS_FILE_ACCESS_ID_g", true)?;
            USUAL[api.slot].get_or_init(|| [of_datasets, of_files])
        }
    };
    let found = chunk_cache(api, list, of_file)?;
    Ok((found != known[usize::from(of_file)]).then_some((found.0 as u64, found.1)))
}

/// `rdcc_nbytes` and `rdcc_w0` that a dataset access list asks for.
pub(crate) fn chunk_cache_of_dataset(api: &Api, dapl: Hid) -> Result<Option<(u64, f64)>> {
    chosen(api, dapl, false)
}

/// What a creation list and an access list ask for.
pub(crate) fn creation(api: &Api, fcpl: Hid, fapl: Hid) -> Result<CreateOptions> {
    let mut options = access(api, fapl)?;
    if fcpl == DEFAULT {
        return Ok(options);
    }
    options.root = group::spec(api, fcpl)?;
    let (mut address, mut length, mut leaf, mut internal, mut chunk) = (8, 8, 4, 16, 32);
    let (mut strategy, mut persist, mut threshold, mut page) = (0, false, 1, 4096);
    let mut shared = 0;
    // SAFETY: plain calls with a list that is open, and places of the right types.
    unsafe {
        checked((api.H5Pget_userblock)(fcpl, &mut options.user_block), "H5Pget_userblock")?;
        checked((api.H5Pget_sizes)(fcpl, &mut address, &mut length), "H5Pget_sizes")?;
        checked((api.H5Pget_sym_k)(fcpl, &mut internal, &mut leaf), "H5Pget_sym_k")?;
        checked((api.H5Pget_istore_k)(fcpl, &mut chunk), "H5Pget_istore_k")?;
        let got =
            (api.H5Pget_file_space_strategy)(fcpl, &mut strategy, &mut persist, &mut threshold);
        checked(got, "H5Pget_file_space_strategy")?;
        checked((api.H5Pget_file_space_page_size)(fcpl, &mut page), "H5Pget_file_space_page_size")?;
        let got = (api.H5Pget_shared_mesg_nindexes)(fcpl, &mut shared);
        checked(got, "H5Pget_shared_mesg_nindexes")?;
        for index in 0..shared {
            let (mut flags, mut least) = (0, 0);
            let got = (api.H5Pget_shared_mesg_index)(fcpl, index, &mut flags, &mut least);
            checked(got, "H5Pget_shared_mesg_index")?;
            // Dataspace, datatype, fill value, filters, attribute: the bits of their message numbers.
            for (kind, bit) in [1u32, 3, 5, 11, 12].into_iter().enumerate() {
                if flags & 1 << bit != 0 {
                    options.shared_messages[kind] = least.max(1);
                }
            }
        }
    }
    if (address, length) != (8, 8) {
        options.widths = Some((address as u8, length as u8));
    }
    if (leaf, internal) != (4, 16) {
        options.group_ranks = Some((leaf as u16, internal as u16));
    }
    if chunk != 32 {
        options.chunk_rank = Some(chunk as u16);
    }
    let strategy = match strategy {
        0 => FileSpaceStrategy::FreeSpaceManagers,
        1 => FileSpaceStrategy::Paged,
        2 => FileSpaceStrategy::Aggregators,
        _ => FileSpaceStrategy::EndOfFile,
    };
    options.space = SpaceOptions { strategy, persist, threshold, page_size: page };
    Ok(options)
}

/// A list that says how a file was made.
pub(crate) fn creation_list(handle: &Handle) -> Result<Hid> {
    let (api, engine) = (handle.api(), handle.engine());
    let list = checked(api.new_list(c"H5P_CLS_FILE_CREATE_ID_g"), "H5Pcreate")?;
    let superblock = engine.superblock();
    let [leaf, internal, chunk] = engine.ranks();
    let space = engine.file_space();
    let strategy = match space.strategy {
        FileSpaceStrategy::FreeSpaceManagers => 0,
        FileSpaceStrategy::Paged => 1,
        FileSpaceStrategy::Aggregators => 2,
        FileSpaceStrategy::EndOfFile => 3,
    };
    let sizes = superblock.sizes;
    // SAFETY: plain calls with a list that is open.
    unsafe {
        checked((api.H5Pset_userblock)(list, superblock.base_address), "H5Pset_userblock")?;
        let set = (api.H5Pset_sizes)(list, sizes.offset.into(), sizes.length.into());
        checked(set, "H5Pset_sizes")?;
        checked((api.H5Pset_sym_k)(list, internal.into(), leaf.into()), "H5Pset_sym_k")?;
        checked((api.H5Pset_istore_k)(list, chunk.into()), "H5Pset_istore_k")?;
        let set = (api.H5Pset_file_space_strategy)(list, strategy, space.persist, space.threshold);
        checked(set, "H5Pset_file_space_strategy")?;
        let set = (api.H5Pset_file_space_page_size)(list, space.page_size);
        checked(set, "H5Pset_file_space_page_size")?;
    }
    group::put_properties(api, &*engine.root()?, list)?;
    Ok(list)
}
