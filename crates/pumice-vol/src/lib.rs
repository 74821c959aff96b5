//! Pumice as a Virtual Object Layer connector of libhdf5.
//!
//! libhdf5 1.14 and later hand the calls of a program to a connector. This one carries them out with Pumice, so
//! that programs that are linked with libhdf5 (in C, h5py, netCDF) use Pumice's engine and its one chunk cache
//! without being changed:
//!
//! ```sh
//! export HDF5_PLUGIN_PATH=/where/libpumice_vol.so/is
//! export HDF5_VOL_CONNECTOR=pumice
//! ```
//!
//! The connector is not linked with libhdf5: it finds the one that loads it (`library.rs`). Each concept of HDF5
//! has its file, named after it. `docs/vol.md` says what is supported, and what is different.
//!
//! Callbacks follow one rule (`fault.rs`): errors and panics become errors on HDF5's error stack. Pointers that
//! libhdf5 holds are to `handle::Handle`.

// Functions have the arguments and the names that libhdf5 and the RFC give them.
#![allow(clippy::too_many_arguments, non_snake_case)]

mod abi;
mod attribute;
mod blob;
mod convert;
mod creation;
mod dataset;
mod datatype;
mod datatype_map;
mod driver_store;
mod fault;
mod file;
mod file_lists;
mod group;
mod handle;
mod introspect;
mod library;
mod link;
mod location;
mod memory;
mod native;
mod object;
mod old_groups;
mod order;
mod own;
mod references;
mod rfc;
mod settings;
mod slots;
mod space;
mod struct_chunk;

use std::ffi::{c_int, c_void};

/// What kind of plugin this is: a connector (`H5PL_TYPE_VOL`).
#[unsafe(no_mangle)]
pub extern "C" fn H5PLget_plugin_type() -> c_int {
    1
}

/// The structure of callbacks, for the libhdf5 that calls.
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub extern "C" fn H5PLget_plugin_info() -> *const c_void {
    // The return address is what the stack pointer leads to: nothing has been pushed yet.
    std::arch::naked_asm!("mov rdi, [rsp]", "jmp {}", sym plugin_info)
}

/// The structure of callbacks, for the libhdf5 that calls.
#[cfg(target_arch = "aarch64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub extern "C" fn H5PLget_plugin_info() -> *const c_void {
    // The return address is in the link register.
    std::arch::naked_asm!("mov x0, x30", "b {}", sym plugin_info)
}

/// The structure of callbacks for the library that an address lies in; null if that is not possible.
///
/// No function of libhdf5 is called here: it is in the middle of loading a plugin.
extern "C" fn plugin_info(caller: usize) -> *const c_void {
    let found = std::panic::catch_unwind(|| slots::class_for(caller));
    match found {
        Ok(Ok(class)) => std::ptr::from_ref(class).cast(),
        Ok(Err(reason)) => {
            eprintln!("pumice: the connector cannot be used: {reason}");
            std::ptr::null()
        }
        Err(_) => std::ptr::null(),
    }
}
