//! No byte is handed out twice or lost, whatever the rules.

use super::*;
use std::collections::BTreeMap;

fn commit(allocator: &mut Allocator) -> u64 {
    allocator.begin_commit();
    allocator.finish_commit()
}

#[test]
fn what_is_given_back_during_a_commit_waits_for_the_next() {
    let mut allocator = Allocator::new(0);
    let a = allocator.allocate(10, Purpose::Metadata).unwrap();
    allocator.allocate(10, Purpose::Metadata).unwrap();
    allocator.begin_commit();
    allocator.free(a, 10, Purpose::Metadata);
    allocator.finish_commit();
    assert_eq!(allocator.free_bytes(), 0);
    commit(&mut allocator);
    assert_eq!(allocator.free_bytes(), 10);
}

#[test]
fn committed_space_is_reused_only_after_a_commit() {
    let mut allocator = Allocator::new(100);
    let old = allocator.allocate(50, Purpose::Metadata).unwrap();
    allocator.allocate(10, Purpose::Metadata).unwrap();
    commit(&mut allocator);
    allocator.free(old, 50, Purpose::Metadata);
    assert_eq!(
        allocator.allocate(50, Purpose::Metadata),
        Some(160),
        "the old place is still referred to"
    );
    commit(&mut allocator);
    assert_eq!(allocator.allocate(50, Purpose::Metadata), Some(old));
}

#[test]
fn space_taken_since_the_commit_is_reused_at_once() {
    let mut allocator = Allocator::new(0);
    let first = allocator.allocate(64, Purpose::Metadata).unwrap();
    allocator.allocate(1, Purpose::Metadata).unwrap();
    allocator.free(first, 64, Purpose::Metadata);
    assert_eq!(allocator.allocate(64, Purpose::Metadata), Some(first));
}

#[test]
fn a_free_tail_gives_the_file_back() {
    let mut allocator = Allocator::new(0);
    let keep = allocator.allocate(10, Purpose::Metadata).unwrap();
    let a = allocator.allocate(20, Purpose::Metadata).unwrap();
    let b = allocator.allocate(30, Purpose::Metadata).unwrap();
    commit(&mut allocator);
    allocator.free(a, 20, Purpose::Metadata);
    allocator.free(b, 30, Purpose::Metadata);
    assert_eq!(commit(&mut allocator), keep + 10);
}

#[test]
fn a_range_given_back_twice_is_handed_out_once() {
    let mut allocator = Allocator::new(100);
    allocator.free(10, 20, Purpose::Metadata);
    allocator.free(10, 20, Purpose::Metadata);
    allocator.free(15, 30, Purpose::Metadata);
    allocator.free(90, 50, Purpose::Metadata);
    assert_eq!(allocator.damage(), Some((10, 20)));
    commit(&mut allocator);
    assert_eq!(allocator.free_bytes(), 20);
}

#[test]
fn no_byte_is_ever_handed_out_twice() {
    let mut allocator = Allocator::new(0);
    let mut held: BTreeMap<u64, u64> = BTreeMap::new();
    let mut random = 1u64;
    for step in 0..20_000u64 {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let draw = random >> 33;
        if draw % 3 < 2 || held.is_empty() {
            let length = draw % 97 + 1;
            let address = allocator.allocate(length, Purpose::Metadata).unwrap();
            let previous = held.range(..address + length).next_back();
            assert!(previous.is_none_or(|(&a, &l)| a + l <= address), "step {step}");
            assert!(address + length <= allocator.end());
            held.insert(address, length);
        } else {
            let nth = draw as usize % held.len();
            let (&address, &length) = held.iter().nth(nth).unwrap();
            held.remove(&address);
            allocator.free(address, length, Purpose::Metadata);
        }
        if draw.is_multiple_of(50) {
            commit(&mut allocator);
        }
    }
    let used: u64 = held.values().sum();
    commit(&mut allocator);
    assert_eq!(used + allocator.free_bytes(), allocator.end());
}

