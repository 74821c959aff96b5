//! Cells that are named one by one: points, pairs, columns, compressed rows and columns are one batch
//! ([`Points`]), which is split by chunk here.
//!
//! A write takes the first way that the order of its cells allows:
//!
//! | cells | way | beside the last way | beside the one below |
//! |---|---|---|---|
//! | compressed rows, in chunks that take encoded rows | encoded in the pass that splits them (`rows.rs`) | 1.26 to 1.7 | 1.04 to 1.2 |
//! | ascending along the slowest axis | put together with their values, band by band ([`Points::in_bands`]) | 1.14 to 1.6 | |
//! | any others | sorted by chunk ([`PointPlan`]), as many at a time as a plan can have | | |
//!
//! The numbers say how many times as fast a way writes the same cells, a million and ten million of a
//! matrix (`cargo run --release --bin points` in `bench`, memory that is freed kept).
//!
//! Other datasets than sparse ones take points as selections.

use super::DatasetState;
use crate::{Error, Result};
use pumice_layout::buffer::Output;
use pumice_layout::sparse::Sparse;
use pumice_layout::{Source, SparseRead, SparseWrite, Target};
use pumice_space::{PointPlan, Points, Selection};
use pumice_types::{Conversion, Datatype};

impl DatasetState {
    /// Reads cells that are named one by one into `output`, in their order. Undefined ones give the
    /// fill value.
    pub fn read_points(
        &self,
        points: &Points<'_>,
        memory_type: &Datatype,
        output: Output<'_>,
    ) -> Result<()> {
        let Some(sparse) = self.takes_points() else {
            return self.read(&list(points)?, memory_type, output);
        };
        let _no_resize = self.gate();
        check_points(points, memory_type, output.len())?;
        let conversion = Conversion::new(&self.datatype, memory_type)?;
        // SAFETY: every point has a place of its own, and plans of points follow one another.
        let target = unsafe { Target::new(output, conversion, self.layout.geometry.fill())? };
        self.for_each_plan(points, |plan| {
            let target = &target;
            let ask = |part| sparse.ask(SparseRead::Points { part, target });
            let requests = plan.parts().map(|part| (part.chunk(), ask(part)));
            self.cache().read(&self.cached, requests)
        })
    }

    /// Writes elements of `memory_type` to cells that are named one by one; where one is named more
    /// than once, its last value counts.
    pub fn write_points(
        &self,
        points: &Points<'_>,
        memory_type: &Datatype,
        bytes: &[u8],
    ) -> Result<()> {
        let Some(sparse) = self.takes_points() else {
            return self.write(&list(points)?, memory_type, bytes);
        };
        self.begin_write()?;
        let _no_resize = self.gate();
        check_points(points, memory_type, bytes.len())?;
        self.check_reach_of_points(points, &self.dims())?;
        let source = &Source::new(bytes, Conversion::new(memory_type, &self.datatype)?);
        let (grid, executor) = (self.grid(&self.dims())?, self.cache().executor());
        let run = |count: usize, task: &(dyn Fn(usize) + Sync)| executor.run(count, task);
        if self.write_rows(sparse, points, &grid, source)? {
            return Ok(());
        }
        if let Some(bands) = points.in_bands(bytes, memory_type.size(), &grid, &run)? {
            let change = |band| sparse.change(SparseWrite::Band { band, source });
            let requests = bands.into_iter().map(|band| (band.chunk.clone(), change(band)));
            return self.cache().write(&self.cached, requests);
        }
        self.for_each_plan(points, |plan| {
            let change = |part| sparse.change(SparseWrite::Points { part, source });
            let requests = plan.parts().map(|part| (part.chunk(), change(part)));
            self.cache().write(&self.cached, requests)
        })
    }

    /// Makes cells undefined that are named one by one.
    pub fn erase_points(&self, points: &Points<'_>) -> Result<()> {
        let Some(sparse) = self.takes_points() else {
            return self.erase(&list(points)?);
        };
        self.begin_write()?;
        self.check_index()?;
        let _no_resize = self.gate();
        self.for_each_plan(points, |plan| {
            let erase = |part| sparse.change(SparseWrite::Erase { part });
            let requests = plan.parts().map(|part| (part.chunk(), erase(part)));
            self.cache().write(&self.cached, requests)
        })
    }

    /// The storage of a sparse dataset whose chunks have numbers, by which points are split.
    fn takes_points(&self) -> Option<&Sparse> {
        let numbered = || self.grid(&self.dims()).is_ok_and(|grid| grid.chunk_count().is_some());
        self.layout.sparse().filter(|_| numbered())
    }

    /// Splits points by chunk, as many at a time as a plan can have.
    fn for_each_plan(
        &self,
        points: &Points<'_>,
        mut request: impl FnMut(&PointPlan<'_>) -> Result<()>,
    ) -> Result<()> {
        let grid = self.grid(&self.dims())?;
        let executor = self.cache().executor();
        let mut start = 0;
        while start < points.len() {
            let range = start..points.len().min(start + PointPlan::MOST_POINTS);
            start = range.end;
            let run = |count: usize, task: &(dyn Fn(usize) + Sync)| executor.run(count, task);
            let threads = executor.threads();
            request(&PointPlan::with_threads(points.clone(), range, &grid, threads, &run)?)?;
        }
        Ok(())
    }
}

fn check_points(points: &Points<'_>, memory_type: &Datatype, buffer: usize) -> Result<()> {
    let bytes = points.len().checked_mul(memory_type.size());
    if bytes == Some(buffer) {
        return Ok(());
    }
    Err(Error::CountMismatch(format!(
        "{} point(s) of {} byte(s), but the buffer has {buffer} byte(s)",
        points.len(),
        memory_type.size()
    )))
}

fn list(points: &Points<'_>) -> Result<Selection> {
    Ok(Selection::points(points.rank(), points.to_list())?)
}
