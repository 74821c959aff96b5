//! Cells of variable length on their way to another dataset, with everything that they refer to.
//!
//! A copy that is not sparse, and in which omitted cells would read otherwise, is written whole,
//! block by block: kept cells with their values, all others with the fill value of the original.

use super::{Copying, retain};
use crate::blocks::{BLOCK_CELLS, Block};
use crate::dataset::coordinates_of;
use crate::{Defined, Keep};
use pumice_engine::{Error, Result};
use pumice_space::Selection;
use pumice_types::{Datatype, Heaped, HeapedConversion, Value, heaped};

/// Cells of variable length.
struct Found {
    cells: Defined<u8>,
    heap: Vec<u8>,
}

/// Writes elements to the copy, converted if its datatype is another.
struct Writer<'a> {
    copying: &'a Copying<'a>,
    conversion: Option<HeapedConversion>,
}

impl Copying<'_> {
    /// Copies elements of variable length with their text and sequences.
    pub(super) fn cells_with_heap(&self, limit: u64, progress: &mut dyn FnMut(u64)) -> Result<()> {
        let writer = self.writer()?;
        if self.stored && self.from.has_no_place() {
            return Ok(());
        }
        if self.from.shape().is_empty() {
            return self.scalar_with_heap(&writer);
        }
        let size = self.from.datatype().size() as u64;
        if !self.to.is_sparse() && self.other_fill() {
            let fill = self.own_fill()?;
            return self.to.for_each_block(limit.min(BLOCK_CELLS), |block| {
                writer.write(&block.selection()?, self.filled(block, &fill)?)?;
                progress(block.cells().saturating_mul(size));
                Ok(())
            });
        }
        self.parts(limit, |block, cells| {
            self.block_with_heap(cells, &writer)?;
            progress(block.cells().saturating_mul(size));
            Ok(())
        })
    }

    /// Copies the one cell of a scalar, or the original's fill value if it is not kept.
    fn scalar_with_heap(&self, writer: &Writer<'_>) -> Result<()> {
        let value = self.from.read_heaped(..)?;
        let values = value.values(self.from.datatype()).map_err(Error::from);
        let values = self.from.at(values)?.into_iter().map(settled);
        let excluded = values.map(Some).any(|value| value == self.excluded_value);
        match !excluded && self.keeps_scalar()? {
            true => writer.write(&Selection::all(), value),
            false if self.other_fill() => writer.write(&Selection::all(), self.own_fill()?),
            false => Ok(()),
        }
    }

    fn writer(&self) -> Result<Writer<'_>> {
        let (from, to) = (self.from.datatype(), self.to.datatype());
        let conversion = (from != to).then(|| HeapedConversion::new(from, to)).transpose();
        let conversion = self.from.at(conversion.map_err(Error::from))?;
        Ok(Writer { copying: self, conversion })
    }

    /// The value of unwritten cells.
    fn own_fill(&self) -> Result<Heaped> {
        let size = self.from.datatype().size();
        let fill = self.from.fill_heaped()?.filter(|fill| fill.elements.len() == size);
        Ok(fill.unwrap_or_else(|| Heaped { elements: vec![0; size], heap: Vec::new() }))
    }

    /// Copies cells of a block, with the objects that they refer to.
    fn block_with_heap(&self, cells: Selection, writer: &Writer<'_>) -> Result<()> {
        if !self.from.is_sparse() && !self.picks() {
            return writer.write(&cells, self.from.read_heaped(&cells)?);
        }
        let Found { cells: Defined { rank, coordinates, values }, heap } = self.found(&cells)?;
        if coordinates.is_empty() {
            return Ok(());
        }
        writer.write(&Selection::points(rank, coordinates)?, Heaped { elements: values, heap })
    }

    /// All cells of a block: kept ones with their values, others with the fill value.
    fn filled(&self, block: &Block, fill: &Heaped) -> Result<Heaped> {
        let (shape, datatype) = (self.from.shape(), self.from.datatype());
        let size = datatype.size();
        let cells = self.within().and(&block.selection()?, &shape)?;
        let Heaped { elements, mut heap } = fill.clone();
        let mut elements = elements.repeat(block.cells() as usize);
        if cells.count(&shape) == 0 {
            return Ok(Heaped { elements, heap });
        }
        let mut found = self.found(&cells)?;
        let base = heap.len() as u64;
        heap.append(&mut found.heap);
        let kept = &mut found.cells.values;
        let moved = heaped::move_references(datatype, kept, &mut heap, &|old| old + base);
        self.from.at(moved.map_err(Error::from))?;
        for (point, element) in
            found.cells.coordinates.chunks_exact(shape.len()).zip(kept.chunks_exact(size))
        {
            let axes = point.iter().zip(&block.start).zip(&block.count);
            let at = axes.fold(0, |at, ((cell, start), count)| at * count + (cell - start));
            elements[at as usize * size..][..size].copy_from_slice(element);
        }
        Ok(Heaped { elements, heap })
    }

    /// Whether cells are left out by their value or by a mask.
    fn picks(&self) -> bool {
        matches!(self.keep, Keep::Where(_)) || self.excluded_value.is_some()
    }

    /// The kept cells among `cells`.
    fn found(&self, cells: &Selection) -> Result<Found> {
        let rank = self.from.shape().len();
        let (coordinates, heaped) = if self.from.is_sparse() {
            self.from.read_defined_heaped(cells)?
        } else {
            let shape = self.to.shape();
            let count = cells.count(&shape) as usize;
            (coordinates_of(cells, &shape, count), self.from.read_heaped(cells)?)
        };
        let Heaped { elements, heap } = heaped;
        let cells = Defined { rank, coordinates, values: elements };
        let mut found = Found { cells, heap };
        if self.picks() {
            self.pick_with_heap(&mut found)?;
        }
        Ok(found)
    }

    /// Removes cells by their value or by a mask.
    fn pick_with_heap(&self, found: &mut Found) -> Result<()> {
        let datatype = self.from.datatype();
        match (&self.excluded_value, self.keep) {
            (Some(excluded), _) => {
                let (elements, heap) =
                    (std::mem::take(&mut found.cells.values), std::mem::take(&mut found.heap));
                let heaped = Heaped { elements, heap };
                let values = self.from.at(heaped.values(datatype).map_err(Error::from))?;
                (found.cells.values, found.heap) = (heaped.elements, heaped.heap);
                let kept: Vec<bool> =
                    values.into_iter().map(|value| settled(value) != *excluded).collect();
                retain(&mut found.cells, datatype.size(), |cell, _| kept[cell]);
                Ok(())
            }
            (None, Keep::Where(mask)) => self.retain_where(&mut found.cells, mask),
            _ => Ok(()),
        }
    }
}

