//! One suite for all policies, and what tells them apart on the access patterns of arrays.

use std::collections::BTreeMap;

use proptest::prelude::*;

use pumice_cache::{Hint, Lirs, Policy, PolicyKind, TwoStage, Usage, Weight, WeightedLru};

/// What can happen to a policy. Chunks are picked by number modulo those that there are.
#[derive(Clone, Debug)]
enum Event {
    Admit {
        identity: u64,
        weight: u64,
        usage: Usage,
    },
    Touch {
        pick: usize,
        usage: Usage,
    },
    Reweigh {
        pick: usize,
        weight: u64,
    },
    Clean {
        pick: usize,
    },
    Remove {
        pick: usize,
    },
    /// The coldest leaves, but for so many that are pinned.
    Evict {
        pinned: usize,
    },
    SetCapacity(u64),
    Expect(Vec<u64>),
    /// Numbers that nobody has.
    Unknown(u32),
}

fn usages() -> impl Strategy<Value = Usage> {
    let hints = prop_oneof![
        4 => Just(Hint::Normal),
        1 => Just(Hint::Sequential),
        1 => Just(Hint::Random),
        1 => Just(Hint::Once),
    ];
    let weights = prop_oneof![Just(0.0), Just(0.75), 0.0..=1.0];
    (0..4_u64, any::<bool>(), prop::bool::weighted(0.2), hints, weights).prop_map(
        |(dataset, write, done, hint, weight)| {
            let partial = write && !done;
            Usage { dataset, write, done, partial, hint, weight: Weight::new(weight) }
        },
    )
}

fn weights() -> impl Strategy<Value = u64> {
    prop_oneof![4 => Just(10_u64), 2 => 0..40_u64, 1 => 0..500_u64]
}

fn events() -> impl Strategy<Value = Event> {
    let pick = || 0..64_usize;
    prop_oneof![
        6 => (0..60_u64, weights(), usages())
            .prop_map(|(identity, weight, usage)| Event::Admit { identity, weight, usage }),
        6 => (pick(), usages()).prop_map(|(pick, usage)| Event::Touch { pick, usage }),
        2 => (pick(), weights()).prop_map(|(pick, weight)| Event::Reweigh { pick, weight }),
        1 => pick().prop_map(|pick| Event::Clean { pick }),
        1 => pick().prop_map(|pick| Event::Remove { pick }),
        5 => (0..3_usize).prop_map(|pinned| Event::Evict { pinned }),
        1 => (0..1000_u64).prop_map(Event::SetCapacity),
        1 => prop::collection::vec(0..60_u64, 0..20).prop_map(Event::Expect),
        1 => (1000..2000_u32).prop_map(Event::Unknown),
    ]
}

/// The model: who is resident under which number, and nothing else.
struct Model {
    policy: Box<dyn Policy>,
    residents: BTreeMap<u32, u64>,
}

impl Model {
    fn pick(&self, pick: usize) -> Option<u32> {
        let count = self.residents.len().max(1);
        self.residents.keys().nth(pick % count).copied()
    }

    fn apply(&mut self, event: &Event) {
        match event {
            Event::Admit { identity, weight, usage } => {
                // No two residents have one identity.
                if self.residents.values().any(|other| other == identity) {
                    return;
                }
                let id = (0..).find(|id| !self.residents.contains_key(id)).expect("a number");
                self.residents.insert(id, *identity);
                self.policy.admit(id, *identity, *weight, *usage);
            }
            Event::Evict { pinned } => {
                let mut named = Vec::new();
                self.policy.coldest(&mut |id| {
                    named.push(id);
                    named.len() <= *pinned
                });
                if let Some(&victim) = named.get(*pinned) {
                    assert!(self.residents.remove(&victim).is_some(), "{victim} is not resident");
                    self.policy.evict(victim);
                }
            }
            Event::SetCapacity(capacity) => self.policy.set_capacity(*capacity),
            Event::Expect(identities) => self.policy.expect(0, identities),
            Event::Unknown(id) => {
                self.policy.touch(*id, Usage::default());
                self.policy.reweigh(*id, 7);
                self.policy.clean(*id);
                self.policy.evict(*id);
                self.policy.remove(*id);
            }
            Event::Touch { pick, .. }
            | Event::Reweigh { pick, .. }
            | Event::Clean { pick }
            | Event::Remove { pick } => {
                let Some(id) = self.pick(*pick) else { return };
                match event {
                    Event::Touch { usage, .. } => self.policy.touch(id, *usage),
                    Event::Reweigh { weight, .. } => self.policy.reweigh(id, *weight),
                    Event::Clean { .. } => self.policy.clean(id),
                    _ => {
                        self.residents.remove(&id);
                        self.policy.remove(id);
                    }
                }
            }
        }
    }

