use super::*;
use crate::UNDEFINED;
use proptest::prelude::*;

fn samples() -> Vec<Message> {
    let location = SharedLocation::Object { address: 0x320 };
    vec![
        Message::LinkInfo(LinkInfo {
            max_creation_order: Some(3),
            order_index_address: Some(UNDEFINED),
            ..LinkInfo::default()
        }),
        Message::AttributeInfo(AttributeInfo {
            max_creation_order: Some(3),
            heap_address: 0x400,
            name_index_address: 0x500,
            order_index_address: Some(0x600),
        }),
        Message::Dataspace(Extent::with_max(&[3, 4], &[3, u64::MAX]).unwrap()),
        Message::Dataspace(Extent::Null),
        Message::Datatype(Datatype::compound([("a", Datatype::u8())])),
        Message::FillValue(FillValue { value: Fill::Value(vec![1, 2]), ..FillValue::default() }),
        Message::Link(Link::new("a", LinkTarget::Soft { path: "/b".into() })),
        Message::Layout(Layout::Contiguous { address: 0x800, size: Some(12) }),
        Message::GroupInfo(GroupInfo { phase_change: Some((8, 6)), estimates: None }),
        Message::Pipeline(Pipeline { filters: vec![FilterDescription::new(1, &[6])] }),
        Message::StructuredPipeline(StructuredPipeline {
            sections: vec![SectionPipeline {
                section: 0,
                filters: vec![FilterDescription::new(300, &[6])],
            }],
        }),
        Message::Attribute(Attribute::new(
            "näme",
            Datatype::u16_le(),
            Extent::simple(&[2]).unwrap(),
            vec![1, 2, 3, 4],
        )),
        Message::Comment("hello".into()),
        Message::Continuation(Continuation { address: 0x900, length: 40 }),
        Message::ModificationTime(1_700_000_000),
        Message::ReferenceCount(2),
        Message::Shared { kind: kind::DATATYPE, location },
        Message::Raw { kind: kind::DRIVER_INFO, body: vec![1, 2, 3] },
    ]
}

#[test]
fn messages_survive_a_round_trip() {
    for message in samples() {
        let raw = message.to_raw(Sizes::default(), 1).unwrap();
        assert_eq!(Message::from_raw(&raw, &Context::default()).unwrap(), message);
        let mut padded = raw.clone();
        padded.body.resize(raw.body.len().next_multiple_of(8), 0);
        let again = Message::from_raw(&padded, &Context::default()).unwrap();
        if !matches!(message, Message::Raw { .. }) {
            assert_eq!(again, message, "padding is ignored");
        }
    }
}

#[test]
fn messages_of_4_byte_files_survive_a_round_trip() {
    let sizes = Sizes { offset: 4, length: 4 };
    for message in samples() {
        let raw = message.to_raw(sizes, 0).unwrap();
        assert_eq!(Message::from_raw(&raw, &Context::new(sizes)).unwrap(), message);
    }
}

#[test]
fn shortened_messages_are_refused() {
    for message in samples() {
        let raw = message.to_raw(Sizes::default(), 0).unwrap();
        if matches!(message, Message::Raw { .. } | Message::Comment(_)) {
            continue;
        }
        for end in 0..raw.body.len() {
            let result =
                Message::decode(raw.kind, raw.flags, &raw.body[..end], &Context::default());
            assert!(result.is_err(), "{message:?} cut to {end}");
        }
    }
}

#[test]
fn attributes_with_shared_datatypes_keep_the_rest_as_data() {
    let attribute = Attribute {
        datatype: Shareable::Shared(SharedLocation::Object { address: 0x320 }),
        ..Attribute::new("a", Datatype::u8(), Extent::Scalar, vec![9, 9, 9])
    };
    let mut bytes = Vec::new();
    attribute.encode(Sizes::default(), &mut bytes).unwrap();
    assert_eq!(bytes[1], 1);
    assert_eq!(Attribute::decode(&bytes, &Context::default()).unwrap(), attribute);
}

#[test]
fn attributes_must_have_the_data_of_their_shape() {
    let attribute = Attribute::new("a", Datatype::u8(), Extent::Scalar, vec![9, 9]);
    assert!(attribute.encode(Sizes::default(), &mut Vec::new()).is_err());
    let huge = Extent::simple(&[u64::MAX, u64::MAX]).unwrap();
    let attribute = Attribute::new("a", Datatype::u8(), huge, vec![]);
    assert!(attribute.encode(Sizes::default(), &mut Vec::new()).is_err());
}

