//! Links: create, copy, move, get, specific; and the link of something new.

use crate::abi::*;
use crate::fault::{Fault, Result, checked, done};
use crate::handle::{Handle, check_list, count_call, put_text, text, token};
use crate::library::Api;
use crate::location::{LINK_ACCESS, Parent, link_at, link_by_index, link_class, parent, place};
use crate::order;
use pumice_engine::object::Object;
use pumice_engine::{delete, group};
use pumice_format::messages::{Link, LinkTarget};
use pumice_types::CharacterSet;
use std::collections::HashSet;
use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::Arc;

/// `H5L_TYPE_EXTERNAL`.
const EXTERNAL: c_int = 64;

/// What a link creation property list says: whether groups on the way are made, and whether names are UTF-8.
fn creation(api: &Api, lcpl: Hid) -> Result<(bool, bool)> {
    if lcpl == DEFAULT {
        return Ok((false, false));
    }
    let (mut make, mut charset) = (0, 0);
    // SAFETY: plain calls with a list that is open, and places of the right types.
    unsafe {
        let got = (api.H5Pget_create_intermediate_group)(lcpl, &mut make);
        checked(got, "H5Pget_create_intermediate_group")?;
        checked((api.H5Pget_char_encoding)(lcpl, &mut charset), "H5Pget_char_encoding")?;
    }
    Ok((make != 0, charset == 1))
}

/// A link as a list says that it is to be.
fn link(name: &str, target: LinkTarget, utf8: bool) -> Link {
    let mut link = Link::new(name, target);
    if utf8 {
        link.charset = CharacterSet::Utf8;
    }
    link
}

/// Makes an object and links it, or keeps it without a name if there is none.
///
/// # Safety
/// The name is null or text that ends with a null byte.
pub(crate) unsafe fn insert_new<T>(
    at: &Handle,
    name: *const c_char,
    lcpl: Hid,
    make: impl FnOnce() -> Result<T>,
    object: impl Fn(&T) -> &Arc<Object>,
) -> Result<(T, Option<String>)> {
    if name.is_null() {
        let made = make()?;
        at.file.note_unnamed(object(&made).address());
        return Ok((made, None));
    }
    // SAFETY: the caller's promise.
    let name = unsafe { text(name)? };
    let (intermediate, utf8) = creation(at.api(), lcpl)?;
    let Parent { file, group, name, path } = parent(at, name, intermediate)?;
    if !Arc::ptr_eq(&file.engine, at.engine()) {
        let what = "making objects in the file that an external link leads to: open that file";
        return Err(Fault::Unsupported(what.into()));
    }
    let engine = at.engine();
    if name.is_empty() || group::link(engine, &group, &name)?.is_some() {
        return Err(Fault::Exists(format!(
            "unable to create link (name already exists): \"{name}\""
        )));
    }
    let made = make()?;
    let new = object(&made).address();
    let link = link(&name, LinkTarget::Hard { address: new }, utf8);
    if let Err(error) = group::insert(engine, &group, link) {
        // The first error says more.
        let _ = delete::release(engine, new);
        return Err(error.into());
    }
    Ok((made, path))
}

/// `create`.
///
/// # Safety
/// All arguments are as libhdf5 gives them. This holds for every callback of this crate.
pub(crate) unsafe extern "C" fn create(
    args: *mut LinkCreateArgs,
    object: *mut c_void,
    params: *const LocParams,
    lcpl: Hid,
    lapl: Hid,
    _dxpl: Hid,
    _req: *mut *mut c_void,
) -> Herr {
    // SAFETY: as above. A hard link to the same location has no object of its own.
    let (args, from) = unsafe {
        let args = &*args;
        let own = if object.is_null() { args.args.hard.object } else { object };
        (args, Handle::at(own))
    };
    done(from.api(), c"link create", || {
        count_call();
        check_list(from.api(), lapl, LINK_ACCESS)?;
        from.changing_objects()?;
        // SAFETY: as above: the parameters of a new link have its name.
        let name = unsafe { text((*params).data.by_name.name)? };
        let (intermediate, utf8) = creation(from.api(), lcpl)?;
        let to = parent(from, name, intermediate)?;
        let engine = &to.file.engine;
        if group::link(engine, &to.group, &to.name)?.is_some() {
            return Err(Fault::Exists(format!("name already exists: \"{}\"", to.name)));
        }
        // SAFETY: as above: the operation decides which arguments are there.
        let target = unsafe {
            match args.op {
                0 => return hard(from, &args.args.hard, &to, utf8),
                1 => LinkTarget::Soft { path: text(args.args.soft)?.to_owned() },
                _ => user_defined(&args.args.user)?,
            }
        };
        Ok(group::insert(engine, &to.group, link(&to.name, target, utf8))?)
    })
}

