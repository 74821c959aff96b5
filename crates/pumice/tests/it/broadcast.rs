//! One value for many cells: as if each had been written by itself.

use pumice::{Datatype, File, Selection, Value};

#[test]
fn one_string_is_written_to_all_selected_cells() {
    let file = File::in_memory().unwrap();
    let shape = [7, 9];
    for (name, builder) in [
        ("plain", file.new_strings().shape(shape)),
        ("chunked", file.new_strings().shape(shape).chunk([3, 4]).deflate(1)),
        ("own heap", file.new_strings().shape(shape).chunk([3, 4]).variable_length()),
        ("sparse", file.new_strings().shape(shape).chunk([3, 4]).sparse()),
        ("fixed", file.new_dataset_of(Datatype::fixed_string(6)).shape(shape)),
    ] {
        let data = builder.create(name).unwrap();
        data.write_scalar_string(.., "lava").unwrap();
        data.write_scalar_string((1..4, 2..), "basalt").unwrap();
        let stripes = Selection::hyperslab(&[0, 1], &[2, 3], &[4, 3], &[1, 1]).unwrap();
        data.write_scalar_string(&stripes, "tuff").unwrap();
        let points = Selection::points(2, vec![0, 0, 6, 8]).unwrap();
        data.write_scalar_string(&points, "").unwrap();
        let texts = data.read_values(..).unwrap();
        for (cell, text) in texts.iter().enumerate() {
            let (row, column) = (cell as u64 / 9, cell as u64 % 9);
            let expected = match (row, column) {
                (0, 0) | (6, 8) => "",
                _ if row % 2 == 0 && column % 3 == 1 => "tuff",
                (1..4, 2..) => "basalt",
                _ => "lava",
            };
            let found = match text {
                Value::Text(text) => std::str::from_utf8(text).unwrap(),
                _ => "",
            };
            assert_eq!(found.trim_end_matches('\0'), expected, "{name} at {row}, {column}");
        }
        file.flush().unwrap();
    }
    let numbers = file.new_dataset::<i32>().shape([3]).create("numbers").unwrap();
    assert!(numbers.write_scalar_string(.., "lava").is_err());
    assert!(file.dataset("plain").unwrap().write_scalar_string((..9, ..), "lava").is_err());
}

#[test]
fn one_value_or_element_is_written_to_all_selected_cells() {
    let file = File::in_memory().unwrap();
    let list = Datatype::varlen(Datatype::i16_le(), file.reference_size());
    let pair = Datatype::compound([("id", Datatype::i32_le()), ("list", list)]);
    let pairs = file.new_dataset_of(pair).shape([20]).chunk([6]).create("pairs").unwrap();
    let member = |name: &str, value| (name.to_owned(), value);
    let list = Value::Sequence(vec![Value::Integer(1), Value::Integer(-1)]);
    let value = Value::Compound(vec![member("id", Value::Integer(7)), member("list", list)]);
    pairs.write_scalar_value(3..19, &value).unwrap();
    assert_eq!(pairs.read_values(3..19).unwrap(), vec![value.clone(); 16]);
    assert_ne!(pairs.read_values(2..3).unwrap()[0], value);
    pairs.write_scalar_value(4..5, &pairs.read_values(0..1).unwrap()[0]).unwrap();
    assert_eq!(pairs.read_values(5..6).unwrap(), [value], "each cell has its own");

    let flat = Datatype::compound([("x", Datatype::f32_le()), ("y", Datatype::u8())]);
    let flats = file.new_dataset_of(flat).shape([4, 4]).create("flats").unwrap();
    flats.write_scalar_bytes((1..3, 1..3), &[0, 0, 128, 63, 9]).unwrap();
    assert_eq!(flats.read_bytes((2, 2)).unwrap(), [0, 0, 128, 63, 9]);
    assert_eq!(flats.read_bytes((0, ..)).unwrap(), [0; 20]);
    assert!(flats.write_scalar_bytes(.., &[0; 4]).is_err());
}

#[test]
fn selections_that_are_larger_than_memory_is_taken_for_them_are_written_in_parts() {
    let file = File::in_memory().unwrap();
    let bytes = file.new_dataset::<u8>().shape([3000, 1000]).create("bytes").unwrap();
    let stripes = Selection::hyperslab(&[1, 0], &[2, 1], &[1500, 1], &[1, 1000]).unwrap();
    bytes.write_scalar_bytes(&stripes, &[5]).unwrap();
    bytes.write_scalar((..1500, 3..4), 6u8).unwrap();
    let found = bytes.read::<u8>(..).unwrap();
    let expected = |cell: usize| match (cell / 1000, cell % 1000) {
        (..1500, 3) => 6,
        (row, _) => 5 * (row as u8 % 2),
    };
    assert!(found.iter().enumerate().all(|(cell, &value)| value == expected(cell)));

    let size = 3 << 20;
    let builder = file.new_dataset_of(Datatype::fixed_string(size)).shape([12]).chunk([1]);
    let large = builder.create("large").unwrap();
    large.write_scalar_string(1..11, "x").unwrap();
    for row in [0, 1, 10, 11] {
        let first = large.read_bytes(row..row + 1).unwrap()[0];
        assert_eq!(first, if (1..11).contains(&row) { b'x' } else { 0 });
    }
}
