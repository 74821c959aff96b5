//! Chunks that could not be written back, and whom that concerns.
//!
//! A chunk that a filter refuses concerns its own dataset: all others can be stored. A store that fails concerns
//! whoever writes to it. Nobody else is told, and nobody who only reads.

use smallvec::SmallVec;

use super::{Resident, State};
use crate::layout::{Family, StoreId};
use crate::member::Member;

/// Why a chunk could not be written back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// It cannot be encoded.
    Refused,
    /// Its store failed.
    Store,
}

/// What a request changes, and so whose failures are its own.
#[derive(Debug, Default)]
pub(crate) struct Concern(SmallVec<[(u64, StoreId); 1]>);

impl Concern {
    /// That of a request that changes nothing.
    pub(crate) fn none() -> Self {
        Concern::default()
    }

    /// Adds a dataset that is changed.
    pub(crate) fn add<F: Family>(&mut self, member: &Member<F>) {
        if !self.dataset(member.id) {
            self.0.push((member.id, member.store()));
        }
    }

    /// Whether what a filter refuses of a dataset matters.
    pub(crate) fn dataset(&self, dataset: u64) -> bool {
        self.0.iter().any(|(known, _)| *known == dataset)
    }

    /// Whether it matters that a store fails.
    pub(crate) fn store(&self, store: StoreId) -> bool {
        self.0.iter().any(|(_, known)| *known == store)
    }

    fn stuck<F: Family>(&self, resident: &Resident<F>) -> bool {
        let member = &resident.slot.member;
        match resident.stuck {
            Some(Cause::Refused) => self.dataset(member.id),
            Some(Cause::Store) => self.store(member.store()),
            None => false,
        }
    }
}

/// Which chunks are tried again that could not be written back before.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Again<'c> {
    None,
    Concerning(&'c Concern),
    All,
}

impl Again<'_> {
    /// Whether a chunk may leave, as far as this matters.
    pub(super) fn may_try<F: Family>(self, resident: &Resident<F>) -> bool {
        resident.stuck.is_none()
            || match self {
                Again::None => false,
                Again::Concerning(concern) => concern.stuck(resident),
                Again::All => true,
            }
    }
}

impl<F: Family> State<F> {
    /// Whether chunks could not be written back: none, others', or such that concern the one who asks.
    pub(super) fn stuck(&self, concern: &Concern) -> Option<Whose> {
        let mut found = None;
        for resident in self.residents.iter().flatten().filter(|one| one.stuck.is_some()) {
            if concern.stuck(resident) {
                return Some(Whose::Own);
            }
            found = Some(Whose::Others);
        }
        found
    }
}

/// Whose chunks could not be written back.
pub(super) enum Whose {
    Own,
    Others,
}