/// # Safety
/// The arguments are as libhdf5 gives them.
unsafe fn hard(from: &Handle, args: &HardLink, to: &Parent, utf8: bool) -> Result<()> {
    // SAFETY: the caller's promise.
    let found = unsafe {
        let at = if args.object.is_null() { from } else { Handle::at(args.object) };
        place(at, &args.loc)?
    };
    if !Arc::ptr_eq(&found.file.engine, &to.file.engine) {
        return Err(Fault::Invalid("interfile hard links are not allowed".into()));
    }
    let (object, engine) = (&found.object, &to.file.engine);
    // One that lost its last link while it was open has a link again, and is not to be deleted.
    let revived = engine.revive(object.address());
    let first = found.file.named(object.address()) || (revived && object.link_count() > 0);
    if !first {
        object.add_link()?;
    }
    let target = LinkTarget::Hard { address: object.address() };
    let made = group::insert(engine, &to.group, link(&to.name, target, utf8));
    match made {
        Ok(()) => Ok(()),
        Err(error) => {
            if first || revived {
                found.file.note_unnamed(object.address());
            } else {
                object.remove_link()?;
            }
            Err(error.into())
        }
    }
}

/// # Safety
/// The buffer is as long as is said.
unsafe fn user_defined(args: &UserLink) -> Result<LinkTarget> {
    if args.class != EXTERNAL {
        return Err(Fault::Unsupported(format!("user-defined links (class {})", args.class)));
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { std::slice::from_raw_parts(args.buf.cast::<u8>(), args.size) };
    // Version and flags, then two names that end with null bytes.
    let mut names = bytes.get(1..).unwrap_or_default().split(|&byte| byte == 0);
    let mut name = || String::from_utf8_lossy(names.next().unwrap_or_default()).into_owned();
    Ok(LinkTarget::External { file: name(), path: name() })
}

/// `copy`.
///
/// # Safety
/// As [`create`].
pub(crate) unsafe extern "C" fn copy(
    source: *mut c_void,
    from: *const LocParams,
    target: *mut c_void,
    to: *const LocParams,
    lcpl: Hid,
    lapl: Hid,
    _dxpl: Hid,
    _req: *mut *mut c_void,
) -> Herr {
    // SAFETY: as for `create`.
    unsafe { transfer(source, from, target, to, (lcpl, lapl), false) }
}

/// `move`.
///
/// # Safety
/// As [`create`].
pub(crate) unsafe extern "C" fn rename(
    source: *mut c_void,
    from: *const LocParams,
    target: *mut c_void,
    to: *const LocParams,
    lcpl: Hid,
    lapl: Hid,
    _dxpl: Hid,
    _req: *mut *mut c_void,
) -> Herr {
    // SAFETY: as for `create`.
    unsafe { transfer(source, from, target, to, (lcpl, lapl), true) }
}

/// # Safety
/// As [`create`].
unsafe fn transfer(
    source: *mut c_void,
    from: *const LocParams,
    target: *mut c_void,
    to: *const LocParams,
    (lcpl, lapl): (Hid, Hid),
    moves: bool,
) -> Herr {
    // SAFETY: as for `create`; where both places are in the same location, one of the two is null.
    let (source, target) = unsafe {
        let (one, other) = if source.is_null() { (target, target) } else { (source, target) };
        (Handle::at(one), Handle::at(if other.is_null() { one } else { other }))
    };
    done(source.api(), c"link move", || {
        count_call();
        check_list(source.api(), lapl, LINK_ACCESS)?;
        target.changing_objects()?;
        // SAFETY: as for `create`: both have names.
        let (old, new) =
            unsafe { (text((*from).data.by_name.name)?, text((*to).data.by_name.name)?) };
        let (intermediate, utf8) = creation(source.api(), lcpl)?;
        let (at, found) = link_at(source, old)?;
        let to = parent(target, new, intermediate)?;
        let engine = &to.file.engine;
        let elsewhere = !Arc::ptr_eq(&at.file.engine, engine);
        if elsewhere && (moves || matches!(found.target, LinkTarget::Hard { .. })) {
            let what = "links do not move between files, nor are hard links copied";
            return Err(Fault::Invalid(what.into()));
        }
        if group::link(engine, &to.group, &to.name)?.is_some() {
            return Err(Fault::Exists(format!(
                "an object with the name \"{}\" already exists",
                to.name
            )));
        }
        if moves {
            return Ok(group::rename(engine, (&at.group, &at.name), (&to.group, &to.name))?);
        }
        if let LinkTarget::Hard { address } = found.target {
            engine.object(address)?.add_link()?;
        }
        Ok(group::insert(engine, &to.group, link(&to.name, found.target, utf8))?)
    })
}

/// The link that location parameters mean.
///
/// # Safety
/// The parameters are as libhdf5 gives them.
unsafe fn found(from: &Handle, params: *const LocParams) -> Result<Link> {
    // SAFETY: the caller's promise.
    unsafe {
        match (*params).kind {
            loc::BY_IDX => {
                let (group, name) = link_by_index(from, &(*params).data.by_idx)?;
                Ok(link_at(&group, &name)?.1)
            }
            _ => {
                let by = (*params).data.by_name;
                check_list(from.api(), by.lapl, LINK_ACCESS)?;
                Ok(link_at(from, text(by.name)?)?.1)
            }
        }
    }
}

/// The bytes that the value of a link has: the path of a soft one, or those of an external one.
fn value(link: &Link) -> Result<Vec<u8>> {
    match &link.target {
        LinkTarget::Hard { .. } => Err(Fault::Invalid("a hard link has no value".into())),
        LinkTarget::Soft { path } => Ok([path.as_bytes(), b"\0"].concat()),
        LinkTarget::External { file, path } => {
            Ok([b"\0", file.as_bytes(), b"\0", path.as_bytes(), b"\0"].concat())
        }
        LinkTarget::UserDefined { data, .. } => Ok(data.clone()),
    }
}

fn info(link: &Link) -> Result<LinkInfo> {
    let u = match link.target {
        LinkTarget::Hard { address } => LinkInfoUnion { token: token(address) },
        _ => {
            let mut u = LinkInfoUnion { token: Token::default() };
            u.value_size = value(link)?.len();
            u
        }
    };
    Ok(LinkInfo {
        class: link_class(&link.target),
        corder_valid: link.creation_order.is_some(),
        corder: link.creation_order.unwrap_or(0) as i64,
        cset: c_int::from(link.charset == CharacterSet::Utf8),
        u,
    })
}

/// `get`: information, the name of a link by its number, the value.
///
/// # Safety
/// As [`create`].
pub(crate) unsafe extern "C" fn get(
    object: *mut c_void,
    params: *const LocParams,
    args: *mut LinkGetArgs,
    _dxpl: Hid,
    _req: *mut *mut c_void,
) -> Herr {
    // SAFETY: as for `create`.
    let (from, args) = unsafe { (Handle::at(object), &*args) };
    done(from.api(), c"link get", || {
        count_call();
        // SAFETY: as for `create`: each operation has places for its answer.
        unsafe {
            let link = found(from, params)?;
            match args.op {
                0 => *args.args.info = info(&link)?,
                1 => {
                    let to = args.args.name;
                    put_text(&link.name, to.name, to.size);
                    *to.len = link.name.len();
                }
                2 => {
                    let (bytes, to) = (value(&link)?, args.args.value);
                    let count = bytes.len().min(to.size);
                    std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.buf.cast(), count);
                }
                other => return Err(Fault::Unsupported(format!("question {other} about links"))),
            }
        }
        Ok(())
    })
}

