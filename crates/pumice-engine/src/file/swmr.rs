//! One writer, many readers (SWMR), and refreshing what others have written.
//!
//! A writer starts SWMR when all objects exist. From then on the superblock is marked, the lock
//! lets readers in, and commits write in an order that readers can follow (`medium/swmr.rs`). SWMR
//! ends when the file is closed.

use super::File;
use crate::dataset::DatasetState;
use crate::{Error, Result};
use pumice_format::superblock::{OPEN_FOR_SWMR_WRITING, OPEN_FOR_WRITING};
use pumice_medium::Swmr;
use pumice_store::Renewal;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

impl File {
    /// Whether other programs may write the file while it is read, or read it while it is written.
    pub fn is_swmr(&self) -> bool {
        self.medium.reads_swmr() || self.medium.writes_swmr()
    }

    /// Lets other programs read the file while this one goes on writing: HDF5's `H5Fstart_swmr_write`. All that
    /// changed up to now is committed.
    pub fn start_swmr_write(&self) -> Result<()> {
        self.medium.require_writable()?;
        if self.medium.writes_swmr() {
            return Err(Error::Invalid(
                "SWMR was started already; it ends when the file is closed".into(),
            ));
        }
        let version = self.superblock.version;
        if version < 3 {
            return Err(Error::Invalid(format!(
                "SWMR needs a file for HDF5 1.10 or later (a superblock of version 3), and this one has version \
                 {version}; `pumice repack --low=2` makes such a file"
            )));
        }
        if self.medium.is_family() || self.medium.ends().0.len() > 1 {
            let what = "SWMR in a file that consists of several";
            return Err(Error::Unsupported(what.into()));
        }
        self.commit()?;
        let _one_at_a_time = self.commit.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.marks.load(Ordering::Relaxed);
        self.medium.set_swmr(Swmr::Writing);
        let started = self
            .write_marks(OPEN_FOR_WRITING | OPEN_FOR_SWMR_WRITING)
            .and_then(|()| self.place.get().map_or(Ok(()), |place| place.let_readers_in()));
        if started.is_err() {
            self.medium.set_swmr(Swmr::Off);
            // The first error says more.
            let _ = self.write_marks(before);
        }
        started.map_err(|error| self.in_this_file(error))
    }

    /// Refuses changes of objects, links and attributes while other programs may be reading.
    pub fn refuse_in_swmr(&self, what: &str) -> Result<()> {
        self.medium.refuse_in_swmr(what)
    }

    /// Reads again what another program may have written: the headers of all objects with handles,
    /// and indexes. Does nothing in a file that is open for editing.
    ///
    /// An object that cannot be read stays as it was; the first such error is returned at the end.
    pub fn refresh(&self) -> Result<()> {
        if self.writable() {
            return Ok(());
        }
        let _one_at_a_time = self.commit.lock().unwrap_or_else(PoisonError::into_inner);
        // No read may use metadata of one state for bytes of another.
        self.renew(Renewal::Stop)?;
        if self.medium.is_unlocked() {
            self.open_datasets().iter().for_each(|dataset| dataset.wait_for_reads());
        }
        self.renew(Renewal::Look)?;
        self.check_same()?;
        self.heap.forget_read();
        self.shared_heaps.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.forget_unused();
        let mut refreshed = Ok(());
        for object in self.objects_in_memory() {
            refreshed = refreshed.and(object.refresh());
        }
        for dataset in self.open_datasets() {
            refreshed = refreshed.and(dataset.refresh(self));
        }
        // Chunks that a dataset read before its own refresh.
        self.heap.forget_read();
        // Otherwise objects that were not refreshed would be read by their old metadata.
        if refreshed.is_ok() || !self.medium.is_unlocked() {
            self.renew(Renewal::Done)?;
        }
        refreshed
    }

    /// Refreshes one dataset, or all that is open where all must be of one state.
    pub fn refresh_dataset(&self, dataset: &DatasetState) -> Result<()> {
        if self.medium.is_unlocked() { self.refresh() } else { dataset.refresh(self) }
    }

    fn renew(&self, step: Renewal) -> Result<()> {
        self.medium.renew(step).map_err(|error| self.in_this_file(error))
    }

    /// Fails if the file is another than the one that was opened.
    fn check_same(&self) -> Result<()> {
        let found = self.medium.steady(|| self.medium.superblock())?;
        let (known, now) = (&self.superblock, &found);
        let same = known.root_address == now.root_address
            && known.sizes == now.sizes
            && known.extension_address == now.extension_address;
        if same { Ok(()) } else { Err(Error::Changed("another file was put in its place".into())) }
    }

    /// Forgets objects and datasets without handles.
    fn forget_unused(&self) {
        let mut datasets = self.datasets();
        let unused = datasets.remove_unused(|_| true);
        self.forgetting.note();
        drop(datasets);
        // Not while the list is held.
        drop(unused);
        self.objects().forget_idle();
    }
}
