//! Fill values of variable length: what cells read as that were never written, that were erased, or
//! that an array lost and got again.

use pumice::{Context, Dataset, DatasetBuilder, Datatype, File, H5Type, Keep, Value};

/// A datatype, its fill value, and another value.
fn cases() -> Vec<(Datatype, Value, Value)> {
    let text = Datatype::varlen_string(16);
    let numbers = Datatype::varlen(Datatype::i16_be(), 16);
    let lists = Datatype::varlen(text.clone(), 16);
    let record = Datatype::compound([("name", text.clone()), ("size", Datatype::f64_be())]);
    let sequence = |numbers: &[i128]| {
        Value::Sequence(numbers.iter().map(|&number| Value::Integer(number)).collect())
    };
    let named = |name: &str, size: f64| {
        Value::Compound(vec![("name".into(), name.into()), ("size".into(), Value::Float(size))])
    };
    let list = |texts: &[&str]| Value::Sequence(texts.iter().map(|&text| text.into()).collect());
    vec![
        (text, "not known".into(), "basalt".into()),
        (numbers, sequence(&[-1, 7, 300]), sequence(&[4])),
        (lists, list(&["a", "bc", "def"]), list(&["x"])),
        (record, named("nobody", -1.5), named("somebody", 2.0)),
    ]
}

const LAYOUTS: [&str; 4] = ["sparse", "dense", "chunked", "contiguous"];

fn laid_out(builder: DatasetBuilder, layout: &str) -> DatasetBuilder {
    let builder = builder.shape([10]);
    match layout {
        "sparse" => builder.chunk([4]).max_shape([None]).sparse(),
        "dense" => builder.chunk([4]).max_shape([None]).variable_length(),
        "chunked" => builder.chunk([4]).max_shape([None]),
        _ => builder,
    }
}

fn expect(dataset: &Dataset, written: &[u64], value: &Value, fill: &Value) {
    let length = dataset.shape()[0];
    let one = |at: u64| if written.contains(&at) { value.clone() } else { fill.clone() };
    let wanted: Vec<Value> = (0..length).map(one).collect();
    assert_eq!(dataset.read_values(..).unwrap(), wanted);
    assert_eq!(dataset.read_values(3..7).unwrap(), wanted[3..7]);
    assert_eq!(dataset.read_values(length - 1).unwrap(), wanted[length as usize - 1..]);
}

#[test]
fn cells_that_were_never_written_read_as_the_fill_value_in_every_layout() {
    for layout in LAYOUTS {
        for (datatype, fill, value) in cases() {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("fill.h5");
            let file = File::create(&path).unwrap();
            let builder = laid_out(file.new_dataset_of(datatype), layout).fill(fill.clone());
            let dataset = builder.create("d").unwrap();
            expect(&dataset, &[], &value, &fill);
            dataset.write_values(5, std::slice::from_ref(&value)).unwrap();
            expect(&dataset, &[5], &value, &fill);
            file.close().unwrap();

            let file = File::edit(&path).unwrap();
            let dataset = file.dataset("d").unwrap();
            expect(&dataset, &[5], &value, &fill);
            dataset.write_values(9, std::slice::from_ref(&value)).unwrap();
            expect(&dataset, &[5, 9], &value, &fill);
            file.close().unwrap();
            let file = File::open(&path).unwrap();
            expect(&file.dataset("d").unwrap(), &[5, 9], &value, &fill);
        }
    }
}

#[test]
fn erased_cells_and_cells_that_come_back_read_as_the_fill_value() {
    for layout in ["sparse", "dense"] {
        for (datatype, fill, value) in cases() {
            let file = File::in_memory().unwrap();
            let builder = laid_out(file.new_dataset_of(datatype), layout).fill(fill.clone());
            let dataset = builder.create("d").unwrap();
            dataset.write_values(.., &vec![value.clone(); 10]).unwrap();
            let all: Vec<u64> = (0..10).collect();
            expect(&dataset, &all, &value, &fill);
            if layout == "sparse" {
                dataset.erase(4..6).unwrap();
                let left: Vec<u64> = (0..10).filter(|at| !(4..6).contains(at)).collect();
                expect(&dataset, &left, &value, &fill);
                assert_eq!(dataset.count_defined(..).unwrap(), 8);
            } else {
                dataset.reset(4..6).unwrap();
                let left: Vec<u64> = (0..10).filter(|at| !(4..6).contains(at)).collect();
                expect(&dataset, &left, &value, &fill);
            }
            dataset.resize([7]).unwrap();
            dataset.flush().unwrap();
            dataset.resize([13]).unwrap();
            expect(&dataset, &[0, 1, 2, 3, 6], &value, &fill);
        }
    }
}

