//! Files behind a file driver of libhdf5 that Pumice does not have itself: h5py's file objects, and whatever a program
//! has registered.
//!
//! All calls of the driver are made by the thread that is in libhdf5, one after another: such a file has a context
//! without threads ([`context`]), for the driver may call functions of libhdf5, or of an interpreter that waits for
//! this thread.

use crate::abi::*;
use crate::fault::{Fault, Result};
use crate::library::{Api, c_text};
use pumice_store::Store;
use std::ffi::{c_int, c_uint, c_void};
use std::io;
use std::sync::{Mutex, PoisonError};

/// `H5FD_MEM_DEFAULT`.
const ANY: c_int = 0;
/// `H5F_ACC_CREAT`.
const CREATE: c_uint = 0x10;

/// An open file of a driver.
pub(crate) struct DriverStore {
    api: &'static Api,
    file: usize,
    turn: Mutex<()>,
}

impl DriverStore {
    /// Opens or creates a file with the driver of an access list.
    pub(crate) fn open(api: &'static Api, name: &str, flags: c_uint, fapl: Hid) -> Result<Self> {
        let name = c_text(name);
        let flags = if flags & file_flags::RDWR != 0 { flags } else { 0 };
        let flags = match flags & (file_flags::TRUNC | file_flags::EXCL) {
            0 => flags,
            _ => flags | CREATE,
        };
        // SAFETY: the name ends with a null byte, the list is open.
        let file = unsafe { (api.H5FDopen)(name.as_ptr(), flags, fapl, u64::MAX) };
        match file.is_null() {
            true => Err(Fault::Library("H5FDopen")),
            false => Ok(Self { api, file: file as usize, turn: Mutex::new(()) }),
        }
    }

    /// Calls the driver, alone.
    fn alone(&self, what: &str, call: impl FnOnce(*mut c_void) -> Herr) -> io::Result<()> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        match call(self.file as *mut c_void) {
            FAIL => Err(io::Error::other(format!("the file driver failed to {what}"))),
            _ => Ok(()),
        }
    }

    /// Lets the driver know that the file reaches at least up to an address: it refuses others.
    fn reach(&self, file: *mut c_void, end: u64) -> Herr {
        // SAFETY: the file is open.
        unsafe { (self.api.H5FDset_eoa)(file, ANY, end.max((self.api.H5FDget_eof)(file, ANY))) }
    }
}

impl Store for DriverStore {
    fn len(&self) -> io::Result<u64> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the file is open.
        match unsafe { (self.api.H5FDget_eof)(self.file as *mut c_void, ANY) } {
            u64::MAX => Err(io::Error::other("the file driver does not say how long the file is")),
            length => Ok(length),
        }
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = offset.saturating_add(buffer.len() as u64);
        if end > self.len()? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.alone("read", |file| {
            if self.reach(file, end) < 0 {
                return FAIL;
            }
            let (size, bytes) = (buffer.len(), buffer.as_mut_ptr().cast());
            // SAFETY: the file is open, the buffer has so many bytes.
            unsafe { (self.api.H5FDread)(file, ANY, DEFAULT, offset, size, bytes) }
        })
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let (end, now) = (offset.saturating_add(bytes.len() as u64), self.len()?);
        if offset > now {
            self.set_len(offset)?;
        }
        self.alone("write", |file| {
            if self.reach(file, end) < 0 {
                return FAIL;
            }
            let (size, bytes) = (bytes.len(), bytes.as_ptr().cast());
            // SAFETY: the file is open, there are so many bytes.
            unsafe { (self.api.H5FDwrite)(file, ANY, DEFAULT, offset, size, bytes) }
        })
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let now = self.len()?;
        if len > now {
            // Not every driver makes a file longer by cutting it.
            return self.write_at(now, &vec![0; (len - now) as usize]);
        }
        self.alone("change the length", |file| {
            // SAFETY: the file is open; the driver makes it as long as the end that it is told.
            unsafe {
                match (self.api.H5FDset_eoa)(file, ANY, len) {
                    FAIL => FAIL,
                    _ => (self.api.H5FDtruncate)(file, DEFAULT, false),
                }
            }
        })
    }

    fn sync(&self) -> io::Result<()> {
        // SAFETY: the file is open.
        self.alone("flush", |file| unsafe { (self.api.H5FDflush)(file, DEFAULT, false) })
    }
}

impl Drop for DriverStore {
    fn drop(&mut self) {
        // SAFETY: the file is open, and not used again.
        unsafe { (self.api.H5FDclose)(self.file as *mut c_void) };
    }
}
