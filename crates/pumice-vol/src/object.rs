//! Objects of any kind: open, copy, get, specific.

use crate::abi::*;
use crate::fault::{Fault, Result, answer, checked, done};
use crate::handle::{Handle, Kind, count_call, put_text, text, token};
use crate::introspect;
use crate::library::Api;
use crate::link::Lent;
use crate::location::{Place, follow, parent, place};
use crate::order;
use pumice_engine::attribute;
use pumice_engine::copy::{self, CopyOptions};
use pumice_engine::group;
use pumice_engine::object::Object;
use pumice_format::messages::{Link, LinkTarget, kind};
use std::collections::{HashSet, VecDeque};
use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::Arc;

/// `H5O_type_t`.
const GROUP: c_int = 0;
const DATASET: c_int = 1;
const DATATYPE: c_int = 2;
/// `H5O_INFO_*`.
const INFO_BASIC: u32 = 1;
const INFO_TIME: u32 = 2;
const INFO_ATTRIBUTES: u32 = 4;

/// The object of a name below the one that parameters mean.
///
/// # Safety
/// The parameters and the name are as libhdf5 gives them.
pub(crate) unsafe fn named(
    from: &Handle,
    params: *const LocParams,
    name: *const c_char,
) -> Result<Handle> {
    // SAFETY: the caller's promise.
    unsafe {
        let at = place(from, params)?;
        if name.is_null() {
            return at.open();
        }
        let name = text(name)?;
        follow(&at.open()?, name)?.open()
    }
}

/// `open`.
///
/// # Safety
/// All arguments are as libhdf5 gives them. This holds for every callback of this crate.
pub(crate) unsafe extern "C" fn open(
    object: *mut c_void,
    params: *const LocParams,
    opened: *mut c_int,
    _dxpl: Hid,
    _req: *mut *mut c_void,
) -> *mut c_void {
    // SAFETY: as above.
    let from = unsafe { Handle::at(object) };
    answer(from.api(), c"object open", std::ptr::null_mut(), || {
        count_call();
        // SAFETY: as above.
        let mut found = unsafe { place(from, params)? }.open()?;
        if found.path.is_none() {
            found.path = path_of(&found, found.object()?.address())?;
        }
        // SAFETY: as above.
        unsafe { *opened = found.id_type() };
        Ok(found.give())
    })
}

/// `copy`.
///
/// # Safety
/// As [`open`].
pub(crate) unsafe extern "C" fn copy_object(
    source: *mut c_void,
    from: *const LocParams,
    source_name: *const c_char,
    target: *mut c_void,
    to: *const LocParams,
    target_name: *const c_char,
    ocpypl: Hid,
    _lcpl: Hid,
    _dxpl: Hid,
    _req: *mut *mut c_void,
) -> Herr {
    // SAFETY: as for `open`.
    let (source, target) = unsafe { (Handle::at(source), Handle::at(target)) };
    done(source.api(), c"object copy", || {
        count_call();
        // SAFETY: as for `open`.
        let (found, to, name) = unsafe {
            let found = named(source, from, source_name)?;
            (found, place(target, to)?.open()?, text(target_name)?)
        };
        to.changing_objects()?;
        let to = parent(&to, name, true)?;
        let engine = &to.file.engine;
        if group::link(engine, &to.group, &to.name)?.is_some() {
            return Err(Fault::Exists(format!("destination object already exists: \"{name}\"")));
        }
        let options = copy_options(source.api(), ocpypl)?;
        let address = copy::copy(found.engine(), &*found.object()?, engine, &options)?;
        let object = engine.object(address)?;
        Ok(group::insert_object(engine, &to.group, &to.name, &object)?)
    })
}

