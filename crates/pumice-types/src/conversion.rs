//! Turning packed elements of one datatype into packed elements of another, by libhdf5's rules.
//!
//! * A number outside the target's range becomes the nearest end of an integer's range, or an
//!   infinity.
//! * A float becomes an integer by truncation toward zero, NaN becomes 0.
//! * Numbers that a float cannot hold exactly are rounded to the nearest, ties to even.
//! * Strings are cut or padded by bytes; a null-terminated target always ends with a null byte.
//! * Compound members are matched by name. Source members without a counterpart are skipped; target
//!   members without one, and gaps between members, keep the bytes they have.
//! * Enumerations are matched by name; values without a name become all ones.
//! * Bit fields behave as unsigned integers, arrays of equal shape and complex numbers go part by
//!   part.
//! * Complex numbers and compounds of a real and an imaginary part, as h5py and MATLAB store them, become each other.
//! * Opaque bytes, times, references and variable-length data only convert to their own datatype.
//!
//! Unlike libhdf5, ASCII and UTF-8 strings convert into each other, byte for byte.
//!
//! The kernel is chosen once per [`Conversion`]; no element is dispatched on its own. Data of
//! variable length is never followed: this module sees bytes, not files.

mod bits;
mod cast;
mod complex;
mod compound;
mod enumeration;
mod number;
mod string;

use self::bits::BitsKernel;
use self::compound::CompoundKernel;
use self::enumeration::EnumKernel;
use self::number::NumberKernel;
use self::string::StringKernel;
use crate::model::{BitPadding, Bitfield, ByteOrder, Float, Integer};
use crate::transform::Prepared;
use crate::{Datatype, Transform, TypeError, ddl};
use std::sync::Arc;

/// A conversion between two datatypes, its kernel chosen once.
///
/// ```
/// use pumice_types::{Conversion, Datatype};
///
/// let conversion = Conversion::new(&Datatype::f64_le(), &Datatype::u8())?;
/// let source = [-1.0, 2.9, 1e9, f64::NAN].map(f64::to_le_bytes).concat();
/// let mut target = [7u8; 4];
/// conversion.convert(&source, &mut target)?;
/// assert_eq!(target, [0, 2, 255, 0]);
/// # Ok::<(), pumice_types::TypeError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Conversion {
    source_size: usize,
    target_size: usize,
    kernel: Kernel,
    transform: Option<Arc<Step>>,
}

/// A transform of elements before or after their conversion.
#[derive(Debug)]
enum Step {
    Before(Prepared),
    After(Prepared),
}

/// The conversion of elements. Every kernel takes a source of whole elements and a target of as
/// many.
#[derive(Debug, Clone)]
enum Kernel {
    /// Both datatypes have the same bytes.
    Copy,
    Number(NumberKernel),
    Bits(Box<BitsKernel>),
    String(StringKernel),
    Enum(Box<EnumKernel>),
    Compound(Box<CompoundKernel>),
}

impl Conversion {
    /// Chooses how to turn elements of `from` into elements of `to`.
    pub fn new(from: &Datatype, to: &Datatype) -> Result<Self, TypeError> {
        let conversion = Self {
            source_size: from.size(),
            target_size: to.size(),
            kernel: if from == to { Kernel::Copy } else { Self::choose(from, to)? },
            transform: None,
        };
        if conversion.source_size == 0 || conversion.target_size == 0 {
            return Err(TypeError::invalid(from.class_name(), "elements of zero bytes"));
        }
        Ok(conversion)
    }

    fn choose(from: &Datatype, to: &Datatype) -> Result<Kernel, TypeError> {
        from.validate()?;
        to.validate()?;
        Kernel::new(from, to)
    }

    /// The conversion followed by a transform of the converted elements, as in a read. `to` is the
    /// target.
    ///
    /// ```
    /// # use pumice_types::{Conversion, Datatype};
    /// let to = Datatype::f32_le();
    /// let halved = Conversion::new(&Datatype::u8(), &to)?.then(&"x/2".parse()?, &to)?;
    /// let mut target = [0; 4];
    /// halved.convert(&[5], &mut target)?;
    /// assert_eq!(target, 2.5f32.to_le_bytes());
    /// # Ok::<(), pumice_types::TypeError>(())
    /// ```
    pub fn then(self, transform: &Transform, to: &Datatype) -> Result<Self, TypeError> {
        let transform = Some(Arc::new(Step::After(Prepared::new(transform, to)?)));
        Ok(Self { transform, ..self })
    }

