//! Handles of a program to a dataset. Cache options end with the last handle.
//!
//! The file remembers a dataset, and the cache its chunks, after the last handle is gone.

use super::DatasetState;
use std::ops::Deref;
use std::sync::{Arc, PoisonError};

/// A program's handle to a dataset. With the last one, the options of the chunk cache are as usual again.
pub struct Handle(Arc<DatasetState>);

impl Handle {
    /// Makes another handle.
    pub fn new(state: Arc<DatasetState>) -> Self {
        state.count_handles(|count| count + 1);
        Self(state)
    }

    /// The dataset.
    pub fn state(&self) -> &Arc<DatasetState> {
        &self.0
    }
}

impl Clone for Handle {
    fn clone(&self) -> Self {
        Self::new(self.0.clone())
    }
}

impl Deref for Handle {
    type Target = DatasetState;

    fn deref(&self) -> &DatasetState {
        &self.0
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.count_handles(|count| count - 1);
    }
}

impl DatasetState {
    fn count_handles(&self, change: impl FnOnce(usize) -> usize) {
        // Held while options change: the next handle finds the defaults, and its own options stay.
        let mut count = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        *count = change(*count);
        if *count == 0 {
            self.cached.set_options(self.usual);
        }
    }
}
