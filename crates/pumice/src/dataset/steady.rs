//! Operations in one extent, while other threads may resize the dataset.
//!
//! A range such as `..` becomes a selection before the dataset is asked for its cells. If it was
//! resized in between, the engine may refuse the selection or a buffer that was made for it: then
//! both are made again, and after a few times resizes are held off. Repeating an operation here
//! gives the same result.

use super::Dataset;
use crate::select::Select;
use pumice_engine::{Error, Result};
use pumice_space::{Dims, Selection};

/// How often an operation is repeated before resizes are held off.
const TRIES: usize = 10;

impl Dataset {
    /// Does something with the selected cells of the extent of now; anew if it fails and the dataset was
    /// resized meanwhile.
    pub(crate) fn selected<R>(
        &self,
        selection: impl Select,
        mut act: impl FnMut(&Selection, &Dims) -> Result<R>,
    ) -> Result<R> {
        self.in_one_extent(|dims| act(&selection.select(dims)?, dims))
    }

    /// Does something with the whole extent, as it is at one moment.
    pub(crate) fn in_one_extent<R>(&self, mut act: impl FnMut(&Dims) -> Result<R>) -> Result<R> {
        self.at(in_one_extent_each(&[self], || act(&self.state.dims())))
    }

    /// Does something that cannot be done anew: if it fails and the dataset was resized meanwhile, the error
    /// says so.
    pub(crate) fn unless_resized<R>(
        &self,
        done: &str,
        act: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        let before = self.state.resizes();
        let result = act();
        match result.is_err() && self.state.was_resized_since(before) {
            true => self.at(Err(resized(done))),
            false => result,
        }
    }
}

/// Does something with several datasets; again if it fails and one of them was resized meanwhile.
pub(crate) fn in_one_extent_each<R>(
    datasets: &[&Dataset],
    mut act: impl FnMut() -> Result<R>,
) -> Result<R> {
    let (mut tried, mut held) = (0, Vec::new());
    loop {
        let before: Vec<u64> = datasets.iter().map(|dataset| dataset.state.resizes()).collect();
        let done = act();
        let mut each = datasets.iter().zip(before);
        if done.is_ok() || !each.any(|(dataset, before)| dataset.state.was_resized_since(before)) {
            return done;
        }
        tried += 1;
        // From now on only resizes that are under way can interfere: at most one for each thread.
        if tried == TRIES {
            held.extend(datasets.iter().map(|dataset| dataset.state.hold_extent()));
        }
    }
}

fn resized(done: &str) -> Error {
    Error::Invalid(format!("the dataset was resized while it was {done}"))
}

/// "All cells" as a selection of this extent, which stays the same after a resize; other selections
/// unchanged.
pub(crate) fn bounded(selection: &Selection, dims: &[u64]) -> Result<Selection> {
    match selection.is_all() && !dims.is_empty() {
        true if dims.contains(&0) => Ok(Selection::none()),
        true => Ok(Selection::block(&vec![0; dims.len()], dims)?),
        false => Ok(selection.clone()),
    }
}
