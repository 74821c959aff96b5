//! The datatype model: sizes, equality and validation.

use pumice_types::{
    BitPadding, ByteOrder, Compound, Datatype, Element, Enumeration, Float, Integer, Member,
    TypeError,
};

#[test]
fn elements_have_the_size_of_their_rust_type() {
    fn same_size<T: Element>() {
        assert_eq!(T::datatype().size(), size_of::<T>());
        assert_eq!(T::datatype(), Datatype::native::<T>());
        assert_eq!(T::datatype().validate(), Ok(()));
    }
    same_size::<i8>();
    same_size::<u16>();
    same_size::<i32>();
    same_size::<u64>();
    same_size::<half::f16>();
    same_size::<f32>();
    same_size::<f64>();
}

#[test]
fn sizes_of_composites_add_up_and_saturate() {
    let pair = Datatype::compound([("a", Datatype::i8()), ("b", Datatype::f64_le())]);
    assert_eq!(pair.size(), 9);
    assert_eq!(Datatype::array(pair, [3, 2]).size(), 54);
    assert_eq!(Datatype::array(Datatype::i64_le(), [u32::MAX; 5]).size(), usize::MAX);
}

#[test]
fn equality_sees_every_field() {
    let plain = Integer::new(4, ByteOrder::Little, true);
    let padded = Integer { high_padding: BitPadding::One, ..plain.clone() };
    assert_ne!(Datatype::Integer(plain), Datatype::Integer(padded));
    assert_ne!(Datatype::opaque(1, "a"), Datatype::opaque(1, "b"));
}

fn refused(datatype: impl Into<Datatype>) -> String {
    match datatype.into().validate() {
        Err(TypeError::Invalid { reason, .. }) => reason,
        other => panic!("expected a refusal, found {other:?}"),
    }
}

fn member(name: &str, offset: u32, datatype: Datatype) -> Member {
    Member { name: name.into(), offset, datatype }
}

#[test]
fn compounds_with_members_outside_or_over_each_other_are_refused() {
    let outside = Compound { size: 5, members: vec![member("x", 2, Datatype::i32_le())] };
    assert_eq!(refused(outside), "member \"x\" ends at byte 6 of 5");
    let members = vec![member("b", 2, Datatype::i32_le()), member("a", 0, Datatype::i32_le())];
    assert_eq!(refused(Compound { size: 8, members }), "members \"a\" and \"b\" overlap");
    let twins = vec![member("a", 0, Datatype::i8()), member("a", 1, Datatype::i8())];
    assert_eq!(refused(Compound { size: 2, members: twins }), "two members named \"a\"");
    let far = Compound { size: u32::MAX, members: vec![member("x", u32::MAX, Datatype::i8())] };
    assert!(refused(far).contains("ends at byte 4294967296"));
}

#[test]
fn faults_of_members_are_found_at_any_depth() {
    let broken = Integer { precision: 0, ..Integer::new(4, ByteOrder::Little, true) };
    let inner = Datatype::compound([("x", Datatype::array(broken.into(), [2]))]);
    let outer = Datatype::varlen(Datatype::compound([("inner", inner)]), 16);
    assert_eq!(refused(outer), "precision of zero bits");
}

#[test]
fn floats_with_parts_outside_or_over_each_other_are_refused() {
    let single = Float::single(ByteOrder::Little);
    assert!(refused(Float { sign_location: 30, ..single.clone() }).contains("overlap"));
    assert!(refused(Float { exponent_location: 22, ..single.clone() }).contains("overlap"));
    assert!(refused(Float { exponent_size: 255, ..single.clone() }).contains("outside"));
    assert!(refused(Float { mantissa_size: 0, ..single.clone() }).contains("zero bits"));
    assert!(refused(Float { precision: 33, ..single }).contains("outside"));
}

#[test]
fn enumerations_need_one_value_per_name() {
    let mut colors =
        Enumeration::new(Integer::new(2, ByteOrder::Little, true)).with("RED", &[0, 0]);
    assert_eq!(Datatype::Enum(colors.clone()).validate(), Ok(()));
    colors.values.pop();
    assert_eq!(refused(colors), "1 bytes of values, expected 2");
}

#[test]
fn empty_elements_and_shapeless_arrays_are_refused() {
    assert_eq!(refused(Datatype::fixed_string(0)), "elements of zero bytes");
    assert_eq!(refused(Datatype::array(Datatype::i8(), [])), "rank 0");
    assert_eq!(refused(Datatype::array(Datatype::i8(), [1; 33])), "rank 33");
    let large = Datatype::array(Datatype::i8(), [1 << 16, 1 << 16]);
    assert_eq!(refused(large), "its size does not fit 32 bits");
    assert_eq!(refused(Integer::new(4, ByteOrder::Vax, true)), "VAX byte order");
}
