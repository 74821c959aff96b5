//! Defined cells, a line each: coordinates and value.

use crate::cells::{self, Defined, Hyperslab};
use crate::value::Renderer;
use crate::{numbers, window};
use anyhow::{Result, anyhow};
use pumice::Dataset;
use std::fmt::Write as _;
use std::io::Write;

/// Lists the defined cells of `slab`, at most `most`. Every cell of a dense dataset is defined.
pub(super) fn print(
    dataset: &Dataset,
    slab: &Hyperslab,
    most: usize,
    out: &mut impl Write,
) -> Result<()> {
    let mut lines = Lines { text: String::new(), count: 0, most, out };
    // Where only some are shown, the caption says whether there are more.
    if most == usize::MAX {
        writeln!(lines.out, "{}", caption(dataset, slab, None))?;
    }
    let done = match dataset.is_sparse() {
        true => sparse(dataset, slab, &mut lines),
        false => dense(dataset, slab, &mut lines),
    };
    match done {
        Err(error) if !error.is::<Enough>() => return Err(error),
        _ => {}
    }
    if most != usize::MAX {
        let shown = Some(most).filter(|_| lines.count > most);
        writeln!(lines.out, "{}", caption(dataset, slab, shown))?;
    }
    lines.out.write_all(lines.text.as_bytes())?;
    if lines.count == 0 {
        writeln!(lines.out, "no cell is defined")?;
    }
    Ok(())
}

fn caption(dataset: &Dataset, slab: &Hyperslab, shown: Option<usize>) -> String {
    let shape = dataset.shape();
    let head = format!("{}: {}", dataset.path(), numbers::shape(&shape));
    match shown {
        Some(most) => {
            format!(
                "{head}, the first {most} defined cells; --defined lists all, --table the corner"
            )
        }
        None if *slab == Hyperslab::whole(&shape) => format!("{head}, defined cells"),
        None => format!("{head}, defined cells of window {}", window::text(slab)),
    }
}

fn sparse(dataset: &Dataset, slab: &Hyperslab, lines: &mut Lines<'_, impl Write>) -> Result<()> {
    let (shape, mut place) = (dataset.shape(), Vec::new());
    let renderer = Renderer::new(&cells::value_type(dataset.datatype()))?;
    cells::for_each_band(dataset, slab, |band| {
        let found = Defined::read(dataset, band)?;
        let elements = found.values.elements.chunks_exact(renderer.size().max(1));
        for (&cell, element) in found.cells.iter().zip(elements) {
            cells::coordinates(cell, &shape, &mut place);
            lines.push(&place, &renderer, element, &found.values.heap)?;
        }
        Ok(())
    })
}

fn dense(dataset: &Dataset, slab: &Hyperslab, lines: &mut Lines<'_, impl Write>) -> Result<()> {
    let renderer = Renderer::new(dataset.datatype())?;
    cells::for_each_piece(dataset, slab, |before, _, piece| {
        let elements = piece.elements.chunks_exact(renderer.size().max(1));
        for (number, element) in (before..).zip(elements) {
            lines.push(&slab.coordinates(number), &renderer, element, &piece.heap)?;
        }
        Ok(())
    })
}

/// Bytes of lines that are written at once.
const FULL: usize = 64 << 10;

/// Lines on their way out.
struct Lines<'a, W> {
    text: String,
    count: usize,
    most: usize,
    out: &'a mut W,
}

impl<W: Write> Lines<'_, W> {
    fn push(
        &mut self,
        place: &[u64],
        renderer: &Renderer,
        element: &[u8],
        heap: &[u8],
    ) -> Result<()> {
        self.count += 1;
        if self.count > self.most {
            return Err(anyhow!(Enough));
        }
        self.text.push('(');
        for (axis, number) in place.iter().enumerate() {
            let comma = if axis > 0 { "," } else { "" };
            write!(self.text, "{comma}{number}")?;
        }
        self.text.push_str(")  ");
        renderer.push_inline(&mut self.text, element, heap);
        self.text.push('\n');
        if self.most == usize::MAX && self.text.len() > FULL {
            self.out.write_all(self.text.as_bytes())?;
            self.text.clear();
        }
        Ok(())
    }
}

/// There are more cells than are shown.
#[derive(Debug)]
struct Enough;

impl std::fmt::Display for Enough {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("more cells than are shown")
    }
}

impl std::error::Error for Enough {}
