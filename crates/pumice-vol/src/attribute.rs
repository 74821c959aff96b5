//! Attributes: create, open, read, write, get, specific.

use crate::abi::*;
use crate::convert;
use crate::datatype;
use crate::datatype_map::{check_memory, datatype_of, stored};
use crate::fault::{Fault, Result, answer, checked, done};
use crate::handle::{Handle, Kind, Open, check_list, count_call, open_attribute, put_text, text};
use crate::library::Api;
use crate::link::Lent;
use crate::location::{LINK_ACCESS, Place, place};
use crate::memory;
use crate::order;
use crate::references::Links;
use crate::space;
use pumice_engine::attribute::{self, Attribute, NewAttribute, Values};
use pumice_engine::object::Object;
use pumice_types::{Conversion, Datatype, Heaped, HeapedConversion};
use std::ffi::{CString, c_char, c_int, c_void};

/// `create`: the elements are all zeros until they are written.
///
/// # Safety
/// All arguments are as libhdf5 gives them. This holds for every callback of this crate.
pub(crate) unsafe extern "C" fn create(
    object: *mut c_void,
    params: *const LocParams,
    name: *const c_char,
    type_id: Hid,
    space_id: Hid,
    acpl: Hid,
    aapl: Hid,
    _dxpl: Hid,
    _req: *mut *mut c_void,
) -> *mut c_void {
    // SAFETY: as above.
    let from = unsafe { Handle::at(object) };
    answer(from.api(), c"attribute create", std::ptr::null_mut(), || {
        count_call();
        check_list(from.api(), aapl, c"H5P_CLS_ATTRIBUTE_ACCESS_ID_g")?;
        check_list(from.api(), acpl, c"H5P_CLS_ATTRIBUTE_CREATE_ID_g")?;
        // SAFETY: as above.
        let (name, at) = unsafe { (text(name)?, place(from, params)?.open()?) };
        let (engine, object) = (at.changing_objects()?, at.object()?);
        if attribute::has(engine, &object, name)? {
            let what = format!("unable to create attribute (name already exists): \"{name}\"");
            return Err(Fault::Exists(what));
        }
        let datatype = stored(&datatype_of(at.api(), type_id)?, engine)?;
        let extent = space::extent(at.api(), space_id)?;
        let bytes = memory::cells(&extent)?.checked_mul(datatype.size());
        let bytes = bytes.ok_or_else(|| Fault::Invalid("an attribute that is too large".into()))?;
        let mut new = NewAttribute::new(name, datatype, extent, vec![0; bytes]);
        new.committed = datatype::committed(&at, type_id)?;
        attribute::create(engine, &object, new)?;
        let found = attribute::attribute(engine, &object, name)?;
        let found = found.ok_or_else(|| Fault::NotFound(format!("no attribute \"{name}\"")))?;
        let mut made = open_attribute(&at.file, &object, found, at.path.clone());
        if let Kind::Attribute(open) = &mut made.kind
            && acpl != DEFAULT
        {
            let mut charset = 0;
            // SAFETY: a plain call with a list that is open.
            let got = unsafe { (at.api().H5Pget_char_encoding)(acpl, &mut charset) };
            checked(got, "H5Pget_char_encoding")?;
            open.utf8 = charset == 1;
        }
        Ok(made.give())
    })
}

/// `open`, by name or by number.
///
/// # Safety
/// As [`create`].
pub(crate) unsafe extern "C" fn open(
    object: *mut c_void,
    params: *const LocParams,
    name: *const c_char,
    aapl: Hid,
    _dxpl: Hid,
    _req: *mut *mut c_void,
) -> *mut c_void {
    // SAFETY: as for `create`.
    let from = unsafe { Handle::at(object) };
    answer(from.api(), c"attribute open", std::ptr::null_mut(), || {
        count_call();
        check_list(from.api(), aapl, c"H5P_CLS_ATTRIBUTE_ACCESS_ID_g")?;
        // SAFETY: as for `create`.
        let (at, found) = unsafe { find(from, params, name)? };
        Ok(open_attribute(&at.file, &at.object, found, at.path.clone()).give())
    })
}

