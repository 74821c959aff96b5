//! A file that several ranks have open together.
//!
//! Rank 0 alone has it open for writing, and so owns allocator, indexes and commit. Every rank, rank 0 included,
//! reads the last commit through an opening of its own with its own cache.

use crate::call::Call;
use crate::dataset::CollectiveDataset;
use crate::entry::{Entry, bench};
use crate::gate::Gate;
use crate::{CollectiveError, CollectiveOptions, Result};
use pumice::{Context, Dataset, DatasetBuilder, File};
use pumice_comm::Communicator;
use pumice_store::{FileStore, Locking, Store};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// A file that several ranks have open together. All calls are collective unless they say otherwise.
///
/// Close it: a file that is dropped is left as at its last [`flush`](Self::flush).
#[derive(Clone)]
pub struct CollectiveFile {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) comm: Arc<dyn Communicator>,
    pub(crate) path: PathBuf,
    pub(crate) context: Context,
    pub(crate) options: CollectiveOptions,
    /// What rank 0's file is written through.
    gate: Option<Arc<Gate>>,
    /// What this rank writes its chunks to.
    writes: OnceLock<Arc<dyn Store>>,
    pub(crate) state: Mutex<State>,
}

pub(crate) struct State {
    /// The file, open for writing; rank 0 alone has it.
    pub(crate) root: Option<File>,
    pub(crate) entries: Vec<Entry>,
    /// The last commit.
    pub(crate) view: Option<File>,
    /// Whether rank 0 has changed what no owner knows of: objects, attributes, data that is not in chunks.
    pub(crate) changed: bool,
    pub(crate) broken: Option<String>,
}

impl State {
    pub(crate) fn check(&self) -> Result<()> {
        self.broken.as_ref().map_or(Ok(()), |reason| Err(CollectiveError::Broken(reason.clone())))
    }
}

impl Inner {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_root(&self) -> bool {
        self.comm.rank() == 0
    }

    pub(crate) fn shut(&self) {
        if let Some(gate) = &self.gate {
            gate.shut();
        }
    }

    fn release(&self) {
        if let Some(gate) = &self.gate {
            gate.release();
        }
    }

    /// What this rank writes its chunks to.
    pub(crate) fn chunk_store(&self) -> Result<&Arc<dyn Store>> {
        if let Some(store) = self.writes.get() {
            return Ok(store);
        }
        let store = self.options.wrapped(FileStore::open_writable(&self.path)?);
        Ok(self.writes.get_or_init(|| store))
    }

    /// The file as the last commit left it.
    pub(crate) fn view(&self, state: &mut State) -> Result<File> {
        if state.view.is_none() {
            let options = File::options().context(&self.context);
            state.view = Some(options.open_in(Arc::new(FileStore::open(&self.path)?))?);
        }
        Ok(state.view.clone().expect("it has just been opened"))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Before the fields: a file that is dropped would commit.
        let broken = self.state.get_mut().unwrap_or_else(PoisonError::into_inner).broken.is_some();
        if !broken {
            self.shut();
            self.comm.abort("the file was dropped without being closed");
        }
    }
}

impl CollectiveFile {
    /// Creates a file, or empties the one that is there.
    pub fn create(comm: Arc<dyn Communicator>, path: impl AsRef<Path>) -> Result<Self> {
        Self::create_with(comm, path, CollectiveOptions::default())
    }

    /// Opens a file for reading and writing.
    pub fn open(comm: Arc<dyn Communicator>, path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(comm, path, CollectiveOptions::default())
    }

    /// Creates a file with these options.
    pub fn create_with(
        comm: Arc<dyn Communicator>,
        path: impl AsRef<Path>,
        options: CollectiveOptions,
    ) -> Result<Self> {
        Self::begin(comm, path.as_ref(), options, true)
    }

    /// Opens a file with these options.
    pub fn open_with(
        comm: Arc<dyn Communicator>,
        path: impl AsRef<Path>,
        options: CollectiveOptions,
    ) -> Result<Self> {
        Self::begin(comm, path.as_ref(), options, false)
    }

    fn begin(
        comm: Arc<dyn Communicator>,
        path: &Path,
        options: CollectiveOptions,
        create: bool,
    ) -> Result<Self> {
        let context = options.context.clone().unwrap_or_else(Context::global);
        let opened = match comm.rank() {
            0 => open_root(path, &options, &context, create).map(Some),
            _ => Ok(None),
        };
        let (root, gate, failed) = match opened {
            Ok(Some((file, gate))) => (Some(file), Some(gate), None),
            Ok(None) => (None, None, None),
            Err(error) => (None, None, Some(error)),
        };
        let state = State { root, entries: Vec::new(), view: None, changed: create, broken: None };
        let (path, state, writes) = (path.to_path_buf(), Mutex::new(state), OnceLock::new());
        let inner = Arc::new(Inner { comm, path, context, options, gate, writes, state });
        let mut state = inner.state();
        let told = failed.map_or(Ok(vec![u8::from(create)]), Err);
        let all = inner.gather(&mut state, Call::Open, told);
        let agreed = all.and_then(|all| match all.windows(2).all(|two| two[0] == two[1]) {
            true => Ok(()),
            false => Err(CollectiveError::Disagree("one creates a file that another opens".into())),
        });
        if let Err(error) = agreed {
            // Nothing has happened: ranks can go on with another file.
            state.broken.get_or_insert_with(|| error.to_string());
            inner.shut();
            return Err(error);
        }
        drop(state);
        Ok(Self { inner })
    }