/// `specific`: delete, exists, iterate.
///
/// # Safety
/// As [`create`].
pub(crate) unsafe extern "C" fn specific(
    object: *mut c_void,
    params: *const LocParams,
    args: *mut LinkSpecificArgs,
    _dxpl: Hid,
    _req: *mut *mut c_void,
) -> Herr {
    // SAFETY: as for `create`.
    let (from, args) = unsafe { (Handle::at(object), &*args) };
    done(from.api(), c"link specific", || {
        count_call();
        // SAFETY: as for `create`: the operation decides which arguments are there.
        unsafe {
            match args.op {
                0 => remove(from, params),
                1 => {
                    let name = text((*params).data.by_name.name)?;
                    *args.args.exists = exists(from, name)?;
                    Ok(())
                }
                _ => {
                    let iterate = args.args.iterate;
                    let group = place(from, params)?.open()?;
                    if iterate.recursive { visit(&group, &iterate) } else { each(&group, &iterate) }
                }
            }
        }
    })
}

/// # Safety
/// The parameters are as libhdf5 gives them.
unsafe fn remove(from: &Handle, params: *const LocParams) -> Result<()> {
    from.changing_objects()?;
    // SAFETY: the caller's promise.
    let (at, name) = unsafe {
        match (*params).kind {
            loc::BY_IDX => {
                let (group, name) = link_by_index(from, &(*params).data.by_idx)?;
                (parent(&group, &name, false)?, name)
            }
            _ => {
                let by = (*params).data.by_name;
                check_list(from.api(), by.lapl, LINK_ACCESS)?;
                let name = text(by.name)?;
                (parent(from, name, false)?, name.to_owned())
            }
        }
    };
    if at.name.is_empty() {
        return Err(Fault::Invalid(format!("\"{name}\" is no link that can be deleted")));
    }
    Ok(delete::unlink(&at.file.engine, &at.group, &at.name)?)
}

