//! Groups and lists of names.

use crate::fault::{Status, ask, run};
use crate::file::FileHandle;
use crate::memory::{give, give_handle, take, text};
use pumice::MemberKind;
use std::ffi::{CString, c_char, c_int};

/// `pumice_names`.
#[derive(Debug)]
pub(crate) struct Names(Vec<(CString, c_int)>);

/// `pumice_kind`.
const OTHER: c_int = 0;
const GROUP: c_int = 1;
const DATASET: c_int = 2;
const DATATYPE: c_int = 3;
const LINK: c_int = 4;
pub(crate) const ATTRIBUTE: c_int = 5;

impl Names {
    /// A name with a null byte, which C cannot have, ends before it.
    pub(crate) fn new(names: impl IntoIterator<Item = (String, c_int)>) -> Self {
        let text = |name: String| {
            let until = name.find('\0').unwrap_or(name.len());
            CString::new(&name[..until]).unwrap_or_default()
        };
        Self(names.into_iter().map(|(name, kind)| (text(name), kind)).collect())
    }
}

fn number_of(kind: &MemberKind) -> c_int {
    match kind {
        MemberKind::Group => GROUP,
        MemberKind::Dataset => DATASET,
        MemberKind::Datatype => DATATYPE,
        MemberKind::SoftLink(_) | MemberKind::ExternalLink(..) | MemberKind::UserDefinedLink(_) => {
            LINK
        }
        _ => OTHER,
    }
}

/// `pumice_group_create`.
///
/// # Safety
/// `file` is null or a file that was not given back, `path` a text.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_group_create(
    file: *mut FileHandle,
    path: *const c_char,
) -> Status {
    // SAFETY: the caller's promise.
    run(|| unsafe { crate::file::file(file)?.create_group(text(path, "path")?) }.map(drop))
}

/// `pumice_exists`.
///
/// # Safety
/// `file` is null or a file that was not given back, `path` a text, `exists` a place for an answer.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_exists(
    file: *mut FileHandle,
    path: *const c_char,
    exists: *mut bool,
) -> Status {
    run(|| {
        // SAFETY: the caller's promise.
        let found = unsafe { crate::file::file(file)?.contains(text(path, "path")?) };
        // SAFETY: the caller's promise.
        unsafe { give(exists, found, "answer") }
    })
}

/// `pumice_remove`.
///
/// # Safety
/// `file` is null or a file that was not given back, `path` a text.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_remove(
    file: *mut FileHandle,
    path: *const c_char,
) -> Status {
    // SAFETY: the caller's promise.
    run(|| unsafe { crate::file::file(file)?.unlink(text(path, "path")?) })
}

/// `pumice_members`.
///
/// # Safety
/// `file` is null or a file that was not given back, `path` a text, `names` a place for a pointer.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_members(
    file: *mut FileHandle,
    path: *const c_char,
    names: *mut *mut Names,
) -> Status {
    run(|| {
        // SAFETY: the caller's promise.
        let group = unsafe { crate::file::file(file)?.group(text(path, "path")?)? };
        let members = group.members()?.into_iter();
        let found = Names::new(members.map(|member| (member.name, number_of(&member.kind))));
        // SAFETY: the caller's promise.
        unsafe { give_handle(names, found, "names") }
    })
}

/// `pumice_names_count`.
///
/// # Safety
/// `names` is null or a list that was not given back.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_names_count(names: *const Names) -> usize {
    // SAFETY: the caller's promise.
    ask(0, || unsafe { names.as_ref() }.map_or(0, |names| names.0.len()))
}

/// `pumice_names_at`.
///
/// # Safety
/// `names` is null or a list that was not given back.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_names_at(
    names: *const Names,
    index: usize,
) -> *const c_char {
    ask(std::ptr::null(), || {
        // SAFETY: the caller's promise.
        let name = unsafe { names.as_ref() }.and_then(|names| names.0.get(index));
        name.map_or(std::ptr::null(), |name| name.0.as_ptr())
    })
}

/// `pumice_names_kind`.
///
/// # Safety
/// `names` is null or a list that was not given back.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_names_kind(names: *const Names, index: usize) -> c_int {
    ask(OTHER, || {
        // SAFETY: the caller's promise.
        let name = unsafe { names.as_ref() }.and_then(|names| names.0.get(index));
        name.map_or(OTHER, |name| name.1)
    })
}

/// `pumice_names_free`.
///
/// # Safety
/// `names` is null or a list that was not given back, and nobody uses it any more.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_names_free(names: *mut Names) {
    // SAFETY: the caller's promise.
    ask((), || drop(unsafe { take(names) }));
}
