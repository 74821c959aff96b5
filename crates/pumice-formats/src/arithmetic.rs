//! Adding, negating and conjugating elements of any number type, as bytes.

use pumice::Datatype;
use pumice::types::{ByteOrder, Float, Integer};

/// The arithmetic of elements of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// A whole number.
    Integer {
        /// Its bytes.
        size: usize,
        /// Whether it may be negative.
        signed: bool,
        /// Whether the most significant byte comes first.
        big: bool,
    },
    /// A float.
    Float {
        /// Its bytes.
        size: usize,
        /// Whether the most significant byte comes first.
        big: bool,
    },
    /// Two floats.
    Complex {
        /// The bytes of one of them.
        size: usize,
        /// Whether the most significant byte comes first.
        big: bool,
    },
    /// Truth values, and entries without values: adding keeps what is true.
    Presence,
}

impl Arithmetic {
    /// The arithmetic of a type, if there is one.
    pub fn of(datatype: &Datatype) -> Option<Self> {
        let is_big = |order: ByteOrder| order == ByteOrder::Big;
        match datatype {
            Datatype::Integer(Integer { size: size @ (1 | 2 | 4 | 8), order, signed, .. }) => {
                Some(Self::Integer { size: *size as usize, signed: *signed, big: is_big(*order) })
            }
            Datatype::Float(float @ Float { size: size @ (4 | 8), order, .. }) => {
                let plain = [Float::single(*order), Float::double(*order)].contains(float);
                plain.then_some(Self::Float { size: *size as usize, big: is_big(*order) })
            }
            Datatype::Enum(enumeration) if enumeration.base.size == 1 => Some(Self::Presence),
            _ => match Self::of(&complex_part(datatype)?)? {
                Self::Float { size, big } => Some(Self::Complex { size, big }),
                _ => None,
            },
        }
    }

    /// Adds `other` to `sum`; `false` if the type cannot hold the result.
    pub fn add(self, sum: &mut [u8], other: &[u8]) -> bool {
        match self {
            Self::Presence => {
                if sum.iter().all(|&byte| byte == 0) {
                    sum.copy_from_slice(other);
                }
                true
            }
            Self::Integer { size, signed, big } => {
                let total = integer(sum, signed, big) + integer(other, signed, big);
                let bits = 8 * size as u32;
                let fits = match signed {
                    true => (-(1i128 << (bits - 1))..1i128 << (bits - 1)).contains(&total),
                    false => (0..1i128 << bits).contains(&total),
                };
                put_integer(sum, total, big);
                fits
            }
            Self::Float { big, .. } => {
                put_float(sum, float(sum, big) + float(other, big), big);
                true
            }
            Self::Complex { size, big } => {
                let part = Self::Float { size, big };
                part.add(&mut sum[..size], &other[..size]);
                part.add(&mut sum[size..], &other[size..])
            }
        }
    }

    /// Changes the sign; `false` if the type cannot hold the result.
    pub fn negate(self, element: &mut [u8]) -> bool {
        match self {
            Self::Presence => false,
            Self::Integer { size, signed, big } => {
                let value = -integer(element, signed, big);
                put_integer(element, value, big);
                match signed {
                    true => value < 1i128 << (8 * size as u32 - 1),
                    false => value == 0,
                }
            }
            Self::Float { size, big } => {
                element[if big { 0 } else { size - 1 }] ^= 0x80;
                true
            }
            Self::Complex { size, big } => {
                let part = Self::Float { size, big };
                part.negate(&mut element[..size]) && part.negate(&mut element[size..])
            }
        }
    }

    /// Makes the complex conjugate.
    pub fn conjugate(self, element: &mut [u8]) {
        if let Self::Complex { size, big } = self {
            Self::Float { size, big }.negate(&mut element[size..]);
        }
    }
}

/// The type of both parts of a complex number: a compound of two equal floats without gaps, or
/// HDF5's own class.
pub(crate) fn complex_part(datatype: &Datatype) -> Option<Datatype> {
    match datatype {
        Datatype::Compound(compound) => match compound.members.as_slice() {
            [one, other]
                if matches!(one.datatype, Datatype::Float(_))
                    && one.datatype == other.datatype
                    && one.offset == 0
                    && other.offset as usize == one.datatype.size()
                    && compound.size == 2 * other.offset =>
            {
                Some(one.datatype.clone())
            }
            _ => None,
        },
        Datatype::Complex(complex) => Some(Datatype::Float(complex.base.clone())),
        _ => None,
    }
}

