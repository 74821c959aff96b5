//! Where the pool's threads sleep, so that none of them is woken behind the thread that calls for it.
//!
//! A thread is woken where it ran last, or where the one runs that wakes it. After a busy millisecond of any
//! program, Linux seems not to look for an idle processor any more, and the helper begins when the caller is
//! done and waits for it: of 24 requests of a millisecond, 15 on two processors were served by the caller alone,
//! although the other one was idle.
//!
//! So each thread notes its processor when it has no more work. Who calls for helpers forbids its own
//! processor to those that sleep there, and where they are few to all; a thread allows it to itself again as
//! soon as it runs, and the caller does when it has nothing else to do. A thread that may run on one
//! processor alone is left as it is, and so is whatever the system refuses.

use std::sync::{Mutex, PoisonError};

use rustix::thread::{CpuSet, Pid, gettid, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// So many threads are all sent away: with more of them the system has more processors to choose from, and
/// each takes a call.
const FEW: usize = 3;

/// One perch for each thread of the pool.
#[derive(Debug)]
pub(crate) struct Perches(Vec<Mutex<Perch>>);

#[derive(Debug, Default)]
struct Perch {
    /// The thread that sleeps here and its processor; `None` while it works, or has never worked.
    asleep: Option<(Pid, usize)>,
    /// The processors that the thread may use once it is awake, if it was told to wake elsewhere.
    allowed: Option<CpuSet>,
}

impl Perches {
    pub(crate) fn new(threads: usize) -> Self {
        Perches((0..threads).map(|_| Mutex::default()).collect())
    }

    /// To be called before helpers are woken: they will wake on another processor than the caller's.
    pub(crate) fn make_way(&self) {
        let (here, few) = (sched_getcpu(), self.0.len() <= FEW);
        for perch in &self.0 {
            // One that is just being used is no sleeper's.
            let Ok(mut perch) = perch.try_lock() else { continue };
            if let Some((thread, processor)) = perch.asleep
                && (few || processor == here)
                && perch.allowed.is_none()
            {
                perch.allowed = forbid(thread, here);
            }
        }
    }

    /// To be called once the caller's processor is free: helpers that have not woken may do so anywhere.
    pub(crate) fn come_back(&self) {
        for perch in &self.0 {
            let Ok(mut perch) = perch.try_lock() else { continue };
            if let Some((thread, _)) = perch.asleep
                && let Some(allowed) = perch.allowed.take()
            {
                let _ = sched_setaffinity(Some(thread), &allowed);
            }
        }
    }

    /// Notes that the pool's thread of this number works, until the result is dropped.
    pub(crate) fn leave(&self, index: usize) -> Option<Awake<'_>> {
        let perch = self.0.get(index)?;
        let mut own = perch.lock().unwrap_or_else(PoisonError::into_inner);
        own.asleep = None;
        if let Some(allowed) = own.allowed.take() {
            // The thread stays where it is; were this refused, it would do without one processor.
            let _ = sched_setaffinity(None, &allowed);
        }
        Some(Awake(perch))
    }
}

/// Keeps a thread from a processor; returns what it was allowed before, if it was kept from it.
fn forbid(thread: Pid, processor: usize) -> Option<CpuSet> {
    let before = sched_getaffinity(Some(thread)).ok()?;
    if processor >= CpuSet::MAX_CPU || !before.is_set(processor) || before.count() < 2 {
        return None;
    }
    let mut others = before;
    others.unset(processor);
    sched_setaffinity(Some(thread), &others).ok()?;
    Some(before)
}

/// A thread of the pool that is working.
pub(crate) struct Awake<'a>(&'a Mutex<Perch>);

impl Drop for Awake<'_> {
    fn drop(&mut self) {
        let mut perch = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        perch.asleep = Some((gettid(), sched_getcpu()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    /// Binds the calling thread to a processor.
    fn bind(processor: usize) {
        let mut only = CpuSet::new();
        only.set(processor);
        sched_setaffinity(None, &only).expect("one of the processors that were allowed");
    }

    #[test]
    fn a_thread_that_sleeps_where_the_caller_runs_wakes_elsewhere_and_may_come_back() {
        let perches = Perches::new(1);
        let (wake, woken) = channel::<()>();
        let (tell, told) = channel();
        std::thread::scope(|scope| {
            let perches = &perches;
            scope.spawn(move || {
                drop(perches.leave(0));
                let before = sched_getaffinity(None).expect("known");
                tell.send((gettid(), before)).expect("the caller listens");
                woken.recv().expect("the caller wakes");
                let during = sched_getaffinity(None).expect("known");
                let awake = perches.leave(0);
                tell.send((gettid(), during)).expect("the caller listens");
                let after = sched_getaffinity(None).expect("known");
                tell.send((gettid(), after)).expect("the caller listens");
                drop(awake);
            });
            let (thread, before) = told.recv().expect("the thread tells");
            let place = perches.0[0].lock().expect("not poisoned").asleep.expect("it sleeps").1;
            bind(place);
            perches.make_way();
            perches.come_back();
            assert_eq!(sched_getaffinity(Some(thread)).expect("known"), before);
            perches.make_way();
            perches.make_way();
            wake.send(()).expect("the thread listens");
            let (_, during) = told.recv().expect("the thread tells");
            let (same, after) = told.recv().expect("the thread tells");
            assert_eq!(thread, same);
            assert_eq!(during.is_set(place), before.count() < 2, "unless there is no other");
            assert_eq!(after, before);
        });
    }

    #[test]
    fn threads_of_many_that_sleep_elsewhere_or_work_are_left_alone() {
        let perches = Perches::new(FEW + 1);
        let before = sched_getaffinity(None).expect("known");
        let told = |perches: &Perches| {
            let allowed =
                |perch: &Mutex<Perch>| perch.lock().expect("not poisoned").allowed.is_some();
            perches.0.iter().any(allowed)
        };
        let awake = perches.leave(0);
        perches.make_way();
        assert!(!told(&perches), "it works");
        drop(awake);
        let mut perch = perches.0[0].lock().expect("not poisoned");
        let (thread, place) = perch.asleep.expect("it sleeps");
        perch.asleep = Some((thread, place + 1));
        drop(perch);
        bind(place);
        perches.make_way();
        assert!(!told(&perches), "it sleeps elsewhere");
        assert!(perches.leave(FEW + 1).is_none());
        sched_setaffinity(None, &before).expect("what it was");
    }
}
