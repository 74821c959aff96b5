//! Datatypes as trees of tuples, and back.
//!
//! A tree has everything of a datatype; Python decides which numpy dtype it becomes. The first item
//! of a tuple is the class; the others are the fields of that class's struct in `pumice::types`, in
//! their order.

use crate::errors::{invalid, raised};
use pumice::types::{
    Array, BitPadding, Bitfield, ByteOrder, CharacterSet, Complex, Compound, Conversion,
    Enumeration, FixedString, Float, Integer, MantissaNormalization, Member, Opaque, Reference,
    ReferenceKind, StringPadding, Time, VarLen, VarLenKind,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};
use std::hash::{DefaultHasher, Hash, Hasher};

/// The deepest tree that is taken: no file has deeper ones, and each level takes stack.
const DEEPEST: usize = 64;

/// A datatype of HDF5.
#[pyclass(frozen, name = "Datatype", module = "pumice._pumice")]
pub(crate) struct PyDatatype(pub(crate) pumice::Datatype);

#[pymethods]
impl PyDatatype {
    /// A datatype from its tree.
    #[new]
    fn new(tree: &Bound<'_, PyTuple>) -> PyResult<Self> {
        Ok(Self(parse(tree, 0)?))
    }

    /// The tree.
    #[getter]
    fn tree<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        tree(py, &self.0)
    }

    /// Bytes of an element.
    #[getter]
    fn size(&self) -> usize {
        self.0.size()
    }

    /// The number of the class, as in libhdf5.
    #[getter]
    fn class_number(&self) -> u8 {
        self.0.class()
    }

    /// Whether elements refer to data elsewhere: strings and sequences of any length.
    #[getter]
    fn has_varlen(&self) -> bool {
        self.0.has_varlen()
    }

    /// Whether elements refer to objects.
    #[getter]
    fn refers_to_objects(&self) -> bool {
        self.0.refers_to_objects()
    }

    /// Whether elements of this type can become those of another.
    fn converts_to(&self, other: &Self) -> bool {
        Conversion::new(&self.0, &other.0).is_ok()
    }

    /// Converts elements of this type to another.
    fn convert<'py>(
        &self,
        py: Python<'py>,
        other: &Self,
        elements: &[u8],
    ) -> PyResult<Bound<'py, PyBytes>> {
        let failed = |error: pumice::error::TypeError| raised(error.into());
        let conversion = Conversion::new(&self.0, &other.0).map_err(failed)?;
        let count = elements.len() / self.0.size().max(1);
        let mut converted = vec![0; count * other.0.size()];
        py.detach(|| conversion.convert(elements, &mut converted)).map_err(failed)?;
        Ok(PyBytes::new(py, &converted))
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        hasher.finish()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }
}

/// The tree of a datatype.
fn tree<'py>(py: Python<'py>, datatype: &pumice::Datatype) -> PyResult<Bound<'py, PyTuple>> {
    use pumice::Datatype as D;
    match datatype {
        D::Integer(t) => integer(py, t),
        D::Float(t) => float(py, t),
        D::Time(t) => ("time", t.size, order(t.order), t.precision).into_pyobject(py),
        D::String(t) => {
            ("string", t.size, padding(t.padding), charset(t.charset)).into_pyobject(py)
        }
        D::Bitfield(t) => {
            let pads = (pad(t.low_padding), pad(t.high_padding));
            ("bitfield", t.size, order(t.order), t.bit_offset, t.precision, pads.0, pads.1)
                .into_pyobject(py)
        }
        D::Opaque(t) => ("opaque", t.size, &t.tag).into_pyobject(py),
        D::Compound(t) => {
            let members = PyList::empty(py);
            for member in &t.members {
                members.append((&member.name, member.offset, tree(py, &member.datatype)?))?;
            }
            ("compound", t.size, members).into_pyobject(py)
        }
        D::Reference(t) => {
            let (kind, version) = match t.kind {
                ReferenceKind::Object => ("object", 0),
                ReferenceKind::Region => ("region", 0),
                ReferenceKind::Object2 { version } => ("any", version),
                ReferenceKind::Region2 { version } => ("any-region", version),
                ReferenceKind::Attribute { version } => ("attribute", version),
            };
            ("reference", t.size, kind, version).into_pyobject(py)
        }
        D::Enum(t) => {
            let members = PyList::empty(py);
            for (name, value) in t.members() {
                members.append((name, PyBytes::new(py, value)))?;
            }
            ("enum", integer(py, &t.base)?, members).into_pyobject(py)
        }
        D::VarLen(t) => {
            let base = tree(py, &t.base)?;
            match t.kind {
                VarLenKind::Sequence => ("vlen", t.size, base).into_pyobject(py),
                VarLenKind::String { padding: ends, charset: set } => {
                    ("vlen-string", t.size, padding(ends), charset(set)).into_pyobject(py)
                }
            }
        }
        D::Array(t) => {
            let dims = PyTuple::new(py, &t.dims)?;
            ("array", dims, tree(py, &t.base)?).into_pyobject(py)
        }
        D::Complex(t) => ("complex", float(py, &t.base)?).into_pyobject(py),
        other => Err(invalid(format!("{other} is of a class that is not known here"))),
    }
}

