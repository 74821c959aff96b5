//! Files in objects of Python that read, write and seek.
//!
//! One call at a time: a seek and its read or write belong together.

use pumice::Store;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::io;
use std::sync::{Mutex, PoisonError};

/// A file object of Python.
pub(crate) struct Stream {
    object: Py<PyAny>,
    turn: Mutex<()>,
}

impl Stream {
    pub(crate) fn new(object: Py<PyAny>) -> Self {
        Self { object, turn: Mutex::new(()) }
    }

    /// Does something with the object, alone. The lock is taken before the interpreter: its holder
    /// may wait for the interpreter, and a holder of the interpreter never waits for the lock.
    fn alone<R>(&self, act: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<R>) -> io::Result<R> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        Python::attach(|py| {
            act(self.object.bind(py)).map_err(|error| {
                let number = error.value(py).getattr("errno").and_then(|n| n.extract::<i32>());
                match number {
                    Ok(number) => io::Error::from_raw_os_error(number),
                    Err(_) => io::Error::other(error.to_string()),
                }
            })
        })
    }
}

impl Store for Stream {
    fn len(&self) -> io::Result<u64> {
        self.alone(|object| object.call_method1("seek", (0, 2))?.extract())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let found = self.alone(|object| {
            object.call_method1("seek", (offset,))?;
            let mut done = 0;
            while done < buffer.len() {
                let bytes = object.call_method1("read", (buffer.len() - done,))?;
                let bytes: &[u8] = bytes.extract()?;
                let new = bytes.len().min(buffer.len() - done);
                if new == 0 {
                    break;
                }
                buffer[done..done + new].copy_from_slice(&bytes[..new]);
                done += new;
            }
            Ok(done)
        })?;
        match found == buffer.len() {
            true => Ok(()),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.alone(|object| {
            let end: u64 = object.call_method1("seek", (0, 2))?.extract()?;
            if end < offset {
                // Not every object has a hole where nothing was written.
                let gap = vec![0; (offset - end) as usize];
                object.call_method1("write", (PyBytes::new(object.py(), &gap),))?;
            }
            object.call_method1("seek", (offset,))?;
            let mut rest = bytes;
            while !rest.is_empty() {
                let written = object.call_method1("write", (PyBytes::new(object.py(), rest),))?;
                let written = written.extract::<usize>().unwrap_or(rest.len());
                if written == 0 {
                    return Err(pyo3::exceptions::PyOSError::new_err("nothing could be written"));
                }
                rest = &rest[written.min(rest.len())..];
            }
            Ok(())
        })
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.alone(|object| {
            let end: u64 = object.call_method1("seek", (0, 2))?.extract()?;
            if end > len {
                object.call_method1("truncate", (len,))?;
            } else if end < len {
                let gap = vec![0; (len - end) as usize];
                object.call_method1("write", (PyBytes::new(object.py(), &gap),))?;
            }
            Ok(())
        })
    }

    fn sync(&self) -> io::Result<()> {
        self.alone(|object| match object.hasattr("flush")? {
            true => object.call_method0("flush").map(drop),
            false => Ok(()),
        })
    }
}