fn copy_options(api: &Api, list: Hid) -> Result<CopyOptions> {
    let mut flags = 0;
    if list != DEFAULT {
        // SAFETY: a plain call with a list that is open.
        let got = unsafe { (api.H5Pget_copy_object)(list, &mut flags) };
        checked(got, "H5Pget_copy_object")?;
    }
    Ok(CopyOptions {
        shallow: flags & 0x01 != 0,
        expand_soft_links: flags & 0x02 != 0,
        expand_external_links: flags & 0x04 != 0,
        expand_references: flags & 0x08 != 0,
        without_attributes: flags & 0x10 != 0,
        merge_committed_datatypes: flags & 0x40 != 0,
        ..CopyOptions::default()
    })
}

/// `H5O_type_t` of an object.
fn kind_of(object: &Object) -> c_int {
    if group::is_group(object) {
        GROUP
    } else if object.has(kind::LAYOUT) {
        DATASET
    } else if object.has(kind::DATATYPE) {
        DATATYPE
    } else {
        -1
    }
}

/// What HDF5 calls the data model information of an object.
fn info(at: &Handle, object: &Object, fields: u32) -> Result<ObjectInfo> {
    let mut info = ObjectInfo::default();
    if fields & INFO_BASIC != 0 {
        info.fileno = file_number(at);
        info.token = token(object.address());
        info.kind = kind_of(object);
        info.links = match at.file.is_unnamed(object.address()) {
            true => 0,
            false => object.link_count(),
        };
    }
    if fields & INFO_TIME != 0 {
        let time = object.modified().map_or(0, i64::from);
        (info.atime, info.mtime, info.ctime, info.btime) = match object.empty_header().times {
            Some(times) => (
                times.access.into(),
                times.modification.into(),
                times.change.into(),
                times.birth.into(),
            ),
            None => (0, 0, time, 0),
        };
    }
    if fields & INFO_ATTRIBUTES != 0 {
        info.attributes = attribute::count(at.engine(), object)?;
    }
    Ok(info)
}

/// A number that no other open file of this process has.
pub(crate) fn file_number(at: &Handle) -> u64 {
    at.engine().number() + 1
}

/// `get`: file, name, kind, information.
///
/// # Safety
/// As [`open`].
pub(crate) unsafe extern "C" fn get(
    object: *mut c_void,
    params: *const LocParams,
    args: *mut ObjectGetArgs,
    _dxpl: Hid,
    _req: *mut *mut c_void,
) -> Herr {
    // SAFETY: as for `open`.
    let (from, args) = unsafe { (Handle::at(object), &*args) };
    done(from.api(), c"object get", || {
        count_call();
        // SAFETY: as for `open`: each operation has places for its answer.
        unsafe {
            match args.op {
                0 => {
                    let (pointer, known) = from.file.own_pointer();
                    if known {
                        introspect::expect_file(pointer);
                    }
                    *args.args.file = pointer;
                }
                1 => {
                    let to = args.args.name;
                    let found = place(from, params)?;
                    let path = match found.path {
                        Some(path) => Some(path),
                        None => path_of(from, found.object.address())?,
                    };
                    let path = path.unwrap_or_default();
                    put_text(&path, to.buf, to.buf_size);
                    *to.len = path.len();
                }
                2 => *args.args.kind = kind_of(&place(from, params)?.object),
                3 => {
                    let to = args.args.info;
                    let Place { file, object, path } = place(from, params)?;
                    let at = Handle::new(file, Kind::File, path);
                    *to.info = info(&at, &object, to.fields)?;
                }
                other => return Err(Fault::Unsupported(format!("question {other} about objects"))),
            }
        }
        Ok(())
    })
}

/// A path to the object at an address, the shortest.
fn path_of(from: &Handle, wanted: u64) -> Result<Option<String>> {
    let engine = from.engine();
    let root = engine.root()?;
    if root.address() == wanted {
        return Ok(Some("/".into()));
    }
    let mut seen = HashSet::from([root.address()]);
    let mut waiting = VecDeque::from([(root, String::new())]);
    while let Some((object, path)) = waiting.pop_front() {
        for Link { name, target, .. } in group::links(engine, &object)? {
            let LinkTarget::Hard { address } = target else { continue };
            let path = format!("{path}/{name}");
            if address == wanted {
                return Ok(Some(path));
            }
            let Ok(object) = engine.object(address) else { continue };
            if group::is_group(&object) && seen.insert(address) {
                waiting.push_back((object, path));
            }
        }
    }
    Ok(None)
}

