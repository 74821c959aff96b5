//! Numbers in the order of their last use, each with a weight: finds the oldest that weighs more than
//! something in logarithmic time.
//!
//! Each use puts a number at the end of a row of positions, over which a tree keeps the largest weights.
//! When the row is full, it is written anew without the positions that were left.

/// Stands for a position that was left.
const NOBODY: u32 = u32::MAX;
/// The shortest row.
const SHORTEST: usize = 32;

/// The row and its tree.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    /// Who is at each position.
    row: Vec<u32>,
    /// The position of each number; of no meaning if it is not in.
    positions: Vec<u32>,
    /// The largest weight of each part of the row: at `i` that of `2 i` and `2 i + 1`, leaves behind.
    /// A weight counts one more than it is, so that nothing is at positions that were left.
    tree: Vec<u64>,
    members: usize,
}

impl Timeline {
    fn contains(&self, number: u32) -> bool {
        let position = self.positions.get(number as usize);
        position.is_some_and(|at| self.row.get(*at as usize) == Some(&number))
    }

    fn leaves(&self) -> usize {
        self.tree.len() / 2
    }

    fn set_leaf(&mut self, position: usize, value: u64) {
        let mut node = self.leaves() + position;
        self.tree[node] = value;
        while node > 1 {
            node /= 2;
            self.tree[node] = self.tree[2 * node].max(self.tree[2 * node + 1]);
        }
    }

    /// Makes `number` the youngest, with this weight, whether it was in or not.
    pub(super) fn push(&mut self, number: u32, weight: u64) {
        self.remove(number);
        if self.row.len() == self.leaves() {
            self.rewrite();
        }
        if self.positions.len() <= number as usize {
            self.positions.resize(number as usize + 1, 0);
        }
        self.positions[number as usize] = self.row.len() as u32;
        self.set_leaf(self.row.len(), weight.saturating_add(1));
        self.row.push(number);
        self.members += 1;
    }

    /// Changes the weight of a number, which is in.
    pub(super) fn weigh(&mut self, number: u32, weight: u64) {
        self.set_leaf(self.positions[number as usize] as usize, weight.saturating_add(1));
    }

    /// Takes a number out, if it is in.
    pub(super) fn remove(&mut self, number: u32) {
        if self.contains(number) {
            let position = self.positions[number as usize] as usize;
            self.row[position] = NOBODY;
            self.set_leaf(position, 0);
            self.members -= 1;
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.members
    }

    /// The oldest number from `position` on that weighs more than `weight`, and the position behind it.
    pub(super) fn first_above(&self, weight: u64, position: usize) -> Option<(u32, usize)> {
        let (leaves, least) = (self.leaves(), weight.checked_add(2)?);
        if position >= leaves {
            return None;
        }
        // Up until a part to the right has one, then down to the first in it.
        let mut node = leaves + position;
        while self.tree[node] < least {
            while node % 2 == 1 {
                node /= 2;
            }
            if node == 0 {
                return None;
            }
            node += 1;
        }
        while node < leaves {
            node *= 2;
            if self.tree[node] < least {
                node += 1;
            }
        }
        let found = node - leaves;
        Some((self.row[found], found + 1))
    }

    /// All numbers, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.row.iter().copied().filter(|number| *number != NOBODY)
    }

    /// Leaves out positions that were left; half of the row is free then.
    fn rewrite(&mut self) {
        let leaves = (2 * (self.members + 1)).next_power_of_two().max(SHORTEST);
        let mut tree = vec![0; 2 * leaves];
        let mut row = Vec::with_capacity(leaves);
        for (position, &number) in self.row.iter().enumerate() {
            if number != NOBODY {
                tree[leaves + row.len()] = self.tree[self.leaves() + position];
                self.positions[number as usize] = row.len() as u32;
                row.push(number);
            }
        }
        for node in (1..leaves).rev() {
            tree[node] = tree[2 * node].max(tree[2 * node + 1]);
        }
        (self.row, self.tree) = (row, tree);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_above_a_weight_is_found_whatever_happens() {
        let (mut timeline, mut model) = (Timeline::default(), Vec::<(u32, u64)>::new());
        let mut seed = 1_u64;
        for _ in 0..5000 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let (number, weight) = ((seed >> 33) as u32 % 70, seed >> 40 & 0xff);
            let place = model.iter().position(|(other, _)| *other == number);
            match (place, seed >> 60) {
                (Some(place), 0..4) => {
                    timeline.weigh(number, weight);
                    model[place].1 = weight;
                }
                (Some(place), 4..8) => {
                    timeline.remove(number);
                    model.remove(place);
                }
                (place, _) => {
                    timeline.push(number, weight);
                    place.map(|place| model.remove(place));
                    model.push((number, weight));
                }
            }
            assert!(timeline.iter().eq(model.iter().map(|(number, _)| *number)));
            assert_eq!(timeline.len(), model.len());
            let (mut found, mut from) = (Vec::new(), 0);
            while let Some((number, behind)) = timeline.first_above(100, from) {
                found.push(number);
                from = behind;
            }
            let expected = model.iter().filter(|(_, weight)| *weight > 100);
            assert!(found.into_iter().eq(expected.map(|(number, _)| *number)));
        }
    }
}