    /// The ranks that have the file open. Not a collective call.
    pub fn comm(&self) -> &Arc<dyn Communicator> {
        &self.inner.comm
    }

    /// Creates a dataset. `describe` is called with the file, and again with a file in memory.
    pub fn create_dataset(
        &self,
        path: &str,
        describe: impl Fn(&File) -> DatasetBuilder,
    ) -> Result<CollectiveDataset> {
        let inner = &self.inner;
        let mut state = inner.state();
        let entry =
            bench(&inner.context, &describe).and_then(|bench| Entry::new(path, bench, true));
        let (entry, told) = match entry {
            Ok(entry) => {
                let told = entry.description();
                (Some(entry), Ok(told))
            }
            Err(error) => (None, Err(error)),
        };
        let all = inner.gather(&mut state, Call::Create, told)?;
        let Some(mut entry) = entry else { return Err(CollectiveError::Broken(path.into())) };
        if all.iter().any(|other| *other != all[0]) {
            let what = format!("{path} is described differently");
            return Err(CollectiveError::Disagree(what));
        }
        let made = match &state.root {
            Some(file) => describe(file).create(path).map(Some).map_err(CollectiveError::from),
            None => Ok(None),
        };
        entry.root = inner.agree(&mut state, made)?;
        state.changed = true;
        Ok(self.listed(&mut state, entry))
    }

    /// Opens a dataset. What is not stored yet is flushed before.
    pub fn dataset(&self, path: &str) -> Result<CollectiveDataset> {
        let inner = &self.inner;
        let mut state = inner.state();
        let all = inner.gather(&mut state, Call::OpenDataset, Ok(path.as_bytes().to_vec()))?;
        if all.iter().any(|other| *other != all[0]) {
            let what = format!("ranks open different datasets, this one {path}");
            return Err(CollectiveError::Disagree(what));
        }
        if let Some(at) = state.entries.iter().position(|entry| entry.path == path) {
            return Ok(CollectiveDataset::new(self.clone(), at));
        }
        inner.store_changes(&mut state)?;
        let opened = self.open_entry(&mut state, path);
        let entry = inner.agree(&mut state, opened)?;
        Ok(self.listed(&mut state, entry))
    }

    fn open_entry(&self, state: &mut State, path: &str) -> Result<Entry> {
        let view = self.inner.view(state)?.dataset(path)?;
        let mut entry = Entry::open(path, view, &self.inner.context)?;
        if let Some(file) = &state.root {
            entry.root = Some(file.dataset(path)?);
        }
        Ok(entry)
    }

    fn listed(&self, state: &mut State, entry: Entry) -> CollectiveDataset {
        state.entries.push(entry);
        CollectiveDataset::new(self.clone(), state.entries.len() - 1)
    }

    /// Lets rank 0 change objects, links and attributes; others make the call as well, and learn of its outcome.
    ///
    /// It must not change datasets that are open collectively, but for their attributes.
    ///
    /// ```
    /// use pumice_collective::{CollectiveFile, comm::Alone};
    /// use std::sync::Arc;
    ///
    /// let folder = tempfile::tempdir().unwrap();
    /// let file = CollectiveFile::create(Arc::new(Alone::default()), folder.path().join("a.h5"))?;
    /// file.change(|file| file.create_group("runs")?.set_attribute("year", 2026))?;
    /// file.close()?;
    /// # Ok::<(), pumice_collective::CollectiveError>(())
    /// ```
    pub fn change(&self, change: impl FnOnce(&File) -> pumice::Result<()>) -> Result<()> {
        let inner = &self.inner;
        let mut state = inner.state();
        inner.gather(&mut state, Call::Change, Ok(Vec::new()))?;
        let done = match &state.root {
            Some(file) => change(file).map_err(CollectiveError::from),
            None => Ok(()),
        };
        state.changed = true;
        inner.agree(&mut state, done)
    }

