//! Groups: create, open, get, specific.

use crate::abi::*;
use crate::creation;
use crate::fault::{Fault, Result, answer, checked, done};
use crate::handle::{Handle, Kind, count_call};
use crate::library::Api;
use crate::link::insert_new;
use crate::location::place;
use crate::order;
use pumice_engine::group::{self, GroupSpec};
use pumice_engine::object::Object;
use pumice_format::UNDEFINED;
use pumice_format::messages::{self, LinkInfo, kind};
use std::ffi::{c_char, c_int, c_uint, c_void};

/// What a group creation property list asks for.
pub(crate) fn spec(api: &Api, list: Hid) -> Result<GroupSpec> {
    if list == DEFAULT {
        return Ok(GroupSpec::default());
    }
    let (mut order, mut most, mut least, mut links, mut length) = (0, 0, 0, 0, 0);
    // SAFETY: plain calls with a list that is open, and places of the right types.
    unsafe {
        let got = (api.H5Pget_link_creation_order)(list, &mut order);
        checked(got, "H5Pget_link_creation_order")?;
        let got = (api.H5Pget_link_phase_change)(list, &mut most, &mut least);
        checked(got, "H5Pget_link_phase_change")?;
        let got = (api.H5Pget_est_link_info)(list, &mut links, &mut length);
        checked(got, "H5Pget_est_link_info")?;
    }
    let (track_attribute_order, attribute_phase_change) =
        creation::attribute_properties(api, list)?;
    let unless =
        |pair: (c_uint, c_uint), usual| (pair != usual).then_some((pair.0 as u16, pair.1 as u16));
    Ok(GroupSpec {
        track_order: order & 1 != 0,
        index_order: order & 2 != 0,
        phase_change: unless((most, least), (8, 6)),
        estimates: unless((links, length), (4, 8)),
        track_attribute_order,
        attribute_phase_change,
    })
}

/// Puts what a group was made with into a list.
pub(crate) fn put_properties(api: &Api, group: &Object, list: Hid) -> Result<()> {
    let (mut order, mut phase_change, mut estimates) = (0, None, None);
    if let Some(raw) = group.message(kind::LINK_INFO) {
        let info = LinkInfo::decode(&raw.body, &group.context(&raw))?;
        order = c_uint::from(info.max_creation_order.is_some())
            | c_uint::from(info.order_index_address.is_some()) << 1;
    }
    if let Some(raw) = group.message(kind::GROUP_INFO) {
        let info = messages::GroupInfo::decode(&raw.body, &group.context(&raw))?;
        (phase_change, estimates) = (info.phase_change, info.estimates);
    }
    let (most, least) = phase_change.unwrap_or((8, 6));
    let (links, length) = estimates.unwrap_or((4, 8));
    // SAFETY: plain calls with a list that is open.
    unsafe {
        checked((api.H5Pset_link_creation_order)(list, order), "H5Pset_link_creation_order")?;
        let set = (api.H5Pset_link_phase_change)(list, most.into(), least.into());
        checked(set, "H5Pset_link_phase_change")?;
        let set = (api.H5Pset_est_link_info)(list, links.into(), length.into());
        checked(set, "H5Pset_est_link_info")?;
    }
    creation::put_object_properties(api, group, list)
}

/// `create`.
///
/// # Safety
/// All arguments are as libhdf5 gives them. This holds for every callback of this crate.
pub(crate) unsafe extern "C" fn create(
    object: *mut c_void,
    params: *const LocParams,
    name: *const c_char,
    lcpl: Hid,
    gcpl: Hid,
    _gapl: Hid,
    _dxpl: Hid,
    _req: *mut *mut c_void,
) -> *mut c_void {
    // SAFETY: as above.
    let from = unsafe { Handle::at(object) };
    answer(from.api(), c"group create", std::ptr::null_mut(), || {
        count_call();
        // SAFETY: as above.
        let at = unsafe { place(from, params)? }.open()?;
        let engine = at.changing_objects()?;
        let spec = spec(at.api(), gcpl)?;
        let make = || Ok(group::create(engine, &spec)?);
        // SAFETY: as above.
        let (made, path) = unsafe { insert_new(&at, name, lcpl, make, |made| made)? };
        Ok(Handle::new(at.file.clone(), Kind::Group(made), path).give())
    })
}

