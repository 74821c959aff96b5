//! The recorder of a cache's accesses.

use std::any::Any;
use std::io::Write;

use pumice_cache::{ChunkCache, Layout, Observer, Usage};

use super::{Access, Numbers, TraceError, TraceWriter};

/// The target of a trace.
type Sink = Box<dyn Write + Send>;

/// Writes accesses in the order in which the cache reports them. After an error it writes nothing
/// more.
struct Recorder {
    writer: TraceWriter<Sink>,
    numbers: Numbers,
    error: Option<TraceError>,
}

impl Observer for Recorder {
    fn used(&mut self, identity: u64, bytes: u64, usage: Usage) {
        if self.error.is_some() {
            return;
        }
        let Usage { dataset, write, done, .. } = usage;
        let (chunk, _) = self.numbers.number(identity);
        self.error = self.writer.write(&Access { chunk, dataset, bytes, write, done }).err();
    }
}

impl Recorder {
    fn finish(self) -> Result<(), TraceError> {
        let finished = self.writer.finish();
        match self.error {
            Some(error) => Err(error),
            None => finished?.flush().map_err(TraceError::Io),
        }
    }
}

/// Records, from now on, which chunks of a cache are used and how.
///
/// A trace that is being recorded ends first, and its error is returned.
pub fn start<L: Layout>(
    cache: &ChunkCache<L>,
    to: impl Write + Send + 'static,
) -> Result<(), TraceError> {
    stop(cache)?;
    let writer = TraceWriter::new(Box::new(to) as Sink)?;
    let recorder = Recorder { writer, numbers: Numbers::default(), error: None };
    finish(cache.observe(Some(Box::new(recorder))))
}

/// Ends the recording, if there is one; returns the first error that it met.
///
/// Another observer that is in the recorder's place goes.
pub fn stop<L: Layout>(cache: &ChunkCache<L>) -> Result<(), TraceError> {
    finish(cache.observe(None))
}

fn finish(observer: Option<Box<dyn Observer>>) -> Result<(), TraceError> {
    let observer = observer.map(|observer| observer as Box<dyn Any>);
    match observer.map(|observer| observer.downcast::<Recorder>()) {
        Some(Ok(recorder)) => recorder.finish(),
        Some(Err(_)) | None => Ok(()),
    }
}
