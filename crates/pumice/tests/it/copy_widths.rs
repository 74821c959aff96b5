//! Copies between files whose addresses have different widths: strings, sequences and references have other
//! sizes there, and say the same.

use pumice::types::Integer;
use pumice::{
    AllocationTime, CopyOptions, Datatype, File, FilterSpec, Keep, MemoryStore, Node,
    ReferenceType, Remade, Value,
};
use pumice_engine::group::{GroupSpec, new_messages};
use pumice_format::Sizes;
use pumice_format::object_header::ObjectHeader;
use pumice_format::superblock::Superblock;
use std::sync::Arc;

/// An empty file with addresses and lengths of so many bytes.
fn of_width(bytes: u8) -> File {
    File::options().edit_in(Arc::new(MemoryStore::new(empty(bytes)))).unwrap()
}

/// The bytes of such a file.
fn empty(bytes: u8) -> Vec<u8> {
    let sizes = Sizes { offset: bytes, length: bytes };
    let mut superblock = Superblock { sizes, ..Superblock::new(0, 0) };
    let start = superblock.encoded_length();
    let mut header = Vec::new();
    let messages = new_messages(&GroupSpec::default(), sizes);
    ObjectHeader { messages, ..ObjectHeader::new() }.encode(100, &mut header).unwrap();
    superblock.root_address = start as u64;
    superblock.end_of_file = (start + header.len()) as u64;
    let mut file = Vec::new();
    superblock.encode(&mut file).unwrap();
    file.extend(header);
    file
}

fn record(file: &File) -> Datatype {
    Datatype::compound([
        ("id", Datatype::i32_le()),
        ("name", Datatype::varlen_string(file.reference_size())),
        ("leads to", file.reference_datatype(ReferenceType::Object)),
        ("more", Datatype::array(Datatype::varlen(Datatype::i16_le(), file.reference_size()), [2])),
        ("last", Datatype::u8()),
    ])
}

fn sequence(values: &[i128]) -> Value {
    Value::Sequence(values.iter().map(|&value| Value::Integer(value)).collect())
}

/// Everything that has another size elsewhere.
fn fill(file: &File) {
    let texts = ["", "a", "bcd", "granite", "basalt"];
    let strings = || file.new_strings().shape([5]);
    let chunked = || strings().chunk([2]);
    for (name, builder) in [
        ("plain", strings()),
        ("compact", strings().compact()),
        ("chunked", chunked()),
        ("filtered", chunked().shuffle().deflate(3)),
        ("growing", chunked().max_shape([None])),
        ("implicit", chunked().allocation_time(AllocationTime::Early)),
    ] {
        let data = builder.create(name).unwrap();
        data.write_strings(.., &texts).unwrap();
        data.set_attribute("text", "of one").unwrap();
    }
    let fill = Value::from("nothing");
    let partly = chunked().fill(fill).create("partly").unwrap();
    partly.write_strings(0..1, &["something"]).unwrap();
    let lists =
        Datatype::varlen(Datatype::varlen_string(file.reference_size()), file.reference_size());
    let nested = file.new_dataset_of(lists).shape([3]).create("nested").unwrap();
    let words = |words: &[&str]| Value::Sequence(words.iter().map(|&word| word.into()).collect());
    nested.write_values(.., &[words(&["one", "two"]), words(&[]), words(&["three"])]).unwrap();

    let links = file.new_references(ReferenceType::Object).shape([2]).create("links").unwrap();
    links.write_references(0, &[Some(file.reference("plain").unwrap())]).unwrap();
    let regions = file.new_references(ReferenceType::Region).shape([1]).create("regions").unwrap();
    let region = file.region_reference("plain", 1..3).unwrap();
    regions.write_references(.., &[Some(region)]).unwrap();
    file.set_attribute("to", file.reference("nested").unwrap()).unwrap();

    let kind = file.commit_datatype("record", &record(file)).unwrap();
    let records = file.new_dataset_of_committed(&kind).shape([2]).create("records").unwrap();
    records.write_values(.., &[tuff(file, 7), tuff(file, 8)]).unwrap();
    file.flush().unwrap();
}

fn tuff(file: &File, id: i128) -> Value {
    let address = file.dataset("plain").unwrap().address().to_le_bytes();
    let width = file.reference_datatype(ReferenceType::Object).size();
    let member = |name: &str, value: Value| (name.to_owned(), value);
    Value::Compound(vec![
        member("id", Value::Integer(id)),
        member("name", "tuff".into()),
        member("leads to", Value::Reference(address[..width].to_vec())),
        member("more", Value::Array(vec![sequence(&[1, -2]), sequence(&[3])])),
        member("last", Value::Integer(9)),
    ])
}

