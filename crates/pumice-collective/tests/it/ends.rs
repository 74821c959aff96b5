//! A rank ends at any step: the others end with an error, and the file is as at a commit.

use crate::support::{LIMIT, context, folder, options, plainly};
use pumice::{File, Result as FileResult};
use pumice_collective::{CollectiveError, CollectiveFile, Result};
use pumice_comm::{CommError, Communicator, ThreadComm, run};
use pumice_store::{ReadOp, Store, WriteOp};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const RANKS: usize = 3;

/// Counts what a rank does, and ends it at some step.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    /// It panics.
    Panic,
    /// What it does fails, and it gives up.
    Fail,
    /// It waits for the others and is silent.
    Silence,
}

struct Fuse {
    left: AtomicU64,
    way: Way,
    blown: AtomicBool,
}

impl Fuse {
    fn step(&self) -> bool {
        if self.blown.load(Ordering::SeqCst) {
            return true;
        }
        let before =
            self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if before.is_ok() {
            return false;
        }
        self.blown.store(true, Ordering::SeqCst);
        if self.way == Way::Panic {
            // Without the message of a panic, of which there are many.
            std::panic::resume_unwind(Box::new("the fuse"));
        }
        true
    }
}

struct Fused<T>(T, Arc<Fuse>);

impl Communicator for Fused<ThreadComm> {
    fn rank(&self) -> usize {
        self.0.rank()
    }

    fn size(&self) -> usize {
        self.0.size()
    }

    fn time_limit(&self) -> Duration {
        self.0.time_limit()
    }

    fn send(&self, to: usize, message: Vec<u8>) -> std::result::Result<(), CommError> {
        match self.1.step() {
            true => Err(CommError::Transport("the fuse".into())),
            false => self.0.send(to, message),
        }
    }

    fn receive(&self, from: usize) -> std::result::Result<Vec<u8>, CommError> {
        match self.1.step() {
            true => Err(CommError::Transport("the fuse".into())),
            false => self.0.receive(from),
        }
    }

    fn abort(&self, reason: &str) {
        if self.1.way != Way::Silence || !self.1.blown.load(Ordering::SeqCst) {
            self.0.abort(reason);
        }
    }
}

impl Fused<Arc<dyn Store>> {
    fn step(&self) -> io::Result<()> {
        if self.1.step() { Err(io::Error::other("the fuse")) } else { Ok(()) }
    }
}

