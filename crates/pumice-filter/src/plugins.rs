//! Third-party filters in C: shared libraries that are found as libhdf5 finds them.
//!
//! Folders come from `HDF5_PLUGIN_PATH` (separated by `:`; on Windows by `;`), else libhdf5's own
//! default. Every shared library there is asked, by `H5PLget_plugin_type` and
//! `H5PLget_plugin_info`, whether it is a filter and which (`H5Z_class2_t`). Libraries stay loaded.
//! `HDF5_PLUGIN_PRELOAD=::` turns the search off, as it does there.
//!
//! A plugin's "set local" function works on libhdf5's handles and is not called: parameters are
//! stored as they are given, which suits reading, and writing with parameters that are complete.
//!
//! Loading a library runs its code, and a plugin is trusted with memory: that is why this is a
//! feature that is off by default.

#![allow(unsafe_code)]

mod ffi;

use crate::{Filter, FilterError, scratch};
use ffi::Class;
use libloading::Library;
use std::collections::HashMap;
use std::ffi::{CStr, c_void};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

const SEARCH_VARIABLE: &str = "HDF5_PLUGIN_PATH";
const PRELOAD_VARIABLE: &str = "HDF5_PLUGIN_PRELOAD";
const NO_PLUGINS: &str = "::";
const DEFAULT_FOLDER: &str = "/usr/local/hdf5/lib/plugin";

/// The filters that were searched for, found or not.
static KNOWN: Mutex<Option<HashMap<u16, Option<&'static Plugin>>>> = Mutex::new(None);

/// A filter of a loaded library.
pub(crate) struct Plugin {
    id: u16,
    name: &'static str,
    run: ffi::FilterFunction,
    encodes: bool,
    /// Keeps the code in memory.
    _library: Library,
}

/// The plugin for a filter id, loaded on first need.
pub(crate) fn find(id: u16) -> Option<&'static dyn Filter> {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    let found = *known.entry(id).or_insert_with(|| search(id));
    found.map(|plugin| plugin as &dyn Filter)
}

/// Loads one library as a filter, whatever its id.
pub(crate) fn load(path: &Path) -> Option<Plugin> {
    // SAFETY: a plugin's initialisers are trusted by whoever turned this feature on and put the
    // library into a plugin folder.
    let library = unsafe { Library::new(path) }.ok()?;
    // SAFETY: the types are those of H5PLextern.h; both functions take nothing and give what a
    // plugin must give. The class lives as long as the library, which the plugin keeps.
    let class = unsafe {
        let kind = library.get::<ffi::TypeFunction>(ffi::TYPE_FUNCTION).ok()?;
        if kind() != ffi::FILTER_PLUGIN {
            return None;
        }
        let info = library.get::<ffi::InfoFunction>(ffi::INFO_FUNCTION).ok()?;
        info().cast::<Class>().as_ref()?
    };
    if class.version != ffi::CLASS_VERSION {
        return None;
    }
    let name = if class.name.is_null() {
        "plugin"
    } else {
        // SAFETY: a class's name is a C string that lives as long as its library.
        let name = unsafe { CStr::from_ptr(class.name) }.to_string_lossy().into_owned();
        // Plugins are few and never unloaded.
        Box::leak(name.into_boxed_str())
    };
    let id = u16::try_from(class.id).ok()?;
    let encodes = class.encoder_present != 0;
    Some(Plugin { id, name, run: class.filter?, encodes, _library: library })
}

fn search(id: u16) -> Option<&'static Plugin> {
    let libraries = folders().into_iter().flat_map(|folder| libraries(&folder));
    let mut plugins = libraries.filter_map(|path| load(&path));
    let plugin = plugins.find(|plugin| plugin.id == id)?;
    Some(Box::leak(Box::new(plugin)))
}

fn folders() -> Vec<PathBuf> {
    if std::env::var_os(PRELOAD_VARIABLE).is_some_and(|value| value == NO_PLUGINS) {
        return Vec::new();
    }
    match std::env::var_os(SEARCH_VARIABLE) {
        Some(list) => std::env::split_paths(&list).collect(),
        None => vec![DEFAULT_FOLDER.into()],
    }
}

/// The shared libraries of a folder, in order of their names.
fn libraries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_library = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        [".so", ".dylib", ".dll"].iter().any(|end| name.contains(end))
    };
    let mut found: Vec<_> = entries.map(|entry| entry.path()).filter(is_library).collect();
    found.sort();
    found
}

impl Plugin {
    /// Runs the C function over a copy of `input`, and replaces `out` by its result.
    fn call(
        &self,
        flags: u32,
        parameters: &[u32],
        input: &[u8],
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        let mut buffer = ffi::Buffer::copy_of(input).ok_or("no memory for a plugin")?;
        let mut size = buffer.size();
        // SAFETY: the contract of H5Z_func_t: `buffer` is `size` bytes from malloc that the plugin
        // may free and replace by other such bytes, telling their size; parameters are only read.
        // What it leaves is freed exactly once, by `Buffer`.
        let len = unsafe {
            (self.run)(
                flags,
                parameters.len(),
                parameters.as_ptr(),
                input.len(),
                &mut size,
                buffer.place().cast::<*mut c_void>(),
            )
        };
        if len == 0 && !input.is_empty() {
            return Err("the plugin failed".to_owned());
        }
        if len > limit || len > size {
            return Err(format!("the plugin gave {len} bytes of {size}, at most {limit} fit"));
        }
        // SAFETY: the plugin says that `len` bytes of its buffer are the result.
        let result = unsafe { buffer.bytes(len) };
        scratch::copy(self.name, result, out).map_err(|error| error.to_string())
    }
}

impl Filter for Plugin {
    fn id(&self) -> u16 {
        self.id
    }

    fn name(&self) -> &'static str {
        self.name
    }

    fn encode(
        &self,
        parameters: &[u32],
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        if !self.encodes {
            return Err(FilterError::encode(self.name, "the plugin cannot encode"));
        }
        self.call(0, parameters, input, usize::MAX, out)
            .map_err(|reason| FilterError::encode(self.name, reason))
    }

    fn decode(
        &self,
        parameters: &[u32],
        input: &[u8],
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        self.call(ffi::REVERSE, parameters, input, limit, out)
            .map_err(|reason| FilterError::corrupt(self.name, "what the plugin encodes", reason))
    }

    /// The growth that a plugin may cause is unknown.
    fn encoded_bound(&self, len: usize) -> usize {
        len.saturating_mul(2).saturating_add(1 << 16)
    }

    fn is_gain(&self, input: &[u8], encoded: &[u8]) -> bool {
        encoded.len() <= input.len()
    }
}
