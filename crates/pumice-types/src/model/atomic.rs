//! The classes whose elements have no parts: numbers, strings, bit fields, opaque bytes,
//! references.

/// Order of the bytes of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
    /// VAX: 16-bit words, most significant first, each with its least significant byte first.
    /// Floats only.
    Vax,
}

impl ByteOrder {
    /// This machine's order.
    pub const NATIVE: Self = if cfg!(target_endian = "big") { Self::Big } else { Self::Little };
}

/// Value of the bits around a number that is narrower than its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum BitPadding {
    /// Bits are 0.
    #[default]
    Zero,
    /// Bits are 1.
    One,
}

/// The leading bit of a float's mantissa.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MantissaNormalization {
    /// Not normalised.
    None,
    /// The most significant bit is always 1 and stored.
    MsbSet,
    /// The most significant bit is always 1 and not stored.
    Implied,
}

/// A fixed-point number (class 0).
///
/// ```
/// use pumice_types::{ByteOrder, Integer};
///
/// let wide = Integer::new(4, ByteOrder::Big, true);
/// assert_eq!((wide.precision, wide.bit_offset), (32, 0));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Integer {
    /// Bytes of an element.
    pub size: u32,
    /// Order of the bytes.
    pub order: ByteOrder,
    /// Two's complement, or unsigned.
    pub signed: bool,
    /// Bits below the number.
    pub bit_offset: u16,
    /// Bits of the number.
    pub precision: u16,
    /// Bits below the number.
    pub low_padding: BitPadding,
    /// Bits above the number.
    pub high_padding: BitPadding,
}

impl Integer {
    /// An integer that fills its `size` bytes.
    pub fn new(size: u32, order: ByteOrder, signed: bool) -> Self {
        Self {
            size,
            order,
            signed,
            bit_offset: 0,
            precision: u16::try_from(size.saturating_mul(8)).unwrap_or(u16::MAX),
            low_padding: BitPadding::Zero,
            high_padding: BitPadding::Zero,
        }
    }

    /// Whether the number fills its bytes.
    pub fn is_full(&self) -> bool {
        self.bit_offset == 0 && u64::from(self.precision) == u64::from(self.size) * 8
    }
}

/// A floating-point number (class 1). All positions count bits from the least significant one, in
/// the number's own byte order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Float {
    /// Bytes of an element.
    pub size: u32,
    /// Order of the bytes.
    pub order: ByteOrder,
    /// Bits below the number.
    pub bit_offset: u16,
    /// Bits of the number.
    pub precision: u16,
    /// Bits below the number.
    pub low_padding: BitPadding,
    /// Bits above the number.
    pub high_padding: BitPadding,
    /// Bits inside the number that belong to none of its parts.
    pub internal_padding: BitPadding,
    /// The leading bit of the mantissa.
    pub normalization: MantissaNormalization,
    /// Position of the sign bit.
    pub sign_location: u8,
    /// Position of the exponent's lowest bit.
    pub exponent_location: u8,
    /// Bits of the exponent.
    pub exponent_size: u8,
    /// The number that is added to the exponent before it is stored.
    pub exponent_bias: u32,
    /// Position of the mantissa's lowest bit.
    pub mantissa_location: u8,
    /// Bits of the mantissa.
    pub mantissa_size: u8,
}

impl Float {
    /// A float that fills its bytes: sign, exponent, mantissa with an implied leading bit, from the
    /// top.
    ///
    /// ```
    /// use pumice_types::{ByteOrder, Float};
    ///
    /// assert_eq!(Float::ieee(4, ByteOrder::Little, 8, 23), Float::single(ByteOrder::Little));
    /// ```
    pub fn ieee(size: u32, order: ByteOrder, exponent_size: u8, mantissa_size: u8) -> Self {
        Self {
            size,
            order,
            bit_offset: 0,
            precision: u16::try_from(size.saturating_mul(8)).unwrap_or(u16::MAX),
            low_padding: BitPadding::Zero,
            high_padding: BitPadding::Zero,
            internal_padding: BitPadding::Zero,
            normalization: MantissaNormalization::Implied,
            sign_location: exponent_size.saturating_add(mantissa_size),
            exponent_location: mantissa_size,
            exponent_size,
            exponent_bias: (1u32 << exponent_size.saturating_sub(1).min(31)) - 1,
            mantissa_location: 0,
            mantissa_size,
        }
    }

