//! An object as the engine's [`Store`].
//!
//! A read is answered from the first of these that has it: the head of the object, which came with the first answer;
//! ranges that were announced; blocks in memory. A small read that none of them has fetches blocks; others ask for
//! exactly what they want, near ranges together and long ones in pieces.

use crate::address::{self, Address};
use crate::ahead::Ahead;
use crate::blocks::{Blocks, Flight};
use crate::client::Client;
use crate::disk::Tier;
use crate::fault::Fault;
use crate::options::Options;
use crate::ranges::{self, common, requests};
use crate::statistics::{Counts, Statistics, add};
use crate::threads;
use crate::wire::Wire;
use pumice_store::{Announced, ReadOp, Store};
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

/// An object of an object store or a web server, for reading.
///
/// ```no_run
/// use pumice::File;
/// use pumice_remote::{Options, RemoteStore};
///
/// let store = RemoteStore::open("s3://bucket/cells.h5", &Options::new())?;
/// let file = File::options().open_in(store.clone())?;
/// println!("{} members, {:?}", file.members()?.len(), store.statistics());
/// # Ok::<(), pumice::Error>(())
/// ```
#[derive(Debug)]
pub struct RemoteStore {
    client: Arc<Client>,
    runtime: Arc<Runtime>,
    counts: Arc<Counts>,
    options: Options,
    length: u64,
    /// The first bytes of the object.
    head: Vec<u8>,
    blocks: Arc<Blocks>,
    ahead: Ahead,
    /// What requests that a thread waits for may hold, in kibibytes.
    flying: Arc<Semaphore>,
    /// The process that opened it, to which the threads belong.
    process: u32,
    /// Fetched ranges on disk.
    tier: Option<Arc<Tier>>,
    /// Where the last small read of raw data ended.
    last: AtomicU64,
}