#[test]
fn blocks_keep_purposes_apart_and_lose_nothing() {
    let mut allocator = Allocator::new(96);
    allocator.put_aside(2048, 1024);
    let mut held: BTreeMap<u64, (u64, Purpose)> = BTreeMap::new();
    let mut random = 5u64;
    for step in 0..20_000u64 {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let draw = random >> 33;
        let purpose = if draw & 1 == 0 { Purpose::Metadata } else { Purpose::Raw };
        if draw % 5 < 3 || held.is_empty() {
            let length = if draw.is_multiple_of(7) { draw % 5000 + 1 } else { draw % 300 + 1 };
            let address = allocator.allocate(length, purpose).unwrap();
            let previous = held.range(..address + length).next_back();
            assert!(previous.is_none_or(|(&a, &(l, _))| a + l <= address), "step {step}");
            assert!(address >= 96 && address + length <= allocator.end(), "step {step}");
            held.insert(address, (length, purpose));
        } else {
            let nth = draw as usize % held.len();
            let (&address, &(length, purpose)) = held.iter().nth(nth).unwrap();
            held.remove(&address);
            allocator.free(address, length, purpose);
        }
        if draw.is_multiple_of(50) {
            commit(&mut allocator);
        }
    }
    commit(&mut allocator);
    let used: u64 = held.values().map(|held| held.0).sum();
    let left = allocator.blocks.as_ref().unwrap().left();
    assert_eq!(96 + used + left + allocator.free_bytes(), allocator.end());
    allocator.release();
    commit(&mut allocator);
    assert_eq!(96 + used + allocator.free_bytes(), allocator.end());
    assert_eq!(allocator.damage(), None);
}

#[test]
fn blocks_are_where_libhdf5_has_them() {
    // As h5import fills a file: metadata of more than a block, then raw data.
    let mut allocator = Allocator::new(96);
    allocator.put_aside(2048, 2048);
    assert_eq!(allocator.allocate(1952, Purpose::Metadata), Some(96));
    assert_eq!(allocator.allocate(384, Purpose::Metadata), Some(2048), "the block goes on");
    assert_eq!(allocator.allocate(8, Purpose::Raw), Some(2432));
    assert_eq!(allocator.allocate(40, Purpose::Metadata), Some(4480));
    assert_eq!(allocator.allocate(4096, Purpose::Raw), Some(6528), "apart from its block");
    assert_eq!(allocator.allocate(8, Purpose::Raw), Some(2440));
    allocator.release();
    assert_eq!(commit(&mut allocator), 6528 + 4096);
}

const PAGE: u64 = 512;

#[test]
fn larger_ranges_are_aligned_and_the_room_before_them_is_used() {
    let mut allocator = Allocator::new(100);
    allocator.align(Alignment { threshold: 64, bytes: 4096 }, 512);
    let mut taken = Vec::new();
    for (length, purpose) in
        [(64, Purpose::Raw), (10, Purpose::Metadata), (5000, Purpose::Raw), (64, Purpose::Raw)]
    {
        let address = allocator.allocate(length, purpose).unwrap();
        assert!(length < 64 || (address + 512).is_multiple_of(4096), "{address}");
        taken.push((address, length));
    }
    assert_eq!(taken[1].0, 100, "small ranges fill the gap");
    taken.sort_unstable();
    assert!(taken.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "{taken:?}");
    let used: u64 = taken.iter().map(|range| range.1).sum();
    assert_eq!(allocator.free_bytes() + used + 100, allocator.end());
}

/// A file of one page with a superblock, and pages from then on.
fn paged() -> Allocator {
    let mut allocator = Allocator::new(PAGE);
    let purpose = Some(Purpose::Metadata);
    let rest = FreeRange { address: 48, length: PAGE - 48, purpose };
    allocator.begin(Rules::Paged(PAGE), &[rest]).unwrap();
    allocator
}

