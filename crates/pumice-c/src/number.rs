//! The types of numbers that programs name.

use crate::fault::invalid;
use pumice::{Datatype, Element, H5Type, Result};
use std::borrow::Cow;
use std::ffi::c_int;

/// `pumice_type`.
pub(crate) type TypeNumber = c_int;

/// `PUMICE_OTHER`.
pub(crate) const OTHER: TypeNumber = 0;

/// A type of numbers in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
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

/// Runs an expression with `$T` as the Rust type of a [`Number`].
macro_rules! with_number {
    ($number:expr, $T:ident => $body:expr) => {
        match $number {
            $crate::number::Number::I8 => {
                type $T = i8;
                $body
            }
            $crate::number::Number::I16 => {
                type $T = i16;
                $body
            }
            $crate::number::Number::I32 => {
                type $T = i32;
                $body
            }
            $crate::number::Number::I64 => {
                type $T = i64;
                $body
            }
            $crate::number::Number::U8 => {
                type $T = u8;
                $body
            }
            $crate::number::Number::U16 => {
                type $T = u16;
                $body
            }
            $crate::number::Number::U32 => {
                type $T = u32;
                $body
            }
            $crate::number::Number::U64 => {
                type $T = u64;
                $body
            }
            $crate::number::Number::F32 => {
                type $T = f32;
                $body
            }
            $crate::number::Number::F64 => {
                type $T = f64;
                $body
            }
        }
    };
}
pub(crate) use with_number;

/// In the order of `pumice_type`, from 1 on.
const ALL: [Number; 10] = [
    Number::I8,
    Number::I16,
    Number::I32,
    Number::I64,
    Number::U8,
    Number::U16,
    Number::U32,
    Number::U64,
    Number::F32,
    Number::F64,
];

impl Number {
    /// The type that a program names.
    pub(crate) fn new(number: TypeNumber) -> Result<Self> {
        let at = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        let known = at.and_then(|at| ALL.get(at)).copied();
        known.ok_or_else(|| invalid(&format!("{number} is not a type of numbers in memory")))
    }

    /// The number of the type that values of the file are read with.
    pub(crate) fn of(datatype: &Datatype) -> TypeNumber {
        let wanted = match datatype {
            Datatype::Integer(integer) => (integer.size, integer.signed),
            // An enumeration's and a bit field's values are numbers.
            Datatype::Enum(values) => (values.base.size, values.base.signed),
            Datatype::Float(float) if float.size <= 4 => return Self::F32.number(),
            Datatype::Float(_) => return Self::F64.number(),
            _ => return OTHER,
        };
        match wanted {
            (1, true) => Self::I8,
            (2, true) => Self::I16,
            (3..=4, true) => Self::I32,
            (_, true) => Self::I64,
            (1, false) => Self::U8,
            (2, false) => Self::U16,
            (3..=4, false) => Self::U32,
            (_, false) => Self::U64,
        }
        .number()
    }

    fn number(self) -> TypeNumber {
        self as TypeNumber + 1
    }

    /// The datatype in memory.
    pub(crate) fn datatype(self) -> Datatype {
        with_number!(self, T => T::datatype())
    }

    /// Bytes of `count` values.
    pub(crate) fn bytes(self, count: usize) -> Result<usize> {
        let size = with_number!(self, T => size_of::<T>());
        count.checked_mul(size).ok_or_else(|| invalid("more values than memory has"))
    }
}

/// Bytes of the program as values, copied if they are not aligned.
pub(crate) fn values<T: Element>(bytes: &[u8]) -> Cow<'_, [T]> {
    match bytemuck::try_cast_slice(bytes) {
        Ok(values) => Cow::Borrowed(values),
        Err(_) => Cow::Owned(bytemuck::pod_collect_to_vec(bytes)),
    }
}

/// Values of any type of numbers, in memory of Pumice's.
pub(crate) enum Values {
    I8(Vec<i8>),
    I16(Vec<i16>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
}

macro_rules! values_of {
    ($($name:ident $scalar:ty),+) => {
        impl Values {
            /// Where they are.
            pub(crate) fn as_ptr(&self) -> *const std::ffi::c_void {
                match self { $(Self::$name(list) => list.as_ptr().cast(),)+ }
            }
        }
        $(impl From<Vec<$scalar>> for Values {
            fn from(list: Vec<$scalar>) -> Self {
                Self::$name(list)
            }
        })+
    };
}

values_of! { I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, F32 f32, F64 f64 }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_is_its_own() {
        for (at, number) in ALL.into_iter().enumerate() {
            assert_eq!(Number::new(at as TypeNumber + 1).unwrap(), number);
            assert_eq!(Number::of(&number.datatype()), at as TypeNumber + 1);
        }
        assert!(Number::new(0).is_err() && Number::new(11).is_err() && Number::new(-1).is_err());
        assert_eq!(Number::of(&String::datatype()), OTHER);
    }

    #[test]
    fn values_need_not_be_aligned() {
        let bytes: Vec<u8> = [0u8].into_iter().chain(7.5f64.to_ne_bytes()).collect();
        assert_eq!(*values::<f64>(&bytes[1..]), [7.5]);
    }
}
