//! The datatype model: one small struct per HDF5 datatype class, all fields public.
//!
//! A value of [`Datatype`] holds what the datatype message (HDF5 file format, section IV.A.2.d)
//! holds, so that decoding and encoding lose nothing; two datatypes are equal when their messages
//! say the same. Nothing here is checked on construction: [`Datatype::validate`] tells whether a
//! value makes sense, and every function of this crate is total for values that do not.

mod atomic;
mod composite;
mod validate;

pub use atomic::{
    BitPadding, Bitfield, ByteOrder, CharacterSet, FixedString, Float, Integer,
    MantissaNormalization, Opaque, Reference, ReferenceKind, StringPadding, Time,
};
pub use composite::{Array, Complex, Compound, Enumeration, Member, VarLen, VarLenKind};

use crate::H5Type;

/// An HDF5 datatype.
///
/// ```
/// use pumice_types::Datatype;
///
/// let label = Datatype::fixed_string(5);
/// let point = Datatype::compound([("x", Datatype::f64_le()), ("label", label)]);
/// assert_eq!(point.size(), 13);
/// assert_eq!(Datatype::native::<i32>().size(), 4);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Datatype {
    /// Class 0: fixed-point numbers.
    Integer(Integer),
    /// Class 1: floating-point numbers.
    Float(Float),
    /// Class 2: time, unused in practice.
    Time(Time),
    /// Class 3: strings of fixed size.
    String(FixedString),
    /// Class 4: bit fields.
    Bitfield(Bitfield),
    /// Class 5: bytes without meaning, under a tag.
    Opaque(Opaque),
    /// Class 6: named members at byte offsets.
    Compound(Compound),
    /// Class 7: references to objects, regions or attributes.
    Reference(Reference),
    /// Class 8: names for integer values.
    Enum(Enumeration),
    /// Class 9: sequences and strings of variable length.
    VarLen(VarLen),
    /// Class 10: arrays of fixed shape as one element.
    Array(Array),
    /// Class 11: complex numbers.
    Complex(Complex),
}

macro_rules! integer_constructors {
    ($($name:ident $bytes:literal $order:ident $signed:literal $ddl:literal;)*) => {
        $(
            #[doc = concat!("`", $ddl, "`.")]
            pub fn $name() -> Self {
                Self::Integer(Integer::new($bytes, ByteOrder::$order, $signed))
            }
        )*
    };
}

macro_rules! float_constructors {
    ($($name:ident $layout:ident $order:ident $ddl:literal;)*) => {
        $(
            #[doc = concat!("`", $ddl, "`.")]
            pub fn $name() -> Self {
                Self::Float(Float::$layout(ByteOrder::$order))
            }
        )*
    };
}

impl Datatype {
    integer_constructors! {
        i8 1 Little true "H5T_STD_I8LE";
        u8 1 Little false "H5T_STD_U8LE";
        i16_le 2 Little true "H5T_STD_I16LE";
        i16_be 2 Big true "H5T_STD_I16BE";
        u16_le 2 Little false "H5T_STD_U16LE";
        u16_be 2 Big false "H5T_STD_U16BE";
        i32_le 4 Little true "H5T_STD_I32LE";
        i32_be 4 Big true "H5T_STD_I32BE";
        u32_le 4 Little false "H5T_STD_U32LE";
        u32_be 4 Big false "H5T_STD_U32BE";
        i64_le 8 Little true "H5T_STD_I64LE";
        i64_be 8 Big true "H5T_STD_I64BE";
        u64_le 8 Little false "H5T_STD_U64LE";
        u64_be 8 Big false "H5T_STD_U64BE";
    }

    float_constructors! {
        f16_le half Little "H5T_IEEE_F16LE";
        f16_be half Big "H5T_IEEE_F16BE";
        bf16_le bfloat16 Little "H5T_FLOAT_BFLOAT16LE";
        bf16_be bfloat16 Big "H5T_FLOAT_BFLOAT16BE";
        f32_le single Little "H5T_IEEE_F32LE";
        f32_be single Big "H5T_IEEE_F32BE";
        f64_le double Little "H5T_IEEE_F64LE";
        f64_be double Big "H5T_IEEE_F64BE";
    }

    /// The datatype of a type of Rust in memory, in this machine's byte order.
    pub fn native<T: H5Type>() -> Self {
        T::datatype()
    }

    /// A null-padded ASCII string of `size` bytes.
    pub fn fixed_string(size: u32) -> Self {
        Self::String(FixedString {
            size,
            padding: StringPadding::NullPad,
            charset: CharacterSet::Ascii,
        })
    }

    /// A null-terminated UTF-8 string of variable length, with references of `size` bytes (16 in
    /// files with 8-byte addresses).
    pub fn varlen_string(size: u32) -> Self {
        Self::VarLen(VarLen::string(size, StringPadding::NullTerminate, CharacterSet::Utf8))
    }

