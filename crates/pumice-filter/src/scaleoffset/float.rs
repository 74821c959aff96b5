//! Distances of floats from the smallest after scaling by a power of ten, computed in the floats'
//! own precision and in libhdf5's order of operations, so that both lose the same digits.

use super::{NAME, Scaled, Settings};
use crate::FilterError;

/// Replaces values by their scaled distances, unless those need all bits.
pub(super) fn scale(settings: &Settings, words: &mut [u64]) -> Result<Scaled, FilterError> {
    if settings.size == 4 {
        scale_as::<f32>(settings, words)
    } else {
        scale_as::<f64>(settings, words)
    }
}

/// Turns the distances of a stream back into values.
pub(super) fn unscale(
    settings: &Settings,
    scaled: &Scaled,
    stream: &[u8],
    out: &mut [u8],
) -> Result<(), FilterError> {
    if settings.size == 4 {
        unscale_as::<f32>(settings, scaled, stream, out)
    } else {
        unscale_as::<f64>(settings, scaled, stream, out)
    }
}

/// The arithmetic of one precision.
trait Number: Copy + PartialOrd {
    fn from_bits(bits: u64) -> Self;
    fn to_bits(self) -> u64;
    fn ten_to(power: i32) -> Self;
    fn is_finite(self) -> bool;
    fn is_near(self, other: Self, distance: Self) -> bool;
    /// `self * scale - least * scale`, rounded; halves away from zero.
    fn distance(self, least: Self, scale: Self) -> f64;
    fn value(distance: u64, least: Self, scale: Self) -> Self;
}

macro_rules! number {
    ($float:ident $bits:ident $signed:ident) => {
        impl Number for $float {
            fn from_bits(bits: u64) -> Self {
                $float::from_bits(bits as $bits)
            }

            fn to_bits(self) -> u64 {
                u64::from(self.to_bits())
            }

            fn ten_to(power: i32) -> Self {
                $float::powf(10.0, power as $float)
            }

            fn is_finite(self) -> bool {
                self.is_finite()
            }

            fn is_near(self, other: Self, distance: Self) -> bool {
                (self - other).abs() < distance
            }

            fn distance(self, least: Self, scale: Self) -> f64 {
                f64::from((self * scale - least * scale).round())
            }

            fn value(distance: u64, least: Self, scale: Self) -> Self {
                distance as $signed as $float / scale + least
            }
        }
    };
}

number!(f32 u32 i32);
number!(f64 u64 i64);

fn scale_as<N: Number>(settings: &Settings, words: &mut [u64]) -> Result<Scaled, FilterError> {
    let scale = N::ten_to(settings.factor);
    let fill = settings.fill.map(|bits| (N::from_bits(bits), N::ten_to(-settings.factor)));
    let is_fill = |value: N| fill.is_some_and(|(fill, near)| value.is_near(fill, near));
    let mut ends: Option<(N, N)> = None;
    for value in words.iter().map(|&word| N::from_bits(word)) {
        if !value.is_finite() {
            return Err(FilterError::encode(NAME, "a value that is not finite cannot be scaled"));
        }
        if !is_fill(value) {
            let (least, most) = ends.unwrap_or((value, value));
            ends = Some((
                if value < least { value } else { least },
                if value > most { value } else { most },
            ));
        }
    }
    let zero = N::from_bits(0);
    let (least, most) = ends.unwrap_or((zero, zero));
    let span = most.distance(least, scale);
    let full = Scaled { bits: settings.bits(), least: 0 };
    // Scaling may overflow: infinities and their difference, which is not a number.
    if span.is_nan() || span > 2f64.powi(settings.bits() as i32 - 1) {
        return Ok(full);
    }
    let bits = settings.bits_for((span as u64).saturating_add(1));
    if bits >= settings.bits() {
        return Ok(full);
    }
    let filling = (1u64 << bits) - 1;
    for word in words {
        let value = N::from_bits(*word);
        *word = if is_fill(value) { filling } else { value.distance(least, scale) as i64 as u64 };
    }
    Ok(Scaled { bits, least: least.to_bits() })
}

fn unscale_as<N: Number>(
    settings: &Settings,
    scaled: &Scaled,
    stream: &[u8],
    out: &mut [u8],
) -> Result<(), FilterError> {
    let (scale, least) = (N::ten_to(settings.factor), N::from_bits(scaled.least));
    settings.unpack(scaled, stream, out, |distance| N::value(distance, least, scale).to_bits())
}
