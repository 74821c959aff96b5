//! Numbers: every rule at its edges.

use half::f16;
use pumice_types::{
    BitPadding, Bitfield, ByteOrder, Complex, Conversion, Datatype, Element, Float, Integer,
    MantissaNormalization,
};

/// Converts native elements to native elements.
fn cast<S: Element, D: Element>(values: &[S]) -> Vec<D> {
    let mut target = vec![D::zeroed(); values.len()];
    let conversion = Conversion::new(&S::datatype(), &D::datatype()).unwrap();
    conversion
        .convert(bytemuck::cast_slice(values), bytemuck::cast_slice_mut(&mut target))
        .unwrap();
    target
}

fn convert(from: &Datatype, to: &Datatype, source: &[u8]) -> Vec<u8> {
    let conversion = Conversion::new(from, to).unwrap();
    let mut target = vec![0xA5; source.len() / from.size() * to.size()];
    conversion.convert(source, &mut target).unwrap();
    target
}

#[test]
fn integers_outside_the_range_become_its_nearest_end() {
    assert_eq!(
        cast::<i64, i32>(&[i64::MIN, -1, 0, 1 << 31, i64::MAX]),
        [i32::MIN, -1, 0, i32::MAX, i32::MAX]
    );
    assert_eq!(cast::<i64, u32>(&[i64::MIN, -1, 5, 1 << 32]), [0, 0, 5, u32::MAX]);
    assert_eq!(cast::<u64, i64>(&[u64::MAX, 1 << 63, 7]), [i64::MAX, i64::MAX, 7]);
    assert_eq!(cast::<i32, u8>(&[-1, 0, 255, 256, i32::MIN]), [0, 0, 255, 255, 0]);
    assert_eq!(cast::<u8, i8>(&[0, 127, 128, 255]), [0, 127, 127, 127]);
    assert_eq!(cast::<i8, u64>(&[-128, -1, 0, 127]), [0, 0, 0, 127]);
    assert_eq!(cast::<i8, i64>(&[-128, 127]), [-128, 127]);
}