    /// IEEE 754 binary16.
    pub fn half(order: ByteOrder) -> Self {
        Self::ieee(2, order, 5, 10)
    }

    /// bfloat16: the upper half of a single.
    pub fn bfloat16(order: ByteOrder) -> Self {
        Self::ieee(2, order, 8, 7)
    }

    /// IEEE 754 binary32.
    pub fn single(order: ByteOrder) -> Self {
        Self::ieee(4, order, 8, 23)
    }

    /// IEEE 754 binary64.
    pub fn double(order: ByteOrder) -> Self {
        Self::ieee(8, order, 11, 52)
    }
}

/// A time (class 2). Kept so that files that hold one can be listed; it has no conversions but
/// itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Time {
    /// Bytes of an element.
    pub size: u32,
    /// Order of the bytes.
    pub order: ByteOrder,
    /// Bits of the number.
    pub precision: u16,
}

/// The end of a string that is shorter than its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum StringPadding {
    /// A null byte, which is always there.
    #[default]
    NullTerminate,
    /// Null bytes, none if the string fills its bytes.
    NullPad,
    /// Spaces.
    SpacePad,
}

/// Encoding of a string's characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum CharacterSet {
    /// US-ASCII; in practice any bytes.
    #[default]
    Ascii,
    /// UTF-8.
    Utf8,
}

/// A string of fixed size (class 3).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FixedString {
    /// Bytes of an element.
    pub size: u32,
    /// The padding of a shorter string.
    pub padding: StringPadding,
    /// Encoding of the characters.
    pub charset: CharacterSet,
}

impl FixedString {
    /// Bytes of the longest string that an element takes: a null-terminated one has its end to keep.
    pub fn room(&self) -> usize {
        match self.padding {
            StringPadding::NullTerminate => (self.size as usize).saturating_sub(1),
            StringPadding::NullPad | StringPadding::SpacePad => self.size as usize,
        }
    }
}

/// A bit field (class 4).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Bitfield {
    /// Bytes of an element.
    pub size: u32,
    /// Order of the bytes.
    pub order: ByteOrder,
    /// Bits below the field.
    pub bit_offset: u16,
    /// Bits of the field.
    pub precision: u16,
    /// Bits below the field.
    pub low_padding: BitPadding,
    /// Bits above the field.
    pub high_padding: BitPadding,
}

impl Bitfield {
    /// A bit field that fills its `size` bytes.
    pub fn new(size: u32, order: ByteOrder) -> Self {
        Self {
            size,
            order,
            bit_offset: 0,
            precision: u16::try_from(size.saturating_mul(8)).unwrap_or(u16::MAX),
            low_padding: BitPadding::Zero,
            high_padding: BitPadding::Zero,
        }
    }
}

/// Bytes without meaning (class 5).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Opaque {
    /// Bytes of an element.
    pub size: u32,
    /// The description of the bytes, without trailing null bytes.
    pub tag: String,
}

/// The kind of object that a reference names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReferenceKind {
    /// An object, by its address (type 0).
    Object,
    /// A region of a dataset, through the global heap (type 1).
    Region,
    /// An object, by a token (type 2, since HDF5 1.12).
    Object2 {
        /// Version of the reference's encoding.
        version: u8,
    },
    /// A region of a dataset (type 3, since HDF5 1.12).
    Region2 {
        /// Version of the reference's encoding.
        version: u8,
    },
    /// An attribute (type 4, since HDF5 1.12).
    Attribute {
        /// Version of the reference's encoding.
        version: u8,
    },
}

/// A reference (class 7).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Reference {
    /// Bytes of an element.
    pub size: u32,
    /// The kind of object that it names.
    pub kind: ReferenceKind,
}
