//! One slot for each libhdf5 of the process, and the structure of callbacks that it gets.
//!
//! Callbacks with an object find their library by the object. Those that have none (a file is opened, the connector
//! starts) are functions of a slot: there is one copy of them for each.

use crate::abi::*;
use crate::library::{Api, base_of};
use crate::settings::{self, Settings};
use crate::{
    attribute, blob, dataset, datatype, file, group, introspect, link, native, object, old_groups,
};
use std::ffi::c_void;
use std::sync::{Mutex, OnceLock, PoisonError};

/// How many libhdf5 one process can have.
pub(crate) const SLOTS: usize = 8;
/// A number of the range that is not registered with The HDF Group.
pub(crate) const VALUE: i32 = 4097;
/// The interface's version.
const VERSION: u32 = 3;

static APIS: [OnceLock<Api>; SLOTS] = [const { OnceLock::new() }; SLOTS];
static CLASSES: [OnceLock<Class>; SLOTS] = [const { OnceLock::new() }; SLOTS];
static BASES: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// The library of a slot.
pub(crate) fn api(slot: usize) -> Option<&'static Api> {
    APIS.get(slot)?.get()
}

/// Any library that has loaded the connector, for functions that a program calls itself.
pub(crate) fn any() -> Option<&'static Api> {
    APIS.iter().find_map(OnceLock::get)
}

/// The library that the program is linked with.
pub(crate) fn linked() -> Option<&'static Api> {
    static LINKED: OnceLock<Option<usize>> = OnceLock::new();
    let slot = LINKED.get_or_init(|| {
        let address = crate::library::linked()?;
        class_for(address).ok()?;
        let base = base_of(address).ok()?;
        let bases = BASES.lock().unwrap_or_else(PoisonError::into_inner);
        bases.iter().position(|&known| known == base)
    });
    api((*slot)?)
}

/// The callbacks of a slot.
pub(crate) fn class(slot: usize) -> Option<&'static Class> {
    CLASSES.get(slot)?.get()
}

/// The callbacks for the library that a return address lies in. Calls no function of it.
pub(crate) fn class_for(caller: usize) -> Result<&'static Class, String> {
    let base = base_of(caller)?;
    let slot = {
        let mut bases = BASES.lock().unwrap_or_else(PoisonError::into_inner);
        match bases.iter().position(|&known| known == base) {
            Some(slot) => slot,
            None => {
                bases.push(base);
                bases.len() - 1
            }
        }
    };
    if slot >= SLOTS {
        return Err(format!("more than {SLOTS} libhdf5 in one process"));
    }
    if APIS[slot].get().is_none() {
        let api = Api::of_caller(slot, caller)?;
        let _ = APIS[slot].set(api);
    }
    Ok(CLASSES[slot].get_or_init(|| match slot {
        0 => made::<0>(),
        1 => made::<1>(),
        2 => made::<2>(),
        3 => made::<3>(),
        4 => made::<4>(),
        5 => made::<5>(),
        6 => made::<6>(),
        _ => made::<7>(),
    }))
}

const NONE: *const c_void = std::ptr::null();

/// What the connector can do: all but maps, mounting, user-defined links, threads in
/// libhdf5 and calls that do not wait.
pub(crate) const CAPABILITIES: u64 =
    0x1F_FFFF_FFFF & !(0x1 | 0x2 | 0x4 | 0x2000 | 0x4000 | 0x1_0000_0000 | 0x4_0000_0000);

fn made<const SLOT: usize>() -> Class {
    Class {
        version: VERSION,
        value: VALUE,
        name: c"pumice".as_ptr(),
        conn_version: 1,
        cap_flags: CAPABILITIES,
        initialize: introspect::initialize::<SLOT> as *const c_void,
        terminate: introspect::terminate as *const c_void,
        info_size: size_of::<Settings>(),
        info: settings::callbacks::<SLOT>(),
        wrap: [introspect::get_object as *const c_void, NONE, NONE, NONE, NONE],
        attr: [
            attribute::create as *const c_void,
            attribute::open as *const c_void,
            attribute::read as *const c_void,
            attribute::write as *const c_void,
            attribute::get as *const c_void,
            attribute::specific as *const c_void,
            NONE,
            dataset::close_dataset as *const c_void,
        ],
        dataset: [
            dataset::create as *const c_void,
            dataset::open as *const c_void,
            dataset::read as *const c_void,
            dataset::write as *const c_void,
            dataset::get as *const c_void,
            dataset::specific as *const c_void,
            native::dataset as *const c_void,
            dataset::close_dataset as *const c_void,
        ],
        datatype: [
            datatype::commit as *const c_void,
            datatype::open as *const c_void,
            datatype::get as *const c_void,
            datatype::specific as *const c_void,
            NONE,
            dataset::close_dataset as *const c_void,
        ],
        file: [
            file::create::<SLOT> as *const c_void,
            file::open::<SLOT> as *const c_void,
            file::get as *const c_void,
            file::specific::<SLOT> as *const c_void,
            native::file as *const c_void,
            file::close_file as *const c_void,
        ],
        group: [
            group::create as *const c_void,
            group::open as *const c_void,
            group::get as *const c_void,
            group::specific as *const c_void,
            old_groups::optional as *const c_void,
            dataset::close_dataset as *const c_void,
        ],
        link: [
            link::create as *const c_void,
            link::copy as *const c_void,
            link::rename as *const c_void,
            link::get as *const c_void,
            link::specific as *const c_void,
            NONE,
        ],
        object: [
            object::open as *const c_void,
            object::copy_object as *const c_void,
            object::get as *const c_void,
            object::specific as *const c_void,
            native::object as *const c_void,
        ],
        introspect: [
            introspect::get_conn_cls::<SLOT> as *const c_void,
            introspect::get_cap_flags as *const c_void,
            introspect::opt_query as *const c_void,
        ],
        request: [NONE; 6],
        blob: [
            blob::put as *const c_void,
            blob::get as *const c_void,
            blob::specific as *const c_void,
            NONE,
        ],
        token: [
            blob::compare as *const c_void,
            blob::to_text as *const c_void,
            blob::from_text as *const c_void,
        ],
        optional: NONE,
    }
}