fn check(file: &File) {
    let texts = ["", "a", "bcd", "granite", "basalt"];
    for name in ["plain", "compact", "chunked", "filtered", "growing", "implicit"] {
        let data = file.dataset(name).unwrap();
        assert_eq!(data.datatype().size() as u32, file.reference_size(), "{name}");
        assert_eq!(data.read_strings(..).unwrap(), texts, "{name}");
        assert_eq!(data.attribute("text").unwrap().read_string().unwrap(), "of one");
        data.write_strings(1..3, &["new", "newer"]).unwrap();
        assert_eq!(data.read_strings(..).unwrap(), ["", "new", "newer", "granite", "basalt"]);
    }
    let partly = file.dataset("partly").unwrap().read_strings(..).unwrap();
    assert_eq!(partly, ["something", "nothing", "nothing", "nothing", "nothing"]);
    let nested = file.dataset("nested").unwrap();
    let Value::Sequence(words) = &nested.read_values(0..1).unwrap()[0] else { panic!("no list") };
    assert_eq!(*words, [Value::from("one"), Value::from("two")]);

    let links = file.dataset("links").unwrap().read_references(..).unwrap();
    let Node::Dataset(found) = file.dereference(links[0].as_ref().unwrap()).unwrap() else {
        panic!("no dataset")
    };
    assert_eq!(found.address(), file.dataset("plain").unwrap().address());
    assert!(links[1].is_none());
    let regions = file.dataset("regions").unwrap().read_references(..).unwrap();
    let (found, cells) = file.dereference_region(regions[0].as_ref().unwrap()).unwrap();
    assert_eq!(found.read_strings(cells).unwrap(), ["new", "newer"]);

    let records = file.dataset("records").unwrap();
    assert_eq!(records.datatype(), &record(file));
    let kind = file.committed_datatype("record").unwrap();
    assert_eq!(records.committed_datatype(), Some(kind.address()));
    let values = records.read_values(..).unwrap();
    for (value, id) in values.iter().zip([7, 8]) {
        assert_eq!(*value, tuff(file, id));
    }
    file.flush().unwrap();
}

#[test]
fn what_is_copied_to_a_file_of_another_width_says_the_same() {
    for [from, to] in [[4, 8], [8, 4], [8, 8]] {
        let (from, to) = (of_width(from), of_width(to));
        fill(&from);
        from.copy_whole(&to, &CopyOptions::new(), |_| Ok(None), |_, _| ()).unwrap();
        check(&to);
        let to = to.attribute("to").unwrap().read_references().unwrap()[0].clone();
        assert!(to.is_some());
    }
}

#[test]
fn objects_are_copied_to_a_file_of_another_width() {
    let options = CopyOptions::new().expand_references(true);
    for [from, to] in [[4, 8], [8, 4]] {
        let (from, to) = (of_width(from), of_width(to));
        fill(&from);
        from.copy_object("/", &to, "all", &options).unwrap();
        let all = to.group("all").unwrap();
        assert_eq!(all.dataset("plain").unwrap().read_strings(4..5).unwrap(), ["basalt"]);
        assert_eq!(all.dataset("records").unwrap().datatype(), &record(&to));
        let merging = CopyOptions::new().merge_committed_datatypes(true);
        from.copy_object("records", &to, "again", &merging).unwrap();
        let kind = all.committed_datatype("record").unwrap();
        assert_eq!(to.dataset("again").unwrap().committed_datatype(), Some(kind.address()));
    }
}

#[test]
fn datasets_are_stored_in_another_way_in_a_file_of_another_width() {
    let (from, to) = (of_width(4), File::in_memory().unwrap());
    fill(&from);
    let choose = |data: &pumice::Dataset| {
        let chunked = data.path() == "/plain" || data.path() == "/partly";
        let builder = to.new_dataset_like(data).chunk([3]).deflate(1);
        Ok(chunked.then(|| Remade { builder, keep: Keep::Defined }))
    };
    from.copy_whole(&to, &CopyOptions::new(), choose, |_, _| ()).unwrap();
    assert_eq!(to.dataset("plain").unwrap().chunk(), Some(vec![3]));
    check(&to);
}

