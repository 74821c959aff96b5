//! Datatypes and extents that can be compared.

use super::objects::Differ;
use anyhow::Result;
use pumice::types::VarLenKind;
use pumice::{Datatype, Extent};

impl Differ<'_> {
    /// Whether values of two types and extents can be compared; reports why not.
    pub(super) fn comparable(
        &mut self,
        names: [&str; 2],
        types: [&Datatype; 2],
        extents: [&Extent; 2],
        member: bool,
    ) -> Result<bool> {
        let classes = types.map(class);
        let list = self.lists_incomparable();
        let [name, other] = names;
        if classes[0] != classes[1] {
            if list {
                let verb = if member { "has a class" } else { "is of class" };
                self.print(&format!(
                    "Not comparable: <{name}> {verb} {} and <{other}> {verb} {}\n",
                    classes[0], classes[1]
                ))?;
            }
            return Ok(self.incomparable());
        }
        if classes[0] == "H5T_TIME" {
            if list {
                self.print(&format!(
                    "Not comparable: <{name}> and <{other}> are of class {}\n",
                    classes[1]
                ))?;
            }
            return Ok(self.incomparable());
        }
        if types[0] != types[1] && self.options.verbose {
            self.print("Warning: different storage datatype\n")?;
            if matches!(types[0], Datatype::Integer(_) | Datatype::Float(_)) {
                for (name, datatype) in names.iter().zip(types) {
                    self.print(&format!("<{name}> has file datatype {}\n", type_name(datatype)))?;
                }
            }
        }
        if !self.same_shapes(names, extents)? {
            return Ok(false);
        }
        let variable = |datatype: &Datatype| matches!(datatype, Datatype::VarLen(_));
        if classes[0] == "H5T_STRING" && variable(types[0]) != variable(types[1]) {
            if list {
                self.print(&format!(
                    "Not comparable: <{name}> or <{other}> is of mixed string type\n"
                ))?;
            }
            return Ok(self.incomparable());
        }
        if let (Datatype::Array(first), Datatype::Array(second)) = (types[0], types[1])
            && class(&first.base) != class(&second.base)
        {
            let bases = [&*first.base, &*second.base];
            return self.comparable(names, bases, extents, true);
        }
        let (Datatype::Compound(first), Datatype::Compound(second)) = (types[0], types[1]) else {
            return Ok(true);
        };
        let counts = [first.members.len(), second.members.len()];
        if counts[0] != counts[1] {
            if list {
                self.print(&format!(
                    "Not comparable: <{name}> has {} members <{other}> has {} members \n",
                    counts[0], counts[1]
                ))?;
            }
            return Ok(self.incomparable());
        }
        for (first, second) in first.members.iter().zip(&second.members) {
            let types = [&first.datatype, &second.datatype];
            if !self.comparable(names, types, extents, true)? {
                return Ok(self.incomparable());
            }
        }
        Ok(true)
    }

    fn same_shapes(&mut self, names: [&str; 2], extents: [&Extent; 2]) -> Result<bool> {
        let [first, second] = extents;
        if first.dims() != second.dims() {
            if self.lists_incomparable() {
                for (begin, (name, extent)) in
                    ["Not comparable: ", "and "].iter().zip(names.iter().zip(extents))
                {
                    self.print(&format!(
                        "{begin}<{name}> has rank {}, dimensions {}, max dimensions {}\n",
                        extent.dims().len(),
                        dimensions(extent.dims()),
                        dimensions(extent.max_dims())
                    ))?;
                }
            }
            return Ok(self.incomparable());
        }
        if first.max_dims() != second.max_dims() && self.options.verbose {
            self.print("Warning: different maximum dimensions\n")?;
            for (name, extent) in names.iter().zip(extents) {
                let dims = dimensions(extent.max_dims());
                self.print(&format!("<{name}> has max dimensions {dims}\n"))?;
            }
        }
        Ok(true)
    }
}

/// Dimensions in h5diff's manner.
pub(super) fn dimensions(dims: &[u64]) -> String {
    if dims.is_empty() {
        return "H5S_SCALAR".into();
    }
    let dims: Vec<String> = dims.iter().map(u64::to_string).collect();
    format!("[{}]", dims.join("x"))
}

/// The name of a type's class.
fn class(datatype: &Datatype) -> &'static str {
    match datatype {
        Datatype::Integer(_) => "H5T_INTEGER",
        Datatype::Float(_) => "H5T_FLOAT",
        Datatype::Time(_) => "H5T_TIME",
        Datatype::String(_) => "H5T_STRING",
        Datatype::Bitfield(_) => "H5T_BITFIELD",
        Datatype::Opaque(_) => "H5T_OPAQUE",
        Datatype::Compound(_) => "H5T_COMPOUND",
        Datatype::Reference(_) => "H5T_REFERENCE",
        Datatype::Enum(_) => "H5T_ENUM",
        Datatype::VarLen(varlen) if varlen.kind == VarLenKind::Sequence => "H5T_VLEN",
        Datatype::VarLen(_) => "H5T_STRING",
        Datatype::Array(_) => "H5T_ARRAY",
        Datatype::Complex(_) => "H5T_COMPLEX",
        _ => "Invalid class",
    }
}

/// The name of a number's type.
fn type_name(datatype: &Datatype) -> String {
    let text = pumice::types::ddl::indented(datatype, 0).to_string();
    match datatype {
        _ if !text.contains(['{', '\n', ' ']) => text,
        Datatype::Integer(_) => "undefined integer".into(),
        _ => "undefined float".into(),
    }
}

/// The sign of integers, also of those in enumerations, arrays and sequences, as libhdf5 calls it.
pub(super) fn sign(datatype: &Datatype) -> Option<&'static str> {
    match datatype {
        Datatype::Enum(enumeration) if enumeration.base.signed => Some("H5T_SGN_2"),
        Datatype::Enum(_) => Some("H5T_SGN_NONE"),
        Datatype::Array(array) => sign(&array.base),
        Datatype::VarLen(varlen) if varlen.kind == VarLenKind::Sequence => sign(&varlen.base),
        Datatype::Integer(integer) if integer.signed => Some("H5T_SGN_2"),
        Datatype::Integer(_) => Some("H5T_SGN_NONE"),
        _ => None,
    }
}
