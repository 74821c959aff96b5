//! Policies on traces, beside the optimum.

use proptest::prelude::*;

use pumice_cache::{Lirs, Policy, PolicyKind, Usage};
use pumice_trace::simulate::{optimum, replay, replay_with};
use pumice_trace::trace::{Access, Trace};

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_policy_has_more_hits_than_the_optimum(
        chunks in prop::collection::vec(0..30_u64, 1..400),
        capacity in 1..20_u64,
    ) {
        let trace = unit(chunks);
        let best = optimum(&trace, capacity);
        for kind in PolicyKind::ALL {
            let score = replay(&trace, kind, capacity);
            prop_assert!(score.hits <= best.hits, "{}", kind);
            prop_assert_eq!(score.hits + score.misses, trace.len() as u64);
            prop_assert_eq!(score.misses, score.bytes_missed);
            prop_assert!(score.peak_bytes <= capacity);
        }
    }
}

fn unit(chunks: impl IntoIterator<Item = u64>) -> Trace {
    let mut trace = Trace::new();
    let access = Access { bytes: 1, ..Access::default() };
    chunks.into_iter().for_each(|chunk| trace.push(chunk, access));
    trace
}

#[test]
fn every_policy_keeps_all_of_what_fits() {
    let trace = unit((0..100).flat_map(|_| 0..90));
    for kind in PolicyKind::ALL {
        assert_eq!(replay(&trace, kind, 90).misses, 90, "{kind}");
    }
}

#[test]
fn every_policy_but_random_keeps_a_chunk_that_is_always_used() {
    let trace = unit((0..10).chain((0..500).flat_map(|i| [0, 100 + i])));
    for kind in PolicyKind::ALL.into_iter().filter(|kind| *kind != PolicyKind::Random) {
        assert_eq!(replay(&trace, kind, 10).hits, 500, "{kind}");
    }
}

#[test]
fn chunks_of_different_sizes_fit_by_their_bytes() {
    let mut trace = Trace::new();
    for round in 0..50 {
        for chunk in 0..20 {
            let bytes = 10 + 7 * (chunk % 5) + round % 2;
            trace.push(chunk, Access { bytes, ..Access::default() });
        }
    }
    for kind in PolicyKind::ALL {
        let score = replay(&trace, kind, 250);
        assert!(score.peak_bytes <= 250 && score.hits + score.misses == 1000, "{kind}");
        assert_eq!(replay(&trace, kind, 500).misses, 20, "{kind}: all fit");
    }
}

#[test]
fn with_foreknowledge_nothing_is_left_to_wish_for() {
    let mut seed = 1_u64;
    let trace = unit((0..20_000).map(|_| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) % 200
    }));
    /// Learns the identities that the simulator uses.
    struct Spy(std::sync::mpsc::Sender<u64>, Vec<u64>);
    impl Policy for Spy {
        fn admit(&mut self, id: u32, identity: u64, _: u64, _: Usage) {
            self.1.resize(self.1.len().max(id as usize + 1), 0);
            self.1[id as usize] = identity;
            self.0.send(identity).unwrap();
        }
        fn touch(&mut self, id: u32, _: Usage) {
            self.0.send(self.1[id as usize]).unwrap();
        }
        fn reweigh(&mut self, _: u32, _: u64) {}
        fn evict(&mut self, _: u32) {}
        fn remove(&mut self, _: u32) {}
        fn coldest(&self, _: &mut dyn FnMut(u32) -> bool) {}
        fn set_capacity(&mut self, _: u64) {}
    }
    let (sender, receiver) = std::sync::mpsc::channel();
    replay_with(&trace, Box::new(Spy(sender, Vec::new())), u64::MAX);
    let list: Vec<u64> = receiver.iter().collect();
    assert_eq!(list.len(), trace.len());
    for capacity in [5, 50, 150] {
        let mut policy = Lirs::new(capacity);
        policy.expect(0, &[1, 2, 3]);
        policy.expect(0, &list);
        let score = replay_with(&trace, Box::new(policy), capacity);
        assert_eq!(score.hits, optimum(&trace, capacity).hits);
    }
}

#[test]
fn lirs_lets_stale_chunks_go_when_the_program_turns_to_others() {
    // Passes over one dataset, then over another, then single reads of a third.
    let mut trace = Trace::new();
    let mut read = |dataset: u64, chunk: u64, done: bool| {
        trace.push(dataset << 32 | chunk, Access { dataset, bytes: 1, done, ..Access::default() });
    };
    for dataset in 0..2 {
        for pass in 0..20 {
            (0..100).for_each(|chunk| read(dataset, chunk, pass % 10 == 9));
        }
    }
    (0..20).for_each(|_| (0..60).for_each(|chunk| read(2, chunk, false)));
    let (lirs, best) = (replay(&trace, PolicyKind::Lirs, 64), optimum(&trace, 64));
    assert!(lirs.hits * 100 >= best.hits * 93, "{} of {}", lirs.hits, best.hits);
}
