//! What libhdf5 holds for an open file, object or attribute: a pointer to a [`Handle`].
//!
//! Handles of one file share an [`OpenFile`]; the file is closed when the last of them goes, as libhdf5's weak close
//! degree has it. Programs that want the strong one close the objects themselves by the lists that the connector
//! gives (`H5Fget_obj_ids`).

use crate::abi::*;
use crate::fault::{Fault, Result, checked};
use crate::library::Api;
use pumice_engine::dataset::{DatasetState, Handle as Held};
use pumice_engine::file::File as Engine;
use pumice_engine::object::Object;
use pumice_engine::{attribute, group};
use pumice_format::messages::kind;
use pumice_space::Extent;
use pumice_types::Datatype;
use std::collections::HashSet;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

/// How many callbacks have reached the engine: what tests ask to see that the connector did the work.
pub(crate) static CALLS: AtomicU64 = AtomicU64::new(0);

/// An open file.
pub(crate) struct OpenFile {
    pub(crate) api: &'static Api,
    pub(crate) engine: Arc<Engine>,
    /// The name that it was opened by.
    pub(crate) name: String,
    /// `H5F_ACC_*` that it was opened with.
    pub(crate) flags: u32,
    /// The access property list, as a copy.
    pub(crate) fapl: List,
    /// Names of open attributes, which a renaming changes.
    names: Mutex<Vec<(u64, Weak<Mutex<String>>)>>,
    /// The bytes of a file in memory.
    pub(crate) memory: Option<Arc<pumice_store::MemoryStore>>,
    /// Addresses of objects that no link leads to yet: deleted with the file unless one comes.
    unnamed: Mutex<Vec<u64>>,
    /// The pointer that libhdf5 has for the file itself, or 0.
    pointer: AtomicUsize,
    /// Whether closing it was tried before.
    tried: AtomicBool,
    /// Whether its bytes are reached without libhdf5, so that reads and writes need not have its lock.
    pub(crate) apart: bool,
}

impl OpenFile {
    pub(crate) fn new(
        api: &'static Api,
        engine: Arc<Engine>,
        name: String,
        flags: u32,
        fapl: List,
    ) -> Self {
        engine.close_with_last();
        let (names, unnamed) = Default::default();
        let pointer = AtomicUsize::new(0);
        Self {
            api,
            engine,
            name,
            flags,
            fapl,
            names,
            memory: None,
            unnamed,
            pointer,
            tried: AtomicBool::new(false),
            apart: true,
        }
    }

    /// The file that a link led to.
    pub(crate) fn beside(&self, engine: Arc<Engine>) -> Arc<Self> {
        let name = engine.path().map_or(String::new(), |path| path.display().to_string());
        let fapl = self.fapl.duplicate();
        Arc::new(Self::new(self.api, engine, name, self.flags, fapl))
    }

    fn unnamed(&self) -> MutexGuard<'_, Vec<u64>> {
        self.unnamed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the first attempt to close it be the last: whoever owns the driver may not be there for another.
    pub(crate) fn close_at_once(&self) {
        self.tried.store(true, Ordering::Release);
    }

    /// Whether closing it was tried before, and what could not be written is given up.
    pub(crate) fn gives_up(&self) -> bool {
        self.tried.swap(true, Ordering::AcqRel)
    }

    /// Takes note of an object that has no link yet.
    pub(crate) fn note_unnamed(&self, address: u64) {
        self.unnamed().push(address);
    }

    /// Whether an object has no link yet.
    pub(crate) fn is_unnamed(&self, address: u64) -> bool {
        self.unnamed().contains(&address)
    }

    /// Deletes an object that nobody has open and that never got a link.
    fn give_up(&self, address: u64) {
        if !self.is_unnamed(address) {
            return;
        }
        let others = live().iter().any(|&pointer| {
            // SAFETY: what is in the list is open, and is closed by those who hold the list.
            let other = unsafe { Handle::at(pointer as *mut c_void) };
            let object = other.object().map(|object| object.address());
            Arc::ptr_eq(&other.file.engine, &self.engine) && object.is_ok_and(|at| at == address)
        });
        if !others && self.named(address) {
            // Nobody can be told; what stays is space that nothing leads to.
            let _ = pumice_engine::delete::release(&self.engine, address);
        }
    }

    /// Takes note that an object got its first link; `false` if it had one.
    pub(crate) fn named(&self, address: u64) -> bool {
        let mut unnamed = self.unnamed();
        let place = unnamed.iter().position(|&one| one == address);
        place.map(|place| unnamed.swap_remove(place)).is_some()
    }