impl Store for Fused<Arc<dyn Store>> {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.0.read_at(offset, buffer)
    }

    fn read_vectored(&self, ops: &mut [ReadOp<'_>]) -> io::Result<()> {
        self.0.read_vectored(ops)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.step()?;
        // A rank can end in the middle of a write.
        self.0.write_at(offset, &bytes[..bytes.len() / 2])?;
        self.step()?;
        self.0.write_at(offset, bytes)
    }

    fn write_vectored(&self, ops: &[WriteOp<'_>]) -> io::Result<()> {
        ops.iter().try_for_each(|op| self.write_at(op.offset, op.bytes))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.step()?;
        self.0.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.step()?;
        self.0.sync()
    }
}

/// The values of the datasets after each commit.
fn state(file: &File) -> FileResult<(Vec<i32>, Vec<i32>, Vec<String>)> {
    Ok((
        file.dataset("dense")?.read(..)?,
        file.dataset("sparse")?.read(..)?,
        file.dataset("text")?.read(..)?,
    ))
}

fn begin(file: &File) -> FileResult<()> {
    file.new_dataset::<i32>()
        .shape([12])
        .chunk([4])
        .deflate(1)
        .create("dense")?
        .write(.., &[1; 12])?;
    file.new_dataset::<i32>()
        .shape([12])
        .chunk([4])
        .sparse()
        .create("sparse")?
        .write(2..7, &[1; 5])?;
    file.new_strings().shape([4]).chunk([2]).create("text")?.write(.., &["tuff"; 4])
}

/// Two commits; between them, a chunk goes and others come.
fn program(comm: Arc<dyn Communicator>, path: &Path, fuse: Option<Arc<Fuse>>) -> Result<()> {
    let rank = comm.rank() as u64;
    let options = match fuse {
        Some(fuse) => options().wrap_store(move |store| Arc::new(Fused(store, fuse.clone()))),
        None => options(),
    };
    let file = CollectiveFile::open_with(comm, path, options)?;
    let (dense, sparse, text) =
        (file.dataset("dense")?, file.dataset("sparse")?, file.dataset("text")?);
    for turn in 2..4 {
        dense.write(rank * 3..rank * 3 + 5, &[turn; 5])?;
        sparse.write(rank * 4 + 3, &[turn])?;
        sparse.erase(if rank == 1 { 4..8 } else { 0..1 })?;
        text.write(rank, &[format!("{turn} by {rank}")])?;
        file.flush()?;
    }
    file.close()
}

#[test]
fn a_rank_that_ends_at_any_step_ends_the_others_and_leaves_a_commit() {
    let (_folder, path) = folder();
    plainly(&path, begin);
    let before = std::fs::read(&path).unwrap();
    // The states that a file can be in.
    let mut states = vec![state(&File::open(&path).unwrap()).unwrap()];
    for turns in [2..3, 2..4] {
        std::fs::write(&path, &before).unwrap();
        let file = File::options().context(&context()).edit(&path).unwrap();
        for turn in turns {
            for rank in 0..RANKS as u64 {
                file.dataset("dense").unwrap().write(rank * 3..rank * 3 + 5, &[turn; 5]).unwrap();
                file.dataset("sparse").unwrap().write(rank * 4 + 3, &[turn]).unwrap();
                let name = format!("{turn} by {rank}");
                file.dataset("text").unwrap().write(rank, &[name]).unwrap();
            }
            file.dataset("sparse").unwrap().erase(4..8).unwrap();
            file.dataset("sparse").unwrap().erase(0..1).unwrap();
        }
        file.close().unwrap();
        states.push(state(&File::open(&path).unwrap()).unwrap());
    }
    let mut seen = [0; 3];
    for (victim, way) in [(0, Way::Panic), (2, Way::Panic), (0, Way::Fail), (1, Way::Fail)] {
        let mut steps = 0;
        loop {
            std::fs::write(&path, &before).unwrap();
            let fuse =
                Arc::new(Fuse { left: AtomicU64::new(steps), way, blown: AtomicBool::new(false) });
            let done = one_run(&path, victim, &fuse, LIMIT);
            let found = File::open(&path).and_then(|file| state(&file));
            let found = found.unwrap_or_else(|error| panic!("{victim} {way:?} {steps}: {error}"));
            let at = states.iter().position(|state| *state == found);
            let at = at.unwrap_or_else(|| panic!("{victim} {way:?} {steps}: {found:?}"));
            seen[at] += 1;
            if !fuse.blown.load(Ordering::SeqCst) {
                assert!(done.iter().all(Option::is_none), "{done:?}");
                assert_eq!(at, 2);
                break;
            }
            for (rank, done) in done.iter().enumerate().filter(|(rank, _)| *rank != victim) {
                assert!(
                    done.is_some() || at == 2,
                    "rank {rank} knows nothing: {victim} {way:?} {steps}"
                );
                let said = done.as_deref().unwrap_or_default();
                assert!(!said.contains("has not answered"), "rank {rank}: {said}");
            }
            // Whoever opens it next can go on.
            if steps % 16 == 0 {
                let file = File::edit(&path).unwrap();
                file.dataset("dense").unwrap().write(0, &[77]).unwrap();
                file.close().unwrap();
                assert_eq!(
                    File::open(&path).unwrap().dataset("dense").unwrap().read::<i32>(0).unwrap(),
                    [77]
                );
            }
            steps += 1;
        }
        assert!(steps > 50, "{steps} steps");
    }
    assert!(seen.iter().all(|&count| count > 10), "{seen:?}");
}

/// What each rank said in the end, if it was an error.
fn one_run(path: &Path, victim: usize, fuse: &Arc<Fuse>, limit: Duration) -> Vec<Option<String>> {
    let done = run(RANKS, limit, |comm| match comm.rank() == victim {
        true => {
            let comm = Arc::new(Fused(comm, fuse.clone()));
            let keep = comm.clone();
            let done = program(comm, path, Some(fuse.clone()));
            if fuse.way == Way::Silence && fuse.blown.load(Ordering::SeqCst) {
                // As long as the others have not given up.
                while keep.0.receive((victim + 1) % RANKS).is_ok() {}
            }
            done
        }
        false => program(Arc::new(comm), path, None),
    });
    let said = |done: std::thread::Result<Result<()>>| match done {
        Ok(done) => done.err().map(|error: CollectiveError| error.to_string()),
        Err(_) => Some("it panicked".into()),
    };
    done.into_iter().map(said).collect()
}

#[test]
fn a_rank_that_is_silent_is_waited_for_only_so_long() {
    let (_folder, path) = folder();
    plainly(&path, begin);
    let fuse = Fuse { left: AtomicU64::new(40), way: Way::Silence, blown: AtomicBool::new(false) };
    let done = one_run(&path, 1, &Arc::new(fuse), Duration::from_millis(200));
    assert!(done.iter().all(Option::is_some), "{done:?}");
    state(&File::open(&path).unwrap()).unwrap();
}
