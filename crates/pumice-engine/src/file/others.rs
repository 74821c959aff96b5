//! Other files that links, references or virtual datasets of a file have led to. A commit reaches
//! those that are open for editing.

use super::File;
use super::refused::worse;
use crate::Result;
use crate::open_files::OpenEntry;
use std::sync::{Arc, PoisonError, Weak};

impl File {
    /// Whether the path of this file still names it.
    pub(crate) fn is_at_its_path(&self) -> bool {
        self.place.get().is_none_or(OpenEntry::is_at_its_path)
    }

    /// Notes that it has led to another file.
    pub(crate) fn note_outside(&self, other: &Arc<File>) {
        if !self.writable() || !other.writable() || std::ptr::eq(self, &**other) {
            return;
        }
        let mut outside = self.outside.lock().unwrap_or_else(PoisonError::into_inner);
        outside.retain(|known| known.strong_count() > 0);
        if !outside.iter().any(|known| std::ptr::eq(known.as_ptr(), &**other)) {
            outside.push(Arc::downgrade(other));
        }
    }

    /// The open files that this one has led to, and these in turn, each once.
    fn led_to(&self) -> Vec<Arc<File>> {
        let known = |file: &File| {
            let outside = file.outside.lock().unwrap_or_else(PoisonError::into_inner);
            outside.iter().filter_map(Weak::upgrade).collect::<Vec<_>>()
        };
        let (mut all, mut pending) = (Vec::<Arc<File>>::new(), known(self));
        while let Some(file) = pending.pop() {
            let again = std::ptr::eq(self, &*file) || all.iter().any(|one| Arc::ptr_eq(one, &file));
            if !again {
                pending.extend(known(&file));
                all.push(file);
            }
        }
        all
    }

    /// Commits all of them, also if one fails: they are independent.
    pub(super) fn commit_others(&self) -> Result<()> {
        let mut all = Ok(());
        for other in self.led_to() {
            let committed = other.commit_all(false).map_err(|error| match other.path() {
                Some(path) => error.in_file(&path.display().to_string()),
                None => error,
            });
            all = worse(all, committed);
        }
        all
    }
}