#[test]
fn pages_hold_one_kind_of_small_ranges_and_large_ranges_begin_with_a_page() {
    let mut allocator = paged();
    let mut held: BTreeMap<u64, (u64, Purpose)> = BTreeMap::new();
    let mut random = 3u64;
    for step in 0..20_000u64 {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let draw = random >> 33;
        let purpose = if draw & 1 == 0 { Purpose::Metadata } else { Purpose::Raw };
        if draw % 5 < 3 || held.is_empty() {
            let length = if draw.is_multiple_of(7) { draw % 3000 + 1 } else { draw % 200 + 1 };
            let address = allocator.allocate(length, purpose).unwrap();
            if length < PAGE {
                assert_eq!(address / PAGE, (address + length - 1) / PAGE, "step {step}");
            } else {
                assert_eq!(address % PAGE, 0, "step {step}");
            }
            let previous = held.range(..address + length).next_back();
            assert!(previous.is_none_or(|(&a, &(l, _))| a + l <= address), "step {step}");
            held.insert(address, (length, purpose));
        } else {
            let nth = draw as usize % held.len();
            let (&address, &(length, purpose)) = held.iter().nth(nth).unwrap();
            held.remove(&address);
            allocator.free(address, length, purpose);
        }
        assert_eq!(allocator.end() % PAGE, 0);
        if draw.is_multiple_of(50) {
            commit(&mut allocator);
            let mut kinds: BTreeMap<u64, Purpose> = BTreeMap::new();
            for (&address, &(length, purpose)) in &held {
                if length < PAGE {
                    let kind = *kinds.entry(address / PAGE).or_insert(purpose);
                    assert_eq!(kind, purpose, "step {step}");
                }
            }
        }
    }
    for (address, (length, purpose)) in std::mem::take(&mut held) {
        allocator.free(address, length, purpose);
    }
    assert_eq!(allocator.damage(), None);
    assert_eq!(commit(&mut allocator), PAGE, "all pages are given back but the first");
    assert_eq!(allocator.free_bytes(), PAGE - 48);
}

#[test]
fn free_ranges_that_cannot_be_true_are_refused() {
    let range = |address, length| FreeRange { address, length, purpose: None };
    for bad in [range(90, 20), range(10, 0), range(u64::MAX, 2)] {
        assert_eq!(Allocator::new(100).begin(Rules::Plain, &[bad]), Err(bad));
    }
    let twice = [range(10, 20), range(29, 5)];
    assert_eq!(Allocator::new(100).begin(Rules::Plain, &twice), Err(twice[1]));
}

#[test]
fn raw_data_uses_free_raw_space_first() {
    let mut allocator = Allocator::new(1000);
    let free = |address, purpose| FreeRange { address, length: 100, purpose: Some(purpose) };
    let ranges = [free(100, Purpose::Metadata), free(500, Purpose::Raw)];
    allocator.begin(Rules::ByPurpose, &ranges).unwrap();
    assert_eq!(allocator.allocate(100, Purpose::Raw), Some(500));
    assert_eq!(allocator.allocate(100, Purpose::Raw), Some(100));
    assert_eq!(allocator.allocate(100, Purpose::Raw), Some(1000));
}

#[test]
fn a_part_of_what_was_taken_is_free_at_once_and_the_rest_is_known_by_its_length() {
    let mut allocator = Allocator::new(100);
    assert_eq!(allocator.allocate(50, Purpose::Metadata), Some(100));
    allocator.free(130, 20, Purpose::Metadata);
    assert!(allocator.is_fresh(100) && !allocator.is_fresh(130));
    assert_eq!(allocator.free_bytes(), 20);
    allocator.free(100, 30, Purpose::Metadata);
    assert!(!allocator.is_fresh(100) && allocator.waiting_bytes() == 0);
    assert_eq!(allocator.damage(), None);
    allocator.free(100, 30, Purpose::Metadata);
    assert_eq!(allocator.damage(), Some((100, 30)), "given back twice");
}
