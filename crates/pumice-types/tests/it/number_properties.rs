//! Numbers: every pair of machine types, and odd layouts, against a naive reference.

use half::f16;
use proptest::prelude::*;
use pumice_types::{ByteOrder, Conversion, Datatype, Float, Integer};

const TYPES: usize = 12;

fn datatype(kind: usize, big: bool) -> Datatype {
    let order = if big { ByteOrder::Big } else { ByteOrder::Little };
    match kind {
        0..=3 => Datatype::Integer(Integer::new(1 << kind, order, true)),
        4..=7 => Datatype::Integer(Integer::new(1 << (kind - 4), order, false)),
        8 => Datatype::Float(Float::half(order)),
        9 => Datatype::Float(Float::single(order)),
        10 => Datatype::Float(Float::bfloat16(order)),
        _ => Datatype::Float(Float::double(order)),
    }
}

#[derive(Debug, Clone, Copy)]
enum Plain {
    Whole(i128),
    Real(f64),
}

/// The value of one element, its bytes given most significant first.
fn naive_load(kind: usize, bytes: &[u8]) -> Plain {
    let word = bytes.iter().fold(0u64, |word, &byte| word << 8 | u64::from(byte));
    match kind {
        0 => Plain::Whole(i128::from(word as i8)),
        1 => Plain::Whole(i128::from(word as i16)),
        2 => Plain::Whole(i128::from(word as i32)),
        3 => Plain::Whole(i128::from(word as i64)),
        4..=7 => Plain::Whole(i128::from(word)),
        8 => Plain::Real(f16::from_bits(word as u16).to_f64()),
        9 => Plain::Real(f64::from(f32::from_bits(word as u32))),
        10 => Plain::Real(f64::from(f32::from_bits((word as u32) << 16))),
        _ => Plain::Real(f64::from_bits(word)),
    }
}

