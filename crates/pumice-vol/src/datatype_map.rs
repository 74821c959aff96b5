//! Datatypes: those of libhdf5 as the engine's model, and back, by the serialised form that `H5Tencode` writes.
//!
//! In memory of a program, elements of variable length are pointers: text is a `char *`, a sequence a count and a
//! pointer. `H5Tencode` keeps those sizes and the offsets that follow from them; [`stored`] gives the type that a file
//! has instead.

use crate::abi::*;
use crate::fault::{Fault, Result, checked};
use crate::library::Api;
use crate::references;
use pumice_engine::copy::sized;
use pumice_engine::file::File as Engine;
use pumice_format::Context;
use pumice_format::messages::datatype;
use pumice_types::{Datatype, ReferenceKind, VarLenKind};

/// What `H5Tencode` writes before the message: that it is a datatype, and a version.
const HEAD: [u8; 2] = [3, 0];

/// The datatype of an identifier, with the sizes that it has in memory.
pub(crate) fn datatype_of(api: &Api, id: Hid) -> Result<Datatype> {
    // Most types are short: one call is enough.
    let mut short = [0u8; 64];
    let mut length = short.len();
    // SAFETY: the buffer is as long as is said. If that is too short, the function writes nothing and gives the length.
    unsafe {
        checked((api.H5Tencode)(id, short.as_mut_ptr().cast(), &mut length), "H5Tencode")?;
    }
    if length <= short.len() {
        let message = short.get(HEAD.len()..length).unwrap_or_default();
        return Ok(datatype::decode(message, &Context::default())?);
    }
    let mut bytes = vec![0u8; length];
    // SAFETY: the buffer is as long as the function has asked for.
    unsafe {
        checked((api.H5Tencode)(id, bytes.as_mut_ptr().cast(), &mut length), "H5Tencode")?;
    }
    let message = bytes.get(HEAD.len()..).unwrap_or_default();
    Ok(datatype::decode(message, &Context::default())?)
}

/// Refuses elements in memory that mean nothing without the native connector: older references to regions lead through
/// tables that libhdf5 has of native files (`references.rs`).
pub(crate) fn check_memory(datatype: &Datatype) -> Result<()> {
    match datatype {
        Datatype::Reference(class)
            if class.kind != ReferenceKind::Object && !references::is_in_memory(class) =>
        {
            let what = "references to regions of the older form (hdset_reg_ref_t): read and write them as H5T_STD_REF";
            Err(Fault::Unsupported(what.into()))
        }
        Datatype::Array(array) => check_memory(&array.base),
        Datatype::VarLen(varlen) => check_memory(&varlen.base),
        Datatype::Compound(compound) => {
            compound.members.iter().try_for_each(|member| check_memory(&member.datatype))
        }
        _ => Ok(()),
    }
}

/// The type that elements have in a file.
pub(crate) fn stored(datatype: &Datatype, file: &Engine) -> Result<Datatype> {
    Ok(sized(datatype, file)?)
}

/// The serialised form of a datatype.
pub(crate) fn serialised(datatype: &Datatype) -> Result<Vec<u8>> {
    let mut bytes = HEAD.to_vec();
    datatype::encode(datatype, &mut bytes).map_err(|error| Fault::Invalid(error.to_string()))?;
    Ok(bytes)
}

/// A new identifier of a datatype.
pub(crate) fn identifier(api: &Api, datatype: &Datatype) -> Result<Hid> {
    if let Datatype::VarLen(varlen) = datatype
        && varlen.kind == VarLenKind::Sequence
        && varlen.base.refers_to_objects()
    {
        // Decoded as a whole, references inside are not taken for those of memory.
        let base = identifier(api, &varlen.base)?;
        // SAFETY: plain calls with an identifier that is ours.
        let made = unsafe {
            let made = (api.H5Tvlen_create)(base);
            (api.H5Tclose)(base);
            made
        };
        return checked(made, "H5Tvlen_create");
    }
    let mut bytes = serialised(datatype)?;
    // Older releases look a little further than they must.
    bytes.extend([0; 16]);
    // SAFETY: the bytes are what `H5Tencode` would have written.
    checked(unsafe { (api.H5Tdecode)(bytes.as_ptr().cast()) }, "H5Tdecode")
}