/// `open`.
///
/// # Safety
/// As [`create`].
pub(crate) unsafe extern "C" fn open(
    object: *mut c_void,
    params: *const LocParams,
    name: *const c_char,
    _gapl: Hid,
    _dxpl: Hid,
    _req: *mut *mut c_void,
) -> *mut c_void {
    // SAFETY: as for `create`.
    let from = unsafe { Handle::at(object) };
    answer(from.api(), c"group open", std::ptr::null_mut(), || {
        count_call();
        // SAFETY: as for `create`.
        let found = unsafe { crate::object::named(from, params, name)? };
        match &found.kind {
            Kind::Group(_) => Ok(found.give()),
            _ => Err(Fault::Invalid("not a group".into())),
        }
    })
}

/// `H5G_storage_type_t` of a group.
fn storage(group: &Object) -> Result<c_int> {
    if group.has(kind::SYMBOL_TABLE) {
        return Ok(0);
    }
    let Some(raw) = group.message(kind::LINK_INFO) else { return Ok(-1) };
    let info = LinkInfo::decode(&raw.body, &group.context(&raw))?;
    Ok(if info.heap_address == UNDEFINED { 1 } else { 2 })
}

/// `get`.
///
/// # Safety
/// As [`create`].
pub(crate) unsafe extern "C" fn get(
    object: *mut c_void,
    args: *mut GroupGetArgs,
    _dxpl: Hid,
    _req: *mut *mut c_void,
) -> Herr {
    // SAFETY: as for `create`.
    let (handle, args) = unsafe { (Handle::at(object), &mut *args) };
    done(handle.api(), c"group get", || {
        count_call();
        match args.op {
            0 => {
                let api = handle.api();
                let list = checked(api.new_list(c"H5P_CLS_GROUP_CREATE_ID_g"), "H5Pcreate")?;
                args.args.gcpl = list;
                put_properties(api, &*handle.object()?, list)
            }
            1 => {
                // SAFETY: as for `create`: the operation has these arguments.
                let (found, to) = unsafe {
                    let args = &args.args.info;
                    (place(handle, &args.loc)?, args.info)
                };
                let (engine, group) = (&found.file.engine, &found.object);
                let mut last = 0;
                if order::tracks_order(group)?
                    && let Some(raw) = group.message(kind::LINK_INFO)
                {
                    let info = LinkInfo::decode(&raw.body, &group.context(&raw))?;
                    last = info.max_creation_order.unwrap_or(0) as i64;
                }
                let info = GroupInfo {
                    storage: storage(group)?,
                    links: group::count(engine, group)?,
                    max_corder: last,
                    mounted: false,
                };
                // SAFETY: as above.
                unsafe { *to = info };
                Ok(())
            }
            other => Err(Fault::Unsupported(format!("question {other} about groups"))),
        }
    })
}

/// `specific`: mounting is refused; flush, refresh.
///
/// # Safety
/// As [`create`].
pub(crate) unsafe extern "C" fn specific(
    object: *mut c_void,
    args: *mut GroupSpecificArgs,
    _dxpl: Hid,
    _req: *mut *mut c_void,
) -> Herr {
    // SAFETY: as for `create`.
    let (handle, args) = unsafe { (Handle::at(object), &*args) };
    done(handle.api(), c"group specific", || match args.op {
        2 => Ok(handle.engine().commit()?),
        3 => Ok(handle.engine().refresh()?),
        _ => Err(Fault::Unsupported("mounting files".into())),
    })
}