    /// The conversion after a transform of the elements, as in a write. `from` is the source.
    pub fn after(self, transform: &Transform, from: &Datatype) -> Result<Self, TypeError> {
        let transform = Some(Arc::new(Step::Before(Prepared::new(transform, from)?)));
        Ok(Self { transform, ..self })
    }

    /// Whether elements of both datatypes have the same bytes, so that converting is copying.
    ///
    /// ```
    /// # use pumice_types::{Conversion, Datatype};
    /// assert!(Conversion::new(&Datatype::i32_le(), &Datatype::i32_le())?.is_noop());
    /// assert!(!Conversion::new(&Datatype::i32_le(), &Datatype::i32_be())?.is_noop());
    /// # Ok::<(), pumice_types::TypeError>(())
    /// ```
    pub fn is_noop(&self) -> bool {
        matches!(self.kernel, Kernel::Copy) && self.transform.is_none()
    }

    /// Whether every byte of the target is written. Compound targets keep the bytes of gaps and of
    /// members that the source lacks.
    ///
    /// ```
    /// # use pumice_types::{Conversion, Datatype};
    /// let narrow = Datatype::compound([("a", Datatype::i32_le())]);
    /// let wide = Datatype::compound([("a", Datatype::i32_le()), ("b", Datatype::i32_le())]);
    /// assert!(!Conversion::new(&narrow, &wide)?.overwrites_target());
    /// assert!(Conversion::new(&wide, &narrow)?.overwrites_target());
    /// # Ok::<(), pumice_types::TypeError>(())
    /// ```
    pub fn overwrites_target(&self) -> bool {
        self.kernel.overwrites_target()
    }

    /// Bytes of a source element; never 0.
    pub fn source_size(&self) -> usize {
        self.source_size
    }

    /// Bytes of a target element; never 0.
    pub fn target_size(&self) -> usize {
        self.target_size
    }

    /// Converts all elements of `source` into `target`, which must hold exactly as many.
    pub fn convert(&self, source: &[u8], target: &mut [u8]) -> Result<(), TypeError> {
        if !source.len().is_multiple_of(self.source_size) {
            return Err(TypeError::SourceLength { element: self.source_size, found: source.len() });
        }
        let expected = (source.len() / self.source_size).saturating_mul(self.target_size);
        if target.len() != expected {
            return Err(TypeError::TargetLength { expected, found: target.len() });
        }
        match self.transform.as_deref() {
            None => self.kernel.run(source, target),
            Some(Step::After(transform)) => {
                self.kernel.run(source, target);
                transform.apply(target)?;
            }
            Some(Step::Before(transform)) => {
                let mut transformed = source.to_vec();
                transform.apply(&mut transformed)?;
                self.kernel.run(&transformed, target);
            }
        }
        Ok(())
    }
}

impl Kernel {
    /// Chooses the kernel for two datatypes that have been validated.
    fn new(from: &Datatype, to: &Datatype) -> Result<Self, TypeError> {
        if from == to {
            return Ok(Self::Copy);
        }
        let kernel = match (from, to) {
            (Datatype::String(source), Datatype::String(target)) => {
                Some(StringKernel::choose(source, target))
            }
            (Datatype::Enum(source), Datatype::Enum(target)) => EnumKernel::choose(source, target),
            (Datatype::Compound(source), Datatype::Compound(target)) => {
                match complex::renamed(source, target) {
                    Some(source) => Some(CompoundKernel::choose(&source, target)?),
                    None => Some(CompoundKernel::choose(source, target)?),
                }
            }
            (Datatype::Complex(source), Datatype::Compound(target)) => {
                complex::like(source, target)
                    .map(|source| CompoundKernel::choose(&source, target))
                    .transpose()?
            }
            (Datatype::Compound(source), Datatype::Complex(target)) => {
                complex::like(target, source)
                    .map(|target| CompoundKernel::choose(source, &target))
                    .transpose()?
            }
            (Datatype::Array(source), Datatype::Array(target)) if source.dims == target.dims => {
                Some(Self::new(&source.base, &target.base)?)
            }
            _ => {
                Number::pair(from, to).and_then(|(source, target)| Self::of_numbers(source, target))
            }
        };
        kernel.ok_or_else(|| TypeError::NoConversion {
            from: ddl::inline(from).to_string(),
            to: ddl::inline(to).to_string(),
        })
    }

