//! Numbers of any layout, by bit arithmetic: odd sizes and precisions, VAX, x87 and quad
//! floats.
//!
//! Each element is taken apart into sign, magnitude and exponent, and put together in the target's
//! layout. This is the slow path; numbers that machines have go through `number`. Elements are of
//! at most 16 bytes, but for integers to convert from: of larger ones, the bytes with their bits are looked at.

use super::Number;
use crate::model::{BitPadding, ByteOrder, Float, Integer, MantissaNormalization};
use std::ops::Range;

/// Largest element that is converted, in bytes.
const LARGEST: usize = 16;

/// Two numbers of any layout.
#[derive(Debug, Clone)]
pub(super) struct BitsKernel {
    /// Bytes of a source element, and those of them that are used.
    element: usize,
    window: Range<usize>,
    /// The number in these bytes.
    source: Number,
    target: Number,
}

/// A number taken apart.
#[derive(Debug, Clone, Copy)]
struct Parts {
    negative: bool,
    value: Value,
}

#[derive(Debug, Clone, Copy)]
enum Value {
    /// `magnitude * 2^exponent`; a magnitude of 0 is zero.
    Finite {
        magnitude: u128,
        exponent: i64,
    },
    Infinite,
    NotANumber,
}

impl BitsKernel {
    /// `None` when one of the numbers is larger than this kernel can hold.
    pub(super) fn choose(from: &Number, to: &Number) -> Option<Self> {
        let (window, source) = windowed(from)?;
        (is_supported(&source) && is_supported(to)).then(|| Self {
            element: from.size(),
            window,
            source,
            target: to.clone(),
        })
    }

    pub(super) fn run(&self, source: &[u8], target: &mut [u8]) {
        let elements = source.chunks_exact(self.element);
        for (from, to) in elements.zip(target.chunks_exact_mut(self.target.size())) {
            let word = load(&from[self.window.clone()], self.source.order());
            let parts = match &self.source {
                Number::Integer(integer) => unpack_integer(integer, word),
                Number::Float(float) => unpack_float(float, word),
            };
            let word = match &self.target {
                Number::Integer(integer) => pack_integer(integer, parts),
                Number::Float(float) => pack_float(float, parts),
            };
            store(word, to, self.target.order());
        }
    }
}

/// The value of one integer element of at most 8 bytes.
pub(super) fn integer_value(integer: &Integer, bytes: &[u8]) -> Option<i128> {
    let fits =
        bytes.len() <= 8 && u64::from(integer.bit_offset) + u64::from(integer.precision) <= 64;
    if !fits {
        return None;
    }
    match unpack_integer(integer, load(bytes, integer.order)) {
        Parts { negative, value: Value::Finite { magnitude, .. } } => {
            let magnitude = i128::try_from(magnitude).ok()?;
            Some(if negative { -magnitude } else { magnitude })
        }
        _ => None,
    }
}

/// The bytes of an element that are used, and the number in them: all bytes, except of an integer
/// of more than [`LARGEST`] bytes, where they are those with its bits.
fn windowed(number: &Number) -> Option<(Range<usize>, Number)> {
    let size = number.size();
    let Number::Integer(integer) = number else { return Some((0..size, number.clone())) };
    if size <= LARGEST {
        return Some((0..size, number.clone()));
    }
    let low = (usize::from(integer.bit_offset) / 8).min(size - LARGEST);
    let bit_offset = usize::from(integer.bit_offset) - 8 * low;
    if bit_offset + usize::from(integer.precision) > 8 * LARGEST {
        return None;
    }
    let start = match integer.order {
        ByteOrder::Little => low,
        ByteOrder::Big => size - LARGEST - low,
        ByteOrder::Vax => return None,
    };
    let (size, bit_offset) = (LARGEST as u32, u16::try_from(bit_offset).ok()?);
    let inner = Integer { size, bit_offset, ..integer.clone() };
    Some((start..start + LARGEST, Number::Integer(inner)))
}

fn is_supported(number: &Number) -> bool {
    let fits = number.size() <= LARGEST;
    match number {
        Number::Integer(_) => fits,
        // Rounding up a mantissa with an implied bit must fit 128 bits, and exponents must not
        // overflow.
        Number::Float(float) => fits && float.mantissa_size < 127 && float.exponent_size < 32,
    }
}

