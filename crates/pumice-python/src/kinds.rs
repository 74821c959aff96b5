//! Types of numbers by the names that numpy has for them.

/// Runs code for the number type with a numpy name such as `f4`.
macro_rules! of_kind {
    ($kind:expr, $T:ident => $body:expr) => {
        $crate::kinds::of_kind!($kind, $T => $body, "i1" i8 "i2" i16 "i4" i32 "i8" i64 "u1" u8 "u2" u16 "u4" u32 "u8" u64
            "f4" f32 "f8" f64 "c8" numpy::Complex32 "c16" numpy::Complex64)
    };
    ($kind:expr, $T:ident => $body:expr, $($name:literal $type:ty)*) => {
        match $kind {
            $($name => {
                type $T = $type;
                $body
            })*
            other => Err(pyo3::exceptions::PyTypeError::new_err(format!("{other} is no type of numbers"))),
        }
    };
}

pub(crate) use of_kind;