    fn of_numbers(from: Number, to: Number) -> Option<Self> {
        if from == to {
            return Some(Self::Copy);
        }
        if let Some(kernel) = NumberKernel::choose(&from, &to) {
            return Some(Self::Number(kernel));
        }
        BitsKernel::choose(&from, &to).map(|kernel| Self::Bits(Box::new(kernel)))
    }

    fn overwrites_target(&self) -> bool {
        match self {
            Self::Compound(compound) => compound.overwrites_target(),
            _ => true,
        }
    }

    /// Converts a whole number of elements. An element may be an array of numbers.
    fn run(&self, source: &[u8], target: &mut [u8]) {
        match self {
            Self::Copy => target.copy_from_slice(source),
            Self::Number(kernel) => kernel.run(source, target),
            Self::Bits(kernel) => kernel.run(source, target),
            Self::String(kernel) => kernel.run(source, target),
            Self::Enum(kernel) => kernel.run(source, target),
            Self::Compound(kernel) => kernel.run(source, target),
        }
    }
}

/// A number type as kernels see it. Fields that make no difference to an element's bytes have one
/// fixed value, so that equal numbers have equal bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Number {
    Integer(Integer),
    Float(Float),
}

impl Number {
    /// The numbers behind two datatypes, if one converts into the other as a number.
    fn pair(from: &Datatype, to: &Datatype) -> Option<(Self, Self)> {
        let source = match (from, to) {
            (Datatype::Bitfield(source), Datatype::Bitfield(target)) => {
                return Some((Self::of_bitfield(source), Self::of_bitfield(target)));
            }
            (Datatype::Complex(source), Datatype::Complex(target)) => {
                return Some((Self::of_float(&source.base), Self::of_float(&target.base)));
            }
            (Datatype::Integer(source), _) => Self::of_integer(source),
            (Datatype::Enum(source), _) => Self::of_integer(&source.base),
            (Datatype::Float(source), _) => Self::of_float(source),
            _ => return None,
        };
        match to {
            Datatype::Integer(target) => Some((source, Self::of_integer(target))),
            Datatype::Float(target) => Some((source, Self::of_float(target))),
            _ => None,
        }
    }

    fn of_integer(integer: &Integer) -> Self {
        let mut integer = integer.clone();
        if integer.is_full() {
            integer.low_padding = BitPadding::Zero;
            integer.high_padding = BitPadding::Zero;
        }
        if integer.size == 1 {
            integer.order = ByteOrder::Little;
        }
        Self::Integer(integer)
    }

    fn of_float(float: &Float) -> Self {
        let order = if float.size == 1 { ByteOrder::Little } else { float.order };
        Self::Float(Float { order, ..float.clone() })
    }

    fn of_bitfield(bitfield: &Bitfield) -> Self {
        Self::of_integer(&Integer {
            size: bitfield.size,
            order: bitfield.order,
            signed: false,
            bit_offset: bitfield.bit_offset,
            precision: bitfield.precision,
            low_padding: bitfield.low_padding,
            high_padding: bitfield.high_padding,
        })
    }

    fn size(&self) -> usize {
        match self {
            Self::Integer(integer) => integer.size as usize,
            Self::Float(float) => float.size as usize,
        }
    }

    fn order(&self) -> ByteOrder {
        match self {
            Self::Integer(integer) => integer.order,
            Self::Float(float) => float.order,
        }
    }

    fn with_order(&self, order: ByteOrder) -> Self {
        match self {
            Self::Integer(integer) => Self::Integer(Integer { order, ..integer.clone() }),
            Self::Float(float) => Self::Float(Float { order, ..float.clone() }),
        }
    }
}

/// The value of one integer element of at most 8 bytes.
pub(crate) fn integer_value(integer: &Integer, bytes: &[u8]) -> Option<i128> {
    bits::integer_value(integer, bytes)
}
