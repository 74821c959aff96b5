//! Functions on groups that HDF5 1.6 had: `H5Gget_objinfo`, by which h5py sees whether two objects are one, and
//! `H5Giterate`.

use crate::abi::*;
use crate::fault::{Fault, Result, done};
use crate::handle::{Handle, count_call, text};
use crate::link::Lent;
use crate::location::{link_at, place};
use crate::order;
use pumice_engine::group as links;
use pumice_engine::object::Object;
use pumice_format::messages::{LinkTarget, kind};
use std::ffi::{CString, c_char, c_int, c_uint, c_ulong, c_void};

/// `H5G_obj_t`.
const LINK: c_int = 3;
const GROUP: c_int = 0;
const DATASET: c_int = 1;
const DATATYPE: c_int = 2;
const USER_LINK: c_int = 4;

/// `H5G_stat_t`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Status {
    file: [c_ulong; 2],
    object: [c_ulong; 2],
    links: c_uint,
    kind: c_int,
    time: i64,
    link_length: usize,
    header_size: Hsize,
    header_free: Hsize,
    messages: c_uint,
    blocks: c_uint,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct AskedStatus {
    loc: LocParams,
    follow: bool,
    status: *mut Status,
}

type Operator = unsafe extern "C" fn(Hid, *const c_char, *mut c_void) -> Herr;

#[repr(C)]
#[derive(Clone, Copy)]
struct Iterate {
    loc: LocParams,
    start: Hsize,
    last: *mut Hsize,
    op: Operator,
    data: *mut c_void,
}

/// `optional` of groups.
///
/// # Safety
/// All arguments are as libhdf5 gives them.
pub(crate) unsafe extern "C" fn optional(
    object: *mut c_void,
    args: *mut OptionalArgs,
    _dxpl: Hid,
    _req: *mut *mut c_void,
) -> Herr {
    // SAFETY: as above.
    let (handle, args) = unsafe { (Handle::at(object), *args) };
    done(handle.api(), c"group optional", || {
        count_call();
        // SAFETY: as above: the operation decides what the arguments are.
        unsafe {
            match args.op {
                0 => each(handle, &args.args.cast::<Iterate>().read()),
                1 => {
                    let asked = args.args.cast::<AskedStatus>().read();
                    let status = status(handle, &asked)?;
                    if !asked.status.is_null() {
                        *asked.status = status;
                    }
                    Ok(())
                }
                other => Err(Fault::Unsupported(format!("operation {other} on groups"))),
            }
        }
    })
}

/// # Safety
/// The parameters are as libhdf5 gives them.
unsafe fn status(handle: &Handle, asked: &AskedStatus) -> Result<Status> {
    // SAFETY: the caller's promise: the operation names the object.
    unsafe {
        let name = text(asked.loc.data.by_name.name)?;
        if !asked.follow && !name.trim_matches(['/', '.']).is_empty() {
            let (_, link) = link_at(handle, name)?;
            match link.target {
                LinkTarget::Soft { path } => {
                    let link_length = path.len() + 1;
                    return Ok(Status { kind: LINK, link_length, ..Status::default() });
                }
                LinkTarget::Hard { .. } => {}
                _ => return Ok(Status { kind: USER_LINK, ..Status::default() }),
            }
        }
        let found = place(handle, &asked.loc)?;
        let object = &found.object;
        let (header_size, header_free) = object.space();
        Ok(Status {
            file: [found.file.engine.number() as c_ulong + 1, 0],
            object: [object.address() as c_ulong, 0],
            links: if found.file.is_unnamed(object.address()) { 0 } else { object.link_count() },
            kind: kind_of(object),
            time: object.modified().map_or(0, i64::from),
            link_length: 0,
            header_size,
            header_free,
            messages: object.all_messages().len() as c_uint,
            blocks: object.blocks().len() as c_uint,
        })
    }
}

fn kind_of(object: &Object) -> c_int {
    if links::is_group(object) {
        GROUP
    } else if object.has(kind::LAYOUT) {
        DATASET
    } else {
        DATATYPE
    }
}

/// # Safety
/// The operator is the program's.
unsafe fn each(handle: &Handle, asked: &Iterate) -> Result<()> {
    // SAFETY: the caller's promise.
    let group = unsafe { place(handle, &asked.loc)? }.open()?;
    let all = order::links(&group, 0, 0)?;
    if asked.start > 0 && asked.start as usize >= all.len() {
        return Err(Fault::Invalid("invalid index specified".into()));
    }
    let lent = Lent::new(&group)?;
    for (at, link) in all.iter().enumerate().skip(asked.start as usize) {
        let name = CString::new(link.name.as_str()).unwrap_or_default();
        // SAFETY: the caller's promise.
        let answer = unsafe {
            let answer = (asked.op)(lent.id, name.as_ptr(), asked.data);
            if !asked.last.is_null() {
                *asked.last = at as Hsize + 1;
            }
            answer
        };
        if answer != 0 {
            return Err(Fault::Stopped(answer));
        }
    }
    Ok(())
}
