//! The classes that are made of other datatypes: compound, enumeration, variable length, array,
//! complex.

use super::{CharacterSet, Datatype, Float, Integer, StringPadding};

/// One member of a compound.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Member {
    /// Its name, unique in the compound.
    pub name: String,
    /// Its offset in bytes from the compound's start.
    pub offset: u32,
    /// The datatype of the member.
    pub datatype: Datatype,
}

/// Named members at byte offsets (class 6). Gaps between members are allowed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Compound {
    /// Bytes of an element, gaps included.
    pub size: u32,
    /// The members, in the order of their definition.
    pub members: Vec<Member>,
}

impl Compound {
    /// Members one after the other without gaps.
    ///
    /// ```
    /// use pumice_types::{Compound, Datatype};
    ///
    /// let pair = Compound::packed([("a", Datatype::i8()), ("b", Datatype::f32_le())]);
    /// assert_eq!((pair.size, pair.members[1].offset), (5, 1));
    /// ```
    pub fn packed<N: Into<String>>(members: impl IntoIterator<Item = (N, Datatype)>) -> Self {
        let mut size = 0u32;
        let members = members
            .into_iter()
            .map(|(name, datatype)| {
                let offset = size;
                size = size.saturating_add(u32::try_from(datatype.size()).unwrap_or(u32::MAX));
                Member { name: name.into(), offset, datatype }
            })
            .collect();
        Self { size, members }
    }

    /// The member of this name.
    pub fn member(&self, name: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.name == name)
    }
}

/// Names for integer values (class 8).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Enumeration {
    /// The integer that elements are stored as.
    pub base: Integer,
    /// The names, in the order of their definition.
    pub names: Vec<String>,
    /// The names' values, packed, each as one element of `base`.
    pub values: Vec<u8>,
}

impl Enumeration {
    /// An enumeration without names.
    pub fn new(base: Integer) -> Self {
        Self { base, names: Vec::new(), values: Vec::new() }
    }

    /// Adds a name for the value whose bytes, as one element of the base, are `value`.
    ///
    /// ```
    /// use pumice_types::{ByteOrder, Enumeration, Integer};
    ///
    /// let byte = Integer::new(1, ByteOrder::Little, true);
    /// let color = Enumeration::new(byte).with("RED", &[0]).with("BLUE", &[1]);
    /// assert_eq!(color.members().nth(1), Some(("BLUE", &[1u8][..])));
    /// assert_eq!(color.name_of(&[0]), Some("RED"));
    /// ```
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: &[u8]) -> Self {
        self.names.push(name.into());
        self.values.extend_from_slice(value);
        self
    }

    /// Names with their values' bytes.
    pub fn members(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let values = self.values.chunks_exact((self.base.size as usize).max(1));
        self.names.iter().map(String::as_str).zip(values)
    }

    /// The name of a value given by its bytes.
    pub fn name_of(&self, value: &[u8]) -> Option<&str> {
        self.members().find(|(_, bytes)| *bytes == value).map(|(name, _)| name)
    }

    /// The bytes of the value of this name.
    pub fn value_of(&self, name: &str) -> Option<&[u8]> {
        self.members().find(|(known, _)| *known == name).map(|(_, bytes)| bytes)
    }
}

/// The kind of a variable-length element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VarLenKind {
    /// A sequence of base elements.
    Sequence,
    /// A string.
    String {
        /// The end of the string.
        padding: StringPadding,
        /// Encoding of its characters.
        charset: CharacterSet,
    },
}

/// A sequence or string of variable length (class 9).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VarLen {
    /// Bytes of an element in a file: a count and a global heap id.
    pub size: u32,
    /// Sequence or string.
    pub kind: VarLenKind,
    /// The base type of the sequence; bytes for strings.
    pub base: Box<Datatype>,
}

impl VarLen {
    /// A sequence of `base` elements.
    pub fn sequence(base: Datatype, size: u32) -> Self {
        Self { size, kind: VarLenKind::Sequence, base: Box::new(base) }
    }

    /// A string.
    pub fn string(size: u32, padding: StringPadding, charset: CharacterSet) -> Self {
        Self { size, kind: VarLenKind::String { padding, charset }, base: Box::new(Datatype::u8()) }
    }
}

/// An array of fixed shape as one element (class 10).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Array {
    /// Its shape, slowest axis first.
    pub dims: Vec<u32>,
    /// The datatype of its elements.
    pub base: Box<Datatype>,
}

impl Array {
    /// Number of base elements; saturates.
    pub fn count(&self) -> usize {
        self.dims.iter().fold(1, |count: usize, &dim| count.saturating_mul(dim as usize))
    }

    /// Bytes of the whole array; saturates.
    pub fn size(&self) -> usize {
        self.count().saturating_mul(self.base.size())
    }
}

/// A complex number in rectangular form, real part first (class 11, since HDF5 2.0).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Complex {
    /// The type of each of the two parts.
    pub base: Float,
}

impl Complex {
    /// Bytes of both parts.
    pub fn size(&self) -> usize {
        (self.base.size as usize).saturating_mul(2)
    }
}
