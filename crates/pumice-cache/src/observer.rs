//! Who watches the cache at work: an [`Observer`] is told of every use of a chunk.
//!
//! Without one, that costs one relaxed load a use.

use std::any::Any;

use crate::policy::Usage;
use crate::sync::{AtomicBool, Mutex, Ordering};

/// Is told of every use of a chunk, in the order in which the policy is.
///
/// It is called while the cache's books are locked, and must not use the cache. Uses by requests of different
/// threads are interleaved.
///
/// ```
/// use pumice_cache::{Observer, Usage};
///
/// /// Counts uses.
/// #[derive(Default)]
/// struct Count(u64);
///
/// impl Observer for Count {
///     fn used(&mut self, _identity: u64, _bytes: u64, _usage: Usage) {
///         self.0 += 1;
///     }
/// }
/// let mut count = Count::default();
/// count.used(0xfeed, 4096, Usage::of(7));
/// assert_eq!(count.0, 1);
/// ```
pub trait Observer: Any + Send {
    /// The chunk that `identity` names, of `bytes` bytes in memory, is used.
    fn used(&mut self, identity: u64, bytes: u64, usage: Usage);
}

/// The place of an observer.
#[derive(Default)]
pub(crate) struct Watch {
    on: AtomicBool,
    observer: Mutex<Option<Box<dyn Observer>>>,
}

impl Watch {
    /// Puts another observer, or none, in the place of the one that is there.
    pub(crate) fn replace(&self, observer: Option<Box<dyn Observer>>) -> Option<Box<dyn Observer>> {
        let mut place = self.observer.lock();
        self.on.store(observer.is_some(), Ordering::Relaxed);
        std::mem::replace(&mut *place, observer)
    }

    /// Whether anybody wants to know.
    #[inline]
    pub(crate) fn on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// Tells of a use.
    pub(crate) fn used(&self, identity: u64, bytes: u64, usage: Usage) {
        if let Some(observer) = &mut *self.observer.lock() {
            observer.used(identity, bytes, usage);
        }
    }
}
