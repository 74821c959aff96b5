//! Recording what a cache does.
//!
//! Off, it costs one relaxed load per access. On, accesses are written one after another, in the
//! order in which they reach the recorder: requests of different threads are interleaved.

use std::io::Write;

use super::{Access, Numbers, TraceError, TraceWriter};
use crate::sync::{AtomicBool, Mutex, Ordering};

/// Where a trace goes.
type Sink = Box<dyn Write + Send>;

/// A trace that may be recorded.
#[derive(Default)]
pub(crate) struct Recorder {
    on: AtomicBool,
    running: Mutex<Option<Running>>,
}

struct Running {
    writer: TraceWriter<Sink>,
    numbers: Numbers,
    error: Option<TraceError>,
}

impl Recorder {
    /// Begins a trace; one that is being recorded ends.
    pub(crate) fn start(&self, to: Sink) -> Result<(), TraceError> {
        self.stop()?;
        let writer = TraceWriter::new(to)?;
        *self.running.lock() = Some(Running { writer, numbers: Numbers::default(), error: None });
        self.on.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Ends the trace, if there is one; returns the first error that recording met.
    pub(crate) fn stop(&self) -> Result<(), TraceError> {
        self.on.store(false, Ordering::Relaxed);
        let Some(running) = self.running.lock().take() else { return Ok(()) };
        let finished = running.writer.finish();
        match running.error {
            Some(error) => Err(error),
            None => finished?.flush().map_err(TraceError::Io),
        }
    }

    /// Whether accesses are wanted.
    #[inline]
    pub(crate) fn on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// Adds an access to the chunk that `identity` names. After an error nothing is recorded.
    pub(crate) fn record(&self, identity: u64, access: Access) {
        let mut running = self.running.lock();
        let Some(Running { writer, numbers, error }) = &mut *running else { return };
        if error.is_some() {
            return;
        }
        let (chunk, _) = numbers.number(identity);
        if let Err(problem) = writer.write(&Access { chunk, ..access }) {
            *error = Some(problem);
        }
    }
}
