//! Copies of objects: what is shared stays shared, nothing is too deep, a failed copy leaves nothing
//! behind, and sparse datasets stay sparse.

use pumice::types::{Reference, ReferenceKind};
use pumice::{CopyOptions, Datatype, File, MemoryStore, Value};
use std::sync::Arc;

fn plain() -> CopyOptions {
    CopyOptions::new()
}

#[test]
fn sparse_datasets_are_copied_chunk_by_chunk() {
    let (from, to) = (File::in_memory().unwrap(), File::in_memory().unwrap());
    let builder = from.new_dataset::<f32>().shape([1000, 1000]).chunk([64, 64]).sparse();
    let hits = builder.create("hits").unwrap();
    let points: Vec<[u64; 2]> = (0..500).map(|n| [n * 7 % 1000, n * 131 % 1000]).collect();
    let values: Vec<f32> = (0..500).map(|n| n as f32).collect();
    hits.write_points(&points, &values).unwrap();
    hits.set_attribute("unit", "counts").unwrap();
    for target in [&to, &from] {
        from.copy_object("hits", target, "copy", &plain()).unwrap();
        let copy = target.dataset("copy").unwrap();
        assert!(copy.is_sparse());
        let (one, other) =
            (hits.read_defined::<f32>(..).unwrap(), copy.read_defined::<f32>(..).unwrap());
        assert_eq!((one.coordinates, one.values), (other.coordinates, other.values));
        assert_eq!(copy.storage_size().unwrap(), hits.storage_size().unwrap());
        assert_eq!(copy.attribute("unit").unwrap().read_string().unwrap(), "counts");
    }
    // The copy is a dataset of its own.
    let copy = from.dataset("copy").unwrap();
    copy.erase(..).unwrap();
    assert_eq!((copy.count_defined(..).unwrap(), hits.count_defined(..).unwrap()), (0, 500));
}

#[test]
fn strings_in_chunks_and_in_the_global_heap_are_copied() {
    let (from, to) = (File::in_memory().unwrap(), File::in_memory().unwrap());
    let texts = ["", "a", "bcd", "eeeeeeeeeeeeeeeeeeeeeeeeeeeeee"];
    let heap = from.new_strings().shape([4]).create("heap").unwrap();
    let chunks = from.new_strings().shape([4]).variable_length().create("chunks").unwrap();
    let sparse = from.new_strings().shape([4, 100]).sparse().create("sparse").unwrap();
    heap.write_strings(.., &texts).unwrap();
    chunks.write_strings(.., &texts).unwrap();
    sparse.write_strings((.., 50), &texts).unwrap();
    for target in [&to, &from] {
        for name in ["heap", "chunks", "sparse"] {
            let new = format!("new {name}");
            from.copy_object(name, target, &new, &plain()).unwrap();
            let copy = target.dataset(&new).unwrap();
            match name {
                "sparse" => {
                    assert_eq!(copy.read_strings((.., 50)).unwrap(), texts);
                    assert_eq!(copy.count_defined(..).unwrap(), 4);
                }
                _ => assert_eq!(copy.read_strings(..).unwrap(), texts),
            }
        }
    }
    from.dataset("new heap").unwrap().write_strings(.., &["x"; 4]).unwrap();
    from.flush().unwrap();
    assert_eq!(heap.read_strings(..).unwrap(), texts, "nothing is shared");
}

#[test]
fn what_is_linked_twice_is_copied_once_and_circles_are_closed() {
    let file = File::in_memory().unwrap();
    let group = file.create_group("a").unwrap();
    group.new_dataset::<u8>().shape([4]).create("x").unwrap().write(.., &[1u8, 2, 3, 4]).unwrap();
    group.create_hard_link("y", "x").unwrap();
    group.create_hard_link("up", "/a").unwrap();
    file.copy_object("a", &file, "b", &plain()).unwrap();
    let copy = file.group("b").unwrap();
    assert_eq!(copy.link_count(), 2);
    assert_eq!(copy.dataset("x").unwrap().address(), copy.dataset("up/y").unwrap().address());
    assert_eq!(copy.dataset("x").unwrap().link_count(), 2);
    assert_ne!(copy.dataset("x").unwrap().address(), group.dataset("x").unwrap().address());
    assert_eq!(copy.group("up").unwrap().address(), copy.address());
}

#[test]
fn no_hierarchy_is_too_deep() {
    let (from, to) = (File::in_memory().unwrap(), File::in_memory().unwrap());
    let mut group = from.create_group("top").unwrap();
    for _ in 0..20_000 {
        group = group.create_group("g").unwrap();
    }
    from.copy_object("top", &to, "top", &plain()).unwrap();
    let mut group = to.group("top").unwrap();
    let mut depth = 0;
    while let Ok(next) = group.group("g") {
        (group, depth) = (next, depth + 1);
    }
    assert_eq!(depth, 20_000);
}

