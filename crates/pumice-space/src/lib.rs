//! Shapes: extents, selections and their set algebra, chunk grids, the in-chunk set of defined cells.
