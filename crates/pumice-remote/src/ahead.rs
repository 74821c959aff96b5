//! Ranges that were announced: they are loaded in their order, many at once, before they are read.
//!
//! What is under way or has arrived, and is not read yet, never exceeds a budget. A thread that comes for a range which
//! has not begun begins it, whatever the budget says: so nobody waits for anything but the network.

use crate::client::Client;
use crate::disk::Tier;
use crate::fault::Fault;
use crate::ranges::{common, requests};
use crate::statistics::{Counts, add};
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use tokio::runtime::Runtime;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;

/// Bytes that a permit of the budget stands for.
const UNIT: u64 = 1 << 10;

/// What has become of a request.
#[derive(Debug)]
enum Load {
    Waiting,
    Coming,
    Here {
        bytes: Vec<u8>,
        _permit: Option<OwnedSemaphorePermit>,
    },
    /// Read, or given up.
    Gone,
    Failed(Fault),
}

#[derive(Debug)]
struct State {
    loads: Vec<Load>,
    /// The bytes of each request that were announced and are not read yet.
    left: Vec<u64>,
    tasks: Vec<AbortHandle>,
}

/// What one announcement loads.
#[derive(Debug)]
pub(crate) struct Announcement {
    /// The ranges that were announced, and the folder where they are kept.
    wanted: Vec<Range<u64>>,
    tier: Option<Arc<Tier>>,
    /// The requests, in their order.
    ranges: Vec<Range<u64>>,
    state: Mutex<State>,
    arrived: Condvar,
}

impl Announcement {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The requests that a range has parts of; none unless they cover it.
    fn covering(&self, range: &Range<u64>) -> Range<usize> {
        let first = self.ranges.partition_point(|one| one.end <= range.start);
        let mut end = range.start;
        let mut last = first;
        for one in &self.ranges[first..] {
            if end >= range.end || one.start > end {
                break;
            }
            end = one.end;
            last += 1;
        }
        if end >= range.end { first..last } else { first..first }
    }

    /// Keeps the announced ranges that a request has brought as a whole.
    fn keep(&self, tier: &Tier, range: &Range<u64>, bytes: &[u8]) {
        let first = self.wanted.partition_point(|one| one.start < range.start);
        for one in self.wanted[first..].iter().take_while(|one| one.start < range.end) {
            let place = (one.start - range.start) as usize..(one.end - range.start) as usize;
            if let Some(bytes) = bytes.get(place) {
                tier.put(one, bytes);
            }
        }
    }

    fn end(
        &self,
        number: usize,
        answer: Result<Vec<u8>, Fault>,
        permit: Option<OwnedSemaphorePermit>,
    ) {
        let mut state = self.state();
        if matches!(state.loads[number], Load::Coming) {
            state.loads[number] = match answer {
                Ok(bytes) => Load::Here { bytes, _permit: permit },
                Err(fault) => Load::Failed(fault),
            };
        }
        drop(state);
        self.arrived.notify_all();
    }
}

/// Keeps an announcement alive.
struct Guard {
    announcement: Arc<Announcement>,
    driver: AbortHandle,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.driver.abort();
        let mut state = self.announcement.state();
        state.tasks.drain(..).for_each(|task| task.abort());
        state.loads.iter_mut().for_each(|load| *load = Load::Gone);
        drop(state);
        self.announcement.arrived.notify_all();
    }
}

/// All announcements of one object.
#[derive(Debug)]
pub(crate) struct Ahead {
    client: Arc<Client>,
    runtime: Arc<Runtime>,
    counts: Arc<Counts>,
    budget: Arc<Semaphore>,
    most: u64,
    list: Mutex<Vec<Weak<Announcement>>>,
    tier: Option<Arc<Tier>>,
}

impl Ahead {
    pub(crate) fn new(
        client: Arc<Client>,
        runtime: Arc<Runtime>,
        counts: Arc<Counts>,
        bytes: usize,
        tier: Option<Arc<Tier>>,
    ) -> Self {
        let most = (bytes as u64 / UNIT).clamp(1, u64::from(u32::MAX >> 4));
        let budget = Arc::new(Semaphore::new(most as usize));
        Self { client, runtime, counts, budget, most, list: Mutex::default(), tier }
    }

