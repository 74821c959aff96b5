//! Shapes: extents, selections and their set algebra, chunk grids, the in-chunk set of defined cells.
//!
//! | type | what it is |
//! |---|---|
//! | [`Extent`] | the shape of an array, and how far it may grow |
//! | [`Selection`] | some cells of an array: all, none, points, a hyperslab, or any union of them |
//! | [`ChunkGrid`] | how an array is cut into chunks |
//! | [`plan`] | splits a transfer between file and memory by chunk |
//! | [`Points`] | cells named one by one, as applications hold them; [`PointPlan`] splits them by chunk |
//! | [`CellSet`] | the defined cells of one chunk, with the position of each one's value |
//! | [`serial`] | all of these as HDF5 writes them |
//!
//! Every cost follows the length of a description (blocks, runs, chunks), never the number of cells.
//! Cells are counted in row-major order throughout; a *run* is a stretch of neighbours in that order.
//!
//! ```
//! use pumice_space::{ChunkGrid, Segment, Selection, plan};
//!
//! // Rows 3 and 4 of a 6 x 6 array in chunks of 4 x 4, read into a 2 x 6 buffer.
//! let grid = ChunkGrid::new(&[6, 6], &[4, 4])?;
//! let rows = Selection::block(&[3, 0], &[2, 6])?;
//! let plan = plan(&rows, &[6, 6], &grid, &Selection::all(), &[2, 6])?;
//!
//! let parts: Vec<_> = plan.collect();
//! assert_eq!(parts.len(), 4);
//! let first: Vec<Segment> = parts[0].segments(grid.chunk()).collect();
//! assert_eq!(first, [Segment { cell: 12, memory: 0, len: 4 }]);
//! # Ok::<(), pumice_space::SpaceError>(())
//! ```

#![forbid(unsafe_code)]

mod cell_set;
mod error;
mod extent;
mod grid;
mod linear;
mod plan;
mod points;
mod selection;
pub mod serial;

pub use cell_set::{
    CellRuns, CellSet, Coordinate, Cursor, Division, Found, FoundCells, Kept, Merge, MergePiece,
    Overlap, Overlaps, Placement, Placements, RunWriter, Splice, SplicePiece, put_cells,
};
pub use error::SpaceError;
pub use extent::Extent;
pub use grid::ChunkGrid;
pub use linear::{CoordinateWalker, Run};
pub use plan::{ChunkPart, Line, Plan, Segment, Segments, plan, plan_packed};
pub use points::{Column, PointBand, PointPart, PointPlan, Points, RowGrid, TakeRows};
pub use selection::{Hyperslab, HyperslabAxis, Runs, Selection};

/// The largest rank that HDF5 allows.
pub const MAX_RANK: usize = 32;

/// A maximum size, count or block length without bound.
pub const UNLIMITED: u64 = u64::MAX;

/// Coordinates or a shape, slowest dimension first.
pub type Dims = smallvec::SmallVec<[u64; 4]>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_can_cross_threads() {
        fn check<T: Send + Sync>() {}
        check::<Selection>();
        check::<Runs<'_>>();
        check::<Plan>();
        check::<ChunkPart>();
        check::<Segments<'_>>();
        check::<CellSet>();
        check::<Placements<'_, Segments<'_>>>();
        check::<SpaceError>();
    }
}
