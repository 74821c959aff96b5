//! Distances of integers from the smallest.

use super::{Scaled, Settings};

/// Replaces values by their distances, unless those need all bits.
pub(super) fn scale(settings: &Settings, words: &mut [u64]) -> Scaled {
    // With its sign bit flipped, a signed number sorts as an unsigned one.
    let flip = if settings.signed { 1 << (settings.bits() - 1) } else { 0 };
    let (mut least, mut most) = (u64::MAX, 0);
    for &word in words.iter().filter(|&&word| Some(word) != settings.fill) {
        least = least.min(word ^ flip);
        most = most.max(word ^ flip);
    }
    if least > most {
        (least, most) = (flip, flip);
    }
    let bits = match settings.factor as u32 {
        0 if most - least > settings.mask() - 2 => settings.bits(),
        0 => settings.bits_for(most - least + 1),
        given => given,
    };
    let least = least ^ flip;
    if bits >= settings.bits() {
        return Scaled { bits: settings.bits(), least: 0 };
    }
    let filling = (1u64 << bits) - 1;
    for word in words {
        *word = if Some(*word) == settings.fill { filling } else { word.wrapping_sub(least) };
    }
    // Stored with its sign in all eight bytes.
    let unused = 64 - settings.bits();
    let signed = ((least << unused) as i64 >> unused) as u64;
    Scaled { bits, least: if settings.signed { signed } else { least } }
}
