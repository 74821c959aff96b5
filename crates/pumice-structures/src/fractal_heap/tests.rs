//! Fractal heaps against a list of objects.

use super::FractalHeap;
use pumice_format::fractal_heap::HeapShape;
use pumice_format::{Sizes, UNDEFINED};
use pumice_medium::Medium;
use pumice_store::MemoryStore;
use std::sync::Arc;

fn medium() -> Arc<Medium> {
    let store = Arc::new(MemoryStore::new(vec![0; 96]));
    Arc::new(Medium::new(store, 0, 96, Sizes::default(), true))
}

fn reopened(heap: &mut FractalHeap, objects: &[(Vec<u8>, Vec<u8>)]) -> FractalHeap {
    heap.commit().unwrap();
    let mut again = FractalHeap::open(&heap.medium, heap.address()).unwrap();
    again.survey(&mut objects.iter().map(|(id, _)| id.as_slice())).unwrap();
    again
}

/// Checks that the header's counts match the contents.
fn check(heap: &mut FractalHeap, objects: &[(Vec<u8>, Vec<u8>)]) {
    let (mut allocated, mut managed) = (0, 0);
    heap.for_each_block(&mut |there, block, _| {
        allocated += there.map_or(0, |_| block.size);
        Ok(())
    })
    .unwrap();
    assert_eq!(heap.header.allocated_space, allocated);
    assert_eq!(heap.header.objects.iter().sum::<u64>(), objects.len() as u64);
    for (id, bytes) in objects {
        assert_eq!(&heap.object(id).unwrap(), bytes);
        managed += if id[0] == 0 { bytes.len() as u64 } else { 0 };
    }
    let rows = u32::from(heap.header.root_rows);
    let sizes = Sizes::default();
    let capacity = match (heap.header.root_address, rows) {
        (UNDEFINED, _) => 0,
        (_, 0) => heap.header.starting_size - heap.header.direct_overhead(sizes),
        (_, rows) => heap.header.capacity(rows, sizes),
    };
    assert_eq!(heap.header.free_space, capacity - managed);
}

#[test]
fn objects_are_those_of_a_list_after_any_insertions_and_removals() {
    for shape in [HeapShape::LINKS, HeapShape::ATTRIBUTES] {
        let mut heap = FractalHeap::create(&medium(), shape).unwrap();
        let mut objects: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        let mut random = 11u64;
        for step in 0..4000u64 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let draw = random >> 33;
            let growing = step % 2000 < 1200;
            if objects.is_empty() || (draw % 8 < if growing { 6 } else { 1 }) {
                let length = match draw >> 8 & 15 {
                    0 => 1 + draw as usize % 8,
                    1 => 4000 + draw as usize % 3000,
                    2 => draw as usize % 2000 + 1,
                    _ => draw as usize % 80 + 9,
                };
                let bytes = vec![step as u8; length];
                objects.push((heap.insert(&bytes).unwrap(), bytes));
            } else {
                let (id, _) = objects.swap_remove(draw as usize % objects.len());
                heap.remove(&id).unwrap();
            }
            if step % 250 == 0 {
                check(&mut heap, &objects);
                heap = reopened(&mut heap, &objects);
                check(&mut heap, &objects);
            }
        }
    }
}

#[test]
fn free_space_is_used_again() {
    let mut heap = FractalHeap::create(&medium(), HeapShape::LINKS).unwrap();
    let mut ids: Vec<Vec<u8>> = (0..5000).map(|_| heap.insert(&[7; 40]).unwrap()).collect();
    let space = heap.header.allocated_space;
    for round in 0..20 {
        for id in ids.iter_mut().skip(round % 3).step_by(3) {
            heap.remove(id).unwrap();
            *id = heap.insert(&[8; 40]).unwrap();
        }
    }
    assert_eq!(heap.header.allocated_space, space);
    assert!(heap.remove(&heap.header.managed_id(u64::from(u32::MAX), 40)).is_err());
    let first = ids[0].clone();
    heap.remove(&first).unwrap();
    assert!(heap.remove(&first).is_err(), "an object is removed once");
    for id in ids.iter().skip(1) {
        heap.remove(id).unwrap();
    }
    assert_eq!(heap.header.allocated_space, 0, "empty blocks are given back");
}

#[test]
fn heaps_get_tables_of_tables() {
    let mut heap = FractalHeap::create(&medium(), HeapShape::LINKS).unwrap();
    let objects: Vec<(Vec<u8>, Vec<u8>)> = (0..1200u32)
        .map(|number| {
            let bytes = number.to_le_bytes().repeat(1000);
            (heap.insert(&bytes).unwrap(), bytes)
        })
        .collect();
    assert!(heap.header.root_rows > 9, "{} rows", heap.header.root_rows);
    check(&mut heap, &objects);
    check(&mut reopened(&mut heap, &objects), &objects);
}
