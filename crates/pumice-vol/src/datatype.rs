//! Committed datatypes: commit, open, get, specific; and which of them a dataset or an attribute shares.

use crate::abi::*;
use crate::creation;
use crate::datatype_map::{datatype_of, identifier, serialised, stored};
use crate::fault::{Fault, Result, answer, checked, done};
use crate::handle::{Handle, Kind, check_list, count_call};
use crate::link::insert_new;
use crate::location::place;
use pumice_engine::shared::Committed;
use pumice_format::messages::{datatype, kind};
use pumice_format::object_header::{MESSAGE_CONSTANT, RawMessage};
use pumice_types::Datatype;
use std::ffi::{c_char, c_void};
use std::sync::Arc;

/// The committed datatype that an identifier is, if it is one of this file.
pub(crate) fn committed(at: &Handle, type_id: Hid) -> Result<Option<Committed>> {
    let api = at.api();
    // SAFETY: plain calls; the pointer of a committed datatype of this connector is a handle.
    unsafe {
        if (api.H5Tcommitted)(type_id) <= 0 {
            return Ok(None);
        }
        let pointer = crate::introspect::object_of(api, type_id);
        let Some(handle) = Handle::find(pointer) else { return Ok(None) };
        if !Arc::ptr_eq(handle.engine(), at.engine()) {
            return Ok(None);
        }
        Ok(Some(Committed::new(at.engine(), handle.object()?.address())))
    }
}

/// An identifier for the type of a dataset or an attribute: that of the committed datatype that it shares, or one of
/// its own.
pub(crate) fn given(handle: &Handle, committed: Option<u64>, datatype: &Datatype) -> Result<Hid> {
    if let Some(address) = committed {
        let object = handle.engine().object(address)?;
        return handle.open(&object, None)?.register();
    }
    identifier(handle.api(), datatype)
}

/// `commit`.
///
/// # Safety
/// All arguments are as libhdf5 gives them. This holds for every callback of this crate.
pub(crate) unsafe extern "C" fn commit(
    object: *mut c_void,
    params: *const LocParams,
    name: *const c_char,
    type_id: Hid,
    lcpl: Hid,
    tcpl: Hid,
    tapl: Hid,
    _dxpl: Hid,
    _req: *mut *mut c_void,
) -> *mut c_void {
    // SAFETY: as above.
    let from = unsafe { Handle::at(object) };
    answer(from.api(), c"datatype commit", std::ptr::null_mut(), || {
        count_call();
        check_list(from.api(), tapl, c"H5P_CLS_DATATYPE_ACCESS_ID_g")?;
        // SAFETY: as above.
        let at = unsafe { place(from, params)? }.open()?;
        let engine = at.changing_objects()?;
        let datatype = stored(&datatype_of(at.api(), type_id)?, engine)?;
        let track = match tcpl {
            DEFAULT => false,
            list => creation::attribute_properties(at.api(), list)?.0,
        };
        let make = || {
            let mut body = Vec::new();
            datatype::encode_for(engine.era(), &datatype, &mut body)
                .map_err(|error| Fault::Invalid(error.to_string()))?;
            engine.check_datatype(&datatype)?;
            let message = RawMessage::new(kind::DATATYPE, MESSAGE_CONSTANT, body);
            Ok(engine.create_object(vec![message], track)?)
        };
        // SAFETY: as above.
        let (made, path) = unsafe { insert_new(&at, name, lcpl, make, |made| made)? };
        Ok(Handle::new(at.file.clone(), Kind::Datatype(made, datatype), path).give())
    })
}

/// `open`.
///
/// # Safety
/// As [`commit`].
pub(crate) unsafe extern "C" fn open(
    object: *mut c_void,
    params: *const LocParams,
    name: *const c_char,
    tapl: Hid,
    _dxpl: Hid,
    _req: *mut *mut c_void,
) -> *mut c_void {
    // SAFETY: as for `commit`.
    let from = unsafe { Handle::at(object) };
    answer(from.api(), c"datatype open", std::ptr::null_mut(), || {
        count_call();
        check_list(from.api(), tapl, c"H5P_CLS_DATATYPE_ACCESS_ID_g")?;
        // SAFETY: as for `commit`.
        let found = unsafe { crate::object::named(from, params, name)? };
        match &found.kind {
            Kind::Datatype(..) => Ok(found.give()),
            _ => Err(Fault::Invalid("not a committed datatype".into())),
        }
    })
}

/// `get`.
///
/// # Safety
/// As [`commit`].
pub(crate) unsafe extern "C" fn get(
    object: *mut c_void,
    args: *mut DatatypeGetArgs,
    _dxpl: Hid,
    _req: *mut *mut c_void,
) -> Herr {
    // SAFETY: as for `commit`.
    let (handle, args) = unsafe { (Handle::at(object), &mut *args) };
    done(handle.api(), c"datatype get", || {
        let Kind::Datatype(object, datatype) = &handle.kind else {
            return Err(Fault::Invalid("not a committed datatype".into()));
        };
        // SAFETY: each operation has a place for its answer.
        unsafe {
            match args.op {
                0 => *args.args.binary_size = serialised(datatype)?.len(),
                1 => {
                    let (bytes, to) = (serialised(datatype)?, args.args.binary);
                    if to.size < bytes.len() {
                        return Err(Fault::Invalid("a buffer that is too small".into()));
                    }
                    std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.buf.cast(), bytes.len());
                }
                2 => {
                    let api = handle.api();
                    let list = api.new_list(c"H5P_CLS_DATATYPE_CREATE_ID_g");
                    args.args.tcpl = checked(list, "H5Pcreate")?;
                    creation::put_object_properties(api, object, list)?;
                }
                other => {
                    return Err(Fault::Unsupported(format!("question {other} about datatypes")));
                }
            }
        }
        Ok(())
    })
}

/// `specific`: flush, refresh.
///
/// # Safety
/// As [`commit`].
pub(crate) unsafe extern "C" fn specific(
    object: *mut c_void,
    args: *mut DatatypeSpecificArgs,
    _dxpl: Hid,
    _req: *mut *mut c_void,
) -> Herr {
    // SAFETY: as for `commit`.
    let (handle, args) = unsafe { (Handle::at(object), &*args) };
    done(handle.api(), c"datatype specific", || match args.op {
        0 => Ok(handle.engine().commit()?),
        _ => Ok(handle.engine().refresh()?),
    })
}
