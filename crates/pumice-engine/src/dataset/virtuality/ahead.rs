//! Prefetching for virtual datasets: their sources load the chunks.

use super::{Deeper, Source, Virtual, segments};
use crate::Result;
use pumice_layout::Geometry;
use pumice_space::Selection;
use std::sync::Arc;

impl Virtual {
    /// Begins to load the selected cells in the sources; returns whether any source began.
    pub(in crate::dataset) fn prefetch(
        &self,
        geometry: &Geometry,
        selection: &Selection,
    ) -> Result<bool> {
        let _deeper = Deeper::enter()?;
        let mut begun = false;
        for (source, cells) in self.shares_of(geometry, selection)? {
            begun |= source.dataset.prefetch(&cells)?;
        }
        Ok(begun)
    }

    /// Announces to each source which of its cells will be read; returns whether that is of use to
    /// any.
    pub(in crate::dataset) fn will_read(
        &self,
        geometry: &Geometry,
        selections: &[Selection],
    ) -> Result<bool> {
        let _deeper = Deeper::enter()?;
        let mut each: Vec<(Source, Vec<Selection>)> = Vec::new();
        for selection in selections {
            for (source, cells) in self.shares_of(geometry, selection)? {
                let same = |known: &&mut (Source, Vec<Selection>)| {
                    Arc::ptr_eq(&known.0.dataset, &source.dataset)
                };
                match each.iter_mut().find(same) {
                    Some((_, list)) => list.push(cells),
                    None => each.push((source, vec![cells])),
                }
            }
        }
        let mut useful = false;
        for (source, list) in each {
            useful |= source.dataset.will_read(&list)?;
        }
        Ok(useful)
    }

    /// The selected cells of each source.
    fn shares_of(
        &self,
        geometry: &Geometry,
        selection: &Selection,
    ) -> Result<Vec<(Source, Selection)>> {
        let dims = geometry.dims();
        selection.check(&dims)?;
        if selection.count(&dims) == 0 {
            return Ok(Vec::new());
        }
        let wanted = segments(selection, &dims, &Selection::all(), &selection.shape(&dims))?;
        let mut shares = Vec::new();
        for mapping in &self.mappings {
            for piece in self.pieces(mapping)? {
                let Some((cells, _)) = piece.cells(&dims, &wanted)? else { continue };
                shares.push((piece.source, cells));
            }
        }
        Ok(shares)
    }
}
