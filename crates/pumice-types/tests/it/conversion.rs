//! Strings, enumerations, compounds and arrays, and what has no conversion.

use proptest::prelude::*;
use pumice_types::{
    ByteOrder, CharacterSet, Compound, Conversion, Datatype, Enumeration, FixedString, Integer,
    Member, Reference, ReferenceKind, StringPadding, TypeError,
};

fn convert_over(from: &Datatype, to: &Datatype, source: &[u8], target: &mut [u8]) {
    Conversion::new(from, to).unwrap().convert(source, target).unwrap();
}

fn string(size: u32, padding: StringPadding) -> Datatype {
    Datatype::String(FixedString { size, padding, charset: CharacterSet::Ascii })
}

fn restring(from: (u32, StringPadding), to: (u32, StringPadding), text: &[u8]) -> Vec<u8> {
    let mut target = vec![b'#'; to.0 as usize];
    convert_over(&string(from.0, from.1), &string(to.0, to.1), text, &mut target);
    target
}

#[test]
fn strings_are_cut_and_padded() {
    use StringPadding::{NullPad, NullTerminate, SpacePad};
    assert_eq!(restring((3, NullPad), (5, NullPad), b"abc"), b"abc\0\0");
    assert_eq!(restring((5, NullPad), (3, NullPad), b"abcde"), b"abc");
    assert_eq!(restring((5, NullPad), (3, NullTerminate), b"abcde"), b"ab\0");
    assert_eq!(restring((5, NullTerminate), (5, NullPad), b"ab\0xy"), b"ab\0\0\0");
    assert_eq!(restring((5, NullPad), (5, SpacePad), b"ab\0\0\0"), b"ab   ");
    assert_eq!(restring((5, SpacePad), (5, NullTerminate), b"a b  "), b"a b\0\0");
    assert_eq!(restring((3, SpacePad), (3, NullTerminate), b"abc"), b"ab\0");
    assert_eq!(restring((3, SpacePad), (4, NullPad), b"   "), b"\0\0\0\0");
}

#[test]
fn strings_of_both_character_sets_convert_byte_for_byte() {
    let utf8 = Datatype::String(FixedString {
        size: 4,
        padding: StringPadding::NullPad,
        charset: CharacterSet::Utf8,
    });
    assert!(Conversion::new(&Datatype::fixed_string(4), &utf8).unwrap().is_noop());
}

fn enumeration(base: Integer, names: &[(&str, &[u8])]) -> Datatype {
    Datatype::Enum(
        names.iter().fold(Enumeration::new(base), |enumeration, (name, value)| {
            enumeration.with(*name, value)
        }),
    )
}

#[test]
fn enumerations_are_matched_by_name() {
    let small =
        enumeration(Integer::new(1, ByteOrder::Little, true), &[("RED", &[0]), ("BLUE", &[7])]);
    let names: [(&str, &[u8]); 3] = [("BLUE", &[0, 1]), ("GREEN", &[0, 2]), ("RED", &[0, 3])];
    let large = enumeration(Integer::new(2, ByteOrder::Big, true), &names);
    let mut target = [0u8; 6];
    convert_over(&small, &large, &[7, 0, 9], &mut target);
    assert_eq!(target, [0, 1, 0, 3, 0xFF, 0xFF]);
    // GREEN has no counterpart.
    assert!(matches!(Conversion::new(&large, &small), Err(TypeError::NoConversion { .. })));
}