/// An attribute by name, or by its number among those of an object.
///
/// # Safety
/// As [`create`].
unsafe fn find(
    from: &Handle,
    params: *const LocParams,
    name: *const c_char,
) -> Result<(Place, Attribute)> {
    // SAFETY: the caller's promise.
    unsafe {
        if (*params).kind == loc::BY_IDX {
            let by = (*params).data.by_idx;
            check_list(from.api(), by.lapl, LINK_ACCESS)?;
            let at = crate::location::follow(from, text(by.name)?)?;
            let all = order::attributes(&handle_of(&at), &at.object, by.index, by.order)?;
            let found = usize::try_from(by.n).ok().and_then(|n| all.into_iter().nth(n));
            let missing = || Fault::Invalid(format!("no attribute has the number {}", by.n));
            return Ok((at, found.ok_or_else(missing)?));
        }
        let (at, name) = (place(from, params)?, text(name)?);
        let found = attribute::attribute(&at.file.engine, &at.object, name)?;
        let missing = || Fault::NotFound(format!("can't locate attribute: '{name}'"));
        Ok((at, found.ok_or_else(missing)?))
    }
}

/// A handle with which to ask about a place.
fn handle_of(at: &Place) -> Handle {
    Handle::new(at.file.clone(), Kind::Group(at.object.clone()), None)
}

/// The attribute that an open one is now.
fn current(handle: &Handle, open: &Open) -> Result<Attribute> {
    let name = open.name();
    let found = attribute::attribute(handle.engine(), &open.object, &name)?;
    found.ok_or_else(|| Fault::NotFound(format!("the attribute \"{name}\" was deleted")))
}

/// `read`.
///
/// # Safety
/// As [`create`]; the buffer has room for all elements.
pub(crate) unsafe extern "C" fn read(
    object: *mut c_void,
    type_id: Hid,
    buffer: *mut c_void,
    _dxpl: Hid,
    _req: *mut *mut c_void,
) -> Herr {
    // SAFETY: as for `create`.
    let handle = unsafe { Handle::at(object) };
    done(handle.api(), c"attribute read", || {
        count_call();
        let found = current(handle, handle.attribute()?)?;
        let memory_type = datatype_of(handle.api(), type_id)?;
        check_memory(&memory_type)?;
        let count = memory::cells(&found.extent)?;
        if count == 0 {
            return Ok(());
        }
        if buffer.is_null() {
            return Err(Fault::Invalid("no buffer".into()));
        }
        if !memory::are_walked(&memory_type) && !found.datatype.has_varlen() {
            if convert::has_gaps(&memory_type)
                || Conversion::new(&found.datatype, &memory_type).is_err()
            {
                // SAFETY: the caller's promise.
                return unsafe { read_converted(handle.api(), &found, type_id, buffer.cast()) };
            }
            let bytes = count * memory_type.size();
            // SAFETY: the caller's promise.
            let to = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), bytes) };
            return Ok(Conversion::new(&found.datatype, &memory_type)?.convert(&found.data, to)?);
        }
        let values = attribute::load(handle.engine(), &handle.attribute()?.object, &found)?;
        let heaped = memory::heaped_type(&memory_type, &found.datatype);
        let values = HeapedConversion::new(&found.datatype, &heaped)?.convert(&values)?;
        let (from, to) = (heaped.size(), memory_type.size());
        memory::each_place(None, count, |place, at| {
            let element = values.elements.get(at * from..(at + 1) * from).unwrap_or_default();
            // SAFETY: the caller's promise.
            unsafe {
                let to = buffer.cast::<u8>().add(place * to);
                let types = (&memory_type, &heaped);
                memory::export(types, element, &values.heap, to, Some(Links(&handle.file)))
            }
        })
    })
}

/// Reads elements that libhdf5 converts, and leaves what no member has as it is.
///
/// # Safety
/// The buffer has room for all elements of the type.
unsafe fn read_converted(
    api: &Api,
    found: &Attribute,
    type_id: Hid,
    buffer: *mut u8,
) -> Result<()> {
    let own = convert::OwnType::new(api, &found.datatype)?;
    let (count, size) = (memory::cells(&found.extent)?, datatype_of(api, type_id)?.size());
    let widest = size.max(own.datatype.size());
    let (mut elements, mut background) =
        (convert::room(count, widest)?, convert::room(count, widest)?);
    let bytes = count * own.datatype.size();
    Conversion::new(&found.datatype, &own.datatype)?
        .convert(&found.data, &mut elements[..bytes])?;
    // SAFETY: the caller's promise.
    let to = unsafe { std::slice::from_raw_parts_mut(buffer, count * size) };
    background[..to.len()].copy_from_slice(to);
    convert::in_place(api, (own.id, type_id), count, &mut elements, &mut background, DEFAULT)?;
    to.copy_from_slice(&elements[..count * size]);
    Ok(())
}

