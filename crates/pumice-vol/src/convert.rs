//! Conversions that the engine does not have, done by libhdf5: those that it has in addition (numbers to enumerations,
//! texts of fixed and of variable length), and those that a program has registered.
//!
//! Elements are read or written in the file's own type, packed in memory, and converted there by `H5Tconvert`.

use crate::abi::*;
use crate::datatype_map::{datatype_of, identifier};
use crate::fault::{Fault, Result, checked};
use crate::library::Api;
use crate::memory::{are_walked, heaped_type};
use pumice_types::{Conversion, Datatype, HeapedConversion};

/// Whether the engine has a way from the type of memory to that of a file, and back.
pub(crate) fn is_known(memory: &Datatype, file: &Datatype) -> bool {
    if !are_walked(memory) && !file.has_varlen() {
        return Conversion::new(memory, file).is_ok() && Conversion::new(file, memory).is_ok();
    }
    let (memory, file) = (heaped_type(memory, file), heaped_type(file, file));
    HeapedConversion::new(&memory, &file).is_ok() && HeapedConversion::new(&file, &memory).is_ok()
}

/// Whether elements have bytes that no member has, which a read must leave as they are.
pub(crate) fn has_gaps(datatype: &Datatype) -> bool {
    match datatype {
        Datatype::Compound(compound) => {
            let sizes = compound.members.iter().map(|member| member.datatype.size());
            sizes.sum::<usize>() != compound.size as usize
                || compound.members.iter().any(|member| has_gaps(&member.datatype))
        }
        Datatype::Array(array) => has_gaps(&array.base),
        _ => false,
    }
}

/// The type that elements of a file have in memory, as libhdf5 has it.
pub(crate) struct OwnType<'a> {
    api: &'a Api,
    pub(crate) id: Hid,
    pub(crate) datatype: Datatype,
}

impl<'a> OwnType<'a> {
    pub(crate) fn new(api: &'a Api, stored: &Datatype) -> Result<Self> {
        let id = identifier(api, stored)?;
        Ok(Self { api, id, datatype: datatype_of(api, id)? })
    }

    /// Gives back what elements of this type lead to.
    pub(crate) fn reclaim(&self, elements: &mut [u8], count: usize) {
        if !self.datatype.has_varlen() || count == 0 {
            return;
        }
        let dims = [count as Hsize];
        // SAFETY: the buffer has so many elements, whose pointers lead to memory of libhdf5 or to nothing.
        unsafe {
            let space = (self.api.H5Screate_simple)(1, dims.as_ptr(), std::ptr::null());
            (self.api.H5Treclaim)(self.id, space, DEFAULT, elements.as_mut_ptr().cast());
            (self.api.H5Sclose)(space);
        }
    }
}

impl Drop for OwnType<'_> {
    fn drop(&mut self) {
        // SAFETY: the identifier is ours.
        unsafe { (self.api.H5Tclose)(self.id) };
    }
}

/// Converts elements where they are. The buffer has room for the larger of the two types; the background is what the
/// elements of the new type were before.
pub(crate) fn in_place(
    api: &Api,
    (from, to): (Hid, Hid),
    count: usize,
    elements: &mut [u8],
    background: &mut [u8],
    dxpl: Hid,
) -> Result<()> {
    let (elements, background) = (elements.as_mut_ptr().cast(), background.as_mut_ptr().cast());
    // SAFETY: both buffers have room for so many elements of either type.
    let done = unsafe { (api.H5Tconvert)(from, to, count, elements, background, dxpl) };
    checked(done, "H5Tconvert").map(drop)
}

/// Room for so many elements.
pub(crate) fn room(count: usize, size: usize) -> Result<Vec<u8>> {
    let bytes = count.checked_mul(size).ok_or_else(too_large)?;
    let mut room = Vec::new();
    room.try_reserve_exact(bytes).map_err(|_| too_large())?;
    room.resize(bytes, 0);
    Ok(room)
}

fn too_large() -> Fault {
    Fault::Engine(pumice_engine::Error::NoMemory("no memory for elements to convert".into()))
}