/// A request of a read, which ends with it.
struct Task(AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl RemoteStore {
    /// The object at an address, after one request for its first bytes.
    pub fn open(address: &str, options: &Options) -> pumice::Result<Arc<Self>> {
        let opened = Self::begin(address, options).map_err(Fault::into_io);
        opened.map(Arc::new).map_err(|source| pumice::Error::Io { action: "open".into(), source })
    }

    fn begin(address: &str, options: &Options) -> Result<Self, Fault> {
        let runtime = threads::runtime()?;
        let counts = Arc::<Counts>::default();
        let address = Address::parse(address, Wire(counts.clone()), address::once())?;
        let client = Arc::new(Client::new(address, options, counts.clone()));
        let head = wait(&runtime, client.clone(), 0..options.first as u64)?;
        let length = client.identity().map_or(0, |identity| identity.length);
        let block = block_size(options.block, length);
        let blocks = Arc::new(Blocks::new(block, length, options.blocks, options.piece));
        let tier = match (&options.disk, client.identity()) {
            (Some(disk), Some(identity)) => {
                Tier::open(disk, client.name(), identity, counts.clone())?
            }
            _ => None,
        };
        let tier = tier.map(Arc::new);
        let (threads, counted) = (runtime.clone(), counts.clone());
        let ahead = Ahead::new(client.clone(), threads, counted, options.ahead, tier.clone());
        let flying = Arc::new(Semaphore::new((options.flying >> 10).max(1)));
        let options = options.clone();
        Ok(Self {
            client,
            runtime,
            counts,
            options,
            length,
            head,
            blocks,
            ahead,
            flying,
            process: std::process::id(),
            tier,
            last: AtomicU64::new(u64::MAX),
        })
    }

    /// The address, without secrets.
    pub fn name(&self) -> &str {
        self.client.name()
    }

    /// The ETag of the object, if the server gives one.
    pub fn etag(&self) -> Option<&str> {
        self.client.identity().and_then(|identity| identity.tag.as_deref())
    }

    /// What reading has taken so far.
    pub fn statistics(&self) -> Statistics {
        self.counts.now()
    }

    /// Whether this is a child of the process that opened the object.
    fn is_forked(&self) -> bool {
        self.process != std::process::id()
    }

    /// Copies what is at the head of the object; says whether all of it is.
    fn copy_head(&self, range: &Range<u64>, buffer: &mut [u8]) -> bool {
        let found = self.head.get(range.start as usize..range.end as usize);
        found.is_some_and(|found| {
            buffer.copy_from_slice(found);
            true
        })
    }

    /// Answers a read from what is here or under way; says whether that was possible.
    fn answer(&self, range: &Range<u64>, buffer: &mut [u8]) -> io::Result<bool> {
        if self.copy_head(range, buffer) || self.blocks.copy(range, buffer) {
            add(&self.counts.block_hits, 1);
            return Ok(true);
        }
        if self.is_forked() {
            let what = "the file was opened before this process was forked, which has none of its threads: open it again";
            return Err(io::Error::other(format!("{}: {what}", self.name())));
        }
        self.ahead.read(range, buffer).map_err(Fault::into_io)
    }

    /// Reads through blocks.
    fn read_blocks(&self, range: &Range<u64>, buffer: &mut [u8]) -> io::Result<()> {
        // Blocks of others may leave again before they are read here; those of this thread cannot for long.
        for _ in 0..16 {
            let found = self.blocks.look_up(range);
            for flight in &found.missing {
                self.fly(flight.clone());
            }
            found.wait().map_err(Fault::into_io)?;
            if self.blocks.copy(range, buffer) {
                return Ok(());
            }
        }
        self.fetch(&mut [(range.clone(), buffer)])
    }

    /// Whether a small range is close to the last one that this was asked of: then blocks will serve the next ones, too.
    fn is_near(&self, range: &Range<u64>) -> bool {
        let last = self.last.swap(range.end, Ordering::Relaxed);
        range.end - range.start <= self.options.gap
            && last.abs_diff(range.start) <= self.blocks.size()
    }

    /// Brings some blocks, from disk if all of them are there.
    fn fly(&self, flight: Arc<Flight>) {
        let (client, blocks, tier) = (self.client.clone(), self.blocks.clone(), self.tier.clone());
        self.runtime.spawn(async move {
            let parts = blocks.parts_of(&flight);
            let get = |tier: &Arc<Tier>| {
                let kept = parts.iter().map(|part| tier.get(part)).collect::<Option<Vec<_>>>()?;
                Some(kept.concat())
            };
            let kept = tier.as_ref().and_then(get);
            let fetched = match kept {
                Some(bytes) => Ok(bytes),
                None => client.fetch(blocks.bytes_of(&flight)).await.inspect(|bytes| {
                    let Some(tier) = &tier else { return };
                    let pieces = bytes.chunks(blocks.size() as usize);
                    parts.iter().zip(pieces).for_each(|(part, bytes)| tier.put(part, bytes));
                }),
            };
            blocks.land(&flight, fetched);
        });
    }

    /// Reads what is on disk; what is left is missing.
    fn read_kept<'r>(
        &self,
        missing: Vec<(Range<u64>, &'r mut [u8])>,
    ) -> Vec<(Range<u64>, &'r mut [u8])> {
        let Some(tier) = &self.tier else { return missing };
        let mut left = Vec::new();
        for (range, buffer) in missing {
            match tier.get(&range) {
                Some(bytes) => buffer.copy_from_slice(&bytes),
                None => left.push((range, buffer)),
            }
        }
        left
    }

    /// Fetches exactly what is wanted; ranges ascend.
    fn fetch(&self, wanted: &mut [(Range<u64>, &mut [u8])]) -> io::Result<()> {
        let ranges = wanted.iter().map(|(range, _)| range.clone());
        let requests = requests(ranges, self.options.gap, self.options.piece as u64);
        let (sender, answers) = mpsc::channel();
        let spawn = |request: &Range<u64>| {
            let (request, sender) = (request.clone(), sender.clone());
            let (client, flying) = (self.client.clone(), self.flying.clone());
            let units = (request.end - request.start)
                .div_ceil(1 << 10)
                .clamp(1, self.options.flying as u64 >> 10);
            Task(
                self.runtime
                    .spawn(async move {
                        let Ok(permit) = flying.acquire_many_owned(units as u32).await else {
                            return;
                        };
                        let answer = client.fetch(request.clone()).await;
                        // Fails if nobody waits any more.
                        let _ = sender.send((request, answer, permit));
                    })
                    .abort_handle(),
            )
        };
        let tasks: Vec<Task> = requests.iter().map(spawn).collect();
        drop(sender);
        for _ in &tasks {
            let answer = answers.recv();
            let (request, bytes, _permit) = answer.map_err(|_| lost().into_io())?;
            scatter(&request, &bytes.map_err(Fault::into_io)?, wanted);
        }
        Ok(())
    }
}

/// The size of blocks: of an object that is small, so large that three of them are all of it. The time to the first
/// byte of an answer is longer than what a few more of them take.
fn block_size(usual: usize, length: u64) -> usize {
    let small = length <= 16 * usual as u64;
    if small { usual.max((length.div_ceil(3) as usize).next_multiple_of(4096)) } else { usual }
}

fn lost() -> Fault {
    Fault::internal("a request ended without an answer")
}

/// Waits for one request.
fn wait(runtime: &Runtime, client: Arc<Client>, range: Range<u64>) -> Result<Vec<u8>, Fault> {
    let (sender, answer) = mpsc::channel();
    let task = runtime.spawn(async move {
        let _ = sender.send(client.fetch(range).await);
    });
    let _task = Task(task.abort_handle());
    answer.recv().map_err(|_| lost())?
}

/// Copies the bytes of a request to all who want some of them.
fn scatter(request: &Range<u64>, bytes: &[u8], wanted: &mut [(Range<u64>, &mut [u8])]) {
    let behind = wanted.partition_point(|(range, _)| range.start < request.end);
    for (range, buffer) in &mut wanted[..behind] {
        let Some(both) = common(range, request) else { continue };
        let from = (both.start - request.start) as usize..(both.end - request.start) as usize;
        let to = (both.start - range.start) as usize..(both.end - range.start) as usize;
        if let (Some(to), Some(from)) = (buffer.get_mut(to), bytes.get(from)) {
            to.copy_from_slice(from);
        }
    }
}

impl Store for RemoteStore {
    fn len(&self) -> io::Result<u64> {
        Ok(self.length)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.read_vectored(&mut [ReadOp { offset, buffer }])
    }

    fn read_vectored(&self, ops: &mut [ReadOp<'_>]) -> io::Result<()> {
        let mut missing = Vec::new();
        for op in ops {
            let range = ranges::of(op.offset, op.buffer.len())?;
            if range.end > self.length {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if !range.is_empty() && !self.answer(&range, op.buffer)? {
                missing.push((range, &mut *op.buffer));
            }
        }
        let mut missing = self.read_kept(missing);
        missing.sort_by_key(|(range, _)| range.start);
        let alone = match &*missing {
            [] => return Ok(()),
            [(range, _)] => range.end - range.start <= self.blocks.size(),
            [(first, _), .., (last, _)] => self.is_near(&(first.start..last.end.max(first.end))),
        };
        match alone {
            true => {
                missing.iter_mut().try_for_each(|(range, buffer)| self.read_blocks(range, buffer))
            }
            false => {
                self.fetch(&mut missing)?;
                if let Some(tier) = &self.tier {
                    missing.iter().for_each(|(range, bytes)| tier.put(range, bytes));
                }
                Ok(())
            }
        }
    }

    fn is_far(&self) -> bool {
        true
    }

    fn announce(&self, ranges: &[Range<u64>]) -> Announced {
        let here = |range: &&Range<u64>| {
            range.is_empty()
                || range.end > self.length
                || range.end <= self.head.len() as u64
                || self.blocks.has(range)
        };
        let kept = |range: &Range<u64>| self.tier.as_ref().is_some_and(|tier| tier.has(range));
        let wanted = ranges.iter().filter(|range| !here(range) && !kept(range));
        let mut wanted: Vec<_> = wanted.cloned().collect();
        wanted.sort_by_key(|range| range.start);
        let (Some(first), Some(last)) = (wanted.first(), wanted.last()) else { return None };
        if self.is_forked() || self.is_near(&(first.start..last.end)) {
            return None;
        }
        Some(self.ahead.announce(&wanted, self.options.gap, self.options.piece as u64))
    }

    fn write_at(&self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(self.read_only())
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(self.read_only())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

impl RemoteStore {
    fn read_only(&self) -> io::Error {
        let name = self.name();
        let what = format!("{name}: objects are read only; change a local copy, then upload it");
        io::Error::new(io::ErrorKind::ReadOnlyFilesystem, what)
    }
}
