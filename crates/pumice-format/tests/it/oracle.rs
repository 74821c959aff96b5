//! Structures that this crate writes, read by h5dump: a whole file is put together by hand.

use pumice_bytes::Writer;
use pumice_format::messages::{
    Attribute, ChunkIndexInfo, Fill, FillValue, FilterDescription, GroupInfo, Layout, Link,
    LinkInfo, LinkTarget, Message, Pipeline, SharedLocation, SingleChunk,
};
use pumice_format::object_header::{
    Continuation, MESSAGE_CONSTANT, ObjectHeader, PhaseChange, RawMessage, Times,
};
use pumice_format::superblock::Superblock;
use pumice_format::{Sizes, UNDEFINED};
use pumice_space::{Extent, UNLIMITED};
use pumice_types::{
    Bitfield, ByteOrder, CharacterSet, Datatype, Enumeration, FixedString, Float, Integer,
    Reference, ReferenceKind, StringPadding,
};
use std::process::Command;

const SIZES: Sizes = Sizes { offset: 8, length: 8 };

/// A file that grows at its end.
struct Builder {
    bytes: Vec<u8>,
    links: Vec<Link>,
}

impl Builder {
    fn new() -> Self {
        Self { bytes: vec![0; Superblock::new(0, 0).encoded_length()], links: Vec::new() }
    }

    fn append(&mut self, bytes: &[u8]) -> u64 {
        let address = self.bytes.len() as u64;
        self.bytes.extend_from_slice(bytes);
        address
    }

    fn header(&mut self, header: &ObjectHeader, spare: usize) -> u64 {
        let mut bytes = Vec::new();
        header.encode(spare, &mut bytes).unwrap();
        self.append(&bytes)
    }

    fn link(&mut self, name: &str, address: u64) {
        self.links.push(Link::new(name, LinkTarget::Hard { address }));
    }

    /// A dataset of elements in one piece.
    fn dataset(&mut self, name: &str, datatype: &Datatype, extent: Extent, data: &[u8]) {
        let address = self.append(data);
        let layout = Layout::Contiguous { address, size: Some(data.len() as u64) };
        self.dataset_with(name, Message::Datatype(datatype.clone()), extent, layout, vec![]);
    }

    fn dataset_with(
        &mut self,
        name: &str,
        datatype: Message,
        extent: Extent,
        layout: Layout,
        more: Vec<Message>,
    ) {
        let mut header = ObjectHeader::new();
        header.messages.push(raw(Message::Dataspace(extent), 0));
        header.messages.push(raw(datatype, MESSAGE_CONSTANT));
        let fill = FillValue { value: Fill::Default, ..FillValue::default() };
        header.messages.push(raw(Message::FillValue(fill), MESSAGE_CONSTANT));
        header.messages.push(raw(Message::Layout(layout), 0));
        header.messages.extend(more.into_iter().map(|message| raw(message, 0)));
        let address = self.header(&header, 0);
        self.link(name, address);
    }

    /// Writes root group and superblock.
    fn finish(mut self) -> Vec<u8> {
        let mut root = ObjectHeader::new();
        root.messages.push(raw(Message::LinkInfo(LinkInfo::default()), 0));
        root.messages.push(raw(Message::GroupInfo(GroupInfo::default()), MESSAGE_CONSTANT));
        for link in std::mem::take(&mut self.links) {
            root.messages.push(raw(Message::Link(link), 0));
        }
        let address = self.header(&root, 300);
        let mut superblock = Vec::new();
        Superblock::new(address, self.bytes.len() as u64).encode(&mut superblock).unwrap();
        self.bytes[..superblock.len()].copy_from_slice(&superblock);
        self.bytes
    }
}

fn raw(message: Message, flags: u8) -> RawMessage {
    message.to_raw(SIZES, flags).unwrap()
}

/// The output of h5dump for `file`, or nothing if there is no h5dump.
fn h5dump(file: &[u8]) -> Option<String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file.h5");
    std::fs::write(&path, file).unwrap();
    let Ok(output) = Command::new("h5dump").arg(&path).output() else {
        println!("skipped: no h5dump");
        return None;
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}\n{errors}");
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn assert_contains(text: &str, expected: &str) {
    assert!(text.contains(expected), "{expected:?} is not in\n{text}");
}

