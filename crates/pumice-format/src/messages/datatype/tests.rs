use super::*;
use crate::messages::Era;
use crate::{Context, DecodeError};
use proptest::prelude::*;
use pumice_bytes::Writer;
use pumice_types::{
    BitPadding, Bitfield, ByteOrder, CharacterSet, Complex, Datatype, Enumeration, Float, Integer,
    Reference, ReferenceKind, StringPadding, Time, VarLen,
};

fn read(bytes: &[u8]) -> Result<Datatype, DecodeError> {
    decode(bytes, &Context::default())
}

fn written(datatype: &Datatype) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(datatype, &mut bytes).unwrap();
    bytes
}

fn both_ways(datatype: Datatype, bytes: &[u8]) {
    assert_eq!(written(&datatype), bytes, "{datatype:?}");
    assert_eq!(read(bytes).unwrap(), datatype);
}

#[test]
fn simple_types_have_the_bytes_that_libhdf5_writes() {
    both_ways(Datatype::i32_le(), &[0x10, 8, 0, 0, 4, 0, 0, 0, 0, 0, 32, 0]);
    both_ways(Datatype::u16_be(), &[0x10, 1, 0, 0, 2, 0, 0, 0, 0, 0, 16, 0]);
    let single = [0x11, 0x20, 31, 0, 4, 0, 0, 0, 0, 0, 32, 0, 23, 8, 0, 23, 127, 0, 0, 0];
    both_ways(Datatype::f32_le(), &single);
    let double = [0x11, 0x21, 63, 0, 8, 0, 0, 0, 0, 0, 64, 0, 52, 11, 0, 52, 255, 3, 0, 0];
    both_ways(Datatype::f64_be(), &double);
    both_ways(Datatype::fixed_string(5), &[0x13, 1, 0, 0, 5, 0, 0, 0]);
    let opaque = [0x15, 8, 0, 0, 3, 0, 0, 0, b't', b'a', b'g', 0, 0, 0, 0, 0];
    both_ways(Datatype::opaque(3, "tag"), &opaque);
    let bits = Bitfield::new(1, ByteOrder::Little);
    both_ways(bits.into(), &[0x14, 0, 0, 0, 1, 0, 0, 0, 0, 0, 8, 0]);
    let reference = Reference { size: 8, kind: ReferenceKind::Object };
    both_ways(reference.into(), &[0x17, 0, 0, 0, 8, 0, 0, 0]);
    let time = Time { size: 4, order: ByteOrder::Little, precision: 32 };
    both_ways(time.into(), &[0x12, 0, 0, 0, 4, 0, 0, 0, 32, 0]);
}

#[test]
fn complex_numbers_have_the_bytes_that_libhdf5_writes() {
    let complex = Complex { base: Float::single(ByteOrder::Little) };
    let mut bytes = vec![0x5B, 1, 0, 0, 8, 0, 0, 0];
    bytes.put_bytes(&[0x11, 0x20, 31, 0, 4, 0, 0, 0, 0, 0, 32, 0, 23, 8, 0, 23, 127, 0, 0, 0]);
    both_ways(complex.into(), &bytes);
}

#[test]
fn composite_types_are_written_in_version_3() {
    let byte = [0x10, 0, 0, 0, 1, 0, 0, 0, 0, 0, 8, 0];
    let pair = Datatype::compound([("a", Datatype::u8()), ("bc", Datatype::u8())]);
    let mut bytes = vec![0x36, 2, 0, 0, 2, 0, 0, 0, b'a', 0, 0];
    bytes.put_bytes(&byte);
    bytes.put_bytes(b"bc\0\x01");
    bytes.put_bytes(&byte);
    both_ways(pair, &bytes);

    let mut bytes = vec![0x3A, 0, 0, 0, 6, 0, 0, 0, 2, 2, 0, 0, 0, 3, 0, 0, 0];
    bytes.put_bytes(&byte);
    both_ways(Datatype::array(Datatype::u8(), [2, 3]), &bytes);

    let base = Integer::new(1, ByteOrder::Little, false);
    let mut bytes = vec![0x38, 2, 0, 0, 1, 0, 0, 0];
    bytes.put_bytes(&byte);
    bytes.put_bytes(b"OFF\0ON\0\x00\x01");
    both_ways(Enumeration::new(base).with("OFF", &[0]).with("ON", &[1]).into(), &bytes);

    let mut bytes = vec![0x19, 1, 1, 0, 16, 0, 0, 0];
    bytes.put_bytes(&byte);
    both_ways(Datatype::varlen_string(16), &bytes);
}

#[test]
fn version_1_compounds_have_padded_names_and_arrays() {
    let mut bytes = vec![0x16, 1, 0, 0, 8, 0, 0, 0];
    bytes.put_bytes(b"x\0\0\0\0\0\0\0");
    bytes.put_u32(0);
    bytes.put_bytes(&[1, 0, 0, 0]);
    bytes.put_zeros(8);
    for dim in [2, 0, 0, 0] {
        bytes.put_u32(dim);
    }
    bytes.put_bytes(&[0x10, 8, 0, 0, 4, 0, 0, 0, 0, 0, 32, 0]);
    let expected = Datatype::compound([("x", Datatype::array(Datatype::i32_le(), [2]))]);
    assert_eq!(read(&bytes).unwrap(), expected);
}

#[test]
fn version_2_arrays_have_permutations() {
    let mut bytes = vec![0x2A, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0];
    bytes.put_bytes(&[0x10, 0, 0, 0, 1, 0, 0, 0, 0, 0, 8, 0]);
    assert_eq!(read(&bytes).unwrap(), Datatype::array(Datatype::u8(), [2]));
}

