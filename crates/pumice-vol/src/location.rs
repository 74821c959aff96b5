//! Where an operation is to take place: `H5VL_loc_params_t` as an object of a file.

use crate::abi::*;
use crate::fault::{Fault, Result, checked};
use crate::handle::{Handle, OpenFile, address, check_list, open, text};
use crate::order;
use pumice_engine::group::{self, Found};
use pumice_engine::object::Object;
use pumice_format::messages::LinkTarget;
use std::ffi::{CStr, c_int};
use std::sync::Arc;

/// The class of access property lists of links.
pub(crate) const LINK_ACCESS: &CStr = c"H5P_CLS_LINK_ACCESS_ID_g";

/// An object that an operation is about.
pub(crate) struct Place {
    pub(crate) file: Arc<OpenFile>,
    pub(crate) object: Arc<Object>,
    /// The path that led there.
    pub(crate) path: Option<String>,
}

impl Place {
    /// A handle of it.
    pub(crate) fn open(self) -> Result<Handle> {
        open(&self.file, &self.object, self.path)
    }
}

/// What a path leads to from an object.
pub(crate) fn follow(from: &Handle, name: &str) -> Result<Place> {
    let Found { file, object } = group::resolve(from.engine(), &from.object()?, name)?;
    let elsewhere = file.is_some();
    let file = match file {
        None => from.file.clone(),
        Some(engine) if Arc::ptr_eq(&engine, from.engine()) => from.file.clone(),
        Some(engine) => from.file.beside(engine),
    };
    let path = if elsewhere { None } else { from.child_path(name) };
    Ok(Place { file, object, path })
}

/// The object that location parameters mean.
///
/// # Safety
/// The parameters are as libhdf5 gives them: the field of the union that their kind names is set.
pub(crate) unsafe fn place(from: &Handle, params: *const LocParams) -> Result<Place> {
    // SAFETY: the caller's promise.
    unsafe {
        match (*params).kind {
            loc::BY_SELF => Ok(Place {
                file: from.file.clone(),
                object: from.object()?,
                path: from.path.clone(),
            }),
            loc::BY_NAME => {
                let by = (*params).data.by_name;
                check_list(from.api(), by.lapl, LINK_ACCESS)?;
                with_access(from, follow(from, text(by.name)?)?, by.lapl)
            }
            loc::BY_TOKEN => by_address(from, address(&*(*params).data.by_token)),
            loc::BY_IDX => {
                let by = (*params).data.by_idx;
                let (group, name) = link_by_index(from, &by)?;
                follow(&group, &name)
            }
            other => Err(Fault::Unsupported(format!("locations of kind {other}"))),
        }
    }
}

/// `H5F_ACC_DEFAULT`: as the file that a link is in.
const AS_BEFORE: u32 = 0xFFFF;

/// What an external link has led to, with the access that a list asks for.
fn with_access(from: &Handle, mut place: Place, lapl: Hid) -> Result<Place> {
    let mut flags = AS_BEFORE;
    if lapl != DEFAULT && !Arc::ptr_eq(&place.file, &from.file) {
        // SAFETY: a plain call with a list that is open.
        let got = unsafe { (from.api().H5Pget_elink_acc_flags)(lapl, &mut flags) };
        checked(got, "H5Pget_elink_acc_flags")?;
    }
    if flags == AS_BEFORE {
        return Ok(place);
    }
    if flags & (file_flags::SWMR_READ | file_flags::SWMR_WRITE) != 0 {
        return Err(Fault::Unsupported(
            "external links to files beside their writers (SWMR)".into(),
        ));
    }
    if flags & file_flags::RDWR != 0 && from.file.flags & file_flags::RDWR == 0 {
        let what = "an external link to a file for writing, from one that is open for reading";
        return Err(Fault::Invalid(what.into()));
    }
    let file = &place.file;
    let (engine, fapl) = (file.engine.clone(), file.fapl.duplicate());
    let name = file.name.clone();
    place.file = Arc::new(OpenFile::new(file.api, engine, name, flags & file_flags::RDWR, fapl));
    Ok(place)
}

