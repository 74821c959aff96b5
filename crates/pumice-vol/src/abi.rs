//! What libhdf5 and a connector hand each other: types, constants and structures of `H5VLconnector.h`, `H5VLnative.h` and
//! the headers that these name, as releases 1.14 to 2.x have them (version 3 of the interface).
//!
//! Structures have HDF5's names without prefix; a union of the arguments of one callback is a Rust `union` whose
//! fields are named after the operations.

use std::ffi::{c_char, c_int, c_uint, c_ulong, c_void};

/// An identifier: `hid_t`.
pub(crate) type Hid = i64;
/// Success or failure: `herr_t`.
pub(crate) type Herr = c_int;
/// A size or a coordinate: `hsize_t`.
pub(crate) type Hsize = u64;

/// Success.
pub(crate) const OK: Herr = 0;
/// Failure.
pub(crate) const FAIL: Herr = -1;
/// No identifier.
pub(crate) const INVALID: Hid = -1;
/// `H5P_DEFAULT`.
pub(crate) const DEFAULT: Hid = 0;
/// `H5S_ALL`.
pub(crate) const SPACE_ALL: Hid = 0;
/// `H5S_BLOCK`: a buffer without a shape.
pub(crate) const SPACE_BLOCK: Hid = 1;
/// `H5S_PLIST`: the selection of the transfer property list.
pub(crate) const SPACE_PLIST: Hid = 2;

/// `H5I_type_t`.
pub(crate) mod id {
    use std::ffi::c_int;
    pub(crate) const FILE: c_int = 1;
    pub(crate) const GROUP: c_int = 2;
    pub(crate) const DATATYPE: c_int = 3;
    pub(crate) const DATASET: c_int = 5;
    pub(crate) const ATTR: c_int = 7;
}

/// `H5F_ACC_*` and `H5F_OBJ_*`.
pub(crate) mod file_flags {
    use std::ffi::c_uint;
    pub(crate) const RDWR: c_uint = 0x01;
    pub(crate) const TRUNC: c_uint = 0x02;
    pub(crate) const EXCL: c_uint = 0x04;
    pub(crate) const SWMR_WRITE: c_uint = 0x20;
    pub(crate) const SWMR_READ: c_uint = 0x40;
    pub(crate) const OBJ_FILE: c_uint = 0x01;
    pub(crate) const OBJ_DATASET: c_uint = 0x02;
    pub(crate) const OBJ_GROUP: c_uint = 0x04;
    pub(crate) const OBJ_DATATYPE: c_uint = 0x08;
    pub(crate) const OBJ_ATTR: c_uint = 0x10;
    pub(crate) const OBJ_LOCAL: c_uint = 0x20;
}