/// `write`.
///
/// # Safety
/// As [`create`]; the buffer has all elements.
pub(crate) unsafe extern "C" fn write(
    object: *mut c_void,
    type_id: Hid,
    buffer: *const c_void,
    _dxpl: Hid,
    _req: *mut *mut c_void,
) -> Herr {
    // SAFETY: as for `create`.
    let handle = unsafe { Handle::at(object) };
    done(handle.api(), c"attribute write", || {
        count_call();
        let engine = handle.changing_objects()?;
        let open = handle.attribute()?;
        let memory_type = datatype_of(handle.api(), type_id)?;
        check_memory(&memory_type)?;
        let count = memory::cells(&open.extent)?;
        if count > 0 && buffer.is_null() {
            return Err(Fault::Invalid("no buffer".into()));
        }
        // SAFETY: the caller's promise.
        let values =
            unsafe { taken(handle, (&memory_type, &open.datatype), buffer.cast(), count)? };
        let known = current(handle, open)?;
        let values = match open.datatype.has_varlen() {
            true => Values::Heaped(open.datatype.clone(), values),
            false => {
                let data = match Conversion::new(&memory_type, &open.datatype) {
                    Ok(conversion) if !memory::are_walked(&memory_type) => {
                        // Members that memory does not have stay as they are.
                        let mut data = known.data;
                        conversion.convert(&values.elements, &mut data)?;
                        data
                    }
                    _ => values.elements,
                };
                Values::Stored(open.datatype.clone(), data)
            }
        };
        let committed = open.committed;
        let committed = committed.map(|at| pumice_engine::shared::Committed::new(engine, at));
        let (name, extent) = (open.name(), open.extent.clone());
        let new = NewAttribute { name, extent, values, committed };
        Ok(attribute::create(engine, &open.object, new)?)
    })
}

/// Elements of a program's memory; converted if anything is of variable length.
///
/// # Safety
/// The buffer has so many elements of the memory type.
unsafe fn taken(
    handle: &Handle,
    (memory_type, datatype): (&Datatype, &Datatype),
    buffer: *const u8,
    count: usize,
) -> Result<Heaped> {
    let size = memory_type.size();
    if !memory::are_walked(memory_type) && !datatype.has_varlen() {
        let bytes = match count {
            0 => Vec::new(),
            // SAFETY: the caller's promise.
            count => unsafe { std::slice::from_raw_parts(buffer, count * size) }.to_vec(),
        };
        return Ok(Heaped { elements: bytes, heap: Vec::new() });
    }
    let heaped = memory::heaped_type(memory_type, datatype);
    let (types, mut values) = ((memory_type, &heaped), Heaped::default());
    for at in 0..count {
        // SAFETY: the caller's promise.
        unsafe {
            memory::import(types, buffer.add(at * size), &mut values, Some(Links(&handle.file)))?;
        }
    }
    Ok(HeapedConversion::new(&heaped, datatype)?.convert(&values)?)
}

fn info(attribute: &Attribute) -> AttrInfo {
    AttrInfo {
        corder_valid: attribute.creation_order.is_some(),
        corder: attribute.creation_order.unwrap_or(0),
        cset: c_int::from(!attribute.name.is_ascii()),
        data_size: attribute.data.len() as Hsize,
    }
}

/// Operations of `get`.
const GET_ACPL: i32 = 0;
const GET_INFO: i32 = 1;
const GET_NAME: i32 = 2;
const GET_SPACE: i32 = 3;
const GET_STORAGE_SIZE: i32 = 4;
const GET_TYPE: i32 = 5;

