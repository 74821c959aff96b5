//! Which rank encodes which chunk.
//!
//! A chunk goes to the rank that has most cells for it, since its cells need not be moved; but no rank gets
//! many more chunks than others, since encoding takes longer than moving. All ranks find the same owners from
//! the same lists. An owner stays until the next flush.

use pumice_space::Dims;
use std::collections::{BTreeMap, HashMap};

/// What a rank has for a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    /// The chunk's coordinates in the grid.
    pub(crate) key: Dims,
    /// How many cells.
    pub(crate) cells: u64,
    /// Whether these are all cells of the chunk.
    pub(crate) whole: bool,
}

/// Finds owners for the chunks that have none, given what each rank has.
pub(crate) fn choose(owners: &mut HashMap<Dims, usize>, shares: &[Vec<Share>]) {
    let mut wanted: BTreeMap<&Dims, Vec<(u64, usize)>> = BTreeMap::new();
    for (rank, of_rank) in shares.iter().enumerate() {
        for share in of_rank.iter().filter(|share| share.cells > 0) {
            let of_chunk = wanted.entry(&share.key).or_default();
            match of_chunk.last_mut() {
                Some((cells, last)) if *last == rank => *cells += share.cells,
                _ => of_chunk.push((share.cells, rank)),
            }
        }
    }
    let mut load = vec![0u64; shares.len()];
    for key in wanted.keys() {
        if let Some(&owner) = owners.get(*key) {
            load[owner] += 1;
        }
    }
    // An eighth more than the mean, and one.
    let mean = (wanted.len() as u64).div_ceil(shares.len().max(1) as u64);
    let most = mean + mean / 8 + 1;
    for (key, mut ranks) in wanted {
        if owners.contains_key(key) {
            continue;
        }
        ranks.sort_by_key(|&(cells, rank)| (std::cmp::Reverse(cells), load[rank], rank));
        let first = ranks.iter().map(|&(_, rank)| rank).find(|&rank| load[rank] < most);
        let least = || (0..load.len()).min_by_key(|&rank| (load[rank], rank)).unwrap_or(0);
        let owner = first.unwrap_or_else(least);
        load[owner] += 1;
        owners.insert(key.clone(), owner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(of: &[(u64, u64)]) -> Vec<Share> {
        let share = |&(key, cells)| Share { key: Dims::from_slice(&[key]), cells, whole: false };
        of.iter().map(share).collect()
    }

    fn owner(owners: &HashMap<Dims, usize>, key: u64) -> usize {
        owners[&Dims::from_slice(&[key])]
    }

    #[test]
    fn a_chunk_goes_to_who_has_most_of_it_and_stays_there() {
        let mut owners = HashMap::new();
        choose(&mut owners, &[shares(&[(0, 10), (1, 3)]), shares(&[(1, 7), (2, 5)]), vec![]]);
        assert_eq!([0, 1, 2].map(|key| owner(&owners, key)), [0, 1, 1]);
        choose(&mut owners, &[shares(&[(1, 99)]), shares(&[(1, 1)]), vec![]]);
        assert_eq!(owner(&owners, 1), 1);
    }

    #[test]
    fn work_is_even_although_one_rank_has_all_cells() {
        let all: Vec<(u64, u64)> = (0..64).map(|key| (key, 100)).collect();
        let mut owners = HashMap::new();
        choose(&mut owners, &[vec![], shares(&all), vec![], vec![]]);
        for rank in 0..4 {
            let count = owners.values().filter(|&&owner| owner == rank).count();
            assert!((14..=19).contains(&count), "rank {rank} has {count}");
        }
    }
}