/// `H5O_token_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Token(pub(crate) [u8; 16]);

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct LocByName {
    pub(crate) name: *const c_char,
    pub(crate) lapl: Hid,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct LocByIdx {
    pub(crate) name: *const c_char,
    pub(crate) index: c_int,
    pub(crate) order: c_int,
    pub(crate) n: Hsize,
    pub(crate) lapl: Hid,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) union LocData {
    pub(crate) by_token: *const Token,
    pub(crate) by_name: LocByName,
    pub(crate) by_idx: LocByIdx,
}

/// `H5VL_loc_type_t`.
pub(crate) mod loc {
    use std::ffi::c_int;
    pub(crate) const BY_SELF: c_int = 0;
    pub(crate) const BY_NAME: c_int = 1;
    pub(crate) const BY_IDX: c_int = 2;
    pub(crate) const BY_TOKEN: c_int = 3;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct LocParams {
    pub(crate) obj_type: c_int,
    pub(crate) kind: c_int,
    pub(crate) data: LocData,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct OptionalArgs {
    pub(crate) op: c_int,
    pub(crate) args: *mut c_void,
}

/// A pointer to where an answer goes, as the union of arguments has it.
macro_rules! args {
    ($(#[$doc:meta])* $name:ident, $union:ident { $($field:ident: $type:ty),* $(,)? }) => {
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy)]
        pub(crate) struct $name {
            pub(crate) op: c_int,
            pub(crate) args: $union,
        }
        #[repr(C)]
        #[derive(Clone, Copy)]
        pub(crate) union $union {
            $(pub(crate) $field: $type,)*
        }
    };
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct AttrGetName {
    pub(crate) loc: LocParams,
    pub(crate) buf_size: usize,
    pub(crate) buf: *mut c_char,
    pub(crate) len: *mut usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct AttrGetInfo {
    pub(crate) loc: LocParams,
    pub(crate) name: *const c_char,
    pub(crate) info: *mut AttrInfo,
}

args!(AttrGetArgs, AttrGet {
    acpl: Hid,
    info: AttrGetInfo,
    name: AttrGetName,
    space: Hid,
    storage_size: *mut Hsize,
    datatype: Hid,
});

/// `H5A_info_t`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct AttrInfo {
    pub(crate) corder_valid: bool,
    pub(crate) corder: u32,
    pub(crate) cset: c_int,
    pub(crate) data_size: Hsize,
}

pub(crate) type AttrOperator =
    unsafe extern "C" fn(Hid, *const c_char, *const AttrInfo, *mut c_void) -> Herr;

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct AttrIterate {
    pub(crate) index: c_int,
    pub(crate) order: c_int,
    pub(crate) idx: *mut Hsize,
    pub(crate) op: AttrOperator,
    pub(crate) op_data: *mut c_void,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct AttrDeleteByIdx {
    pub(crate) index: c_int,
    pub(crate) order: c_int,
    pub(crate) n: Hsize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct NameExists {
    pub(crate) name: *const c_char,
    pub(crate) exists: *mut bool,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Rename {
    pub(crate) old: *const c_char,
    pub(crate) new: *const c_char,
}

args!(AttrSpecificArgs, AttrSpecific {
    delete: *const c_char,
    delete_by_idx: AttrDeleteByIdx,
    exists: NameExists,
    iterate: AttrIterate,
    rename: Rename,
});

args!(DatasetGetArgs, DatasetGet {
    dapl: Hid,
    dcpl: Hid,
    space: Hid,
    space_status: *mut c_int,
    storage_size: *mut Hsize,
    datatype: Hid,
});

args!(DatasetSpecificArgs, DatasetSpecific {
    size: *const Hsize,
    dataset: Hid,
});

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Binary {
    pub(crate) buf: *mut c_void,
    pub(crate) size: usize,
}

args!(DatatypeGetArgs, DatatypeGet {
    binary_size: *mut usize,
    binary: Binary,
    tcpl: Hid,
});

args!(DatatypeSpecificArgs, DatatypeSpecific { datatype: Hid });

/// `H5VL_file_cont_info_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ContainerInfo {
    pub(crate) version: c_uint,
    pub(crate) feature_flags: u64,
    pub(crate) token_size: usize,
    pub(crate) blob_id_size: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct FileGetName {
    pub(crate) id_type: c_int,
    pub(crate) buf_size: usize,
    pub(crate) buf: *mut c_char,
    pub(crate) len: *mut usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct FileObjCount {
    pub(crate) types: c_uint,
    pub(crate) count: *mut usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct FileObjIds {
    pub(crate) types: c_uint,
    pub(crate) max: usize,
    pub(crate) list: *mut Hid,
    pub(crate) count: *mut usize,
}

args!(FileGetArgs, FileGet {
    container: *mut ContainerInfo,
    fapl: Hid,
    fcpl: Hid,
    fileno: *mut c_ulong,
    intent: *mut c_uint,
    name: FileGetName,
    obj_count: FileObjCount,
    obj_ids: FileObjIds,
});

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct FileFlush {
    pub(crate) obj_type: c_int,
    pub(crate) scope: c_int,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct FileAccessible {
    pub(crate) name: *const c_char,
    pub(crate) fapl: Hid,
    pub(crate) accessible: *mut bool,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct FileEqual {
    pub(crate) other: *mut c_void,
    pub(crate) same: *mut bool,
}

args!(FileSpecificArgs, FileSpecific {
    flush: FileFlush,
    reopen: *mut *mut c_void,
    accessible: FileAccessible,
    equal: FileEqual,
});

/// `H5G_info_t`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct GroupInfo {
    pub(crate) storage: c_int,
    pub(crate) links: Hsize,
    pub(crate) max_corder: i64,
    pub(crate) mounted: bool,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct GroupGetInfo {
    pub(crate) loc: LocParams,
    pub(crate) info: *mut GroupInfo,
}

args!(GroupGetArgs, GroupGet { gcpl: Hid, info: GroupGetInfo });

args!(GroupSpecificArgs, GroupSpecific { group: Hid });

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct HardLink {
    pub(crate) object: *mut c_void,
    pub(crate) loc: LocParams,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct UserLink {
    pub(crate) class: c_int,
    pub(crate) buf: *const c_void,
    pub(crate) size: usize,
}

args!(LinkCreateArgs, LinkCreate {
    hard: HardLink,
    soft: *const c_char,
    user: UserLink,
});

/// `H5L_info2_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct LinkInfo {
    pub(crate) class: c_int,
    pub(crate) corder_valid: bool,
    pub(crate) corder: i64,
    pub(crate) cset: c_int,
    pub(crate) u: LinkInfoUnion,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) union LinkInfoUnion {
    pub(crate) token: Token,
    pub(crate) value_size: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct LinkGetName {
    pub(crate) size: usize,
    pub(crate) name: *mut c_char,
    pub(crate) len: *mut usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct LinkGetValue {
    pub(crate) size: usize,
    pub(crate) buf: *mut c_void,
}

args!(LinkGetArgs, LinkGet {
    info: *mut LinkInfo,
    name: LinkGetName,
    value: LinkGetValue,
});

pub(crate) type LinkOperator =
    unsafe extern "C" fn(Hid, *const c_char, *const LinkInfo, *mut c_void) -> Herr;

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct LinkIterate {
    pub(crate) recursive: bool,
    pub(crate) index: c_int,
    pub(crate) order: c_int,
    pub(crate) idx: *mut Hsize,
    pub(crate) op: LinkOperator,
    pub(crate) op_data: *mut c_void,
}

args!(LinkSpecificArgs, LinkSpecific {
    exists: *mut bool,
    iterate: LinkIterate,
});

/// `H5O_info2_t`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct ObjectInfo {
    pub(crate) fileno: c_ulong,
    pub(crate) token: Token,
    pub(crate) kind: c_int,
    pub(crate) links: c_uint,
    pub(crate) atime: i64,
    pub(crate) mtime: i64,
    pub(crate) ctime: i64,
    pub(crate) btime: i64,
    pub(crate) attributes: Hsize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ObjectGetName {
    pub(crate) buf_size: usize,
    pub(crate) buf: *mut c_char,
    pub(crate) len: *mut usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ObjectGetInfo {
    pub(crate) fields: c_uint,
    pub(crate) info: *mut ObjectInfo,
}

args!(ObjectGetArgs, ObjectGet {
    file: *mut *mut c_void,
    name: ObjectGetName,
    kind: *mut c_int,
    info: ObjectGetInfo,
});

pub(crate) type ObjectOperator =
    unsafe extern "C" fn(Hid, *const c_char, *const ObjectInfo, *mut c_void) -> Herr;

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ObjectVisit {
    pub(crate) index: c_int,
    pub(crate) order: c_int,
    pub(crate) fields: c_uint,
    pub(crate) op: ObjectOperator,
    pub(crate) op_data: *mut c_void,
}

args!(ObjectSpecificArgs, ObjectSpecific {
    delta: c_int,
    exists: *mut bool,
    lookup: *mut Token,
    visit: ObjectVisit,
    object: Hid,
});

args!(BlobSpecificArgs, BlobSpecific {
    is_null: *mut bool,
});

/// `H5VL_class_t`. A callback that is absent is null.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Class {
    pub(crate) version: c_uint,
    pub(crate) value: c_int,
    pub(crate) name: *const c_char,
    pub(crate) conn_version: c_uint,
    pub(crate) cap_flags: u64,
    pub(crate) initialize: *const c_void,
    pub(crate) terminate: *const c_void,
    pub(crate) info_size: usize,
    /// copy, cmp, free, to_str, from_str
    pub(crate) info: [*const c_void; 5],
    /// get_object, get_wrap_ctx, wrap_object, unwrap_object, free_wrap_ctx
    pub(crate) wrap: [*const c_void; 5],
    /// create, open, read, write, get, specific, optional, close
    pub(crate) attr: [*const c_void; 8],
    /// create, open, read, write, get, specific, optional, close
    pub(crate) dataset: [*const c_void; 8],
    /// commit, open, get, specific, optional, close
    pub(crate) datatype: [*const c_void; 6],
    /// create, open, get, specific, optional, close
    pub(crate) file: [*const c_void; 6],
    /// create, open, get, specific, optional, close
    pub(crate) group: [*const c_void; 6],
    /// create, copy, move, get, specific, optional
    pub(crate) link: [*const c_void; 6],
    /// open, copy, get, specific, optional
    pub(crate) object: [*const c_void; 5],
    /// get_conn_cls, get_cap_flags, opt_query
    pub(crate) introspect: [*const c_void; 3],
    /// wait, notify, cancel, specific, optional, free
    pub(crate) request: [*const c_void; 6],
    /// put, get, specific, optional
    pub(crate) blob: [*const c_void; 4],
    /// cmp, to_str, from_str
    pub(crate) token: [*const c_void; 3],
    pub(crate) optional: *const c_void,
}

// SAFETY: the pointers are to functions and to constant text.
unsafe impl Send for Class {}
// SAFETY: as above.
unsafe impl Sync for Class {}

/// The size that releases 1.14.5 to 2.2 agree on.
const _: () = assert!(size_of::<Class>() == 632);