    /// All residents are named, each once.
    fn check(&self) {
        let mut named = Vec::new();
        self.policy.coldest(&mut |id| {
            named.push(id);
            named.len() <= self.residents.len()
        });
        named.sort_unstable();
        assert!(named.iter().eq(self.residents.keys()), "{named:?}, {:?}", self.residents);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_policy_names_all_resident_chunks_and_no_other(
        events in prop::collection::vec(events(), 1..150),
        capacity in 0..600_u64,
    ) {
        for kind in PolicyKind::ALL {
            let mut model = Model { policy: kind.build(capacity), residents: BTreeMap::new() };
            for event in &events {
                model.apply(event);
                model.check();
            }
        }
    }
}

fn order(policy: &dyn Policy) -> Vec<u32> {
    let mut order = Vec::new();
    policy.coldest(&mut |id| {
        order.push(id);
        true
    });
    order
}

fn sorted(ids: &[u32]) -> Vec<u32> {
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    ids
}

/// Of the datasets that hold more than an equal share and more than one chunk, the one used longest ago
/// loses its oldest chunk, otherwise the one used longest ago of all; found by looking at all there is.
struct Allotted {
    capacity: u64,
    /// Number, dataset, weight; by last use.
    chunks: Vec<(u32, u64, u64)>,
    /// By last use.
    datasets: Vec<u64>,
}

impl Allotted {
    fn used(&mut self, dataset: u64) {
        self.datasets.retain(|other| *other != dataset);
        self.datasets.push(dataset);
    }

