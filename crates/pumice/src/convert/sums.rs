//! Sums of values for one cell, and of the value that it has already.
//!
//! They are computed in numbers that lose nothing: integers of 128 bits in a dataset of integers,
//! floating-point numbers of 64 bits in one of floating-point numbers.

use super::duplicates::Cells;
use crate::Dataset;
use pumice_engine::{Error, Result};
use pumice_types::{Conversion, Datatype, Element, Integer};

/// The widest numbers, in bytes, that sums are made of.
const MOST_BYTES: usize = 8;

impl Dataset {
    /// Adds values to those of their cells.
    pub(super) fn write_sums<T: Element>(
        &self,
        rank: usize,
        coordinates: &[u64],
        values: &[T],
    ) -> Result<()> {
        match self.datatype() {
            Datatype::Integer(own) if own.size as usize <= MOST_BYTES => match own.signed {
                true => self.write_whole_sums::<T, i64>(own, rank, coordinates, values),
                false => self.write_whole_sums::<T, u64>(own, rank, coordinates, values),
            },
            Datatype::Float(own) if own.size as usize <= MOST_BYTES => {
                let values = self.at(converted::<T, f64>(values))?;
                let add = |_: &[u64], sum: &mut f64, value| {
                    *sum += value;
                    Ok(())
                };
                let mut cells = self.at(Cells::unite(rank, coordinates, &values, add))?;
                let mut sums = std::mem::take(&mut cells.values);
                let _alone = self.state().deciding();
                self.visit_defined::<f64>(&cells, |cell, _, old| {
                    sums[cell] += old;
                    Ok(())
                })?;
                self.write_united(&Cells { values: sums, ..cells })
            }
            other => self.at(Err(not_summed(other))),
        }
    }

    /// Adds values in a dataset of integers that all fit into a `W`.
    fn write_whole_sums<T: Element, W>(
        &self,
        own: &Integer,
        rank: usize,
        coordinates: &[u64],
        values: &[T],
    ) -> Result<()>
    where
        W: Element + Into<i128> + TryFrom<i128>,
    {
        let values = self.at(whole_numbers(values))?;
        let mut cells = self.at(Cells::unite(rank, coordinates, &values, add))?;
        let mut sums = std::mem::take(&mut cells.values);
        let _alone = self.state().deciding();
        self.visit_defined::<W>(&cells, |cell, at, old| add(at, &mut sums[cell], old.into()))?;
        let room = room(own);
        let mut values: Vec<W> = self.buffer(sums.len())?;
        for ((value, sum), at) in
            values.iter_mut().zip(sums).zip(cells.coordinates.chunks(rank.max(1)))
        {
            let fits = room.contains(&sum).then_some(sum).and_then(|sum| W::try_from(sum).ok());
            *value = self.at(fits.ok_or_else(|| too_large(at)))?;
        }
        self.write_united(&Cells { rank, coordinates: cells.coordinates, values })
    }
}

fn add(at: &[u64], sum: &mut i128, value: i128) -> Result<()> {
    *sum = sum.checked_add(value).ok_or_else(|| too_large(at))?;
    Ok(())
}

/// The numbers that an integer type has.
fn room(own: &Integer) -> std::ops::RangeInclusive<i128> {
    let bits = u32::from(own.precision).clamp(1, 64);
    match own.signed {
        true => -(1 << (bits - 1))..=(1 << (bits - 1)) - 1,
        false => 0..=(1 << bits) - 1,
    }
}

/// Values as numbers without a fraction.
fn whole_numbers<T: Element>(values: &[T]) -> Result<Vec<i128>> {
    match T::datatype() {
        Datatype::Integer(given) if given.signed => {
            Ok(converted::<T, i64>(values)?.into_iter().map(i128::from).collect())
        }
        Datatype::Integer(_) => {
            Ok(converted::<T, u64>(values)?.into_iter().map(i128::from).collect())
        }
        _ => converted::<T, f64>(values)?.into_iter().map(whole_number).collect(),
    }
}

fn whole_number(value: f64) -> Result<i128> {
    // Far more than any integer of a dataset, and exact below.
    let whole = value.trunc() == value && value.abs() < 1e30;
    let what =
        || format!("{value} cannot be added to integers; round it, or use a dataset of floats");
    whole.then_some(value as i128).ok_or_else(|| Error::Invalid(what()))
}

/// Values as numbers of another type.
fn converted<T: Element, W: Element>(values: &[T]) -> Result<Vec<W>> {
    let given = T::datatype();
    let number = matches!(given, Datatype::Integer(_) | Datatype::Float(_));
    if !number || given.size() > MOST_BYTES {
        return Err(not_summed(&given));
    }
    let mut numbers: Vec<W> = pumice_medium::zeroed(values.len())?;
    let bytes = bytemuck::cast_slice_mut(&mut numbers);
    Conversion::new(&given, &W::datatype())?.convert(bytemuck::cast_slice(values), bytes)?;
    Ok(numbers)
}

fn too_large(at: &[u64]) -> Error {
    Error::Invalid(format!("the sum at {at:?} is too large"))
}

fn not_summed(datatype: &Datatype) -> Error {
    let what = format!("sums of {datatype}: they are made of integers and floats of up to 8 bytes");
    Error::Unsupported(what)
}
