//! Support for code that `derive(H5Type)` generates. Not for other use.

pub use bytemuck::{Pod, Zeroable};
pub use pumice_types::{Datatype, Element, H5Type, Heap, TypeError, plain};

use pumice_types::{Enumeration, ReferenceKind};

/// The enumeration of names for integers.
pub fn enumeration<I: Element>(names: &[(&str, I)]) -> Datatype {
    let Datatype::Integer(base) = I::datatype() else {
        unreachable!("the macro asks for an integer")
    };
    let add =
        |all: Enumeration, (name, value): &(&str, I)| all.with(*name, bytemuck::bytes_of(value));
    Datatype::Enum(names.iter().fold(Enumeration::new(base), add))
}

/// An integer that none of the variants has.
pub fn no_variant(name: &str, integer: impl std::fmt::Display) -> TypeError {
    TypeError::Value(format!("{name} has no variant for {integer}"))
}

/// The kinds of references.
pub mod references {
    use super::{Datatype, ReferenceKind};
    use pumice_types::{Array, Reference, VarLen};

    /// References to elements of datasets.
    pub fn region(datatype: Datatype) -> Datatype {
        of_kind(datatype, ReferenceKind::Region)
    }

    /// References to anything.
    pub fn any(datatype: Datatype) -> Datatype {
        of_kind(datatype, ReferenceKind::Object2 { version: 1 })
    }

    fn of_kind(datatype: Datatype, kind: ReferenceKind) -> Datatype {
        match datatype {
            Datatype::Reference(Reference { size, .. }) => {
                Datatype::Reference(Reference { size, kind })
            }
            Datatype::Array(Array { dims, base }) => Datatype::array(of_kind(*base, kind), dims),
            Datatype::VarLen(VarLen { size, kind: form, base }) => {
                let base = Box::new(of_kind(*base, kind));
                Datatype::VarLen(VarLen { size, kind: form, base })
            }
            other => other,
        }
    }
}
