//! Ranks whose messages an object of Python carries.
//!
//! The object has `send(to, bytes)`, `receive(from)`, which returns bytes or says why there are none, and
//! `abort(reason)`. What is built on messages is that of the trait, so every wait has an end: mpi4py's own
//! collective calls have none. The interpreter is held inside these calls only.

use pumice_comm::{CommError, Communicator};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::time::Duration;

/// One of several ranks.
pub(crate) struct PyMessages {
    object: Py<PyAny>,
    rank: usize,
    size: usize,
    limit: Duration,
}

impl PyMessages {
    pub(crate) fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (rank, size) = (object.getattr("rank")?.extract()?, object.getattr("size")?.extract()?);
        let limit = Duration::from_secs_f64(object.getattr("limit")?.extract()?);
        Ok(Self { object: object.clone().unbind(), rank, size, limit })
    }

    fn call<T>(
        &self,
        act: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<Result<T, CommError>>,
    ) -> Result<T, CommError> {
        Python::attach(|py| {
            let done = act(self.object.bind(py));
            done.unwrap_or_else(|error| Err(CommError::Transport(error.to_string())))
        })
    }

    /// A message, or why there is none: `None` for silence, a rank and its reason for one that has given up.
    fn taken(&self, from: usize, found: &Bound<'_, PyAny>) -> PyResult<Result<Vec<u8>, CommError>> {
        if let Ok(bytes) = found.cast::<PyBytes>() {
            return Ok(Ok(bytes.as_bytes().to_vec()));
        }
        if found.is_none() {
            return Ok(Err(CommError::Silent { rank: from, limit: self.limit }));
        }
        let (rank, reason) = found.extract()?;
        Ok(Err(CommError::Aborted { rank, reason }))
    }
}

impl Communicator for PyMessages {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn time_limit(&self) -> Duration {
        self.limit
    }

    fn send(&self, to: usize, message: Vec<u8>) -> Result<(), CommError> {
        if to >= self.size {
            return Err(CommError::NoRank(to));
        }
        self.call(|object| {
            let message = PyBytes::new(object.py(), &message);
            object.call_method1("send", (to, message)).map(|_| Ok(()))
        })
    }

    fn receive(&self, from: usize) -> Result<Vec<u8>, CommError> {
        if from >= self.size {
            return Err(CommError::NoRank(from));
        }
        self.call(|object| self.taken(from, &object.call_method1("receive", (from,))?))
    }

    fn abort(&self, reason: &str) {
        // Who cannot be told finds out by the time limit.
        let _ = self.call(|object| object.call_method1("abort", (reason,)).map(|_| Ok(())));
    }
}
