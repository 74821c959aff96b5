//! A progress bar for work that turns out to be long, if somebody looks at standard error.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Work that ends sooner shows no bar.
const PATIENCE: Duration = Duration::from_millis(500);

/// How far the reading of an input is.
pub(crate) struct Progress {
    done: Arc<AtomicU64>,
    total: Option<u64>,
    wanted: bool,
    started: Instant,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Progress in an input of `total` bytes, if that is known.
    pub(crate) fn new(total: Option<u64>) -> Self {
        Self {
            done: Arc::default(),
            total,
            wanted: io::stderr().is_terminal(),
            started: Instant::now(),
            bar: None,
        }
    }

    /// Counts what is read through the returned reader.
    pub(crate) fn watch<R: Read>(&self, inner: R) -> Watched<R> {
        Watched { inner, done: self.done.clone() }
    }

    /// Notes that so much more is done.
    pub(crate) fn advance(&mut self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
        self.update();
    }

    /// Shows how far it is, if it is time to.
    pub(crate) fn update(&mut self) {
        if !self.wanted || self.started.elapsed() < PATIENCE {
            return;
        }
        let total = self.total;
        let bar = self.bar.get_or_insert_with(|| {
            let target = ProgressDrawTarget::stderr_with_hz(5);
            let template = match total {
                Some(_) => "{bar:40} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left",
                None => "{spinner} {bytes}, {bytes_per_sec}",
            };
            let style = ProgressStyle::with_template(template);
            let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
            ProgressBar::with_draw_target(total, target).with_style(style)
        });
        bar.set_position(self.done.load(Ordering::Relaxed));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A reader whose bytes are counted.
pub(crate) struct Watched<R> {
    inner: R,
    done: Arc<AtomicU64>,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.done.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}
