//! The bar for the default policy, on the ten traces. `cache-traces` prints all figures.

use pumice_cache::PolicyKind;
use pumice_testkit::traces::table::{SIZES, Table};
use pumice_testkit::traces::{CHUNK, all};

const POLICIES: [PolicyKind; 3] = [PolicyKind::Lirs, PolicyKind::Lru, PolicyKind::TwoStage];

#[test]
fn the_default_policy_is_near_the_optimum_whatever_the_seed() {
    assert_eq!(PolicyKind::default(), POLICIES[0]);
    let regret = |seed, sizes: &[u64]| {
        let table = Table::new(&all(seed), &POLICIES, sizes);
        for row in &table.rows {
            assert!(row.scores[0].peak_bytes <= row.cache * CHUNK, "{}", row.name);
            assert!(row.scores[0].hits <= row.optimum.hits, "{}", row.name);
        }
        [0, 1, 2].map(|policy| table.regret(policy))
    };
    let [default, lru, two_stage] = regret(1, &SIZES);
    assert!(default <= 8.0, "regret {default:.2}");
    assert!((24.0..25.0).contains(&lru), "these are not the traces: {lru:.2}");
    // What equal shares were measured to give elsewhere, too.
    assert!((24.8..25.5).contains(&two_stage), "not two stages: {two_stage:.2}");
    let (some, other) = (regret(2, &[2])[0], regret(3, &[2])[0]);
    assert!((some - other).abs() < 1.0, "{some:.2}, {other:.2}");
}

#[test]
fn the_default_policy_has_no_fewer_hits_than_private_caches_of_the_same_memory() {
    for seed in [1, 2] {
        for row in Table::new(&all(seed), &POLICIES[..1], &[]).equal {
            let (ours, theirs) = (row.scores[0].hits, row.private.hits);
            assert!(ours >= theirs, "seed {seed}, trace {}: {ours} < {theirs}", row.name);
        }
    }
}
