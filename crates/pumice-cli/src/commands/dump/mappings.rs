//! The mappings of virtual datasets.

use super::objects::Dumper;
use crate::region::parts;
use anyhow::Result;
use pumice::{Dataset, HyperslabAxis, Selection, UNLIMITED};

impl Dumper<'_> {
    /// The parts of a virtual dataset, and their sources.
    pub(super) fn mappings(&mut self, dataset: &Dataset) -> Result<()> {
        let shape = dataset.shape();
        for (number, mapping) in dataset.virtual_mappings().iter().enumerate() {
            // h5dump leaves a blank behind some of the braces.
            self.begin(&format!("MAPPING {number} {{ "))?;
            self.begin("VIRTUAL {")?;
            self.cells_of(&mapping.target, &shape)?;
            self.end()?;
            self.begin("SOURCE {")?;
            self.line(&format!("FILE \"{}\"", mapping.file))?;
            self.line(&format!("DATASET \"{}\"", mapping.dataset))?;
            self.cells_of(&mapping.source, &vec![UNLIMITED - 1; shape.len()])?;
            self.end()?;
            self.end()?;
        }
        Ok(())
    }

    fn cells_of(&mut self, selection: &Selection, shape: &[u64]) -> Result<()> {
        if selection.is_all() {
            return self.line("SELECTION ALL");
        }
        if selection.is_none() {
            return self.line("SELECTION NONE");
        }
        if let Some(axes) = selection.regular() {
            self.begin("SELECTION REGULAR_HYPERSLAB { ")?;
            let starts: Vec<_> = axes.iter().map(|axis| axis.start).collect();
            let stride = |axis: &HyperslabAxis| if axis.count == 1 { 1 } else { axis.stride };
            let strides: Vec<_> = axes.iter().map(stride).collect();
            let counts: Vec<_> = axes.iter().map(|axis| axis.count).collect();
            let blocks: Vec<_> = axes.iter().map(|axis| axis.block).collect();
            for (name, list) in
                [("START", starts), ("STRIDE", strides), ("COUNT", counts), ("BLOCK", blocks)]
            {
                self.line(&format!("{name} {}", numbers(&list)))?;
            }
            return self.end();
        }
        match parts(selection, shape) {
            ("POINT", points) => self.line(&format!("POINT {{ {} }}", points.join(", "))),
            (_, blocks) => {
                self.begin("SELECTION IRREGULAR_HYPERSLAB { ")?;
                self.line(&blocks.join(", "))?;
                self.end()
            }
        }
    }
}

fn numbers(list: &[u64]) -> String {
    let text = |&number: &u64| match number {
        UNLIMITED => "H5S_UNLIMITED".to_owned(),
        number => number.to_string(),
    };
    format!("({})", list.iter().map(text).collect::<Vec<_>>().join(","))
}
