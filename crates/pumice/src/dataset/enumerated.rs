//! Enumerations as enums of Rust.

use super::Dataset;
use crate::Select;
use bytemuck::Zeroable;
use pumice_engine::buffer::Output;
use pumice_engine::{Error, Result};
use pumice_types::Enumerated;

impl Dataset {
    /// Reads the selected cells as variants of `E`, matched by name. A value whose name `E` does not
    /// have is an error.
    pub fn read_enum<E: Enumerated>(&self, selection: impl Select) -> Result<Vec<E>> {
        let integers = self.selected(selection, |selection, dims| {
            let count = self.count(selection, dims, size_of::<E::Integer>())?;
            let mut integers: Vec<E::Integer> = self.buffer(count)?;
            let output = Output::zeroed(bytemuck::cast_slice_mut(&mut integers));
            self.state.read(selection, &E::datatype(), output)?;
            Ok(integers)
        })?;
        let variant = |integer: &E::Integer| {
            let bytes = bytemuck::bytes_of(integer);
            E::from_integer(*integer).ok_or_else(|| {
                Error::Invalid(format!("the enumeration has no name for {bytes:02x?}"))
            })
        };
        self.at(integers.iter().map(variant).collect())
    }

    /// Writes variants of `E` to the selected cells, matched by name.
    pub fn write_enum<E: Enumerated>(&self, selection: impl Select, values: &[E]) -> Result<()> {
        self.make_room()?;
        let mut integers = vec![E::Integer::zeroed(); values.len()];
        for (integer, value) in integers.iter_mut().zip(values) {
            *integer = value.to_integer();
        }
        let bytes = bytemuck::cast_slice(&integers);
        self.selected(selection, |selection, _| self.state.write(selection, &E::datatype(), bytes))
    }
}
