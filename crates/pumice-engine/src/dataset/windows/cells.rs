//! The defined cells of a window, chunk by chunk, for readers of coordinates.
//!
//! To cut a selection of scattered rows into a part for every chunk takes longer than to read the cells. A plan of rows and
//! columns needs no cutting (`bench/run --only f` has such rows).

use super::{Window, WindowPlan};
use crate::Result;
use crate::dataset::DatasetState;
use crate::dataset::asking::Defined;
use pumice_space::{Dims, FoundCells, Selection};

/// Cells of the largest window that is read in one go.
const MOST: u64 = 1 << 26;

impl DatasetState {
    /// The defined cells of a window, if what is selected is one that has no chunk as a whole: those are better put
    /// to their place as they are read. `None` otherwise, and then nothing has been read.
    pub(in crate::dataset) fn read_window_cells(
        &self,
        selection: &Selection,
    ) -> Result<Option<Vec<Defined>>> {
        let dims = self.dims();
        let &[height, side] = self.layout.geometry.chunk() else { return Ok(None) };
        if selection.count(&dims) > MOST {
            return Ok(None);
        }
        if let Some((_, count)) = selection.as_block(&dims)
            && count[0] >= height
            && count[1] >= side.min(dims[1])
        {
            return Ok(None);
        }
        let Some(window) = Window::of(selection, &dims)? else { return Ok(None) };
        if window.columns.len() > 1 {
            return Ok(None);
        }
        let Some(mut plan) = self.plan_window(&window)? else { return Ok(None) };
        plan.starts = false;
        self.cache().read(&self.cached, plan.requests())?;
        Ok(Some(plan.into_cells()))
    }
}

impl WindowPlan {
    /// What was found in each chunk.
    fn into_cells(self) -> Vec<Defined> {
        let Self { bands, stripes, found, .. } = self;
        let chunks =
            bands.iter().flat_map(|band| stripes.iter().map(|stripe| [band.chunk, stripe.chunk]));
        let cells = chunks.zip(found).filter_map(|(chunk, found)| {
            let found = found.filter(|found| !found.cells.is_empty())?;
            let (chunk, cells) = (Dims::from_slice(&chunk), FoundCells::Listed(found.cells));
            Some(Defined { chunk, cells, values: found.values })
        });
        cells.collect()
    }
}
