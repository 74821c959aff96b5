//! Cells of virtual datasets are reset where they are: in the sources.

use pumice::{File, Selection, Value};

#[test]
fn virtual_datasets_are_reset_in_their_sources() {
    let file = File::in_memory().unwrap();
    let numbers = file.new_dataset::<i32>().shape([6]).create("numbers").unwrap();
    numbers.write(.., &[1, 2, 3, 4, 5, 6]).unwrap();
    let sparse = file.new_dataset::<i64>().shape([4]).sparse().create("sparse").unwrap();
    sparse.write(.., &[7i64, 8, 9, 10]).unwrap();
    let block = |start, count| Selection::block(&[start], &[count]).unwrap();
    // Two cells have no source, and one source is not there.
    let view = file.new_dataset::<i32>().shape([14]).fill(Value::Integer(-1));
    let view = view.virtual_part(block(0, 6), ".", "numbers", block(0, 6));
    let view = view.virtual_part(block(8, 4), ".", "sparse", block(0, 4));
    let view = view.virtual_part(block(12, 2), ".", "missing", block(0, 2)).create("view").unwrap();
    view.reset(4..10).unwrap();
    let found: Vec<i32> = view.read(..).unwrap();
    assert_eq!(found, [1, 2, 3, 4, -1, -1, -1, -1, -1, -1, 9, 10, -1, -1]);
    assert_eq!(numbers.read::<i32>(..).unwrap(), [1, 2, 3, 4, -1, -1]);
    view.reset(..).unwrap();
    assert_eq!(view.read::<i32>(..).unwrap(), [-1; 14]);
    assert_eq!(sparse.read::<i64>(..).unwrap(), [-1; 4]);

    let words = file.new_strings().shape([3]).chunk([2]).variable_length().create("words").unwrap();
    words.write_strings(.., &["a", "b", "c"]).unwrap();
    let view = file.new_strings().shape([3]).fill(Value::from("none"));
    let view = view.virtual_part(block(0, 3), ".", "words", block(0, 3)).create("texts").unwrap();
    view.reset(1..3).unwrap();
    assert_eq!(words.read_strings(..).unwrap(), ["a", "none", "none"]);
}
