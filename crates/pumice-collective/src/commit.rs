//! A flush: owners encode, rank 0 gives places, owners write, rank 0 commits.
//!
//! ```text
//! all      encode the chunks that they own; tell whether they could
//! all      tell rank 0 dataset, chunk, size and sections of each
//! rank 0   sorts by dataset and chunk, finds room for all of them in this order, tells each rank its addresses
//! all      write their chunks there; tell whether they could
//! rank 0   lets the indexes name them, commits; all learn of the outcome
//! ```
//!
//! Until the commit nothing that it replaces is touched, but dense chunks without filters, which keep their
//! places as they do when one process writes them.

use crate::call::Call;
use crate::entry::Outcome;
use crate::file::{Inner, State};
use crate::wire::{In, Out};
use crate::{CollectiveError, Result};
use pumice_engine::dataset::ApartChunk;
use pumice_format::index::ChunkRecord;
use pumice_space::Dims;
use pumice_store::WriteOp;
use std::collections::BTreeMap;

/// Chunks whose bytes are in memory at a time while they are written.
const PIECE: u64 = 32 << 20;

/// A chunk of a list that a rank has told to rank 0.
struct Told {
    rank: usize,
    /// Its place in the rank's list.
    at: usize,
    record: Option<ChunkRecord>,
    keeps: bool,
}

/// Room that was found: of each dataset the addresses.
type Found = Vec<(usize, Vec<u64>)>;

impl Inner {
    /// Stores changes, if any rank has some.
    pub(crate) fn gather_changes(&self, state: &mut State, call: Call) -> Result<()> {
        let changed = state.changed || state.entries.iter().any(|entry| !entry.touched.is_empty());
        let all = self.gather(state, call, Ok(vec![u8::from(changed)]))?;
        if all.iter().any(|changed| changed[..] != [0]) {
            self.store_all(state)?;
        }
        Ok(())
    }

    /// [`gather_changes`](Self::gather_changes) within a call.
    pub(crate) fn store_changes(&self, state: &mut State) -> Result<()> {
        self.gather_changes(state, Call::Done)
    }

    fn store_all(&self, state: &mut State) -> Result<()> {
        let encoded = self.encode(state);
        let lists = self.agree(state, encoded)?;
        let places = self.place(state, &lists);
        let (places, found) = self.fatal(state, places)?;
        let places = self.agree(state, places)?;
        let written = self.write_chunks(state, &lists, &places);
        if let Err(error) = self.agree(state, written) {
            self.cancel(state, &found);
            return Err(error);
        }
        let committed = self.commit(state, &found);
        self.agree_or_end(state, committed)?;
        let renewed = self.renew(state);
        self.agree_or_end(state, renewed)
    }

    /// The chunks that this rank has changed, by dataset.
    fn encode(&self, state: &State) -> Result<Vec<Vec<Outcome>>> {
        let of = |entry: &crate::entry::Entry| entry.encode(entry.view.as_ref());
        state.entries.iter().map(of).collect()
    }

    /// Tells rank 0 what there is to store, and learns where it is to be written. The inner error is rank 0's.
    #[allow(clippy::type_complexity)]
    fn place(
        &self,
        state: &State,
        lists: &[Vec<Outcome>],
    ) -> Result<(Result<Vec<Vec<u64>>>, Found)> {
        let own = listed(lists);
        if !self.is_root() {
            self.comm.send(0, own)?;
            let answer = self.comm.receive(0)?;
            return Ok((places_of(&answer), Found::new()));
        }
        let mut all = vec![own];
        for rank in 1..self.comm.size() {
            all.push(self.comm.receive(rank)?);
        }
        let reserved = self.reserve(state, &all);
        let (mut answers, found, failed) = match reserved {
            Ok((answers, found)) => (answers, found, None),
            Err(error) => (vec![refusal(); all.len()], Found::new(), Some(error)),
        };
        for rank in (1..self.comm.size()).rev() {
            self.comm.send(rank, answers.pop().unwrap_or_default())?;
        }
        let own = answers.pop().unwrap_or_default();
        Ok((failed.map_or_else(|| places_of(&own), Err), found))
    }

    /// Finds room for the chunks of all ranks, in the order of datasets and chunks.
    fn reserve(&self, state: &State, all: &[Vec<u8>]) -> Result<(Vec<Vec<u8>>, Found)> {
        let mut wanted: Vec<BTreeMap<Dims, Told>> = Vec::new();
        let mut places: Vec<Vec<Vec<u64>>> = Vec::new();
        for (rank, list) in all.iter().enumerate() {
            let lists = unlisted(list)?;
            places.push(lists.iter().map(|list| vec![0; list.len()]).collect());
            wanted.resize_with(lists.len().max(wanted.len()), BTreeMap::new);
            for (dataset, list) in lists.into_iter().enumerate() {
                for (at, Outcome { key, record, keeps }) in list.into_iter().enumerate() {
                    let chunk = key.to_vec();
                    if let Some(first) =
                        wanted[dataset].insert(key, Told { rank, at, record, keeps })
                    {
                        let (dataset, ranks) =
                            (state.entries[dataset].path.clone(), [first.rank, rank]);
                        return Err(CollectiveError::Shared { dataset, chunk, ranks });
                    }
                }
            }
        }
        let mut found = Found::new();
        for (dataset, wanted) in wanted.iter().enumerate().filter(|(_, wanted)| !wanted.is_empty())
        {
            let reserved = self.reserve_of(state, dataset, wanted);
            let addresses = reserved.inspect_err(|_| self.cancel(state, &found))?;
            let stored = wanted.values().filter(|told| told.record.is_some());
            for (told, &address) in stored.zip(&addresses) {
                places[told.rank][dataset][told.at] = address;
            }
            found.push((dataset, addresses));
        }
        Ok((places.iter().map(|places| answer(places)).collect(), found))
    }

