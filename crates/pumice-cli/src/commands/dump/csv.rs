//! Datasets as comma-separated values: a row a line. Before the values of a dataset of more than two
//! dimensions stand the row's coordinates; of a sparse dataset, each defined cell is a line with its
//! coordinates.

use super::options::{Options, Wanted};
use crate::cells::{self, Hyperslab};
use crate::value::Renderer;
use anyhow::{Result, ensure};
use pumice::{Dataset, File};
use std::io::Write;

/// Prints the datasets that were asked for, or all.
pub(super) fn print(file: &File, options: &Options, out: &mut dyn Write) -> Result<()> {
    ensure!(!options.wanted.is_empty(), "--csv needs a dataset: -d PATH");
    for wanted in &options.wanted {
        let (path, subset) = match wanted {
            Wanted::Dataset(path, subset) => (path, subset.as_ref()),
            Wanted::Any(path) => (path, None),
            _ => continue,
        };
        let dataset = file.dataset(path)?;
        let slab = match subset {
            Some(subset) => subset.slab(&dataset.shape())?,
            None => Hyperslab::whole(&dataset.shape()),
        };
        if dataset.is_sparse() && !options.dense {
            defined(&dataset, &slab, out)?;
        } else {
            rows(&dataset, &slab, out)?;
        }
    }
    Ok(())
}

fn rows(dataset: &Dataset, slab: &Hyperslab, out: &mut dyn Write) -> Result<()> {
    let renderer = Renderer::new(dataset.datatype())?;
    let shape = slab.shape();
    // Values of a row stand in one line, but for vectors.
    let row = if shape.len() > 1 { shape.last().copied().unwrap_or(1).max(1) } else { 1 };
    let mut text = String::new();
    cells::for_each_piece(dataset, slab, |before, _, piece| {
        let elements = piece.elements.chunks_exact(renderer.size().max(1));
        for (index, element) in (before..).zip(elements) {
            text.clear();
            if index % row == 0 && shape.len() > 2 {
                let cell = slab.coordinates(index);
                for coordinate in &cell[..cell.len() - 1] {
                    text.push_str(&format!("{coordinate},"));
                }
            }
            push(&renderer, element, &piece.heap, &mut text);
            text.push(if index % row == row - 1 { '\n' } else { ',' });
            out.write_all(text.as_bytes())?;
        }
        Ok(())
    })
}

fn defined(dataset: &Dataset, slab: &Hyperslab, out: &mut dyn Write) -> Result<()> {
    let renderer = Renderer::new(&cells::value_type(dataset.datatype()))?;
    let (shape, mut place) = (dataset.shape(), Vec::new());
    let mut text = String::new();
    cells::for_each_band(dataset, slab, |band| {
        let found = cells::Defined::read(dataset, band)?;
        let elements = found.values.elements.chunks_exact(renderer.size().max(1));
        for (&linear, element) in found.cells.iter().zip(elements) {
            text.clear();
            cells::coordinates(linear, &shape, &mut place);
            for coordinate in &place {
                text.push_str(&format!("{coordinate},"));
            }
            push(&renderer, element, &found.values.heap, &mut text);
            text.push('\n');
            out.write_all(text.as_bytes())?;
        }
        Ok(())
    })
}

/// A value; in quotes if it has commas, quotes or line breaks.
fn push(renderer: &Renderer, element: &[u8], heap: &[u8], text: &mut String) {
    let mut value = String::new();
    renderer.push_inline(&mut value, element, heap);
    // Texts are in quotes already, as in a dump.
    let bare = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let value = bare.map_or(value.clone(), str::to_owned);
    if value.contains([',', '"', '\n', '\r']) {
        text.push('"');
        text.push_str(&value.replace('"', "\"\""));
        text.push('"');
    } else {
        text.push_str(&value);
    }
}
