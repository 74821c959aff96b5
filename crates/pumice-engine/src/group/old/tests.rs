//! Old-style groups against a map, with nodes so small that trees get deep.

use super::OldGroup;
use pumice_format::messages::{Link, LinkTarget};
use pumice_format::{Sizes, UNDEFINED};
use pumice_medium::Medium;
use pumice_store::MemoryStore;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

const RANKS: (u16, u16) = (2, 2);

/// Checks that every name lies between its keys, that every key is an existing name or empty, and
/// that neighbours name each other.
fn check(group: &mut OldGroup, io: &Medium) {
    let mut live = HashSet::from([0]);
    for leaf in group.leaf_addresses(io).unwrap() {
        live.extend(group.leaf(io, leaf).unwrap().entries.iter().map(|entry| entry.name_offset));
    }
    let mut rows: HashMap<u8, Vec<u64>> = HashMap::new();
    let mut pending = vec![(group.root, None)];
    while let Some((address, level)) = pending.pop() {
        let node = group.node(io, address, level).unwrap().clone();
        rows.entry(node.level).or_default().push(address);
        assert!(node.children.len() <= 2 * usize::from(RANKS.1));
        assert!(node.keys.iter().all(|key| live.contains(key)), "a key of a name that is gone");
        for (number, &child) in node.children.iter().enumerate().rev() {
            if node.level > 0 {
                let below = group.node(io, child, Some(node.level - 1)).unwrap();
                assert_eq!(below.keys.first(), Some(&node.keys[number]));
                assert_eq!(below.keys.last(), Some(&node.keys[number + 1]));
                pending.push((child, Some(node.level - 1)));
                continue;
            }
            let entries = group.leaf(io, child).unwrap().entries.clone();
            assert!(!entries.is_empty() && entries.len() <= 2 * usize::from(RANKS.0));
            let text = |offset| group.names.text(offset).unwrap();
            for entry in &entries {
                assert!(text(entry.name_offset) > text(node.keys[number]));
                assert!(text(entry.name_offset) <= text(node.keys[number + 1]));
            }
        }
    }
    for row in rows.values() {
        // Depth first from the left: the last pushed is looked at first.
        for (place, &address) in row.iter().enumerate() {
            let node = group.node(io, address, None).unwrap();
            let before = place.checked_sub(1).map_or(UNDEFINED, |place| row[place]);
            assert_eq!(node.left, before);
            assert_eq!(node.right, row.get(place + 1).copied().unwrap_or(UNDEFINED));
        }
    }
}

#[test]
fn links_are_those_of_a_map_after_any_insertions_and_removals() {
    let store = Arc::new(MemoryStore::new(vec![0; 96]));
    let io = Medium::new(store, 0, 96, Sizes::default(), true);
    let mut group = OldGroup::create(&io, RANKS).unwrap();
    let root = group.table();
    let mut model: BTreeMap<String, Link> = BTreeMap::new();
    let mut random = 7u64;
    for step in 0..6000 {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let draw = random >> 33;
        // Grows, shrinks to nothing, grows again.
        let growing = step % 3000 < 1800;
        let name = match growing || model.is_empty() {
            true => format!("{:x}", draw % 700).repeat(1 + draw as usize % 9),
            false => model.keys().nth(draw as usize % model.len()).unwrap().clone(),
        };
        let found = group.find(&io, &name).unwrap();
        assert_eq!(found.as_ref(), model.get(&name), "step {step}");
        if found.is_some() && (!growing || draw.is_multiple_of(3)) {
            let removed = group.remove(&io, &name).unwrap();
            assert_eq!(removed, model.remove(&name));
        } else if found.is_none() {
            assert_eq!(group.remove(&io, &name).unwrap(), None);
            let target = match draw % 4 {
                0 => LinkTarget::Soft { path: "x/".repeat(1 + draw as usize % 40) },
                _ => LinkTarget::Hard { address: draw },
            };
            let link = Link::new(name.clone(), target);
            group.insert(&io, &link).unwrap();
            model.insert(name, link);
        }
        if step % 100 == 0 || step % 3000 > 2900 {
            check(&mut group, &io);
            group.commit(&io).unwrap();
            assert_eq!(group.table(), root, "what others name never moves");
            group = OldGroup::open(&io, RANKS, &root).unwrap();
            let all: Vec<Link> = model.values().cloned().collect();
            assert_eq!(group.list(&io).unwrap(), all, "step {step}");
        }
    }
}