    fn reserve_of(
        &self,
        state: &State,
        dataset: usize,
        wanted: &BTreeMap<Dims, Told>,
    ) -> Result<Vec<u64>> {
        let root = state.entries[dataset].root.as_ref();
        let root = root.ok_or_else(|| CollectiveError::Broken("no file".into()))?.as_engine();
        let none = |(key, told): (&Dims, &Told)| told.record.is_none().then(|| key.clone());
        let removed: Vec<Dims> = wanted.iter().filter_map(none).collect();
        if !removed.is_empty() {
            root.remove_chunks(&removed)?;
        }
        let some = |(key, told): (&Dims, &Told)| {
            let (key, record, keeps) = (key.clone(), told.record.clone()?, told.keeps);
            Some(ApartChunk { key, record, keeps })
        };
        let stored: Vec<_> = wanted.iter().filter_map(some).collect();
        Ok(root.reserve_chunks(&stored)?)
    }

    fn cancel(&self, state: &State, found: &Found) {
        for (dataset, addresses) in found {
            if let Some(root) = &state.entries[*dataset].root {
                let _ = root.as_engine().cancel_chunks(addresses);
            }
        }
    }

    /// Writes this rank's chunks to their places, many in one call.
    fn write_chunks(
        &self,
        state: &State,
        lists: &[Vec<Outcome>],
        places: &[Vec<u64>],
    ) -> Result<()> {
        let mut waiting: Vec<(u64, Vec<u8>)> = Vec::new();
        let mut bytes = 0;
        for ((entry, list), places) in state.entries.iter().zip(lists).zip(places) {
            for (outcome, &place) in list.iter().zip(places) {
                let Some(record) = &outcome.record else { continue };
                waiting.push((place, entry.bytes(&outcome.key)?));
                bytes += record.size;
                if bytes >= PIECE {
                    self.write_some(&mut waiting)?;
                    bytes = 0;
                }
            }
        }
        let any = lists.iter().any(|list| !list.is_empty());
        self.write_some(&mut waiting)?;
        if any && self.options.durability == pumice::Durability::Power {
            self.chunk_store()?.sync()?;
        }
        Ok(())
    }

    fn write_some(&self, waiting: &mut Vec<(u64, Vec<u8>)>) -> Result<()> {
        if waiting.is_empty() {
            return Ok(());
        }
        waiting.sort_unstable_by_key(|(place, _)| *place);
        let ops: Vec<_> =
            waiting.iter().map(|(offset, bytes)| WriteOp { offset: *offset, bytes }).collect();
        self.chunk_store()?.write_vectored(&ops)?;
        waiting.clear();
        Ok(())
    }

    /// Lets the indexes name what is written, and commits.
    fn commit(&self, state: &mut State, found: &Found) -> Result<()> {
        let Some(file) = &state.root else { return Ok(()) };
        for (dataset, addresses) in found {
            if let Some(root) = &state.entries[*dataset].root {
                root.as_engine().enter_chunks(addresses)?;
            }
        }
        Ok(file.flush()?)
    }

    /// Sees the new commit.
    fn renew(&self, state: &mut State) -> Result<()> {
        state.view = None;
        state.changed = false;
        let view = self.view(state)?;
        state.entries.iter_mut().try_for_each(|entry| entry.committed(&view, &self.context))
    }
}

fn listed(lists: &[Vec<Outcome>]) -> Vec<u8> {
    let mut out = Out::default();
    out.number(lists.len() as u64);
    for list in lists {
        out.number(list.len() as u64);
        for Outcome { key, record, keeps } in list {
            out.dims(key);
            out.byte(u8::from(*keeps));
            out.byte(u8::from(record.is_some()));
            if let Some(record) = record {
                out.record(record);
            }
        }
    }
    out.0
}

fn unlisted(message: &[u8]) -> Result<Vec<Vec<Outcome>>> {
    let mut message = In(message);
    let outcome = |message: &mut In<'_>| {
        let (key, keeps) = (message.dims()?, message.byte()? == 1);
        let record = if message.byte()? == 1 { Some(message.record()?) } else { None };
        Ok(Outcome { key, record, keeps })
    };
    let count = message.number()?;
    let mut lists = Vec::new();
    for _ in 0..count {
        let count = message.number()?;
        lists.push((0..count).map(|_| outcome(&mut message)).collect::<Result<_>>()?);
    }
    Ok(lists)
}

/// Addresses for a rank, by dataset.
fn answer(places: &[Vec<u64>]) -> Vec<u8> {
    let mut out = Out::default();
    out.byte(1);
    out.number(places.len() as u64);
    places.iter().for_each(|places| out.dims(places));
    out.0
}

fn refusal() -> Vec<u8> {
    vec![0]
}

fn places_of(message: &[u8]) -> Result<Vec<Vec<u64>>> {
    let mut message = In(message);
    if message.byte()? == 0 {
        // What rank 0 has to say follows when all tell their outcome.
        return Ok(Vec::new());
    }
    let count = message.number()?;
    (0..count).map(|_| message.numbers()).collect()
}
