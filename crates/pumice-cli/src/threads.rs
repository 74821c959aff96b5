//! Work that threads share for the length of one call.
//!
//! The calling thread takes part, and others as far as the system lets them begin: if memory or
//! threads are limited, fewer do the work, in the end the caller alone.

use std::sync::Mutex;
use std::thread::Builder;

/// The number of threads that the machine runs at once.
pub(crate) fn available() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Runs `work` on the calling thread and on up to `threads - 1` others. Results are in no order.
pub(crate) fn on_several<T: Send>(threads: usize, work: impl Fn() -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let begin = |_| Builder::new().spawn_scoped(scope, &work).ok();
        let others: Vec<_> = (1..threads).map_while(begin).collect();
        let mut done = vec![work()];
        for other in others {
            // A thread that panicked goes on doing so here.
            done.push(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        done
    })
}

/// Gives each part to one of several threads. The results of `task` are in the order of parts.
pub(crate) fn for_each_part<P: Send, T: Send>(
    parts: Vec<P>,
    task: impl Fn(P) -> T + Sync,
) -> Vec<T> {
    let threads = available().min(parts.len());
    let waiting = Mutex::new(parts.into_iter().enumerate());
    let next = || waiting.lock().ok()?.next();
    let work = || {
        let mut done = Vec::new();
        while let Some((number, part)) = next() {
            done.push((number, task(part)));
        }
        done
    };
    let mut done: Vec<_> = on_several(threads, work).into_iter().flatten().collect();
    done.sort_unstable_by_key(|&(number, _)| number);
    done.into_iter().map(|(_, made)| made).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_keep_their_order_on_any_number_of_threads() {
        for count in [0, 1, 2, 3, 1000] {
            let made = for_each_part((0..count).collect(), |part| part * 2);
            assert_eq!(made, (0..count).map(|part| part * 2).collect::<Vec<_>>());
        }
    }

    #[test]
    fn more_threads_than_there_can_be_are_not_missed() {
        let made = on_several(3, || 1);
        assert!((1..=3).contains(&made.len()), "{made:?}");
        assert_eq!(on_several(0, || 1), [1]);
    }
}
