use super::*;
use crate::Sizes;
use proptest::prelude::*;

fn messages(header: &ObjectHeader) -> Vec<(u16, u8, Vec<u8>)> {
    header.messages.iter().map(|m| (m.kind, m.flags, m.body.clone())).collect()
}

fn decode(bytes: &[u8]) -> Result<ObjectHeader, DecodeError> {
    ObjectHeader::decode(bytes, &Context::default())
}

#[test]
fn a_small_header_has_the_documented_bytes() {
    let mut header = ObjectHeader::new();
    header.messages.push(RawMessage::new(0x16, 1, vec![0, 2, 0, 0, 0]));
    let mut bytes = Vec::new();
    header.encode(6, &mut bytes).unwrap();
    let mut expected = b"OHDR\x02\x00\x0F".to_vec();
    expected.put_bytes(&[0x16, 5, 0, 1, 0, 2, 0, 0, 0]);
    expected.put_bytes(&[0, 2, 0, 0, 0, 0]);
    expected.put_checksum(0);
    assert_eq!(bytes, expected);
}

#[test]
fn a_gap_fills_room_that_no_envelope_fits() {
    let mut header = ObjectHeader::new();
    header.messages.push(RawMessage::new(0x16, 0, vec![0, 2, 0, 0, 0]));
    let mut bytes = Vec::new();
    header.encode(3, &mut bytes).unwrap();
    assert_eq!(&bytes[16..19], [0, 0, 0]);
    assert_eq!(decode(&bytes).unwrap().spare, 3);
}

#[test]
fn unused_bytes_are_one_filler_and_never_more() {
    // libhdf5 joins fillers side by side and keeps 16 bits of their size.
    let tracked = ObjectHeader { track_attribute_order: true, ..ObjectHeader::new() };
    let old = ObjectHeader { version: 1, ..Default::default() };
    for (header, envelope, most) in
        [(ObjectHeader::new(), 4, 65_539), (tracked, 6, 65_541), (old, 8, 65_536)]
    {
        assert_eq!(header.max_spare(), most);
        for spare in [envelope, 64, 4096, 32_768, most] {
            let mut bytes = Vec::new();
            header.encode(header.padded(spare), &mut bytes).unwrap();
            let back = decode(&bytes).unwrap();
            assert_eq!(back.spare, header.padded(spare) as u64);
            // Where the filler's size is: behind its kind, and that behind a prefix or before a checksum.
            let at = if header.version == 1 { 18 } else { bytes.len() - 4 - spare + 1 };
            let length = usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
            assert_eq!(length, header.padded(spare) - envelope, "one filler to the end");
        }
        for spare in [most + 8, 131_072, 200_000] {
            assert!(header.encode(spare, &mut Vec::new()).is_err(), "{spare}");
            let length = header.continuation_length(&[], spare);
            assert!(header.encode_continuation(&[], length, &mut Vec::new()).is_err(), "{spare}");
        }
    }
}

#[test]
fn a_header_can_be_written_over_its_older_self_at_every_length() {
    let mut header = ObjectHeader::new();
    header.messages.push(RawMessage::new(0x16, 0, vec![0, 2, 0, 0, 0]));
    for length in (20..600).chain(65_540..65_560) {
        let mut bytes = Vec::new();
        header.encode_sized(length, 0, &mut bytes).unwrap();
        assert_eq!(bytes.len(), length);
        assert_eq!(messages(&decode(&bytes).unwrap()), messages(&header));
    }
    assert!(header.encode_sized(19, 0, &mut Vec::new()).is_err());
    assert!(header.encode_sized(0, 0, &mut Vec::new()).is_err());
}

#[test]
fn continuation_blocks_add_their_messages() {
    let sizes = Sizes::default();
    let mut body = Vec::new();
    Continuation { address: 0x900, length: 64 }.encode(sizes, &mut body);
    let mut header = ObjectHeader::new();
    header.messages.push(RawMessage::new(CONTINUATION, 0, body));
    let mut first = Vec::new();
    header.encode(0, &mut first).unwrap();
    let more = [RawMessage::new(0x0D, 0, b"hello\0".to_vec())];
    let mut block = Vec::new();
    header.encode_continuation(&more, 64, &mut block).unwrap();
    assert_eq!(block.len(), 64);

    let context = Context::default();
    let mut back = decode(&first).unwrap();
    let next = back.continuations(&context).unwrap();
    assert_eq!(next, [Continuation { address: 0x900, length: 64 }]);
    let spare = back.decode_continuation(&block, &context.at(0x900)).unwrap();
    assert_eq!(back.messages[1].body, b"hello\0");
    assert_eq!(back.messages[1].address, 0x900 + 8);
    assert_eq!(spare, 64 - 8 - 10);
    block[20] ^= 1;
    assert!(back.decode_continuation(&block, &context).is_err());
}