/// `specific`: count of links, exists, lookup, visit, flush, refresh.
///
/// # Safety
/// As [`open`].
pub(crate) unsafe extern "C" fn specific(
    object: *mut c_void,
    params: *const LocParams,
    args: *mut ObjectSpecificArgs,
    _dxpl: Hid,
    _req: *mut *mut c_void,
) -> Herr {
    // SAFETY: as for `open`.
    let (from, args) = unsafe { (Handle::at(object), &*args) };
    done(from.api(), c"object specific", || {
        count_call();
        // SAFETY: as for `open`: the operation decides which arguments are there.
        unsafe {
            match args.op {
                0 => change_links(from, &place(from, params)?.object, args.args.delta),
                1 => {
                    *args.args.exists = place(from, params).is_ok();
                    Ok(())
                }
                2 => {
                    *args.args.lookup = token(place(from, params)?.object.address());
                    Ok(())
                }
                3 => visit(&place(from, params)?.open()?, &args.args.visit),
                4 => Ok(from.engine().commit()?),
                5 => Ok(from.engine().refresh()?),
                other => Err(Fault::Unsupported(format!("operation {other} on objects"))),
            }
        }
    })
}

/// `H5Oincr_refcount` and `H5Odecr_refcount`.
fn change_links(from: &Handle, object: &Arc<Object>, delta: c_int) -> Result<()> {
    let engine = from.changing_objects()?;
    if delta > 0 {
        if !from.file.named(object.address()) {
            object.add_link()?;
        }
        return Ok(());
    }
    Ok(pumice_engine::delete::release(engine, object.address())?)
}

/// Calls an operator of the program with an object and all below it, each once.
///
/// # Safety
/// The operator is as libhdf5 gives it.
unsafe fn visit(start: &Handle, visit: &ObjectVisit) -> Result<()> {
    let lent = Lent::new(start)?;
    let object = start.object()?;
    let mut seen = HashSet::from([object.address()]);
    // SAFETY: the caller's promise.
    unsafe {
        call(start, &object, ".", visit, lent.id)?;
        visit_below(start, "", visit, lent.id, &mut seen)
    }
}

/// # Safety
/// As [`visit`].
unsafe fn call(
    at: &Handle,
    object: &Object,
    name: &str,
    visit: &ObjectVisit,
    top: Hid,
) -> Result<()> {
    let name = CString::new(name).unwrap_or_default();
    let info = info(at, object, visit.fields)?;
    // SAFETY: the caller's promise.
    match unsafe { (visit.op)(top, name.as_ptr(), &info, visit.op_data) } {
        0 => Ok(()),
        answer => Err(Fault::Stopped(answer)),
    }
}

/// # Safety
/// As [`visit`].
unsafe fn visit_below(
    group: &Handle,
    prefix: &str,
    visit: &ObjectVisit,
    top: Hid,
    seen: &mut HashSet<u64>,
) -> Result<()> {
    let own = group.object()?;
    if !group::is_group(&own) {
        return Ok(());
    }
    let by = if order::tracks_order(&own)? { visit.index } else { 0 };
    for link in order::links(group, by, visit.order)? {
        let LinkTarget::Hard { address } = link.target else { continue };
        if !seen.insert(address) {
            continue;
        }
        let (path, object) = (format!("{prefix}{}", link.name), group.engine().object(address)?);
        // SAFETY: the caller's promise.
        unsafe {
            call(group, &object, &path, visit, top)?;
            if group::is_group(&object) {
                let below = group.open(&object, None)?;
                visit_below(&below, &format!("{path}/"), visit, top, seen)?;
            }
        }
    }
    Ok(())
}
