//! Chunks that cannot be encoded, told apart from a store that fails.
//!
//! What a filter refuses concerns one chunk: all others can be stored, and what is stored of this one is still
//! what it was. After a failure of the store, nobody knows what is in it. Whoever makes what is stored valid as a
//! whole, as a commit does, may go on after the first, and not after the second.

use crate::budget::{Cause, Concern};
use crate::layout::{Family, StoreId};
use crate::slot::Slot;

/// The chunks of a dataset that [`Layout::encode`](crate::Layout::encode) refused: they stay in memory, with their changes.
pub struct Refused<F: Family> {
    pub(crate) dataset: u64,
    /// Which they are, in their order; at least one.
    pub keys: Vec<F::Key>,
    /// Why the first cannot be encoded.
    pub error: F::Error,
}

impl<F: Family> std::fmt::Debug for Refused<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Refused").field("keys", &self.keys).finish_non_exhaustive()
    }
}

/// How it went to store chunks.
pub(crate) struct Saved<F: Family> {
    /// The first failure of each store.
    failed: Vec<(StoreId, F::Error)>,
    /// One for each dataset.
    refused: Vec<Refused<F>>,
}

impl<F: Family> Saved<F> {
    /// All were.
    pub(crate) fn all() -> Self {
        Saved { failed: Vec::new(), refused: Vec::new() }
    }

    /// Takes note of a chunk that cannot be encoded.
    pub(crate) fn refuse(&mut self, slot: &Slot<F>, error: F::Error) {
        let (dataset, keys) = (slot.member.id, vec![slot.key.clone()]);
        self.add(Refused { dataset, keys, error });
    }

    /// Takes note of what became of chunks that could be encoded.
    pub(crate) fn store(&mut self, store: StoreId, outcome: Result<(), F::Error>) {
        if let Err(error) = outcome
            && self.failed.iter().all(|(known, _)| *known != store)
        {
            self.failed.push((store, error));
        }
    }

    /// What became of these chunks, and then of others.
    pub(crate) fn then(&mut self, later: Self) {
        later.failed.into_iter().for_each(|(store, error)| self.store(store, Err(error)));
        later.refused.into_iter().for_each(|refused| self.add(refused));
    }

    fn add(&mut self, new: Refused<F>) {
        match self.refused.iter_mut().find(|known| known.dataset == new.dataset) {
            Some(known) => known.keys.extend(new.keys),
            None => self.refused.push(new),
        }
    }

    /// Why a chunk of these, which is still dirty, could not be stored; `None`: it could.
    pub(crate) fn failure(&self, slot: &Slot<F>) -> Option<Cause> {
        let of = |refused: &Refused<F>| refused.dataset == slot.member.id;
        if self.refused.iter().any(|one| of(one) && one.keys.contains(&slot.key)) {
            return Some(Cause::Refused);
        }
        let store = slot.layout.chunks().id();
        self.failed.iter().any(|(known, _)| *known == store).then_some(Cause::Store)
    }

    /// The first error that concerns somebody.
    pub(crate) fn concerning(self, concern: &Concern) -> Result<(), F::Error> {
        let failed = self.failed.into_iter().find(|(store, _)| concern.store(*store));
        let refused = self.refused.into_iter().find(|one| concern.dataset(one.dataset));
        let error = failed.map(|(_, error)| error).or(refused.map(|one| one.error));
        error.map_or(Ok(()), Err)
    }

    /// The chunks that were refused, unless a store failed.
    pub(crate) fn apart(self) -> Result<Vec<Refused<F>>, F::Error> {
        let first = self.failed.into_iter().next();
        first.map_or(Ok(self.refused), |(_, error)| Err(error))
    }

    /// One error, whatever its kind.
    pub(crate) fn result(self) -> Result<(), F::Error> {
        match self.apart()?.into_iter().next() {
            Some(refused) => Err(refused.error),
            None => Ok(()),
        }
    }
}