#[test]
fn version_1_is_read() {
    let mut bytes = vec![1, 0, 2, 0, 1, 0, 0, 0, 40, 0, 0, 0, 0, 0, 0, 0];
    bytes.put_bytes(&[0x11, 0, 16, 0, 0, 0, 0, 0]);
    bytes.put_u64(0x88);
    bytes.put_u64(0x2A8);
    bytes.put_bytes(&[0, 0, 8, 0, 0, 0, 0, 0]);
    bytes.put_zeros(8);
    assert_eq!(ObjectHeader::measure(&bytes, 0).unwrap(), 56);
    let header = decode(&bytes).unwrap();
    assert_eq!((header.version, header.reference_count), (1, Some(1)));
    assert_eq!((header.length, header.spare, header.messages.len()), (56, 16, 1));
    assert_eq!((header.messages[0].kind, header.messages[0].address), (0x11, 24));
}

fn header() -> impl Strategy<Value = ObjectHeader> {
    let message = (1u16..256, any::<u8>(), any::<u16>(), prop::collection::vec(any::<u8>(), 0..80));
    let times = prop::option::of(any::<[u32; 4]>());
    let phase = prop::option::of(any::<[u16; 2]>());
    let messages = prop::collection::vec(message, 0..12);
    (messages, any::<[bool; 2]>(), times, phase).prop_map(|(messages, flags, times, phase)| {
        let [track_attribute_order, index_attribute_order] = flags;
        let raw = messages.into_iter().map(|(kind, flags, order, body)| RawMessage {
            kind,
            flags,
            creation_order: track_attribute_order.then_some(order),
            address: 0,
            body,
        });
        ObjectHeader {
            version: 2,
            times: times.map(|[access, modification, change, birth]| Times {
                access,
                modification,
                change,
                birth,
            }),
            phase_change: phase
                .map(|[max_compact, min_dense]| PhaseChange { max_compact, min_dense }),
            track_attribute_order,
            index_attribute_order,
            messages: raw.collect(),
            ..Default::default()
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn headers_survive_a_round_trip(header in header(), spare in 0usize..300) {
        let mut bytes = Vec::new();
        if header.messages.is_empty() && (1..header.envelope()).contains(&spare) {
            prop_assert!(header.encode(spare, &mut bytes).is_err(), "a block of nothing but a gap");
            return Ok(());
        }
        header.encode(spare, &mut bytes).unwrap();
        prop_assert_eq!(ObjectHeader::measure(&bytes, 0).unwrap(), bytes.len() as u64);
        let mut back = decode(&bytes).unwrap();
        prop_assert_eq!((back.length, back.spare), (bytes.len() as u64, spare as u64));
        (back.length, back.spare) = (0, 0);
        back.messages.iter_mut().for_each(|message| message.address = 0);
        prop_assert_eq!(back, header);
    }

    #[test]
    fn damaged_headers_never_panic(header in header(), at in any::<prop::sample::Index>(), byte: u8) {
        let mut bytes = Vec::new();
        header.encode(9, &mut bytes).unwrap();
        let end = bytes.len() - 4;
        let at = at.index(end);
        bytes[at] = byte;
        bytes.truncate(end);
        bytes.put_checksum(0);
        let _ = ObjectHeader::measure(&bytes, u64::MAX);
        let _ = decode(&bytes);
    }

    #[test]
    fn any_bytes_give_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = ObjectHeader::measure(&bytes, 0);
        let _ = decode(&bytes);
        let mut old = vec![1, 0, 1, 0, 0, 0, 0, 0, 100, 0, 0, 0, 0, 0, 0, 0];
        old.extend_from_slice(&bytes);
        let _ = decode(&old);
    }
}

#[test]
fn version_1_headers_survive_a_round_trip_with_padding_and_fillers() {
    let mut header = ObjectHeader { version: 1, reference_count: Some(3), ..Default::default() };
    header.messages.push(RawMessage::new(0x0011, 0, vec![7; 16]));
    header.messages.push(RawMessage::new(0x000C, 1, vec![8; 13]));
    let context = Context::default();
    for spare in [0usize, 8, 24, 0xFFF8, 0x1_0000] {
        let mut bytes = Vec::new();
        header.encode(spare, &mut bytes).unwrap();
        assert_eq!(ObjectHeader::measure(&bytes, 0).unwrap(), bytes.len() as u64);
        let back = ObjectHeader::decode(&bytes, &context).unwrap();
        assert_eq!((back.reference_count, back.spare), (Some(3), spare as u64));
        assert_eq!(back.messages[0].body, [7; 16]);
        assert_eq!(back.messages[1].body, [&[8; 13][..], &[0; 3]].concat());
        let fillers = usize::from(spare > 0);
        assert_eq!(usize::from(bytes[2]), 2 + fillers, "the count has fillers, spare {spare}");
        let mut again = Vec::new();
        back.encode_sized(bytes.len(), 5, &mut again).unwrap();
        assert_eq!(usize::from(again[2]), 7 + fillers);
    }
    let mut block = Vec::new();
    let length = header.continuation_length(&header.messages, 5);
    assert_eq!(length, 24 + 24 + 8);
    assert_eq!(header.encode_continuation(&header.messages, length, &mut block).unwrap(), 3);
    let mut empty = ObjectHeader { version: 1, ..Default::default() };
    assert_eq!(empty.decode_continuation(&block, &context).unwrap(), 8);
    assert_eq!(empty.messages.len(), 2);
    assert!(header.encode_continuation(&header.messages, 44, &mut block).is_err());
    assert!(header.encode_continuation(&header.messages, 52, &mut block).is_err());
}
