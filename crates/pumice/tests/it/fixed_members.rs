//! Members of fixed size of compounds that have strings or sequences, read and written alone, in every layout: the
//! others keep what they have.

use pumice::{
    Context, DatasetBuilder, Datatype, File, H5Type, MemoryStore, ReadMany, Value, WriteMany,
};
use std::sync::Arc;

#[derive(H5Type, Clone, Copy, Debug, PartialEq)]
#[repr(C)]
#[h5(plain)]
struct Size {
    size: i32,
}

fn entry(name: &str, size: i128) -> Value {
    Value::Compound(vec![("name".into(), name.into()), ("size".into(), Value::Integer(size))])
}

type Change = fn(DatasetBuilder) -> DatasetBuilder;

#[test]
fn members_of_fixed_size_are_read_and_written_without_the_strings_beside_them() {
    let context = Context::builder().build().unwrap();
    let store = Arc::new(MemoryStore::default());
    let file = File::options().context(&context).create_in(store).unwrap();
    let datatype =
        Datatype::compound([("name", Datatype::varlen_string(16)), ("size", Datatype::i32_le())]);
    let layouts: [(&str, Change); 4] = [
        ("contiguous", |new| new),
        ("chunked", |new| new.chunk([3])),
        ("structured", |new| new.chunk([3]).variable_length()),
        ("sparse", |new| new.chunk([3]).sparse()),
    ];
    for (name, change) in layouts {
        for fill in [None, Some(entry("none", -1))] {
            let nothing = [("name".into(), Value::Null), ("size".into(), Value::Integer(0))];
            let rest = fill.clone().unwrap_or_else(|| Value::Compound(nothing.into()));
            let Value::Compound(members) = &rest else { panic!("{rest:?}") };
            let (rest_name, rest_size) = match (&members[0].1, &members[1].1) {
                (name, Value::Integer(size)) => (name.clone(), *size),
                other => panic!("{other:?}"),
            };
            let rest_named = |size: i128| {
                Value::Compound(vec![
                    ("name".into(), rest_name.clone()),
                    ("size".into(), Value::Integer(size)),
                ])
            };
            let new = change(file.new_dataset_of(datatype.clone()).shape([8]));
            let new = fill.iter().fold(new, |new, fill| new.fill(fill.clone()));
            let path = format!("{name} {}", fill.is_some());
            let dataset = new.create(&path).unwrap();
            dataset.write_values(1..3, &[entry("one", 1), entry("two", 2)]).unwrap();
            let sizes = |sizes: [i128; 8]| sizes.map(|size| Size { size: size as i32 });
            let unset = rest_size;
            let expected = sizes([unset, 1, 2, unset, unset, unset, unset, unset]);
            assert_eq!(dataset.read::<Size>(..).unwrap(), expected, "{path}");
            // Cells that are there, and cells that are not; part of a chunk, the whole of one, and points.
            dataset.write(0..2, &[Size { size: 50 }, Size { size: 51 }]).unwrap();
            dataset
                .write(3..6, &[Size { size: 63 }, Size { size: 64 }, Size { size: 65 }])
                .unwrap();
            dataset.write_points(&[[7], [2]], &[Size { size: 70 }, Size { size: 52 }]).unwrap();
            let expected = [50, 51, 52, 63, 64, 65, unset, 70];
            for stored in [false, true] {
                if stored {
                    file.flush().unwrap();
                    context.evict().unwrap();
                }
                assert_eq!(dataset.read::<Size>(..).unwrap(), sizes(expected), "{path}");
                let values = dataset.read_values(..).unwrap();
                assert_eq!(values[1..3], [entry("one", 51), entry("two", 52)], "{path}");
                for cell in [0, 3, 4, 5, 6, 7] {
                    assert_eq!(values[cell], rest_named(expected[cell]), "{path}: {cell}");
                }
            }
            if dataset.is_sparse() {
                assert_eq!(dataset.count_defined(..).unwrap(), 7, "{path}");
            }
            let (new, mut found) = ([Size { size: 90 }], [Size { size: 0 }; 2]);
            let mut writes = WriteMany::new();
            writes.add(&dataset, 2..3, &new).unwrap();
            writes.run().unwrap();
            let mut reads = ReadMany::new();
            reads.add(&dataset, 2..4, &mut found).unwrap();
            reads.run().unwrap();
            assert_eq!(found, [Size { size: 90 }, Size { size: 63 }], "{path}");
            assert_eq!(dataset.read_values(2).unwrap(), [entry("two", 90)], "{path}");
        }
    }
}

#[test]
fn references_of_structured_chunks_are_not_read_or_written_as_bytes() {
    let file = File::in_memory().unwrap();
    let strings = file.new_strings().shape([4]).sparse().create("strings").unwrap();
    strings.write_strings(.., &["a", "b", "c", "d"]).unwrap();
    let error = strings.read_bytes(..).unwrap_err().to_string();
    assert!(error.contains("members of fixed size alone"), "{error}");
    assert!(strings.write_bytes(0, &[0; 16]).is_err());
    assert_eq!(strings.read_strings(..).unwrap(), ["a", "b", "c", "d"]);
}
