//! Statics that a child of a fork does not share with its parent.
//!
//! A fork copies memory, but of the threads only the one that forks. A mutex that another thread held is held for ever in
//! the child. So the child never touches what its parent had: it makes its own at first use, and waits for nobody.
//!
//! Invariant: what the pointer leads to is never freed.

use std::process;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A static value that each process makes for itself.
///
/// ```
/// use pumice_cache::PerProcess;
/// use std::sync::Mutex;
///
/// static NAMES: PerProcess<Mutex<Vec<&str>>> = PerProcess::new();
/// NAMES.here().lock().unwrap().push("basalt");
/// assert_eq!(*NAMES.here().lock().unwrap(), ["basalt"]);
/// ```
#[derive(Debug)]
pub struct PerProcess<T> {
    newest: AtomicPtr<Own<T>>,
}

#[derive(Debug)]
struct Own<T> {
    process: u32,
    value: T,
}

impl<T: Default + Send + Sync> PerProcess<T> {
    /// Nothing until somebody asks.
    #[expect(clippy::new_without_default)]
    pub const fn new() -> Self {
        Self { newest: AtomicPtr::new(ptr::null_mut()) }
    }

    /// The value of this process.
    pub fn here(&'static self) -> &'static T {
        let process = process::id();
        let newest = self.newest.load(Ordering::Acquire);
        // SAFETY: null, or a box that was leaked below and is never changed or freed.
        if let Some(own) = unsafe { newest.as_ref() }
            && own.process == process
        {
            return &own.value;
        }
        let own = Box::into_raw(Box::new(Own { process, value: T::default() }));
        let (order, failure) = (Ordering::AcqRel, Ordering::Acquire);
        match self.newest.compare_exchange(newest, own, order, failure) {
            // SAFETY: leaked above.
            Ok(_) => unsafe { &(*own).value },
            Err(other) => {
                // SAFETY: nobody else has seen this box; another thread of this process has put in its own, which is
                // never freed.
                unsafe {
                    drop(Box::from_raw(own));
                    &(*other).value
                }
            }
        }
    }
}