    fn order(&self) -> Vec<u32> {
        let (mut left, mut order) = (self.chunks.clone(), Vec::new());
        while !left.is_empty() {
            let of = |dataset: u64| left.iter().filter(move |chunk| chunk.1 == dataset);
            let here: Vec<u64> =
                self.datasets.iter().copied().filter(|set| of(*set).count() > 0).collect();
            let share = self.capacity / here.len() as u64;
            let over = |set: &&u64| {
                of(**set).count() > 1 && of(**set).map(|chunk| chunk.2).sum::<u64>() > share
            };
            let dataset = *here.iter().find(over).unwrap_or(&here[0]);
            let place = left.iter().position(|chunk| chunk.1 == dataset).unwrap();
            order.push(left.remove(place).0);
        }
        order
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn two_stage_takes_the_oldest_chunk_of_a_dataset_that_has_more_than_its_share(
        steps in prop::collection::vec((0..12_u32, 0..4_u64, 0..30_u64, 0..4_u8), 1..80),
        capacity in 0..200_u64,
    ) {
        let mut policy = TwoStage::new(capacity);
        let mut model = Allotted { capacity, chunks: Vec::new(), datasets: Vec::new() };
        for (id, dataset, weight, action) in steps {
            let place = model.chunks.iter().position(|chunk| chunk.0 == id);
            match (place, action) {
                (None, _) => {
                    policy.admit(id, id.into(), weight, Usage::of(dataset));
                    model.chunks.push((id, dataset, weight));
                    model.used(dataset);
                }
                (Some(place), 0) => {
                    policy.evict(id);
                    model.chunks.remove(place);
                }
                (Some(place), 1) => {
                    policy.reweigh(id, weight);
                    model.chunks[place].2 = weight;
                }
                (Some(place), _) => {
                    let chunk = model.chunks.remove(place);
                    policy.touch(id, Usage::of(chunk.1));
                    model.chunks.push(chunk);
                    model.used(chunk.1);
                }
            }
            prop_assert_eq!(order(&policy), model.order());
        }
    }
}

#[test]
fn a_weight_is_the_part_of_a_dataset_in_which_complete_chunks_are_looked_for() {
    // Of each dataset eight chunks, of which the fifth and the last are complete.
    let order_with = |weights: [f64; 2]| {
        let mut policy = WeightedLru::new();
        for id in 0..16 {
            let (dataset, number) = (u64::from(id / 8), id % 8);
            let weight = Weight::new(weights[dataset as usize]);
            let done = matches!(number, 4 | 7);
            policy.admit(id, id.into(), 1, Usage { done, weight, ..Usage::of(dataset) });
        }
        order(&policy)
    };
    let all: Vec<u32> = (0..16).collect();
    let first = |first: &[u32]| {
        let rest = all.iter().filter(|id| !first.contains(id));
        first.iter().chain(rest).copied().collect::<Vec<_>>()
    };
    assert_eq!(order_with([0.0, 0.0]), all);
    assert_eq!(order_with([0.4, 0.4]), all, "four of eight are looked at");
    assert_eq!(order_with([0.5, 0.0]), first(&[4]));
    assert_eq!(order_with([0.0, 0.5]), first(&[12]));
    assert_eq!(order_with([0.75, 1.0]), first(&[4, 12, 15]));
    assert_eq!(order_with([1.0, 1.0]), first(&[4, 7, 12, 15]));
}

#[test]
fn complete_chunks_leave_first_and_partly_written_ones_last() {
    let mut policy = Lirs::new(600);
    let (read, write) = (Usage::of(1), Usage { write: true, partial: true, ..Usage::of(2) });
    policy.admit(0, 0, 100, write);
    policy.admit(1, 1, 100, read);
    policy.admit(2, 2, 100, Usage { done: true, ..read });
    policy.admit(3, 3, 100, Usage { dataset: 3, ..write });
    policy.admit(4, 4, 100, write);
    // Of a sparse chunk it is not known what is to come.
    policy.admit(5, 5, 100, Usage { partial: false, ..write });
    assert_eq!(order(&policy)[..3], [2, 1, 5]);
    assert_eq!(sorted(&order(&policy)[3..]), [0, 3, 4]);
    policy.clean(3);
    assert_eq!(sorted(&order(&policy)[4..]), [0, 4]);
    policy.touch(4, Usage { done: true, partial: false, ..write });
    assert_eq!(order(&policy)[..2], [4, 2]);
    assert_eq!(order(&policy)[5..], [0]);
}

#[test]
fn writers_do_not_take_all_of_the_cache() {
    let mut policy = Lirs::new(800);
    for id in 0..8 {
        policy.admit(
            id,
            id.into(),
            100,
            Usage { write: true, partial: true, ..Usage::of(id.into()) },
        );
    }
    policy.admit(8, 8, 100, Usage::of(99));
    assert_ne!(order(&policy)[0], 8, "an eighth is left to others");
}

#[test]
fn a_sequential_scan_uses_a_ring_and_leaves_the_rest() {
    let mut policy = Lirs::new(1600);
    for id in 0..14 {
        policy.admit(id, id.into(), 100, Usage::of(1));
    }
    let scan = Usage { hint: Hint::Sequential, ..Usage::of(2) };
    for step in 0..100_u32 {
        let id = 14 + step % 3;
        policy.admit(id, 100 + u64::from(step), 100, scan);
        if step < 2 {
            continue;
        }
        let victim = order(&policy)[0];
        assert_eq!(victim, 14 + (step + 1) % 3, "the oldest of the ring");
        policy.evict(victim);
    }
}

#[test]
fn chunks_meant_for_one_request_leave_at_once() {
    let mut policy = Lirs::new(300);
    policy.admit(0, 0, 100, Usage { hint: Hint::Once, ..Usage::of(1) });
    policy.admit(1, 1, 100, Usage::of(1));
    assert_eq!(order(&policy)[0], 0);
}
