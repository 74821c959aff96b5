//! References of HDF5 1.12 (`H5R_ref_t`) in a program's memory: to objects, regions and attributes.
//!
//! What their bytes mean is libhdf5's affair. They are made and looked at by its functions alone (`H5Rcreate_region`,
//! `H5Ropen_region`, ...), which call this connector in their turn: no lock of the engine is held meanwhile. In files they
//! are what the file's type says, the older forms included.
//!
//! Older references to regions in memory (`hdset_reg_ref_t`) are refused: `H5Rget_region` reads the header of the dataset in
//! the native connector's file, where ours has nothing.

use crate::abi::*;
use crate::fault::{Fault, Result, checked};
use crate::handle::{Handle, OpenFile, open};
use crate::introspect::object_of;
use crate::library::Api;
use crate::space;
use pumice_engine::Error;
use pumice_engine::reference::{self, Reference, Target};
use pumice_types::{Datatype, Reference as Class, ReferenceKind};
use std::ffi::{c_char, c_int};
use std::sync::Arc;

/// Bytes of a reference in memory.
pub(crate) const SIZE: usize = 64;

/// `H5R_type_t`.
const OBJECT: c_int = 2;
const REGION: c_int = 3;
const ATTRIBUTE: c_int = 4;

/// Whether it is one of HDF5 1.12's, as it is in memory.
pub(crate) fn is_in_memory(class: &Class) -> bool {
    class.size as usize == SIZE
        && !matches!(class.kind, ReferenceKind::Object | ReferenceKind::Region)
}

/// Whether elements in memory have such references.
pub(crate) fn are_in(memory: &Datatype) -> bool {
    match memory {
        Datatype::Reference(class) => is_in_memory(class),
        Datatype::Array(array) => are_in(&array.base),
        Datatype::VarLen(varlen) => are_in(&varlen.base),
        Datatype::Compound(compound) => {
            compound.members.iter().any(|member| are_in(&member.datatype))
        }
        _ => false,
    }
}

/// The file whose elements have references.
#[derive(Clone, Copy)]
pub(crate) struct Links<'a>(pub(crate) &'a Arc<OpenFile>);

/// An identifier that is given back.
struct Id<'a>(&'a Api, Hid);

impl Drop for Id<'_> {
    fn drop(&mut self) {
        // SAFETY: the identifier is ours.
        unsafe { (self.0.H5Idec_ref)(self.1) };
    }
}

