//! The rules that involve floats. Halves and bfloat16 are done on bits.

use super::{Brain, Cast, Half};

macro_rules! integer_and_float {
    ($($integer:ty)*) => {
        $(
            impl Cast<f32> for $integer {
                #[inline(always)]
                fn cast(self) -> f32 {
                    self as f32
                }
            }

            impl Cast<f64> for $integer {
                #[inline(always)]
                fn cast(self) -> f64 {
                    self as f64
                }
            }

            // Integers that a single does not hold exactly are infinite as halves: rounding twice
            // is safe.
            impl Cast<Half> for $integer {
                #[inline(always)]
                fn cast(self) -> Half {
                    single_to_half(self as f32)
                }
            }

            // Rust's casts saturate, truncate toward zero and turn NaN into 0.
            impl Cast<$integer> for f32 {
                #[inline(always)]
                fn cast(self) -> $integer {
                    self as $integer
                }
            }

            impl Cast<$integer> for f64 {
                #[inline(always)]
                fn cast(self) -> $integer {
                    self as $integer
                }
            }

            impl Cast<$integer> for Half {
                #[inline(always)]
                fn cast(self) -> $integer {
                    half_to_single(self) as $integer
                }
            }

            impl Cast<$integer> for Brain {
                #[inline(always)]
                fn cast(self) -> $integer {
                    brain_to_single(self) as $integer
                }
            }
        )*
    };
}
integer_and_float! { i8 i16 i32 i64 u8 u16 u32 u64 }

macro_rules! integer_to_brain {
    ($($integer:ty, $value:ident: $double:expr;)*) => {
        $(
            impl Cast<Brain> for $integer {
                #[inline(always)]
                fn cast(self) -> Brain {
                    let $value = self;
                    single_to_brain(double_to_odd_single($double))
                }
            }
        )*
    };
}
integer_to_brain! {
    i8, value: f64::from(value);
    i16, value: f64::from(value);
    i32, value: f64::from(value);
    u8, value: f64::from(value);
    u16, value: f64::from(value);
    u32, value: f64::from(value);
    i64, value: odd_tail(value as u64, value.unsigned_abs()) as i64 as f64;
    u64, value: odd_tail(value, value) as f64;
}

/// Folds the bits below the sixteenth of a large integer into that bit, so that a double holds it
/// exactly and rounding to fewer bits still sees whether there were any.
#[inline(always)]
fn odd_tail(bits: u64, magnitude: u64) -> u64 {
    const TAIL: u64 = 0xFFFF;
    let folded = (bits & !TAIL) | (u64::from(bits & TAIL != 0) << 16);
    if magnitude >> 53 == 0 { bits } else { folded }
}

macro_rules! float_to_float {
    ($($source:ty => $target:ty, $value:ident: $rule:expr;)*) => {
        $(
            impl Cast<$target> for $source {
                #[inline(always)]
                fn cast(self) -> $target {
                    let $value = self;
                    $rule
                }
            }
        )*
    };
}
float_to_float! {
    f32 => f32, value: value;
    f64 => f64, value: value;
    Half => Half, value: value;
    f32 => f64, value: f64::from(value);
    f64 => f32, value: double_to_single(value);
    Half => f32, value: half_to_single(value);
    Half => f64, value: f64::from(half_to_single(value));
    f32 => Half, value: single_to_half(value);
    f64 => Half, value: single_to_half(double_to_odd_single(value));
    Brain => Brain, value: value;
    Brain => Half, value: single_to_half(brain_to_single(value));
    Brain => f32, value: brain_to_single(value);
    Brain => f64, value: f64::from(brain_to_single(value));
    Half => Brain, value: single_to_brain(half_to_single(value));
    f32 => Brain, value: single_to_brain(value);
    f64 => Brain, value: single_to_brain(double_to_odd_single(value));
}

/// Rounds to nearest even. Anything beyond the largest single is infinite, even what would round
/// down.
#[inline(always)]
fn double_to_single(value: f64) -> f32 {
    if value.abs() > f64::from(f32::MAX) {
        f32::INFINITY.copysign(value as f32)
    } else {
        value as f32
    }
}

/// Rounds to the neighbour with an odd last bit unless exact, so that rounding once more, to fewer
/// bits, gives what rounding once would have given.
#[inline(always)]
fn double_to_odd_single(value: f64) -> f32 {
    let nearest = value as f32;
    let back = f64::from(nearest);
    let away = back.abs() > value.abs();
    let inexact = back != value;
    f32::from_bits((nearest.to_bits() - u32::from(away)) | u32::from(inexact))
}

#[inline(always)]
fn half_to_single(value: Half) -> f32 {
    const INFINITE: u32 = 0x7C00 << 13;
    let magnitude = u32::from(value.0 & 0x7FFF) << 13;
    let sign = u32::from(value.0 & 0x8000) << 16;
    // The product moves the exponent from the half's bias to the single's and normalises
    // subnormals.
    let scaled = f32::from_bits(magnitude) * f32::from_bits((127 + 112) << 23);
    let special = if magnitude >= INFINITE { 0x7F80_0000 } else { 0 };
    f32::from_bits(scaled.to_bits() | special | sign)
}

