//! A dataset that several ranks have open together.

use crate::call::Call;
use crate::entry::{Entry, bench};
use crate::file::{CollectiveFile, Inner, State};
use crate::owners::{Share, choose};
use crate::pieces::{Parts, Values, apply, whole_message};
use crate::wire::{In, Out};
use crate::{CollectiveError, Result};
use pumice::{Dataset, H5Type, Select, Selection};
use pumice_space::{ChunkGrid, Dims};
use pumice_types::{Conversion, Datatype, Heaped, plain};
use std::collections::BTreeMap;

/// A dataset that several ranks have open together. All calls are collective unless they say otherwise.
///
/// A rank that has nothing to do in a call makes it with an empty selection.
#[derive(Clone, Debug)]
pub struct CollectiveDataset {
    file: CollectiveFile,
    at: usize,
}

impl CollectiveDataset {
    pub(crate) fn new(file: CollectiveFile, at: usize) -> Self {
        Self { file, at }
    }

    fn inner(&self) -> &Inner {
        &self.file.inner
    }

    /// Its path. Not a collective call.
    pub fn path(&self) -> Result<String> {
        self.look(|entry| entry.path.clone())
    }

    /// Its shape. Not a collective call.
    pub fn shape(&self) -> Result<Vec<u64>> {
        self.look(|entry| entry.bench.shape())
    }

    /// The type of its elements. Not a collective call.
    pub fn datatype(&self) -> Result<Datatype> {
        self.look(|entry| entry.bench.datatype().clone())
    }

    fn look<T>(&self, look: impl FnOnce(&Entry) -> T) -> Result<T> {
        let state = self.inner().state();
        state.check()?;
        Ok(look(&state.entries[self.at]))
    }

    /// Writes values to this rank's cells. Where ranks write the same cell, the last rank's value stays.
    ///
    /// Values of Rust types with strings or sequences get zeros for members that the type lacks.
    pub fn write<T: H5Type>(&self, selection: impl Select, values: &[T]) -> Result<()> {
        let made = self.values(values);
        self.write_values(selection, made, false)
    }

    /// Writes packed elements of any datatype that converts to the dataset's.
    pub fn write_as(
        &self,
        selection: impl Select,
        datatype: &Datatype,
        bytes: &[u8],
    ) -> Result<()> {
        self.write_values(selection, Ok(Values::Plain(datatype.clone(), bytes)), false)
    }

    /// Writes elements of the dataset's own type with everything that they refer to.
    pub fn write_heaped(&self, selection: impl Select, values: Heaped) -> Result<()> {
        self.write_values(selection, Ok(Values::Heaped(values)), false)
    }

    /// Makes the selected cells undefined in a sparse dataset; gives them the fill value in others.
    pub fn erase(&self, selection: impl Select) -> Result<()> {
        self.write_values(selection, Ok(Values::None), true)
    }

    /// Writes values to chunks that no other rank changes before the next flush. Not a collective call: nothing is
    /// told to others before the next collective flush, which fails if another rank has changed one of the chunks.
    ///
    /// Only for datasets of chunks that contain their values: not for strings in dense chunks.
    pub fn write_alone<T: H5Type>(&self, selection: impl Select, values: &[T]) -> Result<()> {
        self.change_alone(selection, self.values(values)?)
    }

    /// [`write_alone`](Self::write_alone) of packed elements of any datatype that converts to the dataset's.
    pub fn write_alone_as(
        &self,
        selection: impl Select,
        datatype: &Datatype,
        bytes: &[u8],
    ) -> Result<()> {
        self.change_alone(selection, Values::Plain(datatype.clone(), bytes))
    }

    fn change_alone(&self, selection: impl Select, values: Values<'_>) -> Result<()> {
        let mut state = self.inner().state();
        state.check()?;
        let entry = &mut state.entries[self.at];
        if !entry.spread {
            let what =
                "independent writes of a dataset that has no chunks with all of their values";
            return Err(pumice::Error::Unsupported(what.into()).into());
        }
        let (selection, grid) = (selected(entry, &selection, &values)?, entry.grid()?);
        let parts = Parts::of(&selection, &grid)?;
        let view = entry.view.clone();
        for share in parts.shares(&grid) {
            entry.bring(&share.key, view.as_ref(), share.whole, false)?;
        }
        values.write(&entry.bench, &selection)
    }

    /// Reads this rank's cells, after all that was written before is flushed.
    pub fn read<T: H5Type>(&self, selection: impl Select) -> Result<Vec<T>> {
        let reader = self.reader()?;
        let read = reader.read(selection).map_err(CollectiveError::from);
        let mut state = self.inner().state();
        self.inner().agree(&mut state, read)
    }

