//! Metadata in memory that keeps count: what is allocated, freed and staged.

#![allow(dead_code)] // Each test file uses its part.

use pumice_format::Sizes;
use pumice_medium::MetadataIo;
use pumice_medium::{Error, Result};
use std::collections::BTreeMap;
use std::sync::Mutex;

pub(crate) struct Memory {
    sizes: Sizes,
    /// Whether misuse of space is a failed test; damaged files may ask for anything.
    strict: bool,
    chunk_node_rank: u16,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    file: Vec<u8>,
    staged: BTreeMap<u64, Vec<u8>>,
    live: BTreeMap<u64, u64>,
    reads: usize,
}

impl Memory {
    /// A file whose first allocation will be at `start`.
    pub(crate) fn new(sizes: Sizes, start: u64) -> Self {
        let file = vec![0; start as usize];
        let state = Mutex::new(State { file, ..State::default() });
        Self { sizes, strict: true, chunk_node_rank: 32, state }
    }

    /// Memory for an index that may be damaged.
    pub(crate) fn lenient(sizes: Sizes, start: u64) -> Self {
        Self { strict: false, ..Self::new(sizes, start) }
    }

    /// Memory with version 1 B-trees of another rank.
    pub(crate) fn with_chunk_node_rank(self, chunk_node_rank: u16) -> Self {
        Self { chunk_node_rank, ..self }
    }

    /// Writes what is staged, and says where it was.
    pub(crate) fn apply(&self) -> Vec<u64> {
        let mut state = self.state.lock().unwrap();
        let staged = std::mem::take(&mut state.staged);
        let addresses = staged.keys().copied().collect();
        for (address, bytes) in staged {
            let start = address as usize;
            let place = state.file.get_mut(start..start.saturating_add(bytes.len()));
            assert!(!self.strict || place.is_some(), "staged inside the file");
            if let Some(place) = place {
                place.copy_from_slice(&bytes);
            }
        }
        addresses
    }

    /// Bytes that are allocated and not freed.
    pub(crate) fn live_bytes(&self) -> u64 {
        self.state.lock().unwrap().live.values().sum()
    }

    /// Everything that is allocated: address and length.
    pub(crate) fn blocks(&self) -> Vec<(u64, u64)> {
        self.state
            .lock()
            .unwrap()
            .live
            .iter()
            .map(|(&address, &length)| (address, length))
            .collect()
    }

    pub(crate) fn file(&self) -> Vec<u8> {
        self.state.lock().unwrap().file.clone()
    }

    pub(crate) fn reads(&self) -> usize {
        self.state.lock().unwrap().reads
    }

    /// Changes bytes behind the index's back.
    pub(crate) fn poke(&self, address: u64, bytes: &[u8]) {
        let start = address as usize;
        let mut state = self.state.lock().unwrap();
        state.file[start..start + bytes.len()].copy_from_slice(bytes);
    }
}

impl MetadataIo for Memory {
    fn sizes(&self) -> Sizes {
        self.sizes
    }

    fn chunk_node_rank(&self) -> u16 {
        self.chunk_node_rank
    }

    fn read(&self, address: u64, length: usize) -> Result<Vec<u8>> {
        let mut state = self.state.lock().unwrap();
        state.reads += 1;
        if let Some(bytes) = state.staged.get(&address) {
            assert!(!self.strict || bytes.len() == length, "a staged block is read whole");
            if bytes.len() == length {
                return Ok(bytes.clone());
            }
        }
        let start = usize::try_from(address).unwrap_or(usize::MAX);
        match start.checked_add(length).and_then(|end| state.file.get(start..end)) {
            Some(bytes) => Ok(bytes.to_vec()),
            None => Err(Error::Invalid(format!("{length} bytes at {address:#x} are not there"))),
        }
    }

    fn allocate(&self, length: u64) -> Result<u64> {
        if length > 1 << 28 {
            return Err(Error::Invalid(format!("no room for {length} bytes")));
        }
        let mut state = self.state.lock().unwrap();
        let address = state.file.len() as u64;
        // What was never written must not look like a block.
        state.file.resize((address + length) as usize, 0xEE);
        state.live.insert(address, length);
        Ok(address)
    }

    fn free(&self, address: u64, length: u64) {
        let mut state = self.state.lock().unwrap();
        let freed = state.live.remove(&address);
        assert!(!self.strict || freed == Some(length), "{address:#x} is freed once, whole");
        state.staged.remove(&address);
    }

    fn stage(&self, address: u64, bytes: Vec<u8>) {
        let mut state = self.state.lock().unwrap();
        if self.strict {
            let (start, length) = state.live.range(..=address).next_back().unwrap();
            assert!(address + bytes.len() as u64 <= start + length, "staged within its space");
        }
        state.staged.insert(address, bytes);
    }
}