impl Links<'_> {
    /// Makes a reference in memory of an element of the file.
    ///
    /// # Safety
    /// `to` has room for a reference.
    pub(crate) unsafe fn export(&self, stored: &Datatype, from: &[u8], to: *mut u8) -> Result<()> {
        // SAFETY: the caller's promise. All zeros are a reference to nothing.
        unsafe { std::ptr::write_bytes(to, 0, SIZE) };
        let engine = &self.0.engine;
        let found = reference::references(engine, stored, from)?.into_iter().next().flatten();
        let Some(found) = found else { return Ok(()) };
        let file = match &found.file {
            Some(name) => self.0.beside(reference::other_file(engine, name)?),
            None => self.0.clone(),
        };
        let object = file.engine.object(found.address)?;
        let handle = open(&file, &object, None)?;
        let rank = handle.dataset().map_or(0, |state| state.dims().len());
        let id = Id(self.0.api, handle.register()?);
        // SAFETY: the caller's promise.
        unsafe { self.create(&id, &found, rank, to) }
    }

    /// # Safety
    /// As [`export`](Self::export).
    unsafe fn create(
        &self,
        id: &Id<'_>,
        found: &Reference,
        rank: usize,
        to: *mut u8,
    ) -> Result<()> {
        let (api, here) = (self.0.api, c".".as_ptr());
        match &found.target {
            Target::Region { .. } => {
                // SAFETY: plain calls with identifiers that are ours, which are given back.
                unsafe {
                    let extent = object_of(api, id.1);
                    let extent = Handle::at(extent).dataset()?.extent()?;
                    let region = Id(api, space::made(api, &extent)?);
                    let selection = reference::selection(found, rank)?;
                    space::select(api, region.1, &selection, extent.dims())?;
                    let made = (api.H5Rcreate_region)(id.1, here, region.1, DEFAULT, to.cast());
                    checked(made, "H5Rcreate_region")?;
                }
            }
            Target::Attribute(name) => {
                let name = crate::library::c_text(name);
                // SAFETY: as above; texts end with a null byte.
                let made =
                    unsafe { (api.H5Rcreate_attr)(id.1, here, name.as_ptr(), DEFAULT, to.cast()) };
                checked(made, "H5Rcreate_attr")?;
            }
            _ => {
                // SAFETY: as above.
                let made = unsafe { (api.H5Rcreate_object)(id.1, here, DEFAULT, to.cast()) };
                checked(made, "H5Rcreate_object")?;
            }
        }
        Ok(())
    }

    /// Makes an element of the file of a reference in memory.
    ///
    /// # Safety
    /// `from` leads to a reference, or to zeros.
    pub(crate) unsafe fn import(
        &self,
        from: *const u8,
        stored: &Class,
        to: &mut [u8],
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        let bytes = unsafe { std::slice::from_raw_parts(from, SIZE) };
        let found = match bytes.iter().all(|&byte| byte == 0) {
            true => None,
            // SAFETY: the caller's promise.
            false => Some(unsafe { self.meant(from)? }),
        };
        Ok(reference::store(&self.0.engine, stored, found.as_ref(), to)?)
    }

    /// What a reference in memory leads to.
    ///
    /// # Safety
    /// `from` leads to a reference.
    unsafe fn meant(&self, from: *const u8) -> Result<Reference> {
        let api = self.0.api;
        // The functions want a place that may change, of the alignment that libhdf5 gives it.
        let from = from.cast_mut().cast();
        // SAFETY: the caller's promise; identifiers are given back.
        unsafe {
            let kind = (api.H5Rget_type)(from);
            let opened = (api.H5Ropen_object)(from, DEFAULT, DEFAULT);
            let id = Id(api, checked(opened, "H5Ropen_object")?);
            let handle = Handle::find(object_of(api, id.1));
            let handle = handle.ok_or_else(|| {
                let what = "references to objects that another connector has opened";
                Fault::Unsupported(what.into())
            })?;
            let target = match kind {
                OBJECT => Target::Object,
                REGION => {
                    let space = (api.H5Ropen_region)(from, DEFAULT, DEFAULT);
                    let space = Id(api, checked(space, "H5Ropen_region")?);
                    let selection = space::selection(api, space.1)?;
                    reference::region(&selection, &handle.dataset()?.dims())?
                }
                ATTRIBUTE => Target::Attribute(self.attribute_name(from)?),
                other => return Err(Fault::Invalid(format!("references of type {other}"))),
            };
            let same = Arc::ptr_eq(&handle.file.engine, &self.0.engine);
            let file = (!same).then(|| handle.file.name.clone());
            Ok(Reference { file, address: handle.object()?.address(), target })
        }
    }

    /// # Safety
    /// `from` leads to a reference to an attribute.
    unsafe fn attribute_name(&self, from: *mut std::ffi::c_void) -> Result<String> {
        let ask = self.0.api.H5Rget_attr_name;
        // SAFETY: the caller's promise; without a buffer the function gives the length.
        let length = checked(unsafe { ask(from, std::ptr::null_mut(), 0) }, "H5Rget_attr_name")?;
        let mut name = vec![0u8; length as usize + 1];
        // SAFETY: as above, with a buffer that is long enough.
        let got = unsafe { ask(from, name.as_mut_ptr().cast::<c_char>(), name.len()) };
        checked(got, "H5Rget_attr_name")?;
        name.truncate(length as usize);
        String::from_utf8(name)
            .map_err(|_| Fault::Engine(Error::Invalid("a name that is no UTF-8".into())))
    }
}