    /// A sequence of variable length, with references of `size` bytes (16 in files with 8-byte
    /// addresses).
    pub fn varlen(base: Datatype, size: u32) -> Self {
        Self::VarLen(VarLen::sequence(base, size))
    }

    /// An array of `dims` elements of `base`.
    pub fn array(base: Datatype, dims: impl Into<Vec<u32>>) -> Self {
        Self::Array(Array { dims: dims.into(), base: Box::new(base) })
    }

    /// A compound whose members follow each other without gaps.
    pub fn compound<N: Into<String>>(members: impl IntoIterator<Item = (N, Datatype)>) -> Self {
        Self::Compound(Compound::packed(members))
    }

    /// Bytes without meaning, under a tag.
    pub fn opaque(size: u32, tag: impl Into<String>) -> Self {
        Self::Opaque(Opaque { size, tag: tag.into() })
    }

    /// Bytes of one element, as stored in memory and in files. Saturates when an array's shape
    /// overflows.
    pub fn size(&self) -> usize {
        let size = match self {
            Self::Integer(integer) => integer.size,
            Self::Float(float) => float.size,
            Self::Time(time) => time.size,
            Self::String(string) => string.size,
            Self::Bitfield(bitfield) => bitfield.size,
            Self::Opaque(opaque) => opaque.size,
            Self::Compound(compound) => compound.size,
            Self::Reference(reference) => reference.size,
            Self::Enum(enumeration) => enumeration.base.size,
            Self::VarLen(varlen) => varlen.size,
            Self::Array(array) => return array.size(),
            Self::Complex(complex) => return complex.size(),
        };
        size as usize
    }

    /// Class number in the datatype message, 0 to 11.
    ///
    /// ```
    /// # use pumice_types::Datatype;
    /// assert_eq!(Datatype::f32_le().class(), 1);
    /// ```
    pub fn class(&self) -> u8 {
        match self {
            Self::Integer(_) => 0,
            Self::Float(_) => 1,
            Self::Time(_) => 2,
            Self::String(_) => 3,
            Self::Bitfield(_) => 4,
            Self::Opaque(_) => 5,
            Self::Compound(_) => 6,
            Self::Reference(_) => 7,
            Self::Enum(_) => 8,
            Self::VarLen(_) => 9,
            Self::Array(_) => 10,
            Self::Complex(_) => 11,
        }
    }

