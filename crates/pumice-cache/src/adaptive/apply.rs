//! When the size is looked at: as a request comes, and after it has been served.

use super::{Adaptive, Curve, CurvePoint, Sizing};
use crate::cache::{ChunkCache, Shared};
use crate::config::Config;
use crate::handles::Dataset;
use crate::layout::Family;

impl Config {
    /// What chooses the size, if anything does.
    pub(crate) fn adaptive(&self) -> Option<Adaptive> {
        match self.sizing {
            Sizing::Off | Sizing::Fixed => None,
            Sizing::Adaptive { minimum, maximum } => {
                let sizes = (minimum, self.resident_limit, maximum);
                Some(Adaptive::new(sizes, self.surroundings.clone()))
            }
        }
    }

    /// What measures the miss-ratio curve, if anything does.
    pub(crate) fn curve(&self) -> Option<Box<Curve>> {
        (self.sizing != Sizing::Off).then(|| Box::new(Curve::new()))
    }
}

impl<F: Family> ChunkCache<F> {
    /// How many requests for chunks would miss at other sizes of the cache, by what was asked for
    /// lately; at the sizes where it changes. Empty if it is not measured.
    pub fn miss_ratio_curve(&self) -> Vec<CurvePoint> {
        self.shared.budget.settle();
        self.shared.budget.with_curve(|curve| curve.points()).unwrap_or_default()
    }

    /// The same for the requests of one dataset, which shares the cache with the others as it does
    /// now; at sizes that double.
    pub fn dataset_miss_ratio_curve(&self, dataset: &Dataset<F>) -> Vec<CurvePoint> {
        self.shared.budget.settle();
        let points = |curve: &mut Curve| curve.points_of(dataset.member.id);
        self.shared.budget.with_curve(points).unwrap_or_default()
    }
}

impl<F: Family> Shared<F> {
    /// A request comes that may need so many bytes. Whether it has changed the size.
    pub(crate) fn arrive(&self, needed: u64) -> bool {
        // If somebody else is at it, that will do.
        let Some(mut adaptive) = self.adaptive.try_lock() else { return false };
        let Some(adaptive) = adaptive.as_mut() else { return false };
        let (before, _) = self.budget.limits();
        let size = adaptive.arrive(before, needed);
        self.resize(before, size);
        size != before
    }

    /// A request ends, which may have taken long.
    pub(crate) fn depart(&self) {
        let Some(mut adaptive) = self.adaptive.try_lock() else { return };
        if let Some(adaptive) = adaptive.as_mut() {
            adaptive.last = adaptive.surroundings.now();
        }
    }

    /// A request has been served.
    pub(crate) fn review(&self) {
        if !self.budget.due() {
            return;
        }
        let Some(mut adaptive) = self.adaptive.try_lock() else { return };
        self.budget.settle();
        // Files are read before the books are locked.
        let memory = adaptive.as_ref().and_then(|adaptive| adaptive.surroundings.memory());
        let (size, _) = self.budget.limits();
        let wanted = self.budget.with_curve(|curve| {
            let wanted = adaptive.as_mut().map(|adaptive| adaptive.review(size, curve, memory));
            curve.age();
            wanted
        });
        self.resize(size, wanted.flatten().unwrap_or(size));
    }

    /// Changes the size, and with it what may be held while requests run.
    pub(super) fn resize(&self, before: u64, size: u64) {
        if size == before {
            return;
        }
        let (resident, active) = self.budget.limits();
        self.budget.set_limits(size, size.saturating_add(active - resident));
        self.limit_absent(size);
    }
}
