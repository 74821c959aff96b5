//! Each dataset's part in the miss-ratio curve: the same distances, in classes of a doubling each.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::CurvePoint;
use super::curve::ratio;

/// Classes of distances: one to a doubling.
pub(super) const OCTAVES: usize = 36;

/// What is counted of a dataset.
#[derive(Clone, Debug)]
struct Share {
    dataset: u64,
    accesses: f32,
    unseen: f32,
    distances: [f32; OCTAVES],
}

/// The parts of all datasets that have used chunks.
#[derive(Debug, Default)]
pub(super) struct Shares {
    shares: Vec<Share>,
    places: HashMap<u64, u32, FixedState>,
    /// Where the last one is that was asked for: mostly it is the next, too.
    last: usize,
}

impl Shares {
    fn of(&mut self, dataset: u64) -> &mut Share {
        if self.shares.get(self.last).is_none_or(|share| share.dataset != dataset) {
            self.last = *self.places.entry(dataset).or_insert_with(|| {
                let distances = [0.0; OCTAVES];
                self.shares.push(Share { dataset, accesses: 0.0, unseen: 0.0, distances });
                (self.shares.len() - 1) as u32
            }) as usize;
        }
        &mut self.shares[self.last]
    }

    pub(super) fn note_access(&mut self, dataset: u64) {
        self.of(dataset).accesses += 1.0;
    }

    /// Notes a use of a chunk that was not seen before, which stands for `scale` of them.
    pub(super) fn note_unseen(&mut self, dataset: u64, scale: f64) {
        self.of(dataset).unseen += scale as f32;
    }

    /// Notes a distance, which stands for `scale` of them.
    pub(super) fn note_distance(&mut self, dataset: u64, octave: usize, scale: f64) {
        self.of(dataset).distances[octave] += scale as f32;
    }

    /// Lets older accesses count half.
    pub(super) fn age(&mut self) {
        for share in &mut self.shares {
            share.accesses /= 2.0;
            share.unseen /= 2.0;
            share.distances.iter_mut().for_each(|count| *count /= 2.0);
        }
    }

    /// Forgets a dataset.
    pub(super) fn forget(&mut self, dataset: u64) {
        let Some(place) = self.places.remove(&dataset) else { return };
        self.shares.swap_remove(place as usize);
        if let Some(moved) = self.shares.get(place as usize) {
            self.places.insert(moved.dataset, place);
        }
    }

    /// A dataset's curve, at the sizes where it falls; `end` tells where a class ends.
    pub(super) fn points(&self, dataset: u64, end: impl Fn(usize) -> u64) -> Vec<CurvePoint> {
        let Some(&place) = self.places.get(&dataset) else { return Vec::new() };
        let share = &self.shares[place as usize];
        let mut left = share.unseen + share.distances.iter().sum::<f32>();
        let all = left.max(share.accesses);
        let mut points = Vec::new();
        for (octave, count) in share.distances.iter().enumerate().filter(|(_, count)| **count > 0.0)
        {
            left -= count;
            let miss_ratio = ratio(left.into(), all.into());
            points.push(CurvePoint { bytes: end(octave), miss_ratio });
        }
        points
    }
}