/// Structured chunks have sections whose elements have another size there, too.
#[test]
fn structured_chunks_are_copied_to_a_file_of_another_width() {
    for [from, to] in [[4, 8], [8, 4], [4, 4]] {
        let (from, to) = (of_width(from), of_width(to));
        let names = from.new_strings().shape([10]).max_shape([None]).sparse();
        let names = names.create("names").unwrap();
        names.write_strings(3..4, &["obsidian"]).unwrap();
        names.write_strings(8..9, &[""]).unwrap();
        let lists = from.new_strings().shape([10]).variable_length().create("lists").unwrap();
        lists.write_strings(5..6, &["scoria"]).unwrap();
        let links = from.new_references(ReferenceType::Object).shape([6]).sparse();
        let links = links.create("links").unwrap();
        links.write_references(2..3, &[Some(from.reference("names").unwrap())]).unwrap();
        let options = CopyOptions::new().expand_references(true);
        from.copy_object("/", &to, "all", &options).unwrap();
        for file in [&from, &to] {
            let all = if file.contains("all") { file.group("all") } else { file.group("/") };
            let all = all.unwrap();
            let names = all.dataset("names").unwrap();
            assert_eq!(names.read_strings(2..5).unwrap(), ["", "obsidian", ""]);
            assert_eq!(names.count_defined(..).unwrap(), 2);
            assert!(names.is_defined(&[8]).unwrap() && !names.is_defined(&[9]).unwrap());
            names.write_strings(9..10, &["tuff"]).unwrap();
            assert_eq!(names.read_strings(8..10).unwrap(), ["", "tuff"]);
            names.erase(9..10).unwrap();
            let lists = all.dataset("lists").unwrap();
            assert_eq!(lists.read_strings(4..7).unwrap(), ["", "scoria", ""]);
            let many: Vec<String> = (0..10).map(|number| "ash".repeat(number)).collect();
            lists.write_strings(.., &many).unwrap();
            assert_eq!(lists.read_strings(..).unwrap(), many);
            lists.write_strings(5..6, &["scoria"]).unwrap();
            let links = all.dataset("links").unwrap();
            assert_eq!(links.count_defined(..).unwrap(), 1);
            let found = links.read_references(2..3).unwrap();
            let found = file.dereference(found[0].as_ref().unwrap()).unwrap();
            let Node::Dataset(found) = found else { panic!("no dataset") };
            assert_eq!(found.address(), names.address());
        }
    }
}

fn pair(file: &File) -> Datatype {
    let object = file.reference_datatype(ReferenceType::Object);
    let Datatype::Integer(whole) = Datatype::i32_le() else { unreachable!() };
    let id = Datatype::Integer(Integer { precision: 12, ..whole });
    Datatype::compound([("to", object), ("id", id)])
}

/// Of what parts elements consist is what nbit has to know.
#[test]
fn elements_packed_by_nbit_are_copied_to_a_file_of_another_width() {
    for ([from, to], sparse) in [([4, 8], false), ([8, 4], true), ([4, 8], true)] {
        let (from, store) = (of_width(from), Arc::new(MemoryStore::new(empty(to))));
        let to = File::options().edit_in(store.clone()).unwrap();
        fill(&from);
        let builder = from.new_dataset_of(pair(&from)).shape([3]).chunk([2]);
        let builder = match sparse {
            true => builder.sparse().value_filters(vec![FilterSpec::nbit()]),
            false => builder.filter(FilterSpec::nbit()),
        };
        let address = from.dataset("plain").unwrap().address().to_le_bytes();
        let width = from.reference_datatype(ReferenceType::Object).size();
        let value = |id| {
            let to = Value::Reference(address[..width].to_vec());
            Value::Compound(vec![("to".into(), to), ("id".into(), Value::Integer(id))])
        };
        let packed = builder.create("packed").unwrap();
        packed.write_values(0..2, &[value(-2000), value(2000)]).unwrap();
        let options = CopyOptions::new().expand_references(true);
        from.copy_object("packed", &to, "packed", &options).unwrap();
        from.copy_object("plain", &to, "plain", &options).unwrap();
        let copy = to.dataset("packed").unwrap();
        assert_eq!(copy.datatype(), &pair(&to));
        to.flush().unwrap();
        let again = File::options().open_bytes(store.to_vec()).unwrap();
        let values = again.dataset("packed").unwrap().read_values(..).unwrap();
        for (value, id) in values.iter().zip([-2000, 2000, 0]) {
            let Value::Compound(members) = value else { panic!("{value:?}") };
            assert_eq!(members[1].1, Value::Integer(id));
            let Value::Reference(place) = &members[0].1 else { panic!("{value:?}") };
            assert_eq!(place.iter().all(|&byte| byte == 0), id == 0, "{place:?}");
        }
    }
}

#[test]
fn what_is_made_through_a_link_is_as_wide_as_its_file_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b] = ["a.h5", "b.h5"].map(|name| folder.path().join(name));
    std::fs::write(&b, empty(4)).unwrap();
    let file = File::create(&a).unwrap();
    file.create_external_link("e", "b.h5", "/").unwrap();
    let builder = file.new_strings().shape([3]).chunk([2]).fill(Value::from("none"));
    let names = builder.create("e/names").unwrap();
    names.write_strings(1..2, &["scoria"]).unwrap();
    assert_eq!(names.datatype().size(), 12);
    let kind = file.commit_datatype("e/record", &record(&file)).unwrap();
    assert_eq!(kind.datatype(), &record(&File::edit(&b).unwrap()));
    drop((names, kind, file));
    let file = File::open(&b).unwrap();
    assert_eq!(
        file.dataset("names").unwrap().read_strings(..).unwrap(),
        ["none", "scoria", "none"]
    );
    assert_eq!(file.committed_datatype("record").unwrap().datatype(), &record(&file));
}