/// Bytes of a value, most significant first; `None` for NaN.
fn naive_store(kind: usize, value: Plain) -> Option<Vec<u8>> {
    if kind < 8 {
        let bits = 8 << (kind % 4);
        let (low, high) = if kind < 4 {
            (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
        } else {
            (0, (1i128 << bits) - 1)
        };
        let whole = match value {
            Plain::Whole(whole) => whole,
            Plain::Real(real) => real as i128,
        };
        let bytes = whole.clamp(low, high).to_be_bytes();
        return Some(bytes[16 - bits / 8..].to_vec());
    }
    if matches!(value, Plain::Real(real) if real.is_nan()) {
        return None;
    }
    Some(match (kind, value) {
        (10, value) => naive_brain(value).to_be_bytes().to_vec(),
        (8, Plain::Whole(whole)) => naive_half(whole as f64).to_be_bytes().to_vec(),
        (8, Plain::Real(real)) => naive_half(real).to_be_bytes().to_vec(),
        (9, Plain::Whole(whole)) => (whole as f32).to_be_bytes().to_vec(),
        (9, Plain::Real(real)) if real.abs() > f64::from(f32::MAX) => {
            f32::INFINITY.copysign(real as f32).to_be_bytes().to_vec()
        }
        (9, Plain::Real(real)) => (real as f32).to_be_bytes().to_vec(),
        (_, Plain::Whole(whole)) => (whole as f64).to_be_bytes().to_vec(),
        (_, Plain::Real(real)) => real.to_be_bytes().to_vec(),
    })
}

/// The nearest half, found by search.
fn naive_half(value: f64) -> u16 {
    let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
    let magnitude = value.abs();
    if magnitude > 65504.0 {
        return sign | 0x7C00;
    }
    let halves: Vec<u16> = (0..=0x7BFF).collect();
    let above = halves.partition_point(|&bits| f16::from_bits(bits).to_f64() < magnitude) as u16;
    let distance = |bits: u16| (f16::from_bits(bits).to_f64() - magnitude).abs();
    let below = above.saturating_sub(1);
    let nearest = if distance(below) < distance(above)
        || (distance(below) == distance(above) && below.is_multiple_of(2))
    {
        below
    } else {
        above
    };
    sign | nearest
}

/// The nearest bfloat16: integers by division, other numbers by search.
fn naive_brain(value: Plain) -> u16 {
    let real = match value {
        Plain::Real(real) => real,
        Plain::Whole(whole) => {
            let unit = 1i128 << (128 - whole.unsigned_abs().leading_zeros()).saturating_sub(8);
            let (mut units, rest) = (whole.abs() / unit, whole.abs() % unit * 2);
            units += i128::from(rest > unit || rest == unit && units % 2 == 1);
            (units * unit * whole.signum()) as f64
        }
    };
    let sign = if real.is_sign_negative() { 0x8000 } else { 0 };
    let value_of = |bits: u16| f64::from(f32::from_bits(u32::from(bits) << 16));
    if real.abs() > value_of(0x7F7F) {
        return sign | 0x7F80;
    }
    let mut above = (0u16, 0x7F7F);
    while above.0 < above.1 {
        let middle = above.0.midpoint(above.1);
        above =
            if value_of(middle) < real.abs() { (middle + 1, above.1) } else { (above.0, middle) };
    }
    let (above, below) = (above.0, above.0.saturating_sub(1));
    let (up, down) = (value_of(above) - real.abs(), real.abs() - value_of(below));
    let lower = down < up || (down == up && below.is_multiple_of(2));
    sign | if lower { below } else { above }
}

/// Words that are often at the edge of something.
fn word() -> impl Strategy<Value = u64> {
    let edges = [f64::NAN, f64::INFINITY, 1e-40, 2_147_483_647.5, -0.0, 65_504.5, 3.5e38];
    let floats = prop_oneof![-3e5f64..3e5, prop::sample::select(edges.to_vec())];
    let powers = (0u32..64, 0u64..2).prop_map(|(bit, less)| (1u64 << bit).wrapping_sub(less));
    prop_oneof![
        4 => any::<u64>(),
        1 => powers,
        2 => floats.clone().prop_map(f64::to_bits),
        2 => floats.clone().prop_map(|value| u64::from((value as f32).to_bits())),
        1 => floats.prop_map(|value| u64::from(f16::from_f64(value).to_bits())),
    ]
}

fn is_nan(kind: usize, bytes: &[u8]) -> bool {
    matches!(naive_load(kind, bytes), Plain::Real(real) if real.is_nan())
}

fn ordered(most_significant_first: &[u8], big: bool) -> Vec<u8> {
    let mut bytes = most_significant_first.to_vec();
    if !big {
        bytes.reverse();
    }
    bytes
}

fn convert(from: &Datatype, to: &Datatype, source: &[u8]) -> Vec<u8> {
    let conversion = Conversion::new(from, to).unwrap();
    // One byte in front keeps both slices off their alignment.
    let source = [&[0], source].concat();
    let mut target = vec![0xA5; 1 + (source.len() - 1) / from.size() * to.size()];
    conversion.convert(&source[1..], &mut target[1..]).unwrap();
    target.split_off(1)
}

/// A number's machine type and whether it is big-endian.
type Kind = (usize, bool);

fn check_pair(words: &[u64], from: Kind, to: Kind) -> Result<(), TestCaseError> {
    let (source_type, target_type) = (datatype(from.0, from.1), datatype(to.0, to.1));
    let element = |word: &u64| word.to_be_bytes()[8 - source_type.size()..].to_vec();
    let source: Vec<u8> = words.iter().flat_map(|word| ordered(&element(word), from.1)).collect();
    let target = convert(&source_type, &target_type, &source);
    for (word, found) in words.iter().zip(target.chunks(target_type.size())) {
        let found = ordered(found, to.1);
        if from.0 == to.0 {
            prop_assert_eq!(found, element(word));
            continue;
        }
        match naive_store(to.0, naive_load(from.0, &element(word))) {
            Some(expected) => prop_assert_eq!(found, expected, "{:x} of {}", word, source_type),
            None => prop_assert!(is_nan(to.0, &found)),
        }
    }
    Ok(())
}

fn check_odd_integer(word: u64, layout: Integer, to: usize) -> Result<(), TestCaseError> {
    let precision = u32::from(layout.precision);
    let field = i128::from(word >> layout.bit_offset) & ((1i128 << precision) - 1);
    let negative = layout.signed && field >> (precision - 1) == 1;
    let value = if negative { field - (1i128 << precision) } else { field };
    let element = &word.to_be_bytes()[8 - layout.size as usize..];
    let source = ordered(element, layout.order == ByteOrder::Big);
    let found = convert(&Datatype::Integer(layout), &datatype(to, true), &source);
    prop_assert_eq!(Some(found), naive_store(to, Plain::Whole(value)));
    Ok(())
}

/// A single that lies `shift` bits above the bottom of eight bytes.
fn moved_single(shift: u8) -> Datatype {
    Datatype::Float(Float {
        bit_offset: shift.into(),
        precision: 32,
        sign_location: 31 + shift,
        exponent_location: 23 + shift,
        mantissa_location: shift,
        ..Float::ieee(8, ByteOrder::Big, 8, 23)
    })
}

fn check_moved_single(words: &[u32], to: usize, shift: u8) -> Result<(), TestCaseError> {
    let target_type = datatype(to, true);
    let moved: Vec<u8> =
        words.iter().flat_map(|word| (u64::from(*word) << shift).to_be_bytes()).collect();
    let plain: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    let found = convert(&moved_single(shift), &target_type, &moved);
    let expected = convert(&Datatype::f32_be(), &target_type, &plain);
    let size = target_type.size();
    for (found, expected) in found.chunks(size).zip(expected.chunks(size)) {
        let same = found == expected || is_nan(to, found) && is_nan(to, expected);
        prop_assert!(same, "{:x?} {:x?}", found, expected);
    }
    Ok(())
}

fn check_to_moved_single(words: &[u64], from: usize, shift: u8) -> Result<(), TestCaseError> {
    let source_type = datatype(from, true);
    let size = source_type.size();
    let source: Vec<u8> =
        words.iter().flat_map(|word| word.to_be_bytes()[8 - size..].to_vec()).collect();
    let found = convert(&source_type, &moved_single(shift), &source);
    let expected = convert(&source_type, &Datatype::f32_be(), &source);
    for (found, expected) in found.chunks(8).zip(expected.chunks(4)) {
        let found = (u64::from_be_bytes(found.try_into().unwrap()) >> shift).to_be_bytes();
        let same = found[4..] == *expected || is_nan(9, &found[4..]) && is_nan(9, expected);
        prop_assert!(same, "{:x?} {:x?}", found, expected);
    }
    Ok(())
}

prop_compose! {
    fn odd_integer()(
        size in 1u32..=8, big: bool, signed: bool, offset in 0u16..64, precision in 0u16..64,
    ) -> Integer {
        let bits = u16::try_from(size * 8).unwrap();
        let precision = 1 + precision % bits;
        let bit_offset = offset % (bits - precision + 1);
        let order = if big { ByteOrder::Big } else { ByteOrder::Little };
        Integer { precision, bit_offset, ..Integer::new(size, order, signed) }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_pair_agrees_with_the_naive_reference(
        words in prop::collection::vec(word(), 1..40),
        from in (0..TYPES, any::<bool>()), to in (0..TYPES, any::<bool>()), repeat in 1usize..20,
    ) {
        check_pair(&words.repeat(repeat), from, to)?;
    }

    #[test]
    fn odd_integers_agree_with_the_naive_reference(
        word: u64, layout in odd_integer(), to in 0..TYPES,
    ) {
        check_odd_integer(word, layout, to)?;
    }

    #[test]
    fn odd_floats_agree_with_machine_floats(
        words in prop::collection::vec(word(), 1..20), kind in 0..TYPES, shift in 0u8..=32,
    ) {
        let singles: Vec<u32> = words.iter().map(|word| *word as u32).collect();
        check_moved_single(&singles, kind, shift)?;
        check_to_moved_single(&words, kind, shift)?;
    }
}
