//! The datasets of a file in memory, each once for all handles. Datasets without handles stay until
//! there are many; then they are forgotten.
//!
//! Invariant: a dataset that is forgotten has nothing for the next commit. It is written back while
//! the list is free, since a commit may wait for the list; a caller who asks for it meanwhile keeps
//! it. For the same reason no dataset is dropped while the list is held.

use super::listed::Listed;
use super::{File, IDLE};
use crate::dataset::DatasetState;
use crate::{Error, Result};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

/// Datasets that are flushed before they are forgotten. A larger number makes it likelier that one
/// is used meanwhile.
const TOGETHER: usize = 64;

/// The state of forgetting datasets.
#[derive(Default)]
pub(super) struct Forgetting {
    /// The number of datasets that the last pass left. Held during a pass.
    kept: Mutex<usize>,
    /// Counts passes; changes only while the list is held.
    times: AtomicU64,
}

impl Forgetting {
    /// Counts a pass. The list is held.
    pub(super) fn note(&self) {
        self.times.fetch_add(1, Ordering::Release);
    }
}

impl File {
    /// The dataset at `address`; `open` makes it if it is not in memory.
    pub fn dataset(
        &self,
        address: u64,
        open: impl Fn() -> Result<DatasetState>,
    ) -> Result<Arc<DatasetState>> {
        if let Some(dataset) = self.datasets().get(address) {
            return Ok(dataset.handed_out());
        }
        self.forget_idle_datasets()?;
        loop {
            let times = self.forgetting.times.load(Ordering::Acquire);
            let opened = Arc::new(self.medium.steady(&open)?);
            if let Some(dataset) = self.list(address, &opened, times)? {
                return Ok(dataset);
            }
        }
    }

    /// Adds a dataset that was just created, which nobody can find yet.
    pub fn new_dataset(&self, made: DatasetState) -> Result<Arc<DatasetState>> {
        self.forget_idle_datasets()?;
        let made = Arc::new(made);
        let before = self.datasets().insert(made.object().address(), made.clone());
        // An older dataset at this address no longer exists.
        drop(before);
        Ok(made)
    }

    /// Takes a dataset in, or finds the one that another thread has opened meanwhile. `None`: some were
    /// forgotten since, and this one may be among them, changed after it was opened here.
    fn list(
        &self,
        address: u64,
        opened: &Arc<DatasetState>,
        times: u64,
    ) -> Result<Option<Arc<DatasetState>>> {
        let mut datasets = self.datasets();
        if let Some(dataset) = datasets.get(address) {
            return Ok(Some(dataset.handed_out()));
        }
        // Who deletes it forgets it afterwards: it must not be listed again, for another may come to be at
        // its address.
        if opened.object().is_deleted() {
            return Err(Error::NotFound("the object has been deleted".into()));
        }
        if self.forgetting.times.load(Ordering::Acquire) != times {
            return Ok(None);
        }
        datasets.insert(address, opened.clone());
        Ok(Some(opened.clone()))
    }

    /// Makes room in the list, if it has grown a good deal since the last time; one thread at a time.
    fn forget_idle_datasets(&self) -> Result<()> {
        let mut kept = match self.forgetting.kept.try_lock() {
            Ok(kept) => kept,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(()),
        };
        let idle = {
            let datasets = self.datasets();
            if datasets.len() < IDLE.max(*kept + IDLE / 4) {
                return Ok(());
            }
            datasets.unused()
        };
        for some in idle.chunks(TOGETHER) {
            self.forget_datasets(some)?;
        }
        *kept = self.datasets().len();
        Ok(())
    }

    /// Forgets datasets that were found idle and are still.
    fn forget_datasets(&self, idle: &[(u64, Arc<DatasetState>)]) -> Result<()> {
        let mut datasets = self.datasets();
        // One handle is ours.
        let idle: Vec<_> =
            idle.iter().filter(|(address, _)| !datasets.is_used(*address, 1)).collect();
        idle.iter().for_each(|(_, dataset)| dataset.watch());
        drop(datasets);
        let mut flushed = Vec::with_capacity(idle.len());
        for (address, dataset) in idle {
            // Datasets with refused chunks stay.
            if dataset.flush_all(&self.cache)? {
                flushed.push((address, dataset));
            }
        }
        let mut forgotten = Vec::new();
        datasets = self.datasets();
        for (address, dataset) in flushed {
            // No handle was given out since the flush. Sources that wait for a commit are known
            // here only.
            let unused = !datasets.is_used(*address, 1) && !dataset.was_handed_out();
            if unused && !dataset.holds_sources() {
                forgotten.extend(datasets.remove(*address));
            }
        }
        self.forgetting.note();
        drop(datasets);
        drop(forgotten);
        Ok(())
    }

    /// Forgets a deleted object after `free` has given its space back, so that a new object there
    /// is listed after it. The caller drops the returned dataset when it holds no locks.
    pub fn forget(&self, address: u64, free: impl FnOnce()) -> Option<Arc<DatasetState>> {
        let (mut datasets, mut objects) = (self.datasets(), self.objects());
        free();
        objects.list.remove(address);
        datasets.remove(address)
    }

    pub(super) fn datasets(&self) -> MutexGuard<'_, Listed<DatasetState>> {
        self.datasets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
