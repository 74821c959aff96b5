//! Blocks of the object in memory: what metadata and other small reads are served from.
//!
//! A block is fetched once, however many threads want it: the first one sends the request, the others wait for the same
//! answer. Where blocks are read many times before one is missing, or the missing one is the next, more of them will be:
//! then twice as many come as with the miss before.

use crate::fault::Fault;
use crate::ranges::common;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The outcome of a request for neighbouring blocks, for all that wait.
type Outcome = Result<(), Fault>;

/// A request for blocks that is under way.
#[derive(Debug)]
pub(crate) struct Flight {
    blocks: Range<u64>,
    outcome: Mutex<Option<Outcome>>,
    landed: Condvar,
}

impl Flight {
    fn wait(&self) -> Outcome {
        let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match &*outcome {
                Some(outcome) => return outcome.clone(),
                None => outcome = self.landed.wait(outcome).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

#[derive(Debug)]
enum Block {
    Ready { bytes: Arc<Vec<u8>>, used: u64 },
    Coming(Arc<Flight>),
}

#[derive(Debug, Default)]
struct State {
    blocks: HashMap<u64, Block>,
    /// Counts up with each use.
    clock: u64,
    /// The block behind the last ones that were fetched, and how many were.
    next: u64,
    stride: u64,
    /// Reads since then.
    hits: u64,
}

/// Blocks of one object.
#[derive(Debug)]
pub(crate) struct Blocks {
    size: u64,
    length: u64,
    /// How many blocks stay, and how many are fetched at once.
    most: usize,
    together: u64,
    state: Mutex<State>,
}

/// So many reads between two misses are many.
const MANY: u64 = 24;

/// What a read finds.
pub(crate) struct Lookup {
    /// Requests that the caller has to send.
    pub(crate) missing: Vec<Arc<Flight>>,
    /// Requests of others.
    coming: Vec<Arc<Flight>>,
}

impl Lookup {
    /// Waits for everything.
    pub(crate) fn wait(&self) -> Outcome {
        self.missing.iter().chain(&self.coming).try_for_each(|flight| flight.wait())
    }
}

impl Blocks {
    pub(crate) fn new(size: usize, length: u64, memory: usize, piece: usize) -> Self {
        let together = (piece / size).max(1) as u64;
        // What is fetched at once must fit, or it would have left before it is read.
        let most = (memory / size).max(2 * together as usize);
        Self { size: size as u64, length, most, together, state: Mutex::default() }
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn numbers(&self, range: &Range<u64>) -> Range<u64> {
        range.start / self.size..range.end.div_ceil(self.size)
    }

    /// The bytes of some blocks.
    pub(crate) fn bytes_of(&self, flight: &Flight) -> Range<u64> {
        flight.blocks.start * self.size..(flight.blocks.end * self.size).min(self.length)
    }

    /// The bytes of each of some blocks.
    pub(crate) fn parts_of(&self, flight: &Flight) -> Vec<Range<u64>> {
        let part = |number: u64| number * self.size..((number + 1) * self.size).min(self.length);
        flight.blocks.clone().map(part).collect()
    }

    /// Copies a range if all of it is here.
    pub(crate) fn copy(&self, range: &Range<u64>, buffer: &mut [u8]) -> bool {
        let mut found = Vec::new();
        let mut state = self.state();
        state.clock += 1;
        let now = state.clock;
        state.hits += 1;
        for number in self.numbers(range) {
            let Some(Block::Ready { bytes, used }) = state.blocks.get_mut(&number) else {
                return false;
            };
            *used = now;
            found.push((number * self.size, bytes.clone()));
        }
        drop(state);
        for (start, bytes) in found {
            let place = start..start + bytes.len() as u64;
            let Some(both) = common(&place, range) else { continue };
            let from = &bytes[(both.start - start) as usize..(both.end - start) as usize];
            let to = (both.start - range.start) as usize;
            buffer[to..to + from.len()].copy_from_slice(from);
        }
        true
    }

    /// Whether all of a range is here.
    pub(crate) fn has(&self, range: &Range<u64>) -> bool {
        let state = self.state();
        let ready = |number| matches!(state.blocks.get(&number), Some(Block::Ready { .. }));
        self.numbers(range).all(ready)
    }

    /// Finds out what a range lacks. What the caller is to fetch counts as coming from now on.
    pub(crate) fn look_up(&self, range: &Range<u64>) -> Lookup {
        let mut state = self.state();
        let (mut missing, mut coming) = (Vec::new(), Vec::new());
        for number in self.numbers(range) {
            match state.blocks.get(&number) {
                Some(Block::Ready { .. }) => {}
                Some(Block::Coming(flight)) => coming.push(flight.clone()),
                None => missing.push(number),
            }
        }
        let missing = match (missing.first(), missing.last()) {
            (Some(first), Some(last)) => self.begin(&mut state, *first, *last),
            _ => Vec::new(),
        };
        Lookup { missing, coming }
    }

    /// Requests for the missing blocks from one to another, and for some behind them.
    fn begin(&self, state: &mut State, first: u64, last: u64) -> Vec<Arc<Flight>> {
        let goes_on = state.stride > 0 && (state.next == first || state.hits >= MANY);
        let stride = if goes_on { (2 * state.stride).min(self.together) } else { 1 };
        let end = (first + stride).max(last + 1).min(self.length.div_ceil(self.size));
        let mut flights = Vec::new();
        let mut at = first;
        while at < end {
            let is = |number: &u64, coming: bool| match state.blocks.get(number) {
                None => !coming,
                Some(Block::Ready { .. }) => false,
                Some(Block::Coming(_)) => coming,
            };
            let Some(start) = (at..end).find(|number| is(number, false)) else { break };
            let most = end.min(start + self.together);
            // Blocks between that are here come once more: that takes less time than another request.
            let stop = (start..most).find(|number| is(number, true)).unwrap_or(most);
            let stop = (start..stop).rev().find(|number| is(number, false)).unwrap_or(start) + 1;
            let (outcome, landed) = (Mutex::new(None), Condvar::new());
            flights.push(Arc::new(Flight { blocks: start..stop, outcome, landed }));
            at = stop;
        }
        for flight in &flights {
            for number in flight.blocks.clone() {
                let coming = || Block::Coming(flight.clone());
                state.blocks.entry(number).or_insert_with(coming);
            }
        }
        (state.next, state.stride, state.hits) = (end, stride, 0);
        flights
    }

    /// Ends a request: its blocks are here, or are missing again.
    pub(crate) fn land(&self, flight: &Flight, answer: Result<Vec<u8>, Fault>) {
        let mut state = self.state();
        state.clock += 1;
        let used = state.clock;
        let outcome = match answer {
            Ok(bytes) => {
                for (number, part) in flight.blocks.clone().zip(bytes.chunks(self.size as usize)) {
                    let bytes = Arc::new(part.to_vec());
                    state.blocks.insert(number, Block::Ready { bytes, used });
                }
                Ok(())
            }
            Err(fault) => {
                for number in flight.blocks.clone() {
                    if matches!(state.blocks.get(&number), Some(Block::Coming(_))) {
                        state.blocks.remove(&number);
                    }
                }
                Err(fault)
            }
        };
        self.trim(&mut state);
        drop(state);
        *flight.outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
        flight.landed.notify_all();
    }

    /// Lets blocks go that were not used for longest.
    fn trim(&self, state: &mut State) {
        while state.blocks.len() > self.most {
            let ready = state.blocks.iter().filter_map(|(number, block)| match block {
                Block::Ready { used, .. } => Some((*used, *number)),
                Block::Coming(_) => None,
            });
            let Some((_, oldest)) = ready.min() else { return };
            state.blocks.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks() -> Blocks {
        Blocks::new(10, 95, 60, 40)
    }

    fn land(blocks: &Blocks, flight: &Flight) {
        let bytes = blocks.bytes_of(flight).map(|at| at as u8).collect();
        blocks.land(flight, Ok(bytes));
    }

    #[test]
    fn a_block_is_asked_for_once() {
        let blocks = blocks();
        let first = blocks.look_up(&(12..25));
        assert_eq!(first.missing.len(), 1);
        assert_eq!(blocks.bytes_of(&first.missing[0]), 10..30);
        let second = blocks.look_up(&(15..18));
        assert!(second.missing.is_empty());
        land(&blocks, &first.missing[0]);
        assert!(second.wait().is_ok());
        let mut found = [0; 13];
        assert!(blocks.copy(&(12..25), &mut found));
        assert_eq!(found.to_vec(), (12..25).collect::<Vec<u8>>());
        assert!(!blocks.copy(&(9..11), &mut [0; 2]));
    }

    #[test]
    fn a_failure_reaches_all_that_wait_and_is_not_kept() {
        let blocks = blocks();
        let (first, second) = (blocks.look_up(&(0..1)), blocks.look_up(&(5..6)));
        blocks.land(&first.missing[0], Err(Fault::internal("x")));
        assert!(first.wait().is_err() && second.wait().is_err());
        assert_eq!(blocks.look_up(&(5..6)).missing.len(), 1);
    }

    #[test]
    fn a_walk_fetches_more_at_a_time_and_old_blocks_leave() {
        let blocks = blocks();
        let mut requests = Vec::new();
        for at in 0..95 {
            let found = blocks.look_up(&(at..at + 1));
            for flight in &found.missing {
                requests.push(blocks.bytes_of(flight));
                land(&blocks, flight);
            }
            assert!(blocks.copy(&(at..at + 1), &mut [0]));
        }
        assert_eq!(requests, [0..10, 10..30, 30..70, 70..95]);
        assert!(blocks.state().blocks.len() <= blocks.most);
        assert!(!blocks.has(&(0..1)) && blocks.has(&(80..95)));
    }
}