    /// The pointer to a handle of the file itself: the one that libhdf5 has, so that it finds its identifier, or a
    /// new one. Says whether it has it.
    pub(crate) fn own_pointer(self: &Arc<Self>) -> (*mut c_void, bool) {
        match self.pointer.load(Ordering::Acquire) {
            0 => (Handle::new(self.clone(), Kind::File, Some("/".into())).give(), false),
            known => (known as *mut c_void, true),
        }
    }

    fn names(&self) -> MutexGuard<'_, Vec<(u64, Weak<Mutex<String>>)>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The shared name of an attribute that is being opened.
    fn attribute_name(&self, object: u64, name: &str) -> Arc<Mutex<String>> {
        let shared = Arc::new(Mutex::new(name.to_owned()));
        let mut names = self.names();
        if names.len() >= 64 {
            names.retain(|(_, name)| name.strong_count() > 0);
        }
        names.push((object, Arc::downgrade(&shared)));
        shared
    }

    /// Takes note that an attribute has another name.
    pub(crate) fn attribute_renamed(&self, object: u64, old: &str, new: &str) {
        for (_, name) in self.names().iter().filter(|(address, _)| *address == object) {
            let Some(name) = name.upgrade() else { continue };
            let mut name = name.lock().unwrap_or_else(PoisonError::into_inner);
            if *name == old {
                *name = new.to_owned();
            }
        }
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        for address in std::mem::take(&mut *self.unnamed()) {
            // Nobody can be told; what stays is space that nothing leads to.
            let _ = pumice_engine::delete::release(&self.engine, address);
        }
    }
}

/// Fails unless a list is the default or one of a class.
pub(crate) fn check_list(api: &Api, list: Hid, class: &'static CStr) -> Result<()> {
    // SAFETY: a plain call; what is no list is an error, which is ours to tell.
    let known = list == DEFAULT
        || api.quietly(|| unsafe { (api.H5Pisa_class)(list, api.constant(class)) }) > 0;
    match known {
        true => Ok(()),
        false => Err(Fault::Invalid("a property list that is none, or of another class".into())),
    }
}

/// A property list, or another thing with an identifier, that is closed with its owner.
pub(crate) struct List {
    api: &'static Api,
    pub(crate) id: Hid,
}

impl List {
    /// A copy of a list; of the default one none.
    pub(crate) fn copy(api: &'static Api, list: Hid) -> Self {
        // SAFETY: a plain call; a list that is none gives an error.
        let id = if list == DEFAULT { INVALID } else { unsafe { (api.H5Pcopy)(list) } };
        Self { api, id }
    }

    /// A list that is ours already.
    pub(crate) fn owned(api: &'static Api, id: Hid) -> Self {
        Self { api, id }
    }

    pub(crate) fn duplicate(&self) -> Self {
        if self.id < 0 {
            Self { api: self.api, id: INVALID }
        } else {
            Self::copy(self.api, self.id)
        }
    }

    /// A copy for the program; a new list of `class` if there is none.
    pub(crate) fn given(&self, class: &'static CStr) -> Result<Hid> {
        let id = match self.id < 0 {
            true => self.api.new_list(class),
            // SAFETY: the list is ours and open.
            false => unsafe { (self.api.H5Pcopy)(self.id) },
        };
        checked(id, "H5Pcopy")
    }
}

impl Drop for List {
    fn drop(&mut self) {
        if self.id >= 0 {
            // SAFETY: the list is ours and open; at the end of the library this only fails.
            unsafe { (self.api.H5Pclose)(self.id) };
        }
    }
}

/// What is open.
pub(crate) enum Kind {
    File,
    Group(Arc<Object>),
    Dataset(Held),
    Datatype(Arc<Object>, Datatype),
    Attribute(Open),
}

/// An open attribute. Its elements are read when they are asked for.
pub(crate) struct Open {
    pub(crate) object: Arc<Object>,
    pub(crate) name: Arc<Mutex<String>>,
    pub(crate) datatype: Datatype,
    pub(crate) extent: Extent,
    pub(crate) committed: Option<u64>,
    /// Whether its creation list says that the name is UTF-8.
    pub(crate) utf8: bool,
}