#[test]
fn enumerations_in_any_order_of_values_are_matched() {
    let names = ["g", "c", "a", "f", "b", "e", "d"];
    let byte = Integer::new(1, ByteOrder::Little, false);
    let numbered = |factor: u8| {
        let members = names.iter().zip(1u8..);
        Datatype::Enum(members.fold(Enumeration::new(byte.clone()), |known, (name, index)| {
            known.with(*name, &[index.wrapping_mul(factor)])
        }))
    };
    let mut target = [0u8; 7];
    convert_over(
        &numbered(101),
        &numbered(1),
        &[1, 2, 3, 4, 5, 6, 7].map(|n: u8| n.wrapping_mul(101)),
        &mut target,
    );
    assert_eq!(target, [1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn enumerations_with_more_names_for_the_same_values_are_copied() {
    let base = Integer::new(1, ByteOrder::Little, true);
    let few = enumeration(base.clone(), &[("NO", &[0])]);
    let more = enumeration(base, &[("YES", &[1]), ("NO", &[0])]);
    assert!(Conversion::new(&few, &more).unwrap().is_noop());
}

#[test]
fn enumerations_convert_to_numbers_but_not_back() {
    let colors = enumeration(Integer::new(1, ByteOrder::Little, true), &[("RED", &[0])]);
    let mut target = [0u8; 8];
    convert_over(&colors, &Datatype::f32_le(), &[0xFF, 3], &mut target);
    assert_eq!(target, [(-1f32).to_le_bytes(), 3f32.to_le_bytes()].concat()[..]);
    assert!(Conversion::new(&Datatype::i8(), &colors).is_err());
}

#[test]
fn compound_members_are_matched_by_name() {
    let from = Datatype::compound([
        ("a", Datatype::i32_le()),
        ("b", Datatype::f64_le()),
        ("c", Datatype::u8()),
    ]);
    let to = Datatype::compound([
        ("c", Datatype::u16_be()),
        ("new", Datatype::u8()),
        ("a", Datatype::i64_le()),
    ]);
    let source = [&(-3i32).to_le_bytes()[..], &1f64.to_le_bytes(), &[200]].concat();
    let mut target = [0xEE; 11];
    convert_over(&from, &to, &source, &mut target);
    assert_eq!(target[..], [&200u16.to_be_bytes()[..], &[0xEE], &(-3i64).to_le_bytes()].concat());
}

#[test]
fn nested_compounds_keep_what_the_source_lacks() {
    let inner_from = Datatype::compound([("x", Datatype::i16_le()), ("extra", Datatype::i16_le())]);
    let inner_to = Datatype::compound([("y", Datatype::u8()), ("x", Datatype::i16_be())]);
    let from = Datatype::compound([
        ("list", Datatype::array(inner_from.clone(), [2])),
        ("one", inner_from),
    ]);
    let to =
        Datatype::compound([("one", inner_to.clone()), ("list", Datatype::array(inner_to, [2]))]);
    let source = [1, 0, 9, 9, 2, 0, 9, 9, 3, 0, 9, 9];
    let conversion = Conversion::new(&from, &to).unwrap();
    assert!(!conversion.overwrites_target());
    let mut target = [7u8; 18];
    conversion.convert(&source.repeat(2), &mut target).unwrap();
    assert_eq!(target, [7, 0, 3, 7, 0, 1, 7, 0, 2].repeat(2)[..]);
}

#[test]
fn gaps_between_members_keep_their_bytes() {
    let at = |name: &str, offset| Member { name: name.into(), offset, datatype: Datatype::u8() };
    let from = Datatype::Compound(Compound { size: 4, members: vec![at("a", 0), at("b", 2)] });
    let to = Datatype::Compound(Compound { size: 5, members: vec![at("b", 1), at("a", 3)] });
    let mut target = [9u8; 5];
    convert_over(&from, &to, &[1, 0xAA, 2, 0xBB], &mut target);
    assert_eq!(target, [9, 2, 9, 1, 9]);
}

#[test]
fn a_compound_without_a_member_of_the_same_size_is_copied_only_where_nothing_is_kept() {
    let both = Datatype::compound([("a", Datatype::u8()), ("b", Datatype::u8())]);
    let member = Member { name: "a".into(), offset: 0, datatype: Datatype::u8() };
    let one = Datatype::Compound(Compound { size: 2, members: vec![member] });
    assert!(Conversion::new(&both, &one).unwrap().is_noop());
    assert!(!Conversion::new(&one, &both).unwrap().is_noop());
    let mut target = [5u8, 6];
    convert_over(&one, &both, &[1, 2], &mut target);
    assert_eq!(target, [1, 6]);
}

#[test]
fn a_nested_member_that_the_source_lacks_is_kept() {
    let inner = |members| Datatype::Compound(Compound { size: 2, members });
    let at = |name: &str, offset| Member { name: name.into(), offset, datatype: Datatype::u8() };
    let from = Datatype::compound([("in", inner(vec![at("a", 0)]))]);
    let to = Datatype::compound([("in", inner(vec![at("a", 0), at("b", 1)]))]);
    let mut target = [5u8, 6];
    convert_over(&from, &to, &[1, 2], &mut target);
    assert_eq!(target, [1, 6]);
}

#[test]
fn neighbours_that_part_are_copied_apart() {
    let from = Datatype::compound([("a", Datatype::u8()), ("b", Datatype::u8())]);
    let to =
        Datatype::compound([("a", Datatype::u8()), ("x", Datatype::u8()), ("b", Datatype::u8())]);
    let mut target = [9u8; 3];
    convert_over(&from, &to, &[1, 2], &mut target);
    assert_eq!(target, [1, 9, 2]);
}

#[test]
fn arrays_convert_by_element_when_their_shapes_agree() {
    let from = Datatype::array(Datatype::u8(), [2, 2]);
    let mut target = [0u8; 16];
    convert_over(
        &from,
        &Datatype::array(Datatype::u16_le(), [2, 2]),
        &[1, 2, 3, 4, 5, 6, 7, 8],
        &mut target,
    );
    assert_eq!(target, [1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8, 0]);
    assert!(Conversion::new(&from, &Datatype::array(Datatype::u8(), [4])).is_err());
    assert!(Conversion::new(&from, &Datatype::u8()).is_err());
}

#[test]
fn what_has_no_conversion_is_copied_to_its_own_datatype_alone() {
    let reference = |kind, size| Datatype::Reference(Reference { size, kind });
    let types = [
        Datatype::opaque(4, "pixels"),
        reference(ReferenceKind::Object, 8),
        reference(ReferenceKind::Region, 12),
        Datatype::varlen(Datatype::i32_le(), 16),
        Datatype::varlen_string(16),
        Datatype::fixed_string(4),
        Datatype::i32_le(),
    ];
    for (row, from) in types.iter().enumerate() {
        for (column, to) in types.iter().enumerate() {
            match Conversion::new(from, to) {
                Ok(conversion) => assert!(row == column && conversion.is_noop(), "{from} {to}"),
                Err(error) => {
                    assert!(row != column && matches!(error, TypeError::NoConversion { .. }));
                }
            }
        }
    }
    assert!(Conversion::new(&types[0], &Datatype::opaque(4, "other")).is_err());
}

#[test]
fn errors_name_both_datatypes_in_one_line() {
    let from = Datatype::compound([("a", Datatype::i32_le())]);
    let error = Conversion::new(&from, &Datatype::f32_be()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no conversion from H5T_COMPOUND { H5T_STD_I32LE \"a\"; } to H5T_IEEE_F32BE"
    );
}

#[test]
fn buffers_of_the_wrong_length_are_refused() {
    let conversion = Conversion::new(&Datatype::i32_le(), &Datatype::i16_le()).unwrap();
    assert_eq!(
        conversion.convert(&[0; 6], &mut [0; 4]),
        Err(TypeError::SourceLength { element: 4, found: 6 })
    );
    assert_eq!(
        conversion.convert(&[0; 8], &mut [0; 8]),
        Err(TypeError::TargetLength { expected: 4, found: 8 })
    );
    assert_eq!(conversion.convert(&[], &mut []), Ok(()));
}

#[test]
fn contradicting_datatypes_are_refused_not_converted() {
    let outside = Integer { precision: 40, ..Integer::new(4, ByteOrder::Little, true) };
    let error = Conversion::new(&Datatype::Integer(outside), &Datatype::i32_le()).unwrap_err();
    assert!(matches!(error, TypeError::Invalid { class: "integer", .. }));
    let empty = Datatype::array(Datatype::i32_le(), [0]);
    assert!(Conversion::new(&empty, &empty).is_err());
    let huge = Datatype::array(Datatype::array(Datatype::i64_le(), [u32::MAX; 8]), [u32::MAX; 8]);
    assert!(huge.validate().is_err());
}

/// A compound of few kinds of members, in any order and mostly without gaps, so that two of them often
/// have members in the same place.
fn compound() -> impl Strategy<Value = Datatype> {
    let numbers = [Datatype::u8(), Datatype::u16_le(), Datatype::u16_be(), Datatype::u32_le()];
    let number = prop::sample::select(numbers.to_vec());
    let nested = members(number.clone());
    members(prop_oneof![5 => number, 2 => nested])
}

fn members(datatype: impl Strategy<Value = Datatype>) -> impl Strategy<Value = Datatype> {
    let names = prop::sample::subsequence(vec!["a", "b", "c", "d"], 1..=4).prop_shuffle();
    let gaps = prop::collection::vec(prop_oneof![4 => Just(0u32), 1 => 0u32..4], 5);
    (names, prop::collection::vec(datatype, 4), gaps).prop_map(|(names, datatypes, gaps)| {
        let mut size = 0;
        let mut members = Vec::new();
        for ((name, datatype), gap) in names.into_iter().zip(datatypes).zip(&gaps) {
            let offset = size + gap;
            size = offset + datatype.size() as u32;
            members.push(Member { name: name.into(), offset, datatype });
        }
        Datatype::Compound(Compound { size: size + gaps[4], members })
    })
}

/// Converts one element member by member; numbers in these tests are all unsigned.
fn naive(from: &Datatype, to: &Datatype, source: &[u8], target: &mut [u8]) -> bool {
    match (from, to) {
        (Datatype::Compound(from), Datatype::Compound(to)) => to.members.iter().all(|member| {
            let Some(partner) = from.member(&member.name) else { return true };
            let source = &source[partner.offset as usize..][..partner.datatype.size()];
            let target = &mut target[member.offset as usize..][..member.datatype.size()];
            naive(&partner.datatype, &member.datatype, source, target)
        }),
        (Datatype::Integer(from), Datatype::Integer(to)) => {
            let mut bytes = source.to_vec();
            if from.order == ByteOrder::Little {
                bytes.reverse();
            }
            let value = bytes.iter().fold(0u64, |value, &byte| value << 8 | u64::from(byte));
            let value = value.min(u64::MAX >> (64 - 8 * to.size));
            target.copy_from_slice(&value.to_be_bytes()[8 - to.size as usize..]);
            if to.order == ByteOrder::Little {
                target.reverse();
            }
            true
        }
        _ => false,
    }
}

fn check_compounds(
    from: &Datatype,
    to: &Datatype,
    count: usize,
    seed: &[u8],
) -> Result<(), TestCaseError> {
    let filled = |length: usize, salt: u8| -> Vec<u8> {
        let bytes = seed.iter().cycle().take(length).enumerate();
        bytes.map(|(index, byte)| byte.wrapping_mul(salt) ^ (index / seed.len()) as u8).collect()
    };
    let source = filled(from.size() * count, 1);
    let mut target = filled(to.size() * count, 3);
    let mut expected = target.clone();
    let mut elements = source.chunks(from.size()).zip(expected.chunks_mut(to.size()));
    let possible = elements.all(|(source, target)| naive(from, to, source, target));
    let conversion = match Conversion::new(from, to) {
        Ok(conversion) => conversion,
        Err(_) => {
            prop_assert!(!possible);
            return Ok(());
        }
    };
    prop_assert!(possible);
    conversion.convert(&source, &mut target).unwrap();
    prop_assert_eq!(target, if conversion.is_noop() { source } else { expected });
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5000))]

    #[test]
    fn compounds_agree_with_conversion_member_by_member(
        from in compound(), to in compound(), count in 1usize..40,
        seed in prop::collection::vec(any::<u8>(), 64),
    ) {
        check_compounds(&from, &to, count, &seed)?;
    }
}

#[test]
fn integers_of_many_bytes_are_read_where_their_bits_are() {
    let target = Datatype::Integer(Integer::new(8, ByteOrder::Little, true));
    for (size, bit_offset) in [(17u32, 0u16), (1000, 0), (1000, 3), (1000, 4001), (1000, 8000 - 32)]
    {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            for value in [0i32, 1, -1, i32::MIN, i32::MAX, 0x1234_5678] {
                if u32::from(bit_offset) + 32 > 8 * size {
                    continue;
                }
                let number =
                    Integer { bit_offset, precision: 32, ..Integer::new(size, order, true) };
                // Bit by bit, from the lowest; all others are set.
                let mut element = vec![0xFF; size as usize];
                for bit in 0..32 {
                    let (byte, place) =
                        ((bit + usize::from(bit_offset)) / 8, (bit + usize::from(bit_offset)) % 8);
                    element[byte] &= !(1 << place);
                    element[byte] |= ((value >> bit & 1) as u8) << place;
                }
                if order == ByteOrder::Big {
                    element.reverse();
                }
                let mut converted = [0; 8];
                convert_over(&Datatype::Integer(number), &target, &element, &mut converted);
                assert_eq!(i64::from_le_bytes(converted), i64::from(value), "{size} {bit_offset}");
            }
        }
    }
    // Of more bits than can be taken apart.
    let wide = Datatype::Integer(Integer::new(17, ByteOrder::Little, true));
    assert!(matches!(Conversion::new(&wide, &target), Err(TypeError::NoConversion { .. })));
}