#[test]
fn messages_of_the_oldest_format_survive_a_round_trip() {
    let (sizes, context) = (Sizes::default(), Context::default());
    let datatype = Datatype::compound([("a", Datatype::u8()), ("b", Datatype::f64_le())]);
    for (name, version) in [("scale", 1), ("größe", 3)] {
        let extent = Extent::simple(&[2]).unwrap();
        let attribute = Attribute::new(name, datatype.clone(), extent, vec![7; 18]);
        let mut bytes = Vec::new();
        attribute.encode_for(Era::Old, sizes, &mut bytes).unwrap();
        assert_eq!(bytes[0], version);
        assert_eq!(Attribute::decode(&bytes, &context).unwrap(), attribute);
    }
    let filters = vec![
        FilterDescription {
            flags: 1,
            name: Some("deflate".into()),
            ..FilterDescription::new(1, &[6])
        },
        FilterDescription { name: Some("of mine".into()), ..FilterDescription::new(300, &[1, 2]) },
        FilterDescription::new(301, &[]),
    ];
    let (pipeline, mut bytes) = (Pipeline { filters }, Vec::new());
    pipeline.encode_for(Era::Old, &mut bytes).unwrap();
    assert_eq!((bytes[0], bytes.len() % 8), (1, 0));
    assert_eq!(Pipeline::decode(&bytes, &context).unwrap(), pipeline);
    for value in [Fill::Undefined, Fill::Default, Fill::Value(vec![1, 2, 3])] {
        let fill = FillValue { value, allocation: AllocationTime::Late, write: FillTime::Never };
        let mut bytes = Vec::new();
        fill.encode_for(Era::Old, &mut bytes).unwrap();
        assert_eq!(bytes[0], 2);
        assert_eq!(FillValue::decode(&bytes, &context).unwrap(), fill);
        let mut bytes = Vec::new();
        if fill.encode_old(&mut bytes).unwrap() {
            assert_eq!(FillValue::decode_old(&bytes, &context).unwrap().value, fill.value);
        }
    }
    for extent in [Extent::Null, Extent::Scalar, Extent::with_max(&[3, 4], &[3, u64::MAX]).unwrap()]
    {
        let mut bytes = Vec::new();
        dataspace::encode_for(Era::Old, &extent, sizes, &mut bytes).unwrap();
        assert_eq!(bytes[0], 1 + u8::from(extent.is_null()));
        assert_eq!(dataspace::decode(&bytes, &context).unwrap(), extent);
    }
}

#[test]
fn version_1_attributes_pad_their_parts() {
    let mut bytes = vec![1, 0, 3, 0, 12, 0, 8, 0];
    bytes.extend_from_slice(b"ab\0\0\0\0\0\0");
    bytes.extend_from_slice(&[0x10, 8, 0, 0, 2, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0]);
    bytes.extend_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend_from_slice(&[7, 0, 0, 0, 0, 0, 0, 0]);
    let attribute = Attribute::decode(&bytes, &Context::default()).unwrap();
    let expected = Attribute::new("ab", Datatype::i16_le(), Extent::Scalar, vec![7, 0]);
    assert_eq!(attribute, expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn damaged_messages_never_panic(
        pick in any::<prop::sample::Index>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let samples = samples();
        let mut raw = samples[pick.index(samples.len())].to_raw(Sizes::default(), 0).unwrap();
        for (at, byte) in damage {
            let at = at.index(raw.body.len());
            raw.body[at] = byte;
        }
        let _ = Message::from_raw(&raw, &Context::default());
    }

    #[test]
    fn any_bytes_give_an_answer(
        kind in 0u16..0x1B,
        flags: u8,
        body in prop::collection::vec(prop_oneof![3 => 0u8..6, 1 => any::<u8>()], 0..80),
    ) {
        for sizes in [Sizes::default(), Sizes { offset: 4, length: 2 }] {
            let _ = Message::decode(kind, flags, &body, &Context::new(sizes));
            let _ = Message::decode(kind, 0, &body, &Context::new(sizes));
        }
    }
}