/// The bits of an element as one word.
fn load(bytes: &[u8], order: ByteOrder) -> u128 {
    let mut word = [0u8; LARGEST];
    let length = bytes.len().min(LARGEST);
    word[..length].copy_from_slice(&bytes[..length]);
    reorder(&mut word[..length], order);
    u128::from_le_bytes(word)
}

fn store(word: u128, bytes: &mut [u8], order: ByteOrder) {
    let length = bytes.len().min(LARGEST);
    bytes[..length].copy_from_slice(&word.to_le_bytes()[..length]);
    reorder(bytes, order);
}

/// Converts between the given byte order and little-endian; both directions are the same step.
fn reorder(bytes: &mut [u8], order: ByteOrder) {
    match order {
        ByteOrder::Little => {}
        ByteOrder::Big => bytes.reverse(),
        ByteOrder::Vax => {
            bytes.reverse();
            bytes.chunks_exact_mut(2).for_each(<[u8]>::reverse);
        }
    }
}

/// The lowest `count` bits.
fn mask(count: u32) -> u128 {
    if count >= 128 { u128::MAX } else { (1 << count) - 1 }
}

/// `count` bits of `word` from bit `from`.
fn field(word: u128, from: u32, count: u32) -> u128 {
    word.checked_shr(from).unwrap_or(0) & mask(count)
}

/// The bits of `value` put at bit `from`.
fn placed(value: u128, from: u32) -> u128 {
    value.checked_shl(from).unwrap_or(0)
}

fn padding_bits(padding: BitPadding, from: u32, count: u32) -> u128 {
    match padding {
        BitPadding::Zero => 0,
        BitPadding::One => placed(mask(count), from),
    }
}

fn unpack_integer(integer: &Integer, word: u128) -> Parts {
    let precision = u32::from(integer.precision);
    let bits = field(word, u32::from(integer.bit_offset), precision);
    let negative = integer.signed && field(bits, precision.saturating_sub(1), 1) == 1;
    let magnitude = if negative { bits.wrapping_neg() & mask(precision) } else { bits };
    Parts { negative, value: Value::Finite { magnitude, exponent: 0 } }
}

/// Truncates toward zero and clamps to the range; NaN becomes 0.
fn pack_integer(integer: &Integer, parts: Parts) -> u128 {
    let precision = u32::from(integer.precision);
    let limit = match (integer.signed, parts.negative) {
        (false, false) => mask(precision),
        (false, true) => 0,
        (true, false) => mask(precision.saturating_sub(1)),
        (true, true) => placed(1, precision.saturating_sub(1)),
    };
    let magnitude = match parts.value {
        Value::Finite { magnitude, exponent } => scaled(magnitude, exponent).min(limit),
        Value::Infinite => limit,
        Value::NotANumber => 0,
    };
    let bits = if parts.negative { magnitude.wrapping_neg() } else { magnitude } & mask(precision);
    let offset = u32::from(integer.bit_offset);
    let end = offset + precision;
    placed(bits, offset)
        | padding_bits(integer.low_padding, 0, offset)
        | padding_bits(integer.high_padding, end, 128 - end.min(128))
}

/// `magnitude * 2^exponent`, truncated; saturates.
fn scaled(magnitude: u128, exponent: i64) -> u128 {
    let shift = u32::try_from(exponent.unsigned_abs()).unwrap_or(u32::MAX);
    if magnitude == 0 {
        0
    } else if exponent < 0 {
        magnitude.checked_shr(shift).unwrap_or(0)
    } else if shift > magnitude.leading_zeros() {
        u128::MAX
    } else {
        magnitude.checked_shl(shift).unwrap_or(u128::MAX)
    }
}

/// Bits of the mantissa with its leading bit, and whether that bit is stored.
fn significand(float: &Float) -> (u32, bool) {
    match float.normalization {
        MantissaNormalization::Implied => (u32::from(float.mantissa_size) + 1, false),
        MantissaNormalization::None | MantissaNormalization::MsbSet => {
            (u32::from(float.mantissa_size), true)
        }
    }
}

