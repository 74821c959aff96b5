//! The optimum: replacement with knowledge of the future (Belady, 1966).

use std::collections::BinaryHeap;

use super::Score;
use crate::trace::Trace;

/// Comes never.
const NEVER: u64 = u64::MAX;

/// Replays a trace knowing all of it: the chunk that is used again latest leaves first, even if it
/// was just loaded.
///
/// For chunks of one size no policy has more hits. For chunks of different sizes no fast way to
/// compute the optimum is known; the same rule is applied, under which larger chunks do not leave
/// earlier. That is a good yardstick, but not a bound.
pub fn optimum(trace: &Trace, capacity: u64) -> Score {
    let next = next_uses(trace);
    let mut held: Vec<Option<u64>> = vec![None; trace.chunks()];
    let mut due: Vec<u64> = vec![NEVER; trace.chunks()];
    // What is used again latest on top; entries whose time is not the chunk's are out of date.
    let mut order = BinaryHeap::new();
    let (mut used, mut count, mut score) = (0_u64, 0_u64, Score::default());
    for (access, &next) in trace.accesses().iter().zip(&next) {
        let chunk = access.chunk as usize;
        let before = held[chunk].replace(access.bytes);
        score.count(before.is_some(), access.bytes);
        count += u64::from(before.is_none());
        used = used - before.unwrap_or(0) + access.bytes;
        due[chunk] = next;
        order.push((next, chunk));
        while used > capacity {
            let Some((time, chunk)) = order.pop() else { break };
            if due[chunk] == time
                && let Some(bytes) = held[chunk].take()
            {
                used -= bytes;
                count -= 1;
            }
        }
        score.note_peak(count, used);
    }
    score
}

/// The next use of each access's chunk.
fn next_uses(trace: &Trace) -> Vec<u64> {
    let mut upcoming = vec![NEVER; trace.chunks()];
    let mut next = vec![NEVER; trace.len()];
    for (time, access) in trace.accesses().iter().enumerate().rev() {
        next[time] = std::mem::replace(&mut upcoming[access.chunk as usize], time as u64);
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Access;

    fn unit(chunks: &[u64]) -> Trace {
        let mut trace = Trace::new();
        chunks.iter().for_each(|&c| trace.push(c, Access { bytes: 1, ..Access::default() }));
        trace
    }

    /// The most hits there can be, by trying every choice.
    fn by_force(rest: &[u64], held: &mut Vec<u64>, capacity: usize) -> u64 {
        let Some((&chunk, rest)) = rest.split_first() else { return 0 };
        if held.contains(&chunk) {
            return 1 + by_force(rest, held, capacity);
        }
        let mut best = by_force(rest, &mut held.clone(), capacity);
        if held.len() < capacity {
            held.push(chunk);
            best = best.max(by_force(rest, &mut held.clone(), capacity));
            held.pop();
        }
        for i in 0..held.len() {
            let mut other = held.clone();
            other[i] = chunk;
            best = best.max(by_force(rest, &mut other, capacity));
        }
        best
    }

    #[test]
    fn nothing_has_more_hits_than_the_optimum_and_something_has_as_many() {
        let mut seed = 1_u64;
        for capacity in 1..4 {
            for _ in 0..20 {
                let chunks: Vec<u64> = (0..9)
                    .map(|_| {
                        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1);
                        (seed >> 33) % 5
                    })
                    .collect();
                let best = by_force(&chunks, &mut Vec::new(), capacity);
                assert_eq!(optimum(&unit(&chunks), capacity as u64).hits, best, "{chunks:?}");
            }
        }
    }
}