fn integer<'py>(py: Python<'py>, t: &Integer) -> PyResult<Bound<'py, PyTuple>> {
    let pads = (pad(t.low_padding), pad(t.high_padding));
    ("integer", t.size, order(t.order), t.signed, t.bit_offset, t.precision, pads.0, pads.1)
        .into_pyobject(py)
}

fn float<'py>(py: Python<'py>, t: &Float) -> PyResult<Bound<'py, PyTuple>> {
    let normal = match t.normalization {
        MantissaNormalization::None => 0u8,
        MantissaNormalization::MsbSet => 1,
        MantissaNormalization::Implied => 2,
    };
    let pads = (pad(t.low_padding), pad(t.high_padding), pad(t.internal_padding));
    let fields = (t.sign_location, t.exponent_location, t.exponent_size, t.exponent_bias);
    let mantissa = (t.mantissa_location, t.mantissa_size);
    let head = ("float", t.size, order(t.order), t.bit_offset, t.precision);
    let all = (head.0, head.1, head.2, head.3, head.4, pads, normal, fields, mantissa);
    all.into_pyobject(py)
}

fn order(order: ByteOrder) -> &'static str {
    match order {
        ByteOrder::Little => "<",
        ByteOrder::Big => ">",
        ByteOrder::Vax => "vax",
    }
}

fn pad(padding: BitPadding) -> u8 {
    u8::from(padding == BitPadding::One)
}

fn padding(padding: StringPadding) -> u8 {
    match padding {
        StringPadding::NullTerminate => 0,
        StringPadding::NullPad => 1,
        StringPadding::SpacePad => 2,
    }
}

fn charset(charset: CharacterSet) -> u8 {
    u8::from(charset == CharacterSet::Utf8)
}

/// The datatype of a tree.
fn parse(tree: &Bound<'_, PyTuple>, depth: usize) -> PyResult<pumice::Datatype> {
    use pumice::Datatype as D;
    if depth > DEEPEST {
        return Err(invalid("a datatype that is nested too deeply"));
    }
    let class: String = tree.get_item(0)?.extract()?;
    let within = |at: usize| -> PyResult<pumice::Datatype> {
        parse(tree.get_item(at)?.cast::<PyTuple>()?, depth + 1)
    };
    Ok(match class.as_str() {
        "integer" => D::Integer(parse_integer(tree)?),
        "float" => D::Float(parse_float(tree)?),
        "time" => {
            let (_, size, order, precision): (String, u32, String, u16) = tree.extract()?;
            D::Time(Time { size, order: parse_order(&order)?, precision })
        }
        "string" => {
            let (_, size, ends, set): (String, u32, u8, u8) = tree.extract()?;
            D::String(FixedString {
                size,
                padding: parse_padding(ends)?,
                charset: parse_charset(set)?,
            })
        }
        "bitfield" => {
            let (_, size, order, bit_offset, precision, low, high): (
                String,
                u32,
                String,
                u16,
                u16,
                u8,
                u8,
            ) = tree.extract()?;
            let (low_padding, high_padding) = (parse_pad(low), parse_pad(high));
            let order = parse_order(&order)?;
            D::Bitfield(Bitfield { size, order, bit_offset, precision, low_padding, high_padding })
        }
        "opaque" => {
            let (_, size, tag): (String, u32, String) = tree.extract()?;
            D::Opaque(Opaque { size, tag })
        }
        "compound" => {
            let mut members = Vec::new();
            for member in tree.get_item(2)?.try_iter()? {
                let member = member?;
                let member = member.cast::<PyTuple>()?;
                let datatype = parse(member.get_item(2)?.cast::<PyTuple>()?, depth + 1)?;
                let (name, offset) =
                    (member.get_item(0)?.extract()?, member.get_item(1)?.extract()?);
                members.push(Member { name, offset, datatype });
            }
            D::Compound(Compound { size: tree.get_item(1)?.extract()?, members })
        }
        "reference" => {
            let (_, size, kind, version): (String, u32, String, u8) = tree.extract()?;
            D::Reference(Reference { size, kind: parse_reference(&kind, version)? })
        }
        "enum" => {
            let D::Integer(base) = within(1)? else {
                return Err(invalid("an enumeration of something that is no integer"));
            };
            let mut all = Enumeration::new(base);
            for member in tree.get_item(2)?.try_iter()? {
                let (name, value): (String, Vec<u8>) = member?.extract()?;
                all = all.with(name, &value);
            }
            D::Enum(all)
        }
        "vlen" => D::VarLen(VarLen::sequence(within(2)?, tree.get_item(1)?.extract()?)),
        "vlen-string" => {
            let (_, size, ends, set): (String, u32, u8, u8) = tree.extract()?;
            D::VarLen(VarLen::string(size, parse_padding(ends)?, parse_charset(set)?))
        }
        "array" => {
            let dims: Vec<u32> = tree.get_item(1)?.extract()?;
            D::Array(Array { dims, base: Box::new(within(2)?) })
        }
        "complex" => {
            let D::Float(base) = within(1)? else {
                return Err(invalid("a complex number of something that is no number"));
            };
            D::Complex(Complex { base })
        }
        other => return Err(invalid(format!("{other} is no class of datatypes"))),
    })
}