impl Writer<'_> {
    fn write(&self, cells: &Selection, values: Heaped) -> Result<()> {
        let Copying { from, to, .. } = self.copying;
        match &self.conversion {
            None => to.write_heaped(cells, &values),
            Some(conversion) => {
                let converted = from.at(conversion.convert(&values).map_err(Error::from))?;
                to.write_heaped(cells, &converted)
            }
        }
    }
}

/// The excluded value for elements of a datatype of variable length.
pub(super) fn excluded(keep: &Keep, own: &Datatype) -> Result<Option<Value>> {
    let value = match keep {
        Keep::ExceptValue(value) => return Ok(Some(settled(value.clone()))),
        Keep::Except(datatype, element) if element.len() == datatype.size() => {
            let alone = Heaped { elements: element.clone(), heap: Vec::new() };
            alone.values(datatype).ok().and_then(|values| values.into_iter().next())
        }
        Keep::Except(..) => None,
        _ => return Ok(None),
    };
    // As an element of the dataset has it. Bytes that refer to something are of no use without it; and a number
    // is no string.
    let converted = |value: Value| {
        let element = Heaped::from_values(own, &[value]).ok()?;
        element.values(own).ok()?.into_iter().next()
    };
    value.and_then(converted).map(settled).map(Some).ok_or_else(|| {
        Error::Invalid(format!(
            "no element of {own} is excluded by these bytes: name its value, Keep::ExceptValue"
        ))
    })
}

/// The value with every empty string or sequence made null.
fn settled(value: Value) -> Value {
    match value {
        Value::Text(text) if text.is_empty() => Value::Null,
        Value::Sequence(values) if values.is_empty() => Value::Null,
        Value::Sequence(values) => Value::Sequence(values.into_iter().map(settled).collect()),
        Value::Array(values) => Value::Array(values.into_iter().map(settled).collect()),
        Value::Compound(members) => {
            let settled = |(name, value)| (name, settled(value));
            Value::Compound(members.into_iter().map(settled).collect())
        }
        other => other,
    }
}