#[test]
fn copies_have_a_fill_value_of_their_own() {
    for (datatype, fill, value) in cases() {
        let (file, other) = (File::in_memory().unwrap(), File::in_memory().unwrap());
        let builder = laid_out(file.new_dataset_of(datatype), "sparse").fill(fill.clone());
        let dataset = builder.create("d").unwrap();
        dataset.write_values(5, std::slice::from_ref(&value)).unwrap();
        // What is deleted gives back what its fill value refers to, and nobody else's.
        let like = file.new_dataset_like(&dataset).sparse().create("like").unwrap();
        let far = other.new_dataset_like(&dataset).variable_length().create("far").unwrap();
        let same = file.new_dataset_like(&dataset).variable_length();
        let dense = dataset.copy_as(same, "dense", &Keep::Defined).unwrap();
        drop(dataset);
        file.unlink("d").unwrap();
        file.flush().unwrap();
        let fresh = laid_out(file.new_strings(), "chunked").create("s").unwrap();
        fresh.write_strings(.., &["overwritten"; 10]).unwrap();
        file.flush().unwrap();
        expect(&like, &[], &value, &fill);
        expect(&far, &[], &value, &fill);
        expect(&dense, &[5], &value, &fill);
    }
}

/// It is one object, to which many cells refer.
#[test]
fn a_long_fill_value_is_read_in_every_cell_however_many_there_are() {
    let fill = "x".repeat(20_000);
    for layout in LAYOUTS {
        let file = File::in_memory().unwrap();
        let builder =
            laid_out(file.new_strings(), layout).shape([3000]).fill(Value::from(fill.as_str()));
        let dataset = builder.create("d").unwrap();
        dataset.write_strings(5..8, &["a", &fill[1..], "b"] as &[&str]).unwrap();
        let read = dataset.read_strings(..).unwrap();
        assert_eq!(read.len(), 3000, "{layout}");
        for (number, found) in read.iter().enumerate() {
            let wanted = match number {
                5 => "a",
                6 => &fill[1..],
                7 => "b",
                _ => fill.as_str(),
            };
            assert!(found == wanted.as_bytes(), "{layout}: {number}");
        }
    }
}

#[test]
fn a_long_fill_value_is_stored_once_in_a_chunk_however_many_cells_have_it() {
    let fill = "x".repeat(20_000);
    let record =
        Datatype::compound([("id", Datatype::i32_le()), ("text", Datatype::varlen_string(16))]);
    let members = |id: i32| {
        Value::Compound(vec![
            ("id".into(), Value::Integer(id.into())),
            ("text".into(), Value::from(fill.as_str())),
        ])
    };
    let file = File::in_memory().unwrap();
    let text = file.new_strings().fill(Value::from(fill.as_str())).variable_length();
    let part = file.new_dataset_of(record.clone()).fill(members(-1)).variable_length();
    let sparse = file.new_dataset_of(record).fill(members(-1)).sparse();
    let create = |builder: DatasetBuilder, name| {
        builder.shape([3000]).chunk([3000]).no_filters().create(name).unwrap()
    };

    // A new chunk, and cells that get the fill value back.
    let texts = create(text, "texts");
    let words: Vec<String> = (0..3000).map(|n| format!("word {n}")).collect();
    texts.write_strings(5..6, &["a"]).unwrap();
    assert!(texts.storage_size().unwrap() < 500_000, "{:?}", texts.storage_size());
    texts.write_strings(.., &words).unwrap();
    texts.reset(7..2900).unwrap();
    assert!(texts.storage_size().unwrap() < 500_000, "{:?}", texts.storage_size());

    // Cells of which only a member of fixed size is written have the rest of the fill value.
    #[derive(Clone, Copy, H5Type)]
    #[repr(C)]
    struct Id {
        id: i32,
    }
    for records in [create(part, "part"), create(sparse, "sparse")] {
        let ids: Vec<Id> = (0..2000).map(|id| Id { id }).collect();
        records.write(100..2100, &ids).unwrap();
        assert!(records.storage_size().unwrap() < 500_000, "{:?}", records.storage_size());
        Context::global().evict().unwrap();
        assert_eq!(records.read_values(100..102).unwrap(), [members(0), members(1)]);
        assert_eq!(records.read_values(2100..2101).unwrap(), [members(-1)]);
    }
    Context::global().evict().unwrap();
    let read = texts.read_strings(..).unwrap();
    for (number, found) in read.iter().enumerate() {
        let wanted = if (7..2900).contains(&number) { &fill } else { &words[number] };
        assert!(found == wanted.as_bytes(), "{number}");
    }
}