fn parse_integer(tree: &Bound<'_, PyTuple>) -> PyResult<Integer> {
    let (_, size, order, signed, bit_offset, precision, low, high): (
        String,
        u32,
        String,
        bool,
        u16,
        u16,
        u8,
        u8,
    ) = tree.extract()?;
    let (low_padding, high_padding) = (parse_pad(low), parse_pad(high));
    let order = parse_order(&order)?;
    Ok(Integer { size, order, signed, bit_offset, precision, low_padding, high_padding })
}

fn parse_float(tree: &Bound<'_, PyTuple>) -> PyResult<Float> {
    type Fields = (u8, u8, u8, u32);
    type Parts = (String, u32, String, u16, u16, (u8, u8, u8), u8, Fields, (u8, u8));
    let (_, size, order, bit_offset, precision, pads, normal, fields, mantissa): Parts =
        tree.extract()?;
    let normalization = match normal {
        0 => MantissaNormalization::None,
        1 => MantissaNormalization::MsbSet,
        _ => MantissaNormalization::Implied,
    };
    Ok(Float {
        size,
        order: parse_order(&order)?,
        bit_offset,
        precision,
        low_padding: parse_pad(pads.0),
        high_padding: parse_pad(pads.1),
        internal_padding: parse_pad(pads.2),
        normalization,
        sign_location: fields.0,
        exponent_location: fields.1,
        exponent_size: fields.2,
        exponent_bias: fields.3,
        mantissa_location: mantissa.0,
        mantissa_size: mantissa.1,
    })
}

fn parse_order(order: &str) -> PyResult<ByteOrder> {
    match order {
        "<" => Ok(ByteOrder::Little),
        ">" => Ok(ByteOrder::Big),
        "vax" => Ok(ByteOrder::Vax),
        other => Err(invalid(format!("{other} is no order of bytes"))),
    }
}

fn parse_pad(padding: u8) -> BitPadding {
    if padding == 1 { BitPadding::One } else { BitPadding::Zero }
}

fn parse_padding(padding: u8) -> PyResult<StringPadding> {
    match padding {
        0 => Ok(StringPadding::NullTerminate),
        1 => Ok(StringPadding::NullPad),
        2 => Ok(StringPadding::SpacePad),
        other => Err(invalid(format!("{other} is no padding of strings"))),
    }
}

fn parse_charset(charset: u8) -> PyResult<CharacterSet> {
    match charset {
        0 => Ok(CharacterSet::Ascii),
        1 => Ok(CharacterSet::Utf8),
        other => Err(invalid(format!("{other} is no character set"))),
    }
}

fn parse_reference(kind: &str, version: u8) -> PyResult<ReferenceKind> {
    Ok(match kind {
        "object" => ReferenceKind::Object,
        "region" => ReferenceKind::Region,
        "any" => ReferenceKind::Object2 { version },
        "any-region" => ReferenceKind::Region2 { version },
        "attribute" => ReferenceKind::Attribute { version },
        other => return Err(invalid(format!("{other} is no kind of reference"))),
    })
}