#[test]
fn floats_truncate_toward_zero_and_clamp_as_integers() {
    let values = [-0.9, 0.9, -1.5, 2.999, 1e30, -1e30, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    let ends = (i32::MAX, i32::MIN);
    assert_eq!(cast::<f64, i32>(&values), [0, 0, -1, 2, ends.0, ends.1, ends.0, ends.1, 0]);
    assert_eq!(cast::<f64, u8>(&values), [0, 0, 0, 2, 255, 0, 255, 0, 0]);
    assert_eq!(cast::<f32, u64>(&[-3.0, f32::MAX, f32::NAN, 1.9]), [0, u64::MAX, 0, 1]);
    assert_eq!(cast::<f32, i64>(&[9.3e18, -9.3e18]), [i64::MAX, i64::MIN]);
    let halves = [f16::MAX, f16::MIN, f16::NAN, f16::INFINITY, f16::from_f32(-2.5)];
    assert_eq!(cast::<f16, i16>(&halves), [i16::MAX, i16::MIN, 0, i16::MAX, -2]);
}

#[test]
fn integers_round_to_nearest_even_as_floats() {
    assert_eq!(cast::<i32, f32>(&[(1 << 24) + 1, (1 << 24) + 3]), [16_777_216.0, 16_777_220.0]);
    assert_eq!(
        cast::<u64, f64>(&[u64::MAX, (1 << 53) + 1]),
        [18_446_744_073_709_551_616.0, 9_007_199_254_740_992.0]
    );
    assert_eq!(cast::<i32, f64>(&[i32::MIN, i32::MAX]), [-2_147_483_648.0, 2_147_483_647.0]);
    assert_eq!(
        cast::<i32, f16>(&[2049, 2051, 65504, 65505, -70000]).map_bits(),
        [0x6800, 0x6802, 0x7BFF, 0x7C00, 0xFC00]
    );
}

trait MapBits {
    fn map_bits(self) -> Vec<u16>;
}

impl MapBits for Vec<f16> {
    fn map_bits(self) -> Vec<u16> {
        self.into_iter().map(f16::to_bits).collect()
    }
}

#[test]
fn doubles_beyond_the_largest_single_are_infinite() {
    let largest = f64::from(f32::MAX);
    assert_eq!(cast::<f64, f32>(&[largest, -largest]), [f32::MAX, f32::MIN]);
    // The nearest single would be the largest one; libhdf5 gives infinity all the same.
    let beyond = largest.next_up();
    let infinite = [f32::INFINITY, f32::NEG_INFINITY, f32::INFINITY];
    assert_eq!(cast::<f64, f32>(&[beyond, -1e300, f64::INFINITY]), infinite);
    assert_eq!(cast::<f64, f32>(&[-beyond]), [f32::NEG_INFINITY]);
}

#[test]
fn subnormals_zeros_and_nan_keep_their_meaning() {
    let smallest = f32::from_bits(1);
    assert_eq!(cast::<f32, f64>(&[smallest]), [f64::from(smallest)]);
    assert_eq!(cast::<f64, f32>(&[f64::from(smallest), 5e-324]), [smallest, 0.0]);
    assert_eq!(cast::<f64, f32>(&[-0.0])[0].to_bits(), 0x8000_0000);
    assert!(cast::<f64, f32>(&[f64::NAN])[0].is_nan());
    assert!(cast::<f32, f64>(&[f32::NAN])[0].is_nan());
    assert_eq!(cast::<f16, f64>(&[f16::from_bits(1)]), [2f64.powi(-24)]);
    assert_eq!(
        cast::<f64, f16>(&[2f64.powi(-24), 2f64.powi(-25), -2f64.powi(-25) * 1.001]).map_bits(),
        [1, 0, 0x8001]
    );
}

#[test]
fn single_bytes_have_no_order() {
    let big = Datatype::Integer(Integer::new(1, ByteOrder::Big, true));
    assert!(Conversion::new(&big, &Datatype::i8()).unwrap().is_noop());
    assert!(!Conversion::new(&big, &Datatype::u8()).unwrap().is_noop());
}

#[test]
fn odd_sizes_are_swapped_and_widened() {
    let little = Datatype::Integer(Integer::new(3, ByteOrder::Little, true));
    let big = Datatype::Integer(Integer::new(3, ByteOrder::Big, true));
    assert_eq!(convert(&little, &big, &[1, 2, 3, 4, 5, 6]), [3, 2, 1, 6, 5, 4]);
    assert_eq!(convert(&little, &Datatype::i32_le(), &[0xFE, 0xFF, 0xFF]), (-2i32).to_le_bytes());
    let clamped = convert(&Datatype::i32_le(), &big, &i32::MAX.to_le_bytes());
    assert_eq!(clamped, [0x7F, 0xFF, 0xFF]);
}

#[test]
fn precision_and_offset_are_kept_with_their_padding() {
    let narrow = Integer {
        bit_offset: 3,
        precision: 7,
        low_padding: BitPadding::One,
        high_padding: BitPadding::One,
        ..Integer::new(2, ByteOrder::Little, true)
    };
    let narrow = Datatype::Integer(narrow);
    let stored = convert(&Datatype::i32_le(), &narrow, &(-5i32).to_le_bytes());
    let expected = 0b1111_1100_0000_0111u16 | ((-5i8 as u8 as u16 & 0x7F) << 3);
    assert_eq!(stored, expected.to_le_bytes());
    assert_eq!(convert(&narrow, &Datatype::i32_le(), &stored), (-5i32).to_le_bytes());
    assert_eq!(convert(&narrow, &Datatype::f64_be(), &stored), (-5f64).to_be_bytes());
    let clamped = convert(&Datatype::i32_le(), &narrow, &1000i32.to_le_bytes());
    assert_eq!(convert(&narrow, &Datatype::u8(), &clamped), [63]);
}

#[test]
fn bitfields_behave_as_unsigned_integers() {
    let little = Datatype::Bitfield(Bitfield::new(2, ByteOrder::Little));
    let big = Datatype::Bitfield(Bitfield::new(2, ByteOrder::Big));
    let byte = Datatype::Bitfield(Bitfield::new(1, ByteOrder::Little));
    assert_eq!(convert(&little, &big, &[1, 2]), [2, 1]);
    assert_eq!(convert(&little, &byte, &[0xF0, 0x00, 0x01, 0x01]), [0xF0, 0xFF]);
    assert!(Conversion::new(&little, &Datatype::u16_le()).is_err());
}

fn x87() -> Datatype {
    Datatype::Float(Float {
        precision: 80,
        normalization: MantissaNormalization::None,
        sign_location: 79,
        exponent_location: 64,
        ..Float::ieee(16, ByteOrder::Little, 15, 64)
    })
}

#[test]
fn extended_floats_hold_every_double() {
    let one: [u8; 16] = (0x3FFF_8000_0000_0000_0000u128).to_le_bytes();
    assert_eq!(convert(&Datatype::f64_le(), &x87(), &1f64.to_le_bytes()), one);
    let values =
        [0.0, -0.0, 1.0, -1.5, f64::MAX, f64::MIN_POSITIVE, 5e-324, f64::INFINITY, 1.0 / 3.0];
    for value in values {
        let wide = convert(&Datatype::f64_le(), &x87(), &value.to_le_bytes());
        assert_eq!(convert(&x87(), &Datatype::f64_le(), &wide), value.to_le_bytes(), "{value}");
    }
    let nan = convert(&Datatype::f64_le(), &x87(), &f64::NAN.to_le_bytes());
    let back = convert(&x87(), &Datatype::f64_le(), &nan);
    assert!(f64::from_le_bytes(back.try_into().unwrap()).is_nan());
}

#[test]
fn quad_floats_hold_every_integer() {
    let quad = Datatype::Float(Float::ieee(16, ByteOrder::Big, 15, 112));
    for value in [i64::MIN, -1, 0, 1, 123_456_789, i64::MAX] {
        let wide = convert(&Datatype::i64_le(), &quad, &value.to_le_bytes());
        assert_eq!(convert(&quad, &Datatype::i64_le(), &wide), value.to_le_bytes());
    }
}

#[test]
fn odd_floats_round_up_into_the_largest_exponent() {
    let wide = Datatype::Float(Float { precision: 32, ..Float::ieee(8, ByteOrder::Little, 8, 23) });
    let halves = [(32_765.453, 0x7800u16), (65_503.9, 0x7BFF), (65_504.1, 0x7C00), (1e6, 0x7C00)];
    for (value, expected) in halves {
        let source = u64::from(f32::to_bits(value)).to_le_bytes();
        assert_eq!(convert(&wide, &Datatype::f16_le(), &source), expected.to_le_bytes(), "{value}");
    }
}

#[test]
fn vax_floats_have_swapped_words_and_a_larger_bias() {
    let vax = Datatype::Float(Float { exponent_bias: 0x81, ..Float::single(ByteOrder::Vax) });
    assert_eq!(convert(&vax, &Datatype::f32_le(), &[0x80, 0x40, 0, 0]), 1f32.to_le_bytes());
    assert_eq!(convert(&Datatype::f32_le(), &vax, &(-2.5f32).to_le_bytes()), [0x20, 0xC1, 0, 0]);
}

#[test]
fn brain_floats_are_the_upper_half_of_singles() {
    let value = f32::from_bits(0x4049_0000);
    assert_eq!(
        convert(&Datatype::bf16_le(), &Datatype::f32_le(), &[0x49, 0x40]),
        value.to_le_bytes()
    );
    assert_eq!(
        convert(&Datatype::f32_be(), &Datatype::bf16_be(), &0x4049_0FDBu32.to_be_bytes()),
        [0x40, 0x49]
    );
    // A tie goes to the even neighbour.
    assert_eq!(
        convert(&Datatype::f32_le(), &Datatype::bf16_le(), &0x3F80_8000u32.to_le_bytes()),
        [0x80, 0x3F]
    );
    assert_eq!(
        convert(&Datatype::f32_le(), &Datatype::bf16_le(), &0x3F81_8000u32.to_le_bytes()),
        [0x82, 0x3F]
    );
}

#[test]
fn large_integers_round_once_as_brain_floats() {
    // One more than a tie: a double would drop the one, and the tie would go down.
    let source = 0x8080_0000_0000_0001u64;
    let brain = convert(&Datatype::u64_le(), &Datatype::bf16_be(), &source.to_le_bytes());
    assert_eq!(brain, [0x5F, 0x01]);
    let source = -0x4040_0000_0000_0001i64;
    let brain = convert(&Datatype::i64_le(), &Datatype::bf16_be(), &source.to_le_bytes());
    assert_eq!(brain, [0xDE, 0x81]);
    let tie = convert(&Datatype::u64_le(), &Datatype::bf16_be(), &(0x8080u64 << 48).to_le_bytes());
    assert_eq!(tie, [0x5F, 0x00]);
}

#[test]
fn complex_numbers_convert_part_by_part() {
    let narrow = Datatype::Complex(Complex { base: Float::single(ByteOrder::Little) });
    let wide = Datatype::Complex(Complex { base: Float::double(ByteOrder::Big) });
    let source = [1.5f32.to_le_bytes(), (-2f32).to_le_bytes()].concat();
    assert_eq!(
        convert(&narrow, &wide, &source),
        [1.5f64.to_be_bytes(), (-2f64).to_be_bytes()].concat()
    );
}
