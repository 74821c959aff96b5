//! The threads that send requests: two for the whole process, begun with the first object.

use crate::fault::Fault;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::runtime::{Builder, Runtime};

/// Enough for encryption and copying of what a fast network brings; waiting takes no thread.
const THREADS: usize = 2;

/// The runtime, and the process that it belongs to: a child of a fork has none of its threads.
static RUNTIME: Mutex<Option<(u32, Arc<Runtime>)>> = Mutex::new(None);

/// The threads of this process.
pub(crate) fn runtime() -> Result<Arc<Runtime>, Fault> {
    let mut known = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some((owner, runtime)) = &*known
        && *owner == process
    {
        return Ok(runtime.clone());
    }
    let built = Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_name("pumice-remote")
        .enable_all()
        .build();
    let runtime = Arc::new(built.map_err(|error| {
        let what = format!("no thread can be started to send requests: {error}");
        Fault::new(io::ErrorKind::Other, what)
    })?);
    // The parent's runtime must not be taken down here: its threads do not exist.
    std::mem::forget(known.replace((process, runtime.clone())));
    Ok(runtime)
}
