//! Matrices of which half of the cells determine the others: symmetric, skew-symmetric and
//! hermitian ones.

use crate::Unwatched;
use crate::{Arithmetic, Symmetry, bands};
use anyhow::Result;
use pumice::Dataset;

/// The descriptor's structure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Structure {
    pub(super) name: &'static str,
    pub(super) symmetry: Symmetry,
    /// Whether the cells below the diagonal are stored, otherwise those above.
    pub(super) lower: bool,
}

impl Structure {
    const ALL: [(&'static str, Symmetry, bool); 6] = [
        ("symmetric_lower", Symmetry::Symmetric, true),
        ("symmetric_upper", Symmetry::Symmetric, false),
        ("hermitian_lower", Symmetry::Hermitian, true),
        ("hermitian_upper", Symmetry::Hermitian, false),
        ("skew_symmetric_lower", Symmetry::SkewSymmetric, true),
        ("skew_symmetric_upper", Symmetry::SkewSymmetric, false),
    ];

    pub(super) fn named(name: &str) -> Option<Self> {
        let (name, symmetry, lower) = Self::ALL.into_iter().find(|known| known.0 == name)?;
        Some(Self { name, symmetry, lower })
    }

    /// Whether a matrix has the structure: rows are compared with columns.
    pub(super) fn holds(self, dataset: &Dataset) -> Result<bool> {
        let shape = dataset.shape();
        if shape.len() != 2 || shape[0] != shape[1] {
            return Ok(false);
        }
        let size = dataset.datatype().size().max(1);
        let arithmetic = Arithmetic::of(dataset.datatype());
        let mut holds = true;
        bands::for_each_band(dataset, 0, &Unwatched, |rows| {
            if !holds {
                return Ok(());
            }
            let mut columns = bands::band(dataset, 1, rows.first, rows.count)?;
            holds = rows.columns[0] == columns.columns[1] && rows.columns[1] == columns.columns[0];
            let places = rows.columns[0].iter().zip(&rows.columns[1]);
            let values = columns.values.chunks_exact_mut(size);
            holds &= places.zip(values).all(|((row, column), value)| match row == column {
                true => self.symmetry != Symmetry::SkewSymmetric || value.iter().all(|&b| b == 0),
                false => self.mirror(value, arithmetic),
            });
            holds &= rows.values == columns.values;
            Ok(())
        })?;
        Ok(holds)
    }

    /// Turns a value into that of the mirrored cell; returns whether that is possible.
    fn mirror(self, value: &mut [u8], arithmetic: Option<Arithmetic>) -> bool {
        match (self.symmetry, arithmetic) {
            (Symmetry::SkewSymmetric, arithmetic) => {
                arithmetic.is_some_and(|arithmetic| arithmetic.negate(value))
            }
            (Symmetry::Hermitian, Some(arithmetic)) => {
                arithmetic.conjugate(value);
                true
            }
            _ => true,
        }
    }
}