#[test]
fn h5dump_reads_every_simple_datatype() {
    let mut file = Builder::new();
    let numbers: Vec<u8> = [1.5f64, -2.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    let pair = || Extent::simple(&[2]).unwrap();
    file.dataset("i32", &Datatype::i32_le(), pair(), &[1, 0, 0, 0, 254, 255, 255, 255]);
    file.dataset("u16be", &Datatype::u16_be(), pair(), &[1, 2, 0, 3]);
    file.dataset("f64", &Datatype::f64_le(), pair(), &numbers);
    let half = Float::half(ByteOrder::Little);
    file.dataset("f16", &half.into(), Extent::Scalar, &[0, 0x3C]);
    file.dataset("string", &Datatype::fixed_string(3), pair(), b"abcde\0");
    let text =
        FixedString { size: 6, padding: StringPadding::SpacePad, charset: CharacterSet::Utf8 };
    file.dataset("utf8", &text.into(), Extent::Scalar, "gr\u{fc}n ".as_bytes());
    file.dataset("opaque", &Datatype::opaque(2, "my tag"), Extent::Scalar, &[0xAB, 0xCD]);
    let bits = Bitfield::new(2, ByteOrder::Little);
    file.dataset("bits", &bits.into(), Extent::Scalar, &[0x34, 0x12]);
    let object = Reference { size: 8, kind: ReferenceKind::Object };
    file.dataset("reference", &object.into(), Extent::Scalar, &48u64.to_le_bytes());
    file.dataset("empty", &Datatype::u8(), Extent::Null, &[]);
    let Some(text) = h5dump(&file.finish()) else { return };
    for expected in [
        "DATASET \"i32\" { DATATYPE H5T_STD_I32LE DATASPACE SIMPLE { ( 2 ) / ( 2 ) } DATA { (0): 1, -2",
        "DATATYPE H5T_STD_U16BE DATASPACE SIMPLE { ( 2 ) / ( 2 ) } DATA { (0): 258, 3",
        "DATATYPE H5T_IEEE_F64LE DATASPACE SIMPLE { ( 2 ) / ( 2 ) } DATA { (0): 1.5, -2",
        "STRSIZE 3; STRPAD H5T_STR_NULLPAD; CSET H5T_CSET_ASCII",
        "\"abc\", \"de",
        "STRPAD H5T_STR_SPACEPAD; CSET H5T_CSET_UTF8",
        "OPAQUE_TAG \"my tag\"",
        "ab:cd",
        "H5T_STD_B16LE",
        "H5T_REFERENCE { H5T_STD_REF_OBJECT }",
        "DATASPACE NULL",
    ] {
        assert_contains(&text, expected);
    }
}

#[test]
fn h5dump_reads_composite_and_committed_datatypes() {
    let mut file = Builder::new();
    let base = Integer::new(1, ByteOrder::Little, true);
    let color = Enumeration::new(base).with("RED", &[0]).with("BLUE", &[1]);
    let record = Datatype::compound([
        ("x", Datatype::i16_le()),
        ("grid", Datatype::array(Datatype::u8(), [2, 2])),
        ("color", color.into()),
        ("inner", Datatype::compound([("y", Datatype::f32_be())])),
    ]);
    let data = [5, 0, 1, 2, 3, 4, 1, 0x3F, 0x80, 0, 0];
    file.dataset("record", &record, Extent::Scalar, &data);
    file.dataset("names", &Datatype::varlen_string(16), Extent::Scalar, &[0; 16]);
    file.dataset("lists", &Datatype::varlen(Datatype::i32_le(), 16), Extent::Scalar, &[0; 16]);

    let mut header = ObjectHeader::new();
    header.messages.push(raw(Message::Datatype(record), MESSAGE_CONSTANT));
    header.messages.push(raw(Message::ReferenceCount(2), 0));
    let address = file.header(&header, 0);
    file.link("type", address);
    file.link("same type", address);
    let location = SharedLocation::Object { address };
    let shared = Message::Shared { kind: 3, location };
    let layout = Layout::Compact { data: data.to_vec() };
    file.dataset_with("compact", shared, Extent::Scalar, layout, vec![]);
    let Some(text) = h5dump(&file.finish()) else { return };
    for expected in [
        "H5T_STD_I16LE \"x\"; H5T_ARRAY { [2][2] H5T_STD_U8LE } \"grid\";",
        "H5T_ENUM { H5T_STD_I8LE; \"RED\" 0; \"BLUE\" 1; } \"color\";",
        "H5T_COMPOUND { H5T_IEEE_F32BE \"y\"; } \"inner\";",
        "DATA { (0): { 5, [ 1, 2, 3, 4 ], BLUE, { 1 } } }",
        "STRSIZE H5T_VARIABLE; STRPAD H5T_STR_NULLTERM; CSET H5T_CSET_UTF8",
        "H5T_VLEN { H5T_STD_I32LE",
        "DATASET \"compact\" { DATATYPE \"/same type\"",
    ] {
        assert_contains(&text, expected);
    }
}

#[test]
fn h5dump_reads_chunked_layouts_and_filters() {
    let mut file = Builder::new();
    let chunked = |index, address| Layout::Chunked {
        version: 4,
        chunk: vec![4],
        element_size: 1,
        index,
        address,
        dont_filter_partial: false,
    };
    let single = file.append(&[1, 2, 3, 4]);
    let plain = ChunkIndexInfo::Single(SingleChunk { size: 4, ..SingleChunk::default() });
    let byte = || Message::Datatype(Datatype::u8());
    let four = Extent::simple(&[4]).unwrap();
    file.dataset_with("single", byte(), four.clone(), chunked(plain, single), vec![]);

    let pipeline = Pipeline { filters: vec![FilterDescription::new(2, &[1])] };
    let filtered = SingleChunk { filtered: true, size: 4, ..SingleChunk::default() };
    let layout = chunked(ChunkIndexInfo::Single(filtered), single);
    let messages = vec![Message::Pipeline(pipeline)];
    file.dataset_with("filtered", byte(), four, layout, messages);

    let eight = Extent::simple(&[8]).unwrap();
    let layout = chunked(ChunkIndexInfo::fixed_array(), UNDEFINED);
    file.dataset_with("fixed", byte(), eight.clone(), layout, vec![]);
    let growing = Extent::with_max(&[8], &[UNLIMITED]).unwrap();
    let layout = chunked(ChunkIndexInfo::extensible_array(), UNDEFINED);
    file.dataset_with("extensible", byte(), growing, layout, vec![]);
    let implicit = file.append(&[9; 8]);
    file.dataset_with(
        "implicit",
        byte(),
        eight,
        chunked(ChunkIndexInfo::Implicit, implicit),
        vec![],
    );
    let plane = Extent::with_max(&[3, 3], &[UNLIMITED, UNLIMITED]).unwrap();
    let tree = Layout::Chunked {
        version: 4,
        chunk: vec![300, 2],
        element_size: 1,
        index: ChunkIndexInfo::btree2(),
        address: UNDEFINED,
        dont_filter_partial: false,
    };
    file.dataset_with("tree", byte(), plane, tree, vec![]);
    let Some(text) = h5dump(&file.finish()) else { return };
    for expected in [
        "DATASET \"single\" { DATATYPE H5T_STD_U8LE DATASPACE SIMPLE { ( 4 ) / ( 4 ) } DATA { (0): 1, 2, 3, 4",
        "DATASET \"filtered\" { DATATYPE H5T_STD_U8LE DATASPACE SIMPLE { ( 4 ) / ( 4 ) } DATA { (0): 1, 2, 3, 4",
        "( 8 ) / ( H5S_UNLIMITED ) } DATA { (0): 0, 0, 0, 0, 0, 0, 0, 0",
        "(0): 9, 9, 9, 9, 9, 9, 9, 9",
        "(0,0): 0, 0, 0, (1,0): 0, 0, 0, (2,0): 0, 0, 0",
    ] {
        assert_contains(&text, expected);
    }
}

#[test]
fn h5dump_reads_links_attributes_and_continuations() {
    let mut file = Builder::new();
    let mut group = ObjectHeader::new();
    group.times = Some(Times { access: 1, modification: 2, change: 3, birth: 4 });
    group.phase_change = Some(PhaseChange { max_compact: 20, min_dense: 10 });
    group.track_attribute_order = true;
    let info = LinkInfo { max_creation_order: Some(1), ..LinkInfo::default() };
    group.messages.push(raw(Message::LinkInfo(info), 0));
    group.messages.push(raw(Message::GroupInfo(GroupInfo::default()), MESSAGE_CONSTANT));

    let scalar = Attribute::new("answer", Datatype::u8(), Extent::Scalar, vec![42]);
    let extent = Extent::simple(&[2]).unwrap();
    let pair = Attribute::new("gr\u{f6}\u{df}e", Datatype::u16_le(), extent, vec![1, 0, 2, 0]);
    let mut more = vec![raw(Message::Attribute(scalar), 0), raw(Message::Attribute(pair), 0)];
    more[1].creation_order = Some(1);
    more.push(raw(Message::Comment("a comment".into()), 0));
    let length = group.continuation_length(&more, 2);
    let mut block = Vec::new();
    group.encode_continuation(&more, length, &mut block).unwrap();
    let address = file.append(&block);
    let next = Continuation { address, length: length as u64 };
    group.messages.push(raw(Message::Continuation(next), 0));
    let mut soft = Link::new("soft", LinkTarget::Soft { path: "/nowhere".into() });
    soft.creation_order = Some(0);
    group.messages.push(raw(Message::Link(soft), 0));
    let address = file.header(&group, 0);
    file.link("group", address);

    let target = LinkTarget::External { file: "other.h5".into(), path: "/there".into() };
    file.links.push(Link::new("external", target));
    file.links.push(Link::new("a".repeat(300), LinkTarget::Soft { path: "/group".into() }));
    let Some(text) = h5dump(&file.finish()) else { return };
    for expected in [
        "GROUP \"group\" { COMMENT \"a comment\"",
        "ATTRIBUTE \"answer\" { DATATYPE H5T_STD_U8LE DATASPACE SCALAR DATA { (0): 42",
        "ATTRIBUTE \"gr\u{f6}\u{df}e\" { DATATYPE H5T_STD_U16LE",
        "SOFTLINK \"soft\" { LINKTARGET \"/nowhere\" }",
        "EXTERNAL_LINK \"external\" { TARGETFILE \"other.h5\" TARGETPATH \"/there\"",
        &"a".repeat(300),
    ] {
        assert_contains(&text, expected);
    }
}

#[test]
fn superblocks_have_the_length_they_promise() {
    let mut bytes = Vec::new();
    Superblock::new(0, 0).encode(&mut bytes).unwrap();
    assert_eq!(bytes.len(), Superblock::new(0, 0).encoded_length());
    bytes.put_u8(0);
    assert!(Superblock::decode(&bytes, 0).is_ok(), "bytes behind it do not matter");
}
