//! Two datasets, block by block.

use super::elements::{Plan, Reference};
use super::objects::Differ;
use super::references::are_references;
use super::report::{Report, Told};
use super::types::sign;
use crate::atlas::Kind;
use crate::cells::{self, Hyperslab};
use crate::failure;
use crate::walker;
use anyhow::{Context, Result, ensure};
use pumice::{Dataset, Heaped, LayoutKind, Selection};

impl Differ<'_> {
    /// Compares two datasets; answers how many values differ. `paths` are told in messages.
    pub(super) fn datasets(&mut self, paths: [&str; 2], pair: [&Dataset; 2]) -> Result<u64> {
        let [first, second] = pair;
        let list = self.lists_incomparable();
        let mut comparable = true;
        // A sparse dataset without defined cells has fill values.
        let sparse = first.is_sparse() || second.is_sparse();
        if !sparse && (first.storage_size()? == 0 || second.storage_size()? == 0) {
            let is_virtual = |dataset: &Dataset| dataset.layout() == LayoutKind::Virtual;
            let [one, other] = paths;
            if is_virtual(first) || is_virtual(second) {
                if list {
                    self.print(&format!("Warning: <{one}> or <{other}> is a virtual dataset\n"))?;
                }
            } else {
                if list {
                    self.print(&format!(
                        "Not comparable: <{one}> or <{other}> is an empty dataset\n"
                    ))?;
                }
                comparable = self.incomparable();
            }
        }
        let types = [first.datatype(), second.datatype()];
        let extents = [first.extent()?, second.extent()?];
        let subsets = self.subsets();
        let bounds = if subsets.is_some() { [&extents[0]; 2] } else { [&extents[0], &extents[1]] };
        comparable &= self.comparable(paths, types, bounds, false)?;
        if comparable
            && let (Some(one), Some(other)) = (sign(types[0]), sign(types[1]))
            && one != other
        {
            if list {
                self.print(&format!(
                    "Not comparable: <{}> has sign {one} and <{}> has sign {other}\n",
                    paths[0], paths[1]
                ))?;
            }
            comparable = self.incomparable();
        }
        if !comparable || extents.iter().any(|extent| extent.is_null()) {
            return Ok(0);
        }
        let names = paths.map(|path| walker::name(path).to_owned());
        let slabs = match subsets {
            Some([one, other]) => [one.slab(&first.shape())?, other.slab(&second.shape())?],
            None => [Hyperslab::whole(&first.shape()), Hyperslab::whole(&second.shape())],
        };
        ensure!(slabs[0].shape() == slabs[1].shape(), "the parts differ in shape");
        let found = self.values(names, pair, slabs);
        if let Err(error) = &found
            && error.chain().any(|cause| cause.to_string().contains("is not available"))
        {
            failure::warn(&format!(
                "dataset <{}> cannot be read, user defined filter is not available",
                paths[0]
            ));
        }
        found.with_context(|| format!("{} and {}", first.path(), second.path()))
    }

    fn values(
        &mut self,
        names: [String; 2],
        [first, second]: [&Dataset; 2],
        slabs: [Hyperslab; 2],
    ) -> Result<u64> {
        if are_references([first.datatype(), second.datatype()]) {
            let lists = [
                first.read_references(slabs[0].selection()?)?,
                second.read_references(slabs[1].selection()?)?,
            ];
            return self.reference_lists(&names, lists);
        }
        let plan = Plan::new(first.datatype(), second.datatype())?;
        self.wants_header = true;
        if plan.has_references() {
            let shape = first.shape();
            cells::require_numbers(&shape)?;
            let mut found = 0;
            let mut compare = |_: u64, selections: [&Selection; 2], values: [Heaped; 2]| {
                let places = selections[0].runs(&shape);
                let places = places.flat_map(|run| run.start..run.start + run.len);
                found += self.linked_values(&names, &shape, &plan, places, &values, found)?;
                Ok(())
            };
            cells::for_each_pair([first, second], &slabs, &mut compare)?;
            return Ok(found);
        }
        let defined = self.options.defined && (first.is_sparse() || second.is_sparse());
        let (options, shape) = (self.options, first.shape());
        cells::require_numbers(&shape)?;
        let part = slabs[0] != Hyperslab::whole(&shape);
        let mut report = Report::new(&mut *self.out, options, names.clone(), &shape);
        let (mut found, mut pending) = (0, Vec::new());
        let mut visit = |before: u64,
                         selections: [&Selection; 2],
                         values: [Heaped; 2]|
         -> Result<()> {
            let most = options.count.map(|most| most.saturating_sub(found));
            if most == Some(0) {
                return Ok(());
            }
            if defined {
                let cells = [first.defined(selections[0])?, second.defined(selections[1])?];
                let both = cells[0].and(&cells[1], &shape).map_err(pumice::Error::from)?;
                for (own, text) in
                    cells.iter().zip(["defined         -", "-               defined"])
                {
                    let own = own.not_b(&both, &shape).map_err(pumice::Error::from)?;
                    for run in own.runs(&shape) {
                        found += run.len;
                        for cell in run.start..run.start + run.len {
                            report.tell(cell, None, false, text)?;
                        }
                    }
                }
                let values = [cells::read(first, &both)?, cells::read(second, &both)?];
                let places: Vec<u64> =
                    both.runs(&shape).flat_map(|run| run.start..run.start + run.len).collect();
                found += plan.compare_cells(&values, &places, most, &mut report, &mut pending)?;
                return Ok(());
            }
            let [first, second] = values;
            if part {
                let places: Vec<u64> = selections[0]
                    .runs(&shape)
                    .flat_map(|run| run.start..run.start + run.len)
                    .collect();
                let values = [first, second];
                found += plan.compare_cells(&values, &places, most, &mut report, &mut pending)?;
            } else {
                found +=
                    plan.compare_block(&first, &second, before, most, &mut report, &mut pending)?;
            }
            Ok(())
        };
        if plan.is_plain() && !part && !defined && slabs[0] == slabs[1] {
            cells::for_each_different_pair([first, second], &slabs[0], visit)?;
        } else {
            cells::for_each_pair([first, second], &slabs, &mut visit)?;
        }
        let began = report.began();
        self.wants_header = !began;
        Ok(found)
    }

    /// Compares values with references among them, of the cells `places`. The objects of references
    /// are compared on the spot. `found`: the number of differences so far.
    pub(super) fn linked_values(
        &mut self,
        names: &[String; 2],
        dims: &[u64],
        plan: &Plan,
        places: impl Iterator<Item = u64>,
        values: &[Heaped; 2],
        found: u64,
    ) -> Result<u64> {
        let (mut more, options) = (0, self.options);
        for (place, pair) in places.zip(plan.elements(values)) {
            if options.count.is_some_and(|most| found + more >= most) {
                break;
            }
            let (mut text, mut pending) = (Vec::new(), Vec::new());
            let mut report = Report::of_part(&mut text, options, names.clone(), dims);
            more += plan.compare(pair, place, &mut report, &mut pending)?;
            let relative = report.relative();
            let mut done = 0;
            for reference in pending {
                self.tell_lines(names, dims, relative, &text[done..reference.after])?;
                done = reference.after;
                more += self.reference(names, &reference)?;
            }
            self.tell_lines(names, dims, relative, &text[done..])?;
        }
        Ok(more)
    }

    /// Prints lines, behind a header if they are the first.
    fn tell_lines(
        &mut self,
        names: &[String; 2],
        dims: &[u64],
        relative: Option<bool>,
        text: &[u8],
    ) -> Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        let told = Told { text: text.to_vec(), relative };
        let report = Report::new(&mut *self.out, self.options, names.clone(), dims);
        report.behind_header(!self.wants_header).append(&told)?;
        self.wants_header = false;
        Ok(())
    }

    /// Compares the objects of one reference of each side.
    fn reference(&mut self, names: &[String; 2], reference: &Reference) -> Result<u64> {
        let atlases = self.atlases();
        let (first, second) = (reference.first, reference.second);
        let kinds = (atlases[0].kind(first), atlases[1].kind(second));
        let (Some(Kind::Dataset), Some(Kind::Dataset)) = kinds else {
            return self.not_datasets(names, kinds.0 == kinds.1).map(|()| 0);
        };
        let paths = [atlases[0].path(first), atlases[1].path(second)];
        let paths = paths.map(Option::unwrap_or_default);
        let pair = [self.files[0].dataset(paths[0])?, self.files[1].dataset(paths[1])?];
        if self.depth >= 16 {
            return Ok(0);
        }
        self.depth += 1;
        let [one, other] = names;
        let result = self.datasets([one, other], [&pair[0], &pair[1]]);
        self.depth -= 1;
        result
    }
}