#[test]
fn a_type_is_never_of_a_lower_version_than_its_parts() {
    let token = Datatype::from(Reference { size: 18, kind: ReferenceKind::Object2 { version: 1 } });
    assert_eq!(version(&Datatype::varlen(token.clone(), 16)), 4);
    assert_eq!(version(&Datatype::compound([("r", token)])), 4);
    let vax = Datatype::Float(Float::double(ByteOrder::Vax));
    assert_eq!(written(&vax)[..2], [0x31, 0x61]);
    assert_eq!(read(&written(&vax)).unwrap(), vax);
}

#[test]
fn deep_nesting_is_refused_both_ways() {
    let nested = |depth| (0..depth).fold(Datatype::u8(), |base, _| Datatype::varlen(base, 16));
    let deepest = nested(31);
    assert_eq!(read(&written(&deepest)).unwrap(), deepest);
    assert!(encode(&nested(32), &mut Vec::new()).is_err());
    let mut bytes: Vec<u8> = [0x19, 0, 0, 0, 16, 0, 0, 0].repeat(32);
    bytes.extend_from_slice(&[0x10, 0, 0, 0, 1, 0, 0, 0, 0, 0, 8, 0]);
    assert!(read(&bytes).is_err());
    assert!(read(&[0x19, 0, 0, 0, 16, 0, 0, 0].repeat(100_000)).is_err());
}

#[test]
fn contradictions_are_refused() {
    // Precision beyond the size, a member beyond its compound, an array of another size.
    assert!(read(&[0x10, 8, 0, 0, 4, 0, 0, 0, 0, 0, 33, 0]).is_err());
    let mut outside = vec![0x36, 1, 0, 0, 1, 0, 0, 0, b'a', 0, 1];
    outside.put_bytes(&[0x10, 0, 0, 0, 1, 0, 0, 0, 0, 0, 8, 0]);
    assert!(read(&outside).is_err());
    let mut array = vec![0x3A, 0, 0, 0, 7, 0, 0, 0, 2, 2, 0, 0, 0, 3, 0, 0, 0];
    array.put_bytes(&[0x10, 0, 0, 0, 1, 0, 0, 0, 0, 0, 8, 0]);
    assert!(read(&array).is_err());
    assert!(read(&[0x36, 0xFF, 0xFF, 0, 1, 0, 0, 0]).is_err(), "65535 members in no bytes");
}

fn leaf() -> impl Strategy<Value = Datatype> {
    let order = prop_oneof![Just(ByteOrder::Little), Just(ByteOrder::Big)];
    let pad = || prop_oneof![Just(BitPadding::Zero), Just(BitPadding::One)];
    let integer = (1u32..9, order, any::<bool>(), pad(), pad(), 0u16..8).prop_map(
        |(size, order, signed, low_padding, high_padding, bit_offset)| {
            let precision = size as u16 * 8 - bit_offset;
            Integer { size, order, signed, bit_offset, precision, low_padding, high_padding }
        },
    );
    prop_oneof![
        integer.clone().prop_map(Datatype::from),
        Just(Datatype::f16_le()),
        Just(Datatype::f64_be()),
        Just(Datatype::Float(Float::single(ByteOrder::Vax))),
        (1u32..300).prop_map(Datatype::fixed_string),
        (1u32..300, "[a-z]{0,40}").prop_map(|(size, tag)| Datatype::opaque(size, tag)),
        Just(Bitfield::new(2, ByteOrder::Big).into()),
        Just(Reference { size: 12, kind: ReferenceKind::Region }.into()),
        Just(Reference { size: 18, kind: ReferenceKind::Attribute { version: 1 } }.into()),
        Just(VarLen::string(16, StringPadding::SpacePad, CharacterSet::Utf8).into()),
        Just(Complex { base: Float::double(ByteOrder::Little) }.into()),
        (integer, prop::collection::vec("[A-Zß]{1,9}", 1..5)).prop_map(|(base, names)| {
            let size = base.size as usize;
            names
                .iter()
                .enumerate()
                .fold(Enumeration::new(base), |all, (value, name)| {
                    all.with(name, &(value as u64).to_le_bytes()[..size])
                })
                .into()
        }),
    ]
}

fn datatype() -> impl Strategy<Value = Datatype> {
    leaf().prop_recursive(3, 20, 5, |inner| {
        prop_oneof![
            (inner.clone(), prop::collection::vec(1u32..5, 1..4))
                .prop_map(|(base, dims)| Datatype::array(base, dims)),
            inner.clone().prop_map(|base| Datatype::varlen(base, 16)),
            prop::collection::vec(inner, 1..5).prop_map(|members| {
                let members = members.into_iter().enumerate();
                Datatype::compound(members.map(|(at, datatype)| (format!("m{at}"), datatype)))
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn datatypes_survive_a_round_trip(datatype in datatype()) {
        prop_assert_eq!(read(&written(&datatype)).unwrap(), datatype);
    }

    #[test]
    fn datatypes_of_the_oldest_format_survive_a_round_trip(datatype in datatype()) {
        let mut bytes = Vec::new();
        encode_for(Era::Old, &datatype, &mut bytes).unwrap();
        let oldest = version(&datatype) <= 3 && !format!("{datatype:?}").contains("Vax");
        prop_assert!(bytes[0] >> 4 <= 2 || !oldest, "version {}", bytes[0] >> 4);
        prop_assert_eq!(read(&bytes).unwrap(), datatype);
    }

    #[test]
    fn damaged_datatypes_never_panic(
        datatype in datatype(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
        end in any::<prop::sample::Index>(),
    ) {
        let mut bytes = written(&datatype);
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(other) = read(&bytes) {
            let _ = encode(&other, &mut Vec::new());
        }
        let _ = read(&bytes[..end.index(bytes.len())]);
    }
}