    /// Fails on all ranks if one hands in an error: for what each has done by itself, such as finding the values of a
    /// write. The file can be used on.
    ///
    /// ```
    /// use pumice_collective::{CollectiveFile, comm::run};
    /// use std::{sync::Arc, time::Duration};
    ///
    /// let folder = tempfile::tempdir().unwrap();
    /// let path = folder.path().join("a.h5");
    /// let found = run(2, Duration::from_secs(30), |comm| {
    ///     let rank = comm.rank();
    ///     let file = CollectiveFile::create(Arc::new(comm), &path).unwrap();
    ///     let own = if rank == 1 { Err(pumice::Error::NotFound("values".into())) } else { Ok(()) };
    ///     let failed = file.agree(own).is_err();
    ///     file.close().unwrap();
    ///     failed
    /// });
    /// # use pumice_comm::Communicator;
    /// assert!(found.into_iter().all(Result::unwrap));
    /// ```
    pub fn agree(&self, own: pumice::Result<()>) -> Result<()> {
        let inner = &self.inner;
        inner.agree(&mut inner.state(), own.map_err(CollectiveError::from))
    }

    /// The file as all ranks' changes leave it, for reading by this rank with its own cache. Flushes if there are
    /// changes. Reading from it is not collective. It is of use until the next flush: then ask again, for space that it
    /// names may be used again.
    pub fn reader(&self) -> Result<File> {
        let inner = &self.inner;
        let mut state = inner.state();
        inner.gather_changes(&mut state, Call::Flush)?;
        let view = inner.view(&mut state);
        inner.agree(&mut state, view)
    }

    /// Stores everything in one commit.
    pub fn flush(&self) -> Result<()> {
        let inner = &self.inner;
        let mut state = inner.state();
        inner.gather_changes(&mut state, Call::Flush)?;
        inner.agree(&mut state, Ok(()))
    }

    /// Flushes and closes the file. Datasets of it can no longer be used.
    pub fn close(self) -> Result<()> {
        let inner = &self.inner;
        let mut state = inner.state();
        inner.gather_changes(&mut state, Call::Close)?;
        state.entries.clear();
        state.view = None;
        let closed = match state.root.take() {
            Some(file) => file.close().map_err(CollectiveError::from),
            None => Ok(()),
        };
        let closed = inner.agree(&mut state, closed);
        state.broken.get_or_insert_with(|| "it was closed".into());
        inner.release();
        closed
    }

    /// Gives the file up, as a rank does that cannot go on: it stays as at the last commit, and the other ranks get
    /// an error. Not a collective call.
    ///
    /// ```
    /// use pumice_collective::{CollectiveFile, comm::Alone};
    /// use std::sync::Arc;
    ///
    /// let folder = tempfile::tempdir().unwrap();
    /// let path = folder.path().join("a.h5");
    /// let file = CollectiveFile::create(Arc::new(Alone::default()), &path)?;
    /// file.flush()?;
    /// file.change(|file| file.create_group("runs").map(drop))?;
    /// file.abandon("out of stones");
    /// assert!(pumice::File::open(&path)?.group("runs").is_err());
    /// # Ok::<(), pumice_collective::CollectiveError>(())
    /// ```
    pub fn abandon(self, reason: &str) {
        let inner = &self.inner;
        let mut state = inner.state();
        inner.end(&mut state, reason);
        inner.shut();
        state.entries.clear();
        state.view = None;
        // What it would write is refused.
        drop(state.root.take());
        inner.release();
    }
}

impl Entry {
    /// What must be the same on all ranks.
    fn description(&self) -> Vec<u8> {
        let bench: &Dataset = &self.bench;
        let (shape, max, chunk) = (bench.shape(), bench.max_shape(), bench.chunk());
        let (datatype, layout) = (bench.datatype(), bench.layout());
        let (filters, fill) = (bench.section_filters(), bench.fill_value());
        let path = &self.path;
        format!("{path} {shape:?} {max:?} {chunk:?} {datatype:?} {layout:?} {filters:?} {fill:?}")
            .into()
    }
}

/// Opens the file for writing.
fn open_root(
    path: &Path,
    options: &CollectiveOptions,
    context: &Context,
    create: bool,
) -> Result<(File, Arc<Gate>)> {
    let failed = |source| {
        let action = format!("open {}", path.display());
        CollectiveError::File(pumice::Error::Io { action, source })
    };
    let opened =
        if create { FileStore::open_or_create(path) } else { FileStore::open_writable(path) };
    let store = opened.map_err(failed)?;
    let locking = options.locking.unwrap_or_else(Locking::from_environment);
    store.lock(locking, true).map_err(failed)?;
    if create && !store.is_empty().map_err(failed)? {
        store.set_len(0).map_err(failed)?;
    }
    let gate = Arc::new(Gate::new(options.wrapped(store)));
    let file = options.file.clone().unwrap_or_else(File::options);
    // A commit between two calls would be one that other ranks do not know of.
    let file = file.context(context).durability(options.durability).metadata_limit(usize::MAX);
    let file = match create {
        true => file.create_in(gate.clone())?,
        false => file.edit_in(gate.clone())?,
    };
    Ok((file, gate))
}

impl std::fmt::Debug for CollectiveFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (rank, size) = (self.inner.comm.rank(), self.inner.comm.size());
        let mut shown = f.debug_struct("CollectiveFile");
        shown.field("path", &self.inner.path).field("rank", &rank).field("size", &size);
        shown.finish_non_exhaustive()
    }
}
