//! Where the defined cells of a sparse dataset are: blocks and points, with their values if wanted.
//!
//! The form is that of the RFC on sparse data: values stand a level deeper than in dense datasets, behind
//! coordinates without a colon, each point on a line of its own.
//!
//! Runs of cells in neighbouring rows that begin and end alike become one block; a cell alone is a
//! point. Blocks end with the band of rows that is in memory.

use super::objects::Dumper;
use super::sink::Stream;
use super::values::subset_values;
use crate::cells::{self, Hyperslab};
use crate::ddl::{DataLines, LineStyle};
use crate::value::INDENT;
use anyhow::Result;
use pumice::types::ReferenceKind;
use pumice::{Dataset, Datatype, Selection};
use std::collections::BTreeMap;

/// A block by its first and last cells.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Block {
    first: Vec<u64>,
    last: Vec<u64>,
}

impl Dumper<'_> {
    /// Prints all defined cells of `slab`.
    pub(super) fn regions(&mut self, dataset: &Dataset, slab: &Hyperslab) -> Result<()> {
        cells::require_numbers(&dataset.shape())?;
        cells::for_each_band(dataset, slab, |band| {
            let (blocks, points) = regions(&dataset.defined(band)?, &dataset.shape());
            for block in blocks {
                let text = format!("{}-{}", tuple(&block.first), tuple(&block.last));
                self.line(&format!("REGION_TYPE BLOCK  {text}"))?;
                if self.options.sparse_values {
                    self.block_values(dataset, &block)?;
                }
            }
            if points.is_empty() {
                return Ok(());
            }
            let list: Vec<String> = points.iter().map(|point| tuple(point)).collect();
            self.line(&format!("REGION_TYPE POINT  {}", list.join(", ")))?;
            if self.options.sparse_values {
                self.point_values(dataset, &points)?;
            }
            Ok(())
        })
    }

    fn block_values(&mut self, dataset: &Dataset, block: &Block) -> Result<()> {
        let ranges = block.first.iter().zip(&block.last).map(|(first, last)| *first..last + 1);
        let slab = Hyperslab::ranges(&ranges.collect::<Vec<_>>());
        if leads_to_regions(dataset.datatype()) {
            return self.led_to(dataset, &slab.selection()?);
        }
        let renderer = self.renderer(dataset.datatype())?;
        self.line("DATA {")?;
        let style = LineStyle { separator: "  ", ..self.line_style() };
        let indent = self.indent + INDENT;
        let mut out = self.stream(Stream::Values)?;
        let lines = DataLines::new(&mut out, &renderer, indent, style);
        let mut lines = lines.in_array(&dataset.shape());
        let shown = subset_values(dataset, &slab, renderer.size(), &mut lines);
        lines.finish()?;
        self.line("}")?;
        shown
    }

    fn point_values(&mut self, dataset: &Dataset, points: &[Vec<u64>]) -> Result<()> {
        let cells = Selection::points(dataset.shape().len(), points.concat())?;
        if leads_to_regions(dataset.datatype()) {
            return self.led_to(dataset, &cells);
        }
        let values = cells::read(dataset, &cells)?;
        let renderer = self.renderer(dataset.datatype())?;
        self.line("DATA {")?;
        let style = LineStyle { separator: " ", ..self.line_style() };
        let indent = self.indent + INDENT;
        let mut out = self.stream(Stream::Values)?;
        let mut lines = DataLines::new(&mut out, &renderer, indent, style);
        let elements = values.elements.chunks_exact(renderer.size().max(1));
        for (point, element) in points.iter().zip(elements) {
            lines.interrupt()?;
            lines.push(point, true, element, &values.heap)?;
        }
        lines.finish()?;
        self.line("}")
    }

    /// What references lead to, cell by cell.
    fn led_to(&mut self, dataset: &Dataset, cells: &Selection) -> Result<()> {
        let references = dataset.read_references(cells)?;
        self.line("DATA {")?;
        let shown = self.references(&references);
        self.line("}")?;
        shown
    }
}

/// Whether elements are references that take more than a line each.
fn leads_to_regions(datatype: &Datatype) -> bool {
    matches!(datatype, Datatype::Reference(reference) if reference.kind != ReferenceKind::Object)
}

fn tuple(cell: &[u64]) -> String {
    let list: Vec<String> = cell.iter().map(u64::to_string).collect();
    format!("({})", list.join(","))
}

/// The blocks and the points of a selection, each in row-major order of their first cells.
fn regions(cells: &Selection, shape: &[u64]) -> (Vec<Block>, Vec<Vec<u64>>) {
    let row = shape.last().copied().unwrap_or(1).max(1);
    // Blocks that the next row may continue, by what is before the row, and first and last column.
    let mut open: BTreeMap<(Vec<u64>, u64, u64), Block> = BTreeMap::new();
    let mut done = Vec::new();
    let mut place = Vec::new();
    for run in cells.runs(shape) {
        let (mut start, end) = (run.start, run.start + run.len);
        while start < end {
            let length = (row - start % row).min(end - start);
            cells::coordinates(start, shape, &mut place);
            let column = place.pop().unwrap_or(0);
            let last_column = column + length - 1;
            let number = place.pop();
            let key = (place.clone(), column, last_column);
            let at = |number: Option<u64>, column: u64| {
                place.iter().copied().chain(number).chain([column]).collect::<Vec<u64>>()
            };
            let next = |block: &Block| {
                let rows = block.last.len().checked_sub(2).map(|axis| block.last[axis]);
                number.is_some() && rows.map(|row| row + 1) == number
            };
            let cell = Block { first: at(number, column), last: at(number, last_column) };
            match open.get_mut(&key) {
                Some(block) if next(block) => block.last = cell.last,
                _ => done.extend(open.insert(key, cell)),
            }
            start += length;
        }
    }
    done.extend(open.into_values());
    done.sort_by(|one, other| one.first.cmp(&other.first));
    let (points, blocks): (Vec<_>, Vec<_>) =
        done.into_iter().partition(|block| block.first == block.last);
    (blocks, points.into_iter().map(|block| block.first).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_runs_of_neighbouring_rows_are_one_block() {
        let block = |first: [u64; 2], size: [u64; 2]| Selection::block(&first, &size).unwrap();
        let parts = [
            block([2, 2], [3, 6]),
            block([6, 0], [1, 3]),
            block([5, 9], [1, 1]),
            block([11, 1], [1, 1]),
        ];
        let cells = Selection::union_of(2, parts.to_vec(), &[13, 10]).unwrap();
        let (blocks, points) = regions(&cells, &[13, 10]);
        let texts: Vec<String> = blocks
            .iter()
            .map(|block| format!("{}-{}", tuple(&block.first), tuple(&block.last)))
            .collect();
        assert_eq!(texts, ["(2,2)-(4,7)", "(6,0)-(6,2)"]);
        assert_eq!(points, [vec![5, 9], vec![11, 1]]);
    }

    #[test]
    fn a_run_that_ends_in_the_next_row_is_two() {
        let cells = Selection::block(&[3], &[4]).unwrap();
        assert_eq!(regions(&cells, &[9]).0, [Block { first: vec![3], last: vec![6] }]);
        let whole = Selection::block(&[0, 0], &[2, 5]).unwrap();
        assert_eq!(regions(&whole, &[2, 5]).0, [Block { first: vec![0, 0], last: vec![1, 4] }]);
    }
}