impl Open {
    pub(crate) fn name(&self) -> String {
        self.name.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What libhdf5 holds a pointer to.
pub(crate) struct Handle {
    pub(crate) file: Arc<OpenFile>,
    pub(crate) kind: Kind,
    /// The path that led to it, if one did.
    pub(crate) path: Option<String>,
    /// The access property list that it was opened with.
    pub(crate) access: Option<List>,
}

impl Handle {
    pub(crate) fn new(file: Arc<OpenFile>, kind: Kind, path: Option<String>) -> Self {
        Self { file, kind, path, access: None }
    }

    pub(crate) fn api(&self) -> &'static Api {
        self.file.api
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.file.engine
    }

    /// The pointer that libhdf5 gets; [`close`] takes it back.
    pub(crate) fn give(self) -> *mut c_void {
        let (file, is_file) = (self.file.clone(), matches!(self.kind, Kind::File));
        let pointer = Box::into_raw(Box::new(self)).cast::<c_void>();
        live().insert(pointer as usize);
        if is_file {
            let _ = file.pointer.compare_exchange(
                0,
                pointer as usize,
                Ordering::AcqRel,
                Ordering::Acquire,
            );
        }
        pointer
    }

    /// The handle behind a pointer that may be another connector's.
    pub(crate) fn find<'a>(pointer: *mut c_void) -> Option<&'a Self> {
        // SAFETY: the pointer was given and not closed.
        live().contains(&(pointer as usize)).then(|| unsafe { Self::at(pointer) })
    }

    /// The handle behind a pointer that libhdf5 gives.
    ///
    /// # Safety
    /// The pointer is one of [`give`](Self::give) that was not closed, and stays open for `'a`: libhdf5 closes nothing
    /// while a callback uses it.
    pub(crate) unsafe fn at<'a>(pointer: *mut c_void) -> &'a Self {
        // SAFETY: the caller's promise.
        unsafe { &*pointer.cast::<Self>() }
    }

    /// The object: of a file its root group, of an attribute what has it.
    pub(crate) fn object(&self) -> Result<Arc<Object>> {
        Ok(match &self.kind {
            Kind::File => self.engine().root()?,
            Kind::Group(object) | Kind::Datatype(object, _) => object.clone(),
            Kind::Dataset(state) => state.object().clone(),
            Kind::Attribute(open) => open.object.clone(),
        })
    }

    pub(crate) fn dataset(&self) -> Result<&Arc<DatasetState>> {
        match &self.kind {
            Kind::Dataset(held) => Ok(held.state()),
            _ => Err(Fault::Invalid("not a dataset".into())),
        }
    }

    pub(crate) fn attribute(&self) -> Result<&Open> {
        match &self.kind {
            Kind::Attribute(open) => Ok(open),
            _ => Err(Fault::Invalid("not an attribute".into())),
        }
    }

    /// `H5I_type_t` of what it is.
    pub(crate) fn id_type(&self) -> c_int {
        match &self.kind {
            Kind::File => id::FILE,
            Kind::Group(_) => id::GROUP,
            Kind::Dataset(_) => id::DATASET,
            Kind::Datatype(..) => id::DATATYPE,
            Kind::Attribute(_) => id::ATTR,
        }
    }

    /// Fails unless changes are allowed.
    pub(crate) fn changing(&self) -> Result<&Arc<Engine>> {
        if self.file.flags & file_flags::RDWR == 0 {
            let what = "the file is open for reading only: no write intent on file";
            return Err(Fault::Engine(pumice_engine::Error::ReadOnly(what.into())));
        }
        self.engine().relieve()?;
        Ok(self.engine())
    }

    /// Fails unless objects, links and attributes can be changed.
    pub(crate) fn changing_objects(&self) -> Result<&Arc<Engine>> {
        let engine = self.changing()?;
        engine.refuse_in_swmr("no object, link or attribute can be made, changed or deleted")?;
        Ok(engine)
    }

    /// A handle of an object of the same file.
    pub(crate) fn open(&self, object: &Arc<Object>, path: Option<String>) -> Result<Self> {
        open(&self.file, object, path)
    }

    /// Another handle of the same thing.
    pub(crate) fn again(&self) -> Result<Self> {
        let kind = match &self.kind {
            Kind::File => Kind::File,
            Kind::Group(object) => Kind::Group(object.clone()),
            Kind::Dataset(state) => Kind::Dataset(state.clone()),
            Kind::Datatype(object, datatype) => Kind::Datatype(object.clone(), datatype.clone()),
            Kind::Attribute(_) => return Err(Fault::Invalid("an attribute as a location".into())),
        };
        Ok(Self::new(self.file.clone(), kind, self.path.clone()))
    }

    /// The path of what is at `name` from here.
    pub(crate) fn child_path(&self, name: &str) -> Option<String> {
        let from = match &self.kind {
            _ if name.starts_with('/') => "",
            Kind::File => "",
            _ => self.path.as_deref()?,
        };
        let parts = from.split('/').chain(name.split('/'));
        let mut path = String::new();
        for part in parts.filter(|part| !part.is_empty() && *part != ".") {
            path.push('/');
            path.push_str(part);
        }
        if path.is_empty() {
            path.push('/');
        }
        Some(path)
    }

    /// Registers it as an identifier for the program. Only inside a callback of libhdf5.
    pub(crate) fn register(self) -> Result<Hid> {
        let (api, id_type) = (self.api(), self.id_type());
        let pointer = self.give();
        // SAFETY: the pointer is a handle of this kind, and libhdf5 owns it from now on.
        let id = unsafe { (api.H5VLwrap_register)(pointer, id_type) };
        if id < 0 {
            // SAFETY: libhdf5 did not take it.
            unsafe { close(pointer) };
            return Err(Fault::Library("H5VLwrap_register"));
        }
        Ok(id)
    }
}

/// A handle of an object.
pub(crate) fn open(
    file: &Arc<OpenFile>,
    object: &Arc<Object>,
    path: Option<String>,
) -> Result<Handle> {
    let kind = if group::is_group(object) {
        Kind::Group(object.clone())
    } else if object.has(kind::LAYOUT) {
        let engine = &file.engine;
        let open = || DatasetState::open(engine, object);
        Kind::Dataset(Held::new(engine.dataset(object.address(), open)?))
    } else if object.has(kind::DATATYPE) {
        Kind::Datatype(object.clone(), attribute::object_datatype(&file.engine, object)?)
    } else {
        return Err(Fault::Invalid("neither group nor dataset nor datatype".into()));
    };
    Ok(Handle::new(file.clone(), kind, path))
}

/// A handle of an attribute.
pub(crate) fn open_attribute(
    file: &Arc<OpenFile>,
    object: &Arc<Object>,
    found: attribute::Attribute,
    path: Option<String>,
) -> Handle {
    let name = file.attribute_name(object.address(), &found.name);
    let utf8 = !found.name.is_ascii();
    let attribute::Attribute { datatype, extent, committed, .. } = found;
    let open = Open { object: object.clone(), name, datatype, extent, committed, utf8 };
    Handle::new(file.clone(), Kind::Attribute(open), path)
}

/// Closes what a pointer led to.
///
/// # Safety
/// The pointer is one of [`Handle::give`], and is not used again.
pub(crate) unsafe fn close(pointer: *mut c_void) {
    live().remove(&(pointer as usize));
    // SAFETY: the caller's promise.
    let handle = unsafe { Box::from_raw(pointer.cast::<Handle>()) };
    let own = pointer as usize;
    let _ = handle.file.pointer.compare_exchange(own, 0, Ordering::AcqRel, Ordering::Acquire);
    let address = match &handle.kind {
        Kind::File | Kind::Attribute(_) => return,
        _ => handle.object().map(|object| object.address()),
    };
    let file = handle.file.clone();
    drop(handle);
    if let Ok(address) = address {
        file.give_up(address);
    }
}

/// Pointers that libhdf5 has.
fn live() -> MutexGuard<'static, HashSet<usize>> {
    static LIVE: LazyLock<Mutex<HashSet<usize>>> = LazyLock::new(Mutex::default);
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A name that libhdf5 gives.
///
/// # Safety
/// The pointer is null or leads to text that ends with a null byte and stays for the call.
pub(crate) unsafe fn text<'a>(pointer: *const c_char) -> Result<&'a str> {
    if pointer.is_null() {
        return Err(Fault::Invalid("no name".into()));
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map_err(|_| {
        Fault::Unsupported(format!("names that are no UTF-8, as {}", text.to_string_lossy()))
    })
}

/// Puts text into a buffer of the program, cut to its size and ended with a null byte.
///
/// # Safety
/// The buffer is null or has `size` bytes.
pub(crate) unsafe fn put_text(text: &str, buffer: *mut c_char, size: usize) {
    if buffer.is_null() || size == 0 {
        return;
    }
    let count = text.len().min(size - 1);
    // SAFETY: the caller's promise; one byte stays for the end.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr(), buffer.cast(), count);
        *buffer.add(count) = 0;
    }
}

/// Takes note that a callback reached the engine.
pub(crate) fn count_call() {
    CALLS.fetch_add(1, Ordering::Relaxed);
}

/// The token of an address.
pub(crate) fn token(address: u64) -> Token {
    let mut token = Token::default();
    token.0[..8].copy_from_slice(&address.to_le_bytes());
    token
}

/// The address of a token.
pub(crate) fn address(token: &Token) -> u64 {
    u64::from_le_bytes(token.0[..8].try_into().unwrap_or_default())
}