/// Rounds to nearest even. Anything beyond the largest half is infinite, even what would round
/// down.
#[inline(always)]
fn single_to_half(value: f32) -> Half {
    const LARGEST: u32 = 0x477F_E000;
    const SMALLEST_NORMAL: u32 = (127 - 14) << 23;
    const ONE_HALF: u32 = 126 << 23;
    let bits = value.to_bits();
    let magnitude = bits & 0x7FFF_FFFF;
    let odd = (magnitude >> 13) & 1;
    let normal = magnitude.wrapping_sub(112 << 23).wrapping_add(0xFFF + odd) >> 13;
    // The last bit of a half's subnormals is the last bit of a single near one half: adding rounds.
    let subnormal =
        (f32::from_bits(magnitude) + f32::from_bits(ONE_HALF)).to_bits().wrapping_sub(ONE_HALF);
    let finite = if magnitude < SMALLEST_NORMAL { subnormal } else { normal };
    let ranged = if magnitude > LARGEST { 0x7C00 } else { finite };
    let quiet = 0x7E00 | ((magnitude >> 13) & 0x3FF);
    let rounded = if magnitude > 0x7F80_0000 { quiet } else { ranged };
    Half((rounded | ((bits >> 16) & 0x8000)) as u16)
}

#[inline(always)]
fn brain_to_single(value: Brain) -> f32 {
    f32::from_bits(u32::from(value.0) << 16)
}

/// Rounds to nearest even. Anything beyond the largest bfloat16 is infinite.
#[inline(always)]
fn single_to_brain(value: f32) -> Brain {
    const LARGEST: u32 = 0x7F7F_0000;
    let bits = value.to_bits();
    let magnitude = bits & 0x7FFF_FFFF;
    let odd = (magnitude >> 16) & 1;
    let finite = magnitude.wrapping_add(0x7FFF + odd) >> 16;
    let ranged = if magnitude > LARGEST { 0x7F80 } else { finite };
    let quiet = 0x7FC0 | (magnitude >> 16);
    let rounded = if magnitude > 0x7F80_0000 { quiet } else { ranged };
    Brain((rounded | ((bits >> 16) & 0x8000)) as u16)
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;

    #[test]
    fn every_half_becomes_the_single_of_the_same_value() {
        for bits in 0..=u16::MAX {
            let (found, expected) = (half_to_single(Half(bits)), f16::from_bits(bits).to_f32());
            assert!(
                found.to_bits() == expected.to_bits() || (found.is_nan() && expected.is_nan()),
                "{bits:#x}"
            );
        }
    }

    #[test]
    fn halves_survive_the_way_through_single_and_double() {
        for bits in 0..=u16::MAX {
            let single: f32 = Half(bits).cast();
            let double: f64 = Half(bits).cast();
            if f16::from_bits(bits).is_nan() {
                assert!(single.is_nan() && double.is_nan());
                continue;
            }
            assert_eq!(<f32 as Cast<Half>>::cast(single).0, bits);
            assert_eq!(<f64 as Cast<Half>>::cast(double).0, bits);
        }
    }

    #[test]
    fn halves_round_to_nearest_even_from_both_sides_of_every_tie() {
        for bits in 0..0x7BFFu16 {
            let low = f64::from(f16::from_bits(bits).to_f32());
            let high = f64::from(f16::from_bits(bits + 1).to_f32());
            let tie = (low + high) / 2.0;
            let even = if bits % 2 == 0 { bits } else { bits + 1 };
            assert_eq!(<f64 as Cast<Half>>::cast(tie).0, even);
            assert_eq!(<f64 as Cast<Half>>::cast(tie.next_down()).0, bits);
            assert_eq!(<f64 as Cast<Half>>::cast(tie.next_up()).0, bits + 1);
            assert_eq!(<f64 as Cast<Half>>::cast(-tie.next_up()).0, 0x8000 | (bits + 1));
            assert_eq!(<f32 as Cast<Half>>::cast(tie as f32).0, even);
            assert_eq!(<f32 as Cast<Half>>::cast((tie as f32).next_down()).0, bits);
            assert_eq!(<f32 as Cast<Half>>::cast((tie as f32).next_up()).0, bits + 1);
        }
    }

    #[test]
    fn what_lies_beyond_the_largest_half_is_infinite() {
        assert_eq!(<f32 as Cast<Half>>::cast(65504.0).0, 0x7BFF);
        assert_eq!(<f32 as Cast<Half>>::cast(65505.0).0, 0x7C00);
        assert_eq!(<f64 as Cast<Half>>::cast(65_504.000_000_1).0, 0x7C00);
        assert_eq!(<f64 as Cast<Half>>::cast(-1e300).0, 0xFC00);
        assert_eq!(<i32 as Cast<Half>>::cast(-65505).0, 0xFC00);
        assert_eq!(<u64 as Cast<Half>>::cast(u64::MAX).0, 0x7C00);
        assert_eq!(<f64 as Cast<Half>>::cast(f64::NAN).0 & 0x7FFF, 0x7E00);
    }
}
