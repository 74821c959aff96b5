//! Which chunks are known not to be stored, so that a mostly empty dataset is not searched for them
//! again and again.
//!
//! What is known stays true while it is known: it is noted by a request that has its turn, forgotten
//! by a write before it makes the chunk, and forgotten for all of a dataset when its shape changes,
//! by giving its [`shape`](crate::member::Member::shape) another number. The memory is counted in the
//! budget and bounded: when the young generation is full it becomes the old one, whose place it takes.

use hashbrown::HashTable;

use crate::sync::{Mutex, MutexGuard};

/// The part of the resident limit that may be taken: one in so many bytes.
pub(crate) const PART: u64 = 64;

pub(crate) struct Absent<K>(Mutex<Generations<K>>);

pub(crate) struct Generations<K> {
    young: HashTable<Entry<K>>,
    old: HashTable<Entry<K>>,
}

struct Entry<K> {
    hash: u64,
    dataset: u64,
    shape: u64,
    key: K,
}

/// A chunk of a dataset, hashed with the dataset.
pub(crate) struct Name<'k, K> {
    pub(crate) hash: u64,
    pub(crate) dataset: u64,
    pub(crate) shape: u64,
    pub(crate) key: &'k K,
}

impl<K: Eq> Entry<K> {
    fn is(&self, name: &Name<'_, K>) -> bool {
        self.hash == name.hash
            && (self.dataset, self.shape) == (name.dataset, name.shape)
            && self.key == *name.key
    }
}

impl<K: Clone + Eq> Absent<K> {
    pub(crate) fn new() -> Self {
        Absent(Mutex::new(Generations { young: HashTable::new(), old: HashTable::new() }))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Generations<K>> {
        self.0.lock()
    }
}

impl<K: Clone + Eq> Generations<K> {
    pub(crate) fn contains(&self, name: &Name<'_, K>) -> bool {
        let found = |table: &HashTable<Entry<K>>| table.find(name.hash, |e| e.is(name)).is_some();
        found(&self.young) || found(&self.old)
    }

    /// Notes a chunk; both generations together take `most` bytes at most.
    pub(crate) fn insert(&mut self, name: &Name<'_, K>, most: u64) {
        let size = Self::entry_size();
        // A table keeps an eighth of its places free, and doubles when they are used up.
        let places = (most / 2 / size) as usize;
        if places < 8 {
            return;
        }
        if self.young.len() >= places / 16 * 7 {
            self.old = std::mem::take(&mut self.young);
        }
        if !self.contains(name) {
            let &Name { hash, dataset, shape, key } = name;
            let entry = Entry { hash, dataset, shape, key: key.clone() };
            self.young.insert_unique(hash, entry, |entry| entry.hash);
        }
    }

    pub(crate) fn remove(&mut self, name: &Name<'_, K>) {
        for table in [&mut self.young, &mut self.old] {
            if let Ok(entry) = table.find_entry(name.hash, |entry| entry.is(name)) {
                entry.remove();
            }
        }
    }

    /// Forgets everything if it takes more than `most` bytes.
    pub(crate) fn limit(&mut self, most: u64) {
        if self.bytes() > most {
            (self.young, self.old) = Default::default();
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.young.is_empty() && self.old.is_empty()
    }

    /// The memory that is taken.
    pub(crate) fn bytes(&self) -> u64 {
        let places = |table: &HashTable<Entry<K>>| match table.capacity() {
            0 => 0,
            usable => (usable + 1).next_power_of_two().max(usable * 8 / 7) as u64,
        };
        (places(&self.young) + places(&self.old)) * Self::entry_size()
    }

    fn entry_size() -> u64 {
        size_of::<Entry<K>>() as u64 + 1
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    fn name(key: &u64) -> Name<'_, u64> {
        Name { hash: key.wrapping_mul(0x9e37_79b9_7f4a_7c15), dataset: 1, shape: 0, key }
    }

    #[test]
    fn what_was_noted_last_is_known_and_memory_stays_bounded() {
        let absent = Absent::new();
        let mut known = absent.lock();
        for key in 0..10_000 {
            known.insert(&name(&key), 40_000);
            assert!(known.contains(&name(&key)));
            assert!(known.bytes() <= 40_000, "{}", known.bytes());
        }
        assert!(!known.contains(&name(&0)));
        assert!(known.contains(&name(&9_900)));
        known.remove(&name(&9_900));
        assert!(!known.contains(&name(&9_900)) && !known.is_empty());
        assert!(!known.contains(&Name { shape: 1, ..name(&9_901) }));
        assert!(!known.contains(&Name { dataset: 2, ..name(&9_901) }));
    }

    #[test]
    fn without_memory_nothing_is_noted() {
        let absent = Absent::new();
        absent.lock().insert(&name(&1), 100);
        assert!(absent.lock().is_empty());
    }
}