    /// Name of the class, as in "compound".
    pub fn class_name(&self) -> &'static str {
        match self {
            Self::Integer(_) => "integer",
            Self::Float(_) => "float",
            Self::Time(_) => "time",
            Self::String(_) => "string",
            Self::Bitfield(_) => "bitfield",
            Self::Opaque(_) => "opaque",
            Self::Compound(_) => "compound",
            Self::Reference(_) => "reference",
            Self::Enum(_) => "enum",
            Self::VarLen(_) => "variable-length",
            Self::Array(_) => "array",
            Self::Complex(_) => "complex",
        }
    }

    /// Whether an element has references into a heap or to other objects, so that its bytes have no
    /// meaning outside their file.
    ///
    /// ```
    /// # use pumice_types::Datatype;
    /// let name = Datatype::varlen_string(16);
    /// let names = Datatype::compound([("id", Datatype::i32_le()), ("name", name)]);
    /// assert!(names.has_references());
    /// assert!(!Datatype::fixed_string(8).has_references());
    /// ```
    pub fn has_references(&self) -> bool {
        match self {
            Self::VarLen(_) | Self::Reference(_) => true,
            Self::Array(array) => array.base.has_references(),
            Self::Compound(compound) => {
                compound.members.iter().any(|member| member.datatype.has_references())
            }
            _ => false,
        }
    }

    /// Whether elements have references to objects or regions, which have no meaning in another
    /// file.
    ///
    /// ```
    /// # use pumice_types::{Datatype, Reference, ReferenceKind};
    /// let object = Datatype::Reference(Reference { size: 8, kind: ReferenceKind::Object });
    /// assert!(Datatype::array(object, [2]).refers_to_objects());
    /// assert!(!Datatype::varlen_string(16).refers_to_objects());
    /// ```
    pub fn refers_to_objects(&self) -> bool {
        match self {
            Self::Reference(_) => true,
            Self::Array(array) => array.base.refers_to_objects(),
            Self::VarLen(varlen) => varlen.base.refers_to_objects(),
            Self::Compound(compound) => {
                compound.members.iter().any(|member| member.datatype.refers_to_objects())
            }
            _ => false,
        }
    }

    /// Whether a compound or an enumeration, here or further inside, has a member without a name. libhdf5
    /// makes none, and h5py gives such members other names.
    ///
    /// ```
    /// # use pumice_types::Datatype;
    /// let unnamed = Datatype::compound([("id", Datatype::i32_le()), ("", Datatype::i32_le())]);
    /// assert!(Datatype::array(unnamed, [3]).has_unnamed_members());
    /// assert!(!Datatype::compound([("id", Datatype::i32_le())]).has_unnamed_members());
    /// ```
    pub fn has_unnamed_members(&self) -> bool {
        match self {
            Self::Enum(enumeration) => enumeration.names.iter().any(String::is_empty),
            Self::VarLen(varlen) => varlen.base.has_unnamed_members(),
            Self::Array(array) => array.base.has_unnamed_members(),
            Self::Compound(compound) => compound
                .members
                .iter()
                .any(|member| member.name.is_empty() || member.datatype.has_unnamed_members()),
            _ => false,
        }
    }

    /// Whether an element holds data of variable length.
    pub fn has_varlen(&self) -> bool {
        match self {
            Self::VarLen(_) => true,
            Self::Array(array) => array.base.has_varlen(),
            Self::Compound(compound) => {
                compound.members.iter().any(|member| member.datatype.has_varlen())
            }
            _ => false,
        }
    }

    /// The datatype without members of variable length; the others keep their offsets. `None` if
    /// there are no others.
    ///
    /// ```
    /// use pumice_types::{Compound, Datatype};
    ///
    /// let (name, count) = (Datatype::varlen_string(16), Datatype::u8());
    /// let record = Datatype::from(Compound::packed([("name", name), ("count", count)]));
    /// let Some(Datatype::Compound(fixed)) = record.fixed_part() else { panic!("no compound") };
    /// assert_eq!((fixed.size, fixed.members.len()), (17, 1));
    /// assert_eq!((fixed.members[0].name.as_str(), fixed.members[0].offset), ("count", 16));
    /// assert_eq!(Datatype::varlen_string(16).fixed_part(), None);
    /// ```
    pub fn fixed_part(&self) -> Option<Self> {
        match self {
            Self::VarLen(_) => None,
            Self::Array(array) => {
                let base = Box::new(array.base.fixed_part()?);
                Some(Self::Array(Array { base, dims: array.dims.clone() }))
            }
            Self::Compound(compound) if self.has_varlen() => {
                let fixed = |member: &Member| {
                    let datatype = member.datatype.fixed_part()?;
                    Some(Member { datatype, ..member.clone() })
                };
                let members: Vec<Member> = compound.members.iter().filter_map(fixed).collect();
                let size = compound.size;
                (!members.is_empty()).then_some(Self::Compound(Compound { size, members }))
            }
            _ => Some(self.clone()),
        }
    }

    /// The datatype with references of `size` bytes in parts of variable length. Gaps between
    /// members stay.
    ///
    /// ```
    /// use pumice_types::{Compound, Datatype};
    ///
    /// let record = |size| {
    ///     let (name, count) = (Datatype::varlen_string(size), Datatype::u8());
    ///     Datatype::from(Compound::packed([("name", name), ("count", count)]))
    /// };
    /// assert_eq!(record(16).with_references(12), record(12));
    /// ```
    pub fn with_references(&self, size: u32) -> Self {
        match self {
            Self::VarLen(varlen) => {
                let base = Box::new(varlen.base.with_references(size));
                Self::VarLen(VarLen { size, base, ..varlen.clone() })
            }
            Self::Array(array) => {
                let base = Box::new(array.base.with_references(size));
                Self::Array(Array { base, ..array.clone() })
            }
            Self::Compound(compound) if self.has_varlen() => {
                let mut members = compound.members.clone();
                let mut order: Vec<usize> = (0..members.len()).collect();
                order.sort_by_key(|&at| members[at].offset);
                // The offset by which members before have grown or shrunk.
                let mut moved = 0i64;
                let shift = |at: u32, by: i64| (i64::from(at) + by).max(0) as u32;
                for at in order {
                    let Member { offset, datatype, .. } = &mut members[at];
                    *offset = shift(*offset, moved);
                    let own = datatype.with_references(size);
                    moved += own.size() as i64 - datatype.size() as i64;
                    *datatype = own;
                }
                Self::Compound(Compound { size: shift(compound.size, moved), members })
            }
            other => other.clone(),
        }
    }
}

macro_rules! from_class {
    ($($class:ident($inner:ty))*) => {
        $(
            impl From<$inner> for Datatype {
                fn from(inner: $inner) -> Self {
                    Self::$class(inner)
                }
            }
        )*
    };
}

from_class! {
    Integer(Integer) Float(Float) Time(Time) String(FixedString) Bitfield(Bitfield) Opaque(Opaque)
    Compound(Compound) Reference(Reference) Enum(Enumeration) VarLen(VarLen) Array(Array)
    Complex(Complex)
}
