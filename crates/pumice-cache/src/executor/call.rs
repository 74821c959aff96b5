//! A task that its caller lends to other threads until they have given it back.
//!
//! Threads that live longer than a call cannot borrow from it as far as the compiler can tell: the task is
//! lent to them by a pointer, and [`Call::run`] does not return, nor unwind, before the last [`Ticket`] is gone. Threads
//! that were made for each call could borrow, and would take longer to start than most calls last:
//! `cargo bench -p pumice-cache --bench pool` measures both.

#![allow(unsafe_code)]

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use crate::sync::{Arc, AtomicUsize, Condvar, Mutex, Ordering};

/// How long the calling thread waits for its helpers without sleeping: waking it takes as long.
const LINGER: Duration = Duration::from_micros(100);

/// What a call and its helpers share.
pub(super) struct Call {
    task: Lent,
    count: usize,
    /// The first number that nobody has taken.
    next: AtomicUsize,
    /// Tickets that are not given back yet.
    out: AtomicUsize,
    /// What the first helper that panicked said. Held while the last ticket is given back.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    back: Condvar,
}

/// A task of a caller who waits until nobody uses it any more.
struct Lent(*const (dyn Fn(usize) + Sync + 'static));

// SAFETY: it stands for a shared reference to something that is `Sync`.
unsafe impl Send for Lent {}
// SAFETY: as above.
unsafe impl Sync for Lent {}

/// The right to help with a call, until dropped.
pub(super) struct Ticket(Arc<Call>);

impl Call {
    /// Calls `task` with each number below `count`, with the help of all who get a ticket.
    ///
    /// `hand_out` gives the tickets to others; `take_back` lets go of those that nobody has begun to use.
    /// This waits for all others, and does nothing else meanwhile. It panics if a task has.
    pub(super) fn run(
        count: usize,
        task: &(dyn Fn(usize) + Sync),
        tickets: usize,
        hand_out: impl FnOnce(Vec<Ticket>),
        take_back: impl Fn(&Self),
    ) {
        let task: *const (dyn Fn(usize) + Sync + '_) = task;
        // SAFETY: only the lifetime changes. The pointer is used by who holds a ticket, and by this function
        // below; and `Wait` keeps this function from ending while there is a ticket.
        let task: *const (dyn Fn(usize) + Sync + 'static) = unsafe { std::mem::transmute(task) };
        let call = Arc::new(Call {
            task: Lent(task),
            count,
            next: AtomicUsize::new(0),
            out: AtomicUsize::new(tickets),
            panic: Mutex::new(None),
            back: Condvar::new(),
        });
        // Made before there is any ticket, and dropped also when something below panics.
        let wait = Wait { call: &call, take_back };
        hand_out((0..tickets).map(|_| Ticket(Arc::clone(&call))).collect());
        call.work();
        drop(wait);
        if let Some(panic) = call.panic.lock().take() {
            resume_unwind(panic);
        }
    }

    /// Takes numbers until there are none.
    fn work(&self) {
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            if index >= self.count {
                return;
            }
            // SAFETY: `Call::run` is still running: it is the caller, or waits for the caller's ticket.
            let task = unsafe { &*self.task.0 };
            task(index);
        }
    }

    fn all_back(&self) -> bool {
        self.out.load(Ordering::Acquire) == 0
    }

    /// Waits a little for helpers that are about to finish: who sleeps is woken late, and may be woken
    /// where the next helper is to run.
    fn linger(&self) {
        // A model has no clock.
        if cfg!(shuttle) {
            return;
        }
        let start = Instant::now();
        while !self.all_back() && start.elapsed() < LINGER {
            std::hint::spin_loop();
        }
    }
}

impl Ticket {
    /// Helps until the call has no number left.
    pub(super) fn help(&self) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.0.work())) {
            self.0.panic.lock().get_or_insert(panic);
        }
    }

    pub(super) fn is_of(&self, call: &Call) -> bool {
        std::ptr::eq(&*self.0, call)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // The caller asks while it holds the lock, and so cannot fall asleep in between.
        let held = self.0.panic.lock();
        let last = self.0.out.fetch_sub(1, Ordering::Release) == 1;
        drop(held);
        if last {
            self.0.back.notify_all();
        }
    }
}

/// Waits, when dropped, until no ticket of the call is left.
struct Wait<'c, F: Fn(&Call)> {
    call: &'c Call,
    take_back: F,
}

impl<F: Fn(&Call)> Drop for Wait<'_, F> {
    fn drop(&mut self) {
        if self.call.all_back() {
            return;
        }
        (self.take_back)(self.call);
        self.call.linger();
        let mut held = self.call.panic.lock();
        while !self.call.all_back() {
            held = self.call.back.wait(held);
        }
    }
}