fn integer(bytes: &[u8], signed: bool, big: bool) -> i128 {
    let mut value = 0i128;
    let mut add = |&byte: &u8| value = value << 8 | i128::from(byte);
    match big {
        true => bytes.iter().for_each(&mut add),
        false => bytes.iter().rev().for_each(&mut add),
    }
    let bits = 8 * bytes.len() as u32;
    match signed && value >= 1i128 << (bits - 1) {
        true => value - (1i128 << bits),
        false => value,
    }
}

fn put_integer(bytes: &mut [u8], mut value: i128, big: bool) {
    let mut put = |byte: &mut u8| {
        *byte = value as u8;
        value >>= 8;
    };
    match big {
        true => bytes.iter_mut().rev().for_each(&mut put),
        false => bytes.iter_mut().for_each(&mut put),
    }
}

/// A float as a wide one. Adding two narrow ones there and rounding equals adding them narrowly.
fn float(bytes: &[u8], big: bool) -> f64 {
    let raw = integer(bytes, false, big);
    match bytes.len() {
        4 => f64::from(f32::from_bits(raw as u32)),
        _ => f64::from_bits(raw as u64),
    }
}

fn put_float(bytes: &mut [u8], value: f64, big: bool) {
    let raw = match bytes.len() {
        4 => i128::from((value as f32).to_bits()),
        _ => i128::from(value.to_bits()),
    };
    put_integer(bytes, raw, big);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(datatype: Datatype, one: &[u8], other: &[u8], sum: Option<&[u8]>) {
        let arithmetic = Arithmetic::of(&datatype).unwrap();
        let mut found = one.to_vec();
        assert_eq!(arithmetic.add(&mut found, other), sum.is_some(), "{datatype:?}");
        assert_eq!(Some(found.as_slice()).filter(|_| sum.is_some()), sum, "{datatype:?}");
    }

    #[test]
    fn sums_are_those_of_the_type() {
        check(Datatype::i16_be(), &[0, 255], &[0, 1], Some(&[1, 0]));
        check(Datatype::i8(), &[127], &[1], None);
        check(Datatype::u8(), &[255], &[1], None);
        check(Datatype::i64_le(), &i64::MIN.to_le_bytes(), &(-1i64).to_le_bytes(), None);
        check(Datatype::u64_le(), &u64::MAX.to_le_bytes(), &1u64.to_le_bytes(), None);
        let (one, two) = (0.1f32.to_be_bytes(), 0.2f32.to_be_bytes());
        check(Datatype::f32_be(), &one, &two, Some(&(0.1f32 + 0.2f32).to_be_bytes()));
        let pair = Datatype::compound([("r", Datatype::f32_le()), ("i", Datatype::f32_le())]);
        let complex = |r: f32, i: f32| [r.to_le_bytes(), i.to_le_bytes()].concat();
        check(pair.clone(), &complex(1.0, 2.0), &complex(3.0, 4.5), Some(&complex(4.0, 6.5)));
        let mut value = complex(1.0, 2.0);
        Arithmetic::of(&pair).unwrap().conjugate(&mut value);
        assert_eq!(value, complex(1.0, -2.0));
    }

    #[test]
    fn negation_must_fit() {
        let negated = |datatype: Datatype, value: &[u8]| {
            let mut value = value.to_vec();
            Arithmetic::of(&datatype).unwrap().negate(&mut value).then_some(value)
        };
        assert_eq!(negated(Datatype::i8(), &[1]), Some(vec![255]));
        assert_eq!(negated(Datatype::i8(), &[128]), None);
        assert_eq!(negated(Datatype::u8(), &[1]), None);
        assert_eq!(negated(Datatype::u8(), &[0]), Some(vec![0]));
        let minus = (-1.5f64).to_be_bytes().to_vec();
        assert_eq!(negated(Datatype::f64_be(), &1.5f64.to_be_bytes()), Some(minus));
    }
}
