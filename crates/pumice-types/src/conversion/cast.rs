//! The rule for one number of a Rust type to become one of another, and the loops over packed
//! bytes.
//!
//! The rules are written without branches, as arithmetic and selections, so that the loops become
//! vector code wherever the machine has it.

mod float;

use bytemuck::Pod;

/// A number type of Rust that elements can be read and written as.
pub(super) trait Scalar: Pod {}

/// The conversion rule from `Self` to `Target`.
pub(super) trait Cast<Target>: Scalar {
    fn cast(self) -> Target;
}

/// An IEEE half, as its bits.
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub(super) struct Half(pub(super) u16);

/// A bfloat16, as its bits: the upper half of a single.
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub(super) struct Brain(pub(super) u16);

/// Converts packed elements in this machine's byte order; stops at the shorter of the two slices.
pub(super) fn cast_all<Source: Cast<Target>, Target: Scalar>(source: &[u8], target: &mut [u8]) {
    let elements = source.chunks_exact(size_of::<Source>());
    for (from, to) in elements.zip(target.chunks_exact_mut(size_of::<Target>())) {
        let value: Source = bytemuck::pod_read_unaligned(from);
        to.copy_from_slice(bytemuck::bytes_of(&value.cast()));
    }
}

macro_rules! scalars {
    ($($name:ty)*) => { $(impl Scalar for $name {})* };
}
scalars! { i8 i16 i32 i64 u8 u16 u32 u64 Half Brain f32 f64 }

macro_rules! integer_to_integer {
    ($($source:ty)*) => {
        $(integer_to_integer! { @from $source; i8 i16 i32 i64 u8 u16 u32 u64 })*
    };
    (@from $source:ty; $($target:ty)*) => {
        $(
            impl Cast<$target> for $source {
                #[inline(always)]
                fn cast(self) -> $target {
                    // The part of the source's range that the target can hold.
                    const LOW: $source = if (<$source>::MIN as i128) < (<$target>::MIN as i128) {
                        <$target>::MIN as $source
                    } else {
                        <$source>::MIN
                    };
                    const HIGH: $source = if (<$source>::MAX as i128) > (<$target>::MAX as i128) {
                        <$target>::MAX as $source
                    } else {
                        <$source>::MAX
                    };
                    self.clamp(LOW, HIGH) as $target
                }
            }
        )*
    };
}
integer_to_integer! { i8 i16 i32 i64 u8 u16 u32 u64 }