    /// The dataset as all ranks' changes leave it, for reading by this rank with its own cache. Flushes if there
    /// are changes. Reading from it is not collective. It is of use until the next flush: then ask again, for space
    /// that it names may be used again.
    pub fn reader(&self) -> Result<Dataset> {
        let inner = self.inner();
        let mut state = inner.state();
        inner.gather_changes(&mut state, Call::Read(self.at))?;
        let view = match &state.entries[self.at].view {
            Some(view) => Ok(view.clone()),
            None => Err(CollectiveError::Broken("nothing is committed".into())),
        };
        inner.agree(&mut state, view)
    }

    /// Changes the shape within the maximum, after a flush, and commits that. All ranks give the same shape.
    pub fn resize(&self, shape: impl AsRef<[u64]>) -> Result<()> {
        let (inner, shape) = (self.inner(), shape.as_ref());
        let mut state = inner.state();
        let mut told = Out::default();
        told.dims(shape);
        let all = inner.gather(&mut state, Call::Resize(self.at), Ok(told.0))?;
        if all.iter().any(|other| *other != all[0]) {
            let what = format!("ranks give different shapes, this one {shape:?}");
            return Err(CollectiveError::Disagree(what));
        }
        inner.store_changes(&mut state)?;
        let resized = match &state.entries[self.at].root {
            Some(root) => root.resize(shape).map_err(CollectiveError::from),
            None => Ok(()),
        };
        inner.agree(&mut state, resized)?;
        state.changed = true;
        inner.store_changes(&mut state)
    }

    /// Values of a type of Rust, as plain bytes or as elements of the file.
    fn values<'v, T: H5Type>(&self, values: &'v [T]) -> Result<Values<'v>> {
        let own = self.datatype()?;
        if let Some(bytes) = plain::bytes(values)
            && Conversion::new(&T::datatype(), &own).is_ok()
        {
            return Ok(Values::Plain(T::datatype(), bytes));
        }
        let count = values.len() as u64;
        let describe = |file: &pumice::File| file.new_dataset_of(own.clone()).shape([count]);
        let scratch = bench(&self.inner().context, describe)?;
        scratch.write(.., values)?;
        Ok(Values::Heaped(scratch.read_heaped(..)?))
    }

    fn write_values(
        &self,
        selection: impl Select,
        values: Result<Values<'_>>,
        erases: bool,
    ) -> Result<()> {
        let inner = self.inner();
        let mut state = inner.state();
        state.check()?;
        let made = values
            .and_then(|values| Write::new(&state.entries[self.at], &selection, values, erases));
        let call = if erases { Call::Erase(self.at) } else { Call::Write(self.at) };
        let (write, told) = match made {
            Ok(write) => {
                let told = summary(&write.shares);
                (Some(write), Ok(told))
            }
            Err(error) => (None, Err(error)),
        };
        let all = inner.gather(&mut state, call, told)?;
        let Some(write) = write else { return Err(CollectiveError::Broken("no write".into())) };
        let shares = all.iter().map(|told| shares_of(told)).collect::<Result<Vec<_>>>();
        let shares = inner.fatal(&mut state, shares)?;
        let done = match state.entries[self.at].spread {
            true => self.exchange(&mut state, &write, &shares),
            false => self.to_root(&mut state, &write, &shares),
        };
        // Who has not sent a message that others wait for cannot go on.
        let done = inner.ending(&mut state, done)?;
        inner.agree(&mut state, done)
    }

    /// Sends what is others', and does what is one's own, in the order of ranks. The inner error concerns values.
    fn exchange(
        &self,
        state: &mut State,
        write: &Write<'_>,
        shares: &[Vec<Share>],
    ) -> Result<Result<()>> {
        let inner = self.inner();
        let (me, size) = (inner.comm.rank(), inner.comm.size());
        let entry = &mut state.entries[self.at];
        choose(&mut entry.owners, shares);
        let owners = &entry.owners;
        let owns =
            |rank: usize, share: &Share| share.cells > 0 && owners.get(&share.key) == Some(&rank);
        for to in (0..size).filter(|&to| to != me) {
            if shares[me].iter().any(|share| owns(to, share)) {
                inner.comm.send(to, write.message(entry, |key| owners.get(key) == Some(&to))?)?;
            }
        }
        let mut mine: BTreeMap<Dims, bool> = BTreeMap::new();
        for share in shares.iter().flatten().filter(|share| owns(me, share)) {
            *mine.entry(share.key.clone()).or_default() |= share.whole;
        }
        let senders: Vec<usize> =
            (0..size).filter(|&rank| shares[rank].iter().any(|share| owns(me, share))).collect();
        let all_mine = shares[me].iter().all(|share| share.cells == 0 || owns(me, share));
        let own = match senders.contains(&me) && !all_mine {
            true => Some(write.message(entry, |key| owners.get(key) == Some(&me))?),
            false => None,
        };
        let view = entry.view.clone();
        let mut done = mine
            .iter()
            .try_for_each(|(key, &whole)| entry.bring(key, view.as_ref(), whole, write.erases));
        for from in senders {
            let message = match (from == me, &own) {
                (true, None) => None,
                (true, Some(own)) => Some(own.clone()),
                (false, _) => Some(inner.comm.receive(from)?),
            };
            // Messages are taken even if there was an error: the next call must not find them.
            done = done.and_then(|()| match message {
                Some(message) => apply(&message, &entry.bench, write.grid.rank()),
                None => write.apply_here(&entry.bench),
            });
        }
        Ok(done)
    }

    /// Rank 0 does all writing of datasets that are not in chunks, or whose strings are elsewhere in the file.
    fn to_root(
        &self,
        state: &mut State,
        write: &Write<'_>,
        shares: &[Vec<Share>],
    ) -> Result<Result<()>> {
        let inner = self.inner();
        let any = |rank: usize| shares[rank].iter().any(|share| share.cells > 0);
        state.changed |= (0..shares.len()).any(any);
        let entry = &state.entries[self.at];
        let Some(root) = &entry.root else {
            if any(inner.comm.rank()) {
                inner.comm.send(0, write.whole(entry)?)?;
            }
            return Ok(Ok(()));
        };
        let mut done = Ok(());
        for from in (0..shares.len()).filter(|&rank| any(rank)) {
            let message = if from == 0 { None } else { Some(inner.comm.receive(from)?) };
            done = done.and_then(|()| match message {
                Some(message) => apply(&message, root, write.grid.rank()),
                None => write.values.write(root, &write.selection),
            });
        }
        Ok(done)
    }
}

