//! The errors of datatypes.

use thiserror::Error;

/// The reason why a datatype was refused or a conversion could not be made.
///
/// ```
/// use pumice_types::{Conversion, Datatype, TypeError};
///
/// let error = Conversion::new(&Datatype::i32_le(), &Datatype::fixed_string(4)).unwrap_err();
/// assert!(matches!(error, TypeError::NoConversion { .. }));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TypeError {
    /// No rule turns elements of `from` into elements of `to`.
    #[error("no conversion from {from} to {to}")]
    NoConversion {
        /// DDL of the source datatype.
        from: String,
        /// DDL of the target datatype.
        to: String,
    },
    /// The source is not a whole number of elements.
    #[error("source of {found} bytes is not a whole number of {element}-byte elements")]
    SourceLength {
        /// Bytes of one source element.
        element: usize,
        /// Bytes given.
        found: usize,
    },
    /// The target does not have the size that the source's elements need.
    #[error("target has {found} bytes, expected {expected}")]
    TargetLength {
        /// Bytes that the converted elements take.
        expected: usize,
        /// Bytes given.
        found: usize,
    },
    /// A datatype contradicts itself.
    #[error("invalid {class} datatype: {reason}")]
    Invalid {
        /// Class of the offending datatype, as in "compound".
        class: &'static str,
        /// The fault.
        reason: String,
    },
    /// A value that the type which it is read or written as cannot have.
    #[error("{0}")]
    Value(String),
    /// A data-transform expression cannot be understood.
    #[error(
        "data transform, character {}: expected {expected}, found {found}\n  {expression}\n  {:>width$}",
        at + 1, "^", width = at + 1
    )]
    Transform {
        /// The expression.
        expression: String,
        /// Characters before the one that is wrong.
        at: usize,
        /// The tokens that could stand there.
        expected: &'static str,
        /// The token that does.
        found: String,
    },
}

impl TypeError {
    pub(crate) fn invalid(class: &'static str, reason: impl Into<String>) -> Self {
        Self::Invalid { class, reason: reason.into() }
    }

    pub(crate) fn value(reason: impl Into<String>) -> Self {
        Self::Value(reason.into())
    }
}