/// `get`.
///
/// # Safety
/// As [`create`].
pub(crate) unsafe extern "C" fn get(
    object: *mut c_void,
    args: *mut AttrGetArgs,
    _dxpl: Hid,
    _req: *mut *mut c_void,
) -> Herr {
    // SAFETY: as for `create`.
    let (handle, args) = unsafe { (Handle::at(object), &mut *args) };
    done(handle.api(), c"attribute get", || {
        count_call();
        let api = handle.api();
        // SAFETY: as for `create`: each operation has its arguments and places for its answer.
        unsafe {
            match args.op {
                GET_ACPL => {
                    let list =
                        checked(api.new_list(c"H5P_CLS_ATTRIBUTE_CREATE_ID_g"), "H5Pcreate")?;
                    args.args.acpl = list;
                    let utf8 = c_int::from(handle.attribute()?.utf8);
                    checked((api.H5Pset_char_encoding)(list, utf8), "H5Pset_char_encoding")?;
                }
                GET_INFO => {
                    let asked = args.args.info;
                    *asked.info = match &handle.kind {
                        Kind::Attribute(open) => info(&current(handle, open)?),
                        _ => info(&find(handle, &asked.loc, asked.name)?.1),
                    };
                }
                GET_NAME => {
                    let asked = args.args.name;
                    let name = match asked.loc.kind {
                        loc::BY_IDX => find(handle, &asked.loc, std::ptr::null())?.1.name,
                        _ => handle.attribute()?.name(),
                    };
                    put_text(&name, asked.buf, asked.buf_size);
                    *asked.len = name.len();
                }
                GET_SPACE => args.args.space = space::made(api, &handle.attribute()?.extent)?,
                GET_STORAGE_SIZE => {
                    let found = current(handle, handle.attribute()?)?;
                    *args.args.storage_size = found.data.len() as Hsize;
                }
                GET_TYPE => {
                    let open = handle.attribute()?;
                    args.args.datatype = datatype::given(handle, open.committed, &open.datatype)?;
                }
                other => {
                    return Err(Fault::Unsupported(format!("question {other} about attributes")));
                }
            }
        }
        Ok(())
    })
}

/// `specific`: delete, exists, iterate, rename.
///
/// # Safety
/// As [`create`].
pub(crate) unsafe extern "C" fn specific(
    object: *mut c_void,
    params: *const LocParams,
    args: *mut AttrSpecificArgs,
    _dxpl: Hid,
    _req: *mut *mut c_void,
) -> Herr {
    // SAFETY: as for `create`.
    let (from, args) = unsafe { (Handle::at(object), &*args) };
    done(from.api(), c"attribute specific", || {
        count_call();
        // SAFETY: as for `create`: the operation decides which arguments are there.
        unsafe {
            match args.op {
                0 => remove(&place(from, params)?.open()?, text(args.args.delete)?),
                1 => {
                    let by = args.args.delete_by_idx;
                    let at = place(from, params)?.open()?;
                    let all = order::attributes(&at, &*at.object()?, by.index, by.order)?;
                    match usize::try_from(by.n).ok().and_then(|n| all.into_iter().nth(n)) {
                        Some(found) => remove(&at, &found.name),
                        None => {
                            Err(Fault::Invalid(format!("no attribute has the number {}", by.n)))
                        }
                    }
                }
                2 => {
                    let asked = args.args.exists;
                    let at = place(from, params)?;
                    *asked.exists = attribute::has(&at.file.engine, &at.object, text(asked.name)?)?;
                    Ok(())
                }
                3 => each(&place(from, params)?.open()?, &args.args.iterate),
                4 => {
                    let names = args.args.rename;
                    let at = place(from, params)?.open()?;
                    let (old, new) = (text(names.old)?, text(names.new)?);
                    let object = at.object()?;
                    attribute::rename(at.changing_objects()?, &object, old, new)?;
                    at.file.attribute_renamed(object.address(), old, new);
                    Ok(())
                }
                other => Err(Fault::Unsupported(format!("operation {other} on attributes"))),
            }
        }
    })
}

fn remove(at: &Handle, name: &str) -> Result<()> {
    let object: &Object = &*at.object()?;
    Ok(attribute::remove(at.changing_objects()?, object, name)?)
}

/// Calls an operator of the program with the attributes of an object.
///
/// # Safety
/// Operator and place of the number are as libhdf5 gives them.
unsafe fn each(at: &Handle, iterate: &AttrIterate) -> Result<()> {
    let all = order::attributes(at, &*at.object()?, iterate.index, iterate.order)?;
    // SAFETY: the caller's promise.
    let start = unsafe { if iterate.idx.is_null() { 0 } else { *iterate.idx } };
    if start > 0 && start as usize >= all.len() {
        return Err(Fault::Invalid("invalid index specified".into()));
    }
    let lent = Lent::new(at)?;
    for (number, attribute) in all.iter().enumerate().skip(start as usize) {
        let name = CString::new(attribute.name.as_str()).unwrap_or_default();
        let info = info(attribute);
        // SAFETY: the caller's promise.
        let answer = unsafe {
            let answer = (iterate.op)(lent.id, name.as_ptr(), &info, iterate.op_data);
            if !iterate.idx.is_null() {
                *iterate.idx = number as Hsize + 1;
            }
            answer
        };
        if answer != 0 {
            return Err(Fault::Stopped(answer));
        }
    }
    Ok(())
}