#[test]
fn a_copy_that_fails_leaves_nothing_behind() {
    let from = File::in_memory().unwrap();
    let group = from.create_group("g").unwrap();
    for name in ["a", "z"] {
        let data = group.new_dataset::<u8>().shape([100_000]).create(name).unwrap();
        data.write(.., &[7u8; 100_000]).unwrap();
    }
    group.new_dataset::<i32>().shape([8]).create("m").unwrap().write(.., &[5i32; 8]).unwrap();
    let store = Arc::new(MemoryStore::default());
    let to = File::options().create_in(store.clone()).unwrap();
    to.create_group("z").unwrap();
    to.flush().unwrap();
    let before = store.to_vec().len();
    // It cannot be linked where something is already.
    assert!(from.copy_object("g", &to, "z", &plain()).is_err());
    assert!(from.copy_object("nothing", &to, "new", &plain()).is_err());
    assert!(from.copy_object("g", &to, "z/bad\0name", &plain()).is_err());
    assert_eq!(to.members().unwrap().len(), 1);
    to.flush().unwrap();
    to.create_group("y").unwrap();
    to.flush().unwrap();
    assert!(store.to_vec().len() < before + 1000, "{} after {before}", store.to_vec().len());
    let closed = File::options().open_in(store).unwrap();
    assert!(from.copy_object("g", &closed, "new", &plain()).is_err(), "open for reading only");
}

#[test]
fn references_inside_other_elements_are_cleared_or_led_to_copies() {
    let from = File::in_memory().unwrap();
    let target = from.new_dataset::<u8>().shape([3]).create("g/target").unwrap();
    target.write(.., &[1u8, 2, 3]).unwrap();
    let reference = Datatype::Reference(Reference { size: 8, kind: ReferenceKind::Object });
    let list = Datatype::varlen(reference.clone(), 16);
    let pair = Datatype::compound([("one", reference), ("many", list)]);
    let data = from.new_dataset_of(pair).shape([2]).create("g/data").unwrap();
    let address = Value::Reference(target.address().to_le_bytes().to_vec());
    let value = Value::Compound(vec![
        ("one".into(), address.clone()),
        ("many".into(), Value::Sequence(vec![address.clone(), address])),
    ]);
    data.write_values(0..1, &[value]).unwrap();
    for expand in [false, true] {
        let to = File::in_memory().unwrap();
        let options = plain().expand_references(expand);
        from.copy_object("g", &to, "g", &options).unwrap();
        let copy = to.dataset("g/target").unwrap().address();
        let wanted = if expand { copy } else { 0 }.to_le_bytes().to_vec();
        let found = to.dataset("g/data").unwrap().read_values(0..1).unwrap();
        let Value::Compound(members) = &found[0] else { panic!("{found:?}") };
        assert_eq!(members[0].1, Value::Reference(wanted.clone()));
        let many = vec![Value::Reference(wanted.clone()), Value::Reference(wanted)];
        assert_eq!(members[1].1, Value::Sequence(many));
    }
}

#[test]
fn changes_that_are_not_written_yet_are_copied() {
    let file = File::in_memory().unwrap();
    let builder = file.new_dataset::<i32>().shape([100]).chunk([10]).deflate(3);
    let chunked = builder.create("chunked").unwrap();
    let compact = file.new_dataset::<i32>().shape([100]).compact().create("compact").unwrap();
    let values: Vec<i32> = (0..100).collect();
    for (dataset, name) in [(&chunked, "chunked"), (&compact, "compact")] {
        dataset.write(.., &values).unwrap();
        file.copy_object(name, &file, &format!("copy of {name}"), &plain()).unwrap();
        dataset.write(.., &[0i32; 100]).unwrap();
        let copy = file.dataset(&format!("copy of {name}")).unwrap();
        assert_eq!(copy.read::<i32>(..).unwrap(), values);
    }
}

#[test]
fn strings_and_references_in_chunks_without_an_index_are_copied() {
    use pumice::{AllocationTime, ReferenceType};
    let (from, to) = (File::in_memory().unwrap(), File::in_memory().unwrap());
    let early = |builder: pumice::DatasetBuilder| {
        builder.shape([10]).chunk([4]).allocation_time(AllocationTime::Early)
    };
    let texts = early(from.new_strings()).create("texts").unwrap();
    texts.write_strings(3..5, &["rhyolite", "dacite"]).unwrap();
    let size = from.reference_size();
    let lists = early(from.new_sequences(Datatype::i16_le())).create("lists").unwrap();
    lists.write_values(9..10, &[Value::Sequence(vec![Value::Integer(7)])]).unwrap();
    let links = early(from.new_references(ReferenceType::Object)).create("links").unwrap();
    links.write_references(0..1, &[Some(from.reference("texts").unwrap())]).unwrap();
    let filled = early(from.new_strings()).fill(Value::from("none")).create("filled").unwrap();
    filled.write_strings(9..10, &["one"]).unwrap();
    assert_eq!(size, 16);
    for target in [&to, &from] {
        let all = target.create_group("new").unwrap();
        let options = plain().expand_references(true);
        for name in ["texts", "lists", "links", "filled"] {
            from.copy_object(name, &all, name, &options).unwrap();
        }
        let copy = all.dataset("texts").unwrap();
        assert_eq!(copy.read_strings(2..6).unwrap(), ["", "rhyolite", "dacite", ""]);
        copy.write_strings(3..4, &["lava"]).unwrap();
        assert_eq!(texts.read_strings(3..4).unwrap(), ["rhyolite"], "a dataset of its own");
        let copy = all.dataset("lists").unwrap();
        assert_eq!(copy.read_values(9..10).unwrap(), lists.read_values(9..10).unwrap());
        let copy = all.dataset("links").unwrap().read_references(..).unwrap();
        assert!(copy[0].is_some() && copy[1].is_none());
        let copy = all.dataset("filled").unwrap().read_strings(8..10).unwrap();
        assert_eq!(copy, ["none", "one"]);
    }
    to.flush().unwrap();
    from.flush().unwrap();
}