/// The object at an address of the same file.
pub(crate) fn by_address(from: &Handle, address: u64) -> Result<Place> {
    if address == 0 && from.engine().superblock().root_address != 0 {
        return Err(Fault::Invalid("a reference that leads nowhere".into()));
    }
    let object = from.engine().object(address)?;
    Ok(Place { file: from.file.clone(), object, path: None })
}

/// The group and the name of the link that has a number in some order.
///
/// # Safety
/// The name is text that ends with a null byte.
pub(crate) unsafe fn link_by_index(from: &Handle, by: &LocByIdx) -> Result<(Handle, String)> {
    check_list(from.api(), by.lapl, LINK_ACCESS)?;
    // SAFETY: the caller's promise.
    let group = follow(from, unsafe { text(by.name) }?)?.open()?;
    let links = order::links(&group, by.index, by.order)?;
    let link = usize::try_from(by.n).ok().and_then(|n| links.into_iter().nth(n));
    match link {
        Some(link) => Ok((group, link.name)),
        None => Err(Fault::Invalid(format!("no link has the number {}", by.n))),
    }
}

/// The group that holds the last name of a path, and that name. Groups on the way are made if `make` says so.
pub(crate) struct Parent {
    pub(crate) file: Arc<OpenFile>,
    pub(crate) group: Arc<Object>,
    pub(crate) name: String,
    pub(crate) path: Option<String>,
}

/// Where something called `name` is, or is to come.
pub(crate) fn parent(from: &Handle, name: &str, make: bool) -> Result<Parent> {
    let trimmed = name.trim_end_matches('/');
    let (folder, last) = match trimmed.rfind('/') {
        Some(place) => (&trimmed[..=place], &trimmed[place + 1..]),
        None => ("", trimmed),
    };
    let path = from.child_path(trimmed);
    let at = if folder.is_empty() { "." } else { folder };
    let found = match follow(from, at) {
        Err(Fault::Engine(error)) if make && error.kind() == pumice_engine::ErrorKind::NotFound => {
            make_groups(from, folder)?
        }
        found => found?,
    };
    if !group::is_group(&found.object) {
        return Err(Fault::Invalid(format!("what holds \"{last}\" is no group")));
    }
    Ok(Parent { file: found.file, group: found.object, name: last.to_owned(), path })
}

/// Makes the groups on the way that are not there.
fn make_groups(from: &Handle, folder: &str) -> Result<Place> {
    let start = if folder.starts_with('/') { "/" } else { "." };
    let mut place = follow(from, start)?;
    for part in folder.split('/').filter(|part| !part.is_empty() && *part != ".") {
        let here = place.open()?;
        place = match follow(&here, part) {
            Ok(found) => found,
            Err(_) => {
                let engine = here.changing_objects()?;
                let made = group::create(engine, &Default::default())?;
                group::insert_object(engine, &*here.object()?, part, &made)?;
                follow(&here, part)?
            }
        };
    }
    Ok(place)
}

/// The link of a name in a group.
pub(crate) fn link_at(
    from: &Handle,
    name: &str,
) -> Result<(Parent, pumice_format::messages::Link)> {
    let parent = parent(from, name, false)?;
    match group::link(&parent.file.engine, &parent.group, &parent.name)? {
        Some(link) => Ok((parent, link)),
        None => Err(Fault::NotFound(format!("no link \"{name}\""))),
    }
}

/// `H5L_type_t` of a target.
pub(crate) fn link_class(target: &LinkTarget) -> c_int {
    match target {
        LinkTarget::Hard { .. } => 0,
        LinkTarget::Soft { .. } => 1,
        LinkTarget::External { .. } => 64,
        LinkTarget::UserDefined { class, .. } => c_int::from(*class),
    }
}
