//! Handles that go with their file.
//!
//! A file of the library is closed when the last handle of it is gone. Closing it in Python means that every group,
//! dataset and datatype that was opened through it lets go of it, though Python may keep the objects: each has its
//! handle in a [`Slot`], of which the [`Keeper`] of the file knows.
//!
//! In a child of a fork, handles of the parent are never used again and never dropped: dropping the last would write a
//! file that the parent writes, or take its lock away. Slots get handles of the file that the child opened for itself.
//!
//! Locks of slots and keepers are held only by threads that hold the interpreter: Python forks with the interpreter held, so
//! a child finds all of them free.

use crate::context;
use crate::errors::invalid;
use pumice::File;
use pyo3::PyResult;
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

/// Slots are not searched for dropped handles below this number.
const FEW: usize = 64;

/// Clears the slots of a file.
#[derive(Default)]
pub(crate) struct Keeper {
    slots: Mutex<Slots>,
}

struct Slots {
    all: Vec<Weak<dyn Held>>,
    look_at: usize,
}

impl Default for Slots {
    fn default() -> Self {
        Self { all: Vec::new(), look_at: FEW }
    }
}

trait Held: Send + Sync {
    /// Takes the handle out, to be dropped by the caller.
    fn emptied(&self) -> Option<Box<dyn Send>>;

    /// Replaces the handle by one of the same object in a file that was opened again, or by none.
    fn replace(&self, file: Option<&File>);
}

/// Objects that can be found again in a file that was opened again.
pub(crate) trait Again: Sized {
    fn again(&self, file: &File) -> Option<Self>;
}

impl Again for File {
    fn again(&self, file: &File) -> Option<Self> {
        Some(file.clone())
    }
}

impl Keeper {
    /// A slot for a handle of the file.
    pub(crate) fn slot<T: Again + Send + Sync + 'static>(&self, handle: T) -> Arc<Slot<T>> {
        let slot = Arc::new(Slot(RwLock::new(Some(handle))));
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if slots.all.len() >= slots.look_at {
            slots.all.retain(|slot| slot.strong_count() > 0);
            slots.look_at = (slots.all.len() * 2).max(FEW);
        }
        let weak: Weak<Slot<T>> = Arc::downgrade(&slot);
        slots.all.push(weak);
        slot
    }

    /// Leaves the file to the parent of a fork. Handles that a thread of the parent held at that
    /// moment stay.
    pub(crate) fn replace(&self, file: Option<&File>) {
        let Ok(slots) = self.slots.try_lock() else { return };
        slots.all.iter().filter_map(Weak::upgrade).for_each(|slot| slot.replace(file));
    }

    /// Takes the handles out of all slots. Call it with the interpreter held, so that no fork comes in between; drop
    /// what it returns without, because the last handle writes.
    #[must_use]
    pub(crate) fn emptied(&self) -> Vec<Box<dyn Send>> {
        let slots = std::mem::take(&mut *self.slots.lock().unwrap_or_else(PoisonError::into_inner));
        slots.all.iter().filter_map(Weak::upgrade).filter_map(|slot| slot.emptied()).collect()
    }
}

/// A handle until its file is closed.
pub(crate) struct Slot<T>(RwLock<Option<T>>);

impl<T: Clone> Slot<T> {
    /// The handle, for one call.
    pub(crate) fn handle(&self) -> PyResult<T> {
        let handle = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        handle.ok_or_else(|| match context::has_forked() {
            false => invalid("the object was closed, or its file was"),
            true => invalid(
                "the object was closed, or its file was; files that can be changed stay with the process that opened \
                 them when it forks: open them again for reading",
            ),
        })
    }
}

impl<T> Slot<T> {
    /// Whether it still has its handle.
    pub(crate) fn is_open(&self) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Takes the handle out of the slot.
    pub(crate) fn take(&self) -> Option<T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<T: Again + Send + Sync + 'static> Held for Slot<T> {
    fn emptied(&self) -> Option<Box<dyn Send>> {
        self.take().map(|handle| Box::new(handle) as Box<dyn Send>)
    }

    fn replace(&self, file: Option<&File>) {
        let Ok(mut slot) = self.0.try_write() else { return };
        if let Some(old) = slot.take() {
            *slot = file.and_then(|file| old.again(file));
            std::mem::forget(old);
        }
    }
}
