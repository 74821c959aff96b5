//! A progress bar for long work, if standard error is a terminal.

use crate::{formats, numbers};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt;
use std::io::{self, IsTerminal};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Work that ends sooner shows no bar.
const PATIENCE: Duration = Duration::from_millis(500);

/// The unit of progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Bytes,
    Entries,
}

/// The progress of work, parts of which several threads may do.
pub(crate) struct Progress {
    done: AtomicU64,
    total: AtomicU64,
    unit: Unit,
    wanted: bool,
    started: Instant,
    bar: Mutex<Option<ProgressBar>>,
}

impl Progress {
    /// Work of `total` bytes or entries.
    pub(crate) fn new(total: u64, unit: Unit) -> Self {
        let wanted = io::stderr().is_terminal();
        let bar = Mutex::default();
        let total = AtomicU64::new(total);
        Self { done: AtomicU64::new(0), total, unit, wanted, started: Instant::now(), bar }
    }

    /// A bar that is not shown.
    pub(crate) fn hidden() -> Self {
        let mut progress = Self::new(0, Unit::Bytes);
        progress.wanted = false;
        progress
    }

    /// There is more to do than was known.
    pub(crate) fn expect(&self, count: u64) {
        let total = self.total.fetch_add(count, Ordering::Relaxed) + count;
        if let Ok(bar) = self.bar.lock()
            && let Some(bar) = &*bar
        {
            bar.set_length(total);
        }
    }

    /// Adds finished work, and updates the bar if it is time to.
    pub(crate) fn add(&self, count: u64) {
        let done = self.done.fetch_add(count, Ordering::Relaxed) + count;
        if !self.wanted || self.started.elapsed() < PATIENCE {
            return;
        }
        if let Ok(mut bar) = self.bar.lock() {
            bar.get_or_insert_with(|| self.new_bar())
                .set_position(done.min(self.total.load(Ordering::Relaxed)));
        }
    }

    fn new_bar(&self) -> ProgressBar {
        let template = match self.unit {
            Unit::Bytes => {
                "{bar:32.cyan/238} {percent:>3} %  {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left"
            }
            Unit::Entries => {
                "{bar:32.cyan/238} {percent:>3} %  {human_pos} of {human_len} entries, {rate}, {eta} left"
            }
        };
        let style = ProgressStyle::with_template(template);
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("━━╌");
        let style = style.with_key("rate", |state: &ProgressState, out: &mut dyn fmt::Write| {
            // A bar has no way to fail.
            let _ = write!(out, "{}/s", numbers::grouped(state.per_sec() as u64));
        });
        let target = ProgressDrawTarget::stderr_with_hz(5);
        let bar = ProgressBar::with_draw_target(Some(self.total.load(Ordering::Relaxed)), target)
            .with_style(style);
        // The rate is that of all the work, not that since the bar appeared.
        bar.with_elapsed(self.started.elapsed())
    }
}

impl formats::Progress for Progress {
    fn add(&self, count: u64) {
        self.add(count);
    }

    fn expect(&self, count: u64) {
        self.expect(count);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Ok(bar) = self.bar.get_mut()
            && let Some(bar) = bar
        {
            bar.finish_and_clear();
        }
    }
}