/// What one rank hands in to a write.
struct Write<'v> {
    selection: Selection,
    values: Values<'v>,
    grid: ChunkGrid,
    parts: Parts,
    shares: Vec<Share>,
    erases: bool,
}

impl<'v> Write<'v> {
    fn new(
        entry: &Entry,
        selection: &dyn Select,
        values: Values<'v>,
        erases: bool,
    ) -> Result<Self> {
        let (selection, grid) = (selected(entry, &selection, &values)?, entry.grid()?);
        if !entry.spread {
            let cells = selection.count(grid.dims());
            let shares = vec![Share { key: Dims::new(), cells, whole: false }];
            return Ok(Self {
                selection,
                values,
                grid,
                parts: Parts::Erased(vec![]),
                shares,
                erases,
            });
        }
        let parts = match erases {
            true => Parts::among(&selection, &grid, &stored(entry)?)?,
            false => Parts::of(&selection, &grid)?,
        };
        let shares = parts.shares(&grid);
        Ok(Self { selection, values, grid, parts, shares, erases })
    }

    fn message(&self, entry: &Entry, wanted: impl Fn(&Dims) -> bool) -> Result<Vec<u8>> {
        self.parts.message(&self.values, entry.bench.datatype(), &self.grid, wanted)
    }

    fn whole(&self, entry: &Entry) -> Result<Vec<u8>> {
        let own = entry.bench.datatype();
        whole_message(&self.selection, &self.values, own, self.grid.dims())
    }

    /// All of it, where all of it is this rank's own.
    fn apply_here(&self, bench: &Dataset) -> Result<()> {
        match self.shares.iter().any(|share| share.cells > 0) {
            true => self.values.write(bench, &self.selection),
            false => Ok(()),
        }
    }
}

/// The selection, if there is a value for each of its cells.
fn selected(entry: &Entry, selection: &dyn Select, values: &Values<'_>) -> Result<Selection> {
    let dims = entry.bench.shape();
    let selection = selection.select(&dims)?;
    selection.check(&dims)?;
    values.check(selection.count(&dims), entry.bench.datatype())?;
    Ok(selection)
}

/// The chunks that are stored, or that somebody has changed, in row-major order.
fn stored(entry: &Entry) -> Result<Vec<Dims>> {
    let mut keys: Vec<Dims> = entry.owners.keys().chain(entry.touched.keys()).cloned().collect();
    if let Some(view) = &entry.view {
        let chunk = view.chunk().unwrap_or_default();
        let mut chunks = view.as_engine().stored_chunks()?;
        while let Some((origin, _)) = view.as_engine().next_stored(&mut chunks)? {
            keys.push(origin.iter().zip(&chunk).map(|(at, side)| at / side).collect());
        }
    }
    keys.sort_unstable();
    keys.dedup();
    Ok(keys)
}

fn summary(shares: &[Share]) -> Vec<u8> {
    let mut out = Out::default();
    for share in shares {
        out.dims(&share.key);
        out.number(share.cells);
        out.byte(u8::from(share.whole));
    }
    out.0
}

fn shares_of(told: &[u8]) -> Result<Vec<Share>> {
    let mut told = In(told);
    let mut shares = Vec::new();
    while !told.is_empty() {
        let (key, cells, whole) = (told.dims()?, told.number()?, told.byte()? == 1);
        shares.push(Share { key, cells, whole });
    }
    Ok(shares)
}