/// Whether there is a link of a name; what is on the way must be there.
fn exists(from: &Handle, name: &str) -> Result<bool> {
    if name.trim_matches('/').is_empty() && name.starts_with('/') {
        return Ok(true);
    }
    let at = parent(from, name, false)?;
    Ok(group::link(&at.file.engine, &at.group, &at.name)?.is_some())
}

/// An identifier for an operator, while it runs.
pub(crate) struct Lent<'a> {
    api: &'a Api,
    pub(crate) id: Hid,
}

impl<'a> Lent<'a> {
    pub(crate) fn new(handle: &'a Handle) -> Result<Self> {
        Ok(Self { api: handle.api(), id: handle.again()?.register()? })
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        // What an operator has put on the error stack stays.
        // SAFETY: the identifier is ours.
        self.api.quietly(|| unsafe { (self.api.H5Idec_ref)(self.id) });
    }
}

/// Calls an operator of the program with the links of a group.
///
/// # Safety
/// Operator and place of the number are as libhdf5 gives them.
unsafe fn each(group: &Handle, iterate: &LinkIterate) -> Result<()> {
    let links = order::links(group, iterate.index, iterate.order)?;
    // SAFETY: the caller's promise.
    let start = unsafe { if iterate.idx.is_null() { 0 } else { *iterate.idx } };
    if start > 0 && start as usize >= links.len() {
        return Err(Fault::Invalid("index out of bound".into()));
    }
    let lent = Lent::new(group)?;
    for (at, link) in links.iter().enumerate().skip(start as usize) {
        let name = CString::new(link.name.as_str()).unwrap_or_default();
        let info = info(link)?;
        // SAFETY: the caller's promise.
        let answer = unsafe {
            let answer = (iterate.op)(lent.id, name.as_ptr(), &info, iterate.op_data);
            if !iterate.idx.is_null() {
                *iterate.idx = at as Hsize + 1;
            }
            answer
        };
        if answer != 0 {
            return Err(Fault::Stopped(answer));
        }
    }
    Ok(())
}

/// Calls an operator of the program with all links below a group, each group once.
///
/// # Safety
/// As [`each`].
unsafe fn visit(group: &Handle, iterate: &LinkIterate) -> Result<()> {
    let lent = Lent::new(group)?;
    let mut seen = HashSet::from([group.object()?.address()]);
    // SAFETY: the caller's promise.
    unsafe { visit_below(group, "", iterate, lent.id, &mut seen) }
}

/// # Safety
/// As [`each`].
unsafe fn visit_below(
    group: &Handle,
    prefix: &str,
    iterate: &LinkIterate,
    top: Hid,
    seen: &mut HashSet<u64>,
) -> Result<()> {
    // A group deeper down need not keep the order that is asked for.
    let by = if order::tracks_order(&*group.object()?)? { iterate.index } else { 0 };
    for link in order::links(group, by, iterate.order)? {
        let path = format!("{prefix}{}", link.name);
        let name = CString::new(path.as_str()).unwrap_or_default();
        let info = info(&link)?;
        // SAFETY: the caller's promise.
        let answer = unsafe { (iterate.op)(top, name.as_ptr(), &info, iterate.op_data) };
        if answer != 0 {
            return Err(Fault::Stopped(answer));
        }
        let LinkTarget::Hard { address } = link.target else { continue };
        let object = group.engine().object(address)?;
        if group::is_group(&object) && seen.insert(address) {
            let below = group.open(&object, None)?;
            // SAFETY: the caller's promise.
            unsafe { visit_below(&below, &format!("{path}/"), iterate, top, seen)? };
        }
    }
    Ok(())
}
