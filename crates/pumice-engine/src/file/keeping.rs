//! Files that keep other files open: a virtual dataset keeps the files of its sources.
//!
//! Invariant: files do not keep each other open in a circle, for then none of them would ever be
//! closed. A file that would close a circle is not kept; it is opened again when it is needed.
//!
//! Lock order: this list comes after every other lock. No file is dropped while it is held.

use super::File;
use pumice_cache::PerProcess;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// For each file, by number, the files that it keeps open, once for each use.
static KEPT: PerProcess<Mutex<HashMap<u64, Vec<u64>>>> = PerProcess::new();

fn all() -> MutexGuard<'static, HashMap<u64, Vec<u64>>> {
    KEPT.here().lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file that another keeps open.
pub(crate) struct KeptFile {
    file: Arc<File>,
    by: u64,
}

impl KeptFile {
    /// Lets the file with the number `by` keep `file` open, unless `file` keeps it already,
    /// directly or through others.
    pub(crate) fn new(by: u64, file: &Arc<File>) -> Option<Self> {
        let mut all = all();
        if leads_to(&all, file.number, by) {
            return None;
        }
        all.entry(by).or_default().push(file.number);
        Some(Self { file: file.clone(), by })
    }

    /// The file.
    pub(crate) fn file(&self) -> &Arc<File> {
        &self.file
    }
}

impl Drop for KeptFile {
    fn drop(&mut self) {
        let mut all = all();
        let Some(kept) = all.get_mut(&self.by) else { return };
        if let Some(place) = kept.iter().position(|&number| number == self.file.number) {
            kept.swap_remove(place);
        }
        if kept.is_empty() {
            all.remove(&self.by);
        }
    }
}

/// Whether `from` is `to`, or keeps it open, directly or through others.
fn leads_to(all: &HashMap<u64, Vec<u64>>, from: u64, to: u64) -> bool {
    let (mut seen, mut pending) = (HashSet::from([from]), vec![from]);
    while let Some(number) = pending.pop() {
        if number == to {
            return true;
        }
        let further = all.get(&number).into_iter().flatten();
        pending.extend(further.filter(|&&next| seen.insert(next)));
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use pumice_cache::{ChunkCache, Config};
    use pumice_store::MemoryStore;

    #[test]
    fn files_keep_each_other_in_one_direction() {
        let made = || {
            let cache = ChunkCache::new(Config::default());
            File::create(Arc::new(MemoryStore::default()), cache, &Default::default()).unwrap()
        };
        let [a, b, c] = [made(), made(), made()];
        assert!(KeptFile::new(a.number, &a).is_none());
        let first = KeptFile::new(a.number, &b).unwrap();
        let again = KeptFile::new(a.number, &b).unwrap();
        let second = KeptFile::new(b.number, &c).unwrap();
        assert!(KeptFile::new(c.number, &a).is_none() && KeptFile::new(b.number, &a).is_none());
        drop(first);
        assert!(KeptFile::new(c.number, &a).is_none());
        drop(again);
        let third = KeptFile::new(c.number, &a).unwrap();
        assert!(KeptFile::new(a.number, &b).is_none());
        drop((second, third));
        assert!([&a, &b, &c].iter().all(|file| !all().contains_key(&file.number)));
    }
}
