//! Ranks with caches of their own, and one process that does what they do.

use pumice::{Context, DatasetBuilder, File};
use pumice_collective::{CollectiveDataset, CollectiveFile, CollectiveOptions, Result};
use pumice_comm::{Communicator, ThreadComm, run};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Longer than anything takes that is in nobody's way.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// Options of a rank with one thread and a small cache of its own.
pub(crate) fn options() -> CollectiveOptions {
    CollectiveOptions::new().context(&context())
}

pub(crate) fn context() -> Context {
    Context::builder().threads(1).cache_bytes(4 << 20).build().unwrap()
}

pub(crate) fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    (folder, path)
}

/// Runs a program as ranks, all of which must succeed.
pub(crate) fn ranks<T: Send>(
    size: usize,
    program: impl Fn(Arc<dyn Communicator>) -> Result<T> + Sync,
) -> Vec<T> {
    let found = run(size, LIMIT, |comm: ThreadComm| program(Arc::new(comm)));
    let one = |(rank, done): (usize, std::thread::Result<Result<T>>)| match done {
        Ok(Ok(value)) => value,
        Ok(Err(error)) => panic!("rank {rank}: {error}"),
        Err(_) => panic!("rank {rank} panicked"),
    };
    found.into_iter().enumerate().map(one).collect()
}

/// Ranks create a file and do something with it.
pub(crate) fn created(
    size: usize,
    path: &Path,
    program: impl Fn(&CollectiveFile, usize) -> Result<()> + Sync,
) -> Vec<u8> {
    ranks(size, |comm| {
        let rank = comm.rank();
        let file = CollectiveFile::create_with(comm, path, options())?;
        program(&file, rank)?;
        file.close()
    });
    std::fs::read(path).unwrap()
}

/// One process without ranks does the same.
pub(crate) fn plainly(path: &Path, program: impl FnOnce(&File) -> pumice::Result<()>) -> Vec<u8> {
    let file = File::options().context(&context()).create(path).unwrap();
    program(&file).unwrap();
    file.close().unwrap();
    std::fs::read(path).unwrap()
}

pub(crate) type Describe = fn(&File) -> DatasetBuilder;

/// What tells datasets of a kind apart.
pub(crate) fn make(file: &CollectiveFile, describe: Describe) -> Result<CollectiveDataset> {
    file.create_dataset("group/data", describe)
}
