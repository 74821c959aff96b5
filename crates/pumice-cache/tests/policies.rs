//! One suite for all policies, and what tells them apart on the access patterns of arrays.

use std::collections::HashMap;

use pumice_cache::{Policy, PolicyKind, Usage};

const KINDS: [PolicyKind; 2] = [PolicyKind::Lirs, PolicyKind::Lru];

/// A cache of chunks of one unit each, driven by a policy.
struct Simulation {
    policy: Box<dyn Policy>,
    capacity: usize,
    resident: HashMap<u64, u32>,
    names: Vec<Option<u64>>,
    hits: usize,
    accesses: usize,
}

impl Simulation {
    /// Weights are 1000 a chunk, so that percentages of a small cache are not rounded away.
    const WEIGHT: u64 = 1000;

    fn new(kind: PolicyKind, capacity: usize) -> Self {
        Simulation {
            policy: kind.build(capacity as u64 * Self::WEIGHT),
            capacity,
            resident: HashMap::new(),
            names: vec![None; capacity + 1],
            hits: 0,
            accesses: 0,
        }
    }

    fn access(&mut self, chunk: u64) {
        self.accesses += 1;
        if let Some(&id) = self.resident.get(&chunk) {
            self.hits += 1;
            return self.policy.touch(id, Usage::default());
        }
        let free = self.names.iter().position(Option::is_none).expect("one place is spare");
        self.names[free] = Some(chunk);
        self.resident.insert(chunk, free as u32);
        self.policy.admit(free as u32, chunk, Self::WEIGHT, Usage::default());
        while self.resident.len() > self.capacity {
            self.evict();
        }
    }

    fn evict(&mut self) {
        let mut victim = None;
        self.policy.coldest(&mut |id| {
            victim = Some(id);
            false
        });
        let victim = victim.expect("something is resident");
        let chunk = self.names[victim as usize].take().expect("victims are resident");
        self.resident.remove(&chunk);
        self.policy.evict(victim);
    }

    fn hit_percentage(kind: PolicyKind, capacity: usize, trace: &[u64]) -> usize {
        let mut simulation = Simulation::new(kind, capacity);
        trace.iter().for_each(|&chunk| simulation.access(chunk));
        simulation.hits * 100 / simulation.accesses
    }
}

/// Random numbers by xorshift.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Zipf with exponent 0.9 over `table.len()` ranks, by inverting the cumulative sums.
    fn zipf(&mut self, table: &[f64]) -> u64 {
        let point = (self.next() >> 11) as f64 / (1_u64 << 53) as f64 * table[table.len() - 1];
        table.partition_point(|&sum| sum < point) as u64
    }
}

fn zipf_table(ranks: usize) -> Vec<f64> {
    let weights = (1..=ranks).map(|rank| (rank as f64).powf(-0.9));
    weights
        .scan(0.0, |sum, weight| {
            Some({
                *sum += weight;
                *sum
            })
        })
        .collect()
}

/// Columns read over `rows` row chunks, block after block of 64 columns.
fn column_loop(blocks: u64, rows: u64) -> Vec<u64> {
    let columns = (0..blocks).flat_map(|block| (0..64).map(move |_| block));
    columns.flat_map(|block| (0..rows).map(move |row| block * rows + row)).collect()
}

/// Slabs of 6 rows over chunks of 256 rows, 64 chunks wide.
fn slabs() -> Vec<u64> {
    (0..400)
        .flat_map(|slab| {
            let (first, last) = (slab * 6 / 256, (slab * 6 + 5) / 256);
            (first..=last).flat_map(|row| (0..64).map(move |column| row * 64 + column))
        })
        .collect()
}

fn zipf_and_scan(accesses: u64) -> Vec<u64> {
    let (mut random, table) = (Random(42), zipf_table(2000));
    let pick = |i| if i % 2 == 0 { random.zipf(&table) } else { 1_000_000 + i };
    (0..accesses).map(pick).collect()
}

#[test]
fn every_policy_names_all_resident_chunks_and_no_other() {
    for kind in KINDS {
        let mut simulation = Simulation::new(kind, 20);
        let mut random = Random(7);
        for _ in 0..2000 {
            simulation.access(random.next() % 50);
            let mut named = Vec::new();
            simulation.policy.coldest(&mut |id| {
                named.push(id);
                true
            });
            named.sort_unstable();
            let mut resident: Vec<_> = simulation.resident.values().copied().collect();
            resident.sort_unstable();
            assert_eq!(named, resident, "{kind:?}");
        }
    }
}

#[test]
fn every_policy_forgets_what_is_removed_and_ignores_unknown_numbers() {
    for kind in KINDS {
        let mut policy = kind.build(100);
        policy.admit(3, 30, 10, Usage::default());
        policy.touch(8, Usage::default());
        policy.evict(9);
        policy.remove(3);
        policy.remove(3);
        policy.reweigh(3, 5);
        policy.coldest(&mut |_| panic!("{kind:?} names a chunk that does not exist"));
    }
}

#[test]
fn every_policy_keeps_all_of_what_fits() {
    let trace: Vec<_> = (0..100).flat_map(|_| 0..90).collect();
    for kind in KINDS {
        assert_eq!(Simulation::hit_percentage(kind, 90, &trace), 99, "{kind:?}");
    }
}

#[test]
fn every_policy_lets_a_touched_chunk_stay_before_an_untouched_one() {
    for kind in KINDS {
        let mut simulation = Simulation::new(kind, 10);
        (0..10).for_each(|chunk| simulation.access(chunk));
        (0..500).for_each(|i| {
            simulation.access(0);
            simulation.access(100 + i);
        });
        assert!(simulation.resident.contains_key(&0), "{kind:?}");
    }
}

#[test]
fn lirs_beats_lru_on_a_loop_of_400_over_a_cache_of_256() {
    let trace = column_loop(8, 400);
    assert_eq!(Simulation::hit_percentage(PolicyKind::Lru, 256, &trace), 0);
    assert!(Simulation::hit_percentage(PolicyKind::Lirs, 256, &trace) >= 58);
}

#[test]
fn lirs_beats_lru_on_slabs_a_little_wider_than_the_cache() {
    let trace = slabs();
    assert_eq!(Simulation::hit_percentage(PolicyKind::Lru, 48, &trace), 0);
    assert!(Simulation::hit_percentage(PolicyKind::Lirs, 48, &trace) >= 67);
    assert!(Simulation::hit_percentage(PolicyKind::Lirs, 80, &trace) >= 94);
}

#[test]
fn lirs_lets_a_scan_pass_without_losing_what_is_hot() {
    let trace = zipf_and_scan(200_000);
    let lirs = Simulation::hit_percentage(PolicyKind::Lirs, 256, &trace);
    let lru = Simulation::hit_percentage(PolicyKind::Lru, 256, &trace);
    assert!(lirs >= 30 && lirs > lru + 5, "LIRS {lirs}, LRU {lru}");
}

#[test]
fn lirs_is_near_lru_where_lru_is_right() {
    // One chunk is used 60 times, then the next: what is recent is what counts.
    let mut random = Random(9);
    let mut trace = Vec::new();
    for visit in 0..6000 {
        let dataset = random.next() % 1000;
        trace.extend([dataset; 60]);
        if visit % 6 == 0 {
            trace.push(5000 + random.next() % 16);
        }
    }
    assert!(Simulation::hit_percentage(PolicyKind::Lirs, 64, &trace) >= 98);
}