fn unpack_float(float: &Float, word: u128) -> Parts {
    let exponent = field(word, u32::from(float.exponent_location), u32::from(float.exponent_size));
    let mantissa = field(word, u32::from(float.mantissa_location), u32::from(float.mantissa_size));
    let negative = field(word, u32::from(float.sign_location), 1) == 1;
    let (precision, stored) = significand(float);
    let leading = placed(1, precision - 1);
    if exponent == mask(u32::from(float.exponent_size)) {
        let infinite = mantissa & !leading == 0;
        return Parts {
            negative,
            value: if infinite { Value::Infinite } else { Value::NotANumber },
        };
    }
    let implied = if stored || exponent == 0 { 0 } else { leading };
    // An exponent of 0 means the same scale as 1, without the implied bit.
    let exponent =
        (exponent as i64).max(1) - i64::from(float.exponent_bias) - i64::from(precision - 1);
    Parts { negative, value: Value::Finite { magnitude: mantissa | implied, exponent } }
}

/// Rounds to nearest even; anything beyond the largest finite number is infinite.
fn pack_float(float: &Float, parts: Parts) -> u128 {
    let (precision, _) = significand(float);
    let largest = mask(u32::from(float.exponent_size));
    let leading = placed(1, precision - 1);
    let (exponent, mantissa) = match parts.value {
        Value::Finite { magnitude: 0, .. } => (0, 0),
        Value::Finite { magnitude, exponent } => {
            round(float, magnitude, exponent).unwrap_or((largest, leading))
        }
        Value::Infinite => (largest, leading),
        Value::NotANumber => (largest, leading | leading >> 1),
    };
    // The mask drops the leading bit where it is implied.
    let mantissa = mantissa & mask(u32::from(float.mantissa_size));
    let used = placed(mask(u32::from(float.exponent_size)), u32::from(float.exponent_location))
        | placed(mask(u32::from(float.mantissa_size)), u32::from(float.mantissa_location))
        | placed(1, u32::from(float.sign_location));
    let padding = float_padding(float) & !used;
    placed(exponent, u32::from(float.exponent_location))
        | placed(mantissa, u32::from(float.mantissa_location))
        | placed(u128::from(parts.negative), u32::from(float.sign_location))
        | padding
}

/// The padding of a float, where none of its parts lies over it.
fn float_padding(float: &Float) -> u128 {
    let offset = u32::from(float.bit_offset);
    let precision = u32::from(float.precision);
    let end = offset + precision;
    padding_bits(float.low_padding, 0, offset)
        | padding_bits(float.internal_padding, offset, precision)
        | padding_bits(float.high_padding, end, 128 - end.min(128))
}

/// The stored exponent and the mantissa with its leading bit; `None` when the number is too large.
fn round(float: &Float, magnitude: u128, exponent: i64) -> Option<(u128, u128)> {
    let (precision, _) = significand(float);
    let bias = i64::from(float.exponent_bias);
    let top = i64::from(127 - magnitude.leading_zeros());
    // Scale of the last bit kept: fixed for subnormal numbers, else below the leading bit.
    let last = (exponent + top).max(1 - bias) - i64::from(precision - 1);
    let dropped = last - exponent;
    let kept = scaled(magnitude, -dropped);
    let rest =
        if dropped > 0 { magnitude & mask(u32::try_from(dropped).unwrap_or(128)) } else { 0 };
    let up = dropped > 0 && rounds_up(kept, rest, dropped);
    let mut mantissa = kept + u128::from(up);
    let mut last = last;
    if mantissa >> precision != 0 {
        mantissa >>= 1;
        last += 1;
    }
    let normal = mantissa >> (precision - 1) != 0;
    let stored = if normal { last + i64::from(precision - 1) + bias } else { 0 };
    let stored = u128::try_from(stored).ok()?;
    let largest = mask(u32::from(float.exponent_size));
    // A value that rounds down to the largest finite number lies beyond it.
    let beyond = !up && rest != 0 && stored + 1 == largest && kept == mask(precision);
    (stored < largest && !beyond).then_some((stored, mantissa))
}

/// Whether the bits dropped are more than half of the last bit kept, or half with the last bit odd.
fn rounds_up(kept: u128, rest: u128, dropped: i64) -> bool {
    let Some(half) = u32::try_from(dropped - 1).ok().and_then(|shift| 1u128.checked_shl(shift))
    else {
        return false;
    };
    rest > half || (rest == half && kept & 1 == 1)
}