    /// Begins to load ranges, which ascend, until what is returned is dropped.
    pub(crate) fn announce(
        &self,
        wanted: &[Range<u64>],
        gap: u64,
        piece: u64,
    ) -> Box<dyn Send + Sync> {
        let ranges = requests(wanted.iter().cloned(), gap, piece.min(self.most * UNIT));
        let mut left = vec![0; ranges.len()];
        let mut first = 0;
        for want in wanted {
            first += ranges[first..].partition_point(|one| one.end <= want.start);
            let parts = ranges.iter().zip(&mut left).skip(first);
            for (one, left) in parts.take_while(|(one, _)| one.start < want.end) {
                *left += common(one, want).map_or(0, |both| both.end - both.start);
            }
        }
        let loads = ranges.iter().map(|_| Load::Waiting).collect();
        let state = Mutex::new(State { loads, left, tasks: Vec::new() });
        let announcement = Arc::new(Announcement {
            wanted: wanted.to_vec(),
            tier: self.tier.clone(),
            ranges,
            state,
            arrived: Condvar::new(),
        });
        let mut list = self.list();
        list.retain(|one| one.strong_count() > 0);
        list.push(Arc::downgrade(&announcement));
        drop(list);
        let driver =
            drive(announcement.clone(), self.client.clone(), self.budget.clone(), self.most);
        let driver = self.runtime.spawn(driver).abort_handle();
        Box::new(Guard { announcement, driver })
    }

    fn list(&self) -> MutexGuard<'_, Vec<Weak<Announcement>>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads a range that was announced, and waits for it. Says whether it was.
    pub(crate) fn read(&self, range: &Range<u64>, buffer: &mut [u8]) -> Result<bool, Fault> {
        let known: Vec<_> = self.list().iter().rev().filter_map(Weak::upgrade).collect();
        for announcement in known {
            let covering = announcement.covering(range);
            if !covering.is_empty() && self.read_from(&announcement, covering, range, buffer)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads a range from the requests of one announcement; says whether all of it was still there.
    fn read_from(
        &self,
        announcement: &Arc<Announcement>,
        numbers: Range<usize>,
        range: &Range<u64>,
        buffer: &mut [u8],
    ) -> Result<bool, Fault> {
        for number in numbers {
            let load = &announcement.ranges[number];
            let Some(both) = common(load, range) else { continue };
            let mut state = announcement.state();
            loop {
                match &state.loads[number] {
                    Load::Waiting => {
                        state.loads[number] = Load::Coming;
                        let task =
                            load_one(announcement.clone(), self.client.clone(), number, None);
                        state.tasks.push(self.runtime.spawn(task).abort_handle());
                    }
                    Load::Coming => {
                        let waited = announcement.arrived.wait(state);
                        state = waited.unwrap_or_else(PoisonError::into_inner);
                    }
                    Load::Gone => return Ok(false),
                    Load::Failed(fault) => return Err(fault.clone()),
                    Load::Here { bytes, .. } => {
                        let start = (both.start - load.start) as usize;
                        let count = (both.end - both.start) as usize;
                        let to = (both.start - range.start) as usize;
                        buffer[to..to + count].copy_from_slice(&bytes[start..start + count]);
                        state.left[number] = state.left[number].saturating_sub(count as u64);
                        if state.left[number] == 0 {
                            state.loads[number] = Load::Gone;
                        }
                        add(&self.counts.bytes_ahead, count as u64);
                        break;
                    }
                }
            }
        }
        Ok(true)
    }
}

/// Begins requests in their order, as the budget allows.
async fn drive(
    announcement: Arc<Announcement>,
    client: Arc<Client>,
    budget: Arc<Semaphore>,
    most: u64,
) {
    for number in 0..announcement.ranges.len() {
        let range = &announcement.ranges[number];
        let units = (range.end - range.start).div_ceil(UNIT).clamp(1, most);
        let Ok(permit) = budget.clone().acquire_many_owned(units as u32).await else { return };
        let mut state = announcement.state();
        if !matches!(state.loads[number], Load::Waiting) {
            continue;
        }
        state.loads[number] = Load::Coming;
        let task = load_one(announcement.clone(), client.clone(), number, Some(permit));
        state.tasks.push(tokio::spawn(task).abort_handle());
    }
}

async fn load_one(
    announcement: Arc<Announcement>,
    client: Arc<Client>,
    number: usize,
    permit: Option<OwnedSemaphorePermit>,
) {
    let range = announcement.ranges[number].clone();
    let answer = client.fetch(range.clone()).await;
    if let (Ok(bytes), Some(tier)) = (&answer, &announcement.tier) {
        announcement.keep(tier, &range, bytes);
    }
    announcement.end(number, answer, permit);
}
