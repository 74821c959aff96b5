//! Data-transform expressions: arithmetic on every element while it is read or written.
//!
//! An expression has numbers, a name for the element (usually `x`, as often as wanted), `+ - * /`
//! and parentheses. It is computed by libhdf5's rules, in the type that elements have in memory:
//!
//! * Numbers among themselves: integers give an integer (`5/9` is 0), else doubles.
//! * An element and a number: as doubles; the result becomes the element's type, towards zero.
//! * An element and an element: in their own type; integers wrap.
//!
//! Where C leaves a result open, it is defined here: a double outside an integer's range becomes the
//! nearest end, an integer divided by zero is zero.

mod evaluate;
mod parse;

use crate::model::{ByteOrder, Float, Integer};
use crate::{Conversion, Datatype, TypeError};
use std::fmt;
use std::str::FromStr;

/// A parsed expression.
///
/// ```
/// use pumice_types::{Datatype, Transform};
///
/// let celsius: Transform = "(5.0/9)*(x-32)".parse()?;
/// let mut degrees = [212f64, -40.0].map(f64::to_ne_bytes).concat();
/// celsius.apply(&Datatype::native::<f64>(), &mut degrees)?;
/// assert_eq!(degrees, [100f64, -40.0].map(f64::to_ne_bytes).concat());
///
/// let error = "2*(x+".parse::<Transform>().unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "data transform, character 6: expected a number, a name or '(', found the end\n  2*(x+\n       ^"
/// );
/// # Ok::<(), pumice_types::TypeError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Transform {
    expression: String,
    root: Node,
}

/// A part of an expression. Parts without an element are computed when it is parsed.
#[derive(Clone, Debug, PartialEq)]
enum Node {
    Integer(i64),
    Float(f64),
    Element,
    Operation(Operator, Box<Node>, Box<Node>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
}

impl Transform {
    /// The expression as it was given.
    pub fn expression(&self) -> &str {
        &self.expression
    }

    /// Whether elements stay as they are.
    pub fn is_noop(&self) -> bool {
        self.root == Node::Element
    }

    /// Transforms packed elements of a number type.
    pub fn apply(&self, datatype: &Datatype, elements: &mut [u8]) -> Result<(), TypeError> {
        Prepared::new(self, datatype)?.apply(elements)
    }
}

impl FromStr for Transform {
    type Err = TypeError;

    fn from_str(expression: &str) -> Result<Self, TypeError> {
        let root = parse::parse(expression)?;
        Ok(Self { expression: expression.to_owned(), root })
    }
}

impl fmt::Display for Transform {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.expression)
    }
}

/// A transform of one datatype.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    root: Node,
    kind: Kind,
    /// The conversions to this machine's form of the type and back, if it is another one.
    around: Option<Box<(Conversion, Conversion)>>,
}

/// The kind of numbers that an expression computes with.
#[derive(Clone, Copy, Debug)]
enum Kind {
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F32,
    F64,
}

impl Prepared {
    pub(crate) fn new(transform: &Transform, datatype: &Datatype) -> Result<Self, TypeError> {
        let (kind, native) = native(datatype).ok_or_else(|| {
            TypeError::invalid(datatype.class_name(), "only numbers can be transformed")
        })?;
        let around = if native == *datatype {
            None
        } else {
            let to = Conversion::new(datatype, &native)?;
            Some(Box::new((to, Conversion::new(&native, datatype)?)))
        };
        Ok(Self { root: transform.root.clone(), kind, around })
    }

    pub(crate) fn apply(&self, elements: &mut [u8]) -> Result<(), TypeError> {
        let Some(around) = &self.around else {
            self.evaluate(elements);
            return Ok(());
        };
        let (to, back) = &**around;
        // Some at a time, so that they stay in the processor's cache.
        for part in elements.chunks_mut(to.source_size() * evaluate::AT_ONCE) {
            let mut computed = vec![0; part.len() / to.source_size() * to.target_size()];
            to.convert(part, &mut computed)?;
            self.evaluate(&mut computed);
            back.convert(&computed, part)?;
        }
        Ok(())
    }

    fn evaluate(&self, elements: &mut [u8]) {
        match self.kind {
            Kind::I8 => evaluate::evaluate::<i8>(&self.root, elements),
            Kind::I16 => evaluate::evaluate::<i16>(&self.root, elements),
            Kind::I32 => evaluate::evaluate::<i32>(&self.root, elements),
            Kind::I64 => evaluate::evaluate::<i64>(&self.root, elements),
            Kind::U8 => evaluate::evaluate::<u8>(&self.root, elements),
            Kind::U16 => evaluate::evaluate::<u16>(&self.root, elements),
            Kind::U32 => evaluate::evaluate::<u32>(&self.root, elements),
            Kind::U64 => evaluate::evaluate::<u64>(&self.root, elements),
            Kind::F32 => evaluate::evaluate::<f32>(&self.root, elements),
            Kind::F64 => evaluate::evaluate::<f64>(&self.root, elements),
        }
    }
}

/// The smallest type of this machine that holds every value of a number type.
fn native(datatype: &Datatype) -> Option<(Kind, Datatype)> {
    let order = ByteOrder::NATIVE;
    match datatype {
        Datatype::Integer(Integer { size, signed, .. }) => {
            let (size, kind) = match (size, signed) {
                (1, true) => (1, Kind::I8),
                (2, true) => (2, Kind::I16),
                (3..=4, true) => (4, Kind::I32),
                (5..=8, true) => (8, Kind::I64),
                (1, false) => (1, Kind::U8),
                (2, false) => (2, Kind::U16),
                (3..=4, false) => (4, Kind::U32),
                (5..=8, false) => (8, Kind::U64),
                _ => return None,
            };
            // One byte has no order; keep the datatype equal to the given one.
            let order = match datatype {
                Datatype::Integer(integer) if size == 1 => integer.order,
                _ => order,
            };
            Some((kind, Datatype::Integer(Integer::new(size, order, *signed))))
        }
        Datatype::Float(float) if float.size <= 4 => {
            Some((Kind::F32, Datatype::Float(Float::single(order))))
        }
        Datatype::Float(_) => Some((Kind::F64, Datatype::Float(Float::double(order)))),
        _ => None,
    }
}
