//! The number types of Rust that are elements as they lie in memory.

use half::f16;

use crate::Datatype;
use crate::model::{ByteOrder, Float, Integer};

/// A Rust type whose bytes are an element of [`Element::datatype`].
///
/// ```
/// use pumice_types::{Datatype, Element};
///
/// assert_eq!(u8::datatype(), Datatype::u8());
/// assert_eq!(<f64 as Element>::datatype().size(), 8);
/// ```
pub trait Element: bytemuck::Pod + Send + Sync + 'static {
    /// The datatype in this machine's byte order.
    fn datatype() -> Datatype;
}

macro_rules! integer_elements {
    ($($name:ident $signed:literal)*) => {
        $(
            impl Element for $name {
                fn datatype() -> Datatype {
                    let size = size_of::<$name>() as u32;
                    Datatype::Integer(Integer::new(size, ByteOrder::NATIVE, $signed))
                }
            }
        )*
    };
}

macro_rules! float_elements {
    ($($name:ident $layout:ident)*) => {
        $(
            impl Element for $name {
                fn datatype() -> Datatype {
                    Datatype::Float(Float::$layout(ByteOrder::NATIVE))
                }
            }
        )*
    };
}

integer_elements! { i8 true i16 true i32 true i64 true u8 false u16 false u32 false u64 false }
float_elements! { f16 half f32 single f64 double }
